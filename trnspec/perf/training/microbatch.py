"""The time of one microbatch: a function for each part, in the order of ``docs/explanation/performance/training.md``, and their sum.

The page derives the parts: computation of a layer, tensor-parallel collectives, the context-parallel ring, the all-to-all of experts,
and messages between pipeline stages.

``model`` has averages over the layers (:class:`~trnspec.perf.work.transformer.Transformer`), ``machine`` the times of one rank per FLOP
and per byte (:class:`~trnspec.perf.lowering.machine.Machine`), and ``tokens`` are those of a microbatch on a context-parallel rank.
All functions take floats or float64 arrays that broadcast.  Times are in s, sizes in B, work in FLOP.
"""

from __future__ import annotations

import numpy as np
from attrs import define

from trnspec.perf.experts import Exchange, byte_time, copies, exchange, reach
from trnspec.perf.lowering.machine import GroupCost, Machine, group, same_links, send
from trnspec.perf.ops import Number, ceil, larger, smaller, where
from trnspec.perf.work.layout import ACTIVATION_BYTES, Layout
from trnspec.perf.work.transformer import Transformer, attended_keys


@define
class Times:
    """Times of a microbatch [s].

    Attributes:
        forward: Forward pass of a layer.
        inputs: Backward pass of a layer, or its part for gradients of activations.
        weights: The part of the backward pass of a layer for gradients of weights; 0 where it is not split.
        movable: What of a layer may be in either of the first two; ``forward`` includes it.
        send: Messages of a stage, half of them forward.
        output: Forward pass of the output.
        output_inputs: Backward pass of the output.
    """

    forward: Number
    inputs: Number
    weights: Number
    movable: Number
    send: Number
    output: Number
    output_inputs: Number

    @property
    def fwd_bwd(self) -> Number:
        """All passes of a layer."""
        return self.forward + self.inputs + self.weights


@define(kw_only=True)
class Microbatch:
    """The time of one microbatch on one rank [s]: in a layer, between stages, and of the output.

    Attributes:
        forward: Computation of a layer forward.
        backward: The same backward.
        weights: The part of it for gradients of weights.
        recompute: Recompute of a layer in its backward pass.
        tensor: Exposed tensor-parallel collectives of a layer, forward and backward.
        tensor_forward: The part of it in the forward pass.
        context: Ring exchange of keys and values of a layer.
        context_forward: The part of it in the forward pass.
        expert: Exposed all-to-all of a layer.
        expert_forward: The part of it in the forward pass, ``movable`` included.
        movable: The part of it that may be in either pass.
        pipeline: Messages of a stage to the next one and back.
        head: Output matrix and loss, forward and backward.
        embedding_head: Tensor-parallel collectives of embedding and output on the slowest stage.
        unknown: Above 0 where a link is used whose rate is not published.
    """

    forward: Number
    backward: Number
    weights: Number
    recompute: Number
    tensor: Number
    tensor_forward: Number
    context: Number
    context_forward: Number
    expert: Number
    expert_forward: Number
    movable: Number
    pipeline: Number
    head: Number
    embedding_head: Number
    unknown: Number

    def times(self, layout: Layout, outputs: Number = 1.0) -> Times:
        """The times of the passes of a layer, with some outputs: one, and one for each module of multi-token prediction."""
        weights = layout.splits_backward * self.weights
        forward = self.forward + self.tensor_forward + self.context_forward + self.expert_forward
        fwd_bwd = self.forward + self.backward + self.recompute + self.tensor + self.context + self.expert
        third, collective = 1.0 / 3.0, 0.5 * (outputs * self.embedding_head)
        # The output has one product forward and two backward, and a collective in each.
        output = third * self.head + collective, (2.0 * third) * self.head + collective
        return Times(forward, fwd_bwd - forward - weights, weights, self.movable, self.pipeline, *output)


