"""Tables for batches: operations are evaluated once per combination of values that occurs, and looked up by rows.

The formulas are recorded (:mod:`trnspec.perf.sweep.expressions`).  An operation that depends on few columns is evaluated on an
array with an axis for each of them; a row finds its element by the positions of its own values.  With too many
combinations, an operation is evaluated for every row, with the same bits.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.sweep import keys, machine_code
from trnspec.perf.sweep.columns import COUNTS, Choices, caused, reason_codes
from trnspec.perf.sweep.estimator_columns import Figures
from trnspec.perf.sweep.expressions import Expression, Recording, replaced, required
from trnspec.perf.sweep.formulas import (
    COLUMNS,
    FEATURES,
    LIMITS,
    columns_as_choices,
    features,
    formulas,
    without_features,
)
from trnspec.perf.sweep.program import NEAR, REJECTED, Buffers, MachineCode, Program, Programs, Translation
from trnspec.perf.training.step import step_from_costs
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trnspec.perf.ops import Number
    from trnspec.perf.sweep.keys import Field
    from trnspec.perf.training.costs import Costs
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
_FOUND = 8192
"""Rows whose positions on axes are found at once."""
_SEPARATE = 1 << 15
"""Largest tables that are looked up one by one."""
_KINDS = 14
"""Most kinds of layouts that have programs of their own: with the others and the invalid ones, 4 bits of a sort key."""
_KIND_ROWS = 1 << 16
"""Rows of a batch for each kind of layouts that has a program of its own."""
_RARE = 0.01
"""Share of the rows below which a kind of layouts has no program of its own."""
_COMPILED_ROWS = 1 << 15
"""Rows of a batch from which on it is faster to make tables for it alone."""
_VALUE_LIMIT = 1 << 20
"""Values of an axis are below this."""


@define
class _Axis:
    """The values of a column; those of a fixed one are all integers below their number.

    Attributes:
        values: The values, sorted.
        fixed: Whether the position of a value is the value.
    """

    values: NDArray[Any]
    fixed: bool = False

    @property
    def usable(self) -> bool:
        """Whether there are few enough values."""
        return self.fixed or len(self.values) <= _MAX_VALUES

    @property
    def fractional(self) -> bool:
        """Whether values need not be whole."""
        return self.values.dtype.kind == "f"

    def knows(self, column: NDArray[Any]) -> bool:
        """Whether all values of a column are on the axis."""
        if self.fixed:
            return True
        nearest = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return bool((self.values.take(nearest) == column).all())

    def bits(self, shift: int) -> np.int64 | NDArray[np.int64]:
        """For each value its position in bits of a word, -1 for others; or only the shift, where a value is its position."""
        if self.fixed:
            return np.int64(shift)
        positions = np.arange(len(self.values), dtype=np.int64) << shift
        if self.fractional:
            return positions
        # Values that are too small find the first element, too large ones the last.
        bits = np.full(int(self.values[-1]) + 2, -1, dtype=np.int64)
        bits[self.values] = positions
        return bits

    def find(self, column: NDArray[Any], bits: np.int64 | NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Write the positions of values, as bits; -1 for one that is new."""
        if not isinstance(bits, np.ndarray):
            np.left_shift(column, bits, out=out, casting="unsafe")
        elif self.fractional:
            nearest = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
            bits.take(nearest, out=out, mode="clip")
            out[self.values.take(nearest) != column] = -1
        else:
            bits.take(column, out=out, mode="clip")

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


