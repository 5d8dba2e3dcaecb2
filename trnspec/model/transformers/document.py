"""A model as the text of a catalog document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WIDTH = 120
_FIRST = ("form", "layers", "hidden", "vocabulary", "context", "positions", "embeddings", "norm")


def model_document(
    spec: Model,
    *,
    name: str,
    title: str,
    source: str | None = None,
    where: str | None = None,
    aliases: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """The YAML document of a model; fields that have their default are left out.

    Args:
        spec: The model.
        name: Its name in the catalog.
        title: Its title.
        source: The name of the source document, where it has one.
        where: The place in the source.
        aliases: Other names.
        notes: Sentences of the note.
    """
    metadata: dict[str, Any] = {"name": name, "title": title}
    if aliases:
        metadata["aliases"] = list(aliases)
    if source:
        metadata["source"] = source
    if where:
        metadata["where"] = where
    if notes:
        metadata["note"] = " ".join(note if note.endswith(".") else f"{note}." for note in notes)
    lines = [
        "# yaml-language-server: $schema=../../schemas/v1/model.schema.json",
        "api_version: trnspec/v1",
        "kind: Model",
    ]
    lines += ["metadata:", *_block(metadata, "  "), "spec:", *_block(_stated(spec), "  ")]
    return "\n".join(lines) + "\n"


def _stated(value: Any) -> dict[str, Any]:
    """The fields of a class that differ from their defaults, the best known first."""
    fields = {}
    for field in attrs.fields(type(value)):
        item = getattr(value, field.name)
        if item is not None and (field.default is attrs.NOTHING or item != field.default):
            fields[field.name] = _stated(item) if attrs.has(type(item)) else item
    first = _FIRST if isinstance(value, Model) else ()
    return {key: fields.pop(key) for key in first if key in fields} | fields


def _block(fields: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in fields.items():
        flow = f"{indent}{key}: {_flow(value)}"
        if isinstance(value, dict) and len(flow) > _WIDTH:
            yield f"{indent}{key}:"
            yield from _block(value, indent + "  ")
        else:
            yield flow


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return str(value) if isinstance(value, int) else _scalar(str(value))


def _scalar(text: str) -> str:
    """A text without quotes where YAML reads it as the same text."""
    plain = text[:1].isalnum() and not any(
        mark in text for mark in (": ", " #", "[", "]", "{", "}", ",", '"', "\n", "\\")
    )
    number = text.replace(".", "").replace("-", "").replace("_", "").isdigit()
    words = text.lower() in {"true", "false", "yes", "no", "on", "off", "null"}
    if plain and not number and not words and not text.endswith(":"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
