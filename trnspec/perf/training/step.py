"""The time of one training step, part by part.

Formulas take floats or float64 arrays that broadcast; ``docs/explanation/performance/training.md`` derives them.  Times are
in s, sizes in B, work in FLOP.  Choices are numbers that are 0 or 1: on arrays a product is several times faster than
``where``, and it gives the same bits on floats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from attrs import define

from trnspec.perf.lowering.machine import always_zero
from trnspec.perf.ops import Number, both, everywhere, larger, smaller, where
from trnspec.perf.training.costs import costs
from trnspec.perf.training.unequal import Pipeline, Times, least_idle, unequal_span, v_shaped_bubble

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.training.costs import Costs
    from trnspec.perf.work.layout import Layout
    from trnspec.perf.work.transformer import Transformer


# Single calls create one each; a frozen class takes six times as long.
@define
class Step:
    """The time of one training step on the slowest rank; ``total`` is the sum of the parts, in their order.

    Attributes:
        total: The sum of the parts [s].
        compute: Layers, forward and backward, of all microbatches of a stage.
        recompute: Recompute in the backward pass.
        head: Output matrix and loss, and multi-token prediction, as far as they make the last stage the slowest.
        tensor: Exposed tensor-parallel collectives.
        context: Exposed ring exchange of keys and values.
        expert: Exposed all-to-all of tokens between experts.
        pipeline: Messages between stages.
        bubble: Pipeline bubble.
        data: Exposed collectives over gradients and sharded weights.
        optimizer: Weight update.
        fixed: Fixed time of a step.
        unknown: Above :data:`UNUSED` where a link is used whose rate is not published.
    """

    total: Number
    compute: Number
    recompute: Number
    head: Number
    tensor: Number
    context: Number
    expert: Number
    pipeline: Number
    bubble: Number
    data: Number
    optimizer: Number
    fixed: Number
    unknown: Number


PARTS = (
    *("compute", "recompute", "head", "tensor", "context", "expert"),
    *("pipeline", "bubble", "data", "optimizer", "fixed"),
)
"""The parts of a step, in the order in which they are summed."""

UNUSED = 1e-12
"""Threshold of ``unknown``: where no unknown link is used, rounding may leave a difference of equal shares.

