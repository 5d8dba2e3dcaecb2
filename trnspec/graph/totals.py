"""Totals of systems, computed from their parts and never copied from a page.

What adds up is marked ``Extensive()`` in the class of the part; :mod:`trnspec.graph.composition` finds the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from attrs import frozen

from trnspec.graph.composition import (
    added,
    chips,
    counted_at,
    merged,
    occurrences,
    parts,
    word,
)
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.parts import CountRange, PartCount
from trnspec.model.reflection import dotted, is_extensive, leaves, shape_at, value_at
from trnspec.quantities.amount import Amount
from trnspec.quantities.display import interval_text
from trnspec.quantities.quantity import Interval, Qualifier, render
from trnspec.quantities.units import Unit
from trnspec.yaml import Path

__all__ = ["BoundedAmount", "Sum", "Term", "Total", "chips", "summed", "sums", "terms", "total"]

_UPPER = (Qualifier.UP_TO, Qualifier.AT_MOST, Qualifier.UNDER)
_LOWER = (Qualifier.AT_LEAST, Qualifier.OVER)


class BoundedAmount(Amount):
    """An amount of which only a bound is known; the bound is its ``value``."""

    def __str__(self) -> str:
        return f"{'>=' if self.interval.high is None else '<='} {super().__str__()}"


@frozen
class Term:
    """One summand of a total.

    Attributes:
        count: How many parts.
        part: The document of the part.
        path: The path of its figure or count.
    """

    count: PartCount
    part: Node[Any]
    path: Path

    @cached_property
    def value(self) -> Figure | int:
        """The figure, or the count, of one part."""
        value: Figure | int = value_at(self.part.spec, self.path[1:])
        return value

    def __str__(self) -> str:
        value = self.value
        each = f"{value:,}" if isinstance(value, int) else f"{value}"
        counted = counted_at(self.part, self.path)
        return f"{self.count:,} x {each}" if counted is None else f"{self.count:,} x {each} {counted}"


@frozen
class Total:
    """The sum of a figure over parts.

    Attributes:
        terms: The parts; more than one where a system has parts of several kinds.
        qualifier: What the total is: exact up to rounding, approximate, or a bound.
    """

    terms: tuple[Term, ...]
    qualifier: Qualifier

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figure of one part of each term."""
        return tuple(t.value for t in self.terms if isinstance(t.value, Figure))

    @property
    def count(self) -> PartCount:
        """The number of parts, of all kinds."""
        return added([t.count for t in self.terms])

    @property
    def figure(self) -> Figure:
        """The figure of one part, where all parts are the same document; ``ValueError`` where they are not."""
        (figure,) = self.figures
        return figure

    @property
    def part(self) -> Node[Any]:
        """The part, where all parts are the same document; ``ValueError`` where they are not."""
        (term,) = self.terms
        return term.part

    @cached_property
    def value(self) -> Fraction:
        """The total in base units, exact; where the number of parts has only a bound, the bound of the total."""
        products = (f.value.value * _number(t.count) for t, f in zip(self.terms, self.figures, strict=True))
        return sum(products, Fraction(0))

    @property
    def interval(self) -> Interval:
        """The interval that the rounding of the parts leaves, in base units."""
        total = Interval.point(0)
        for term, figure in zip(self.terms, self.figures, strict=True):
            total += figure.interval.times(_interval(term.count))
        return total

    @property
    def amount(self) -> Amount:
        """The total as an amount, to calculate with."""
        quantity = self.figures[0].value
        kind = Amount if self.is_exact_count else BoundedAmount
        return kind(self.value, quantity.dimension, self.interval, quantity.unit, self.digits, quantity.table)

    @property
    def is_exact_count(self) -> bool:
        """Whether the numbers of parts are known exactly."""
        return all(isinstance(t.count, int) for t in self.terms)

    def __float__(self) -> float:
        """The total in base units."""
        return float(self.value)

    @property
    def unit(self) -> Unit:
        """The unit to show it in: that of the part; a large decimal one moves to the next."""
        return self.amount.shown_unit

    @property
    def digits(self) -> int:
        """Significant digits to show: all of the product."""
        return max(f.value.digits + len(str(_number(t.count))) for t, f in zip(self.terms, self.figures, strict=True))

    def __str__(self) -> str:
        """The sum of the printed products, with all digits."""
        mark = self.qualifier.value
        space = "" if mark in ("", Qualifier.ABOUT.value, Qualifier.UNDER.value, Qualifier.OVER.value) else " "
        if mark and not self.is_exact_count:
            space = " "
        return f"{mark}{space}{render(self.value, self.unit, self.digits)}"


