"""trnspec.quantities.arithmetic: printed values calculate and compare as their amounts do."""

from operator import add, mul, sub, truediv

import pytest

from trnspec.errors import QuantityError
from trnspec.quantities.quantity import parse

SMALL, LARGE, FOUR = parse("2 TB/s"), parse("3 TB/s"), parse("4x")


@pytest.mark.parametrize(
    ("of", "one", "other", "expected"),
    [(add, LARGE, SMALL, 5e12), (sub, LARGE, SMALL, 1e12), (truediv, LARGE, SMALL, 1.5), (mul, LARGE, FOUR, 12e12), (mul, FOUR, LARGE, 12e12),
     (mul, LARGE, 4, 12e12), (mul, 4, LARGE, 12e12), (truediv, LARGE, 4, 0.75e12), (add, 0, LARGE, 3e12)],
)  # fmt: skip
def test_calculation(of, one, other, expected) -> None:
    """With a printed value on either side, or on both."""
    for left in (one, getattr(one, "amount", one)):
        for right in (other, getattr(other, "amount", other)):
            assert float(of(left, right)) == pytest.approx(expected, rel=1e-12)


def test_conversion_and_agreement() -> None:
    assert 2000.0 == SMALL.to("GB/s")
    assert (True, False) == (SMALL.agrees("2.4 TB/s"), SMALL.agrees("2.6 TB/s"))


@pytest.mark.parametrize("zero", [0, 0.0, parse("0 TB/s"), parse("0x")])
def test_nothing_is_divided_by_zero(zero) -> None:
    with pytest.raises(QuantityError, match="divided by"):
        LARGE / zero
