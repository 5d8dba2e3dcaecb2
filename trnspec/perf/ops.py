"""Element-wise operations for formulas: on floats they are Python's, on arrays numpy's.

Only operations that IEEE 754 rounds correctly are used, and none whose result depends on the width of a vector unit
(no ``exp``, ``log`` or ``pow``), so that a single call and the same element of a batch give the same bits.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = Any
"""A float, or a float64 array that broadcasts with the others; conditions are bool or bool arrays."""


def where(condition: Number, then: Number, otherwise: Number) -> Number:
    """``then`` where the condition holds, else ``otherwise``; both are computed, so neither may divide by zero."""
    if condition is True or condition is False:
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


def larger(a: Number, b: Number) -> Number:
    """The larger of two numbers, element by element."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return b if b > a else a  # noqa: FURB136  # a call of max takes three times as long


def smaller(a: Number, b: Number) -> Number:
    """The smaller of two numbers, element by element."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.minimum(a, b)
    return b if b < a else a  # noqa: FURB136


def ceil(a: Number) -> Number:
    """The smallest integer not below ``a``, as a float."""
    return np.ceil(a) if isinstance(a, np.ndarray) else float(math.ceil(a))


def floor(a: Number) -> Number:
    """The largest integer not above ``a``, as a float."""
    return np.floor(a) if isinstance(a, np.ndarray) else float(math.floor(a))


MOST = 16777215.0
"""The largest exponent of :func:`power`, ``2^24 - 1``."""


def power(base: Number, n: Number, bits: int = 24) -> Number:
    """``base ** n`` by repeated squaring: the same multiplications, and so the same bits, for a float and an array.

    ``pow`` may give other bits on a vector than on a single value.

    Args:
        base: From 0 to 1.
        n: An integer from 0 to :data:`MOST`.
        bits: Binary digits of the largest exponent.
    """
    result = base * 0.0 + 1.0
    if not isinstance(n, np.ndarray):
        # The products of the selections below, without those that are not selected.
        for digit in reversed(f"{int(n):b}"):
            result = result * base if digit == "1" else result
            base = base * base
        return result
    for _ in range(bits):
        half = floor(n * 0.5)
        result = where(n - 2.0 * half > 0.5, result * base, result)
        base = base * base
        n = half
    return result


def collapsed(number: Number) -> Number:
    """A single number where all elements of an array are equal."""
    if not isinstance(number, np.ndarray) or not number.size:
        return number
    first = number.item(0)
    return number if (number != first).any() else first


def steps(n: Number) -> Number:
    """``ceil(log2(n))`` for an integer ``n``, exactly: the steps of recursive doubling among ``n`` ranks; 0 for 1 or less."""
    if not isinstance(n, np.ndarray):
        return float(math.frexp(n - 1.0)[1]) if n > 1.0 else 0.0
    mantissa, exponent = np.frexp(np.maximum(n, 1.0) - 1.0)
    return np.where(mantissa == 0.0, 0.0, exponent.astype(np.float64))
