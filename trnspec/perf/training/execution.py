"""Pipeline schedules executed pass by pass, for many rows of durations at once.

Every stage executes its passes in their order, each as soon as the stage is free and its input exists; a step takes as long as
the longest path through the passes.  The graph of the passes does not depend on their durations.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trnspec.perf.training.pass_order import FUSED, needed, order
from trnspec.perf.work.layout import V_SHAPED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KINDS = "FBW"
"""The kinds of passes, in the order of their durations."""
_ELEMENTS = 1 << 20
"""Passes times rows that are executed at once."""

Level = tuple[slice, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
"""Passes of different stages that need none of each other: their numbers, those of the passes that they follow on their stage
and on others, and the positions of their durations."""


@frozen(eq=False)
class Execution:
    """The passes of a pipeline, numbered level by level; the numbers after the last are those of none, and of the ends of stages.

    Attributes:
        size: The number of passes.
        forward: The levels.
        backward: The same in reverse, with the passes that follow.
        last: The last pass of each stage.
        middle: A pass of each stage between the first microbatches and the last.
        durations: The positions of the durations of these.
        chunks: The chunks of the model on each stage.
        staggered: Whether stages begin a step one after the other, as they ended the one before (Qi et al. 2023, section 4).
    """

    size: int
    forward: tuple[Level, ...]
    backward: tuple[Level, ...]
    last: NDArray[np.intp]
    middle: NDArray[np.intp]
    durations: NDArray[np.intp]
    chunks: tuple[tuple[int, ...], ...]
    staggered: bool

    def span(self, durations: NDArray[np.float64]) -> NDArray[np.float64]:
        """The time from the first to the last pass of the stage for which it is the longest.

        Args:
            durations: Of each kind of pass in each chunk of the model; shape (3 chunks, rows).
        """
        return np.concatenate([self._forward(part)[0] for part in self._parts(durations)])

    def dwelling(self, durations: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """The span, and of each stage the longest path through its middle pass, and a microbatch on it.

        Such a path may stay on the stage for any number of further microbatches.

        Args:
            durations: As in :meth:`span`.
        """
        found = []
        for part in self._parts(durations):
            span, end, start = self._forward(part)
            after = self._executed(self.backward, part, -start)
            # Both have the duration of the pass.
            through = end[self.middle] + after[self.middle] - part[self.durations]
            each = part.reshape(len(KINDS), -1, part.shape[1])
            # One after the other: a sum of one row may have other bits than that of many.
            each = each[0] + each[1] + each[2]
            stages = np.stack([np.add.accumulate(each[list(chunks)], axis=0)[-1] for chunks in self.chunks])
            found.append((span, through, stages))
        return tuple(np.concatenate(of_parts, axis=-1) for of_parts in zip(*found, strict=True))

    def _parts(self, durations: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        most = max(1, _ELEMENTS // self.size)
        for begin in range(0, durations.shape[1], most):
            yield np.ascontiguousarray(durations[:, begin : begin + most])

    def _forward(self, durations: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """The span, the end of each pass, and the start of each stage."""
        start = np.zeros((len(self.last), durations.shape[1]))
        end = self._executed(self.forward, durations, start)
        if self.staggered:
            np.add.accumulate(durations[: len(start) - 1], axis=0, out=start[1:])
        return (end[self.last] - start).max(axis=0), end, start

    def _executed(
        self, levels: Sequence[Level], durations: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The longest path to and including each pass.

        Args:
            levels: The passes in order.
            durations: Their durations.
            ends: What comes before the first passes of each stage.
        """
        stages, rows = ends.shape
        found, buffers = np.empty((self.size + 1 + stages, rows)), np.empty((2, stages, rows))
        found[self.size], found[self.size + 1 :] = -np.inf, ends
        for here, own, other, part in levels:
            one, two = (buffer[: len(own)] for buffer in buffers)
            # Positions are never outside; numpy would buffer the output if it had to check that.
            found.take(own, axis=0, out=one, mode="clip")
            found.take(other, axis=0, out=two, mode="clip")
            np.maximum(one, two, out=one)
            durations.take(part, axis=0, out=two, mode="clip")
            np.add(one, two, out=found[here])
        return found


@lru_cache(maxsize=256)
def execution(schedule: str, stages: int, microbatches: int, chunks: int = 1) -> Execution:
    """The passes of a pipeline; arguments are those of :func:`trnspec.perf.training.pass_order.order`."""
    folded = schedule in V_SHAPED
    parts = 2 * stages if folded else stages * chunks
    orders = order(schedule, stages, microbatches, chunks)
    of_stage = [[k, 2 * stages - 1 - k] if folded else list(range(k, parts, stages)) for k in range(stages)]
    # Numbers by stage, then in the order of their execution.
    number = {one: i for i, one in enumerate((k, slot) for k, slots in enumerate(orders) for slot in slots)}
    size = len(number)
    inputs = [needed(slot, k, stages, chunks, folded=folded) for k, slot in number]
    other = [-1 if one is None or one[0] == k else number[one] for (k, _), one in zip(number, inputs, strict=True)]
    part = np.array([KINDS.index(slot[0]) * parts + of_stage[k][slot[1]] for k, slot in number])
    ends = np.cumsum([len(slots) for slots in orders])
    level = np.array(_levels(other, [0, *ends.tolist()]))
    # Numbers by level.
    of_level = np.argsort(level, kind="stable")
    place = np.empty(size + 1, dtype=np.intp)
    place[of_level], place[-1] = np.arange(size), size
    own = np.arange(-1, size - 1)
    first, last = np.concatenate([[0], ends[:-1]]), ends - 1
    before, after = np.full((2, size), size, dtype=np.intp)
    before[place[:-1]] = place[own]
    before[place[first]] = size + 1 + np.arange(stages)
    after[place[own[own >= 0]]] = place[np.flatnonzero(own >= 0)]
    after[place[last]] = size + 1 + np.arange(stages)
    needs, later = np.full((2, size), size, dtype=np.intp)
    needs[place[:-1]] = place[other]
    known = np.flatnonzero(needs < size)
    later[needs[known]] = known
    part = part[of_level]
    cuts = np.cumsum([0, *np.bincount(level)]).tolist()
    pieces = [slice(*piece) for piece in pairwise(cuts)]
    middle = place[[number[k, ("B", 0, microbatches // 2)] for k in range(stages)]]
    return Execution(
        size=size,
        forward=tuple((here, before[here], needs[here], part[here]) for here in pieces),
        backward=tuple((here, after[here], later[here], part[here]) for here in reversed(pieces)),
        last=place[last],
        middle=middle,
        durations=part[middle],
        chunks=tuple(map(tuple, of_stage)),
        staggered=schedule not in FUSED,
    )


def _levels(other: Sequence[int], ends: Sequence[int]) -> list[int]:
    """For each pass the number of others on the longest way to it.

    Args:
        other: The pass of another stage that each pass needs; -1 for none.
        ends: The first pass of each stage, and the number of passes.
    """
    level = [-1] * (len(other) + 1)
    position = list(ends[:-1])
    left = len(other)
    while left:
        for stage, end in enumerate(ends[1:]):
            here = begin = position[stage]
            reached = level[here - 1] if here > ends[stage] else -1
            while here < end:
                # That of no pass is -1, as of one that is not known yet.
                needs = other[here]
                at = level[needs]
                if at < 0 <= needs:
                    break
                reached = level[here] = max(reached, at) + 1
                here += 1
            position[stage] = here
            left -= here - begin
    return level[:-1]
