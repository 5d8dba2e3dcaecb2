"""The bytes of activations that a rank keeps for the backward pass.

The count is that of Korthikanti et al. 2022 (arXiv 2205.05198, section 4 and table 2), told tensor by tensor so that it
holds for grouped queries, gates, other widths and experts as well; for the GPT form, 16 bits and dropout it gives their
``s b h (10 + 24/t + 5 a s/(h t))`` a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.perf.ops import Number, both, ceil, larger, somewhere, where
from trnspec.perf.work.stages import Split, in_flight, stage_layers

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions

RECOMPUTE = {"none": 0.0, "selective": 1.0, "full": 2.0, "operators": 1.5}
"""What is computed again in the backward pass, as the number that formulas take.

``selective`` is that of Korthikanti et al. 2022; ``operators`` is PyTorch's selective checkpointing of operators, see
:func:`kept_operators`.  A new word goes to the end: columns of batches name words by their places.
"""


def recompute_code(recompute: str | Number) -> Number:
    """The number that stands for a word; numbers and arrays stay as they are.

    Raises:
        UsageError: There is no such word.
    """
    if not isinstance(recompute, str):
        return recompute
    if recompute not in RECOMPUTE:
        raise UsageError(f"{recompute!r} is no way of recomputing; there are {', '.join(RECOMPUTE)}")
    return RECOMPUTE[recompute]


@frozen(kw_only=True)
class Storing:
    """What is kept for the backward pass, and in which form.

    Attributes:
        recompute: 0.0 nothing is computed again, 1.0 the scores (selective), 1.5 all but the results of some operators
            (see :func:`kept_operators`), 2.0 all but a layer's input (full).
        sequence_parallel: 1.0 when what tensor parallelism leaves whole is split along the sequence.
        flash: 1.0 when scores are never written (FlashAttention; its row sums, 4 bytes a head and token, not counted).
        fused_loss: 1.0 when a logit takes 4 bytes; 0.0 when the loss is computed operator by operator, see
            :func:`logit_bytes`.
        dropout: 1.0 when masks of dropout are kept, one byte an element.
        element_bytes: Bytes of an activation.
        form: ``counted`` from the dimensions, or ``published``: attention as wide as the network, as many keys as
            queries, two tensors in the feed-forward network even with a gate, as in ``18 + 4 f/h`` of
            NVIDIA/Megatron-LM, megatron/training/theoretical_memory_usage.py.
    """

    recompute: Number = 0.0
    sequence_parallel: Number = 0.0
    flash: Number = 1.0
    fused_loss: Number = 1.0
    dropout: Number = 0.0
    element_bytes: Number = 2.0
    form: Literal["counted", "published"] = "counted"


class Activations(NamedTuple):
    """Bytes of activations on one rank.

    Attributes:
        layers: Of the layers, for all microbatches in flight.
        embedding: What the embedding keeps, first stage.
        output: What the final norm and the output keep, last stage.
        recomputed: What recomputing one layer holds in passing.
    """

    layers: Number
    embedding: Number
    output: Number
    recomputed: Number

    @property
    def total(self) -> Number:
        """The sum."""
        return self.layers + self.embedding + self.output + self.recomputed


def shared_heads(d: Dimensions, tp: Number) -> Number:
    """The share of keys and values that a rank holds: heads are split, and where they are too few, repeated.

    ``ceil(g/t)/g``; a latent cache has one head, so every rank holds it all.
    """
    return ceil(d.kv_heads / tp) / d.kv_heads


def layer_activations(
    d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number, expert: Number = 0.0
) -> Number:
    """Bytes that one layer keeps for one microbatch on one rank.

    Args:
        d: The transformer.
        split: How it is split.
        storing: What is kept.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        expert: 1.0 for a layer with experts.
    """
    tokens = seq / split.cp * microbatch
    along = where(storing.sequence_parallel > 0.0, split.tp, 1.0)
    whole = tokens * d.hidden * (4.0 * storing.element_bytes + 2.0 * storing.dropout) / along
    kept = whole + _attention(d, split, storing, tokens) + _feed_forward(d, split, storing, tokens, expert)
    full = tokens * d.hidden * storing.element_bytes / along
    scored = where(storing.recompute >= 1.0, 0.0, _scores(d, split, storing, seq, microbatch))
    found = where(storing.recompute >= 2.0, full, kept + scored)
    operators = storing.recompute == RECOMPUTE["operators"]
    # Most batches have no such row, and then it is not computed for any.
    if not somewhere(operators):
        return found
    return where(operators, full + kept_operators(d, split, storing, tokens, expert), found)


def kept_operators(d: Dimensions, split: Split, storing: Storing, tokens: Number, expert: Number) -> Number:
    """Bytes that PyTorch's selective checkpointing of operators keeps of a layer beside its input.

    ``torch.utils.checkpoint`` with a policy keeps what some operators give and computes the rest of a block again.  The
    policy that pytorch/torchtitan calls ``op`` keeps every second multiplication of matrices in forward order, the first
    of them included, attention's output and what reduce-scatters give.  Of queries, keys, values, output, gate, up and
    down these are queries, values, gate and down; without a gate queries, values and up.

    What tensor parallelism makes of it: queries, values, attention's output and gate are split; down gives a sum of its
    own on each rank, as wide as the network and of all tokens, which is kept as it is; with sequence parallelism two
    reduce-scatters follow, and what they give is split along the sequence.  So for many ranks of tensor parallelism it
    may keep more than ``selective`` does.

    Approximations: every layer counts from the queries on.  Experts are taken as a dense network, slot by slot; their
    router is not counted among the multiplications and computed again, as is what is sent to them.  Of latent attention
    queries are kept and the keys and values of all heads that are made of the compressed vector, as with queries that
    are not compressed themselves.  Attention counts as one operator also where its scores are written.  Its row sums are not
    counted, masks of dropout are drawn again, and the form ``published`` makes no difference.

    Args:
        d: The transformer.
        split: How it is split.
        storing: What is kept.
        tokens: Tokens of a microbatch on a rank.
        expert: 1.0 for a layer with experts.
    """
    tp, slots = split.tp, tokens * d.active
    gated = where(d.matrices > 2.0, 1.0, 0.0)
    latent = d.kv_elements != d.kv_heads * (d.qk_size + d.v_size)
    values = where(latent, d.heads * (d.qk_size + d.v_size) / tp, d.kv_heads * d.v_size * shared_heads(d, tp))
    attention = tokens * (d.heads * (d.qk_size + d.v_size) / tp + values)
    scattered = where(both(storing.sequence_parallel > 0.0, tp > 1.0), 2.0 * tokens * d.hidden / tp, 0.0)
    dense = d.width * tokens / tp + gated * d.hidden * tokens
    routed = d.expert_width * slots / tp + gated * d.hidden * slots * (split.expert_split / tp)
    shared = where(d.shared_width > 0.0, d.shared_width * tokens / tp + gated * d.hidden * tokens, 0.0)
    return storing.element_bytes * (attention + scattered + dense * (1.0 - expert) + (routed + shared) * expert)


def _scores(d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number) -> Number:
    """Softmax, and with dropout its mask and its output: ``5 a s^2 b/t`` with 16 bits; none with FlashAttention."""
    size = storing.element_bytes + storing.dropout * (1.0 + storing.element_bytes)
    scores = seq / split.cp * microbatch * seq * d.heads * size / split.tp
    return where(storing.flash > 0.0, 0.0, scores)


def _attention(d: Dimensions, split: Split, storing: Storing, tokens: Number) -> Number:
    """Queries, keys, values and the heads' output; of latent attention also the compressed vector."""
    size = storing.element_bytes
    if storing.form == "published":
        return tokens * size * 4.0 * d.hidden / split.tp
    heads = tokens * size * d.heads * (d.qk_size + d.v_size) / split.tp
    cached = tokens * size * d.kv_elements * shared_heads(d, split.tp)
    # A cache that is not heads of keys and values is a compressed one, from which all heads' are made.
    latent = d.kv_elements != d.kv_heads * (d.qk_size + d.v_size)
    return heads + cached + where(latent, heads, 0.0)


