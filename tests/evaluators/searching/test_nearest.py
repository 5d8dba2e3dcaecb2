"""Other batches and larger systems that are searched where nothing is feasible."""

import pytest

from trnspec.evaluators.searching.nearest import _batches, _multiples


@pytest.mark.parametrize(("batch", "ranks"), [(30, 8), (1, 32), (7, 12), (1000, 96), (64, 64)])
def test_the_nearest_batches(batch: int, ranks: int) -> None:
    """Multiples of a divisor of the ranks, next to the batch on either side; at most six, the nearest first."""
    near = set()
    for divisor in (d for d in range(1, ranks + 1) if ranks % d == 0):
        multiples = range(divisor, batch + 2 * ranks, divisor)
        near |= {max((m for m in multiples if m <= batch), default=batch), min(m for m in multiples if m >= batch)}
    expected = sorted(near - {batch}, key=lambda other: (abs(other - batch), other))[:6]

    assert _batches(batch, ranks) == expected


@pytest.mark.parametrize(("on", "count"), [("trn2.48xlarge", 1), ("trn2.48xlarge*3", 3)])
def test_larger_systems(on: str, count: int) -> None:
    assert list(_multiples(on)) == [f"trn2.48xlarge*{count * factor}" for factor in (2, 4, 8, 16, 32, 64)]
