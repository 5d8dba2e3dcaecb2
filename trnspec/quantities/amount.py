"""Amounts: exact values with a dimension, the interval that rounding leaves, and the arithmetic defined for them.

Arithmetic between figures gives amounts. Only combinations with a physical meaning are defined; ``3 GB + 3`` is an
error.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from trnspec.errors import QuantityError
from trnspec.quantities.arithmetic import Measured
from trnspec.quantities.quantity import Interval, Quantity, choose_unit, formatted, parse, render
from trnspec.quantities.units import UNITS, Dimension, Unit, UnitTable

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
_LARGE = 10_000
"""From this number on an amount is shown in a larger unit."""


def quotient(top: Dimension, bottom: Dimension) -> Dimension | None:
    """The dimension of one dimension over another, or ``None`` if the two cannot be divided."""
    return Dimension.RATIO if top is bottom else _QUOTIENTS.get((top, bottom))


@frozen(eq=False)
class Amount:
    """A value with its dimension. Two amounts are compared by value; ``agrees`` compares their intervals.

    ``format(amount, ".2f")`` applies the format to the number in ``unit`` and keeps the unit.

    Attributes:
        value: In base units (B, B/s, FLOPS, s, ...), exact.
        dimension: The dimension.
        interval: The values that the rounding of its operands leaves possible, in base units.
        unit: The unit to show it in.
        digits: Significant digits to show.
        table: The units that ``to`` and comparisons with texts accept: those of its operands.
    """

    value: Fraction
    dimension: Dimension
    interval: Interval
    unit: Unit
    digits: int = 4
    table: UnitTable = field(default=UNITS, repr=False)

    @classmethod
    def of(cls, quantity: Quantity) -> Amount:
        """The amount of a printed quantity."""
        return cls(
            quantity.value, quantity.dimension, quantity.interval, quantity.unit, quantity.digits, quantity.table
        )

    @classmethod
    def parse(cls, text: str, dimension: Dimension | None = None, table: UnitTable = UNITS) -> Amount:
        """The amount of a text such as ``"2.9 TB/s"``; see :func:`trnspec.quantities.quantity.parse`.

        Raises:
            QuantityError: ``malformed``, ``no-unit``, ``unknown-unit`` or ``dimension``.
        """
        return cls.of(parse(text, dimension, table))

    @classmethod
    def exact(cls, number: Fraction | int) -> Amount:
        """A count as an amount: a ratio without rounding."""
        value = Fraction(number)
        return cls(value, Dimension.RATIO, Interval.point(value), UNITS.unit("x"))

    def __float__(self) -> float:
        """The value in base units."""
        return float(self.value)

    def to(self, unit: str | Unit) -> float:
        """The value in another unit of the same dimension.

        Raises:
            QuantityError: ``unknown-unit`` or ``dimension``.
        """
        target = self.table.unit(unit, self.dimension) if isinstance(unit, str) else unit
        if target.dimension is not self.dimension:
            raise QuantityError("dimension", f"{self} measures {self.dimension.word}, {target} {target.dimension.word}")
        return float(self.value / target.factor)

    def agrees(self, other: Amount | Measured | str) -> bool:
        """True if rounding alone can explain the difference: the intervals overlap.

        Raises:
            QuantityError: ``other`` is not a quantity of the same dimension.
        """
        return self.interval.overlaps(self._compared(other).interval)

    @property
    def _shown_unit(self) -> Unit:
        """The unit of ``str``: a large decimal value moves to a larger unit."""
        if self.value >= _LARGE * self.unit.factor and "i" not in self.unit.symbol:
            return choose_unit(self.value, self.dimension)
        return self.unit

    def __str__(self) -> str:
        return render(self.value, self._shown_unit, self.digits)

    def __format__(self, spec: str) -> str:
        return formatted(self.value, self._shown_unit, spec) if spec else str(self)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __add__(self, other: object) -> Amount:
        other = self._operand(other)
        if not isinstance(other, Amount):
            raise self._no_quantity(other, "added to")
        self._require_same(other, "added to")
        return self._with(self.value + other.value, self.interval + other.interval, max(self.digits, other.digits))

    def __radd__(self, other: object) -> Amount:
        # sum() begins with the number 0.
        if type(other) is int and other == 0:
            return self
        raise self._no_quantity(other, "added to")

    def __sub__(self, other: object) -> Amount:
        other = self._operand(other)
        if not isinstance(other, Amount):
            raise self._no_quantity(other, "subtracted from")
        self._require_same(other, "subtracted from")
        high = self.interval.high
        low = Fraction(0) if other.interval.high is None else max(self.interval.low - other.interval.high, Fraction(0))
        upper = None if high is None else max(high - other.interval.low, low)
        return self._with(self.value - other.value, Interval(low, upper), max(self.digits, other.digits))

    def __rsub__(self, other: object) -> Amount:
        raise self._undefined("subtracted from", other)

    def __mul__(self, other: object) -> Amount:
        other = self._operand(other)
        if not isinstance(other, Amount):
            factor = self._factor(other, "multiplied by")
            digits = self.digits + len(str(other)) if isinstance(other, int) else self.digits
            return self._with(self.value * factor, self.interval.scaled(factor), digits)
        for a, b in ((self, other), (other, self)):
            if (a.dimension, b.dimension) in _PRODUCTS:
                dimension = _PRODUCTS[a.dimension, b.dimension]
                return _combined(a.value * b.value, dimension, a.interval.times(b.interval), self, other)
            if b.dimension is Dimension.RATIO:
                return a._with(a.value * b.value, a.interval.times(b.interval), a.digits)
        raise self._undefined("multiplied by", other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Amount:
        other = self._operand(other)
        if not isinstance(other, Amount):
            divisor = self._factor(other, "divided by")
            if divisor == 0:
                raise self._undefined("divided by", other)
            return self._with(self.value / divisor, self.interval.scaled(1 / divisor), self.digits + 1)
        dimension = quotient(self.dimension, other.dimension)
        if other.value == 0 or dimension is None:
            raise self._undefined("divided by", other)
        return _combined(self.value / other.value, dimension, self.interval.ratio(other.interval), self, other)

    def __rtruediv__(self, other: object) -> Amount:
        raise self._undefined("the divisor of", other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and (self.dimension, self.value) == (other.dimension, other.value)

    def __hash__(self) -> int:
        return hash((self.dimension, self.value))

    def __lt__(self, other: Amount | Measured | str) -> bool:
        return self.value < self._compared(other).value

    def __le__(self, other: Amount | Measured | str) -> bool:
        return self.value <= self._compared(other).value

    def __gt__(self, other: Amount | Measured | str) -> bool:
        return self.value > self._compared(other).value

    def __ge__(self, other: Amount | Measured | str) -> bool:
        return self.value >= self._compared(other).value

    def _operand(self, other: object) -> object:
        return other.amount if isinstance(other, Measured) else other

    def _compared(self, other: object) -> Amount:
        """The other side of a comparison, which may be a text; its dimension is that of this amount."""
        other = self._operand(other)
        if isinstance(other, str):
            return Amount.parse(other, self.dimension, self.table)
        if not isinstance(other, Amount):
            raise self._no_quantity(other, "compared with")
        self._require_same(other, "compared with")
        return other

    def _require_same(self, other: Amount, verb: str) -> None:
        if self.dimension is not other.dimension:
            mine, theirs = self.dimension.word, other.dimension.word
            raise QuantityError("dimension", f"{other} ({theirs}) cannot be {verb} {self} ({mine})")

    def _factor(self, other: object, verb: str) -> Fraction:
        if isinstance(other, bool) or not isinstance(other, (int, float, Fraction)):
            raise self._undefined(verb, other)
        try:
            return Fraction(other)
        except (OverflowError, ValueError):
            raise self._undefined(verb, other) from None

    def _no_quantity(self, other: object, verb: str) -> QuantityError:
        """The error for an operand that is neither an amount nor a printed value."""
        message = f"{other!r} cannot be {verb} {self} ({self.dimension.word})"
        if other is None:
            return QuantityError("malformed", message, "None is a figure that is not published")
        number = isinstance(other, (int, float)) and not isinstance(other, bool)
        text = f'"{other} {self.unit}"' if number else f'"{self}"'
        if verb == "compared with":
            return QuantityError("no-unit" if number else "malformed", message, f"compare with a text such as {text}")
        hint = f"write a quantity such as Amount.parse({text})"
        return QuantityError("no-unit" if number else "malformed", message, hint)

    def _undefined(self, verb: str, other: object) -> QuantityError:
        return QuantityError("dimension", f"{self} ({self.dimension.word}) cannot be {verb} {other!r}")

    def _with(self, value: Fraction, interval: Interval, digits: int) -> Amount:
        return Amount(value, self.dimension, interval, self.unit, digits, self.table)


def _combined(value: Fraction, dimension: Dimension, interval: Interval, *operands: Amount) -> Amount:
    """The amount of another dimension that a product or quotient gives, to the digits of the least precise operand."""
    digits = max(3, min(operand.digits for operand in operands))
    table = next((operand.table for operand in operands if operand.table is not UNITS), UNITS)
    return Amount(value, dimension, interval, choose_unit(value, dimension), digits, table)
