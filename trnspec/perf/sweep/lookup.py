"""Tables of coefficients for batches: computed once per combination of field values that occurs, and looked up by rows.

A formula that depends on few fields is evaluated on arrays with an axis for each of them.  Its result has the axes that it
actually depends on; a row finds its element by the positions of its own values.  With too many combinations, a formula is
evaluated for every row instead, with the same bits.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.columns import (
    COUNTS,
    FLAGS,
    WORDS,
    Choices,
    invalid_degrees,
    invalid_positions,
    invalid_sequence,
    invalid_stages,
    optimized,
    recomputed,
    scheduled,
    split_of,
    turns,
)
from trnspec.perf.sweep.estimator_columns import Figures, Gathered, collapsed
from trnspec.perf.training import costs
from trnspec.perf.training.communication import Links, links

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.plan import Plan
    from trnspec.perf.work.terms import Terms

    _Formula: TypeAlias = Callable[["_Subject"], dict[str, Number]]

_MAX_COMBINATIONS = 1 << 20
"""Largest table of a formula; beyond that it is evaluated for every row."""
_COMBINATIONS_PER_ROW = 4
"""Largest table of a formula, per row of the batch."""
_MAX_VALUES = 256
"""Largest number of distinct values of a column that is an axis."""
_MAX_SHARED = 1 << 13
"""Largest size to which a table is expanded to the axes of another, so that rows need fewer keys."""
_MAX_CACHED = 1 << 18
"""Largest number of values that are cached for the next batch with the same estimators."""
_VALUE_LIMIT = 1 << 20
"""Values of an axis are below this."""

AXES = (
    *("load", "dispatch", "expert_overlap", "expert_tp", "optimizer", "zero", "interleave", "schedule", "overlap"),
    *("recompute", "sequence_parallel", "seq", "cp", "pp", "ep", "tp", "which"),
)
"""The axes of the tables; the last one is the fastest, and usually the longest."""
LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | {"zero": 3} | dict.fromkeys(FLAGS, 1)
"""The highest value of columns that count from 0."""
LOADS = ("load",)
"""The columns of numbers that need not be whole."""


@define(slots=False)
class _Subject:
    """What formulas are evaluated on: rows, or combinations of field values."""

    choices: Choices
    each: Any
    machine: Any
    replicas: Number | None = None

    @cached_property
    def plan(self) -> Plan:
        return self.choices.plan(1.0)

    @cached_property
    def use(self) -> Links:
        return links(self.plan, self.machine, self.replicas)


def _unfit(subject: _Subject) -> dict[str, Number]:
    """Reasons for rejection that follow from the degrees of parallelism, and the dp that follows from the others."""
    unknown = costs.missing(subject.each, subject.plan, subject.use)["unknown"]
    cause = invalid_degrees(subject.choices, subject.machine.ranks, subject.each.heads, subject.each.experts, unknown)
    return {"unfit": cause, "dp": subject.choices.dp}


def _undealt(subject: _Subject) -> dict[str, Number]:
    return {"undealt": invalid_stages(subject.choices, subject.each.layers), "turns": turns(subject.choices)}


def _unsplit(subject: _Subject) -> dict[str, Number]:
    return {"unsplit": invalid_sequence(subject.choices)}


def _unlearned(subject: _Subject) -> dict[str, Number]:
    return {"unlearned": invalid_positions(subject.choices, subject.each.longest)}


def _local(compute: Callable[[Terms, Plan], dict[str, Number]]) -> _Formula:
    return lambda subject: compute(subject.each, subject.plan)


def _linked(compute: Callable[[Terms, Plan, Links], dict[str, Number]]) -> _Formula:
    return lambda subject: compute(subject.each, subject.plan, subject.use)


_FORMULAS: tuple[tuple[_Formula, tuple[str, ...]], ...] = (
    (_unfit, ("expert_tp", "cp", "pp", "ep", "tp", "which")),
    (_undealt, ("interleave", "schedule", "pp", "which")),
    (_unsplit, ("sequence_parallel", "seq", "cp", "tp")),
    (_unlearned, ("seq", "which")),
    # Unknown links are a reason for rejection already, so they need no table of their own.
    *((_linked(f), axes) for f, axes in costs.LINKED.items() if f is not costs.missing),
    *((_local(f), axes) for f, axes in costs.LOCAL.items()),
)


@define
class _Axis:
    """The values of a column, and the position of each; without a lookup each integer is its own position."""

    values: NDArray[np.int64]
    lookup: NDArray[np.intp] | None = None

    @property
    def usable(self) -> bool:
        """Whether there are few enough values."""
        return len(self.values) <= _MAX_VALUES or (self.lookup is None and self.values.dtype.kind != "f")

    def find(self, column: NDArray[np.int64]) -> NDArray[np.intp] | None:
        """The positions of values from 1 on; ``None`` where one of them is new, or there are too many."""
        if not self.usable:
            return None
        if self.values.dtype.kind == "f":
            nearest = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
            return nearest if (self.values.take(nearest) == column).all() else None
        if self.lookup is None:
            return column.astype(np.intp, copy=False)
        # Values that are too small find the first position, too large ones the last: both are empty.
        positions: NDArray[np.intp] = self.lookup.take(column, mode="clip")
        return positions if np.minimum.reduce(positions) >= 0 else None

    def grow(self, column: NDArray[np.int64]) -> None:
        """Add new values; with too many or too large ones the column is not an axis any more."""
        if self.values.dtype.kind == "f":
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
            self.lookup = np.full(int(self.values[-1]) + 2, -1, dtype=np.intp)
            self.lookup[self.values] = np.arange(len(self.values))


@define
class Tables:
    """The values of all formulas on the combinations that occurred so far.

    Attributes:
        figures: The numbers of the estimators.
        rows: Number of rows of the batch.
        axes: The values of each column.
        values: Values by name, each with its axes; a single number where there are none.
        rowwise: The formulas that are evaluated for every row, with the columns that they read.
        keys: By axes: the number of combinations of all but the first, and how often a block needs the key.
    """

    figures: Figures
    rows: int
    axes: dict[str, _Axis]
    values: dict[str, tuple[tuple[str, ...], Number]] = field(factory=dict)
    rowwise: dict[_Formula, tuple[str, ...]] = field(factory=dict)
    keys: dict[tuple[str, ...], tuple[int, int]] = field(factory=dict)

    @classmethod
    def of(cls, estimators: Sequence[Estimator], rows: int, columns: dict[str, Any]) -> Tables:
        """The tables of a batch; ``columns`` are those of a sample of rows, from which values are collected first."""
        axes: dict[str, _Axis] = {}
        for name in AXES:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                axes[name] = _Axis(np.array([column]))
            elif name in COUNTS:
                axes[name] = _Axis(column[:0], np.zeros(0, dtype=np.intp))
                axes[name].grow(column)
            elif name in LOADS:
                axes[name] = _Axis(column[:0])
                axes[name].grow(column)
            else:
                axes[name] = _Axis(np.arange(len(estimators) if name == "which" else LIMITS[name] + 1))
        tables = cls(Figures.of(estimators), rows, axes)
        tables.build()
        return tables

    def lookup_rows(self, columns: dict[str, Any]) -> RowValues | None:
        """A lookup for rows with these columns; ``None`` where :meth:`grow` is needed before."""
        positions: dict[str, NDArray[np.intp]] = {}
        for name, axis in self.axes.items():
            column = columns[name]
            if not isinstance(column, np.ndarray):
                continue
            axis_positions = axis.find(column)
            if axis_positions is not None:
                positions[name] = axis_positions
            elif axis.usable or np.minimum.reduce(column) < 1:
                return None
        return RowValues(self, columns, positions)

    def grow(self, columns: dict[str, Any]) -> None:
        """Add the values of these columns, which are at least 1 where they count from 1."""
        columns_of_axes = [
            (axis, columns[name]) for name, axis in self.axes.items() if isinstance(columns[name], np.ndarray)
        ]
        grown = [(axis, column) for axis, column in columns_of_axes if axis.usable and axis.find(column) is None]
        for axis, column in grown:
            axis.grow(column)
        if grown:
            self.build()

    def build(self) -> None:
        """Tabulate every formula whose table is small enough; tables for the same values are taken from the cache."""
        limit = min(_MAX_COMBINATIONS, _COMBINATIONS_PER_ROW * self.rows)
        tabulated = tuple(
            all(self.axes[name].usable for name in names) and self.size_of(names) <= limit for _, names in _FORMULAS
        )
        key = (tabulated, *(axis.values.tobytes() for axis in self.axes.values()))
        if key in self.figures.built:
            self.values, self.keys, self.rowwise = self.figures.built[key]
            return
        subject = self._combinations()
        self.values, self.rowwise = {}, {}
        for (formula, names), in_table in zip(_FORMULAS, tabulated, strict=True):
            if in_table:
                self.values |= {name: _with_axes(number) for name, number in formula(subject).items()}
            else:
                self.rowwise[formula] = names
        self._share()
        self.figures.built.clear()
        if sum(np.size(values) for _, values in self.values.values()) <= _MAX_CACHED:
            self.figures.built[key] = self.values, self.keys, self.rowwise

    def _share(self) -> None:
        """Expand small tables to the axes of larger ones, so that rows need fewer keys; count the uses of each key."""
        shared: dict[tuple[str, ...], int] = {}
        for name, (axes, values) in sorted(self.values.items(), key=lambda item: -np.size(item[1][1])):
            containers = {size: other for other, size in shared.items() if size <= _MAX_SHARED and {*axes} <= {*other}}
            if len(axes) > 1 and axes not in shared and containers:
                container = containers[min(containers)]
                shape = [len(self.axes[axis].values) if axis in axes else 1 for axis in container]
                expanded = np.broadcast_to(values.reshape(shape), [len(self.axes[axis].values) for axis in container])
                self.values[name] = container, expanded.reshape(-1)
            shared |= {axes[i:]: self.size_of(axes[i:]) for i in range(len(axes)) if axes[i:] not in shared}
        uses = Counter(axes for axes, _ in self.values.values())
        # The key of some axes is computed from that of all but the first.
        for count in range(len(AXES), 1, -1):
            for axes in [axes for axes in uses if len(axes) == count]:
                uses[axes[1:]] += 1
        self.keys = {axes: (self.size_of(axes[1:]), used) for axes, used in uses.items()}

    def size_of(self, axes: tuple[str, ...]) -> int:
        """Number of combinations of some axes."""
        return math.prod(len(self.axes[name].values) for name in axes)

    def _combinations(self) -> _Subject:
        """All combinations: every field has an axis of its own, and formulas broadcast."""
        columns: dict[str, Any] = {}
        for trailing, name in enumerate(reversed(AXES)):
            values = self.axes[name].values if self.axes[name].usable else np.ones(1, dtype=np.int64)
            columns[name] = values.reshape(-1, *[1] * trailing) if len(values) > 1 else values[0].item()
        figures, machine = Gathered(self.figures.each), Gathered(self.figures.machine)
        # Formulas do not read the other columns, except dp, which follows from the ranks.
        unused = ("dp", "microbatch", "global_batch", "flash", "fused_loss")
        choices = columns_as_choices(columns | dict.fromkeys(unused, 1))
        replicas = machine.ranks / (choices.tp * choices.pp)
        dp = larger(1.0, floor(replicas / choices.cp))
        return _Subject(attrs.evolve(choices, dp=dp), figures, machine, larger(1.0, floor(replicas)))


def _with_axes(number: Number) -> tuple[tuple[str, ...], Number]:
    """The axes that values depend on, and the values as a flat array."""
    number = collapsed(number)
    if not isinstance(number, np.ndarray):
        return (), number
    names = AXES[len(AXES) - number.ndim :]
    return tuple(name for name, size in zip(names, number.shape, strict=True) if size > 1), number.reshape(-1)


class RowValues:
    """The values of formulas for some rows, by name: looked up on every access, and not stored."""

    unknown = 0.0

    def __init__(self, tables: Tables, columns: dict[str, Any], positions: dict[str, NDArray[np.intp]]) -> None:
        self._tables = tables
        self._columns = columns
        self._positions = positions
        self._keys: dict[tuple[str, ...], NDArray[np.intp]] = {}
        self._uses_left: dict[tuple[str, ...], int] = {}

    def __getattr__(self, name: str) -> Number:
        if name not in self._tables.values:
            try:
                return self._rowwise[name]
            except KeyError:
                raise AttributeError(name) from None
        axes, values = self._tables.values[name]
        return values.take(self._key(axes)) if axes else values

    def _key(self, axes: tuple[str, ...]) -> NDArray[np.intp]:
        """The positions of rows among all combinations of some axes; stored while further uses are expected."""
        key, uses_left = self._keys.get(axes), self._uses_left.get(axes, 0)
        if key is None:
            step, uses_left = self._tables.keys[axes]
            key = self._positions[axes[0]]
            if len(axes) > 1:
                key = key * step
                key += self._key(axes[1:])
        if uses_left > 1:
            self._keys[axes], self._uses_left[axes] = key, uses_left - 1
        else:
            self._keys.pop(axes, None)
        return key

    @cached_property
    def _rowwise(self) -> dict[str, Number]:
        """The values that are in no table."""
        figures, which = self._tables.figures, self._columns["which"]
        # Columns that no formula reads need not be converted to floats.
        needed = {"dp", *chain.from_iterable(self._tables.rowwise.values())}
        columns = {name: column if name in needed else 1 for name, column in self._columns.items()}
        subject = _Subject(columns_as_choices(columns), Gathered(figures.each, which), Gathered(figures.machine, which))
        values: dict[str, Number] = {}
        for formula in self._tables.rowwise:
            values |= formula(subject)
        return values


def columns_as_choices(columns: dict[str, Any]) -> Choices:
    """Columns of integers as floats, and positions of names as what formulas take."""
    floats = {n: as_float(columns[n]) for n in (*COUNTS, *FLAGS, *LOADS, "zero", "dispatch") if n != "interleave"}
    floats["expert_split"] = split_of(floats.pop("expert_tp"), floats["tp"])
    floats["sequence"] = floats.pop("sequence_parallel")
    floats["recompute"] = recomputed(columns["recompute"])
    schedule, interleave = columns["schedule"], columns["interleave"]
    return Choices(**floats, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))


def as_float(column: Any) -> Number:
    """Integers as floats."""
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)