def microbatch(model: Transformer, layout: Layout, machine: Machine) -> Microbatch:
    """The parts of a training step that each microbatch has."""
    tokens = layout.microbatch * (layout.seq / layout.cp)
    ranks = group(machine, layout.tp, 1.0)
    links = exchange(machine, layout.ep, layout.expert_split)
    forward, backward, weights, recompute = computation(model, layout, machine, tokens)
    # Gradients of weights that are computed later do not overlap with the collectives of their layer.
    later = layout.splits_backward * weights
    all_reduce = tensor_parallel_all_reduce(model, layout, machine, ranks, links, tokens)
    tensor, tensor_forward = exposed_tensor_parallel(layout, machine, all_reduce, forward, backward + recompute - later)
    context, context_forward, context_unknown = context_ring(model, layout, machine, tokens)
    rest = forward + backward + recompute + tensor + context
    all_to_all = expert_all_to_all(model, layout, machine, links, tokens)
    if np.any(all_to_all):
        # Bytes on the same links add up; latencies leave the links free.
        moved = all_reduce - tensor_parallel_all_reduce(model, layout, machine, ranks, links, 0.0)
        same = same_links(machine, layout.tp, layout.ep, layout.expert_split)
        later = later + same * ((2.0 + layout.recomputation.share) * moved)
    expert, expert_forward, movable = exposed_all_to_all(layout, machine, all_to_all, larger(rest - later, 0.0))
    pipeline, pipeline_unknown = pipeline_messages(model, layout, machine, ranks, tokens)
    return Microbatch(
        forward=forward,
        backward=backward,
        weights=weights,
        recompute=recompute,
        tensor=tensor,
        tensor_forward=tensor_forward,
        context=context,
        context_forward=context_forward,
        expert=expert,
        expert_forward=expert_forward,
        movable=movable,
        pipeline=pipeline,
        head=tokens * output_seconds_per_token(model, layout, machine),
        embedding_head=embedding_and_head_all_reduce(model, layout, machine, ranks, tokens),
        unknown=ranks.unknown + context_unknown + pipeline_unknown + links.unknown * model.moe,
    )


# Computation.


def computation(
    model: Transformer, layout: Layout, machine: Machine, tokens: Number
) -> tuple[Number, Number, Number, Number]:
    """Computation of a layer: forward, backward, its part for gradients of weights, and recompute [s].

    A matrix multiplication has two of the same size backward, one for each gradient; attention scores have no weights.
    Neither forward nor backward is shorter than the calibrated least times (kernel launches), or than reading the weights
    of the layer, which with few tokens is more than their multiplication; both parts of the backward pass take the same
    time more.
    """
    per_token, backward_scores = attention_scores(model, layout, machine)
    scores = tokens * per_token
    weights = tokens * layer_seconds_per_token(model, layout, machine) + weight_passes(model, layout, machine)
    read = weight_reading(model, layout, machine)
    forward = larger(weights + scores, larger(machine.achieved.forward, read))
    backward = 2.0 * weights + backward_scores * scores
    launched = larger(backward, larger(machine.achieved.backward, read))
    recompute = layout.recomputation.share * forward + layout.recomputation.scores * scores
    return forward, launched, weights + 0.5 * (launched - backward), recompute


