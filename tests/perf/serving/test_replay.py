"""The simulation by events against one step by step."""

import math

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import replica
from trnspec.perf.serving.load import Replica, loaded
from trnspec.perf.serving.pools import Fleet
from trnspec.perf.serving.replay import Requests, poisson, replay, serve_all


def by_steps(one: Replica, requests: Requests) -> tuple[list[float], list[float]]:
    """TTFT and TPOT of each request, one decode step after another."""
    total = len(requests)
    first, last = [0.0] * total, [0.0] * total
    running: dict[int, int] = {}
    clock, following, left = 0.0, 0, None
    while following < total or running:
        prompt = following < total and requests.arrivals[following] <= clock and len(running) < one.most
        if prompt:
            length = float(requests.prompts[following])
            chunks = one.shared * length if running else 0.0
            left = 1.0 if left is None else left
            part = min(left, 1.0 / chunks) if chunks else left
            clock += one.prompt * length * part
            left -= part
        if running and (not prompt or chunks):
            clock += float(one.steps[len(running) - 1])
            running = {n: rest - 1 for n, rest in running.items()}
            for n, rest in running.items():
                if rest == 0:
                    last[n] = clock
            running = {n: rest for n, rest in running.items() if rest}
        if prompt and left is not None and left <= 1e-9:
            first[following] = last[following] = clock
            if requests.outputs[following] > 1:
                running[following] = math.ceil(requests.outputs[following]) - 1
            following, left = following + 1, None
        elif not prompt and not running and following < total:
            clock = max(clock, float(requests.arrivals[following]))
    tokens = np.maximum(np.ceil(requests.outputs) - 1, 1)
    return [
        (np.array(first) + one.first - requests.arrivals).tolist(),
        ((np.array(last) - np.array(first)) / tokens).tolist(),
    ]


@pytest.mark.parametrize("shared", [0.0, 1.0, 4.0])
def test_events_are_those_of_single_steps(shared: float) -> None:
    """Of lengths and arrivals at random: the same means within the rounding of arrivals to steps."""
    one = replica(shared=shared)
    random = np.random.default_rng(3)
    requests = poisson(0.5 * one.saturation, 600, output=200.0, prompts=[0.5, 1.0, 1.5], seed=4)
    requests = Requests(arrivals=requests.arrivals, prompts=requests.prompts, outputs=random.integers(1, 300, 600))
    found = serve_all(one, requests, requests.arrivals)
    ttft, tpot = by_steps(one, requests)

    for which in (50, 90):
        assert float(np.percentile(found.ttft, which)) == pytest.approx(float(np.percentile(ttft, which)), rel=0.05)
        assert float(np.percentile(found.tpot, which)) == pytest.approx(float(np.percentile(tpot, which)), rel=0.05)


def test_single_request() -> None:
    one = replica()
    requests = Requests(arrivals=np.array([7.0]), prompts=np.array([2.0]), outputs=np.array([11.0]))
    found = serve_all(one, requests, requests.arrivals)

    assert found.ttft.tolist() == pytest.approx([2 * 0.08])
    assert found.tpot.tolist() == pytest.approx([0.0105])


def test_a_request_of_one_token_is_not_decoded() -> None:
    requests = Requests(arrivals=np.zeros(3), prompts=np.ones(3), outputs=np.ones(3))
    found = serve_all(replica(), requests, requests.arrivals)

    assert found.ttft.tolist() == pytest.approx([0.08, 0.16, 0.24])
    assert found.tpot.tolist() == [0.0, 0.0, 0.0]


def test_a_part_of_the_replicas_represents_all() -> None:
    fleet = Fleet(replica=replica(), replicas=8)
    requests = poisson(8 * 0.5 * fleet.replica.saturation, 8000, output=200.0)
    some, every = (replay(fleet, requests, most=most) for most in (2, 8))

    assert len(some.ttft) < len(every.ttft) == 8000
    assert float(np.percentile(some.tpot, 95)) == pytest.approx(float(np.percentile(every.tpot, 95)), rel=0.05)