@define
class Tables:
    """The values of operations on the combinations that occurred so far, and the program that rows need in addition.

    Attributes:
        figures: The numbers of the estimators.
        rows: Number of rows of the batch.
        axes: The values of each column.
        names: Names of the results: parts of the time.
        programs: The operations of rows; ``None`` where formulas are evaluated as they are.
        scratch: Arrays of bits.
    """

    figures: Figures
    rows: int
    axes: dict[str, _Axis]
    names: tuple[str, ...]
    programs: Programs | None = field(default=None, init=False)
    scratch: dict[str, NDArray[np.int64]] = field(factory=dict, init=False)

    @classmethod
    def of(cls, estimators: Sequence[Estimator], rows: int, columns: dict[str, Any], parts: Sequence[str]) -> Tables:
        """The tables of a batch; ``columns`` are those of a sample of rows, from which values are collected first."""
        figures = Figures.of(estimators)
        axes = {name: _Axis(np.arange(size), fixed=True) for name, size in figures.sizes.items()}
        axes["which"] = _Axis(np.arange(len(estimators)), fixed=True)
        for name in COLUMNS:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                axes[name] = _Axis(np.array([column]))
            elif name in COUNTS:
                axes[name] = _Axis(column[:0])
                axes[name].grow(column)
            elif name in LIMITS:
                axes[name] = _Axis(np.arange(LIMITS[name] + 1), fixed=True)
            else:
                axes[name] = _Axis(np.unique(column))
        tables = cls(figures, rows, axes, ("total", *parts))
        tables.build(columns)
        return tables

    def evaluate(self, columns: dict[str, Any], size: int) -> list[Any] | None:
        """Times, parts and codes of some rows; ``None`` where :meth:`grow` is needed before."""
        if self.programs is None:
            return self._direct(columns)
        words: dict[str, NDArray[Any]] = {}
        code, features = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8)
        for begin in range(0, size, _FOUND):
            at = slice(begin, min(size, begin + _FOUND))
            part = {name: column[at] if isinstance(column, np.ndarray) else column for name, column in columns.items()}
            found = self._words(self.programs.words, part, at.stop - begin)
            if found is None:
                return None
            code[at], features[at] = self.programs.layout(part | found, at.stop - begin)
            for name, bits in found.items():
                words.setdefault(name, self._array(f"all {name}", size))[at] = bits
        return [*self.programs.times(columns | words, features, self._near(columns["which"])), code]

    def by_machine_code(self, columns: dict[str, Any], size: int) -> list[Any] | None:
        """Times, parts and codes of some rows; ``None`` without machine code, or where columns must be checked or grown."""
        code = None if self.programs is None else self.programs.code
        if code is None or size < machine_code.LANES:
            return None
        taken: dict[str, NDArray[Any]] = {}
        for name, dtype in code.columns.items():
            column: Any = columns[name]
            axis = self.axes.get(name)
            if axis is not None and axis.fractional and axis.usable and isinstance(column, np.ndarray):
                bits = next(bits for of_axis, _, bits in self.programs.words if of_axis == name)
                column, fractions = np.empty(size, dtype=np.int64), column
                axis.find(fractions, bits, column)
            taken[name] = np.ascontiguousarray(np.broadcast_to(column, (size,)), dtype=dtype)
        if not all(self._known(name, columns[name]) for name in COLUMNS if name not in code.columns):
            return None
        return code.evaluate(taken, size)

    def _known(self, name: str, column: Any) -> bool:
        """Whether a column on which no operation depends has valid values, and those that were recorded."""
        if not isinstance(column, np.ndarray):
            return True
        axis = self.axes[name]
        if len(axis.values) == 1:
            return bool((column == axis.values[0]).all())
        return column.min() >= (name in COUNTS) and column.max() <= LIMITS.get(name, np.inf)

    def _near(self, which: Any) -> Any:
        """Numbers of rows that are equal where estimators are next to each other, so that elements of tables are."""
        if not isinstance(which, (np.ndarray, Expression)):
            return np.uint16(0)
        narrow = max(0, (len(self.axes["which"].values) - 1).bit_length() - NEAR)
        return (which >> narrow if narrow else which).astype(np.uint16)

    def _words(
        self, translations: Sequence[Translation], columns: dict[str, Any], size: int
    ) -> dict[str, NDArray[Any]] | None:
        """The positions of the values of rows on axes, as bits of words; ``None`` where one is new."""
        known = {name for name, _, _ in translations}
        for name in COLUMNS:
            column, axis = columns[name], self.axes[name]
            if not isinstance(column, np.ndarray) or name in known:
                continue
            if name in COUNTS and np.minimum.reduce(column) < 1:
                return None
            if not axis.fixed and len(axis.values) == 1 and (column != axis.values[0]).any():
                return None  # a number that the program has as a constant
        words: dict[str, NDArray[Any]] = {}
        part = self._array("part", size)
        for name, word, bits in translations:
            if word in words:
                self.axes[name].find(columns[name], bits, part)
                np.bitwise_or(words[word], part, out=words[word])
            else:
                words[word] = self._array(word, size)
                self.axes[name].find(columns[name], bits, words[word])
        return None if any(np.minimum.reduce(word) < 0 for word in words.values()) else words

    def _array(self, name: str, size: int) -> NDArray[np.int64]:
        """An array for bits of rows, which is used again."""
        array = self.scratch.get(name)
        if array is None or len(array) < size:
            array = self.scratch[name] = np.empty(size, dtype=np.int64)
        return array[:size]

    def grow(self, columns: dict[str, Any]) -> None:
        """Add the values of these columns, which are at least 1 where they count from 1."""
        columns_of_axes = [
            (self.axes[name], columns[name]) for name in COLUMNS if isinstance(columns[name], np.ndarray)
        ]
        grown = [(axis, column) for axis, column in columns_of_axes if axis.usable and not axis.knows(column)]
        for axis, column in grown:
            axis.grow(column)
        if grown:
            self.build(columns)

    def build(self, columns: dict[str, Any]) -> None:
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
                built[key] = self._compiled(limit, columns)
            else:
                built[None] = key
        self.programs = built.get(key)

    def _compiled(self, limit: int, sample: dict[str, Any]) -> Programs:
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

        choices, coefficients, microbatches, code = self._recorded(
            columns | {"dp": recording.column("dp", np.int64)}, self.figures.map(column)
        )

        def times(bits: int) -> list[Number]:
            step = step_from_costs(without_features(coefficients, bits), choices.microbatch, microbatches)
            return [getattr(step, name) for name in self.names]

        bits = features(coefficients)
        layouts = [code, np.maximum(bits, (code != np.uint8(0)) * np.uint8(REJECTED))]
        every = (1 << len(FEATURES)) - 1
        kinds = {-1: layouts} | {kind: times(kind) for kind in (*self._kinds(layouts[1], leaves, limit, sample), every)}
        tables = self._tabulated(required(chain.from_iterable(kinds.values())), leaves, limit)
        words, results = self._rowwise(kinds, tables)
        code = self._machine_code(words, results, every) if machine_code.available() else None
        layout = Program.of(results.pop(-1), reuse=False)
        times_of = {kind: Program.of(of_kind) for kind, of_kind in results.items()}
        return Programs(layout, times_of, every, len(self.names), words, code)

    def _machine_code(
        self, translations: Sequence[Translation], programs: Mapping[int, list[Any]], every: int
    ) -> MachineCode:
        """The programs as machine code, which also finds the positions of values on axes."""
        recording = Recording()
        words: dict[str, Any] = {}
        for name, word, bits in translations:
            column, axis = recording.column(name, np.int64), self.axes[name]
            part: Any = column
            if isinstance(bits, np.ndarray) and not axis.fractional:
                part = np.minimum(np.maximum(column, 0), len(bits) - 1).of(bits)
            elif not axis.fractional:
                part = column << bits
            if axis.fixed:
                part = np.where((column >= 0) & (column < len(axis.values)), part, np.int64(-1))
            words[word] = part if word not in words else words[word] | part
        code, features = replaced(recording, programs[-1], words)
        kinds = [kind for kind in programs if kind >= 0]
        place = np.full(REJECTED + 1, kinds.index(every), dtype=np.uint16)
        place[kinds] = np.arange(len(kinds))
        place[REJECTED] = len(kinds)
        key = features.of(place) if isinstance(features, Expression) else place[features]
        key = key << np.uint16(NEAR)
        if len(self.axes["which"].values) > 1:
            key = key | self._near(recording.column("which", np.int64))
        of_rows = {x for x in required(chain.from_iterable(programs.values())) if x.function is None}
        rowwise = {x.inputs[0]: x.dtype for x in of_rows if x.inputs[0] not in words}
        bad = [word < 0 for word in words.values()]
        bad += [recording.column(name, dtype) < 1 for name, dtype in rowwise.items() if name in COUNTS]
        results = [code, key, reduce(np.logical_or, bad, False), *words.values()]  # noqa: FBT003
        return MachineCode.of(
            results, {kind: programs[kind] for kind in kinds}, [*words], {x.inputs[0]: x.dtype for x in required(results) if x.function is None} | rowwise
        )

    def _kinds(
        self, layout: Expression, leaves: dict[Expression, NDArray[Any]], limit: int, sample: dict[str, Any]
    ) -> list[int]:
        """The features that many rows have, by a sample of the rows."""
        if self.rows < 2 * _KIND_ROWS:
            return []
        words, results = self._rowwise({0: [layout]}, self._tabulated(required([layout]), leaves, limit))
        size = max(len(column) for column in sample.values() if isinstance(column, np.ndarray))
        program = Program.of(results[0])
        found = self._words(words, sample, size)
        assert found is not None
        bound = program.bound(size, Buffers())
        bound.read(sample | found)
        counts = np.bincount(np.atleast_1d(bound.run()[0]), minlength=REJECTED)[:REJECTED]
        most = np.argsort(-counts)[: min(_KINDS, self.rows // _KIND_ROWS)]
        return [int(kind) for kind in most if counts[kind] > _RARE * counts.sum()]

    def _recorded(
        self, columns: dict[str, Any], figures: dict[str, dict[str, Number]]
    ) -> tuple[Choices, Costs, Number, Number]:
        """The layouts, the coefficients, the number of microbatches, and codes."""
        choices, coefficients, microbatches, causes = formulas(
            columns_as_choices(columns | {"dp": 1}),
            Transformer(**figures["model"]),
            Machine(**figures["machine"]),
            **figures["limits"],
        )
        code = reason_codes(causes, caused(columns["dp"] != choices.dp, "rank-count"))
        return choices, coefficients, microbatches, code

    def _direct(self, columns: dict[str, Any]) -> list[Any] | None:
        """Times, parts and codes by the formulas as they are, which is faster than tables where rows are few."""
        if any(isinstance(columns[name], np.ndarray) and columns[name].min() < 1 for name in COUNTS):
            return None
        positions = {name: of_estimators[columns["which"]] for name, of_estimators in self.figures.positions.items()}
        positions["which"] = columns["which"]
        choices, coefficients, microbatches, code = self._recorded(
            columns, self.figures.map(lambda axis, _, numbers: numbers[positions[axis]])
        )
        step = step_from_costs(coefficients, choices.microbatch, microbatches)
        return [*(getattr(step, name) for name in self.names), code]

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

    def _rowwise(
        self, programs: dict[int, list[Any]], tables: dict[Expression, NDArray[Any]]
    ) -> tuple[list[Translation], dict[int, list[Any]]]:
        """The words of columns, and results from operations that are not tabulated, on numbers that rows look up."""
        rows = Recording()
        rebuilt: dict[Expression, Any] = {}
        needed = required(chain.from_iterable(programs.values()))
        operands = chain(*(x.inputs for x in needed if x not in tables), *programs.values())
        looked_up = dict.fromkeys(x for x in operands if isinstance(x, Expression) and x in tables)
        words, found = self._looked_up(rows, {x: tables[x] for x in looked_up})
        rebuilt |= found
        for expression in needed:
            if expression in tables:
                continue
            if expression.function is None:
                rebuilt[expression] = rows.column(expression.inputs[0], expression.dtype)
            else:
                inputs = (rebuilt[x] if isinstance(x, Expression) else x for x in expression.inputs)
                rebuilt[expression] = rows.apply(expression.function, inputs)
        return words, {
            name: [rebuilt[x] if isinstance(x, Expression) else x for x in results]
            for name, results in programs.items()
        }

    def _looked_up(
        self, rows: Recording, tables: dict[Expression, NDArray[Any]]
    ) -> tuple[list[Translation], dict[Expression, Any]]:
        """What rows look up in tables; a number where all elements are equal.

        Tables with the same axes are looked up together, and small ones get the axes of others: keys and cache misses are
        what a lookup costs.
        """
        values: dict[Expression, Any] = {}
        order_of_use = {x: i for i, x in enumerate(tables)}
        by_axes: dict[frozenset[str], list[Expression]] = {}
        varying = {x: _squeezed(table) for x, table in tables.items()}
        for expression, table in varying.items():
            if table.size == 1:
                value = table.reshape(-1)[0]
                values[expression] = value.item() if table.dtype.kind in "bf" else value
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
        sizes = {name: len(self.axes[name].values) for axes, _ in groups for name in axes}
        placed = keys.fields(sizes, [axes for axes, _ in groups])
        for axes, expressions in groups:
            of_group = keys.key(rows, placed, axes)
            width = 1 if self.size_of(axes) <= _SEPARATE else _RECORD
            for dtype in dict.fromkeys(x.dtype for x in expressions):
                # What is needed at about the same time is looked up together.
                members = sorted((x for x in expressions if x.dtype == dtype), key=order_of_use.__getitem__)
                for begin in range(0, len(members), width):
                    part = members[begin : begin + width]
                    records = of_group.records([self._flat(varying[x], of_group.names) for x in part])
                    values |= zip(part, of_group.position.records(records), strict=False)
        return self._translations(placed), values

    def _flat(self, table: NDArray[Any], names: Sequence[str]) -> NDArray[Any]:
        """A table whose dimensions are some axes in their order."""
        whole = self._expanded(table, names)
        shape = [len(self.axes[name].values) if name in names else 1 for name in self._order]
        others = [i for i, name in enumerate(self._order) if name not in names]
        moved = np.broadcast_to(whole, shape).transpose([*map(self._order.index, names), *others])
        return moved.reshape(moved.shape[: len(names)])

    def _translations(self, placed: Mapping[str, Field]) -> list[Translation]:
        """How programs get words from columns."""
        translations: list[Translation] = [
            (name, field_.word, self.axes[name].bits(field_.shift))
            for name, field_ in placed.items()
            if name not in self.figures.sizes and name != "which"
        ]
        positions = self.figures.positions | {"which": np.arange(len(self.axes["which"].values), dtype=np.int32)}
        of_estimators: dict[str, NDArray[np.int64]] = {}
        for name, field_ in placed.items():
            if name in positions:
                bits = positions[name].astype(np.int64) << field_.shift
                of_estimators[field_.word] = of_estimators.get(field_.word, 0) | bits
        return [*translations, *(("which", word, bits) for word, bits in of_estimators.items())]

    def size_of(self, axes: Iterable[str]) -> int:
        """Number of combinations of some axes."""
        return math.prod(len(self.axes[name].values) for name in axes)


def _squeezed(table: NDArray[Any]) -> NDArray[Any]:
    """A table without the axes along which it is constant."""
    for axis, size in enumerate(table.shape):
        if size > 1:
            first = table.take([0], axis=axis)
            if (first == table.take([1], axis=axis)).all() and (first == table).all():
                table = first
    return table
