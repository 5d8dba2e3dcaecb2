"""Blocks of architectures that arguments of the table cannot describe: special attention, recurrences, experts of some layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import evolve

from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.parts import (
    Fields,
    by_heads,
    decoder,
    dense_before,
    sliding_windows,
)
from trnspec.model.transformers.model import (
    Attention,
    Experts,
    GroupedOutput,
    Indexer,
    LatentAttention,
    LocalAttention,
    Pooling,
    Recurrence,
)


def bert(
    c: Config, *, rename: Mapping[str, str] | None = None, segments: bool = True, offset: int = 0, **row: Any
) -> Fields:
    """An encoder; its head is that of masked-language modelling."""
    c.rename(rename or {})
    c.expect(position_embedding_type="absolute")
    kinds = c.count("type_vocab_size", 2) if segments else None
    bert_head = any(str(a).startswith("Bert") for a in c.get("architectures", None) or ())
    fixed = {
        "form": "encoder",
        "segments": kinds,
        "final_norm": "none",
        "embedding_norm": "one",
        "head": "bert" if bert_head else "none",
    }
    ignored = f"embedding_size type_vocab_size {row.pop('ignore', '')}"
    fields = decoder(
        c, ignore=ignored, tied=True, norm="layer", positions="learned", network={"form": "plain", "bias": True}, fixed=fixed,
        attention={"kv_heads": None, "head_dim": None, "bias": "all"}, **row,
    )  # fmt: skip
    if c.get("embedding_size", None) not in (None, fields["hidden"]):
        raise ConfigError("embedding_size", "embedding_size differs from hidden_size; the projection is not modelled")
    return fields | {"context": fields["context"] - offset}


def electra(c: Config, **row: Any) -> Fields:
    """BERT with the head of a discriminator."""
    c.count("embedding_size", 128)  # unlike BERT's, it is not the hidden size where it is missing
    c.values = {"embedding_size": 128, **c.values}
    return bert(c, **row)


# Windows.


def global_and_local(c: Config) -> Fields:
    """Windows of the layers that ``attention_types`` lists as local, by default every second one (GPT-Neo)."""
    layers = c.count("num_layers")
    listed = c.get("attention_types", [[["global", "local"], layers // 2]])
    local = [kind for part, times in listed for kind in part * times].count("local")
    window = c.count("window_size", 256) if local else None
    return {"window": window, "windowed": local if 0 < local < layers else None}


def chunks(c: Config) -> Fields:
    """Attention within chunks in all layers but every n-th (Llama 4)."""
    layers = c.count("num_hidden_layers")
    without = c.values_of("no_rope_layers", layers)
    interval = c.get("no_rope_layer_interval", None) or 4
    types = c.values_of("layer_types", layers)
    chunk = c.get("attention_chunk_size", 8192)
    if types:
        return {"window": chunk, "windowed": types.count("chunked_attention")}
    return {"window": chunk, "windowed": sum(map(bool, without)) if without else layers - layers // interval}


# Attention.


def falcon_kv_heads(c: Config) -> int | str:
    """One head of keys and values, or the key of them (Falcon)."""
    c.used.add("num_kv_heads")
    one = c.flag("multi_query", default=True)
    return "num_kv_heads" if c.flag("new_decoder_architecture") or not one else 1


def mpt_kv_heads(c: Config) -> int | str | None:
    """The key of the heads of keys and values, which grouped-query attention needs; otherwise the number (MPT)."""
    key = "attn_config.kv_n_heads"
    kind = c.get("attn_config.attn_type", "multihead_attention")
    if c.get(key, None) or kind == "grouped_query_attention":
        return key
    return 1 if kind == "multiquery_attention" else None


def falcon_norms(c: Config) -> int:
    """Norms of a layer; attention and network in parallel have one, or two (Falcon)."""
    new = c.flag("new_decoder_architecture")
    stated = c.get("num_ln_in_parallel_attn", None)
    return (stated or (2 if new else 1)) if c.flag("parallel_attn", default=True) else 2


def latent(c: Config, *, indexer: bool = False) -> Attention:
    """Multi-head latent attention (DeepSeek-V2 and V3, Kimi K2, GLM-5), with the indexer of DeepSeek-V3.2."""
    c.used |= {"head_dim", "num_key_value_heads", "index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration",
               "layer_types"}  # fmt: skip
    heads, layers = c.count("num_attention_heads"), c.count("num_hidden_layers")
    sizes = LatentAttention(
        query_rank=c.get("q_lora_rank", None),
        rank=c.count("kv_lora_rank"),
        nope_size=c.count("qk_nope_head_dim"),
        rope_size=c.count("qk_rope_head_dim"),
        value_size=c.count("v_head_dim"),
    )
    chosen = None
    if indexer:
        full = (c.values_of("indexer_types", layers) or []).count("full")
        chosen = Indexer(**_index_sizes(c), layers=full if 0 < full < layers else None)
    bias: Literal["all", "none"] = "all" if c.flag("attention_bias") else "none"
    return Attention(heads=heads, kv_heads=heads, head_size=sizes.value_size, bias=bias, latent=sizes, indexer=chosen)


def _index_sizes(c: Config) -> dict[str, int]:
    return {"keys": c.count("index_topk"), "heads": c.count("index_n_heads"), "size": c.count("index_head_dim")}


def gated_latent(c: Config) -> Attention:
    """Latent attention whose output has a gate where ``mla_use_output_gate`` says so (Kimi Linear)."""
    return evolve(latent(c), gate="element" if c.flag("mla_use_output_gate") else "none")


def block_indexer(c: Config) -> Indexer | None:
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


_POOLED = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}


def pooled(c: Config) -> Attention:
    """Pooled keys, some chosen by an indexer, and a window in every layer (DeepSeek-V4)."""
    layers = c.count("num_hidden_layers")
    rates: dict[str, Any] = {**_POOLED, **(c.values.get("compress_rates") or {})}
    ratios = c.values_of("compress_ratios", layers)
    if ratios is None:
        kinds = c.values_of("layer_types", layers)
        if kinds is None:
            raise ConfigError("compress_ratios", "config.json has neither compress_ratios nor layer_types")
        ratios = [rates.get(kind) for kind in kinds]
    few, many = rates["compressed_sparse_attention"], rates["heavily_compressed_attention"]
    if not {few, many} <= set(ratios) <= {0, few, many}:
        raise ConfigError(
            "compress_ratios", f"compress_ratios has other values than 0, {few} and {many}, or lacks one of these"
        )
    return Attention(
        heads=c.count("num_attention_heads"),
        kv_heads=1,
        head_size=c.count("head_dim"),
        norm="keys",
        values="shared",
        query_rank=c.count("q_lora_rank"),
        output=GroupedOutput(groups=c.count("o_groups"), rank=c.count("o_lora_rank")),
        sinks="head",
        window=c.count("sliding_window", 128),
        windowed=ratios.count(0) or None,
        indexer=Indexer(**_index_sizes(c), layers=ratios.count(few), sparse=ratios.count(few)),
        pooling=Pooling(chosen=few, all=many, layers=ratios.count(many)),
    )


def swa_attention(c: Config) -> Attention:
    """Windowed layers with other KV heads and sinks, in ``swa_...`` (MiMo-V2-Flash)."""
    pattern = c.values_of("hybrid_layer_pattern", c.count("num_hidden_layers"))
    if pattern is not None:
        kinds = ["sliding_attention" if each else "full_attention" for each in pattern]
        c.values = {**c.values, "layer_types": kinds}
    if not c.values.get("layer_types"):
        raise ConfigError("hybrid_layer_pattern", "config.json has neither hybrid_layer_pattern nor layer_types")
    heads, kv_heads = c.count("num_attention_heads"), c.count("num_key_value_heads")
    size, value = c.count("head_dim"), c.count("v_head_dim")
    local = {
        "heads": c.get("swa_num_attention_heads", None) or heads,
        # Transformers has no key for it and doubles them.
        "kv_heads": c.get("swa_num_key_value_heads", None) or 2 * kv_heads,
        "head_size": c.get("swa_head_dim", None) or size,
        "value_size": c.get("swa_v_head_dim", None) or value,
        "sinks": "head" if c.flag("add_swa_attention_sink_bias", default=True) else "none",
    }
    attention = {"heads": heads, "kv_heads": kv_heads, "head_size": size, "value_size": value}
    return _with_local(attention, local, sliding_windows(c, default=128))


def _with_local(attention: dict[str, Any], local: dict[str, Any], windows: Fields) -> Attention:
    """Attention with what differs in windowed layers; where all layers are windowed, theirs alone."""
    full = {"value_size": attention["head_size"], "values": "own", "sinks": "none"} | attention
    own = full | {"value_size": local.get("head_size", full["value_size"])} | local
    if not windows:
        return _attention(full)
    if windows["windowed"] is None:
        return _attention(own, **windows)
    differing = {name: own[name] for name in local if name != "value_size" and own[name] != full[name]}
    # A value has the size of a head where that is stated, and else that of the other layers.
    if own["value_size"] != differing.get("head_size", full["value_size"]):
        differing["value_size"] = own["value_size"]
    return _attention(full, **windows, local=LocalAttention(**differing) if differing else None)


def _attention(stated: dict[str, Any], **more: Any) -> Attention:
    """Attention; the size of a value is left out where it is that of a head."""
    left_out = "value_size" if stated["value_size"] == stated["head_size"] else ""
    return Attention(**{name: value for name, value in stated.items() if name != left_out}, **more)


def global_heads(c: Config) -> Attention:
    """Layers without a window that have larger heads, fewer of them for keys, and values that are the keys (Gemma 4)."""
    for key, default, what in (
        ("hidden_size_per_layer_input", 256, "embeddings of each layer"),
        ("num_kv_shared_layers", 0, "layers that share keys and values"),
    ):
        if c.number(key, default):
            raise ConfigError(key, f"{key}: {what} are not modelled")
    same = c.flag("attention_k_eq_v")
    windowed = by_heads(c, size=256, norm="head")
    attention = {
        "heads": windowed.heads,
        "kv_heads": (c.get("num_global_key_value_heads", None) if same else None) or windowed.kv_heads,
        "head_size": c.count("global_head_dim", 512),
        "values": "keys" if same else "own",
        "norm": "head",
        "bias": windowed.bias,
    }
    local = {"kv_heads": windowed.kv_heads, "head_size": windowed.head_size, "values": "own"}
    return _with_local(attention, local, sliding_windows(c, default=512, every=6))


def heads_by_layer(c: Config) -> Attention:
    """Query heads that are stated for each layer, and a gate of the heads' output (Laguna)."""
    layers = c.count("num_hidden_layers")
    types = c.values_of("layer_types", layers) or ["full_attention"] * layers
    counts = c.values_of("num_attention_heads_per_layer", layers) or [c.count("num_attention_heads")] * layers
    by_kind = {kind: {n for n, each in zip(counts, types, strict=True) if each == kind} for kind in set(types)}
    if any(len(each) > 1 for each in by_kind.values()):
        key = "num_attention_heads_per_layer"
        raise ConfigError(key, f"{key} differs within layers of a kind, which is not modelled")
    gating = c.get("gating", default=True)
    if gating not in (True, "per-head", "per-element"):
        raise ConfigError("gating", f"gating is {gating!r}; expected true, 'per-head' or 'per-element'")
    base = by_heads(c, size=128)
    full = next(iter(by_kind.get("full_attention", by_kind[types[0]])))
    attention = {
        "heads": full, "kv_heads": base.kv_heads, "head_size": base.head_size, "norm": "head", "bias": base.bias,
        "gate": "element" if gating == "per-element" else "head",
    }  # fmt: skip
    local = {"heads": next(iter(by_kind.get("sliding_attention", {full}))), "head_size": base.head_size}
    return _with_local(attention, local, sliding_windows(c, default=512))


