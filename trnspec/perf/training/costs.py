"""Coefficients of a step's time: per token, per microbatch and per step, each from a few fields of a layout.

Apart from a few maxima, the time of a step is linear in the tokens of a microbatch and in the number of microbatches.  Each
coefficient depends on few fields of the layout, so that a batch computes it once per combination of those that occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.experts import byte_time, copies
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
    """The coefficients of a step's time; ``_token`` is per token of a microbatch on a context-parallel rank [s].

    Attributes:
        seq_tokens: Tokens of a sequence on a context-parallel rank.
        token: One layer forward without attention scores, per token [s].
        scores: Attention scores of a layer forward, per token [s].
        weights: Reading the weights of a layer [s].
        selective: 1 where attention scores are recomputed.
        full: Share of a layer that is recomputed.
        forward: Least time of a layer forward [s].
        backward: Least time of a layer backward [s].
        tensor_overlap: Share of a layer's computation that tensor-parallel collectives can overlap with.
        tensor_each: Tensor-parallel collectives of a layer, fixed time [s].
        tensor_token: The same, per token.
        context_each: Ring exchange of keys and values in a layer, fixed time [s].
        context_token: The same, per token.
        expert_each: All-to-all of a layer, fixed time [s].
        expert_token: The same, per token.
        send_each: A message to the next stage and one back, fixed time [s].
        send_token: The same, per token.
        sends: Such messages per microbatch.
        bubble_microbatches: Pipeline bubble in microbatches.
        stage_layers: Layers of a stage.
        head: Output matrix and loss, per token [s].
        per_microbatch: 1 where replicas exchange weights and gradients for each microbatch, 0 where once per step.
        exchange_bytes: Bytes per parameter of each exchange.
        data_byte: Time of an exchange of one byte per parameter [s].
        exchange_calls: Fixed time of each exchange [s].
        exchange_overlap: Share of a stage's time for one microbatch that the exchange can overlap with.
        exposed: Share of the exchange that is exposed in any case.
        state: Time of the optimizer per byte of a parameter's states [s].
        state_bytes: Bytes of the optimizer states per parameter.
        step: Fixed time of a step [s].
        unknown: Above 0 where a link is used whose rate is not published.
        expert_overlap: Share of the rest of a layer that the all-to-all can overlap with.
    """

    seq_tokens: Number
    token: Number
    scores: Number
    weights: Number
    selective: Number
    full: Number
    forward: Number
    backward: Number
    tensor_overlap: Number
    tensor_each: Number
    tensor_token: Number
    context_each: Number
    context_token: Number
    expert_each: Number
    expert_token: Number
    send_each: Number
    send_token: Number
    sends: Number
    bubble_microbatches: Number
    stage_layers: Number
    head: Number
    per_microbatch: Number
    exchange_bytes: Number
    data_byte: Number
    exchange_calls: Number
    exchange_overlap: Number
    exposed: Number
    state: Number
    state_bytes: Number
    step: Number
    unknown: Number
    expert_overlap: Number


def costs(terms: Terms, plan: Plan, links: Links) -> Costs:
    """The coefficients of the time of a step.

    Args:
        terms: :func:`~trnspec.perf.work.terms.terms` of the model and the machine.
        plan: The layout.
        links: :func:`~trnspec.perf.training.communication.links` of the layout and the machine.
    """
    coefficients: dict[str, Number] = {}
    for local in LOCAL:
        coefficients |= local(terms, plan)
    for linked in LINKED:
        coefficients |= linked(terms, plan, links)
    return Costs(**coefficients)


def _layer(terms: Terms, plan: Plan) -> dict[str, Number]:
    """Time of a layer forward per token, without attention scores."""
    share, wide, stream = 1.0 / plan.tp, terms.wide, terms.stream
    beyond = plan.load - 1.0
    # KV heads are split, and replicated where there are fewer than ranks; a latent cache counts as one head.
    replicated = ceil(terms.kv_heads / plan.tp) * plan.tp / terms.kv_heads - 1.0
    token = share * (terms.matmul + replicated * terms.repeated)
    if not always_zero(beyond):
        token = token + share * beyond * terms.routed_matmul
    if not always_zero(wide):
        # Ranks that split an expert have the same copies.
        routed = share * (plan.load * plan.expert_split * terms.routed_wide + beyond * terms.routed_split)
        token = token + (wide + share * terms.split + routed) * plan.activation_bytes
    if not always_zero(stream):
        # Norms and residuals are split over the tensor-parallel ranks where the sequence is.
        token = token + (1.0 + plan.sequence * (share - 1.0)) * (stream * plan.activation_bytes)
    return {"token": token}


def _scores(terms: Terms, plan: Plan) -> dict[str, Number]:
    """Time of attention scores of a layer forward per token."""
    scores = context(terms, plan.seq) * terms.score
    if not always_zero(score_byte := terms.score_byte):
        scores = scores + plan.seq * (score_byte * plan.activation_bytes)
    return {"scores": scores / plan.tp}


def _share(terms: Terms, plan: Plan) -> dict[str, Number]:
    """Coefficients that need no link and depend on few fields."""
    share = 1.0 / plan.tp
    weights: Number = 0.0
    if not always_zero(terms.wide):
        routed = terms.expert_weight / (plan.ep * plan.expert_split)
        weights = (terms.weight * share + routed) * plan.activation_bytes
    return {
        "weights": weights,
        "head": share * terms.head,
        "full": plan.full,
        "selective": plan.selective,
        "forward": terms.forward,
        "backward": terms.backward,
        "tensor_overlap": plan.overlap * terms.tensor_overlap,
        "expert_overlap": plan.expert_overlap,
        "exposed": terms.exposed,
        "step": terms.step,
    }


def _tensor(terms: Terms, plan: Plan, links: Links) -> dict[str, Number]:
    """All-reduces of a layer's results: once forward, once backward, once more under full recompute.

    Attention, dense and shared networks each have one of a token. Ranks that split experts reduce every copy of a token that
    they received.
    """
    rounds = 2.0 + plan.full
    message = terms.hidden * plan.activation_bytes
    results, moe = terms.results, terms.moe
    if always_zero(moe):
        return {
            "tensor_each": rounds * (results * links.tensor_each),
            "tensor_token": rounds * (results * links.tensor_byte * message),
        }
    # Where every rank has all experts, shared and routed ones have one sum, and one copy of a token is enough for both.
    several = smaller(plan.ep - 1.0, 1.0)
    results = results + terms.shared * (1.0 - plan.per_node * (1.0 - several))
    received = plan.load * copies(plan.ep, terms.active, plan.per_node) * plan.expert_split / plan.tp
    each = results * links.tensor_each + moe * links.split_each
    token = results * links.tensor_byte + moe * received * links.split_byte
    return {"tensor_each": rounds * each, "tensor_token": rounds * (token * message)}


def _context(terms: Terms, plan: Plan, links: Links) -> dict[str, Number]:
    """Ring exchange of keys and values: once forward; they and their gradients backward; once more under recompute."""
    if always_zero(plan.cp - 1.0):
        return {"context_each": 0.0, "context_token": 0.0}
    cache = terms.hidden * plan.activation_bytes * (plan.cp * (terms.keys / smaller(plan.tp, terms.kv_heads)))
    rounds = 3.0 + plan.full + plan.selective
    return {"context_each": rounds * links.ring_each, "context_token": rounds * (links.ring_byte * cache)}


def _experts(terms: Terms, plan: Plan, links: Links) -> dict[str, Number]:
    """All-to-all of tokens to their experts and back, forward and backward, as often as all-reduces."""
    if always_zero(moe := terms.moe) or always_zero(plan.ep - 1.0):
        return {"expert_each": 0.0, "expert_token": 0.0}
    rounds = (4.0 + 2.0 * plan.full) * moe
    message = terms.hidden * plan.activation_bytes * plan.load / plan.tp
    byte = byte_time(links.exchange, terms.active, plan.per_node)
    return {"expert_each": rounds * links.expert_each, "expert_token": rounds * (byte * message)}


def _pipeline(terms: Terms, plan: Plan, links: Links) -> dict[str, Number]:
    """Messages between stages, over the widest link that any of them takes.

    Each tensor-parallel rank sends its part; without sequence parallelism the parts are gathered on arrival (Narayanan et
    al. 2021, section 4.1).
    """
    size = terms.hidden * plan.activation_bytes
    # Gathering a message and one back takes the time of one all-reduce.
    gathered = (1.0 - plan.sequence) * smaller(plan.pp - 1.0, 1.0)
    return {
        "stage_layers": terms.layers / plan.pp,
        "send_each": links.send_each + gathered * links.tensor_each,
        "send_token": size * (links.send_byte / plan.tp + gathered * links.tensor_byte),
    }


def _schedule(_: Terms, plan: Plan) -> dict[str, Number]:
    """Number of messages between stages, and the pipeline bubble."""
    return {"sends": plan.sends, "bubble_microbatches": plan.bubble * (plan.pp - 1.0)}


def _data(terms: Terms, plan: Plan, links: Links) -> dict[str, Number]:
    """Collectives over gradients and sharded weights, and the optimizer.

    ZeRO 0 all-reduces gradients; 1 and 2 reduce-scatter them and all-gather the new weights; 3 all-gathers weights forward
    and backward and reduce-scatters gradients for every microbatch (Rajbhandari et al. 2020, section 7).
    """
    share, stages = 1.0 / plan.tp, terms.layers / plan.pp
    parameters = (stages * terms.kept + terms.outer + smaller(plan.pp - 1.0, 1.0) * terms.last_extra) * share
    data_byte = links.data_byte * parameters
    if not always_zero(elements := terms.routed):
        routed = stages * (elements / (plan.ep * plan.expert_split))
        data_byte = data_byte + links.part_byte * routed
        # Experts are sharded over fewer ranks, since each expert-parallel rank has its own.
        parameters = parameters + routed + plan.sharded * (plan.ep * plan.expert_split * share - 1.0) * routed
    return {
        "data_byte": data_byte,
        "exchange_calls": (2.0 + plan.gathered * (3.0 * stages - 2.0)) * links.data_each,
        "state": parameters * (1.0 + plan.sharded * links.sharded) * terms.state,
        # Gradients overlap with half of a microbatch, the last one; gathered weights with a whole one.
        "exchange_overlap": (0.5 + 0.5 * plan.gathered) * terms.overlap,
    }


def _seq_tokens(_: Terms, plan: Plan) -> dict[str, Number]:
    """Tokens of a sequence on a context-parallel rank."""
    return {"seq_tokens": plan.seq / plan.cp}


def _bytes(_: Terms, plan: Plan) -> dict[str, Number]:
    """Bytes per parameter: exchanged and stored."""
    once = 2.0 * plan.gradient_bytes + plan.sharded * (plan.weight_bytes - plan.gradient_bytes)
    per_microbatch = plan.gradient_bytes + 2.0 * plan.weight_bytes
    return {
        "per_microbatch": plan.gathered,
        "exchange_bytes": once + plan.gathered * (per_microbatch - once),
        "state_bytes": plan.state_bytes,
    }


def missing(terms: Terms, _: Plan, links: Links) -> dict[str, Number]:
    """Use of links whose rate is not published."""
    return {
        "unknown": links.unknown
        if always_zero(links.expert_unknown)
        else links.unknown + links.expert_unknown * terms.moe
    }


LOCAL: dict[Callable[[Terms, Plan], dict[str, Number]], tuple[str, ...]] = {
    _seq_tokens: ("seq", "cp"),
    _bytes: ("optimizer", "zero"),
    _layer: ("load", "expert_tp", "sequence_parallel", "tp", "which"),
    _scores: ("seq", "tp", "which"),
    _share: ("expert_overlap", "expert_tp", "overlap", "recompute", "ep", "tp", "which"),
    _schedule: ("interleave", "schedule", "pp"),
}
"""Functions that compute coefficients without links, and the layout fields that they depend on.

``which`` is the model and the system.
"""

LINKED: dict[Callable[[Terms, Plan, Links], dict[str, Number]], tuple[str, ...]] = {
    _tensor: ("dispatch", "load", "expert_tp", "recompute", "ep", "tp", "which"),
    _context: ("recompute", "cp", "tp", "which"),
    _experts: ("dispatch", "load", "expert_tp", "recompute", "ep", "tp", "which"),
    _pipeline: ("sequence_parallel", "pp", "tp", "which"),
    _data: ("expert_tp", "zero", "pp", "ep", "tp", "which"),
    missing: ("expert_tp", "cp", "pp", "ep", "tp", "which"),
}
"""Functions that compute the other coefficients, and the layout fields that they depend on."""
