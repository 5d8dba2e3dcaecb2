"""Edge-disjoint Hamiltonian rings: cycles through all chips over direct links, no two of which share a link.

Ring collectives run on them; a chip with 2k links can serve at most k.  The product of two rings always splits into
two such rings (A. Kotzig, 1973), of three into three (M. F. Foregger, Hamiltonian decompositions of products of
cycles, Discrete Mathematics 24, 1978).

The algorithm: a regular fabric of even degree splits into spanning unions of rings (J. Petersen, Die Theorie der
regulären graphs, 1891: direct the links along Euler tours, then match tails to heads); then rings of two unions are
merged by exchanging the links of squares whose sides alternate between them.  Fabrics that are not regular are searched by
backtracking.
"""

from __future__ import annotations

import random

from trnspec.topology.fabric import FabricGraph
from trnspec.topology.measures import is_connected

# Limits of the two searches, in chips visited: a second or two.
_EXCHANGE_WORK = 12_000_000
_BACKTRACK_WORK = 4_000_000


def hamiltonian_rings(fabric: FabricGraph) -> tuple[tuple[int, ...], ...]:
    """Edge-disjoint Hamiltonian rings that the search finds: each a cycle through all chips, which starts at chip 0.

    Only links from chip to chip count.  A ring has three chips or more; the last is linked to the first.
    """
    n = fabric.nodes
    pairs = [(e.a, e.b) for e in fabric.edges if e.b < n]
    at: list[list[int]] = [[] for _ in range(n)]
    for number, (a, b) in enumerate(pairs):
        at[a].append(number)
        at[b].append(number)
    sides = _two_sides(pairs, at)
    bound = min(len(links) for links in at) // 2
    # A cycle alternates between the two sides of a bipartite fabric, so they must be equally large.
    if (
        n < 3
        or not is_connected(FabricGraph(n, tuple(e for e in fabric.edges if e.b < n)))
        or (sides and 2 * sum(sides) != n)
    ):
        bound = 0
    if bound <= 0:
        return ()
    factors = _two_factors(pairs, at, sides)
    if factors is not None:
        colours = _merged(pairs, at, factors)
        if colours is not None:
            rings = [_rounds(pairs, at, colours, c)[0] for c in range(max(colours) + 1)]
            return tuple(rings[:bound])
    return _one_by_one(n, pairs, bound)


def _two_sides(pairs: list[tuple[int, int]], at: list[list[int]]) -> list[bool] | None:
    """For a bipartite fabric which side each chip is on, otherwise None."""
    side: list[bool | None] = [None] * len(at)
    for start in range(len(at)):
        if side[start] is not None:
            continue
        side[start] = False
        waiting = [start]
        while waiting:
            v = waiting.pop()
            for link in at[v]:
                u = sum(pairs[link]) - v
                if side[u] is None:
                    side[u] = not side[v]
                    waiting.append(u)
                elif side[u] == side[v]:
                    return None
    return [bool(s) for s in side]


def _matching(choices: list[list[tuple[int, int]]], targets: int) -> list[int] | None:
    """For each left vertex the number of the link to its own right vertex; ``choices`` holds (right, link)."""
    owner: list[tuple[int, int] | None] = [None] * targets
    held: list[int | None] = [None] * len(choices)
    for start in range(len(choices)):
        # Breadth first along alternating paths, so that no recursion depth depends on the size.
        came: dict[int, tuple[int, int]] = {}
        waiting, end = [start], None
        for left in waiting:
            for right, link in choices[left]:
                if right in came:
                    continue
                came[right] = (left, link)
                holder = owner[right]
                if holder is None:
                    end = right
                    break
                waiting.append(holder[0])
            if end is not None:
                break
        if end is None:
            return None
        while True:
            left, link = came[end]
            given_up, held[left] = held[left], end
            owner[end] = (left, link)
            if given_up is None:
                break
            end = given_up
    links = dict(holder for holder in owner if holder is not None)
    return [links[left] for left in range(len(choices))]


def _perfect_matching(pairs: list[tuple[int, int]], at: list[list[int]], sides: list[bool] | None) -> set[int] | None:
    """Links that touch each chip once."""
    n = len(at)
    if sides:
        lefts = [v for v in range(n) if not sides[v]]
        matched = _matching([[(sum(pairs[k]) - v, k) for k in at[v]] for v in lefts], n)
        return set(matched) if matched is not None else None
    dice = random.Random(0)
    order = list(range(len(pairs)))
    for _ in range(100):
        taken: set[int] = set()
        kept: set[int] = set()
        for k in order:
            if taken.isdisjoint(pairs[k]):
                taken.update(pairs[k])
                kept.add(k)
        if len(taken) == n:
            return kept
        dice.shuffle(order)
    return None


