"""Order of systems in lists: Trainium first, the newest generation first, the largest systems first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trnspec.graph.graph import Graph
from trnspec.graph.totals import chips, total
from trnspec.model.document import Node
from trnspec.model.server import Server

_FAMILY = "trainium"
_HARDWARE = ("Chip", "UltraServer", "Server", "Cluster", "Core", "Link")


def documents_in_order(graph: Graph) -> list[Node[Any]]:
    """Every document: hardware first and the newest first, then the other kinds by name, sources last."""
    kinds = {kind: n for n, kind in enumerate((*_HARDWARE, *sorted({n.kind for n in graph} - {*_HARDWARE, "Source"})))}
    return sorted(newest_first(graph, graph), key=lambda n: kinds.get(n.kind, len(kinds)))


def newest_first(graph: Graph, nodes: Iterable[Node[Any]]) -> list[Node[Any]]:
    """Systems by generation of their chip, the newest first, and by size, the largest first.

    Trainium systems of which only the driver has the name come after the others; documents without chips are last.
    Other families than Trainium follow. Few of their chips have a generation or a date, so these are ordered by dense
    bf16 rate, the highest first.
    """
    return sorted(nodes, key=lambda node: _key(graph, node))


def is_driver_name(graph: Graph, node: Node[Any]) -> bool:
    """True for a server that only a driver names: it may not be a product."""
    if not node.is_of(Server):
        return False
    source = None if node.metadata.source is None else graph.find(node.metadata.source)
    return source is not None and source.spec.rank == "vendor-driver"


def _key(graph: Graph, node: Node[Any]) -> tuple[int, bool, float, str, float, str]:
    count = chips(graph, node)
    if count is None:
        return (2, False, 0, "", 0, node.name)
    number, chip = count
    if chip.name.startswith(_FAMILY):
        generation = chip.spec.generation
        age = 0 if generation is None else -int(generation.accelerator or 0)
        return (0, is_driver_name(graph, node), age, chip.name, -float(number), node.name)
    rate = total(graph, chip, ("spec", "peak", "dense", "bf16"))
    return (1, False, 0 if rate is None else -float(rate.value), chip.name, -float(number), node.name)
