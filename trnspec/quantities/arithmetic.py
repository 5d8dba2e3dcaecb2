"""Comparison, arithmetic and formatting for everything that has an exact amount."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trnspec.quantities.amount import Amount
    from trnspec.quantities.units import Unit


class Measured:
    """Base of printed values: to calculate with one is to calculate with its ``amount``.

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
        return self.amount.to(unit)

    def agrees(self, other: Amount | Measured | str) -> bool:
        """True if rounding alone can explain the difference: the intervals overlap.

        Raises:
            QuantityError: ``other`` is not a quantity of the same dimension.
        """
        return self.amount.agrees(other)

    def __float__(self) -> float:
        """The value in base units."""
        return float(self.amount)

    def __add__(self, other: object) -> Amount:
        return self.amount + other

    def __radd__(self, other: object) -> Amount:
        return self.amount.__radd__(other)

    def __sub__(self, other: object) -> Amount:
        return self.amount - other

    def __rsub__(self, other: object) -> Amount:
        return self.amount.__rsub__(other)

    def __mul__(self, other: object) -> Amount:
        return self.amount * other

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Amount:
        return self.amount / other

    def __rtruediv__(self, other: object) -> Amount:
        return self.amount.__rtruediv__(other)

    def __lt__(self, other: Amount | Measured | str) -> bool:
        return self.amount < other

    def __le__(self, other: Amount | Measured | str) -> bool:
        return self.amount <= other

    def __gt__(self, other: Amount | Measured | str) -> bool:
        return self.amount > other

    def __ge__(self, other: Amount | Measured | str) -> bool:
        return self.amount >= other
