"""What the sends of one phase of a collective put on the links of a fabric."""

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
"""From a vertex to a vertex so much."""

INSIDE = "chip"
"""The class of what never leaves a chip: it passes the device memory, and is counted by rank."""


@frozen(slots=False)
class Routes:
    """Ways between the chips of a declared topology.

    On a graph a send spreads in equal shares over all its shortest ways, and loads links, one direction each.  What a
    chip of a switched fabric has to each switch is not declared: there only the total that a chip sends, and
    receives, limits, as if the switches never blocked.

    Attributes:
        shape: The topology.
        per_chip: Ranks of a chip; a rank's chip is its number over this, rounded down.
    """

    shape: Shape | None
    per_chip: int = 1
    # What was searched already: several algorithms go the same rounds.
    _rounds: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = field(factory=dict, eq=False, repr=False)

    @cached_property
    def switched(self) -> bool:
        """Whether only what a chip sends and receives is counted."""
        return isinstance(self.shape, Switched)

    @cached_property
    def fabric(self) -> Fabric:
        """The graph; the kind of a link is its class: ``axis0``, ``axis1``, ... on a grid, else ``link``."""
        assert self.shape is not None
        if isinstance(self.shape, GridShape):
            axes = [evolve(axis, rate=None, kind=f"axis{i}") for i, axis in enumerate(self.shape.axes)]
            return Fabric(grid.nodes(axes), tuple(grid.edges(axes)))
        built = self.shape.build()
        return Fabric(built.nodes, tuple(evolve(e, rate=None, kind="link") for e in built.edges), built.switches)

    @cached_property
    def _at(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each vertex its neighbours with the number of the link to each."""
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
        """What the busiest link of each class carries in one direction, for sends between chips."""
        wanted: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for a, b, share in sends:
            if a != b:
                wanted[a][b] += share
        if self.switched:
            received: dict[int, float] = defaultdict(float)
            for row in wanted.values():
                for b, share in row.items():
                    received[b] += share
            most = max([*(sum(row.values()) for row in wanted.values()), *received.values()], default=0.0)
            return {"injection": most} if most else {}
        carried = [[0.0, 0.0] for _ in self.fabric.edges]
        for source, row in wanted.items():
            self._spread(source, row, carried)
        busiest: dict[str, float] = {}
        for e, both in zip(self.fabric.edges, carried, strict=True):
            busiest[e.kind] = max(busiest.get(e.kind, 0.0), *both)
        return {kind: load for kind, load in busiest.items() if load}

    def _spread(self, source: int, row: Mapping[int, float], carried: list[list[float]]) -> None:
        hops, ways, order = self._ways(source)
        passing = [0.0] * self.fabric.size
        for b, share in row.items():
            passing[b] += share
        for u in reversed(order):
            if not passing[u]:
                continue
            for v, number in self._at[u]:
                if hops[v] == hops[u] - 1:
                    share = passing[u] * ways[v] / ways[u]
                    carried[number][v == self.fabric.edges[number].b] += share
                    passing[v] += share

    def rank_loads(self, sends: Sequence[Send]) -> dict[str, float]:
        """The same for sends between ranks; what stays on a chip is counted for the busiest rank of all."""
        out: dict[int, float] = defaultdict(float)
        into: dict[int, float] = defaultdict(float)
        away: list[Send] = []
        for a, b, share in sends:
            here, there = a // self.per_chip, b // self.per_chip
            if here != there:
                away.append((here, there, share))
            elif a != b:
                out[a] += share
                into[b] += share
        found = self.loads(away) if away else {}
        if out:
            found[INSIDE] = max(*out.values(), *into.values())
        return found

    def around(self, chips: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Rounds through some chips over the direct links among them, no two over one link; none where none is."""
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
        """The coordinates that some chips of a grid take along each axis, if they fill that box; else ``None``.

        Returns:
            How many along each axis, and which.
        """
        if not isinstance(self.shape, GridShape) or not self.shape.axes:
            return None
        axes = self.shape.axes
        places: list[set[int]] = [set() for _ in axes]
        stride = self.shape.nodes
        for number, axis in enumerate(axes):
            stride //= axis.size
            places[number] = {chip // stride % axis.size for chip in chips}
        sizes = tuple(map(len, places))
        filled = 1
        for size in sizes:
            filled *= size
        return (sizes, tuple(tuple(sorted(p)) for p in places)) if filled == len(set(chips)) else None

    def by_bits(self, chips: tuple[int, ...]) -> tuple[int, ...]:
        """The chips in an order in which numbers that differ in one bit are near: Gray's along each axis of a box.

        On rings of four that makes every exchange of recursive halving and doubling one hop.
        """
        found = self.box(chips)
        if found is None or any(size & (size - 1) for size in found[0]):
            return chips
        assert isinstance(self.shape, GridShape)
        order = [0]
        for axis, place in zip(self.shape.axes, found[1], strict=True):
            # Position p of an axis lies where Gray's code has p as its code word.
            grey = sorted(range(len(place)), key=lambda i: i ^ (i >> 1))
            order = [at * axis.size + place[i] for at in order for i in grey]
        return tuple(order)
