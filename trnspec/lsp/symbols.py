"""The outline of a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lsprotocol import types

from trnspec.lsp.positions import TextLines
from trnspec.yaml import Document, Path, Place

_FIGURE = {"value", "source", "where", "derived", "check", "note"}
_TITLES = ("name", "at", "of", "code", "date")
"""The keys whose value names an item of a list."""
_MOST = 60
"""The most characters of a value in the outline."""


def symbols(document: Document, lines: TextLines) -> list[types.DocumentSymbol]:
    """The keys of a document; a figure with a source of its own is one symbol, with its value."""
    return list(_children(document, lines, document.data, ()))


def _children(document: Document, lines: TextLines, value: Any, path: Path) -> Iterator[types.DocumentSymbol]:
    if isinstance(value, dict):
        pairs = [((*path, key), str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        pairs = [((*path, index), _title(item, index), item) for index, item in enumerate(value)]
    else:
        return
    for at, name, item in pairs:
        span = document.places.get(at)
        if span is None:
            continue
        begin = span.key or span.value
        whole = lines.range(begin, span.end)
        name_end = min(lines.position(Place(begin.line, begin.column + len(name))), whole.end, key=_order)
        is_figure = isinstance(item, dict) and "value" in item and set(item) <= _FIGURE
        shown = item["value"] if isinstance(item, dict) and is_figure else item
        nested = [] if is_figure else list(_children(document, lines, item, at))
        detail = "" if isinstance(shown, (dict, list)) and nested else _short(shown)
        yield types.DocumentSymbol(
            name=name or "?",
            kind=_kind(item, is_figure=is_figure),
            range=whole,
            selection_range=types.Range(whole.start, name_end),
            detail=detail,
            children=nested or None,
        )


def _order(position: types.Position) -> tuple[int, int]:
    return position.line, position.character


def _title(item: Any, index: int) -> str:
    if isinstance(item, dict):
        title = next((item[key] for key in _TITLES if isinstance(item.get(key), (str, int))), None)
        if title is not None:
            return str(title)
    return f"[{index}]"


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else "" if isinstance(value, dict) else str(value)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _kind(item: Any, *, is_figure: bool) -> types.SymbolKind:
    if is_figure:
        return types.SymbolKind.Constant
    if isinstance(item, dict):
        return types.SymbolKind.Object
    if isinstance(item, list):
        return types.SymbolKind.Array
    if isinstance(item, bool):
        return types.SymbolKind.Boolean
    return types.SymbolKind.Number if isinstance(item, (int, float)) else types.SymbolKind.String
