"""Reductions: what sweeps and searches keep of the configurations that they evaluate.

A selection keeps the best by a goal under conditions, a Pareto front, the nearest to fitting, and counts by reason.  What is kept
of two sets of configurations, merged, is what is kept of both together, in any order and grouping: configurations are numbered,
and of equal ones the first is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from trnspec.perf.work.validity import REASONS

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

Measure = Callable[[str], Any]
"""The values of a measure by its name: an array, one value for all, or ``None`` if it is unknown."""


class Condition(Protocol):
    """A condition on configurations."""

    def holds(self, measure: Measure) -> Any:
        """Truth value for each element: an array, or one value for all."""

    def names(self) -> tuple[str, ...]:
        """The measures it reads."""


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
class Configurations:
    """Some configurations.

    Attributes:
        index: The number of each in the search.
        columns: Measures by name, an element per configuration.
    """

    index: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, index: Sequence[int], columns: Mapping[str, Sequence[float]]) -> Configurations:
        """Rows of plain numbers."""
        arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
        return cls(np.asarray(index, dtype=np.int64), arrays)

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self.index)

    def at(self, chosen: Any) -> Configurations:
        """Some of them, by positions or by a mask."""
        return Configurations(self.index[chosen], {name: column[chosen] for name, column in self.columns.items()})

    def first(self, count: int, goals: Sequence[Goal]) -> Configurations:
        """The first ones by goals, the first goal first; equal ones by their numbers."""
        return self.at(np.lexsort([self.index, *self.costs(goals)[::-1]])[:count])

    def costs(self, goals: Sequence[Goal]) -> list[NDArray[Any]]:
        """For each goal a measure that is to be small."""
        return [goal.sign * self.columns[goal.name] for goal in goals]

    def plain(self) -> dict[str, list[Any]]:
        """The columns as lists, the numbers first."""
        return {"index": self.index.tolist(), **{n: c.tolist() for n, c in self.columns.items()}}


def joined(parts: Sequence[Configurations]) -> Configurations:
    """The concatenation of some rows with the same columns."""
    columns = {name: np.concatenate([p.columns[name] for p in parts]) for name in parts[0].columns}
    return Configurations(np.concatenate([p.index for p in parts]), columns)


def front(rows: Configurations, goals: Sequence[Goal]) -> Configurations:
    """The rows that no other row is better than: in one goal, and as good in the others; of equal rows the first.

    Bounds and estimates are not comparable, so each kind has its own front.  In order of the first goal.
    """
    return joined([_front(rows.at(rows.columns[BOUND] == kind), goals) for kind in (0.0, 1.0)])


def _front(rows: Configurations, goals: Sequence[Goal]) -> Configurations:
    rows = rows.first(len(rows), goals)
    costs = np.stack(rows.costs(goals), axis=1)
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
class ConfigurationSelection:
    """Selection from the configurations of a search.

    Attributes:
        goal: What the best have the least or the most of.
        top: How many of the best.
        front: The goals of a Pareto front; none for no front.
        where: The condition that configurations must meet.
        ranged: Measures whose least and largest value among all feasible configurations is kept.
        more: Further measures of kept rows.
    """

    goal: Goal
    top: int
    front: tuple[Goal, ...] = ()
    where: Condition | None = None
    ranged: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The measures of kept rows."""
        return tuple(dict.fromkeys((BOUND, self.goal.name, *(g.name for g in self.front), *self.more)))

    def empty(self) -> Selected:
        """The empty selection."""
        none: dict[str, tuple[float, ...]] = dict.fromkeys(self.columns, ())
        return Selected(
            self, Configurations.of((), none), Configurations.of((), none), Configurations.of((), {EXCESS: ()})
        )


