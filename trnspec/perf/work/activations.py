"""Activation memory: the bytes that a rank stores for the backward pass.

The count is that of Korthikanti et al. 2022 (arXiv 2205.05198, section 4 and table 2), per tensor, so that it also holds
for grouped queries, gated networks, other widths and experts; for the GPT form, 16 bits and dropout it gives their
``s b h (10 + 24/t + 5 a s/(h t))`` per layer.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from trnspec.perf.frameworks import ALLOCATED, Runtime
from trnspec.perf.ops import Number, both, larger, somewhere, where
from trnspec.perf.work.layout import RECOMPUTE, Layout
from trnspec.perf.work.stages import Layers, in_flight
from trnspec.perf.work.transformer import mean

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.transformer import Heads


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

    @property
    def total(self) -> Number:
        """The sum of all parts."""
        return self.layers + self.embedding + self.output + self.recomputed


def expands(d: Dimensions) -> Number:
    """Whether the keys and values of all heads are made from a compressed vector: latent attention.

    A KV cache that is neither heads of keys and values nor of keys that are the values is such a vector.
    """
    keys = d.kv_heads * d.qk_size
    return both(d.kv_elements != keys + d.kv_heads * d.v_size, d.kv_elements != keys)


class LayerActivations(NamedTuple):
    """Activation memory of one layer for one microbatch on one rank [B].

    Attributes:
        stored: Stored for the backward pass.
        recomputed: Held temporarily while the layer is recomputed.
    """

    stored: Number
    recomputed: Number


def layer_activations(
    d: Dimensions, layout: Layout, expert: Number = 0.0, runtime: Runtime = ALLOCATED
) -> LayerActivations:
    """Bytes that one layer stores for one microbatch on one rank, and those that it holds while it is recomputed.

    With ``full`` and ``operators`` (which has recomputed most of a layer before its backward pass ends) the whole layer is
    held, with ``selective`` the scores.

    Args:
        d: The transformer.
        layout: The layout.
        expert: 1.0 for an MoE layer.
        runtime: What software needs besides.
    """
    tokens, recompute = layout.seq / layout.cp * layout.microbatch, layout.recomputation.level
    residual = tokens * d.hidden
    unsplit = residual * (4.0 * runtime.activation_bytes + 2.0 * runtime.dropout) / layout.sequence_split
    if somewhere(runtime.gathered_inputs > 0.0):
        gathered = 2.0 * residual * runtime.activation_bytes
        unsplit = unsplit + runtime.gathered_inputs * (gathered - gathered / layout.sequence_split)
    everything = unsplit + _attention(d, layout, runtime, tokens) + _feed_forward(d, layout, runtime, tokens, expert)
    scores = _scores(d, layout, runtime)
    input_ = residual * runtime.activation_bytes / layout.sequence_split
    stored = where(recompute >= 2.0, input_, everything + where(recompute >= 1.0, 0.0, scores))
    operators = recompute == RECOMPUTE["operators"].level
    # Few batches have rows with ``operators``; without any the computation is skipped.
    if somewhere(operators):
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
        return own.width / tp + where(expanded, own.width / tp, own.kv_heads * own.v_size * own.kv_share(tp))

    attention = tokens * mean(d, kept)
    attention = attention + tokens * d.recurrent_width / d.layers / tp
    reduce_scattered = where(both(layout.sequence_parallel > 0.0, tp > 1.0), 2.0 * tokens * d.hidden / tp, 0.0)
    dense = d.width * tokens / tp + gated * d.hidden * tokens
    routed = d.expert_width * slots / tp + gated * d.hidden * slots * (layout.expert_split / tp)
    shared = where(d.shared_width > 0.0, d.shared_width * tokens / tp + gated * d.hidden * tokens, 0.0)
    return runtime.activation_bytes * (
        attention + reduce_scattered + dense * (1.0 - expert) + (routed + shared) * expert
    )


def _scores(d: Dimensions, layout: Layout, runtime: Runtime) -> Number:
    """Softmax, and with dropout its mask and its output: ``5 a s^2 b/t`` in 16 bit; none with FlashAttention."""
    size = runtime.activation_bytes + runtime.dropout * (1.0 + runtime.activation_bytes)
    scores = layout.seq / layout.cp * layout.microbatch * layout.seq * mean(d, lambda own: own.heads) * size / layout.tp
    return where(layout.flash > 0.0, 0.0, scores)


def _attention(d: Dimensions, layout: Layout, runtime: Runtime, tokens: Number) -> Number:
    """Queries, keys, values and the heads' output; for latent attention also the compressed vector."""
    size = runtime.activation_bytes
    heads = tokens * size * mean(d, lambda own: own.width) / layout.tp
    cached = tokens * size * mean(d, lambda own: own.kv_elements * own.kv_share(layout.tp))
    # The keys and values of all heads are made from a compressed vector.
    latent = expands(d)
    recurrent = tokens * size * d.recurrent_width / d.layers / layout.tp
    return heads + cached + where(latent, heads, 0.0) + recurrent


