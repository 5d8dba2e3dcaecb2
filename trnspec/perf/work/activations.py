"""Activation memory: the bytes that a rank stores for the backward pass.

The count is that of Korthikanti et al. 2022 (arXiv 2205.05198, section 4 and table 2), per tensor, so that it also holds
for grouped queries, gated networks, other widths and experts; for the GPT form, 16 bits and dropout it gives their
``s b h (10 + 24/t + 5 a s/(h t))`` per layer.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.ops import Number, both, larger, somewhere, where
from trnspec.perf.work.reach import mean
from trnspec.perf.work.stages import Layers, Split, in_flight, stage_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    from trnspec.perf.work.reach import Heads

RECOMPUTE = {"none": 0.0, "selective": 1.0, "full": 2.0, "operators": 1.5}
"""The values of ``recompute``, with the number that formulas take.

``selective`` is that of Korthikanti et al. 2022; ``operators`` is PyTorch's selective activation checkpointing, see
:func:`kept_operators`.  Append new values at the end: columns of batches store positions.
"""


def recompute_code(recompute: str | Number) -> Number:
    """The number of a value of :data:`RECOMPUTE`; numbers and arrays are returned as they are.

    Raises:
        UsageError: Unknown value.
    """
    if not isinstance(recompute, str):
        return recompute
    if recompute not in RECOMPUTE:
        raise UsageError(f"unknown recompute {recompute!r}; expected one of {', '.join(RECOMPUTE)}")
    return RECOMPUTE[recompute]


@frozen(kw_only=True)
class Storing:
    """What is stored for the backward pass.

    Attributes:
        recompute: 0.0 nothing is recomputed, 1.0 the scores (selective), 1.5 all but the results of some operators (see
            :func:`kept_operators`), 2.0 all but a layer's input (full).
        sequence_parallel: 1.0 when tensors that tensor parallelism does not split are split along the sequence.
        flash: 1.0 when scores are never written (FlashAttention; its row sums, 4 bytes per head and token, not counted).
        fused_loss: 1.0 when a logit takes 4 bytes; 0.0 when the loss is computed operator by operator, see
            :func:`logit_bytes`.
        dropout: 1.0 when dropout masks are stored, one byte per element.
        element_bytes: Bytes of an activation.
        gathered_inputs: 1.0 where the inputs of attention and network that sequence parallelism gathers are stored, as
            DTensor does; 0.0 where each rank stores its part and gathers them again in the backward pass.
        load: Tokens that the busiest rank's experts compute, over the mean.
        form: ``counted`` from the dimensions, or ``published``: attention as wide as the hidden size, as many KV heads as
            query heads, two tensors in the feed-forward network even with a gate, as in ``18 + 4 f/h`` of
            NVIDIA/Megatron-LM, megatron/training/theoretical_memory_usage.py.
    """

    recompute: Number = 0.0
    sequence_parallel: Number = 0.0
    flash: Number = 1.0
    fused_loss: Number = 1.0
    dropout: Number = 0.0
    element_bytes: Number = 2.0
    gathered_inputs: Number = 0.0
    load: Number = 1.0
    form: Literal["counted", "published"] = "counted"


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


@frozen
class _Layer:
    """What layers have in common, in bytes for one microbatch on one rank.

    Attributes:
        tokens: Tokens of the microbatch on the rank.
        whole: What a layer without recompute stores besides the tensors of its feed-forward network, and scores.
        input: The input of a layer.
        scores: Scores.
    """

    d: Dimensions
    split: Split
    storing: Storing
    tokens: Number
    whole: Number
    input: Number
    scores: Number

    @classmethod
    def of(cls, d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number) -> _Layer:
        tokens = seq / split.cp * microbatch
        sequence_split = where(storing.sequence_parallel > 0.0, split.tp, 1.0)
        unsplit = tokens * d.hidden * (4.0 * storing.element_bytes + 2.0 * storing.dropout) / sequence_split
        if somewhere(storing.gathered_inputs > 0.0):
            gathered = 2.0 * tokens * d.hidden * storing.element_bytes
            unsplit = unsplit + storing.gathered_inputs * (gathered - gathered / sequence_split)
        whole = unsplit + _attention(d, split, storing, tokens)
        input_ = tokens * d.hidden * storing.element_bytes / sequence_split
        return cls(d, split, storing, tokens, whole, input_, _scores(d, split, storing, seq, microbatch))

    def everything(self, expert: Number) -> Number:
        """What a layer without recompute stores, without scores."""
        return self.whole + _feed_forward(self.d, self.split, self.storing, self.tokens, expert)

    def stored(self, everything: Number, expert: Number) -> Number:
        """What a layer stores, given the same without recompute."""
        recompute = self.storing.recompute
        scored = where(recompute >= 1.0, 0.0, self.scores)
        stored = where(recompute >= 2.0, self.input, everything + scored)
        operators = recompute == RECOMPUTE["operators"]
        # Few batches have rows with ``operators``; without any the computation is skipped.
        if not somewhere(operators):
            return stored
        kept = kept_operators(self.d, self.split, self.storing, self.tokens, expert)
        return where(operators, self.input + kept, stored)

    def recomputed(self, *everything: Number) -> Number:
        """One layer of the larger kind while it is recomputed, given what each kind stores without recompute.

        The whole layer with ``full`` and ``operators`` (which has recomputed most of it before its backward pass ends), the
        scores with ``selective``.
        """
        recompute = self.storing.recompute
        if not somewhere(recompute >= 1.0):
            return 0.0
        layer = reduce(larger, (one + self.scores for one in everything))
        transient = where(recompute < RECOMPUTE["operators"], self.scores, layer)
        return where(recompute >= 1.0, transient, 0.0)


def layer_activations(
    d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number, expert: Number = 0.0
) -> Number:
    """Bytes that one layer stores for one microbatch on one rank.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        storing: What is stored.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        expert: 1.0 for an MoE layer.
    """
    layer = _Layer.of(d, split, storing, seq, microbatch)
    return layer.stored(layer.everything(expert), expert)


def kept_operators(d: Dimensions, split: Split, storing: Storing, tokens: Number, expert: Number) -> Number:
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
        split: Degrees of parallelism.
        storing: What is stored.
        tokens: Tokens of a microbatch on a rank.
        expert: 1.0 for an MoE layer.
    """
    tp, slots = split.tp, storing.load * tokens * d.active
    gated = where(d.matrices > 2.0, 1.0, 0.0)
    expanded = expands(d)

    def kept(own: Heads) -> Number:
        return own.width / tp + where(expanded, own.width / tp, own.kv_heads * own.v_size * own.kv_share(tp))

    attention = tokens * mean(d, kept)
    attention = attention + tokens * d.recurrent_width / d.layers / tp
    reduce_scattered = where(both(storing.sequence_parallel > 0.0, tp > 1.0), 2.0 * tokens * d.hidden / tp, 0.0)
    dense = d.width * tokens / tp + gated * d.hidden * tokens
    routed = d.expert_width * slots / tp + gated * d.hidden * slots * (split.expert_split / tp)
    shared = where(d.shared_width > 0.0, d.shared_width * tokens / tp + gated * d.hidden * tokens, 0.0)
    return storing.element_bytes * (attention + reduce_scattered + dense * (1.0 - expert) + (routed + shared) * expert)


