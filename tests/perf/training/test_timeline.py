"""The timeline of a step: sums, dependencies, no overlap, and the closed forms of the schedules."""

import math
from itertools import pairwise

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perf.oracles import pipelines
from tests.support.engine import FITTED, SYSTEMS, reason_and_place, shipped
from tests.support.engine import estimator as sample_of
from trnspec.perf.training import timeline as timelines
from trnspec.perf.training.estimator import prepare
from trnspec.perf.training.microbatch import microbatch
from trnspec.perf.training.pass_order import FUSED
from trnspec.perf.training.step import PARTS, step
from trnspec.perf.work.layout import V_SHAPED, Layout

TIMES = st.floats(0.01, 10.0)


def passes(schedule: str, p: int, m: int, v: int = 1, *, f=1.0, b=2.0, w=0.0, head=0.0, end=0.0) -> timelines.Passes:
    """Passes with some communication."""
    parts = {
        "F": [(timelines.COMPUTE, "forward", 0.75 * f), (timelines.COMMUNICATION, "tensor", 0.25 * f)],
        "B": [(timelines.COMPUTE, "backward", 0.5 * b), (timelines.COMMUNICATION, "tensor", 0.5 * b)],
        "W": [(timelines.COMPUTE, "weight gradients", w)],
    }
    last = {"F": [(timelines.COMPUTE, "head", head / 3)], "B": [(timelines.COMPUTE, "head", 2 * head / 3)]}
    ends = [(timelines.COMMUNICATION, "data", end / 2), (timelines.COMPUTE, "optimizer", end / 2)]
    return timelines.Passes(schedule=schedule, stages=p, microbatches=m, chunks=v, parts=parts, last=last, end=ends)


def check(drawn: timelines.Timeline, total: float) -> None:
    """The parts of every stage sum to the step time, one after the other; every pass follows its inputs."""
    ends: dict[timelines.MicrobatchPass, float] = {}
    starts: dict[timelines.MicrobatchPass, float] = {}
    for stage in range(drawn.stages):
        events = drawn.of(stage)
        assert total == pytest.approx(math.fsum(e.duration for e in events), rel=1e-9)
        assert all(e.duration > 0.0 for e in events)
        assert drawn.starts[stage] == events[0].start
        for one, two in pairwise(events):
            assert one.end == pytest.approx(two.start, rel=1e-12, abs=1e-12)
        for event in events:
            if event.work is not None:
                starts.setdefault(event.work, event.start)
                ends[event.work] = event.end
    p, v = drawn.stages, drawn.chunks
    for one, start in starts.items():
        key = one.kind, one.microbatch, one.chunk, one.stage
        needed = pipelines.folded_inputs(key, p) if drawn.is_v_shaped else pipelines.inputs(key, p, v)
        assert all(ends[timelines.MicrobatchPass(*each)] <= start * (1 + 1e-12) for each in needed)


def test_closed_form_minus_executed_time() -> None:
    drawn = timelines.timeline(passes("1f1b", 4, 8), 11 * 3.0 + 0.5)

    check(drawn, 33.5)
    assert [0.5] * 4 == pytest.approx([drawn.of(stage)[-1].duration for stage in range(4)])
    assert {timelines.SLACK} == {drawn.of(stage)[-1].name for stage in range(4)}


@pytest.mark.parametrize(
    ("schedule", "p", "m", "v", "total", "reason", "place"),
    [
        ("1f1b", 4, 8, 1, 32.0, "no-event-schedule", "schedule"),
        ("dualpipe", 4, 8, 1, 100.0, "no-event-schedule", "schedule"),
        ("interleaved", 4, 6, 2, 100.0, "no-event-schedule", "global_batch"),
        ("1f1b", 1, timelines.MOST, 1, 3.0 * timelines.MOST, "too-many-events", "global_batch"),
    ],
    ids=["closed form that is shorter", "schedule without an order", "part of a round", "events"],
)
def test_refused(schedule, p, m, v, total, reason, place) -> None:
    assert (reason, place) == reason_and_place(timelines.timeline, passes(schedule, p, m, v), total)


