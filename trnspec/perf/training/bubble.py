"""The pipeline bubble: how long the slowest stage is idle in a step.

Chunks of the model have a number of layers or one more, and the last one has the output (:func:`trnspec.perf.work.layout.dealt`).
Equal stages have closed forms but for V-shaped schedules; of unequal ones 1F1B and GPipe, whose longest path is one of a
few.  Other schedules are executed (:mod:`trnspec.perf.training.execution`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from attrs import astuple, evolve

from trnspec.perf.ops import Number, collapsed, floor, larger, smaller, where
from trnspec.perf.training.execution import MICROBATCHES, MOST_CHUNKS, TURNS, Pipeline, executed
from trnspec.perf.training.microbatch import Times
from trnspec.perf.work.layout import Layout, dealt, extreme_layers
from trnspec.perf.work.transformer import Transformer


def pipeline_of(model: Transformer, layout: Layout) -> Pipeline:
    """The schedule of a layout, and how the layers of a model are dealt to its stages."""
    schedule = layout.pipeline
    deferred = (layout.pp - 1.0) * schedule.deferred
    return Pipeline(
        *(layout.pp, layout.interleave, schedule.v_shape, deferred, model.layers, model.mtp, layout.microbatches),
        forward_first=schedule.gpipe,
        factor=schedule.bubble / layout.interleave,
    )


def equal_bubble(pipeline: Pipeline, layer: Times, layers: Number, needed: Number = True) -> Number:  # noqa: FBT002  # an array, or all
    """The time that the first stage is idle where stages are equal [s].

    With passes F (forward), B (gradients of activations, recompute included) and W (gradients of weights), messages in F and
    B, and a whole backward pass, it is ``(p - 1) (F + B + W)`` over the chunks per stage.  A split backward pass fills the
    ``(p - 1) (F + B)`` of the first and the last microbatch's way with weight gradients: of all microbatches in flight but
    one, up to ``p`` for ``zb1p`` and ``2 p - 1`` for ``zb2p`` (Qi et al. 2023, section 3), exact for F, B >= W.

    V-shaped schedules execute their passes in the published order, see :mod:`trnspec.perf.training.execution`; what may be in
    either pass is where the bubble is the shortest.  Their first stage has the output, and what it is idle counts; in others
    the last one has it, whose time adds to all of these.

    Args:
        pipeline: The pipeline.
        layer: A microbatch in a layer.
        layers: Layers of a stage.
        needed: Where the time is needed; elsewhere V-shaped schedules are not executed.
    """
    others, v_shape, deferred = pipeline.stages - 1.0, pipeline.v_shape, pipeline.deferred
    weights, fwd_bwd = layers * layer.weights, layers * layer.fwd_bwd + layer.send
    bubble = pipeline.factor * others * fwd_bwd
    if not (np.any(v_shape) or np.any(deferred)):
        return bubble
    executed_ = v_shaped_bubble(pipeline, layer, layers, needed) if np.any(v_shape) else 0.0
    filled = smaller(pipeline.microbatches - 1.0, deferred) * weights
    idle = where(deferred > 0.0, larger(bubble, others * (fwd_bwd - weights) - filled), bubble)
    return where(v_shape > 0.0, executed_, idle)


def unequal_bubble(
    pipeline: Pipeline,
    layer: Times,
    stages: Balance,
    head_excess: Number,
    needed: Number,
) -> Number:
    """The time that the slowest stage is idle [s], where stages are unequal; else that of :func:`equal_bubble`.

    Args:
        pipeline: The pipeline.
        layer: A microbatch in a layer.
        stages: The layers of the stages.
        head_excess: By how much the output makes the last stage slower than that with the most layers [s].
        needed: Where the time is needed.
    """
    narrowed = _narrowed(needed, layer.fwd_bwd, layer.send, head_excess, pipeline.microbatches, stages.unequal)
    # A pipeline of one stage is not executed.
    span = unequal_span(evolve(pipeline, stages=where(narrowed, pipeline.stages, 1.0)), layer)
    idle = larger(span - pipeline.microbatches * (stages.most * layer.fwd_bwd + layer.send + head_excess), 0.0)
    known = span > 0.0
    if np.all(known):
        return idle
    # Equal stages, or more than are executed: then those of the mean length of the others.
    others = equal_bubble(pipeline, layer, stages.most - stages.shorter, narrowed)
    last = pipeline.mtp * layer.fwd_bwd + (layer.output + layer.output_inputs)
    others = others + pipeline.factor * smaller(stages.missing * layer.fwd_bwd, last)
    return where(known, idle, others)


class Balance(NamedTuple):
    """The layers of the stages of a pipeline.

    Attributes:
        most: Layers of the stage with the most.
        unequal: 1 where chunks of the model differ in layers, or the last one has multi-token prediction; else 0.
        shorter: Layers that the other stages have fewer, on average.
        missing: Layers that the stage with the output has fewer, without multi-token prediction.
    """

    most: Number
    unequal: Number
    shorter: Number
    missing: Number


def balance(pipeline: Pipeline) -> Balance:
    """The layers of the stages of a pipeline."""
    layers, stages, mtp = pipeline.layers, pipeline.stages, pipeline.mtp
    most, last, long = extreme_layers(layers, stages, pipeline.chunks, pipeline.v_shape, mtp)
    shorter = (stages * most - layers) / larger(stages - 1.0, 1.0)
    return Balance(most, collapsed(smaller(long + mtp, 1.0)), shorter, most - last)


def is_executed(pipeline: Pipeline, stages: Balance) -> Number:
    """Whether the time of a pipeline has no closed form; ``False`` if none is executed."""
    if not np.any(pipeline.v_shape) and not (
        np.any(stages.unequal) and np.any(pipeline.deferred + pipeline.chunks > 1.0)
    ):
        return False
    is_v_shaped = pipeline.v_shape > 0.0
    few = pipeline.stages * pipeline.stages * where(is_v_shaped, 2.0, pipeline.chunks) <= MOST_CHUNKS
    split_or_interleaved = (pipeline.deferred > 0.0) | (pipeline.chunks > 1.0)
    return few & (is_v_shaped | (stages.unequal > 0.0) & split_or_interleaved)


def unequal_span(pipeline: Pipeline, times: Times) -> Number:
    """The time of all passes with unequal stages [s]; 0 where they are equal, or more than are executed."""
    p = pipeline.stages
    deal, _ = dealt(pipeline.layers, p, pipeline.chunks, 0.0, pipeline.mtp)
    simple = pipeline.v_shape + pipeline.deferred + pipeline.chunks == 1.0
    other = 0.0 if np.all(simple) else executed(pipeline, times)
    if not np.any(simple):
        return other
    unequal = (deal.end > deal.begin) | (pipeline.mtp > 0.0)
    first, alternating = forward_first(pipeline, times), one_forward_one_backward(pipeline, times)
    found = where(pipeline.forward_first > 0.0, first, alternating)
    return where(simple & unequal & (p > 1.0), found, other)


def one_forward_one_backward(pipeline: Pipeline, times: Times) -> Number:
    """The time of all passes of 1F1B with unequal stages [s]; it is at least that of each stage.

    A path may wait for the forward passes of a stage before the first backward pass arrives there, for its microbatches,
    and for its backward passes after the last forward pass.  In between, from a stage to a later one and back takes as many
    microbatches as stages, each of which it passes once: no more than staying on the slowest of them.  So the longest path
    passes the stages up to the slowest one and stays there; or before that, or after, or both, it goes on to the last stage
    but one, or to the last, instead of waiting for forward or backward passes.  The slowest stage is the last of those with
    the most layers, or that with the output.
    """
    p, m = pipeline.stages, pipeline.microbatches
    deal, counted = dealt(pipeline.layers, p, 1.0, 0.0, pipeline.mtp)
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
    """
    p, others = pipeline.stages, pipeline.microbatches - 1.0
    deal, counted = dealt(pipeline.layers, p, 1.0, 0.0, pipeline.mtp)
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
    """
    p, v = pipeline.stages, pipeline.chunks
    deal, _ = dealt(pipeline.layers, p, v, 0.0, pipeline.mtp)
    long = deal.end - deal.begin
    odd = long - p * floor(long / p)
    # The last stage but one with the most layers.
    slowest = larger(where(odd > 0.0, smaller(deal.begin + odd - 1.0, p - 2.0), p - 2.0), 0.0)
    before = where(output_is_slowest, p - 1.0, slowest)
    idle = deal.start(before) * (times.forward + times.inputs) + before * times.send / v
    whole = (pipeline.deferred + pipeline.v_shape == 0.0) & (p * (p * v) <= MOST_CHUNKS)
    return where(whole, idle, 0.0)


def _narrowed(needed: Number, *numbers: Number) -> Number:
    """Elements that need some numbers, which may depend on fewer axes: for any element of the others."""
    if not isinstance(needed, np.ndarray):
        return needed
    shape = np.broadcast_shapes(*map(np.shape, numbers))
    shape = (1,) * (needed.ndim - len(shape)) + shape
    axes = tuple(i for i, (n, m) in enumerate(zip(needed.shape, shape, strict=True)) if n > 1 and m == 1)
    return needed.any(axis=axes, keepdims=True) if axes else needed


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
    """The approximation of the time of unequal stages; ``None`` where it is exact."""
    is_v_shaped, p = layout.pipeline.v_shape > 0.0, layout.pp
    chunks = p * (2.0 if is_v_shaped else layout.interleave)
    if (
        p == 1.0
        or not (layers % chunks or mtp)
        or layout.pipeline.v_shape + layout.pipeline.deferred + layout.interleave == 1.0
    ):
        return None
    if p * chunks > MOST_CHUNKS:
        return Approximation(f"of the mean length: more than {MOST_CHUNKS:,} stages x chunks are not executed", *_MEAN)
    takes_turns = layout.interleave > 1.0
    executed_with = TURNS if takes_turns else MICROBATCHES
    if (is_v_shaped or takes_turns) and layout.microbatches > executed_with * p:
        longest = _LONGEST_OF_TURNS if takes_turns else _LONGEST_OF_V
        return Approximation(f"executed with {executed_with} pp microbatches, and extended", 1.0, longest)
    return None


_ROUNDING = 1e-12
"""Differences of sums below it, relative to the sums, are rounding."""
_MEAN = 0.85, 1.15
"""By how much stages of the mean length were off in random cases: less than 12 % either way, ``v-min`` 15 %."""
_LONGEST_OF_V = 1.015
"""An execution of V-shaped schedules over the extended time: 120 of 53,000 random cases were too short, by up to 1.2 %."""
_LONGEST_OF_TURNS = 1.01
"""The same of interleaved schedules: 16 of 39,000, by up to 0.6 %."""


def v_shaped_bubble(pipeline: Pipeline, layer: Times, layers: Number, needed: Number = True) -> Number:  # noqa: FBT002  # as above
    """The pipeline bubble of V-shaped schedules with equal stages [s]: how much longer they take than the first stage computes.

    It is 0 for other schedules, and beyond the stages that are executed.  Arguments are those of :func:`equal_bubble`.
    """
    weights, fwd_bwd = layers * layer.weights, layers * layer.fwd_bwd + layer.send
    forward = layers * layer.forward + 0.5 * layer.send
    # A chunk is half of a stage; the first stage has the output, after its second chunk.
    passes = 0.5 * forward, 0.5 * (fwd_bwd - weights - forward), 0.5 * weights, 0.5 * layers * layer.movable
    chunk = Times(*passes, 0.0, layer.output, layer.output_inputs)
    narrowed = _narrowed(
        needed, pipeline.v_shape, pipeline.stages, pipeline.microbatches, *astuple(chunk, recurse=False)
    )
    stages = where(narrowed, pipeline.stages, 1.0)
    chunks = Pipeline(stages, 1.0, pipeline.v_shape, 0.0, 2.0 * stages, 0.0, pipeline.microbatches)
    span = executed(chunks, chunk, equal=True)
    busy = 2.0 * chunk.fwd_bwd + (chunk.output + chunk.output_inputs)
    idle = span - larger(1.0, floor(pipeline.microbatches)) * busy
    # Sums in another order differ by rounding.
    return where(idle > _ROUNDING * span, idle, 0.0)
