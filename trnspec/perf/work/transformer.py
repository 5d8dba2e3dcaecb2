"""A transformer as average numbers per layer, whatever mix of layers it has; its FLOP, and published conventions for model FLOP.

The queries of a layer reach all keys, a window, the keys that an indexer chooses, or keys pooled over tokens.

A matrix of ``e`` elements costs ``2 e`` FLOP per token forward and ``4 e`` backward.  For attention scores and values
there are two published conventions; every function that counts them takes the convention as an argument:

- ``full``: every token attends to the whole sequence, ``12 L h s`` FLOP per token forward and backward (Narayanan et al.
  2021, Korthikanti et al. 2022, Chowdhery et al. 2022);
- ``causal``: a token attends only to earlier tokens, half of that (Megatron-LM).

All functions take floats or float64 arrays that broadcast, and return the broadcast shape.  ``d`` is always
:class:`Dimensions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.ops import Number, ceil, larger, smaller, where

STATE_BYTES = 4.0
"""Bytes of an element of a recurrence's state: 32 bit (``mamba_ssm_dtype`` of the published models)."""


@frozen(kw_only=True)
class Heads:
    """The heads of a layer with attention.

    Attributes:
        heads: Query heads.
        kv_heads: Heads of keys and values.
        qk_size: Size of one query or key.
        v_size: Size of one value.
        kv_elements: Elements of the cache for one key.
        projected: Of those, the elements that a matrix of the layer computes.
    """

    heads: Number
    kv_heads: Number
    qk_size: Number
    v_size: Number
    kv_elements: Number
    projected: Number

    @property
    def width(self) -> Number:
        """Elements of queries and outputs of all heads: half of the FLOP of a query-key pair."""
        return self.heads * (self.qk_size + self.v_size)


def whole_heads(heads: Number, tp: Number) -> Number:
    """Share of some heads on one of ``tp`` ranks, ``ceil(g/t)/g``: whole ones, padded or replicated where they do not divide.

    A latent cache has one head, so every rank holds all of it.
    """
    return ceil(heads / tp) / heads


def heads_of(d: Dimensions) -> tuple[Heads, Heads]:
    """The heads of a layer without a window, and those of a windowed layer."""
    projected = where(d.kv_projected > 0.0, d.kv_projected, d.kv_elements)
    local = {
        name: where(own > 0.0, own, other)
        for name, own, other in (
            ("heads", d.local_heads, d.heads),
            ("kv_heads", d.local_kv_heads, d.kv_heads),
            ("qk_size", d.local_qk_size, d.qk_size),
            ("v_size", d.local_v_size, d.v_size),
            ("kv_elements", d.local_kv_elements, d.kv_elements),
            ("projected", d.local_kv_elements, projected),
        )
    }
    local["projected"] = where(d.local_kv_projected > 0.0, d.local_kv_projected, local["projected"])
    return (
        Heads(
            heads=d.heads, kv_heads=d.kv_heads, qk_size=d.qk_size, v_size=d.v_size, kv_elements=d.kv_elements,
            projected=projected,
        ),
        Heads(**local),
    )  # fmt: skip


def mean(d: Dimensions, of: Callable[[Heads], Number]) -> Number:
    """The mean of a number over all layers; those without attention have none of it.

    Args:
        d: The transformer.
        of: The number of a layer with some heads.
    """
    full, local = heads_of(d)
    windowed = d.windowed_layers / d.layers
    return (1.0 - d.unattended_layers / d.layers - windowed) * of(full) + windowed * of(local)


def common_heads(d: Dimensions) -> float:
    """The number that a tensor-parallel degree must divide: heads of layers with and without a window have it in common."""
    return float(math.gcd(int(d.heads), int(d.local_heads or d.heads)))


@frozen(kw_only=True)
class Reach:
    """Layers whose queries reach equally far: at a context of ``c`` tokens to ``min(limit, c) / stride`` keys.

    Attributes:
        name: Its name.
        layers: Layers with it; a layer may have two, each with keys of its own.
        heads: Their heads.
        limit: Tokens that a query reaches back; 0 for all.
        stride: Tokens that share a key.
        kept: Tokens back that have their keys cached; 0 for all.
    """

    name: str
    layers: Number
    heads: Heads
    limit: Number = 0.0
    stride: Number = 1.0
    kept: Number = 0.0


