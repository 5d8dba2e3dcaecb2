"""The time of one training step, part by part.

Every formula takes floats or arrays that broadcast; ``docs/explanation/the-performance-model.md`` derives them.  Times
are in s, sizes in bytes, work in FLOP.  Choices come as numbers that are 0 or 1, since a product is several times
faster than a choice on arrays, and gives the same bits on floats.
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
        total: All of it, in s.
        compute: Layers, forward and backward, of all microbatches of a stage.
        recompute: What is computed again.
        head: The output matrix and the loss, on the last stage.
        tensor: Exposed collectives of tensor parallelism.
        context: Exposed passing of keys and values.
        expert: All-to-all of tokens between experts.
        pipeline: Messages between stages.
        bubble: Waiting of the first and last microbatches.
        data: Exposed collectives over gradients and sharded weights.
        optimizer: Update of the weights.
        fixed: What depends on nothing.
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
"""What ``unknown`` may be where no unknown link is used: shares of a buffer that are equal may differ in their last bit.

A share that is used is at least one over the square of the ranks.
"""


def step(model: Transformer, plan: Plan, machine: Machine) -> Step:
    """The time of one training step.

    Args:
        model: The transformer.
        plan: How the run is laid out.
        machine: What a rank computes and communicates with.
    """
    found = costs(terms(model, machine), plan, links(plan, machine))
    return step_from_costs(found, plan.microbatch, plan.microbatches)


def step_from_costs(each: Costs, microbatch: Number, microbatches: Number) -> Step:
    """The time of one training step, from what depends on fewer things and may be known already.

    Args:
        each: What :func:`~trnspec.perf.training.costs.costs` gives; every attribute is asked for once.
        microbatch: Sequences of a microbatch.
        microbatches: How many of them one replica computes in a step.
    """
    tokens = microbatch * each.pieces
    work, again = _layer(each, tokens)
    computed = work + again
    reduced = _carried(each.tensor_each, each.tensor_token, tokens)
    if not always_zero(hiding := each.hiding):
        reduced = larger(reduced - hiding * computed, 0.0)
    passed = _carried(each.context_each, each.context_token, tokens)
    exchanged = _carried(each.expert_each, each.expert_token, tokens)
    sent = each.sends * _carried(each.send_each, each.send_token, tokens)

    stages = each.stages
    stage = stages * (computed + reduced + passed + exchanged)
    data = _data(each, microbatches, stage)
    bubble = each.waiting * (stage + sent)

    passes = microbatches * stages
    computed, repeated = passes * work, passes * again
    reduced, passed, exchanged = passes * reduced, passes * passed, passes * exchanged
    sent, head = microbatches * sent, microbatches * (tokens * each.head)
    update, fixed = each.state * each.state_bytes, each.step
    total = computed + repeated + head + reduced + passed + exchanged + sent + bubble + data + update + fixed
    return Step(
        *(total, computed, repeated, head, reduced, passed, exchanged),
        *(sent, bubble, data, update, fixed, each.unknown),
    )


def _carried(each: Number, token: Number, tokens: Number) -> Number:
    """The time of a collective that carries so many tokens."""
    return each if always_zero(token) else each + tokens * token


def _layer(each: Costs, tokens: Number) -> tuple[Number, Number]:
    """Times of one layer for one microbatch: forward and backward, and what is computed again.

    Backward costs twice what forward does.  The host launches a layer's kernels no faster than the calibrated least time.
    """
    scores = tokens * each.scores
    forward = tokens * each.token + each.weights + scores
    least, slowest = each.forward, each.backward
    if always_zero(least) and always_zero(slowest):
        work = 3.0 * forward
    else:
        backward = larger(2.0 * forward, slowest)
        forward = larger(forward, least)
        work = forward + backward
    return work, each.full * forward + each.selective * scores


def _data(each: Costs, microbatches: Number, stage: Number) -> Number:
    """Exposed collectives over gradients and sharded weights: they hide behind the computation of a stage."""
    time = each.sizes * each.data_byte + each.calls
    hidden = time - stage * each.behind
    exposed = each.exposed
    exposed = larger(hidden, 0.0) if always_zero(exposed) else larger(time * exposed, hidden)
    return exposed * (1.0 + each.gathered * (microbatches - 1.0))
