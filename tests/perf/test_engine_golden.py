"""Published values of pipelines and work compared with the engine."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.perf.oracles.pipelines import one_forward_one_backward, span
from tests.support.engine import estimator, gpt, system
from trnspec.errors import RefusalError
from trnspec.perf.lowering.calibrated import Calibrated
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import Efficiency
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import PARTS, step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.stages import in_flight
from trnspec.perf.work.transformer import transformer

FREE = 1e300
"""A rate at which nothing takes time."""


def layers_alone(layers: int, ranks: int) -> Estimator:
    """A system on which nothing takes time but computation, of a model without an output matrix."""
    on = system((("server", float("inf"), FREE, 0.0),), ranks)
    d = gpt(layers, 1024, 16)
    d, on = evolve(d, vocabulary=0.0), evolve(on, bandwidth=FREE)
    numbers = machine(on, Efficiency(), "bf16")
    return Estimator("gpt", d, transformer(d), on, Calibrated(), "bf16", numbers, (numbers, numbers))


def simulated(p: int, m: int) -> float:
    """The length of a 1F1B step, event by event."""
    return span(one_forward_one_backward(p, m), {"F": 1.0, "B": 2.0})


CASES = [(4, 8, 0.375), (8, 8, 0.875), (8, 64, 0.109375), (16, 128, 0.1171875)]


@pytest.mark.parametrize(("p", "m", "share"), CASES)
def test_pp1_pp2_bubble_of_1f1b(p, m, share) -> None:
    """Narayanan et al. 2021, section 2.2: (p - 1)/m; so says the step, and the simulation of every event."""
    found = layers_alone(96, p).step(Layout(pp=p, seq=2048, global_batch=m))

    assert found.bubble / found.compute == pytest.approx(share, rel=1e-12)
    assert simulated(p, m) / (3.0 * m) - 1.0 == pytest.approx(share, rel=1e-12)
    assert found.bubble / found.total == pytest.approx((p - 1) / (m + p - 1), rel=1e-12)
    assert {n for n in PARTS if getattr(found, n) > 1e-12 * found.total} == {"compute", "bubble"}


@pytest.mark.parametrize(
    ("p", "m", "share"), [(4, 8, 0.272727), (8, 8, 0.466667), (8, 64, 0.098592), (16, 128, 0.104895)]
)
def test_pp2_share_of_the_step(p, m, share) -> None:
    found = layers_alone(96, p).step(Layout(pp=p, seq=2048, global_batch=m))

    assert found.bubble / found.total == pytest.approx(share, abs=5e-7)


def test_pp3_interleaved() -> None:
    layout = Layout(pp=8, seq=2048, global_batch=64, schedule="interleaved", interleave=4)
    found = layers_alone(96, 8).step(layout)

    assert found.bubble / found.compute == pytest.approx(0.02734375, rel=1e-12)


@pytest.mark.parametrize(
    ("schedule", "share", "held"),
    [("zb1p", 1 / 3, 1), ("zb2p", 0, 2), ("zbv", 0, 1), ("v-half", 17 / 42, 5 / 8), ("v-min", 26 / 42, 4 / 8)],
)
def test_pp4_zero_bubble(schedule, share, held) -> None:
    """For passes of equal length: the bubble over that of 1F1B, and its activations.

    As in the table of the schedules' authors; there ``v-half`` and ``v-min`` have those of many stages: 1/2 and 2/3 of the
    bubble, 1/2 and 1/3 of the activations, and a microbatch or a little more.
    """
    p, m = 8, 64
    plain = layers_alone(96, p)
    plain = evolve(plain, machine=evolve(plain.machine, score=0.0))
    layout = Layout(pp=p, seq=2048, global_batch=m, schedule=schedule)
    base = plain.step(Layout(pp=p, seq=2048, global_batch=m)).bubble

    assert plain.step(layout).bubble == pytest.approx(share * base, rel=1e-12, abs=1e-12 * base)
    assert in_flight(layout) == pytest.approx(held * p, rel=1e-12)


def test_pp4_a_v_sends_twice() -> None:
    on = estimator("gpt-3", system((("server", float("inf"), 1e11, 1e-6),), 8))
    once, twice = (on.step(Layout(pp=8, seq=2048, global_batch=64, schedule=s)) for s in ("1f1b", "zbv"))

    assert twice.pipeline == 2.0 * once.pipeline > 0.0


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb1p", "zb2p", "zbv", "v-half", "v-min"])
def test_pp5_one_stage_has_no_bubble(schedule) -> None:
    chunks = 2 if schedule == "interleaved" else 1
    alone, layout = layers_alone(96, 1), Layout(seq=2048, global_batch=8, schedule=schedule, interleave=chunks)
    found = step(alone.model, layout, alone.machine)

    assert found.bubble == found.pipeline == 0.0
    # So that a schedule is of no use there, and a question for one is rejected.
    if schedule != "1f1b":
        with pytest.raises(RefusalError, match="one stage"):
            alone.step(layout)


def test_pp5_fewer_microbatches_than_stages() -> None:
    """Allowed for 1F1B; in flight are min(m, p)."""
    layout = Layout(pp=8, seq=2048, global_batch=4)
    found = layers_alone(96, 8).step(layout)

    assert found.bubble / found.compute == pytest.approx(7 / 4, rel=1e-12)
    assert simulated(8, 4) / 12.0 - 1.0 == pytest.approx(7 / 4, rel=1e-12)
    assert [in_flight(evolve(layout, global_batch=m)) for m in (4, 8, 64)] == [4.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("layers", "m", "reason"),
    [(96, 12, "microbatches-not-divisible"), (72, 16, "layers-not-divisible"), (96, 16, None), (62, 16, None)],
)
def test_pp6_interleaving_microbatch_multiple(layers, m, reason) -> None:
    """Whole rounds of microbatches and whole chunks; embedding and output may take the place of a layer each."""
    layout = Layout(pp=8, seq=2048, global_batch=m, schedule="interleaved", interleave=2)
    if reason is None:
        assert layers_alone(layers, 8).step(layout).total > 0.0
        return
    with pytest.raises(RefusalError) as refused:
        layers_alone(layers, 8).step(layout)
    assert refused.value.reason == reason


NARAYANAN = [
    (24, 2304, 24, 512, 1.546683e16), (30, 3072, 32, 512, 3.265550e16), (36, 4096, 32, 512, 6.718456e16),
    (40, 6144, 48, 1024, 3.248397e17), (48, 8192, 64, 1536, 1.021226e18), (60, 10240, 80, 1792, 2.302047e18),
    (80, 12288, 96, 2304, 5.641682e18), (96, 16384, 128, 2160, 1.119401e19), (105, 20480, 128, 2520, 2.221594e19),
    (128, 25600, 160, 3072, 5.139051e19),
]  # fmt: skip


@pytest.mark.parametrize(("layers", "hidden", "heads", "batch", "flops"), NARAYANAN)
def test_f1_work_with_full_recomputation(layers, hidden, heads, batch, flops) -> None:
    """Narayanan et al. 2021, equation 3 and table 1: compute, recomputation and head at the peak are its FLOPs."""
    on = system((("server", float("inf"), 1e11, 0.0),), 1)
    d = gpt(layers, hidden, heads)
    numbers = machine(on, Efficiency(causal=0.0), "bf16")
    e = Estimator("gpt", d, transformer(d), on, Calibrated(), "bf16", numbers, (numbers, numbers))
    found = e.step(Layout(seq=2048, global_batch=batch, recompute="full", flash=False))

    work = (found.compute + found.recompute + found.head) * on.rates["bf16"]
    assert work == pytest.approx(
        96 * batch * 2048 * layers * hidden**2 * (1 + 2048 / 6 / hidden + 51200 / 16 / layers / hidden), rel=1e-12
    )
    assert work == pytest.approx(flops, rel=5e-7)
