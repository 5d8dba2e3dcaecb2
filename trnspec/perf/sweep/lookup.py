"""Tables for batches: operations are evaluated once per combination of values that occurs, and looked up by rows.

The formulas are recorded (:mod:`trnspec.perf.sweep.expressions`).  An operation that depends on few columns is evaluated on an
array with an axis for each of them; a row finds its element by the positions of its own values.  With too many
combinations, an operation is evaluated for every row, with the same bits.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.sweep.columns import COUNTS, caused, reason_codes
from trnspec.perf.sweep.estimator_columns import Figures
from trnspec.perf.sweep.expressions import Expression, Recording, required
from trnspec.perf.sweep.formulas import COLUMNS, LIMITS, columns_as_choices, formulas
from trnspec.perf.sweep.program import Program
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trnspec.perf.ops import Number
    from trnspec.perf.training.estimator import Estimator

_MAX_COMBINATIONS = 1 << 18
"""Largest table of an operation; beyond that it is evaluated for every row."""
_COMBINATIONS_PER_ROW = 0.5
"""Largest table of an operation, per row of a batch that is evaluated for the first time."""
_MAX_VALUES = 256
"""Largest number of distinct values of a column that is an axis."""
_MAX_SHARED = 1 << 17
"""Most elements of tables that are expanded to the axes of others, so that rows need fewer keys."""
_ESTIMATORS = 8
"""A table by numbers of estimators is one by estimator if it has more than one over this of their elements."""
_RECORD = 4
"""Elements that are looked up together."""
_COMPILED_ROWS = 1 << 15
"""Rows of a batch from which on it is faster to make tables for it alone."""
_VALUE_LIMIT = 1 << 20
"""Values of an axis are below this."""


@define
class _Axis:
    """The values of a column, and the position of each; without a lookup an integer is its own position."""

    values: NDArray[Any]
    lookup: NDArray[np.int32] | None = None

    @property
    def usable(self) -> bool:
        """Whether there are few enough values."""
        fixed = self.lookup is None and not self.fractional
        return fixed or len(self.values) <= _MAX_VALUES

    @property
    def fractional(self) -> bool:
        """Whether values need not be whole."""
        return self.values.dtype.kind == "f"

    def find(self, column: NDArray[Any], positions: NDArray[np.int32]) -> bool:
        """Write the positions of values from 1 on; ``False`` where one of them is new."""
        if self.fractional:
            nearest = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
            np.copyto(positions, nearest, casting="unsafe")
            return bool((self.values.take(nearest) == column).all())
        if self.lookup is None:
            np.copyto(positions, column, casting="unsafe")
            return True
        # Values that are too small find the first position, too large ones the last: both are empty.
        self.lookup.take(column, mode="clip", out=positions)
        return bool(np.minimum.reduce(positions) >= 0)

    def grow(self, column: NDArray[Any]) -> None:
        """Add new values; with too many or too large ones the column is not an axis any more."""
        if self.fractional:
            self.values = np.union1d(self.values, column)
            return
        largest = max(0, int(column.max()), *self.values[-1:].tolist())
        if largest < _VALUE_LIMIT:
            present = np.zeros(largest + 1, dtype=np.bool_)
            present[self.values] = present[column] = True
            self.values = np.flatnonzero(present)
        else:
            self.values = np.arange(_MAX_VALUES + 1)
        if self.usable:
            self.lookup = np.full(int(self.values[-1]) + 2, -1, dtype=np.int32)
            self.lookup[self.values] = np.arange(len(self.values))


@define
class Tables:
    """The values of operations on the combinations that occurred so far, and the program that rows need in addition.

    Attributes:
        figures: The numbers of the estimators.
        rows: Number of rows of the batch.
        axes: The values of each column.
        names: Names of the results: parts of the time.
        program: The operations of rows; ``None`` where formulas are evaluated as they are.
    """

    figures: Figures
    rows: int
    axes: dict[str, _Axis]
    names: tuple[str, ...]
    program: Program | None = field(default=None, init=False)

    @classmethod
    def of(cls, estimators: Sequence[Estimator], rows: int, columns: dict[str, Any], parts: Sequence[str]) -> Tables:
        """The tables of a batch; ``columns`` are those of a sample of rows, from which values are collected first."""
        figures = Figures.of(estimators)
        axes = {name: _Axis(np.arange(size)) for name, size in figures.sizes.items()}
        axes["which"] = _Axis(np.arange(len(estimators)))
        for name in COLUMNS:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                axes[name] = _Axis(np.array([column]))
            elif name in COUNTS:
                axes[name] = _Axis(column[:0], np.zeros(0, dtype=np.int32))
                axes[name].grow(column)
            elif name in LIMITS:
                axes[name] = _Axis(np.arange(LIMITS[name] + 1))
            else:
                axes[name] = _Axis(np.unique(column))
        tables = cls(figures, rows, axes, ("total", *parts))
        tables.build()
        return tables

    def evaluate(self, columns: dict[str, Any], size: int) -> list[Any] | None:
        """Times, parts and codes of some rows; ``None`` where :meth:`grow` is needed before."""
        if self.program is None:
            return self._direct(columns)
        program = self.program.bound(size)
        for name in COLUMNS:
            column, axis = columns[name], self.axes[name]
            if not isinstance(column, np.ndarray):
                continue
            positions = program.columns.get(f"position {name}")
            if positions is not None:
                if not axis.find(column, positions):
                    return None
            elif name in COUNTS and np.minimum.reduce(column) < 1:
                return None
            elif axis.lookup is not None and len(axis.values) == 1 and (column != axis.values[0]).any():
                return None  # a number that the program has as a constant
        for name, array in program.columns.items():
            if not name.startswith("position "):
                np.copyto(array, columns[name])
        if "position which" in program.columns:
            np.copyto(program.columns["position which"], columns["which"], casting="unsafe")
        return program.run()

    def grow(self, columns: dict[str, Any]) -> None:
        """Add the values of these columns, which are at least 1 where they count from 1."""
        columns_of_axes = [
            (self.axes[name], columns[name]) for name in COLUMNS if isinstance(columns[name], np.ndarray)
        ]
        grown = [
            (axis, column)
            for axis, column in columns_of_axes
            if axis.usable and not axis.find(column, np.empty(len(column), dtype=np.int32))
        ]
        for axis, column in grown:
            axis.grow(column)
        if grown:
            self.build()

    def build(self) -> None:
        """Record the formulas, tabulate what depends on few columns, and compile the rest; or take them from the cache."""
        key = (self.names, *((a.usable, a.values.tobytes()) for a in self.axes.values()))
        built = self.figures.built
        if key not in built:
            # Tables pay for a large batch, and for one that is repeated, which may be repeated again.
            repeated = built.get(None) == key
            built.clear()
            if repeated or self.rows >= _COMPILED_ROWS:
                limit = _MAX_COMBINATIONS if repeated else int(_COMBINATIONS_PER_ROW * self.rows)
                limit = max(min(_MAX_COMBINATIONS, limit), self.size_of(("which",)))
                built[key] = self._compiled(limit)
            else:
                built[None] = key
        self.program = built.get(key)

    def _compiled(self, limit: int) -> Program:
        recording = Recording()
        leaves: dict[Expression, NDArray[Any]] = {}
        columns: dict[str, Any] = {}
        for name in COLUMNS:
            values = self.axes[name].values
            columns[name] = recording.column(name, values.dtype) if len(values) > 1 else values[0].item()
            if len(values) > 1:
                leaves[columns[name]] = values

        def column(axis: str, name: str, numbers: NDArray[np.float64]) -> Expression:
            expression = recording.column(name, axis=axis)
            leaves[expression] = numbers
            return expression

        results = self._results(columns | {"dp": recording.column("dp", np.int64)}, self.figures.map(column))
        return self._rowwise(results, self._tabulated(required(results), leaves, limit))

    def _results(self, columns: dict[str, Any], figures: dict[str, dict[str, Number]]) -> list[Number]:
        """Times, parts and codes."""
        choices, times, causes = formulas(
            columns_as_choices(columns | {"dp": 1}),
            Transformer(**figures["model"]),
            Machine(**figures["machine"]),
            **figures["limits"],
        )
        code = reason_codes(causes, caused(columns["dp"] != choices.dp, "rank-count"))
        return [*(getattr(times, name) for name in self.names), code]

    def _direct(self, columns: dict[str, Any]) -> list[Any] | None:
        """Times, parts and codes by the formulas as they are, which is faster than tables where rows are few."""
        if any(isinstance(columns[name], np.ndarray) and columns[name].min() < 1 for name in COUNTS):
            return None
        positions = {name: of_estimators[columns["which"]] for name, of_estimators in self.figures.positions.items()}
        positions["which"] = columns["which"]
        return self._results(columns, self.figures.map(lambda axis, _, numbers: numbers[positions[axis]]))

    @property
    def _order(self) -> tuple[str, ...]:
        """The axes of the tables; the last one is the fastest, and usually the longest."""
        return (*COLUMNS, *self.figures.sizes, "which")

    def _of(self, axes: Iterable[str]) -> frozenset[str]:
        """Some axes, without those that an estimator determines where it is among them, or where it has no more values."""
        names = frozenset(axes)
        determined = names & self.figures.sizes.keys()
        if determined and ("which" in names or self.size_of(determined) > self.size_of(("which",)) // _ESTIMATORS):
            return names - determined | {"which"}
        return names

    def _axes_of(self, expression: Expression) -> tuple[str, ...]:
        """The axes of the table of an expression, in their order."""
        axes = expression.axes if expression.function is None else self._of(expression.axes)
        return tuple(name for name in self._order if name in axes)

    def _tabulated(
        self, expressions: list[Expression], leaves: dict[Expression, NDArray[Any]], limit: int
    ) -> dict[Expression, NDArray[Any]]:
        """The values of expressions on all combinations, in arrays with all axes, where those are few."""
        tables: dict[Expression, NDArray[Any]] = {}
        for expression in expressions:
            axes = self._axes_of(expression)
            if not all(name in self.axes and self.axes[name].usable for name in expression.axes):
                continue
            if expression.function is None:
                tables[expression] = leaves[expression].reshape([-1 if name in axes else 1 for name in self._order])
                continue
            inputs = [x for x in expression.inputs if isinstance(x, Expression)]
            if self.size_of(axes) > limit or not all(x in tables for x in inputs):
                continue
            operands = [self._expanded(tables[x], axes) if isinstance(x, Expression) else x for x in expression.inputs]
            tables[expression] = np.asarray(expression.function(*operands))
        return tables

    def _expanded(self, table: NDArray[Any], axes: Iterable[str]) -> NDArray[Any]:
        """A table with the axis of estimators in place of those that it determines, where other operands have it."""
        if "which" not in axes:
            return table
        order = self._order
        dims = [i for i, name in enumerate(order) if name in self.figures.sizes and table.shape[i] > 1]
        if not dims:
            return table
        positions = np.zeros(len(self.axes["which"].values), dtype=np.intp)
        for i in dims:
            positions = positions * table.shape[i] + self.figures.positions[order[i]]
        moved = np.moveaxis(table, dims, range(-len(dims), 0))
        taken = moved.reshape(*moved.shape[: -len(dims)], -1).take(positions, axis=-1)
        shape = [1 if i in dims else size for i, size in enumerate(table.shape)]
        return taken.reshape(*shape[:-1], len(positions))

    def _rowwise(self, results: list[Any], tables: dict[Expression, NDArray[Any]]) -> Program:
        """The operations that are not tabulated, on numbers that rows look up."""
        rows = Recording()
        rebuilt: dict[Expression, Any] = {}
        needed = required(results)
        operands = chain(*(x.inputs for x in needed if x not in tables), results)
        looked_up = dict.fromkeys(x for x in operands if isinstance(x, Expression) and x in tables)
        rebuilt |= self._looked_up(rows, {x: tables[x] for x in looked_up})
        for expression in needed:
            if expression in tables:
                continue
            if expression.function is None:
                rebuilt[expression] = rows.column(expression.inputs[0], expression.dtype)
            else:
                inputs = (rebuilt[x] if isinstance(x, Expression) else x for x in expression.inputs)
                rebuilt[expression] = rows.apply(expression.function, inputs)
        return Program.of(rebuilt[x] if isinstance(x, Expression) else x for x in results)

    def _looked_up(self, rows: Recording, tables: dict[Expression, NDArray[Any]]) -> dict[Expression, Any]:
        """What rows look up in tables; a number where all elements are equal.

        Tables with the same axes are looked up together, and small ones get the axes of others: keys and cache misses are
        what a lookup costs.
        """
        values: dict[Expression, Any] = {}
        order_of_use = {x: i for i, x in enumerate(tables)}
        by_axes: dict[frozenset[str], list[Expression]] = {}
        for expression, table in tables.items():
            least = table.min()
            if least == table.max():
                values[expression] = least.item() if table.dtype.kind in "bf" else least
            else:
                axes = frozenset(name for name, size in zip(self._order, table.shape, strict=True) if size > 1)
                by_axes.setdefault(axes, []).append(expression)
        groups: list[tuple[frozenset[str], list[Expression]]] = []
        for axes, expressions in sorted(by_axes.items(), key=lambda item: -self.size_of(item[0])):
            unions = []
            for i, (other, members) in enumerate(groups):
                size = self.size_of(union := self._of(axes | other))
                if size * (len(members) + len(expressions)) <= _MAX_SHARED:
                    unions.append((size, i, union))
            if unions:
                _, i, union = min(unions, key=lambda item: item[:2])
                groups[i] = union, groups[i][1] + expressions
            else:
                groups.append((axes, expressions))
        keys = self._keys(rows, [axes for axes, _ in groups])
        for axes, expressions in groups:
            order, key = keys[axes]
            shape = [len(self.axes[name].values) if name in axes else 1 for name in self._order]
            transposed = [*map(self._order.index, order), *(i for i, n in enumerate(self._order) if n not in axes)]
            for dtype in dict.fromkeys(x.dtype for x in expressions):
                # What is needed at about the same time is looked up together.
                members = sorted((x for x in expressions if x.dtype == dtype), key=order_of_use.__getitem__)
                for begin in range(0, len(members), _RECORD):
                    part = members[begin : begin + _RECORD]
                    flat = [
                        np.broadcast_to(self._expanded(tables[x], axes), shape).transpose(transposed).reshape(-1)
                        for x in part
                    ]
                    values |= zip(part, key.records(_records(flat)), strict=False)
        return values

    def _keys(
        self, rows: Recording, groups: list[frozenset[str]]
    ) -> dict[frozenset[str], tuple[tuple[str, ...], Expression]]:
        """For each group of axes an order, the last one fastest, and the positions of rows among the combinations.

        Those of two parts of a group give those of both.  The two that most groups have in common are combined first.
        """
        names = sorted(frozenset().union(*groups))
        keys: dict[frozenset[str], tuple[tuple[str, ...], Expression]] = {
            frozenset([name]): ((name,), rows.column(f"position {name}", np.int32))
            for name in names
            if name not in self.figures.sizes
        }
        determined = [name for name in names if name in self.figures.sizes]
        for begin in range(0, len(determined), _RECORD):
            part = determined[begin : begin + _RECORD]
            record = _records([self.figures.positions[name] for name in part])
            elements = rows.column("position which", np.int32).records(record)
            keys |= {frozenset([name]): ((name,), x) for name, x in zip(part, elements, strict=False)}
        parts = {group: {frozenset([name]) for name in group} for group in groups}
        while any(len(of_group) > 1 for of_group in parts.values()):
            pairs = Counter(
                pair for of_group in parts.values() for pair in combinations(sorted(of_group, key=sorted), 2)
            )
            a, b = max(pairs, key=lambda pair: (pairs[pair], -self.size_of(pair[0] | pair[1])))
            (slow, first), (fast, second) = keys[a], keys[b]
            keys[a | b] = slow + fast, first * np.int32(self.size_of(fast)) + second
            for group, of_group in parts.items():
                if a in of_group and b in of_group:
                    parts[group] = of_group - {a, b} | {a | b}
        return {group: (order, key.astype(np.intp)) for group in groups for order, key in [keys[group]]}

    def size_of(self, axes: Iterable[str]) -> int:
        """Number of combinations of some axes."""
        return math.prod(len(self.axes[name].values) for name in axes)


def _records(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns of one type side by side, so that a row is looked up at once: one, two or four elements."""
    # A record of three would take longer than one of four.
    records = np.zeros((len(columns[0]), 1 << (len(columns) - 1).bit_length()), dtype=columns[0].dtype)
    for i, column in enumerate(columns):
        records[:, i] = column
    return records
