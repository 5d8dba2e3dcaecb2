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


ROUNDING = 1e-15
"""A spread that is 0 but for rounding, which differs between processors; the shortest times and rates are larger."""


def same(expected: str, found: str, rel_tol: float = 1e-9) -> bool:
    """Whether two lines have the same words, and the same numbers but for rounding."""
    numbers = zip(NUMBER.findall(expected), NUMBER.findall(found), strict=False)
    return NUMBER.sub("#", expected) == NUMBER.sub("#", found) and all(
        isclose(float(a), float(b), rel_tol=rel_tol, abs_tol=ROUNDING) for a, b in numbers
    )


def different(
    expected: Sequence[str], found: Sequence[str], rel_tol: float = 1e-9
) -> list[tuple[str | None, str | None]]:
    """The pairs of lines that differ."""
    longest = range(max(len(expected), len(found)))
    pairs = [tuple(some[i] if i < len(some) else None for some in (expected, found)) for i in longest]
    return [(a, b) for a, b in pairs if a is None or b is None or not same(a, b, rel_tol)]