def _scores(d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number) -> Number:
    """Softmax, and with dropout its mask and its output: ``5 a s^2 b/t`` in 16 bit; none with FlashAttention."""
    size = storing.element_bytes + storing.dropout * (1.0 + storing.element_bytes)
    scores = seq / split.cp * microbatch * seq * mean(d, lambda own: own.heads) * size / split.tp
    return where(storing.flash > 0.0, 0.0, scores)


def _attention(d: Dimensions, split: Split, storing: Storing, tokens: Number) -> Number:
    """Queries, keys, values and the heads' output; for latent attention also the compressed vector."""
    size = storing.element_bytes
    if storing.form == "published":
        return tokens * size * 4.0 * d.hidden / split.tp
    heads = tokens * size * mean(d, lambda own: own.width) / split.tp
    cached = tokens * size * mean(d, lambda own: own.kv_elements * own.kv_share(split.tp))
    # The keys and values of all heads are made from a compressed vector.
    latent = expands(d)
    recurrent = tokens * size * d.recurrent_width / d.layers / split.tp
    return heads + cached + where(latent, heads, 0.0) + recurrent


def _feed_forward(d: Dimensions, split: Split, storing: Storing, tokens: Number, expert: Number) -> Number:
    """Inner tensors of the feed-forward network or the experts; token copies sent to experts; the router."""
    size, tp = storing.element_bytes, split.tp
    tensors = 2.0 if storing.form == "published" else d.matrices
    slots = storing.load * tokens * d.active
    dense = size * tensors * d.width * tokens / tp
    routed = size * tensors * d.expert_width * slots / tp
    shared = size * tensors * d.shared_width * tokens / tp
    # Inputs and results of the all-to-all; a single expert needs none.
    exchanged = where(d.experts > 1.0, 2.0 * size * d.hidden * slots * (split.expert_split / tp), 0.0)
    sequence_split = where(storing.sequence_parallel > 0.0, tp, 1.0)
    router = where(d.router_weights > 0.0, 4.0 * d.experts * tokens / sequence_split, 0.0)
    return dense * (1.0 - expert) + (routed + shared + exchanged + router) * expert


