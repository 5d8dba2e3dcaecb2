"""Reading values of a document at a path: its own, through a reference, of its parts, or a total over them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from attrs import evolve, frozen

from trnspec.graph.composition import added, merged, occurrences, word
from trnspec.graph.facts import words
from trnspec.graph.graph import Graph
from trnspec.graph.totals import BoundedAmount, Total, summed, terms
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.parts import CountRange
from trnspec.model.ref import Ref
from trnspec.model.reflection import Shape, leaves, shape_at, value_at
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Interval
from trnspec.quantities.units import Dimension
from trnspec.yaml import Path


class Sort(enum.Enum):
    """Value of a path that is not a figure."""

    COUNT = "a count"
    WORD = "a word"
    WORDS = "a list of words"
    DATE = "a date"
    GROUP = "a group"


Side = Amount | int | Fraction | str | CountRange
"""A value that can be compared: a :class:`BoundedAmount` or a :class:`CountRange` where only a bound is known."""


@frozen
class PathValue:
    """The value of one document at a path.

    Attributes:
        value: An amount, a count, or a word.
        text: The value as text: a figure as printed, a total with all its digits.
        figure: The printed figure that it is or is computed from, where it is a single one.
        part: The document that states that figure.
    """

    value: Side
    text: str
    figure: Figure | None = None
    part: Node[Any] | None = None

    @property
    def is_bound(self) -> bool:
        """Whether only a bound of the value is known."""
        return isinstance(self.value, (BoundedAmount, CountRange))


Read = Callable[[Node[Any]], PathValue | None]
"""Reads the value of a document at a path; ``None`` where it is not known."""


@frozen
class PathField:
    """A path of a kind.

    Attributes:
        path: The path, dotted.
        holds: The dimension of the figures there, or the sort of value; ``None`` for figures whose dimension differs
            between documents.
        read: Reads the value of a document; ``None`` where it is not known.
        total: Whether the value is computed from the parts of a system.
        words: The allowed words, where they are a closed set.
        target: The class of the documents that are named there.
    """

    path: str
    holds: Dimension | Sort | None
    read: Read
    total: bool = False
    words: tuple[str, ...] = ()
    target: type[Any] | None = None


def metadata(graph: Graph, name: str) -> Read:
    """Reads the name, title, kind or source of a document."""

    def read(node: Node[Any]) -> PathValue | None:
        value = node.kind if name == "kind" else getattr(node.metadata, name)
        if value is None:
            return None
        text = graph.aliases.get(str(value), str(value)) if name == "source" else str(value)
        return PathValue(text, text)

    return read


def own(graph: Graph, steps: Path) -> Read:
    """Reads a field of the spec itself; of a reference, the name of the document."""

    def read(node: Node[Any]) -> PathValue | None:
        value = value_at(node.spec, steps)
        if value is None:
            return None
        if isinstance(value, Figure):
            return PathValue(value.amount, value.value.text, value, node)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return PathValue(value if isinstance(value, int) else Fraction(value), f"{value:,}")
        text = str(graph.aliases.get(value.name, value.name) if isinstance(value, Ref) else words(value))
        return PathValue(text, text)

    return read


def group(steps: Path, shape: Shape) -> Read:
    """Reads whether a mapping or a list has any entries; counts are read as dimensions, ``4 x 4``, words as ``a, b``."""

    def read(node: Node[Any]) -> PathValue | None:
        value = value_at(node.spec, steps)
        if not leaves(value, (), shape):
            return None
        text = words(value) if isinstance(value, tuple) else "known"
        return PathValue(text, text)

    return read


def through(graph: Graph, steps: Path, target: type[Any], inner: PathField) -> PathField:
    """A path of the document of the class ``target`` that the field at ``steps`` names."""

    def read(node: Node[Any]) -> PathValue | None:
        ref = value_at(node.spec, steps)
        other = graph.find(ref)
        # A reference may name a document of another kind; a rule reports that.
        return inner.read(other) if other is not None and isinstance(other.spec, target) else None

    return evolve(inner, read=read)


def of_part(graph: Graph, name: str, inner: Read) -> Read:
    """Reads a value of the parts that a word names; known where it is the same for all of them."""

    def read(node: Node[Any]) -> PathValue | None:
        reached = occurrences(
            graph, node, lambda n: n is not node and word(type(n.spec)) == name, lambda kind: word(kind) == name
        )
        values = {o.node.name: inner(o.node) for o in reached or ()}
        first, *others = values.values() or (None,)
        return first if first is not None and all(o is not None and o.value == first.value for o in others) else None

    return read


def part_count(graph: Graph, name: str) -> Read:
    """Reads how many parts of a kind a system has."""

    def read(node: Node[Any]) -> PathValue | None:
        counted = merged(
            occurrences(graph, node, lambda n: word(type(n.spec)) == name, lambda kind: word(kind) == name)
        )
        if not counted:
            return None
        count = added([count for count, _ in counted])
        return PathValue(count, f"{count:,}")

    return read


def total_of(graph: Graph, steps: Path) -> Read:
    """Reads the total of a figure or a count over the parts of a system."""

    def read(node: Node[Any]) -> PathValue | None:
        whole = summed(terms(graph, node, ("spec", *steps)))
        if not isinstance(whole, Total):
            return None if whole is None else PathValue(whole, f"{whole:,}")
        if len(whole.terms) > 1:
            return PathValue(whole.amount, str(whole))
        return PathValue(whole.amount, str(whole), whole.figure, whole.part)

    return read


def group_of_parts(graph: Graph, steps: Path, shape: Shape) -> Read:
    """Reads whether all parts that have a group know any value of it."""
    inner = group(steps, shape)

    def read(node: Node[Any]) -> PathValue | None:
        reached = occurrences(graph, node, lambda n: shape_at(type(n.spec), steps) is not None)
        values = [inner(o.node) for o in reached or ()]
        return values[0] if values and None not in values else None

    return read


def compare(sign: str, left: Side, right: Side) -> bool | None:
    """Compares two values of which at least one is a bound; ``None`` where the bound does not decide."""
    a, b = _ends(left), _ends(right)
    if sign in ("<", "<="):
        return a.is_below(b, or_equal=sign == "<=")
    if sign in (">", ">="):
        return b.is_below(a, or_equal=sign == ">=")
    return sign == "!=" if a.is_below(b) or b.is_below(a) else None


def _ends(value: Side) -> Interval:
    if isinstance(value, CountRange):
        return value.interval
    if isinstance(value, BoundedAmount):  # figures are compared by value, so rounding does not widen the bound
        return Interval(value.value, None) if value.interval.high is None else Interval(Fraction(0), value.value)
    assert not isinstance(value, str)  # words are compared with words
    return Interval.point(value.value if isinstance(value, Amount) else Fraction(value))
