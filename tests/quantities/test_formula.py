"""trnspec.quantities.formula: sums, products and quotients of printed figures, and where a formula is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest

from trnspec.quantities.formula import FormulaError, evaluate
from trnspec.quantities.quantity import Interval


@pytest.mark.parametrize(
    ("text", "value"), [("2 x 3", 6), ("6 / 4", Fraction(3, 2)), ("2 x 3 + 4", 10), ("2 x (3 + 4) / 7", 2)]
)
def test_exact_numbers(text, value) -> None:
    assert Interval.point(Fraction(value)) == evaluate(text)


@pytest.mark.parametrize(
    ("text", "place"), [("2 x", "at the end of the formula"), ("2 x /", "at '/' (column 5) in the")]
)
def test_where_something_is_missing(text, place) -> None:
    with pytest.raises(FormulaError) as refused:
        evaluate(text)
    assert place in str(refused.value)


@pytest.mark.parametrize("depth", [20, 21])
def test_the_deepest_brackets(depth) -> None:
    """Twenty are read, one more is not; brackets next to each other are not deep."""
    text = "(" * depth + "2" + ")" * depth
    if depth <= 20:
        assert evaluate(text) == evaluate("2")
    else:
        with pytest.raises(FormulaError):
            evaluate(text)
    assert evaluate(" + ".join(["(1)"] * 40)) == evaluate("40")
    with pytest.raises(FormulaError, match="at most 20 nested brackets"):
        evaluate("(1) + (1) + ((1)) + " + "(" * 21 + "2" + ")" * 21)