@given(
    schedule=st.sampled_from(["1f1b", "interleaved", "gpipe", "zb1p", "zb2p", *V_SHAPED]), p=st.integers(1, 5), rounds=st.integers(1, 4),
    w=st.floats(0.1, 1.0), f=st.floats(1.0, 3.0), b=st.floats(1.0, 3.0), head=st.floats(0.0, 3.0), data=st.data(),
)  # fmt: skip
@settings(max_examples=60)
def test_chunks_have_their_own_layers(schedule, p, rounds, w, f, b, head, data) -> None:
    """The events take as long as an execution of their own, in which each chunk takes its own time."""
    fused, is_v_shaped = schedule in FUSED, schedule in V_SHAPED
    v, m = 2 if is_v_shaped or schedule == "interleaved" else 1, p * rounds
    shares = data.draw(st.lists(st.floats(0.1, 1.0), min_size=p * v, max_size=p * v))
    times = {"F": f, "B": b, "W": 0.0 if fused else w}

    def lasting(one: tuple[str, int, int, int]) -> float:
        kind, _, c, r = one
        chunk = (2 * p - 1 - r if c else r) if is_v_shaped else c * p + r
        last = {"F": head / 3, "B": 2 * head / 3, "W": 0.0}[kind] if chunk == p * v - 1 else 0.0
        return times[kind] * shares[chunk] + last

    if is_v_shaped:
        orders = pipelines.v_shaped(p, m, schedule)
    elif schedule == "gpipe":
        orders = pipelines.gpipe(p, m)
    else:
        orders = pipelines.one_forward_one_backward(p, m, v) if fused else pipelines.zero_bubble(p, m, int(schedule[2]))
    total = pipelines.span(orders, {}, is_v_shaped=is_v_shaped, lasting=lasting)
    drawn = timelines.timeline(
        evolve(passes(schedule, p, m, v, f=f, b=b, w=times["W"], head=head), shares=shares), total
    )

    check(drawn, total)
    assert not [e for e in drawn.events if e.name == timelines.SLACK]


@pytest.mark.parametrize(
    ("schedule", "p", "m", "v"),
    [("1f1b", 1, 4, 1), ("1f1b", 4, 8, 1), ("1f1b", 4, 2, 1), ("gpipe", 4, 8, 1), ("interleaved", 4, 8, 2),
     ("interleaved", 4, 12, 3), ("interleaved", 2, 2, 2)],
)  # fmt: skip
def test_chunks_in_flight(schedule, p, m, v) -> None:
    """At most ``p - k`` microbatches in 1F1B, all in GPipe, ``(v - 1) p + 2 (p - k) - 1`` chunks interleaved; none at the end."""
    drawn = timelines.timeline(passes(schedule, p, m, v), m * 3.0 + (p - 1) * 3.0 / v)
    for stage in range(p):
        levels = drawn.in_flight(stage)
        most = (
            min(m * v, (v - 1) * p + 2 * (p - stage) - 1) if v > 1 else m if schedule == "gpipe" else min(m, p - stage)
        )

        assert most == max(count for _, count in levels)
        assert 0 == levels[-1][1]
        assert sorted(levels) == levels


