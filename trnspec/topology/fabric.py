"""A fabric: chips, switches and the links between them, as one undirected multigraph.

Vertices are numbered: the chips are ``0 .. nodes - 1``, the switches follow.  Rates are per link and per direction,
in a unit of the caller's choice (the catalog uses B/s); units are not converted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from attrs import field, frozen

from trnspec.errors import TrnspecError


class TopologyError(TrnspecError, ValueError):
    """A shape or a table of neighbours is invalid; the message states what is expected."""


@frozen
class Edge:
    """One link between two vertices; both directions of it are one edge.

    Attributes:
        a: One end.
        b: The other end; the order of the ends has no meaning.
        rate: The rate of the link in one direction, or None where it is unknown.
        kind: The class of the link, for instance ``in-plane``, ``z`` or ``switch``.
    """

    a: int
    b: int
    rate: float | None = None
    kind: str = ""

    def other(self, node: int) -> int:
        """The end that is not ``node``."""
        return self.b if node == self.a else self.a


def _in_order(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    # A normal form, so that == on fabrics is equality of labelled graphs.
    turned = (e if e.a <= e.b else Edge(e.b, e.a, e.rate, e.kind) for e in edges)
    return tuple(sorted(turned, key=lambda e: (e.a, e.b, e.kind, e.rate is None, e.rate)))


@frozen
class FabricGraph:
    """An undirected multigraph of chips and switches.

    Two fabrics are equal when they have the same links between the same numbers; see ``trnspec.topology.compare``
    for equality up to renumbering.

    Attributes:
        nodes: How many chips, at least one.
        edges: The links, each once; parallel links are edges of their own.  Kept sorted.
        switches: How many switches; they are the vertices ``nodes .. nodes + switches - 1``.

    Raises:
        TopologyError: No chip, a link to itself, a link to a vertex that does not exist, a rate that is not positive.
    """

    nodes: int
    edges: tuple[Edge, ...] = field(default=(), converter=_in_order)
    switches: int = 0

    def __repr__(self) -> str:
        return f"<Fabric of {self.nodes:,} chips, {self.switches:,} switches and {len(self.edges):,} links>"

    def __attrs_post_init__(self) -> None:
        if self.nodes < 1 or self.switches < 0:
            raise TopologyError(f"expected at least one chip and no negative count, got {self.nodes}, {self.switches}")
        for edge in self.edges:
            if edge.a == edge.b:
                raise TopologyError(f"vertex {edge.a} is linked to itself; a link joins two different vertices")
            if edge.a < 0 or edge.b >= self.size:
                raise TopologyError(f"link {edge.a}-{edge.b} leaves the vertices 0 to {self.size - 1}")
            if edge.rate is not None and not edge.rate > 0:
                raise TopologyError(f"link {edge.a}-{edge.b} has rate {edge.rate}; expected a positive rate or None")

    @classmethod
    def from_adjacency(cls, neighbours: Sequence[Sequence[int]]) -> FabricGraph:
        """The fabric of a table of neighbours: ``neighbours[i]`` lists the chips that chip ``i`` is linked to.

        The order within a row has no meaning; a neighbour listed twice is two parallel links.

        Raises:
            TopologyError: The table is empty, or the two ends of a link do not agree (see ``asymmetries``).
        """
        for i, j in asymmetries(neighbours):
            if i == j:
                raise TopologyError(f"chip {i} lists itself as a neighbour")
            if not 0 <= j < len(neighbours):
                raise TopologyError(f"chip {i} lists {j}, but the chips are 0 to {len(neighbours) - 1}")
            raise TopologyError(f"chip {i} lists {j} more often than {j} lists {i}; a link is seen from both its ends")
        edges = (Edge(i, j) for i, row in enumerate(neighbours) for j in row if i < j)
        return cls(len(neighbours), tuple(edges))

    @property
    def size(self) -> int:
        """Number of vertices: chips and switches."""
        return self.nodes + self.switches

    @cached_property
    def links(self) -> tuple[tuple[Edge, ...], ...]:
        """For each vertex the links at it."""
        at: list[list[Edge]] = [[] for _ in range(self.size)]
        for edge in self.edges:
            at[edge.a].append(edge)
            at[edge.b].append(edge)
        return tuple(map(tuple, at))

    @cached_property
    def adjacency(self) -> tuple[tuple[int, ...], ...]:
        """For each vertex its neighbours in ascending order, one entry for each link."""
        return tuple(tuple(sorted(e.other(v) for e in links)) for v, links in enumerate(self.links))

    @cached_property
    def masks(self) -> tuple[int, ...]:
        """For each vertex the set of its neighbours, bit ``v`` for vertex ``v``."""
        sets = [0] * self.size
        for edge in self.edges:
            sets[edge.a] |= 1 << edge.b
            sets[edge.b] |= 1 << edge.a
        return tuple(sets)

    def is_switch(self, vertex: int) -> bool:
        """True if the vertex is a switch and not a chip."""
        return vertex >= self.nodes


def asymmetries(neighbours: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """The pairs ``(i, j)`` where chip ``i`` lists ``j`` more often than ``j`` lists ``i``, in ascending order.

    A chip that lists itself gives ``(i, i)``, one that lists a chip that does not exist gives that pair: a table
    without such pairs is a multigraph.
    """
    rows = [Counter(row) for row in neighbours]
    pairs = [
        (i, j)
        for i, row in enumerate(rows)
        for j, times in row.items()
        if i == j or not 0 <= j < len(rows) or rows[j][i] < times
    ]
    return tuple(sorted(pairs))
