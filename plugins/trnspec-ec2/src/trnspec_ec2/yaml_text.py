"""Catalog files as text, in the style of handwritten files: small mappings on one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

WIDTH = 120

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ._/()-]*|[0-9][A-Za-z0-9._-]*( [A-Za-z][A-Za-z/]*)+|\d{4}-\d\d(-\d\d)?")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def document(schema: str, kind: str, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """The text of a catalog file.

    Args:
        schema: The path of its JSON Schema, relative to the file.
        kind: Its kind.
        metadata: Its metadata.
        spec: Its spec.
    """
    lines = [f"# yaml-language-server: $schema={schema}", "api_version: trnspec/v1", f"kind: {kind}"]
    for key, values in (("metadata", metadata), ("spec", spec)):
        lines.append(f"{key}:")
        for name, value in values.items():
            lines += _entry(name, value, 2)
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: int) -> Iterator[str]:
    line = f"{' ' * indent}{key}: {flow(value)}"
    if len(line) <= WIDTH or not isinstance(value, Mapping) or not value:
        yield line
        return
    yield f"{' ' * indent}{key}:"
    for name, inner in value.items():
        yield from _entry(name, inner, indent + 2)


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    plain = _PLAIN.fullmatch(text) and text.strip() == text and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
