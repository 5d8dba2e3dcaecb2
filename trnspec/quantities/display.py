"""Figures of one row or column in one unit: ``81,920 MiB`` and ``96 GiB`` become 80 and 96 GiB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from math import floor, log10

from attrs import frozen

from trnspec.quantities.quantity import Interval, Quantity, render
from trnspec.quantities.units import Unit, UnitTable

_READABLE = (Fraction(1, 10), Fraction(10_000))
"""The published unit is kept while all values are in this range of it."""
_PREFIX = re.compile(r"(?:[kMGTPE]i?|Ki|[mun])(?=.)")
_DIGITS = 4
"""The fewest significant digits of a figure that is converted to another unit."""


@frozen
class Displayed:
    """A figure to show next to others.

    Attributes:
        value: In base units.
        unit: The unit it was published in.
        digits: Its significant digits.
        qualifier: What precedes the number: ``~``, ``up to ``; may be empty.
        table: The units that are known where it was read.
    """

    value: Fraction
    unit: Unit
    digits: int
    qualifier: str
    table: UnitTable

    @classmethod
    def of(cls, quantity: Quantity) -> Displayed:
        """A published figure."""
        mark = quantity.qualifier.value
        qualifier = f"{mark} " if mark[-1:].isalpha() else mark
        return cls(quantity.value, quantity.unit, quantity.digits, qualifier, quantity.table)

    def text(self, unit: Unit) -> str:
        """The number in a unit, without the unit."""
        digits = self.digits if unit is self.unit else max(self.digits, _DIGITS)
        number = render(self.value, unit, digits)
        return self.qualifier + number.removesuffix(unit.symbol).rstrip()


def common_unit(figures: Sequence[Displayed]) -> Unit:
    """One unit for figures of one dimension: the published one where it suits all, else one that suits the median.

    Binary units (GiB) or decimal ones (GB) are used as in the first figure; of amounts of information, binary ones where
    one is in such a unit, so that memory in GB of one chip does not change the rows of the others.

    Args:
        figures: At least one.
    """
    first = next((f.unit for f in figures if f.unit.symbol.endswith("iB")), figures[0].unit)
    low, high = _READABLE
    if all(f.unit is first and (not f.value or low <= f.value / first.factor < high) for f in figures):
        return first
    sizes = sorted(f.value for f in figures)
    median = sizes[len(sizes) // 2]
    family = sorted((u for u in figures[0].table if _family(u) == _family(first)), key=lambda u: u.factor)
    fitting = [u for u in family if u.factor <= median]
    return fitting[-1] if fitting else family[0]


def _family(unit: Unit) -> tuple[object, str, bool]:
    """Units that differ by their prefix alone; binary and decimal prefixes are apart."""
    prefix = _PREFIX.match(unit.symbol)
    base = unit.symbol[prefix.end() :] if prefix else unit.symbol
    return unit.dimension, base, unit.symbol.removesuffix(base).endswith("i")


def interval_text(bounds: Interval, unit: Unit, digits: int) -> str:
    """An interval without its unit: ``[2.85, 2.95)``; one without an upper end ends in ``...``.

    Ends are rounded to a hundredth of the order of magnitude of its width: ``[154.01, 160.56)``, not ``[154.0096, 160.5632)``.
    """
    width = float((bounds.high - bounds.low) / unit.factor) if bounds.high is not None and bounds.low else 0.0
    places = 2 - floor(log10(width)) if width else None

    def number(value: Fraction) -> str:
        rounded = value if places is None else round(value / unit.factor, places) * unit.factor
        return render(rounded, unit, digits).removesuffix(unit.symbol).rstrip()

    return f"[{number(bounds.low)}, {'...' if bounds.high is None else number(bounds.high)})"
