"""A shape that is a table of neighbours, and fabrics under other numbers."""

from collections.abc import Sequence

from attrs import field, frozen

from trnspec.topology.fabric import Edge, FabricGraph
from trnspec.topology.shapes import Shape


def _rows(table: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, table))


@frozen
class Explicit(Shape):
    """Row ``i`` lists the chips that chip ``i`` is linked to."""

    neighbours: tuple[tuple[int, ...], ...] = field(converter=_rows)

    @property
    def nodes(self) -> int:
        return len(self.neighbours)

    def build(self) -> FabricGraph:
        return FabricGraph.from_adjacency(self.neighbours)


def renumbered(fabric: FabricGraph, order: Sequence[int]) -> FabricGraph:
    """The same fabric with vertex ``v`` called ``order[v]``."""
    edges = tuple(Edge(order[e.a], order[e.b], e.rate, e.kind) for e in fabric.edges)
    return FabricGraph(fabric.nodes, edges, fabric.switches)
