"""Stored lines of output that are compared with numbers of twelve digits, and results of any class as such lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from typing import Any

import attrs
import numpy as np

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


def number(value: object) -> str:
    """A value with twelve digits, if it is a float."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def lines(value: Any, name: str = "") -> Iterator[str]:
    """Every value in an object, by its path: attributes, items, and elements."""
    inner: Iterator[tuple[Any, Any]]
    if isinstance(value, str | int | float | None):
        yield f"{name} = {number(value)}"
    elif isinstance(value, np.ndarray):
        yield f"{name} = {' '.join(number(float(v)) for v in value.ravel())}"
    else:
        if isinstance(value, Mapping):
            inner = ((k, v) for k, v in value.items())
        elif isinstance(value, Sequence):
            inner = enumerate(value)
        else:
            inner = ((f.name, getattr(value, f.name)) for f in attrs.fields(type(value)))
        for key, one in inner:
            yield from lines(one, f"{name}.{key}" if name else str(key))


def same(expected: str, found: str, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> bool:
    """Whether two lines have the same words, and the same numbers but for rounding.

    With ``abs_tol`` rounding is relative to the largest number of a line, such as a matrix, and at least that.
    """
    some, others = (list(map(float, NUMBER.findall(line))) for line in (expected, found))
    rounding = max(abs_tol, rel_tol * max(map(abs, some))) if abs_tol and some else 0.0
    return NUMBER.sub("#", expected) == NUMBER.sub("#", found) and all(
        isclose(a, b, rel_tol=rel_tol, abs_tol=rounding) for a, b in zip(some, others, strict=False)
    )


def different(
    expected: Sequence[str], found: Sequence[str], rel_tol: float = 1e-9, abs_tol: float = 0.0
) -> list[tuple[str | None, str | None]]:
    """The pairs of lines that differ."""
    longest = range(max(len(expected), len(found)))
    pairs = [tuple(some[i] if i < len(some) else None for some in (expected, found)) for i in longest]
    return [(a, b) for a, b in pairs if a is None or b is None or not same(a, b, rel_tol, abs_tol)]
