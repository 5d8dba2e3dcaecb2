"""The dimensions of a transformer, from which work, parameters and memory are computed."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Dimensions:
    """A transformer as floats, ready for formulas; all counts are exact below 2^53.

    Matrices are given by their number of elements, since a matrix of ``e`` elements costs ``2 e`` FLOP per token.  Where
    layers differ, those of attention and recurrences are averages over all layers, and those of dense networks averages over
    the layers without experts.

    Windowed layers may have heads of their own: a field ``local_...`` is that of a windowed layer, or 0 where it is the same.

    Attributes:
        layers: Layers, dense ones and those with experts.
        expert_layers: Layers with experts.
        hidden: Width of the residual stream.
        vocabulary: Rows of the embedding.
        context: Longest supported input, in tokens.
        heads: Query heads.
        kv_heads: Heads of keys and values; the limit for splitting the cache by tensor parallelism.
        qk_size: Size of one query or key in the multiplication.
        v_size: Size of one value in the multiplication.
        kv_elements: Elements of the cache for one token and layer.
        kv_projected: Of those, the elements that a matrix of the layer computes, where values are the keys; 0 for all.
        rank: Elements of the compressed vector of latent attention; 0 without it.
        window: Window of sliding-window attention, in tokens; 0 for none.
        windowed_layers: Layers with sliding-window attention.
        beside_layers: Layers whose queries attend to a window in addition to the keys that an indexer chooses or to pooled keys.
        local_heads: Query heads of a windowed layer.
        local_kv_heads: Heads of keys and values of a windowed layer.
        local_qk_size: Size of one query or key of a windowed layer.
        local_v_size: Size of one value of a windowed layer.
        local_kv_elements: Elements of the cache for one token of a windowed layer.
        local_kv_projected: Of those, the elements that a matrix of the layer computes.
        unattended_layers: Layers without attention: those with a recurrence, and those of a feed-forward network alone.
        sparse_layers: Layers whose queries attend to the keys that an indexer chooses; all keys are cached.
        sparse_keys: The keys that it chooses for a query.
        sparse_stride: Tokens that share a key in those layers; 0 for one token a key.
        pooled_layers: Layers whose keys are each of several tokens, and which attend to all of them.
        pooled_stride: Tokens that share a key in those layers.
        index_layers: Layers with an indexer.
        index_width: Width of the indexer's queries, all heads: half of the FLOP of a query-key pair.
        index_size: Elements that an indexer caches for one token.
        recurrence: Multiplications of a token in the recurrences of all layers, in elements of a matrix that costs the same.
        state: Elements of a sequence's states in the recurrences of all layers, in 32 bit.
        recurrent_width: Elements of a token that the recurrences of all layers read and write.
        absent_results: Results on the residual stream that layers of a single operation lack, all together.
        causal: 1.0 if a token attends to the tokens before it only, 0.0 if it attends to all.
        attention_weights: Elements of the matrices of attention or recurrence, one layer.
        attention_small: Biases, norms and sinks of one layer's attention or recurrence, and its block norms.
        matrices: Matrices of a feed-forward network or an expert: 3 with a gate, 2 without.
        width: Inner width of a dense feed-forward network; 0 where there is none.
        mlp_weights: Elements of a dense feed-forward network, one layer.
        mlp_small: Its biases.
        experts: Routed experts of a layer; 0 for none.
        active: Routed experts per token.
        expert_hidden: Size of the vectors that routed experts process; 0 for the hidden size.
        expert_width: Inner width of a routed expert.
        expert_weights: Elements of the matrices of one routed expert.
        expert_small: Biases of one routed expert.
        shared_weights: Elements of the matrices of the shared experts of a layer, together, and of the projections to the size
            of its routed experts and back.
        shared_width: Inner width of the shared experts, together.
        shared_small: Their biases.
        router_weights: Elements of a layer's router, and of the gate of its shared experts.
        router_small: Its bias: one element per routed expert, or 0.
        embedding: Elements of the embedding.
        positions: Elements of learned positions and segments.
        head: Elements of the output matrix; counted as parameters only when untied.
        tied: 1.0 when the output matrix is the embedding again.
        outer_small: Norms and biases outside the layers.
        outer_weights: Matrices outside the layers that are neither embedding nor output (BERT's pooler and transform).
        latent_norms: Elements of the norms of compressed vectors (latent attention), one layer.
        mtp_layers: Modules of multi-token prediction, each a further layer of the kind of the last one.
        mtp_weights: Elements of the matrix of a module that joins hidden state and embedding.
        mtp_small: Norms of a module besides those of its layer.
    """

    layers: float
    expert_layers: float = 0.0
    hidden: float
    vocabulary: float
    context: float
    heads: float
    kv_heads: float
    qk_size: float
    v_size: float
    kv_elements: float
    kv_projected: float = 0.0
    rank: float = 0.0
    window: float = 0.0
    windowed_layers: float = 0.0
    beside_layers: float = 0.0
    local_heads: float = 0.0
    local_kv_heads: float = 0.0
    local_qk_size: float = 0.0
    local_v_size: float = 0.0
    local_kv_elements: float = 0.0
    local_kv_projected: float = 0.0
    unattended_layers: float = 0.0
    sparse_layers: float = 0.0
    sparse_keys: float = 0.0
    sparse_stride: float = 0.0
    pooled_layers: float = 0.0
    pooled_stride: float = 0.0
    index_layers: float = 0.0
    index_width: float = 0.0
    index_size: float = 0.0
    recurrence: float = 0.0
    state: float = 0.0
    recurrent_width: float = 0.0
    absent_results: float = 0.0
    causal: float = 1.0
    attention_weights: float
    attention_small: float
    matrices: float
    width: float = 0.0
    mlp_weights: float = 0.0
    mlp_small: float = 0.0
    experts: float = 0.0
    active: float = 0.0
    expert_hidden: float = 0.0
    expert_width: float = 0.0
    expert_weights: float = 0.0
    expert_small: float = 0.0
    shared_weights: float = 0.0
    shared_width: float = 0.0
    shared_small: float = 0.0
    router_weights: float = 0.0
    router_small: float = 0.0
    embedding: float
    positions: float = 0.0
    head: float
    tied: float = 0.0
    outer_small: float = 0.0
    outer_weights: float = 0.0
    latent_norms: float = 0.0
    mtp_layers: float = 0.0
    mtp_weights: float = 0.0
    mtp_small: float = 0.0
