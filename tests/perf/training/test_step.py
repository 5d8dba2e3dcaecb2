"""The parts of a training step, against schedules that are executed, and against counts by hand."""

from __future__ import annotations

import math

import pytest
from attrs import evolve

from tests.perf.oracles.pipelines import gpipe, one_forward_one_backward, span, v_shaped, zero_bubble
from tests.support.engine import SYSTEMS, estimator
from trnspec.perf.lowering.system import IDEAL, Level, System
from trnspec.perf.training.bubble import equal_bubble
from trnspec.perf.training.execution import Pipeline, Times
from trnspec.perf.work.layout import OPTIMIZERS, SCHEDULES, V_SHAPED, Layout

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
    """1F1B, GPipe and interleaved 1F1B take what they take when executed, with any number of microbatches."""
    forward, inputs, weights = times
    for m in range(1, 3 * p):
        executed = span(one_forward_one_backward(p, m), {"F": forward, "B": inputs + weights})
        assert closed_form("1f1b", p, m, times) == pytest.approx(executed, rel=1e-12)
        executed = span(gpipe(p, m), {"F": forward, "B": inputs + weights})
        assert closed_form("gpipe", p, m, times) == pytest.approx(executed, rel=1e-12)
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


def test_zero_bubble_as_published():
    """With equal passes and many microbatches: a third of the bubble of 1F1B, and none."""
    for p in STAGES:
        assert closed_form("zb1p", p, 3 * p, TIMES[0]) == 3 * 3 * p + (p - 1)
        assert closed_form("zb2p", p, 3 * p, TIMES[0]) == 3 * 3 * p


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_microbatch_passes_all_stages(schedule, p, times):
    """No schedule is faster; a stage of a V shape may have computed half of its weight gradients before."""
    forward, inputs, weights = times
    least = p * (forward + inputs) + weights / (2 if schedule in V_SHAPED else 1)
    for m in range(p if schedule == "interleaved" else 1, 4 * p, p if schedule == "interleaved" else 1):
        taken = closed_form(schedule, p, m, times, 2 if schedule == "interleaved" else 1)
        assert taken >= max(least, m * sum(times)) * (1 - 1e-12)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("schedule", V_SHAPED)
def test_v_shaped(schedule, p, times):
    """As executed in the published order, with any number of microbatches."""
    half = dict(zip("FBW", (t / 2 for t in times), strict=True))
    for m in (*range(1, 2 * p + 2), 4 * p + 1):
        executed = span(v_shaped(p, m, schedule), half, is_v_shaped=True)
        assert closed_form(schedule, p, m, times) == pytest.approx(executed, rel=1e-12), m


def test_v_shaped_as_published():
    """With equal passes a bubble that does not grow; else ``v-min`` repeats one: six chunks backward are in turn."""
    for p in STAGES:
        assert closed_form("zbv", p, 3 * p, TIMES[0]) == 3 * 3 * p
        assert closed_form("v-half", p, 3 * p, TIMES[0]) <= 3 * 3 * p + 1.5 * (p - 1)
        assert closed_form("v-min", p, 3 * p, TIMES[0]) <= 3 * 3 * p + 2 * (p - 1)
    more = [closed_form("v-min", 4, m + 1, TIMES[2]) - closed_form("v-min", 4, m, TIMES[2]) for m in (20, 40)]
    assert more == pytest.approx([3 * TIMES[2][1]] * 2)
    assert more[0] > sum(TIMES[2])


# Gradients and weights.

LAYOUT = Layout(tp=2, pp=1, dp=32, seq=2048, global_batch=256, recompute="full")
SLOW = evolve(SYSTEMS[1], levels=tuple(evolve(v, rate=1e3) if v.name == "network" else v for v in SYSTEMS[1].levels))
"""Computation is nothing beside its network."""
SLOWER = evolve(SLOW, levels=tuple(evolve(v, rate=1e3) for v in SLOW.levels))
"""Nor beside any of its links."""


def exchanged(layout: Layout, name: str = "llama-8b") -> float:
    """Bytes per parameter that a rank exchanges in a step, where next to nothing of them overlaps."""
    on = estimator(name, SLOW, IDEAL)
    return on.step(layout).data / on.step(evolve(layout, zero=0)).data * 2 * OPTIMIZERS[layout.optimizer].grad_bytes