def layer_seconds_per_token(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """Time of a layer forward per token, without attention scores [s].

    A matrix of ``w`` elements costs ``2 w`` FLOP per token (Narayanan et al. 2021, appendix).  Each of a layer's matrices, or pairs
    of them, reads the residual stream and writes a result to it, in passes over device memory that do not overlap.
    """
    share = 1.0 / layout.tp
    beyond = layout.expert_load - 1.0
    pass_time = machine.achieved.matmul_passes * machine.seconds_per_byte
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
    norms = (
        model.hidden
        * machine.achieved.hidden_passes
        * machine.seconds_per_byte
        * ACTIVATION_BYTES
        / layout.sequence_split
    )
    return matmul + operands + norms


def attention_scores(model: Transformer, layout: Layout, machine: Machine) -> tuple[Number, Number]:
    """Time of attention scores and values of a layer forward per token [s], and backward relative to forward.

    ``2 c (q + v)`` FLOP per token for a context of ``c`` keys (Narayanan et al. 2021, appendix).  Flash attention writes no scores
    and computes them again: five matrix products instead of two (Dao 2023, arXiv 2307.08691, section 3.1).
    """
    keys = attended_keys(model, layout.seq, 0.5 * machine.achieved.causal * model.causal, layout.flash)
    computed = keys * (2.0 * model.scores * machine.score)
    rows = model.rows_full + model.rows_window + model.rows_chosen
    score_byte = rows * machine.achieved.score_passes * machine.seconds_per_byte
    written = where(layout.flash > 0, 0.0, layout.seq * (score_byte * ACTIVATION_BYTES))
    return (computed + written) / layout.tp, 2.0 + 0.5 * layout.flash


def weight_passes(model: Transformer, layout: Layout, machine: Machine) -> Number:
    """Time of the calibrated passes over the weights of a layer [s]."""
    pass_time = machine.achieved.matmul_passes * machine.seconds_per_byte
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
    of_column = 6.0 * model.hidden * machine.head + machine.achieved.head_passes * 4.0 * machine.seconds_per_byte
    outputs = (
        1.0 + model.mtp
    ) * model.vocabulary * of_column + 6.0 * model.mtp * model.joined * machine.seconds_per_flop
    return 1.0 / layout.tp * outputs


# Collectives and messages.


def tensor_parallel_all_reduce(
    model: Transformer, layout: Layout, machine: Machine, ranks: GroupCost, expert_links: Exchange, tokens: Number
) -> Number:
    """All-reduces of a layer's results over tensor-parallel ranks, forward [s] (Shoeybi et al. 2019, section 3).

    An all-reduce takes ``call + 2 latency + S allreduce_s_per_byte`` for ``S = T h e`` bytes.  Attention, dense and shared networks
    each have one of a token.  Ranks that split experts reduce every copy of a token that they received.
    """
    message = model.hidden * ACTIVATION_BYTES
    latency, byte = all_reduce_latency(machine, ranks), all_reduce_s_per_byte(layout, ranks)
    results, moe = model.results, model.moe
    if not np.any(moe):
        return results * latency + tokens * (results * (byte * message))
    split_ranks = group(machine, layout.expert_split, 1.0)
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
    return results * latency + moe * all_reduce_latency(machine, split_ranks) + tokens * (per_byte * message)


def exposed_tensor_parallel(
    layout: Layout, machine: Machine, all_reduce: Number, forward: Number, window: Number
) -> tuple[Number, Number]:
    """The exposed tensor-parallel collectives of a layer, and what of them is in the forward pass [s].

    Two of their rounds are forward, two backward, and two are recomputed.  Where software overlaps them, each pass hides them
    behind a share of its computation.

    Args:
        layout: The layout.
        machine: Compute and communication of a rank.
        all_reduce: The rounds of the forward pass, see :func:`tensor_parallel_all_reduce` [s].
        forward: Computation of the layer forward [s].
        window: What is computed in its backward pass that collectives can overlap with [s].
    """
    full = layout.recomputation.share
    tensor = (2.0 + full) * all_reduce
    overlap = layout.overlap * machine.achieved.tensor_overlap
    hidden = smaller(all_reduce, overlap * forward)
    hidden_backward = smaller((1.0 + full) * all_reduce, overlap * window)
    # Rounding may leave a negative difference where all is hidden.
    return larger(tensor - (hidden + hidden_backward), 0.0), all_reduce - hidden


def embedding_and_head_all_reduce(
    model: Transformer, layout: Layout, machine: Machine, ranks: GroupCost, tokens: Number
) -> Number:
    """All-reduces of the embedding's output, forward, and of the gradient of the head's input, backward [s].

    Of several stages the last one is the slowest, since it has the head; it has the embedding too where it is the only one, or
    in a V-shaped schedule (Shoeybi et al. 2019, section 3).
    """
    rounds = 1.0 + where((layout.pipeline.v_shape == 0.0) & (layout.pp > 1), 0.0, 1.0)
    message = model.hidden * ACTIVATION_BYTES
    per_token = rounds * (all_reduce_s_per_byte(layout, ranks) * message)
    return rounds * all_reduce_latency(machine, ranks) + tokens * per_token


def all_reduce_latency(machine: Machine, ranks: GroupCost) -> Number:
    """The time of an all-reduce that does not depend on its size [s]."""
    return machine.achieved.call * ranks.is_group + 2.0 * ranks.latency


def all_reduce_s_per_byte(layout: Layout, ranks: GroupCost) -> Number:
    """Time of a byte of an all-reduce over tensor-parallel ranks [s].

    With sequence parallelism it is a reduce-scatter and an all-gather, of which switches that reduce save nothing: one after
    the other, the former sends and the latter receives as much as without.
    """
    both_passes = 2.0 * ranks.allgather_s_per_byte
    return both_passes - where(layout.sequence_parallel > 0, 0.0, both_passes - ranks.allreduce_s_per_byte)


def context_ring(model: Transformer, layout: Layout, machine: Machine, tokens: Number) -> tuple[Number, Number, Number]:
    """Ring exchange of keys and values of a layer over context-parallel ranks, and its part forward [s]; use of unknown links.

    Keys and values go around the ring forward; they and their gradients backward; once more under recompute.
    """
    ranks = group(machine, layout.cp, layout.tp)
    keys = (model.kv_elements - model.local_kv) / model.hidden / smaller(layout.tp, model.kv_heads)
    keys = keys + model.local_kv / model.hidden / smaller(layout.tp, model.local_kv_heads)
    cache = model.hidden * ACTIVATION_BYTES * (layout.cp * keys)
    latency = machine.achieved.call * ranks.is_group + ranks.latency
    once = latency + tokens * (ranks.allgather_s_per_byte * cache)
    return (2.0 + layout.recomputation.share + (1.0 + layout.recomputation.scores)) * once, once, ranks.unknown


def expert_all_to_all(
    model: Transformer, layout: Layout, machine: Machine, expert_links: Exchange, tokens: Number
) -> Number:
    """All-to-all of a layer's tokens to their experts and back, forward and backward [s]; see :mod:`trnspec.perf.experts`.

    It takes place as often as all-reduces do.

    Args:
        model: The model; experts that process smaller vectors exchange those.
        layout: The layout.
        machine: Compute and communication of a rank.
        expert_links: The links between ranks with different experts.
        tokens: Tokens of a microbatch.
    """
    if not np.any(model.moe):
        return 0.0
    rounds = (4.0 + 2.0 * layout.recomputation.share) * model.moe
    several = smaller(layout.ep - 1.0, 1.0)
    message = layout.dispatch_ratio * (model.hidden * ACTIVATION_BYTES * layout.expert_load / layout.tp)
    byte = byte_time(expert_links, model.active, layout.per_node, reach(expert_links, layout.node_limit))
    latency = several * (machine.achieved.call + expert_links.hop) + machine.achieved.dispatch * several
    return rounds * latency + tokens * (rounds * (byte * message * (model.inner / machine.achieved.exchange)))


def exposed_all_to_all(
    layout: Layout, machine: Machine, all_to_all: Number, rest: Number
) -> tuple[Number, Number, Number]:
    """The exposed all-to-all of a layer, what of it is in the forward pass, and what may be in either pass [s].

    The forward pass of one microbatch overlaps with the backward pass of another.  What is exposed is then in either pass:
    with a part in each, one pass could get shorter on a faster rank at the same sum, and more of other collectives be
    exposed.

    Args:
        layout: The layout.
        machine: Compute and communication of a rank.
        all_to_all: The all-to-all of a layer [s].
        rest: The rest of the layer that it can overlap with a share of: without gradients of weights that are computed
            later, and without the time for which tensor-parallel collectives occupy the same links [s].
    """
    # Of the rounds of collectives two are forward, two backward, and two are recomputed.
    rounds, overlap = 2.0 + layout.recomputation.share, layout.expert_overlap * machine.achieved.expert_overlap
    exposed = larger(all_to_all - overlap * rest, 0.0)
    movable = overlap * exposed
    return exposed, movable + (1.0 - overlap) * (exposed / rounds), movable


def pipeline_messages(
    model: Transformer, layout: Layout, machine: Machine, tensor_ranks: GroupCost, tokens: Number
) -> tuple[Number, Number]:
    """Messages of a stage to the next one and back [s], over the widest link that any takes; and the use of unknown links.

    Each tensor-parallel rank sends its part; without sequence parallelism the parts are gathered on arrival (Narayanan et
    al. 2021, section 4.1), which for both messages takes the time of one all-reduce.  Between the passes of one model chunk a
    stage computes others.
    """
    latency, byte, unknown = send(machine, layout.pp, layout.tp * (layout.dp * layout.cp))
    size = model.hidden * ACTIVATION_BYTES
    gathered = (1.0 - layout.sequence_parallel) * smaller(layout.pp - 1.0, 1.0)
    latency = latency + gathered * all_reduce_latency(machine, tensor_ranks)
    token = size * (byte / layout.tp + gathered * (2.0 * tensor_ranks.allgather_s_per_byte))
    exposed = 1.0 - machine.achieved.pipeline_overlap * smaller(layout.interleave - 1.0, 1.0)
    # A V-shaped schedule passes every stage twice, and each chunk passes every stage once.
    p2p_messages = where(layout.interleave == 1, where(layout.pipeline.v_shape > 0.0, 2.0, 1.0), layout.interleave)
    return p2p_messages * (exposed * latency + tokens * (exposed * token)), unknown