# Recurrences.


def attended(c: Config, key: str = "layer_types") -> int:
    """The layers with attention among those with a recurrence; ``key`` is named where there are none."""
    count = len(c.values_of("attn_layer_indices") or ())
    if not count:
        kinds = c.values_of(c.present("layer_types", "layers_block_type"), c.count("num_hidden_layers")) or ()
        count = sum(each in ("attention", "full_attention") for each in kinds)
    if not count:
        raise ConfigError(key, f"{key} has no layer with attention; one at least is needed")
    return count


def gated_delta(c: Config) -> Recurrence:
    """Gated delta nets in all but every fourth layer (Qwen3-Next)."""
    layers = c.count("num_hidden_layers")
    types = c.values_of("layer_types", layers)
    every = c.count("full_attention_interval", 4)
    return Recurrence(
        form="gated-delta",
        layers=layers - layers // every if types is None else types.count("linear_attention"),
        heads=c.count("linear_num_value_heads"),
        key_heads=c.count("linear_num_key_heads"),
        key_size=c.count("linear_key_head_dim"),
        value_size=c.count("linear_value_head_dim"),
        kernel=c.count("linear_conv_kernel_dim"),
    )


def mamba2(c: Config, key: str = "layer_types") -> Recurrence:
    """Mamba-2 in all layers without attention, with the keys that Bamba and Granite have."""
    c.expect(mamba_conv_bias=True, mamba_proj_bias=False)
    layers = c.count("num_hidden_layers") - attended(c, key)
    heads, expand = c.count("mamba_n_heads", 128), c.count("mamba_expand", 2)
    size = c.get("mamba_d_head", "auto")
    return Recurrence(
        form="mamba2",
        layers=layers,
        heads=heads,
        key_heads=c.count("mamba_n_groups", 1),
        key_size=c.count("mamba_d_state", 256),
        value_size=expand * c.count("hidden_size") // heads if size == "auto" else c.count("mamba_d_head"),
        kernel=c.count("mamba_d_conv", 4),
    )


