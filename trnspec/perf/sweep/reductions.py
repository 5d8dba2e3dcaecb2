"""What is kept of a sweep while it runs: the fastest, the fastest of each model and system, a Pareto front, everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray


@frozen
class Block:
    """Some configurations of a sweep that follow one another.

    Attributes:
        which: Which of the estimators it is about.
        start: The number of the first configuration, of those of that estimator.
        time: Time of a step, in s; 0 where the code is not 0.
        code: The code of :data:`~trnspec.perf.sweep.columns.REASONS`; 0 where there is a time.
        memory: Bytes on the rank that needs the most; 0 where a layout cannot be for another reason than memory, and
            of length 0 where memory was not asked for.
        parts: The parts of the time that were asked for, by name.
    """

    which: int
    start: int
    time: NDArray[np.float64]
    code: NDArray[np.uint8]
    memory: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]] = field(factory=dict)


@frozen
class Kept:
    """Configurations that were kept, one a row, in the order that the reduction gives them.

    Attributes:
        which: The estimator of each.
        number: The number of each, of those of its estimator.
        time: Time of a step, in s.
        memory: Bytes on the rank that needs the most.
    """

    which: NDArray[np.int64]
    number: NDArray[np.int64]
    time: NDArray[np.float64]
    memory: NDArray[np.float64]

    def __len__(self) -> int:
        """How many were kept."""
        return len(self.time)

    def rows(self, chosen: NDArray[Any]) -> Kept:
        """Some of them: by their places, or by a mask."""
        return Kept(self.which[chosen], self.number[chosen], self.time[chosen], self.memory[chosen])

    def ordered(self) -> Kept:
        """The fastest first; of equals the one that was counted first."""
        return self.rows(np.lexsort((self.number, self.which, self.time)))


class Reduction(Protocol):
    """What looks at each block of a sweep and keeps what it wants; a block's arrays are its own."""

    def take(self, block: Block) -> None:
        """Look at a block."""

    def result(self) -> Any:
        """What was kept."""


def _chosen(block: Block, mask: NDArray[np.bool_]) -> Kept:
    places = np.flatnonzero(mask)
    memory = block.memory[places] if len(block.memory) else np.zeros(len(places))
    which = np.full(len(places), block.which, dtype=np.int64)
    return Kept(which, places + block.start, block.time[places], memory)


def joined(parts: list[Kept]) -> Kept:
    """One after the other."""
    if not parts:
        none = np.zeros(0)
        return Kept(none.astype(np.int64), none.astype(np.int64), none, none)
    columns = zip(*((p.which, p.number, p.time, p.memory) for p in parts), strict=True)
    return Kept(*(np.concatenate(column) for column in columns))


@define
class Top:
    """The fastest configurations of all.

    Attributes:
        count: How many are kept.
    """

    count: int
    _kept: list[Kept] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _limit: float = field(default=float("inf"), init=False)

    def take(self, block: Block) -> None:
        """Keep what is no slower than the slowest that is kept, which equals may be."""
        found = _chosen(block, (block.code == 0) & (block.time <= self._limit))
        if not len(found):
            return
        self._kept.append(found)
        self._held += len(found)
        if self._held > 4 * self.count + 4096 or (self._held >= self.count and self._limit == float("inf")):
            self._shrink()

    def _shrink(self) -> None:
        best = joined(self._kept).ordered().rows(np.arange(min(self.count, self._held)))
        self._kept, self._held = [best], len(best)
        if len(best) == self.count and self.count:
            self._limit = float(best.time[-1])

    def result(self) -> Kept:
        """The fastest first."""
        self._shrink()
        return self._kept[0]


@define
class Best:
    """The fastest configurations of each estimator, which is a model on a system.

    Attributes:
        count: How many are kept of each.
    """

    count: int = 1
    _each: dict[int, Top] = field(factory=dict, init=False)

    def take(self, block: Block) -> None:
        """Keep the fastest of the block's estimator."""
        self._each.setdefault(block.which, Top(self.count)).take(block)

    def result(self) -> Kept:
        """By estimator, the fastest first."""
        return joined([self._each[which].result() for which in sorted(self._each)])


@define
class Pareto:
    """The configurations that no other beats in both of two costs: for each more memory the fastest.

    Attributes:
        costs: From a block to two arrays; the time of a step and memory when left out.
    """

    costs: Callable[[Block], tuple[NDArray[np.float64], NDArray[np.float64]]] = field(
        default=lambda block: (block.time, block.memory)
    )
    _kept: list[tuple[Kept, NDArray[np.float64]]] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Keep the front of the block and of what was kept."""
        mask = block.code == 0
        if not mask.any():
            return
        found = _chosen(block, mask)
        costs = np.stack([cost[mask] for cost in self.costs(block)])
        # The block's own front first: it is small, and so is what it joins.
        self._kept.append(_front(found, costs))
        if len(self._kept) > 1:
            kept = joined([k for k, _ in self._kept])
            self._kept = [_front(kept, np.concatenate([c for _, c in self._kept], axis=1))]

    def result(self) -> Kept:
        """The front, the least of the first cost first."""
        return self._kept[0][0] if self._kept else joined([])


def _front(found: Kept, costs: NDArray[np.float64]) -> tuple[Kept, NDArray[np.float64]]:
    order = np.lexsort((found.number, found.which, costs[1], costs[0]))
    second = costs[1][order]
    before = np.minimum.accumulate(np.concatenate(([np.inf], second[:-1])))
    kept = order[second < before]
    return found.rows(kept), costs[:, kept]


@define
class Everything:
    """All configurations: arrays over the estimators and all that they have."""

    _blocks: list[Block] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Keep it all."""
        self._blocks.append(block)

    def result(self) -> Block:
        """One block of all of them, those of the first estimator first."""
        blocks = sorted(self._blocks, key=lambda b: (b.which, b.start))
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
class Each:
    """What a function says of each block.

    Attributes:
        function: From a block to anything.
    """

    function: Callable[[Block], Any]
    _told: list[Any] = field(factory=list, init=False)

    def take(self, block: Block) -> None:
        """Ask the function."""
        self._told.append(self.function(block))

    def result(self) -> list[Any]:
        """One answer a block."""
        return self._told
