"""Table of the checked documents, printed by ``trnspec validate --table``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.cli.figures import displayed_total, figure_column
from trnspec.graph.totals import chips, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.parts import has_parts
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.text_table import Block, Cell, Column, table

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node

_COLUMNS = {
    "bf16 dense": ("spec", "peak", "dense", "bf16"),
    "memory": ("spec", "memory", "capacity"),
    "bandwidth": ("spec", "memory", "bandwidth"),
}


def contents(graph: Graph) -> list[Block]:
    """The contents of a graph: the systems with their main figures, computed from their chips, and counts of the rest."""
    nodes: list[Node[Any]] = []
    systems: tuple[type[Any], ...] = (Chip, Server, UltraServer)
    composed = [type(n.spec) for n in graph if has_parts(type(n.spec)) and not isinstance(n.spec, (*systems, Cluster))]
    for spec in (*systems, *dict.fromkeys(composed)):
        targets = [n for n in graph.of(spec) if n.target]
        nodes += sorted(targets, key=lambda n: _size(graph, n))
    blocks: list[Block] = []
    if nodes:
        heads = [Column("system", keep=True), Column("chips")]
        columns = [[n.name for n in nodes], _counts(graph, nodes)]
        for name, path in _COLUMNS.items():
            head, cells, _ = figure_column(name, [displayed_total(total(graph, n, path)) for n in nodes])
            heads.append(head)
            columns.append(cells)
        blocks.append(table(heads, list(zip(*columns, strict=True))))
    others = ((Core, "core"), (Link, "link"), (Cluster, "cluster"), (Model, "model"), (Source, "source"))
    counts = [f"{n} {word}{'s' if n != 1 else ''}" for spec, word in others if (n := _targets(graph, spec))]
    figures = sum(len(graph.figures(n)) for n in graph if n.target)
    claims = sum(len(n.claims) for n in graph if n.target)
    blocks.append(f"{', '.join([*counts, f'{figures} figures'])} and {claims} other claims.")
    return blocks


def _targets(graph: Graph, spec: type[object]) -> int:
    return sum(1 for n in graph.of(spec) if n.target)


def _size(graph: Graph, node: Node[Any]) -> tuple[str, int]:
    count = chips(graph, node)
    return ("", 0) if count is None else (count[1].name, count[0])


def _counts(graph: Graph, nodes: list[Node[Any]]) -> list[Cell]:
    counts = ((n, chips(graph, n)) for n in nodes)
    return [None if c is None else "" if c[1] is n else f"{c[0]} x {c[1].name}" for n, c in counts]
