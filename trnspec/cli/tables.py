"""Tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.graph.composition import has_parts
from trnspec.graph.totals import chips, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node

_COLUMNS = {
    "bf16 dense": ("spec", "peak", "dense", "bf16"),
    "memory": ("spec", "memory", "capacity"),
    "bandwidth": ("spec", "memory", "bandwidth"),
}


def holdings(graph: Graph) -> str:
    """What a graph holds: the systems with their main figures, computed from their chips, and counts of the rest."""
    header = ["system", "chips", *_COLUMNS]
    rows: list[list[str]] = []
    systems: tuple[type[Any], ...] = (Chip, Server, UltraServer)
    composed = [type(n.spec) for n in graph if has_parts(type(n.spec)) and not isinstance(n.spec, (*systems, Cluster))]
    for spec in (*systems, *dict.fromkeys(composed)):
        nodes = [n for n in graph.of(spec) if n.target]
        rows += [_row(graph, n) for n in sorted(nodes, key=lambda n: _size(graph, n))]
    lines: list[str] = []
    if rows:
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        rule = "  ".join("-" * width for width in widths)
        lines = [_line(header, widths), rule, *(_line(row, widths) for row in rows), ""]
    others = ((Core, "core"), (Link, "link"), (Cluster, "cluster"), (Model, "model"), (Source, "source"))
    counts = [f"{n} {word}{'s' if n != 1 else ''}" for spec, word in others if (n := _targets(graph, spec))]
    figures = sum(len(graph.figures(n)) for n in graph if n.target)
    claims = sum(len(n.claims) for n in graph if n.target)
    lines += [f"{', '.join([*counts, f'{figures} figures'])} and {claims} claims beside them.", ""]
    return "\n".join(lines)


def _targets(graph: Graph, spec: type[object]) -> int:
    return sum(1 for n in graph.of(spec) if n.target)


def _size(graph: Graph, node: Node[Any]) -> tuple[str, int]:
    found = chips(graph, node)
    return ("", 0) if found is None else (found[1].name, found[0])


def _row(graph: Graph, node: Node[Any]) -> list[str]:
    found = chips(graph, node)
    count = "" if found is None else f"{found[0]} x {found[1].name}" if found[1] is not node else ""
    figures = (total(graph, node, path) for path in _COLUMNS.values())
    return [node.name, count, *("-" if f is None else str(f) for f in figures)]


def _line(row: list[str], widths: list[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join([*left, *right]).rstrip()