A share that is used is at least one over the square of the number of ranks.
"""


def step(model: Transformer, layout: Layout, machine: Machine) -> Step:
    """The time of one training step.

    Args:
        model: The transformer.
        layout: The layout.
        machine: Compute and communication of a rank.
    """
    return step_from_costs(costs(model, layout, machine), layout.microbatch, layout.microbatches)


def step_from_costs(  # noqa: PLR0915  # the parts of a step, in their order
    costs: Costs, microbatch: Number, microbatches: Number, *, needed: Number = True, limit: float = math.inf
) -> Step:
    """The time of one training step from its coefficients.

    Args:
        costs: Result of :func:`~trnspec.perf.training.costs.costs`.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches per step and replica.
        needed: Where the time is needed. Elsewhere the total may be infinite: schedules of unequal stages take long to
            execute.
        limit: Times that are certainly above it are not needed [s].
    """
    tokens = microbatch * costs.seq_tokens
    full, selective = costs.full, costs.selective
    split = smaller(costs.split_stages, 1.0)
    forward, backward, weights, scores = passes_of_layer(costs, tokens)
    redone = full * forward + selective * scores

    # Of the rounds of collectives two are forward, two backward, and two are recomputed.
    rounds = 2.0 + full
    # Gradients of weights that are computed later do not overlap with the collectives of their layer.
    tensor, tensor_forward = exposed_tensor_parallel(costs, tokens, forward, backward + redone - split * weights)
    # Keys and values go around the ring forward; they and their gradients backward; once more under recompute.
    context_forward = costs.context.of(tokens)
    context = (rounds + (1.0 + selective)) * context_forward
    work = forward + backward
    rest = work + redone + tensor + context
    expert = costs.expert.of(tokens)
    expert, expert_forward, movable = _all_to_all(expert, rest - split * weights, costs.expert_overlap, rounds)
    pipeline = costs.p2p_messages * costs.p2p.of(tokens)

    stages = costs.stage_layers
    on_forward = forward + tensor_forward + context_forward + expert_forward
    fwd_bwd = rest + expert
    layer = Stage(on_forward, fwd_bwd, weights, movable)
    head, embedding_head_comm = tokens * costs.head, costs.embedding_head.of(tokens)
    predicted = costs.mtp
    if always_zero(costs.unequal):
        if limit < math.inf and not always_zero(costs.v_shape):
            least = _least(costs, microbatches, layer, split, pipeline, head + embedding_head_comm, stages)
            needed = both(needed, np.logical_or(costs.v_shape == 0.0, least <= limit))
        idle = bubble(
            costs,
            microbatches,
            layer.times(stages),
            pipeline,
            passes_of_output(head, embedding_head_comm),
            needed,
        )
        (data,) = _data(costs, microbatches, split, layer, (stages, idle))
    else:
        missing, embedding_head_comm = costs.missing_layers, (1.0 + predicted) * embedding_head_comm
        # The stage with the output is the slowest where the output takes longer than the layers that it has fewer.
        hidden = (missing - predicted) * fwd_bwd
        head_excess = head + embedding_head_comm - hidden
        slowest = larger(head_excess, 0.0)
        if limit < math.inf:
            least = _least(costs, microbatches, layer, split, pipeline, slowest, stages - missing + predicted)
            needed = both(needed, least <= limit)
        needed = _narrowed(needed, fwd_bwd, pipeline, slowest, microbatches, costs.unequal)
        idle = _unequal_bubble(
            costs, microbatches, layer, split, pipeline, (head, embedding_head_comm), slowest, needed
        )
        head_excess = microbatches * head_excess
        after, before = larger(head_excess, 0.0), smaller(head_excess, 0.0)
        of_stages = (stages, idle + split * after), (stages - missing + predicted, idle - split * before)
        longest, outputs = _data(costs, microbatches, split, layer, *of_stages)
        # A stage that is not the slowest also exchanges gradients in the time by which it is shorter; where the backward
        # pass is split that is part of its bubble.
        data = larger(longest - (1.0 - split) * after, outputs + (1.0 - split) * before)
        head, embedding_head_comm = (
            larger(head - hidden, 0.0),
            larger(embedding_head_comm - larger(hidden - head, 0.0), 0.0),
        )

    passes = microbatches * stages
    computed, recompute = passes * work, passes * redone
    tensor, context, expert = passes * tensor + microbatches * embedding_head_comm, passes * context, passes * expert
    pipeline, head = microbatches * pipeline, microbatches * head
    optimizer, fixed = costs.state * costs.update_bytes, costs.step
    total = computed + recompute + head + tensor + context + expert + pipeline + idle + data + optimizer + fixed
    if needed is not True and not (always_zero(costs.unequal) and always_zero(costs.v_shape)):
        total = where(needed, total, math.inf)
    return Step(
        *(total, computed, recompute, head, tensor, context, expert),
        *(pipeline, idle, data, optimizer, fixed, costs.unknown),
    )


@define
class Stage:
    """The time of one microbatch on one stage, or in one layer, computation and communication, by pass [s].

    Attributes:
        forward: Forward.
        fwd_bwd: Forward and backward, with recompute.
        weights: The part of the backward pass for gradients of weights.
        movable: What may be in either pass; ``forward`` includes it.
    """

    forward: Number
    fwd_bwd: Number
    weights: Number
    movable: Number = 0.0

    def times(self, layers: Number) -> Stage:
        """Time of some layers."""
        return Stage(layers * self.forward, layers * self.fwd_bwd, layers * self.weights, layers * self.movable)


def exposed_tensor_parallel(
    costs: Costs, tokens: Number, forward: Number, overlap_window: Number
) -> tuple[Number, Number]:
    """The exposed tensor-parallel collectives of a layer, and what of them is in the forward pass [s].

    Of the rounds of :func:`~trnspec.perf.training.costs.tensor_parallel_all_reduce` two are forward, two backward, and two are
    recomputed.  Where software overlaps them, each pass hides them behind a share of its computation.

    Args:
        costs: The coefficients.
        tokens: Tokens of a microbatch on a rank.
        forward: Forward pass of the layer [s].
        overlap_window: What is computed in its backward pass that collectives can overlap with [s].
    """
    tensor_forward = costs.tensor.of(tokens)
    tensor = (2.0 + costs.full) * tensor_forward
    if always_zero(overlap := costs.tensor_overlap):
        return tensor, tensor_forward
    hidden = smaller(tensor_forward, overlap * forward)
    hidden_backward = smaller((1.0 + costs.full) * tensor_forward, overlap * overlap_window)
    # Rounding may leave a negative difference where all is hidden.
    return larger(tensor - (hidden + hidden_backward), 0.0), tensor_forward - hidden


def _all_to_all(expert: Number, rest: Number, overlap: Number, rounds: Number) -> tuple[Number, Number, Number]:
    """The exposed all-to-all of a layer, what of it is in the forward pass, and what may be in either pass.

    The forward pass of one microbatch overlaps with the backward pass of another.  What is exposed is then in either pass:
    with a part in each, one pass could get shorter on a faster rank at the same sum, and more of other collectives be
    exposed.

    Args:
        expert: The all-to-all of a layer.
        rest: The rest of the layer.
        overlap: Share of the rest that it can overlap with.
        rounds: All-to-alls of the layer for each one in the forward pass.
    """
    if always_zero(overlap) or always_zero(expert):
        return expert, expert / rounds, 0.0
    exposed = larger(expert - overlap * rest, 0.0)
    movable = overlap * exposed
    return exposed, movable + (1.0 - overlap) * (exposed / rounds), movable


def passes_of_layer(costs: Costs, tokens: Number) -> tuple[Number, Number, Number, Number]:
    """Times of one layer for one microbatch: forward, backward, its part for gradients of weights, and scores forward.

    A matrix multiplication has two of the same size backward, one for each gradient; attention scores have no weights.
    Neither forward nor backward is shorter than the calibrated least times (kernel launches); both parts of the backward
    pass take the same time more.
    """
    scores = tokens * costs.scores
    weights = tokens * costs.token + costs.weights
    forward = weights + scores
    backward = 2.0 * weights + costs.scores_backward * scores
    launched = larger(backward, costs.backward)
    return larger(forward, costs.forward), launched, weights + 0.5 * (launched - backward), scores


def passes_of_output(head: Number, embedding_head_comm: Number) -> tuple[Number, Number]:
    """Forward and backward pass of the output: it has one product forward and two backward, and a collective in each."""
    third = 1.0 / 3.0
    return third * head + 0.5 * embedding_head_comm, (2.0 * third) * head + 0.5 * embedding_head_comm


def bubble(  # parts of a step
    costs: Costs,
    microbatches: Number,
    stage: Stage,
    pipeline: Number,
    output: tuple[Number, Number] = (0.0, 0.0),
    needed: Number = True,  # noqa: FBT002  # an array, or all
) -> Number:
    """The time that the first stage is idle [s].

    With passes F (forward), B (gradients of activations, recompute included) and W (gradients of weights), messages in F and
    B, and a whole backward pass, it is ``(p - 1) (F + B + W)`` over the chunks per stage.  A split backward pass fills the
    ``(p - 1) (F + B)`` of the first and the last microbatch's way with weight gradients: of all microbatches in flight but
    one, up to ``p`` for ``zb1p`` and ``2 p - 1`` for ``zb2p`` (Qi et al. 2023, section 3), exact for F, B >= W.

    V-shaped schedules execute their passes in the published order, see :mod:`trnspec.perf.training.execution`; what may be in
    either pass is where the bubble is the shortest.  Their first stage has the output, and what it is idle counts; in others
    the last one has it, whose time adds to all of these.

    Args:
        costs: The coefficients.
        microbatches: Microbatches per step and replica.
        stage: A microbatch on a stage, without messages.
        pipeline: Messages of a microbatch on a stage.
        output: The output, forward and backward.
        needed: Where the time is needed; elsewhere V-shaped schedules are not executed.
    """
    split_stages, fwd_bwd = costs.split_stages, stage.fwd_bwd + pipeline
    if always_zero(split_stages):
        return costs.bubble_microbatches * fwd_bwd
    weights, v_shape = stage.weights, costs.v_shape
    executed: Number = 0.0
    if not always_zero(v_shape):
        forward = stage.forward + 0.5 * pipeline
        passes = 0.5 * forward, 0.5 * (fwd_bwd - weights - forward), 0.5 * weights, 0.5 * stage.movable
        stages = where(
            _narrowed(needed, v_shape, split_stages, microbatches, *passes, *output), split_stages + 1.0, 1.0
        )
        executed = v_shaped_bubble(v_shape, stages, microbatches, *passes, *output)
        if everywhere(v_shape > 0.0):
            return executed
    filled = smaller(microbatches - 1.0, costs.deferred_weight_grads) * weights
    idle = larger(costs.bubble_microbatches * fwd_bwd, split_stages * (fwd_bwd - weights) - filled)
    return idle if always_zero(v_shape) else where(v_shape > 0.0, executed, idle)


def _unequal_bubble(  # noqa: PLR0917  # parts of a step
    costs: Costs,
    microbatches: Number,
    layer: Stage,
    split: Number,
    pipeline: Number,
    output: tuple[Number, Number],
    head_excess: Number,
    needed: Number,
) -> Number:
    """The time that the slowest stage is idle [s], where stages are unequal; else that of :func:`bubble`.

    Args:
        costs: The coefficients.
        microbatches: Microbatches per step and replica.
        layer: A microbatch in a layer.
        split: 1 where the backward pass is split.
        pipeline: Messages of a microbatch on a stage.
        output: The output, and its tensor-parallel collectives.
        head_excess: By how much the output makes the last stage slower than that with the most layers.
        needed: Where the time is needed.
    """
    stages, predicted = costs.stage_layers, costs.mtp
    weights = split * layer.weights
    inputs = layer.fwd_bwd - layer.forward - weights
    head, embedding_head_comm = output
    passes = passes_of_output(head, embedding_head_comm)
    times = Times(layer.forward, inputs, weights, layer.movable, pipeline, *passes)
    executed = pipeline_of(costs, microbatches)
    # A pipeline of one stage is not executed.
    executed.stages = where(needed, executed.stages, 1.0)
    span = unequal_span(executed, times)
    idle = larger(span - microbatches * (stages * layer.fwd_bwd + pipeline + head_excess), 0.0)
    known = span > 0.0
    if everywhere(known):
        return idle
    # Equal stages, or more than are executed: then those of the mean length of the others.
    others = bubble(costs, microbatches, layer.times(stages - costs.shorter), pipeline, passes, needed)
    last = predicted * layer.fwd_bwd + head + embedding_head_comm
    others = others + costs.bubble * smaller(costs.missing_layers * layer.fwd_bwd, last)
    return where(known, idle, others)


def _least(  # noqa: PLR0917  # parts of a step
    costs: Costs,
    microbatches: Number,
    layer: Stage,
    split: Number,
    pipeline: Number,
    head_excess: Number,
    output_layers: Number,
) -> Number:
    """A lower bound on the total [s] without executing the schedule, from the slowest stage and what comes before and after it.

    Arguments are those of :func:`_unequal_bubble`, where the output adds to equal stages, and the layers of the stage with the output.
    """
    stages = costs.stage_layers
    weights = split * layer.weights
    times = Times(layer.forward, layer.fwd_bwd - layer.forward - weights, weights, layer.movable, pipeline, 0.0, 0.0)
    idle = least_idle(pipeline_of(costs, microbatches), times, head_excess > 0.0)
    # Gradients that are reduced for every microbatch overlap with all of a bubble, which may be any.
    data = _data(costs, microbatches, split, layer, (stages, _LONG), (output_layers, _LONG))
    exposed = larger(data[0] - microbatches * head_excess, 0.0)
    busy = microbatches * (stages * layer.fwd_bwd + pipeline + head_excess)
    return _ROUNDED * (busy + idle + exposed + costs.state * costs.update_bytes + costs.step)


_LONG = 1e30
"""Longer than any bubble [s]."""
_ROUNDED = 1.0 - 2.0**-30
"""A bound in terms that are summed in another order may be larger by rounding."""


def _narrowed(needed: Number, *numbers: Number) -> Number:
    """Elements that need some numbers, which may depend on fewer axes: for any element of the others."""
    if not isinstance(needed, np.ndarray):
        return needed
    shape = np.broadcast_shapes(*map(np.shape, numbers))
    shape = (1,) * (needed.ndim - len(shape)) + shape
    axes = tuple(i for i, (n, m) in enumerate(zip(needed.shape, shape, strict=True)) if n > 1 and m == 1)
    return needed.any(axis=axes, keepdims=True) if axes else needed


def pipeline_of(costs: Costs, microbatches: Number) -> Pipeline:
    """The schedule, and how layers are dealt to stages."""
    schedule = costs.stages, costs.chunks, costs.v_shape, costs.deferred_weight_grads
    return Pipeline(*schedule, costs.layers, costs.mtp, microbatches, costs.forward_first)


def _data(
    costs: Costs, microbatches: Number, split: Number, layer: Stage, *stages: tuple[Number, Number]
) -> list[Number]:
    """Exposed collectives over gradients and sharded weights, which overlap with the computation of a stage.

    Gradients overlap with the backward passes of a stage from when the first are final, weights of the next step with its
    forward passes; what is exchanged for every microbatch overlaps with all passes of a microbatch, and where the backward
    pass is split with the pipeline bubble, which may be between any two passes.

    Args:
        costs: The coefficients.
        microbatches: Microbatches per step and replica.
        split: 1 where the backward pass is split.
        layer: A microbatch in a layer.
        stages: For each of some stages its layers, and its pipeline bubble.
    """
    byte, exposed, available = costs.data_byte, costs.exposed, costs.available
    gradients = costs.gradient_bytes * byte + costs.gradient_calls
    weights = costs.weight_bytes * byte + costs.weight_calls
    # Where it is split, gradients are final in the pass for weights only.
    backward = (1.0 - split) * (layer.fwd_bwd - layer.forward + layer.movable) + split * layer.weights
    backward, forward = available * backward, available * layer.forward
    times = [_exposed(gradients, n * backward, exposed) + _exposed(weights, n * forward, exposed) for n, _ in stages]
    if always_zero(scattered := costs.scattered):
        return times
    repeated, passes = gradients + costs.gathered * weights, available * layer.fwd_bwd
    others = scattered * (microbatches - 1.0)
    of_bubble = split * available
    return [
        time + _exposed(others * repeated, others * (n * passes) + of_bubble * idle, exposed)
        for time, (n, idle) in zip(times, stages, strict=True)
    ]


def _exposed(time: Number, behind: Number, share: Number) -> Number:
    """Exposed time of a collective, and at least a share of it."""
    excess = time - behind
    return larger(time * share, excess)
