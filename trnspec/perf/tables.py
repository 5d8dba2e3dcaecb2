"""What the rows of a batch have in common: computed once for each combination of choices that occurs, and looked up.

A formula that depends on few choices is evaluated on arrays that have an axis for each of them.  What it gives has the
axes that it turned out to depend on; a row finds its element there by the places of its own choices.  Where there would
be too many combinations, a formula is evaluated for every row instead, with the same bits.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from trnspec.perf import costs
from trnspec.perf.choices import COUNTS, FLAGS, WORDS, Choices, optimized, scheduled, turns, undealt, unfit, unsplit
from trnspec.perf.links import Links, links
from trnspec.perf.machine import Machine
from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.terms import Terms, terms
from trnspec.perf.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from trnspec.perf.estimate import Estimator
    from trnspec.perf.plan import Plan

    _Formula: TypeAlias = Callable[["_Asked"], dict[str, Number]]

_MOST = 1 << 20
"""Combinations of choices that a formula is evaluated on; beyond, it is evaluated for every row."""
_WORTH = 4
"""Combinations for each row of a batch that are worth it."""
_VALUES = 256
"""Different numbers that a column may have to be an axis."""
_SHARED = 1 << 13
"""Combinations that a table may be widened to, so that rows find their places in several alike."""
_LARGEST = 1 << 20
"""What such a number is below."""

AXES = (
    *("optimizer", "zero", "interleave", "schedule", "overlap", "recompute", "sequence_parallel", "seq", "cp"),
    *("pp", "ep", "tp", "which"),
)
"""The axes of the combinations; the last one is the fastest, and the longest as a rule."""
LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | {"zero": 3} | dict.fromkeys(FLAGS, 1)
"""The highest number of the columns that have one; all count from 0."""


@frozen
class Figures:
    """The numbers of some estimators side by side: arrays, or one number where it is the same for all.

    Attributes:
        each: Those of :class:`~trnspec.perf.terms.Terms`, and ``heads`` and ``experts``, 1 for none.
        machine: Those of :class:`~trnspec.perf.machine.Machine`.
    """

    each: dict[str, Number]
    machine: dict[str, Number]

    @classmethod
    def of(cls, estimators: Sequence[Estimator]) -> Figures:
        """Those of some estimators; remembered, since a small batch would spend much of its time on them."""
        return _figures(_Held(tuple(estimators)))

    @classmethod
    def computed(cls, estimators: Sequence[Estimator]) -> Figures:
        """Those of some estimators."""
        machine = _stacked(Machine, [e.numbers for e in estimators])
        model = _stacked(Transformer, [e.model for e in estimators])
        made = terms(Transformer(**model), Machine(**machine))
        each = {f.name: getattr(made, f.name) for f in attrs.fields(Terms)}
        each["heads"] = np.array([e.dims.heads for e in estimators])
        each["experts"] = np.array([max(1.0, e.dims.experts) for e in estimators])
        return cls({name: plain(number) for name, number in each.items()}, machine)


class _Held:
    """Some estimators, compared as objects: what they say takes long to compare."""

    def __init__(self, estimators: tuple[Estimator, ...]) -> None:
        self.estimators = estimators
        self._places = tuple(map(id, estimators))

    def __hash__(self) -> int:
        return hash(self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self._places == other._places


@lru_cache(maxsize=8)
def _figures(held: _Held) -> Figures:
    return Figures.computed(held.estimators)


def _stacked(of: type, objects: Sequence[Any]) -> dict[str, Number]:
    """The attributes of some objects, each an array, or one number."""
    names = [f.name for f in attrs.fields(of)]
    table = np.array(list(map(attrgetter(*names), objects))).T.copy()
    return {name: plain(row) for name, row in zip(names, table, strict=True)}


def plain(number: Number) -> Number:
    """One number where all of an array is the same."""
    if not isinstance(number, np.ndarray):
        return number
    low = number.min()
    return number if low != number.max() else float(low) if number.dtype == np.float64 else low


class _Late:
    """Figures of rows, gathered whenever one is asked for and not kept: the memory that they take stays in cache."""

    def __init__(self, figures: dict[str, Number], which: Any) -> None:
        self._figures = figures
        self._which = which

    def __getattr__(self, name: str) -> Number:
        try:
            found = self._figures[name]
        except KeyError:
            raise AttributeError(name) from None
        return found[self._which] if isinstance(found, np.ndarray) else found


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
    cause = unfit(asked.choices, asked.machine.ranks, asked.each.heads, asked.each.experts, unknown)
    return {"unfit": cause, "dp": asked.choices.dp}


def _undealt(asked: _Asked) -> dict[str, Number]:
    return {"undealt": undealt(asked.choices, asked.each.layers), "turns": turns(asked.choices)}


def _unsplit(asked: _Asked) -> dict[str, Number]:
    return {"unsplit": unsplit(asked.choices)}


def _priced(compute: Callable[[Terms, Plan, Links], dict[str, Number]]) -> _Formula:
    return lambda asked: compute(asked.each, asked.plan, asked.use)


_FORMULAS: tuple[tuple[_Formula, tuple[str, ...]], ...] = (
    (_unfit, ("cp", "pp", "ep", "tp", "which")),
    (_undealt, ("interleave", "schedule", "pp", "which")),
    (_unsplit, ("sequence_parallel", "seq", "cp", "tp")),
    # What is not known is a cause for refusal, and need not be looked up again.
    *((_priced(f), axes) for f, axes in costs.GROUPS.items() if f is not costs.missing),
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
        rowwise: The formulas that are evaluated for every row.
        uses: How often the rows of a block need the key of some axes.
    """

    figures: Figures
    rows: int
    axes: dict[str, _Axis]
    known: dict[str, tuple[tuple[str, ...], Number]] = field(factory=dict)
    rowwise: list[_Formula] = field(factory=list)
    uses: Counter[tuple[str, ...]] = field(factory=Counter)

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
        """Evaluate every formula whose combinations are worth it."""
        self.known, self.rowwise = {}, []
        asked, limit = self._combinations(), min(_MOST, _WORTH * self.rows)
        for formula, names in _FORMULAS:
            needed = [self.axes[name] for name in names]
            if all(axis.able for axis in needed) and math.prod(len(axis.values) for axis in needed) <= limit:
                self.known |= {name: _labelled(number) for name, number in formula(asked).items()}
            else:
                self.rowwise.append(formula)
        self._share()

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
        self.uses = Counter(axes for axes, _ in self.known.values())
        # A key is made of the one of all its axes but the first.
        for count in range(len(AXES), 1, -1):
            for axes in [axes for axes in self.uses if len(axes) == count]:
                self.uses[axes[1:]] += 1

    def size_of(self, axes: tuple[str, ...]) -> int:
        """Combinations of some axes."""
        return math.prod(len(self.axes[name].values) for name in axes)

    def _combinations(self) -> _Asked:
        """All combinations: every choice has an axis of its own, and formulas broadcast."""
        columns: dict[str, Any] = {}
        for after, name in enumerate(reversed(AXES)):
            values = self.axes[name].values if self.axes[name].able else np.ones(1, dtype=np.int64)
            columns[name] = values.reshape(-1, *[1] * after) if len(values) > 1 else int(values[0])
        each, machine = _Late(self.figures.each, ...), _Late(self.figures.machine, ...)
        # The other columns are on no axis: no formula looks at them, but for dp, which the ranks tell.
        c = columns_as_choices(columns | {"dp": 1, "microbatch": 1, "global_batch": 1, "flash": 1})
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
        key = self._keys.pop(axes, None)
        if key is None:
            first, rest = axes[0], axes[1:]
            key = self._places[first]
            if rest:
                key = key * self._tables.size_of(rest)
                key += self._key(rest)
            self._left[axes] = self._tables.uses[axes]
        self._left[axes] -= 1
        if self._left[axes]:
            self._keys[axes] = key
        return key

    @cached_property
    def _rowwise(self) -> dict[str, Number]:
        """The values that are in no table."""
        figures, which = self._tables.figures, self._columns["which"]
        asked = _Asked(columns_as_choices(self._columns), _Late(figures.each, which), _Late(figures.machine, which))
        found: dict[str, Number] = {}
        for formula in self._tables.rowwise:
            found |= formula(asked)
        return found


def columns_as_choices(columns: dict[str, Any]) -> Choices:
    """Columns of whole numbers as floats, and words as what they mean."""
    floats = {n: as_float(columns[n]) for n in (*COUNTS, *FLAGS, "zero", "recompute") if n != "interleave"}
    floats["sequence"] = floats.pop("sequence_parallel")
    schedule, interleave = columns["schedule"], columns["interleave"]
    return Choices(**floats, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))


def as_float(column: Any) -> Number:
    """Whole numbers as floats."""
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)
