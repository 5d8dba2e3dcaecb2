"""The kind Model: the dimensions of a transformer, from which its parameters and its work are counted."""

from __future__ import annotations

from typing import Annotated, Literal

from attrs import frozen

from trnspec.model.annotations import Count, Least, Precision, Rounded
from trnspec.model.document import PathText
from trnspec.model.ref import Ref
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class LatentAttention(ShortRepr):
    """Multi-head latent attention: keys and values of all heads are stored as one compressed vector.

    Attributes:
        query_rank: Size of the compressed query; absent where queries are not compressed. Example: 1536
        rank: Size of the compressed key and value. Example: 512
        nope_size: Size of the part of a key without position. Example: 128
        rope_size: Size of the part of a key with the position, shared by all heads. Example: 64
        value_size: Size of a value. Example: 128
    """

    query_rank: Count | None = None
    rank: Count
    nope_size: Count
    rope_size: Count
    value_size: Count


@frozen(kw_only=True, repr=False)
class Indexer(ShortRepr):
    """The indexer of sparse attention: it scores every key with few small heads, and attention reads the best ones only.

    Attributes:
        keys: Keys that a query attends to at most. Example: 2048
        heads: Heads of the indexer. Example: 64
        size: Size of its queries and of its one key per token, which is cached. Example: 128
        layers: Layers with an indexer of their own; all with attention if omitted. Layers without one attend to the keys
            that an earlier layer chose. Example: 22
        sparse: Layers whose attention is sparse; all with attention if omitted. Example: 57
    """

    keys: Count
    heads: Count
    size: Count
    layers: Count | None = None
    sparse: Count | None = None


@frozen(kw_only=True, repr=False)
class Pooling(ShortRepr):
    """Keys that several tokens share, which learned weights pool (compressed attention of DeepSeek-V4).

    Every layer with pooled keys also attends to the window. With an indexer its layers choose among the keys of few tokens,
    and their windows overlap; the other layers attend to all keys of many tokens.

    Attributes:
        chosen: Tokens that share a key in the layers with an indexer. Example: 4
        all: Tokens that share a key in the layers that attend to all of them. Example: 128
        layers: Layers that attend to all of them. Example: 20
    """

    chosen: Count
    all: Count
    layers: Count


@frozen(kw_only=True, repr=False)
class GroupedOutput(ShortRepr):
    """The output projection of attention in two parts: of groups of heads to compressed vectors, and of these to the result.

    Attributes:
        groups: Groups of heads. Example: 8
        rank: Size of the compressed vector of a group. Example: 1024
    """

    groups: Count
    rank: Count


@frozen(kw_only=True, repr=False)
class LocalAttention(ShortRepr):
    """The attention of windowed layers where it differs from that of the others; what is omitted is the same.

    Attributes:
        heads: Query heads. Example: 96
        kv_heads: Heads of keys and values. Example: 8
        head_size: Size of one head. Example: 256
        value_size: Size of a value, where it differs from head_size. Example: 128
        values: Whether values have a matrix of their own, or are the keys.
        sinks: Whether each head has a learned sink.
    """

    heads: Count | None = None
    kv_heads: Count | None = None
    head_size: Count | None = None
    value_size: Count | None = None
    values: Literal["own", "keys"] | None = None
    sinks: Literal["none", "head"] | None = None


