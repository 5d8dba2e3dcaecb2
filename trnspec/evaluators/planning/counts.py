"""Counts of a system that are considered between two others."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_UP_TO = 16
"""All counts up to this are considered."""
_PER_OCTAVE = 8
"""Counts considered between a larger power of two and the next: their degrees have small factors."""


def considered(low: int, high: int) -> list[int]:
    """The counts between two others, without both: all up to 16, then 18, 20, ... 32, 36, ... 64, 72, ..."""
    return [*takewhile(lambda count: count < high, _after(low))]


def _after(count: int) -> Iterator[int]:
    while True:
        count += max(1, (1 << (count.bit_length() - 1)) // _PER_OCTAVE) if count >= ALL_UP_TO else 1
        yield count
