"""The parts of a training step on one rank, each as a fixed time and a time per token, or per byte of a parameter.

One function for a part, in the order of ``docs/explanation/performance/training.md``, which derives them: computation of a layer,
tensor-parallel collectives, the context-parallel ring, the all-to-all of experts, messages between pipeline stages, the
pipeline schedule, gradients and weights.  :mod:`trnspec.perf.training.step` sums them for the tokens of a microbatch.

``model`` has averages over the layers (:class:`~trnspec.perf.work.transformer.Transformer`), ``machine`` the times of one rank per FLOP
and per byte (:class:`~trnspec.perf.lowering.machine.Machine`).  All functions take floats or float64 arrays that broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attrs import define

from trnspec.perf.experts import byte_time, copies, exchange, reach
from trnspec.perf.lowering.machine import always_zero, group, send
from trnspec.perf.ops import Number, both, ceil, floor, larger, smaller, where
from trnspec.perf.work.layout import ACTIVATION_BYTES
from trnspec.perf.work.stages import extreme_layers
from trnspec.perf.work.transformer import attended_keys

if TYPE_CHECKING:
    from trnspec.perf.experts import Exchange
    from trnspec.perf.lowering.machine import Group, Machine
    from trnspec.perf.work.layout import Layout
    from trnspec.perf.work.transformer import Transformer


class PerToken(NamedTuple):
    """A time that is linear in tokens.

    Attributes:
        latency: The time without any token [s].
        seconds_per_token: Time per token of a microbatch on a context-parallel rank [s].
    """

    latency: Number
    seconds_per_token: Number

    def of(self, tokens: Number) -> Number:
        """The time of some tokens [s]."""
        return self.latency + tokens * self.seconds_per_token


@define(kw_only=True)
class Costs:
    """The parts of a training step, before the tokens of a microbatch and the number of microbatches are known.

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
        head: Output matrix and loss, per token [s].
        tensor: Tensor-parallel collectives of a layer forward.
        tensor_overlap: Share of a layer's computation that they can overlap with.
        embedding_head: Tensor-parallel collectives of embedding and output on the slowest stage.
        context: Ring exchange of keys and values in a layer forward.
        expert: All-to-alls of a layer, forward and backward.
        expert_overlap: Share of the rest of a layer that they can overlap with.
        p2p: A message to the next stage and one back.
        p2p_messages: Such messages per microbatch.
        bubble_microbatches: Least pipeline bubble in microbatches.
        split_stages: ``pp - 1`` where the backward pass is split into input and weight gradients, else 0.
        deferred_weight_grads: Weight-gradient passes that fill the bubble, at most.
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
    head: Number
    tensor: PerToken
    tensor_overlap: Number
    embedding_head: PerToken
    context: PerToken
    expert: PerToken
    expert_overlap: Number
    p2p: PerToken
    p2p_messages: Number
    bubble_microbatches: Number
    split_stages: Number
    deferred_weight_grads: Number
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