def kimi_delta(c: Config) -> Recurrence:
    """Kimi Delta Attention in most layers, with sizes in a section or in keys of Transformers (Kimi Linear)."""
    if "linear_attn_config" in c.values:
        sizes = c.section("linear_attn_config")
        full = len(sizes.values_of("full_attn_layers") or ())
        names, full_rank = ("num_heads", "head_dim", "short_conv_kernel_size"), sizes.flag("use_full_rank_gate")
        heads, size, kernel = sizes.count(names[0]), sizes.count(names[1]), sizes.count(names[2], 4)
    else:
        full, full_rank = attended(c), False
        heads, size = c.count("linear_num_heads", 32), c.count("linear_head_dim", 128)
        kernel = c.count("linear_conv_kernel_dim", 4)
    if not full:
        raise ConfigError("layer_types", "layer_types has no layer with attention; one at least is needed")
    return Recurrence(
        form="kda", layers=c.count("num_hidden_layers") - full, heads=heads, key_heads=heads, key_size=size, value_size=size,
        kernel=kernel, gate_rank=None if full_rank else size,
    )  # fmt: skip


_OPERATIONS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NAMES = {"linear_attention": "mamba", "full_attention": "attention"}  # of Transformers 5


def nemotron_h(c: Config) -> Fields:
    """Layers of a single operation each: Mamba-2, attention, a dense network, or experts."""
    pattern = c.get("hybrid_override_pattern", None)
    named = c.values_of("layers_block_type") or ()
    kinds = [_NAMES.get(kind, kind) for kind in named]
    if pattern is not None:
        kinds = [_OPERATIONS.get(letter, letter) for letter in str(pattern)]
    if not kinds:
        raise ConfigError("layers_block_type", "config.json has neither hybrid_override_pattern nor layers_block_type")
    unknown = next((k for k in kinds if k not in _OPERATIONS.values()), None)
    if unknown is not None:
        key = c.present("hybrid_override_pattern", "layers_block_type")
        raise ConfigError(key, f"{key} has {unknown!r}, which is not a kind of layer; known: {', '.join(_OPERATIONS)}")
    count = {kind: kinds.count(kind) for kind in _OPERATIONS.values()}
    biased = c.flag("use_bias")
    recurrence = Recurrence(
        form="mamba2",
        layers=count["mamba"],
        heads=c.count("mamba_num_heads"),
        key_heads=c.count("n_groups"),
        key_size=c.count("ssm_state_size"),
        value_size=c.count("mamba_head_dim"),
        kernel=c.count("conv_kernel"),
        bias="all" if biased else "none",
    )
    head_dim = "attention_head_dim" if "attention_head_dim" in c.values else "head_dim"  # an older name
    network = {"form": "plain", "bias": ("mlp_bias", False), "layers": count["mlp"]}
    fields = decoder(
        c, expect={"use_conv_bias": True, "mlp_hidden_act": "relu2", "mamba_proj_bias": biased, "sliding_window": ()},
        ignore="layers_block_type mtp_layers_block_type mtp_hybrid_override_pattern expand num_hidden_layers head_dim", norms=1,
        layers=len(kinds), attention={"size": 128, "head_dim": head_dim, "layers": count["attention"]},
        network=network if count["mlp"] else {"width": 1},
    ) | {"recurrence": recurrence}  # fmt: skip
    if not count["mlp"]:
        c.used |= {"intermediate_size", "mlp_bias"}
        del fields["feed_forward"]
    keys = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "moe_latent_size")
    if not count["moe"]:
        c.used |= {*keys, "n_shared_experts", "moe_shared_expert_intermediate_size"}
    else:
        shared = c.number("n_shared_experts", 1)
        fields["experts"] = Experts(
            layers=count["moe"], count=c.count(keys[0]), active=c.count(keys[1]), width=c.count(keys[2]), form="plain",
            router_bias="expert", shared=shared or None, latent=c.get(keys[3], None),
            shared_width=c.count("moe_shared_expert_intermediate_size") if shared else None,
        )  # fmt: skip
    return fields


