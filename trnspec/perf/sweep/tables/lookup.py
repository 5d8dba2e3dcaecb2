"""Tables for batches: operations are evaluated once per combination of values that occurs, and looked up by rows.

The formulas are recorded (:mod:`trnspec.perf.sweep.expressions`).  An operation that depends on few columns is evaluated on an
array with an axis for each of them; a row finds its element by the positions of its own values.  With too many
combinations, an operation is evaluated for every row, with the same bits.
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from trnspec.perf import llvm
from trnspec.perf.lowering.machine import Machine
from trnspec.perf.sweep.columns import COUNTS, Choices, caused, reason_codes
from trnspec.perf.sweep.estimator_columns import Figures
from trnspec.perf.sweep.expressions import Expression, Recording, required
from trnspec.perf.sweep.formulas import (
    COLUMNS,
    FEATURES,
    LIMITS,
    columns_as_choices,
    features,
    formulas,
    without_features,
)
from trnspec.perf.sweep.tables import keys, machine_code
from trnspec.perf.sweep.tables.axes import Axis
from trnspec.perf.sweep.tables.compiled import Compiled
from trnspec.perf.sweep.tables.program import REJECTED, Program, Programs, Translation
from trnspec.perf.training.step import step_from_costs
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.ops import Number
    from trnspec.perf.sweep.tables.keys import Field
    from trnspec.perf.training.costs import Costs
    from trnspec.perf.training.estimator import Estimator

_MAX_COMBINATIONS = 1 << 18
"""Largest table of an operation; beyond that it is evaluated for every row."""
_COMBINATIONS_PER_ROW = 0.5
"""Largest table of an operation, per row of a batch that is evaluated for the first time."""
_MAX_SHARED = 1 << 17
"""Most elements of tables that are expanded to the axes of others, so that rows need fewer keys."""
_ESTIMATORS = 8
"""A table by numbers of estimators is one by estimator if it has more than one over this of their elements."""
_RECORD = 4
"""Elements that are looked up together."""
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


_FAST_COMBINATIONS = 1 << 14
"""Largest table of an operation in machine code, which computes faster than it looks up what is not in cache."""
_FAST_SHARED = 1 << 8
"""The same of tables that are expanded."""
_FAST_ROWS = 1 << 18
"""Rows of a batch, or of repeated ones, from which on machine code is faster, the time to make it included."""


@frozen
class _Limits:
    """Sizes of tables and number of programs.

    Attributes:
        most: Largest table of a function of arrays, and of what it depends on.
        each: Largest table of other operations.
        shared: Most elements of tables that are expanded to the axes of others, so that rows need fewer keys.
        kinds: Most kinds of layouts that have programs of their own.
        union: Whether the programs are machine code, one for all kinds that need the same functions of arrays.
    """

    most: int
    each: int
    shared: int
    kinds: int
    union: bool


@define
class Tables:
    """The values of operations on the combinations that occurred so far, and the program that rows need in addition.

    Attributes:
        figures: The numbers of the estimators.
        rows: Number of rows of the batch.
        axes: The values of each column.
        names: Names of the results: parts of the time.
        programs: The operations of rows; ``None`` where formulas are evaluated as they are.
    """

    figures: Figures
    rows: int
    axes: dict[str, Axis]
    names: tuple[str, ...]
    programs: Programs | Compiled | None = field(default=None, init=False)

    @classmethod
    def of(cls, estimators: Sequence[Estimator], rows: int, columns: dict[str, Any], parts: Sequence[str]) -> Tables:
        """The tables of a batch; ``columns`` are those of a sample of rows, from which values are collected first."""
        figures = Figures.of(estimators)
        axes = {name: Axis(np.arange(size), fixed=True) for name, size in figures.sizes.items()}
        axes["which"] = Axis(np.arange(len(estimators)), fixed=True)
        for name in COLUMNS:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                axes[name] = Axis(np.array([column]))
            elif name in COUNTS:
                axes[name] = Axis(column[:0])
                axes[name].grow(column)
            elif name in LIMITS:
                axes[name] = Axis(np.arange(LIMITS[name] + 1), fixed=True)
            else:
                axes[name] = Axis(np.unique(column))
        tables = cls(figures, rows, axes, ("total", *parts))
        tables.build(columns)
        return tables

    @property
    def checks(self) -> bool:
        """Whether :meth:`evaluate` finds values that are invalid."""
        return isinstance(self.programs, Compiled)

    def evaluate(self, columns: dict[str, Any], times: Sequence[NDArray[np.float64]]) -> Any:
        """Evaluate some rows.

        Args:
            columns: Their columns.
            times: Where to write the times of valid rows and their parts.

        Returns:
            Codes; ``None`` where :meth:`grow` is needed before, and nothing was written.
        """
        return self._direct(columns, times) if self.programs is None else self.programs.evaluate(columns, times)

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
        key = (
            self.names,
            *((a.usable, a.fixed, len(a.values) if a.fixed else a.values.tobytes()) for a in self.axes.values()),
        )
        built = self.figures.built
        known = built.get(key)
        evaluated = known.evaluated if isinstance(known, Programs) else 0
        fast = llvm.available() and max(self.rows, evaluated) >= _FAST_ROWS
        if known is None or (fast and not isinstance(known, Compiled)):
            # Tables pay for a large batch, and for one that is repeated, which may be repeated again.
            repeated = known is not None or built.get(None) == key
            built.clear()
            if repeated or self.rows >= _COMPILED_ROWS:
                limit = _MAX_COMBINATIONS if repeated else int(_COMBINATIONS_PER_ROW * self.rows)
                limit = max(min(_MAX_COMBINATIONS, limit), self.size_of(("which",)))
                limits = _Limits(limit, limit, _MAX_SHARED, min(_KINDS, self.rows // _KIND_ROWS), union=False)
                fast_limits = _Limits(limit, min(limit, _FAST_COMBINATIONS), _FAST_SHARED, 2, union=True)
                built[key] = self._compiled(fast_limits if fast else limits, columns, fast=fast)
            else:
                built[None] = key
        self.programs = built.get(key)

    def _compiled(self, limits: _Limits, sample: dict[str, Any], *, fast: bool) -> Programs | Compiled:
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
        kinds = {-1: layouts} | {
            kind: times(kind) for kind in (*self._kinds(layouts[1], leaves, limits, sample), every)
        }
        tables = self._tabulated(required(chain.from_iterable(kinds.values())), leaves, limits)
        words, results = self._rowwise(kinds, tables, limits)
        if fast:
            return Compiled.of(self.axes, words, results.pop(-1), results)
        layout = Program.of(results.pop(-1), reuse=False)
        times_of = {kind: Program.of(of_kind) for kind, of_kind in results.items()}
        return Programs(self.axes, layout, times_of, every, words)

    def _kinds(
        self, layout: Expression, leaves: dict[Expression, NDArray[Any]], limits: _Limits, sample: dict[str, Any]
    ) -> list[int]:
        """The features that many rows have, by a sample of the rows."""
        if limits.kinds < 2:
            return []
        words, results = self._rowwise({0: [layout]}, self._tabulated(required([layout]), leaves, limits), limits)
        size = max(len(column) for column in sample.values() if isinstance(column, np.ndarray))
        programs = Programs(self.axes, Program.of(results[0]), {}, 0, words)
        found = programs.found(sample, size)
        assert found is not None
        bound = programs.layouts.bound(size, programs.buffers)
        bound.read(sample | found)
        counts = np.bincount(np.atleast_1d(bound.run()[0]), minlength=REJECTED)[:REJECTED]
        found_kinds = [int(kind) for kind in np.argsort(-counts) if counts[kind] > _RARE * counts.sum()]
        if not limits.union:
            return found_kinds[: limits.kinds]
        # Machine code is fast enough for all features together but those that need functions of arrays.
        functions = sum(1 << i for i, name in enumerate(FEATURES) if name in {"v_shaped", "unequal"})
        several = {
            kind & functions: [k for k in found_kinds if k & functions == kind & functions] for kind in found_kinds
        }
        return [reduce(operator.or_, several[of_one]) for of_one in sorted(several)]

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

    def _direct(self, columns: dict[str, Any], times: Sequence[NDArray[np.float64]]) -> Any:
        """As :meth:`evaluate`, by the formulas as they are, which is faster than tables where rows are few."""
        if any(isinstance(columns[name], np.ndarray) and columns[name].min() < 1 for name in COUNTS):
            return None
        positions = {name: of_estimators[columns["which"]] for name, of_estimators in self.figures.positions.items()}
        positions["which"] = columns["which"]
        choices, coefficients, microbatches, code = self._recorded(
            columns, self.figures.map(lambda axis, _, numbers: numbers[positions[axis]])
        )
        step = step_from_costs(coefficients, choices.microbatch, microbatches)
        for column, name in zip(times, self.names, strict=True):
            np.copyto(column, getattr(step, name), where=np.equal(code, 0))
        return code

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
        self, expressions: list[Expression], leaves: dict[Expression, NDArray[Any]], limits: _Limits
    ) -> dict[Expression, NDArray[Any]]:
        """The values of expressions on all combinations, in arrays with all axes, where those are few."""
        tables: dict[Expression, NDArray[Any]] = {}
        # What functions of arrays depend on must be in tables if they are to be.
        needed: set[Expression] = set()
        for expression in reversed(expressions):
            if expression in needed or not machine_code.is_inline(expression):
                needed.add(expression)
                needed |= {x for x in expression.inputs if isinstance(x, Expression)}
        for expression in expressions:
            axes = self._axes_of(expression)
            if not all(name in self.axes and self.axes[name].usable for name in expression.axes):
                continue
            if expression.function is None:
                tables[expression] = leaves[expression].reshape([-1 if name in axes else 1 for name in self._order])
                continue
            inputs = [x for x in expression.inputs if isinstance(x, Expression)]
            too_large = self.size_of(axes) > (limits.most if expression in needed else self._limit(axes, limits))
            if too_large or not all(x in tables for x in inputs):
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
        self, programs: dict[int, list[Any]], tables: dict[Expression, NDArray[Any]], limits: _Limits
    ) -> tuple[list[Translation], dict[int, list[Any]]]:
        """The words of columns, and results from operations that are not tabulated, on numbers that rows look up."""
        rows = Recording()
        rebuilt: dict[Expression, Any] = {}
        tables = {
            x: table
            for x, table in tables.items()
            if not machine_code.is_inline(x) or _squeezed(table).size <= self._limit(self._axes_of(x), limits)
        }
        needed = required(chain.from_iterable(programs.values()), tables)
        operands = chain(*(x.inputs for x in needed if x not in tables), *programs.values())
        looked_up = dict.fromkeys(x for x in operands if isinstance(x, Expression) and x in tables)
        words, found = self._looked_up(rows, {x: tables[x] for x in looked_up}, limits)
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
        self, rows: Recording, tables: dict[Expression, NDArray[Any]], limits: _Limits
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
                if size * (len(members) + len(expressions)) <= limits.shared:
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
            # Machine code looks records up by their number where few are different: they are in cache.
            several = [x for x in expressions if x.dtype == np.float64] if limits.union else []
            if len(several) >= _RECORD:
                values |= zip(
                    several, of_group.few([self._flat(varying[x], of_group.names) for x in several]), strict=False
                )
            left = [x for x in expressions if x not in values]
            width = 1 if self.size_of(axes) <= _SEPARATE else 2 * _RECORD if limits.union else _RECORD
            for dtype in dict.fromkeys(x.dtype for x in left):
                # What is needed at about the same time is looked up together.
                members = sorted((x for x in left if x.dtype == dtype), key=order_of_use.__getitem__)
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

    def _limit(self, axes: Iterable[str], limits: _Limits) -> int:
        """Most elements of a table of an operation: of one that only depends on the estimator, all of them."""
        return max(limits.each, self.size_of(("which",)) if self._of(axes) == {"which"} else 0)

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
