"""Reductions: what sweeps and searches keep of the configurations that they evaluate.

Sweeps keep the fastest, the fastest of each estimator, or a Pareto front; searches the best by any measure under conditions, a
front, the nearest to fitting, and counts by reason.  What is kept of two sets of configurations, merged, is what is kept of both
together, in any order and grouping: configurations are numbered, and of equal ones the first is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from trnspec.perf.searching.conditions import Condition, holds

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

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
    columns: Mapping[str, NDArray[Any]]

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
    parts = [front_of(rows.at(rows.columns[BOUND] == kind), goals) for kind in (0.0, 1.0)]
    return joined(parts).ordered((Goal(BOUND), *goals))


def front_of(rows: Rows, goals: Sequence[Goal], then: Sequence[Goal] = ()) -> Rows:
    """The rows that no other row is better than; see :func:`front`. Of equal ones the first by further goals is kept."""
    rows = rows.ordered((*goals, *then))
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


@frozen
class Block:
    """Consecutive configurations of a sweep, or a batch.

    Attributes:
        which: Position of the estimator.
        start: Number of the first configuration, among those of that estimator.
        time: Time of a step [s]; 0 where the code is not 0.
        code: Code of :data:`~trnspec.perf.sweep.columns.REASONS`; 0 where there is a time.
        memory: Memory of the rank that needs the most [B]; 0 where a layout is rejected for another reason than memory,
            and of length 0 where memory was not computed.
        parts: Selected parts of the time [s], by name.
    """

    which: int
    start: int
    time: NDArray[np.float64]
    code: NDArray[np.uint8]
    memory: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]] = field(factory=dict)

    def rows(self, places: NDArray[np.intp], **further: NDArray[np.float64]) -> Rows:
        """Some configurations with ``which``, ``time``, ``memory`` and further measures."""
        memory = self.memory[places] if len(self.memory) else np.zeros(len(places))
        which = np.full(len(places), self.which, dtype=np.int64)
        columns = {"which": which, "time": self.time[places], "memory": memory, **further}
        return Rows(places + self.start, columns)


@frozen
class Kept:
    """Configurations that a sweep kept, one per row, in the order that the reduction gives them.

    Attributes:
        which: Position of the estimator of each.
        number: Number of each, among those of its estimator.
        time: Time of a step [s].
        memory: Memory of the rank that needs the most [B].
    """

    which: NDArray[np.int64]
    number: NDArray[np.int64]
    time: NDArray[np.float64]
    memory: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Rows) -> Kept:
        """The configurations of some rows."""
        return cls(rows.columns["which"], rows.index, rows.columns["time"], rows.columns["memory"])

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self.time)


class Reduction(Protocol[R_co]):
    """An object that sees each block of a sweep and keeps what it needs; a block's arrays are not reused."""

    def take(self, block: Block) -> None:
        """Process a block."""

    def merge(self, other: Any) -> None:
        """Add what another one, of the same kind, has kept of other blocks; the order of merges does not matter."""

    def result(self) -> R_co:
        """The result."""


_BY_TIME = (Goal("time"), Goal("which"))


def _nothing() -> Rows:
    none = np.zeros(0, dtype=np.int64)
    return Rows(none, {"which": none, "time": np.zeros(0), "memory": np.zeros(0)})


@define
class Top:
    """The fastest configurations of all.

    Attributes:
        count: Number of configurations to keep.
        slowest: The longest time of those that are kept [s].
    """

    count: int
    slowest: float = float("inf")
    _kept: Rows = field(factory=_nothing, init=False)

    def take(self, block: Block) -> None:
        """Keep what is among the fastest."""
        limit = self.slowest
        if 0 < self.count <= len(self._kept):
            limit = min(limit, float(self._kept.columns["time"][self.count - 1]))
        places = np.flatnonzero((block.code == 0) & (block.time <= limit))
        if 0 < self.count < len(places):
            times = block.time[places]
            places = places[times <= np.partition(times, self.count - 1)[self.count - 1]]
        self._keep(block.rows(places))

    def merge(self, other: Top) -> None:
        """Keep what another one of the same count kept of other configurations."""
        self._keep(other._kept)

    def _keep(self, rows: Rows) -> None:
        if len(rows):
            self._kept = joined([self._kept, rows]).ordered(_BY_TIME).at(slice(0, self.count))

    def result(self) -> Kept:
        """The kept configurations, fastest first."""
        return Kept.of(self._kept)