def test_exchanged_bytes():
    """Eight microbatches: 2 G, G + W, 8 G + W, 8 (G + 2 W)."""
    assert 8 == LAYOUT.microbatches
    for optimizer, expected in (("adam", (4, 4, 18, 48)), ("adam-fp32-grads", (8, 6, 34, 64))):
        layouts = [evolve(LAYOUT, zero=zero, optimizer=optimizer) for zero in range(4)]
        assert [exchanged(x) for x in layouts] == pytest.approx(expected, rel=1e-4)


def test_sharded_gradients_cost_an_exchange_of_every_microbatch():
    """ZeRO 2 is ZeRO 1 with one microbatch, and takes longer with more; its gradients take less memory."""
    on = estimator("llama-8b", SLOW, IDEAL)
    once = evolve(LAYOUT, global_batch=32)
    assert on.step(evolve(once, zero=1)) == on.step(evolve(once, zero=2))
    one, two = (on.step(evolve(LAYOUT, zero=zero)).total for zero in (1, 2))
    assert two > 3 * one
    assert on.memory(evolve(LAYOUT, zero=2)).gradients < on.memory(evolve(LAYOUT, zero=1)).gradients


def hidden(layout: Layout, system: System = SLOW) -> float:
    """The time of the exchange that overlaps with computation."""
    on = estimator("llama-8b", system, IDEAL)
    alone = evolve(on, machine=evolve(on.machine, overlap=0.0))
    return float(alone.step(layout).data - on.step(layout).data)


def test_gradients_overlap_with_the_backward_pass_and_weights_with_the_forward_pass():
    on = estimator("llama-8b", SLOW, IDEAL)
    one = on.step(evolve(LAYOUT, global_batch=32, zero=1))
    everything = one.compute + one.recompute + one.tensor
    ends = on.step(evolve(LAYOUT, global_batch=32)).tensor
    assert hidden(evolve(LAYOUT, zero=1)) <= everything
    # All but the collectives of embedding and output, which belong to no layer: of 6 x 32 + 2 all-reduces.
    assert hidden(evolve(LAYOUT, zero=1)) == pytest.approx(everything - ends * 2 / (6 * 32 + 2), rel=1e-6)
    # All-reduces overlap with the backward pass only.
    assert hidden(LAYOUT) < hidden(evolve(LAYOUT, zero=1))


