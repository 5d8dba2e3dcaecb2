"""Entry point of the reader of config.json: from its keys and values to a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trnspec.diagnostics import did_you_mean
from trnspec.model.transformers.huggingface.architectures import ARCHITECTURES, NO_LANGUAGE_MODEL, REFUSED
from trnspec.model.transformers.huggingface.config import PARTS, Config, ConfigError, Imported
from trnspec.model.transformers.huggingface.parts import decoder
from trnspec.model.transformers.model import Model


def imported(config: Mapping[str, Any]) -> Imported:
    """The model that a config.json describes.

    The language model of a multimodal model is imported alone.

    Raises:
        ConfigError: An unknown architecture, a missing key without a default, or a key that may matter and is not known.
    """
    part = next((key for key in PARTS if isinstance(config.get(key), dict)), None)
    values = config if part is None else {**_shared(config), **config[part]}
    architecture = str(values.get("model_type") or "")
    row = ARCHITECTURES.get(architecture)
    if architecture in REFUSED:
        raise ConfigError("model_type", f"model_type is {architecture!r}: {REFUSED[architecture]}")
    if not architecture and "_class_name" in config:
        raise ConfigError("_class_name", f"_class_name is {config['_class_name']!r}, of Diffusers: {NO_LANGUAGE_MODEL}")
    if row is None:
        message = f"model_type is {architecture!r}" if architecture else "config.json has no model_type"
        hint = did_you_mean(architecture, ARCHITECTURES) or f"{len(ARCHITECTURES)} are known, such as llama and mixtral"
        raise ConfigError("model_type", f"{message}; {hint}")
    names = config.get("architectures")
    named = str(names[0]) if isinstance(names, list) and names else ""
    of_name = max((t for t in ARCHITECTURES if _letters(named).startswith(_letters(t))), key=len, default=architecture)
    if ARCHITECTURES[of_name] != row and not _letters(named).startswith(_letters(architecture)):
        message = f"architectures is {named}, but model_type is {architecture!r}; correct one of the two"
        raise ConfigError("architectures", message)
    c = Config(values, architecture)
    if part is not None:
        c.notes.append(f"The language model alone: {part} of config.json.")
    fields = row(c) if callable(row) else decoder(c, **row)
    predicted = [key for key in _PREDICTED if c.get(key, None)]
    if predicted:
        c.notes.append("Modules of multi-token prediction are left out.")
    c.used.add("expert_dtype")
    fields["precision"] = _precision(values, config)
    c.finish()
    model = Model(**fields)
    _check_layers(c, model)
    return Imported(model, tuple(c.notes))


def _check_layers(c: Config, model: Model) -> None:
    """Refuse lists of layers with a word that nothing in the model represents: it would count as full attention, or as dense."""
    attention = model.attention
    represented = (
        (True, ("full_attention", "attention", "sliding_attention", "chunked_attention")),
        (model.recurrence, ("linear_attention", "mamba")),
        (attention and attention.indexer, ("indexed_attention", "minimax_m3_sparse")),
        (attention and attention.pooling, ("compressed_sparse_attention", "heavily_compressed_attention")),
    )
    kinds = {kind for part, names in represented if part for kind in names}
    for key, known in (("layer_types", kinds), ("mlp_layer_types", {"dense", "sparse"})):
        if unknown := [word for word in c.values_of(key) or () if word not in known]:
            message = f"{key} has {unknown[0]!r}, which is not modelled for {c.architecture}"
            raise ConfigError(key, f"{message}; expected: {', '.join(sorted(known))}")


_PREDICTED = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_transformer_layers")


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower()).removesuffix("text")


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a multimodal model that its language model inherits."""
    return {key: config[key] for key in ("tie_word_embeddings", "quantization_config") if key in config}


def _precision(values: Mapping[str, Any], outer: Mapping[str, Any]) -> str | None:
    """The number format of quantised weights; ``None`` where config.json describes no quantisation."""
    quantised = values.get("quantization_config") or outer.get("quantization_config")
    if values.get("expert_dtype"):
        return str(values["expert_dtype"]).lower()
    if not isinstance(quantised, dict):
        return None
    method = str(quantised.get("quant_algo") or quantised.get("quant_method", ""))
    if method != "compressed-tensors":
        return method.lower() or None
    for group in (quantised.get("config_groups") or {}).values():
        weights = group.get("weights") or {}
        kind = "fp" if weights.get("type") == "float" else weights.get("type")
        return f"{kind}{weights['num_bits']}"
    return None