@define(eq=False)
class Selected:
    """Selection from some configurations.

    Attributes:
        selection: What is to be kept.
        best: The best, first the best.
        front: The Pareto front.
        nearest: The configuration that needs the least memory of those that do not fit.
        counts: The number of configurations by reason; of feasible ones under an empty text.
        ranges: The least and the largest value of measures among feasible configurations.
    """

    selection: ConfigurationSelection
    best: Configurations
    front: Configurations
    nearest: Configurations
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
        if (where := self.selection.where) is not None:
            inside = np.broadcast_to(where.holds(lambda name: some.measure(name, places)), len(places))
            places = self._counted(places, inside, OUTSIDE)
        # A measure is known of all configurations with a system, or of none.
        for name in self.selection.columns:
            if len(places) and some.measure(name, places[:1]) is None:
                self._counted(places, np.zeros(len(places), dtype=bool), f"unknown-{name}")
                return
        if some.listed is not None and len(places):
            places = places[some.listed(places)]
        if len(places):
            columns = {
                name: np.array(np.broadcast_to(some.measure(name, places), len(places)), dtype=np.float64)
                for name in self.selection.columns
            }
            self._keep(Configurations(places + some.start, columns))

    def _counted(self, places: NDArray[np.int64], inside: NDArray[np.bool_], reason: str) -> NDArray[np.int64]:
        """The places inside; the others are counted under a reason instead of as feasible."""
        excluded = len(places) - int(inside.sum())
        if excluded:
            self.counts[""] -= excluded
            self.counts[reason] += excluded
        return places[inside]

    def _nearest(self, some: Candidates) -> None:
        if UNFIT not in some.reasons:
            return
        places = np.flatnonzero(some.code == list(some.reasons).index(UNFIT))
        if len(places) and (values := some.measure(EXCESS, places)) is not None:
            at = int(np.argmin(values))
            row = Configurations.of([int(places[at]) + some.start], {EXCESS: [values[at]]})
            self.nearest = joined([self.nearest, row]).first(1, (Goal(EXCESS),))

    def _range(self, name: str, low: float, high: float) -> None:
        before = self.ranges.get(name, (low, high))
        self.ranges[name] = min(low, before[0]), max(high, before[1])

    def _keep(self, best: Configurations, edge: Configurations | None = None) -> None:
        """Keep rows, of which those that may be in the front may be others than the best."""
        goals = (Goal(BOUND), self.selection.goal)
        self.best = joined([self.best, best]).first(self.selection.top, goals)
        if of := self.selection.front:
            # The front of the new rows first: merging two small fronts is cheap.
            self.front = front(joined([self.front, front(best, of) if edge is None else edge]), of)

    def merge(self, other: Selected) -> None:
        """Keep what another one of the same selection kept of other configurations."""
        self._keep(other.best, other.front)
        self.nearest = joined([self.nearest, other.nearest]).first(1, (Goal(EXCESS),))
        self.counts.update(other.counts)
        for name, ends in other.ranges.items():
            self._range(name, *ends)


@define
class TimeLimit:
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


# Sweeps over several grids.


_GRID = 1 << 48
"""Numbers of configurations of one grid."""


