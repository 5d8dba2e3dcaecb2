"""Readers of hybrids: layers with a recurrence among those with attention."""

from __future__ import annotations

from typing import Literal

from attrs import evolve

from trnspec.model.transformers.huggingface.blocks import between_sparse, gated_shared, latent_experts
from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.parts import Fields, by_heads, dense_network, outline, with_experts
from trnspec.model.transformers.model import Experts, Recurrence


def _delta_net(c: Config) -> Fields:
    """Gated delta nets in all but every fourth layer, and attention with an output gate in the others (Qwen3-Next)."""
    fields = outline(c)
    layers = fields["layers"]
    types = c.values_of("layer_types", layers)
    every = c.count("full_attention_interval", 4)
    recurrent = layers - layers // every if types is None else types.count("linear_attention")
    c.expect(attn_output_gate=True, output_gate_type="swish")
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
    attention = by_heads(c, size=256, norm="head", gate="element")
    return fields | {"recurrence": recurrence, "attention": attention}


def qwen3_5(c: Config) -> Fields:
    """Gated delta nets and attention, with a dense network."""
    return _delta_net(c) | {"feed_forward": dense_network(c)}


def qwen3_next(c: Config) -> Fields:
    """Gated delta nets and attention, with experts."""
    fields = _delta_net(c)
    return with_experts(c, fields, dense=between_sparse(c), **gated_shared(c))


_BLOCKS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NAMES = {"linear_attention": "mamba", "full_attention": "attention"}  # of Transformers 5


def nemotron_h(c: Config) -> Fields:
    """Layers of a single operation each: Mamba-2, attention, a dense network, or experts."""
    pattern = c.get("hybrid_override_pattern", None)
    named = c.values_of("layers_block_type")
    kinds = (
        [_NAMES.get(kind, kind) for kind in named or ()]
        if pattern is None
        else [_BLOCKS.get(letter, letter) for letter in str(pattern)]
    )
    if not kinds:
        raise ConfigError("layers_block_type", "config.json has neither hybrid_override_pattern nor layers_block_type")
    unknown = next((k for k in kinds if k not in _BLOCKS.values()), None)
    if unknown is not None:
        key = c.present("hybrid_override_pattern", "layers_block_type")
        raise ConfigError(key, f"{key} has {unknown!r}, which is not a kind of layer; known: {', '.join(_BLOCKS)}")
    c.values = {**c.values, "num_hidden_layers": len(kinds)}
    count = {kind: kinds.count(kind) for kind in _BLOCKS.values()}
    c.expect(use_conv_bias=True)
    c.used |= {"layers_block_type", "mtp_layers_block_type", "mtp_hybrid_override_pattern", "expand"}
    c.expect(mlp_hidden_act="relu2")
    biased: Literal["all", "none"] = "all" if c.flag("use_bias") else "none"
    c.expect(mamba_proj_bias=biased == "all")
    fields = outline(c, norms=1)
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
    fields["attention"] = by_heads(c, size=128, layers=count["attention"])
    c.expect(sliding_window=())
    if count["mlp"]:
        fields["feed_forward"] = dense_network(c, form="plain", bias=("mlp_bias", False), layers=count["mlp"])
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


def kimi_linear(c: Config) -> Fields:
    """Kimi Delta Attention in most layers, and latent attention in the others (Kimi Linear)."""
    c.used |= {"mla_use_nope", "num_expert_group", "head_dim", "moe_layer_freq", "activation_situ_beta",
               "activation_situ_linear_beta"}  # fmt: skip
    layers = c.count("num_hidden_layers")
    names = {
        "num_shared_experts": "n_shared_experts",
        "num_experts_per_token": "num_experts_per_tok",
        "model_max_length": "max_position_embeddings",
    }
    c.used |= set(names)
    c.values = {**{name: c.values[key] for key, name in names.items() if key in c.values}, **c.values}
    types = c.values_of("layer_types", layers)
    sizes = c.section("linear_attn_config") if "linear_attn_config" in c.values else None
    if sizes is not None:
        full = len(sizes.values_of("full_attn_layers") or ())
        heads, size, kernel = (
            sizes.count("num_heads"),
            sizes.count("head_dim"),
            sizes.count("short_conv_kernel_size", 4),
        )
        rank = None if sizes.flag("use_full_rank_gate") else size
    else:
        full = (types or []).count("full_attention")
        heads, size, kernel = (
            c.count("linear_num_heads", 32),
            c.count("linear_head_dim", 128),
            c.count("linear_conv_kernel_dim", 4),
        )
        rank = size
    if not full:
        raise ConfigError("layer_types", "layer_types has no layer with attention; one at least is needed")
    fields = latent_experts(c, count=c.present("num_experts", "num_local_experts"), dense=1)
    if c.flag("mla_use_output_gate"):
        fields["attention"] = evolve(fields["attention"], gate="element")
    latent = c.get("routed_expert_hidden_size", None)
    normed = c.flag("latent_moe_use_norm") and latent is not None
    fields["experts"] = evolve(fields["experts"], latent=latent, latent_norm="one" if normed else "none")
    fields["block"] = c.get("attn_res_block_size", None)
    fields["recurrence"] = Recurrence(
        form="kda", layers=layers - full, heads=heads, key_heads=heads, key_size=size, value_size=size, kernel=kernel,
        gate_rank=rank,
    )  # fmt: skip
    return fields


def bamba(c: Config) -> Fields:
    """Mamba-2 in most layers, attention in those of a list, and a dense network in all."""
    layers = c.count("num_hidden_layers")
    attended = len(c.values_of("attn_layer_indices") or ()) or (c.values_of("layer_types", layers) or []).count(
        "full_attention"
    )
    if not attended:
        raise ConfigError(
            "attn_layer_indices", "attn_layer_indices has no layer with attention; one at least is needed"
        )
    c.used |= {"attn_layer_indices", "layer_types", "mamba_chunk_size", "attn_rotary_emb", "z_loss_coefficient"}
    fields = outline(c)
    fields["recurrence"] = _mamba2(c, layers - attended)
    return fields | {"attention": by_heads(c), "feed_forward": dense_network(c, bias=("mlp_bias", False))}


def _mamba2(c: Config, layers: int) -> Recurrence:
    """Mamba-2 with the keys that Bamba and Granite have."""
    c.expect(mamba_conv_bias=True, mamba_proj_bias=False)
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


def granite_hybrid(c: Config) -> Fields:
    """Mamba-2 in most layers, and attention in the others (Granite 4.0)."""
    layers = c.count("num_hidden_layers")
    types = c.values_of(c.present("layer_types", "layers_block_type"), layers) or ["linear_attention"] * layers
    attended = sum(each in {"attention", "full_attention"} for each in types)
    if not attended:
        raise ConfigError("layer_types", "layer_types has no layer with attention; one at least is needed")
    c.used |= {"mamba_chunk_size", "normalization_function", "init_method", "layers_block_type"}
    fields = outline(c)
    fields["recurrence"] = _mamba2(c, layers - attended)
    fields["attention"] = by_heads(c)
    fields["positions"] = "none" if c.get("position_embedding_type", None) == "nope" else "rotary"
    if not c.number("num_local_experts", 8):
        c.used |= {"num_experts_per_tok", "intermediate_size"}
        return fields | {"feed_forward": dense_network(c, width="shared_intermediate_size")}
    return with_experts(
        c,
        fields,
        count="num_local_experts",
        width="intermediate_size",
        shared=1,
        shared_width=c.count("shared_intermediate_size", 1024),
    )
