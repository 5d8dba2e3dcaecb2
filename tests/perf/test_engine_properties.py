"""Properties of the training engine for any configuration."""

import itertools
import random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine import ESTIMATORS, everything, possible, sample
from trnspec.errors import RefusalError
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.groups import group
from trnspec.perf.experts import byte_time, exchange
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, collective_time, machine
from trnspec.perf.lowering.machine import group as ranks_of
from trnspec.perf.sweep.batch import REASONS
from trnspec.perf.training.pass_order import FUSED
from trnspec.perf.training.step import step

samples = st.integers(0, 2**48).map(lambda seed: possible(random.Random(seed)))
SHIPPED = ("trn1.32xlarge*2", "trn1.32xlarge*32", "trn2.48xlarge*2", "trn2-ultraserver", "p5.48xlarge*4")
any_samples = st.integers(0, 2**48).map(lambda seed: sample(random.Random(seed), strange=0.5))


@given(any_samples)
def test_refused_for_a_named_reason(s) -> None:
    e = ESTIMATORS[s.which]
    if not s.reason:
        assert e.step(s.layout).total > 0.0
        return
    with pytest.raises(RefusalError) as refused:
        e.step(s.layout)
    assert refused.value.reason == s.reason
    assert s.reason in REASONS
    assert hasattr(s.layout, refused.value.place)


def faster_machines(numbers):
    """Machines with half the time of one unit: one over one of the rates, or a latency."""
    for name in ("seconds_per_flop", "score", "seconds_per_byte"):
        yield name, evolve(numbers, **{name: getattr(numbers, name) / 2.0})
    for i, level in enumerate(numbers.levels):
        for name in ("seconds_per_byte", "hop"):
            half = evolve(level, **{name: getattr(level, name) / 2.0})
            yield f"{name} {i}", evolve(numbers, levels=(*numbers.levels[:i], half, *numbers.levels[i + 1 :]))


@pytest.mark.parametrize("collective", ["tensor", "data", "context", "expert"])
def test_no_collective_is_faster_than_its_bound(collective) -> None:
    systems = [lower(everything(), name) for name in SHIPPED]
    size, below = 2.0**30, []
    for system, tp, other in itertools.product(systems, (1, 2, 4, 8, 16, 32), (2, 4, 8)):
        ranks = int(system.ranks)
        if ranks % (tp * other):
            continue
        on = machine(system, IDEAL, "bf16")
        tensor, data, ring = (ranks_of(on, float(n), float(s)) for n, s in ((tp, 1), (ranks // tp, tp), (other, tp)))
        experts = exchange(on, float(other), float(tp))
        kind, count, stride, time = {
            "tensor": ("all-reduce", tp, 1, 2.0 * collective_time(on, tensor, size, 1.0)),
            "data": ("all-reduce", ranks // tp, tp, 2.0 * collective_time(on, data, size, 1.0)),
            "context": ("all-gather", other, tp, collective_time(on, ring, size, 1.0)),
            "expert": ("all-to-all", other, tp, on.call + experts.hop + size * byte_time(experts, 1.0, 0.0)),
        }[collective]
        try:
            least = bound(system, group(system, count, stride), kind, size).time
        except RefusalError:
            continue
        if time < least * (1 - 1e-9):
            below.append((system.name, count, stride, round(time / least, 3)))
    assert sorted(set(below)) == []


@given(samples)
def test_twice_any_rate_is_never_slower(s) -> None:
    """Each time per unit of a machine halved in turn.

    Where the least time of a layer bounds a split backward pass, or where stages are unequal, a faster rate moves time between
    parts, and so what collectives overlap with.
    """
    e, layout = ESTIMATORS[s.which], s.layout
    before = e.step(layout).total
    moved = layout.uneven or (layout.schedule not in FUSED and e.machine.call > 0.0)
    for name, faster in faster_machines(e.machine):
        assert step(e.model, layout, faster).total <= before * (1 + (0.01 if moved else 1e-12)), name
