"""The time of a pipeline whose stages take different times: the longest path through its passes.

Chunks of the model have a number of layers or one more, and the last one has the output (:func:`trnspec.perf.work.stages.dealt`).
For 1F1B and GPipe the longest path is one of a few; other schedules are executed (:mod:`trnspec.perf.training.execution`).
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from attrs import astuple, define

from trnspec.perf.convex import least
from trnspec.perf.ops import Number, all_floats, both, either, everywhere, floor, larger, smaller, somewhere, where
from trnspec.perf.training.execution import execution
from trnspec.perf.training.pass_order import FUSED, SPLIT
from trnspec.perf.work.layout import V_SHAPED
from trnspec.perf.work.stages import dealt_with_mtp
from trnspec.perf.work.validity import MOST_V_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from trnspec.perf.training.execution import Execution
    from trnspec.perf.work.layout import Layout


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
    """

    stages: Number
    chunks: Number
    v_shape: Number
    deferred: Number
    layers: Number
    mtp: Number
    microbatches: Number
    forward_first: Number = 0.0


@define
class Times:
    """Times of a microbatch [s].

    Attributes:
        forward: Forward pass of a layer.
        inputs: Backward pass of a layer, or its part for gradients of activations.
        weights: The part of the backward pass of a layer for gradients of weights; 0 where it is not split.
        movable: What of a layer may be in either of the first two; ``forward`` includes it.
        send: Messages of a stage, half of them forward.
        output: Forward pass of the output.
        output_inputs: Backward pass of the output.
    """

    forward: Number
    inputs: Number
    weights: Number
    movable: Number
    send: Number
    output: Number
    output_inputs: Number


def unequal_span(pipeline: Pipeline, times: Times) -> Number:
    """The time of all passes with unequal stages [s]; 0 where they are equal, or more than are executed."""
    p = pipeline.stages
    deal, _ = dealt_with_mtp(pipeline.layers, p, pipeline.chunks, 0.0, pipeline.mtp)
    if everywhere(pipeline.v_shape + pipeline.deferred + pipeline.chunks == 1.0):
        other: Number = 0.0
        simple: Number = True
    else:
        other = executed(pipeline, times)
        simple = pipeline.v_shape + pipeline.deferred + pipeline.chunks == 1.0
    if not somewhere(simple):
        return other
    unequal = either(deal.end > deal.begin, pipeline.mtp > 0.0)
    if everywhere(pipeline.forward_first == 0.0):
        found = one_forward_one_backward(pipeline, times)
    else:
        found = where(
            pipeline.forward_first > 0.0, forward_first(pipeline, times), one_forward_one_backward(pipeline, times)
        )
    return where(both(both(simple, unequal), p > 1.0), found, other)


def one_forward_one_backward(pipeline: Pipeline, times: Times) -> Number:
    """The time of all passes of 1F1B with unequal stages [s]; it is at least that of each stage.

    A path may wait for the forward passes of a stage before the first backward pass arrives there, for its microbatches,
    and for its backward passes after the last forward pass.  In between, from a stage to a later one and back takes as many
    microbatches as stages, each of which it passes once: no more than staying on the slowest of them.  So the longest path
    passes the stages up to the slowest one and stays there; or before that, or after, or both, it goes on to the last stage
    but one, or to the last, instead of waiting for forward or backward passes.  The slowest stage is the last of those with
    the most layers, or that with the output.

    Args:
        pipeline: The pipeline, with one chunk per stage.
        times: The times.
    """
    p, m = pipeline.stages, pipeline.microbatches
    deal, counted = dealt_with_mtp(pipeline.layers, p, 1.0, 0.0, pipeline.mtp)
    last = p - 1.0
    short, one = _stage(times, deal.short), times.forward + times.inputs
    unequal = deal.end > deal.begin
    layers = where(unequal, deal.short + 1.0, deal.short)
    long_forward, long = _stage(times, layers)
    # What may be in either pass is where a path waits the least: in equal parts, if possible.
    movable = layers * times.movable
    long_forward = larger(long_forward - movable, smaller(long_forward, 0.5 * long))
    output = (deal.short - counted + pipeline.mtp) * one + times.send + times.output + times.output_inputs

    def before(stage: Number) -> Number:
        """The time of the stages before one but the last."""
        more = smaller(stage, deal.end) - smaller(stage, deal.begin)
        return stage * short[1] + more * one

    # With few microbatches the first ones are all forward on stages that are further from the end.
    slowest = where(unequal, deal.end - 1.0, larger(p - 2.0, 0.0))
    waits = larger(slowest, p - m)
    is_last = waits >= last
    here = where(waits > slowest, where(is_last, output, short[1]), long)
    others, beyond = larger(p - 2.0 - waits, 0.0), where(is_last, 0.0, 1.0)

    def further(waited: Number) -> Number:
        """Gain of a path that goes on to the last stage instead of waiting for a pass."""
        gain = others * (short[1] - waited)
        return larger(0.0, larger(gain, gain + beyond * (output - waited)))

    waiting = before(waits) + (last - waits) * long + (m - p + waits + 1.0) * here
    waiting = waiting + further(long_forward) + further(long - long_forward)
    return larger(waiting, before(last) + m * output)


