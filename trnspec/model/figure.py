"""A figure: a printed quantity with its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.model.annotations import Text
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Interval, Quantity

if TYPE_CHECKING:
    from trnspec.quantities.units import Unit


def _amount(other: object) -> object:
    return other.amount if isinstance(other, Figure) else other


@frozen(kw_only=True)
class Figure:
    """A quantity as printed, with what is known of where it comes from.

    In YAML a figure is a text, ``820 GB/s``, or a mapping when it has a source of its own, is derived or needs a note.
    In Python ``float(figure)`` is in base units (B, B/s, FLOPS, s), and arithmetic gives amounts or refuses.

    Attributes:
        value: The quantity as printed, with its unit. Example: 820 GB/s
        source: Who says so, when it is not the source of the document. Example: neuron-trainium-2024-02
        where: The place in the source. Example: line 24
        derived: The formula, when nobody printed the figure: it is computed and never shown as published.
        note: What a reader of the figure should know.
    """

    value: Quantity
    source: Ref[Source] | None = None
    where: Text | None = None
    derived: Text | None = None
    note: Text | None = None

    @property
    def amount(self) -> Amount:
        """The exact value with its dimension, to calculate with."""
        return Amount.of(self.value)

    @property
    def interval(self) -> Interval:
        """What the printed digits stand for, in base units."""
        return self.value.interval

    def to(self, unit: str | Unit) -> float:
        """The value in another unit of the same dimension; ``QuantityError`` for any other."""
        return self.amount.to(unit)

    def __str__(self) -> str:
        return self.value.text

    def __float__(self) -> float:
        """The value in base units."""
        return float(self.value)

    def __add__(self, other: object) -> Amount:
        return self.amount + _amount(other)

    def __sub__(self, other: object) -> Amount:
        return self.amount - _amount(other)

    def __mul__(self, other: object) -> Amount:
        return self.amount * _amount(other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Amount:
        return self.amount / _amount(other)

    def __lt__(self, other: Figure | Amount) -> bool:
        return self.amount < _compared(other)

    def __le__(self, other: Figure | Amount) -> bool:
        return self.amount <= _compared(other)

    def __gt__(self, other: Figure | Amount) -> bool:
        return self.amount > _compared(other)

    def __ge__(self, other: Figure | Amount) -> bool:
        return self.amount >= _compared(other)


def _compared(other: Figure | Amount) -> Amount:
    return other.amount if isinstance(other, Figure) else other
