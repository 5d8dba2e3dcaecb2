"""Arrays that begin with a cache line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINE = 64
"""Bytes of a cache line."""


def in_lines(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros that begins with a cache line, so that no vector or record of a power of two of bytes is on two lines."""
    length = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(length + LINE, dtype=np.uint8)
    begin = -memory.ctypes.data % LINE
    array: NDArray[Any] = memory[begin : begin + length].view(dtype).reshape(shape)
    return array
