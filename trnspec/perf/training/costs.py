"""What a step costs for a token, for a microbatch and in any case: each from a few of the choices of a layout.

The time of a step is linear in the tokens of a microbatch and in the number of microbatches but for a few maxima.  Its
coefficients depend on few choices each, so that a batch computes them once for each combination that occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.lowering.machine import always_zero
from trnspec.perf.ops import Number, ceil, smaller
from trnspec.perf.work.terms import context

if TYPE_CHECKING:
    from collections.abc import Callable

    from trnspec.perf.training.communication import Links
    from trnspec.perf.work.plan import Plan
    from trnspec.perf.work.terms import Terms


@frozen(kw_only=True)
class Costs:
    """The coefficients of a step's time; "token" ones are for each token of a microbatch on a rank of cp, in s.

    Attributes:
        pieces: Tokens of a sequence on a rank of cp.
        token: One layer forward, attention's scores apart.
        scores: Attention's scores of a layer forward.
        weights: Reading the weights of a layer, in s.
        selective: 1 where attention's scores are computed again.
        full: The share of a layer that is computed again.
        forward: Least time of a layer forward, in s.
        backward: Least time of a layer backward, in s.
        hiding: Share of a layer's computation that collectives of tensor parallelism hide behind.
        tensor_each: Collectives of tensor parallelism in a layer, whatever they carry, in s.
        tensor_token: The same.
        context_each: Passing keys and values in a layer, whatever they are, in s.
        context_token: The same.
        expert_each: All-to-all in a layer, whatever it carries, in s.
        expert_token: The same.
        send_each: A message to the next stage and one back, in s.
        send_token: The same.
        sends: Such messages for a microbatch.
        waiting: Microbatches that a stage waits for in the bubble.
        stages: Layers of a stage.
        head: The output matrix and the loss.
        gathered: 1 where replicas exchange weights and gradients for each microbatch, 0 where they do once in a step.
        sizes: Bytes of a parameter that they exchange each time.
        data_byte: One byte of each parameter exchanged, in s.
        calls: What they exchange each time, whatever it is, in s.
        behind: Share of a stage's time for one microbatch that this hides behind.
        exposed: Share of it that is exposed in any case.
        state: Time of the optimizer for each byte of a parameter's states, in s.
        state_bytes: Bytes of a parameter's states.
        step: What depends on nothing, in s.
        unknown: Above 0 where a link is used whose rate is not published.
    """

    pieces: Number
    token: Number
    scores: Number
    weights: Number
    selective: Number
    full: Number
    forward: Number
    backward: Number
    hiding: Number
    tensor_each: Number
    tensor_token: Number
    context_each: Number
    context_token: Number
    expert_each: Number
    expert_token: Number
    send_each: Number
    send_token: Number
    sends: Number
    waiting: Number
    stages: Number
    head: Number
    gathered: Number
    sizes: Number
    data_byte: Number
    calls: Number
    behind: Number
    exposed: Number
    state: Number
    state_bytes: Number
    step: Number
    unknown: Number


def costs(each: Terms, plan: Plan, use: Links) -> Costs:
    """The coefficients of the time of a step.

    Args:
        each: What :func:`~trnspec.perf.work.terms.terms` gives for the model and the machine.
        plan: How the run is laid out.
        use: What :func:`~trnspec.perf.training.communication.links` gives for the plan and the machine.
    """
    found: dict[str, Number] = {}
    for local in LOCAL:
        found |= local(each, plan)
    for linked in LINKED:
        found |= linked(each, plan, use)
    return Costs(**found)


def _layer(each: Terms, plan: Plan) -> dict[str, Number]:
    """Times of a layer forward for a token, attention's scores apart."""
    share, wide, stream = 1.0 / plan.tp, each.wide, each.stream
    # Heads of keys and values are split, and where they are too few, repeated; a latent cache is one head.
    more = ceil(each.kv_heads / plan.tp) * plan.tp / each.kv_heads - 1.0
    token = share * (each.matmul + more * each.repeated)
    if not always_zero(wide):
        token = token + (wide + share * each.split) * plan.activation_bytes
    if not always_zero(stream):
        # Norms and residuals are split over the tensor-parallel ranks where the sequence is.
        token = token + (1.0 + plan.sequence * (share - 1.0)) * (stream * plan.activation_bytes)
    return {"token": token}


def _scores(each: Terms, plan: Plan) -> dict[str, Number]:
    """Times of attention's scores of a layer forward for a token."""
    scores = context(each, plan.seq) * each.score
    if not always_zero(score_byte := each.score_byte):
        scores = scores + plan.seq * (score_byte * plan.activation_bytes)
    return {"scores": scores / plan.tp}


def _share(each: Terms, plan: Plan) -> dict[str, Number]:
    """What needs no link and depends on little."""
    share = 1.0 / plan.tp
    weights: Number = 0.0
    if not always_zero(each.wide):
        weights = (each.weight + each.expert_weight / plan.ep) * share * plan.activation_bytes
    return {
        "weights": weights,
        "head": share * each.head,
        "full": plan.full,
        "selective": plan.selective,
        "forward": each.forward,
        "backward": each.backward,
        "hiding": plan.overlap * each.tensor_overlap,
        "exposed": each.exposed,
        "step": each.step,
    }


def _tensor(each: Terms, plan: Plan, use: Links) -> dict[str, Number]:
    """All-reduces of a layer: two forward, two backward, two more where it is computed again."""
    rounds = 4.0 + 2.0 * plan.full
    message = each.hidden * plan.activation_bytes
    return {"tensor_each": rounds * use.tensor_each, "tensor_token": rounds * (use.tensor_byte * message)}


