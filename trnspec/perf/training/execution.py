"""Pipeline schedules executed pass by pass, for many rows of durations at once.

Every stage executes its passes in their order, each as soon as the stage is free and its input exists; a step takes as long as
the longest path through the passes.  The graph of the passes does not depend on their durations.
"""

from __future__ import annotations

from functools import cached_property, lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from trnspec.perf.training.pass_order import FUSED, order
from trnspec.perf.work.layout import V_SHAPED

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW = 8
"""Rows up to which each is computed by itself: a pass takes 0.1 us, a level of passes of any number of rows 5 us."""
_ELEMENTS = 1 << 20
"""Passes times rows that are computed at once with numpy."""

Level = tuple[slice, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
"""Passes of different stages that need none of each other: their numbers, those of the passes that they follow on their stage
and on others, and the positions of their durations."""


@frozen(eq=False)
class Paths:
    """The paths through some passes, which have numbers; those after the last are of none, and of what comes before a stage.

    Attributes:
        size: The number of passes.
        levels: The passes in order.
    """

    size: int
    levels: tuple[Level, ...]

    @cached_property
    def _lists(self) -> list[tuple[int, ...]]:
        """The passes one by one: number, number of either pass before, and position of the duration."""
        numbers = np.arange(self.size)
        columns = zip(*((numbers[here], own, other, part) for here, own, other, part in self.levels), strict=True)
        return list(zip(*(np.concatenate(column).tolist() for column in columns), strict=True))

    def longest(
        self, durations: NDArray[np.float64], ends: NDArray[np.float64], wanted: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """The longest path to and including some passes; shape (wanted, rows).

        Args:
            durations: The durations; shape (positions, rows).
            ends: What comes before the first passes of each stage; shape (stages, rows).
            wanted: The passes.
        """
        rows = durations.shape[1]
        if rows <= _FEW:
            each = [self._of_row(durations[:, i].tolist(), ends[:, i].tolist()) for i in range(rows)]
            return np.array([[of_row[i] for of_row in each] for i in wanted.tolist()]).reshape(len(wanted), rows)
        most = max(1, _ELEMENTS // self.size)
        parts = [slice(begin, begin + most) for begin in range(0, rows, most)]
        return np.concatenate([self._by_levels(durations[:, at], ends[:, at])[wanted] for at in parts], axis=1)

    def _of_row(self, durations: Sequence[float], ends: Sequence[float]) -> list[float]:
        found = [0.0] * self.size + [-np.inf, *ends]
        for here, own, other, part in self._lists:
            one, two = found[own], found[other]
            found[here] = (two if two > one else one) + durations[part]  # noqa: FURB136  # max takes three times as long
        return found

    def _by_levels(self, durations: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
        stages, rows = ends.shape
        durations = np.ascontiguousarray(durations)
        found, buffers = np.empty((self.size + 1 + stages, rows)), np.empty((2, stages, rows))
        found[self.size], found[self.size + 1 :] = -np.inf, ends
        for here, own, other, part in self.levels:
            one, two = (buffer[: len(own)] for buffer in buffers)
            # Positions are never outside; numpy would buffer the output if it had to check that.
            found.take(own, axis=0, out=one, mode="clip")
            found.take(other, axis=0, out=two, mode="clip")
            np.maximum(one, two, out=one)
            durations.take(part, axis=0, out=two, mode="clip")
            np.add(one, two, out=found[here])
        return found


KINDS = "FBW"
"""The kinds of passes, in the order of their durations."""


@frozen(eq=False)
class Execution:
    """The passes of a pipeline, numbered level by level.

    Attributes:
        forward: The paths to each pass.
        backward: The same in reverse, with the passes that follow.
        last: The last pass of each stage.
        middle: A pass of each stage between the first microbatches and the last.
        durations: The positions of the durations of these.
        chunks: The chunks of the model on each stage.
        staggered: Whether stages begin a step one after the other, as they ended the one before (Qi et al. 2023, section 4).
    """

    forward: Paths
    backward: Paths
    last: NDArray[np.intp]
    middle: NDArray[np.intp]
    durations: NDArray[np.intp]
    chunks: tuple[tuple[int, ...], ...]
    staggered: bool

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        return np.concatenate([self.last, self.middle])

    def span(self, durations: NDArray[np.float64]) -> NDArray[np.float64]:
        """The time from the first to the last pass of the stage for which it is the longest.

        Args:
            durations: Of each kind of pass in each chunk of the model; shape (3 chunks, rows).
        """
        return self._forward(durations)[0]

    def dwelling(self, durations: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """The span, and of each stage the longest path through its middle pass, and a microbatch on it.

        Such a path may stay on the stage for any number of further microbatches.

        Args:
            durations: As in :meth:`span`.
        """
        span, through, start = self._forward(durations)
        after = self.backward.longest(durations, -start, self.middle)
        # Both have the duration of the pass.
        through = through + after - durations[self.durations]
        each = durations.reshape(len(KINDS), -1, durations.shape[1])
        # One after the other: a sum of one row may have other bits than that of many.
        each = each[0] + each[1] + each[2]
        stages = reduce(np.add, (each[list(chunks)] for chunks in zip(*self.chunks, strict=True)))
        return span, through, stages

    def _forward(self, durations: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """The span, the ends of the middle passes, and the start of each stage."""
        stages = len(self.last)
        start = np.zeros((stages, durations.shape[1]))
        end = self.forward.longest(durations, start, self._ends)
        if self.staggered:
            np.add.accumulate(durations[: stages - 1], axis=0, out=start[1:])
        return (end[:stages] - start).max(axis=0), end[stages:], start


@lru_cache(maxsize=256)
def execution(schedule: str, stages: int, microbatches: int, chunks: int = 1) -> Execution:
    """The passes of a pipeline; arguments are those of :func:`trnspec.perf.training.pass_order.order`."""
    is_v_shaped = schedule in V_SHAPED
    parts = 2 * stages if is_v_shaped else stages * chunks
    orders = order(schedule, stages, microbatches, chunks)
    of_stage = [[k, 2 * stages - 1 - k] if is_v_shaped else list(range(k, parts, stages)) for k in range(stages)]
    # Numbers by stage, then in the order of their execution.
    size = sum(map(len, orders))
    kind, chunk, microbatch = np.array([(KINDS.index(one), c, i) for slots in orders for one, c, i in slots]).T
    stage = np.repeat(np.arange(stages), [len(slots) for slots in orders])
    place_of_part = np.where(chunk > 0, 2 * stages - 1 - stage, stage) if is_v_shaped else chunk * stages + stage
    part = kind * parts + place_of_part
    # The pass of the part of the model before or behind, where that is on another stage.
    number = np.full((len(KINDS), parts, microbatches), -1)
    number[kind, place_of_part, microbatch] = np.arange(size)
    neighbour = place_of_part + np.array([-1, 1, 0])[kind]
    inside = (kind != KINDS.index("W")) & (neighbour >= 0) & (neighbour < parts)
    found = np.where(inside, number[kind, np.clip(neighbour, 0, parts - 1), microbatch], -1)
    other = np.where((found >= 0) & (stage[found] != stage), found, -1).tolist()
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
    first_parts = [of[0] for of in of_stage]
    middle = place[number[KINDS.index("B"), first_parts, microbatches // 2]]
    return Execution(
        forward=Paths(size, tuple((here, before[here], needs[here], part[here]) for here in pieces)),
        backward=Paths(size, tuple((here, after[here], later[here], part[here]) for here in reversed(pieces))),
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
