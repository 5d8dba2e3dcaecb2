"""Measures of any fabric: degree, hops, rates.  All are exact.

Hops are counted in two ways, because both are published:

``edges``
    Each link passed is one hop: from a chip through a switch to a chip is two.
``stages``
    A direct link is one stage, and so is a passage through switches, however many of them are passed.

Distances are between chips; switches are passed, never start or end.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.topology.fabric import Edge, Fabric

Count = Literal["edges", "stages"]


def degree(fabric: Fabric, node: int, kind: str | None = None) -> int:
    """Number of links that end at a vertex, of one kind or of all."""
    return sum(kind is None or e.kind == kind for e in fabric.links[node])


def degrees(fabric: Fabric, kind: str | None = None) -> tuple[int, ...]:
    """The degree of each chip."""
    return tuple(degree(fabric, v, kind) for v in range(fabric.nodes))


def degree_by_kind(fabric: Fabric, node: int) -> dict[str, int]:
    """Number of links of each kind that end at a vertex."""
    return dict(sorted(Counter(e.kind for e in fabric.links[node]).items()))


def device_rate(fabric: Fabric, node: int, kind: str | None = None) -> float | None:
    """The sum of the rates of the links at a vertex, one direction, of one kind or of all.

    None where the rate of one of them is unknown.  A chip without links has 0.0; the end of a chain has half of the
    rate of the middle.
    """
    return total_rate(e for e in fabric.links[node] if kind is None or e.kind == kind)


def device_rates(fabric: Fabric, kind: str | None = None) -> tuple[float | None, ...]:
    """``device_rate`` of each chip."""
    return tuple(device_rate(fabric, v, kind) for v in range(fabric.nodes))


def components(fabric: Fabric) -> tuple[frozenset[int], ...]:
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


def is_connected(fabric: Fabric) -> bool:
    """True if every vertex reaches every other."""
    return len(components(fabric)) == 1


def bits(mask: int) -> Iterator[int]:
    """The members of a set that is written as the bits of an integer, in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _balls(fabric: Fabric, count: Count) -> Iterator[list[int]]:
    """For each vertex the set of vertices within 0, 1, 2, ... hops, until the sets stop growing.

    All sources advance together, each set as the bits of an integer, so a step costs one ``or`` for each link.
    """
    steps = [list(bits(mask)) for mask in fabric.masks]
    if count == "stages":
        steps = _stage_steps(fabric)
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


def _stage_steps(fabric: Fabric) -> list[list[int]]:
    """For each chip the chips one stage away: linked directly, or joined to the same cluster of switches."""
    steps = [{u for u in bits(mask) if not fabric.is_switch(u)} for mask in fabric.masks]
    seen: set[int] = set()
    for start in range(fabric.nodes, fabric.size):
        if start in seen:
            continue
        cluster, waiting, joined = set(), [start], set()
        while waiting:
            switch = waiting.pop()
            if switch in cluster:
                continue
            cluster.add(switch)
            for u in fabric.adjacency[switch]:
                if fabric.is_switch(u):
                    waiting.append(u)
                else:
                    joined.add(u)
        seen |= cluster
        for chip in joined:
            steps[chip] |= joined - {chip}
    return [sorted(s) if v < fabric.nodes else [] for v, s in enumerate(steps)]


def distances(fabric: Fabric, *, count: Count = "edges") -> tuple[tuple[int | None, ...], ...]:
    """The hops between all pairs of chips; None where there is no path."""
    n = fabric.nodes
    chips = (1 << n) - 1
    table: list[list[int | None]] = [[None] * n for _ in range(n)]
    before = [0] * n
    for hops, balls in enumerate(_balls(fabric, count)):
        for v in range(n):
            ball = balls[v] & chips
            for u in bits(ball & ~before[v]):
                table[v][u] = hops
            before[v] = ball
    return tuple(map(tuple, table))


def spheres(fabric: Fabric, *, count: Count = "edges") -> tuple[tuple[int, ...], ...]:
    """For each chip how many chips are 0, 1, 2, ... hops away: the first entry, itself, is 1."""
    n = fabric.nodes
    chips = (1 << n) - 1
    inside = [[(ball & chips).bit_count() for ball in balls[:n]] for balls in _balls(fabric, count)]
    table = []
    for v in range(n):
        row = [level[v] for level in inside]
        rings = [row[0]] + [after - before for before, after in pairwise(row)]
        while rings[-1] == 0:
            rings.pop()
        table.append(tuple(rings))
    return tuple(table)


def histogram(fabric: Fabric, node: int, *, count: Count = "edges") -> dict[int, int]:
    """Number of *other* chips that are 1, 2, ... hops from a chip; a number of hops at which there is none is left out."""
    return {hops: chips for hops, chips in enumerate(spheres(fabric, count=count)[node]) if hops and chips}


def eccentricities(fabric: Fabric, *, count: Count = "edges") -> tuple[int | None, ...]:
    """For each chip the hops to the chip farthest from it; None where some chip is unreachable."""
    return tuple(len(row) - 1 if sum(row) == fabric.nodes else None for row in spheres(fabric, count=count))


def diameter(fabric: Fabric, *, count: Count = "edges") -> int | None:
    """The most hops between two chips; 0 for one chip, None where some pair has no path."""
    longest = 0
    for farthest in eccentricities(fabric, count=count):
        if farthest is None:
            return None
        longest = max(longest, farthest)
    return longest


def mean_hops(fabric: Fabric, *, self_included: bool, count: Count = "edges") -> float | None:
    """The mean of the hops over all ordered pairs of chips; None where some pair has no path.

    Args:
        fabric: The fabric.
        self_included: True divides by n^2, the pairs of a chip with itself being 0 hops (uniform random traffic, as
            Dally and Towles, Principles and Practices of Interconnection Networks, 2004, chapter 5, count); False
            divides by n (n - 1), the pairs of different chips (as graph libraries count).  One chip gives 0.0.
        count: How hops are counted, as above.
    """
    n, total = fabric.nodes, 0
    for row in spheres(fabric, count=count):
        if sum(row) != n:
            return None
        total += sum(hops * chips for hops, chips in enumerate(row))
    return mean_of(total, n, self_included=self_included)


def mean_of(total: int, nodes: int, *, self_included: bool) -> float:
    """The mean that belongs to a sum of hops over all ordered pairs of ``nodes`` chips."""
    pairs = nodes * nodes if self_included else nodes * (nodes - 1)
    return total / pairs if pairs else 0.0


def cut_edges(fabric: Fabric, side: Iterable[int]) -> tuple[Edge, ...]:
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
