"""Serving with requests in flight agrees with a simulation of the server, request by request."""

from collections import deque

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import MODELS, SYSTEMS
from trnspec.perf.lowering.machine import IDEAL as RATES
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.decode import decode_time, mean_context, token_load
from trnspec.perf.serving.forward_pass import Deployment, Serving, run_forward
from trnspec.perf.serving.in_flight import CACHE_MEMORY, InFlight, in_flight, most_running
from trnspec.perf.serving.prefill import prompt_load
from trnspec.perf.work.transformer import transformer

DIMS = MODELS["mha"]
MODEL = transformer(DIMS)
RANK = machine(SYSTEMS[0], RATES, "bf16")
PLAN = Deployment(prompt=700.0, output=60.0, flash=1.0)
FITTED = Serving(matmul=0.5, weights=0.6, cache=0.5, step=2e-4, request=1e-3, response=5e-3, queue=0.1)


def served(
    requests: float, most: float = 1e6, plan: Deployment = PLAN, serving: Serving = FITTED, **more: float
) -> InFlight:
    return in_flight(MODEL, plan, RANK, serving, requests=requests, most=most, **more)


def simulated(clients: int, most: int, step: float, prompt: float, output: int) -> tuple[float, float]:
    """Mean time per output token and output rate: each iteration decodes a token of all that run and takes in one prompt."""
    queue = deque(range(clients))
    left: dict[int, int] = {}
    began: dict[int, float] = {}
    times: list[float] = []
    now = 0.0
    while len(times) < 12 * clients:
        new = queue.popleft() if queue and len(left) < most else None
        now += (step if left else 0.0) + (prompt if new is not None else 0.0)
        for client in [*left]:
            left[client] -= 1
            if not left[client]:
                times.append((now - began[client]) / (output - 1))
                del left[client]
                queue.append(client)
        if new is not None:
            left[new], began[new] = output - 1, now
    # The first turn begins with an empty server.
    return float(np.mean(times[3 * clients :])), 12 * clients * output / now


@pytest.mark.parametrize(("clients", "most"), [(1, 100), (4, 100), (16, 100), (48, 16)])
def test_times_and_rate_are_those_of_a_simulated_server(clients: int, most: int) -> None:
    serving = evolve(FITTED, response=0.0, queue=0.0)
    found = served(float(clients), float(most), serving=serving)
    tpot, rate = simulated(clients, most, float(found.step), float(found.prompt), int(PLAN.output))
    assert tpot == pytest.approx(float(found.tpot), rel=0.1)
    assert rate == pytest.approx(float(found.throughput), rel=0.15)


def chunked(plan: Deployment, clients: int) -> tuple[float, float]:
    """The same with prompts in chunks: each iteration takes one, and lasts as long as the pass with the tokens that run."""

    def lasts(running: int, *, chunk: bool) -> float:
        now = evolve(plan, batch=max(running, 1.0), prompts=1.0)
        loads = [prompt_load(MODEL, now, CHUNKS)] * chunk
        loads += [token_load(MODEL, now, CHUNKS, mean_context(MODEL, now))] * (running > 0)
        return float(run_forward(MODEL, now, RANK, CHUNKS, sum(loads[1:], loads[0])).total)

    chunks, output = int(plan.passes), int(plan.output)
    queue, left, began = deque([client, chunks] for client in range(clients)), dict[int, int](), dict[int, float]()
    times, ends, now = list[float](), list[float](), 0.0
    while len(ends) < 8 * clients:
        now += lasts(len(left), chunk=bool(queue))
        for client in [*left]:
            left[client] -= 1
            if not left[client]:
                times.append((now - began[client]) / (output - 1))
                ends.append(now)
                del left[client]
                queue.append([client, chunks])
        if queue:
            queue[0][1] -= 1
        if queue and not queue[0][1]:
            new, _ = queue.popleft()
            left[new], began[new] = output - 1, now
    begin = 3 * clients
    return float(np.mean(times[begin:])), (len(ends) - begin) * output / (ends[-1] - ends[begin - 1])


CHUNKS = evolve(FITTED, response=0.0, queue=0.0, request=0.0)