def costs(model: Transformer, layout: Layout, machine: Machine, replicas: Number | None = None) -> Costs:
    """All parts of a training step.

    Args:
        model: The model.
        layout: The layout.
        machine: Compute and communication of a rank.
        replicas: ``dp cp``, where it is known without either: arrays then have fewer axes.
    """
    ranks = layout.dp * layout.cp if replicas is None else replicas
    tensor_ranks = group(machine, layout.tp, 1.0)
    data_ranks = group(machine, ranks, layout.tp)
    # Ranks are numbered by expert first: those that split one, those with different ones, those with the same.
    unsplit = layout.expert_split is layout.tp or always_zero(layout.expert_split - layout.tp)
    split_ranks = tensor_ranks if unsplit else group(machine, layout.expert_split, 1.0)
    # Without expert parallelism all replicas hold the same experts.
    same_expert_ranks = (
        data_ranks
        if unsplit and always_zero(layout.ep - 1.0)
        else group(machine, ranks * layout.tp / (layout.ep * layout.expert_split), layout.expert_split * layout.ep)
    )
    expert_links = exchange(machine, layout.ep, layout.expert_split)
    context, context_unknown = context_ring(model, layout, machine)
    p2p, p2p_unknown = pipeline_messages(model, layout, machine, tensor_ranks, layout.tp * ranks)
    token = layer_seconds_per_token(model, layout, machine)
    scores, scores_backward = attention_scores(model, layout, machine)
    read = weight_reading(model, layout, machine)
    stage_layers, unequal, shorter, missing_layers = stage_balance(model, layout)
    available, exposed = overlapping_passes(layout, machine)
    data_byte, gradient_calls, weight_calls, state = gradients_and_weights(
        model, layout, machine, data_ranks, same_expert_ranks, ranks
    )
    others = layout.pp - 1.0
    unknown = tensor_ranks.unknown + context_unknown + p2p_unknown + data_ranks.unknown
    return Costs(
        seq_tokens=layout.seq / layout.cp,
        token=token,
        scores=scores,
        scores_backward=scores_backward,
        weights=weight_passes(model, layout, machine),
        selective=layout.recomputes_scores,
        full=layout.recomputed_share,
        # No pass of a layer is shorter than reading its weights; with few tokens that is more than their multiplication.
        forward=larger(machine.forward, read),
        backward=larger(machine.backward, read),
        head=output_seconds_per_token(model, layout, machine),
        tensor=tensor_parallel_all_reduce(model, layout, machine, tensor_ranks, split_ranks, expert_links),
        tensor_overlap=layout.overlap * machine.tensor_overlap,
        embedding_head=embedding_and_head_all_reduce(model, layout, machine, tensor_ranks),
        context=context,
        expert=expert_all_to_all(model, layout, machine, expert_links),
        expert_overlap=layout.expert_overlap * machine.expert_overlap,
        p2p=p2p,
        p2p_messages=layout.p2p_messages,
        bubble_microbatches=(layout.pipeline.bubble / layout.interleave) * others,
        split_stages=others * smaller(layout.pipeline.deferred + layout.pipeline.v_shape, 1.0),
        deferred_weight_grads=others * layout.pipeline.deferred,
        v_shape=layout.pipeline.v_shape,
        forward_first=layout.pipeline.gpipe,
        bubble=layout.pipeline.bubble / layout.interleave,
        stages=layout.pp,
        chunks=layout.interleave,
        layers=model.layers,
        stage_layers=stage_layers,
        unequal=unequal,
        shorter=shorter,
        missing_layers=missing_layers,
        mtp=model.mtp,
        scattered=layout.shards_gradients,
        gathered=layout.shards_weights,
        gradient_bytes=(2.0 - layout.shards_optimizer) * layout.precision.grad_bytes
        + layout.shards_weights * layout.precision.compute_bytes,
        weight_bytes=layout.shards_optimizer * layout.precision.compute_bytes,
        data_byte=data_byte,
        gradient_calls=gradient_calls,
        weight_calls=weight_calls,
        available=available,
        exposed=exposed,
        state=state,
        update_bytes=layout.precision.update_bytes,
        step=machine.step,
        unknown=unknown + (expert_links.unknown + same_expert_ranks.unknown) * model.moe,
    )


# Computation of a layer.


