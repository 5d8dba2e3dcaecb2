"""What the rows of a batch have in common: computed once for each combination of choices that occurs, and looked up.

A formula that depends on few choices is evaluated on arrays that have an axis for each of them.  What it gives has the
axes that it turned out to depend on; a row finds its element there by the places of its own choices.  Where there would
be too many combinations, a formula is evaluated for every row instead, with the same bits.
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
    turns,
)
from trnspec.perf.sweep.estimator_columns import Figures, Late, plain
from trnspec.perf.training import costs
from trnspec.perf.training.communication import Links, links

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.plan import Plan
    from trnspec.perf.work.terms import Terms

    _Formula: TypeAlias = Callable[["_Asked"], dict[str, Number]]

_MOST = 1 << 20
"""Combinations of choices that a formula is evaluated on; beyond, it is evaluated for every row."""
_WORTH = 4
"""Combinations for each row of a batch that are worth it."""
_VALUES = 256
"""Different numbers that a column may have to be an axis."""
_SHARED = 1 << 13
"""Combinations that a table may be widened to, so that rows find their places in several alike."""
_KEPT = 1 << 18
"""Values that are kept for the next batch about the same estimators."""
_LARGEST = 1 << 20
"""What the numbers of an axis are below."""

AXES = (
    *("optimizer", "zero", "interleave", "schedule", "overlap", "recompute", "sequence_parallel", "seq", "cp"),
    *("pp", "ep", "tp", "which"),
)
"""The axes of the combinations; the last one is the fastest, and the longest as a rule."""
LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | {"zero": 3} | dict.fromkeys(FLAGS, 1)
"""The highest number of the columns that have one; all count from 0."""


@define(slots=False)
class _Asked:
    """What formulas are evaluated on: rows, or combinations of choices."""

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


def _unfit(asked: _Asked) -> dict[str, Number]:
    """Causes for refusal that the degrees of parallelism give, and the dp that the others leave of the ranks."""
    unknown = costs.missing(asked.each, asked.plan, asked.use)["unknown"]
    cause = invalid_degrees(asked.choices, asked.machine.ranks, asked.each.heads, asked.each.experts, unknown)
    return {"unfit": cause, "dp": asked.choices.dp}


def _undealt(asked: _Asked) -> dict[str, Number]:
    return {"undealt": invalid_stages(asked.choices, asked.each.layers), "turns": turns(asked.choices)}


def _unsplit(asked: _Asked) -> dict[str, Number]:
    return {"unsplit": invalid_sequence(asked.choices)}


def _unlearned(asked: _Asked) -> dict[str, Number]:
    return {"unlearned": invalid_positions(asked.choices, asked.each.longest)}


def _local(compute: Callable[[Terms, Plan], dict[str, Number]]) -> _Formula:
    return lambda asked: compute(asked.each, asked.plan)


def _linked(compute: Callable[[Terms, Plan, Links], dict[str, Number]]) -> _Formula:
    return lambda asked: compute(asked.each, asked.plan, asked.use)


_FORMULAS: tuple[tuple[_Formula, tuple[str, ...]], ...] = (
    (_unfit, ("cp", "pp", "ep", "tp", "which")),
    (_undealt, ("interleave", "schedule", "pp", "which")),
    (_unsplit, ("sequence_parallel", "seq", "cp", "tp")),
    (_unlearned, ("seq", "which")),
    # What is not known is a cause for refusal, and need not be looked up again.
    *((_linked(f), axes) for f, axes in costs.LINKED.items() if f is not costs.missing),
    *((_local(f), axes) for f, axes in costs.LOCAL.items()),
)


@define
class _Axis:
    """The numbers that a column has had, and their places; where there is no lookup, each number is its own place."""

    values: NDArray[np.int64]
    lookup: NDArray[np.intp] | None = None

    @property
    def able(self) -> bool:
        """Whether there are few enough."""
        return self.lookup is None or len(self.values) <= _VALUES

    def find(self, column: NDArray[np.int64]) -> NDArray[np.intp] | None:
        """The places of numbers from 1; nothing where one of them is new, or there are too many."""
        if self.lookup is None:
            return column.astype(np.intp, copy=False)
        if not self.able:
            return None
        # What is too small finds the first place of the lookup, and what is too large the last: both are empty.
        found: NDArray[np.intp] = self.lookup.take(column, mode="clip")
        return found if np.minimum.reduce(found) >= 0 else None

    def grow(self, column: NDArray[np.int64]) -> None:
        """Take up new numbers; too many, or too large ones, are no axis any more."""
        largest = max(0, int(column.max()), *self.values[-1:].tolist())
        if largest < _LARGEST:
            seen = np.zeros(largest + 1, dtype=np.bool_)
            seen[self.values] = seen[column] = True
            self.values = np.flatnonzero(seen)
        else:
            self.values = np.arange(_VALUES + 1)
        if self.able:
            self.lookup = np.full(int(self.values[-1]) + 2, -1, dtype=np.intp)
            self.lookup[self.values] = np.arange(len(self.values))


@define
class Tables:
    """The values of all formulas on the combinations of choices that occurred so far.

    Attributes:
        figures: The numbers of the estimators.
        rows: Rows of the batch.
        axes: The numbers of each column.
        known: Values by name, each with its axes; one number where there are none.
        rowwise: The formulas that are evaluated for every row, with the columns that they look at.
        keys: By axes the combinations of all but the first, and how often the key is needed for the rows of a block.
    """

    figures: Figures
    rows: int
    axes: dict[str, _Axis]
    known: dict[str, tuple[tuple[str, ...], Number]] = field(factory=dict)
    rowwise: dict[_Formula, tuple[str, ...]] = field(factory=dict)
    keys: dict[tuple[str, ...], tuple[int, int]] = field(factory=dict)

    @classmethod
    def of(cls, estimators: Sequence[Estimator], rows: int, columns: dict[str, Any]) -> Tables:
        """Those of a batch; ``columns`` are of the rows that numbers are first looked for in."""
        axes: dict[str, _Axis] = {}
        for name in AXES:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                axes[name] = _Axis(np.array([column]))
            elif name in COUNTS:
                axes[name] = _Axis(column[:0], np.zeros(0, dtype=np.intp))
                axes[name].grow(column)
            else:
                axes[name] = _Axis(np.arange(len(estimators) if name == "which" else LIMITS[name] + 1))
        made = cls(Figures.of(estimators), rows, axes)
        made.build()
        return made

    def look(self, columns: dict[str, Any]) -> Looked | None:
        """What rows with these columns look up; nothing where :meth:`grow` is needed before."""
        places: dict[str, NDArray[np.intp]] = {}
        for name, axis in self.axes.items():
            column = columns[name]
            if not isinstance(column, np.ndarray):
                continue
            found = axis.find(column)
            if found is not None:
                places[name] = found
            elif axis.able or np.minimum.reduce(column) < 1:
                return None
        return Looked(self, columns, places)

    def grow(self, columns: dict[str, Any]) -> None:
        """Take up the numbers of these columns, which are at least 1 where they count."""
        found = [(axis, columns[name]) for name, axis in self.axes.items() if isinstance(columns[name], np.ndarray)]
        new = [(axis, column) for axis, column in found if axis.able and axis.find(column) is None]
        for axis, column in new:
            axis.grow(column)
        if new:
            self.build()

    def build(self) -> None:
        """Evaluate every formula whose combinations are worth it; the same combinations are not evaluated again."""
        limit = min(_MOST, _WORTH * self.rows)
        worth = tuple(
            all(self.axes[name].able for name in names) and self.size_of(names) <= limit for _, names in _FORMULAS
        )
        key = (worth, *(axis.values.tobytes() for axis in self.axes.values()))
        if key in self.figures.built:
            self.known, self.keys, self.rowwise = self.figures.built[key]
            return
        asked = self._combinations()
        self.known, self.rowwise = {}, {}
        for (formula, names), able in zip(_FORMULAS, worth, strict=True):
            if able:
                self.known |= {name: _labelled(number) for name, number in formula(asked).items()}
            else:
                self.rowwise[formula] = names
        self._share()
        self.figures.built.clear()
        if sum(np.size(values) for _, values in self.known.values()) <= _KEPT:
            self.figures.built[key] = self.known, self.keys, self.rowwise

    def _share(self) -> None:
        """Let small tables have the axes of larger ones, so that rows need fewer keys; count how often each is used."""
        shared: dict[tuple[str, ...], int] = {}
        for name, (axes, values) in sorted(self.known.items(), key=lambda item: -np.size(item[1][1])):
            able = {size: other for other, size in shared.items() if size <= _SHARED and {*axes} <= {*other}}
            if len(axes) > 1 and axes not in shared and able:
                wide = able[min(able)]
                shape = [len(self.axes[axis].values) if axis in axes else 1 for axis in wide]
                full = np.broadcast_to(values.reshape(shape), [len(self.axes[axis].values) for axis in wide])
                self.known[name] = wide, full.reshape(-1)
            shared |= {axes[i:]: self.size_of(axes[i:]) for i in range(len(axes)) if axes[i:] not in shared}
        uses = Counter(axes for axes, _ in self.known.values())
        # A key is made of the one of all its axes but the first.
        for count in range(len(AXES), 1, -1):
            for axes in [axes for axes in uses if len(axes) == count]:
                uses[axes[1:]] += 1
        self.keys = {axes: (self.size_of(axes[1:]), used) for axes, used in uses.items()}

    def size_of(self, axes: tuple[str, ...]) -> int:
        """Combinations of some axes."""
        return math.prod(len(self.axes[name].values) for name in axes)

    def _combinations(self) -> _Asked:
        """All combinations: every choice has an axis of its own, and formulas broadcast."""
        columns: dict[str, Any] = {}
        for after, name in enumerate(reversed(AXES)):
            values = self.axes[name].values if self.axes[name].able else np.ones(1, dtype=np.int64)
            columns[name] = values.reshape(-1, *[1] * after) if len(values) > 1 else int(values[0])
        each, machine = Late(self.figures.each), Late(self.figures.machine)
        # The other columns are on no axis: no formula looks at them, but for dp, which the ranks tell.
        others = ("dp", "microbatch", "global_batch", "flash", "fused_loss")
        c = columns_as_choices(columns | dict.fromkeys(others, 1))
        left = machine.ranks / (c.tp * c.pp)
        dp = larger(1.0, floor(left / c.cp))
        return _Asked(attrs.evolve(c, dp=dp), each, machine, larger(1.0, floor(left)))


def _labelled(number: Number) -> tuple[tuple[str, ...], Number]:
    """The axes that values depend on, and the values one after the other."""
    number = plain(number)
    if not isinstance(number, np.ndarray):
        return (), number
    names = AXES[len(AXES) - number.ndim :]
    return tuple(name for name, size in zip(names, number.shape, strict=True) if size > 1), number.reshape(-1)


class Looked:
    """The values of formulas for some rows, by name; looked up whenever one is asked for, and not kept."""

    unknown = 0.0

    def __init__(self, tables: Tables, columns: dict[str, Any], places: dict[str, NDArray[np.intp]]) -> None:
        self._tables = tables
        self._columns = columns
        self._places = places
        self._keys: dict[tuple[str, ...], NDArray[np.intp]] = {}
        self._left: dict[tuple[str, ...], int] = {}

    def __getattr__(self, name: str) -> Number:
        if name not in self._tables.known:
            try:
                return self._rowwise[name]
            except KeyError:
                raise AttributeError(name) from None
        axes, values = self._tables.known[name]
        return values.take(self._key(axes)) if axes else values

    def _key(self, axes: tuple[str, ...]) -> NDArray[np.intp]:
        """The places of rows among all combinations of some axes; kept until it was asked for as often as is known."""
        key, left = self._keys.get(axes), self._left.get(axes, 0)
        if key is None:
            step, left = self._tables.keys[axes]
            key = self._places[axes[0]]
            if len(axes) > 1:
                key = key * step
                key += self._key(axes[1:])
        if left > 1:
            self._keys[axes], self._left[axes] = key, left - 1
        else:
            self._keys.pop(axes, None)
        return key

    @cached_property
    def _rowwise(self) -> dict[str, Number]:
        """The values that are in no table."""
        figures, which = self._tables.figures, self._columns["which"]
        # Columns that none of them looks at need not become floats.
        needed = {"dp", *chain.from_iterable(self._tables.rowwise.values())}
        columns = {name: column if name in needed else 1 for name, column in self._columns.items()}
        asked = _Asked(columns_as_choices(columns), Late(figures.each, which), Late(figures.machine, which))
        found: dict[str, Number] = {}
        for formula in self._tables.rowwise:
            found |= formula(asked)
        return found


def columns_as_choices(columns: dict[str, Any]) -> Choices:
    """Columns of whole numbers as floats, and words as what they mean."""
    floats = {n: as_float(columns[n]) for n in (*COUNTS, *FLAGS, "zero") if n != "interleave"}
    floats["sequence"] = floats.pop("sequence_parallel")
    floats["recompute"] = recomputed(columns["recompute"])
    schedule, interleave = columns["schedule"], columns["interleave"]
    return Choices(**floats, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))


def as_float(column: Any) -> Number:
    """Whole numbers as floats."""
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)
