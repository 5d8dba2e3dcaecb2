"""Dense decoders: one network in every layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from attrs import evolve

from trnspec.model.transformers.huggingface.parts import (
    Fields,
    dense_network,
    equal_layers,
    head_share,
    late_windows,
    outline,
    sliding_windows,
)
from trnspec.model.transformers.model import Attention, FeedForward

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trnspec.model.transformers.huggingface.config import Config


def _mistral(c: Config) -> Fields:
    return equal_layers(c, windows=partial(sliding_windows, default=4096), attention={"bias": "none"})


def _qwen2(c: Config) -> Fields:
    return equal_layers(c, windows=late_windows, attention={"bias": "qkv"})


def _qwen3(c: Config) -> Fields:
    return equal_layers(c, windows=late_windows, attention={"size": 128, "norm": "head"})


def _gemma(c: Config) -> Fields:
    return equal_layers(c, tied=True, attention={"size": 256})


def _gemma2(c: Config) -> Fields:
    return equal_layers(
        c, tied=True, norms=4, windows=partial(sliding_windows, default=4096, every=2), attention={"size": 256}
    )


def _gemma3(c: Config) -> Fields:
    windows = partial(sliding_windows, default=4096, every=("sliding_window_pattern", 6))
    return equal_layers(c, tied=True, norms=4, windows=windows, attention={"size": 256, "norm": "head"})


def _glm(c: Config, norms: int = 2) -> Fields:
    return equal_layers(c, norms=norms, attention={"size": 128, "bias": ("attention_bias", True, "qkv")})


def _olmo2(c: Config, windows: Callable[[Config], Fields] | None = None) -> Fields:
    return equal_layers(c, windows=windows, attention={"norm": "all"})


def _exaone4(c: Config) -> Fields:
    c.used.add("sliding_window_pattern")
    windows = partial(sliding_windows, default=4096, every=4)
    return equal_layers(c, windows=windows, attention={"bias": "none", "norm": "head"})


def _cohere(c: Config) -> Fields:
    norm = "all" if c.flag("use_qk_norm") else "none"
    return equal_layers(c, tied=True, norms=1, attention={"norm": norm})


def _cohere2(c: Config) -> Fields:
    c.expect("order_of_interleaved_layers", "local_attn_first")
    c.expect("rotary", "interleaved")
    for key in ("layer_switch", "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                "use_parallel_embedding", "use_qk_norm"):  # fmt: skip
        c.used.add(key)
    windows = partial(sliding_windows, default=4096, every=("sliding_window_pattern", 4))
    return equal_layers(c, tied=True, norms=1, windows=windows)


def _seed_oss(c: Config) -> Fields:
    c.off("attention_out_bias")
    network = partial(dense_network, bias=("mlp_bias", False))
    return equal_layers(c, network=network, attention={"size": 128, "bias": ("attention_bias", True, "qkv")})


def _phi3(c: Config) -> Fields:
    c.expect("full_attn_mod", 1)
    c.expect("interpolate_factor", 1)
    return equal_layers(c, windows=sliding_windows, attention={"bias": "none"})


def _stablelm(c: Config) -> Fields:
    c.off("qk_layernorm")
    norms = 1 if c.flag("use_parallel_residual") else 2
    return equal_layers(c, norm="layer", norms=norms, attention={"bias": ("use_qkv_bias", False, "qkv")})


def _smollm3(c: Config) -> Fields:
    c.used |= {"no_rope_layers", "no_rope_layer_interval", "max_window_layers"}
    network = partial(dense_network, bias=("mlp_bias", False))
    return equal_layers(c, tied=True, windows=late_windows, network=network)


def _nemotron(c: Config) -> Fields:
    c.expect("hidden_act", "relu2")
    network = partial(dense_network, form="plain", bias=("mlp_bias", False))
    return equal_layers(c, norm="layer", network=network)


def _starcoder2(c: Config) -> Fields:
    c.expect("mlp_type", "default")
    c.expect("norm_type", "layer_norm")
    network = partial(dense_network, form="plain", bias=("use_bias", True))
    windows = partial(sliding_windows)
    return equal_layers(
        c, tied=True, norm="layer", windows=windows, network=network, attention={"bias": ("use_bias", True, "all")}
    )


def _gpt2(c: Config) -> Fields:
    fields = outline(
        c, layers="n_layer", hidden="n_embd", context="n_positions", tied=True, norm="layer", positions="learned"
    )
    heads, hidden = c.count("n_head"), fields["hidden"]
    width = c.get("n_inner", None) or 4 * hidden
    return fields | {
        "attention": Attention(heads=heads, kv_heads=heads, head_size=head_share(c, "n_embd", heads), bias="all"),
        "feed_forward": FeedForward(width=width, form="plain", bias="all"),
    }


def _gpt_neox(c: Config) -> Fields:
    c.used.add("use_parallel_residual")
    network = partial(dense_network, form="plain", bias=True)
    return equal_layers(c, norm="layer", network=network, attention={"bias": ("attention_bias", True, "all")})


def _opt(c: Config) -> Fields:
    c.on("do_layer_norm_before")
    c.off("_remove_final_layer_norm")
    c.on("layer_norm_elementwise_affine")
    c.expect("word_embed_proj_dim", c.count("hidden_size"))
    c.on("enable_bias")
    network = partial(dense_network, width="ffn_dim", form="plain", bias=True)
    fields = equal_layers(c, tied=True, norm="layer", positions="learned", network=network, attention={"bias": "all"})
    c.notes.append("The matrix of positions has two more rows than max_position_embeddings.")
    return fields | {"context": fields["context"] + 2}


def _bloom(c: Config) -> Fields:
    hidden = "hidden_size" if "hidden_size" in c.values else "n_embed"
    c.used |= {
        "hidden_size",
        "n_embed",
        "apply_residual_connection_post_layernorm",
        "bias_dropout_fusion",
        "masked_softmax_fusion",
    }
    heads = "num_attention_heads" if "num_attention_heads" in c.values else "n_head"
    fields = outline(
        c, layers="n_layer", hidden=hidden, context="seq_length", tied=True, norm="layer", positions="none"
    )
    count = c.count(heads)
    return fields | {
        "embedding_norm": "one",
        "attention": Attention(heads=count, kv_heads=count, head_size=head_share(c, hidden, count), bias="all"),
        "feed_forward": FeedForward(width=4 * fields["hidden"], form="plain", bias="all"),
    }


def _falcon(c: Config) -> Fields:
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    new, parallel = c.flag("new_decoder_architecture"), c.flag("parallel_attn", default=True)
    one = c.flag("multi_query", default=True)
    kv_heads = (c.get("num_kv_heads", None) or heads) if new or not one else 1
    c.used |= {"num_kv_heads", "num_ln_in_parallel_attn"}
    norms = (c.get("num_ln_in_parallel_attn", None) or (2 if new else 1)) if parallel else 2
    biased: Literal["none", "all"] = "all" if c.flag("bias") else "none"
    fields = outline(c, context=_falcon_context(c), tied=True, norm="layer", norms=norms)
    return fields | {
        "positions": "none" if c.flag("alibi") else "rotary",
        "attention": Attention(
            heads=heads, kv_heads=kv_heads, head_size=head_share(c, "hidden_size", heads), bias=biased
        ),
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
    inner.off("qk_ln")
    hidden = c.count("d_model")
    fields = outline(c, layers="n_layers", hidden="d_model", context="max_seq_len", tied=True, norm="layer")
    heads, biased = c.count("n_heads"), not c.flag("no_bias", default=True)
    kv_heads = inner.get("kv_n_heads", None) or (1 if inner.get("attn_type", None) == "multiquery_attention" else heads)
    positions = "none" if inner.get("alibi", True) else "learned"
    for key in (
        "logit_scale",
        "learned_pos_emb",
        "init_config",
        "init_device",
        "norm_type",
        "use_cache",
        "ffn_config",
        "embedding_fraction",
        "emb_pdrop",
    ):
        c.used.add(key)
    bias: Literal["none", "all"] = "all" if biased else "none"
    return fields | {
        "norm": "layer" if biased else "rms",  # without biases a layer norm has the parameters of an RMS norm
        "positions": positions,
        "attention": Attention(heads=heads, kv_heads=kv_heads, head_size=head_share(c, "d_model", heads), bias=bias),
        "feed_forward": FeedForward(width=c.count("expansion_ratio", 4) * hidden, form="plain", bias=bias),
    }


def _ernie(c: Config) -> Fields:
    network = partial(dense_network, bias=("use_bias", False))
    return equal_layers(c, tied=True, network=network, attention={"size": 128, "bias": ("use_bias", False, "all")})


def _gpt_j(c: Config) -> Fields:
    """One norm, attention and network in parallel; biases of the network and of the output matrix."""
    c.used |= {"n_inner", "rotary_dim"}
    fields = outline(c, layers="n_layer", hidden="n_embd", context="n_positions", norm="layer", norms=1)
    heads = c.count("n_head")
    return fields | {
        "head": "bias",
        "attention": Attention(heads=heads, kv_heads=heads, head_size=head_share(c, "n_embd", heads)),
        "feed_forward": FeedForward(width=c.get("n_inner", None) or 4 * fields["hidden"], form="plain", bias="all"),
    }


def _phi(c: Config) -> Fields:
    """One norm, attention and network in parallel; everything has a bias."""
    c.off("qk_layernorm")
    network = partial(dense_network, form="plain", bias=True)
    return equal_layers(c, norm="layer", norms=1, network=network, attention={"bias": "all"}) | {"head": "bias"}


def _gpt_bigcode(c: Config) -> Fields:
    """GPT-2 with one head of keys and values (StarCoder)."""
    fields = _gpt2(c)
    if c.flag("multi_query", default=True):
        fields["attention"] = evolve(fields["attention"], kv_heads=1)
    return fields


def _gpt_neo(c: Config) -> Fields:
    """Every second layer has a window; queries, keys and values have no bias."""
    layers = c.count("num_layers")
    kinds = [
        kind for part, times in c.get("attention_types", [[["global", "local"], layers // 2]]) for kind in part * times
    ]
    local = kinds.count("local")
    fields = outline(c, layers="num_layers", tied=True, norm="layer", positions="learned")
    heads = c.count("num_heads")
    c.used.add("attention_layers")
    attention = Attention(
        heads=heads, kv_heads=heads, head_size=head_share(c, "hidden_size", heads), bias="output",
        window=c.count("window_size", 256) if local else None, windowed=local if 0 < local < layers else None,
    )  # fmt: skip
    width = c.get("intermediate_size", None) or 4 * fields["hidden"]
    return fields | {"attention": attention, "feed_forward": FeedForward(width=width, form="plain", bias="all")}


def _hunyuan(c: Config) -> Fields:
    return equal_layers(c, attention={"norm": "head"})


_LLAMA = partial(equal_layers, network=partial(dense_network, bias=("mlp_bias", False)))

DENSE: Mapping[str, Callable[[Config], Fields]] = {
    "apertus": partial(equal_layers, network=partial(dense_network, form="plain"), attention={"norm": "head"}),
    "arcee": partial(equal_layers, network=partial(dense_network, form="plain", bias=("mlp_bias", False))),
    "bloom": _bloom,
    "cohere": _cohere,
    "cohere2": _cohere2,
    "cwm": partial(equal_layers, windows=partial(sliding_windows, default=8192), attention={"bias": "none"}),
    "ernie4_5": _ernie,
    "exaone4": _exaone4,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "glm": _glm,
    "glm4": partial(_glm, norms=4),
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt_bigcode,
    "gpt_neo": _gpt_neo,
    "gpt_neox": _gpt_neox,
    "gptj": _gpt_j,
    "granite": _LLAMA,
    "helium": _LLAMA,
    "hunyuan_v1_dense": _hunyuan,
    "internlm3": _LLAMA,
    "llama": _LLAMA,
    "mimo": partial(equal_layers, windows=late_windows, attention={"bias": ("attention_bias", True, "qkv")}),
    "ministral": _mistral,
    "ministral3": partial(equal_layers, windows=sliding_windows, attention={"bias": "none"}),
    "mistral": _mistral,
    "mpt": _mpt,
    "nemotron": _nemotron,
    "olmo2": _olmo2,
    "olmo3": partial(_olmo2, windows=partial(sliding_windows, default=4096, every=4)),
    "opt": _opt,
    "phi": _phi,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen2_5_vl": _qwen2,
    "qwen2_5_vl_text": _qwen2,
    "qwen2_vl": _qwen2,
    "qwen2_vl_text": _qwen2,
    "qwen3": _qwen3,
    "qwen3_vl_text": _qwen3,
    "seed_oss": _seed_oss,
    "smollm3": _smollm3,
    "stablelm": _stablelm,
    "starcoder2": _starcoder2,
}
"""How the config.json of each ``model_type`` is read."""
