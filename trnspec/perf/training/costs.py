"""Coefficients of a step's time: per token, per microbatch and per step, each from a few fields of a layout.

Apart from a few maxima, the time of a step is linear in the tokens of a microbatch and in the number of microbatches.  Each
coefficient depends on few fields of the layout, so that a batch computes it once per combination of those that occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from trnspec.perf.experts import byte_time, copies, reach
from trnspec.perf.lowering.machine import always_zero
from trnspec.perf.ops import Number, both, ceil, floor, larger, remembered, smaller, where
from trnspec.perf.work.layout import ACTIVATION_BYTES
from trnspec.perf.work.stages import extreme_layers
from trnspec.perf.work.terms import context

if TYPE_CHECKING:
    from trnspec.perf.training.communication import Links
    from trnspec.perf.work.layout import Layout
    from trnspec.perf.work.terms import Terms


# Single calls create many of these; frozen classes take three times as long.
@define(kw_only=True)
class Costs:
    """The coefficients of a step's time; ``_token`` is per token of a microbatch on a context-parallel rank [s].

    Attributes:
        seq_tokens: Tokens of a sequence on a context-parallel rank.
        token: One layer forward without attention scores, per token [s].
        scores: Attention scores of a layer forward, per token [s].
        scores_backward: Attention scores backward relative to forward.
        weights: Reading the weights of a layer [s].
        selective: 1 where attention scores are recomputed.
        full: Share of a layer that is recomputed.
        forward: Least time of a layer forward [s].
        backward: Least time of a layer backward [s].
        tensor_overlap: Share of a layer's computation that tensor-parallel collectives can overlap with.
        tensor_each: Tensor-parallel collectives of a layer forward, fixed time [s].
        tensor_token: The same, per token.
        ends_each: Tensor-parallel collectives of embedding and output on the slowest stage, fixed time [s].
        ends_token: The same, per token.
        context_each: Ring exchange of keys and values in a layer forward, fixed time [s].
        context_token: The same, per token.
        expert_each: All-to-all of a layer, fixed time [s].
        expert_token: The same, per token.
        send_each: A message to the next stage and one back, fixed time [s].
        send_token: The same, per token.
        sends: Such messages per microbatch.
        bubble_microbatches: Least pipeline bubble in microbatches.
        fill: ``pp - 1`` where the backward pass is split into input and weight gradients, else 0.
        deferred: Weight-gradient passes that fill the bubble, at most.
        v_shape: Number of the V-shaped schedule, from 1; 0 for others.
        forward_first: 1 where all forward passes come before all backward passes: GPipe.
        bubble: Least pipeline bubble relative to 1F1B.
        stages: Pipeline stages.
        chunks: Model chunks per stage of the interleaved schedule, else 1.
        layers: Layers of the model.
        stage_layers: Layers of the stage with the most.
        unequal: 1 where chunks of the model differ in layers, or the last one has multi-token prediction; else 0.
        shorter: Layers that the other stages have fewer, on average.
        missing_layers: Layers that the stage with the output has fewer, without multi-token prediction.
        mtp: Modules of multi-token prediction, each a further layer of the stage with the output.
        head: Output matrix and loss, per token [s].
        scattered: 1 where gradients are reduced for each microbatch, 0 where once per step.
        gathered: 1 where weights are gathered for each microbatch.
        gradient_bytes: Bytes per parameter that are exchanged around a backward pass.
        weight_bytes: Bytes per parameter that are exchanged ahead of a forward pass.
        data_byte: Time of an exchange of one byte per parameter [s].
        gradient_calls: Fixed time of the exchange around a backward pass [s].
        weight_calls: Fixed time of the exchange ahead of a forward pass [s].
        available: Passes of a stage, forward or backward, that an exchange can overlap with.
        exposed: Share of the exchange that is exposed in any case: of one of its chunks.
        state: Time of the optimizer per byte of traffic per parameter [s].
        update_bytes: Bytes per parameter that the optimizer reads and writes.
        step: Fixed time of a step [s].
        unknown: Above 0 where a link is used whose rate is not published.
        expert_overlap: Share of the rest of a layer that the all-to-all can overlap with.
    """

    seq_tokens: Number
    token: Number
    scores: Number
    scores_backward: Number
    weights: Number
    selective: Number
    full: Number
    forward: Number
    backward: Number
    tensor_overlap: Number
    tensor_each: Number
    tensor_token: Number
    ends_each: Number
    ends_token: Number
    context_each: Number
    context_token: Number
    expert_each: Number
    expert_token: Number
    send_each: Number
    send_token: Number
    sends: Number
    bubble_microbatches: Number
    fill: Number
    deferred: Number
    v_shape: Number
    forward_first: Number
    bubble: Number
    stages: Number
    chunks: Number
    layers: Number
    stage_layers: Number
    unequal: Number
    shorter: Number
    missing_layers: Number
    mtp: Number
    head: Number
    scattered: Number
    gathered: Number
    gradient_bytes: Number
    weight_bytes: Number
    data_byte: Number
    gradient_calls: Number
    weight_calls: Number
    available: Number
    exposed: Number
    state: Number
    update_bytes: Number
    step: Number
    unknown: Number
    expert_overlap: Number


def costs(terms: Terms, layout: Layout, links: Links) -> Costs:
    """The coefficients of the time of a step.

    Args:
        terms: :func:`~trnspec.perf.work.terms.terms` of the model and the machine.
        layout: The layout.
        links: :func:`~trnspec.perf.training.communication.links` of the layout and the machine.
    """
    # Attributes of an empty object: a call with 40 arguments takes several times as long.
    found = Costs.__new__(Costs)
    found.seq_tokens = layout.seq / layout.cp
    found.unknown = links.unknown + links.expert_unknown * terms.moe
    _layer(found, terms, layout)
    _scores(found, terms, layout)
    _share(found, terms, layout)
    _schedule(found, layout)
    _stages(found, terms, layout)
    _available(found, terms, layout)
    _tensor(found, terms, layout, links)
    _ends(found, terms, layout, links)
    _context(found, terms, layout, links)
    _experts(found, terms, layout, links)
    _pipeline(found, terms, layout, links)
    _data(found, terms, layout, links)
    return found


def _layer(found: Costs, terms: Terms, layout: Layout) -> None:
    """Time of a layer forward per token, without attention scores."""
    share = 1.0 / layout.tp
    beyond = layout.expert_load - 1.0
    # KV heads are split, and replicated where there are fewer than ranks; a latent cache counts as one head.
    replicated = ceil(terms.kv_heads / layout.tp) * layout.tp / terms.kv_heads - 1.0
    local_replicated = ceil(terms.local_kv_heads / layout.tp) * layout.tp / terms.local_kv_heads - 1.0
    projected = replicated * terms.repeated + local_replicated * terms.local_repeated
    matmul = share * (terms.matmul + projected + beyond * terms.routed_matmul)
    # Ranks that split an expert have the same copies.
    routed = share * (layout.expert_load * layout.expert_split * terms.routed_wide + beyond * terms.routed_split)
    operands = (terms.wide + share * terms.split + routed) * ACTIVATION_BYTES
    # Norms and residuals are split over the tensor-parallel ranks where the sequence is.
    norms = terms.stream * ACTIVATION_BYTES / layout.sequence_split
    found.token = matmul + operands + norms


def _scores(found: Costs, terms: Terms, layout: Layout) -> None:
    """Time of attention scores of a layer forward per token, and backward relative to forward."""
    scores = context(terms, layout.seq, layout.flash) * terms.score
    written = where(layout.flash > 0, 0.0, layout.seq * (terms.score_byte * ACTIVATION_BYTES))
    found.scores = (scores + written) / layout.tp

    # Flash attention computes them again: five matrix products instead of two (Dao 2023, arXiv 2307.08691, section 3.1).
    found.scores_backward = 2.0 + 0.5 * layout.flash


def _share(found: Costs, terms: Terms, layout: Layout) -> None:
    """Coefficients that need no link and depend on few fields."""
    share = 1.0 / layout.tp
    expert_ranks = layout.ep * layout.expert_split
    found.weights = (terms.weight * share + terms.expert_weight / expert_ranks) * ACTIVATION_BYTES
    # No pass of a layer is shorter than reading its weights; with few tokens that is more than their multiplication.
    # Of the routed experts at least as many as one token is sent to, spread over the expert-parallel ranks.
    read = (terms.read * share + terms.routed_read / expert_ranks) * layout.compute_bytes
    found.head = share * terms.head
    found.full = layout.recomputed_share
    found.selective = layout.recomputes_scores
    found.forward = larger(terms.forward, read)
    found.backward = larger(terms.backward, read)
    found.tensor_overlap = layout.overlap * terms.tensor_overlap
    found.expert_overlap = layout.expert_overlap * terms.expert_overlap
    found.step = terms.step


def _tensor(found: Costs, terms: Terms, layout: Layout, links: Links) -> None:
    """All-reduces of a layer's results, forward.

    Attention, dense and shared networks each have one of a token. Ranks that split experts reduce every copy of a token that
    they received.
    """
    message = terms.hidden * ACTIVATION_BYTES
    results, moe, byte = terms.results, terms.moe, _all_reduce(layout, links)
    if always_zero(moe):
        found.tensor_each = results * links.tensor_each
        found.tensor_token = results * (byte * message)
        return
    # Where every rank has all experts, shared and routed ones have one sum, and one copy of a token is enough for both.
    several = smaller(layout.ep - 1.0, 1.0)
    results = results + terms.shared * (1.0 - layout.per_node * (1.0 - several))
    received = (
        layout.expert_load
        * copies(layout.ep, terms.active, layout.per_node, reach(links.exchange, layout.node_limit))
        * layout.expert_split
        / layout.tp
    )
    each = results * links.tensor_each + moe * links.split_each
    token = results * byte + moe * received * links.split_byte
    found.tensor_each = each
    found.tensor_token = token * message


def _ends(found: Costs, terms: Terms, layout: Layout, links: Links) -> None:
    """All-reduces of the embedding's output, forward, and of the gradient of the head's input, backward.

    With sequence parallelism they are reduce-scatters and all-gathers of the same bytes.  Of several stages the last one is
    the slowest, since it has the head; it has the embedding too where it is the only one, or in a V-shaped schedule.
    """
    rounds = 1.0 + where(both(layout.v_shape == 0.0, layout.pp > 1), 0.0, 1.0)
    message = terms.hidden * ACTIVATION_BYTES
    found.ends_each = rounds * links.tensor_each
    found.ends_token = rounds * (_all_reduce(layout, links) * message)


def _all_reduce(layout: Layout, links: Links) -> Number:
    """Time of a byte of an all-reduce over tensor-parallel ranks: with sequence parallelism it is two collectives."""
    return links.tensor_byte - where(layout.sequence_parallel > 0, 0.0, links.tensor_saved)


def _context(found: Costs, terms: Terms, layout: Layout, links: Links) -> None:
    """Ring exchange of keys and values, forward."""
    keys = terms.keys / smaller(layout.tp, terms.kv_heads)
    keys = keys + terms.local_keys / smaller(layout.tp, terms.local_kv_heads)
    cache = terms.hidden * ACTIVATION_BYTES * (layout.cp * keys)
    found.context_each = links.ring_each
    found.context_token = links.ring_byte * cache


def _experts(found: Costs, terms: Terms, layout: Layout, links: Links) -> None:
    """All-to-all of tokens to their experts and back, forward and backward, as often as all-reduces."""
    rounds = (4.0 + 2.0 * layout.recomputed_share) * terms.moe
    message = layout.dispatch_ratio * (terms.hidden * ACTIVATION_BYTES * layout.expert_load / layout.tp)
    byte = byte_time(links.exchange, terms.active, layout.per_node, reach(links.exchange, layout.node_limit))
    each = links.expert_each + terms.dispatch * smaller(layout.ep - 1.0, 1.0)
    found.expert_each = rounds * each
    found.expert_token = rounds * (byte * message * terms.exchange)


def _pipeline(found: Costs, terms: Terms, layout: Layout, links: Links) -> None:
    """Messages between stages, over the widest link that any of them takes.

    Each tensor-parallel rank sends its part; without sequence parallelism the parts are gathered on arrival (Narayanan et
    al. 2021, section 4.1).
    """
    size = terms.hidden * ACTIVATION_BYTES
    # Gathering a message and one back takes the time of one all-reduce.
    gathered = (1.0 - layout.sequence_parallel) * smaller(layout.pp - 1.0, 1.0)
    each = links.send_each + gathered * links.tensor_each
    token = size * (links.send_byte / layout.tp + gathered * links.tensor_byte)
    # Between the passes of one model chunk a stage computes others.
    exposed = 1.0 - terms.pipeline_overlap * smaller(layout.interleave - 1.0, 1.0)
    found.send_each = exposed * each
    found.send_token = exposed * token


def _schedule(found: Costs, layout: Layout) -> None:
    """Number of messages between stages, and what the pipeline bubble depends on."""
    others = layout.pp - 1.0
    found.sends = layout.p2p_messages
    found.bubble = layout.bubble
    found.bubble_microbatches = layout.bubble * others
    found.fill = others * smaller(layout.deferred + layout.v_shape, 1.0)
    found.deferred = others * layout.deferred
    found.v_shape = layout.v_shape
    found.forward_first = layout.is_gpipe


def _stages(found: Costs, terms: Terms, layout: Layout) -> None:
    """Layers of the stages, which decide how long a microbatch takes on each."""
    found.stages, found.chunks = stages, chunks = layout.pp, layout.interleave
    found.layers, found.mtp = layers, mtp = terms.layers, terms.mtp
    balance = _balance(layers, stages, chunks, layout.v_shape, mtp)
    found.stage_layers, found.unequal, found.shorter, found.missing_layers = balance


@remembered
def _balance(layers: Number, stages: Number, chunks: Number, folded: Number, mtp: Number) -> tuple[Number, ...]:
    """Layers of the stage with the most, whether stages are unequal, and the layers that others and the last have fewer."""
    most, last, long = extreme_layers(layers, stages, chunks, folded, mtp)
    return most, smaller(long + mtp, 1.0), (stages * most - layers) / larger(stages - 1.0, 1.0), most - last


def _available(found: Costs, terms: Terms, layout: Layout) -> None:
    """Passes of a stage from when its first gradients are final, or until its last weights are needed.

    The first stage of the interleaved schedule ends with one pass of all its chunks but one for each of ``pp`` microbatches,
    after the gradients of its last chunk are final, and begins with the same number of forward passes: ``((v-1) pp + 1)/v``.
    Where every microbatch has exchanges of its own, the other microbatches are not available.

    Software exchanges a model chunk at a time, and what is exposed in any case is the first or the last of them.
    """
    v, once = layout.interleave, 1.0 - layout.shards_gradients
    window = 1.0 + once * ((v - 1.0) * (layout.pp - 1.0) / v)
    found.available = window * terms.overlap
    found.exposed = terms.exposed / (1.0 + once * (v - 1.0))


def _data(found: Costs, terms: Terms, layout: Layout, links: Links) -> None:
    """Collectives over gradients and sharded weights, and the optimizer.

    ZeRO 0 all-reduces gradients; 1 reduce-scatters them and all-gathers the new weights; 2 reduce-scatters them for every
    microbatch, since a rank keeps only its shard; 3 also all-gathers weights forward and backward for every microbatch
    (Rajbhandari et al. 2020, section 7).
    """
    share, stages = 1.0 / layout.tp, ceil(terms.layers / layout.pp)
    # Of unequal stages, the longest or the one with the output, embedding and multi-token prediction.
    last = floor(terms.layers / layout.pp) + terms.mtp
    ends = (terms.outer + smaller(layout.pp - 1.0, 1.0) * terms.last_extra + terms.joined) * share
    layer = terms.kept * share
    # Where the optimizer is sharded, gradients are reduce-scattered, else all-reduced.
    whole = 1.0 - layout.shards_optimizer
    byte, part_byte = links.data_byte - whole * links.data_saved, links.part_byte - whole * links.part_saved
    expert_ranks = layout.ep * layout.expert_split
    routed = terms.routed / expert_ranks
    layer_byte = layer * byte + part_byte * routed
    # Experts are sharded over fewer ranks, since each expert-parallel rank has its own.
    layer = layer + routed + layout.shards_optimizer * (expert_ranks * share - 1.0) * routed
    data_byte = larger(stages * layer_byte, last * layer_byte + ends * byte)
    parameters = larger(stages * layer, last * layer + ends)
    found.data_byte = data_byte
    found.gradient_calls = (
        2.0 - layout.shards_optimizer + layout.shards_weights * (2.0 * stages - 1.0)
    ) * links.data_each
    found.weight_calls = (layout.shards_optimizer + layout.shards_weights * (stages - 1.0)) * links.data_each
    found.state = parameters * (1.0 + layout.shards_optimizer * links.sharded) * terms.state
    found.scattered = layout.shards_gradients
    found.gathered = layout.shards_weights
    found.gradient_bytes = (
        2.0 - layout.shards_optimizer
    ) * layout.grad_bytes + layout.shards_weights * layout.compute_bytes
    found.weight_bytes = layout.shards_optimizer * layout.compute_bytes
    found.update_bytes = layout.update_bytes