def activations(
    d: Dimensions,
    split: Split,
    storing: Storing,
    *,
    seq: Number,
    microbatch: Number,
    microbatches: Number,
    stage: Number = 0.0,
) -> Activations:
    """Activation memory of one rank of a stage at the peak [B].

    Outside the layers, following Korthikanti et al. 2022, section 4.3, and Megatron-LM's estimator: token ids of 8 bytes
    and the mask of the embedding's dropout for every microbatch in flight; on the last stage the inputs of final norm and
    output, and logits (see :func:`logit_bytes`), for one microbatch.

    Args:
        d: The transformer.
        split: Degrees of parallelism.
        storing: What is stored.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches per step and replica; no more than these are in flight.
        stage: The pipeline stage, from 0.
    """
    of_stages = stage_activations(d, split, storing, seq=seq, microbatch=microbatch, microbatches=microbatches)
    return of_stages(stage, stage_layers(d, split, stage))


def stage_activations(
    d: Dimensions, split: Split, storing: Storing, *, seq: Number, microbatch: Number, microbatches: Number
) -> Callable[[Number, Layers], Activations]:
    """Activation memory as a function of a stage and of its dense and MoE layers; see :func:`activations`.

    What is the same on all stages is computed once.
    """
    layer = _Layer.of(d, split, storing, seq, microbatch)
    # Models without experts, or without other layers than those with experts, have one kind of layer.
    kinds = tuple(
        kind for kind, layers in ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers)) if somewhere(layers > 0.0)
    )
    everything = {kind: layer.everything(kind) for kind in kinds}
    stored = {kind: layer.stored(everything[kind], kind) for kind in kinds}
    recomputed = layer.recomputed(*everything.values())
    tokens = layer.tokens
    sequence_split = where(storing.sequence_parallel > 0.0, split.tp, 1.0)
    output = 2.0 * storing.element_bytes * tokens * d.hidden / sequence_split
    logits = logit_bytes(storing) * tokens * d.vocabulary / split.tp
    outputs = output + logits
    if somewhere(d.mtp_layers > 0.0):
        # Each module of multi-token prediction has an output and logits of its own, and joins two inputs.
        outputs = outputs + d.mtp_layers * (outputs + output)

    def of_stage(stage: Number, layers: Layers) -> Activations:
        held = in_flight(split, microbatches, stage)
        return Activations(
            layers=held * reduce(add, (layers[int(kind)] * each for kind, each in stored.items())),
            embedding=split.first(stage) * held * tokens * (8.0 + storing.dropout * d.hidden) / sequence_split,
            output=split.last(stage) * outputs,
            recomputed=recomputed,
        )

    return of_stage


def logit_bytes(storing: Storing) -> Number:
    """Bytes of a logit at the peak of the loss.

    Fused: 4, the logits in 32 bit without a copy (Korthikanti et al. 2022, section 4.3, and Megatron-LM).  Otherwise, as in
    ``torch.nn.functional.cross_entropy`` of a 32-bit copy: the logits in the compute dtype, and in 32 bit the log-softmax
    (which replaces the copy), its gradient and the gradient of the copy: 2 + 4 + 4 + 4 = 14 in 16 bit.
    """
    return where(storing.fused_loss > 0.0, 4.0, storing.element_bytes + 12.0)
