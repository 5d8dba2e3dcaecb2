"""A transformer as the engine multiplies it: per average layer, whatever its layers are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.ops import Number

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions


@frozen(kw_only=True)
class Transformer:
    """The averages over the layers of a model, so that a layer is one row of numbers.

    Attributes:
        layers: Layers.
        hidden: Width of the residual stream.
        vocabulary: Columns of the output matrix.
        heads: Query heads.
        kv_heads: Heads of keys and values.
        kv_elements: Elements of the cache for one token and layer.
        weights: Elements of the matrices that a token meets in a layer: attention, dense and active experts.
        whole: Elements of the matrices of a layer that every rank of an expert group keeps: attention, dense, shared.
        routed: Elements of the matrices of all routed experts of a layer.
        small: Elements of a layer's norms and biases.
        scores: Width of queries and values of all heads together: what a pair of tokens costs in FLOP, halved.
        wide: Elements per token that matrix multiplications read and write on the residual stream.
        split: Elements per token that they read and write where tensor parallelism splits them.
        dispatched: Copies of a token that all-to-all carries, per layer: active experts times the share of layers.
        embedding: Elements of the embedding, positions included.
        output: Elements of the output matrix.
        tied: 1.0 where the output matrix is the embedding.
        outer: Norms, biases and matrices outside the layers.
        window: Tokens a windowed layer looks back; 0 for none.
        windowed: Share of the layers that do.
        causal: 1.0 when a token sees only those before it.
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
    wide: Number
    split: Number
    dispatched: Number
    embedding: Number
    output: Number
    tied: Number
    outer: Number
    window: Number
    windowed: Number
    causal: Number


def transformer(d: Dimensions) -> Transformer:
    """The averages over the layers of a model."""
    experts = d.expert_layers / d.layers
    dense = 1.0 - experts if d.mlp_weights else 0.0
    gated = d.matrices - 1.0
    active = d.active * d.expert_width + d.shared_width
    feed = dense * d.width + experts * active
    # Queries, keys and values leave from the residual stream, the output projection and the networks return to it.
    copies = dense + experts * (d.active + (1.0 if d.shared_width else 0.0))
    qkv = d.heads * d.qk_size + d.kv_elements
    return Transformer(
        layers=d.layers,
        hidden=d.hidden,
        vocabulary=d.vocabulary,
        heads=d.heads,
        kv_heads=d.kv_heads,
        kv_elements=d.kv_elements,
        weights=d.attention_weights
        + dense * d.mlp_weights
        + experts * (d.active * d.expert_weights + d.shared_weights + d.router_weights),
        whole=d.attention_weights + dense * d.mlp_weights + experts * (d.shared_weights + d.router_weights),
        routed=experts * d.experts * d.expert_weights,
        small=d.attention_small + dense * d.mlp_small + experts * (d.experts * d.expert_small + d.shared_small),
        scores=d.heads * (d.qk_size + d.v_size),
        wide=2.0 * d.hidden + copies * 2.0 * d.hidden,
        split=qkv + d.heads * d.v_size + feed * (gated + 1.0),
        dispatched=experts * d.active,
        embedding=d.embedding + d.positions,
        output=d.head,
        tied=d.tied,
        outer=d.outer_small + d.outer_weights,
        window=d.window,
        windowed=d.windowed_layers / d.layers,
        causal=d.causal,
    )


def parameters(model: Transformer) -> Number:
    """All parameters: the layers', the embedding's, and the output matrix where it is not the embedding."""
    layers = model.layers * (model.whole + model.routed + model.small)
    return layers + model.embedding + model.output * (1.0 - model.tied) + model.outer
