"""Reductions: what a sweep keeps while it runs, such as the fastest, the fastest of each estimator, or a Pareto front."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from attrs import Factory, define, field, frozen
from numpy.typing import NDArray

from trnspec.perf.distinct import ascending

if TYPE_CHECKING:
    from trnspec.perf.sweep.axes import Region

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


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


@frozen
class Kept:
    """Configurations that were kept, one per row, in the order that the reduction gives them.

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

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self.time)

    def rows(self, chosen: NDArray[Any]) -> Kept:
        """Some of them, by positions or by a mask."""
        return Kept(self.which[chosen], self.number[chosen], self.time[chosen], self.memory[chosen])

    def ordered(self) -> Kept:
        """Fastest first; ties in the order of the sweep."""
        return self.rows(np.lexsort((self.number, self.which, self.time)))


class Reduction(Protocol[R_co]):
    """An object that sees each block of a sweep and keeps what it needs; a block's arrays are not reused.

    One with a true attribute ``takes_regions`` has a method ``take_region`` instead, which is called with each
    :class:`~trnspec.perf.sweep.regions.Region`, and with nothing that is invalid for another reason than memory.
    """

    def take(self, block: Block) -> None:
        """Process a block."""

    def merge(self, other: Any) -> None:
        """Add what another one, of the same kind, has kept of other blocks; the order of merges does not matter."""

    def result(self) -> R_co:
        """The result."""


def _selected(block: Block, mask: NDArray[np.bool_]) -> Kept:
    places = np.flatnonzero(mask)
    memory = block.memory[places] if len(block.memory) else np.zeros(len(places))
    which = np.full(len(places), block.which, dtype=np.int64)
    return Kept(which, places + block.start, block.time[places], memory)


def _nth(times: NDArray[np.float64], n: int) -> float:
    """The n-th least of some times; infinite where there are fewer."""
    return float(np.partition(times, n - 1)[n - 1]) if n <= len(times) else np.inf


def _of_region(region: Region, mask: NDArray[np.bool_]) -> Kept:
    number, time, memory = region.selected(mask)
    return Kept(np.full(len(number), region.which, dtype=np.int64), number, time, memory)


def joined(parts: list[Kept]) -> Kept:
    """The concatenation of several."""
    if not parts:
        empty = np.zeros(0)
        return Kept(empty.astype(np.int64), empty.astype(np.int64), empty, empty)
    columns = zip(*((p.which, p.number, p.time, p.memory) for p in parts), strict=True)
    return Kept(*(np.concatenate(column) for column in columns))


@define
class Top:
    """The fastest configurations of all.

    Attributes:
        count: Number of configurations to keep.
        slowest: The longest time of those that are kept [s].
    """

    count: int
    slowest: float = float("inf")
    _kept: list[Kept] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _limit: float = field(default=Factory(lambda self: self.slowest, takes_self=True), init=False)

    takes_regions = True

    @property
    def limit(self) -> float:
        """The time of the slowest that is kept, once there are as many as are to be kept; slower ones are not needed [s]."""
        return self._limit

    def take(self, block: Block) -> None:
        """Keep what is at most as slow as the slowest that is kept; ties are resolved later."""
        self._keep(_selected(block, (block.code == 0) & (block.time <= self._limit)))

    def take_region(self, region: Region) -> None:
        """The same of a region."""
        close = region.time <= self._limit
        if not np.count_nonzero(close):
            return
        close = (region.code == 0) & close
        if 0 < self.count < np.count_nonzero(close):
            # An element may be that of several configurations: no more than this many elements are among the fastest.
            times = np.where(close, region.time, np.inf)
            # The least times of the rows are a bound, which leaves few elements.
            bound = _nth(times.min(axis=tuple(range(times.ndim - 1))), self.count)
            near = times.reshape(-1)[np.flatnonzero(times <= bound)]
            close &= region.time <= _nth(near, self.count)
        self._keep(_of_region(region, close))

    def _keep(self, candidates: Kept) -> None:
        if not len(candidates):
            return
        self._kept.append(candidates)
        self._held += len(candidates)
        if self._held > 4 * self.count + 4096 or (self._held >= self.count and self._limit == self.slowest):
            self._shrink()

    def merge(self, other: Top) -> None:
        """Keep what another one of the same count kept of other configurations."""
        self._kept += other._kept
        self._held += other._held
        self._shrink()

    def _shrink(self) -> None:
        held = joined(self._kept)
        if 0 < self.count < len(held):
            held = held.rows(held.time <= _nth(held.time, self.count))
        best = held.ordered().rows(np.arange(min(self.count, len(held))))
        self._kept, self._held = [best], len(best)
        if len(best) == self.count and self.count:
            self._limit = float(best.time[-1])

    def result(self) -> Kept:
        """The kept configurations, fastest first."""
        self._shrink()
        return self._kept[0]


