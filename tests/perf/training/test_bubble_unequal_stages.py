"""The time of a step whose stages have different numbers of layers, against that of equal ones."""

from typing import Any

import numpy as np
import pytest
from attrs import astuple, evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.perf.oracles import pipelines
from tests.perf.oracles.pipelines import span, v_shaped
from tests.support.engine import layout, llama, shipped
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, machine
from trnspec.perf.training.bubble import approximation, unequal_span, v_shaped_bubble
from trnspec.perf.training.estimator import prepare
from trnspec.perf.training.execution import Pipeline
from trnspec.perf.training.microbatch import Times
from trnspec.perf.training.pass_order import FUSED, order
from trnspec.perf.training.step import PARTS, Step, step
from trnspec.perf.work.layout import SCHEDULES as LAYOUT_SCHEDULES
from trnspec.perf.work.layout import V_SHAPED, Layout, in_flight
from trnspec.perf.work.transformer import transformer

SYSTEM = lower(shipped().graph, "trn2.48xlarge*4")
MACHINE = machine(SYSTEM, IDEAL, "bf16")
LAYOUT = Layout(pp=16, dp=16, seq=8192, global_batch=1024, uneven=True)
LONG = llama(126, 16384, 128, 8, 53248, 128256)
"""Llama 3.1 405B."""


def timed(d, layers: float, layout: Layout = LAYOUT, **changes: float) -> Step:
    return step(transformer(evolve(d, layers=layers, **changes)), layout, MACHINE)


SCHEDULES = ("1f1b", "interleaved", "gpipe", "zb1p", "zb2p", *V_SHAPED)


def executed(schedule: str, p: int, m: int, v: int, layers: int, times: Times) -> float:
    """The time of all passes by an execution of its own, pass by pass."""
    split = Layout(seq=1, global_batch=m, pp=p, schedule=schedule, interleave=v)
    layer, output = (times.forward, times.inputs, times.weights), (times.output, times.output_inputs)
    return pipelines.executed(split, m, layers, 0.0, layer, times.send, output)


@st.composite
def unequal(draw: Any) -> tuple[str, int, int, int, int, Times]:
    """Schedules with unequal stages, few and many microbatches, and an output of any size."""
    schedule, p = draw(st.sampled_from(SCHEDULES)), draw(st.integers(2, 6))
    v = draw(st.integers(2, 3)) if schedule == "interleaved" else 1
    m = p * draw(st.integers(1, 12)) if v > 1 else draw(st.integers(1, 9 * p))
    chunks = p * (2 if schedule in V_SHAPED else v)
    layers = draw(st.integers(1, 8)) * chunks + draw(st.integers(1, chunks - 1))
    time = st.floats(0.5, 2.0)
    forward, weights = draw(time), 0.0 if schedule in FUSED else draw(st.floats(0.1, 0.5))
    output = draw(st.sampled_from([0.0, 0.3, 0.97, 1.03, 4.0])) * forward
    backward = draw(st.sampled_from([1.0, 2.0, 3.0])) * output
    times = Times(forward, draw(time), weights, 0.0, draw(st.floats(0.0, 0.1)), output, backward)
    return schedule, p, m, v, layers, times


def pipeline(schedule: str, p: int, m: int, v: int, layers: int) -> Pipeline:
    """The numbers of a pipeline."""
    v_shape = V_SHAPED.index(schedule) + 1.0 if schedule in V_SHAPED else 0.0
    deferred = (p - 1.0) * LAYOUT_SCHEDULES[schedule].deferred
    return Pipeline(float(p), float(v), v_shape, deferred, float(layers), 0.0, float(m), float(schedule == "gpipe"))


FEW_OFF = {"interleaved": (6, 0.01), **dict.fromkeys(V_SHAPED, (4, 0.015))}
"""Microbatches per stage above which schedules may be too short, in one of 400 cases or fewer, and by how much."""


@example(("v-half", 5, 22, 1, 13, Times(0.5, 0.5, 0.5, 0.0, 0.0, 0.485, 1.455)))
@example(("v-half", 6, 54, 1, 90, Times(2.0, 0.717, 0.5, 0.0, 0.052, 2.06, 6.18)))  # 1.2 % too short
@example(("interleaved", 5, 60, 2, 25, Times(1.0, 2.0, 0.0, 0.0, 0.0417, 0.0, 0.0)))  # 0.3 %
@settings(max_examples=150)
@given(unequal())
def test_the_time_of_unequal_stages_is_that_of_an_execution(case):
    schedule, p, m, v, layers, times = case
    found = unequal_span(pipeline(schedule, p, m, v, layers), times)
    expected = executed(schedule, p, m, v, layers, times)
    # Paths that alternate between stages may take longer than extended.
    many, off = FEW_OFF.get(schedule, (0, 1e-9))
    short = off if m > many * p else 1e-9
    assert (1.0 - short) * expected <= found <= (1.0 + 1e-9) * expected


@settings(max_examples=20)
@given(st.lists(unequal(), min_size=2, max_size=20))
def test_rows_are_single_calls(cases):
    pipes = [pipeline(*case[:5]) for case in cases]
    single = [unequal_span(one, case[5]) for one, case in zip(pipes, cases, strict=True)]
    rows = unequal_span(
        Pipeline(*np.array([astuple(one) for one in pipes]).T), Times(*np.array([astuple(case[5]) for case in cases]).T)
    )
    assert single == rows.tolist()