def reaches(d: Dimensions) -> tuple[Reach, Reach, Reach, Reach]:
    """The reaches of a model: full, windowed, sparse and pooled; each may have no layers."""
    full, local = heads_of(d)
    whole = d.layers - d.unattended_layers - d.windowed_layers - d.sparse_layers - d.pooled_layers
    stride = larger(d.sparse_stride, 1.0)
    windowed = d.windowed_layers + d.beside_layers
    return (
        Reach(name="full", layers=whole, heads=full),
        Reach(name="windowed", layers=windowed, heads=local, limit=d.window, kept=d.window),
        Reach(name="sparse", layers=d.sparse_layers, heads=full, limit=d.sparse_keys * stride, stride=stride),
        Reach(name="pooled", layers=d.pooled_layers, heads=full, stride=larger(d.pooled_stride, 1.0)),
    )


@frozen(kw_only=True)
class Transformer:
    """Averages over the layers of a model, so that a layer is one set of numbers.

    Attributes:
        layers: Number of layers.
        hidden: Hidden size.
        vocabulary: Vocabulary size: columns of the output matrix.
        heads: Query heads.
        kv_heads: KV heads.
        kv_elements: KV-cache elements per token and average layer, those beyond a window included.
        weights: Elements of the matrices that a token is multiplied by in a layer: attention, dense and active experts.
        whole: Elements of a layer's matrices that every rank of an expert-parallel group holds: attention, dense, shared.
        routed: Elements of the matrices of all routed experts of a layer.
        small: Elements of a layer's norms and biases.
        scores: Width of queries and values of all heads: half of the FLOP of a query-key pair.
        absorbed: The same in decoding: with latent attention each head multiplies compressed vectors.
        split: Elements per token that matrix multiplications read and write where tensor parallelism splits them.
        dispatched: Active experts times share of MoE layers.
        embedding: Elements of the embedding, positions included.
        output: Elements of the output matrix.
        tied: 1.0 where the output matrix is the embedding.
        outer: Elements of norms, biases and matrices outside the layers.
        window: Attention window in tokens; 0 for none.
        chosen: Tokens whose keys an indexer chooses; 0 for none.
        score_full: The part of ``scores`` in layers that attend to all keys; keys of several tokens count as a part of one.
        score_window: The part of ``scores`` in layers with a window.
        score_chosen: The part of ``scores`` in layers with an indexer's choice.
        read_full: The part of ``kv_elements`` in layers that attend to all keys, likewise.
        read_window: The part of ``kv_elements`` in layers with a window.
        read_chosen: The part of ``kv_elements`` in layers with an indexer's choice.
        rows_full: The part of the query heads of an average layer that attends to all keys, likewise.
        rows_window: The part with a window.
        rows_chosen: The part with an indexer's choice.
        kept_full: Elements that an average layer keeps of each token of a context.
        kept_window: Elements that it keeps of each token in the window.
        local_heads: Query heads of a windowed layer.
        local_kv_heads: KV heads of a windowed layer.
        local_scores: Of ``scores``, the part with those heads.
        local_kv: Of ``kv_elements``, the part with those heads.
        local_projected: Of ``projected``, the part with those heads.
        projected: Elements of keys and values that an average layer computes.
        index: Width of an indexer's queries, of an average layer: half of the FLOP of a query-key pair.
        index_cache: Elements that the indexer of an average layer caches for a token.
        recurrence: Half of the FLOP of a token in the recurrence of an average layer.
        state: Elements of a sequence's state in an average layer, in 32 bit.
        causal: 1.0 for causal attention.
        mtp: Modules of multi-token prediction.
        joined: Elements of the matrix of such a module that joins two inputs.
        results: Results of a layer on the residual stream, without experts: of attention, and of dense layers.
        inner: Size of the vectors that routed experts process, over the hidden size.
        active: Experts per token; 0 for a dense model.
        moe: Share of the layers with experts.
        shared: Share of the layers with shared experts.
        routed_split: The part of ``split`` in routed experts.
    """

    layers: Number
    hidden: Number
    vocabulary: Number
    heads: Number
    kv_heads: Number
    kv_elements: Number
    weights: Number
    whole: Number
    routed: Number
    small: Number
    scores: Number
    absorbed: Number
    split: Number
    dispatched: Number
    embedding: Number
    output: Number
    tied: Number
    outer: Number
    window: Number
    chosen: Number
    score_full: Number
    score_window: Number
    score_chosen: Number
    read_full: Number
    read_window: Number
    read_chosen: Number
    rows_full: Number
    rows_window: Number
    rows_chosen: Number
    kept_full: Number
    kept_window: Number
    local_heads: Number
    local_kv_heads: Number
    local_scores: Number
    local_kv: Number
    local_projected: Number
    projected: Number
    causal: Number
    index: Number
    index_cache: Number
    recurrence: Number
    state: Number
    mtp: Number
    joined: Number
    results: Number
    inner: Number
    active: Number
    moe: Number
    shared: Number
    routed_split: Number


