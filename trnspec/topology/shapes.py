"""Named shapes: the description of a fabric in a page or a document, before it is a graph.

Each shape is a frozen value with ``build()`` and measures; those of rings, chains and their products are
closed forms, the others are counted on the built fabric.  ``str(shape)`` is a text that
``trnspec.topology.parse`` reads, where the shape has one.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from attrs import frozen

from trnspec.topology import measures
from trnspec.topology.bisection import Bisection, By, bisection, check_rates, is_met, weight_of
from trnspec.topology.fabric import Edge, FabricGraph, TopologyError


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
        """The load of the busiest link, of an axis with links, when every chip sends one unit to every chip, times 8 / N.

        On a ring all links have the same load; on a chain the middle one has the highest.
        """
        k = self.size
        if not self.wrap:
            return 8 * (k // 2) * ((k + 1) // 2) / k
        # Total hops over the 2 * links directed links of the line.
        return 8 * self.total_hops / (2 * self.links) / k


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


@frozen
class Shape(abc.ABC):
    """The interface of all shapes."""

    @property
    @abc.abstractmethod
    def nodes(self) -> int:
        """The number of chips."""

    @abc.abstractmethod
    def build(self) -> FabricGraph:
        """The graph."""

    @property
    def links(self) -> int:
        """The number of links, those to switches included."""
        return len(self.build().edges)

    @property
    def diameter(self) -> int | None:
        """The most hops between two chips, counted in edges; None where some pair has no path."""
        return measures.diameter(self.build())

    def mean_hops(self, *, self_included: bool) -> float | None:
        """The mean hops between chips, counted in edges; see ``trnspec.topology.measures.mean_hops``."""
        return measures.mean_hops(self.build(), self_included=self_included)

    def bisection(self, by: By = "links") -> Bisection:
        """The narrowest cut into halves; see ``trnspec.topology.bisection``."""
        return bisection(self.build(), by)


@frozen
class GridShape(Shape):
    """A product of rings and chains; chips are numbered row by row, the last dimension fastest."""

    def __attrs_post_init__(self) -> None:
        _ = self.axes  # raises where a size is not valid

    @property
    @abc.abstractmethod
    def axes(self) -> tuple[GridAxis, ...]:
        """The dimensions."""

    @property
    def nodes(self) -> int:
        """The number of chips: the product of the sizes."""
        return math.prod(axis.size for axis in self.axes)

    def build(self) -> FabricGraph:
        """The graph."""
        return FabricGraph(self.nodes, tuple(edges(self.axes)))

    @property
    def links(self) -> int:
        """Number of links, N / k lines along each axis: N for each ring dimension of more than two, N / 2 for two."""
        return sum(self.nodes // axis.size * axis.links for axis in self.axes)

    @property
    def diameter(self) -> int:
        """The sum over dimensions: k // 2 for a ring, k - 1 for a chain (Dally and Towles 2004, chapter 5)."""
        return sum(axis.diameter for axis in self.axes)

    def mean_hops(self, *, self_included: bool) -> float:
        """The sum over dimensions; self included, k / 4 for a ring of even size and (k - 1/k) / 3 for a chain."""
        total = sum((self.nodes // axis.size) ** 2 * axis.total_hops for axis in self.axes)
        return measures.mean_of(total, self.nodes, self_included=self_included)

    def bisection(self, by: By = "links") -> Bisection:
        """Across an axis where that is proven to be the narrowest, otherwise searched with the grid's lower bound.

        Raises:
            TopologyError: ``by`` is ``rate`` and the rate of a dimension is unknown.
        """
        check_rates(by, (axis.rate for axis in self.axes if axis.links))
        across = axis_cut(self.axes, by)
        if across is not None and across.exact:
            return across
        searched = bisection(self.build(), by, lower=lower_bound(self.axes, by))
        if across is None or searched.exact:
            return searched
        key = (lambda b: b.links) if by == "links" else (lambda b: b.rate or 0.0)
        return min(searched, across, key=key)


@frozen
class Single(GridShape):
    """One chip, no link."""

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """None."""
        return ()

    def __str__(self) -> str:
        return "single"


@frozen
class _Line(GridShape):
    """One dimension."""

    n: int
    rate: float | None = None
    kind: str = ""

    WRAP: ClassVar[bool]

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """One, which a ring wraps."""
        return (GridAxis(self.n, self.WRAP, self.rate, self.kind),)

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}({self.n})"


@frozen
class Chain(_Line):
    """``n`` chips in a row; the ends have one link, the others two."""

    WRAP = False


@frozen
class Ring(_Line):
    """``n`` chips in a ring; two chips have one link."""

    WRAP = True


@frozen
class _Product(GridShape):
    """Several dimensions, which are all rings or all chains."""

    dims: tuple[int, ...]
    rates: tuple[float | None, ...] = ()
    kinds: tuple[str, ...] = ()

    WRAP: ClassVar[bool]

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """One for each size, which a torus wraps."""
        count = len(self.dims)
        if not count:
            raise TopologyError("expected the size of at least one dimension")
        for name, given in (("rates", self.rates), ("kinds", self.kinds)):
            if len(given) not in (0, 1, count):
                raise TopologyError(f"{len(given)} {name} for {count} dimensions; give none, one for all, or one each")
        rates = self.rates * count if len(self.rates) == 1 else self.rates or (None,) * count
        kinds = self.kinds * count if len(self.kinds) == 1 else self.kinds or ("",) * count
        return tuple(GridAxis(k, self.WRAP, r, name) for k, r, name in zip(self.dims, rates, kinds, strict=True))

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}({','.join(map(str, self.dims))})"


