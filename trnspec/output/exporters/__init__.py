"""Exports: the catalog in forms that other programs read, with the assumptions each of them makes.

Each form is a module of its own with one pure function, which is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.output.exporters.exported import Export


@frozen
class Format:
    """A form in which a document can be exported.

    Attributes:
        name: What ``trnspec export`` calls it.
        suffix: How the names of such files end.
        summary: What it is, in one line.
        tells: Whether the text itself holds the assumptions; where not, they are written beside it.
        whole: Whether the whole catalog can be exported too.
    """

    name: str
    suffix: str
    summary: str
    tells: bool = True
    whole: bool = False


FORMATS = {
    f.name: f
    for f in (
        Format("json", ".json", "documents with all their parts, totals and sources", whole=True),
        Format("dot", ".dot", "the fabric of a system, for Graphviz"),
        Format("svg", ".svg", "the fabric of a system as a picture"),
        Format("calculon", ".json", "a system of calculon"),
        Format("astra-sim", ".yml", "a network of astra-sim"),
        Format("llm-analysis", ".json", "a GPU configuration of llm-analysis", tells=False),
    )
}
"""The forms by name."""

_MODULES = {"json": "resolved"}


def known(format: str) -> Format:
    """The form of that name; ``UsageError`` lists the nearest."""
    if format not in FORMATS:
        hint = did_you_mean(format, FORMATS) or f"there are {', '.join(FORMATS)}"
        raise UsageError(f"there is no export format {format!r}; {hint}")
    return FORMATS[format]


def export(format: str, graph: Graph, node: Node[Any]) -> Export:
    """One document in one form.

    Args:
        format: One of :data:`FORMATS`.
        graph: Where its parts are.
        node: The document.

    Raises:
        UsageError: There is no such form.
        ExportError: The form needs something that this document does not have; the message says what.
    """
    made: Export = _module(format).export(graph, node)
    return made


def export_all(format: str, graph: Graph) -> Export:
    """The whole catalog in one form.

    Raises:
        UsageError: There is no such form, or it takes one document at a time.
    """
    if not known(format).whole:
        raise UsageError(f"{format} takes one document at a time; name a server or an UltraServer")
    made: Export = _module(format).export_all(graph)
    return made


def _module(format: str) -> Any:
    name = known(format).name
    return import_module(f"trnspec.output.exporters.{_MODULES.get(name, name.replace('-', '_'))}")