def transformer(d: Dimensions) -> Transformer:
    """The averages over the layers of a model with dimensions ``d``."""
    experts = d.expert_layers / d.layers
    dense = 1.0 - experts if d.mlp_weights else 0.0
    gated = d.matrices - 1.0
    active = d.active * d.expert_width + d.shared_width
    feed_forward_width = dense * d.width + experts * active
    shared = experts if d.shared_width else 0.0
    attended = 1.0 - d.unattended_layers / d.layers
    _, local = heads_of(d)
    windowed = d.windowed_layers / d.layers
    width = mean(d, lambda own: own.width)
    kv_elements = mean(d, lambda own: own.kv_elements)
    projected = mean(d, lambda own: own.projected)
    everywhere, window, chosen, pooled = reaches(d)
    those = {"full": (everywhere, pooled), "window": (window,), "chosen": (chosen,)}
    parts = {
        f"{name}_{which}": sum((one.layers / d.layers / one.stride * of(one.heads) for one in some), 0.0)
        for name, of in _OF_HEADS.items()
        for which, some in those.items()
    }
    kept = (one.layers / d.layers / one.stride * one.heads.kv_elements for one in (everywhere, chosen, pooled))
    return Transformer(
        layers=d.layers,
        hidden=d.hidden,
        vocabulary=d.vocabulary,
        heads=d.heads,
        kv_heads=d.kv_heads,
        kv_elements=kv_elements,
        weights=d.attention_weights
        + dense * d.mlp_weights
        + experts * (d.active * d.expert_weights + d.shared_weights + d.router_weights),
        whole=d.attention_weights + dense * d.mlp_weights + experts * (d.shared_weights + d.router_weights),
        routed=experts * d.experts * d.expert_weights,
        small=d.attention_small
        + dense * d.mlp_small
        + experts * (d.experts * d.expert_small + d.shared_small + d.router_small),
        scores=width,
        absorbed=attended * d.heads * (d.kv_elements + d.rank) if d.rank else width,
        split=width + projected + d.recurrent_width / d.layers + feed_forward_width * (gated + 1.0),
        dispatched=experts * d.active,
        embedding=d.embedding + d.positions,
        output=d.head,
        tied=d.tied,
        outer=d.outer_small + d.outer_weights,
        window=window.limit,
        chosen=chosen.limit,
        **parts,
        kept_full=sum(kept, 0.0),
        kept_window=parts["read_window"],
        local_heads=local.heads,
        local_kv_heads=local.kv_heads,
        local_scores=windowed * local.width,
        local_kv=windowed * local.kv_elements,
        local_projected=windowed * local.projected,
        projected=projected,
        causal=d.causal,
        index=d.index_layers * d.index_width / larger(d.sparse_stride, 1.0) / d.layers,
        index_cache=d.index_layers * d.index_size / larger(d.sparse_stride, 1.0) / d.layers,
        recurrence=d.recurrence / d.layers,
        state=d.state / d.layers,
        mtp=d.mtp_layers,
        joined=d.mtp_weights,
        results=1.0 + dense - d.absent_results / d.layers,
        inner=d.expert_hidden / d.hidden if d.expert_hidden else 1.0,
        active=d.active,
        moe=experts,
        shared=shared,
        routed_split=experts * d.active * d.expert_width * d.matrices,
    )


