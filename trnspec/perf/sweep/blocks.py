"""Grids of combinations, evaluated by formulas on arrays that broadcast, in chunks, written to consecutive blocks.

Combinations of parallel degrees are rows, one axis of the arrays.  Conditions come first: rows, and values of other axes, of
which no combination is valid are left out before anything else is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from trnspec.perf.ops import Number, collapsed

_CONSECUTIVE = 1 << 22
"""Combinations of a block, whose arrays have 32 MiB for each measure: of fewer, the chunks have few rows each."""
_CHUNK = 1 << 17
"""Combinations of a chunk: of fewer, calls of numpy take a larger part of the time; of more, arrays leave the cache."""


@frozen(eq=False)
class AxisValues:
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

    def some(self, chosen: Any) -> AxisValues:
        """Some of the values, by a slice, positions or a mask."""
        return AxisValues(self.name, {name: c[chosen] for name, c in self.columns.items()}, self.places[chosen])


def axes_of(columns: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[AxisValues, ...]:
    """The axes of a grid, the last one fastest: for each its columns, by name."""
    axes, stride = [], 1
    for name, of_axis in reversed(list(columns.items())):
        size = len(next(iter(of_axis.values())))
        axes.append(AxisValues(name, {n: np.array(c) for n, c in of_axis.items()}, np.arange(0, stride * size, stride)))
        stride *= size
    return tuple(axes[::-1])


def combination(values: Mapping[str, Sequence[Any]], number: int) -> dict[str, Any]:
    """The values of one combination of a grid, by its number, the last axis fastest."""
    found = {}
    for name, of_axis in reversed(list(values.items())):
        number, position = divmod(number, len(of_axis))
        found[name] = of_axis[position]
    return found


def columns_at(axes: Sequence[AxisValues], numbers: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The columns of some combinations of a grid, by their numbers."""
    positions = np.unravel_index(numbers, tuple(map(len, axes)))
    return {name: column[at] for axis, at in zip(axes, positions, strict=True) for name, column in axis.columns.items()}


def start_of(axes: Iterable[AxisValues]) -> int:
    """Number of the first combination of some axes."""
    return sum(int(axis.places[0]) for axis in axes)


def size_of(axes: Iterable[AxisValues]) -> int:
    """Number of combinations of some axes."""
    return math.prod(map(len, axes))


def within(axes: tuple[AxisValues, ...], first: int, end: int, most: int) -> Iterator[tuple[AxisValues, ...]]:
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
    for begin, until in itertools.pairwise(cuts):
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

    axes: tuple[AxisValues, ...]
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
        """The values that are valid in some combination, and an index that selects them; ``None`` if nothing is valid.

        An axis on which validity does not depend has length 1 in the array and in the index.
        """
        every = range(len(self.axes))
        kept = [np.flatnonzero(valid.any(axis=tuple(j for j in every if j != i))) for i in every]
        if not all(map(len, kept)):
            return None
        if tuple(map(len, kept)) == valid.shape:
            return self, ...
        axes = tuple(a if n == 1 else a.some(k) for a, n, k in zip(self.axes, valid.shape, kept, strict=True))
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


class Formulas(Protocol):
    """Results of the combinations of a grid; columns are numbers or arrays that broadcast."""

    @property
    def degrees(self) -> tuple[str, ...]:
        """The axes whose combinations are rows."""

    def invalid_degrees(self, columns: Mapping[str, Number]) -> Number:
        """Codes of rows that are invalid whatever the values of the other axes are."""

    @property
    def conditions(self) -> Sequence[Callable[[Mapping[str, Number]], Number]]:
        """Codes of combinations that are invalid whatever their memory is; each is computed of what the ones before leave."""

    def evaluate(
        self, columns: Mapping[str, Number], code: NDArray[np.uint8], names: Sequence[str]
    ) -> tuple[Number, dict[str, Number]]:
        """The codes of combinations, given those of :attr:`conditions`, and measures by name; of these only some matter where the code is not 0."""