def _two_factors(pairs: list[tuple[int, int]], at: list[list[int]], sides: list[bool] | None) -> list[int] | None:
    """A colour for each link such that each chip has two links of each colour; -1 for links left over.

    None where the fabric is not regular, or of odd degree without a perfect matching that is easily found.
    """
    n, degree = len(at), len(at[0])
    if any(len(links) != degree for links in at):
        return None
    left_over: set[int] = set()
    if degree % 2:
        matching = _perfect_matching(pairs, at, sides)
        if matching is None:
            return None
        left_over = matching
    unused = [[k for k in links if k not in left_over] for links in at]
    used = set(left_over)
    tails: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for start in range(n):
        v = start
        while True:
            while unused[v] and unused[v][-1] in used:
                unused[v].pop()
            if not unused[v]:
                # All degrees are even, so a walk can only end where it began.
                break
            k = unused[v].pop()
            used.add(k)
            u = sum(pairs[k]) - v
            tails[v].append((u, k))
            v = u
    colours = [-1] * len(pairs)
    for colour in range(degree // 2):
        matched = _matching(tails, n)
        if matched is None:  # pragma: no cover - a regular bipartite graph always has one
            return None
        for v, k in enumerate(matched):
            colours[k] = colour
            tails[v] = [choice for choice in tails[v] if choice[1] != k]
    return colours


def _rounds(
    pairs: list[tuple[int, int]], at: list[list[int]], colours: list[int], colour: int
) -> list[tuple[int, ...]]:
    """The rings that the links of one colour form."""
    two = [[k for k in links if colours[k] == colour] for links in at]
    seen: set[int] = set()
    rounds = []
    for start in range(len(at)):
        if start in seen:
            continue
        ring, v, came = [], start, -1
        while v not in seen:
            seen.add(v)
            ring.append(v)
            k = two[v][0] if two[v][0] != came else two[v][1]
            v, came = sum(pairs[k]) - v, k
        rounds.append(tuple(ring))
    return rounds


def _merged(pairs: list[tuple[int, int]], at: list[list[int]], colours: list[int]) -> list[int] | None:
    """Colours of which each forms one ring, by exchanging alternating squares; None where the search does not succeed."""
    dice = random.Random(0)
    n, top = len(at), max(colours)
    between: dict[tuple[int, int], list[int]] = {}
    for k, (a, b) in enumerate(pairs):
        between.setdefault((a, b), []).append(k)
        between.setdefault((b, a), []).append(k)
    counts = [len(_rounds(pairs, at, colours, c)) for c in range(top + 1)]
    work = misses = 0
    # Each square is expected once in links times degree draws; after this number of misses there is none.
    while work < _EXCHANGE_WORK and misses < 50 * len(pairs) * max(map(len, at)):
        work += n // 4 + len(at[0]) + 32
        if all(count == 1 for count in counts):
            return colours
        square = _alternating_square(pairs, at, between, colours, dice, n)
        if square is None:
            misses += 1
            continue
        misses = 0
        i, j = colours[square[0]], colours[square[1]]
        for k in square:
            colours[k] = j if colours[k] == i else i
        touched = [c for c in (i, j) if c >= 0]
        after = {c: len(_rounds(pairs, at, colours, c)) for c in touched}
        work += n * len(touched)
        worse = sum(after.values()) - sum(counts[c] for c in touched)
        # An occasional step back leaves states in which no single exchange helps.
        if worse > 0 and dice.random() > 0.05:
            for k in square:
                colours[k] = j if colours[k] == i else i
        else:
            for c in touched:
                counts[c] = after[c]
    return None


def _alternating_square(
    pairs: list[tuple[int, int]],
    at: list[list[int]],
    between: dict[tuple[int, int], list[int]],
    colours: list[int],
    dice: random.Random,
    n: int,
) -> tuple[int, int, int, int] | None:
    """Four links around a square whose colours alternate, drawn at random; None where the draw fails."""
    a = dice.randrange(n)
    first = dice.choice(at[a])
    b = sum(pairs[first]) - a
    second = dice.choice(at[b])
    c = sum(pairs[second]) - b
    i, j = colours[first], colours[second]
    if i == j or c == a:
        return None
    for third in at[c]:
        d = sum(pairs[third]) - c
        if colours[third] == i and d not in (a, b):
            for fourth in between.get((d, a), ()):
                if colours[fourth] == j:
                    return first, second, third, fourth
    return None


def _one_by_one(n: int, pairs: list[tuple[int, int]], bound: int) -> tuple[tuple[int, ...], ...]:
    """Rings by backtracking, one after the other, each on the links that the others do not use."""
    left: dict[tuple[int, int], int] = {}
    for a, b in pairs:
        left[a, b] = left.get((a, b), 0) + 1
    rings: list[tuple[int, ...]] = []
    ring: tuple[int, ...] | None = None
    while len(rings) < bound:
        near: list[list[int]] = [[] for _ in range(n)]
        for (a, b), times in left.items():
            if times:
                near[a].append(b)
                near[b].append(a)
        # Short searches in several orders, then a long one: a bad first choice can cost an exponential time.
        dice = random.Random(0)
        for share in (64,) * 16 + (2,):
            ring = _backtrack(near, _BACKTRACK_WORK // (share * n))
            if ring is not None:
                break
            for row in near:
                dice.shuffle(row)
        if not ring:
            break
        rings.append(ring)
        for a, b in zip(ring, [*ring[1:], ring[0]], strict=True):
            left[min(a, b), max(a, b)] -= 1
    return tuple(rings)


def _backtrack(near: list[list[int]], steps: int) -> tuple[int, ...] | None:
    """A Hamiltonian ring; empty if there is none, ``None`` if the search did not end in this many steps."""
    n = len(near)
    path, on_path = [0], [False] * n
    on_path[0] = True

    def ahead(v: int) -> list[int]:
        # The chip with the fewest free neighbours is visited first (popped last): it is the most likely dead end.
        options = [u for u in near[v] if not on_path[u]]
        return sorted(options, key=lambda u: -sum(not on_path[w] for w in near[u]))

    def stranded(end: int) -> bool:
        return any(not on_path[v] and sum(not on_path[u] or u in (end, 0) for u in near[v]) < 2 for v in range(n))

    stack = [ahead(0)]
    for _ in range(steps):
        if not stack:
            return ()
        if not stack[-1]:
            stack.pop()
            on_path[path.pop()] = False
            continue
        v = stack[-1].pop()
        path.append(v)
        on_path[v] = True
        if len(path) == n and 0 in near[v] and n > 2:
            return tuple(path)
        stack.append([] if stranded(v) else ahead(v))
    return None