@frozen(kw_only=True, repr=False)
class Attention(ShortRepr):
    """The attention of the layers that have it: every layer, unless layers is stated or there is a recurrence.

    Attributes:
        layers: Layers with attention; all that have no recurrence if omitted. Example: 12
        heads: Query heads. Example: 32
        kv_heads: Heads of keys and values; fewer than heads in grouped-query attention, one in multi-query. Example: 8
        head_size: Size of one head. Example: 128
        bias: Which projections have a bias: those of queries, keys and values, that of the result, or all.
        value_size: Size of a value, where it differs from head_size. Example: 128
        norm: Whether queries and keys are normalised: head by head, all heads together, or keys alone with a weight.
        gate: Whether the heads' output is multiplied by a gate of the layer's input: one per head, or one per element.
        latent: The sizes of latent attention; head_size and kv_heads are then ignored.
        window: Window of sliding-window attention, in tokens. Example: 128
        windowed: Number of layers with sliding-window attention; all if a window is given and this is omitted. Example: 18
        local: What differs in windowed layers.
        values: Whether values have a matrix of their own, are the keys before their normalisation and rotation, or share one
            cached vector with them.
        query_rank: Size that queries are compressed to, without latent attention. Example: 1024
        output: The output projection where it has two parts.
        sinks: Whether each head has a learned sink.
        indexer: The indexer of sparse attention.
        pooling: Keys that several tokens share.
    """

    layers: Count | None = None
    heads: Count
    kv_heads: Count
    head_size: Count
    value_size: Count | None = None
    bias: Literal["none", "qkv", "output", "all"] = "none"
    norm: Literal["none", "head", "all", "keys"] = "none"
    gate: Literal["none", "head", "element"] = "none"
    latent: LatentAttention | None = None
    window: Count | None = None
    windowed: Count | None = None
    local: LocalAttention | None = None
    values: Literal["own", "keys", "shared"] = "own"
    query_rank: Count | None = None
    output: GroupedOutput | None = None
    sinks: Literal["none", "head"] = "none"
    indexer: Indexer | None = None
    pooling: Pooling | None = None


@frozen(kw_only=True, repr=False)
class Recurrence(ShortRepr):
    """Layers that keep a state of fixed size in place of keys and values: Mamba-2, a gated delta net, or Kimi Delta Attention.

    The state of a head is a matrix of key_size by value_size. A short convolution runs over keys, values and queries.

    Attributes:
        form: Mamba-2 (Dao and Gu 2024), a gated delta net (Yang et al. 2024), or Kimi Delta Attention (Kimi Team 2025), whose
            states decay by channel.
        layers: Layers with it. Example: 36
        heads: Heads, each with a state. Example: 32
        key_heads: Heads of keys and queries; groups in Mamba-2. Example: 16
        key_size: Size of a key; the state size in Mamba-2. Example: 128
        value_size: Size of a value; the head size in Mamba-2. Example: 64
        kernel: Tokens that the convolution covers. Example: 4
        gate_rank: Size that Kimi Delta Attention compresses its output gate to; absent where it does not. Example: 128
        bias: Whether the projections have a bias.
    """

    form: Literal["mamba2", "gated-delta", "kda"]
    layers: Count
    heads: Count
    key_heads: Count
    key_size: Count
    value_size: Count
    kernel: Count = 4
    gate_rank: Count | None = None
    bias: Literal["none", "all"] = "none"


@frozen(kw_only=True, repr=False)
class FeedForward(ShortRepr):
    """The feed-forward network of a dense layer.

    Attributes:
        layers: Layers with it; all without experts if omitted. Example: 54
        width: Its inner width. Example: 14336
        form: With a gate it has three matrices, without one two.
        bias: Whether its matrices have a bias.
    """

    layers: Count | None = None
    width: Count
    form: Literal["gated", "plain"]
    bias: Literal["none", "all"] = "none"


@frozen(kw_only=True, repr=False)
class Experts(ShortRepr):
    """The routed and shared experts of a mixture-of-experts layer.

    Attributes:
        layers: Layers with experts; all but the dense ones if omitted. Example: 40
        count: Routed experts of a layer. Example: 8
        active: Routed experts per token. Example: 2
        width: Inner width of one expert. Example: 14336
        form: With a gate an expert has three matrices, without one two.
        bias: Whether the matrices have a bias.
        router_bias: Whether the router has a bias, one element per expert.
        shared: Experts that process every token. Example: 1
        shared_width: Inner width of a shared expert; that of a routed one if omitted. Example: 2048
        shared_gate: Whether the output of the shared experts is multiplied by a gate of the layer's input.
        latent: Size that tokens are projected to for the routed experts, and back after them. Example: 1024
        latent_norm: Whether what is projected back is normalised before.
        dense_layers: Layers at the beginning that have a feed-forward network instead. Example: 3
        hashed: Layers that select the experts of a token by a table instead of a router's scores, and have no bias. Example: 3
    """

    layers: Count | None = None
    count: Count
    active: Count
    width: Count
    form: Literal["gated", "plain"]
    bias: Literal["none", "all"] = "none"
    router_bias: Literal["none", "expert"] = "none"
    shared: Count | None = None
    shared_width: Count | None = None
    shared_gate: Literal["none", "one"] = "none"
    latent: Count | None = None
    latent_norm: Literal["none", "one"] = "none"
    dense_layers: Count | None = None
    hashed: Count | None = None


