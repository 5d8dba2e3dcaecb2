"""Isomorphism of fabrics: equality up to the numbering, the mapping between two, or the reason why there is none.

The decision is exact.  Both fabrics are coloured together: vertices are distinguished by the number of links of each label
to vertices of each colour, until nothing changes (colour refinement); where a colour still has several vertices,
one of the first fabric is matched with each candidate of the second in turn, and the refinement continues
(individualisation and refinement: B. D. McKay, Practical graph isomorphism, Congressus Numerantium 30, 1981).
Connected components are matched one by one, so N equal components cost at most N^2 comparisons.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from trnspec.topology.measures import components, diameter, spheres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.topology.fabric import Edge, Fabric

Label = tuple[float, ...]


def isomorphic(a: Fabric, b: Fabric, weights: bool = False) -> bool:
    """True if the fabrics differ only in the numbering of chips and of switches.

    Args:
        a: A fabric.
        b: Another fabric.
        weights: Whether rates must agree as well (exactly; an unknown rate agrees with an unknown one only).  The
            kinds of links are names and never compared.
    """
    return mapping(a, b, weights) is not None


def mapping(a: Fabric, b: Fabric, weights: bool = False) -> tuple[int, ...] | None:
    """A renumbering that takes ``a`` to ``b``, or None: vertex ``v`` of ``a`` is vertex ``result[v]`` of ``b``."""
    if (a.nodes, a.switches, len(a.edges)) != (b.nodes, b.switches, len(b.edges)):
        return None
    parts_a, parts_b = components(a), list(components(b))
    if sorted(map(len, parts_a)) != sorted(map(len, parts_b)):
        return None
    labels_a, labels_b = _labels(a, weights), _labels(b, weights)
    image = [-1] * a.size
    for part in parts_a:
        for other in parts_b:
            matched = _match(a, b, labels_a, labels_b, part, other) if len(part) == len(other) else None
            if matched is not None:
                # Isomorphism is transitive, so the first component that matches is as good as any.
                parts_b.remove(other)
                for v, u in matched.items():
                    image[v] = u
                break
        else:
            return None
    return tuple(image)


def difference(a: Fabric, b: Fabric, weights: bool = False) -> str:  # noqa: PLR0911  # one return for each invariant
    """Why the fabrics are not the same up to the numbering, in one sentence; an empty text if they are."""
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
    if weights and (one_text := _rates(a.edges)) != (two_text := _rates(b.edges)):
        return f"rates of the links: {one_text} against {two_text}"
    if isomorphic(a, b, weights):
        return ""
    if weights and isomorphic(a, b):
        return "the same links, but no renumbering also takes their rates to each other"
    return "chips, links, degrees and hops agree, but no renumbering takes one to the other"


def _degrees(fabric: Fabric) -> str:
    counted = Counter(len(fabric.links[v]) for v in range(fabric.nodes))
    return ", ".join(f"{chips} with {links}" for links, chips in sorted(counted.items()))


def _rate_key(edge: Edge) -> float:
    # Rates are positive, so 0 can represent an unknown one.
    return 0.0 if edge.rate is None else edge.rate


def _rates(edges: tuple[Edge, ...]) -> str:
    counted = Counter(map(_rate_key, edges))
    return ", ".join(f"{times} of {rate or 'unknown'}" for rate, times in sorted(counted.items()))


def _labels(fabric: Fabric, weights: bool) -> list[dict[int, Label]]:
    """For each vertex its neighbours and what joins it to them: the sorted rates, or as many zeros as links."""
    table: list[dict[int, list[float]]] = [defaultdict(list) for _ in range(fabric.size)]
    for e in fabric.edges:
        key = _rate_key(e) if weights else 0.0
        table[e.a][e.b].append(key)
        table[e.b][e.a].append(key)
    return [{u: tuple(sorted(keys)) for u, keys in row.items()} for row in table]


class _Colouring:
    """The vertices of both fabrics in cells; those of the second carry numbers from ``shift`` on."""

    def __init__(self, near: dict[int, dict[int, Label]], shift: int) -> None:
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
            seen: dict[int, list[Label]] = defaultdict(list)
            for v in self.cells[number]:
                for u, label in self.near[v].items():
                    seen[u].append(label)
            touched: dict[int, dict[tuple[Label, ...], set[int]]] = defaultdict(lambda: defaultdict(set))
            for u, labels in seen.items():
                touched[self.cell_of[u]][tuple(sorted(labels))].add(u)
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


def _match(
    a: Fabric,
    b: Fabric,
    labels_a: list[dict[int, Label]],
    labels_b: list[dict[int, Label]],
    part_a: frozenset[int],
    part_b: frozenset[int],
) -> dict[int, int] | None:
    """A mapping of one connected component onto another, or None."""
    shift = a.size
    near = {v: labels_a[v] for v in part_a}
    near |= {u + shift: {w + shift: label for w, label in labels_b[u].items()} for u in part_b}
    start = _Colouring(near, shift)
    chips = {v for v in part_a if not a.is_switch(v)} | {u + shift for u in part_b if not b.is_switch(u)}
    cells = [cell for cell in (chips, set(near) - chips) if cell]
    if not all(map(start.balanced, cells)) or not start.refine([start.add(cell) for cell in cells]):
        return None
    # Depth first, with the remaining choices at each depth.
    stack: list[Iterator[_Colouring]] = [iter([start])]
    while stack:
        colouring = next(stack[-1], None)
        if colouring is None:
            stack.pop()
            continue
        cell = colouring.open_cell()
        if cell is None:
            return _decided(colouring)
        stack.append(_choices(colouring, cell))
    return None


def _choices(colouring: _Colouring, cell: set[int]) -> Iterator[_Colouring]:
    v = min(cell)
    for u in sorted(w for w in cell if w >= colouring.shift):
        trial = colouring.copy()
        if trial.single_out(v, u):
            yield trial


def _decided(colouring: _Colouring) -> dict[int, int]:
    # Where each cell is a pair and the partition is equitable, the pairs are an isomorphism.
    pairs = {min(cell): max(cell) for cell in colouring.cells if cell}
    return {v: u - colouring.shift for v, u in pairs.items()}
