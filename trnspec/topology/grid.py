"""Closed forms for products of rings and chains: torus, mesh, ring, chain, hypercube.

Sources: W. J. Dally and B. Towles, Principles and Practices of Interconnection Networks, 2004, chapter 5 (diameter,
mean hops and bisection of tori and meshes); F. T. Leighton, Introduction to Parallel Algorithms and Architectures,
1992 (the bisection bound by routing between all pairs).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.topology.bisection import Bisection, By, is_met, weight_of
from trnspec.topology.fabric import Edge, TopologyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@frozen
class GridAxis:
    """One dimension of a grid.

    Attributes:
        size: Number of chips along it; 1 gives no link.
        wrap: Whether the last is linked to the first.
        rate: The rate of one link along it in one direction, or None.
        kind: The class of its links.
    """

    size: int
    wrap: bool = True
    rate: float | None = None
    kind: str = ""

    def __attrs_post_init__(self) -> None:
        if self.size < 1:
            raise TopologyError(f"a dimension has {self.size} chips; expected 1 or more")

    @property
    def links(self) -> int:
        """Links along one line of this axis; the ring of two is a pair with one link."""
        return self.size if self.wrap and self.size > 2 else self.size - 1

    @property
    def cut(self) -> int:
        """Links of one line that a cut through its middle severs: two of a ring, one of a chain."""
        return 2 if self.wrap and self.size > 2 else min(1, self.links)

    @property
    def diameter(self) -> int:
        """Most hops along this axis: k // 2 on a ring, k - 1 on a chain."""
        return self.size // 2 if self.wrap else self.size - 1

    @property
    def total_hops(self) -> int:
        """Hops along one line, summed over ordered pairs: k (k^2 // 4) on a ring, k (k^2 - 1) / 3 on a chain."""
        k = self.size
        return k * (k * k // 4) if self.wrap else k * (k * k - 1) // 3

    @property
    def load(self) -> float:
        """The load of the busiest link when every chip sends one unit to every chip, times 8 / N.

        On a ring all links have the same load; on a chain the middle one has the highest.
        """
        k = self.size
        if not self.wrap:
            return 8 * (k // 2) * ((k + 1) // 2) / k
        # Total hops over the 2 * links directed links of the line.
        return 8 * self.total_hops / (2 * self.links) / k if self.links else 0.0


def edges(axes: Sequence[GridAxis]) -> Iterator[Edge]:
    """The links; chips are numbered row by row, the last axis fastest."""
    n = stride = math.prod(axis.size for axis in axes)
    for axis in axes:
        stride //= axis.size
        k = axis.size
        for v in range(n):
            at = v // stride % k
            if at < k - 1:
                yield Edge(v, v + stride, axis.rate, axis.kind)
            elif axis.wrap and k > 2:
                yield Edge(v, v - at * stride, axis.rate, axis.kind)


def lower_bound(axes: Sequence[GridAxis], by: By) -> float:
    """A lower bound on the weight of a cut into halves.

    Let every chip send one unit to every chip, one axis after the other, shortest way round: a directed link of an
    axis carries at most N load / 8 units.  The N^2 // 4 units that cross a cut in one direction must fit, so
    sum over axes of L load N / 8 >= N^2 // 4 with L links cut, and the minimum weight that satisfies this is on the
    axis with the smallest weight / load.
    """
    n = math.prod(axis.size for axis in axes)
    shares = [weight_of(axis.rate, by) / axis.load for axis in axes if axis.links]
    return 8 * (n * n // 4) / n * min(shares) if shares else 0.0


def axis_cut(axes: Sequence[GridAxis], by: By) -> Bisection | None:
    """The lightest cut across an axis of even size; None where all sizes are odd.

    Exact when it equals the lower bound, which is so whenever the axis with the smallest weight / load is even: on a
    torus of even sizes always, at 2 N / k links across the longest axis.
    """
    n = math.prod(axis.size for axis in axes)
    best: tuple[float, float, int] | None = None
    for number, axis in enumerate(axes):
        if axis.size % 2 == 0:
            severed = n // axis.size * axis.cut
            offer = (severed * weight_of(axis.rate, by), severed * (axis.rate or 0.0), number)
            best = min(best or offer, offer)
    if best is None:
        return None
    cost, _, number = best
    axis = axes[number]
    severed = n // axis.size * axis.cut
    stride = math.prod(a.size for a in axes[number + 1 :])
    side = frozenset(v for v in range(n) if v // stride % axis.size < axis.size // 2)
    met = is_met(lower_bound(axes, by), severed, cost, by)
    return Bisection(severed, None if axis.rate is None else severed * axis.rate, met, side, "axis cut")
