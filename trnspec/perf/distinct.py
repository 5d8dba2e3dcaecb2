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
    _, first, numbers = np.unique(digest, return_index=True, return_inverse=True)
    if all((row[first][numbers] == row).all() for row in rows):
        return first, numbers.reshape(-1)
    every = np.arange(len(digest))
    return every, every


def ascending(values: NDArray[Any]) -> NDArray[Any]:
    """The different values in order; ``numpy.unique`` imports ``numpy.ma``, which takes longer than a small search."""
    ordered: NDArray[Any] = np.sort(values, axis=None)
    first: NDArray[np.bool_] = np.ones(ordered.size, dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    chosen: NDArray[Any] = ordered[first]
    return chosen
