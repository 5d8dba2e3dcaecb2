"""The architectures of config.json by ``model_type``, and the model that a config.json describes.

Defaults and fixed properties are those of the classes of Transformers 5.23.0 (``configuration_*.py``, ``modeling_*.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.model.transformers.huggingface.config import PARTS, Config, ConfigError, Imported
from trnspec.model.transformers.huggingface.dense import DENSE
from trnspec.model.transformers.huggingface.encoders import ENCODERS
from trnspec.model.transformers.huggingface.hybrids import HYBRIDS
from trnspec.model.transformers.huggingface.local import LOCAL
from trnspec.model.transformers.huggingface.mixtures import MIXTURES
from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

ARCHITECTURES = {**DENSE, **ENCODERS, **MIXTURES, **HYBRIDS, **LOCAL}
"""How the config.json of each ``model_type`` is read."""


_CROSS = "an encoder and a decoder that attends to it are not modelled"
_OTHER = "it is not a language model"
REFUSED = {
    **dict.fromkeys(("bart", "led", "longt5", "m2m_100", "marian", "mbart", "mllama_text_model", "mt5", "pegasus", "prophetnet",
                     "seamless_m4t", "switch_transformers", "t5", "t5gemma", "umt5", "whisper"), _CROSS),
    **dict.fromkeys(("clip", "clip_text_model", "convnext", "deit", "detr", "dinov2", "perceiver", "resnet", "siglip", "swin", "unet",
                     "vit", "wav2vec2", "yolos"), _OTHER),
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


def imported(config: Mapping[str, Any]) -> Imported:
    """The model that a config.json describes.

    The language model of a multimodal model is imported alone.

    Raises:
        ConfigError: An unknown architecture, a missing key without a default, or a key that may matter and is not known.
    """
    part = next((key for key in PARTS if isinstance(config.get(key), dict)), None)
    values = config if part is None else {**_shared(config), **config[part]}
    architecture = str(values.get("model_type") or "")
    read = ARCHITECTURES.get(architecture)
    if architecture in REFUSED:
        raise ConfigError("model_type", f"model_type is {architecture!r}: {REFUSED[architecture]}")
    if not architecture and "_class_name" in config:
        raise ConfigError("_class_name", f"_class_name is {config['_class_name']!r}, of Diffusers: {_OTHER}")
    if read is None:
        known = ", ".join(sorted(ARCHITECTURES))
        message = f"model_type is {architecture!r}" if architecture else "config.json has no model_type"
        raise ConfigError("model_type", f"{message}; known: {known}")
    c = Config(values, architecture)
    if part is not None:
        c.notes.append(f"The language model alone: {part} of config.json.")
    fields = read(c)
    predicted = [key for key in _PREDICTED if c.get(key, None)]
    if predicted:
        c.notes.append("Modules of multi-token prediction are left out.")
    c.used.add("expert_dtype")
    fields["precision"] = _precision(values, config)
    c.finish()
    return Imported(Model(**fields), tuple(c.notes))


_PREDICTED = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_transformer_layers")


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a multimodal model that its language model inherits."""
    return {key: config[key] for key in ("tie_word_embeddings", "quantization_config") if key in config}


def _precision(values: Mapping[str, Any], outer: Mapping[str, Any]) -> str | None:
    """The number format of quantised weights; ``None`` where config.json describes no quantisation."""
    quantised = values.get("quantization_config") or outer.get("quantization_config")
    if values.get("expert_dtype"):
        return str(values["expert_dtype"])
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
