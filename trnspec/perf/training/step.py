"""The time of one training step: the sum of the parts of its microbatches, the pipeline bubble, and the exchange of gradients.

``docs/explanation/performance/training.md`` derives the formulas, which take floats or float64 arrays that broadcast.  Times are in s.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from attrs import define

from trnspec.perf.ops import Number, always_zero, both, larger, smaller, where
from trnspec.perf.training.bubble import balance, equal_bubble, is_executed, least_idle, pipeline_of, unequal_bubble
from trnspec.perf.training.execution import Times
from trnspec.perf.training.parts import (
    computation,
    exposed_exchanges,
    gradients_and_weights,
    microbatch,
    output_seconds_per_token,
)

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
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
    stages, microbatches, fixed = balance(pipeline), layout.microbatches, machine.step
    head, embedding_head = one.head, (1.0 + model.mtp) * one.embedding_head
    output, exchanges = head + embedding_head, (layout, machine, gradients, weights, layer)
    executed = is_executed(pipeline, stages)

    def needed_within(limit: float, slowest: Number, output_layers: Number) -> Number:
        """The elements whose time is needed, given by how much the output makes its stage the slowest, and its layers."""
        if limit == math.inf or executed is False:
            return needed
        idle = least_idle(pipeline, layer, slowest > 0.0)
        # Gradients that are reduced for every microbatch overlap with all of a bubble, which may be any.
        data = exposed_exchanges(*exchanges, (stages.most, _LONG), (output_layers, _LONG))
        busy = microbatches * (stages.most * layer.fwd_bwd + layer.send + slowest)
        least = busy + idle + larger(data[0] - microbatches * slowest, 0.0) + optimizer + fixed
        return both(needed, _ROUNDED * least <= where(executed, limit, math.inf))

    if always_zero(stages.unequal):
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
    if executed is not False and needed is not True:
        total = where(needed, total, math.inf)
    return Step(total, *parts, one.unknown + unknown)


def least_time(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """A lower bound of the time of one training step [s]: computation of the slowest stage, and its least idle time.

    Arguments are those of :func:`step`.
    """
    tokens = layout.microbatch * (layout.seq / layout.cp)
    forward, backward, _, recompute = computation(model, layout, machine, tokens)
    layer = Times(forward, backward + recompute, 0.0, 0.0, 0.0, 0.0, 0.0)
    pipeline = pipeline_of(model, layout)
    stages = balance(pipeline)
    head_excess = tokens * output_seconds_per_token(model, layout, machine) - (
        (stages.missing - model.mtp) * layer.fwd_bwd
    )
    busy = layout.microbatches * (stages.most * layer.fwd_bwd + larger(head_excess, 0.0))
    return _ROUNDED * (busy + least_idle(pipeline, layer, head_excess > 0.0) + machine.step)


_LONG = 1e30
"""Longer than any bubble [s]."""
_ROUNDED = 1.0 - 2.0**-30
"""A bound in terms that are summed in another order may be larger by rounding."""
