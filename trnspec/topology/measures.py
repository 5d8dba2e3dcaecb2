"""Measures of any fabric: degree, hops, rates.  All are exact.

Each link passed is one hop: from a chip through a switch to a chip is two. Distances are between chips; switches are passed,
never start or end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from trnspec.topology.fabric import Edge, FabricGraph


def degrees(fabric: FabricGraph) -> tuple[int, ...]:
    """The number of links of each chip."""
    return tuple(len(fabric.links[v]) for v in range(fabric.nodes))


def components(fabric: FabricGraph) -> tuple[frozenset[int], ...]:
    """The connected components as sets of vertices (chips and switches), ordered by their smallest member."""
    parts = []
    left = set(range(fabric.size))
    while left:
        part = set()
        waiting = [min(left)]
        while waiting:
            v = waiting.pop()
            if v not in part:
                part.add(v)
                waiting.extend(fabric.adjacency[v])
        left -= part
        parts.append(frozenset(part))
    return tuple(parts)


def is_connected(fabric: FabricGraph) -> bool:
    """True if every vertex reaches every other."""
    return len(components(fabric)) == 1


def bits(mask: int) -> Iterator[int]:
    """The members of a set that is written as the bits of an integer, in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _balls(fabric: FabricGraph) -> Iterator[list[int]]:
    """For each vertex the set of vertices within 0, 1, 2, ... hops, until the sets stop growing.

    All sources advance together, each set as the bits of an integer, so a step costs one ``or`` for each link.
    """
    steps = [list(bits(mask)) for mask in fabric.masks]
    balls = [1 << v for v in range(fabric.size)]
    while True:
        yield balls
        grown = []
        for v, ball in enumerate(balls):
            larger = ball
            for u in steps[v]:
                larger |= balls[u]
            grown.append(larger)
        if grown == balls:
            return
        balls = grown


def spheres(fabric: FabricGraph) -> tuple[tuple[int, ...], ...]:
    """For each chip how many chips are 0, 1, 2, ... hops away: the first entry, itself, is 1."""
    n = fabric.nodes
    chips = (1 << n) - 1
    inside = [[(ball & chips).bit_count() for ball in balls[:n]] for balls in _balls(fabric)]
    table = []
    for v in range(n):
        row = [level[v] for level in inside]
        rings = [row[0]] + [after - before for before, after in pairwise(row)]
        while rings[-1] == 0:
            rings.pop()
        table.append(tuple(rings))
    return tuple(table)


def diameter(fabric: FabricGraph) -> int | None:
    """The most hops between two chips; 0 for one chip, None where some pair has no path."""
    rows = spheres(fabric)
    return max(map(len, rows)) - 1 if all(sum(row) == fabric.nodes for row in rows) else None


def mean_hops(fabric: FabricGraph, *, self_included: bool) -> float | None:
    """The mean of the hops over all ordered pairs of chips; None where some pair has no path.

    Args:
        fabric: The fabric.
        self_included: True divides by n^2, the pairs of a chip with itself being 0 hops (uniform random traffic, as
            Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 5, count); False
            divides by n (n - 1), the pairs of different chips (as graph libraries count).  One chip gives 0.0.
    """
    n, total = fabric.nodes, 0
    for row in spheres(fabric):
        if sum(row) != n:
            return None
        total += sum(hops * chips for hops, chips in enumerate(row))
    return mean_of(total, n, self_included=self_included)


def mean_of(total: int, nodes: int, *, self_included: bool) -> float:
    """The mean that belongs to a sum of hops over all ordered pairs of ``nodes`` chips."""
    pairs = nodes * nodes if self_included else nodes * (nodes - 1)
    return total / pairs if pairs else 0.0


def cut_edges(fabric: FabricGraph, side: Iterable[int]) -> tuple[Edge, ...]:
    """The links with one end in ``side`` and one end out of it."""
    inside = frozenset(side)
    return tuple(e for e in fabric.edges if (e.a in inside) != (e.b in inside))


def total_rate(edges: Iterable[Edge]) -> float | None:
    """The sum of the rates of links, one direction; None where one of them is unknown."""
    total = 0.0
    for edge in edges:
        if edge.rate is None:
            return None
        total += edge.rate
    return total
