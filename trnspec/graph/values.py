"""Reading values: what a document has at a place, of its own, through a reference, or as a total over its parts."""

from __future__ import annotations

import enum
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.graph.totals import Total, chips
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import Shape, leaves, value_at
from trnspec.model.server import Server
from trnspec.quantities.amount import Amount
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.yaml import Path


class Sort(enum.Enum):
    """What stands at a place that is no figure."""

    COUNT = "a count"
    WORD = "a word"
    DATE = "a date"
    GROUP = "a group"


@frozen
class PathValue:
    """What one document has at a place.

    Attributes:
        value: An amount, an exact count, or a word.
        text: The same as people write it: a figure as printed, a total with all its digits.
        figure: The printed figure that it is or is computed from, and the document that states it.
        part: That document.
    """

    value: Amount | int | Fraction | str
    text: str
    figure: Figure | None = None
    part: Node[Any] | None = None


Read = Callable[[Node[Any]], PathValue | None]
"""What a document has at a place; ``None`` where that is not known."""


@frozen
class PathField:
    """A path of a kind.

    Attributes:
        path: The path, dotted.
        holds: The dimension of the figures there, or what stands there instead; ``None`` for a figure whose dimension
            differs between documents.
        read: What a document has there; ``None`` where that is not known.
        total: True where it is computed from the parts of a system.
        words: The words that may stand there, where the set is closed.
        target: The class of the documents that are named there.
    """

    path: str
    holds: Dimension | Sort | None
    read: Read
    total: bool = False
    words: tuple[str, ...] = ()
    target: type[Any] | None = None


def metadata(graph: Graph, name: str) -> Read:
    """The name, title, kind or source of a document."""

    def read(node: Node[Any]) -> PathValue | None:
        value = node.kind if name == "kind" else getattr(node.metadata, name)
        if value is None:
            return None
        word = graph.aliases.get(str(value), str(value)) if name == "source" else str(value)
        return PathValue(word, word)

    return read


def own(graph: Graph, steps: Path) -> Read:
    """What stands at some steps of a spec itself; a reference gives the name of what it leads to."""

    def read(node: Node[Any]) -> PathValue | None:
        value = value_at(node.spec, steps)
        if value is None:
            return None
        if isinstance(value, Figure):
            return PathValue(value.amount, value.value.text, value, node)
        if isinstance(value, bool):
            return PathValue("yes" if value else "no", "yes" if value else "no")
        if isinstance(value, (int, float)):
            number = value if isinstance(value, int) else Fraction(value)
            return PathValue(number, f"{value:,}")
        word = graph.aliases.get(value.name, value.name) if isinstance(value, Ref) else value
        return PathValue(str(word), str(word))

    return read


def group(steps: Path, shape: Shape) -> Read:
    """Whether a mapping or a list holds anything; a list of counts is told as dimensions are, ``4 x 4``."""

    def read(node: Node[Any]) -> PathValue | None:
        value = value_at(node.spec, steps)
        if value is None or next(leaves(value, shape), None) is None:
            return None
        told = " x ".join(map(str, value)) if isinstance(value, tuple) else "known"
        return PathValue(told, told)

    return read


def through(graph: Graph, steps: Path, target: type[Any], inner: PathField) -> PathField:
    """A place of the document of the class ``target`` that is named at some steps."""

    def read(node: Node[Any]) -> PathValue | None:
        ref = value_at(node.spec, steps)
        other = None if ref is None else graph.find(ref)
        # A reference may lead to another kind; that is reported where it stands.
        return inner.read(other) if other is not None and isinstance(other.spec, target) else None

    return evolve(inner, read=read)


def times(graph: Graph, node: Node[Any], inner: PathField | None) -> PathValue | None:
    """How many chips a system has, or a value of its chip times that number."""
    found = chips(graph, node)
    if found is None:
        return None
    count, chip = found
    return PathValue(count, f"{count:,}") if inner is None else _multiplied(count, chip, inner)


def of_servers(graph: Graph, inner: PathField) -> Read:
    """A value of the server of an UltraServer times the number of its servers."""

    def read(node: Node[Any]) -> PathValue | None:
        server = graph.find(node.spec.servers.server)
        if server is None or not isinstance(server.spec, Server):
            return None
        return _multiplied(node.spec.servers.count, server, inner)

    return read


def _multiplied(count: int, part: Node[Any], inner: PathField) -> PathValue | None:
    one = inner.read(part)
    if one is None or isinstance(one.value, str):
        return one
    if one.figure is not None:
        total = Total(count, one.figure, part, ())
        return PathValue(one.figure.amount * count, str(total), one.figure, part)
    if isinstance(one.value, Amount):
        return PathValue(one.value * count, str(one.value * count))
    return PathValue(one.value * count, f"{one.value * count:,}")