def _feed_forward(d: Dimensions, split: Split, storing: Storing, tokens: Number, expert: Number) -> Number:
    """Inner tensors of the feed-forward network or the experts; copies of the tokens sent to experts; the router."""
    size, tp = storing.element_bytes, split.tp
    tensors = 2.0 if storing.form == "published" else d.matrices
    slots = tokens * d.active
    dense = size * tensors * d.width * tokens / tp
    routed = size * tensors * d.expert_width * slots / tp
    shared = size * tensors * d.shared_width * tokens / tp
    # What an expert is sent and what it answers; a single expert is sent nothing.
    sent = where(d.experts > 1.0, 2.0 * size * d.hidden * slots * (split.expert_split / tp), 0.0)
    along = where(storing.sequence_parallel > 0.0, tp, 1.0)
    router = where(d.router_weights > 0.0, 4.0 * d.experts * tokens / along, 0.0)
    return dense * (1.0 - expert) + (routed + shared + sent + router) * expert


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
    """Bytes of activations on one rank of a stage, at the peak.

    Outside the layers, after Korthikanti et al. 2022, section 4.3, and Megatron-LM's estimator: token numbers of 8 bytes
    and the mask of the embedding's dropout for every microbatch in flight; on the last stage the inputs of final norm and
    output, and logits, of 4 bytes there (see :func:`logit_bytes`), for one microbatch.

    Args:
        d: The transformer.
        split: How it is split.
        storing: What is kept.
        seq: Tokens of a sequence.
        microbatch: Sequences of a microbatch.
        microbatches: Microbatches of a step and pipeline; no more than these are in flight.
        stage: The stage, from 0.
    """
    held = in_flight(split, microbatches, stage)
    dense, experts = stage_layers(d, split, stage)
    dense_each, expert_each = (layer_activations(d, split, storing, seq, microbatch, kind) for kind in (0.0, 1.0))
    tokens = seq / split.cp * microbatch
    along = where(storing.sequence_parallel > 0.0, split.tp, 1.0)
    logits = logit_bytes(storing) * tokens * d.vocabulary / split.tp
    output = 2.0 * storing.element_bytes * tokens * d.hidden / along + logits
    return Activations(
        layers=held * (dense * dense_each + experts * expert_each),
        embedding=split.first(stage) * held * tokens * (8.0 + storing.dropout * d.hidden) / along,
        output=split.last(stage) * output,
        recomputed=_recomputed(d, split, storing, seq, microbatch),
    )


