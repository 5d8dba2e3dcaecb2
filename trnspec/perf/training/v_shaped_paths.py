"""The longest paths through the passes of V-shaped schedules in their order.

Executed in an order, the passes take as long as the longest path through them.  The time of a path has whole numbers of passes
and of outputs, so a step is the maximum of a few linear forms in their times: exact, and monotone in each.  From some number of
microbatches on, each further one adds the same to each form.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trnspec.perf.training.envelope import Cone, envelope
from trnspec.perf.training.v_shaped_order import Slot, needed, order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_OUTPUTS = ((0, 0, 0, 1, 1), (0, 0, 0, 1, 2)), ((0, 0, 0, 2, -1), (0, 0, 0, -1, 1))
"""The output takes backward as long as forward, or twice as long, or anything in between."""
EVERY = Cone(
    np.array([(1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (1, 1, 1, 0, 0), *_OUTPUTS[0]]),
    np.array([(1, 0, -1, 0, 0), (0, 1, -1, 0, 0), (0, 0, 1, 0, 0), *_OUTPUTS[1]]),
)
"""Times of F, B and W of a chunk and of the output forward and backward with F and B at least as long as W."""
USUAL = Cone(
    np.array([(0, 1, 0, 0, 0), (1, 1, 0, 0, 0), (1, 1, 1, 0, 0), *_OUTPUTS[0]]),
    np.array([(-1, 1, 0, 0, 0), (1, 0, -1, 0, 0), (0, 0, 1, 0, 0), *_OUTPUTS[1]]),
)
"""Those with B >= F >= W."""

_DIGITS = 12
"""Binary digits of each of the five counts of a path."""
_KINDS = 5
_ELEMENTS = 1 << 21
"""Passes times directions that are computed at once."""


def steady(schedule: str, stages: int) -> int:
    """The microbatches from which on each further one adds the same to each path; found by execution, see the tests."""
    return {"zbv": max(2 * stages, 9), "v-half": 3 * stages + 3, "v-min": stages + 6}[schedule]


Path = tuple[float, ...]
"""Passes beyond those of the first stage: counts of F, B and W of a chunk, of outputs forward and backward, and what each
further microbatch adds to these five."""


@cache
def paths(schedule: str, stages: int, microbatches: int, *, usual: bool = False) -> tuple[Path, ...]:
    """The paths that are the longest for some times.

    The numbers that a further microbatch adds are 0 below :func:`steady`.

    Args:
        schedule: One of :data:`~trnspec.perf.work.layout.V_SHAPED`.
        stages: Pipeline stages.
        microbatches: Microbatches, at most :func:`steady`.
        usual: Whether times are :data:`USUAL`, else :data:`EVERY`.
    """
    found, points, of = envelope(_Pipeline(schedule, stages, microbatches).longest, USUAL if usual else EVERY)
    if microbatches < steady(schedule, stages):
        return tuple((*map(float, row), *(0.0,) * _KINDS) for row in found.tolist())
    later = [_Pipeline(schedule, stages, microbatches + n) for n in (1, 2)]
    grown: NDArray[np.int64] = np.zeros((0, 2 * _KINDS), dtype=np.int64)
    # In the middle of where a path is the longest, and nearer to the corners where another one has become the longest there.
    for some in (np.arange(len(of)) < len(found), np.arange(len(of)) >= len(found)):
        left = some & ~(found[of][:, None] == grown[:, :_KINDS]).all(axis=2).any(axis=1)
        one, two = (pipeline.longest(points[left]) for pipeline in later)
        growth = one - found[of[left]]
        same = (two - one == growth).all(axis=1)
        grown = np.concatenate([grown, np.concatenate([found[of[left]], growth], axis=1)[same]])
    grown = np.unique(grown, axis=0)
    return tuple(tuple(map(float, row)) for row in grown.tolist())


class _Pipeline:
    """The passes of a pipeline for :meth:`longest`, in levels: those of a level are of different stages.

    Attributes:
        levels: For each level the stages, the kinds of their passes, and the number of the pass of another stage that each
            needs; a number beyond those of all passes for none.
        first: The number of the first pass of each stage.
    """

    def __init__(self, schedule: str, p: int, m: int) -> None:
        self.p, self.m = p, m
        level_of: dict[tuple[int, Slot], int] = {}
        reached = [0] * p
        levels: list[list[tuple[int, Slot]]] = []
        for stage, slot in _topological(order(schedule, p, m), p):
            place = max([reached[stage], *(1 + level_of[other] for other in needed(slot, stage, p))])
            level_of[stage, slot] = place
            reached[stage] = place + 1
            levels += [[] for _ in range(place + 1 - len(levels))]
            levels[place].append((stage, slot))
        number = {one: i for i, one in enumerate(one for level in levels for one in level)}
        self.size = len(number)
        self.first: list[int] = [-1] * p
        self.levels = []
        for level in levels:
            others = []
            for stage, slot in level:
                if self.first[stage] < 0:
                    self.first[stage] = number[stage, slot]
                others.append(next((number[o] for o in needed(slot, stage, p) if o[0] != stage), self.size))
            kinds = ["FBW".index(slot[0]) + _LAST * _is_last(stage, slot) for stage, slot in level]
            self.levels.append((np.array([stage for stage, _ in level]), np.array(kinds), np.array(others)))

    def longest(self, directions: NDArray[Any]) -> NDArray[np.int64]:
        """For each direction, times of passes, the counts on the longest path, less those of the first stage."""
        most = max(1, _ELEMENTS // self.size)
        parts = [self._longest(directions[i : i + most]) for i in range(0, len(directions), most)]
        return np.concatenate([np.zeros((0, _KINDS), dtype=np.int64), *parts])

    def _longest(self, directions: NDArray[Any]) -> NDArray[np.int64]:
        each = directions.T.astype(np.float64)
        ones = np.array([[1 << _DIGITS * n] for n in range(_KINDS)])
        # Passes of the last chunk have the output.
        times, ones = (np.concatenate([x[:_LAST], x[_LAST:] + x[: _KINDS - _LAST]]) for x in (each, ones))
        end = np.zeros((self.size + 1, len(directions)))
        count = np.zeros(end.shape, dtype=np.int64)
        last = np.full(self.p, self.size)
        begin = 0
        for stages, kinds, others in self.levels:
            own = last[stages]
            later = end[others] > end[own]
            last[stages] = here = np.arange(begin, begin := begin + len(stages))
            end[here] = np.where(later, end[others], end[own]) + times[kinds]
            count[here] = np.where(later, count[others], count[own]) + ones[kinds]
        # A stage begins with a forward pass.
        slowest = (end[last] - end[self.first] + times[0]).argmax(axis=0)[None]
        counts = np.take_along_axis(count[last] - count[self.first] + ones[0], slowest, axis=0)[0]
        mask, own = (1 << _DIGITS) - 1, [2 * self.m] * _LAST + [self.m] * (_KINDS - _LAST)
        return np.stack([(counts >> _DIGITS * n & mask) - own[n] for n in range(_KINDS)], axis=1)


_LAST = 3
"""Kinds of passes; those of forward and backward passes with the output follow."""


def _is_last(stage: int, slot: Slot) -> bool:
    """Whether a pass has the output, which is in the second chunk of the first stage."""
    return stage == 0 and slot[0] != "W" and slot[1] == 1


def _topological(orders: Sequence[Sequence[Slot]], p: int) -> Iterator[tuple[int, Slot]]:
    """The passes of all stages, each after those that it needs."""
    position = [0] * p
    done: set[tuple[int, Slot]] = set()
    ready = deque(range(p))
    left = sum(map(len, orders))
    while left:
        stage = ready.popleft()
        own = orders[stage]
        while position[stage] < len(own):
            slot = own[position[stage]]
            if not all(other in done for other in needed(slot, stage, p)):
                break
            done.add((stage, slot))
            yield stage, slot
            position[stage] += 1
            left -= 1
        ready.append(stage)
