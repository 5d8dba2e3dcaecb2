"""The loads that the sends of one phase of a collective put on the links of a fabric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
from attrs import evolve, field, frozen

from trnspec.perf.collectives.grid_routes import ChipGrid, ring
from trnspec.topology.fabric import Edge, FabricGraph
from trnspec.topology.shapes import GridShape, Shape
from trnspec.topology.switched import Switched

Send = tuple[int, int, float]
"""Source vertex, target vertex, share of the buffer."""

INSIDE = "chip"
"""The class of traffic that stays on a chip: it goes through device memory and is counted per rank."""

SEARCHED = 512
"""Chips of a grid up to which several edge-disjoint rings are searched; beyond, one is walked."""


def _named_axes(loads: Sequence[float]) -> dict[str, float]:
    return {f"axis{number}": load for number, load in enumerate(loads) if load}


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
    _shifted: dict[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]] = field(factory=dict, eq=False, repr=False)

    @cached_property
    def switched(self) -> bool:
        """Whether only the total that a chip sends or receives is counted."""
        return isinstance(self.shape, Switched)

    @cached_property
    def fabric(self) -> FabricGraph:
        """The graph of a shape that is not a grid; the class of all its links is ``link``."""
        assert self.shape is not None
        built = self.shape.build()
        return FabricGraph(built.nodes, tuple(evolve(e, rate=None, kind="link") for e in built.edges), built.switches)

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

    @cached_property
    def grid(self) -> ChipGrid | None:
        """The grid of the chips; ``None`` for other shapes."""
        return ChipGrid(self.shape.axes) if isinstance(self.shape, GridShape) else None

    def loads(self, sends: Iterable[Send]) -> dict[str, float]:
        """Load of the busiest link of each class in one direction, for sends between chips, as a share of the buffer."""
        between = [send for send in sends if send[0] != send[1]]
        if not between:
            return {}
        table = np.array(between)
        sources, targets, shares = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]
        assert self.shape is not None
        if self.switched:
            injected = max(np.max(np.bincount(ends, shares)) for ends in (sources, targets))
            return {"injection": float(injected)} if injected else {}
        if self.grid is not None:
            return _named_axes(self.grid.loads(sources, targets, shares))
        demand: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for a, b, share in between:
            demand[a][b] += share
        carried = [[0.0, 0.0] for _ in self.fabric.edges]
        for source, row in demand.items():
            self._spread(source, row, carried)
        busiest: dict[str, float] = {}
        for e, directions in zip(self.fabric.edges, carried, strict=True):
            busiest[e.kind] = max(busiest.get(e.kind, 0.0), *directions)
        return {kind: load for kind, load in busiest.items() if load}

    def exchange(self, groups: Sequence[tuple[int, ...]], share: float) -> dict[str, float] | None:
        """Loads, see :meth:`rank_loads`, if every rank of every group sends a share to every other member of its group.

        By symmetry: on a switched fabric every chip sends to the others of its groups; on a torus whose chips all have
        the same place in equal groups, every chip sends by the same displacements.  ``None`` for other groups.
        """
        ranks = np.array(groups)
        chips = ranks // self.per_chip
        number = np.arange(len(chips))[:, None]
        nodes = 1 if self.shape is None else self.shape.nodes
        keys, members = np.unique(number * nodes + chips, return_counts=True)
        inside = float(np.max(members)) - 1.0
        loads = {INSIDE: inside * share} if inside else {}
        if self.switched:
            sent = np.bincount(keys % nodes, members * (ranks.shape[1] - members), nodes)
            return loads | ({"injection": float(np.max(sent)) * share} if np.any(sent) else {})
        if self.grid is None or not self.grid.symmetric or np.any(members != members[0]):
            return None
        steps = self._lattice([tuple(dict.fromkeys(row)) for row in chips.tolist()])
        times = np.bincount(keys % nodes, minlength=nodes)
        if steps is None or np.any(times != times[0]):
            return None
        # Every member of a chip sends to every member of the other.
        each = float(times[0]) * float(members[0]) ** 2 * share
        return loads | _named_axes([load * each for load in self.grid.exchange(steps)])

    def _lattice(self, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]] | None:
        """Differences of position along each axis, if the members of all groups repeat evenly around the whole torus."""
        assert self.grid is not None
        patterns = set()
        for group in groups:
            box = self.box(group)
            if box is None:
                return None
            pattern = tuple(k // len(places) for places, k in zip(box[1], self.grid.sizes, strict=True))
            for places, k, step in zip(box[1], self.grid.sizes, pattern, strict=True):
                if k % len(places) or any(b - a != step for a, b in pairwise(places)):
                    return None
            patterns.add(pattern)
        if len(patterns) != 1:
            return None
        return [tuple(range(0, k, step)) for k, step in zip(self.grid.sizes, patterns.pop(), strict=True)]

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
        """Loads, see :meth:`loads`, of sends between ranks; traffic within chips is that of the busiest rank."""
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
        if self.grid is not None:
            return self._grid_rings(self.grid, chips)
        number = {chip: i for i, chip in enumerate(chips)}
        inside = [evolve(e, a=number[e.a], b=number[e.b]) for e in self.fabric.edges if {e.a, e.b} <= number.keys()]
        rings = hamiltonian_rings(FabricGraph(len(chips), tuple(inside)))
        return tuple(tuple(chips[i] for i in ring) for ring in rings)

    def _grid_rings(self, grid: ChipGrid, chips: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Rings through chips of a grid; those of equally placed chips differ only by a shift, and are searched once."""
        places = grid.places[:, list(chips)]
        ends = np.array([[axis.size if axis.wrap else 0] for axis in grid.axes])
        # Along a chain the first and the last position are unlike the others.
        shift = np.where(ends > 0, places - places[:, :1], places)
        shift = np.where(ends > 0, shift % np.maximum(ends, 1), shift)
        key = tuple(map(tuple, shift.tolist()))
        if key not in self._shifted:
            self._shifted[key] = self._rings_of(grid, chips)
        return tuple(tuple(chips[i] for i in ring) for ring in self._shifted[key])

    def _rings_of(self, grid: ChipGrid, chips: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Rings, as positions in a list of chips of a grid."""
        from trnspec.topology.rings import hamiltonian_rings

        if len(chips) > SEARCHED:
            return self._walked(chips)
        number = {chip: i for i, chip in enumerate(chips)}
        edges = []
        for i, chip in enumerate(chips):
            for axis_number, axis in enumerate(grid.axes):
                ahead = grid.places[:, chip].copy()
                if ahead[axis_number] == axis.size - 1 and not (axis.wrap and axis.size > 2):
                    continue
                ahead[axis_number] += 1
                other = number.get(int(grid.number(ahead)))
                if other is not None:
                    edges.append(Edge(i, other))
        return hamiltonian_rings(FabricGraph(len(chips), tuple(edges)))

    def _walked(self, chips: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """One ring through a large box of neighbours; the search for several would take too long."""
        box = self.box(chips)
        assert self.grid is not None
        if box is None or any(b - a != 1 for places in box[1] for a, b in pairwise(places)):
            return ()
        closed = [axis.wrap and size == axis.size for axis, size in zip(self.grid.axes, box[0], strict=True)]
        number = {chip: i for i, chip in enumerate(chips)}
        first = [places[0] for places in box[1]]
        walk = ring(box[0], closed)
        if not walk:
            return ()
        along = self.grid.number(np.array(walk).T + np.array(first)[:, None])
        return (tuple(number[int(chip)] for chip in along),)

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
        return (sizes, tuple(tuple(sorted(own)) for own in positions)) if prod(sizes) == len(set(chips)) else None

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
