"""Files config.json of small models, as a caller has them."""

import json
from pathlib import Path
from typing import Any


def written(folder: Path, config: dict[str, Any]) -> str:
    """The path of a new config.json."""
    file = folder / f"{len(list(folder.iterdir()))}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return str(file)


def gpt2(layers: int, hidden: int, heads: int, vocabulary: int, context: int) -> dict[str, Any]:
    """GPT-2: biases, learned positions, a tied output, a network four times as wide."""
    return {
        "model_type": "gpt2", "n_layer": layers, "n_embd": hidden, "n_head": heads, "vocab_size": vocabulary,
        "n_positions": context, "n_inner": None,
    }  # fmt: skip


def llama(layers: int, hidden: int, heads: int, kv_heads: int, width: int, vocabulary: int) -> dict[str, Any]:
    """Llama: a gate, grouped queries, an output of its own."""
    return {
        "model_type": "llama", "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "intermediate_size": width, "vocab_size": vocabulary,
        "max_position_embeddings": 131072, "tie_word_embeddings": False,
    }  # fmt: skip


def mixtral(experts: int, active: int, **dense: Any) -> dict[str, Any]:
    """Mixtral: the same with experts in every layer."""
    return {
        **llama(**dense), "model_type": "mixtral", "num_local_experts": experts, "num_experts_per_tok": active,
    }  # fmt: skip
