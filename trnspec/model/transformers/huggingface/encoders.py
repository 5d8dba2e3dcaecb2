"""Encoders: BERT and its relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.model.transformers.huggingface.config import Config, ConfigError
from trnspec.model.transformers.huggingface.parts import Fields, dense_network, head_share, outline
from trnspec.model.transformers.model import Attention

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _bert(c: Config, *, segments: bool = True, offset: int = 0) -> Fields:
    c.expect("position_embedding_type", "absolute")
    fields = outline(c, tied=True, norm="layer", positions="learned")
    if c.get("embedding_size", None) not in (None, fields["hidden"]):
        raise ConfigError("embedding_size", "embedding_size differs from hidden_size; the projection is not modelled")
    kinds = c.count("type_vocab_size", 2) if segments else None
    heads = c.count("num_attention_heads")
    head = "bert" if any(str(a).startswith("Bert") for a in c.get("architectures", None) or ()) else "none"
    for key in ("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head",
                "pooler_type", "directionality"):  # fmt: skip
        c.used.add(key)
    return fields | {
        "form": "encoder",
        "context": fields["context"] - offset,
        "segments": kinds,
        "final_norm": "none",
        "embedding_norm": "one",
        "attention": Attention(heads=heads, kv_heads=heads, head_size=head_share(c, "hidden_size", heads), bias="all"),
        "feed_forward": dense_network(c, form="plain", bias=True),
        "head": head,
    }


def _roberta(c: Config) -> Fields:
    c.notes.append("Positions start after the padding token: two rows of their matrix are not used and left out.")
    c.notes.append("The one kind of segments and the head of masked-language modelling are left out.")
    c.used.add("type_vocab_size")
    return _bert(c, segments=False, offset=2)


def _electra(c: Config) -> Fields:
    c.used |= {"generator_size", "summary_activation", "summary_type", "summary_use_proj"}
    c.count("embedding_size", 128)  # unlike BERT's, it is not the hidden size where it is missing
    c.values = {"embedding_size": 128, **c.values}
    c.notes.append("The head of the discriminator is left out.")
    return _bert(c)


def _distilbert(c: Config) -> Fields:
    names = {"num_hidden_layers": "n_layers", "hidden_size": "dim", "num_attention_heads": "n_heads",
             "intermediate_size": "hidden_dim"}  # fmt: skip
    c.used |= {*names.values(), "sinusoidal_pos_embds", "tie_weights_"}
    c.notes.append("The head of masked-language modelling is left out.")
    c.values = {**c.values, **{key: c.values.get(name) for key, name in names.items()}}
    return _bert(c, segments=False)


ENCODERS: Mapping[str, Callable[[Config], Fields]] = {
    "bert": _bert,
    "distilbert": _distilbert,
    "electra": _electra,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
}
"""How the config.json of each ``model_type`` is read."""
