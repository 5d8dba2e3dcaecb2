"""The axes of a grid of combinations, and regions of it: arrays with an axis for each axis of the grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trnspec.perf.ops import Number
from trnspec.perf.sweep.columns import SCHEDULES, WORDS


@frozen(eq=False)
class Axis:
    """Some values of an axis of a grid.

    Attributes:
        name: Its name.
        columns: The values as numbers; a schedule has two columns, its position and its chunks.
        places: What each value adds to the number of a combination.
    """

    name: str
    columns: dict[str, NDArray[Any]]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)

    def some(self, chosen: slice) -> Axis:
        """Some of the values."""
        return Axis(self.name, {name: c[chosen] for name, c in self.columns.items()}, self.places[chosen])


def axes_of(columns: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[Axis, ...]:
    """The axes of a grid, the last one fastest: for each its columns, by name."""
    axes, stride = [], 1
    for name, of_axis in reversed(list(columns.items())):
        size = len(next(iter(of_axis.values())))
        axes.append(Axis(name, {n: np.array(c) for n, c in of_axis.items()}, np.arange(0, stride * size, stride)))
        stride *= size
    return tuple(axes[::-1])


def layout_axes(values: Mapping[str, Sequence[Any]]) -> tuple[Axis, ...]:
    """The axes of a grid of layouts, by their names, the last one fastest."""
    return axes_of({name: _columns(name, of_axis) for name, of_axis in values.items()})


def _columns(name: str, values: Sequence[Any]) -> dict[str, list[float]]:
    """The values of an axis as numbers."""
    if name != "schedule":
        return {name: [_number(name, value) for value in values]}
    return {
        "schedule": [SCHEDULES.index(schedule) for schedule, _ in values],
        "interleave": [chunks for _, chunks in values],
    }


def _number(name: str, value: Any) -> float:
    """A value of an axis as a number: the position of a word, and 0 for ``None``."""
    if name in WORDS:
        return WORDS[name].index(value)
    return 0 if value is None else value + 0


def start_of(axes: Iterable[Axis]) -> int:
    """Number of the first combination of some axes."""
    return sum(int(axis.places[0]) for axis in axes)


def from_zero(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Axes of which the first combination has the number 0, so that numbers are positions in arrays."""
    return tuple(Axis(axis.name, axis.columns, axis.places - axis.places[0]) for axis in axes)


def within(axes: tuple[Axis, ...], first: int, end: int, most: int) -> Iterator[tuple[Axis, ...]]:
    """Some values of axes, with consecutive numbers in order, that together are the combinations with some numbers.

    Args:
        axes: The axes of a grid, in the order in which combinations are numbered.
        first: The first number.
        end: The number after the last.
        most: Combinations of each, about.
    """
    start, size = start_of(axes), math.prod(map(len, axes))
    if first <= start and start + size <= end and size <= most:
        yield axes
        return
    axis = next((axis for axis in axes if len(axis) > 1), None)
    if axis is None or end <= start or start + size <= first:
        return
    of_value = size // len(axis)
    at_once = max(1, most // of_value)
    # Values of which all combinations are included, and one on either side of which some are.
    low, high = max(0, -((start - first) // of_value)), min(len(axis), (end - start) // of_value)
    cuts = [max(0, low - 1), *range(low, high, at_once), max(low, high), min(len(axis), max(low, high) + 1)]
    for begin, until in pairwise(cuts):
        if begin < until:
            some = tuple(a.some(slice(begin, until)) if a is axis else a for a in axes)
            yield from within(some, first, end, most)


@frozen
class Region:
    """Evaluated combinations; arrays broadcast to an axis for each varying axis of the grid, the last one for rows.

    Attributes:
        which: Position of the estimator.
        places: For each axis what its positions add to the number of a combination.
        code: Codes of reasons such as :data:`~trnspec.perf.sweep.columns.REASONS`, 0 where there is a time.
        time: Time of a step [s], or what else is to be small, also where the code is not 0.
        memory: Memory of the rank that needs the most [B]; ``None`` where it was not computed.
        part: A part of the time, or another measure, by its name.
    """

    which: int
    places: tuple[NDArray[np.int64], ...]
    code: NDArray[np.uint8]
    time: Number
    memory: Number
    part: Callable[[str], Number]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape to which arrays broadcast."""
        return tuple(map(len, self.places))

    def selected(self, mask: NDArray[np.bool_]) -> list[NDArray[Any]]:
        """Numbers, times and memory of the combinations at which a mask holds, which broadcasts as well."""
        memory = 0.0 if self.memory is None else self.memory
        shape = np.broadcast_shapes(np.shape(mask), np.shape(self.time), np.shape(memory))
        # Finding them in an array with one axis is many times as fast.
        at = np.unravel_index(np.flatnonzero(np.broadcast_to(mask, shape)), shape)
        time, needs = (np.broadcast_to(number, shape)[at] for number in (self.time, memory))
        number = np.zeros(len(time), dtype=np.int64)
        for places, size, positions in zip(self.places, shape, at, strict=True):
            if size > 1 or len(places) == 1:
                number += places[positions]
        others = sums([places for places, size in zip(self.places, shape, strict=True) if size == 1 < len(places)])
        return [(number[:, None] + others).reshape(-1), time.repeat(len(others)), needs.repeat(len(others))]


def sums(places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The numbers of combinations in order: the sums of what the positions of each axis add."""
    found = np.zeros(1, dtype=np.int64)
    for of_axis in places:
        found = (found[:, None] + of_axis).reshape(-1)
    return found
