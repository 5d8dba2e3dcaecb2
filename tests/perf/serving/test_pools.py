"""A pool that computes prompts and one that decodes, against a discrete-event simulation of both."""

from __future__ import annotations

import heapq
import random

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from trnspec.perf.serving.load import Replica
from trnspec.perf.serving.pools import Fleet, erlang_c, least


def fleet(prefills: int = 3, replicas: int = 2, transfer: float = 0.02) -> Fleet:
    steps = 0.01 + 0.0005 * np.arange(1.0, 65.0)
    decode = Replica(prompt=0.0, prompt_squared=0.0, first=0.0, steps=steps, output=200.0)
    prompt = 0.3
    before = Replica(prompt=prompt, prompt_squared=prompt**2, first=0.01, steps=np.ones(1), output=200.0)
    return Fleet(replica=decode, replicas=replicas, prefill=before, prefills=prefills, transfer=transfer)


def simulated(pools: Fleet, rate: float, requests: int, seed: int) -> tuple[list[float], list[float]]:
    """TTFT and TPOT: one queue for all prefill replicas; then a replica at random, step by step."""
    draw = random.Random(seed)
    assert pools.prefill is not None
    free = [0.0] * pools.prefills
    clock, ready = 0.0, []
    for _ in range(requests):
        clock += draw.expovariate(rate)
        end = max(clock, heapq.heappop(free)) + pools.prefill.prompt
        heapq.heappush(free, end)
        ready.append((end + pools.transfer, clock, draw.randrange(pools.replicas)))
    ttft, tpot = [], []
    for number in range(pools.replicas):
        own = sorted((at, arrived) for at, arrived, where in ready if where == number)
        running: list[list[float]] = []
        now = 0.0
        while own or running:
            while own and own[0][0] <= now and len(running) < pools.replica.most:
                _, arrived = own.pop(0)
                ttft.append(now + pools.prefill.first - arrived)
                running.append([now, pools.replica.output - 1])
            if not running:
                now = own[0][0]
                continue
            now += float(pools.replica.steps[len(running) - 1])
            for one in running:
                one[1] -= 1
            tpot += [(now - begin) / (pools.replica.output - 1) for begin, left in running if left <= 0]
            running = [one for one in running if one[1] > 0]
    return ttft, tpot


@pytest.mark.parametrize("prefills", [1, 3, 8])
@pytest.mark.parametrize(("utilization", "error"), [(0.3, 0.12), (0.7, 0.15)])
def test_percentiles_are_those_of_a_simulation(prefills: int, utilization: float, error: float) -> None:
    pools = fleet(prefills)
    rate = utilization * pools.saturation
    state = pools.at(rate)
    assert state is not None
    ttft, tpot = simulated(pools, rate, 3000, seed=prefills)

    for which in (50, 95):
        assert state.ttft(which) == pytest.approx(float(np.percentile(ttft, which)), rel=error)
        assert state.tpot(which) == pytest.approx(float(np.percentile(tpot, which)), rel=error)


def test_the_probability_of_a_wait_is_that_of_erlang() -> None:
    """Values of the formula with sums."""
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(500, 400.0) < 1e-4


def test_no_steady_state_beyond_the_saturation_of_either_pool() -> None:
    pools = fleet()

    assert pools.saturation == pytest.approx(3 / 0.3)
    assert pools.at(1.001 * pools.saturation) is None
    assert evolve(pools, prefills=1000).at(2.001 * pools.replica.saturation) is None


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 0.85), st.floats(0.05, 0.85), st.floats(50.0, 99.0))
def test_more_requests_take_longer(first: float, second: float, which: float) -> None:
    pools = fleet()
    low, high = sorted((first, second))
    less, more = (pools.at(share * pools.saturation) for share in (low, high))
    assert less is not None
    assert more is not None

    assert less.ttft(which) <= more.ttft(which) * (1 + 1e-9)
    assert less.tpot(which) <= more.tpot(which) * (1 + 1e-9)


@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 300))
def test_the_least_number(low: int, threshold: int, most: int) -> None:
    expected = next((n for n in range(low, max(low, most) + 1) if n >= threshold), None)

    assert least(lambda n: n >= threshold, low, max(low, most)) == expected
