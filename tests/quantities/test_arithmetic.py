"""trnspec.quantities.arithmetic: printed values calculate and compare as their amounts do."""

import pytest

from trnspec.quantities.quantity import parse

SMALL, LARGE = parse("2 TB/s"), parse("3 TB/s")


@pytest.mark.parametrize(
    ("calculation", "expected"),
    [
        (LARGE + SMALL, 5e12),
        (LARGE + SMALL.amount, 5e12),
        (LARGE.amount + SMALL, 5e12),
        (LARGE - SMALL, 1e12),
        (LARGE.amount - SMALL, 1e12),
        (LARGE * 4, 12e12),
        (4 * LARGE, 12e12),
        (LARGE * parse("4x"), 12e12),
        (parse("4x") * LARGE, 12e12),
        (LARGE / 4, 0.75e12),
        (LARGE / SMALL, 1.5),
        (SMALL.amount / LARGE.amount, 2 / 3),
        (sum([LARGE, SMALL]), 5e12),
    ],
)
def test_calculation(calculation, expected) -> None:
    assert expected == pytest.approx(float(calculation), rel=1e-12)


def test_conversion_and_agreement() -> None:
    assert 2000.0 == SMALL.to("GB/s")
    assert (True, False) == (SMALL.agrees("2.4 TB/s"), SMALL.agrees("2.6 TB/s"))
    assert 6.0 == pytest.approx(float(parse("12 TB") / SMALL), rel=1e-12)
