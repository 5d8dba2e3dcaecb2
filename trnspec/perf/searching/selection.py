"""What a search keeps: the best configurations, a Pareto front, the nearest to fitting, and counts by reason.

What is kept of two sets of configurations, merged, is what is kept of both together, in any order and grouping: configurations
are numbered, and of equal ones the first is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from trnspec.perf.searching.conditions import Condition, holds

BOUND = "bound"
"""The measure that is 1 for configurations whose times are bounds; they are ranked by themselves, last."""
EXCESS = "excess"
"""The memory that a configuration needs, over that of a rank."""
OUTSIDE = "constraint"
"""The reason of a configuration that the condition excludes."""
UNFIT = "does-not-fit"
"""The reason of a configuration that does not fit in memory."""


@frozen
class Goal:
    """A measure that is to be as small, or as large, as possible.

    Attributes:
        name: The measure.
        sign: 1.0 for the smallest, -1.0 for the largest.
    """

    name: str
    sign: float = 1.0


@frozen(eq=False)
class Rows:
    """Some configurations.

    Attributes:
        index: The number of each in the search.
        columns: Measures by name, an element per configuration.
    """

    index: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, index: Sequence[int], columns: Mapping[str, Sequence[float]]) -> Rows:
        """Rows of plain numbers."""
        arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
        return cls(np.asarray(index, dtype=np.int64), arrays)

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self.index)

    def at(self, chosen: Any) -> Rows:
        """Some of them, by positions or by a mask."""
        return Rows(self.index[chosen], {name: column[chosen] for name, column in self.columns.items()})

    def ordered(self, goals: Sequence[Goal]) -> Rows:
        """By goals, the first first; equal ones by their numbers."""
        keys = [self.index, *(goal.sign * self.columns[goal.name] for goal in reversed(goals))]
        return self.at(np.lexsort(keys))

    def plain(self) -> dict[str, list[Any]]:
        """The columns as lists, the numbers first."""
        return {"index": self.index.tolist(), **{n: c.tolist() for n, c in self.columns.items()}}


def joined(parts: Sequence[Rows]) -> Rows:
    """The concatenation of some rows with the same columns."""
    names = parts[0].columns
    columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in names}
    return Rows(np.concatenate([p.index for p in parts]), columns)


def front(rows: Rows, goals: Sequence[Goal]) -> Rows:
    """The rows that no other row is better than: in one goal, and as good in the others; of equal rows the first.

    Bounds and estimates are not comparable, so each kind has its own front.  In order of the first goal.
    """
    parts = [_front(rows.at(rows.columns[BOUND] == kind), goals) for kind in (0.0, 1.0)]
    return joined(parts).ordered((Goal(BOUND), *goals))


def _front(rows: Rows, goals: Sequence[Goal]) -> Rows:
    rows = rows.ordered(goals)
    costs = np.stack([goal.sign * rows.columns[goal.name] for goal in goals], axis=1)
    if len(goals) == 2:
        # In order of the first goal: a row is in the front where the second is less than all before.
        before = np.minimum.accumulate(np.concatenate(([np.inf], costs[:-1, 1]))) if len(rows) else costs[:, 1]
        return rows.at(costs[:, 1] < before)
    kept = np.zeros(0, dtype=np.int64)
    for at in range(len(rows)):
        # A row can only be dominated by one before it, and then also by one of the front.
        if not (costs[kept] <= costs[at]).all(axis=1).any():
            kept = np.append(kept, at)
    return rows.at(kept)


@frozen(eq=False)
class Candidates:
    """Evaluated configurations with consecutive numbers.

    Attributes:
        start: The number of the first.
        reasons: Names of codes.
        code: Why each is invalid, as the position of a reason; 0 for a feasible one.
        measure: The values of a measure, by its name, at some positions; ``None`` if it is unknown.
        listed: Which of some positions may be kept; the others are the same as a configuration before them.
    """

    start: int
    reasons: Sequence[str]
    code: NDArray[np.uint8]
    measure: Callable[[str, NDArray[np.int64]], Any]
    listed: Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None = None


@frozen
class Selection:
    """What is kept of the configurations of a search.

    Attributes:
        goal: What the best have the least or the most of.
        top: How many of the best.
        front: The goals of a Pareto front; none for no front.
        where: The condition that configurations must meet.
        ranged: Measures whose least and largest value among all feasible configurations is kept.
    """

    goal: Goal
    top: int
    front: tuple[Goal, ...] = ()
    where: Condition | None = None
    ranged: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The measures of kept rows."""
        return tuple(dict.fromkeys((BOUND, self.goal.name, *(g.name for g in self.front))))

    def empty(self) -> Kept:
        """Nothing kept yet."""
        return Kept(self, _none(self.columns), _none(self.columns), _none((EXCESS,)))


def _none(names: Sequence[str]) -> Rows:
    return Rows(np.zeros(0, dtype=np.int64), {name: np.zeros(0) for name in names})