def _context(each: Terms, plan: Plan, use: Links) -> dict[str, Number]:
    """Keys and values go round the context-parallel ranks: once forward, they and their gradients again backward."""
    if always_zero(plan.cp - 1.0):
        return {"context_each": 0.0, "context_token": 0.0}
    cache = each.hidden * plan.activation_bytes * (plan.cp * (each.keys / smaller(plan.tp, each.kv_heads)))
    rounds = 3.0 + plan.full + plan.selective
    return {"context_each": rounds * use.ring_each, "context_token": rounds * (use.ring_byte * cache)}


def _experts(each: Terms, plan: Plan, use: Links) -> dict[str, Number]:
    """Tokens go to their experts and back, forward and backward, as often as tensors are reduced."""
    if always_zero(dispatched := each.dispatched) or always_zero(plan.ep - 1.0):
        return {"expert_each": 0.0, "expert_token": 0.0}
    rounds = 4.0 + 2.0 * plan.full
    message = each.hidden * plan.activation_bytes * dispatched / plan.tp
    return {"expert_each": rounds * (use.expert_each * each.moe), "expert_token": rounds * (use.expert_byte * message)}


def _pipeline(each: Terms, plan: Plan, use: Links) -> dict[str, Number]:
    """Messages between stages, over the outermost link that any takes.

    Each tensor-parallel rank sends its part; where the sequence is not split, the parts are gathered on arrival
    (Narayanan et al. 2021, section 4.1).
    """
    size = each.hidden * plan.activation_bytes
    # A message and one back are gathered in the time of one all-reduce.
    gathered = (1.0 - plan.sequence) * smaller(plan.pp - 1.0, 1.0)
    return {
        "stages": each.layers / plan.pp,
        "send_each": use.send_each + gathered * use.tensor_each,
        "send_token": size * (use.send_byte / plan.tp + gathered * use.tensor_byte),
    }


def _schedule(_: Terms, plan: Plan) -> dict[str, Number]:
    """How often messages are sent, and how often a stage waits for the others."""
    return {"sends": plan.sends, "waiting": plan.bubble * (plan.pp - 1.0)}


def _data(each: Terms, plan: Plan, use: Links) -> dict[str, Number]:
    """Collectives over gradients and sharded weights, and the optimizer.

    ZeRO 0 reduces gradients everywhere; 1 and 2 scatter them and gather the new weights; 3 gathers weights forward and
    backward and scatters gradients for every microbatch (Rajbhandari et al. 2020, section 7).
    """
    share, stages = 1.0 / plan.tp, each.layers / plan.pp
    states = (stages * each.kept + each.outer + smaller(plan.pp - 1.0, 1.0) * each.last_extra) * share
    byte = use.data_byte * states
    if not always_zero(elements := each.routed):
        routed = stages * share * (elements / plan.ep)
        byte = byte + use.part_byte * routed
        # Experts are sharded over fewer ranks, since each of ep ranks has its own.
        states = states + routed + plan.sharded * (plan.ep - 1.0) * routed
    return {
        "data_byte": byte,
        "calls": (2.0 + plan.gathered * (3.0 * stages - 2.0)) * use.data_each,
        "state": states * (1.0 + plan.sharded * use.sharded) * each.state,
        # Gradients hide behind half of a microbatch, the last one's; gathered weights behind all of one.
        "behind": (0.5 + 0.5 * plan.gathered) * each.overlap,
    }


def _pieces(_: Terms, plan: Plan) -> dict[str, Number]:
    """Tokens of a sequence."""
    return {"pieces": plan.seq / plan.cp}


def _bytes(_: Terms, plan: Plan) -> dict[str, Number]:
    """Bytes of a parameter, exchanged and kept."""
    once = 2.0 * plan.gradient_bytes + plan.sharded * (plan.weight_bytes - plan.gradient_bytes)
    each = plan.gradient_bytes + 2.0 * plan.weight_bytes
    return {
        "gathered": plan.gathered,
        "sizes": once + plan.gathered * (each - once),
        "state_bytes": plan.state_bytes,
    }


def missing(each: Terms, _: Plan, use: Links) -> dict[str, Number]:
    """The links that are used and not known."""
    return {"unknown": use.unknown if always_zero(use.expert_unknown) else use.unknown + use.expert_unknown * each.moe}


LOCAL: dict[Callable[[Terms, Plan], dict[str, Number]], tuple[str, ...]] = {
    _pieces: ("seq", "cp"),
    _bytes: ("optimizer", "zero"),
    _layer: ("sequence_parallel", "tp", "which"),
    _scores: ("seq", "tp", "which"),
    _share: ("overlap", "recompute", "ep", "tp", "which"),
    _schedule: ("interleave", "schedule", "pp"),
}
"""What computes coefficients without links, and the choices that any of them depends on.

``which`` is the model and the system.
"""

LINKED: dict[Callable[[Terms, Plan, Links], dict[str, Number]], tuple[str, ...]] = {
    _tensor: ("recompute", "tp", "which"),
    _context: ("recompute", "cp", "tp", "which"),
    _experts: ("recompute", "ep", "tp", "which"),
    _pipeline: ("sequence_parallel", "pp", "tp", "which"),
    _data: ("zero", "pp", "ep", "tp", "which"),
    missing: ("cp", "pp", "ep", "tp", "which"),
}
"""What computes the others."""