def blocks(
    formulas: Formulas, axes: tuple[AxisValues, ...], first: int, end: int, names: Sequence[str]
) -> Iterator[tuple[int, NDArray[np.uint8], dict[str, NDArray[np.float64]]]]:
    """Consecutive combinations with some numbers: the first number, codes, and measures.

    A measure is 0 where nothing was computed.

    Args:
        formulas: What is computed.
        axes: The axes of the grid, in the order in which combinations are numbered.
        first: The first number.
        end: The number after the last.
        names: The measures.
    """
    for some in within(axes, first, end, _CONSECUTIVE):
        start, size = start_of(some), size_of(some)
        codes = np.zeros(size, dtype=np.uint8)
        measures = {name: np.zeros(size) for name in names}
        for whole in _chunks(formulas, [AxisValues(a.name, a.columns, a.places - a.places[0]) for a in some], codes):
            found = _valid(formulas, whole, codes)
            if found is None:
                continue
            chunk, code = found
            code, values = formulas.evaluate(chunk.columns, code, names)
            numbers = chunk.numbers
            codes[numbers] = np.broadcast_to(code, chunk.shape).reshape(-1)
            for name, column in measures.items():
                column[numbers] = np.broadcast_to(values[name], chunk.shape).reshape(-1)
        yield start, codes, measures


def _valid(formulas: Formulas, chunk: Chunk, codes: NDArray[np.uint8]) -> tuple[Chunk, NDArray[np.uint8]] | None:
    """The values of a chunk that meet all conditions in some combination, and the codes, which are written; ``None`` without any."""
    code = np.zeros((1,) * len(chunk.axes), dtype=np.uint8)
    for condition in formulas.conditions:
        code = np.where(code == 0, np.asarray(condition(chunk.columns), dtype=np.uint8), code)
        codes[chunk.numbers] = np.broadcast_to(code, chunk.shape).reshape(-1)
        found = chunk.where(code == 0)
        if found is None:
            return None
        chunk, index = found
        code = code[index]
    return chunk, np.broadcast_to(code, chunk.shape)


def _chunks(formulas: Formulas, axes: Sequence[AxisValues], codes: NDArray[np.uint8]) -> Iterator[Chunk]:
    """The combinations with valid degrees in chunks; the codes of the others are written."""
    constants = {name: column[0].item() for axis in axes if len(axis) == 1 for name, column in axis.columns.items()}
    others = sorted((a for a in axes if a.name not in formulas.degrees and len(a) > 1), key=len)
    rows = _rows([axis for axis in axes if axis.name in formulas.degrees and len(axis) > 1])
    code = np.broadcast_to(np.asarray(formulas.invalid_degrees(constants | rows.columns), np.uint8), len(rows))
    if (wrong := code != 0).any():
        numbers = Chunk((rows.some(wrong), *others), {}).numbers
        codes[numbers] = np.repeat(code[wrong], len(numbers) // np.count_nonzero(wrong))
    rows = rows.some(~wrong)
    if not len(rows):
        return
    at_once = max(1, _CHUNK // math.prod(map(len, others)))
    for begin in range(0, len(rows), at_once):
        some = rows.some(slice(begin, begin + at_once))
        # The longest axis last, along which operations are fast.
        yield from Chunk(tuple(sorted([*others, some], key=len)), constants).parts(_CHUNK)


def _rows(axes: Sequence[AxisValues]) -> AxisValues:
    """The combinations of some axes as one."""
    positions = np.unravel_index(np.arange(size_of(axes)), tuple(map(len, axes))) if axes else ()
    columns: dict[str, NDArray[Any]] = {}
    places = np.zeros(size_of(axes), dtype=np.int64)
    for axis, at in zip(axes, positions, strict=True):
        columns |= {name: column[at] for name, column in axis.columns.items()}
        places += axis.places[at]
    return AxisValues("", columns, places)
