"""A model as the text of a catalog document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from trnspec.model.document_text import document_text
from trnspec.model.ref import Ref
from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST = ("form", "layers", "hidden", "vocabulary", "context", "positions", "embeddings", "norm")


def model_document(
    spec: Model,
    *,
    name: str,
    title: str,
    source: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The YAML document of a model; fields that have their default are left out.

    Args:
        spec: The model.
        name: Its name in the catalog.
        title: Its title.
        source: The name of the source document, where it has one.
        notes: Sentences of the note.
    """
    metadata: dict[str, Any] = {"name": name, "title": title}
    if source:
        metadata["source"] = source
    if notes:
        metadata["note"] = " ".join(note if note.endswith(".") else f"{note}." for note in notes)
    return document_text("Model", metadata, _stated(spec), "../../schemas/v1/model.schema.json")


def _stated(value: Any) -> dict[str, Any]:
    """The fields of a class that differ from their defaults, the best known first."""
    fields = {}
    for field in attrs.fields(type(value)):
        item = getattr(value, field.name)
        if item is not None and (field.default is attrs.NOTHING or item != field.default):
            nested = attrs.has(type(item)) and not isinstance(item, Ref)
            fields[field.name] = _stated(item) if nested else item
    first = _FIRST if isinstance(value, Model) else ()
    return {key: fields.pop(key) for key in first if key in fields} | fields
