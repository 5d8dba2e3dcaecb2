"""A document of a plugin that bears the name of another: refused, unless it says what it changes, and changes no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.graph import NodeProblem, at
from trnspec.model.shape import FigureShape, ObjectShape, dotted, leaves, spread
from trnspec.source import Path, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.model.document import Node

HOUSE = "trnspec"
"""The plugin that trnspec itself is; only its documents can be replaced."""


def replaces(node: Node[Any], other: Node[Any], owner: str) -> Iterator[NodeProblem]:
    """Why a document of a plugin may not stand in for another; nothing when it may.

    It may when it has the kind and the name of the other, keeps its aliases, and lists every difference in
    ``metadata.overrides``.

    Args:
        node: The document of the plugin.
        other: The one that has the name.
        owner: The plugin that the other belongs to.
    """
    path: Path = ("metadata", "name")
    see = (at(other, path, text=f"{other.kind} {other.name} of {owner}"),)

    def problem(message: str, hint: str, where: Path) -> NodeProblem:
        return NodeProblem(node, Problem("TRN204", message, node.document.place(where), hint, where), see)

    if owner != HOUSE or not node.metadata.overrides or (node.name, node.kind) != (other.name, other.kind):
        shared = node.name if node.name in (other.name, *other.metadata.aliases) else ""
        names = (other.name, *other.metadata.aliases)
        shared = shared or next(a for a in node.metadata.aliases if a in names)
        if shared != node.name:
            path = ("metadata", "aliases", node.metadata.aliases.index(shared))
        hint = "choose another name"
        if owner == HOUSE:
            hint += ", or list in metadata.overrides what this document changes of the other"
        yield problem(f"the name {shared!r} is taken by a document of {owner}", hint, path)
        return
    for alias in other.metadata.aliases:
        if alias not in node.metadata.aliases:
            message = f"{other.name} of {owner} is also called {alias!r}, and this document, which replaces it, is not"
            yield problem(message, f"add {alias} to metadata.aliases", path)
    allowed = [p for text in node.metadata.overrides for p in _spread(text)]
    own, theirs = _said(node), _said(other)
    for where in dict.fromkeys((*own, *theirs)):
        if own.get(where) != theirs.get(where) and not any(where[: len(p)] == p for p in allowed):
            message = (
                f"{dotted(where)} is {own.get(where, 'left out')} here and {theirs.get(where, 'left out')} in "
                f"{other.name} of {owner}, and metadata.overrides does not list it"
            )
            yield problem(message, f"say the same, or add {dotted(where)} to metadata.overrides", where)


def _spread(text: str) -> list[Path]:
    try:
        return spread(text)
    except ValueError:
        return []


def _said(node: Node[Any]) -> dict[Path, Any]:
    """What a document says, by path; of a figure only what is printed, for its source may be another."""
    found = leaves(node.spec, ObjectShape(type(node.spec)), ("spec",))
    return {path: value.value.text if isinstance(shape, FigureShape) else value for path, shape, value in found}
