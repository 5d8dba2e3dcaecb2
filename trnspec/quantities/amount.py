"""Amounts: exact values with a dimension and the interval that rounding leaves, and the little algebra they need.

Arithmetic between figures gives amounts.  Only combinations that mean something are defined; ``3 GB + 3`` is refused.
"""

from __future__ import annotations

from fractions import Fraction

from attrs import field, frozen

from trnspec.errors import QuantityError
from trnspec.quantities.quantity import Interval, Quantity, choose_unit, render
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


def quotient(top: Dimension, bottom: Dimension) -> Dimension | None:
    """What one dimension over another measures, or ``None`` where the two cannot be divided."""
    return Dimension.RATIO if top is bottom else _QUOTIENTS.get((top, bottom))


@frozen(eq=False)
class Amount:
    """A value with its dimension.  Two amounts are compared by value; ``agrees`` compares what rounding leaves open.

    Attributes:
        value: In base units (B, B/s, FLOPS, s, ...), exact.
        dimension: What is measured.
        interval: What the rounding of all that went into it leaves possible, in base units.
        unit: The unit it is best shown in.
        digits: Significant digits to show.
        table: The units that ``to`` takes: those known where its figures were read.
    """

    value: Fraction
    dimension: Dimension
    interval: Interval
    unit: Unit
    digits: int = 4
    table: UnitTable = field(default=UNITS, repr=False)

    @classmethod
    def of(cls, quantity: Quantity) -> Amount:
        """The amount that a printed figure stands for."""
        return cls(
            quantity.value, quantity.dimension, quantity.interval, quantity.unit, quantity.digits, quantity.table
        )

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
        found = self.table.unit(unit, self.dimension) if isinstance(unit, str) else unit
        if found.dimension is not self.dimension:
            raise QuantityError("dimension", f"{self} measures {self.dimension.word}, {found} {found.dimension.word}")
        return float(self.value / found.factor)

    def agrees(self, other: Amount) -> bool:
        """True when rounding alone can explain the difference; ``QuantityError`` on another dimension."""
        self._same(other, "compared with")
        return self.interval.overlaps(other.interval)

    def __str__(self) -> str:
        unit = self.unit
        if self.value >= _LARGE * unit.factor and "i" not in unit.symbol:
            unit = choose_unit(self.value, self.dimension)
        return render(self.value, unit, self.digits)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __add__(self, other: object) -> Amount:
        if not isinstance(other, Amount):
            return self._refused(other, "added to")
        self._same(other, "added to")
        return self._with(self.value + other.value, self.interval + other.interval, max(self.digits, other.digits))

    def __sub__(self, other: object) -> Amount:
        if not isinstance(other, Amount):
            return self._refused(other, "subtracted from")
        self._same(other, "subtracted from")
        high = self.interval.high
        low = Fraction(0) if other.interval.high is None else max(self.interval.low - other.interval.high, Fraction(0))
        upper = None if high is None else max(high - other.interval.low, low)
        return self._with(self.value - other.value, Interval(low, upper), max(self.digits, other.digits))

    def __mul__(self, other: object) -> Amount:
        if isinstance(other, Amount):
            for a, b in ((self, other), (other, self)):
                if (a.dimension, b.dimension) in _PRODUCTS:
                    dimension = _PRODUCTS[a.dimension, b.dimension]
                    return _made(a.value * b.value, dimension, a.interval.times(b.interval), self, other)
                if b.dimension is Dimension.RATIO:
                    return a._with(a.value * b.value, a.interval.times(b.interval), a.digits)
            return self._refused(other, "multiplied by")
        if isinstance(other, bool) or not isinstance(other, (int, float, Fraction)):
            return self._refused(other, "multiplied by")
        factor = Fraction(other)
        digits = self.digits + len(str(other)) if isinstance(other, int) else self.digits
        return self._with(self.value * factor, self.interval.scaled(factor), digits)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Amount:
        if isinstance(other, Amount):
            if other.value == 0:
                raise QuantityError("dimension", f"{self} cannot be divided by nothing")
            interval = self.interval.ratio(other.interval)
            if self.dimension is other.dimension:
                return _made(self.value / other.value, Dimension.RATIO, interval, self, other)
            if (self.dimension, other.dimension) in _QUOTIENTS:
                dimension = _QUOTIENTS[self.dimension, other.dimension]
                return _made(self.value / other.value, dimension, interval, self, other)
            return self._refused(other, "divided by")
        if isinstance(other, bool) or not isinstance(other, (int, float, Fraction)):
            return self._refused(other, "divided by")
        factor = 1 / Fraction(other)
        return self._with(self.value * factor, self.interval.scaled(factor), self.digits + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and (self.dimension, self.value) == (other.dimension, other.value)

    def __hash__(self) -> int:
        return hash((self.dimension, self.value))

    def __lt__(self, other: Amount) -> bool:
        return self._same(other, "compared with") and self.value < other.value

    def __le__(self, other: Amount) -> bool:
        return self._same(other, "compared with") and self.value <= other.value

    def __gt__(self, other: Amount) -> bool:
        return self._same(other, "compared with") and self.value > other.value

    def __ge__(self, other: Amount) -> bool:
        return self._same(other, "compared with") and self.value >= other.value

    def _same(self, other: Amount, words: str) -> bool:
        if self.dimension is not other.dimension:
            mine, theirs = self.dimension.word, other.dimension.word
            raise QuantityError("dimension", f"{other} ({theirs}) cannot be {words} {self} ({mine})")
        return True

    def _refused(self, other: object, words: str) -> Amount:
        raise QuantityError("dimension", f"{self} ({self.dimension.word}) cannot be {words} {other!r}")

    def _with(self, value: Fraction, interval: Interval, digits: int) -> Amount:
        return Amount(value, self.dimension, interval, self.unit, digits, self.table)


def _made(value: Fraction, dimension: Dimension, interval: Interval, *parts: Amount) -> Amount:
    """The amount that a combination gives, to as many digits as its least precise part."""
    digits = max(3, min(p.digits for p in parts))
    table = next((p.table for p in parts if p.table is not UNITS), UNITS)
    return Amount(value, dimension, interval, choose_unit(value, dimension), digits, table)
