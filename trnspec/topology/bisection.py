"""The narrowest cut of a fabric into two halves, in links or in rate, proven minimal where possible.

A cut divides the chips into halves that differ by at most one; a switch goes to the side that makes the cut narrower,
which models it as a non-blocking crossbar.

The best cut of the search is an upper bound.  It is exact when it equals the lower bound that the caller derives from the
shape (``trnspec.topology.shapes``, ``trnspec.topology.switched``), or when all cuts were evaluated, for 24 chips and fewer.

The search itself exchanges pairs (B. Kernighan and S. Lin, An efficient heuristic procedure for partitioning graphs,
1970) from several starts; it is deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from trnspec.short_repr import ShortRepr
from trnspec.topology.fabric import FabricGraph, TopologyError
from trnspec.topology.measures import cut_edges, total_rate

if TYPE_CHECKING:  # few graphs need arrays
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

By = Literal["links", "rate"]

ALL_CUTS_UP_TO = 24
"""Fabrics of this many chips or fewer are searched exhaustively, unless a bound decides before."""

_SLACK = 1e-9


@frozen(repr=False)
class Bisection(ShortRepr):
    """A cut into halves.

    Attributes:
        links: How many links it cuts.
        rate: What those links carry in one direction, or None where the rate of one of them is unknown.
        exact: Whether no cut into halves is narrower; False: this is an upper bound.
        cut: The vertices on the side of chip 0, switches included.
        method: How the result was obtained: ``one chip``, ``axis cut``, ``bounds meet``, ``all cuts`` or ``local search``.
    """

    links: int
    rate: float | None
    exact: bool
    cut: frozenset[int]
    method: str


def bisection(fabric: FabricGraph, by: By = "links", *, lower: float = 0.0) -> Bisection:
    """The narrowest cut of the chips into halves.

    Args:
        fabric: The fabric.
        by: ``links`` finds the fewest links (and of equal cuts the one with the smallest rate that was evaluated);
            ``rate`` finds the smallest rate.  The two can be different cuts.
        lower: A lower bound that the caller has proven, in the same measure.

    Raises:
        TopologyError: ``by`` is ``rate`` and the rate of a link is unknown.
    """
    check_rates(by, (e.rate for e in fabric.edges))
    if fabric.nodes == 1:
        return Bisection(0, 0.0, True, frozenset(range(fabric.size)), "one chip")
    weights = _WeightMatrix(fabric, by)
    best, side = math.inf, frozenset[int]()
    for start in weights.starts():
        weight, cut = weights.improved(start)
        if weight < best - _SLACK * max(1.0, best if best < math.inf else 1.0):
            best, side = weight, cut
        if weights.meets(lower, side):
            return weights.result(side, True, "bounds meet")
    if fabric.nodes <= ALL_CUTS_UP_TO and (all_cuts := weights.all_cuts()) is not None:
        return weights.result(all_cuts, True, "all cuts")
    return weights.result(side, False, "local search")


def check_rates(by: By, rates: Iterable[float | None]) -> None:
    """Rejects a cut by rate where a rate is unknown.

    Raises:
        TopologyError: The rate of a link is unknown.
    """
    if by == "rate" and any(rate is None for rate in rates):
        raise TopologyError("the bisection by rate needs the rate of every link; ask for it by links")


def weight_of(rate: float | None, by: By) -> float:
    """The weight of a link in a cut."""
    return 1.0 if by == "links" else (rate or 0.0)


def is_met(bound: float, links: int, rate: float, by: By) -> bool:
    """Whether a cut of these links and this rate is as narrow as a lower bound."""
    return math.ceil(bound - 1e-6) >= links if by == "links" else bound >= rate * (1 - _SLACK)


class _WeightMatrix:
    """The fabric as a symmetric matrix of weights, shape (vertices, vertices)."""

    def __init__(self, fabric: FabricGraph, by: By) -> None:
        import numpy as np

        self.np = np
        self.fabric, self.by, self.nodes = fabric, by, fabric.nodes
        size = fabric.size
        self.plain = np.zeros((size, size))
        tie = np.zeros((size, size))
        top = max((e.rate or 0.0 for e in fabric.edges), default=0.0)
        for e in fabric.edges:
            weight = weight_of(e.rate, by)
            self.plain[e.a, e.b] += weight
            self.plain[e.b, e.a] += weight
            if by == "links" and top:
                # All rates together weigh less than one link: they only break ties between cuts with the same number of links.
                share = (e.rate or 0.0) / (top * (len(fabric.edges) + 1))
                tie[e.a, e.b] += share
                tie[e.b, e.a] += share
        self.full = self.plain + tie

    def meets(self, bound: float, side: frozenset[int]) -> bool:
        edges = cut_edges(self.fabric, side)
        return is_met(bound, len(edges), total_rate(edges) or 0.0, self.by)

    def result(self, side: frozenset[int], exact: bool, method: str) -> Bisection:
        if 0 not in side:
            side = frozenset(range(self.fabric.size)) - side
        edges = cut_edges(self.fabric, side)
        return Bisection(len(edges), total_rate(edges), exact, side, method)

    def starts(self) -> Iterator[Floats]:
        """Initial sides, +1 and -1 for each vertex: by number, along the hops, at random."""
        np, n = self.np, self.nodes
        random = np.random.default_rng(0)
        for order in (np.arange(n), self._by_hops(), *(random.permutation(n) for _ in range(8))):
            side = -np.ones(self.fabric.size)
            side[order[: (n + 1) // 2]] = 1.0
            yield side

    def _by_hops(self) -> npt.NDArray[np.intp]:
        seen, queue = {0}, [0]
        for v in queue:
            for u in self.fabric.adjacency[v]:
                if u not in seen:
                    seen.add(u)
                    queue.append(u)
        queue.extend(v for v in range(self.fabric.size) if v not in seen)
        return self.np.array([v for v in queue if v < self.nodes], dtype=self.np.intp)

    def _place_switches(self, side: Floats) -> None:
        for _ in range(self.fabric.size):
            moved = False
            for v in range(self.nodes, self.fabric.size):
                pull = float(self.full[v] @ side)
                if pull * side[v] < 0:
                    side[v] = -side[v]
                    moved = True
            if not moved:
                return

    def cost(self, side: Floats) -> float:
        return float(self.full.sum() - side @ self.full @ side) / 4

    def improved(self, side: Floats) -> tuple[float, frozenset[int]]:
        """The cut after pair exchanges: its weight, and the vertices of one side."""
        self._place_switches(side)
        best = self.cost(side)
        while True:
            after = self._exchanges(side)
            self._place_switches(after)
            weight = self.cost(after)
            if weight >= best - _SLACK * max(1.0, best):
                break
            best, side = weight, after
        return best, frozenset(int(v) for v in self.np.flatnonzero(side > 0))

    def _exchanges(self, side: Floats) -> Floats:
        """One pass of Kernighan and Lin: exchange pair after pair, best first, and keep the best prefix."""
        np, n, full = self.np, self.nodes, self.full
        now, kept = side.copy(), side.copy()
        free = np.ones(n, dtype=bool)
        gain, best = 0.0, 0.0
        pull = full @ now
        for _ in range(n // 2):
            worth = -now[:n] * pull[:n]
            left = np.flatnonzero(free & (now[:n] > 0))
            right = np.flatnonzero(free & (now[:n] < 0))
            # The best pair is nearly always among the best few of either side.
            left = left[np.argsort(-worth[left], kind="stable")[:16]]
            right = right[np.argsort(-worth[right], kind="stable")[:16]]
            if not (len(left) and len(right)):
                break
            gains = worth[left][:, None] + worth[right][None, :] - 2 * full[np.ix_(left, right)]
            row, column = np.unravel_index(int(gains.argmax()), gains.shape)
            i, j = left[row], right[column]
            gain += float(gains[row, column])
            now[i], now[j] = -1.0, 1.0
            pull += 2 * (full[:, j] - full[:, i])
            free[[i, j]] = False
            if gain > best + _SLACK:
                best, kept = gain, now.copy()
        return kept

    def all_cuts(self) -> frozenset[int] | None:
        """The lightest of all cuts into halves; None where there are too many linked switches to enumerate."""
        np, n, full = self.np, self.nodes, self.full
        between = full[n:, n:]
        linked = [s for s in range(self.fabric.switches) if between[s].any()]
        if len(linked) > 6:
            return None
        lone = [s for s in range(self.fabric.switches) if s not in linked]
        chips, to_lone, to_linked = full[:n, :n], full[:n, n:][:, lone], full[:n, n:][:, linked]
        sides = [np.array([1.0 if y >> k & 1 else -1.0 for k in range(len(linked))]) for y in range(2 ** len(linked))]
        best, kept = math.inf, np.ones(self.fabric.size)
        block = 1 << 16
        shifts = np.arange(n, dtype=np.uint32)
        for first in range(0, 1 << (n - 1), block):
            # Chip 0 stays on one side: a cut and its mirror image are the same.
            masks = (np.arange(first, min(first + block, 1 << (n - 1)), dtype=np.uint32) << np.uint32(1)) | np.uint32(1)
            masks = masks[np.isin(np.bitwise_count(masks), (n // 2, (n + 1) // 2))]
            if not len(masks):
                continue
            x = ((masks[:, None] >> shifts) & np.uint32(1)) * 2.0 - 1.0
            cost = (chips.sum() - ((x @ chips) * x).sum(axis=1)) / 4
            cost += (to_lone.sum(axis=0) - np.abs(x @ to_lone)).sum(axis=1) / 2
            pulls, inner = x @ to_linked, between[np.ix_(linked, linked)]
            options = [(to_linked.sum() - pulls @ y) / 2 + (inner.sum() - y @ inner @ y) / 4 for y in sides]
            cost += np.min(options, axis=0)
            at = int(cost.argmin())
            if cost[at] < best:
                best = float(cost[at])
                kept[:n], kept[n:] = x[at], x[at] @ full[:n, n:] >= 0
                kept[[n + s for s in linked]] = sides[int(np.argmin([option[at] for option in options]))]
        return frozenset(int(v) for v in np.flatnonzero(kept > 0))