_OF_HEADS: dict[str, Callable[[Heads], Number]] = {
    "score": lambda heads: heads.width,
    "read": lambda heads: heads.kv_elements,
    "rows": lambda heads: heads.heads,
}
"""Work of the heads of a reach, averaged over layers: FLOP, elements read from the cache, and rows of scores."""


def attended_keys(model: Transformer, seq: Number, written_half: Number, flash: Number) -> Number:
    """Keys that a query attends to in an average layer with attention, forward, over a sequence of ``seq`` tokens.

    Indexers and recurrences count as the keys that cost as much.  With a window ``w`` each token attends to ``w`` keys, but for the
    first ``w`` tokens, which attend to ``w/2`` on average.  Flash attention leaves out the blocks beyond the causal half.

    Args:
        model: The model.
        seq: Tokens of a sequence.
        written_half: Share of the scores that software which writes them leaves out: 0.5 or 0, as calibrated.
        flash: 1 for flash attention.
    """
    causal_half = flash * (0.5 * model.causal) + (1.0 - flash) * written_half
    unwindowed = seq * (1.0 - causal_half)
    keys = model.score_full / model.scores * unwindowed
    for scores, limit in ((model.score_window, model.window), (model.score_chosen, model.chosen)):
        window = smaller(limit, seq)
        keys = keys + scores / model.scores * (window - causal_half * window * window / seq)
    return keys + (model.index / model.scores * unwindowed + model.recurrence / model.scores)


AttentionConvention = Literal["full", "causal"]
Convention = Literal["sc21", "korthikanti", "korthikanti-hardware", "megatron", "matmul-full"]
CONVENTIONS: tuple[str, ...] = get_args(Convention)
"""The conventions of :func:`model_flops_per_token`."""


def span(seq: Number, window: Number, causal: Number, convention: AttentionConvention) -> Number:
    """Keys that a token attends to, on average over a sequence of ``seq`` tokens.

    ``full``: all ``s``, or the window ``w`` where that is shorter.  ``causal``: ``s/2``; with a window
    ``w (1 - w/(2 s))``, which is ``s/2`` again for ``w = s``.

    Args:
        seq: Tokens of the sequence.
        window: Tokens of the attention window; 0 for none.
        causal: 1.0 for causal attention; otherwise the conventions agree.
        convention: ``full`` or ``causal``.
    """
    # where() computes both branches, and both are finite.
    keys = where(window > 0.0, smaller(window, seq), seq)
    if convention == "full":
        return keys
    # s - w/2 instead of 1 - w/(2 s): w == s gives s/2 without rounding.
    return where(causal > 0.0, keys * (seq - keys / 2.0) / larger(seq, 1.0), keys)


def all_scores(d: Dimensions, seq: Number, convention: AttentionConvention) -> Number:
    """FLOP of scores and values per token, all layers, forward; those of multi-token prediction are not windowed.

    Queries times keys and weights times values are ``2 a (qk + v) c`` with ``c`` keys of a token: ``4 L h s`` (full) or ``2 L h s`` (causal) where heads times size is ``h`` and no layer is windowed.  Those of indexers and recurrences count as well: an indexer scores all keys, and a recurrence does not depend on them.
    """
    everywhere = span(seq, 0.0, d.causal, convention)
    total = d.mtp_layers * (2.0 * d.heads * (d.qk_size + d.v_size) * everywhere)
    for one in reaches(d):
        keys = span(seq, one.limit, d.causal, convention) / one.stride
        total = total + one.layers * (2.0 * one.heads.width * keys)
    index = d.index_layers * 2.0 * d.index_width * (everywhere / larger(d.sparse_stride, 1.0))
    return total + index + 2.0 * d.recurrence


def head_flops(d: Dimensions, tokens: Number) -> Number:
    """FLOP of the output matrix forward for the tokens that get logits: ``2 V h`` per token."""
    return 2.0 * tokens * (d.head + d.outer_weights)


def matmul_flops(m: Number, k: Number, n: Number) -> Number:
    """FLOP of ``(m, k) x (k, n)``: ``2 m k n``."""
    return 2.0 * m * k * n