LAYOUTS = [
    Layout(tp=8, pp=2, dp=2, seq=2048, global_batch=32),
    Layout(tp=4, pp=4, dp=2, seq=2048, global_batch=64, microbatch=2, recompute="full", zero=1),
    Layout(tp=2, pp=4, cp=2, dp=2, seq=4096, global_batch=32, recompute="selective", flash=False, overlap=True),
    Layout(tp=2, pp=4, dp=4, seq=2048, global_batch=32, schedule="zb1p", sequence_parallel=True),
    Layout(tp=1, pp=1, dp=32, seq=1024, global_batch=64, zero=3),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("calibration", ["none", "trainium1-neuron"])
def test_the_passes_of_a_step_sum_to_its_parts(layout: Layout, calibration: str) -> None:
    """Of every part, over all microbatches; forward and backward have what a layer takes in each."""
    estimator = prepare(shipped().graph, "llama-3.1-8b", "trn1.32xlarge", calibration=calibration)
    taken, of = estimator.step(layout), microbatch(estimator.model, layout, estimator.machine)
    parts = {name: float(value) for name in PARTS if (value := getattr(taken, name))}
    passes = timelines.passes_of(parts, estimator.model, layout, estimator.machine)
    m, layers = layout.microbatches, 32 / layout.pp

    def each(name: str, kinds: str = "FBW", where=passes.parts) -> float:
        return sum(t for kind in kinds for _, n, t in where.get(kind, ()) if n == name)

    for name in ("recompute", "tensor", "context", "expert", "pipeline", "head"):
        assert m * (each(name) + each(name, where=passes.last)) == pytest.approx(
            parts.get(name, 0.0), rel=1e-9, abs=1e-15
        )
    computed = each("forward") + each("backward") + each("weight gradients")
    assert m * computed == pytest.approx(parts["compute"], rel=1e-9)
    assert each("forward", "F") == layers * of.forward
    assert each("weight gradients", "W") == (0.0 if layout.schedule == "1f1b" else layers * of.weights)
    assert each("tensor", "F") == layers * of.tensor_forward
    assert [each("head", kind, passes.last) for kind in "FB"] == pytest.approx([of.head / 3.0, 2.0 * of.head / 3.0])
    assert [each("tensor", kind, passes.last) for kind in "FB"] == [0.5 * of.embedding_head] * 2
    assert {name: value for _, name, value in passes.end} == {
        n: parts[n] for n in ("data", "optimizer", "fixed") if parts.get(n)
    }  # fmt: skip
    assert {name: thread for thread, name, _ in passes.end}.get(
        "data", timelines.COMMUNICATION
    ) == timelines.COMMUNICATION
    assert list(passes.shares) == [1.0] * layout.pp
    assert (passes.stages, passes.microbatches, passes.chunks) == (layout.pp, m, layout.interleave)


@pytest.mark.parametrize(
    ("name", "schedule"), [*(("predicting", s) for s in ("1f1b", "zb1p", *V_SHAPED)), *(("every-second", s) for s in V_SHAPED)]
)  # fmt: skip
def test_movable_work_equals_closed_form(name, schedule) -> None:
    """Of stages of unequal lengths, and of equal ones folded into a V: events take the time of the step, and no less."""
    on = sample_of(name, SYSTEMS[1], FITTED)
    layout = Layout(
        tp=2, pp=4, dp=8, ep=8, seq=2048, global_batch=64, schedule=schedule, uneven=True, expert_overlap=True
    )
    taken = on.step(layout)
    parts = {part: float(value) for part in PARTS if (value := getattr(taken, part))}
    drawn = timelines.timeline(timelines.passes_of(parts, on.model, layout, on.machine), taken.total)

    check(drawn, taken.total)
    assert microbatch(on.model, layout, on.machine).movable > 0.0
    assert sum(event.duration for event in drawn.events if event.name == timelines.SLACK) < 1e-7 * taken.total


EXECUTED = [
    *(Layout(tp=2, pp=4, dp=4, seq=2048, global_batch=32, schedule=name) for name in V_SHAPED),
    Layout(tp=4, pp=8, seq=2048, global_batch=32, schedule="interleaved", interleave=3, uneven=True),
]


@pytest.mark.parametrize("layout", EXECUTED)
@pytest.mark.parametrize("calibration", ["none", "trainium1-neuron"])
def test_schedules_are_executed_where_a_limit_is_not_below_their_time(layout: Layout, calibration: str) -> None:
    estimator = prepare(shipped().graph, "llama-3.1-8b", "trn1.32xlarge", calibration=calibration)
    total, of = estimator.step(layout).total, (estimator.model, layout, estimator.machine)

    assert total == step(*of, limit=total).total
    # The lower bound is more than half of it.
    assert math.inf == step(*of, limit=0.5 * total).total