def _feed_forward(d: Dimensions, layout: Layout, runtime: Runtime, tokens: Number, expert: Number) -> Number:
    """Inner tensors of the feed-forward network or the experts; token copies sent to experts; the router."""
    size, tp = runtime.activation_bytes, layout.tp
    slots = layout.expert_load * tokens * d.active
    dense = size * d.matrices * d.width * tokens / tp
    routed = size * d.matrices * d.expert_width * slots / tp
    shared = size * d.matrices * d.shared_width * tokens / tp
    # Inputs and results of the all-to-all; a single expert needs none.
    exchanged = where(d.experts > 1.0, 2.0 * size * d.hidden * slots * (layout.expert_split / tp), 0.0)
    router = where(d.router_weights > 0.0, 4.0 * d.experts * tokens / layout.sequence_split, 0.0)
    return dense * (1.0 - expert) + (routed + shared + exchanged + router) * expert


def stage_activations(d: Dimensions, layout: Layout, runtime: Runtime, stage: Number, layers: Layers) -> Activations:
    """Activation memory of one rank of a stage at the peak [B].

    Outside the layers, following Korthikanti et al. 2022, section 4.3, and Megatron-LM's estimator: token ids of 8 bytes
    and the mask of the embedding's dropout for every microbatch in flight; on the last stage the inputs of final norm and
    output, and logits (see :func:`logit_bytes`), for one microbatch.

    Args:
        d: The transformer.
        layout: The layout.
        runtime: What software needs besides.
        stage: The pipeline stage, from 0.
        layers: Its dense and MoE layers.
    """
    # Models without experts, or without other layers than those with experts, have one kind of layer.
    counts = ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers))
    kinds = {kind: layer_activations(d, layout, kind, runtime) for kind, of in counts if somewhere(of > 0.0)}
    tokens = layout.seq / layout.cp * layout.microbatch
    output = 2.0 * runtime.activation_bytes * tokens * d.hidden / layout.sequence_split
    outputs = output + logit_bytes(layout, runtime) * tokens * d.vocabulary / layout.tp
    if somewhere(d.mtp_layers > 0.0):
        # Each module of multi-token prediction has an output and logits of its own, and joins two inputs.
        outputs = outputs + d.mtp_layers * (outputs + output)
    held = in_flight(layout, stage)
    return Activations(
        layers=held * reduce(add, (layers[int(kind)] * of.stored for kind, of in kinds.items())),
        embedding=layout.first(stage) * held * tokens * (8.0 + runtime.dropout * d.hidden) / layout.sequence_split,
        output=layout.last(stage) * outputs,
        recomputed=reduce(larger, (of.recomputed for of in kinds.values())),
    )


def logit_bytes(layout: Layout, runtime: Runtime) -> Number:
    """Bytes of a logit at the peak of the loss.

    Fused: 4, the logits in 32 bit without a copy (Korthikanti et al. 2022, section 4.3, and Megatron-LM).  Otherwise, as in
    ``torch.nn.functional.cross_entropy`` of a 32-bit copy: the logits in the compute dtype, and in 32 bit the log-softmax
    (which replaces the copy), its gradient and the gradient of the copy: 2 + 4 + 4 + 4 = 14 in 16 bit.
    """
    return where(layout.fused_loss > 0.0, 4.0, runtime.activation_bytes + 12.0)
