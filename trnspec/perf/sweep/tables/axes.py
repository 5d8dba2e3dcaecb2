"""The values of columns as axes of tables: a row finds the position of its value."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define
from numpy.typing import NDArray

MAX_VALUES = 256
"""Largest number of distinct values of a column that is an axis."""
VALUE_LIMIT = 1 << 20
"""Values of an axis are below this."""


@define
class Axis:
    """The values of a column; those of a fixed one are all integers below their number.

    Attributes:
        values: The values, sorted.
        fixed: Whether the position of a value is the value.
    """

    values: NDArray[Any]
    fixed: bool = False

    @property
    def usable(self) -> bool:
        """Whether there are few enough values."""
        return self.fixed or len(self.values) <= MAX_VALUES

    @property
    def fractional(self) -> bool:
        """Whether values need not be whole."""
        return self.values.dtype.kind == "f"

    def knows(self, column: NDArray[Any]) -> bool:
        """Whether all values of a column are on the axis."""
        if self.fixed:
            return True
        nearest = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return bool((self.values.take(nearest) == column).all())

    def bits(self, shift: int) -> np.int64 | NDArray[np.int64]:
        """For each value its position in bits of a word, -1 for others; or only the shift, where a value is its position."""
        if self.fixed:
            return np.int64(shift)
        positions = np.arange(len(self.values), dtype=np.int64) << shift
        if self.fractional:
            return positions
        # Values that are too small find the first element, too large ones the last.
        bits = np.full(int(self.values[-1]) + 2, -1, dtype=np.int64)
        bits[self.values] = positions
        return bits

    def find(self, column: NDArray[Any], bits: np.int64 | NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Write the positions of values, as bits; -1 for one that is new."""
        if not isinstance(bits, np.ndarray):
            np.left_shift(column, bits, out=out, casting="unsafe")
        elif self.fractional:
            nearest = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
            bits.take(nearest, out=out, mode="clip")
            out[self.values.take(nearest) != column] = -1
        else:
            bits.take(column, out=out, mode="clip")

    def grow(self, column: NDArray[Any]) -> None:
        """Add new values; with too many or too large ones the column is not an axis any more."""
        if self.fractional:
            self.values = np.union1d(self.values, column)
            return
        largest = max(0, int(column.max()), *self.values[-1:].tolist())
        if largest < VALUE_LIMIT:
            present = np.zeros(largest + 1, dtype=np.bool_)
            present[self.values] = present[column] = True
            self.values = np.flatnonzero(present)
        else:
            self.values = np.arange(MAX_VALUES + 1)
