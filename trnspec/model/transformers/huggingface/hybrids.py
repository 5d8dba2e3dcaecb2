"""Hybrids: layers with a recurrence among those with attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.mixtures import gated_shared, qwen_experts
from trnspec.model.transformers.huggingface.parts import Fields, by_heads, dense_network, outline
from trnspec.model.transformers.model import Experts, Recurrence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _delta_net(c: Config) -> Fields:
    """Gated delta nets in all but every fourth layer, and attention with an output gate in the others (Qwen3-Next)."""
    fields = outline(c)
    layers = fields["layers"]
    types = c.values_of("layer_types", layers)
    every = c.count("full_attention_interval", 4)
    recurrent = layers - layers // every if types is None else types.count("linear_attention")
    c.on("attn_output_gate")
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
    attention = by_heads(c, size=256, norm="head", gate="element")
    return fields | {"recurrence": recurrence, "attention": attention}


def _qwen3_5(c: Config) -> Fields:
    return _delta_net(c) | {"feed_forward": dense_network(c)}


def _qwen3_next(c: Config) -> Fields:
    return qwen_experts(c, _delta_net(c), **gated_shared(c))


_BLOCKS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NAMES = {"linear_attention": "mamba", "full_attention": "attention"}  # of Transformers 5


def _nemotron_h(c: Config) -> Fields:
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
    c.on("use_conv_bias")
    c.used |= {"layers_block_type", "mtp_layers_block_type", "mtp_hybrid_override_pattern", "expand"}
    c.expect("mlp_hidden_act", "relu2")
    biased: Literal["all", "none"] = "all" if c.flag("use_bias") else "none"
    c.expect("mamba_proj_bias", biased == "all")
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
    c.expect("sliding_window")
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


HYBRIDS: Mapping[str, Callable[[Config], Fields]] = {
    "nemotron_h": _nemotron_h,
    "qwen3_5_moe_text": _qwen3_next,
    "qwen3_5_text": _qwen3_5,
    "qwen3_next": _qwen3_next,
}
"""How the config.json of each ``model_type`` is read."""
