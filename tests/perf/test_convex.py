"""The least value of piecewise linear convex functions, against all their kinks."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trnspec.perf.convex import least

LINES = st.lists(st.tuples(st.floats(-5.0, 5.0), st.floats(0.0, 10.0)), min_size=1, max_size=6)


@given(st.lists(st.tuples(LINES, st.floats(0.0, 4.0), st.floats(0.0, 1.0)), min_size=1, max_size=5))
@example([([(0.0, 0.0)], 1.0, 5e-324)])
@example([([(-1.0, 0.0), (1.0, 0.0)], 5e-324, 0.5), ([(0.0, 1.0)], 1e-320, 1.0)])
def test_minimum_over_ends_and_kinks(rows) -> None:
    most = np.array([end for _, end, _ in rows])
    evaluated = []

    def function(places, numbers):
        evaluated.append(len(places))
        return np.array([value(rows[n][0], x) for x, n in zip(places.tolist(), numbers.tolist(), strict=True)])

    place, found = least(function, most, most * np.array([share for *_, share in rows]))

    for (lines, end, _), x, y in zip(rows, place.tolist(), found.tolist(), strict=True):
        assert 0.0 <= x <= end
        assert value(lines, x) == y
        assert y == pytest.approx(min(value(lines, at) for at in kinks(lines, end)), rel=1e-9, abs=1e-9)
    assert sum(evaluated) <= 60 * len(rows)


def value(lines: list[tuple[float, float]], x: float) -> float:
    """The largest of some lines with a slope and an intercept."""
    return max(slope * x + base for slope, base in lines)


def kinks(lines: list[tuple[float, float]], end: float) -> list[float]:
    """The ends, and where two lines meet between them."""
    meet = [(b - d) / (c - a) for a, b in lines for c, d in lines if abs(c - a) > 1e-12]
    return [0.0, end, *(x for x in meet if 0.0 < x < end)]
