"""The training engine: it agrees with a second implementation that shares none of its formulas; and its properties."""

import random
from collections import Counter

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.perf.oracles import engine as reference_engine
from tests.perf.oracles.fits import TRUE
from tests.support.engine import ESTIMATORS, LLAMA_3_8B, MODELS, SYSTEMS, everything, possible, refusal, sample
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.sweep.batch import REASONS
from trnspec.perf.training.pass_order import FUSED
from trnspec.perf.training.step import PARTS, step
from trnspec.perf.work.layout import RECOMPUTE, SCHEDULES, Layout
from trnspec.perf.work.transformer import transformer

COUNT = 100
PARTS_OF_SAMPLES = [slice(25), pytest.param(slice(25, None), marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def samples():
    draw = random.Random(20261123)
    return [possible(draw) for _ in range(COUNT)]


def test_samples_cover_everything(samples) -> None:
    seen = Counter(name for s in samples for name in (
        ESTIMATORS[s.which].name, s.layout.schedule, f"zero {s.layout.zero}", s.layout.recompute, s.layout.optimizer,
        f"levels {len(ESTIMATORS[s.which].system.levels)}", f"{s.layout.dispatch} {s.layout.expert_overlap}",
        f"split experts {s.layout.expert_split < s.layout.tp}", f"load {s.layout.expert_load}",
    ))  # fmt: skip
    wanted = {*MODELS, *SCHEDULES, *(f"zero {i}" for i in range(4)), *RECOMPUTE}
    wanted |= {f"{d} {o}" for d in ("per-node", "per-copy") for o in (False, True)}
    wanted |= {"split experts True", "split experts False", "load 1.0", "load 1.2", "load 1.25"}
    wanted |= {*reference_engine.BYTES, *(f"levels {len(s.levels)}" for s in SYSTEMS)}

    assert set(seen) == wanted
    assert min(seen.values()) > COUNT // 100
    for name in ("tp", "pp", "dp", "cp", "ep"):
        assert sum(getattr(s.layout, name) > 1 for s in samples) > COUNT // 20, name


@pytest.mark.parametrize("some", PARTS_OF_SAMPLES, ids=["quick", "all"])
def test_times_and_memory(samples, some) -> None:
    for s in samples[some]:
        e = ESTIMATORS[s.which]
        expected, found = (
            reference_engine.step(e.dims, e.system, e.calibration.efficiency, e.dtype, s.layout),
            e.step(s.layout),
        )
        # A part that others nearly cancel is as exact as what it is the difference of.
        parts = {name: pytest.approx(expected[name], rel=1e-12, abs=1e-12 * found.total) for name in PARTS}
        assert parts == {name: getattr(found, name) for name in PARTS}, s
        needed = reference_engine.memory(e.dims, s.layout, e.runtime)
        assert (expected["total"], needed) == pytest.approx((found.total, e.memory(s.layout).total), rel=1e-12), s


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
@pytest.mark.parametrize("shares", [{}, {"matmul_fp8": 0.6}, {"matmul_fp8": 0.6, "matmul_fp4": 0.45}])
def test_shares_of_narrow_dtypes(dtype, shares) -> None:
    efficiency = evolve(TRUE, **shares)
    system = lower(everything(), "dgx-b200*2")
    layout = Layout(tp=2, pp=2, dp=4, seq=4096, global_batch=64)
    expected = reference_engine.step(LLAMA_3_8B, system, efficiency, dtype, layout)
    found = step(transformer(LLAMA_3_8B), layout, machine(system, efficiency, dtype))
    assert {name: pytest.approx(getattr(found, name), rel=1e-12) for name in (*PARTS, "total")} == expected


any_possible = st.integers(0, 2**48).map(lambda seed: possible(random.Random(seed)))
any_samples = st.integers(0, 2**48).map(lambda seed: sample(random.Random(seed), strange=0.5))


@given(any_samples)
def test_refused_for_a_named_reason(s) -> None:
    e = ESTIMATORS[s.which]
    if not s.reason:
        assert e.step(s.layout).total > 0.0
        return
    refused = refusal(e.step, s.layout)
    assert refused.reason == s.reason
    assert s.reason in REASONS
    assert hasattr(s.layout, refused.place)


def faster_machines(numbers):
    """Machines with half the time of one unit: one over one of the rates, or a latency."""
    for name in ("seconds_per_flop", "score", "seconds_per_byte"):
        yield name, evolve(numbers, **{name: getattr(numbers, name) / 2.0})
    for i, level in enumerate(numbers.levels):
        for name in ("seconds_per_byte", "hop"):
            half = evolve(level, **{name: getattr(level, name) / 2.0})
            yield f"{name} {i}", evolve(numbers, levels=(*numbers.levels[:i], half, *numbers.levels[i + 1 :]))


@given(any_possible)
def test_twice_any_rate_is_never_slower(s) -> None:
    """Each time per unit of a machine halved in turn.

    Where the least time of a layer bounds a split backward pass, or where stages are unequal, a faster rate moves time between
    parts, and so what collectives overlap with.
    """
    e, layout = ESTIMATORS[s.which], s.layout
    before = e.step(layout).total
    moved = layout.uneven or (layout.schedule not in FUSED and e.machine.achieved.call > 0.0)
    for name, faster in faster_machines(e.machine):
        assert step(e.model, layout, faster).total <= before * (1 + (0.01 if moved else 1e-12)), name