def forward_first(pipeline: Pipeline, times: Times) -> Number:
    """The time of all passes of GPipe with unequal stages [s]; it is at least that of each stage.

    Forward passes take as long as one microbatch on all stages and the others on the stage that is the slowest forward;
    backward passes begin when the last stage has finished the forward passes, and likewise.  What may be in either pass is
    forward as far as the stage with the output is the slowest then.

    Args:
        pipeline: The pipeline, with one chunk per stage.
        times: The times.
    """
    p, others = pipeline.stages, pipeline.microbatches - 1.0
    deal, counted = dealt_with_mtp(pipeline.layers, p, 1.0, 0.0, pipeline.mtp)
    most = where(deal.end > deal.begin, deal.short + 1.0, deal.short)
    last = deal.short - counted + pipeline.mtp
    layer = times.forward + times.inputs
    outputs = times.output + times.output_inputs
    # By how many layers the longest stage has more than that with the output, and their forward passes.
    more = larger(most - last, 0.0)
    ahead = larger(times.output, more * (times.forward - times.movable))
    moved = more * times.forward - smaller(more * times.forward, ahead)
    behind = larger(times.output_inputs, more * times.inputs + moved)
    once = (pipeline.layers + pipeline.mtp) * layer + p * times.send + outputs
    return once + others * (last * layer + times.send + (ahead + behind))


def _stage(times: Times, layers: Number) -> tuple[Number, Number]:
    """The forward pass of a stage with some layers, and all of a microbatch."""
    forward = layers * times.forward + 0.5 * times.send
    return forward, layers * (times.forward + times.inputs) + times.send


def least_idle(pipeline: Pipeline, times: Times, output_is_slowest: Number) -> Number:
    """The least time that the slowest stage is idle [s], without executing the schedule.

    The first pass of a stage comes after forward passes of all chunks before its first one, and its last pass before backward
    passes of these chunks. It is 0 where the backward pass is split, whose last pass may be one for gradients of weights, and
    where more stages than are executed are.

    Args:
        pipeline: The pipeline.
        times: The times.
        output_is_slowest: Whether the last stage is the slowest.
    """
    p, v = pipeline.stages, pipeline.chunks
    deal, _ = dealt_with_mtp(pipeline.layers, p, v, 0.0, pipeline.mtp)
    long = deal.end - deal.begin
    odd = long - p * floor(long / p)
    # The last stage but one with the most layers.
    slowest = larger(where(odd > 0.0, smaller(deal.begin + odd - 1.0, p - 2.0), p - 2.0), 0.0)
    before = where(output_is_slowest, p - 1.0, slowest)
    idle = deal.start(before) * (times.forward + times.inputs) + before * times.send / v
    whole = both(pipeline.deferred + pipeline.v_shape == 0.0, p * (p * v) <= _MOST)
    return where(whole, idle, 0.0)


class Approximation(NamedTuple):
    """Assumptions about unequal stages that are not executed as they are, and the possible error of the time.

    Attributes:
        value: The assumption.
        low: The least time of an execution over the computed one.
        high: The longest.
    """

    value: str
    low: float
    high: float