def test_a_pipeline_of_many_chunks_has_stages_of_the_mean_length():
    layout = evolve(LAYOUT, pp=64, dp=4, schedule="zb1p")
    found = timed(LONG, 126.0, layout)
    assert unequal_span(pipeline("zb1p", 64, 256, 1, 126), Times(1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0)) == 0.0
    assert found.total == pytest.approx(sum(getattr(found, name) for name in PARTS), rel=1e-12)
    assert found.bubble > 0.0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_movable_work_minimises_the_step(schedule):
    v = 2 if schedule == "interleaved" else 1
    one, weights = pipeline(schedule, 4, 8, v, 37), 0.0 if schedule in FUSED else 0.6
    times = Times(2.0, 1.0, weights, 1.5, 0.1, 0.7, 1.4)
    found = unequal_span(one, times)
    moved = [evolve(times, forward=2.0 - x, inputs=1.0 + x, movable=0.0) for x in np.linspace(0.0, 1.5, 61).tolist()]
    others = [unequal_span(one, each) for each in moved]
    assert found <= min(others) * (1 + 1e-9)
    assert found >= min(others) * (1 - 1e-2)


@pytest.mark.parametrize(
    ("schedule", "p", "v", "m", "layers", "ends"),
    [
        ("interleaved", 32, 4, 64, 130, (0.85, 1.15)),
        ("interleaved", 8, 4, 64, 130, (1.0, 1.01)),
        ("interleaved", 8, 4, 48, 130, None),
        ("zbv", 8, 1, 33, 61, (1.0, 1.015)),
        ("zbv", 8, 1, 32, 61, None),
        ("zbv", 8, 1, 64, 64, None),
        ("1f1b", 64, 1, 64, 126, None),
        ("gpipe", 64, 1, 64, 126, None),
        ("v-min", 64, 1, 64, 130, (0.85, 1.15)),
    ],
)
def test_schedules_without_execution_are_stated(schedule, p, v, m, layers, ends):
    layout = evolve(LAYOUT, pp=p, dp=1, global_batch=m, schedule=schedule, interleave=v)
    found = approximation(layout, float(layers), 0.0)
    assert (found and found[1:]) == ends


def test_intervals_include_it():
    e = prepare(shipped().graph, "llama-3.1-8b", "trn2.48xlarge*4", calibration="none")
    e = evolve(e, dims=evolve(e.dims, layers=61.0), model=evolve(e.model, layers=61.0))

    def wide(m: int) -> float:
        layout = Layout(pp=8, dp=1, tp=32, seq=8192, global_batch=m, schedule="zbv", uneven=True)
        low, high = e.interval(layout)
        return high / low

    assert wide(33) == pytest.approx(1.015 * wide(32), rel=1e-4)


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_orders(schedule):
    """Those of an implementation of its own, and no stage stores more than is computed for memory."""
    for p in range(2, 10):
        for m in (1, 2, p - 1, p, 2 * p, 3 * p + 1):
            orders = order(schedule, p, m)
            assert [[(k, c, i) for k, i, c, _ in one] for one in v_shaped(p, m, schedule)] == orders
        change = {"F": 1, "B": 0, "W": -1}
        stored = [np.cumsum([change[kind] for kind, *_ in one]).max() for one in orders]
        assert {2 * in_flight(layout(pp=p, schedule=schedule, microbatches=m))} == set(stored)


def executed_with_output(schedule: str, p: int, m: int, times: dict[str, float], output: tuple[float, float]) -> float:
    """The time of all passes, event by event, with the output in the second chunk of the first stage."""
    outputs = {"F": output[0], "B": output[1], "W": 0.0}

    def lasting(one: tuple[str, int, int, int]) -> float:
        kind, _, chunk, stage = one
        return times[kind] + outputs[kind] * (stage == 0 and chunk == 1)

    return span(v_shaped(p, m, schedule), {}, is_v_shaped=True, lasting=lasting)


def taken(schedule: str, p: int, m: int, times: dict[str, float], output: tuple[float, float]) -> float:
    """The same by the bubble."""
    pipeline = Pipeline(float(p), 1.0, V_SHAPED.index(schedule) + 1.0, 0.0, 2.0 * p, 0.0, float(m))
    bubble = v_shaped_bubble(pipeline, Times(*times.values(), 0.0, 0.0, *output), 2.0)
    return 2 * m * sum(times.values()) + m * sum(output) + bubble


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_the_output_is_on_the_longest_path_as_often_as_that_passes_it(schedule):
    """Any output between nothing and several chunks, with a collective or without, few microbatches and many."""
    draw = np.random.default_rng(9)
    for _ in range(40):
        p = int(draw.integers(2, 7))
        m = int(draw.integers(1, 7 * p))
        f, b = 1.0 + draw.exponential(1.0, 2) * draw.integers(0, 2, 2)
        head = 10.0 ** draw.uniform(-2.0, 1.3)
        ends = head * draw.uniform() * draw.integers(0, 2)
        times, output = {"F": float(f), "B": float(b), "W": 1.0}, (head / 3 + ends / 2, head * 2 / 3 + ends / 2)
        expected = executed_with_output(schedule, p, m, times, output)
        assert taken(schedule, p, m, times, output) == pytest.approx(expected, rel=1e-12), (p, m, times, output)
        # An output that adds to everything else would be too slow.
        assert expected <= taken(schedule, p, m, times, (0.0, 0.0)) + m * sum(output) + 1e-9