def logit_bytes(storing: Storing) -> Number:
    """Bytes of a logit at the peak of the loss.

    Fused: 4, the logits in 32 bit and no copy (Korthikanti et al. 2022, section 4.3, and Megatron-LM).  Else, as of
    ``torch.nn.functional.cross_entropy`` of a 32-bit copy, the logits as they are multiplied, and in 32 bit the logarithm of
    their softmax (which follows the copy) and its and the copy's gradients: 2 + 4 + 4 + 4 = 14 in 16 bits.
    """
    return where(storing.fused_loss > 0.0, 4.0, storing.element_bytes + 12.0)


def _recomputed(d: Dimensions, split: Split, storing: Storing, seq: Number, microbatch: Number) -> Number:
    """One layer of the larger kind while it is computed again.

    All of it with ``full`` and ``operators`` (which has most of it again before its backward pass is done), the scores with
    ``selective``.
    """
    nothing = Storing(
        sequence_parallel=storing.sequence_parallel,
        flash=storing.flash,
        dropout=storing.dropout,
        element_bytes=storing.element_bytes,
        form=storing.form,
    )
    dense, expert = (layer_activations(d, split, nothing, seq, microbatch, kind) for kind in (0.0, 1.0))
    everything = larger(dense, expert)
    scores = _scores(d, split, storing, seq, microbatch)
    passing = where(storing.recompute < RECOMPUTE["operators"], scores, everything)
    return where(storing.recompute >= 1.0, passing, 0.0)