def matmul_traffic(m: Number, k: Number, n: Number, element_bytes: Number, result_bytes: Number) -> Number:
    """Memory traffic [B] of ``(m, k) x (k, n)``, each operand moved once: ``m k + k n`` elements in, ``m n`` out."""
    return (m * k + k * n) * element_bytes + m * n * result_bytes


def model_flops_per_token(d: Dimensions, seq: Number, convention: Convention) -> Number:
    """Model FLOP of one token forward and backward, by a published convention.

    - ``sc21``: with full recompute, ``96 L h^2 (1 + s/6h + V/16Lh)`` (Narayanan et al. 2021, equation 3): four passes
      through the layers, three through the output.
    - ``korthikanti``: ``72 L h^2 (1 + s/6h + V/12Lh)`` (Korthikanti et al. 2022, appendix A), no recompute.
    - ``korthikanti-hardware``: ``72 L h^2 (1 + s/3h + V/12Lh)`` (the same), with selective recompute, as published: the
      scores twice.
    - ``megatron``: three passes through the matrices of attention, feed-forward network, active and shared experts and
      output, and the causal half of the scores; without router and embedding, and of norms only those of latent attention
      and of multi-token prediction, as if they were matrices (NVIDIA/Megatron-LM, megatron/training/training.py,
      num_floating_point_operations).
    - ``matmul-full``: three passes through every matrix, router included, and the full scores.

    The GPT formulas above are these sums for ``12 h^2`` elements per layer; the implementation holds for every form.
    Modules of multi-token prediction count as further layers and outputs.

    Raises:
        UsageError: Unknown convention.
    """
    if convention not in CONVENTIONS:
        raise UsageError(f"{convention!r} is not a FLOP convention; expected one of {', '.join(CONVENTIONS)}")
    scores = all_scores(d, seq, "causal" if convention == "megatron" else "full")
    layers, router = _multiplied(d)
    through, again = _PASSES[convention]
    matrices = layers + router if convention == "matmul-full" else layers
    if convention == "megatron":
        matrices = matrices + (d.layers + d.mtp_layers) * d.latent_norms + d.mtp_layers * d.mtp_small
    return through * (2.0 * matrices) + again * scores + 3.0 * (1.0 + d.mtp_layers) * head_flops(d, 1.0)


_PASSES = {
    "sc21": (4.0, 4.0),
    "korthikanti": (3.0, 3.0),
    "korthikanti-hardware": (3.0, 6.0),
    "megatron": (3.0, 3.0),
    "matmul-full": (3.0, 3.0),
}
"""Passes through the layers' matrices, and through scores and values; the output always takes three."""


def _multiplied(d: Dimensions) -> tuple[Number, Number]:
    """Elements of the layers' matrices that a token is multiplied by: without routers, and of the routers."""
    more = where(d.expert_layers > 0.0, d.mtp_layers, 0.0)  # of the kind of the last layer
    dense, routed = d.layers - d.expert_layers + (d.mtp_layers - more), d.expert_layers + more
    experts = d.active * d.expert_weights + d.shared_weights
    layers = (dense + routed) * d.attention_weights + dense * d.mlp_weights + routed * experts
    return layers + d.mtp_layers * d.mtp_weights, routed * d.router_weights


def recomputed_flops_per_token(
    d: Dimensions, seq: Number, recompute: Number, convention: AttentionConvention
) -> Number:
    """FLOP per token that are recomputed in the backward pass.

    With ``operators`` every second matrix multiplication of a layer is recomputed and counts as half of its FLOP; attention
    scores are not, since the output of attention is kept.

    Args:
        d: The transformer.
        seq: Tokens of a sequence.
        recompute: 0.0 none, 1.0 selective (scores and values), 1.5 operators, 2.0 full.
        convention: ``full`` or ``causal``.
    """
    layers, router = _multiplied(d)
    scores = all_scores(d, seq, convention)
    partial = where(recompute >= 1.5, layers + router, where(recompute >= 1.0, scores, 0.0))
    return where(recompute >= 2.0, 2.0 * (layers + router) + scores, partial)
