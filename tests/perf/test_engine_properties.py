"""Properties of the training engine for any configuration."""

import random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine import ESTIMATORS, possible, sample
from trnspec.errors import RefusalError
from trnspec.perf.sweep.batch import REASONS
from trnspec.perf.training.pass_order import FUSED
from trnspec.perf.training.step import step

samples = st.integers(0, 2**48).map(lambda seed: possible(random.Random(seed)))
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


@given(samples)
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
