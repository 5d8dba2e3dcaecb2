"""The time of one training step, part by part.

Formulas take floats or float64 arrays that broadcast; ``docs/explanation/performance/training.md`` derives them.  Times are
in s, sizes in B, work in FLOP.  Choices are numbers that are 0 or 1: on arrays a product is several times faster than
``where``, and it gives the same bits on floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.lowering.machine import always_zero
from trnspec.perf.ops import Number, larger
from trnspec.perf.training.communication import links
from trnspec.perf.training.costs import costs
from trnspec.perf.work.terms import terms

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.training.costs import Costs
    from trnspec.perf.work.plan import Plan
    from trnspec.perf.work.transformer import Transformer


@frozen
class Step:
    """The time of one training step on the slowest rank; ``total`` is the sum of the parts, in their order.

    Attributes:
        total: The sum of the parts [s].
        compute: Layers, forward and backward, of all microbatches of a stage.
        recompute: Recompute in the backward pass.
        head: Output matrix and loss, on the last stage.
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


def step(model: Transformer, plan: Plan, machine: Machine) -> Step:
    """The time of one training step.

    Args:
        model: The transformer.
        plan: The layout.
        machine: Compute and communication of a rank.
    """
    coefficients = costs(terms(model, machine), plan, links(plan, machine))
    return step_from_costs(coefficients, plan.microbatch, plan.microbatches)


def step_from_costs(costs: Costs, microbatch: Number, microbatches: Number) -> Step:
    """The time of one training step from its coefficients.

    Args:
        costs: Result of :func:`~trnspec.perf.training.costs.costs`; every attribute is read once, so it may be lazy.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches per step and replica.
    """
    tokens = microbatch * costs.seq_tokens
    work, redone = _layer(costs, tokens)
    computed = work + redone
    tensor = _carried(costs.tensor_each, costs.tensor_token, tokens)
    if not always_zero(overlap := costs.tensor_overlap):
        tensor = larger(tensor - overlap * computed, 0.0)
    context = _carried(costs.context_each, costs.context_token, tokens)
    expert = _carried(costs.expert_each, costs.expert_token, tokens)
    if not always_zero(overlap := costs.expert_overlap) and not always_zero(expert):
        # With the rest of a layer, of the other of two interleaved microbatches.
        expert = larger(expert - overlap * (computed + tensor + context), 0.0)
    pipeline = costs.sends * _carried(costs.send_each, costs.send_token, tokens)

    stages = costs.stage_layers
    stage = stages * (computed + tensor + context + expert)
    data = _data(costs, microbatches, stage)
    bubble = costs.bubble_microbatches * (stage + pipeline)

    passes = microbatches * stages
    computed, recompute = passes * work, passes * redone
    tensor, context, expert = passes * tensor, passes * context, passes * expert
    pipeline, head = microbatches * pipeline, microbatches * (tokens * costs.head)
    optimizer, fixed = costs.state * costs.state_bytes, costs.step
    total = computed + recompute + head + tensor + context + expert + pipeline + bubble + data + optimizer + fixed
    return Step(
        *(total, computed, recompute, head, tensor, context, expert),
        *(pipeline, bubble, data, optimizer, fixed, costs.unknown),
    )


def _carried(call: Number, token: Number, tokens: Number) -> Number:
    """The time of a collective over ``tokens`` tokens."""
    return call if always_zero(token) else call + tokens * token


def _layer(costs: Costs, tokens: Number) -> tuple[Number, Number]:
    """Time of one layer for one microbatch, forward and backward, and time of its recompute.

    Backward takes twice as long as forward.  Neither is shorter than the calibrated least times (kernel launches).
    """
    scores = tokens * costs.scores
    forward = tokens * costs.token + costs.weights + scores
    forward_minimum, backward_minimum = costs.forward, costs.backward
    if always_zero(forward_minimum) and always_zero(backward_minimum):
        work = 3.0 * forward
    else:
        backward = larger(2.0 * forward, backward_minimum)
        forward = larger(forward, forward_minimum)
        work = forward + backward
    return work, costs.full * forward + costs.selective * scores


def _data(costs: Costs, microbatches: Number, stage: Number) -> Number:
    """Exposed collectives over gradients and sharded weights, which overlap with the computation of a stage."""
    time = costs.exchange_bytes * costs.data_byte + costs.exchange_calls
    excess = time - stage * costs.exchange_overlap
    exposed = costs.exposed
    exposed = larger(excess, 0.0) if always_zero(exposed) else larger(time * exposed, excess)
    return exposed * (1.0 + costs.per_microbatch * (microbatches - 1.0))
