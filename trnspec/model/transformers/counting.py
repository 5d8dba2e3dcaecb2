"""The matrices and the parameters of a transformer, counted from its dimensions.

The forms are those of the published code: GPT-2 (biases, learned positions, a tied output), Llama (a gate, grouped
queries, no biases), DeepSeek-V3 (latent attention, shared experts, dense layers first), DeepSeek-V3.2 (an indexer), GPT-OSS
(sinks, biases of experts and router), Qwen3 (norms of queries and keys), Qwen3-Next (gated delta nets), Nemotron-H (Mamba-2,
layers of a single operation) and BERT (segments, a norm of the embedding, a head).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

from trnspec.errors import UsageError
from trnspec.model.reflection import dotted
from trnspec.model.transformers.contradictions import contradictions, layers_of
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.model.transformers.model import Attention, Experts, Indexer, LatentAttention, Model, Pooling, Recurrence

_MATRICES = {"gated": 3, "plain": 2}
_DEFAULTS = [f.name for f in attrs.fields(Dimensions) if f.default == 0.0]


def dimensions(spec: Model) -> Dimensions:
    """A model as floats.

    Raises:
        UsageError: Its counts contradict each other; the message names the first that does.
    """
    counted = _counted(spec)
    return Dimensions(**{f.name: float(getattr(counted, f.name)) for f in attrs.fields(Dimensions)})


def parameters(d: Dimensions) -> float:
    """All parameters, a tied matrix counted once, multi-token prediction included.

    For GPT-2's form this is ``12 L h^2 + 13 L h + (V + s) h + 2 h`` (Narayanan et al. 2021, equation 2, with the final
    norm), for Llama's ``2 V h + L (2 h a d + 2 h g d + 3 h f + 2 h) + h``.
    """
    return (
        d.layers * (d.attention_weights + d.attention_small)
        + (d.layers - d.expert_layers) * (d.mlp_weights + d.mlp_small)
        + d.expert_layers * d.experts * (d.expert_weights + d.expert_small)
        + d.expert_layers * (d.shared_weights + d.shared_small + d.router_weights + d.router_small)
        + d.embedding
        + d.positions
        + (0 if d.tied else d.head)
        + d.outer_small
        + d.outer_weights
        + mtp_parameters(d)
    )


def mtp_parameters(d: Dimensions) -> float:
    """Parameters of the modules of multi-token prediction, which share embedding and output with the model.

    Each has a layer of the kind of the last one, a matrix of ``2 h`` by ``h``, and norms of its two inputs and of its output
    (DeepSeek-AI 2024, DeepSeek-V3, arXiv 2412.19437, section 2.2).
    """
    router = d.router_weights + d.router_small
    experts = d.experts * (d.expert_weights + d.expert_small) + d.shared_weights + d.shared_small + router
    network = experts if d.expert_layers else d.mlp_weights + d.mlp_small
    return d.mtp_layers * (d.attention_weights + d.attention_small + network + d.mtp_weights + d.mtp_small)


def active_parameters(d: Dimensions) -> float:
    """The active parameters: all but those of the experts that a token is not routed to, and of multi-token prediction.

    The embedding and the whole router count, as in Megatron-LM's figures for Mixtral (46.70 and 12.88 billion); so does
    the router's bias, since choosing the largest scores reads all of it.
    """
    return (
        parameters(d)
        - mtp_parameters(d)
        - d.expert_layers * (d.experts - d.active) * (d.expert_weights + d.expert_small)
    )


def parameters_of(spec: Model) -> int:
    """All parameters of a model, exact.

    Raises:
        UsageError: Its counts contradict each other; the message names the first that does.
    """
    return int(parameters(_counted(spec)))


def active_parameters_of(spec: Model) -> int:
    """The active parameters of a model, exact.

    Raises:
        UsageError: Its counts contradict each other; the message names the first that does.
    """
    return int(active_parameters(_counted(spec)))


def _counted(spec: Model) -> Dimensions:
    wrong = next(contradictions(spec), None)
    if wrong is not None:
        place = f"{dotted(wrong.path)}: " if wrong.path else ""
        raise UsageError(f"{place}{wrong.message}; {wrong.hint}")
    return sizes(spec)


def sizes(spec: Model) -> Dimensions:
    """The dimensions as integers, which stay exact however large they are, whether or not they contradict each other.

    Every count in them grows with every count of the model.
    """
    h, attention, ffn, bert = spec.hidden, spec.attention, spec.feed_forward, spec.head == "bert"
    norm = h if spec.norm == "rms" else 2 * h
    embedding = spec.vocabulary * h
    learned = spec.context * h if spec.positions == "learned" else 0
    window = attention.window or 0
    attended, recurrent, dense, with_experts = layers_of(spec)
    plain = spec.layers - with_experts  # those without experts, over which a dense network is averaged
    windowed = (attention.windowed or attended) if window else 0
    if attention.pooling is not None:
        windowed = attention.windowed or 0  # the other layers have a window besides
    counts: dict[str, Any] = {
        **dict.fromkeys(_DEFAULTS, 0),  # integers, where the class has floats
        **_attention(attention, h),
        **({} if spec.experts is None else _experts(spec.experts, h, with_experts)),
    }
    counts |= {
        "expert_layers": with_experts,
        "unattended_layers": spec.layers - attended,
        "absent_results": spec.layers - attended - recurrent + (plain - dense if dense else 0),
    }
    local = _attention(local_of(attention), h)
    for name in ("attention_weights", "attention_small"):
        counts[name] = counts[name] * (attended - windowed) + local[name] * windowed
    if attention.local is not None and windowed:
        own = ("kv_heads", "qk_size", "v_size", "kv_elements", "kv_projected")
        counts |= {"local_heads": local_of(attention).heads} | {f"local_{name}": local[name] for name in own}
    if attention.indexer is not None:
        counts |= _indexer(counts, attention.indexer, attention, attended, h)
    if attention.pooling is not None:
        counts |= _pooling(counts, attention.pooling, attention, h)
    n = spec.streams or 0
    if n:
        # A norm without weights, a matrix to the weights of n inputs, n outputs and n by n streams, and three scales.
        counts["attention_weights"] += spec.layers * 2 * (n + 2) * n * n * h
        counts["attention_small"] += spec.layers * 2 * ((n + 2) * n + 3)
    if spec.recurrence is not None:
        counts |= _recurrences(counts, spec.recurrence, h)
    if spec.block is not None:
        counts["attention_small"] += spec.layers * 4 * h  # a query and a norm, before attention and before the network
    for name in ("attention_weights", "attention_small"):
        counts[name] = _average(counts[name], spec.layers)
    counts["attention_small"] += spec.norms * norm
    if ffn is not None and plain:
        weights = _MATRICES[ffn.form] * h * ffn.width
        biases = _biases(ffn.form, h, ffn.width) if ffn.bias == "all" else 0
        counts |= {
            "matrices": _MATRICES[ffn.form],
            "width": _average(dense * ffn.width, plain),
            "mlp_weights": _average(dense * weights, plain),
            "mlp_small": _average(dense * biases, plain),
        }
    outer = (0 if spec.block is None else 2 * h) + norm * ((spec.final_norm == "one") + (spec.embedding_norm == "one"))
    counts |= {
        "layers": spec.layers,
        "hidden": h,
        "vocabulary": spec.vocabulary,
        "context": spec.context,
        "heads": attention.heads,
        "window": window,
        "windowed_layers": windowed,
        "causal": 1 if spec.form == "decoder" else 0,
        "embedding": embedding,
        "positions": learned + (spec.segments or 0) * h,
        "head": embedding,
        "tied": 1 if spec.embeddings == "tied" else 0,
        # BERT: the biases of pooler and transform, the transform's layer norm, the biases of both outputs.
        "outer_small": outer
        + (n + 1 if n else 0)
        + {"none": 0, "bert": 4 * h + spec.vocabulary + 2, "bias": spec.vocabulary}[spec.head],
        # BERT: pooler and transform, and the matrix of next-sentence prediction.
        "outer_weights": (2 * h * h + 2 * h if bert else 0) + n * n * h,
        "mtp_layers": spec.mtp or 0,
        "mtp_weights": 2 * h * h if spec.mtp else 0,
        "mtp_small": 3 * norm if spec.mtp else 0,
    }
    return Dimensions(**counts)


def local_of(attention: Attention) -> Attention:
    """The attention of windowed layers."""
    own = attention.local
    if own is None:
        return attention
    stated = {f.name: getattr(own, f.name) for f in attrs.fields(type(own)) if getattr(own, f.name) is not None}
    if "head_size" in stated:
        stated = {"value_size": None} | stated  # a value has the size of the other heads only where it is stated
    return attrs.evolve(attention, **stated)


def _average(total: int, layers: int) -> int | Fraction:
    """A total over some layers; exact, whether or not they divide it."""
    average = Fraction(total, layers)
    return average.numerator if average.denominator == 1 else average


def _biases(form: str, hidden: int, width: int) -> int:
    """One bias for each output of each matrix: the inner width for the input matrices, the hidden size for the output one."""
    return (_MATRICES[form] - 1) * width + hidden


def _attention(attention: Attention, h: int) -> dict[str, int]:
    """One layer's attention; in the GPT form ``4 h^2``, with grouped queries ``2 h a d + 2 h g d``."""
    if attention.latent is not None:
        return _latent(attention, attention.latent, h)
    size, value = attention.head_size, attention.value_size or attention.head_size
    queries, outputs = attention.heads * size, attention.heads * value
    keys, values = attention.kv_heads * size, attention.kv_heads * value
    small = attention.heads if attention.sinks == "head" else 0
    small += {"none": 0, "head": 2 * size, "all": queries + keys, "keys": size}[attention.norm]
    projected = keys + (values if attention.values == "own" else 0)
    rank, grouped = attention.query_rank, attention.output
    small += rank or 0  # the norm of compressed queries
    queried = h * queries if rank is None else h * rank + rank * queries
    returned = h * outputs if grouped is None else grouped.rank * (outputs + grouped.groups * h)
    small += queries + projected if attention.bias in {"qkv", "all"} else 0
    small += h if attention.bias in {"output", "all"} else 0
    return {
        "kv_heads": attention.kv_heads,
        "qk_size": size,
        "v_size": value,
        "kv_elements": keys + (0 if attention.values == "shared" else values),
        "kv_projected": projected,
        "attention_weights": queried + returned + h * (projected + _gate(attention, outputs)),
        "attention_small": small,
    }


