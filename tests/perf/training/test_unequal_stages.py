"""The time of a step whose stages have different numbers of layers, against that of equal ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import astuple, evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.perf.oracles.pipelines import gpipe, one_forward_one_backward, span, v_shaped, zero_bubble
from tests.support.engine import llama, shipped
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL
from trnspec.perf.training.bubble import approximation, unequal_span
from trnspec.perf.training.estimator import prepare
from trnspec.perf.training.execution import Pipeline, Times
from trnspec.perf.training.parts import microbatch
from trnspec.perf.training.pass_order import FUSED
from trnspec.perf.training.step import PARTS, Step, step
from trnspec.perf.work.layout import SCHEDULES as LAYOUT_SCHEDULES
from trnspec.perf.work.layout import V_SHAPED, Layout
from trnspec.perf.work.transformer import transformer

SYSTEM = lower(shipped().graph, "trn2.48xlarge*4")
MACHINE = machine(SYSTEM, IDEAL, "bf16")
LAYOUT = Layout(pp=16, dp=16, seq=8192, global_batch=1024, uneven=True)
M = LAYOUT.microbatches
# Llama 3.1 405B, and a model whose output takes longer than a layer.
LONG, WIDE = llama(126, 16384, 128, 8, 53248, 128256), llama(126, 1024, 16, 8, 2816, 256000)


def timed(d, layers: float, layout: Layout = LAYOUT, **changes: float) -> Step:
    return step(transformer(evolve(d, layers=layers, **changes)), layout, MACHINE)


@pytest.mark.parametrize("d", [LONG, WIDE], ids=["layers", "output"])
def test_the_slowest_stage_decides(d):
    even, found = timed(d, 128.0), timed(d, 126.0)
    layer, output = even.compute / (8 * M), even.head / M
    # Eight layers, as with 128; the last stage has seven and the output.
    assert even.compute == found.compute
    assert found.head == pytest.approx(M * max(output - layer, 0.0), rel=1e-9)
    assert found.total == pytest.approx(sum(getattr(found, name) for name in PARTS), rel=1e-12)
    assert (output > layer) == (d is WIDE)


@pytest.mark.parametrize(("d", "layers"), [(LONG, 8), (WIDE, 7)], ids=["layers", "output"])
def test_gradients_overlap_with_the_slowest_stage(d, layers):
    """That with the output has seven layers of a microbatch to overlap with, and the others have eight."""
    slow = evolve(
        MACHINE, levels=tuple(evolve(level, seconds_per_byte=1e3 * level.seconds_per_byte) for level in MACHINE.levels)
    )

    def hidden(count: float) -> float:
        model, plan = transformer(evolve(d, layers=count)), LAYOUT
        data = step(model, plan, slow).data
        assert data > 0.0
        return step(model, plan, evolve(slow, overlap=0.0)).data - data

    assert hidden(126.0) == pytest.approx(layers / 8 * hidden(128.0), rel=1e-9)


@pytest.mark.parametrize(
    ("vocabulary", "schedule", "layers", "module", "m", "least"),
    [
        (256000, "zb1p", 126.0, 0.0, M, 7),
        (256000, "zb1p", 125.0, 1.0, M, 6),
        (256000, "zbv", 128.0, 1.0, M, 9),
        (256, "zb1p", 126.0, 0.0, 8, 8),
    ],
)
def test_gradients_of_every_microbatch_overlap_with_the_bubble(vocabulary, schedule, layers, module, m, least):
    """Where the backward pass is split: of the stage with the output, or with a small one of those with more layers.

    Gradients overlap with their last pass, and new weights with the first forward pass.
    """
    h = WIDE.hidden
    d = llama(layers, h, 16, 8, 2816, vocabulary)
    model = transformer(evolve(d, mtp_layers=module, mtp_weights=2 * h**2, mtp_small=3 * h))
    plan = evolve(LAYOUT, schedule=schedule, zero=2, global_batch=m * LAYOUT.dp)
    # Links between the replicas are so slow that all else is next to nothing.
    slow = evolve(MACHINE, levels=tuple(evolve(level, seconds_per_byte=1.0) for level in MACHINE.levels), send=0.0)
    one = microbatch(model, plan, MACHINE)
    forward, backward, weights = one.forward, one.backward, one.weights
    found, alone = (step(model, plan, evolve(machine, overlap=x)) for machine, x in ((slow, 1.0), (slow, 0.0)))

    assert (found.head > 0.0) == (vocabulary == 256000)
    once, others = weights + forward, (m - 1) * (forward + backward)
    assert alone.data - found.data == pytest.approx(least * (once + others) + found.bubble, rel=1e-6)


def test_a_remainder_of_layers():
    # DeepSeek-V3's 61 layers: four where the mean is 3.8, and three with the output.
    even, found = timed(LONG, 64.0), timed(LONG, 61.0)
    layer, output = even.compute / (4 * M), even.head / M
    assert even.compute == found.compute
    assert found.head == max(M * (output - layer), 0.0) == 0.0


@pytest.mark.parametrize("d", [LONG, WIDE], ids=["layers", "output"])
def test_multi_token_prediction_is_on_the_last_stage(d):
    """One module and both outputs count as three layers: with 125 the last stage has five layers and the module."""
    h = d.hidden
    even, found = timed(d, 128.0), timed(d, 125.0, mtp_layers=1.0, mtp_weights=2 * h**2, mtp_small=3 * h)
    layer = even.compute / (8 * M)
    joined = 6 * 8192 * 2 * h**2 * MACHINE.seconds_per_flop
    last = 2 * even.head / M + joined - 2 * layer
    assert found.head == pytest.approx(M * max(last, 0.0), rel=1e-9)
    assert even.compute == found.compute
    assert (last > 0.0) == (d is WIDE)


SCHEDULES = ("1f1b", "interleaved", "gpipe", "zb1p", "zb2p", *V_SHAPED)


def executed(schedule: str, p: int, m: int, v: int, sizes: list[float], times: Times, mtp: float = 0.0) -> float:
    """The time of all passes by an execution of its own, pass by pass."""
    is_v_shaped, fused = schedule in V_SHAPED, schedule in FUSED
    each = {"F": times.forward, "B": times.inputs, "W": times.weights}
    outputs = {"F": times.output, "B": times.output_inputs, "W": 0.0}

    def lasting(one: tuple[str, int, int, int]) -> float:
        kind, _, c, r = one
        chunk = (2 * p - 1 - r if c else r) if is_v_shaped else c * p + r
        last = chunk == len(sizes) - 1
        message = 0.0 if kind == "W" else 0.5 * times.send / (2 if is_v_shaped else v)
        return (sizes[chunk] + mtp * last) * each[kind] + outputs[kind] * last + message

    if is_v_shaped:
        orders = v_shaped(p, m, schedule)
    elif schedule == "gpipe":
        orders = gpipe(p, m)
    else:
        orders = one_forward_one_backward(p, m, v) if fused else zero_bubble(p, m, int(schedule[2]))
    return span(orders, {}, is_v_shaped=is_v_shaped, lasting=lasting)


def sizes_of(layers: int, chunks: int) -> list[float]:
    """A layer more in some chunks; of those with fewer the last one is the first, then the first one."""
    short, long = divmod(layers, chunks)
    begin = 1 if chunks - long >= 2 else 0
    return [float(short + (begin <= chunk < begin + long)) for chunk in range(chunks)]


@st.composite
def pipelines(draw: Any) -> tuple[str, int, int, int, int, Times]:
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
    return (
        schedule,
        p,
        m,
        v,
        layers,
        Times(forward, draw(time), weights, 0.0, draw(st.floats(0.0, 0.1)), output, backward),
    )


def pipeline(schedule: str, p: int, m: int, v: int, layers: int) -> Pipeline:
    """The numbers of a pipeline."""
    v_shape = V_SHAPED.index(schedule) + 1.0 if schedule in V_SHAPED else 0.0
    return Pipeline(
        float(p),
        float(v),
        v_shape,
        (p - 1.0) * LAYOUT_SCHEDULES[schedule].deferred,
        float(layers),
        0.0,
        float(m),
        float(schedule == "gpipe"),
    )


FEW_OFF = 0.005
"""By which V-shaped schedules may be too short, in one of thousands of cases."""


@example(("v-half", 5, 22, 1, 13, Times(0.5, 0.5, 0.5, 0.0, 0.0, 0.485, 1.455)))
@settings(max_examples=150)
@given(pipelines())
def test_the_time_of_unequal_stages_is_that_of_an_execution(case):
    schedule, p, m, v, layers, times = case
    sizes = sizes_of(layers, p * (2 if schedule in V_SHAPED else v))

    found = unequal_span(pipeline(schedule, p, m, v, layers), times)
    expected = executed(schedule, p, m, v, sizes, times)
    # Of V-shaped schedules with more microbatches, paths that alternate between stages may take longer than extended.
    short = FEW_OFF if schedule in V_SHAPED and m > 4 * p else 1e-9
    assert (1.0 - short) * expected <= found <= (1.0 + 1e-9) * expected


@settings(max_examples=20)
@given(st.lists(pipelines(), min_size=2, max_size=20))
def test_rows_are_single_calls(cases):
    pipes = [pipeline(*case[:5]) for case in cases]
    single = [unequal_span(one, case[5]) for one, case in zip(pipes, cases, strict=True)]
    rows = unequal_span(
        Pipeline(*np.array([astuple(one) for one in pipes]).T), Times(*np.array([astuple(case[5]) for case in cases]).T)
    )
    assert single == rows.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_step_is_its_execution(schedule):
    """Messages, recompute, tensor-parallel collectives and multi-token prediction included."""
    v = 2 if schedule == "interleaved" else 1
    h = LONG.hidden
    module = {"mtp_layers": 1.0, "mtp_weights": 2 * h**2, "mtp_small": 3 * h}
    for layers, p, m, mtp in [(126, 4, 4, {}), (61, 6, 24, {}), (36, 8, 16, module), (61, 4, 32, module)]:
        layout = evolve(
            LAYOUT, pp=p, dp=1, tp=4, global_batch=m, schedule=schedule, interleave=v, zero=0, recompute="full"
        )
        model, plan = transformer(evolve(LONG, layers=float(layers), **mtp)), layout
        found, of = step(model, plan, MACHINE), microbatch(model, plan, MACHINE)
        weights, reduced = 0.0 if schedule in FUSED else of.weights, of.tensor_forward
        ends = (1 + model.mtp) * of.embedding_head / 2
        times = Times(
            of.forward + reduced, of.backward - weights + of.forward + 2 * reduced, weights, 0.0, of.pipeline,
            of.head / 3 + ends, of.head * 2 / 3 + ends,
        )  # fmt: skip
        chunks = p * (2 if schedule in V_SHAPED else v)
        # A module and its output, and the output of the model, take the place of up to three layers of the last chunk.
        counted = min(3, layers // chunks) if mtp and schedule not in V_SHAPED else 0
        sizes = sizes_of(layers + counted, chunks)
        sizes[-1] -= counted
        taken = executed(schedule, p, m, v, sizes, times, model.mtp)
        assert found.total - found.data - found.optimizer == pytest.approx(taken, rel=1e-9)


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
        ("interleaved", 8, 4, 64, 130, None),
        ("zbv", 8, 1, 33, 61, (1.0, 1.005)),
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

    assert wide(33) == pytest.approx(1.005 * wide(32), rel=1e-4)