def test_the_requests_of_a_trace() -> None:
    """In the order of their arrival; three intervals in 6 s are 0.5 requests/s, at which the first is at 0 s."""
    lines = [(100.0, 7.0, 13.0), (300.0, 9.0, 10.0), (100.0, 8.0, 16.0), (300.0, 6.0, 12.0)]
    for rate, scale in ((None, 1.0), (0.5, 1.0), (2.0, 0.25)):
        found, own = Requests.of(lines, rate)
        assert own == (rate or 0.5)
        assert found.arrivals.tolist() == [scale * t for t in (0.0, 2.0, 3.0, 6.0)]
        assert (found.prompts.tolist(), found.outputs.tolist()) == ([1.5, 1.5, 0.5, 0.5], [9.0, 6.0, 7.0, 8.0])


def test_a_pool_computes_prompts_in_the_order_of_their_arrival() -> None:
    """Two servers take 0.1 s for a prompt of mean length; the third prompt waits for the one that is free first."""
    fleet = Fleet(
        replica=replica(prompt=0.0), replicas=1, prefill=evolve(replica(prompt=0.1), first=0.5), prefills=2, transfer=0.25
    )  # fmt: skip
    requests = Requests(
        arrivals=np.array([0.0, 0.0, 0.05, 9.0]), prompts=np.array([3.0, 1.0, 2.0, 1.0]), outputs=np.array([1.0, 1.0, 1.0, 11.0])
    )  # fmt: skip
    found = replay(fleet, requests, most=1)

    assert found.ttft.tolist() == pytest.approx([0.3 + 0.75, 0.1 + 0.75, 0.3 - 0.05 + 0.75, 0.1 + 0.75])
    assert found.tpot.tolist() == pytest.approx([0.0, 0.0, 0.0, 0.0105])


@pytest.mark.parametrize("shared", [0.0, 3.0])
def test_prompts_of_different_lengths(shared: float) -> None:
    steps = {n: 0.01 + 0.0005 * n for n in range(1, 65)}
    one = Replica.of([0.02, 0.04, 0.06, 0.24], steps, first=0.0, output=200.0, shared=shared)
    rate = 0.5 * one.saturation
    state = loaded(one, rate)
    assert state is not None
    requests = poisson(rate, 12_000, output=200.0, prompts=one.lengths)
    ttft, tpot = zip(
        *(serve_all(one, requests, requests.arrivals).percentiles(p, warm=0.1) for p in (50, 95)), strict=True
    )

    assert (state.ttft(50), state.ttft(95)) == pytest.approx(ttft, rel=0.15)
    assert (state.tpot(50), state.tpot(95)) == pytest.approx(tpot, rel=0.15)
    assert state.ttft(95) > 1.5 * one.prompt + one.first


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_prompts_that_wait_share_a_pass(shared: float) -> None:
    one = evolve(replica(shared=shared), packed=2, fixed=0.02)
    requests = Requests(arrivals=np.zeros(4), prompts=np.ones(4), outputs=np.array([1.0, 9.0, 1.0, 1.0]))
    found = serve_all(one, requests, requests.arrivals)
    first = 2 * 0.08 + 0.02
    second = 2 * first + (float(one.steps[0]) if shared else 0.0)
    assert found.ttft.tolist() == pytest.approx([first, first, second, second])

    fleet = Fleet(replica=replica(prompt=0.0), replicas=1, prefill=one, prefills=1)
    pool = replay(fleet, evolve(requests, outputs=np.ones(4)), most=1)
    assert pool.ttft.tolist() == pytest.approx([first, first, 2 * first, 2 * first])


def test_equal_prompts_on_several_servers_are_those_of_single_events() -> None:
    """The closed form of a pool with equal times against the queue of events, which prompts of two lengths take."""
    fleet = Fleet(replica=replica(prompt=0.0), replicas=1, prefill=evolve(replica(prompt=0.1), fixed=0.01), prefills=3)
    equal = poisson(25.0, 500, output=1.0)
    nearly = evolve(equal, prompts=np.where(np.arange(500) == 499, 1.0 + 1e-9, 1.0))

    times = [replay(fleet, requests, most=1).ttft.tolist() for requests in (equal, nearly)]
    assert times[0] == pytest.approx(times[1])
