"""trnspec.quantities.quantity: computed values as texts, compared with the decimal module; and units to show them in."""

from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from trnspec.quantities.quantity import choose_unit, render
from trnspec.quantities.units import UNITS, Dimension

MOST_DECIMALS = 15


def written(number: Decimal, digits: int) -> str:
    """The number with some digits: halves away from 0, an exponent from 10^15 on, below 10^-6, or for many decimals."""
    if not number:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).plus(number)
    exponent = rounded.adjusted()
    decimals = digits - 1 - exponent
    if exponent >= 15 or exponent < -6 or (exponent < 0 and decimals > MOST_DECIMALS):
        mantissa = f"{rounded.scaleb(-exponent):f}"
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
    text = f"{rounded:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@given(st.integers(-(10**21), 10**21), st.integers(-30, 12), st.integers(1, 20))
@example(-5, -1, 1)
@example(-5, -2, 3)
@example(1, -6, 1)
@example(1, -7, 1)
@example(9999995, -13, 1)
@example(99, -8, 1)
@example(999999999999999, 0, 15)
@example(9999999999999995, -1, 15)
@example(1, 15, 1)
@example(1234, -7, 12)
@example(1234, -7, 13)
@example(15, -1, 1)
@example(25, -1, 1)
@example(-25, -1, 1)
@example(-1, 0, 1)
def test_render(mantissa: int, power: int, digits: int) -> None:
    number = Decimal(mantissa).scaleb(power, Context(prec=60))
    sign = number.is_signed() and number != 0

    assert f"{'-' if sign else ''}{written(abs(number), digits)} B" == render(Fraction(number), "B", digits)
    assert f"{'-' if sign else ''}{written(abs(number), digits)}x" == render(Fraction(number), "x", digits)


@given(st.fractions(0, 10**20), st.sampled_from(Dimension))
@example(Fraction(0), Dimension.TIME)
def test_choose_unit(value: Fraction, dimension: Dimension) -> None:
    """The largest decimal unit in which the value is at least 1; the smallest, if there is none; the base unit of 0."""
    decimal = {u.factor: u for u in UNITS if u.dimension is dimension and "i" not in u.symbol.replace("bit", "")}
    powers = {f: u for f, u in decimal.items() if str(max(f.numerator, f.denominator)).strip("0") == "1"}
    fitting = [f for f in powers if f <= value]
    unit = choose_unit(value, dimension)

    if value == 0:
        assert dimension.base == unit.symbol
    else:
        assert powers[max(fitting) if fitting else min(powers)] is unit
    assert unit is choose_unit(-value, dimension)