@pytest.mark.parametrize("v", [2, 4])
@pytest.mark.parametrize("p", [2, 4])
def test_interleaved_passes_hide_more(p, v):
    """``((v - 1) p + 1)/v`` passes of a stage, counted in the order that the first stage executes."""
    order = one_forward_one_backward(p, 2 * p, v)[0]
    backward = [(i, c) for kind, i, c, _ in order if kind == "B"]
    passes = (len(backward) - backward.index((2 * p - 1, v - 1))) / v
    assert passes == ((v - 1) * p + 1) / v
    plain = evolve(LAYOUT, tp=1, pp=p, dp=64 // p, global_batch=64 // p * 2 * p, zero=1)
    chunks = evolve(plain, schedule="interleaved", interleave=v)
    assert hidden(chunks, SLOWER) == pytest.approx(passes * hidden(plain, SLOWER), rel=1e-4)


def test_separate_weight_gradients_hide_less():
    """Gradients are final in the pass that computes them."""
    plain = evolve(LAYOUT, tp=1, pp=4, dp=16, global_batch=16 * 32)
    assert hidden(evolve(plain, schedule="zb1p"), SLOWER) < hidden(plain, SLOWER) / 2


# Attention, ends, optimizer.


def test_attention_path():
    """Backward is two and a half forward passes with flash attention, two where scores are written."""
    written = evolve(IDEAL, score_passes=4.0, causal=0.0)
    on = estimator("llama-8b", SYSTEMS[4], written)
    layout = Layout(tp=1, dp=32, seq=8192, global_batch=32)
    ideal = estimator("llama-8b", SYSTEMS[4], IDEAL)
    flash, scores = (on.step(evolve(layout, flash=flash)) for flash in (True, False))
    # What a calibration knows of written scores does not touch a run with flash attention.
    assert flash == ideal.step(layout)
    d, rate = on.dims, SYSTEMS[4].rates["bf16"]
    pairs = 8192 * 32 * d.heads * 2 * (d.qk_size + d.v_size)
    matrices = ideal.step(layout).compute - 3.5 * pairs * 8192 / 2 / rate
    moved = 4.0 * 2 * 8192 * 8192 * 32 * d.heads / SYSTEMS[4].bandwidth
    assert scores.compute == pytest.approx(matrices + 3 * (pairs * 8192 / rate + moved), rel=1e-9)


def test_selective_recompute_saves_nothing_of_flash_attention():
    on = estimator("llama-8b", SYSTEMS[4], IDEAL)
    layout = Layout(tp=8, dp=4, seq=8192, global_batch=32)
    selective = evolve(layout, recompute="selective")
    assert on.memory(selective).total == on.memory(layout).total
    assert on.step(selective).total > on.step(layout).total


@pytest.mark.parametrize("schedule", ["1f1b", "zb1p", "zbv"])
@pytest.mark.parametrize("pp", [1, 4])
def test_embedding_and_output_exchange_over_tensor_parallel_ranks(pp, schedule):
    """One all-reduce for each on a stage; four for a layer."""
    if pp == 1 and schedule != "1f1b":
        return
    on = estimator("llama-8b", SYSTEMS[4], IDEAL)
    layout = Layout(tp=8, pp=pp, dp=4 // pp, seq=8192, global_batch=32, schedule=schedule)
    buffer = 8192 * 4096 * 2
    all_reduce = 2 * buffer * 7 / 8 / SYSTEMS[4].levels[0].rate
    ends = 2 if pp == 1 or schedule == "zbv" else 1
    assert on.step(layout).tensor == pytest.approx(layout.microbatches * (4 * 32 / pp + ends) * all_reduce, rel=1e-12)


def test_optimizer_reads_and_writes():
    """Bytes per parameter: gradient read; states, and weights without a master copy, read and written."""
    expected = {
        "adam": 2 + 24 + 2, "adam-fp32-grads": 4 + 24 + 2, "adam-fp32": 4 + 16 + 8, "adam-fsdp": 4 + 16 + 8,
        "adam-bf16": 2 + 8 + 4, "adam-8bit": 2 + 12 + 2, "sgd-momentum": 2 + 16 + 2,
    }  # fmt: skip
    assert {name: o.update_bytes for name, o in OPTIMIZERS.items()} == expected
    on = estimator("gpt", SYSTEMS[4], IDEAL)
    alone = evolve(on, system=evolve(on.system, ranks=1.0))
    d = on.dims
    parameters = 24 * (12 * 2048**2 + 13 * 2048) + d.embedding + d.positions + d.outer_small
    for name, moved in expected.items():
        taken = alone.step(Layout(seq=1024, global_batch=1, optimizer=name)).optimizer
        assert math.isclose(taken, moved * parameters / SYSTEMS[4].bandwidth, rel_tol=1e-9), name


@pytest.mark.parametrize(
    ("more", "part", "ratio"),
    [
        ({"tp": 8, "dp": 4, "sequence_parallel": False}, "tensor", (1 + 1 / 8) / (2 - 2 / 8)),
        ({"tp": 8, "dp": 4, "sequence_parallel": True}, "tensor", 1.0),
        ({"dp": 32}, "data", (1 + 1 / 32) / (2 - 2 / 32)),
        ({"dp": 32, "zero": 1}, "data", 1.0),
    ],
)
def test_switches_that_reduce(more, part, ratio):
    """An all-reduce in one sends the buffer and receives a share more; a reduce-scatter and an all-gather gain nothing."""
    server = Level(name="server", ranks=32.0, rate=1e9, latency=0.0, place="server rate")
    times = []
    for reduces in (False, True):
        on = estimator("llama-8b", evolve(SYSTEMS[4], levels=(evolve(server, reduces=reduces),)), IDEAL)
        on = evolve(on, machine=evolve(on.machine, overlap=0.0))
        times.append(
            getattr(on.step(Layout(**{"seq": 2048, "global_batch": 32, "sequence_parallel": False, **more})), part)
        )

    assert times[1] / times[0] == pytest.approx(ratio, rel=1e-9)
