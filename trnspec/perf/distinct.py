"""The different columns of a matrix, found by digests: sorting whole columns takes several times as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def distinct(rows: Sequence[NDArray[np.float64]] | NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the different columns, and for each column which one it equals; all where two digests are the same.

    Args:
        rows: The rows of the matrix, contiguous.
    """
    if len(rows[0]) == 1:
        return np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
    digest, shifted = np.zeros((2, len(rows[0])), dtype=np.uint64)
    for row in rows:
        digest ^= row.view(np.uint64)
        digest *= _FACTOR
        np.right_shift(digest, _SHIFT, out=shifted)
        digest ^= shifted
    first, numbers = numbered(digest)
    if all((row[first][numbers] == row).all() for row in rows):
        return first, numbers
    every = np.arange(len(digest))
    return every, every


def numbered(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the different values in order, and for each value which one it is.

    ``numpy.unique`` takes several times as long for few values, and imports ``numpy.ma``.
    """
    order = np.argsort(values, kind="stable")
    new = _first(values[order])
    numbers = np.empty(len(values), dtype=np.intp)
    numbers[order] = np.cumsum(new) - 1
    return order[new], numbers


def ascending(values: NDArray[Any]) -> NDArray[Any]:
    """The different values in order."""
    ordered: NDArray[Any] = np.sort(values, axis=None)
    chosen: NDArray[Any] = ordered[_first(ordered)]
    return chosen


def _first(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Where each of the different values in order is for the first time."""
    first: NDArray[np.bool_] = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first
