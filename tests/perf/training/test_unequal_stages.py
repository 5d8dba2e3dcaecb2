"""The time of a step whose stages have different numbers of layers, against that of equal ones."""

from __future__ import annotations

import pytest
from attrs import evolve
from dims_by_hand import llama
from engine_catalogs import shipped
from pipeline_simulation import one_forward_one_backward, span, v_shaped, zero_bubble

from trnspec.perf.lowering.efficiency import IDEAL
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.training.communication import links
from trnspec.perf.training.costs import costs
from trnspec.perf.training.step import PARTS, Step, passes_of_layer, step
from trnspec.perf.work.layout import V_SHAPED, Layout
from trnspec.perf.work.stages import dealt
from trnspec.perf.work.terms import terms
from trnspec.perf.work.transformer import transformer

SYSTEM = lower(shipped().graph, "trn2.48xlarge*4")
MACHINE = machine(SYSTEM, IDEAL, "bf16")
LAYOUT = Layout(pp=16, dp=16, seq=8192, global_batch=1024, uneven=True)
M = LAYOUT.microbatches
# Llama 3.1 405B, and a model whose output takes longer than a layer.
LONG, WIDE = llama(126, 16384, 128, 8, 53248, 128256), llama(126, 1024, 16, 8, 2816, 256000)


def timed(d, layers: float, layout: Layout = LAYOUT, **changes: float) -> Step:
    return step(transformer(evolve(d, layers=layers, **changes)), layout.plan(), MACHINE)


@pytest.mark.parametrize("d", [LONG, WIDE], ids=["layers", "output"])
def test_the_slowest_stage_decides(d):
    even, found = timed(d, 128.0), timed(d, 126.0)
    layer, output = even.compute / (8 * M), even.head / M
    sent = even.bubble - 15 * 8 * layer
    # Eight layers, as with 128; the last stage has seven and the output.
    assert even.compute == found.compute
    assert found.head == pytest.approx(M * max(output - layer, 0.0), rel=1e-9)
    # All other layers, and what of the output is not on the slowest stage.
    assert found.bubble == pytest.approx((126 - 8) * layer + min(layer, output) + sent, rel=1e-9)
    assert found.total == pytest.approx(sum(getattr(found, name) for name in PARTS), rel=1e-12)
    assert (output > layer) == (d is WIDE)


@pytest.mark.parametrize(("d", "layers"), [(LONG, 8), (WIDE, 7)], ids=["layers", "output"])
def test_gradients_overlap_with_the_slowest_stage(d, layers):
    """That with the output has seven layers of a microbatch to overlap with, and the others have eight."""
    slow = evolve(MACHINE, **{f"byte_{i}": 1e3 * getattr(MACHINE, f"byte_{i}") for i in (1, 2, 3, 4)})

    def hidden(count: float) -> float:
        model, plan = transformer(evolve(d, layers=count)), LAYOUT.plan()
        data = step(model, plan, slow).data
        assert data > 0.0
        return step(model, plan, evolve(slow, overlap=0.0)).data - data

    assert hidden(126.0) == pytest.approx(layers / 8 * hidden(128.0), rel=1e-9)


def test_a_remainder_of_layers():
    # DeepSeek-V3's 61 layers: four where the mean is 3.8, and three with the output.
    even, found = timed(LONG, 64.0), timed(LONG, 61.0)
    layer, output = even.compute / (4 * M), even.head / M
    assert even.compute == found.compute
    assert found.head == max(M * (output - layer), 0.0) == 0.0
    assert even.bubble - found.bubble == pytest.approx(3 * layer - output, rel=1e-9)


@pytest.mark.parametrize("d", [LONG, WIDE], ids=["layers", "output"])
def test_multi_token_prediction_is_on_the_last_stage(d):
    """One module and both outputs count as three layers: with 125 the last stage has five layers and the module."""
    h = d.hidden
    even, found = timed(d, 128.0), timed(d, 125.0, mtp_layers=1.0, mtp_weights=2 * h**2, mtp_small=3 * h)
    layer = even.compute / (8 * M)
    joined = 6 * 8192 * 2 * h**2 * MACHINE.flop
    last = 2 * even.head / M + joined - 2 * layer
    assert found.head == pytest.approx(M * max(last, 0.0), rel=1e-9)
    assert even.compute == found.compute
    assert (last > 0.0) == (d is WIDE)


BOUNDS = {
    "1f1b": (0.0, 0.04), "interleaved": (-0.13, 0.05), "zb1p": (-0.03, 0.03), "zb2p": (-0.03, 0.04), "zbv": (-0.05, 0.08),
    "v-half": (-0.03, 0.08), "v-min": (-0.05, 0.16),
}  # fmt: skip
"""How far the closed form is from an execution with unequal stages; docs/explanation/performance/training.md has the same."""


@pytest.mark.parametrize("schedule", BOUNDS)
def test_the_closed_form_against_an_execution(schedule):
    errors = []
    v = 2 if schedule == "interleaved" else 1
    for layers, p, m in [(126, 4, 4), (61, 6, 24), (36, 8, 16), (61, 4, 32)]:
        layout = evolve(
            LAYOUT, pp=p, dp=1, tp=4, global_batch=m, schedule=schedule, interleave=v, zero=0, sequence_parallel=False
        )
        model, plan = transformer(evolve(LONG, layers=float(layers))), layout.plan()
        quick = evolve(MACHINE, **{f"byte_{i}": 0.0 for i in (1, 2, 3, 4)}, hop_1=0.0, hop_2=0.0, hop_3=0.0, hop_4=0.0)
        found = step(model, plan, quick)
        split = schedule not in ("1f1b", "interleaved")
        of = costs(terms(model, quick), plan, links(plan, quick))
        forward, backward, weights, _ = passes_of_layer(of, plan.microbatch * of.seq_tokens)
        each = {"F": forward, "B": backward - split * weights, "W": weights}
        head = plan.microbatch * of.seq_tokens * of.head
        folded = schedule in V_SHAPED
        chunks = 2 * p if folded else p * v
        deal = dealt(float(layers), float(p), float(v), float(folded))

        def lasting(one, p=p, folded=folded, chunks=chunks, deal=deal, each=each, head=head) -> float:
            kind, _, c, r = one
            chunk = (2 * p - 1 - r if c else r) if folded else c * p + r
            output = {"F": head / 3, "B": 2 * head / 3, "W": 0.0}[kind] if chunk == chunks - 1 else 0.0
            return (deal.short + (deal.begin <= chunk < deal.end)) * each[kind] + output

        orders = (
            v_shaped(p, m, schedule) if folded
            else zero_bubble(p, m, int(schedule[2])) if split
            else one_forward_one_backward(p, m, v)
        )  # fmt: skip
        executed = span(orders, {}, folded=folded, lasting=lasting)
        errors.append((found.total - found.data - found.optimizer) / executed - 1)

    low, high = BOUNDS[schedule]
    assert low - 1e-9 <= min(errors) < max(errors) <= high
