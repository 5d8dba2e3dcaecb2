"""The fabric of a system for Graphviz: an undirected graph, chips grouped by server, links with the rate of their class.

Vertices are named by their numbers in the topology: ``chip0``, ``chip1``, ...; switches are ``switch0``, ...
"""

from __future__ import annotations

from typing import Any

from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.output.exporters.export_log import ExportLog
from trnspec.output.exporters.exported import Export
from trnspec.output.exporters.link_table import LinkTable, link_table
from trnspec.output.exporters.svg import link_text
from trnspec.text_table import escape, visible
from trnspec.topology.fabric import FabricGraph
from trnspec.topology.switched import Switched

_COLOURS = ("#3565c4", "#c4521a", "#a86b00", "#8a3fa0", "#2e7d4f")


def export(node: Node[Any], graph: Graph) -> Export:
    """Export the fabric of a server or an UltraServer.

    Raises:
        ExportError: It declares no fabric.
    """
    log = ExportLog(graph, node, "dot")
    network = link_table(log)
    fabric = network.shape.build()
    legend = "\\l".join(_escaped(link_text(network, c)) for c in network.classes)
    lines = [f"// {escape(note)}" for note in log.notes]
    lines += [
        f"graph {_quoted(node.name)} {{",
        f'  graph [label={_quoted(node.metadata.title)}, labelloc=t, fontname=Helvetica, fontsize=18, tooltip="{legend}"]',
        '  node [shape=circle, style=filled, fillcolor="#e8f0fe", color="#3565c4", fontname=Helvetica, fontsize=11,',
        "        width=0.42, fixedsize=true]",
        "  edge [fontname=Helvetica, fontsize=8]",
        "",
    ]
    for server in range(network.servers):
        lines += _cluster(network, server)
    lines += _switches(network, fabric)
    for index, links in enumerate(network.classes):
        colour = _COLOURS[index % len(_COLOURS)]
        per = " a link" if isinstance(network.shape, Switched) and links.per_chip is None else ""
        label = f", label={_quoted(links.label + per)}" if links.label else ""
        lines += [
            "",
            f"  // {link_text(network, links)}",
            "  {",
            f'    edge [class={_quoted(links.kind.replace(" ", "-"))}, color="{colour}"{label}]',
        ]
        edges = (e for e in fabric.edges if e.kind == links.kind)
        lines += [f"    {_name(fabric, e.a)} -- {_name(fabric, e.b)}" for e in edges]
        lines += ["  }"]
    return log.export("\n".join([*lines, "}", ""]))


def _cluster(network: LinkTable, server: int) -> list[str]:
    first = server * network.per_server
    chips = [f'chip{i} [label="{i}"]' for i in range(first, first + network.per_server)]
    lines = ["    " + "; ".join(chips[i : i + 8]) for i in range(0, len(chips), 8)]
    label = f"server {server}: {network.server}" if network.servers > 1 else network.server
    head = f'  subgraph cluster_server{server} {{\n    graph [label={_quoted(label)}, fontsize=12, color="#8a94a3"]'
    return [head, *lines, "  }"]


def _switches(network: LinkTable, fabric: FabricGraph) -> list[str]:
    if not isinstance(network.shape, Switched):
        return []
    lines = ["", '  node [shape=box, fillcolor="#fdf1d8", color="#a86b00", fixedsize=false]']
    vertex = fabric.nodes
    for level, name in zip(network.shape.levels, network.switches, strict=True):
        for _ in range(fabric.nodes // level.size):
            lines.append(f"  {_name(fabric, vertex)} [label={_quoted(f'{name} of {level.size} chips')}]")
            vertex += 1
    return lines


def _name(fabric: FabricGraph, vertex: int) -> str:
    return f"switch{vertex - fabric.nodes}" if fabric.is_switch(vertex) else f"chip{vertex}"


def _escaped(words: str) -> str:
    return visible(words).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _quoted(words: str) -> str:
    return f'"{_escaped(words)}"'
