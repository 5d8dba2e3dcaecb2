"""``trnspec list``: which documents there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.render import Block, Cell, Column, emit, format_option, table
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError
from trnspec.graph.composition import has_parts
from trnspec.graph.facts import words
from trnspec.graph.totals import chips, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.reflection import value_at
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node

_SYSTEM = {
    "bf16 dense": "peak.dense.bf16",
    "memory": "memory.capacity",
    "bandwidth": "memory.bandwidth",
}
_MORE: dict[type, dict[str, str]] = {
    Core: {"version": "version", "SBUF": "sbuf.capacity", "PSUM": "psum.capacity"},
    Link: {"connects": "connects", "per direction": "bandwidth.per_direction", "both": "bandwidth.both"},
    Cluster: {"chip": "chip", "chips": "chips", "network": "network"},
    Model: {"layers": "layers", "hidden": "hidden", "heads": "attention.heads", "vocabulary": "vocabulary"},
    Source: {"date": "as_of", "rank": "rank"},
}
"""What the list of one kind tells beside names and titles, by heading and path."""


def _folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click passes it
    from trnspec.model.kinds import BUILTIN

    return [folder for folder, _ in BUILTIN.values() if folder.startswith(incomplete.lower())]


@click.command("list")
@click.argument("kind", required=False, shell_complete=_folders)
@format_option
@catalog_options
def command(kind: str | None, format_: str, **options: Any) -> None:
    """List the documents of a KIND with their main figures, or those of all kinds.

    KIND is chips, servers, ultraservers, cores, links, clusters, models or sources. Figures of servers and UltraServers
    are totals, computed from their chips.
    """
    graph = load_catalog(**options).graph
    if kind is None:
        emit(format_, lambda: _overview(graph), lambda: table(["name", "kind", "title"], _titles(list(graph))))
        return
    chosen = _of_kind(graph, kind)
    names, found = _kind_table(graph, chosen)
    made = table(names, found)
    emit(format_, lambda: [made], lambda: made)


def _titles(nodes: Sequence[Node[Any]]) -> list[tuple[Cell, ...]]:
    ordered = sorted(nodes, key=lambda n: (n.kind, n.name))
    return [(n.name, n.kind, n.metadata.title) for n in ordered]


def _overview(graph: Graph) -> list[Block]:
    others = [n for n in graph if not isinstance(n.spec, Source)]
    sources = len(graph) - len(others)
    made = table([Column("name", keep=True), "kind", Column("title", fold=True, least=24)], _titles(others))
    return [made, f"And {sources} sources: trnspec list sources."]


def _of_kind(graph: Graph, kind: str) -> list[Node[Any]]:
    from trnspec.api import registry

    names = {name.lower(): k for k in registry().kinds.values() for name in (k.folder, k.name)}
    if kind.lower() not in names:
        folders = [k.folder for k in registry().kinds.values()]
        hint = did_you_mean(kind.lower(), names) or f"known: {', '.join(folders)}"
        raise UnknownNameError(f"no kind is named {kind!r}; {hint}")
    chosen = names[kind.lower()]
    # Also those of kinds that a plugin derives from it.
    return [n for n in graph if n.kind == chosen.name or chosen.spec in type(n.spec).__mro__[1:]]


def _kind_table(graph: Graph, nodes: Sequence[Node[Any]]) -> tuple[list[Column], list[tuple[Cell, ...]]]:
    spec = next((type(n.spec) for n in nodes), Source)
    if has_parts(spec) and not issubclass(spec, Cluster):
        ordered = sorted(nodes, key=lambda n: _size(graph, n))
        columns = (
            [Column("name", keep=True), Column("chips")] if not issubclass(spec, Chip) else [Column("name", keep=True)]
        )
        columns += [Column(name, right=True) for name in _SYSTEM]
        columns.append(Column("title", fold=True, least=24))
        return columns, [_system(graph, n) for n in ordered]
    more = next((_MORE[c] for c in spec.__mro__ if c in _MORE), {})
    columns = [Column("name", fold=True, least=24, keep=True), *(Column(name) for name in more)]
    columns.append(Column("title", fold=True, least=24))
    cells = [(n.name, *(_word(n, at) for at in more.values()), n.metadata.title) for n in nodes]
    return columns, sorted(cells, key=lambda row: str(row[0]))


def _size(graph: Graph, node: Node[Any]) -> tuple[str, int, str]:
    found = chips(graph, node)
    return ("", 0, node.name) if found is None else (found[1].name, found[0], node.name)


def _system(graph: Graph, node: Node[Any]) -> tuple[Cell, ...]:
    found = chips(graph, node)
    count = [] if isinstance(node.spec, Chip) else [None if found is None else f"{found[0]} x {found[1].name}"]
    figures = (total(graph, node, ("spec", *at.split("."))) for at in _SYSTEM.values())
    return (node.name, *count, *(None if f is None else str(f) for f in figures), node.metadata.title)


def _word(node: Node[Any], at: str) -> Cell:
    value = value_at(node.spec, tuple(at.split(".")))
    return None if value is None else words(value) if isinstance(value, (int, str)) else str(value)
