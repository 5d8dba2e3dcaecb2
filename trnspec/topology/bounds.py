"""Lower bounds on the weight of a cut into halves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from trnspec.topology.fabric import Fabric


def routing_bound(fabric: Fabric, weights: Sequence[float]) -> float:
    """A lower bound on the weight of a cut, from the traffic that must cross it.

    Let every chip send one unit to every chip, in equal shares over all shortest paths.  The n^2 // 4 units that
    cross a cut in one direction use links whose load is known, so the cut weighs at least that many times the
    smallest weight / load (F. T. Leighton, Introduction to Parallel Algorithms and Architectures, 1992; the loads as
    in U. Brandes, A faster algorithm for betweenness centrality, 2001).  Tight for tori of even sizes.

    Args:
        fabric: The fabric.
        weights: The weight of each of its edges.
    """
    n = fabric.nodes
    load = dict.fromkeys(fabric.edges, 0.0)
    for source in range(n):
        hops, ways, order = [-1] * fabric.size, [0.0] * fabric.size, [source]
        hops[source], ways[source] = 0, 1.0
        for v in order:
            for e in fabric.links[v]:
                u = e.other(v)
                if hops[u] < 0:
                    hops[u] = hops[v] + 1
                    order.append(u)
                if hops[u] == hops[v] + 1:
                    ways[u] += ways[v]
        if any(h < 0 for h in hops[:n]):
            return 0.0
        passing = [1.0 if v < n else 0.0 for v in range(fabric.size)]
        for u in reversed(order):
            for e in fabric.links[u]:
                v = e.other(u)
                if hops[v] == hops[u] - 1:
                    share = passing[u] * ways[v] / ways[u]
                    load[e] += share
                    passing[v] += share
    # Equal parallel links are one key, so their loads have been added up; both directions have been counted.
    times = dict.fromkeys(load, 0)
    for e in fabric.edges:
        times[e] += 1
    ratios = [w / (load[e] / times[e] / 2) for e, w in zip(fabric.edges, weights, strict=True) if load[e] > 0]
    return (n * n // 4) * min(ratios) if ratios else 0.0


def lightest_cut(matrix: npt.NDArray[np.float64]) -> float:
    """The weight of the lightest cut into parts of any sizes, for a symmetric matrix of weights, shape (v, v).

    M. Stoer and F. Wagner, A simple min-cut algorithm, J. ACM 44, 1997.
    """
    import numpy as np

    weights = matrix.copy()
    alive = list(range(len(weights)))
    lightest = math.inf
    while len(alive) > 1:
        attached = weights[alive[0]].copy()
        waiting = np.zeros(len(weights), dtype=bool)
        waiting[alive[1:]] = True
        last = before = alive[0]
        phase = 0.0
        for _ in range(len(alive) - 1):
            before, last = last, int(np.where(waiting, attached, -1.0).argmax())
            phase = float(attached[last])
            waiting[last] = False
            attached = attached + weights[last]
        lightest = min(lightest, phase)
        weights[before] += weights[last]
        weights[:, before] += weights[:, last]
        weights[before, before] = 0.0
        weights[last] = weights[:, last] = 0.0
        alive.remove(last)
    return lightest