@define
class Best:
    """The fastest configurations of each estimator (a model on a system).

    Attributes:
        count: Number of configurations to keep of each.
    """

    count: int = 1
    _each: dict[int, Top] = field(factory=dict, init=False)

    def take(self, block: Block) -> None:
        """Keep the fastest of the block's estimator."""
        self._each.setdefault(block.which, Top(self.count)).take(block)

    def merge(self, other: Best) -> None:
        """Keep what another one of the same count kept of other configurations."""
        for which, top in other._each.items():
            self._each.setdefault(which, Top(self.count)).merge(top)

    def result(self) -> Kept:
        """The kept configurations by estimator, fastest first."""
        kept = [self._each[which].result() for which in sorted(self._each)] or [Kept.of(_nothing())]
        columns = zip(*((one.which, one.number, one.time, one.memory) for one in kept), strict=True)
        return Kept(*map(np.concatenate, columns))


@define
class Pareto:
    """The Pareto front of two costs.

    Attributes:
        costs: Function from a block to two arrays; step time and memory by default.
    """

    costs: Callable[[Block], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None
    _kept: list[Rows] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Keep the front of the block and the configurations kept so far."""
        places = np.flatnonzero(block.code == 0)
        if not len(places):
            return
        first, second = (block.time, block.memory) if self.costs is None else self.costs(block)
        # Reduce the block to its own front first: merging two small fronts is cheap.
        self._keep(_front_of_sweep(block.rows(places, first=first[places], second=second[places])))

    def merge(self, other: Pareto) -> None:
        """Keep the front of this one and of another one of the same costs."""
        for rows in other._kept:
            self._keep(rows)

    def _keep(self, rows: Rows) -> None:
        self._kept = [_front_of_sweep(joined([*self._kept, rows]))]

    def result(self) -> Kept:
        """The front, by ascending first cost."""
        return Kept.of(self._kept[0] if self._kept else _nothing())


def _front_of_sweep(rows: Rows) -> Rows:
    return front_of(rows, (Goal("first"), Goal("second")), (Goal("which"),))


_EMPTY = Block(0, 0, np.zeros(0), np.zeros(0, dtype=np.uint8), np.zeros(0))


@define
class Everything:
    """All configurations: arrays over all estimators and their combinations."""

    _blocks: list[Block] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Keep the block."""
        self._blocks.append(block)

    def merge(self, other: Everything) -> None:
        """Keep the blocks of another one too."""
        self._blocks += other._blocks

    def result(self) -> Block:
        """One block with all of them, in the order of the estimators."""
        blocks = sorted(self._blocks, key=lambda b: (b.which, b.start)) or [_EMPTY]
        names = blocks[0].parts
        return Block(
            0,
            0,
            np.concatenate([b.time for b in blocks]),
            np.concatenate([b.code for b in blocks]),
            np.concatenate([b.memory for b in blocks]),
            {name: np.concatenate([b.parts[name] for b in blocks]) for name in names},
        )


@define
class Each(Generic[R]):
    """The results of a function of each block.

    Attributes:
        function: Function from a block to any value.
    """

    function: Callable[[Block], R]
    _results: list[R] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Call the function."""
        self._results.append(self.function(block))

    def result(self) -> list[R]:
        """One result per block."""
        return self._results


@define
class Limit:
    """A time that the fastest configurations do not exceed, whichever of equally fast ones are kept.

    Attributes:
        count: Number of configurations that are kept.
        limit: The time of the slowest of as many configurations with different times [s].
    """

    count: int
    limit: float = float("inf")
    _times: NDArray[np.float64] = field(factory=lambda: np.zeros(0), init=False)

    def take(self, times: NDArray[np.float64]) -> None:
        """Take the times of valid configurations."""
        faster = times[times < self.limit]
        if self.count and len(faster):
            self._times = np.unique(np.concatenate([self._times, faster]))[: self.count]
            if len(self._times) == self.count:
                self.limit = min(self.limit, float(self._times[-1]))


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

    def empty(self) -> Selected:
        """Nothing kept yet."""
        return Selected(self, _none(self.columns), _none(self.columns), _none((EXCESS,)))


def _none(names: Sequence[str]) -> Rows:
    return Rows(np.zeros(0, dtype=np.int64), {name: np.zeros(0) for name in names})


@define(eq=False)
class Selected:
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

    def merge(self, other: Selected) -> None:
        """Keep what another one of the same selection kept of other configurations."""
        goals = (Goal(BOUND), self.selection.goal)
        self.best = joined([self.best, other.best]).ordered(goals).at(slice(0, self.selection.top))
        if self.selection.front:
            self.front = front(joined([self.front, other.front]), self.selection.front)
        self.nearest = joined([self.nearest, other.nearest]).ordered((Goal(EXCESS),)).at(slice(0, 1))
        self.counts.update(other.counts)
        for name, ends in other.ranges.items():
            self._range(name, *ends)