ParameterCount = Annotated[int, Least(1), Rounded()]
"""A number of parameters: exact, or as a publisher rounds it."""


@frozen(kw_only=True, repr=False)
class Parameters(ShortRepr):
    """Parameter counts as published, exact or rounded (``70.6 B``, ``671B``); checked against the dimensions.

    Attributes:
        total: All parameters, a tied matrix counted once. Example: 8030261248
        active: Active parameters: those used for one token; a rounded number may leave out the embedding. Example: 37B
        non_embedding: All parameters without the embedding and the output matrix. Example: 6.53B
    """

    total: ParameterCount | None = None
    active: ParameterCount | None = None
    non_embedding: ParameterCount | None = None


@frozen(kw_only=True, repr=False)
class Base(ShortRepr):
    """The model whose dimensions a model has, as its publisher states: a predecessor, or the model it was trained from.

    Attributes:
        model: The other model. Example: llama-3.1-70b
        differs: The dimensions that differ from those of the other model; all others are the same. Example: spec.context
    """

    model: Ref[Model]
    differs: tuple[PathText, ...] = ()


@frozen(kw_only=True, repr=False)
class Model(ShortRepr):
    """A transformer.

    Attributes:
        form: A decoder with causal attention, or an encoder that attends to all of its input.
        layers: Layers; where a layer is attention, a recurrence or a feed-forward network alone, each counts. Example: 32
        hidden: Width of the residual stream. Example: 4096
        vocabulary: Rows of the embedding, padding included where it is stored. Example: 128256
        context: Longest supported input, in tokens. Example: 131072
        positions: The encoding of positions; learned ones are a matrix of context rows.
        embeddings: Whether the output matrix is the embedding again.
        norm: Layer norms have a weight and a bias, RMS norms a weight.
        segments: Kinds of segments that have an embedding. Example: 2
        norms: Normalisations in a layer. Example: 2
        final_norm: Whether the last layer's output is normalised.
        embedding_norm: Whether the embedding's output is normalised.
        attention: The attention of every layer, or of those without a recurrence.
        recurrence: The recurrence of the other layers.
        feed_forward: The feed-forward network of the dense layers; absent where every layer has experts.
        experts: The experts, where there are any.
        head: The output head of BERT, for masked-language modelling and next-sentence prediction; or the bias of the output
            matrix.
        streams: Residual streams that hyper-connections mix before and after attention and network. Example: 4
        block: Layers of a block whose summed results the attention and the network of every layer attend to (attention
            residuals, Kimi Team 2026). Example: 12
        mtp: Modules of multi-token prediction, trained with the model and left out in inference. Each is a layer of the kind
            of the last one, with a matrix that joins the hidden state with the embedding of the next token. Example: 1
        precision: The number format the weights are published in. Example: bf16
        parameters: Parameter counts as published.
        base: A model with the same dimensions, apart from those listed; both are checked against each other.
    """

    form: Literal["decoder", "encoder"] = "decoder"
    layers: Count
    hidden: Count
    vocabulary: Count
    context: Count
    positions: Literal["learned", "rotary", "none"]
    embeddings: Literal["tied", "untied"]
    norm: Literal["layer", "rms"]
    segments: Count | None = None
    norms: Count = 2
    final_norm: Literal["none", "one"] = "one"
    embedding_norm: Literal["none", "one"] = "none"
    attention: Attention
    recurrence: Recurrence | None = None
    feed_forward: FeedForward | None = None
    experts: Experts | None = None
    head: Literal["none", "bert", "bias"] = "none"
    streams: Count | None = None
    block: Count | None = None
    mtp: Count | None = None
    precision: Precision | None = None
    parameters: Parameters | None = None
    base: Base | None = None