@frozen
class Torus(_Product):
    """A product of rings.

    A dimension of two chips has one link between them (the ring of two is a pair); a dimension of one has none.  ``Torus((4, 4, 4), (64.0, 128.0, 128.0), ("z", "in-plane", "in-plane"))`` is four 4x4 planes
    whose links along the first dimension have half the rate.

    Attributes:
        dims: The size of each dimension.
        rates: The rate of a link of each dimension in one direction: none, one for all, or one each.
        kinds: The class of the links of each dimension, likewise.
    """

    WRAP = True


@frozen
class Mesh(_Product):
    """A product of chains: a torus without the links from the last to the first."""

    WRAP = False


@frozen
class Hypercube(GridShape):
    """``2 ** d`` chips, linked where their numbers differ in one bit.  ``Hypercube(4)`` is a 4x4 torus renumbered."""

    d: int
    rate: float | None = None
    kind: str = ""

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.d <= 20:
            raise TopologyError(f"a hypercube of {self.d} dimensions; expected 0 to 20")

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """``d`` of two chips each."""
        return (GridAxis(2, True, self.rate, self.kind),) * self.d

    def __str__(self) -> str:
        return f"hypercube({self.d})"


@frozen
class FullyConnected(Shape):
    """``n`` chips, each linked directly to each other."""

    n: int
    rate: float | None = None
    kind: str = ""

    def __attrs_post_init__(self) -> None:
        if self.n < 1:
            raise TopologyError(f"{self.n} chips; expected 1 or more")

    @property
    def nodes(self) -> int:
        """The number of chips."""
        return self.n

    def build(self) -> FabricGraph:
        """The graph."""
        pairs = ((a, b) for a in range(self.n) for b in range(a + 1, self.n))
        return FabricGraph(self.n, tuple(Edge(a, b, self.rate, self.kind) for a, b in pairs))

    # Closed forms: a document may declare a billion chips, whose graph would fill the memory.

    @property
    def links(self) -> int:
        """Number of pairs: n (n - 1) / 2."""
        return self.n * (self.n - 1) // 2

    @property
    def diameter(self) -> int:
        """One, or none for one chip."""
        return min(1, self.n - 1)

    def mean_hops(self, *, self_included: bool) -> float:
        """One between different chips."""
        return measures.mean_of(self.n * (self.n - 1), self.n, self_included=self_included)

    def bisection(self, by: By = "links") -> Bisection:
        """All cuts into halves sever the same number of links: (n // 2) (n - n // 2)."""
        check_rates(by, (self.rate,) if self.n > 1 else ())
        half = (self.n + 1) // 2
        severed = half * (self.n - half)
        rate = 0.0 if not severed else None if self.rate is None else severed * self.rate
        return Bisection(severed, rate, True, frozenset(range(half)), "bounds meet")

    def __str__(self) -> str:
        return f"fully-connected({self.n})"
