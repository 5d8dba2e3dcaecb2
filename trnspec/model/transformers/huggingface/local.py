"""Readers of decoders whose windowed layers have heads of their own."""

from __future__ import annotations

from typing import Any

from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.parts import (
    Fields,
    by_heads,
    dense_before,
    dense_network,
    outline,
    sliding_windows,
    with_experts,
)
from trnspec.model.transformers.model import Attention, LocalAttention


def mimo_v2(c: Config) -> Fields:
    """MiMo-V2-Flash: windowed layers have other KV heads, and sinks."""
    if "norm_eps" not in c.values and "layernorm_epsilon" in c.values:
        c.used.add("layernorm_epsilon")
    pattern = c.values_of("hybrid_layer_pattern", c.count("num_hidden_layers"))
    if pattern is not None:
        kinds = ["sliding_attention" if each else "full_attention" for each in pattern]
        c.values = {**c.values, "layer_types": kinds}
    if not c.values.get("layer_types"):
        raise ConfigError("hybrid_layer_pattern", "config.json has neither hybrid_layer_pattern nor layer_types")
    c.used |= {"sliding_window_size", "attention_chunk_size", "hybrid_block_size"}
    c.expect(sliding_window_size=c.values.get("sliding_window"))
    fields = outline(c)
    heads, kv_heads = c.count("num_attention_heads"), c.count("num_key_value_heads")
    c.expect(attention_bias=False, add_full_attention_sink_bias=False)
    attention = {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_size": c.count("head_dim"),
        "value_size": c.count("v_head_dim"),
    }
    local = {
        "heads": c.get("swa_num_attention_heads", None) or heads,
        # Transformers has no key for it and doubles them.
        "kv_heads": c.get("swa_num_key_value_heads", None) or 2 * kv_heads,
        "head_size": c.get("swa_head_dim", None) or attention["head_size"],
        "value_size": c.get("swa_v_head_dim", None) or attention["value_size"],
        "sinks": "head" if c.flag("add_swa_attention_sink_bias", default=True) else "none",
    }
    fields["attention"] = _with_local(attention, local, sliding_windows(c, default=128))
    first = dense_before(c, ("mlp_layer_types", "moe_layer_freq"), default=1)
    return with_experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", dense=first, router_bias="expert"
    )


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


def gemma4(c: Config) -> Fields:
    """Gemma 4: the layers without a window have larger heads, fewer of them for keys, and values that are the keys."""
    if c.number("hidden_size_per_layer_input", 256):
        raise ConfigError(
            "hidden_size_per_layer_input", "hidden_size_per_layer_input: embeddings of each layer are not modelled"
        )
    if c.number("num_kv_shared_layers", 0):
        raise ConfigError(
            "num_kv_shared_layers", "num_kv_shared_layers: layers that share keys and values are not modelled"
        )
    c.used |= {"vocab_size_per_layer_input", "use_double_wide_mlp", "expert_intermediate_size"}
    c.expect(use_bidirectional_attention="vision")
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
    c.used.add("num_global_key_value_heads")
    local = {"kv_heads": windowed.kv_heads, "head_size": windowed.head_size, "values": "own"}
    windows = sliding_windows(c, default=512, every=6)
    fields = outline(c, tied=True, norms=4) | {"attention": _with_local(attention, local, windows)}
    if not c.flag("enable_moe_block"):
        c.used |= {"num_experts", "top_k_experts", "moe_intermediate_size"}
        return fields | {"feed_forward": dense_network(c)}
    c.notes.append("The dense network of each layer is its shared expert; the scale of the router's input is a norm.")
    fields["norms"] = 8  # with those of both networks, and the scale of the router's input
    return with_experts(
        c, fields, active="top_k_experts", shared=1, shared_width=c.count("intermediate_size"), router_bias="expert"
    )


def per_layer_heads(c: Config) -> Fields:
    """Laguna: the query heads are stated for each layer, and the heads' output has a gate."""
    layers = c.count("num_hidden_layers")
    types = c.values_of("layer_types", layers) or ["full_attention"] * layers
    counts = c.values_of("num_attention_heads_per_layer", layers) or [c.count("num_attention_heads")] * layers
    by_kind = {kind: {n for n, each in zip(counts, types, strict=True) if each == kind} for kind in set(types)}
    if any(len(each) > 1 for each in by_kind.values()):
        raise ConfigError(
            "num_attention_heads_per_layer",
            "num_attention_heads_per_layer differs within layers of a kind, which is not modelled",
        )
    gating = c.get("gating", default=True)
    if gating not in (True, "per-head", "per-element"):
        raise ConfigError("gating", f"gating is {gating!r}; expected true, 'per-head' or 'per-element'")
    base = by_heads(c, size=128)
    full = next(iter(by_kind.get("full_attention", by_kind[types[0]])))
    attention = {
        "heads": full, "kv_heads": base.kv_heads, "head_size": base.head_size, "norm": "head", "bias": base.bias,
        "gate": "element" if gating == "per-element" else "head",
    }  # fmt: skip
    local = {"heads": next(iter(by_kind.get("sliding_attention", {full})))}
    fields = outline(c) | {
        "attention": _with_local(attention, local | {"head_size": base.head_size}, sliding_windows(c, default=512))
    }
    first = dense_before(c, ("mlp_layer_types",), default=1)
    return with_experts(
        c,
        fields,
        shared=1,
        shared_width=c.count("shared_expert_intermediate_size", 512),
        dense=first,
        router_bias="expert",
    )