@frozen
class Block:
    """Consecutive configurations of a sweep, or a batch.

    Attributes:
        which: Position of the estimator.
        start: Number of the first configuration, among those of that estimator.
        time: Time of a step [s]; 0 where the code is not 0.
        code: Code of ``reasons``; 0 where there is a time.
        memory: Memory of the rank that needs the most [B]; 0 where a layout is rejected for another reason than memory,
            and of length 0 where memory was not computed.
        parts: Selected parts of the time [s], by name.
        reasons: Names of codes.
    """

    which: int
    start: int
    time: NDArray[np.float64]
    code: NDArray[np.uint8]
    memory: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]] = field(factory=dict)
    reasons: Sequence[str] = REASONS

    def candidates(self, **further: NDArray[np.float64]) -> Candidates:
        """The configurations with the measures ``time`` and ``memory``, and further ones."""
        measures = {"time": self.time, "memory": self.memory, **further}

        def measure(name: str, places: NDArray[np.int64]) -> Any:
            return measures[name][places] if len(measures.get(name, ())) else 0.0 if name != EXCESS else None

        return Candidates(self.which * _GRID + self.start, self.reasons, self.code, measure)


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
    def of(cls, rows: Configurations) -> Kept:
        """The configurations of some rows."""
        return cls(rows.index // _GRID, rows.index % _GRID, rows.columns["time"], rows.columns["memory"])

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


def reduced(blocks: Iterable[Block], keep: Reduction[R]) -> tuple[R, int, dict[str, int]]:
    """The result of a reduction of some blocks, the number of their configurations, and those without a time by reason."""
    counts: Counter[str] = Counter()
    for block in blocks:
        numbers = np.bincount(block.code, minlength=len(block.reasons)).tolist()
        counts.update(dict(zip(block.reasons, numbers, strict=True)))
        keep.take(block)
    return keep.result(), counts.total(), {reason: n for reason, n in counts.items() if reason and n}


class _Selecting:
    """Entries that a selection keeps of all estimators together, or of each."""

    def __init__(self, selection: ConfigurationSelection, *, by_estimator: bool = False, costs: Any = None) -> None:
        self._selection = evolve(selection, more=("time", "memory"))
        self._by_estimator = by_estimator
        self._costs = costs
        self._each: dict[int, Selected] = {}

    def _of(self, which: int) -> Selected:
        return self._each.setdefault(which if self._by_estimator else 0, self._selection.empty())

    def take(self, block: Block) -> None:
        """Keep what is to be kept of a block."""
        costs = () if self._costs is None else self._costs(block)
        self._of(block.which).take(block.candidates(**dict(zip(("first", "second"), costs, strict=False))))

    def merge(self, other: _Selecting) -> None:
        """Keep what another one of the same arguments kept of other configurations."""
        for which, kept in other._each.items():
            self._of(which).merge(kept)

    def result(self) -> Kept:
        """The kept configurations by estimator: the fastest first, or a front by ascending first cost."""
        kept = [self._selection.empty(), *(self._each[which] for which in sorted(self._each))]
        return Kept.of(joined([one.front if self._selection.front else one.best for one in kept]))


class Top(_Selecting):
    """The fastest configurations of all."""

    def __init__(self, count: int) -> None:
        """Keeps ``count`` configurations."""
        super().__init__(ConfigurationSelection(Goal("time"), count))


class Best(_Selecting):
    """The fastest configurations of each estimator (a model on a system)."""

    def __init__(self, count: int = 1) -> None:
        """Keeps ``count`` configurations of each."""
        super().__init__(ConfigurationSelection(Goal("time"), count), by_estimator=True)


class Pareto(_Selecting):
    """The Pareto front of two costs: by default of step time and memory."""

    def __init__(self, costs: Callable[[Block], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None) -> None:
        """Keeps the front of the two arrays that a function computes from a block."""
        goals = (Goal("time"), Goal("memory")) if costs is None else (Goal("first"), Goal("second"))
        super().__init__(ConfigurationSelection(Goal("time"), 0, front=goals), costs=costs)


class Everything:
    """All configurations: arrays over all estimators and their combinations."""

    def __init__(self) -> None:
        """Keeps every block."""
        self._blocks: list[Block] = []

    def take(self, block: Block) -> None:
        """Keep the block."""
        self._blocks.append(block)

    def merge(self, other: Everything) -> None:
        """Keep the blocks of another one too."""
        self._blocks += other._blocks

    def result(self) -> Block:
        """One block with all of them, in the order of the estimators."""
        none = Block(0, 0, np.zeros(0), np.zeros(0, dtype=np.uint8), np.zeros(0))
        blocks = sorted(self._blocks, key=lambda b: (b.which, b.start)) or [none]
        time, code, memory = (np.concatenate([getattr(b, n) for b in blocks]) for n in ("time", "code", "memory"))
        return Block(
            0, 0, time, code, memory, {n: np.concatenate([b.parts[n] for b in blocks]) for n in blocks[0].parts}
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
