"""Table of the architectures of config.json, by ``model_type``: a row of arguments of `decoder`, or the function that reads it.

Defaults and fixed properties are those of the classes of Transformers 5.23.0 (``configuration_*.py``, ``modeling_*.py``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from trnspec.model.transformers.huggingface import blocks, hybrids, local
from trnspec.model.transformers.huggingface.parts import dense_before, late_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trnspec.model.transformers.huggingface.config import Config
    from trnspec.model.transformers.huggingface.parts import Fields


def _after_dense(default: int) -> Callable[[Config], int]:
    return partial(dense_before, keys=("mlp_layer_types", "first_k_dense_replace"), default=default)


_MLP_BIAS: Fields = {"bias": ("mlp_bias", False)}
_PLAIN: Fields = {"form": "plain", "bias": True}
_QKV_BIAS: Fields = {"size": 128, "bias": ("attention_bias", True, "qkv")}
_ROUTED: Fields = {"count": "n_routed_experts", "shared": "n_shared_experts", "router_bias": "expert"}
_LOCAL: Fields = {"count": "num_local_experts", "width": "intermediate_size"}
_EXAONE: Fields = {
    "ignore": "sliding_window_pattern", "windows": {"default": 4096, "every": 4}, "attention": {"bias": "none", "norm": "head"},
}  # fmt: skip
_LLAMA: Fields = {"network": _MLP_BIAS}
_MISTRAL: Fields = {"windows": {"default": 4096}, "attention": {"bias": "none"}}
_QWEN2: Fields = {"windows": late_windows, "attention": {"bias": "qkv"}}
_QWEN3: Fields = {"windows": late_windows, "attention": {"size": 128, "norm": "head"}}
_QWEN3_MOE: Fields = {
    "expect": {"use_qk_norm": True, "qkv_bias": False, "shared_expert_intermediate_size": 0},
    "windows": late_windows, "attention": {"norm": "head"}, "experts": {"dense": blocks.between_sparse},
}  # fmt: skip

ARCHITECTURES: Mapping[str, Fields | Callable[[Config], Fields]] = {
    "afmoe": {
        "norms": 4, "windows": {"default": 1024, "every": ("global_attn_every_n_layers", 4)},
        "attention": {"size": 128, "norm": "head", "gate": "element"},
        "experts": {
            "shared": "num_shared_experts", "dense": lambda c: c.number("num_dense_layers", 1), "router_bias": "expert",
        },
    },
    "apertus": {"network": {"form": "plain"}, "attention": {"norm": "head"}},
    "arcee": {"network": _MLP_BIAS | {"form": "plain"}},
    "bamba": hybrids.bamba,
    "bert": blocks.bert,
    "bloom": blocks.bloom,
    "cohere": {"tied": True, "norms": 1, "attention": {"norm": lambda c: "all" if c.flag("use_qk_norm") else "none"}},
    "cohere2": {
        "expect": {"order_of_interleaved_layers": "local_attn_first", "rotary": "interleaved"},
        "ignore": "layer_switch use_embedding_sharing use_gated_activation use_parallel_block use_parallel_embedding use_qk_norm",
        "tied": True, "norms": 1, "windows": {"default": 4096, "every": ("sliding_window_pattern", 4)},
    },
    "cwm": {"windows": {"default": 8192}, "attention": {"bias": "none"}},
    "dbrx": blocks.dbrx,
    "deepseek_ref": blocks.deepseek_v4,
    "deepseek_v2": partial(blocks.latent_experts, ignore=("topk_method",), router_bias="none", dense=0),
    "deepseek_v3": blocks.latent_experts,
    "deepseek_v32": partial(blocks.latent_experts, indexer=True),
    "deepseek_v4": blocks.deepseek_v4,
    "distilbert": blocks.distilbert,
    "dots1": {"windows": late_windows, "attention": {"norm": "head"}, "experts": _ROUTED | {"dense": _after_dense(0)}},
    "electra": blocks.electra,
    "ernie4_5": {
        "tied": True, "network": {"bias": ("use_bias", False)}, "attention": {"size": 128, "bias": ("use_bias", False, "all")},
    },
    "ernie4_5_moe": blocks.ernie,
    "exaone4": _EXAONE,
    "exaone_moe": _EXAONE | {
        "experts": {"shared": "num_shared_experts", "dense": _after_dense(1), "router_bias": "expert"},
    },
    "falcon": blocks.falcon,
    "gemma": {"tied": True, "attention": {"size": 256}},
    "gemma2": {"tied": True, "norms": 4, "windows": {"default": 4096, "every": 2}, "attention": {"size": 256}},
    "gemma3_text": {
        "tied": True, "norms": 4, "windows": {"default": 4096, "every": ("sliding_window_pattern", 6)},
        "attention": {"size": 256, "norm": "head"},
    },
    "gemma4_text": local.gemma4,
    "glm": {"attention": _QKV_BIAS},
    "glm4": {"norms": 4, "attention": _QKV_BIAS},
    "glm4_moe": {
        "attention": {
            "bias": ("attention_bias", False, "qkv"), "norm": lambda c: "head" if c.flag("use_qk_norm") else "none",
        },
        "experts": _ROUTED | {"dense": _after_dense(1)},
    },
    "glm4_moe_lite": partial(blocks.latent_experts, dense=1),
    "glm_moe_dsa": partial(blocks.latent_experts, indexer=True),
    "gpt2": blocks.GPT2,
    "gpt_bigcode": blocks.gpt_bigcode,
    "gpt_neo": blocks.gpt_neo,
    "gpt_neox": {
        "ignore": "use_parallel_residual", "norm": "layer", "network": _PLAIN,
        "attention": {"bias": ("attention_bias", True, "all")},
    },
    "gpt_oss": {
        "ignore": "experts_per_token", "windows": {"default": 128, "every": 2},
        "attention": {"size": 64, "bias": ("attention_bias", True, "all"), "sinks": "head"},
        "experts": _LOCAL | {"bias": "all", "router_bias": "expert"},
    },
    # One norm, attention and network in parallel; biases of the network and of the output matrix.
    "gptj": blocks.GPT2 | {
        "ignore": "n_inner rotary_dim", "tied": False, "norms": 1, "positions": "rotary",
        "attention": blocks.GPT2["attention"] | {"bias": "none"}, "fixed": {"head": "bias"},
    },
    "granite": _LLAMA,
    "granitemoe": {"experts": _LOCAL},
    "granitemoehybrid": hybrids.granite_hybrid,
    "granitemoeshared": {
        "experts": _LOCAL | {
            "shared": lambda c: 1 if c.number("shared_intermediate_size", 0) else 0,
            "shared_width": lambda c: c.number("shared_intermediate_size", 0) or None,
        },
    },
    "helium": _LLAMA,
    "hunyuan_v1_dense": {"attention": {"norm": "head"}},
    "hy_v3": {
        "ignore": "router_scaling_factor enable_moe_fp32_combine mlp_bias", "attention": {"norm": "head", "size": 128},
        "experts": {"shared": "num_shared_experts", "dense": _after_dense(1), "router_bias": "expert"},
    },
    "internlm3": _LLAMA,
    "kimi_k2": blocks.latent_experts,
    "kimi_linear": hybrids.kimi_linear,
    "laguna": local.per_layer_heads,
    "llama": _LLAMA,
    "llama4_text": blocks.llama4,
    "mimo": {"windows": late_windows, "attention": {"bias": ("attention_bias", True, "qkv")}},
    "mimo_v2": local.mimo_v2,
    "mimo_v2_flash": local.mimo_v2,
    "minimax_m2": {
        "expect": {
            "qk_norm_type": "per_layer", "use_qk_norm": True,
            "attn_type_list": lambda c: [1] * c.count("num_hidden_layers"), "use_routing_bias": True,
        },
        "ignore": "use_mtp", "attention": {"bias": "none", "norm": "all"}, "experts": _LOCAL | {"router_bias": "expert"},
    },
    "minimax_m3": blocks.minimax_m3,
    "minimax_m3_vl_text": blocks.minimax_m3,
    "ministral": _MISTRAL,
    "ministral3": {"windows": {}, "attention": {"bias": "none"}},
    "mistral": _MISTRAL,
    "mistral4": partial(blocks.latent_experts, router_bias="none", dense=0),
    "mixtral": {"windows": {}, "attention": {"bias": "none"}, "experts": _LOCAL},
    "mpt": blocks.mpt,
    "nemotron": {
        "expect": {"hidden_act": "relu2"}, "norm": "layer", "network": _MLP_BIAS | {"form": "plain"},
    },
    "nemotron_h": hybrids.nemotron_h,
    "olmo2": {"attention": {"norm": "all"}},
    "olmo3": {"windows": {"default": 4096, "every": 4}, "attention": {"norm": "all"}},
    "olmoe": {"ignore": "clip_qkv", "attention": {"norm": "all"}, "experts": {"width": "intermediate_size"}},
    "opt": blocks.opt,
    # One norm, attention and network in parallel; everything has a bias.
    "phi": {
        "expect": {"qk_layernorm": False}, "norm": "layer", "norms": 1, "network": _PLAIN, "attention": {"bias": "all"},
        "fixed": {"head": "bias"},
    },
    "phi3": {"expect": {"full_attn_mod": 1, "interpolate_factor": 1}, "windows": {}, "attention": {"bias": "none"}},
    "phimoe": {
        "expect": {"lm_head_bias": False}, "ignore": "input_jitter_noise", "norm": "layer", "windows": {}, "experts": _LOCAL,
    },
    "qwen2": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_moe": _QWEN2 | {
        "expect": {"qkv_bias": True}, "experts": lambda c: {**blocks.gated_shared(c), "dense": blocks.between_sparse},
    },
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_5_moe_text": hybrids.qwen3_next,
    "qwen3_5_text": hybrids.qwen3_5,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_next": hybrids.qwen3_next,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_vl_text": _QWEN3,
    "roberta": blocks.roberta,
    "seed_oss": {"expect": {"attention_out_bias": False}, "network": _MLP_BIAS, "attention": _QKV_BIAS},
    "smollm3": {
        "ignore": "no_rope_layers no_rope_layer_interval max_window_layers", "tied": True, "windows": late_windows,
        "network": _MLP_BIAS,
    },
    "solar_open": {"expect": {"first_k_dense_replace": 0}, "attention": {"size": 128}, "experts": _ROUTED},
    "stablelm": {
        "expect": {"qk_layernorm": False}, "norm": "layer", "norms": lambda c: 1 if c.flag("use_parallel_residual") else 2,
        "attention": {"bias": ("use_qkv_bias", False, "qkv")},
    },
    "starcoder2": {
        "expect": {"mlp_type": "default", "norm_type": "layer_norm"}, "tied": True, "norm": "layer", "windows": {},
        "network": {"form": "plain", "bias": ("use_bias", True)}, "attention": {"bias": ("use_bias", True, "all")},
    },
    "xlm-roberta": blocks.roberta,
}  # fmt: skip


_CROSS = "an encoder and a decoder that attends to it are not modelled"
NO_LANGUAGE_MODEL = "it is not a language model"
REFUSED = {
    **dict.fromkeys(("bart", "led", "longt5", "m2m_100", "marian", "mbart", "mllama_text_model", "mt5", "pegasus", "prophetnet",
                     "seamless_m4t", "switch_transformers", "t5", "t5gemma", "umt5", "whisper"), _CROSS),
    **dict.fromkeys(("clip", "clip_text_model", "convnext", "deit", "detr", "dinov2", "perceiver", "resnet", "siglip", "swin", "unet",
                     "vit", "wav2vec2", "yolos"), NO_LANGUAGE_MODEL),
    **dict.fromkeys(("falcon_mamba", "mamba", "mamba2", "rwkv", "xlstm"), "none of its layers has attention"),
    **dict.fromkeys(("gemma3n_text", "gemma3n"), "its embeddings of each layer and layers that share keys are not modelled"),
    **dict.fromkeys(("bailing_hybrid", "minimax", "minimax_text_01"), "its linear attention with fixed decays is not modelled"),
    **dict.fromkeys(("jamba", "zamba", "zamba2"), "its recurrence, or layers that share weights, are not modelled"),
    "albert": "its layers share their weights, which is not modelled",
    "falcon_h1": "attention and a recurrence in one layer are not modelled",
    "lfm2": "its layers of short convolutions are not modelled",
    "lfm2_moe": "its layers of short convolutions are not modelled",
    "longcat_flash": "its layers with two attentions and experts without weights are not modelled",
    "nemotron-nas": "its layers differ in width and in whether they have attention, which is not modelled",
    "olmo": "its norms without weights are not modelled",
}  # fmt: skip
"""Why configurations of some known architectures are not read, by ``model_type``."""