def layer_seconds_per_token(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """Time of a layer forward per token, without attention scores [s].

    A matrix of ``w`` elements costs ``2 w`` FLOP per token (Narayanan et al. 2021, appendix).  Each of a layer's matrices, or pairs
    of them, reads the residual stream and writes a result to it, in passes over device memory that do not overlap.
    """
    share = 1.0 / layout.tp
    beyond = layout.expert_load - 1.0
    pass_time = machine.matmul_passes * machine.seconds_per_byte
    # KV heads are split, and replicated where there are fewer than ranks; a latent cache counts as one head.
    replicated = ceil(model.kv_heads / layout.tp) * layout.tp / model.kv_heads - 1.0
    local_replicated = ceil(model.local_kv_heads / layout.tp) * layout.tp / model.local_kv_heads - 1.0
    repeated = 2.0 * model.hidden * (model.projected - model.local_projected) * machine.seconds_per_flop
    local_repeated = 2.0 * model.hidden * model.local_projected * machine.seconds_per_flop
    projected = replicated * repeated + local_replicated * local_repeated
    routed_matmul = 2.0 * (model.weights - model.whole) * machine.seconds_per_flop
    matmul = share * (2.0 * model.weights * machine.seconds_per_flop + projected + beyond * routed_matmul)
    # Ranks that split an expert have the same copies.
    routed_wide = 2.0 * model.hidden * model.inner * model.dispatched * pass_time
    routed = share * (
        layout.expert_load * layout.expert_split * routed_wide + beyond * (model.routed_split * pass_time)
    )
    wide = 2.0 * model.hidden * (model.results + model.shared) * pass_time
    operands = (wide + share * (model.split * pass_time) + routed) * ACTIVATION_BYTES
    # Norms and residuals are split over the tensor-parallel ranks where the sequence is.
    norms = model.hidden * machine.hidden_passes * machine.seconds_per_byte * ACTIVATION_BYTES / layout.sequence_split
    return matmul + operands + norms


def attention_scores(model: Transformer, layout: Layout, machine: Machine) -> tuple[Number, Number]:
    """Time of attention scores and values of a layer forward per token [s], and backward relative to forward.

    ``2 c (q + v)`` FLOP per token for a context of ``c`` keys (Narayanan et al. 2021, appendix).  Flash attention writes no scores
    and computes them again: five matrix products instead of two (Dao 2023, arXiv 2307.08691, section 3.1).
    """
    keys = attended_keys(model, layout.seq, 0.5 * machine.causal * model.causal, layout.flash)
    computed = keys * (2.0 * model.scores * machine.score)
    rows = model.rows_full + model.rows_window + model.rows_chosen
    score_byte = rows * machine.score_passes * machine.seconds_per_byte
    written = where(layout.flash > 0, 0.0, layout.seq * (score_byte * ACTIVATION_BYTES))
    return (computed + written) / layout.tp, 2.0 + 0.5 * layout.flash


def weight_passes(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """Time of the calibrated passes over the weights of a layer [s]."""
    pass_time = machine.matmul_passes * machine.seconds_per_byte
    expert_ranks = layout.ep * layout.expert_split
    return (model.whole * pass_time * (1.0 / layout.tp) + model.routed * pass_time / expert_ranks) * ACTIVATION_BYTES


def weight_reading(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """Time of reading the weights of a layer once [s], the memory side of a roofline (Williams et al. 2009).

    Of the routed experts at least as many as one token is sent to, spread over the expert-parallel ranks.
    """
    expert_ranks = layout.ep * layout.expert_split
    routed_read = (model.weights - model.whole) * machine.seconds_per_byte
    return (
        model.whole * machine.seconds_per_byte * (1.0 / layout.tp) + routed_read / expert_ranks
    ) * layout.precision.compute_bytes


def output_seconds_per_token(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """Time of the output matrix and the loss, forward and backward, per token [s].

    Multi-token prediction has one more for each module, and a matrix that joins two inputs.
    """
    of_column = 6.0 * model.hidden * machine.head + machine.head_passes * 4.0 * machine.seconds_per_byte
    outputs = (
        1.0 + model.mtp
    ) * model.vocabulary * of_column + 6.0 * model.mtp * model.joined * machine.seconds_per_flop
    return 1.0 / layout.tp * outputs


# Collectives and messages.


def tensor_parallel_all_reduce(  # groups of ranks
    model: Transformer, layout: Layout, machine: Machine, ranks: Group, split_ranks: Group, expert_links: Exchange
) -> PerToken:
    """All-reduces of a layer's results over tensor-parallel ranks, forward (Shoeybi et al. 2019, section 3).

    An all-reduce takes ``launch + 2 latency + S 2 allgather_s_per_byte`` for ``S = T h e`` bytes.  Attention, dense and shared networks each
    have one of a token.  Ranks that split experts reduce every copy of a token that they received.

    Args:
        model: The model.
        layout: The layout.
        machine: Compute and communication of a rank.
        ranks: The tensor-parallel ranks.
        split_ranks: The ranks that split an expert.
        expert_links: The links between ranks with different experts.
    """
    message = model.hidden * ACTIVATION_BYTES
    latency, byte = all_reduce_latency(machine, ranks), all_reduce_s_per_byte(layout, ranks)
    results, moe = model.results, model.moe
    if always_zero(moe):
        return PerToken(results * latency, results * (byte * message))
    # Where every rank has all experts, shared and routed ones have one sum, and one copy of a token is enough for both.
    several = smaller(layout.ep - 1.0, 1.0)
    results = results + model.shared * (1.0 - layout.per_node * (1.0 - several))
    received = (
        layout.expert_load
        * copies(layout.ep, model.active, layout.per_node, reach(expert_links, layout.node_limit))
        * layout.expert_split
        / layout.tp
    )
    per_byte = results * byte + moe * received * (2.0 * split_ranks.allgather_s_per_byte)
    return PerToken(results * latency + moe * all_reduce_latency(machine, split_ranks), per_byte * message)


def embedding_and_head_all_reduce(model: Transformer, layout: Layout, machine: Machine, ranks: Group) -> PerToken:
    """All-reduces of the embedding's output, forward, and of the gradient of the head's input, backward.

    Of several stages the last one is the slowest, since it has the head; it has the embedding too where it is the only one, or
    in a V-shaped schedule (Shoeybi et al. 2019, section 3).
    """
    rounds = 1.0 + where(both(layout.pipeline.v_shape == 0.0, layout.pp > 1), 0.0, 1.0)
    message = model.hidden * ACTIVATION_BYTES
    return PerToken(
        rounds * all_reduce_latency(machine, ranks), rounds * (all_reduce_s_per_byte(layout, ranks) * message)
    )


def all_reduce_latency(machine: Machine, ranks: Group) -> Number:
    """The time of an all-reduce that does not depend on its size [s]."""
    return machine.call * ranks.is_group + 2.0 * ranks.latency


def all_reduce_s_per_byte(layout: Layout, ranks: Group) -> Number:
    """Time of a byte of an all-reduce over tensor-parallel ranks [s].

    With sequence parallelism it is a reduce-scatter and an all-gather, of which switches that reduce save nothing: one after
    the other, the former sends and the latter receives as much as without.
    """
    both_passes = 2.0 * ranks.allgather_s_per_byte
    return both_passes - where(layout.sequence_parallel > 0, 0.0, both_passes - ranks.allreduce_s_per_byte)


def context_ring(model: Transformer, layout: Layout, machine: Machine) -> tuple[PerToken, Number]:
    """Ring exchange of keys and values over context-parallel ranks, forward; and the use of unknown links."""
    if always_zero(layout.cp - 1.0):
        return PerToken(0.0, 0.0), 0.0
    ranks = group(machine, layout.cp, layout.tp)
    keys = (model.kv_elements - model.local_kv) / model.hidden / smaller(layout.tp, model.kv_heads)
    keys = keys + model.local_kv / model.hidden / smaller(layout.tp, model.local_kv_heads)
    cache = model.hidden * ACTIVATION_BYTES * (layout.cp * keys)
    latency = machine.call * ranks.is_group + ranks.latency
    return PerToken(latency, ranks.allgather_s_per_byte * cache), ranks.unknown


def expert_all_to_all(model: Transformer, layout: Layout, machine: Machine, expert_links: Exchange) -> PerToken:
    """All-to-all of tokens to their experts and back, forward and backward, as often as all-reduces; see :mod:`trnspec.perf.experts`.

    Args:
        model: The model; experts that process smaller vectors exchange those.
        layout: The layout.
        machine: Compute and communication of a rank.
        expert_links: The links between ranks with different experts.
    """
    rounds = (4.0 + 2.0 * layout.recomputed_share) * model.moe
    several = smaller(layout.ep - 1.0, 1.0)
    message = layout.dispatch_ratio * (model.hidden * ACTIVATION_BYTES * layout.expert_load / layout.tp)
    byte = byte_time(expert_links, model.active, layout.per_node, reach(expert_links, layout.node_limit))
    latency = several * (machine.call + expert_links.hop) + machine.dispatch * several
    return PerToken(rounds * latency, rounds * (byte * message * (model.inner / machine.exchange)))


def pipeline_messages(
    model: Transformer, layout: Layout, machine: Machine, tensor_ranks: Group, stride: Number
) -> tuple[PerToken, Number]:
    """A message to the next stage and one back, over the widest link that any of them takes; and the use of unknown links.

    Each tensor-parallel rank sends its part; without sequence parallelism the parts are gathered on arrival (Narayanan et
    al. 2021, section 4.1), which for both messages takes the time of one all-reduce.  Between the passes of one model chunk a
    stage computes others.

    Args:
        model: The model.
        layout: The layout.
        machine: Compute and communication of a rank.
        tensor_ranks: The tensor-parallel ranks.
        stride: Ranks of a stage.
    """
    latency, byte, unknown = send(machine, layout.pp, stride)
    size = model.hidden * ACTIVATION_BYTES
    gathered = (1.0 - layout.sequence_parallel) * smaller(layout.pp - 1.0, 1.0)
    latency = latency + gathered * all_reduce_latency(machine, tensor_ranks)
    token = size * (byte / layout.tp + gathered * (2.0 * tensor_ranks.allgather_s_per_byte))
    exposed = 1.0 - machine.pipeline_overlap * smaller(layout.interleave - 1.0, 1.0)
    return PerToken(exposed * latency, exposed * token), unknown


# Stages of the pipeline.


def stage_balance(model: Transformer, layout: Layout) -> tuple[Number, Number, Number, Number]:
    """Layers of the stage with the most, whether stages are unequal, and the layers that others and the last have fewer."""
    layers, stages, mtp = model.layers, layout.pp, model.mtp
    most, last, long = extreme_layers(layers, stages, layout.interleave, layout.pipeline.v_shape, mtp)
    return most, smaller(long + mtp, 1.0), (stages * most - layers) / larger(stages - 1.0, 1.0), most - last


# Gradients, weights and the optimizer.


def overlapping_passes(layout: Layout, machine: Machine) -> tuple[Number, Number]:
    """Passes of a stage from when its first gradients are final, or until its last weights are needed; and the exposed share.

    The first stage of the interleaved schedule ends with one pass of all its chunks but one for each of ``pp`` microbatches,
    after the gradients of its last chunk are final, and begins with the same number of forward passes: ``((v-1) pp + 1)/v``.
    Where every microbatch has exchanges of its own, the other microbatches are not available.

    Software exchanges a model chunk at a time, and what is exposed in any case is the first or the last of them.
    """
    v, once = layout.interleave, 1.0 - layout.shards_gradients
    window = 1.0 + once * ((v - 1.0) * (layout.pp - 1.0) / v)
    return window * machine.overlap, machine.exposed / (1.0 + once * (v - 1.0))


def gradients_and_weights(  # groups of ranks
    model: Transformer, layout: Layout, machine: Machine, data_ranks: Group, same_expert_ranks: Group, copies: Number
) -> tuple[Number, Number, Number, Number]:
    """Collectives over gradients and sharded weights, and the optimizer.

    ZeRO 0 all-reduces gradients; 1 reduce-scatters them and all-gathers the new weights; 2 reduce-scatters them for every
    microbatch, since a rank keeps only its shard; 3 also all-gathers weights forward and backward for every microbatch
    (Rajbhandari et al. 2020, section 7).

    Args:
        model: The model.
        layout: The layout.
        machine: Compute and communication of a rank.
        data_ranks: The ranks that hold the same weights.
        same_expert_ranks: The ranks that hold the same experts.
        copies: Number of ranks that hold the same weights.

    Returns:
        Time of one byte per parameter [s]; fixed time of the exchanges of gradients and of weights [s]; time of the optimizer
        per byte of traffic per parameter [s].
    """
    share, stages = 1.0 / layout.tp, ceil(model.layers / layout.pp)
    outer = model.embedding + model.output * (1.0 - model.tied) + model.outer
    # The last stage has an output matrix of its own even where it is tied to the embedding, and the final norm.
    last_extra = model.output + model.outer - outer
    # Of unequal stages, the longest or the one with the output, embedding and multi-token prediction.
    last = floor(model.layers / layout.pp) + model.mtp
    ends = (outer + smaller(layout.pp - 1.0, 1.0) * last_extra + model.mtp * model.joined) * share
    layer = (model.whole + model.small) * share
    byte, expert_byte = (_gradient_s_per_byte(layout, ranks) for ranks in (data_ranks, same_expert_ranks))
    expert_ranks = layout.ep * layout.expert_split
    routed = model.routed / expert_ranks
    layer_byte = layer * byte + expert_byte * routed
    # Experts are sharded over fewer ranks, since each expert-parallel rank has its own.
    layer = layer + routed + layout.shards_optimizer * (expert_ranks * share - 1.0) * routed
    data_byte = larger(stages * layer_byte, last * layer_byte + ends * byte)
    parameters = larger(stages * layer, last * layer + ends)
    latency = 0.5 * machine.call * data_ranks.is_group + data_ranks.latency
    gradient_calls = (2.0 - layout.shards_optimizer + layout.shards_weights * (2.0 * stages - 1.0)) * latency
    weight_calls = (layout.shards_optimizer + layout.shards_weights * (stages - 1.0)) * latency
    state_byte = (1.0 + machine.optimizer_passes) * machine.seconds_per_byte
    state = parameters * (1.0 + layout.shards_optimizer * (1.0 / copies - 1.0)) * state_byte
    return data_byte, gradient_calls, weight_calls, state


def _gradient_s_per_byte(layout: Layout, ranks: Group) -> Number:
    """Time of a byte of gradients [s], half of it: they are reduce-scattered where the optimizer is sharded, else all-reduced."""
    saved = ranks.allgather_s_per_byte - 0.5 * ranks.allreduce_s_per_byte
    return ranks.allgather_s_per_byte - (1.0 - layout.shards_optimizer) * saved
