"""The text of a document, complete or to be filled in: YAML as it is written by hand, small mappings on one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trnspec.model.document import API_VERSION
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import ObjectShape, fields_of
from trnspec.yaml.scalars import resolve

_WIDTH = 120


def document_text(
    kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any], schema: str = "", *, api_version: str = API_VERSION
) -> str:
    """The text of a document.

    Args:
        kind: Its kind.
        metadata: Its metadata; values are texts, numbers, flags, and lists and mappings of these.
        spec: Its specification, likewise.
        schema: The path of its JSON Schema, for editors.
        api_version: Its version.
    """
    lines = [f"# yaml-language-server: $schema={schema}"] if schema else []
    lines += [f"api_version: {api_version}", f"kind: {kind}"]
    lines += ["metadata:", *entry_text(metadata, "  "), "spec:", *entry_text(spec, "  ")]
    return "\n".join(lines) + "\n"


def stub_text(
    kind: str, cls: type, metadata: Mapping[str, Any], spec: Mapping[str, Any], api_version: str = API_VERSION
) -> str:
    """The text of a document to be filled in: required fields without a value, the others as comments.

    Args:
        kind: Its kind.
        cls: The class of the kind.
        metadata: Its metadata; ``None`` for a value that is missing.
        spec: The values that are known.
        api_version: Its version.
    """
    lines = [f"api_version: {api_version}", f"kind: {kind}", "metadata:"]
    lines += [
        f"  {key}:{'  # REQUIRED' if value is None else f' {flow_text(value)}'}" for key, value in metadata.items()
    ]
    return "\n".join([*lines, "spec:", *_stub(cls, spec, "  ")]) + "\n"


def _stub(cls: type, given: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, field in fields_of(cls).items():
        part = field.shape.cls if isinstance(field.shape, ObjectShape) and field.shape.cls is not Figure else None
        value = given.get(name)
        if part is not None and (isinstance(value, dict) or (value is None and field.required)):
            yield f"{indent}{name}:"
            yield from _stub(part, value or {}, indent + "  ")
        elif value is not None:
            yield f"{indent}{name}: {flow_text(value)}"
        elif field.required:
            yield f"{indent}{name}:  # REQUIRED: {field.expected}. {field.description}"
        else:
            yield f"{indent}# {name}:  # {field.expected}. {field.description}"


def entry_text(fields: Mapping[str, Any], indent: str) -> Iterator[str]:
    """The lines of the entries of a mapping, small mappings on one line."""
    for key, value in fields.items():
        flow = f"{indent}{_scalar(key)}: {flow_text(value)}"
        if isinstance(value, dict) and len(flow) > _WIDTH:
            yield f"{indent}{_scalar(key)}:"
            yield from entry_text(value, indent + "  ")
        elif isinstance(value, list) and len(flow) > _WIDTH and all(isinstance(item, dict) for item in value):
            yield f"{indent}{_scalar(key)}:"
            yield from (f"{indent}  - {flow_text(item)}" for item in value)
        else:
            yield flow


def flow_text(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {flow_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Ref):
        return value.name
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow_text(item) for item in value) + "]"
    # A bool is an int; YAML writes it in small letters.
    return str(value).lower() if isinstance(value, (int, float)) else _scalar(str(value))


def _scalar(text: str) -> str:
    """A text without quotes where YAML reads it as the same text, else in double quotes, as in JSON."""
    marks = (": ", " #", "[", "]", "{", "}", ",", '"', "\\")
    plain = text[:1].isalnum() and text.isprintable() and text == text.strip() and not any(m in text for m in marks)
    number = text.replace(".", "").replace("_", "").isdigit()  # a date is a text in documents
    words = text.lower() in {"true", "false", "yes", "no", "on", "off", "null"}
    if plain and not number and not words and not text.endswith(":") and resolve(text) == text:
        return text
    # YAML needs escapes for some characters that JSON does not escape.
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in json.dumps(text, ensure_ascii=False))