@pytest.mark.parametrize(("passes", "output"), [(8, 4), (8, 16), (8, 60), (16, 16), (64, 8)])
def test_chunks_of_prompts_wait_for_each_other(passes: int, output: int) -> None:
    """More chunks than decoding steps: the estimate is not faster than the server."""
    plan = Deployment(prompt=512.0 * passes, output=float(output), flash=1.0, passes=float(passes))
    found = served(16.0, plan=plan, serving=CHUNKS)
    tpot, rate = chunked(plan, 16)
    assert 0.7 * rate < float(found.throughput) < 1.05 * rate
    assert 0.95 * tpot < float(found.tpot)


def test_a_request_alone_is_neither_interrupted_nor_queued() -> None:
    found = served(1.0)
    assert float(decode_time(MODEL, evolve(PLAN, batch=1.0), RANK, FITTED)) == pytest.approx(float(found.tpot))
    assert float(found.prompt) + FITTED.response == pytest.approx(float(found.ttft))


def test_requests_that_do_not_fit_wait_for_a_turn() -> None:
    """Little's law: the time from arrival to the last token is the number in flight over the rate of requests."""
    for requests in (32.0, 50.0, 200.0):
        found = served(requests, 20.0)
        latency = float(found.ttft) + (PLAN.output - 1.0) * float(found.tpot)
        assert requests / (float(found.throughput) / PLAN.output) == pytest.approx(latency)
    assert (20.0, 20.0) == (served(50.0, 20.0).running, served(200.0, 20.0).running)
    assert served(50.0, 20.0).tpot == served(200.0, 20.0).tpot


def test_prefill_on_other_chips_does_not_interrupt() -> None:
    found = served(16.0, separate=1.0)
    assert float(found.step) == pytest.approx(float(found.tpot))
    assert found.tpot < served(16.0).tpot


def test_a_prompt_that_stops_decoding_takes_longer_than_one_that_joins() -> None:
    assert served(16.0, mixed=0.0).prompt > served(16.0).prompt


def test_as_many_run_as_the_cache_holds() -> None:
    plan = evolve(PLAN, tp=2.0)
    free = CACHE_MEMORY * RANK.capacity - 2.0 * MODEL.layers * (MODEL.whole + MODEL.routed) / 2.0
    free -= 2.0 * (MODEL.output + MODEL.embedding * (1.0 - MODEL.tied)) / 2.0
    each = 2.0 * MODEL.layers * MODEL.kv_elements / 2.0 * (700.0 + 30.0)
    assert free // each == most_running(MODEL, plan, RANK)
    # With half the width twice as many, but for rounding; a model that fills the memory serves one.
    half = most_running(MODEL, evolve(plan, cache_bytes=1.0), RANK)
    assert 0 <= half - 2 * (free // each) <= 1
    assert 1.0 == most_running(MODEL, evolve(plan, weight_bytes=1e6), RANK)


def test_arrays_give_the_same_bits_as_single_calls() -> None:
    requests = np.array([1.0, 3.0, 20.0, 90.0])
    most = np.array([10.0, 10.0, 10.0, 50.0])
    together = served(requests, most)
    for i, (n, limit) in enumerate(zip(requests, most, strict=True)):
        alone = served(float(n), float(limit))
        assert (alone.tpot, alone.ttft, alone.throughput) == (
            together.tpot[i],
            together.ttft[i],
            together.throughput[i],
        )


def test_narrow_experts_leave_the_other_weights_wide() -> None:
    moe = transformer(MODELS["mixtral"])
    narrow, wide = (
        in_flight(moe, Deployment(weight_bytes=0.5, whole_bytes=whole), RANK, Serving(), requests=1.0, most=1.0).step
        for whole in (0.0, 2.0)
    )
    assert moe.layers * moe.whole * 1.5 * RANK.seconds_per_byte == pytest.approx(float(wide - narrow))


def test_the_output_matrix_in_another_width() -> None:
    narrow, wide = (
        served(1.0, plan=evolve(PLAN, weight_bytes=1.0, head_bytes=head), serving=Serving()).step for head in (0.0, 2.0)
    )
    assert MODEL.output * RANK.seconds_per_byte == pytest.approx(float(wide - narrow))
