"""What the rows of a batch have in common: computed once for each combination of choices that occurs, and looked up.

A formula that depends on few choices is evaluated on arrays that have an axis for each of them.  What it gives has the
axes that it turned out to depend on; a row finds its element there by the places of its own choices.  Where there would
be too many combinations, a formula is evaluated for every row instead, with the same bits.
"""

from __future__ import annotations

import math
from functools import cached_property
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
from trnspec.perf.plan import Plan
from trnspec.perf.terms import Terms, terms
from trnspec.perf.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trnspec.perf.estimate import Estimator

_MOST = 1 << 20
"""Combinations of choices that a formula is evaluated on; beyond, it is evaluated for every row."""
_WORTH = 4
"""Combinations for each row of a batch that are worth it."""
_VALUES = 256
"""Different numbers that a column may have to be an axis."""
_LARGEST = 1 << 20
"""What such a number is below."""

AXES = (
    *("optimizer", "zero", "interleave", "schedule", "overlap", "recompute", "sequence_parallel", "seq", "cp"),
    *("pp", "ep", "tp", "which"),
)
"""The axes of the combinations; the last one is the fastest, and the longest as a rule."""
_COUNTED = tuple(name for name in AXES if name in COUNTS)
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
        """Those of some estimators."""
        machine = _stacked(Machine, [e.numbers for e in estimators])
        model = _stacked(Transformer, [e.model for e in estimators])
        made = terms(Transformer(**model), Machine(**machine))
        each = {f.name: getattr(made, f.name) for f in attrs.fields(Terms)}
        each["heads"] = np.array([e.dims.heads for e in estimators])
        each["experts"] = np.array([max(1.0, e.dims.experts) for e in estimators])
        return cls({name: _plain(number) for name, number in each.items()}, machine)


def _stacked(of: type, objects: Sequence[Any]) -> dict[str, Number]:
    """The attributes of some objects, each an array, or one number."""
    names = [f.name for f in attrs.fields(of)]
    table = np.array(list(map(attrgetter(*names), objects))).T.copy()
    return {name: _plain(row) for name, row in zip(names, table, strict=True)}


def _plain(number: Number) -> Number:
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
        return found.take(self._which) if isinstance(found, np.ndarray) else found


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
    unknown = costs.unknown(asked.each, asked.plan, asked.use)["unknown"]
    cause = unfit(asked.choices, asked.machine.ranks, asked.each.heads, asked.each.experts, unknown)
    return {"unfit": cause, "dp": asked.choices.dp}


def _undealt(asked: _Asked) -> dict[str, Number]:
    return {"undealt": undealt(asked.choices, asked.each.layers), "turns": turns(asked.choices)}


def _unsplit(asked: _Asked) -> dict[str, Number]:
    return {"unsplit": unsplit(asked.choices)}


def _priced(compute: Callable[[Terms, Plan, Links], dict[str, Number]]) -> Callable[[_Asked], dict[str, Number]]:
    return lambda asked: compute(asked.each, asked.plan, asked.use)


_FORMULAS: tuple[tuple[Callable[[_Asked], dict[str, Number]], tuple[str, ...]], ...] = (
    (_unfit, ("cp", "pp", "ep", "tp", "which")),
    (_undealt, ("interleave", "schedule", "pp", "which")),
    (_unsplit, ("sequence_parallel", "seq", "cp", "tp")),
    # What is not known is a cause for refusal, and need not be looked up again.
    *((_priced(f), axes) for f, axes in costs.GROUPS.items() if f is not costs.unknown),
)


@define
class Tables:
    """Every formula's values on the combinations that occurred so far.

    Attributes:
        figures: The numbers of the estimators.
        size: Rows of the batch.
        values: The numbers that columns have had, for those that are an axis.
    """

    figures: Figures
    size: int
    count: int
    values: dict[str, NDArray[np.int64]] = field(factory=dict)
    _places: dict[str, NDArray[np.intp]] = field(factory=dict)
    _sizes: dict[str, int] = field(factory=dict)
    tables: dict[str, tuple[tuple[str, ...], Number]] = field(factory=dict)
    rowwise: dict[str, Callable[[_Asked], dict[str, Number]]] = field(factory=dict)

    def places(self, columns: dict[str, Any]) -> dict[str, NDArray[np.intp]]:
        """The places of some rows' choices on the axes, which grow by what is new."""
        found: dict[str, NDArray[np.intp]] = {}
        new = not self._sizes
        for name in AXES:
            column = columns[name]
            if not isinstance(column, np.ndarray):
                new |= self._scalar(name, column)
            elif name not in _COUNTED:
                self._sizes[name] = self.count if name == "which" else LIMITS[name] + 1
                found[name] = column.astype(np.intp, copy=False)
            elif len(self.values.get(name, ())) <= _VALUES:
                known = self._places.get(name)
                if known is None or column.max() >= len(known) or (place := known.take(column)).min() < 0:
                    new = True
                    place = self._learn(name, column)
                found[name] = place
        if new:
            self._build()
        return found

    def _scalar(self, name: str, number: int) -> bool:
        self._sizes[name] = 1
        return self.values.setdefault(name, np.array([number])) is None

    def _learn(self, name: str, column: NDArray[np.int64]) -> NDArray[np.intp]:
        """Take up new numbers of a column, and say their places."""
        had = self.values.get(name, column[:0])
        values = np.union1d(had, column)
        if values[-1] >= _LARGEST:
            values = np.arange(_VALUES + 1)
        self.values[name], self._sizes[name] = values, len(values)
        if len(values) > _VALUES:
            return np.zeros(0, dtype=np.intp)
        self._places[name] = np.full(int(values[-1]) + 1, -1, dtype=np.intp)
        self._places[name][values] = np.arange(len(values))
        return self._places[name].take(column)

    def _build(self) -> None:
        """Evaluate all formulas that are worth it on all combinations."""
        self.tables, self.rowwise = {}, {}
