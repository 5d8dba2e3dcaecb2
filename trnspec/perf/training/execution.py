"""Pipeline schedules executed pass by pass, for many rows of durations at once.

Every stage executes its passes in their order, each as soon as the stage is free and its input exists; a step takes as long as
the longest path through the passes.  The graph of the passes does not depend on their durations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache, reduce
from itertools import pairwise

import numpy as np
from attrs import astuple, define, frozen
from numpy.typing import NDArray

from trnspec.perf.convex import least
from trnspec.perf.ops import Number
from trnspec.perf.training.microbatch import Times
from trnspec.perf.training.pass_order import FUSED, SPLIT, order
from trnspec.perf.work.layout import V_SHAPED, dealt
from trnspec.perf.work.validity import MOST_V_STAGES

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

    def longest(
        self, durations: NDArray[np.float64], ends: NDArray[np.float64], wanted: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """The longest path to and including some passes; shape (wanted, rows).

        Args:
            durations: The durations; shape (positions, rows).
            ends: What comes before the first passes of each stage; shape (stages, rows).
            wanted: The passes.
        """
        rows, most = durations.shape[1], max(1, _ELEMENTS // self.size)
        parts = [slice(begin, begin + most) for begin in range(0, max(rows, 1), most)]
        return np.concatenate([self._by_levels(durations[:, at], ends[:, at])[wanted] for at in parts], axis=1)

    def _by_levels(self, durations: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.concatenate([np.empty((self.size, ends.shape[1])), np.full((1, ends.shape[1]), -np.inf), ends])
        for here, own, other, part in self.levels:
            found[here] = np.maximum(found[own], found[other]) + durations[part]
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
        place: The number of each pass, stage by stage in the order of their execution.
        chunks: The chunks of the model on each stage.
        staggered: Whether stages begin a step one after the other, as they ended the one before (Qi et al. 2023, section 4).
    """

    forward: Paths
    backward: Paths
    last: NDArray[np.intp]
    middle: NDArray[np.intp]
    durations: NDArray[np.intp]
    place: NDArray[np.intp]
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

    def ends(self, durations: NDArray[np.float64]) -> list[float]:
        """The ends of all passes, stage by stage in the order of their execution [s].

        Args:
            durations: Of each kind of pass in each chunk of the model; shape (3 chunks,).
        """
        start = np.zeros((len(self.last), 1))
        ends: list[float] = self.forward.longest(durations[:, None], start, self.place)[:, 0].tolist()
        return ends

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
        place=place[:-1],
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


MOST_CHUNKS = 2048
"""Stages times chunks of a model up to which schedules are executed: such as 16 stages of 8 chunks, or 45 of one."""
MICROBATCHES = 4
"""Microbatches per stage of an execution in which a path dwells on a stage with further ones."""
TURNS = 6
"""The same for interleaved schedules, which take ``pp`` microbatches in turn."""
_PASSES = 1 << 17
"""Passes up to which V-shaped schedules with equal stages are executed in full: 16 stages with 1,365 microbatches. With more
they are extended as above, which was too short in one of 1,149 random cases, by 0.2 %."""
_NAMES = {1.0: "zb1p", 2.0: "zb2p"}


@define
class Pipeline:
    """A pipeline: its schedule, and how layers are dealt to it.

    Attributes:
        stages: Pipeline stages.
        chunks: Model chunks per stage.
        v_shape: Number of the V-shaped schedule in :data:`~trnspec.perf.work.layout.V_SHAPED`, from 1; 0 for others.
        deferred: Microbatches by which gradients of weights fall behind on the last stage; 0 where the backward pass is whole.
        layers: Layers of the model.
        mtp: Modules of multi-token prediction.
        microbatches: Microbatches per step and replica.
        forward_first: 1 where all forward passes come before all backward passes: GPipe.
        factor: Least bubble of equal stages relative to 1F1B.
    """

    stages: Number
    chunks: Number
    v_shape: Number
    deferred: Number
    layers: Number
    mtp: Number
    microbatches: Number
    forward_first: Number = 0.0
    factor: Number = 1.0