def approximation(layout: Layout, layers: float, mtp: float) -> Approximation | None:
    """The approximation of the time of unequal stages; ``None`` where it is exact.

    Args:
        layout: One layout.
        layers: Layers of the model.
        mtp: Modules of multi-token prediction.
    """
    is_v_shaped, p = layout.pipeline.v_shape > 0.0, layout.pp
    chunks = p * (2.0 if is_v_shaped else layout.interleave)
    if (
        p == 1.0
        or not (layers % chunks or mtp)
        or layout.pipeline.v_shape + layout.pipeline.deferred + layout.interleave == 1.0
    ):
        return None
    if p * chunks > _MOST:
        return Approximation(f"of the mean length: more than {_MOST:,} stages x chunks are not executed", *_MEAN)
    if is_v_shaped and layout.microbatches > _DWELL * p:
        return Approximation(f"executed with {_DWELL} pp microbatches, and extended", *_EXTENDED)
    return None


_MEAN = 0.85, 1.15
"""By how much stages of the mean length were off in random cases: less than 12 % either way, ``v-min`` 15 %."""
_EXTENDED = 1.0, 1.005
"""The same of V-shaped schedules with more microbatches: one in 5,000 was too short, by 0.3 %."""
_MOST = 2048
"""Stages times chunks of a model up to which schedules are executed: such as 16 stages of 8 chunks, or 45 of one."""
_DWELL = 4
"""Microbatches per stage of an execution in which a path dwells on a stage with further ones."""
_PASSES = 1 << 17
"""Passes up to which V-shaped schedules with equal stages are executed in full: 16 stages with 1,365 microbatches. With more
they are extended as above, which was too short in one of 1,149 random cases, by 0.2 %."""
_ROUNDING = 1e-12
"""Differences of sums below it, relative to the sums, are rounding."""
_TURNS = 6
"""The same for interleaved schedules, which take ``pp`` microbatches in turn."""
_NAMES = {1.0: "zb1p", 2.0: "zb2p"}


def v_shaped_bubble(  # noqa: PLR0913, PLR0917  # times of passes
    v_shape: Number,
    stages: Number,
    microbatches: Number,
    forward: Number,
    inputs: Number,
    weights: Number,
    movable: Number = 0.0,
    output: Number = 0.0,
    output_inputs: Number = 0.0,
) -> Number:
    """The pipeline bubble of V-shaped schedules with equal stages [s]: how much longer they take than the first stage computes.

    Args:
        v_shape: Number of the schedule in :data:`~trnspec.perf.work.layout.V_SHAPED`, from 1; 0 for others, whose bubble is 0.
        stages: Pipeline stages; the bubble is 0 beyond those that are executed.
        microbatches: Microbatches; the whole ones count.
        forward: Forward pass of a chunk [s].
        inputs: Gradients of the inputs of a chunk [s].
        weights: Gradients of the weights of a chunk [s].
        movable: The part of ``forward`` that may be in ``inputs`` instead, where the bubble is shorter [s].
        output: The output forward [s], which the first stage has after its second chunk.
        output_inputs: The same backward [s].
    """
    pipeline = Pipeline(stages, 1.0, v_shape, 0.0, 2.0 * stages, 0.0, microbatches)
    times = Times(forward, inputs, weights, movable, 0.0, output, output_inputs)
    span = executed(pipeline, times, equal=True)
    busy = 2.0 * (forward + inputs + weights) + (output + output_inputs)
    idle = span - larger(1.0, floor(microbatches)) * busy
    # Sums in another order differ by rounding.
    return where(idle > _ROUNDING * span, idle, 0.0)


def executed(pipeline: Pipeline, times: Times, *, equal: bool = False) -> Number:
    """The time of all passes of the other schedules with unequal stages [s]; 0 for those of 1F1B, and for equal stages.

    With many microbatches the longest path dwells on a stage, or goes around several ones again and again; both take the
    same for each further microbatch, or for every two.

    Args:
        pipeline: The pipeline; at most :data:`_MOST` stages times chunks of the model are executed.
        times: The times.
        equal: Whether it is instead that of V-shaped schedules with equal stages, and 0 for all others.
    """
    operands = (*astuple(pipeline, recurse=False)[:-1], *astuple(times, recurse=False))
    if all_floats(*operands):
        return _executed_once(_SEARCHED.get(), equal, *operands)
    return _executed(equal, *operands)


@lru_cache(maxsize=4096)
def _executed_once(_: bool, equal: bool, *operands: float) -> float:  # noqa: FBT001  # on what the result depends besides
    """The executed time of floats, cached: layouts that differ only outside the passes, such as in ZeRO, share it."""
    time: float = _executed(equal, *operands)
    return time


