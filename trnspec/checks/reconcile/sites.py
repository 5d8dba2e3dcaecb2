"""Figures and counts of documents with their paths, and the relations between them."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.diagnostics import Location
from trnspec.graph.formulas import operands
from trnspec.graph.graph import ONE, Graph, at, figure_at
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import NumberShape, dotted, shape_at
from trnspec.model.rounded import count_of, interval_of
from trnspec.quantities.quantity import Interval, Quantity, parse_or_none
from trnspec.yaml import Path


@frozen(slots=False)  # a cached property
class Site:
    """A figure or a count of one document: the adopted one, or the value of a claim.

    Attributes:
        node: The document.
        path: The path, beginning with ``spec``.
        claim: The index of the claim; ``None`` for the adopted value.
    """

    node: Node[Any]
    path: Path
    claim: int | None = None

    @functools.cached_property
    def value(self) -> Quantity | int | None:
        """The value; ``None`` if there is none, or if a claim states a word."""
        if self.claim is not None:
            says = self.node.claims[self.claim].says
            if isinstance(says, int) or isinstance(shape_at(type(self.node.spec), self.path[1:]), NumberShape):
                return count_of(says)
            return parse_or_none(says, self.node.units)
        value = figure_at(self.node, self.path)
        if isinstance(value, Figure):
            return value.value
        return value if isinstance(value, int) else None

    @property
    def interval(self) -> Interval:
        """The interval of its digits, in base units; a count is exact."""
        value = self.value
        if isinstance(value, Quantity):
            return value.interval
        assert value is not None  # a relation has only sites with a value
        return interval_of(value)

    @property
    def loose(self) -> Interval:
        """The same with trailing zeros of an integer read as placeholders."""
        value = self.value
        return value.loose if isinstance(value, Quantity) else self.interval

    @property
    def key(self) -> tuple[str, Path, int | None]:
        """The identity of the site."""
        return (self.node.name, self.path, self.claim)

    @property
    def place(self) -> Path:
        """The path in the file: of the figure itself, or of the value of the claim."""
        return self.path if self.claim is None else (*self.node.claim_path(self.claim), "says")

    @property
    def location(self) -> Location:
        """The location in the file, with the value."""
        says = None if self.claim is None else self.node.claims[self.claim].says  # a date is not a value
        return at(self.node, self.place, text=f"{self} is {says if self.value is None else self.value}")

    def __str__(self) -> str:
        name = f"{dotted(self.path[1:])} of {self.node.name}"
        return name if self.claim is None else f"{name}, says {self.node.claims[self.claim].source},"


def operand_places(formula: str, node: Node[Any], graph: Graph) -> tuple[Location, ...]:
    """The places of the figures that a formula names, with their values."""
    return tuple(Site(holder, path).location for holder, path in operands(formula, node, graph))


def rate_at(node: Node[Any], path: Path) -> Quantity | None:
    """The adopted figure at a path; ``None`` if there is none."""
    figure = figure_at(node, path)
    return figure.value if isinstance(figure, Figure) else None


def is_below(a: Quantity, b: Quantity) -> bool:
    """Whether every value of one interval is below, or at the lower end of, those of another."""
    high = a.interval.high
    return high is not None and high <= b.interval.low


def _alike(a: Quantity | int | None, b: Quantity | int | None) -> bool:
    if isinstance(a, Quantity) and isinstance(b, Quantity):
        return a.dimension is b.dimension
    return isinstance(a, int) and isinstance(b, int)


@frozen
class PartsTerm:
    """A number of parts with a figure each.

    Attributes:
        counts: The counts that the part is multiplied by.
        part: The figure of one part.
        factor: An exact number that it is also multiplied by, such as 2 for both directions.
    """

    counts: tuple[Site, ...]
    part: Site
    factor: Fraction = ONE

    @property
    def times(self) -> Fraction:
        """The number of times the part is counted."""
        # A term has only sites of counts.
        return self.factor * math.prod(n for count in self.counts if isinstance(n := count.value, int))

    @property
    def interval(self) -> Interval:
        """The value of the term, in base units."""
        return self.part.interval.scaled(self.times)

    def __str__(self) -> str:
        numbers = [str(c.value) for c in self.counts]
        if self.factor != 1:
            numbers.insert(0, str(self.factor))
        return " x ".join([*numbers, f"{self.part.value} of {self.part.node.name}"])


def claimed(claim: Site, other: Site) -> Relation:
    """The relation between a claim and another value of the same figure."""
    return Relation(claim, (PartsTerm((), other),), CLAIM)


_THREE_DIGITS = Fraction(1, 200)
"""The largest relative error of rounding to three digits."""


@frozen(slots=False)  # a cached property
class Relation:
    """``total = term + ... + term``, exactly up to the rounding of what is printed.

    Attributes:
        total: The figure of the whole, or a claim on a figure.
        terms: The terms of the sum.
        level: The level of the composition, for messages: ``chips of a server``.
        across: True if total and terms have different dimensions, such as a clock rate and a rate of operations.
    """

    total: Site
    terms: tuple[PartsTerm, ...]
    level: str
    across: bool = False

    @property
    def is_stated(self) -> bool:
        """True if every site has a value and, unless ``across`` is set, all have the same dimension."""
        if any(s.value is None for s in self.sites):
            return False
        return self.across or all(_alike(self.total.value, t.part.value) for t in self.terms)

    @property
    def has_parts(self) -> bool:
        """True if every count and every part has a value."""
        return all(site.value is not None for site in self.sites[1:])

    @property
    def expected(self) -> Interval:
        """The sum of the terms, in base units."""
        interval = self.terms[0].interval
        for term in self.terms[1:]:
            interval += term.interval
        return interval

    @functools.cached_property
    def holds(self) -> bool:
        """True if rounding alone can explain the difference between total and terms.

        Trailing zeros of an integer may be placeholders: 1,300 for 1,299.  They are read so only where both values differ
        by no more than rounding to three digits, since 1,500 for 1,536 is usually another unit.
        """
        if self.is_claim and self.total.value is self.terms[0].part.value:
            return True  # the same text: most claims repeat the adopted figure
        if self.expected.overlaps(self.total.interval):
            return True
        coarse = Interval.point(0)
        for term in self.terms:
            coarse += term.part.loose.scaled(term.times)
        return self._is_near and coarse.overlaps(self.total.loose)

    @property
    def _is_near(self) -> bool:
        total = self.total.value
        parts = [term.part.value for term in self.terms]
        if not isinstance(total, Quantity) or not all(isinstance(part, Quantity) for part in parts):
            return False
        added = sum(
            (t.times * p.value for t, p in zip(self.terms, parts, strict=True) if isinstance(p, Quantity)), Fraction(0)
        )
        return abs(added - total.value) <= total.value * _THREE_DIGITS

    @property
    def sites(self) -> tuple[Site, ...]:
        """All sites of the relation: the total, the counts and the parts."""
        return (self.total, *(s for t in self.terms for s in (*t.counts, t.part)))

    @property
    def is_claim(self) -> bool:
        """True for a relation between a claim and the adopted figure."""
        return self.level == CLAIM

    def expects(self, site: Site) -> Interval | None:
        """The value of one site that satisfies the relation, in base units; ``None`` if it would be negative.

        A chip may be a part in several terms; all of them are solved for it together.
        """
        if site.key == self.total.key:
            return self.expected
        solved = [t for t in self.terms if site.key in {s.key for s in (*t.counts, t.part)}]
        if not solved:
            return None
        rest = self.total.interval
        for other in (t for t in self.terms if t not in solved):
            low, high = rest.low, rest.high
            added = other.interval
            if added.high is None or (high is not None and high < added.low):
                return None
            rest = Interval(max(low - added.high, Fraction(0)), None if high is None else high - added.low)
        if all(site.key == t.part.key for t in solved):
            return rest.scaled(1 / sum((t.times for t in solved), Fraction(0)))
        own = site.value
        if not isinstance(own, int) or any(site.key == t.part.key for t in solved):
            return None  # a number that is a part in one term and a count in another
        one = Interval.point(0)
        for term in solved:
            one += term.part.interval.scaled(term.times / own)
        return rest.ratio(one)


CLAIM = "another source"
"""The level of a relation between a claim and the adopted figure."""
