"""The programs of a batch as machine code: one pass over its columns, then one over the rows of each kind of layouts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define
from numpy.typing import NDArray

from trnspec.perf.cache_lines import in_lines
from trnspec.perf.llvm import LANES
from trnspec.perf.sweep.columns import COUNTS
from trnspec.perf.sweep.expressions import Expression, Recording, replaced, required
from trnspec.perf.sweep.formulas import COLUMNS
from trnspec.perf.sweep.tables.axes import Axis
from trnspec.perf.sweep.tables.machine_code import Library, Order, Routine
from trnspec.perf.sweep.tables.program import REJECTED, is_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.sweep.expressions import Operand
    from trnspec.perf.sweep.tables.program import Translation


@define
class Compiled:
    """The programs of a batch as machine code.

    Attributes:
        axes: The values of each column.
        layouts: Code, number of the kind, whether a value is invalid or new, and the words of each row.
        kinds: Times and their parts; the rows of the number after the last one have none.
        order: Sorts rows by their kind.
        columns: The columns that are read, and their types.
        words: Names of the words.
        fractions: By column of numbers that are not whole the bits of their positions, which are found before.
    """

    axes: Mapping[str, Axis]
    layouts: Routine
    kinds: list[Routine]
    order: Order
    columns: dict[str, np.dtype[Any]]
    words: list[str]
    fractions: dict[str, NDArray[np.int64]]

    @classmethod
    def of(
        cls,
        axes: Mapping[str, Axis],
        translations: Sequence[Translation],
        layouts: Sequence[Operand],
        kinds: Mapping[int, Sequence[Operand]],
    ) -> Compiled:
        """Compile programs.

        Args:
            axes: The values of each column.
            translations: How columns become words.
            layouts: Codes and features, from words and columns.
            kinds: Times and their parts by features, of which layouts may have fewer; the last one is for all.
        """
        recording = Recording()
        words: dict[str, Any] = {}
        by_column: dict[str, list[tuple[str, Any]]] = {}
        for name, word, bits in translations:
            by_column.setdefault(name, []).append((word, bits))
        for name, parts in by_column.items():
            found = _positions(recording.column(name, np.int64), axes[name], [bits for _, bits in parts])
            for (word, _), part in zip(parts, found, strict=True):
                words[word] = words[word] | part if word in words else part
        code, features = replaced(recording, layouts, words)
        place = np.full(REJECTED + 1, len(kinds) - 1, dtype=np.uint8)
        for number, kind in reversed([*enumerate(kinds)]):
            place[[features for features in range(REJECTED) if not features & ~kind]] = number
        place[REJECTED] = len(kinds)
        key = features.of(place) if isinstance(features, Expression) else place[features]
        read = {x for x in required(chain(layouts, *kinds.values())) if x.function is None}
        rowwise = {x.inputs[0]: x.dtype for x in read if x.inputs[0] not in words}
        bad = [word < 0 for word in words.values()]
        bad += [recording.column(name, dtype) < 1 for name, dtype in rowwise.items() if name in COUNTS]
        results = [code, key, reduce(np.logical_or, bad, False), *words.values()]  # noqa: FBT003
        columns = {x.inputs[0]: x.dtype for x in required(results) if x.function is None} | rowwise

        library = Library()
        of_layouts = library.routine(results, indexed=False)
        of_kinds = [library.routine(times, indexed=True) for times in kinds.values()]
        order = library.compile(len(kinds) + 1)
        fractions = {name: np.asarray(bits) for name, _, bits in translations if axes[name].fractional}
        return cls(axes, of_layouts, of_kinds, order, columns, [*words], fractions)

    def evaluate(self, columns: Mapping[str, Any], times: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8] | None:
        """Write times and parts of valid rows, and return the codes of all; ``None`` where a value is invalid or new."""
        size = len(times[0])
        others = (name for name in (*COLUMNS, "which") if name not in self.columns)
        if not all(is_known(name, self.axes[name], columns[name]) for name in others):
            return None
        taken = {name: self._column(name, columns[name], size) for name in self.columns}
        if size < LANES:
            taken = {name: np.resize(column, LANES) for name, column in taken.items()}
        length = max(size, LANES)
        code, key, bad = (np.empty(length, dtype=np.uint8) for _ in range(3))
        taken |= {name: np.empty(length, dtype=np.int64) for name in self.words}
        self.layouts.run(taken, [code, key, bad, *(taken[name] for name in self.words)], None, length)
        if bad.any():
            return None
        rows, ends = self.order.sorted(key[:size])
        for kind, begin, end in zip(self.kinds, [0, *ends], ends, strict=False):
            if begin < end:
                some = rows[begin:end]
                some = some if len(some) >= LANES else np.resize(some, LANES)
                kind.run(taken, times, some, len(some))
        return code[:size]

    def _column(self, name: str, column: Any, size: int) -> NDArray[Any]:
        """A column as machine code reads it."""
        if name in self.fractions:
            positions = np.empty(size, dtype=np.int64)
            self.axes[name].find(column, self.fractions[name], positions)
            return positions
        return np.ascontiguousarray(np.broadcast_to(column, (size,)), dtype=self.columns[name])


def _positions(column: Any, axis: Axis, bits: Sequence[Any]) -> list[Any]:
    """The position of a value on an axis, as bits of some words; negative for a value that is not on it."""
    if axis.fractional:
        return [column]
    if not isinstance(bits[0], np.ndarray):
        parts: list[Any] = [column << shift for shift in bits]
    else:
        # The bits of all words side by side, so that a row is looked up at once.
        records = in_lines((len(bits[0]), 1 << (len(bits) - 1).bit_length()), np.int64)
        records[:, : len(bits)] = np.transpose(bits)
        parts = np.minimum(np.maximum(column, 0), len(records) - 1).records(records)[: len(bits)]
    if not axis.fixed:
        return parts
    within = (column >= 0) & (column < len(axis.values))
    return [np.where(within, part, np.int64(-1)) for part in parts]
