"""Isomorphism of fabrics: equality up to the numbering, the mapping between two, or the reason why there is none.

The decision is exact.  Both fabrics are coloured together: vertices are distinguished by the number of links to vertices
of each colour, until nothing changes (colour refinement); where a colour still has several vertices,
one of the first fabric is matched with each candidate of the second in turn, and the refinement continues
(individualisation and refinement: B. D. McKay, Practical graph isomorphism, Congressus Numerantium 30, 1981).
Connected components are matched one by one, so N equal components cost at most N^2 comparisons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trnspec.topology.fabric import FabricGraph
from trnspec.topology.measures import components, degrees, diameter, spheres


def isomorphic(a: FabricGraph, b: FabricGraph) -> bool:
    """True if the fabrics differ only in the numbering of chips and of switches; rates and kinds of links are not compared."""
    parts_a, parts_b = components(a), list(components(b))
    if (a.nodes, a.switches, len(a.edges)) != (b.nodes, b.switches, len(b.edges)):
        return False
    for part in parts_a:
        # Isomorphism is transitive, so the first component that matches is as good as any.
        other = next((o for o in parts_b if len(o) == len(part) and _match(a, b, part, o)), None)
        if other is None:
            return False
        parts_b.remove(other)
    return True


def difference(a: FabricGraph, b: FabricGraph) -> str:
    """The difference between fabrics up to the numbering, in one sentence; an empty text for none."""
    for what, one, two in (
        ("chips", a.nodes, b.nodes),
        ("switches", a.switches, b.switches),
        ("links", len(a.edges), len(b.edges)),
        ("connected parts", len(components(a)), len(components(b))),
    ):
        if one != two:
            return f"{one} {what} against {two}"
    if (one_text := _degrees(a)) != (two_text := _degrees(b)):
        return f"links at the chips: {one_text} against {two_text}"
    if diameter(a) != diameter(b):
        return f"the farthest chips are {diameter(a)} hops apart against {diameter(b)}"
    if Counter(spheres(a)) != Counter(spheres(b)):
        one, two = next((x, y) for x, y in zip(sorted(spheres(a)), sorted(spheres(b)), strict=True) if x != y)  # type: ignore[assignment]
        return f"the chips at 0, 1, 2, ... hops from a chip are {one} against {two}"
    if isomorphic(a, b):
        return ""
    return "chips, links, degrees and hops agree, but no renumbering takes one to the other"


def _degrees(fabric: FabricGraph) -> str:
    counted = Counter(degrees(fabric))
    return ", ".join(f"{chips} with {links}" for links, chips in sorted(counted.items()))


Colours = dict[int, int]
"""The colour of each vertex; those of the second fabric are numbered from ``shift`` on."""


def _match(a: FabricGraph, b: FabricGraph, part_a: frozenset[int], part_b: frozenset[int]) -> bool:
    """Whether one connected component can be mapped onto another."""
    shift = a.size
    near = {v: a.adjacency[v] for v in part_a}
    near |= {u + shift: tuple(w + shift for w in b.adjacency[u]) for u in part_b}
    # Depth first, with the remaining choices at each depth.
    stack: list[Iterator[Colours]] = [
        iter([{v: int(b.is_switch(v - shift) if v >= shift else a.is_switch(v)) for v in near}])
    ]
    while stack:
        colours = next(stack[-1], None)
        if colours is None:
            stack.pop()
        elif (cells := _refined(near, colours, shift)) is not None:
            cell = min((c for c in cells if len(c) > 2), key=len, default=None)
            if cell is None:
                return True  # where each cell is a pair and the partition is equitable, the pairs are an isomorphism
            stack.append(_choices(cells, cell, shift))
    return False


def _refined(near: dict[int, tuple[int, ...]], colours: Colours, shift: int) -> list[list[int]] | None:
    """The cells of the coarsest equitable partition; ``None`` where the fabrics differ in the size of a cell."""
    known = 0
    while True:
        cells: dict[tuple[int, ...], list[int]] = {}
        for v, others in near.items():
            cells.setdefault((colours[v], *sorted([colours[u] for u in others])), []).append(v)
        if any(2 * sum(v < shift for v in cell) != len(cell) for cell in cells.values()):
            return None
        if len(cells) == known:
            return list(cells.values())
        known = len(cells)
        colours = {v: number for number, cell in enumerate(cells.values()) for v in cell}


def _choices(cells: list[list[int]], cell: list[int], shift: int) -> Iterator[Colours]:
    """Match the first vertex of a cell with each of the second fabric in turn."""
    colours = {v: number for number, each in enumerate(cells) for v in each}
    v = min(cell)
    yield from (colours | {v: len(cells), u: len(cells)} for u in cell if u >= shift)