# Experts.


def between_sparse(c: Config) -> int:
    """Layers without experts: all but every ``decoder_sparse_step``-th, and those of ``mlp_only_layers`` (Qwen)."""
    step, dense = c.get("decoder_sparse_step", None) or 1, set(c.values_of("mlp_only_layers") or ())
    return sum(i in dense or bool((i + 1) % step) for i in range(c.count("num_hidden_layers")))


def gated_shared(c: Config) -> Fields:
    """Experts between dense layers, and one shared expert with a gate where it has a width (Qwen)."""
    width = c.get("shared_expert_intermediate_size", None)
    if not width:
        return {"dense": between_sparse}
    same = width == c.count("moe_intermediate_size")
    return {"shared": 1, "shared_width": None if same else width, "shared_gate": "one", "dense": between_sparse}


def interleaved(c: Config) -> Fields:
    """Experts in every n-th layer, or in listed ones (Llama 4)."""
    c.notes.append("The norms of queries and keys have no parameters. Windowed layers see the chunk that they are in.")
    layers, step = c.count("num_hidden_layers"), c.count("interleave_moe_layer_step", 1)
    listed = c.values_of("moe_layers")
    dense = layers - (len(listed) if listed else len(range(step - 1, layers, step)))
    return {"count": "num_local_experts", "width": "intermediate_size", "shared": 1, "dense": dense,
            "dense_width": "intermediate_size_mlp"}  # fmt: skip


