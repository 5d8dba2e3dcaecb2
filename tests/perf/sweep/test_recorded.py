"""Grids of recorded formulas against each combination by itself, however they are cut into regions."""

from __future__ import annotations

import itertools
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trnspec.perf.ops import Number, larger, where
from trnspec.perf.sweep import recorded
from trnspec.perf.sweep.axes import axes_of
from trnspec.perf.sweep.batch import Pareto, Top
from trnspec.perf.sweep.expressions import Recording
from trnspec.perf.sweep.recorded import Formulas, blocks, reduce

DEGREES = ("a", "b")
NAMES = ("x", "a", "y", "b", "z")
MEASURES = ("time", "memory", "ranks", "of_y", "constant")
FIRST, SECOND, THIRD = 1, 2, 3


def formulas(
    x: Number, a: Number, y: Number, b: Number, z: Number
) -> tuple[list[tuple[int, Number]], dict[str, Number]]:
    """Conditions on degrees, on others, and on both; measures that depend on few axes and on all."""
    ranks = a * b
    conditions = [(FIRST, ranks > 8.0), (SECOND, larger(x, y) > 4.0), (THIRD, a + z > 5.0), (SECOND, b * y > 9.0)]
    time = ranks * x + where(y > 2.0, y / b, y * z) + a / (x + z)
    measures = (time, 10.0 * y - ranks + z * z, ranks, y * y + y, 2.0)
    return conditions, dict(zip(MEASURES, measures, strict=True))


VALUES = st.lists(st.integers(1, 5).map(float), min_size=1, max_size=3, unique=True)
LIMITS = st.fixed_dictionaries({
    "_REGION": st.sampled_from([1, 7, 40, 1 << 18]), "_ROWS": st.sampled_from([1, 3, 1 << 12]), "_AT_ONCE": st.sampled_from([2, 1 << 18]),
    "_DENSE": st.sampled_from([0.0, 0.8, 1.0]), "_CONSECUTIVE": st.sampled_from([1, 30, 1 << 20]),
})  # fmt: skip


@settings(max_examples=25)
@given(axes=st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)), limits=LIMITS, ends=st.tuples(*[st.floats(0, 1)] * 2))
def test_a_grid_is_its_combinations(axes, limits, ends) -> None:
    every = [formulas(*values) for values in itertools.product(*(axes[n] for n in NAMES))]
    first, end = sorted(int(share * len(every)) for share in ends)
    codes = [next((code for code, holds in conditions if holds), 0) for conditions, _ in every]
    valid = [(i, every[i][1]) for i in range(first, end) if not codes[i]]
    recording = Recording()
    conditions, measures = formulas(*(recording.column(name) for name in NAMES))
    of_grid = Formulas(DEGREES, tuple(conditions), measures)
    grid = axes_of({name: {name: axes[name]} for name in NAMES})

    with patch.multiple(recorded, **limits):
        found: list = [None] * len(every)
        for start, of_block, columns in blocks(of_grid, grid, first, end, MEASURES[:-1], ("of_y",)):
            for i, code in enumerate(of_block.tolist()):
                found[start + i] = code, [columns[name][i] for name in MEASURES[:-1]]
        best, least, front = Top(3), Top(3), Pareto()
        counts = [
            reduce(of_grid, grid, kept, "time", sign=sign, memory="memory", which=0, ends=(first, end))
            for kept, sign in ((best, 1.0), (least, -1.0), (front, 1.0))
        ]
    assert [i for i, one in enumerate(found) if one is not None] == list(range(first, end))
    assert codes[first:end] == [code for code, _ in found[first:end]]
    for i, numbers in valid:
        assert [numbers[name] for name in MEASURES[:-1]] == found[i][1]
    assert counts == [dict(Counter(codes[first:end]))] * 3
    for kept, sign in ((best, 1.0), (least, -1.0)):
        fastest = sorted((sign * numbers["time"], i, numbers["memory"]) for i, numbers in valid)[:3]
        result = kept.result()
        assert fastest == list(zip(result.time, result.number, result.memory, strict=True))
    points = {(numbers["time"], numbers["memory"]) for _, numbers in valid}
    on_front = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    result = front.result()
    assert on_front == set(zip(result.time.tolist(), result.memory.tolist(), strict=True))


def test_a_measure_that_is_the_same_for_all() -> None:
    grid = axes_of({name: {name: [1.0, 2.0]} for name in NAMES})
    ((_, codes, columns),) = blocks(
        Formulas(DEGREES, ((FIRST, False), (THIRD, True)), {"constant": 2.0}), grid, 0, 32, ["constant"]
    )

    assert codes.tolist() == [THIRD] * 32
    assert columns["constant"].tolist() == [0.0] * 32
    with pytest.raises(KeyError):
        next(iter(blocks(Formulas(DEGREES, (), {}), grid, 0, 32, ["other"])))
