"""The time of one training step: a function for each part, in the order of ``docs/explanation/performance/training.md``, and their sum.

The page derives the parts: computation of a layer, tensor-parallel collectives, the context-parallel ring, the all-to-all of experts,
messages between pipeline stages, gradients, weights and the optimizer.  :func:`step` sums them and adds the pipeline bubble.

``model`` has averages over the layers (:class:`~trnspec.perf.work.transformer.Transformer`), ``machine`` the times of one rank per FLOP
and per byte (:class:`~trnspec.perf.lowering.machine.Machine`), and ``tokens`` are those of a microbatch on a context-parallel rank.
All functions take floats or float64 arrays that broadcast.  Times are in s, sizes in B, work in FLOP.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np
from attrs import define

from trnspec.perf.experts import byte_time, copies, exchange, reach
from trnspec.perf.lowering.machine import group, same_links, send
from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where
from trnspec.perf.training.bubble import balance, equal_bubble, is_executed, least_idle, pipeline_of, unequal_bubble
from trnspec.perf.training.execution import Times
from trnspec.perf.work.layout import ACTIVATION_BYTES
from trnspec.perf.work.transformer import attended_keys

if TYPE_CHECKING:
    from trnspec.perf.experts import Exchange
    from trnspec.perf.lowering.machine import GroupCost, Machine
    from trnspec.perf.work.layout import Layout
    from trnspec.perf.work.transformer import Transformer


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

    Args:
        model: The model.
        layout: The layout.
        machine: Compute and communication of a rank.
        ranks: The tensor-parallel ranks.
        expert_links: The links between ranks with different experts.
        tokens: Tokens of a microbatch.
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

    Args:
        model: The model.
        layout: The layout.
        machine: Compute and communication of a rank.
        tensor_ranks: The tensor-parallel ranks.
        tokens: Tokens of a microbatch.
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


# Gradients, weights and the optimizer.


def gradients_and_weights(
    model: Transformer, layout: Layout, machine: Machine
) -> tuple[Number, Number, Number, Number]:
    """Collectives over gradients and sharded weights, and the optimizer.

    ZeRO 0 all-reduces gradients; 1 reduce-scatters them and all-gathers the new weights; 2 reduce-scatters them for every
    microbatch, since a rank keeps only its shard; 3 also all-gathers weights forward and backward for every microbatch
    (Rajbhandari et al. 2020, section 7).  Experts are sharded over fewer ranks, since each expert-parallel rank has its own.

    Returns:
        Time of the exchange around a backward pass and of that ahead of a forward pass [s]; time of the optimizer [s]; use of
        unknown links.
    """
    replicas, share, stages = layout.dp * layout.cp, 1.0 / layout.tp, ceil(model.layers / layout.pp)
    data_ranks = group(machine, replicas, layout.tp)
    expert_ranks = layout.ep * layout.expert_split
    same_experts = group(machine, replicas * layout.tp / expert_ranks, layout.expert_split * layout.ep)
    outer = model.embedding + model.output * (1.0 - model.tied) + model.outer
    # The last stage has an output matrix of its own even where it is tied to the embedding, and the final norm.
    last_extra = model.output + model.outer - outer
    # Of unequal stages, the longest or the one with the output, embedding and multi-token prediction.
    last = floor(model.layers / layout.pp) + model.mtp
    ends = (outer + smaller(layout.pp - 1.0, 1.0) * last_extra + model.mtp * model.joined) * share
    layer = (model.whole + model.small) * share
    routed = model.routed / expert_ranks
    sharded = layout.sharding.optimizer
    # Half of the time per byte: gradients are reduce-scattered where the optimizer is sharded, else all-reduced.
    byte, expert_byte = (
        of.allgather_s_per_byte - (1.0 - sharded) * (of.allgather_s_per_byte - 0.5 * of.allreduce_s_per_byte)
        for of in (data_ranks, same_experts)
    )
    layer_byte = layer * byte + expert_byte * routed
    layer = layer + routed + sharded * (expert_ranks * share - 1.0) * routed
    data_byte = larger(stages * layer_byte, last * layer_byte + ends * byte)
    parameters = larger(stages * layer, last * layer + ends)
    precision, gathered = layout.precision, layout.sharding.weights
    latency = 0.5 * machine.achieved.call * data_ranks.is_group + data_ranks.latency
    gradient_bytes = (2.0 - sharded) * precision.grad_bytes + gathered * precision.compute_bytes
    gradients = gradient_bytes * data_byte + (2.0 - sharded + gathered * (2.0 * stages - 1.0)) * latency
    weights = sharded * precision.compute_bytes * data_byte + (sharded + gathered * (stages - 1.0)) * latency
    state_byte = (1.0 + machine.achieved.optimizer_passes) * machine.seconds_per_byte
    state = parameters * (1.0 + sharded * (1.0 / replicas - 1.0)) * state_byte
    # The update reads and writes states and weight, which it does not read where there is a master copy, and reads the gradient.
    update_bytes = (
        precision.grad_bytes + 2.0 * precision.state_bytes + (2.0 - precision.master) * precision.weight_bytes
    )
    return gradients, weights, state * update_bytes, data_ranks.unknown + same_experts.unknown * model.moe


def overlapping_passes(layout: Layout, machine: Machine) -> tuple[Number, Number]:
    """Passes of a stage from when its first gradients are final, or until its last weights are needed; and the exposed share.

    The first stage of the interleaved schedule ends with one pass of all its chunks but one for each of ``pp`` microbatches,
    after the gradients of its last chunk are final, and begins with the same number of forward passes: ``((v-1) pp + 1)/v``.
    Where every microbatch has exchanges of its own, the other microbatches are not available.

    Software exchanges a model chunk at a time, and what is exposed in any case is the first or the last of them.
    """
    v, once = layout.interleave, 1.0 - layout.sharding.gradients
    window = 1.0 + once * ((v - 1.0) * (layout.pp - 1.0) / v)
    return window * machine.achieved.overlap, machine.achieved.exposed / (1.0 + once * (v - 1.0))


def exposed_exchanges(
    layout: Layout, machine: Machine, gradients: Number, weights: Number, layer: Times, *stages: tuple[Number, Number]
) -> list[Number]:
    """Exposed collectives over gradients and sharded weights, which overlap with the computation of a stage [s].

    Gradients overlap with the backward passes of a stage from when the first are final, weights of the next step with its
    forward passes; what is exchanged for every microbatch overlaps with all passes of a microbatch, and where the backward
    pass is split with the pipeline bubble, which may be between any two passes.

    Args:
        layout: The layout.
        machine: Compute and communication of a rank.
        gradients: The exchange around a backward pass, see :func:`gradients_and_weights` [s].
        weights: That ahead of a forward pass [s].
        layer: A microbatch in a layer.
        stages: For each of some stages its layers, and its pipeline bubble [s].
    """
    available, exposed = overlapping_passes(layout, machine)
    split = layout.splits_backward
    # Where it is split, gradients are final in the pass for weights only.
    backward = available * ((1.0 - split) * (layer.fwd_bwd - layer.forward + layer.movable) + layer.weights)
    forward = available * layer.forward
    times = [_exposed(gradients, n * backward, exposed) + _exposed(weights, n * forward, exposed) for n, _ in stages]
    scattered = layout.sharding.gradients
    repeated, passes = gradients + layout.sharding.weights * weights, available * layer.fwd_bwd
    others = scattered * (layout.microbatches - 1.0)
    return [
        time + _exposed(others * repeated, others * (n * passes) + split * available * idle, exposed)
        for time, (n, idle) in zip(times, stages, strict=True)
    ]


def _exposed(time: Number, behind: Number, share: Number) -> Number:
    """Exposed time of a collective, and at least a share of it."""
    excess = time - behind
    return larger(time * share, excess)


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
    stages, microbatches, fixed = balance(pipeline), layout.microbatches, machine.achieved.step
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
        return needed & (_ROUNDED * least <= where(executed, limit, math.inf))

    if not np.any(stages.unequal):
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
    return _ROUNDED * (busy + least_idle(pipeline, layer, head_excess > 0.0) + machine.achieved.step)


_LONG = 1e30
"""Longer than any bubble [s]."""
_ROUNDED = 1.0 - 2.0**-30
"""A bound in terms that are summed in another order may be larger by rounding."""
