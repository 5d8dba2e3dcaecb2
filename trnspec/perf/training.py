"""The time of one training step, part by part.

Every formula takes floats or arrays that broadcast; ``docs/explanation/the-performance-model.md`` derives them.  Times
are in s, sizes in bytes, work in FLOP.  Choices come as numbers that are 0 or 1, since a product is several times
faster than a choice on arrays, and gives the same bits on floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.links import links
from trnspec.perf.machine import never
from trnspec.perf.ops import Number, larger, smaller
from trnspec.perf.terms import context, terms

if TYPE_CHECKING:
    from trnspec.perf.links import Links
    from trnspec.perf.machine import Machine
    from trnspec.perf.plan import Plan
    from trnspec.perf.terms import Terms
    from trnspec.perf.transformer import Transformer


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
    return timed(terms(model, machine), plan, links(plan, machine))


def timed(each: Terms, plan: Plan, use: Links) -> Step:
    """The time of one training step, from what depends on fewer things and may be known already.

    Args:
        each: What :func:`~trnspec.perf.terms.terms` gives for the model and the machine.
        plan: How the run is laid out.
        use: What :func:`~trnspec.perf.links.links` gives for the plan and the machine.
    """
    share = 1.0 / plan.tp
    tokens = plan.microbatch * plan.seq / plan.cp
    stages = each.layers / plan.pp
    message = tokens * (each.hidden * plan.activation_bytes)
    rounds = 4.0 + 2.0 * plan.full

    work, again = _layer(each, plan, tokens, share)
    computed = work + again
    reduced = rounds * (use.tensor_each + use.tensor_byte * message)
    if not (never(plan.overlap) or never(tensor_overlap := each.tensor_overlap)):
        reduced = larger(reduced - plan.overlap * tensor_overlap * computed, 0.0)
    passed = _context(each, plan, use, message)
    exchanged = _experts(each, plan, use, rounds, share * message)
    sent = _sends(plan, use, share, message)

    stage = stages * (computed + reduced + passed + exchanged)
    behind = stage * (0.5 + plan.gathered * (plan.microbatches - 0.5))
    data, update = _data(each, plan, use, share, stages, behind)
    bubble = plan.bubble * (plan.pp - 1.0) * (stage + sent)

    passes = plan.microbatches * stages
    computed, repeated = passes * work, passes * again
    reduced, passed, exchanged = passes * reduced, passes * passed, passes * exchanged
    sent, head = plan.microbatches * sent, plan.microbatches * (tokens * share) * each.head
    total = computed + repeated + head + reduced + passed + exchanged
    fixed, unknown = each.step, use.unknown
    total = total + sent + bubble + data + update + fixed
    if not never(used := use.expert_unknown):
        unknown = unknown + used * each.used
    return Step(
        *(total, computed, repeated, head, reduced, passed, exchanged),
        *(sent, bubble, data, update, fixed, unknown),
    )


def _layer(each: Terms, plan: Plan, tokens: Number, share: Number) -> tuple[Number, Number]:
    """Times of one layer for one microbatch: forward and backward, and what is computed again.

    Backward costs twice what forward does.  The host launches a layer's kernels no faster than the calibrated least time.
    """
    part = tokens * share
    matmul = part * each.matmul
    if not never(wide := each.wide):
        weights = (each.weight + each.expert_weight / plan.ep) * share
        matmul = matmul + (tokens * wide + part * each.split + weights) * plan.activation_bytes
    if not never(stream := each.stream):
        # Norms and residuals are split over the tensor-parallel ranks where the sequence is.
        matmul = matmul + (tokens + plan.sequence * (part - tokens)) * (stream * plan.activation_bytes)
    scores = part * context(each, plan.seq) * each.score
    if not never(score_byte := each.score_byte):
        scores = scores + part * plan.seq * (score_byte * plan.activation_bytes)
    forward = matmul + scores
    if never(least := each.forward) and never(each.backward):
        return 3.0 * forward, plan.full * forward + plan.selective * scores
    backward = larger(2.0 * forward, each.backward)
    forward = larger(forward, least)
    return forward + backward, plan.full * forward + plan.selective * scores


def _context(each: Terms, plan: Plan, use: Links, message: Number) -> Number:
    """Keys and values go round the context-parallel ranks: once forward, they and their gradients again backward."""
    if never(plan.cp - 1.0):
        return 0.0
    cache = message * (plan.cp * (each.keys / smaller(plan.tp, each.kv_heads)))
    return (3.0 + plan.full + plan.selective) * (use.ring_each + use.ring_byte * cache)


def _experts(each: Terms, plan: Plan, use: Links, rounds: Number, message: Number) -> Number:
    """Tokens go to their experts and back, forward and backward, as often as tensors are reduced."""
    if never(dispatched := each.dispatched) or never(plan.ep - 1.0):
        return 0.0
    return rounds * (use.expert_each * each.used + use.expert_byte * message * dispatched)


def _sends(plan: Plan, use: Links, share: Number, message: Number) -> Number:
    """The messages of one microbatch between stages, forward and backward, over the outermost link that any takes."""
    if never(plan.pp - 1.0):
        return 0.0
    size = message * (1.0 + plan.sequence * (share - 1.0))
    return plan.sends * (use.send_each + size * use.send_byte)


def _data(  # each is known to the caller
    each: Terms, plan: Plan, use: Links, share: Number, stages: Number, behind: Number
) -> tuple[Number, Number]:
    """Exposed collectives over gradients and sharded weights, and the optimizer's time.

    ZeRO 0 reduces gradients everywhere; 1 and 2 scatter them and gather the new weights; 3 gathers weights forward and
    backward and scatters gradients for every microbatch (Rajbhandari et al. 2020, section 7).
    """
    states = (stages * each.kept + each.only + smaller(plan.pp - 1.0, 1.0) * each.last) * share
    size = use.data_byte * states
    if not never(elements := each.routed):
        routed = stages * share * (elements / plan.ep)
        size = size + use.part_byte * routed
        # Experts are sharded over fewer ranks, since each of ep ranks has its own.
        states = states + routed + plan.sharded * (plan.ep - 1.0) * routed
    once = 2.0 * plan.gradient_bytes + plan.sharded * (plan.weight_bytes - plan.gradient_bytes)
    more = plan.gradient_bytes + 2.0 * plan.weight_bytes
    rounds = once + plan.gathered * (plan.microbatches * more - once)
    calls = 2.0 + plan.gathered * (3.0 * plan.microbatches * stages - 2.0)
    time = rounds * size + calls * use.data_each
    hidden = time - each.overlap * behind
    exposed = larger(hidden, 0.0) if never(least := each.exposed) else larger(time * least, hidden)
    return exposed, states * (1.0 + plan.sharded * use.sharded) * (plan.state_bytes * each.state)
