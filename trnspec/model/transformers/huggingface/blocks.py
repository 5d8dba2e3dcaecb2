"""Readers of the architectures that a row of the table cannot describe: older names, nested sections, special attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve

from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.parts import (
    Fields,
    decoder,
    dense_before,
    dense_network,
    head_share,
    outline,
    with_experts,
)
from trnspec.model.transformers.model import (
    Attention,
    Experts,
    FeedForward,
    GroupedOutput,
    Indexer,
    LatentAttention,
    Pooling,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

GPT2: Fields = {
    "layers": "n_layer", "hidden": "n_embd", "context": "n_positions", "tied": True, "norm": "layer", "positions": "learned",
    "attention": {"heads": "n_head", "kv_heads": None, "head_dim": None, "hidden": "n_embd", "bias": "all"},
    "network": {"width": lambda c: ("n_inner", 4 * c.count("n_embd")), "form": "plain", "bias": True},
}  # fmt: skip
_QUERY_HEADS: Fields = {"kv_heads": None, "head_dim": None}


def gpt_bigcode(c: Config) -> Fields:
    """GPT-2 with one head of keys and values (StarCoder)."""
    fields = decoder(c, **GPT2)
    if c.flag("multi_query", default=True):
        fields["attention"] = evolve(fields["attention"], kv_heads=1)
    return fields


def gpt_neo(c: Config) -> Fields:
    """A window in every second layer; queries, keys and values have no bias."""
    layers = c.count("num_layers")
    kinds = [
        kind for part, times in c.get("attention_types", [[["global", "local"], layers // 2]]) for kind in part * times
    ]
    local = kinds.count("local")

    def windows(c: Config) -> Fields:
        window = c.count("window_size", 256) if local else None
        return {"window": window, "windowed": local if 0 < local < layers else None}

    return decoder(
        c, ignore="attention_layers", layers="num_layers", tied=True, norm="layer", positions="learned", windows=windows,
        attention=_QUERY_HEADS | {"heads": "num_heads", "bias": "output"},
        network={"width": lambda c: ("intermediate_size", 4 * c.count("hidden_size")), "form": "plain", "bias": True},
    )  # fmt: skip


def opt(c: Config) -> Fields:
    """Learned positions whose matrix has two more rows than the context."""
    expected = {"do_layer_norm_before": True, "_remove_final_layer_norm": False, "layer_norm_elementwise_affine": True,
                "word_embed_proj_dim": lambda c: c.count("hidden_size"), "enable_bias": True}  # fmt: skip
    fields = decoder(
        c, expect=expected, tied=True, norm="layer", positions="learned", attention={"bias": "all"},
        network={"width": "ffn_dim", "form": "plain", "bias": True},
    )  # fmt: skip
    c.notes.append("The matrix of positions has two more rows than max_position_embeddings.")
    return fields | {"context": fields["context"] + 2}


def bloom(c: Config) -> Fields:
    """A norm of the embedding; older files have other names."""
    hidden = "hidden_size" if "hidden_size" in c.values else "n_embed"
    heads = "num_attention_heads" if "num_attention_heads" in c.values else "n_head"
    ignored = "hidden_size n_embed apply_residual_connection_post_layernorm bias_dropout_fusion masked_softmax_fusion"
    return decoder(
        c, ignore=ignored, layers="n_layer", hidden=hidden, context="seq_length", tied=True, norm="layer", positions="none",
        fixed={"embedding_norm": "one"}, attention=_QUERY_HEADS | {"heads": heads, "hidden": hidden, "bias": "all"},
        network={"width": lambda c: 4 * c.count(hidden), "form": "plain", "bias": True},
    )  # fmt: skip


def falcon(c: Config) -> Fields:
    """One head of keys and values, or groups; attention and network in parallel, with one norm or two."""
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    new, parallel = c.flag("new_decoder_architecture"), c.flag("parallel_attn", default=True)
    one = c.flag("multi_query", default=True)
    kv_heads = (c.get("num_kv_heads", None) or heads) if new or not one else 1
    c.used |= {"num_kv_heads", "num_ln_in_parallel_attn"}
    norms = (c.get("num_ln_in_parallel_attn", None) or (2 if new else 1)) if parallel else 2
    biased: Literal["none", "all"] = "all" if c.flag("bias") else "none"
    if "max_position_embeddings" not in c.values:  # in older files; the class has a default
        c.values = {**c.values, "max_position_embeddings": 2048}
        c.notes.append("max_position_embeddings is not in config.json; 2048 is the default of falcon")
    return outline(c, tied=True, norm="layer", norms=norms) | {
        "positions": "none" if c.flag("alibi") else "rotary",
        "attention": Attention(
            heads=heads, kv_heads=kv_heads, head_size=head_share(c, "hidden_size", heads), bias=biased
        ),
        "feed_forward": FeedForward(width=c.get("ffn_hidden_size", None) or 4 * hidden, form="plain", bias=biased),
    }


def mpt(c: Config) -> Fields:
    """Linear biases or learned positions; without biases a layer norm has the parameters of an RMS norm."""
    inner = c.section("attn_config")
    inner.expect(qk_ln=False)
    hidden = c.count("d_model")
    fields = outline(c, layers="n_layers", hidden="d_model", context="max_seq_len", tied=True, norm="layer")
    heads = c.count("n_heads")
    bias: Literal["none", "all"] = "none" if c.flag("no_bias", default=True) else "all"
    kv_heads = inner.get("kv_n_heads", None) or (1 if inner.get("attn_type", None) == "multiquery_attention" else heads)
    c.used |= {"logit_scale", "learned_pos_emb", "init_config", "init_device", "norm_type", "use_cache", "ffn_config",
               "embedding_fraction", "emb_pdrop"}  # fmt: skip
    return fields | {
        "norm": "rms" if bias == "none" else "layer",
        "positions": "none" if inner.get("alibi", True) else "learned",
        "attention": Attention(heads=heads, kv_heads=kv_heads, head_size=head_share(c, "d_model", heads), bias=bias),
        "feed_forward": FeedForward(width=c.count("expansion_ratio", 4) * hidden, form="plain", bias=bias),
    }


def bert(c: Config, *, segments: bool = True, offset: int = 0) -> Fields:
    """An encoder; its head is that of masked-language modelling."""
    c.expect(position_embedding_type="absolute")
    fields = outline(c, tied=True, norm="layer", positions="learned")
    if c.get("embedding_size", None) not in (None, fields["hidden"]):
        raise ConfigError("embedding_size", "embedding_size differs from hidden_size; the projection is not modelled")
    kinds = c.count("type_vocab_size", 2) if segments else None
    heads = c.count("num_attention_heads")
    c.used |= {"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
               "directionality"}  # fmt: skip
    return fields | {
        "form": "encoder",
        "context": fields["context"] - offset,
        "segments": kinds,
        "final_norm": "none",
        "embedding_norm": "one",
        "head": "bert" if any(str(a).startswith("Bert") for a in c.get("architectures", None) or ()) else "none",
        "attention": Attention(heads=heads, kv_heads=heads, head_size=head_share(c, "hidden_size", heads), bias="all"),
        "feed_forward": dense_network(c, form="plain", bias=True),
    }


def roberta(c: Config) -> Fields:
    """BERT without segments, whose positions start after the padding token."""
    c.notes.append("Positions start after the padding token: two rows of their matrix are not used and left out.")
    c.notes.append("The one kind of segments and the head of masked-language modelling are left out.")
    c.used.add("type_vocab_size")
    return bert(c, segments=False, offset=2)


def electra(c: Config) -> Fields:
    """BERT with the head of a discriminator."""
    c.used |= {"generator_size", "summary_activation", "summary_type", "summary_use_proj"}
    c.count("embedding_size", 128)  # unlike BERT's, it is not the hidden size where it is missing
    c.values = {"embedding_size": 128, **c.values}
    c.notes.append("The head of the discriminator is left out.")
    return bert(c)


def distilbert(c: Config) -> Fields:
    """BERT without segments, and with other names of keys."""
    names = {"num_hidden_layers": "n_layers", "hidden_size": "dim", "num_attention_heads": "n_heads",
             "intermediate_size": "hidden_dim"}  # fmt: skip
    c.used |= {*names.values(), "sinusoidal_pos_embds", "tie_weights_"}
    c.notes.append("The head of masked-language modelling is left out.")
    c.values = {**c.values, **{key: c.values.get(name) for key, name in names.items()}}
    return bert(c, segments=False)


def between_sparse(c: Config) -> int:
    """Layers without experts: all but every ``decoder_sparse_step``-th, and those of ``mlp_only_layers`` (Qwen)."""
    step, dense = c.get("decoder_sparse_step", None) or 1, set(c.values_of("mlp_only_layers") or ())
    return sum(i in dense or bool((i + 1) % step) for i in range(c.count("num_hidden_layers")))


def gated_shared(c: Config) -> Fields:
    """One shared expert with a gate, where it has a width."""
    width = c.get("shared_expert_intermediate_size", None)
    if not width:
        return {}
    same = width == c.count("moe_intermediate_size")
    return {"shared": 1, "shared_width": None if same else width, "shared_gate": "one"}


def llama4(c: Config) -> Fields:
    """Attention within chunks in some layers; experts in every n-th layer."""
    layers = c.count("num_hidden_layers")
    without = c.values_of("no_rope_layers", layers)
    interval = c.get("no_rope_layer_interval", None) or 4
    types = c.values_of("layer_types", layers)
    chunk = c.get("attention_chunk_size", 8192)
    if types:
        chunked = types.count("chunked_attention")
    else:
        chunked = sum(map(bool, without)) if without else layers - layers // interval

    def experts(c: Config) -> Fields:
        c.notes.append(
            "The norms of queries and keys have no parameters. Windowed layers see the chunk that they are in."
        )
        step, listed = c.count("interleave_moe_layer_step", 1), c.values_of("moe_layers")
        dense = layers - (len(listed) if listed else len(range(step - 1, layers, step)))
        return {"count": "num_local_experts", "width": "intermediate_size", "shared": 1, "dense": dense,
                "dense_width": "intermediate_size_mlp"}  # fmt: skip

    attention = {"size": 128, "window": chunk, "windowed": chunked}
    return decoder(c, ignore="use_qk_norm moe_layers for_llm_compressor", attention=attention, experts=experts)


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


def minimax_m3(c: Config) -> Fields:
    """Sparse attention to blocks of keys; experts after the first layers, one shared."""
    c.expect(use_qk_norm=True, qk_norm_type="per_head", use_routing_bias=True)
    indexer = _block_indexer(c)

    def experts(c: Config) -> Fields:
        keys = ("moe_layer_freq", "mlp_layer_types", "first_k_dense_replace")
        return {
            "count": "num_local_experts", "width": c.present("moe_intermediate_size", "intermediate_size"),
            "shared": "n_shared_experts" if "n_shared_experts" in c.values else 1, "dense": dense_before(c, keys),
            "dense_width": "dense_intermediate_size", "router_bias": "expert",
        }  # fmt: skip

    return decoder(
        c, expect={"attention_output_gate": False, "shared_intermediate_size": c.values.get("intermediate_size")},
        ignore="use_mtp dense_intermediate_size intermediate_size", attention={"bias": "none", "norm": "head", "indexer": indexer},
        experts=experts,
    )  # fmt: skip


def dbrx(c: Config) -> Fields:
    """Attention and experts described in sections."""
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


def latent_experts(  # the differences of six architectures
    c: Config,
    *,
    indexer: bool = False,
    router_bias: Literal["none", "expert"] = "expert",
    dense: int = 3,
    count: str = "n_routed_experts",
    ignore: Sequence[str] = (),
) -> Fields:
    """Multi-head latent attention and experts after the first layers (DeepSeek-V2 and V3, Kimi K2, GLM-5)."""
    c.used |= {"head_dim", "num_key_value_heads", "index_topk_freq", "index_skip_topk_offset", "index_share_for_mtp_iteration",
               "layer_types", *ignore}  # fmt: skip
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
            **_index_sizes(c), layers=types.count("full") if types and types.count("full") < layers else None
        )
    fields["attention"] = Attention(
        heads=heads,
        kv_heads=heads,
        head_size=latent.value_size,
        bias="all" if c.flag("attention_bias") else "none",
        latent=latent,
        indexer=chosen,
    )
    c.expect(moe_layer_freq=1, num_experts=c.values.get(count))
    first = dense_before(c, ("mlp_layer_types", "first_k_dense_replace"), default=dense)
    return with_experts(c, fields, count=count, shared="n_shared_experts", dense=first, router_bias=router_bias)


def _index_sizes(c: Config) -> dict[str, int]:
    return {"keys": c.count("index_topk"), "heads": c.count("index_n_heads"), "size": c.count("index_head_dim")}


def ernie(c: Config) -> Fields:
    """Experts from one layer to another, with one shared network of the width of several."""
    layers, first = c.count("num_hidden_layers"), c.number("moe_layer_start_index", 1)
    c.get("moe_layer_end_index", -1)

    def experts(c: Config) -> Fields:
        shared, width = c.number("moe_num_shared_experts", 2), c.count("moe_intermediate_size")
        return {
            "count": c.present("moe_num_experts", "num_experts"), "active": c.present("moe_k", "num_experts_per_tok"),
            "shared": 1 if shared else 0, "shared_width": shared * width if shared > 1 else None, "dense": first,
            "router_bias": "expert",
        }  # fmt: skip

    return decoder(
        c, expect={"moe_layer_end_index": (-1, layers - 1), "moe_layer_interval": 1, "use_bias": False}, tied=True,
        attention={"bias": "none"}, experts=experts,
    )  # fmt: skip


_POOLED = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128, "sliding_attention": 0}


def deepseek_v4(c: Config) -> Fields:
    """Pooled keys, some chosen by an indexer; a window in every layer; hyper-connections; experts by a table at first."""
    layers = c.count("num_hidden_layers")
    c.used |= {"compress_rates", "compress_rate_csa", "compress_rate_hca", "qk_rope_head_dim", "mlp_layer_types", "hc_eps",
               "hc_sinkhorn_iters", "compress_rope_theta"}  # fmt: skip
    rates: dict[str, Any] = {**_POOLED, **(c.values.get("compress_rates") or {})}
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
    c.expect(num_key_value_heads=1, attention_bias=False, mlp_bias=False)
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
        indexer=Indexer(**_index_sizes(c), layers=ratios.count(few), sparse=ratios.count(few)),
        pooling=Pooling(chosen=few, all=many, layers=ratios.count(many)),
    )
    fields["streams"] = c.count("hc_mult", 4)
    hashed = c.number("num_hash_layers", 3) or None
    return with_experts(
        c, fields, count="n_routed_experts", shared="n_shared_experts", router_bias="expert", hashed=hashed
    )
