"""What no algorithm of a group undercuts on a declared topology, whatever it does.

For a cut of the chips in two sides it is counted what must cross it in each direction, for all groups that work at
once: of an all-gather the parts of one side (the other needs them), of a reduce-scatter the sums for the other side,
of an all-reduce the whole buffer, of an all-to-all a block for each pair, of a broadcast the buffer once.  Cuts that
are tried: each chip alone, every run of positions along an axis of a grid, the bisection.  Beside cuts: a buffer of c
chips has to arrive c - 1 times, twice that in an all-reduce, over all links into them (E. Chan et al., Collective
communication: theory, practice, and experience, 2007).  Nothing that computes within the network is foreseen.
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
        time: In s.
        why: What it counts, in words.
    """

    time: float
    why: str


def bound(system: System, of: Group, kind: Kind, size: float) -> Bound:
    """The least time of a collective of S = ``size`` B.

    A group that spans several fabrics is bounded by what a fabric sends over the network only.

    Raises:
        RefusalError: ``unknown-figure``: a rate that every algorithm needs is not published; ``unknown-topology``.
    """
    n = len(of.ranks)
    if n == 1:
        return Bound(0.0, "one rank exchanges nothing")
    rates = Rates(system)
    if of.units > 1:
        return Bound(_network(of, kind, size) / rates(NETWORK), "what a fabric sends over the network")
    routes = routes_of(system, of)
    groups = [[r // routes.per_chip for r in s] for s in of.siblings]
    if all(len(set(g)) == 1 for g in groups):
        return Bound(
            closed_forms.injection_bound(kind, size, float(n), rates(INSIDE)), "what a rank sends to others of its chip"
        )
    if routes.switched:
        cuts: Iterator[tuple[str, frozenset[int]]] = (
            (f"chip {c}", frozenset({c})) for c in sorted({c for g in groups for c in g})
        )
        found = [
            Bound(_crossing(kind, side, groups) * size / rates("injection"), f"the links of {w}") for w, side in cuts
        ]
    else:
        found = [
            Bound(_crossing(kind, side, groups) * size / _carried(routes, side, rates), f"the links of {what}")
            for what, side in _cuts(routes)
            if _crossing(kind, side, groups)
        ]
    arrivals = _arrivals(routes, kind, groups, rates) * size
    return max([Bound(arrivals, "all links into the chips of the group"), *found], key=lambda b: b.time)


def _network(of: Group, kind: Kind, size: float) -> float:
    """What a rank sends over the network at least, in B, all groups at once."""
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
    """What the links of a cut carry in one direction; switches count on the side where they make it less."""
    total = 0.0
    fabric = routes.fabric
    for e in fabric.edges:
        if not (fabric.is_switch(e.a) or fabric.is_switch(e.b)) and (e.a in side) != (e.b in side):
            total += rates(e.kind)
    for switch in range(fabric.nodes, fabric.size):
        ends = [e.other(switch) for e in fabric.links[switch]]
        inside = sum(end in side for end in ends)
        total += min(inside, len(ends) - inside) * rates("link")
    return total or math.inf


def _crossing(kind: Kind, side: frozenset[int], groups: list[list[int]]) -> float:
    """What crosses at least in the busier direction, as a share of the buffer."""
    out = back = 0.0
    for g in groups:
        n = len(g)
        a = sum(chip in side for chip in g)
        b = n - a
        if kind == "send":
            here, there = g[0] in side, g[-1] in side
            out, back = out + (here and not there), back + (there and not here)
        elif not (a and b):
            continue
        elif kind == "broadcast":
            out, back = out + (g[0] in side), back + (g[0] not in side)
        elif kind == "all-to-all":
            out, back = out + a * b / n, back + a * b / n
        elif kind == "all-reduce":
            out, back = out + 1.0, back + 1.0
        else:
            first, second = (a, b) if kind == "all-gather" else (b, a)
            out, back = out + first / n, back + second / n
    return max(out, back)


def _arrivals(routes: Routes, kind: Kind, groups: list[list[int]], rates: Rates) -> float:
    """What must arrive at the chips of all groups, over what their links carry, for a buffer of 1 B."""
    wanted = 0.0
    for g in groups:
        chips = len(set(g))
        if kind == "all-to-all":
            wanted += sum(g[i] != g[j] for i in range(len(g)) for j in range(len(g))) / len(g)
        elif kind == "send":
            wanted += float(g[0] != g[-1])
        else:
            wanted += (2.0 if kind == "all-reduce" else 1.0) * (chips - 1)
    chips_used = {chip for g in groups for chip in g}
    if routes.switched:
        return wanted / (len(chips_used) * rates("injection"))
    total = 0.0
    for chip in chips_used:
        total += sum(rates(e.kind) for e in routes.fabric.links[chip])
    return wanted / total