def _gate(attention: Attention, outputs: int) -> int:
    """Columns of the matrix of the output gate."""
    return {"none": 0, "head": attention.heads, "element": outputs}[attention.gate]


def _latent(attention: Attention, latent: LatentAttention, h: int) -> dict[str, int]:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1 and table 1).

    The cache holds the compressed vector and the shared positional key, ``rank + rope_size`` elements, which all
    heads share: tensor parallelism cannot split them. Biases are those of the published code: of the compression
    matrices, and of the output. The compressed vectors are normalised.
    """
    heads, size = attention.heads, latent.nope_size + latent.rope_size
    rank = latent.query_rank
    queries = h * heads * size if rank is None else h * rank + rank * heads * size
    squeezed = latent.rank + latent.rope_size
    keys = h * squeezed + latent.rank * heads * (latent.nope_size + latent.value_size)
    norms = (rank or 0) + latent.rank
    small = norms
    small += heads if attention.sinks == "head" else 0
    small += (rank or heads * size) + squeezed if attention.bias in {"qkv", "all"} else 0
    small += h if attention.bias in {"output", "all"} else 0
    return {
        "kv_heads": 1,
        "qk_size": size,
        "v_size": latent.value_size,
        "kv_elements": squeezed,
        "kv_projected": squeezed,
        "rank": latent.rank,
        "attention_weights": queries
        + keys
        + heads * latent.value_size * h
        + h * _gate(attention, heads * latent.value_size),
        "attention_small": small,
        "latent_norms": norms,
    }


def _indexer(counts: dict[str, Any], indexer: Indexer, attention: Attention, attended: int, h: int) -> dict[str, Any]:
    """The indexers of all layers, added to the attention of all layers (DeepSeek-AI 2025, DeepSeek-V3.2, section 2.1).

    With latent attention queries are made from the compressed query, and each head has a weight that is made from the
    layer's input.  Norms: a layer norm of the key (DeepSeek-V3.2), or one RMS norm each of query and key (MiniMax-M3).
    """
    layers, width = indexer.layers or attended, indexer.heads * indexer.size
    latent, pooled = attention.latent, attention.pooling
    inputs = (attention.query_rank if latent is None else latent.query_rank) or h
    # Pooled keys have two matrices for the keys, whose windows overlap, and two for the weights of the tokens.
    keys = (1 if pooled is None else 4) * h * indexer.size
    weights = inputs * width + keys + (0 if latent is None and pooled is None else h * indexer.heads)
    small = 2 * indexer.size if pooled is None else (1 + 2 * pooled.chosen) * indexer.size
    return {
        "sparse_layers": indexer.sparse or attended,
        "sparse_keys": indexer.keys,
        "index_layers": layers,
        "index_width": width,
        "index_size": indexer.size,
        "attention_weights": counts["attention_weights"] + layers * weights,
        "attention_small": counts["attention_small"] + layers * small,
    }


def _pooling(counts: dict[str, Any], pooling: Pooling, attention: Attention, h: int) -> dict[str, Any]:
    """Parameters that pool keys, of all layers with pooled keys: matrices for keys and weights, biases of positions, a norm.

    Where windows overlap, each token has two keys (DeepSeek-AI 2026, DeepSeek-V4, section 2.3).
    """
    size, chosen = attention.kv_heads * attention.head_size, counts["sparse_layers"]
    return {
        "sparse_stride": pooling.chosen,
        "pooled_layers": pooling.layers,
        "pooled_stride": pooling.all,
        "beside_layers": chosen + pooling.layers,
        "attention_weights": counts["attention_weights"] + (2 * chosen + pooling.layers) * 2 * h * size,
        "attention_small": counts["attention_small"]
        + chosen * (2 * pooling.chosen + 1) * size
        + pooling.layers * (pooling.all + 1) * size,
    }


def _recurrences(counts: dict[str, Any], recurrence: Recurrence, h: int) -> dict[str, Any]:
    """The recurrences of all layers, added to the attention of all layers.

    Mamba-2 (Dao and Gu 2024, section 7.1) projects the input to gate, values, keys, queries and a step per head; a gated
    delta net (Yang et al. 2024, section 3.4) to a second scalar per head.  FLOP per token and head with a state of ``n``
    elements are those that Megatron Bridge counts (training/utils/flop_utils.py): ``7 n`` for the scan of Mamba-2, and
    ``8 n`` for a gated delta net, whose four products each cost ``2 n``; Kimi Delta Attention has the same four.
    """
    mamba, by_channel = recurrence.form == "mamba2", recurrence.form == "kda"
    layers, heads = recurrence.layers, recurrence.heads
    keys, values = recurrence.key_heads * recurrence.key_size, heads * recurrence.value_size
    convolved = 2 * keys + values
    inputs = convolved + values + heads * (1 if mamba else 2)
    state = heads * recurrence.key_size * recurrence.value_size
    # Mamba-2: step, decay and skip of each head, the norm of all heads, biases of the convolution. Delta net: step and decay
    # of each head, and a norm of one head.
    small = 3 * heads + values + convolved if mamba else 2 * heads + recurrence.value_size
    small += inputs + h if recurrence.bias == "all" else 0
    projections = h * inputs
    if by_channel:
        # Decays of all channels come from a compressed vector of the size of a key, and so may the output gate.
        rank, gate = recurrence.key_size, recurrence.gate_rank
        gates = h * values if gate is None else gate * (h + values)
        projections = h * (convolved + heads) + rank * (h + keys) + gates
        small = keys + heads + recurrence.value_size
    return {
        "recurrence": layers * (Fraction(7, 2) if mamba else 4) * state,
        "state": layers * (state + convolved * (recurrence.kernel - 1)),
        "recurrent_width": layers * (inputs + values),
        "attention_weights": counts["attention_weights"]
        + layers * (projections + recurrence.kernel * convolved + values * h),
        "attention_small": counts["attention_small"] + layers * small,
    }


def _experts(experts: Experts, h: int, layers: int) -> dict[str, int | Fraction]:
    """One layer's experts: each is a feed-forward network, and the router has one row of ``h`` for each routed one."""
    matrices, shared = _MATRICES[experts.form], experts.shared or 0
    width, inner = experts.shared_width or experts.width, experts.latent or h
    biased = experts.bias == "all"
    projected = 2 * h * experts.latent if experts.latent is not None else 0
    return {
        "matrices": matrices,
        "experts": experts.count,
        "active": experts.active,
        "expert_hidden": inner if inner != h else 0,
        "expert_width": experts.width,
        "expert_weights": matrices * inner * experts.width,
        "expert_small": _biases(experts.form, inner, experts.width) if biased else 0,
        "shared_weights": shared * matrices * h * width + projected,
        "shared_width": shared * width,
        "shared_small": (shared * _biases(experts.form, h, width) if biased else 0)
        + (inner if experts.latent_norm == "one" else 0),
        "router_weights": h * (experts.count + (experts.shared_gate == "one")),
        "router_small": _average(experts.count * (layers - (experts.hashed or 0)), max(layers, 1))
        if experts.router_bias == "expert"
        else 0,
    }
