"""Tables for batches: operations are evaluated once per combination of values that occurs, and looked up by rows.

The formulas are recorded (:mod:`trnspec.perf.sweep.expressions`).  An operation that depends on few columns is evaluated on an
array with an axis for each of them; a row finds its element by the positions of its own values.  With too many
combinations, an operation is evaluated for every row, with the same bits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.perf.lowering.machine import Machine
from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.columns import (
    COUNTS,
    FLAGS,
    WORDS,
    Choices,
    as_float,
    caused,
    invalid_batch,
    invalid_degrees,
    invalid_positions,
    invalid_sequence,
    invalid_stages,
    optimized,
    reason_codes,
    recomputed,
    scheduled,
    turns,
)
from trnspec.perf.sweep.estimator_columns import Figures
from trnspec.perf.sweep.expressions import Expression, Program, Recording, required
from trnspec.perf.training.communication import links
from trnspec.perf.training.costs import costs
from trnspec.perf.training.step import Step, step_from_costs
from trnspec.perf.work.terms import terms
from trnspec.perf.work.transformer import Transformer

if TYPE_CHECKING:
    from trnspec.perf.training.estimator import Estimator

_MAX_COMBINATIONS = 1 << 18
"""Largest table of an operation; beyond that it is evaluated for every row."""
_COMBINATIONS_PER_ROW = 0.5
"""Largest table of an operation, per row of the batch."""
_MIN_COMBINATIONS = 1 << 12
"""Largest table of an operation where rows are few."""
_MAX_VALUES = 256
"""Largest number of distinct values of a column that is an axis."""
_MAX_SHARED = 1 << 17
"""Most elements of tables that are expanded to the axes of others, so that rows need fewer keys."""
_RECORD = 4
"""Elements that are looked up together."""
_MAX_CACHED = 1 << 20
"""Largest number of values that are cached for the next batch with the same estimators."""
_VALUE_LIMIT = 1 << 20
"""Values of an axis are below this."""

LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | {"zero": 3} | dict.fromkeys(FLAGS, 1)
"""The highest value of columns that count from 0."""
COLUMNS = (*LIMITS, *(name for name in reversed(COUNTS) if name != "dp"))
"""The columns on which formulas depend; dp follows from the others."""
AXES = (*COLUMNS, "machine", "which")
"""The axes of the tables; the last one is the fastest, and usually the longest."""


def formulas(
    choices: Choices, model: Transformer, machine: Machine, heads: Number, experts: Number, longest: Number
) -> tuple[Choices, Step, Number]:
    """The times of layouts whose dp follows from the ranks of the system, and their codes; see :func:`reason_codes`.

    Returns:
        The layouts with their dp, times, and codes.
    """
    replicas = machine.ranks / (choices.tp * choices.pp)
    choices = attrs.evolve(choices, dp=larger(1.0, floor(replicas / choices.cp)))
    microbatches = choices.replicas()
    plan = choices.plan(microbatches)
    coefficients = costs(terms(model, machine), plan, links(plan, machine, larger(1.0, floor(replicas))))
    times = step_from_costs(coefficients, choices.microbatch, microbatches)
    return choices, times, reduce(np.maximum, (
        invalid_degrees(choices, machine.ranks, heads, experts, times.unknown),
        invalid_stages(choices, model.layers),
        invalid_sequence(choices),
        invalid_positions(choices, longest),
        invalid_batch(microbatches, turns(choices)),
    ))


@define
class _Axis:
    """The values of a column, and the position of each; without a lookup each value is its own position."""

    values: NDArray[np.int64]
    lookup: NDArray[np.int32] | None = None

    @property
    def usable(self) -> bool:
        """Whether there are few enough values."""
        return self.lookup is None or len(self.values) <= _MAX_VALUES

    def find(self, column: NDArray[np.int64], positions: NDArray[np.int32]) -> bool:
        """Write the positions of values from 1 on; ``False`` where one of them is new."""
        if self.lookup is None:
            np.copyto(positions, column, casting="unsafe")
            return True
        # Values that are too small find the first position, too large ones the last: both are empty.
        self.lookup.take(column, mode="clip", out=positions)
        return bool(np.minimum.reduce(positions) >= 0)

    def grow(self, column: NDArray[np.int64]) -> None:
        """Add new values; with too many or too large ones the column is not an axis any more."""
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
        program: The operations of rows.
    """

    figures: Figures
    rows: int
    axes: dict[str, _Axis]
    names: tuple[str, ...]
    program: Program = field(init=False)

    @classmethod
    def of(cls, estimators: Sequence[Estimator], rows: int, columns: dict[str, Any], parts: Sequence[str]) -> Tables:
        """The tables of a batch; ``columns`` are those of a sample of rows, from which values are collected first."""
        figures = Figures.of(estimators)
        axes: dict[str, _Axis] = {
            "which": _Axis(np.arange(len(estimators))), "machine": _Axis(np.arange(figures.machines))
        }
        for name in COLUMNS:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                axes[name] = _Axis(np.array([column]))
            elif name in COUNTS:
                axes[name] = _Axis(column[:0], np.zeros(0, dtype=np.int32))
                axes[name].grow(column)
            else:
                axes[name] = _Axis(np.arange(LIMITS[name] + 1))
        tables = cls(figures, rows, axes, ("total", *parts))
        tables.build()
        return tables

    def evaluate(self, columns: dict[str, Any], size: int) -> list[Any] | None:
        """Times, parts and codes of some rows; ``None`` where :meth:`grow` is needed before."""
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
        for name, array in program.columns.items():
            if not name.startswith("position "):
                np.copyto(array, columns[name])
        if "position which" in program.columns:
            np.copyto(program.columns["position which"], columns["which"], casting="unsafe")
        return program.run()

    def grow(self, columns: dict[str, Any]) -> None:
        """Add the values of these columns, which are at least 1 where they count from 1."""
        columns_of_axes = [(self.axes[name], columns[name]) for name in COLUMNS if isinstance(columns[name], np.ndarray)]
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
        limit = min(_MAX_COMBINATIONS, max(_MIN_COMBINATIONS, int(_COMBINATIONS_PER_ROW * self.rows)))
        key = (limit, self.names, *((a.usable, a.values.tobytes()) for a in self.axes.values()))
        if key not in self.figures.built:
            self.figures.built.clear()
            self.figures.built[key] = self._compiled(limit)
        self.program = self.figures.built[key]

    def _compiled(self, limit: int) -> Program:
        recording = Recording()
        leaves: dict[Expression, NDArray[Any]] = {}
        columns: dict[str, Any] = {}
        for name in COLUMNS:
            values = self.axes[name].values
            columns[name] = recording.column(name, np.int64) if len(values) > 1 else int(values[0])
            leaves[columns[name]] = values
        figures: dict[str, dict[str, Number]] = {}
        for owner, (axis, numbers) in self.figures.owners.items():
            figures[owner] = {}
            for name, number in numbers.items():
                column: Any = number
                if isinstance(number, np.ndarray):
                    column = recording.column(f"{owner} {name}", axis=axis)
                    leaves[column] = number
                figures[owner][name] = column
        choices, times, causes = formulas(
            columns_as_choices(columns | {"dp": 1}),
            Transformer(**figures["model"]),
            Machine(**figures["machine"]),
            **figures["limits"],
        )
        code = reason_codes(causes, caused(recording.column("dp", np.int64) != choices.dp, "rank-count"))
        results = [*(getattr(times, name) for name in self.names), code]
        tabulated = self._tabulated(required(results, recording), leaves, limit)
        return self._rowwise(results, recording, tabulated)

    def _axes_of(self, expression: Expression) -> tuple[str, ...]:
        """The axes of an expression in their order; a machine is that of an estimator."""
        axes = expression.axes - {"machine"} if "which" in expression.axes else expression.axes
        return tuple(name for name in AXES if name in axes)

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
                tables[expression] = leaves[expression].reshape([-1 if name in axes else 1 for name in AXES])
                continue
            inputs = [x for x in expression.inputs if isinstance(x, Expression)]
            if self.size_of(axes) > limit or not all(x in tables for x in inputs):
                continue
            operands = [self._expanded(tables[x], axes) if isinstance(x, Expression) else x for x in expression.inputs]
            tables[expression] = np.asarray(expression.function(*operands))
        return tables

    def _expanded(self, table: NDArray[Any], axes: Sequence[str]) -> NDArray[Any]:
        """A table by machine as one by estimator where other operands are, too."""
        if "which" in axes and table.shape[-2] > 1:
            return table.take(self.figures.machine_of, axis=-2).swapaxes(-1, -2)
        return table

    def _rowwise(
        self, results: list[Any], recording: Recording, tables: dict[Expression, NDArray[Any]]
    ) -> Program:
        """The operations that are not tabulated, on numbers that rows look up."""
        rows = Recording()
        rebuilt: dict[Expression, Any] = {}
        needed = required(results, recording)
        looked_up = {x for y in needed if y not in tables for x in y.inputs if isinstance(x, Expression) and x in tables}
        looked_up |= {x for x in results if isinstance(x, Expression) and x in tables}
        rebuilt |= self._looked_up(rows, {x: tables[x] for x in needed if x in looked_up})
        for expression in needed:
            if expression in tables:
                continue
            if expression.function is None:
                rebuilt[expression] = rows.column(expression.inputs[0], expression.dtype)
            else:
                inputs = (rebuilt[x] if isinstance(x, Expression) else x for x in expression.inputs)
                rebuilt[expression] = rows.apply(expression.function, inputs)
        return Program.of((rebuilt[x] if isinstance(x, Expression) else x for x in results), rows)

    def _looked_up(self, rows: Recording, tables: dict[Expression, NDArray[Any]]) -> dict[Expression, Any]:
        """What rows look up in tables; a number where all elements are equal.

        Tables with the same axes are looked up together, and small ones get the axes of others: keys and cache misses are
        what a lookup costs.
        """
        values: dict[Expression, Any] = {}
        by_axes: dict[frozenset[str], list[Expression]] = {}
        for expression, table in tables.items():
            least = table.min()
            if least == table.max():
                values[expression] = least.item() if table.dtype.kind in "bf" else least
            else:
                axes = frozenset(name for name, size in zip(AXES, table.shape, strict=True) if size > 1)
                by_axes.setdefault(axes, []).append(expression)
        groups: list[tuple[frozenset[str], list[Expression]]] = []
        for axes, expressions in sorted(by_axes.items(), key=lambda item: -self.size_of(item[0])):
            unions = []
            for i, (other, members) in enumerate(groups):
                size = self.size_of(union := self._union(axes, other))
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
            shape = [len(self.axes[name].values) if name in axes else 1 for name in AXES]
            for dtype in dict.fromkeys(x.dtype for x in expressions):
                members = [x for x in expressions if x.dtype == dtype]
                for begin in range(0, len(members), _RECORD):
                    part = members[begin : begin + _RECORD]
                    # A record of three would take longer than one of four.
                    width = 1 << (len(part) - 1).bit_length()
                    record = np.zeros((self.size_of(axes), width), dtype=dtype)
                    for i, x in enumerate(part):
                        full = np.broadcast_to(self._expanded(tables[x], axes), shape)
                        by_order = full.transpose(*map(AXES.index, order), *(i for i, n in enumerate(AXES) if n not in axes))
                        record[:, i] = by_order.reshape(-1)
                    values |= zip(part, key.records(record), strict=False)
        return values

    def _union(self, a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
        """The axes of both; an estimator determines its machine."""
        union = a | b
        return union - {"machine"} if "which" in union else union

    def _keys(
        self, rows: Recording, groups: list[frozenset[str]]
    ) -> dict[frozenset[str], tuple[tuple[str, ...], Expression]]:
        """For each group of axes an order, the last one fastest, and the positions of rows among the combinations.

        Those of two parts of a group give those of both.  The two that most groups have in common are combined first.
        """
        keys: dict[frozenset[str], tuple[tuple[str, ...], Expression]] = {}
        for name in sorted(frozenset().union(*groups)):
            position = rows.column(f"position {'which' if name == 'machine' else name}", np.int32)
            keys[frozenset([name])] = (name,), position.of(self.figures.machine_of) if name == "machine" else position
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


def columns_as_choices(columns: dict[str, Any]) -> Choices:
    """Columns of integers as floats, and positions of names as what formulas take."""
    floats = {n: as_float(columns[n]) for n in (*COUNTS, *FLAGS, "zero") if n != "interleave"}
    floats["sequence"] = floats.pop("sequence_parallel")
    floats["recompute"] = recomputed(columns["recompute"])
    schedule, interleave = columns["schedule"], columns["interleave"]
    return Choices(**floats, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))
