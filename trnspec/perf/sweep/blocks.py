"""Evaluation of the combinations of a grid: formulas on arrays that broadcast, in chunks, written to consecutive blocks.

Combinations of parallel degrees are rows, one axis of the arrays, in an order in which similar ones are neighbours.  Conditions
come first: rows, and values of other axes, of which no combination is valid are left out before anything else is computed.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from trnspec.perf.sweep.axes import Axis, Chunk, size_of, start_of, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.ops import Number

_CONSECUTIVE = 1 << 20
"""Combinations of a block."""
_CHUNK = 1 << 17
"""Combinations of a chunk: of fewer, calls of numpy take a larger part of the time; of more, arrays leave the cache."""


class Formulas(Protocol):
    """What is computed of the combinations of a grid; columns are numbers or arrays that broadcast."""

    @property
    def degrees(self) -> tuple[str, ...]:
        """The axes whose combinations are rows."""

    def invalid_degrees(self, columns: Mapping[str, Number]) -> Number:
        """Codes of rows that are invalid whatever the values of the other axes are."""

    def order(self, columns: Mapping[str, Number]) -> Sequence[NDArray[Any]]:
        """Keys by which rows are sorted, as for ``numpy.lexsort``; the last key is the same in all rows of a chunk."""

    def invalid(self, columns: Mapping[str, Number]) -> Number:
        """Codes of combinations that are invalid whatever their memory is."""

    def evaluate(
        self, columns: Mapping[str, Number], code: NDArray[np.uint8], names: Sequence[str]
    ) -> tuple[Number, dict[str, Number]]:
        """The codes of combinations, given those of :meth:`invalid`, and measures by name; of these only some matter where the code is not 0."""


def blocks(
    formulas: Formulas, axes: tuple[Axis, ...], first: int, end: int, names: Sequence[str]
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
        for whole in _chunks(formulas, [Axis(a.name, a.columns, a.places - a.places[0]) for a in some], codes):
            code = np.broadcast_to(np.asarray(formulas.invalid(whole.columns), dtype=np.uint8), whole.shape)
            codes[whole.numbers] = code.reshape(-1)
            found = whole.where(code == 0)
            if found is None:
                continue
            chunk, index = found
            code, values = formulas.evaluate(chunk.columns, code[index], names)
            numbers = chunk.numbers
            codes[numbers] = np.broadcast_to(code, chunk.shape).reshape(-1)
            for name, column in measures.items():
                column[numbers] = np.broadcast_to(values[name], chunk.shape).reshape(-1)
        yield start, codes, measures


def _chunks(formulas: Formulas, axes: Sequence[Axis], codes: NDArray[np.uint8]) -> Iterator[Chunk]:
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
    keys = [np.broadcast_to(key, len(rows)) for key in formulas.order(constants | rows.columns)]
    order = np.lexsort(keys)
    rows, last = rows.some(order), keys[-1][order]
    edges = [0, *(np.flatnonzero(np.diff(last)) + 1).tolist(), len(rows)]
    at_once = max(1, _CHUNK // math.prod(map(len, others)))
    for low, high in itertools.pairwise(edges):
        for begin in range(low, high, at_once):
            some = rows.some(slice(begin, min(high, begin + at_once)))
            # The longest axis last, along which operations are fast.
            yield from Chunk(tuple(sorted([*others, some], key=len)), constants).parts(_CHUNK)


def _rows(axes: Sequence[Axis]) -> Axis:
    """The combinations of some axes as one."""
    positions = np.unravel_index(np.arange(size_of(axes)), tuple(map(len, axes))) if axes else ()
    columns: dict[str, NDArray[Any]] = {}
    places = np.zeros(size_of(axes), dtype=np.int64)
    for axis, at in zip(axes, positions, strict=True):
        columns |= {name: column[at] for name, column in axis.columns.items()}
        places += axis.places[at]
    return Axis("", columns, places)
