"""Completion: keys, words, names of documents, units, codes and figure paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from trnspec.graph.graph import Graph
from trnspec.lsp.cursor import Cursor, cursor_at, keys_of
from trnspec.lsp.documents import kind_in
from trnspec.lsp.fields import TOP, described, field_at, fields_at
from trnspec.model.document import CodeText, PathText
from trnspec.model.figure import Figure
from trnspec.model.reflection import (
    ChoiceShape,
    EitherShape,
    FlagShape,
    ListShape,
    MapShape,
    ObjectShape,
    RefShape,
    Shape,
    TextShape,
    class_paths,
    dotted,
    shape_in_document,
    shape_of,
)
from trnspec.plugins.api import Registry
from trnspec.quantities.units import UnitTable
from trnspec.yaml import Path, Place

_NUMBER = re.compile(r"""["']?(?:~ ?)?[0-9][0-9.,]*[ \t]+""")
"""A number and the space after it: a unit follows."""


@frozen
class Item:
    """One completion.

    Attributes:
        label: The text that is shown and inserted.
        sort: What it is: ``key``, ``word``, ``name``, ``unit``, ``path`` or ``code``.
        detail: A few words next to the label.
        text: Its documentation, Markdown.
        insert: The text to insert, if it is another one.
    """

    label: str
    sort: str
    detail: str = ""
    text: str = ""
    insert: str = ""


@frozen
class Completions:
    """The completions at a position, and the text before it that they replace."""

    items: tuple[Item, ...]
    typed: str


def complete(lines: list[str], place: Place, graph: Graph, known: Registry) -> Completions:
    """Completions at a position."""
    cursor = cursor_at(lines, place)
    kind = known.kinds.get(kind_in("\n".join(lines)))
    spec = None if kind is None else kind.spec
    if cursor.key is None and not cursor.item:
        keys = keys_of(lines, place.line, cursor)
        return Completions(tuple(i for i in _keys(cursor, spec, known.units) if i.label not in keys), cursor.typed)
    if number := _NUMBER.match(cursor.typed):
        return Completions(tuple(_units(cursor, spec, known.units)), cursor.typed[number.end() :])
    items = list(_values(cursor.value_path, spec, graph, known))
    if cursor.item and not items:
        items = list(_keys(cursor, spec, known.units))
    return Completions(tuple(items), cursor.typed.lstrip("\"'"))


def _keys(cursor: Cursor, spec: type | None, units: UnitTable) -> Iterator[Item]:
    if not cursor.path:
        yield from (Item(key, "key", text=text, insert=f"{key}: ") for key, text in TOP.items())
        return
    if spec is None:
        return
    for field in fields_at(spec, cursor.path):
        shape = shape_in_document(spec, (*cursor.path, field.name))
        is_block = isinstance(shape, (ObjectShape, ListShape, MapShape)) and not cursor.flow
        detail = f"{field.type_words}{', required' if field.required else ''}"
        text = described(field, units)
        yield Item(field.name, "key", detail, text, f"{field.name}:" if is_block else f"{field.name}: ")


def _units(cursor: Cursor, spec: type | None, units: UnitTable) -> Iterator[Item]:
    path = cursor.value_path
    if path[-1:] == ("value",):
        path = path[:-1]
    field = None if spec is None else field_at(spec, path)
    if field is not None and (symbols := field.units(units)):
        yield from (Item(unit, "unit", field.type_words) for unit in symbols)
    elif path[-1:] == ("says",):
        yield from (Item(unit.symbol, "unit") for unit in units)


def _values(path: Path, spec: type | None, graph: Graph, known: Registry) -> Iterator[Item]:
    if path == ("api_version",):
        yield from (Item(version, "word") for version in dict.fromkeys(k.api_version for k in known.kinds.values()))
    elif path == ("kind",):
        yield from (Item(name, "word") for name in known.kinds)
    elif spec is not None and (shape := shape_in_document(spec, path)) is not None:
        yield from _of_shape(shape, spec, graph, known)


def _of_shape(shape: Shape, spec: type, graph: Graph, known: Registry) -> Iterator[Item]:
    if isinstance(shape, ChoiceShape):
        yield from (Item(word, "word") for word in shape.words)
    elif isinstance(shape, FlagShape):
        yield from (Item(word, "word") for word in ("true", "false"))
    elif isinstance(shape, RefShape):
        named: Any = graph.of(shape.target)
        for node in named:
            yield Item(node.name, "name", node.metadata.title)
            yield from (Item(alias, "name", f"{node.name}: {node.metadata.title}") for alias in node.metadata.aliases)
    elif shape == _PATH:
        yield from (Item(f"spec.{dotted(path)}", "path") for path in _paths(spec))
    elif shape == _CODE:
        yield from (Item(code.id, "code", code.name, code.summary) for code in known.codes.values())
    elif isinstance(shape, ListShape):
        yield from _of_shape(shape.item, spec, graph, known)
    elif isinstance(shape, EitherShape):
        for option in shape.options:
            yield from _of_shape(option, spec, graph, known)


_PATH, _CODE = shape_of(PathText), shape_of(CodeText)
assert isinstance(_PATH, TextShape)


def _paths(spec: type) -> Iterator[Path]:
    """The paths of the figures and numbers of a kind; those of a figure as a mapping apart."""
    own = set(ObjectShape(Figure).fields)
    return (path for path in class_paths(spec) if path[-1] not in own)
