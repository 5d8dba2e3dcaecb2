"""Table of the architectures of config.json, by ``model_type``: a row of arguments of `decoder`, or a function.

Defaults and fixed properties are those of the classes of Transformers 5.23.0 (``configuration_*.py``, ``modeling_*.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from trnspec.model.transformers.huggingface import blocks
from trnspec.model.transformers.huggingface.config import Config
from trnspec.model.transformers.huggingface.parts import Fields, dense_before, late_windows


def _after_dense(default: int) -> Callable[[Config], int]:
    return partial(dense_before, keys=("mlp_layer_types", "first_k_dense_replace"), default=default)


_MLP_BIAS: Fields = {"bias": ("mlp_bias", False)}
_PLAIN: Fields = {"form": "plain", "bias": True}
_QKV_BIAS: Fields = {"size": 128, "bias": ("attention_bias", True, "qkv")}
_BERT_NOTE = "The head of masked-language modelling is left out."
_QUERY_HEADS: Fields = {"kv_heads": None, "head_dim": None}
_GPT2: Fields = {
    "layers": "n_layer", "hidden": "n_embd", "context": "n_positions", "tied": True, "norm": "layer", "positions": "learned",
    "attention": _QUERY_HEADS | {"heads": "n_head", "hidden": "n_embd", "bias": "all"},
    "network": {"width": lambda c: ("n_inner", 4 * c.count("n_embd")), "form": "plain", "bias": True},
}  # fmt: skip
_ROUTED: Fields = {"count": "n_routed_experts", "shared": "n_shared_experts", "router_bias": "expert"}
_LATENT: Fields = {
    "expect": {"moe_layer_freq": 1, "num_experts": lambda c: c.values.get("n_routed_experts")},
    "attention": blocks.latent, "experts": _ROUTED | {"dense": _after_dense(3)},
}  # fmt: skip
_INDEXED = _LATENT | {"attention": partial(blocks.latent, indexer=True)}
_DEEPSEEK_V2 = _LATENT | {"experts": _ROUTED | {"router_bias": "none", "dense": _after_dense(0)}}
_DEEPSEEK_V4: Fields = {
    "expect": {"num_key_value_heads": 1, "attention_bias": False, "mlp_bias": False},
    "ignore": "compress_rates compress_rate_csa compress_rate_hca qk_rope_head_dim layer_types mlp_layer_types hc_eps "
    "hc_sinkhorn_iters",
    "attention": blocks.pooled, "fixed": {"streams": lambda c: c.count("hc_mult", 4)},
    "experts": _ROUTED | {"hashed": lambda c: c.number("num_hash_layers", 3) or None},
}  # fmt: skip
_DELTA: Fields = {
    "expect": {"attn_output_gate": True, "output_gate_type": "swish"}, "ignore": "mtp_use_dedicated_embeddings",
    "recurrence": blocks.gated_delta, "attention": {"size": 256, "norm": "head", "gate": "element"},
}  # fmt: skip
_QWEN3_NEXT = _DELTA | {"experts": blocks.gated_shared}
_MINIMAX_M3: Fields = {
    "expect": {
        "use_qk_norm": True, "qk_norm_type": "per_head", "use_routing_bias": True, "attention_output_gate": False,
        "shared_intermediate_size": lambda c: c.values.get("intermediate_size"),
    },
    "ignore": "use_mtp dense_intermediate_size intermediate_size",
    "attention": {"bias": "none", "norm": "head", "indexer": blocks.block_indexer}, "experts": blocks.minimax_m3,
}  # fmt: skip
_MIMO_V2: Fields = {
    "expect": {
        "sliding_window_size": lambda c: c.values.get("sliding_window"), "attention_bias": False,
        "add_full_attention_sink_bias": False,
    },
    "ignore": "attention_chunk_size hybrid_block_size layernorm_epsilon", "attention": blocks.swa_attention,
    "experts": _ROUTED | {"dense": partial(dense_before, keys=("mlp_layer_types", "moe_layer_freq"), default=1)},
}  # fmt: skip
_ROBERTA = partial(blocks.bert, segments=False, offset=2, notes=(
    "Positions start after the padding token: two rows of their matrix are not used and left out.",
    "The one kind of segments and the head of masked-language modelling are left out.",
))  # fmt: skip
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
    "bamba": {
        "ignore": "layer_types mamba_chunk_size attn_rotary_emb z_loss_coefficient", "network": _MLP_BIAS,
        "recurrence": partial(blocks.mamba2, key="attn_layer_indices"),
    },
    "bert": blocks.bert,
    "bloom": {
        "rename": {"hidden_size": "n_embed", "num_attention_heads": "n_head"},
        "ignore": "apply_residual_connection_post_layernorm bias_dropout_fusion masked_softmax_fusion", "layers": "n_layer",
        "context": "seq_length", "tied": True, "norm": "layer", "positions": "none", "fixed": {"embedding_norm": "one"},
        "attention": _QUERY_HEADS | {"bias": "all"}, "network": _PLAIN | {"width": lambda c: 4 * c.count("hidden_size")},
    },
    "cohere": {"tied": True, "norms": 1, "attention": {"norm": lambda c: "all" if c.flag("use_qk_norm") else "none"}},
    "cohere2": {
        "expect": {"order_of_interleaved_layers": "local_attn_first", "rotary": "interleaved"},
        "ignore": "layer_switch use_embedding_sharing use_gated_activation use_parallel_block use_parallel_embedding use_qk_norm",
        "tied": True, "norms": 1, "windows": {"default": 4096, "every": ("sliding_window_pattern", 4)},
    },
    "cwm": {"windows": {"default": 8192}, "attention": {"bias": "none"}},
    "dbrx": {
        "layers": "n_layers", "hidden": "d_model", "context": "max_seq_len",
        "attention": {
            "heads": "n_heads", "hidden": "d_model", "head_dim": None, "bias": "none",
            "kv_heads": lambda c: c.count("attn_config.kv_n_heads"),
        },
        "experts": {
            "count": "ffn_config.moe_num_experts", "active": "ffn_config.moe_top_k", "width": "ffn_config.ffn_hidden_size",
        },
    },
    "deepseek_ref": _DEEPSEEK_V4,
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _LATENT,
    "deepseek_v32": _INDEXED,
    "deepseek_v4": _DEEPSEEK_V4,
    "distilbert": partial(
        blocks.bert, segments=False, ignore="sinusoidal_pos_embds tie_weights_", notes=(_BERT_NOTE,),
        rename={"num_hidden_layers": "n_layers", "hidden_size": "dim", "num_attention_heads": "n_heads",
                "intermediate_size": "hidden_dim"},
    ),
    "dots1": {"windows": late_windows, "attention": {"norm": "head"}, "experts": _ROUTED | {"dense": _after_dense(0)}},
    "electra": partial(
        blocks.electra, ignore="generator_size", notes=("The head of the discriminator is left out.",),
    ),
    "ernie4_5": {
        "tied": True, "network": {"bias": ("use_bias", False)}, "attention": {"size": 128, "bias": ("use_bias", False, "all")},
    },
    "ernie4_5_moe": {
        "expect": {
            "moe_layer_end_index": lambda c: (-1, c.count("num_hidden_layers") - 1), "moe_layer_interval": 1, "use_bias": False,
        },
        "tied": True, "attention": {"bias": "none"}, "experts": blocks.ernie,
    },
    "exaone4": _EXAONE,
    "exaone_moe": _EXAONE | {
        "experts": {"shared": "num_shared_experts", "dense": _after_dense(1), "router_bias": "expert"},
    },
    "falcon": {
        "context": ("max_position_embeddings", 2048), "tied": True, "norm": "layer", "norms": blocks.falcon_norms,
        "positions": lambda c: "none" if c.flag("alibi") else "rotary",
        "attention": {"head_dim": None, "kv_heads": blocks.falcon_kv_heads, "bias": ("bias", False, "all")},
        "network": {"width": lambda c: ("ffn_hidden_size", 4 * c.count("hidden_size")), "form": "plain", "bias": ("bias", False)},
    },
    "gemma": {"tied": True, "attention": {"size": 256}},
    "gemma2": {"tied": True, "norms": 4, "windows": {"default": 4096, "every": 2}, "attention": {"size": 256}},
    "gemma3_text": {
        "tied": True, "norms": 4, "windows": {"default": 4096, "every": ("sliding_window_pattern", 6)},
        "attention": {"size": 256, "norm": "head"},
    },
    "gemma4_text": {
        "expect": {"use_bidirectional_attention": "vision"},
        "ignore": "vocab_size_per_layer_input use_double_wide_mlp expert_intermediate_size num_global_key_value_heads",
        "tied": True, "attention": blocks.global_heads, "experts": blocks.gemma4,
        # With experts also the norms of both networks, and the scale of the router's input.
        "norms": lambda c: 8 if c.flag("enable_moe_block") else 4,
    },
    "glm": {"attention": _QKV_BIAS},
    "glm4": {"norms": 4, "attention": _QKV_BIAS},
    "glm4_moe": {
        "attention": {
            "bias": ("attention_bias", False, "qkv"), "norm": lambda c: "head" if c.flag("use_qk_norm") else "none",
        },
        "experts": _ROUTED | {"dense": _after_dense(1)},
    },
    "glm4_moe_lite": _LATENT | {"experts": _ROUTED | {"dense": _after_dense(1)}},
    "glm_moe_dsa": _INDEXED,
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2 | {
        "attention": _GPT2["attention"] | {"kv_heads": lambda c: 1 if c.flag("multi_query", default=True) else None},
    },
    "gpt_neo": {
        "ignore": "attention_layers", "layers": "num_layers", "tied": True, "norm": "layer", "positions": "learned",
        "windows": blocks.global_and_local, "attention": _QUERY_HEADS | {"heads": "num_heads", "bias": "output"},
        "network": _PLAIN | {"width": lambda c: ("intermediate_size", 4 * c.count("hidden_size"))},
    },
    "gpt_neox": {
        "ignore": "use_parallel_residual", "norm": "layer", "network": _PLAIN,
        "attention": {"kv_heads": None, "bias": ("attention_bias", True, "all")},
    },
    "gpt_oss": {
        "ignore": "experts_per_token", "windows": {"default": 128, "every": 2},
        "attention": {"size": 64, "bias": ("attention_bias", True, "all"), "sinks": "head"},
        "experts": _LOCAL | {"bias": "all", "router_bias": "expert"},
    },
    # One norm, attention and network in parallel; biases of the network and of the output matrix.
    "gptj": _GPT2 | {
        "ignore": "n_inner rotary_dim", "tied": False, "norms": 1, "positions": "rotary",
        "attention": _GPT2["attention"] | {"bias": "none"}, "fixed": {"head": "bias"},
    },
    "granite": _LLAMA,
    "granitemoe": {"experts": _LOCAL},
    "granitemoehybrid": {
        "ignore": "mamba_chunk_size normalization_function init_method layers_block_type", "recurrence": blocks.mamba2,
        "positions": lambda c: "none" if c.get("position_embedding_type", None) == "nope" else "rotary",
        "experts": blocks.granite, "network": {"width": "shared_intermediate_size"},
    },
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
    "kimi_k2": _LATENT,
    "kimi_linear": {
        "rename": {
            "n_shared_experts": "num_shared_experts", "num_experts_per_tok": "num_experts_per_token",
            "max_position_embeddings": "model_max_length",
        },
        "expect": {"moe_layer_freq": 1},
        "ignore": "mla_use_nope num_expert_group activation_situ_beta activation_situ_linear_beta",
        "recurrence": blocks.kimi_delta, "attention": blocks.gated_latent, "experts": blocks.kimi,
        "fixed": {"block": lambda c: c.get("attn_res_block_size", None)},
    },
    "laguna": {
        "attention": blocks.heads_by_layer,
        "experts": {
            "shared": 1, "shared_width": lambda c: c.count("shared_expert_intermediate_size", 512),
            "dense": partial(dense_before, keys=("mlp_layer_types",), default=1), "router_bias": "expert",
        },
    },
    "llama": _LLAMA,
    "llama4_text": {
        "ignore": "use_qk_norm moe_layers for_llm_compressor", "windows": blocks.chunks, "attention": {"size": 128},
        "experts": blocks.interleaved,
    },
    "mimo": {"windows": late_windows, "attention": {"bias": ("attention_bias", True, "qkv")}},
    "mimo_v2": _MIMO_V2,
    "mimo_v2_flash": _MIMO_V2,
    "minimax_m2": {
        "expect": {
            "qk_norm_type": "per_layer", "use_qk_norm": True,
            "attn_type_list": lambda c: [1] * c.count("num_hidden_layers"), "use_routing_bias": True,
        },
        "ignore": "use_mtp", "attention": {"bias": "none", "norm": "all"}, "experts": _LOCAL | {"router_bias": "expert"},
    },
    "minimax_m3": _MINIMAX_M3,
    "minimax_m3_vl_text": _MINIMAX_M3,
    "ministral": _MISTRAL,
    "ministral3": {"windows": {}, "attention": {"bias": "none"}},
    "mistral": _MISTRAL,
    "mistral4": _DEEPSEEK_V2,
    "mixtral": {"windows": {}, "attention": {"bias": "none"}, "experts": _LOCAL},
    "mpt": {
        "expect": {"attn_config.qk_ln": False},
        "ignore": "init_config init_device norm_type ffn_config embedding_fraction emb_pdrop", "layers": "n_layers",
        "hidden": "d_model", "context": "max_seq_len", "tied": True,
        # Without biases a layer norm has the parameters of an RMS norm.
        "norm": lambda c: "rms" if c.flag("no_bias", default=True) else "layer",
        "positions": lambda c: "none" if c.get("attn_config.alibi", True) else "learned",
        "attention": {
            "heads": "n_heads", "hidden": "d_model", "head_dim": None,
            "kv_heads": blocks.mpt_kv_heads,
            "bias": lambda c: "none" if c.flag("no_bias", default=True) else "all",
        },
        "network": {
            "width": lambda c: c.count("expansion_ratio", 4) * c.count("d_model"), "form": "plain",
            "bias": lambda c: not c.flag("no_bias", default=True),
        },
    },
    "nemotron": {
        "expect": {"hidden_act": "relu2"}, "norm": "layer", "network": _MLP_BIAS | {"form": "plain"},
    },
    "nemotron_h": blocks.nemotron_h,
    "olmo2": {"attention": {"norm": "all"}},
    "olmo3": {"windows": {"default": 4096, "every": 4}, "attention": {"norm": "all"}},
    "olmoe": {"ignore": "clip_qkv", "attention": {"norm": "all"}, "experts": {"width": "intermediate_size"}},
    "opt": {
        "expect": {
            "do_layer_norm_before": True, "_remove_final_layer_norm": False, "layer_norm_elementwise_affine": True,
            "word_embed_proj_dim": lambda c: c.count("hidden_size"), "enable_bias": True,
        },
        "tied": True, "norm": "layer", "positions": "learned",
        "attention": {"kv_heads": None, "bias": "all"}, "network": _PLAIN | {"width": "ffn_dim"},
        "fixed": {"context": lambda c: c.count("max_position_embeddings") + 2},
        "notes": ("The matrix of positions has two more rows than max_position_embeddings.",),
    },
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
        "expect": {"qkv_bias": True}, "experts": blocks.gated_shared,
    },
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_5_moe_text": _QWEN3_NEXT,
    "qwen3_5_text": _DELTA,
    "qwen3_moe": _QWEN3_MOE,
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_vl_moe_text": _QWEN3_MOE,
    "qwen3_vl_text": _QWEN3,
    "roberta": _ROBERTA,
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
    "xlm-roberta": _ROBERTA,
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
