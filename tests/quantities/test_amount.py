"""trnspec.quantities.amount: sums, differences, products and quotients with their intervals, and comparisons."""

import operator
from fractions import Fraction

import pytest

from trnspec.errors import QuantityError
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Interval
from trnspec.quantities.units import Dimension

GB = 10**9


def amount(text: str) -> Amount:
    return Amount.parse(text)


def span(low: float, high: float, scale: int = GB) -> Interval:
    return Interval(Fraction(low) * scale, Fraction(high) * scale)


def found(made: Amount) -> tuple[Fraction, Dimension, Interval, str]:
    return made.value, made.dimension, made.interval, str(made)


INFORMATION, TIME, RATIO = Dimension.INFORMATION, Dimension.TIME, Dimension.RATIO


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: amount("96 GB") + amount("4.5 GB"), (Fraction(201, 2) * GB, INFORMATION, span(99.95, 101.05), "100 GB")),
        (lambda: amount("96 GB") - amount("4.5 GB"), (Fraction(183, 2) * GB, INFORMATION, span(90.95, 92.05), "92 GB")),
        (lambda: amount("4.5 GB") - amount("4.5 GB"), (Fraction(0), INFORMATION, span(0, 0.1), "0 GB")),
        (lambda: 3 * amount("96 GB"), (Fraction(288) * GB, INFORMATION, span(286.5, 289.5), "288 GB")),
        (lambda: amount("96 GB") / 8, (Fraction(12) * GB, INFORMATION, span(95.5 / 8, 96.5 / 8), "12 GB")),
        (lambda: amount("96 GB") / amount("4.8 GB"), (Fraction(20), RATIO, None, "20x")),
        (lambda: amount("2 GB") / amount("8 GB/s"), (Fraction(1, 4), TIME, None, "250 ms")),
        (lambda: amount("8 GB/s") * amount("2 s"), (Fraction(16) * GB, INFORMATION, None, "16 GB")),
        (lambda: amount("2 s") * amount("8 GB/s"), (Fraction(16) * GB, INFORMATION, None, "16 GB")),
        (lambda: sum([amount("96 GB"), amount("4 GB")]), (Fraction(100) * GB, INFORMATION, span(99, 101), "100 GB")),
    ],
)  # fmt: skip
def test_arithmetic(made, expected) -> None:
    value, dimension, interval, text = found(made())
    assert (expected[0], expected[1], expected[3]) == (value, dimension, text)
    if expected[2] is not None:
        close = [(float(a), float(b)) for a, b in zip(
            (expected[2].low, expected[2].high), (interval.low, interval.high), strict=True)]  # fmt: skip
        assert [a for a, _ in close] == pytest.approx([b for _, b in close], rel=1e-12)


def test_intervals_of_quotients_and_products() -> None:
    """The least over the most, and the most over the least."""
    ratio = amount("96 GB") / amount("4.8 GB")
    assert (Fraction("95.5") / Fraction("4.85"), Fraction("96.5") / Fraction("4.75")) == (
        ratio.interval.low, ratio.interval.high)  # fmt: skip
    moved = amount("8 GB/s") * amount("2 s")
    assert span(7.5 * 1.5, 8.5 * 2.5) == moved.interval


def test_a_difference_is_not_below_zero() -> None:
    """No difference of rounded figures is; one of a figure without an upper bound begins at 0 and has no end."""
    assert span(0, 0) == (amount("4 GB") - amount("96 GB")).interval
    assert Interval(Fraction(0), None) == (Amount.parse("> 4 GB") - Amount.parse("> 1 GB")).interval


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: amount("96 GB") + amount("4.51 GB"), 3),
        (lambda: amount("96 GB") - amount("4.51 GB"), 3),
        (lambda: amount("96 GB") * 16, 4),
        (lambda: amount("96 GB") * 0.5, 2),
        (lambda: amount("96 GB") / 16, 3),
        (lambda: amount("96 GB") / amount("4.512 GB"), 3),
        (lambda: amount("96.001 GB") / amount("4.5123 GB"), 5),
    ],
)
def test_digits(made, expected) -> None:
    """A sum has those of the more precise figure, a count adds its own, a quotient has those of the less precise one."""
    assert expected == made().digits


@pytest.mark.parametrize(
    ("text", "shown"),
    [("9999 GB", "9,999 GB"), ("10000 GB", "10 TB"), ("12,000 GB", "12 TB"), ("16384 GiB", "16,384 GiB")],
)
def test_large_decimal_values_have_a_larger_unit(text, shown) -> None:
    assert (shown, f"<{shown}>") == (str(amount(text)), repr(amount(text)))


def test_to() -> None:
    assert (96e9, 96e3, 96.0) == (float(amount("96 GB")), amount("96 GB").to("MB"), amount("96 GB").to("GB"))
    with pytest.raises(QuantityError, match="measures"):
        amount("96 GB").to(amount("2 s").unit)


def test_agrees() -> None:
    """Rounding alone explains the difference, or it does not."""
    assert [True, True, False] == [amount("96 GB").agrees(x) for x in ("96.4 GB", amount("96 GB"), "97.1 GB")]


def test_comparisons() -> None:
    compared = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq)
    one, same, more = amount("96 GB"), amount("96,000 MB"), amount("97 GB")
    assert [False, True, False, True, True] == [test(one, same) for test in compared]
    assert [True, True, False, False, False] == [test(one, more) for test in compared]
    assert [False, True, False, True] == [test(one, "96 GB") for test in compared[:4]]
    assert 1 == len({one, same})
    assert amount("2 s") != one


@pytest.mark.parametrize(
    ("made", "reason", "hint"),
    [
        (lambda: amount("96 GB") - amount("2 s"), "dimension", ""),
        (lambda: amount("96 GB") + 3, "no-unit", 'write a quantity such as Amount.parse("3 GB")'),
        (lambda: 3 + amount("96 GB"), "no-unit", 'write a quantity such as Amount.parse("3 GB")'),
        (lambda: amount("96 GB") - 3, "no-unit", 'write a quantity such as Amount.parse("3 GB")'),
        (lambda: amount("96 GB") - None, "malformed", "None is a figure that is not published"),
        (lambda: amount("96 GB") < 3, "no-unit", 'compare with a text such as "3 GB"'),
        (lambda: amount("96 GB") + True, "malformed", 'write a quantity such as Amount.parse("96 GB")'),
        (lambda: amount("96 GB") * True, "dimension", ""),
        (lambda: amount("96 GB") / amount("2 W"), "dimension", ""),
        (lambda: amount("96 GB") / amount("0 GB"), "dimension", ""),
    ],
)
def test_refused(made, reason, hint) -> None:
    with pytest.raises(QuantityError) as refused:
        made()
    assert (reason, hint) == (refused.value.reason, refused.value.hint)


def test_format() -> None:
    assert ("96.00 GB", "96 GB") == (f"{amount('96 GB'):.2f}", f"{amount('96 GB')}")
    assert "0.3333x" == str(Amount.exact(Fraction(1, 3)))
