"""The time of one training step, part by part.

Formulas take floats or float64 arrays that broadcast; ``docs/explanation/performance/training.md`` derives them.  Times are
in s, sizes in B, work in FLOP.  Choices are numbers that are 0 or 1: on arrays a product is several times faster than
``where``, and it gives the same bits on floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.lowering.machine import always_zero
from trnspec.perf.ops import Number, larger, smaller
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
        head: Output matrix and loss, and multi-token prediction, as far as they make the last stage the slowest.
        tensor: Exposed tensor-parallel collectives.
        context: Exposed ring exchange of keys and values.
        expert: All-to-all of tokens between experts.
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
    full, fill = costs.full, costs.fill
    split = 0.0 if always_zero(fill) else smaller(fill, 1.0)
    forward, inputs, weights, redone = _layer(costs, tokens)

    # Two of the rounds of collectives are forward, two backward, and two more are recomputed.
    forward_share = 1.0 / (2.0 + full)
    tensor = _carried(costs.tensor_each, costs.tensor_token, tokens)
    tensor_forward = forward_share * tensor
    tensor_backward = tensor - tensor_forward
    if not always_zero(overlap := costs.tensor_overlap):
        tensor_forward = larger(tensor_forward - overlap * forward, 0.0)
        # A weight gradient that is computed later does not overlap with the collectives of its layer.
        beside = inputs + redone + (1.0 - split) * weights
        tensor_backward = larger(tensor_backward - overlap * beside, 0.0)
    context = _carried(costs.context_each, costs.context_token, tokens)
    # Once forward; backward also the gradients; once more where attention is recomputed.
    context_forward = context if always_zero(context) else context / (3.0 + full + costs.selective)
    expert = _carried(costs.expert_each, costs.expert_token, tokens)
    expert_forward = forward_share * expert
    pipeline = costs.sends * _carried(costs.send_each, costs.send_token, tokens)

    stages = costs.stage_layers
    layer = Stage(
        forward + tensor_forward + context_forward + expert_forward,
        inputs + redone + tensor_backward + (context - context_forward) + (expert - expert_forward),
        weights,
    )
    head, ends = tokens * costs.head, _carried(costs.ends_each, costs.ends_token, tokens)
    data = _data(costs, microbatches, layer.times(stages), split)
    idle = bubble(costs, microbatches, layer.times(costs.other_layers), pipeline)
    missing, predicted = costs.missing_layers, costs.mtp
    if not (always_zero(missing) and always_zero(predicted)):
        each = layer.forward + layer.inputs + layer.weights
        # The stage with the output is the slowest where the output takes longer than the layers that it has fewer.
        last = predicted * each + head + ends
        idle = idle + costs.bubble * smaller(missing * each, last)
        hidden = (missing - predicted) * each
        head, ends = larger(head - hidden, 0.0), larger(ends - larger(hidden - head, 0.0), 0.0)

    passes = microbatches * stages
    computed, recompute = passes * (forward + inputs + weights), passes * redone
    tensor, context, expert = passes * (tensor_forward + tensor_backward), passes * context, passes * expert
    tensor = tensor + microbatches * ends
    pipeline, head = microbatches * pipeline, microbatches * head
    optimizer, fixed = costs.state * costs.update_bytes, costs.step
    total = computed + recompute + head + tensor + context + expert + pipeline + idle + data + optimizer + fixed
    return Step(
        *(total, computed, recompute, head, tensor, context, expert),
        *(pipeline, idle, data, optimizer, fixed, costs.unknown),
    )


@frozen
class Stage:
    """The time of one microbatch on one stage, or in one layer, computation and communication, by pass [s].

    Attributes:
        forward: Forward.
        inputs: Gradients of activations, with recompute.
        weights: Gradients of weights.
    """

    forward: Number
    inputs: Number
    weights: Number

    def times(self, layers: Number) -> Stage:
        """That of several layers."""
        return Stage(layers * self.forward, layers * self.inputs, layers * self.weights)


def _carried(call: Number, token: Number, tokens: Number) -> Number:
    """The time of a collective over ``tokens`` tokens."""
    return call if always_zero(token) else call + tokens * token


def _layer(costs: Costs, tokens: Number) -> tuple[Number, Number, Number, Number]:
    """Times of one layer for one microbatch: forward, gradients of activations, gradients of weights, and recompute.

    A matrix multiplication has two of the same size backward, one for each gradient; attention scores have no weights.
    Neither forward nor backward is shorter than the calibrated least times (kernel launches).
    """
    scores = tokens * costs.scores
    weights = tokens * costs.token + costs.weights
    forward, inputs = weights + scores, weights + tokens * costs.scores_backward
    forward_minimum, backward_minimum = costs.forward, costs.backward
    if not (always_zero(forward_minimum) and always_zero(backward_minimum)):
        forward = larger(forward, forward_minimum)
        launched = 0.5 * larger(backward_minimum - (inputs + weights), 0.0)
        inputs, weights = inputs + launched, weights + launched
    return forward, inputs, weights, costs.full * forward + costs.selective * scores


def bubble(costs: Costs, microbatches: Number, stage: Stage, pipeline: Number) -> Number:
    """The time that the first stage is idle [s].

    With passes F (forward), B (gradients of activations, recompute included) and W (gradients of weights), messages in F and
    B, and a whole backward pass, it is ``(p - 1) (F + B + W)`` over the chunks per stage.  A split backward pass fills the
    ``(p - 1) (F + B)`` of the first and the last microbatch's way with weight gradients: of all microbatches in flight but
    one, up to ``p`` for ``zb1p`` and ``2 p - 1`` for ``zb2p`` (Qi et al. 2023, section 3), exact for F, B >= W.

    V-shaped schedules have their published bubble, which limited memory causes, from ``m >= p`` on, and a part that grows
    with m below; or what remains of ``p (F + B) + (m - 1) max(F, B) + W/2``, if that is longer: every stage is passed
    twice, the turn by one microbatch after the other, and W of the first chunk remains.

    Args:
        costs: The coefficients.
        microbatches: Microbatches per step and replica.
        stage: A microbatch on a stage, without messages.
        pipeline: Messages of a microbatch on a stage.
    """
    idle = costs.bubble_microbatches * (stage.forward + stage.inputs + stage.weights + pipeline)
    if always_zero(fill := costs.fill):
        return idle
    forward, inputs, folded = stage.forward + 0.5 * pipeline, stage.inputs + 0.5 * pipeline, costs.folded
    others = microbatches - 1.0
    idle = idle * (1.0 - folded * (1.0 - smaller(others / larger(fill, 1.0), 1.0)))
    beside = smaller(others, costs.deferred + folded * microbatches) * stage.weights
    beside = beside + folded * (others * smaller(forward, inputs) + 0.5 * stage.weights)
    return larger(idle, fill * (forward + inputs) - beside)


def _data(costs: Costs, microbatches: Number, stage: Stage, split: Number) -> Number:
    """Exposed collectives over gradients and sharded weights, which overlap with the computation of a stage.

    Gradients overlap with the backward passes of a stage from when the first are final, weights of the next step with its
    forward passes; what is exchanged for every microbatch overlaps with all passes of a microbatch.
    """
    gradients = costs.gradient_bytes * costs.data_byte + costs.gradient_calls
    weights = costs.weight_bytes * costs.data_byte + costs.weight_calls
    overlap, exposed = costs.data_overlap, costs.exposed
    available = overlap * costs.window
    # Where it is split, gradients are final in the pass for weights only.
    backward = stage.weights + (1.0 - split) * stage.inputs
    time = _exposed(gradients, available * backward, exposed) + _exposed(weights, available * stage.forward, exposed)
    if always_zero(scattered := costs.scattered):
        return time
    repeated = gradients + costs.gathered * weights
    whole = overlap * (stage.forward + stage.inputs + stage.weights)
    return time + scattered * (microbatches - 1.0) * _exposed(repeated, whole, exposed)


def _exposed(time: Number, behind: Number, share: Number) -> Number:
    """What of a collective does not overlap, and at least a share of it."""
    excess = time - behind
    return larger(excess, 0.0) if always_zero(share) else larger(time * share, excess)
