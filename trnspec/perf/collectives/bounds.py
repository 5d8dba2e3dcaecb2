"""Lower bounds on the time of a collective on a declared topology, for any algorithm.

For a cut of the chips into two sides, the bound counts what must cross it in each direction, for all groups that work at
once: for an all-gather the parts of one side (the other needs them), for a reduce-scatter the sums for the other side, for
an all-reduce the whole buffer, for an all-to-all a block per pair, for a broadcast the buffer once.  The cuts are: each
single chip, every run of positions along an axis of a grid, the bisection.  In addition, a buffer of c chips has to arrive
c - 1 times, twice that in an all-reduce, over all links into them (E. Chan et al., Collective communication: theory,
practice, and experience, 2007).  In-network reduction is not considered.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.collectives import closed_forms
from trnspec.perf.collectives.groups import Group, routes_of
from trnspec.perf.collectives.link_rates import NETWORK, Rates
from trnspec.perf.collectives.routes import INSIDE
from trnspec.topology.shapes import GridShape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.perf.collectives.closed_forms import Kind
    from trnspec.perf.collectives.routes import Routes
    from trnspec.perf.lowering.system import System


@frozen
class Bound:
    """The largest of all lower bounds.

    Attributes:
        time: Time [s].
        why: What it counts, in words.
    """

    time: float
    why: str


def bound(system: System, of: Group, kind: Kind, size: float) -> Bound:
    """The largest lower bound on the time of a collective of S = ``size`` [B].

    For a group that spans several fabrics, only what a fabric sends over the network is counted.

    Raises:
        RefusalError: ``unknown-figure``: a rate that every algorithm needs is not published; ``unknown-topology``.
    """
    n = len(of.ranks)
    if n == 1:
        return Bound(0.0, "one rank sends nothing")
    rates = Rates(system)
    if of.units > 1:
        return Bound(_network(of, kind, size) / rates(NETWORK), "what a fabric sends over the network")
    routes = routes_of(system, of)
    groups = [[r // routes.per_chip for r in s] for s in of.siblings]
    if all(len(set(g)) == 1 for g in groups):
        return Bound(
            closed_forms.injection_bound(kind, size, float(n), rates(INSIDE)),
            "what a rank sends to others of its chip",
        )
    if routes.switched:
        cuts: Iterator[tuple[str, frozenset[int]]] = (
            (f"chip {c}", frozenset({c})) for c in sorted({c for g in groups for c in g})
        )
        bounds = [
            Bound(_crossing(kind, side, groups) * size / rates("injection"), f"the links of {name}")
            for name, side in cuts
        ]
    else:
        bounds = [
            Bound(_crossing(kind, side, groups) * size / _carried(routes, side, rates), f"the links of {name}")
            for name, side in _cuts(routes)
            if _crossing(kind, side, groups)
        ]
    arrivals = _arrivals(routes, kind, groups, rates) * size
    return max([Bound(arrivals, "all links into the chips of the group"), *bounds], key=lambda b: b.time)


def _network(of: Group, kind: Kind, size: float) -> float:
    """The least that a rank sends over the network [B], with all groups at work."""
    units, inside = float(of.units), float(len(of.inside))
    share = closed_forms.bus_factor(kind, units)
    return float(share * size / (1.0 if kind == "all-to-all" else inside))


def _cuts(routes: Routes) -> Iterator[tuple[str, frozenset[int]]]:
    shape = routes.shape
    assert shape is not None
    for chip in range(shape.nodes):
        yield f"chip {chip}", frozenset({chip})
    if not isinstance(shape, GridShape):
        cut = shape.bisection().cut
        yield "the bisection", frozenset(v for v in cut if v < shape.nodes)
        return
    stride = shape.nodes
    for number, axis in enumerate(shape.axes):
        stride //= axis.size
        for first in range(axis.size):
            for last in range(first, min(axis.size, first + axis.size // 2 + 1)):
                side = frozenset(v for v in range(shape.nodes) if first <= v // stride % axis.size <= last)
                if len(side) < shape.nodes:
                    yield f"a cut across axis {number}", side


def _carried(routes: Routes, side: frozenset[int], rates: Rates) -> float:
    """Rate of the links of a cut in one direction [B/s]; a switch counts on the side where it contributes less."""
    total = 0.0
    fabric = routes.fabric
    for e in fabric.edges:
        if not (fabric.is_switch(e.a) or fabric.is_switch(e.b)) and (e.a in side) != (e.b in side):
            total += rates(e.kind)
    for switch in range(fabric.nodes, fabric.size):
        neighbours = [e.other(switch) for e in fabric.links[switch]]
        inside = sum(neighbour in side for neighbour in neighbours)
        total += min(inside, len(neighbours) - inside) * rates("link")
    return total or math.inf


def _crossing(kind: Kind, side: frozenset[int], groups: list[list[int]]) -> float:
    """The least that crosses a cut in the busier direction, as a share of the buffer."""
    outgoing = incoming = 0.0
    for g in groups:
        n = len(g)
        a = sum(chip in side for chip in g)
        b = n - a
        if kind == "send":
            starts_inside, ends_inside = g[0] in side, g[-1] in side
            outgoing, incoming = (
                outgoing + (starts_inside and not ends_inside),
                incoming + (ends_inside and not starts_inside),
            )
        elif not (a and b):
            continue
        elif kind == "broadcast":
            outgoing, incoming = outgoing + (g[0] in side), incoming + (g[0] not in side)
        elif kind == "all-to-all":
            outgoing, incoming = outgoing + a * b / n, incoming + a * b / n
        elif kind == "all-reduce":
            outgoing, incoming = outgoing + 1.0, incoming + 1.0
        else:
            sending, receiving = (a, b) if kind == "all-gather" else (b, a)
            outgoing, incoming = outgoing + sending / n, incoming + receiving / n
    return max(outgoing, incoming)


def _arrivals(routes: Routes, kind: Kind, groups: list[list[int]], rates: Rates) -> float:
    """What must arrive at the chips of all groups, over the rate of their links: time [s] for a buffer of 1 B."""
    arriving = 0.0
    for g in groups:
        chips = len(set(g))
        if kind == "all-to-all":
            arriving += sum(g[i] != g[j] for i in range(len(g)) for j in range(len(g))) / len(g)
        elif kind == "send":
            arriving += float(g[0] != g[-1])
        else:
            arriving += (2.0 if kind == "all-reduce" else 1.0) * (chips - 1)
    chips_used = {chip for g in groups for chip in g}
    if routes.switched:
        return arriving / (len(chips_used) * rates("injection"))
    total = 0.0
    for chip in chips_used:
        total += sum(rates(e.kind) for e in routes.fabric.links[chip])
    return arriving / total
