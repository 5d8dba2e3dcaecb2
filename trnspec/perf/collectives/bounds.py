"""Lower bounds on the time of a collective on a declared topology, for any algorithm.

For a cut of the chips into two sides, the bound counts what must cross it in each direction, for all groups that work at
once: for an all-gather the parts of one side (the other needs them), for a reduce-scatter the sums for the other side, for
an all-reduce the whole buffer, for an all-to-all a block per pair, for a broadcast the buffer once.  The cuts are: each
single chip, runs of positions along an axis of a grid, the bisection.  In addition, a buffer of c chips has to arrive
c - 1 times, twice that in an all-reduce, over all links into them (E. Chan et al., Collective communication: theory,
practice, and experience, 2007).  Where switches reduce, a sum arrives only once at each chip, and an all-reduce need not
send more than the buffer.

A group that spans several fabrics has the same cuts in each, with the network as further links, and the cut around a
whole fabric.  All stages can work at once, so the largest of the bounds holds, not their sum.  What crosses a cut last is one
message late: the published latency of the fastest link that can carry it is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

from trnspec.perf.collectives.groups import NETWORK, Group, LinkRates, fabric_level, level_named, routes_of
from trnspec.perf.collectives.routes import INSIDE, Routes
from trnspec.perf.collectives.schedules import Kind
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.topology.shapes import GridShape

_RUNS = 64
"""Positions of an axis up to which all runs are cuts; of longer ones halves and quarters at this number of places."""


@frozen
class Bound:
    """The largest of all lower bounds.

    Attributes:
        time: Time [s].
        why: What it counts, in words.
    """

    time: float
    why: str


def bound(system: LoweredSystem, of: Group, kind: Kind, size: float) -> Bound:
    """The largest lower bound on the time of a collective of S = ``size`` [B].

    Raises:
        RefusalError: ``unknown-figure``: a rate that every algorithm needs is not published; ``unknown-topology``.
    """
    if len(of.ranks) == 1:
        return Bound(0.0, "one rank sends nothing")
    rates = LinkRates(system)
    routes = routes_of(system, of)
    chips = np.array(of.siblings) // routes.per_chip
    bounds: list[Bound] = []
    if of.units > 1:
        seconds = _network(system, of, kind) / rates(NETWORK)
        bounds.append(Bound(seconds * size + rates.latency(NETWORK), "what a fabric sends over the network"))
    if np.all(chips == chips[:, :1]):
        if of.units == 1:
            seconds = bus_factor(kind, float(len(of.ranks))) / rates(INSIDE)
            bounds.append(Bound(seconds * size + rates.latency(INSIDE), "what a rank sends to others of its chip"))
    else:
        cuts = _Cuts(system, routes, of, kind, chips, rates)
        latency = min(map(rates.latency, cuts.classes()))
        bounds += [Bound(seconds * size + latency, why) for seconds, why in cuts.bounds()]
    return max(bounds, key=lambda b: b.time)


def bus_factor(kind: Kind, n: float) -> float:
    """Bus bandwidth over algorithm bandwidth S / time among n ranks: the least that a rank sends, as a share of S.

    2 (n - 1) / n, (n - 1) / n, or 1 for broadcast and send, as in nccl-tests and nccom-test; 0 for one rank.
    """
    if kind == "all-reduce":
        return 2.0 * ((n - 1.0) / n)
    return min(n - 1.0, 1.0) if kind in ("broadcast", "send") else (n - 1.0) / n


def _network(system: LoweredSystem, of: Group, kind: Kind) -> float:
    """The least that a rank sends over the network with all groups at work, as a share of the buffer."""
    units, inside = float(of.units), float(len(of.inside))
    level = level_named(system, NETWORK)
    reduces = level is not None and level.reduces and kind == "all-reduce"
    share = 1.0 if reduces else bus_factor(kind, units)
    return share / (1.0 if kind == "all-to-all" else inside)


@frozen
class _Cuts:
    """The cuts of a fabric, in seconds per byte of the buffer.

    Attributes:
        chips: The chips of the members of each group, one row per group.
    """

    system: LoweredSystem
    routes: Routes
    of: Group
    kind: Kind
    chips: Any
    rates: LinkRates

    def classes(self) -> list[str]:
        """The classes of links that can carry what crosses a cut; all links of a fabric without axes have one latency."""
        axes = self.routes.shape.axes if isinstance(self.routes.shape, GridShape) else ()
        inside = [f"axis{number}" for number, axis in enumerate(axes) if axis.links] or ["injection"]
        return [*inside, NETWORK] if self.of.units > 1 else inside

    def bounds(self) -> Iterator[tuple[float, str]]:
        """Every bound, and what it counts."""
        rates = self._chip_rates()
        used = np.unique(self.chips)
        network = self.network
        yield self._arrivals() / float(np.sum(rates[used] + network)), "all links into the chips of the group"
        seconds = self._crossing_chips() / (rates + network)
        chip = int(np.argmax(seconds))
        yield float(seconds[chip]), f"the links of chip {chip}"
        shape = self.routes.shape
        if isinstance(shape, GridShape):
            yield from self._runs(shape)
        elif not self.routes.switched:
            assert shape is not None
            side = np.zeros(shape.nodes, bool)
            side[[v for v in shape.bisection().cut if v < shape.nodes]] = True
            carried = self._carried(side) + network * float(side.sum())
            yield self._crossing(side[self.chips].sum(axis=1), side) / carried, "the links of the bisection"

    @property
    def network(self) -> float:
        """Rate of a chip over the network [B/s]; 0 for a group within one fabric."""
        return self.rates(NETWORK) * self.routes.per_chip if self.of.units > 1 else 0.0

    def _chip_rates(self) -> Any:
        """Rate of each chip over its links in the fabric [B/s]."""
        shape = self.routes.shape
        assert shape is not None
        total = np.zeros(shape.nodes)
        if self.routes.switched:
            return total + self.rates("injection")
        if not isinstance(shape, GridShape):
            degree = np.array([len(at) for at in self.routes.fabric.links[: shape.nodes]], float)
            return degree * self.rates("link")
        for number, places in enumerate(_places(shape)):
            axis = shape.axes[number]
            if axis.links:
                ends = np.full(axis.size, 2.0 if axis.size > 2 else float(axis.links))
                if not axis.wrap and axis.size > 2:
                    ends[[0, -1]] = 1.0
                total += ends[places] * self.rates(f"axis{number}")
        return total

    def _arrivals(self) -> float:
        """Traffic that must arrive at the chips of all groups in one fabric, as a share of the buffer."""
        units = float(self.of.units)
        if self.kind == "all-to-all":
            n = self.chips.shape[1]
            same = sum(float(np.sum(np.unique(g, return_counts=True)[1] ** 2)) for g in self.chips)
            return float(self.chips.size - same / (n * units))
        if self.kind == "send":
            return float(np.sum(self.chips[:, 0] != self.chips[:, -1])) if units == 1.0 else 0.0
        counts = np.array([len(np.unique(g)) for g in self.chips], float)
        if self.kind in ("all-reduce", "reduce-scatter") and self.reduces:
            return float(np.sum(counts)) if self.kind == "all-reduce" else 0.0
        return float(np.sum((2.0 if self.kind == "all-reduce" else 1.0) * (counts * units - 1.0) / units))

    @property
    def reduces(self) -> bool:
        """Whether some switch between the members reduces."""
        levels = (fabric_level(self.system), level_named(self.system, NETWORK) if self.of.units > 1 else None)
        return any(level is not None and level.reduces for level in levels)

    def _crossing_chips(self) -> Any:
        """Traffic that must cross the cut around each chip in the busier direction, as a share of the buffer."""
        shape = self.routes.shape
        assert shape is not None
        nodes = shape.nodes
        numbers = np.arange(len(self.chips))[:, None]
        keys, members = np.unique(numbers * nodes + self.chips, return_counts=True)
        number, chip = keys // nodes, keys % nodes
        first = self.chips[number, 0] == chip
        last = (self.chips[number, -1] == chip) & (self.of.units == 1)
        outgoing, incoming = self._by_group(members, first, last)
        return np.maximum(np.bincount(chip, outgoing, nodes), np.bincount(chip, incoming, nodes))

    def _crossing(self, members: Any, side: Any) -> float:
        """Traffic that must cross a cut in the busier direction, of which each group has some members on one side."""
        last = side[self.chips[:, -1]] & (self.of.units == 1)
        outgoing, incoming = self._by_group(members, side[self.chips[:, 0]], last)
        return float(max(np.sum(outgoing), np.sum(incoming)))

    def _by_group(self, inside: Any, first: Any, last: Any) -> tuple[Any, Any]:
        """Traffic out of a side and into it, for each group, as a share of the buffer.

        Args:
            inside: Members on the side.
            first: Whether the first member is on the side.
            last: Whether the last member is.
        """
        kind, n = self.kind, float(self.chips.shape[1] * self.of.units)
        rest = n - inside
        both = (inside > 0) & (rest > 0)
        if kind == "send":
            return (first & ~last) * 1.0, (last & ~first) * 1.0
        if kind == "broadcast":
            return (both & first) * 1.0, (both & ~first) * 1.0
        if kind == "all-to-all":
            return inside * rest / n, inside * rest / n
        if kind == "all-reduce":
            return both * 1.0, both * 1.0
        sending, receiving = (inside, rest) if kind == "all-gather" else (rest, inside)
        return both * sending / n, both * receiving / n

    def _runs(self, shape: GridShape) -> Iterator[tuple[float, str]]:
        """For each axis the worst of the cuts around a run of positions."""
        for number, places in enumerate(_places(shape)):
            axis = shape.axes[number]
            k = axis.size
            if not axis.links:
                continue
            counts = np.zeros((len(self.chips), k + 1))
            np.add.at(counts, (np.arange(len(self.chips))[:, None], places[self.chips] + 1), 1.0)
            before = np.cumsum(counts, axis=1)
            lines, rate = shape.nodes // k, self.rates(f"axis{number}")
            worst = 0.0
            for start, end in _ends(k):
                edges = axis.cut if axis.wrap else float(start > 0) + float(end < k)
                run = (np.arange(k) >= start) & (np.arange(k) < end)
                crossing = self._crossing(before[:, end] - before[:, start], run[places])
                worst = max(worst, crossing / (lines * (edges * rate + (end - start) * self.network)))
            yield worst, f"a cut across axis {number}"

    def _carried(self, side: Any) -> float:
        """Rate of the links of a cut in one direction [B/s]."""
        severed = sum(bool(side[e.a] != side[e.b]) for e in self.routes.fabric.edges)
        return severed * self.rates("link") or math.inf


def _places(shape: GridShape) -> list[Any]:
    """The position of every chip along each axis."""
    return list(np.unravel_index(np.arange(shape.nodes), tuple(axis.size for axis in shape.axes))) if shape.axes else []


def _ends(k: int) -> Iterator[tuple[int, int]]:
    """Start and end of runs of positions, up to half of an axis and one more."""
    if k <= _RUNS:
        for start in range(k):
            for end in range(start + 1, min(k, start + k // 2 + 1) + 1):
                if end - start < k:
                    yield start, end
        return
    for length in (k // 4, k // 2):
        yield from ((start, start + length) for start in range(0, k - length + 1, k // _RUNS))
