"""Mixtures of experts, with attention by heads or latent attention."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.parts import (
    Fields,
    dense_before,
    equal_layers,
    head_share,
    late_windows,
    no_network,
    outline,
    sliding_windows,
    with_experts,
)
from trnspec.model.transformers.model import Attention, Experts, GroupedOutput, Indexer, LatentAttention, Pooling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _mixtral(c: Config) -> Fields:
    fields = equal_layers(c, windows=partial(sliding_windows), attention={"bias": "none"}, network=no_network)
    return with_experts(c, fields, count="num_local_experts", width="intermediate_size")


def qwen_experts(c: Config, fields: Fields, **shared: Any) -> Fields:
    """Experts in every ``decoder_sparse_step``-th layer but those of ``mlp_only_layers``."""
    layers = fields["layers"]
    step, dense = c.get("decoder_sparse_step", None) or 1, set(c.values_of("mlp_only_layers") or ())
    without = sum(i in dense or bool((i + 1) % step) for i in range(layers))
    return with_experts(c, fields, dense=without, **shared)


def _qwen2_moe(c: Config) -> Fields:
    c.on("qkv_bias")
    fields = equal_layers(c, windows=late_windows, attention={"bias": "qkv"}, network=no_network)
    return qwen_experts(c, fields, **gated_shared(c))


def gated_shared(c: Config) -> Fields:
    """One shared expert with a gate, where it has a width."""
    width = c.get("shared_expert_intermediate_size", None)
    if not width:
        return {}
    same = width == c.count("moe_intermediate_size")
    return {"shared": 1, "shared_width": None if same else width, "shared_gate": "one"}


def _qwen3_moe(c: Config) -> Fields:
    c.on("use_qk_norm")
    c.off("qkv_bias")
    c.expect("shared_expert_intermediate_size", 0)
    attention = {"norm": "head"}
    return qwen_experts(c, equal_layers(c, windows=late_windows, attention=attention, network=no_network))


def _gpt_oss(c: Config) -> Fields:
    for key in ("experts_per_token",):
        c.used.add(key)
    windows = partial(sliding_windows, default=128, every=2)
    attention = {"size": 64, "bias": ("attention_bias", True, "all"), "sinks": "head"}
    fields = equal_layers(c, windows=windows, attention=attention, network=no_network)
    return with_experts(
        c, fields, count="num_local_experts", width="intermediate_size", bias="all", router_bias="expert"
    )


def _llama4(c: Config) -> Fields:
    layers = c.count("num_hidden_layers")
    without = c.values_of("no_rope_layers", layers)
    interval = c.get("no_rope_layer_interval", None) or 4
    types = c.values_of("layer_types", layers)
    chunk = c.get("attention_chunk_size", 8192)
    chunked = (
        types.count("chunked_attention")
        if types
        else sum(map(bool, without))
        if without
        else layers - layers // interval
    )
    c.used |= {"use_qk_norm", "moe_layers", "for_llm_compressor"}
    attention = {"size": 128, "window": chunk, "windowed": chunked}
    fields = equal_layers(c, attention=attention, network=no_network)
    c.notes.append("The norms of queries and keys have no parameters. Windowed layers see the chunk that they are in.")
    step = c.count("interleave_moe_layer_step", 1)
    moe = c.values_of("moe_layers")
    dense = layers - (len(moe) if moe else len(range(step - 1, layers, step)))
    return with_experts(
        c, fields, count="num_local_experts", width="intermediate_size", shared=1, dense=dense,
        dense_width="intermediate_size_mlp",
    )  # fmt: skip


def _minimax_m2(c: Config) -> Fields:
    c.expect("qk_norm_type", "per_layer")
    c.on("use_qk_norm")
    c.expect("attn_type_list", [1] * c.count("num_hidden_layers"))
    c.on("use_routing_bias")
    c.used.add("use_mtp")
    fields = equal_layers(c, attention={"bias": "none", "norm": "all"}, network=no_network)
    return with_experts(c, fields, count="num_local_experts", width="intermediate_size", router_bias="expert")


def _block_indexer(c: Config) -> Indexer | None:
    """The indexer of MiniMax-M3, which chooses blocks of keys; Transformers has other names for its keys."""
    layers = c.count("num_hidden_layers")
    if "sparse_attention_config" in c.values:
        s = c.section("sparse_attention_config")
        chosen = sum(map(bool, s.values_of("sparse_attention_freq", layers) or [1] * layers))
        blocks, block = s.count("sparse_topk_blocks"), s.count("sparse_block_size")
        heads, size = s.count("sparse_num_index_heads"), s.count("sparse_index_dim")
    else:
        chosen = (c.values_of("layer_types", layers) or ["minimax_m3_sparse"] * layers).count("minimax_m3_sparse")
        blocks, block = c.count("index_topk_blocks"), c.count("index_block_size")
        heads, size = c.count("index_n_heads"), c.count("index_head_dim")
        c.used.add("index_local_blocks")
    if not chosen:
        return None
    return Indexer(keys=blocks * block, heads=heads, size=size, layers=chosen, sparse=chosen)


def _minimax_m3(c: Config) -> Fields:
    c.on("use_qk_norm")
    c.expect("qk_norm_type", "per_head")
    c.on("use_routing_bias")
    indexer = _block_indexer(c)
    c.used |= {"use_mtp", "dense_intermediate_size", "intermediate_size"}
    c.off("attention_output_gate")
    c.expect("shared_intermediate_size", c.values.get("intermediate_size"))
    fields = equal_layers(c, attention={"bias": "none", "norm": "head", "indexer": indexer}, network=no_network)
    dense = dense_before(c, "moe_layer_freq", "mlp_layer_types", "first_k_dense_replace")
    return with_experts(
        c, fields, count="num_local_experts", width=c.present("moe_intermediate_size", "intermediate_size"),
        shared="n_shared_experts" if "n_shared_experts" in c.values else 1, dense=dense, dense_width="dense_intermediate_size", router_bias="expert",
    )  # fmt: skip


def _olmoe(c: Config) -> Fields:
    fields = equal_layers(c, attention={"norm": "all"}, network=no_network)
    c.used |= {"clip_qkv"}
    return with_experts(c, fields, width="intermediate_size")


def _granite_moe(c: Config) -> Fields:
    fields = equal_layers(c, network=no_network)
    return with_experts(c, fields, count="num_local_experts", width="intermediate_size")


def _glm4_moe(c: Config) -> Fields:
    norm = "head" if c.flag("use_qk_norm") else "none"
    attention = {"bias": ("attention_bias", False, "qkv"), "norm": norm}
    fields = equal_layers(c, attention=attention, network=no_network)
    return with_experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", dense=dense_before(c, "mlp_layer_types", "first_k_dense_replace", default=1),
        router_bias="expert",
    )  # fmt: skip


def _afmoe(c: Config) -> Fields:
    windows = partial(sliding_windows, default=1024, every=("global_attn_every_n_layers", 4))
    attention = {"size": 128, "norm": "head", "gate": "element"}
    fields = equal_layers(c, norms=4, windows=windows, attention=attention, network=no_network)
    return with_experts(
        c, fields, shared="num_shared_experts", dense=c.number("num_dense_layers", 1), router_bias="expert"
    )


def _dbrx(c: Config) -> Fields:
    inner, network = c.section("attn_config"), c.section("ffn_config")
    fields = outline(c, layers="n_layers", hidden="d_model", context="max_seq_len", norm="rms")
    heads = c.count("n_heads")
    fields["attention"] = Attention(
        heads=heads, kv_heads=inner.count("kv_n_heads"), head_size=head_share(c, "d_model", heads)
    )
    fields["experts"] = Experts(
        count=network.count("moe_num_experts"),
        active=network.count("moe_top_k"),
        width=network.count("ffn_hidden_size"),
        form="gated",
    )
    return fields


def latent_experts(
    c: Config, *, indexer: bool = False, router_bias: bool = True, dense: int = 3, count: str = "n_routed_experts"
) -> Fields:
    """Multi-head latent attention and experts after the first layers (DeepSeek-V2 and V3, Kimi K2, GLM-5)."""
    c.used |= {"head_dim", "num_key_value_heads", "index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration",
               "layer_types"}  # fmt: skip
    fields = outline(c)
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
        bias="all" if c.flag("attention_bias") else "none",
        latent=latent,
        indexer=chosen,
    )
    c.expect("moe_layer_freq", 1)
    c.expect("num_experts", c.values.get(count))
    first = dense_before(c, "mlp_layer_types", "first_k_dense_replace", default=dense)
    bias = "expert" if router_bias else "none"
    return with_experts(c, fields, count=count, shared="n_shared_experts", dense=first, router_bias=bias)


def _ernie(c: Config) -> Fields:
    """Experts from one layer to another, with one shared network of the width of several."""
    layers, first = c.count("num_hidden_layers"), c.number("moe_layer_start_index", 1)
    last = c.get("moe_layer_end_index", -1)
    c.expect("moe_layer_end_index", -1, layers - 1, last if last in (-1, layers - 1) else -1)
    c.expect("moe_layer_interval", 1)
    c.off("use_bias")
    fields = equal_layers(c, tied=True, attention={"bias": "none"}, network=no_network)
    shared, width = c.number("moe_num_shared_experts", 2), c.count("moe_intermediate_size")
    return with_experts(
        c, fields, count=c.present("moe_num_experts", "num_experts"), active=c.present("moe_k", "num_experts_per_tok"),
        shared=1 if shared else 0, shared_width=shared * width if shared > 1 else None, dense=first, router_bias="expert",
    )  # fmt: skip


def _hy_v3(c: Config) -> Fields:
    fields = equal_layers(c, attention={"norm": "head", "size": 128}, network=no_network)
    c.used |= {"router_scaling_factor", "enable_moe_fp32_combine", "mlp_bias"}
    first = dense_before(c, "mlp_layer_types", "first_k_dense_replace", default=1)
    return with_experts(c, fields, shared="num_shared_experts", dense=first, router_bias="expert")


def _solar_open(c: Config) -> Fields:
    fields = equal_layers(c, attention={"size": 128}, network=no_network)
    c.expect("first_k_dense_replace", 0)
    return with_experts(c, fields, count="n_routed_experts", shared="n_shared_experts", router_bias="expert")


def _exaone_moe(c: Config) -> Fields:
    c.used.add("sliding_window_pattern")
    windows = partial(sliding_windows, default=4096, every=4)
    fields = equal_layers(c, windows=windows, attention={"bias": "none", "norm": "head"}, network=no_network)
    first = dense_before(c, "mlp_layer_types", "first_k_dense_replace", default=1)
    c.used.add("first_k_dense_replace")
    return with_experts(c, fields, shared="num_shared_experts", dense=first, router_bias="expert")


def _phimoe(c: Config) -> Fields:
    c.off("lm_head_bias")
    c.used.add("input_jitter_noise")
    fields = equal_layers(c, norm="layer", windows=partial(sliding_windows), network=no_network)
    return with_experts(c, fields, count="num_local_experts", width="intermediate_size")


def _granite_moe_shared(c: Config) -> Fields:
    fields = equal_layers(c, network=no_network)
    shared = c.number("shared_intermediate_size", 0)
    return with_experts(
        c,
        fields,
        count="num_local_experts",
        width="intermediate_size",
        shared=1 if shared else 0,
        shared_width=shared or None,
    )


def _dots1(c: Config) -> Fields:
    fields = equal_layers(c, windows=late_windows, attention={"norm": "head"}, network=no_network)
    first = dense_before(c, "mlp_layer_types", "first_k_dense_replace", default=0)
    return with_experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", dense=first, router_bias="expert"
    )


_POOLED = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}


def _deepseek_v4(c: Config) -> Fields:
    """Pooled keys, some chosen by an indexer; a window in every layer; hyper-connections; experts by a table at first."""
    layers = c.count("num_hidden_layers")
    c.used |= {"compress_rates", "compress_rate_csa", "compress_rate_hca", "qk_rope_head_dim", "mlp_layer_types", "hc_eps",
               "hc_sinkhorn_iters", "compress_rope_theta"}  # fmt: skip
    rates = {**_POOLED, **(c.values.get("compress_rates") or {})}
    ratios = c.values_of("compress_ratios", layers)
    if ratios is None:
        kinds = c.values_of("layer_types", layers)
        if kinds is None:
            raise ConfigError("compress_ratios", "config.json has neither compress_ratios nor layer_types")
        ratios = [rates.get(kind) for kind in kinds]
    c.used.add("layer_types")
    few, many = rates["compressed_sparse_attention"], rates["heavily_compressed_attention"]
    if not {few, many} <= set(ratios) <= {0, few, many}:
        raise ConfigError(
            "compress_ratios", f"compress_ratios has other values than 0, {few} and {many}, or lacks one of these"
        )
    heads = c.count("num_attention_heads")
    c.expect("num_key_value_heads", 1)
    c.off("attention_bias")
    c.off("mlp_bias")
    fields = outline(c)
    fields["attention"] = Attention(
        heads=heads,
        kv_heads=1,
        head_size=c.count("head_dim"),
        norm="keys",
        values="shared",
        query_rank=c.count("q_lora_rank"),
        output=GroupedOutput(groups=c.count("o_groups"), rank=c.count("o_lora_rank")),
        sinks="head",
        window=c.count("sliding_window", 128),
        windowed=ratios.count(0) or None,
        indexer=Indexer(
            keys=c.count("index_topk"), heads=c.count("index_n_heads"), size=c.count("index_head_dim"),
            layers=ratios.count(few), sparse=ratios.count(few),
        ),
        pooling=Pooling(chosen=few, all=many, layers=ratios.count(many)),
    )  # fmt: skip
    fields["streams"] = c.count("hc_mult", 4)
    hashed = c.number("num_hash_layers", 3)
    return with_experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", router_bias="expert", hashed=hashed or None
    )


def _deepseek_v2(c: Config) -> Fields:
    c.used.add("topk_method")
    return latent_experts(c, router_bias=False, dense=0)


MIXTURES: Mapping[str, Callable[[Config], Fields]] = {
    "afmoe": _afmoe,
    "dbrx": _dbrx,
    "deepseek_ref": _deepseek_v4,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": latent_experts,
    "deepseek_v4": _deepseek_v4,
    "deepseek_v32": partial(latent_experts, indexer=True),
    "dots1": _dots1,
    "ernie4_5_moe": _ernie,
    "exaone_moe": _exaone_moe,
    "glm4_moe": _glm4_moe,
    "glm4_moe_lite": partial(latent_experts, dense=1),
    "glm_moe_dsa": partial(latent_experts, indexer=True),
    "gpt_oss": _gpt_oss,
    "granitemoe": _granite_moe,
    "granitemoeshared": _granite_moe_shared,
    "hy_v3": _hy_v3,
    "kimi_k2": latent_experts,
    "llama4_text": _llama4,
    "minimax_m2": _minimax_m2,
    "minimax_m3": _minimax_m3,
    "minimax_m3_vl_text": _minimax_m3,
    "mistral4": partial(latent_experts, router_bias=False, dense=0),
    "mixtral": _mixtral,
    "olmoe": _olmoe,
    "phimoe": _phimoe,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe_text": _qwen3_moe,
    "solar_open": _solar_open,
}
"""How the config.json of each ``model_type`` is read."""
