"""Table of the systems of a catalog with their main figures, for ``trnspec list`` and ``trnspec validate --table``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trnspec.catalog.figure_column import displayed_total, figure_column
from trnspec.catalog.newest import is_driver_name, newest_first
from trnspec.graph.graph import Graph
from trnspec.graph.totals import chips, total
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.parts import has_parts
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.display import Displayed
from trnspec.text_table import Block, Cell, Column, TextTable, table

_FIGURES = {
    "bf16 dense": ("spec", "peak", "dense", "bf16"),
    "memory": ("spec", "memory", "capacity"),
    "bandwidth": ("spec", "memory", "bandwidth"),
}


def contents(graph: Graph) -> list[Block]:
    """The contents of a graph: the checked systems with their main figures, and counts of the rest."""
    nodes = systems(graph, [n for n in graph if n.target])
    others = ((Core, "core"), (Link, "link"), (Cluster, "cluster"), (Model, "model"), (Source, "source"))
    counts = [
        f"{n} {word}{'s' if n != 1 else ''}" for spec, word in others if (n := sum(d.target for d in graph.of(spec)))
    ]
    names = sum(n.target and is_driver_name(graph, n) for n in graph)
    counts += [f"{names} servers named by a driver only"] if names else []
    figures = sum(len(graph.figures(n)) for n in graph if n.target)
    claims = sum(len(n.claims) for n in graph if n.target)
    counted = f"{', '.join([*counts, f'{figures} figures'])} and {claims} other claims."
    return [*([system_table(graph, nodes)] if nodes else []), counted]


def systems(graph: Graph, nodes: Iterable[Node[Any]]) -> list[Node[Any]]:
    """The chips and the systems of known size among some documents, by kind; of each kind the newest first.

    Systems of which only a driver has the name are left out.
    """
    ordered = [node for node in newest_first(graph, nodes) if not is_driver_name(graph, node)]
    known: tuple[type[Any], ...] = (Chip, UltraServer, Server)
    composed = [type(n.spec) for n in ordered if has_parts(type(n.spec)) and not isinstance(n.spec, (*known, Cluster))]
    return [n for spec in (*known, *dict.fromkeys(composed)) for n in ordered if isinstance(n.spec, spec)]


def system_table(graph: Graph, nodes: Sequence[Node[Any]]) -> TextTable:
    """The main figures of systems, computed from their chips, each column in one unit."""
    columns = [figure_column(name, values)[:2] for name, values in main_figures(graph, nodes).items()]
    heads = [Column("system", keep=True), *(head for head, _ in columns)]
    return table(heads, list(zip([n.name for n in nodes], *(cells for _, cells in columns), strict=True)))


def main_figures(graph: Graph, nodes: Sequence[Node[Any]]) -> dict[str, list[Displayed | Cell]]:
    """The chips and the main figures of systems by the name of their column."""
    counts = ((n, chips(graph, n)) for n in nodes)
    return {
        "chips": [None if c is None else "" if c[1] is n else f"{c[0]} x {c[1].name}" for n, c in counts],
        **{name: [displayed_total(total(graph, n, path)) for n in nodes] for name, path in _FIGURES.items()},
    }
