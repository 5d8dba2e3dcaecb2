"""Buffers of programs that run one after the other."""

from __future__ import annotations

import numpy as np

from trnspec.perf.sweep.tables.program import Buffers

NUMBERS, PAIRS = (np.dtype(np.float64), 1), (np.dtype(np.int32), 2)


def test_fewer_rows_are_the_beginning_of_the_same_memory() -> None:
    """And more rows are in memory of their own; two of a kind are never in the same."""
    buffers = Buffers()
    kinds = [NUMBERS, PAIRS, NUMBERS]
    whole, some, again, more = (buffers.arrays(kinds, size) for size in (8, 5, 8, 9))

    assert [[a.shape for a in arrays] for arrays in (whole, some, more)] == [[(n,), (n, 2), (n,)] for n in (8, 5, 9)]
    assert [a.dtype for a in whole] == [dtype for dtype, _ in kinds]
    assert [a.ctypes.data for a in whole] == [a.ctypes.data for a in some] == [a.ctypes.data for a in again]
    assert not any(np.shares_memory(a, b) for a, b in zip(whole, more, strict=True))
    assert not np.shares_memory(whole[0], whole[2])
    assert buffers.number == 6
