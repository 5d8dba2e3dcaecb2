"""The axes of a grid of combinations, and parts of a grid as columns that broadcast against each other."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from trnspec.perf.sweep.columns import SCHEDULES, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trnspec.perf.ops import Number


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

    def some(self, chosen: Any) -> Axis:
        """Some of the values, by a slice, positions or a mask."""
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


def size_of(axes: Iterable[Axis]) -> int:
    """Number of combinations of some axes."""
    return math.prod(map(len, axes))


def within(axes: tuple[Axis, ...], first: int, end: int, most: int) -> Iterator[tuple[Axis, ...]]:
    """Some values of axes, with consecutive numbers in order, that together are the combinations with some numbers.

    Args:
        axes: The axes of a grid, in the order in which combinations are numbered.
        first: The first number.
        end: The number after the last.
        most: Combinations of each, about.
    """
    start, size = start_of(axes), size_of(axes)
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


@frozen(eq=False)
class Chunk:
    """Some values of the axes of a grid; arrays have an axis for each, and broadcast.

    Attributes:
        axes: The axes that vary, and the rows: combinations of several axes as one.
        constants: The columns of the others.
    """

    axes: tuple[Axis, ...]
    constants: dict[str, float]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape to which columns broadcast."""
        return tuple(map(len, self.axes))

    @property
    def columns(self) -> dict[str, Number]:
        """The columns by name: a number where all values are equal, else an array."""
        found: dict[str, Number] = dict(self.constants)
        for i, axis in enumerate(self.axes):
            shape = [1] * len(self.axes)
            shape[i] = len(axis)
            found |= {name: collapsed(column.reshape(shape)) for name, column in axis.columns.items()}
        return found

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the combinations, flat: the sums of what the values of each axis add."""
        found = np.zeros(1, dtype=np.int64)
        for axis in self.axes:
            found = (found[:, None] + axis.places).reshape(-1)
        return found

    def where(self, valid: NDArray[np.bool_]) -> tuple[Chunk, Any] | None:
        """The values that are valid in some combination, and an index that selects them; ``None`` if nothing is valid."""
        every = range(len(self.axes))
        kept = [np.flatnonzero(valid.any(axis=tuple(j for j in every if j != i))) for i in every]
        if not all(map(len, kept)):
            return None
        if all(len(some) == len(axis) for some, axis in zip(kept, self.axes, strict=True)):
            return self, ...
        axes = tuple(axis.some(some) for axis, some in zip(self.axes, kept, strict=True))
        return evolve(self, axes=axes), np.ix_(*kept)

    def parts(self, most: int) -> Iterator[Chunk]:
        """The chunk in halves of its longest axis, until each has at most some combinations."""
        if size_of(self.axes) <= most:
            yield self
            return
        i = max(range(len(self.axes)), key=lambda i: len(self.axes[i]))
        middle = len(self.axes[i]) // 2
        for half in (slice(middle), slice(middle, None)):
            yield from evolve(self, axes=(*self.axes[:i], self.axes[i].some(half), *self.axes[i + 1 :])).parts(most)


def collapsed(number: Number) -> Number:
    """A single number where all elements of an array are equal."""
    if not isinstance(number, np.ndarray):
        return number
    first = number.item(0)
    return number if (number != first).any() else first