def minimax_m3(c: Config) -> Fields:
    """Experts after the first layers, one shared (MiniMax-M3)."""
    keys = ("moe_layer_freq", "mlp_layer_types", "first_k_dense_replace")
    return {
        "count": "num_local_experts", "width": c.present("moe_intermediate_size", "intermediate_size"),
        "shared": "n_shared_experts" if "n_shared_experts" in c.values else 1, "dense": dense_before(c, keys),
        "dense_width": "dense_intermediate_size", "router_bias": "expert",
    }  # fmt: skip


def ernie(c: Config) -> Fields:
    """Experts from one layer to another, with one shared network of the width of several."""
    c.get("moe_layer_end_index", -1)
    shared, width = c.number("moe_num_shared_experts", 2), c.count("moe_intermediate_size")
    return {
        "count": c.present("moe_num_experts", "num_experts"), "active": c.present("moe_k", "num_experts_per_tok"),
        "shared": 1 if shared else 0, "shared_width": shared * width if shared > 1 else None,
        "dense": lambda c: c.number("moe_layer_start_index", 1), "router_bias": "expert",
    }  # fmt: skip


def kimi(c: Config) -> Fields:
    """Experts that process compressed vectors, whose projection back may be normalised (Kimi Linear)."""
    size = c.get("routed_expert_hidden_size", None)
    normed = c.flag("latent_moe_use_norm") and size is not None
    return {
        "count": c.present("num_experts", "num_local_experts"), "shared": "n_shared_experts", "router_bias": "expert",
        "dense": lambda c: dense_before(c, ("mlp_layer_types", "first_k_dense_replace"), 1), "latent": size,
        "latent_norm": "one" if normed else "none",
    }  # fmt: skip


def gemma4(c: Config) -> Fields | None:
    """Experts next to the dense network of each layer, where they are enabled."""
    if not c.flag("enable_moe_block"):
        c.used |= {"num_experts", "top_k_experts", "moe_intermediate_size"}
        return None
    c.notes.append("The dense network of each layer is its shared expert; the scale of the router's input is a norm.")
    shared = c.count("intermediate_size")
    return {"active": "top_k_experts", "shared": 1, "shared_width": shared, "router_bias": "expert"}


def granite(c: Config) -> Fields | None:
    """Experts and a shared one; or a dense network of its width where there are none (Granite 4.0)."""
    if not c.number("num_local_experts", 8):
        c.used |= {"num_experts_per_tok", "intermediate_size"}
        return None
    shared = c.count("shared_intermediate_size", 1024)
    return {"count": "num_local_experts", "width": "intermediate_size", "shared": 1, "shared_width": shared}
