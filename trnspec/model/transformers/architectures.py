"""The architectures of config.json: which keys describe the dimensions, and what the classes fix.

Defaults and fixed properties are those of the classes of Transformers 5.23.0 (``configuration_*.py``, ``modeling_*.py``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from trnspec.model.transformers.config_file import PARTS, Config, ConfigError, Imported
from trnspec.model.transformers.model import (
    Attention,
    Experts,
    FeedForward,
    Indexer,
    LatentAttention,
    Model,
    Recurrence,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Fields = dict[str, Any]
Bias = Literal["none", "qkv", "all"]
NO_WINDOW: Fields = {}


def imported(config: Mapping[str, Any]) -> Imported:
    """The model that a config.json describes.

    The language model of a multimodal model is imported alone.

    Raises:
        ConfigError: An unknown architecture, a missing key without a default, or a key that may matter and is not known.
    """
    part = next((key for key in PARTS if isinstance(config.get(key), dict)), None)
    values = config if part is None else {**_shared(config), **config[part]}
    architecture = values.get("model_type")
    read = ARCHITECTURES.get(architecture) if isinstance(architecture, str) else None
    if read is None:
        known = ", ".join(sorted(ARCHITECTURES))
        message = "config.json has no model_type" if architecture is None else f"model_type is {architecture!r}"
        raise ConfigError("model_type", f"{message}; known: {known}")
    c = Config(values, str(architecture))
    if part is not None:
        c.notes.append(f"The language model alone: {part} of config.json.")
    fields = read(c)
    predicted = [key for key in _PREDICTED if c.get(key, None)]
    if predicted:
        c.notes.append("Modules of multi-token prediction are left out.")
    fields["precision"] = _precision(values, config)
    c.finish()
    return Imported(Model(**fields), tuple(c.notes))


_PREDICTED = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_transformer_layers")


def _shared(config: Mapping[str, Any]) -> Fields:
    """Keys of a multimodal model that its language model inherits."""
    return {key: config[key] for key in ("tie_word_embeddings", "quantization_config") if key in config}


def _precision(values: Mapping[str, Any], outer: Mapping[str, Any]) -> str | None:
    """The number format of quantised weights; ``None`` where config.json describes no quantisation."""
    quantised = values.get("quantization_config") or outer.get("quantization_config")
    if values.get("expert_dtype"):
        return str(values["expert_dtype"])
    if not isinstance(quantised, dict):
        return None
    method = str(quantised.get("quant_algo") or quantised.get("quant_method", ""))
    if method != "compressed-tensors":
        return method.lower() or None
    for group in (quantised.get("config_groups") or {}).values():
        weights = group.get("weights") or {}
        kind = {"float": "fp"}.get(weights.get("type"), weights.get("type"))
        return f"{kind}{weights['num_bits']}"
    return None


def _dense(
    c: Config,
    *,
    layers: str = "num_hidden_layers",
    hidden: str = "hidden_size",
    context: str = "max_position_embeddings",
    tied: bool = False,
    norm: Literal["layer", "rms"] = "rms",
    norms: int = 2,
    positions: Literal["rotary", "learned", "none"] = "rotary",
) -> Fields:
    """What every architecture states: sizes of the residual stream, embedding and norms."""
    return {
        "layers": c.count(layers),
        "hidden": c.count(hidden),
        "vocabulary": c.count("vocab_size"),
        "context": c.count(context),
        "positions": positions,
        "embeddings": "tied" if c.flag("tie_word_embeddings", tied) else "untied",
        "norm": norm,
        "norms": norms,
    }


def _attention(
    c: Config,
    *,
    bias: Bias | tuple[str, bool, Bias] = ("attention_bias", False, "all"),
    size: int | None = None,
    heads: str = "num_attention_heads",
    kv_heads: str = "num_key_value_heads",
    hidden: str = "hidden_size",
    **rest: Any,
) -> Attention:
    """Attention by heads; without a size of its own a head has its share of the hidden size.

    Args:
        c: The config.json.
        bias: Which projections have a bias; or the key that says so, its default, and which.
        size: The default of ``head_dim`` where the class has one.
        heads: The key of the query heads.
        kv_heads: The key of the heads of keys and values; the query heads where it is missing or null.
        hidden: The key of the hidden size.
        rest: Further fields of the attention.
    """
    count = c.count(heads)
    return Attention(
        heads=count,
        kv_heads=c.count(kv_heads) if c.get(kv_heads, None) else count,
        head_size=c.count("head_dim", size) if size or c.get("head_dim", None) else _share(c, hidden, count),
        bias=bias if isinstance(bias, str) else (bias[2] if c.flag(bias[0], bias[1]) else "none"),
        **rest,
    )


def _share(c: Config, hidden: str, heads: int) -> int:
    width = c.count(hidden)
    if width % heads:
        raise ConfigError("head_dim", f"{hidden} is {width}, not a multiple of {heads} heads, and head_dim is missing")
    return width // heads


def _network(
    c: Config,
    *,
    width: str = "intermediate_size",
    form: Literal["gated", "plain"] = "gated",
    bias: bool | tuple[str, bool] = False,
    layers: int | None = None,
) -> FeedForward:
    biased = bias if isinstance(bias, bool) else c.flag(*bias)
    return FeedForward(width=c.count(width), form=form, bias="all" if biased else "none", layers=layers)


def _windows(c: Config, *, default: int | None = None, every: int | tuple[str, int] = 0, key: str = "sliding_window") -> Fields:
    """Window and windowed layers: by ``layer_types``, or all but every n-th layer; with ``every`` 0 all layers.

    Args:
        c: The config.json.
        default: The window where the key is missing.
        every: Every how many layers one has full attention, or the key that says so and its default.
        key: The key of the window.
    """
    layers = c.count("num_hidden_layers")
    window = c.get(key, default)
    types = c.values_of("layer_types", layers)
    period = every if isinstance(every, int) else c.count(*every) if types is None else 0
    if window is None:
        return NO_WINDOW
    if types is not None:
        windowed = sum(t in {"sliding_attention", "chunked_attention"} for t in types)
    else:
        windowed = layers - layers // period if period else layers
    if not windowed:
        return NO_WINDOW
    return {"window": c.count(key, default), "windowed": windowed if windowed < layers else None}


def _decoder(
    c: Config,
    *,
    windows: Callable[[Config], Fields] | None = None,
    network: Callable[[Config], FeedForward] = _network,
    attention: Fields | None = None,
    **outer: Any,
) -> Fields:
    """A decoder of equal layers, each with attention and a dense network."""
    fields = _dense(c, **outer)
    extra = {**(attention or {}), **(windows(c) if windows else {})}
    return fields | {"attention": _attention(c, **extra), "feed_forward": network(c)}


def _experts(
    c: Config,
    fields: Fields,
    *,
    count: str = "num_experts",
    active: str = "num_experts_per_tok",
    width: str = "moe_intermediate_size",
    shared: str | int = 0,
    dense: int = 0,
    dense_width: str = "intermediate_size",
    form: Literal["gated", "plain"] = "gated",
    **rest: Any,
) -> Fields:
    """Experts in all but the first ``dense`` layers."""
    number = shared if isinstance(shared, int) else c.number(shared) if c.get(shared, None) else 0
    fields["experts"] = Experts(
        count=c.count(count),
        active=c.count(active),
        width=c.count(width),
        form=form,
        shared=number or None,
        dense_layers=dense or None,
        **rest,
    )
    if dense:
        fields["feed_forward"] = _network(c, width=dense_width, form=form)
    else:
        c.used.add(dense_width)
        fields.pop("feed_forward", None)
    return fields


def _moe_flags(c: Config, key: str) -> int:
    """Dense layers by a list with 1 for a layer with experts; they are the first ones."""
    layers = c.count("num_hidden_layers")
    value = c.get(key, 1)
    flags = [int(value == 1)] * layers if isinstance(value, int) else c.values_of(key, layers) or []
    dense = flags.count(0)
    if value != 1 and any(flags[:dense]):
        raise ConfigError(key, f"{key} has dense layers after the first one with experts")
    return dense


# Dense decoders.


def _mistral(c: Config) -> Fields:
    return _decoder(c, windows=partial(_windows, default=4096), attention={"bias": "none"})


def _qwen2_windows(c: Config) -> Fields:
    """Layers from ``max_window_layers`` on are windowed, where windows are used at all."""
    layers = c.count("num_hidden_layers")
    types = c.values_of("layer_types", layers)
    window = c.get("sliding_window", None)
    first = c.get("max_window_layers", None)
    if not c.flag("use_sliding_window", False) or window is None:
        return NO_WINDOW
    windowed = layers - int(first or layers) if types is None else types.count("sliding_attention")
    return {"window": window, "windowed": windowed} if windowed > 0 else NO_WINDOW


def _qwen2(c: Config) -> Fields:
    return _decoder(c, windows=_qwen2_windows, attention={"bias": "qkv"})


def _qwen3(c: Config) -> Fields:
    return _decoder(c, windows=_qwen2_windows, attention={"size": 128, "norm": "head"})


def _gemma(c: Config) -> Fields:
    return _decoder(c, tied=True, attention={"size": 256})


def _gemma2(c: Config) -> Fields:
    return _decoder(c, tied=True, norms=4, windows=partial(_windows, default=4096, every=2), attention={"size": 256})


def _gemma3(c: Config) -> Fields:
    windows = partial(_windows, default=4096, every=("sliding_window_pattern", 6))
    return _decoder(c, tied=True, norms=4, windows=windows, attention={"size": 256, "norm": "head"})


def _glm(c: Config, norms: int = 2) -> Fields:
    return _decoder(c, norms=norms, attention={"size": 128, "bias": ("attention_bias", True, "qkv")})


def _olmo2(c: Config, windows: Callable[[Config], Fields] | None = None) -> Fields:
    return _decoder(c, windows=windows, attention={"norm": "all"})


def _exaone4(c: Config) -> Fields:
    c.used.add("sliding_window_pattern")
    windows = partial(_windows, default=4096, every=4)
    return _decoder(c, windows=windows, attention={"bias": "none", "norm": "head"})


def _cohere(c: Config) -> Fields:
    norm = "all" if c.flag("use_qk_norm", False) else "none"
    return _decoder(c, tied=True, norms=1, attention={"norm": norm})


def _cohere2(c: Config) -> Fields:
    c.expect("order_of_interleaved_layers", "local_attn_first")
    c.expect("rotary", "interleaved")
    for key in ("layer_switch", "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                "use_parallel_embedding", "use_qk_norm"):  # fmt: skip
        c.used.add(key)
    windows = partial(_windows, default=4096, every=("sliding_window_pattern", 4))
    return _decoder(c, tied=True, norms=1, windows=windows)


def _seed_oss(c: Config) -> Fields:
    c.expect("attention_out_bias", False)
    network = partial(_network, bias=("mlp_bias", False))
    return _decoder(c, network=network, attention={"size": 128, "bias": ("attention_bias", True, "qkv")})


def _stablelm(c: Config) -> Fields:
    c.expect("qk_layernorm", False)
    norms = 1 if c.flag("use_parallel_residual", False) else 2
    return _decoder(c, norm="layer", norms=norms, attention={"bias": ("use_qkv_bias", False, "qkv")})


def _smollm3(c: Config) -> Fields:
    c.used |= {"no_rope_layers", "no_rope_layer_interval", "max_window_layers"}
    network = partial(_network, bias=("mlp_bias", False))
    return _decoder(c, tied=True, windows=_qwen2_windows, network=network)


def _nemotron(c: Config) -> Fields:
    c.expect("hidden_act", "relu2")
    network = partial(_network, form="plain", bias=("mlp_bias", False))
    return _decoder(c, norm="layer", network=network)


def _starcoder2(c: Config) -> Fields:
    c.expect("mlp_type", "default")
    c.expect("norm_type", "layer_norm")
    network = partial(_network, form="plain", bias=("use_bias", True))
    windows = partial(_windows)
    return _decoder(
        c, tied=True, norm="layer", windows=windows, network=network, attention={"bias": ("use_bias", True, "all")}
    )


def _gpt2(c: Config) -> Fields:
    fields = _dense(
        c, layers="n_layer", hidden="n_embd", context="n_positions", tied=True, norm="layer", positions="learned"
    )
    heads, hidden = c.count("n_head"), fields["hidden"]
    width = c.get("n_inner", None) or 4 * hidden
    return fields | {
        "attention": Attention(heads=heads, kv_heads=heads, head_size=_share(c, "n_embd", heads), bias="all"),
        "feed_forward": FeedForward(width=width, form="plain", bias="all"),
    }


def _gpt_neox(c: Config) -> Fields:
    c.used.add("use_parallel_residual")
    network = partial(_network, form="plain", bias=True)
    return _decoder(c, norm="layer", network=network, attention={"bias": ("attention_bias", True, "all")})


def _opt(c: Config) -> Fields:
    c.expect("do_layer_norm_before", True)
    c.expect("_remove_final_layer_norm", False)
    c.expect("layer_norm_elementwise_affine", True)
    c.expect("word_embed_proj_dim", c.count("hidden_size"))
    c.expect("enable_bias", True)
    network = partial(_network, width="ffn_dim", form="plain", bias=True)
    fields = _decoder(c, tied=True, norm="layer", positions="learned", network=network, attention={"bias": "all"})
    c.notes.append("The matrix of positions has two more rows than max_position_embeddings.")
    return fields | {"context": fields["context"] + 2}


def _bloom(c: Config) -> Fields:
    hidden = "hidden_size" if "hidden_size" in c.values else "n_embed"
    c.used |= {"hidden_size", "n_embed", "apply_residual_connection_post_layernorm", "bias_dropout_fusion", "masked_softmax_fusion"}
    heads = "num_attention_heads" if "num_attention_heads" in c.values else "n_head"
    fields = _dense(c, layers="n_layer", hidden=hidden, context="seq_length", tied=True, norm="layer", positions="none")
    count = c.count(heads)
    return fields | {
        "embedding_norm": "one",
        "attention": Attention(heads=count, kv_heads=count, head_size=_share(c, hidden, count), bias="all"),
        "feed_forward": FeedForward(width=4 * fields["hidden"], form="plain", bias="all"),
    }


def _falcon(c: Config) -> Fields:
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    new, parallel = c.flag("new_decoder_architecture", False), c.flag("parallel_attn", True)
    one = c.flag("multi_query", True)
    kv_heads = (c.get("num_kv_heads", None) or heads) if new or not one else 1
    c.used |= {"num_kv_heads", "num_ln_in_parallel_attn"}
    norms = (c.get("num_ln_in_parallel_attn", None) or (2 if new else 1)) if parallel else 2
    biased = "all" if c.flag("bias", False) else "none"
    fields = _dense(c, context=_falcon_context(c), tied=True, norm="layer", norms=norms)
    return fields | {
        "positions": "none" if c.flag("alibi", False) else "rotary",
        "attention": Attention(heads=heads, kv_heads=kv_heads, head_size=_share(c, "hidden_size", heads), bias=biased),
        "feed_forward": FeedForward(width=c.get("ffn_hidden_size", None) or 4 * hidden, form="plain", bias=biased),
    }


def _falcon_context(c: Config) -> str:
    """Older files do not state the context; the class has a default."""
    if "max_position_embeddings" not in c.values:
        c.values = {**c.values, "max_position_embeddings": 2048}
        c.notes.append("max_position_embeddings is not in config.json; 2048 is the default of falcon")
    return "max_position_embeddings"


def _mpt(c: Config) -> Fields:
    inner = c.section("attn_config")
    inner.expect("qk_ln", False)
    hidden = c.count("d_model")
    fields = _dense(c, layers="n_layers", hidden="d_model", context="max_seq_len", tied=True, norm="layer")
    heads, biased = c.count("n_heads"), not c.flag("no_bias", True)
    kv_heads = inner.get("kv_n_heads", None) or (1 if inner.get("attn_type", None) == "multiquery_attention" else heads)
    positions = "none" if inner.get("alibi", True) else "learned"
    for key in ("logit_scale", "learned_pos_emb", "init_config", "init_device", "norm_type", "use_cache", "ffn_config"):
        c.used.add(key)
    bias = "all" if biased else "none"
    return fields | {
        "norm": "layer" if biased else "rms",  # without biases a layer norm has the parameters of an RMS norm
        "positions": positions,
        "attention": Attention(heads=heads, kv_heads=kv_heads, head_size=_share(c, "d_model", heads), bias=bias),
        "feed_forward": FeedForward(width=c.count("expansion_ratio", 4) * hidden, form="plain", bias=bias),
    }


# Encoders.


def _bert(c: Config, *, segments: bool = True, offset: int = 0) -> Fields:
    c.expect("position_embedding_type", "absolute")
    fields = _dense(c, tied=True, norm="layer", positions="learned")
    if c.get("embedding_size", None) not in (None, fields["hidden"]):
        raise ConfigError("embedding_size", "embedding_size differs from hidden_size; the projection is not modelled")
    kinds = c.count("type_vocab_size", 2) if segments else None
    heads = c.count("num_attention_heads")
    head = "bert" if any(str(a).startswith("Bert") for a in c.get("architectures", None) or ()) else "none"
    for key in ("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
                "pooler_type", "directionality"):  # fmt: skip
        c.used.add(key)
    return fields | {
        "form": "encoder",
        "context": fields["context"] - offset,
        "segments": kinds,
        "final_norm": "none",
        "embedding_norm": "one",
        "attention": Attention(heads=heads, kv_heads=heads, head_size=_share(c, "hidden_size", heads), bias="all"),
        "feed_forward": _network(c, form="plain", bias=True),
        "head": head,
    }


def _roberta(c: Config) -> Fields:
    c.notes.append("Positions start after the padding token: two rows of their matrix are not used and left out.")
    c.notes.append("The one kind of segments and the head of masked-language modelling are left out.")
    c.used.add("type_vocab_size")
    return _bert(c, segments=False, offset=2)


def _distilbert(c: Config) -> Fields:
    names = {"num_hidden_layers": "n_layers", "hidden_size": "dim", "num_attention_heads": "n_heads",
             "intermediate_size": "hidden_dim"}  # fmt: skip
    c.used |= {*names.values(), "sinusoidal_pos_embds", "tie_weights_"}
    c.notes.append("The head of masked-language modelling is left out.")
    c.values = {**c.values, **{key: c.values.get(name) for key, name in names.items()}}
    return _bert(c, segments=False)


# Mixtures of experts.


def _mixtral(c: Config) -> Fields:
    fields = _decoder(c, windows=partial(_windows), attention={"bias": "none"}, network=_unread)
    return _experts(c, fields, count="num_local_experts", width="intermediate_size")


def _unread(c: Config) -> FeedForward:
    return FeedForward(width=1, form="gated")


def _qwen_moe(c: Config, fields: Fields, **shared: Any) -> Fields:
    layers = fields["layers"]
    step, dense = c.get("decoder_sparse_step", None) or 1, set(c.values_of("mlp_only_layers") or ())
    without = sum(i in dense or bool((i + 1) % step) for i in range(layers))
    return _experts(c, fields, dense=without, **shared)


def _qwen2_moe(c: Config) -> Fields:
    c.expect("qkv_bias", True)
    fields = _decoder(c, windows=_qwen2_windows, attention={"bias": "qkv"}, network=_unread)
    return _qwen_moe(c, fields, **_shared_gated(c))


def _shared_gated(c: Config) -> Fields:
    width = c.get("shared_expert_intermediate_size", None)
    if not width:
        return {}
    same = width == c.count("moe_intermediate_size")
    return {"shared": 1, "shared_width": None if same else width, "shared_gate": "one"}


def _qwen3_moe(c: Config) -> Fields:
    c.expect("use_qk_norm", True)
    c.expect("qkv_bias", False)
    c.expect("shared_expert_intermediate_size", 0)
    attention = {"norm": "head"}
    return _qwen_moe(c, _decoder(c, windows=_qwen2_windows, attention=attention, network=_unread))


def _delta_net(c: Config) -> Fields:
    """Gated delta nets in all but every fourth layer, and attention with an output gate in the others (Qwen3-Next)."""
    fields = _dense(c)
    layers = fields["layers"]
    types = c.values_of("layer_types", layers)
    every = c.count("full_attention_interval", 4)
    recurrent = layers - layers // every if types is None else types.count("linear_attention")
    c.expect("attn_output_gate", True)
    c.expect("output_gate_type", "swish")
    recurrence = Recurrence(
        form="gated-delta",
        layers=recurrent,
        heads=c.count("linear_num_value_heads"),
        key_heads=c.count("linear_num_key_heads"),
        key_size=c.count("linear_key_head_dim"),
        value_size=c.count("linear_value_head_dim"),
        kernel=c.count("linear_conv_kernel_dim"),
    )
    c.used.add("mtp_use_dedicated_embeddings")
    attention = _attention(c, size=256, norm="head", gate="element")
    return fields | {"recurrence": recurrence, "attention": attention}


def _qwen3_5(c: Config) -> Fields:
    return _delta_net(c) | {"feed_forward": _network(c)}


def _qwen3_next(c: Config) -> Fields:
    return _qwen_moe(c, _delta_net(c), **_shared_gated(c))


def _gpt_oss(c: Config) -> Fields:
    for key in ("experts_per_token",):
        c.used.add(key)
    windows = partial(_windows, default=128, every=2)
    attention = {"size": 64, "bias": ("attention_bias", True, "all"), "sinks": "head"}
    fields = _decoder(c, windows=windows, attention=attention, network=_unread)
    return _experts(
        c, fields, count="num_local_experts", width="intermediate_size", bias="all", router_bias="expert"
    )


def _llama4(c: Config) -> Fields:
    layers = c.count("num_hidden_layers")
    without = c.values_of("no_rope_layers", layers)
    interval = c.get("no_rope_layer_interval", None) or 4
    types = c.values_of("layer_types", layers)
    chunk = c.get("attention_chunk_size", 8192)
    chunked = types.count("chunked_attention") if types else sum(map(bool, without)) if without else layers - layers // interval
    c.used |= {"use_qk_norm", "moe_layers", "for_llm_compressor"}
    attention = {"size": 128, "window": chunk, "windowed": chunked}
    fields = _decoder(c, attention=attention, network=_unread)
    c.notes.append("The norms of queries and keys have no parameters. Windowed layers see the chunk that they are in.")
    step = c.count("interleave_moe_layer_step", 1)
    moe = c.values_of("moe_layers")
    dense = layers - (len(moe) if moe else len(range(step - 1, layers, step)))
    return _experts(
        c, fields, count="num_local_experts", width="intermediate_size", shared=1, dense=dense,
        dense_width="intermediate_size_mlp",
    )  # fmt: skip


def _minimax_m2(c: Config) -> Fields:
    c.expect("qk_norm_type", "per_layer")
    c.expect("use_qk_norm", True)
    c.expect("attn_type_list", [1] * c.count("num_hidden_layers"))
    c.expect("use_routing_bias", True)
    c.used.add("use_mtp")
    fields = _decoder(c, attention={"bias": "none", "norm": "all"}, network=_unread)
    return _experts(c, fields, count="num_local_experts", width="intermediate_size", router_bias="expert")


def _minimax_m3(c: Config) -> Fields:
    c.expect("use_qk_norm", True)
    c.expect("qk_norm_type", "per_head")
    c.expect("use_routing_bias", True)
    sparse, layers = c.section("sparse_attention_config"), c.count("num_hidden_layers")
    chosen = sum(map(bool, sparse.values_of("sparse_attention_freq", layers) or [1] * layers))
    indexer = Indexer(
        keys=sparse.count("sparse_topk_blocks") * sparse.count("sparse_block_size"),
        heads=sparse.count("sparse_num_index_heads"),
        size=sparse.count("sparse_index_dim"),
        layers=chosen,
        sparse=chosen,
    )
    c.used |= {"use_mtp", "dense_intermediate_size", "first_k_dense_replace", "intermediate_size"}
    c.expect("attention_output_gate", False)
    c.expect("shared_intermediate_size", c.values.get("intermediate_size"))
    fields = _decoder(c, attention={"bias": "none", "norm": "head", "indexer": indexer}, network=_unread)
    dense = _moe_flags(c, "moe_layer_freq")
    return _experts(
        c, fields, count="num_local_experts", width="moe_intermediate_size" if "moe_intermediate_size" in c.values else "intermediate_size",
        shared="n_shared_experts", dense=dense, dense_width="dense_intermediate_size", router_bias="expert",
    )  # fmt: skip


def _olmoe(c: Config) -> Fields:
    fields = _decoder(c, attention={"norm": "all"}, network=_unread)
    c.used |= {"clip_qkv"}
    return _experts(c, fields, width="intermediate_size")


def _granite_moe(c: Config) -> Fields:
    fields = _decoder(c, network=_unread)
    return _experts(c, fields, count="num_local_experts", width="intermediate_size")


def _glm4_moe(c: Config) -> Fields:
    norm = "head" if c.flag("use_qk_norm", False) else "none"
    attention = {"bias": ("attention_bias", False, "qkv"), "norm": norm}
    fields = _decoder(c, attention=attention, network=_unread)
    return _experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", dense=c.number("first_k_dense_replace", 1),
        router_bias="expert",
    )  # fmt: skip


def _afmoe(c: Config) -> Fields:
    windows = partial(_windows, default=1024, every=("global_attn_every_n_layers", 4))
    attention = {"size": 128, "norm": "head", "gate": "element"}
    fields = _decoder(c, norms=4, windows=windows, attention=attention, network=_unread)
    return _experts(
        c, fields, shared="num_shared_experts", dense=c.number("num_dense_layers", 1), router_bias="expert"
    )


def _dbrx(c: Config) -> Fields:
    inner, network = c.section("attn_config"), c.section("ffn_config")
    fields = _dense(c, layers="n_layers", hidden="d_model", context="max_seq_len", norm="rms")
    heads = c.count("n_heads")
    fields["attention"] = Attention(
        heads=heads, kv_heads=inner.count("kv_n_heads"), head_size=_share(c, "d_model", heads)
    )
    fields["experts"] = Experts(
        count=network.count("moe_num_experts"),
        active=network.count("moe_top_k"),
        width=network.count("ffn_hidden_size"),
        form="gated",
    )
    return fields


# Latent attention.


def _latent(c: Config, *, indexer: bool = False, router_bias: bool = True, dense: int = 3) -> Fields:
    """Multi-head latent attention and experts after the first layers (DeepSeek-V2 and V3, Kimi K2, GLM-5)."""
    c.used |= {"head_dim", "num_key_value_heads", "index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration",
               "layer_types"}  # fmt: skip
    fields = _dense(c)
    heads, layers = c.count("num_attention_heads"), fields["layers"]
    latent = LatentAttention(
        query_rank=c.get("q_lora_rank", None),
        rank=c.count("kv_lora_rank"),
        nope_size=c.count("qk_nope_head_dim"),
        rope_size=c.count("qk_rope_head_dim"),
        value_size=c.count("v_head_dim"),
    )
    chosen = None
    if indexer:
        types = c.values_of("indexer_types", layers)
        chosen = Indexer(
            keys=c.count("index_topk"),
            heads=c.count("index_n_heads"),
            size=c.count("index_head_dim"),
            layers=types.count("full") if types and types.count("full") < layers else None,
        )
    fields["attention"] = Attention(
        heads=heads,
        kv_heads=heads,
        head_size=latent.value_size,
        bias="all" if c.flag("attention_bias", False) else "none",
        latent=latent,
        indexer=chosen,
    )
    c.expect("moe_layer_freq", 1)
    c.used.add("mlp_layer_types")
    first = c.number("first_k_dense_replace", dense)
    bias = "expert" if router_bias else "none"
    return _experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", dense=first, router_bias=bias
    )


def _deepseek_v2(c: Config) -> Fields:
    c.used.add("topk_method")
    return _latent(c, router_bias=False, dense=0)


# Hybrids of attention and Mamba-2, one operation in a layer.

_BLOCKS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _nemotron_h(c: Config) -> Fields:
    """Layers of a single operation each: Mamba-2, attention, a dense network, or experts."""
    pattern = c.get("hybrid_override_pattern", None)
    named = c.values_of("layers_block_type")
    kinds = named if pattern is None else [_BLOCKS.get(letter, letter) for letter in str(pattern)]
    if not kinds:
        raise ConfigError("layers_block_type", "config.json has neither hybrid_override_pattern nor layers_block_type")
    unknown = next((k for k in kinds if k not in _BLOCKS.values()), None)
    if unknown is not None:
        raise ConfigError("hybrid_override_pattern", f"{unknown!r} is not a kind of layer; known: {', '.join(_BLOCKS)}")
    c.values = {**c.values, "num_hidden_layers": len(kinds)}
    count = {kind: kinds.count(kind) for kind in _BLOCKS.values()}
    c.expect("use_conv_bias", True)
    c.used |= {"layers_block_type", "mtp_layers_block_type", "mtp_hybrid_override_pattern", "expand"}
    c.expect("mlp_hidden_act", "relu2")
    biased = "all" if c.flag("use_bias", False) else "none"
    c.expect("mamba_proj_bias", biased == "all")
    fields = _dense(c, norms=1)
    fields["recurrence"] = Recurrence(
        form="mamba2",
        layers=count["mamba"],
        heads=c.count("mamba_num_heads"),
        key_heads=c.count("n_groups"),
        key_size=c.count("ssm_state_size"),
        value_size=c.count("mamba_head_dim"),
        kernel=c.count("conv_kernel"),
        bias=biased,
    )
    if "attention_head_dim" in c.values:  # an older name
        c.values = {**c.values, "head_dim": c.get("attention_head_dim")}
    fields["attention"] = _attention(c, size=128, layers=count["attention"])
    c.expect("sliding_window")
    if count["mlp"]:
        fields["feed_forward"] = _network(c, form="plain", bias=("mlp_bias", False), layers=count["mlp"])
    else:
        c.used |= {"intermediate_size", "mlp_bias"}
    if count["moe"]:
        shared = c.number("n_shared_experts", 1)
        fields["experts"] = Experts(
            layers=count["moe"],
            count=c.count("n_routed_experts"),
            active=c.count("num_experts_per_tok"),
            width=c.count("moe_intermediate_size"),
            form="plain",
            router_bias="expert",
            shared=shared or None,
            shared_width=c.count("moe_shared_expert_intermediate_size") if shared else None,
            latent=c.get("moe_latent_size", None),
        )
    else:
        c.used |= {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts",
                   "moe_shared_expert_intermediate_size", "moe_latent_size"}  # fmt: skip
    return fields


_LLAMA = partial(_decoder, network=partial(_network, bias=("mlp_bias", False)))

ARCHITECTURES: Mapping[str, Callable[[Config], Fields]] = {
    "afmoe": _afmoe,
    "apertus": partial(_decoder, network=partial(_network, form="plain"), attention={"norm": "head"}),
    "arcee": partial(_decoder, network=partial(_network, form="plain", bias=("mlp_bias", False))),
    "bert": _bert,
    "bloom": _bloom,
    "cohere": _cohere,
    "cohere2": _cohere2,
    "dbrx": _dbrx,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _latent,
    "deepseek_v32": partial(_latent, indexer=True),
    "distilbert": _distilbert,
    "exaone4": _exaone4,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "glm": _glm,
    "glm4": partial(_glm, norms=4),
    "glm4_moe": _glm4_moe,
    "glm_moe_dsa": partial(_latent, indexer=True),
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "gpt_oss": _gpt_oss,
    "granite": _LLAMA,
    "granitemoe": _granite_moe,
    "helium": _LLAMA,
    "kimi_k2": _latent,
    "llama": _LLAMA,
    "llama4_text": _llama4,
    "minimax_m2": _minimax_m2,
    "minimax_m3": _minimax_m3,
    "minimax_m3_vl_text": _minimax_m3,
    "ministral": _mistral,
    "ministral3": partial(_decoder, windows=_windows, attention={"bias": "none"}),
    "mistral": _mistral,
    "mixtral": _mixtral,
    "mpt": _mpt,
    "nemotron": _nemotron,
    "nemotron_h": _nemotron_h,
    "olmo2": _olmo2,
    "olmo3": partial(_olmo2, windows=partial(_windows, default=4096, every=4)),
    "olmoe": _olmoe,
    "opt": _opt,
    "phi3": partial(_decoder, windows=_windows, attention={"bias": "none"}),
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_5_moe_text": _qwen3_next,
    "qwen3_5_text": _qwen3_5,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_vl_text": _qwen3,
    "roberta": _roberta,
    "seed_oss": _seed_oss,
    "smollm3": _smollm3,
    "stablelm": _stablelm,
    "starcoder2": _starcoder2,
}
"""How the config.json of each ``model_type`` is read."""