def _number(count: PartCount) -> int:
    return count.bound if isinstance(count, CountRange) else count


def _interval(count: PartCount) -> Interval:
    return count.interval if isinstance(count, CountRange) else Interval.point(count)


def _qualifier(terms: Sequence[Term]) -> Qualifier | None:
    """The qualifier of a sum; ``None`` where an upper and a lower bound are added, which bounds nothing."""
    marks = {t.value.value.qualifier for t in terms if isinstance(t.value, Figure)}
    for term in terms:
        if isinstance(term.count, CountRange):
            marks.add(Qualifier.AT_LEAST if term.count.high is None else Qualifier.AT_MOST)
    marks.discard(Qualifier.EXACT)
    if len(marks) < 2:
        return next(iter(marks), Qualifier.EXACT)
    bounds = marks - {Qualifier.ABOUT}
    if bounds <= set(_UPPER):
        return Qualifier.AT_MOST
    return Qualifier.AT_LEAST if bounds <= set(_LOWER) else None


def terms(graph: Graph, node: Node[Any], path: Path) -> tuple[Term, ...] | None:
    """The summands of a total: the nearest documents whose kind has the path, with their counts.

    Args:
        graph: Contains the parts.
        node: The system; where its own kind has the path, it is the only summand.
        path: The path of a part, such as ``("spec", "peak", "dense", "bf16")``.

    Returns:
        ``None`` where no part has such a path, where it does not add up, and where a part, a count or a value is not
        known.
    """
    counted = merged(
        occurrences(
            graph,
            node,
            lambda n: shape_at(type(n.spec), path[1:]) is not None,
            lambda kind: is_extensive(kind, path[1:]),
        )
    )
    if not counted:
        return None
    summands = tuple(Term(count, part, path) for count, part in counted)
    additive = all(t.part is node or is_extensive(type(t.part.spec), path[1:]) for t in summands)
    known = all(isinstance(t.value, (Figure, int)) and not isinstance(t.value, bool) for t in summands)
    return summands if additive and known else None


def total(graph: Graph, node: Node[Any], path: Path) -> Total | None:
    """The total of a figure over all parts of a document.

    Returns:
        ``None`` where :func:`terms` is, and where the values are not figures of one dimension.
    """
    whole = summed(terms(graph, node, path))
    return whole if isinstance(whole, Total) else None


def summed(summands: tuple[Term, ...] | None) -> Total | PartCount | None:
    """The sum of figures of one dimension, or of counts; ``None`` for other summands and where they are not known."""
    of = {t.value.value.dimension if isinstance(t.value, Figure) else None for t in summands or ()}
    if summands is None or len(of) != 1:
        return None
    if None in of:
        return added([t.count * t.value for t in summands if isinstance(t.value, int)])
    qualifier = _qualifier(summands)
    return None if qualifier is None else Total(summands, qualifier)


