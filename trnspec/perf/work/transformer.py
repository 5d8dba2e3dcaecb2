"""A transformer as average numbers per layer, whatever mix of layers it has: their heads, and how far queries reach.

The queries of a layer reach all keys, a window, the keys that an indexer chooses, or keys pooled over tokens.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.ops import Number, ceil, larger, smaller, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from trnspec.model.transformers.dimensions import Dimensions

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

    def kv_share(self, tp: Number) -> Number:
        """Share of keys and values on a rank: heads are split, and replicated where there are fewer than ranks.

        ``ceil(g/t)/g``; a latent cache has one head, so every rank holds all of it.
        """
        return ceil(self.kv_heads / tp) / self.kv_heads

    def head_share(self, tp: Number) -> Number:
        """Share of the query heads on a rank: whole heads, padded where they do not divide."""
        return ceil(self.heads / tp) / self.heads


def heads_of(d: Dimensions) -> tuple[Heads, Heads]:
    """The heads of a layer without a window, and those of a windowed layer."""
    projected = _or(d.kv_projected, d.kv_elements)
    return (
        Heads(
            heads=d.heads, kv_heads=d.kv_heads, qk_size=d.qk_size, v_size=d.v_size, kv_elements=d.kv_elements,
            projected=projected,
        ),
        Heads(
            heads=_or(d.local_heads, d.heads),
            kv_heads=_or(d.local_kv_heads, d.kv_heads),
            qk_size=_or(d.local_qk_size, d.qk_size),
            v_size=_or(d.local_v_size, d.v_size),
            kv_elements=_or(d.local_kv_elements, d.kv_elements),
            projected=_or(d.local_kv_projected, _or(d.local_kv_elements, projected)),
        ),
    )  # fmt: skip


def _or(own: Number, other: Number) -> Number:
    return where(own > 0.0, own, other)


def mean(d: Dimensions, of: Callable[[Heads], Number]) -> Number:
    """The mean of a number over all layers; those without attention have none of it.

    Args:
        d: The transformer.
        of: The number of a layer with some heads.
    """
    full, local = heads_of(d)
    windowed = d.windowed_layers / d.layers
    whole = (1.0 - d.unattended_layers / d.layers - windowed) * of(full)
    return whole if type(windowed) is float and not windowed else whole + windowed * of(local)


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
        attended: Share of the layers with attention.
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
    attended: Number
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

    def part(of: Callable[[Reach], Number], *parts: Reach) -> Number:
        return sum((one.layers / d.layers / one.stride * of(one) for one in parts), 0.0)

    def parts(name: str, of: Callable[[Reach], Number]) -> dict[str, Number]:
        return {
            f"{name}_full": part(of, everywhere, pooled),
            f"{name}_window": part(of, window),
            f"{name}_chosen": part(of, chosen),
        }

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
        **parts("score", lambda one: one.heads.width),
        **parts("read", lambda one: one.heads.kv_elements),
        **parts("rows", lambda one: one.heads.heads),
        kept_full=part(lambda one: one.heads.kv_elements, everywhere, chosen, pooled),
        kept_window=part(lambda one: one.heads.kv_elements, window),
        local_heads=local.heads,
        local_kv_heads=local.kv_heads,
        local_scores=windowed * local.width,
        local_kv=windowed * local.kv_elements,
        local_projected=windowed * local.projected,
        projected=projected,
        causal=d.causal,
        attended=attended,
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


def attended_keys(model: Transformer, seq: Number, written_half: Number, flash: Number = 1.0) -> Number:
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