def executed(pipeline: Pipeline, times: Times, *, equal: bool = False) -> Number:
    """The time of all passes of the other schedules with unequal stages [s]; 0 for those of 1F1B, and for equal stages.

    With many microbatches the longest path dwells on a stage, or goes around several ones again and again; both take the
    same for each further microbatch, or for every two.

    Args:
        pipeline: The pipeline; at most :data:`MOST_CHUNKS` stages times chunks of the model are executed.
        times: The times.
        equal: Whether it is instead that of V-shaped schedules with equal stages, and 0 for all others.
    """
    operands = (*astuple(pipeline, recurse=False)[:-2], *astuple(times, recurse=False))
    columns = [x.reshape(-1) for x in np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in operands))]
    shape = np.broadcast_shapes(*map(np.shape, operands))
    found = np.zeros(len(columns[0]))
    p, v, v_shape, deferred, layers, mtp, microbatches = columns[:7]
    is_v_shaped = v_shape > 0.0
    model_chunks = p * np.where(is_v_shaped, 2.0, v)
    whole = np.maximum(np.floor(microbatches), 1.0)
    unequal = (np.floor(layers / model_chunks) * model_chunks != layers) | (mtp > 0.0)
    possible = (p > 1.0) & (p * model_chunks <= MOST_CHUNKS) & ((is_v_shaped | (deferred > 0.0)) == (v == 1.0))
    # Of invalid layouts none is executed.  Interleaved schedules take as many microbatches as stages in turn.
    possible &= (v == 1.0) | (np.floor(whole / p) * p == whole)
    possible &= ~is_v_shaped | (p <= MOST_V_STAGES)
    at = np.flatnonzero((is_v_shaped & ~unequal if equal else unequal) & possible)
    if at.size:
        turn = np.where(v > 1.0, p, 1.0)
        few = np.floor(_PASSES / (6.0 * p)) if equal else np.where(v > 1.0, TURNS, MICROBATCHES) * p
        # Of two numbers of microbatches that with which all others are an even number of turns more.
        odd = np.floor((whole - few) / turn)
        few += (odd - 2.0 * np.floor(0.5 * odd)) * turn
        keys = np.stack([v_shape, np.where(is_v_shaped, 0.0, deferred), p, v, np.minimum(whole, few)])[:, at]
        more = whole[at] - keys[-1]
        deal, counted = dealt(layers[at], p[at], v[at], is_v_shaped[at].astype(np.float64), mtp[at])
        forward, inputs, weights, movable, send, output, output_inputs = (x[at] for x in columns[7:])
        sent = 0.5 * send / np.where(is_v_shaped, 2.0, v)[at]
        of_passes = forward, inputs, weights, sent, output, output_inputs
        rows = np.array([deal.short, deal.begin, deal.end, mtp[at] - counted, *of_passes])
        kinds, kind_of = np.unique(keys, axis=1, return_inverse=True)
        for kind, key in enumerate(kinds.T.tolist()):
            some = np.flatnonzero(kind_of.reshape(-1) == kind)
            found[at[some]] = _of_kind(key, more[some], rows[:, some], movable[some])
    return found.reshape(shape) if shape else float(found[0])


def _of_kind(
    key: list[float], more: NDArray[np.float64], rows: NDArray[np.float64], movable: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The time of all passes of rows with one schedule and number of microbatches.

    Args:
        key: Number of the V-shaped schedule, microbatches by which gradients of weights fall behind, stages, chunks, and
            microbatches.
        more: Further microbatches; shape (rows,).
        rows: What durations are computed from, see :func:`_durations`; shape (10, rows).
        movable: What of a layer may be in either pass; shape (rows,).
    """
    v_shape, deferred, p, v, m = key
    schedule = V_SHAPED[int(v_shape) - 1] if v_shape else _NAMES.get(deferred / (p - 1.0), "interleaved")
    chunks = int(p * (2.0 if v_shape else v))
    turns = 2.0 * (p if v > 1.0 else 1.0)

    def of(microbatches: float) -> Execution:
        return execution(schedule, int(p), int(microbatches), int(v))

    def span(moved: NDArray[np.float64], at: NDArray[np.intp] | slice) -> NDArray[np.float64]:
        further, columns = more[at], rows[:, at].copy()
        columns[_FORWARD] -= moved
        columns[_INPUTS] += moved
        if not further.any():
            return of(m).span(_durations(chunks, columns))
        durations = _durations(chunks, columns)
        few, through, stages = of(m).dwelling(durations)
        longest = (through + further * stages).max(axis=0)
        if schedule not in SPLIT:
            before = of(m - turns).span(durations)
            longest = np.maximum(longest, few + (few - before) * (further / turns))
        return np.where(further > 0.0, longest, few)

    if not _SEARCHED.get():
        return span(0.5 * movable, slice(None))
    # Equal parts, if possible; with whole backward passes no other parts are better.
    guess = np.minimum(np.maximum(0.5 * (rows[_FORWARD] - rows[_INPUTS]), 0.0), movable)
    if schedule in FUSED or not movable.any():
        return span(guess, slice(None))
    return least(span, movable, guess)[1]


_FORWARD, _INPUTS = 4, 5


def _durations(chunks: int, columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The durations of an execution; shape (3 chunks, rows).

    Args:
        chunks: Chunks of the model.
        columns: Layers of a short chunk, the first long one, that after the last long one, and further layers of the last
            chunk; times of a layer by pass, and of a message, the output and its backward pass; shape (10, rows).
    """
    short, begin, end, further, *of_layer, sent, output, output_inputs = columns
    number = np.arange(float(chunks))[:, None]
    is_long = (number >= begin) & (number < end)
    last = short + is_long[-1] + further
    found = np.empty((3, *is_long.shape))
    for passes, each, more, of_output in zip(
        found, of_layer, (sent, sent, 0.0), (output, output_inputs, 0.0), strict=True
    ):
        passes[:] = np.where(is_long, (short + 1.0) * each + more, short * each + more)
        passes[-1] = last * each + more + of_output
    return found.reshape(3 * chunks, len(short))


_SEARCHED: ContextVar[bool] = ContextVar("searched", default=True)


@contextmanager
def half_moved() -> Iterator[None]:
    """Split movable work in half between the passes, instead of at the least time: for the many steps of a fit."""
    token = _SEARCHED.set(False)
    try:
        yield
    finally:
        _SEARCHED.reset(token)