@frozen
class Sum:
    """A total that follows from the parts of a system.

    Attributes:
        at: What is added up: ``peak.dense.bf16``; ``chips`` and ``cores`` for numbers of parts.
        path: The path of it in a query: ``peak.dense.bf16``, ``chips.count``.
        value: The total.
        parts: The summands: ``16 x 667 TFLOPS``.
    """

    at: str
    path: str
    value: Total | PartCount
    parts: str

    @property
    def amount(self) -> Amount | int | None:
        """The total to calculate with; ``None`` where the number of parts has only a bound."""
        if isinstance(self.value, Total):
            return self.value.amount if self.value.is_exact_count else None
        return self.value if isinstance(self.value, int) else None

    @property
    def bounds(self) -> tuple[Fraction, Fraction, Fraction | None]:
        """The value and the ends of its interval, in base units."""
        if isinstance(self.value, Total):
            return self.value.value, self.value.interval.low, self.value.interval.high
        ends = _interval(self.value)
        return Fraction(_number(self.value)), ends.low, ends.high

    @property
    def text(self) -> str:
        """The total as text."""
        return str(self.value) if isinstance(self.value, Total) else f"{self.value:,}"

    @property
    def interval_text(self) -> str:
        """The interval in the unit of the total, ``[45.6, 47.2)``; ``exact`` for a count."""
        if isinstance(self.value, int):
            return "exact"
        if isinstance(self.value, CountRange):
            return f"[{self.value.low:,}, {'...' if self.value.high is None else f'{self.value.high:,}'})"
        return interval_text(self.value.interval, self.value.unit, self.value.digits + 3)


def sums(graph: Graph, node: Node[Any]) -> tuple[Sum, ...]:
    """Every total of a document that is built of parts, and nothing for a chip or a kind without parts.

    First the numbers of parts, then the figures, those of the innermost parts first.
    """
    spec = type(node.spec)
    if isinstance(node.spec, Chip):
        return ()
    below = tuple(_below(graph, node))
    result = list(_counts(graph, node, below))
    for path in _extensive_paths(spec, below):
        summands = terms(graph, node, path)
        value = summed(summands)
        if summands is not None and value is not None:
            result.append(Sum(_label(summands, path), dotted(path[1:]), value, " + ".join(map(str, summands))))
    return tuple(sorted(result, key=lambda s: _FIRST.index(s.at) if s.at in _FIRST else len(_FIRST)))


_FIRST = ("chips", "cores")


def _below(graph: Graph, node: Node[Any], above: tuple[str, ...] = ()) -> Iterator[Node[Any]]:
    """Every document that a document is built of, innermost first."""
    for part in parts(graph, node) or ():
        if part.node.name not in above:
            yield from _below(graph, part.node, (*above, node.name))
            yield part.node


def _counts(graph: Graph, node: Node[Any], below: tuple[Node[Any], ...]) -> Iterator[Sum]:
    """The numbers of parts by kind; where the document or a part has a field that counts them, of chips alone."""
    spec = type(node.spec)
    kinds = {word(type(part.spec)): type(part.spec) for part in below}
    for name, kind in kinds.items():
        at = (f"{name}s", "count")
        if any(is_extensive(type(part.spec), at) for part in below):
            continue
        if shape_at(spec, at) is not None and not issubclass(kind, Chip):
            continue
        counts = merged(occurrences(graph, node, lambda n: word(type(n.spec)) == name))  # noqa: B023  # called here
        if counts:
            formula = " + ".join(f"{count:,} x {part.name}" for count, part in counts)
            yield Sum(f"{name}s", dotted(at), added([count for count, _ in counts]), formula)


def _extensive_paths(spec: type[Any], below: tuple[Node[Any], ...]) -> Iterator[Path]:
    """The paths that add up in the documents below a system, those of the innermost first."""
    seen: set[Path] = set()
    for part in below:
        for path, _, _ in leaves(part.spec):
            if path not in seen and is_extensive(type(part.spec), path) and shape_at(spec, path) is None:
                seen.add(path)
                yield ("spec", *path)


def _label(summands: Sequence[Term], path: Path) -> str:
    """``cores`` for ``cores.count`` where that is the number of parts of a part; else the path."""
    number = all(counted_at(t.part, path) is not None for t in summands)
    return dotted(path[1:-1] if number else path[1:])
