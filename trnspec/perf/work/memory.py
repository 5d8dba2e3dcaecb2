"""Memory of one rank by purpose: weights, gradients, optimizer states, activations, KV cache and buffers.

Stored activations are those that Korthikanti et al. 2022 count (arXiv 2205.05198, section 4 and table 2), per tensor, so that it
also holds for grouped queries, gated networks, other widths and experts; for the GPT form, 16 bits and dropout it gives their
``s b h (10 + 24/t + 5 a s/(h t))`` per layer.

All functions take floats or float64 arrays that broadcast, and return the broadcast shape.  Sizes are in B.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from attrs import evolve, fields, frozen

from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.frameworks import ALLOCATED, Runtime
from trnspec.perf.ops import Number, ceil, larger, smaller, where
from trnspec.perf.work.layout import RECOMPUTE, Layers, Layout, in_flight, peak_stages, stage_axis, stage_layers
from trnspec.perf.work.transformer import STATE_BYTES, Heads, heads_of, mean, reaches, whole_heads


class Activations(NamedTuple):
    """Activation memory of one rank [B].

    Attributes:
        layers: Of the layers, for all microbatches in flight.
        embedding: Stored by the embedding, first stage.
        output: Stored by the final norm and the output, last stage.
        recomputed: Held temporarily while one layer is recomputed.
    """

    layers: Number
    embedding: Number
    output: Number
    recomputed: Number


def expands(d: Dimensions) -> Number:
    """Whether the keys and values of all heads are made from a compressed vector: latent attention.

    A KV cache that is neither heads of keys and values nor of keys that are the values is such a vector.
    """
    keys = d.kv_heads * d.qk_size
    return (d.kv_elements != keys + d.kv_heads * d.v_size) & (d.kv_elements != keys)


class LayerActivations(NamedTuple):
    """Activation memory of one layer for one microbatch on one rank [B].

    Attributes:
        stored: Stored for the backward pass.
        recomputed: Held temporarily while the layer is recomputed.
    """

    stored: Number
    recomputed: Number


def layer_activations(d: Dimensions, layout: Layout, expert: Number, runtime: Runtime = ALLOCATED) -> LayerActivations:
    """Bytes that one layer stores for one microbatch on one rank, and those that it holds while it is recomputed.

    Stored are inputs and dropout masks on the residual stream; queries, keys, values and the output of attention, for latent
    attention also the compressed vector; inner tensors of the feed-forward network or of experts, tokens on their way to experts
    and back, and the router; and where attention writes its scores, the softmax and with dropout its mask and output:
    ``5 a s^2 b/t`` in 16 bit.

    With ``full`` and ``operators`` (which has recomputed most of a layer before its backward pass ends) the whole layer is
    held, with ``selective`` the scores.

    Args:
        d: The transformer.
        layout: The layout.
        expert: 1.0 for an MoE layer.
        runtime: What software needs besides.
    """
    tokens, recompute = layout.seq / layout.cp * layout.microbatch, layout.recomputation.level
    size, tp, residual = runtime.activation_bytes, layout.tp, tokens * d.hidden
    unsplit = residual * (4.0 * size + 2.0 * runtime.dropout) / layout.sequence_split
    gathered = 2.0 * residual * size
    unsplit = unsplit + runtime.gathered_inputs * (gathered - gathered / layout.sequence_split)
    heads = tokens * size * mean(d, lambda own: own.width) / tp
    cached = tokens * size * mean(d, lambda own: own.kv_elements * whole_heads(own.kv_heads, tp))
    # The keys and values of all heads are made from a compressed vector.
    attention = heads + cached + where(expands(d), heads, 0.0) + tokens * size * d.recurrent_width / d.layers / tp
    slots = layout.expert_load * tokens * d.active
    dense = size * d.matrices * d.width * tokens / tp
    routed = size * d.matrices * d.expert_width * slots / tp
    shared = size * d.matrices * d.shared_width * tokens / tp
    # Inputs and results of the all-to-all; a single expert needs none.
    exchanged = where(d.experts > 1.0, 2.0 * size * d.hidden * slots * (layout.expert_split / tp), 0.0)
    router = where(d.router_weights > 0.0, 4.0 * d.experts * tokens / layout.sequence_split, 0.0)
    feed_forward = dense * (1.0 - expert) + (routed + shared + exchanged + router) * expert
    everything = unsplit + attention + feed_forward
    score_bytes = size + runtime.dropout * (1.0 + size)
    scores = tokens * layout.seq * mean(d, lambda own: own.heads) * score_bytes / tp
    scores = where(layout.flash > 0.0, 0.0, scores)
    input_ = residual * size / layout.sequence_split
    stored = where(recompute >= 2.0, input_, everything + where(recompute >= 1.0, 0.0, scores))
    operators = recompute == RECOMPUTE["operators"].level
    # Few batches have rows with ``operators``; without any the computation is skipped.
    if np.any(operators):
        stored = where(operators, input_ + kept_operators(d, layout, runtime, tokens, expert), stored)
    transient = where(recompute < RECOMPUTE["operators"].level, scores, everything + scores)
    return LayerActivations(stored, where(recompute >= 1.0, transient, 0.0))


def kept_operators(d: Dimensions, layout: Layout, runtime: Runtime, tokens: Number, expert: Number) -> Number:
    """Bytes that PyTorch's selective activation checkpointing stores of a layer besides its input.

    ``torch.utils.checkpoint`` with a policy stores the results of some operators and recomputes the rest of a block.  The
    policy that pytorch/torchtitan calls ``op`` stores every second matrix multiplication in forward order, starting with the
    first, the output of attention, and the results of reduce-scatters.  Of queries, keys, values, output, gate, up and down
    these are queries, values, gate and down; without a gate queries, values and up.

    With tensor parallelism, queries, values, attention's output and gate are split; down gives a partial sum on each rank,
    as wide as the hidden size and for all tokens, which is stored in full; with sequence parallelism two reduce-scatters
    follow, whose results are split along the sequence.  With a high tensor-parallel degree it may therefore store more
    than ``selective`` does.

    Approximations: every layer counts from the queries on.  Experts are treated like a dense network, per token copy; their
    router does not count as a matrix multiplication and is recomputed, as are the tokens sent to them.  For latent
    attention, queries and the keys and values of all heads made from the compressed vector are stored, as if queries were
    not compressed.  Attention counts as one operator also where its scores are written.  Its row sums are not counted,
    dropout masks are redrawn, and ``form`` makes no difference.

    Args:
        d: The transformer.
        layout: The layout.
        runtime: What software needs besides.
        tokens: Tokens of a microbatch on a rank.
        expert: 1.0 for an MoE layer.
    """
    tp, slots = layout.tp, layout.expert_load * tokens * d.active
    gated = where(d.matrices > 2.0, 1.0, 0.0)
    expanded = expands(d)

    def kept(own: Heads) -> Number:
        return own.width / tp + where(
            expanded, own.width / tp, own.kv_heads * own.v_size * whole_heads(own.kv_heads, tp)
        )

    attention = tokens * mean(d, kept)
    attention = attention + tokens * d.recurrent_width / d.layers / tp
    reduce_scattered = where((layout.sequence_parallel > 0.0) & (tp > 1.0), 2.0 * tokens * d.hidden / tp, 0.0)
    dense = d.width * tokens / tp + gated * d.hidden * tokens
    routed = d.expert_width * slots / tp + gated * d.hidden * slots * (layout.expert_split / tp)
    shared = where(d.shared_width > 0.0, d.shared_width * tokens / tp + gated * d.hidden * tokens, 0.0)
    return runtime.activation_bytes * (
        attention + reduce_scattered + dense * (1.0 - expert) + (routed + shared) * expert
    )


def stage_activations(d: Dimensions, layout: Layout, runtime: Runtime, stage: Number, layers: Layers) -> Activations:
    """Activation memory of one rank of a stage at the peak [B].

    Outside the layers, following Korthikanti et al. 2022, section 4.3, and Megatron-LM's estimator: token ids of 8 bytes
    and the mask of the embedding's dropout for every microbatch in flight; on the last stage the inputs of final norm and
    output, and logits, for one microbatch.

    Bytes of a logit at the peak of the loss, fused: 4, the logits in 32 bit without a copy (also Megatron-LM).  Otherwise, as in
    ``torch.nn.functional.cross_entropy`` of a 32-bit copy: the logits in the compute dtype, and in 32 bit the log-softmax
    (which replaces the copy), its gradient and the gradient of the copy: 2 + 4 + 4 + 4 = 14 in 16 bit.
    """
    # Models without experts, or without other layers than those with experts, have one kind of layer.
    counts = ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers))
    kinds = {kind: layer_activations(d, layout, kind, runtime) for kind, of in counts if np.any(of > 0.0)}
    tokens = layout.seq / layout.cp * layout.microbatch
    output = 2.0 * runtime.activation_bytes * tokens * d.hidden / layout.sequence_split
    logit_bytes = where(layout.fused_loss > 0.0, 4.0, runtime.activation_bytes + 12.0)
    outputs = output + logit_bytes * tokens * d.vocabulary / layout.tp
    # Each module of multi-token prediction has an output and logits of its own, and joins two inputs.
    outputs = outputs + d.mtp_layers * (outputs + output)
    held = in_flight(layout, stage)
    return Activations(
        layers=held * reduce(add, (layers[int(kind)] * of.stored for kind, of in kinds.items())),
        embedding=where(stage == 0.0, 1.0, 0.0)
        * held
        * tokens
        * (8.0 + runtime.dropout * d.hidden)
        / layout.sequence_split,
        output=layout.last(stage) * outputs,
        recomputed=reduce(larger, (of.recomputed for of in kinds.values())),
    )


class ModelState(NamedTuple):
    """Bytes of the model state on one rank."""

    weights: Number
    gradients: Number
    optimizer: Number


class RankParameters(NamedTuple):
    """Parameters on one rank, before ZeRO shards anything.

    Attributes:
        dense: All but routed experts.
        experts: Routed experts.
    """

    dense: Number
    experts: Number


def sharded(parameters: Number, layout: Layout, copies: Number) -> ModelState:
    """The model state of some parameters when ZeRO shards it over the ranks that hold the same ones [B].

    Stage 1 shards the optimizer states, 2 also the gradients, 3 also the weights (Rajbhandari et al. 2020, figure 1).

    Args:
        parameters: Parameters that the ranks have in common.
        layout: The layout.
        copies: Number of ranks that hold them.
    """
    return ModelState(
        weights=layout.precision.weight_bytes * parameters / where(layout.sharding.weights > 0.0, copies, 1.0),
        gradients=layout.precision.grad_bytes * parameters / where(layout.sharding.gradients > 0.0, copies, 1.0),
        optimizer=layout.precision.state_bytes * parameters / where(layout.sharding.optimizer > 0.0, copies, 1.0),
    )


def held_parameters(d: Dimensions, layout: Layout, stage: Number = 0.0) -> RankParameters:
    """Parameters that a rank of a stage holds.

    Tensor parallelism splits matrices, embedding and output; norms, the router and biases of results on the residual
    stream are replicated on every rank, as are KV heads where there are fewer than ranks.

    Args:
        d: The transformer.
        layout: The layout.
        stage: The pipeline stage, from 0.
    """
    tp = layout.tp
    kv_weights = d.hidden * mean(d, lambda own: own.projected)
    # Query heads are padded where they do not divide, which only serving allows.
    padding = mean(d, lambda own: own.width * (ceil(own.heads / tp) / own.heads * tp)) / mean(d, lambda own: own.width)
    attention = (d.attention_weights - kv_weights) / tp * padding + d.attention_small
    attention = attention + d.hidden * mean(d, lambda own: own.projected * whole_heads(own.kv_heads, tp))
    mlp = d.mlp_weights / tp + _biases(d.mlp_small, d.hidden, tp)
    shared = d.shared_weights / tp + _biases(d.shared_small, d.hidden, tp)
    expert_weights = d.expert_weights / layout.expert_split + _biases(d.expert_small, d.hidden, layout.expert_split)
    outermost = d.outer_small + d.outer_weights / tp

    dense, expert = stage_layers(d, layout, stage)
    first, last = where(stage == 0.0, 1.0, 0.0), layout.last(stage)
    # A tied output is the embedding itself, and on another stage a second copy.
    head = (1.0 - d.tied * first) * d.head
    return RankParameters(
        dense=(dense + expert) * attention
        + dense * mlp
        + expert * (shared + d.router_weights + d.router_small)
        + first * (d.embedding / tp + d.positions)
        + last * head / tp
        + last * outermost
        + last * d.mtp_layers * (d.mtp_weights / tp + d.mtp_small),
        experts=expert * (d.experts / layout.ep) * expert_weights,
    )


def _biases(elements: Number, hidden: Number, tp: Number) -> Number:
    """Biases on a rank: inner ones are split with their matrix, those of width ``h`` on the result are replicated."""
    replicated = smaller(elements, hidden)
    return replicated + (elements - replicated) / tp


def model_state(layout: Layout, parameters: RankParameters) -> ModelState:
    """Bytes of weights, gradients and optimizer states on a rank.

    ZeRO shards over ``dp cp`` ranks, and routed experts over the ranks that hold the same ones.

    Args:
        layout: The layout.
        parameters: Parameters that the rank holds before ZeRO shards anything.
    """
    dense = sharded(parameters.dense, layout, layout.dp * layout.cp)
    experts = sharded(parameters.experts, layout, layout.expert_copies)
    return ModelState(*(a + b for a, b in zip(dense, experts, strict=True)))


def kv_cache(d: Dimensions, tokens: Number, batch: Number, element_bytes: Number = 2.0, tp: Number = 1.0) -> Number:
    """KV cache on one rank [B], all layers: ``2 L g d`` elements per token, and the states of recurrences.

    Tensor parallelism splits it into at most ``kv_heads`` parts; beyond that heads are replicated.  A latent cache is not
    split.  Windowed layers store at most their window.  Every rank holds the keys of indexers; states are split by heads.

    Args:
        d: The transformer.
        tokens: Tokens of a sequence that are stored.
        batch: Sequences.
        element_bytes: Bytes of an element.
        tp: Tensor-parallel degree.
    """
    keys = d.index_layers * d.index_size * tokens / larger(d.sparse_stride, 1.0)
    for one in reaches(d):
        kept = where(one.kept > 0.0, smaller(one.kept, tokens), tokens) / one.stride
        keys = keys + one.layers * kept * (one.heads.kv_elements * whole_heads(one.heads.kv_heads, tp))
    return batch * (keys * element_bytes + d.state * STATE_BYTES / tp)


def cache(d: Dimensions, layout: Layout, tokens: Number, batch: Number, element_bytes: Number = 2.0) -> Number:
    """KV cache on a rank [B], with layers split over stages, tokens over ``cp`` and sequences over ``dp``."""
    replica_cache = kv_cache(d, tokens, ceil(batch / layout.dp), element_bytes, layout.tp)
    return replica_cache / layout.pp / layout.cp


@frozen(kw_only=True)
class RankMemory:
    """Memory of one rank by purpose [B]; each a float or an array.

    Attributes:
        weights: Weights that the rank holds.
        gradients: Gradients.
        optimizer: Optimizer states: master copies and moments.
        activations: Activations of the layers: stored for the backward pass; in inference, in use.
        embeddings_and_logits: Activations of embedding, final norm and output; logits.
        recomputed: Held temporarily during recompute.
        transient: Gradients before they are accumulated, see :func:`stage_gradients`.
        cache: KV cache.
        buffers: Communication buffers, and weights gathered for the current layer.
        reserve: Memory kept for the runtime, communication and fragmentation.
    """

    weights: Number = 0.0
    gradients: Number = 0.0
    optimizer: Number = 0.0
    activations: Number = 0.0
    embeddings_and_logits: Number = 0.0
    recomputed: Number = 0.0
    transient: Number = 0.0
    cache: Number = 0.0
    buffers: Number = 0.0
    reserve: Number = 0.0

    @property
    def total(self) -> Number:
        """The sum of all parts."""
        # The sum is in an order in which sweeps have few large arrays: what activations depend on comes last, then the cache.
        state = self.weights + self.gradients + self.optimizer
        fixed = state + self.transient + self.buffers + self.reserve
        return fixed + (self.activations + self.embeddings_and_logits + self.recomputed) + self.cache


def training_memory(d: Dimensions, layout: Layout, *, stage: Number = 0.0, runtime: Runtime = ALLOCATED) -> RankMemory:
    """Memory of a rank of a stage at the peak of a training step [B].

    Args:
        d: The transformer.
        layout: The layout.
        stage: The pipeline stage, from 0.
        runtime: What software needs besides; nothing by default.
    """
    layers = stage_layers(d, layout, stage)
    state = model_state(layout, held_parameters(d, layout, stage))
    stored = stage_activations(d, layout, runtime, stage, layers)
    # Between stages activations of one microbatch are received forward, gradients of one backward.
    tokens = layout.seq / layout.cp * layout.microbatch
    message = tokens * d.hidden * runtime.activation_bytes / layout.sequence_split
    buffers = where(layout.pp > 1.0, 2.0 * message, 0.0) + _gathered_weights(d, layout)
    buffers = buffers + where(layout.dp * layout.cp > 1.0, smaller(runtime.bucket, state.gradients), 0.0)
    return RankMemory(
        weights=state.weights,
        gradients=state.gradients,
        optimizer=state.optimizer,
        activations=stored.layers,
        embeddings_and_logits=stored.embedding + stored.output,
        recomputed=stored.recomputed,
        transient=stage_gradients(d, layout, runtime, stage, layers),
        buffers=buffers,
        reserve=runtime.reserve,
    )


def stage_gradients(d: Dimensions, layout: Layout, runtime: Runtime, stage: Number, layers: Layers) -> Number:
    """Gradients that the backward pass has computed and not yet accumulated [B], of a stage with some dense and MoE layers.

    They are as wide as activations.  At the peak there are those of the widest matrix of a layer, gate and up together, and
    of the embedding or the output.  With a loss that is not fused, the logits are larger and are freed before.
    """
    fused = where(layout.fused_loss > 0, 1.0, 0.0)
    routed = where(d.experts > 0.0, d.expert_width / layout.expert_split, 0.0)
    projected = 0.0
    for own in heads_of(d):
        projected = larger(projected, (own.heads * own.qk_size + own.projected) / layout.tp)
    projected = where(expands(d), 0.0, projected)
    first, last = where(stage == 0.0, 1.0, 0.0), layout.last(stage)
    vocabulary = larger(first * (1.0 - last), last * fused) * d.embedding / layout.tp
    network = d.width / layout.tp
    if np.any(d.expert_layers > 0.0):
        network = larger(where(layers[0] > 0.0, d.width, 0.0), d.shared_width) / layout.tp
    widest = larger((d.matrices - 1.0) * larger(network, routed), projected)
    return runtime.activation_bytes * (vocabulary + d.hidden * widest)


def _gathered_weights(d: Dimensions, layout: Layout) -> Number:
    """Weights that ZeRO 3 gathers: of the current layer and the next, of the larger kind."""
    dense = where(d.layers > d.expert_layers, d.mlp_weights, 0.0) / layout.tp
    routed = d.experts / layout.ep * d.expert_weights / layout.expert_split
    expert = where(d.expert_layers > 0.0, routed + d.shared_weights / layout.tp + d.router_weights, 0.0)
    layer = d.attention_weights / layout.tp + larger(dense, expert)
    single_rank = layout.dp * layout.cp * layout.expert_copies <= 1.0
    return where(
        layout.sharding.weights > 0.0, where(single_rank, 0.0, 2.0 * layout.precision.compute_bytes * layer), 0.0
    )


def peak_memory(d: Dimensions, layout: Layout, runtime: Runtime = ALLOCATED) -> Number:
    """Memory of the rank that needs the most [B]: the largest total among :func:`peak_stages`.

    Arguments are those of :func:`training_memory`.
    """
    most = training_memory(
        d, layout, stage=stage_axis(peak_stages(d, layout), layout, runtime), runtime=runtime
    ).total.max(axis=0)
    return most if most.ndim else most.item()


def peak(d: Dimensions, layout: Layout, runtime: Runtime = ALLOCATED) -> RankMemory:
    """Memory of the rank that needs the most by purpose, of equal ones of the first of :func:`peak_stages`."""
    stages = stage_axis(peak_stages(d, layout), layout, runtime)
    return of_heaviest(training_memory(d, layout, stage=stages, runtime=runtime))


def of_heaviest(memory: RankMemory) -> RankMemory:
    """Memory of the stage that needs the most, of equal ones of the first; stages are the first axis."""
    total = memory.total
    at = np.argmax(total, axis=0)[None]
    parts = {f.name: getattr(memory, f.name) for f in fields(RankMemory)}
    for name, part in parts.items():
        if np.ndim(part) == total.ndim:
            found = np.take_along_axis(np.broadcast_to(part, total.shape), at, axis=0)[0]
            parts[name] = found if found.ndim else found.item()
    return RankMemory(**parts)


def on_device(
    d: Dimensions, layout: Layout, memory: RankMemory, runtime: Runtime = ALLOCATED, *, training: bool = True
) -> tuple[RankMemory, Number]:
    """Memory of a rank on its device, and the bytes that it keeps on the host.

    Of offloaded weights and activations two layers stay on the device, the current and the next.

    Args:
        d: The transformer.
        layout: The layout, with what is offloaded.
        memory: The memory without offloading.
        runtime: What software needs besides.
        training: Whether it is a training step, which stores activations.
    """
    what, stays = layout.offload, 0.0
    if what == "none":
        return memory, 0.0
    size = getattr(memory, what)
    if what == "weights":
        stays = smaller(size, 2.0 * size / (d.layers / layout.pp))
    elif what == "activations" and training:
        kinds = [k for k, n in ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers)) if n]
        stays = smaller(
            size, 2.0 * reduce(larger, (layer_activations(d, layout, kind, runtime).stored for kind in kinds))
        )
    return evolve(memory, **{what: stays}), size - stays


def device_memory(d: Dimensions, layout: Layout, runtime: Runtime = ALLOCATED) -> RankMemory:
    """Memory on the device of the rank that needs the most in training, of equal ones of the first stage.

    Args:
        d: The transformer.
        layout: The layout, with what is offloaded; stages are one number.
        runtime: What software needs besides.
    """
    stages = peak_stages(d, layout) if layout.offload == "none" else range(int(layout.pp))
    memory = training_memory(d, layout, stage=stage_axis(stages, layout, runtime), runtime=runtime)
    if layout.offload != "none":
        memory, _ = on_device(d, layout, memory, runtime)
    return of_heaviest(memory)


def transferred(layout: Layout, memory: RankMemory) -> Number:
    """Bytes that a rank sends to its host and receives in a step.

    The optimizer's states stay on the host, which updates the weights: gradients go there and weights come back once a
    step (Ren et al. 2021, ZeRO-Offload, section 4).  Activations go out and come in for every microbatch.  Weights come in
    forward and backward for every microbatch, and gradients go out.

    Args:
        layout: The layout, with what is offloaded.
        memory: The memory of the rank without offloading.
    """
    if layout.offload == "optimizer":
        return (
            memory.optimizer
            / layout.precision.state_bytes
            * (layout.precision.grad_bytes + layout.precision.weight_bytes)
        )
    if layout.offload == "activations":
        return 2.0 * memory.activations / larger(1.0, in_flight(layout)) * layout.microbatches
    return layout.microbatches * (2.0 * memory.weights + memory.gradients)


def inference_memory(  # noqa: PLR0913  # each is an input of the evaluator
    d: Dimensions,
    layout: Layout,
    *,
    context: Number,
    batch: Number,
    step_tokens: Number,
    weight_bytes: Number = 2.0,
    whole_bytes: Number = 0.0,
    head_bytes: Number = 0.0,
    kv_bytes: Number = 2.0,
    activation_bytes: Number = 2.0,
    stage: Number = 0.0,
    reserve: Number = 0.0,
) -> RankMemory:
    """Memory of a rank of a stage in inference [B].

    Activations are an estimate: for the tokens of one step, twice the residual stream and the widest inner tensors of a
    layer; on the last stage logits of 4 bytes, one per sequence.

    Args:
        d: The transformer.
        layout: The layout.
        context: Tokens of a sequence in the KV cache.
        batch: Sequences, over all of ``dp``.
        step_tokens: Tokens computed at once on a rank: those of a prefill, or one per sequence.
        weight_bytes: Bytes of a weight.
        whole_bytes: The same outside routed experts; 0.0 for ``weight_bytes``.
        head_bytes: The same of the embedding and the output matrix; 0.0 for ``weight_bytes``.
        kv_bytes: Bytes of a KV-cache element.
        activation_bytes: Bytes of an activation.
        stage: The pipeline stage, from 0.
        reserve: Memory kept for the runtime, communication and fragmentation.
    """
    d = evolve(d, mtp_layers=0.0)
    parameters = held_parameters(d, layout, stage)
    weights = weight_bytes * (parameters.dense + parameters.experts)
    first, last = where(stage == 0.0, 1.0, 0.0), layout.last(stage)
    # The embedding and the output matrix, a part of the dense parameters.
    outer = (first * d.embedding + last * ((1.0 - d.tied * first) * d.head)) / layout.tp
    weights = weights + where(whole_bytes > 0.0, whole_bytes - weight_bytes, 0.0) * (parameters.dense - outer)
    weights = weights + where(head_bytes > 0.0, head_bytes - weight_bytes, 0.0) * outer
    tp = layout.tp
    queries = 0.0
    for own in heads_of(d):
        queries = larger(queries, own.width / tp + own.kv_elements * whole_heads(own.kv_heads, tp))
    feed_forward = larger(d.matrices * d.width, d.matrices * (d.active * d.expert_width + d.shared_width)) / tp
    return RankMemory(
        weights=weights,
        activations=step_tokens * activation_bytes * (2.0 * d.hidden + larger(queries, feed_forward)),
        embeddings_and_logits=last * 4.0 * ceil(batch / layout.dp) * d.vocabulary / tp,
        cache=cache(d, layout, context, batch, kv_bytes),
        buffers=where(layout.pp > 1.0, 2.0 * step_tokens * d.hidden * activation_bytes, 0.0),
        reserve=reserve,
    )
