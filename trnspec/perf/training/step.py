"""The time of one training step: its microbatches (:mod:`trnspec.perf.training.microbatch`), the pipeline bubble, and what follows.

Gradients, weights and the optimizer are derived in ``docs/explanation/performance/training.md``; :func:`step` sums all parts.
Arguments and units are those of :mod:`trnspec.perf.training.microbatch`.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
from attrs import define

from trnspec.perf.lowering.machine import Machine, group
from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where
from trnspec.perf.training.bubble import (
    Balance,
    balance,
    equal_bubble,
    is_executed,
    least_idle,
    pipeline_of,
    unequal_bubble,
)
from trnspec.perf.training.execution import Pipeline
from trnspec.perf.training.microbatch import Times, microbatch
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import Transformer

# Gradients, weights and the optimizer.


def gradients_and_weights(
    model: Transformer, layout: Layout, machine: Machine
) -> tuple[Number, Number, Number, Number]:
    """Collectives over gradients and sharded weights, and the optimizer.

    ZeRO 0 all-reduces gradients; 1 reduce-scatters them and all-gathers the new weights; 2 reduce-scatters them for every
    microbatch, since a rank keeps only its shard; 3 also all-gathers weights forward and backward for every microbatch
    (Rajbhandari et al. 2020, section 7).  Experts are sharded over fewer ranks, since each expert-parallel rank has its own.

    Returns:
        Time of the exchange around a backward pass and of that ahead of a forward pass [s]; time of the optimizer [s]; use of
        unknown links.
    """
    replicas, share, stages = layout.dp * layout.cp, 1.0 / layout.tp, ceil(model.layers / layout.pp)
    data_ranks = group(machine, replicas, layout.tp)
    expert_ranks = layout.ep * layout.expert_split
    same_experts = group(machine, replicas * layout.tp / expert_ranks, layout.expert_split * layout.ep)
    outer = model.embedding + model.output * (1.0 - model.tied) + model.outer
    # The last stage has an output matrix of its own even where it is tied to the embedding, and the final norm.
    last_extra = model.output + model.outer - outer
    # Of unequal stages, the longest or the one with the output, embedding and multi-token prediction.
    last = floor(model.layers / layout.pp) + model.mtp
    ends = (outer + smaller(layout.pp - 1.0, 1.0) * last_extra + model.mtp * model.joined) * share
    layer = (model.whole + model.small) * share
    routed = model.routed / expert_ranks
    sharded = layout.sharding.optimizer
    # Half of the time per byte: gradients are reduce-scattered where the optimizer is sharded, else all-reduced.
    byte, expert_byte = (
        of.allgather_s_per_byte - (1.0 - sharded) * (of.allgather_s_per_byte - 0.5 * of.allreduce_s_per_byte)
        for of in (data_ranks, same_experts)
    )
    layer_byte = layer * byte + expert_byte * routed
    layer = layer + routed + sharded * (expert_ranks * share - 1.0) * routed
    data_byte = larger(stages * layer_byte, last * layer_byte + ends * byte)
    parameters = larger(stages * layer, last * layer + ends)
    precision, gathered = layout.precision, layout.sharding.weights
    latency = 0.5 * machine.achieved.call * data_ranks.is_group + data_ranks.latency
    gradient_bytes = (2.0 - sharded) * precision.grad_bytes + gathered * precision.compute_bytes
    gradients = gradient_bytes * data_byte + (2.0 - sharded + gathered * (2.0 * stages - 1.0)) * latency
    weights = sharded * precision.compute_bytes * data_byte + (sharded + gathered * (stages - 1.0)) * latency
    state_byte = (1.0 + machine.achieved.optimizer_passes) * machine.seconds_per_byte
    state = parameters * (1.0 + sharded * (1.0 / replicas - 1.0)) * state_byte
    # The update reads and writes states and weight, which it does not read where there is a master copy, and reads the gradient.
    update_bytes = (
        precision.grad_bytes + 2.0 * precision.state_bytes + (2.0 - precision.master) * precision.weight_bytes
    )
    return gradients, weights, state * update_bytes, data_ranks.unknown + same_experts.unknown * model.moe


def overlapping_passes(layout: Layout, machine: Machine) -> tuple[Number, Number]:
    """Passes of a stage from when its first gradients are final, or until its last weights are needed; and the exposed share.

    The first stage of the interleaved schedule ends with one pass of all its chunks but one for each of ``pp`` microbatches,
    after the gradients of its last chunk are final, and begins with the same number of forward passes: ``((v-1) pp + 1)/v``.
    Where every microbatch has exchanges of its own, the other microbatches are not available.

    Software exchanges a model chunk at a time, and what is exposed in any case is the first or the last of them.
    """
    v, once = layout.interleave, 1.0 - layout.sharding.gradients
    window = 1.0 + once * ((v - 1.0) * (layout.pp - 1.0) / v)
    return window * machine.achieved.overlap, machine.achieved.exposed / (1.0 + once * (v - 1.0))


def exposed_exchanges(
    layout: Layout, machine: Machine, gradients: Number, weights: Number, layer: Times, *stages: tuple[Number, Number]
) -> list[Number]:
    """Exposed collectives over gradients and sharded weights, which overlap with the computation of a stage [s].

    Gradients overlap with the backward passes of a stage from when the first are final, weights of the next step with its
    forward passes; what is exchanged for every microbatch overlaps with all passes of a microbatch, and where the backward
    pass is split with the pipeline bubble, which may be between any two passes.

    Args:
        layout: The layout.
        machine: Compute and communication of a rank.
        gradients: The exchange around a backward pass, see :func:`gradients_and_weights` [s].
        weights: That ahead of a forward pass [s].
        layer: A microbatch in a layer.
        stages: For each of some stages its layers, and its pipeline bubble [s].
    """
    available, exposed = overlapping_passes(layout, machine)
    split = layout.splits_backward
    # Where it is split, gradients are final in the pass for weights only.
    backward = available * ((1.0 - split) * (layer.fwd_bwd - layer.forward + layer.movable) + layer.weights)
    forward = available * layer.forward
    times = [_exposed(gradients, n * backward, exposed) + _exposed(weights, n * forward, exposed) for n, _ in stages]
    scattered = layout.sharding.gradients
    repeated, passes = gradients + layout.sharding.weights * weights, available * layer.fwd_bwd
    others = scattered * (layout.microbatches - 1.0)
    return [
        time + _exposed(others * repeated, others * (n * passes) + split * available * idle, exposed)
        for time, (n, idle) in zip(times, stages, strict=True)
    ]


def _exposed(time: Number, behind: Number, share: Number) -> Number:
    """Exposed time of a collective, and at least a share of it."""
    excess = time - behind
    return larger(time * share, excess)


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


def step(
    model: Transformer, layout: Layout, machine: Machine, *, needed: Number = True, limit: float = math.inf
) -> Step:
    """The time of one training step.

    Args:
        model: The transformer.
        layout: The layout.
        machine: Compute and communication of a rank.
        needed: Where the time is needed. Elsewhere the total may be infinite: some schedules take long to execute.
        limit: Times that are certainly above it are not needed [s]; schedules with a closed form have theirs in any case.
    """
    one = microbatch(model, layout, machine)
    layer = one.times(layout, 1.0 + model.mtp)
    gradients, weights, optimizer, unknown = gradients_and_weights(model, layout, machine)
    pipeline = pipeline_of(model, layout)
    stages, microbatches, fixed = balance(pipeline), layout.microbatches, machine.achieved.step
    head, embedding_head = one.head, (1.0 + model.mtp) * one.embedding_head
    output, exchanges = head + embedding_head, (layout, machine, gradients, weights, layer)
    executed = is_executed(pipeline, stages)

    def needed_within(limit: float, slowest: Number, output_layers: Number) -> Number:
        """The elements whose time is needed, given by how much the output makes its stage the slowest, and its layers."""
        if limit == math.inf or executed is False:
            return needed
        # Gradients that are reduced for every microbatch overlap with all of a bubble, which may be any.
        data = exposed_exchanges(*exchanges, (stages.most, _LONG), (output_layers, _LONG))
        passes = _least_passes(pipeline, layer, stages, slowest)
        least = passes + larger(data[0] - microbatches * slowest, 0.0) + optimizer + fixed
        return needed & (_ROUNDED * least <= where(executed, limit, math.inf))

    if not np.any(stages.unequal):
        needed = needed_within(limit, output, stages.most)
        idle = equal_bubble(pipeline, layer, stages.most, needed)
        (data,) = exposed_exchanges(*exchanges, (stages.most, idle))
    else:
        # The stage with the output is the slowest where the output takes longer than the layers that it has fewer.
        hidden = (stages.missing - model.mtp) * layer.fwd_bwd
        head_excess = output - hidden
        slowest, output_layers = larger(head_excess, 0.0), stages.most - stages.missing + model.mtp
        needed = needed_within(limit, slowest, output_layers)
        idle = unequal_bubble(pipeline, layer, stages, slowest, needed)
        split, head_excess = layout.splits_backward, microbatches * head_excess
        after, before = larger(head_excess, 0.0), smaller(head_excess, 0.0)
        of_stages = (stages.most, idle + split * after), (output_layers, idle - split * before)
        longest, outputs = exposed_exchanges(*exchanges, *of_stages)
        # A stage that is not the slowest also exchanges gradients in the time by which it is shorter; where the backward
        # pass is split that is part of its bubble.
        data = larger(longest - (1.0 - split) * after, outputs + (1.0 - split) * before)
        head, embedding_head = (
            larger(head - hidden, 0.0),
            larger(embedding_head - larger(hidden - head, 0.0), 0.0),
        )
    passes = microbatches * stages.most
    parts = (
        passes * (one.forward + one.backward),
        passes * one.recompute,
        microbatches * head,
        passes * one.tensor + microbatches * embedding_head,
        passes * one.context,
        passes * one.expert,
        microbatches * one.pipeline,
        idle,
        data,
        optimizer,
        fixed,
    )
    total = reduce(add, parts)
    if executed is not False:
        total = where(needed, total, math.inf)
    return Step(total, *parts, one.unknown + unknown)


def least_time(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """A lower bound of the time of one training step [s]: without the optimizer and exchanges of gradients and weights.

    Arguments are those of :func:`step`.
    """
    one = microbatch(model, layout, machine)
    layer = one.times(layout, 1.0 + model.mtp)
    pipeline = pipeline_of(model, layout)
    stages = balance(pipeline)
    hidden = (stages.missing - model.mtp) * layer.fwd_bwd
    slowest = larger(one.head + (1.0 + model.mtp) * one.embedding_head - hidden, 0.0)
    return _ROUNDED * (_least_passes(pipeline, layer, stages, slowest) + machine.achieved.step)


def _least_passes(pipeline: Pipeline, layer: Times, stages: Balance, slowest: Number) -> Number:
    """A lower bound of the time of all passes of the slowest stage [s], given by how much the output makes it that."""
    busy = pipeline.microbatches * (stages.most * layer.fwd_bwd + layer.send + slowest)
    return busy + least_idle(pipeline, layer, slowest > 0.0)


_LONG = 1e30
"""Longer than any bubble [s]."""
_ROUNDED = 1.0 - 2.0**-30
"""A bound in terms that are summed in another order may be larger by rounding."""
