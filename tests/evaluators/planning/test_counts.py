"""The counts that a plan considers, and the fewest that meet a goal."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trnspec.evaluators.planning.counts import before, considered, fewest

COUNTS = sorted({considered(n) for n in range(1, 20_000)})


def test_all_small_counts_and_eighths_of_powers_of_two() -> None:
    assert COUNTS[:26] == [*range(1, 17), 18, 20, 22, 24, 26, 28, 30, 32, 36, 40]
    assert all(b / a <= 1.125 for a, b in pairwise(COUNTS[15:]))
    assert [before(n) for n in COUNTS] == [0, *COUNTS[:-1]]


@given(st.floats(0.1, 9000.0), st.floats(0.5, 1.0), st.integers(1, 9000), st.integers(1, 40))
def test_the_fewest_are_found_with_few_evaluations(work: float, scaling: float, first: int, fits: int) -> None:
    """Of a system that does less per chip the more there are, and is too small below some count."""
    tried: list[int] = []

    def met(count: int) -> bool:
        return count >= fits and work / count**scaling <= 1.0

    def needs(count: int) -> float | None:
        tried.append(count)
        return count * work / count**scaling if count >= fits else None

    found = fewest(needs, first, COUNTS[-1])

    assert found == next((n for n in COUNTS if met(n)), None)
    assert len(set(tried)) == len(tried) <= 12 + math.log2(COUNTS[-1])


def test_more_of_no_use() -> None:
    assert fewest(lambda _: math.inf, 3, 100) is None