@define(eq=False)
class Kept:
    """What is kept of some configurations.

    Attributes:
        selection: What is to be kept.
        best: The best, first the best.
        front: The Pareto front.
        nearest: The configuration that needs the least memory of those that do not fit.
        counts: The number of configurations by reason; of feasible ones under an empty text.
        ranges: The least and the largest value of measures among feasible configurations.
    """

    selection: Selection
    best: Rows
    front: Rows
    nearest: Rows
    counts: Counter[str] = field(factory=Counter)
    ranges: dict[str, tuple[float, float]] = field(factory=dict)

    @property
    def evaluated(self) -> int:
        """Number of configurations."""
        return sum(self.counts.values())

    @property
    def feasible(self) -> int:
        """Number of those that are valid, fit, and meet the condition."""
        return self.counts[""]

    def take(self, some: Candidates) -> None:
        """Keep what is to be kept of evaluated configurations."""
        numbers = np.bincount(some.code, minlength=len(some.reasons)).tolist()
        self.counts.update({r: n for r, n in zip(some.reasons, numbers, strict=True) if n})
        self._nearest(some)
        places = np.flatnonzero(some.code == 0)
        if not len(places):
            return
        for name in self.selection.ranged:
            if (values := some.measure(name, places)) is not None:
                self._range(name, float(np.min(values)), float(np.max(values)))
        inside = holds(self.selection.where, lambda name: some.measure(name, places), len(places))
        places = self._counted(places, inside, OUTSIDE)
        # A measure is known of all configurations with a system, or of none.
        for name in self.selection.columns:
            if len(places) and some.measure(name, places[:1]) is None:
                self._counted(places, np.zeros(len(places), dtype=bool), f"unknown-{name}")
                return
        if some.listed is not None and len(places):
            places = places[some.listed(places)]
        places = self._promising(some, places)
        columns: dict[str, NDArray[np.float64]] = {}
        for name in self.selection.columns:
            values = some.measure(name, places) if len(places) else np.zeros(0)
            columns[name] = np.array(np.broadcast_to(values, len(places)), dtype=np.float64)
        self._keep(Rows(places + some.start, columns))

    def _counted(self, places: NDArray[np.int64], inside: NDArray[np.bool_], reason: str) -> NDArray[np.int64]:
        """The places inside; the others are counted under a reason instead of as feasible."""
        excluded = len(places) - int(inside.sum())
        if excluded:
            self.counts[""] -= excluded
            self.counts[reason] += excluded
        return places[inside]

    def _promising(self, some: Candidates, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places that may be among the best; all of them where a front is kept."""
        top, goal = self.selection.top, self.selection.goal
        if self.selection.front or len(self.best) < top or not len(places):
            return places
        values, bounds = some.measure(goal.name, places), some.measure(BOUND, places)
        last = {name: column[-1] for name, column in self.best.columns.items()}
        worse = (bounds > last[BOUND]) | ((bounds == last[BOUND]) & (goal.sign * values > goal.sign * last[goal.name]))
        kept: NDArray[np.int64] = places[~np.broadcast_to(worse, len(places))]
        return kept

    def _nearest(self, some: Candidates) -> None:
        if UNFIT not in some.reasons:
            return
        places = np.flatnonzero(some.code == list(some.reasons).index(UNFIT))
        if len(places) and (values := some.measure(EXCESS, places)) is not None:
            at = int(np.argmin(values))
            row = Rows(places[at : at + 1] + some.start, {EXCESS: np.asarray(values, dtype=np.float64)[at : at + 1]})
            self.nearest = joined([self.nearest, row]).ordered((Goal(EXCESS),)).at(slice(0, 1))

    def _range(self, name: str, low: float, high: float) -> None:
        before = self.ranges.get(name, (low, high))
        self.ranges[name] = min(low, before[0]), max(high, before[1])

    def _keep(self, rows: Rows) -> None:
        if not len(rows):
            return
        goals = (Goal(BOUND), self.selection.goal)
        self.best = joined([self.best, rows]).ordered(goals).at(slice(0, self.selection.top))
        if self.selection.front:
            # The front of the new rows first: merging two small fronts is cheap.
            self.front = front(joined([self.front, front(rows, self.selection.front)]), self.selection.front)

    def merge(self, other: Kept) -> None:
        """Keep what another one of the same selection kept of other configurations."""
        goals = (Goal(BOUND), self.selection.goal)
        self.best = joined([self.best, other.best]).ordered(goals).at(slice(0, self.selection.top))
        if self.selection.front:
            self.front = front(joined([self.front, other.front]), self.selection.front)
        self.nearest = joined([self.nearest, other.nearest]).ordered((Goal(EXCESS),)).at(slice(0, 1))
        self.counts.update(other.counts)
        for name, ends in other.ranges.items():
            self._range(name, *ends)