@define
class Limit:
    """A time that the fastest configurations do not exceed, whichever of equally fast ones are kept.

    Attributes:
        count: Number of configurations that are kept.
        limit: The time of the slowest of as many configurations with different times [s].
    """

    count: int
    limit: float = field(default=float("inf"), init=False)
    _times: NDArray[np.float64] = field(factory=lambda: np.zeros(0), init=False)

    def take_region(self, region: Region) -> None:
        """Take the times of valid configurations."""
        faster = (region.code == 0) & (region.time < self.limit)
        if self.count and np.count_nonzero(faster):
            times = np.broadcast_to(region.time, np.shape(faster)).reshape(-1)[np.flatnonzero(faster)]
            self._times = ascending(np.concatenate([self._times, times]))[: self.count]
            if len(self._times) == self.count:
                self.limit = float(self._times[-1])


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

    takes_regions = True

    def take_region(self, region: Region) -> None:
        """The same of a region."""
        self._each.setdefault(region.which, Top(self.count)).take_region(region)

    def merge(self, other: Best) -> None:
        """Keep what another one of the same count kept of other configurations."""
        for which, top in other._each.items():
            self._each.setdefault(which, Top(self.count)).merge(top)

    def result(self) -> Kept:
        """The kept configurations by estimator, fastest first."""
        return joined([self._each[which].result() for which in sorted(self._each)])


@define
class Pareto:
    """The Pareto front of two costs.

    Attributes:
        costs: Function from a block to two arrays; step time and memory by default.
    """

    costs: Callable[[Block], tuple[NDArray[np.float64], NDArray[np.float64]]] | None = None
    _kept: list[tuple[Kept, NDArray[np.float64]]] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Keep the front of the block and the configurations kept so far."""
        mask = block.code == 0
        if not mask.any():
            return
        costs = (block.time, block.memory) if self.costs is None else self.costs(block)
        self._keep(_selected(block, mask), np.stack([cost[mask] for cost in costs]))

    @property
    def takes_regions(self) -> bool:
        """Whether costs are those of a region."""
        return self.costs is None

    def take_region(self, region: Region) -> None:
        """The same of a region."""
        valid = _of_region(region, (region.code == 0) & self._may_be_on_front(region))
        if len(valid):
            self._keep(valid, np.stack([valid.time, valid.memory]))

    def _may_be_on_front(self, region: Region) -> Any:
        """Where no configuration kept so far is faster and needs less, by the few of them that rule out the most."""
        if not self._kept or region.memory is None:
            return np.True_
        ((_, costs),) = self._kept
        possible: Any = np.True_
        for i in ascending(np.linspace(0, costs.shape[1] - 1, _RULING).astype(np.intp)):
            time, memory = costs[:, i]
            possible = possible & ((region.time <= time) | (region.memory <= memory))
        return possible

    def _keep(self, candidates: Kept, costs: NDArray[np.float64]) -> None:
        # Reduce the block to its own front first: merging two small fronts is cheap.
        self._kept.append(_front(candidates, costs))
        self._shrink()

    def merge(self, other: Pareto) -> None:
        """Keep the front of this one and of another one of the same costs."""
        self._kept += other._kept
        self._shrink()

    def _shrink(self) -> None:
        if len(self._kept) > 1:
            merged = joined([k for k, _ in self._kept])
            self._kept = [_front(merged, np.concatenate([c for _, c in self._kept], axis=1))]

    def result(self) -> Kept:
        """The front, by ascending first cost."""
        return self._kept[0][0] if self._kept else joined([])


_RULING = 5
"""Configurations of a front with which a region is compared first."""


def _front(configurations: Kept, costs: NDArray[np.float64]) -> tuple[Kept, NDArray[np.float64]]:
    order = np.lexsort((configurations.number, configurations.which, costs[1], costs[0]))
    second = costs[1][order]
    best_before = np.minimum.accumulate(np.concatenate(([np.inf], second[:-1])))
    front = order[second < best_before]
    return configurations.rows(front), costs[:, front]


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