def _executed(equal: bool, *operands: Any) -> Any:  # noqa: FBT001  # as above
    columns = [x.reshape(-1) for x in np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in operands))]
    shape = np.broadcast_shapes(*map(np.shape, operands))
    found = np.zeros(len(columns[0]))
    p, v, v_shape, deferred, layers, mtp, microbatches = columns[:7]
    is_v_shaped = v_shape > 0.0
    model_chunks = p * np.where(is_v_shaped, 2.0, v)
    whole = np.maximum(np.floor(microbatches), 1.0)
    unequal = (np.floor(layers / model_chunks) * model_chunks != layers) | (mtp > 0.0)
    possible = (p > 1.0) & (p * model_chunks <= _MOST) & ((is_v_shaped | (deferred > 0.0)) == (v == 1.0))
    # Of invalid layouts none is executed.  Interleaved schedules take as many microbatches as stages in turn.
    possible &= (v == 1.0) | (np.floor(whole / p) * p == whole)
    possible &= ~is_v_shaped | (p <= MOST_V_STAGES)
    at = np.flatnonzero((is_v_shaped & ~unequal if equal else unequal) & possible)
    if at.size:
        turn = np.where(v > 1.0, p, 1.0)
        few = np.floor(_PASSES / (6.0 * p)) if equal else np.where(v > 1.0, _TURNS, _DWELL) * p
        # Of two numbers of microbatches that with which all others are an even number of turns more.
        odd = np.floor((whole - few) / turn)
        few += (odd - 2.0 * np.floor(0.5 * odd)) * turn
        keys = np.stack([v_shape, np.where(is_v_shaped, 0.0, deferred), p, v, np.minimum(whole, few)])[:, at]
        first, kind_of = _distinct(keys)
        order = np.argsort(kind_of.astype(np.min_scalar_type(len(first))), kind="stable")
        # Rows of one kind are next to each other.
        at = at[order]
        more = whole[at] - keys[-1, order]
        deal, counted = dealt_with_mtp(layers[at], p[at], v[at], is_v_shaped[at].astype(np.float64), mtp[at])
        forward, inputs, weights, movable, send, output, output_inputs = (x[at] for x in columns[7:])
        sent = 0.5 * send / np.where(is_v_shaped, 2.0, v)[at]
        of_passes = forward, inputs, weights, sent, output, output_inputs
        rows = np.array([deal.short, deal.begin, deal.end, mtp[at] - counted, *of_passes])
        spans = np.empty(len(at))
        ends = np.cumsum(np.bincount(kind_of)).tolist()
        for begin, end, key in zip([0, *ends], ends, keys[:, first].T.tolist(), strict=False):
            some = slice(begin, end)
            spans[some] = _of_kind(key, more[some], rows[:, some], movable[some])
        found[at] = spans
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
        # Rows may differ in microbatches only.  Where few do, it takes longer to find them than to compute them.
        several = 2 * len(np.unique(columns[_FORWARD])) <= columns.shape[1]
        first, row = _distinct(columns) if several else (slice(None), slice(None))
        durations = _durations(chunks, columns[:, first])
        few, through, stages = (x[..., row] for x in of(m).dwelling(durations))
        longest = (through + further * stages).max(axis=0)
        if schedule not in SPLIT:
            before = of(m - turns).span(durations)[row]
            longest = np.maximum(longest, few + (few - before) * (further / turns))
        return np.where(further > 0.0, longest, few)

    if not _SEARCHED.get():
        return span(0.5 * movable, slice(None))
    # Equal parts, if possible; with whole backward passes no other parts are better.
    guess = np.minimum(np.maximum(0.5 * (rows[_FORWARD] - rows[_INPUTS]), 0.0), movable)
    if schedule in FUSED or not movable.any():
        return span(guess, slice(None))
    return least(span, movable, guess)[1]


def _distinct(rows: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the different columns of a matrix, and for each column which one it equals."""
    order = np.lexsort(rows)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (rows[:, order[1:]] != rows[:, order[:-1]]).any(axis=0)
    numbers = np.empty(len(order), dtype=np.intp)
    numbers[order] = np.cumsum(new) - 1
    return order[new], numbers


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
