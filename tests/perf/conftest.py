"""The catalog with those of the living plugins, rates for answers by hand, and files config.json of small models."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import Rates, everything, rates_of
from trnspec.catalog.catalog import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return Catalog(everything())


@pytest.fixture(scope="session")
def rates(catalog: Catalog) -> Rates:
    return rates_of(catalog)


# Files config.json, as a caller has them.


def written(folder: Path, config: dict[str, Any]) -> str:
    """The path of a new config.json."""
    file = folder / f"{len(list(folder.iterdir()))}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    return str(file)


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
