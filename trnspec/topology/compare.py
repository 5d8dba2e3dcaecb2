"""Isomorphism of fabrics: equality up to the numbering, the mapping between two, or the reason why there is none.

The decision is exact.  Both fabrics are coloured together: vertices are distinguished by the number of links to vertices
of each colour, until nothing changes (colour refinement); where a colour still has several vertices,
one of the first fabric is matched with each candidate of the second in turn, and the refinement continues
(individualisation and refinement: B. D. McKay, Practical graph isomorphism, Congressus Numerantium 30, 1981).
Connected components are matched one by one, so N equal components cost at most N^2 comparisons.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from trnspec.topology.measures import components, diameter, spheres

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec.topology.fabric import FabricGraph


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
    counted = Counter(len(fabric.links[v]) for v in range(fabric.nodes))
    return ", ".join(f"{chips} with {links}" for links, chips in sorted(counted.items()))


class _Colouring:
    """The vertices of both fabrics in cells; those of the second carry numbers from ``shift`` on."""

    def __init__(self, near: dict[int, Mapping[int, int]], shift: int) -> None:
        self.near, self.shift = near, shift
        self.cells: list[set[int]] = []
        self.cell_of: dict[int, int] = {}

    def copy(self) -> _Colouring:
        twin = _Colouring(self.near, self.shift)
        twin.cells = [set(cell) for cell in self.cells]
        twin.cell_of = dict(self.cell_of)
        return twin

    def add(self, members: set[int]) -> int:
        number = len(self.cells)
        self.cells.append(members)
        for v in members:
            self.cell_of[v] = number
        return number

    def balanced(self, members: set[int]) -> bool:
        return 2 * sum(v < self.shift for v in members) == len(members)

    def refine(self, queue: list[int]) -> bool:
        """Split cells until the partition is equitable; False as soon as the two fabrics split differently."""
        waiting = set(queue)
        while queue:
            number = queue.pop()
            waiting.discard(number)
            seen: dict[int, list[int]] = defaultdict(list)
            for v in self.cells[number]:
                for u, links in self.near[v].items():
                    seen[u].append(links)
            touched: dict[int, dict[tuple[int, ...], set[int]]] = defaultdict(lambda: defaultdict(set))
            for u, counts in seen.items():
                touched[self.cell_of[u]][tuple(sorted(counts))].add(u)
            for cell, groups in touched.items():
                parts = list(groups.values())
                rest = len(self.cells[cell]) - sum(map(len, parts))
                if rest == 0 and len(parts) == 1:
                    continue
                if not all(map(self.balanced, parts)):
                    return False
                if rest == 0:
                    # A cell never becomes empty: its largest part keeps its number.
                    parts.sort(key=len)
                    parts.pop()
                for part in parts:
                    self.cells[cell] -= part
                    new = self.add(part)
                    if new not in waiting:
                        waiting.add(new)
                        queue.append(new)
                if cell not in waiting:
                    waiting.add(cell)
                    queue.append(cell)
        return True

    def single_out(self, v: int, u: int) -> bool:
        """Match ``v`` of the first fabric with ``u`` of the second, and refine."""
        cell = self.cell_of[v]
        self.cells[cell] -= {v, u}
        return self.refine([self.add({v, u})])

    def open_cell(self) -> set[int] | None:
        """The smallest cell in which the match is not decided; None when all are."""
        return min((cell for cell in self.cells if len(cell) > 2), key=len, default=None)


def _match(a: FabricGraph, b: FabricGraph, part_a: frozenset[int], part_b: frozenset[int]) -> bool:
    """Whether one connected component can be mapped onto another."""
    shift = a.size
    near: dict[int, Mapping[int, int]] = {v: Counter(a.adjacency[v]) for v in part_a}
    near |= {u + shift: Counter(w + shift for w in b.adjacency[u]) for u in part_b}
    start = _Colouring(near, shift)
    chips = {v for v in part_a if not a.is_switch(v)} | {u + shift for u in part_b if not b.is_switch(u)}
    cells = [cell for cell in (chips, set(near) - chips) if cell]
    if not all(map(start.balanced, cells)) or not start.refine([start.add(cell) for cell in cells]):
        return False
    # Depth first, with the remaining choices at each depth.
    stack: list[Iterator[_Colouring]] = [iter([start])]
    while stack:
        colouring = next(stack[-1], None)
        if colouring is None:
            stack.pop()
            continue
        cell = colouring.open_cell()
        if cell is None:
            return True  # where each cell is a pair and the partition is equitable, the pairs are an isomorphism
        stack.append(_choices(colouring, cell))
    return False


def _choices(colouring: _Colouring, cell: set[int]) -> Iterator[_Colouring]:
    v = min(cell)
    for u in sorted(w for w in cell if w >= colouring.shift):
        trial = colouring.copy()
        if trial.single_out(v, u):
            yield trial
