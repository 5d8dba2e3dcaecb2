"""Amounts: exact values with a dimension, and the interval that rounding leaves."""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from trnspec.quantities.arithmetic import Measured
from trnspec.quantities.quantity import Interval, Quantity, choose_unit, formatted, parse, render
from trnspec.quantities.units import UNITS, Dimension, Unit, UnitTable

_LARGE = 10_000
"""From this number on an amount is shown in a larger unit."""


@frozen(eq=False)
class Amount(Measured):
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
    digits: int
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
        return cls(value, Dimension.RATIO, Interval.point(value), UNITS.unit("x"), 4)

    @property
    def amount(self) -> Amount:
        """The amount itself."""
        return self

    @property
    def shown_unit(self) -> Unit:
        """The unit of ``str``: a large decimal value moves to a larger unit."""
        if self.value >= _LARGE * self.unit.factor and "i" not in self.unit.symbol:
            return choose_unit(self.value, self.dimension)
        return self.unit

    def __str__(self) -> str:
        return render(self.value, self.shown_unit, self.digits)

    def __format__(self, spec: str) -> str:
        return formatted(self.value, self.shown_unit, spec) if spec else str(self)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and (self.dimension, self.value) == (other.dimension, other.value)

    def __hash__(self) -> int:
        return hash((self.dimension, self.value))

    def with_value(self, value: Fraction, interval: Interval, digits: int) -> Amount:
        """An amount of the same dimension, shown in the same unit."""
        return Amount(value, self.dimension, interval, self.unit, digits, self.table)


def combined(value: Fraction, dimension: Dimension, interval: Interval, *operands: Amount) -> Amount:
    """The amount of another dimension that a product or quotient gives, to the digits of the least precise operand."""
    digits = max(3, min(operand.digits for operand in operands))
    table = next((operand.table for operand in operands if operand.table is not UNITS), UNITS)
    return Amount(value, dimension, interval, choose_unit(value, dimension), digits, table)
