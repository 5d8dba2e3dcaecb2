"""The parts of a training step, against schedules that are executed, and against counts by hand."""

import random

import pytest
from attrs import evolve

from tests.perf.oracles.pipelines import gpipe, one_forward_one_backward, span, zero_bubble
from tests.support.engine import ESTIMATORS, LLAMA_3_70B, MIXTRAL, everything, possible
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, Efficiency, machine
from trnspec.perf.training.bubble import equal_bubble
from trnspec.perf.training.execution import Pipeline, half_moved
from trnspec.perf.training.microbatch import Times
from trnspec.perf.training.step import Step, exposed_exchanges, least_time, step
from trnspec.perf.work.layout import SCHEDULES, Layout
from trnspec.perf.work.transformer import transformer

TIMES = [(1.0, 1.0, 1.0), (1.0, 1.25, 0.9), (1.0, 2.2, 1.0), (1.2, 2.5, 0.8)]
"""Forward, gradients of activations, gradients of weights: as published, with attention, with full recompute, with both."""
STAGES = (2, 3, 4, 8)


def closed_form(schedule: str, p: int, m: int, times: tuple[float, float, float], chunks: int = 1) -> float:
    """The time of a step of nothing but its stages."""
    forward, inputs, weights = times
    of = SCHEDULES[schedule]
    shape = float(p), float(chunks), of.v_shape, of.deferred * (p - 1), float(p * chunks), 0.0, float(m)
    layer = Times(forward, inputs, weights, 0.0, 0.0, 0.0, 0.0)
    return m * sum(times) + float(equal_bubble(Pipeline(*shape, factor=of.bubble / chunks), layer, 1.0))


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("p", STAGES)
def test_whole_backward_passes(p, times):
    forward, inputs, weights = times
    for m in range(1, 3 * p):
        for schedule, passes in (("1f1b", one_forward_one_backward), ("gpipe", gpipe)):
            executed = span(passes(p, m), {"F": forward, "B": inputs + weights})
            assert closed_form(schedule, p, m, times) == pytest.approx(executed, rel=1e-12)
    for v in (2, 3, 4):
        for m in (p, 2 * p, 3 * p):
            chunk = {"F": forward / v, "B": (inputs + weights) / v}
            executed = span(one_forward_one_backward(p, m, v), chunk)
            assert closed_form("interleaved", p, m, times, v) == pytest.approx(executed, rel=1e-12)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize(("schedule", "ahead"), [("zb1p", 1), ("zb2p", 2)])
def test_zero_bubble(schedule, ahead, p, times):
    for m in range(1, 4 * p):
        executed = span(zero_bubble(p, m, ahead), dict(zip("FBW", times, strict=True)))
        assert closed_form(schedule, p, m, times) == pytest.approx(executed, rel=1e-12), m


def test_the_least_time_is_a_bound_and_that_of_a_single_stage():
    """Apart from the optimizer and the exchange of gradients."""
    draw = random.Random(1)
    for one in (possible(draw) for _ in range(300)):
        of = ESTIMATORS[one.which].model, one.layout, ESTIMATORS[one.which].machine
        time, least = step(*of), least_time(*of)
        passes = time.total - time.data - time.optimizer
        assert least <= passes
        assert one.layout.pp > 1 or least == pytest.approx(passes, rel=1e-8)


def test_v_shaped_as_published():
    """With equal passes a bubble that does not grow; else ``v-min`` repeats one: six chunks backward are in turn."""
    for p in STAGES:
        assert closed_form("zbv", p, 3 * p, TIMES[0]) == 3 * 3 * p
        assert closed_form("v-half", p, 3 * p, TIMES[0]) <= 3 * 3 * p + 1.5 * (p - 1)
        assert closed_form("v-min", p, 3 * p, TIMES[0]) <= 3 * 3 * p + 2 * (p - 1)
    more = [closed_form("v-min", 4, m + 1, TIMES[2]) - closed_form("v-min", 4, m, TIMES[2]) for m in (20, 40)]
    assert more == pytest.approx([3 * TIMES[2][1]] * 2)
    assert more[0] > sum(TIMES[2])


SYSTEM = lower(everything(), "dgx-h100*8")
PIPELINE = Layout(pp=8, dp=8, seq=4096, global_batch=512)


def timed(d, layout: Layout, efficiency: Efficiency = IDEAL, dtype: str = "bf16") -> Step:
    return step(transformer(d), layout, machine(SYSTEM, efficiency, dtype))


def test_of_an_interleaved_schedule_one_chunk_of_the_exchange_is_exposed():
    """NeMo's guide, "Communication Overlap": one chunk, of the layers of a virtual pipeline stage."""
    shares = {}
    for chunks in (1, 2, 5):
        layout = evolve(PIPELINE, zero=1, interleave=chunks, schedule="interleaved" if chunks > 1 else "1f1b")
        whole = timed(LLAMA_3_70B, layout, evolve(IDEAL, overlap=0.0)).data
        shares[chunks] = timed(LLAMA_3_70B, layout, evolve(IDEAL, exposed=0.4)).data / whole
    assert pytest.approx({1: 0.4, 2: 0.2, 5: 0.08}) == shares
    # Exchanges of every microbatch are not of chunks.
    layout = evolve(PIPELINE, zero=2, interleave=5, schedule="interleaved")
    whole = timed(LLAMA_3_70B, layout, evolve(IDEAL, overlap=0.0)).data
    assert pytest.approx(0.4 * whole) == timed(LLAMA_3_70B, layout, evolve(IDEAL, exposed=0.4)).data


@pytest.mark.parametrize(("zero", "time"), [(0, 8.0), (1, 8.0), (2, 17.0), (3, 32.0)])
def test_exchanges_of_four_microbatches(zero, time):
    """Of 3 s around backward and 5 s ahead of forward passes ZeRO 2 repeats the former, ZeRO 3 both."""
    some, on = evolve(PIPELINE, zero=zero, global_batch=32), machine(SYSTEM, evolve(IDEAL, overlap=0.0), "bf16")
    assert [time] == exposed_exchanges(some, on, 3.0, 5.0, Times(*[1.0] * 7), (2.0, 0.0))


def test_movable_work_is_split_in_half_during_a_fit():
    """The time is then at least the least one, which is searched for in unequal stages."""
    layout = Layout(pp=4, dp=16, ep=8, seq=4096, global_batch=256, interleave=3, schedule="interleaved", uneven=True)
    some = evolve(IDEAL, expert_overlap=0.3, exchange=0.1)
    least = timed(MIXTRAL, layout, some)
    with half_moved():
        near = timed(MIXTRAL, layout, some)
    assert least.bubble < near.bubble < 1.2 * least.bubble
    assert least == timed(MIXTRAL, layout, some)
