"""Arithmetic and comparison of amounts, and of everything that has one, such as a printed value.

Only combinations with a physical meaning are defined; ``3 GB + 3`` is an error.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from trnspec.errors import QuantityError
from trnspec.quantities.units import Dimension, Unit

if TYPE_CHECKING:  # amount imports this module
    from trnspec.quantities.amount import Amount

_QUOTIENTS: dict[tuple[Dimension, Dimension], Dimension] = {
    (Dimension.FLOP_RATE, Dimension.BANDWIDTH): Dimension.INTENSITY,
    (Dimension.INFORMATION, Dimension.BANDWIDTH): Dimension.TIME,
    (Dimension.INFORMATION, Dimension.TIME): Dimension.BANDWIDTH,
    (Dimension.ENERGY, Dimension.TIME): Dimension.POWER,
    (Dimension.ENERGY, Dimension.POWER): Dimension.TIME,
    (Dimension.FLOP_RATE, Dimension.FREQUENCY): Dimension.FLOP_PER_CYCLE,
    (Dimension.FLOP_RATE, Dimension.INTENSITY): Dimension.BANDWIDTH,
}
_PRODUCTS: dict[tuple[Dimension, Dimension], Dimension] = {
    (Dimension.BANDWIDTH, Dimension.TIME): Dimension.INFORMATION,
    (Dimension.BANDWIDTH, Dimension.INTENSITY): Dimension.FLOP_RATE,
    (Dimension.FREQUENCY, Dimension.FLOP_PER_CYCLE): Dimension.FLOP_RATE,
    (Dimension.POWER, Dimension.TIME): Dimension.ENERGY,
}


def quotient(top: Dimension, bottom: Dimension) -> Dimension | None:
    """The dimension of one dimension over another, or ``None`` if the two cannot be divided."""
    return Dimension.RATIO if top is bottom else _QUOTIENTS.get((top, bottom))


class Measured:
    """Base of amounts and of printed values: to calculate with one is to calculate with its ``amount``.

    The other operand may be another printed value or an amount; in a comparison also a text such as ``"3 TB/s"``.
    Everything else raises :class:`~trnspec.errors.QuantityError`. ``==`` is that of the subclass.
    """

    __slots__ = ()

    @property
    def amount(self) -> Amount:
        """The exact value with its dimension and interval."""
        raise NotImplementedError

    def to(self, unit: str | Unit) -> float:
        """The value in another unit of the same dimension.

        Raises:
            QuantityError: ``unknown-unit`` or ``dimension``.
        """
        a = self.amount
        target = a.table.unit(unit, a.dimension) if isinstance(unit, str) else unit
        if target.dimension is not a.dimension:
            raise QuantityError("dimension", f"{a} measures {a.dimension.word}, {target} {target.dimension.word}")
        return float(a.value / target.factor)

    def agrees(self, other: Amount | Measured | str) -> bool:
        """True if rounding alone can explain the difference: the intervals overlap.

        Raises:
            QuantityError: ``other`` is not a quantity of the same dimension.
        """
        return self.amount.interval.overlaps(_compared(self.amount, other).interval)

    def __float__(self) -> float:
        """The value in base units."""
        return float(self.amount.value)

    def __add__(self, other: object) -> Amount:
        a, b = self.amount, _same(self.amount, other, "added to")
        return a.with_value(a.value + b.value, a.interval + b.interval, max(a.digits, b.digits))

    def __radd__(self, other: object) -> Amount:
        # sum() begins with the number 0.
        if type(other) is int and other == 0:
            return self.amount
        raise _no_quantity(self.amount, other, "added to")

    def __sub__(self, other: object) -> Amount:
        a, b = self.amount, _same(self.amount, other, "subtracted from")
        high = a.interval.high
        low = Fraction(0) if b.interval.high is None else max(a.interval.low - b.interval.high, Fraction(0))
        upper = None if high is None else max(high - b.interval.low, low)
        return a.with_value(a.value - b.value, type(a.interval)(low, upper), max(a.digits, b.digits))

    def __rsub__(self, other: object) -> Amount:
        raise _undefined(self.amount, "subtracted from", other)

    def __mul__(self, other: object) -> Amount:
        from trnspec.quantities.amount import combined

        one = self.amount
        if not isinstance(other, Measured):
            factor = _factor(one, other, "multiplied by")
            digits = one.digits + len(str(other)) if isinstance(other, int) else one.digits
            return one.with_value(one.value * factor, one.interval.scaled(factor), digits)
        two = other.amount
        for a, b in ((one, two), (two, one)):
            if (a.dimension, b.dimension) in _PRODUCTS:
                dimension = _PRODUCTS[a.dimension, b.dimension]
                return combined(a.value * b.value, dimension, a.interval.times(b.interval), one, two)
            if b.dimension is Dimension.RATIO:
                return a.with_value(a.value * b.value, a.interval.times(b.interval), a.digits)
        raise _undefined(one, "multiplied by", two)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Amount:
        from trnspec.quantities.amount import combined

        a = self.amount
        if not isinstance(other, Measured):
            divisor = _factor(a, other, "divided by")
            if divisor == 0:
                raise _undefined(a, "divided by", other)
            return a.with_value(a.value / divisor, a.interval.scaled(1 / divisor), a.digits + 1)
        b = other.amount
        dimension = quotient(a.dimension, b.dimension)
        if b.value == 0 or dimension is None:
            raise _undefined(a, "divided by", b)
        return combined(a.value / b.value, dimension, a.interval.ratio(b.interval), a, b)

    def __rtruediv__(self, other: object) -> Amount:
        raise _undefined(self.amount, "the divisor of", other)

    def __lt__(self, other: Amount | Measured | str) -> bool:
        return self.amount.value < _compared(self.amount, other).value

    def __le__(self, other: Amount | Measured | str) -> bool:
        return self.amount.value <= _compared(self.amount, other).value

    def __gt__(self, other: Amount | Measured | str) -> bool:
        return self.amount.value > _compared(self.amount, other).value

    def __ge__(self, other: Amount | Measured | str) -> bool:
        return self.amount.value >= _compared(self.amount, other).value


def _compared(a: Amount, other: object) -> Amount:
    """The other side of a comparison, which may be a text; its dimension is that of the amount."""
    return a.parse(other, a.dimension, a.table) if isinstance(other, str) else _same(a, other, "compared with")


def _same(a: Amount, other: object, verb: str) -> Amount:
    """The amount of an operand of the same dimension."""
    if not isinstance(other, Measured):
        raise _no_quantity(a, other, verb)
    b = other.amount
    if a.dimension is not b.dimension:
        raise QuantityError("dimension", f"{b} ({b.dimension.word}) cannot be {verb} {a} ({a.dimension.word})")
    return b


def _factor(a: Amount, other: object, verb: str) -> Fraction:
    if isinstance(other, bool) or not isinstance(other, (int, float, Fraction)):
        raise _undefined(a, verb, other)
    try:
        return Fraction(other)
    except (OverflowError, ValueError):
        raise _undefined(a, verb, other) from None


def _no_quantity(a: Amount, other: object, verb: str) -> QuantityError:
    """The error for an operand that is neither an amount nor a printed value."""
    message = f"{other!r} cannot be {verb} {a} ({a.dimension.word})"
    if other is None:
        return QuantityError("malformed", message, "None is a figure that is not published")
    number = isinstance(other, (int, float)) and not isinstance(other, bool)
    text = f'"{other} {a.unit}"' if number else f'"{a}"'
    hint = (
        f"compare with a text such as {text}"
        if verb == "compared with"
        else f"write a quantity such as Amount.parse({text})"
    )
    return QuantityError("no-unit" if number else "malformed", message, hint)


def _undefined(a: Amount, verb: str, other: object) -> QuantityError:
    return QuantityError("dimension", f"{a} ({a.dimension.word}) cannot be {verb} {other!r}")
