"""The loads that the sends of one phase of a collective put on the links of a fabric."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from trnspec.topology import grid
from trnspec.topology.fabric import Fabric
from trnspec.topology.shapes import GridShape, Shape
from trnspec.topology.switched import Switched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Send = tuple[int, int, float]
"""Source vertex, target vertex, share of the buffer."""

INSIDE = "chip"
"""The class of traffic that stays on a chip: it goes through device memory and is counted per rank."""


@frozen(slots=False)
class Routes:
    """Routes between the chips of a declared topology.

    On a graph a send is spread evenly over all shortest paths, and loads each link per direction.  How a chip of a
    switched fabric is connected to each switch is not declared: there only the total that a chip sends or receives
    counts, as if the switches were non-blocking.

    Attributes:
        shape: The topology.
        per_chip: Ranks per chip; rank r is on chip ``r // per_chip``.
    """

    shape: Shape | None
    per_chip: int = 1
    # Several algorithms use the same rings, and searching them is slow.
    _rounds: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = field(factory=dict, eq=False, repr=False)

    @cached_property
    def switched(self) -> bool:
        """Whether only the total that a chip sends or receives is counted."""
        return isinstance(self.shape, Switched)

    @cached_property
    def fabric(self) -> Fabric:
        """The graph; the kind of an edge is its link class: ``axis0``, ``axis1``, ... on a grid, else ``link``."""
        assert self.shape is not None
        if isinstance(self.shape, GridShape):
            axes = [evolve(axis, rate=None, kind=f"axis{i}") for i, axis in enumerate(self.shape.axes)]
            return Fabric(grid.nodes(axes), tuple(grid.edges(axes)))
        built = self.shape.build()
        return Fabric(built.nodes, tuple(evolve(e, rate=None, kind="link") for e in built.edges), built.switches)

    @cached_property
    def _at(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each vertex its neighbours, each with the number of the link to it."""
        at: list[list[tuple[int, int]]] = [[] for _ in range(self.fabric.size)]
        for number, e in enumerate(self.fabric.edges):
            at[e.a].append((e.b, number))
            at[e.b].append((e.a, number))
        return tuple(map(tuple, at))

    def _ways(self, source: int) -> tuple[list[int], list[int], list[int]]:
        size = self.fabric.size
        hops, ways, order = [-1] * size, [0] * size, [source]
        hops[source], ways[source] = 0, 1
        for v in order:
            for u, _ in self._at[v]:
                if hops[u] < 0:
                    hops[u] = hops[v] + 1
                    order.append(u)
                if hops[u] == hops[v] + 1:
                    ways[u] += ways[v]
        return hops, ways, order

    def loads(self, sends: Iterable[Send]) -> dict[str, float]:
        """Load of the busiest link of each class in one direction, for sends between chips, as a share of the buffer."""
        demand: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for a, b, share in sends:
            if a != b:
                demand[a][b] += share
        if self.switched:
            received: dict[int, float] = defaultdict(float)
            for row in demand.values():
                for b, share in row.items():
                    received[b] += share
            injected = max([*(sum(row.values()) for row in demand.values()), *received.values()], default=0.0)
            return {"injection": injected} if injected else {}
        carried = [[0.0, 0.0] for _ in self.fabric.edges]
        for source, row in demand.items():
            self._spread(source, row, carried)
        busiest: dict[str, float] = {}
        for e, directions in zip(self.fabric.edges, carried, strict=True):
            busiest[e.kind] = max(busiest.get(e.kind, 0.0), *directions)
        return {kind: load for kind, load in busiest.items() if load}

    def _spread(self, source: int, row: Mapping[int, float], carried: list[list[float]]) -> None:
        hops, ways, order = self._ways(source)
        passing = [0.0] * self.fabric.size
        for target, share in row.items():
            passing[target] += share
        for u in reversed(order):
            if not passing[u]:
                continue
            for v, number in self._at[u]:
                if hops[v] == hops[u] - 1:
                    share = passing[u] * ways[v] / ways[u]
                    carried[number][v == self.fabric.edges[number].b] += share
                    passing[v] += share

    def rank_loads(self, sends: Sequence[Send]) -> dict[str, float]:
        """As :meth:`loads`, for sends between ranks; traffic within chips is that of the busiest rank."""
        sent: dict[int, float] = defaultdict(float)
        received: dict[int, float] = defaultdict(float)
        between_chips: list[Send] = []
        for a, b, share in sends:
            from_chip, to_chip = a // self.per_chip, b // self.per_chip
            if from_chip != to_chip:
                between_chips.append((from_chip, to_chip, share))
            elif a != b:
                sent[a] += share
                received[b] += share
        loads = self.loads(between_chips) if between_chips else {}
        if sent:
            loads[INSIDE] = max(*sent.values(), *received.values())
        return loads

    def rings_through(self, chips: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Edge-disjoint rings through all given chips over the direct links among them; empty where there are none."""
        if chips not in self._rounds:
            self._rounds[chips] = self._search(chips)
        return self._rounds[chips]

    def _search(self, chips: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        from trnspec.topology.rings import hamiltonian_rings

        if self.shape is None or self.switched or len(chips) < 3:
            return ()
        number = {chip: i for i, chip in enumerate(chips)}
        inside = [evolve(e, a=number[e.a], b=number[e.b]) for e in self.fabric.edges if {e.a, e.b} <= number.keys()]
        rings = hamiltonian_rings(Fabric(len(chips), tuple(inside))).rings
        return tuple(tuple(chips[i] for i in ring) for ring in rings)

    def box(self, chips: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] | None:
        """The box that some chips of a grid fill; ``None`` if they do not fill one.

        Returns:
            The extent along each axis, and the positions along each axis.
        """
        if not isinstance(self.shape, GridShape) or not self.shape.axes:
            return None
        axes = self.shape.axes
        positions: list[set[int]] = [set() for _ in axes]
        stride = self.shape.nodes
        for number, axis in enumerate(axes):
            stride //= axis.size
            positions[number] = {chip // stride % axis.size for chip in chips}
        sizes = tuple(map(len, positions))
        volume = 1
        for size in sizes:
            volume *= size
        return (
            (sizes, tuple(tuple(sorted(axis_positions)) for axis_positions in positions))
            if volume == len(set(chips))
            else None
        )

    def by_bits(self, chips: tuple[int, ...]) -> tuple[int, ...]:
        """The chips in Gray-code order along each axis of a box, so that numbers that differ in one bit are close.

        On rings of four, every exchange of recursive halving and doubling is then a single hop.
        """
        box = self.box(chips)
        if box is None or any(size & (size - 1) for size in box[0]):
            return chips
        assert isinstance(self.shape, GridShape)
        order = [0]
        for axis, place in zip(self.shape.axes, box[1], strict=True):
            # Position p of an axis goes where the Gray code has p as its code word.
            gray = sorted(range(len(place)), key=lambda i: i ^ (i >> 1))
            order = [prefix * axis.size + place[i] for prefix in order for i in gray]
        return tuple(order)
