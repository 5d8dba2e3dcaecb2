"""The counts that a plan considers."""

from __future__ import annotations

from trnspec.evaluators.planning.counts import considered


def test_all_small_counts_and_eighths_of_powers_of_two() -> None:
    assert considered(0, 64) == [*range(1, 17), 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60]
    assert considered(6144, 8192) == [6656, 7168, 7680]
    assert considered(3, 4) == []
