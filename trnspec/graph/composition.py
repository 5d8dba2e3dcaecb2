"""Parts of documents: one traversal of ``parts()`` for totals, paths, checks, commands, models and exporters.

Nothing here knows a particular kind but :class:`Chip`. A document whose kind has no method ``parts`` has no parts. Where
a part is not known (a reference that leads nowhere or to another kind, a count that is not published), every result that
depends on it is ``None``; a partial result is never returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from attrs import evolve, frozen

from trnspec.graph.graph import Graph, cached_by_graph, references
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.kinds import kind_of
from trnspec.model.parts import CountRange, PartCount, declared_parts, has_parts
from trnspec.model.ref import Ref
from trnspec.model.reflection import value_at
from trnspec.yaml import Path

T = TypeVar("T")


@frozen
class DirectPart:
    """A direct part of a document.

    Attributes:
        node: The part.
        count: How many of it the document has; ``None`` where that is not known.
        ref: The reference that names it.
    """

    node: Node[Any]
    count: PartCount | None
    ref: Ref[Any]


@frozen
class Occurrence:
    """A document as a part of another one.

    Attributes:
        node: The part, at any depth.
        steps: The way to it: each document above it with the part of that document that was entered.
    """

    node: Node[Any]
    steps: tuple[tuple[Node[Any], DirectPart], ...] = ()


@cached_by_graph
def parts(graph: Graph, node: Node[Any]) -> tuple[DirectPart, ...] | None:
    """The direct parts of a document; ``None`` where one is not in the graph or is of another kind.

    A count that a document does not state follows from ``part_chips()``, where its kind has that method: a cluster of
    servers with 16 chips each and over 100,000 chips has at least 6,250 servers.
    """
    spec: Any = type(node.spec)
    if not has_parts(spec):
        return ()
    expected = declared_parts(spec)
    direct: list[DirectPart] = []
    for count, ref in node.spec.parts():
        part = graph.find(ref)
        if part is None or (expected and not isinstance(part.spec, expected)):
            return None
        direct.append(DirectPart(part, count, ref))
    if len(direct) == 1 and direct[0].count is None:
        return (evolve(direct[0], count=_count_by_chips(graph, node, direct[0].node)),)
    return tuple(direct)


def _count_by_chips(graph: Graph, node: Node[Any], part: Node[Any]) -> PartCount | None:
    stated = getattr(node.spec, "part_chips", None)
    total: PartCount | None = stated() if callable(stated) else None
    each = chips(graph, part)
    if total is None or each is None:
        return None
    if isinstance(total, CountRange):
        return total // each[0]
    return total // each[0] if total % each[0] == 0 else None


def occurrences(
    graph: Graph, node: Node[Any], stop: Callable[[Node[Any]], bool], unknown: Callable[[type], bool] = lambda _: False
) -> tuple[Occurrence, ...] | None:
    """The documents of a composition at which ``stop`` is true, outermost first; parts of those are not entered.

    Args:
        graph: Contains the parts.
        node: The document to begin with; it may itself be the result.
        stop: Whether a document is wanted.
        unknown: Whether a document of a kind without any parts makes the result unknown: true for the kinds of which
            parts were expected.

    Returns:
        ``None`` where a part is not known, or where a document contains itself.
    """
    reached: list[Occurrence] = []
    waiting = [Occurrence(node)]
    while waiting:
        one = waiting.pop()
        if stop(one.node):
            reached.append(one)
            continue
        below = parts(graph, one.node)
        if below is None or any(one.node is above for above, _ in one.steps):
            return None
        spec: Any = type(one.node.spec)
        if not below and any(unknown(kind) for kind in declared_closure(spec)):
            return None
        waiting += (Occurrence(part.node, (*one.steps, (one.node, part))) for part in reversed(below))
    return tuple(reached)


def declared_closure(spec: Any) -> tuple[type, ...]:
    """The declared kinds of parts at any depth, nearest first."""
    return _closure(spec, declared_parts)


def _closure(spec: Any, below: Callable[[Any], Iterable[type]]) -> tuple[type, ...]:
    kinds: dict[type, None] = {}
    waiting = [spec]
    while waiting:
        new = [kind for kind in below(waiting.pop(0)) if kind not in kinds]
        kinds |= dict.fromkeys(new)
        waiting += new
    return tuple(kinds)


def merged(reached: tuple[Occurrence, ...] | None) -> tuple[tuple[PartCount, Node[Any]], ...] | None:
    """Each document once, with its count over all ways to it; ``None`` where a count is not known."""
    counts: dict[str, tuple[PartCount, Node[Any]]] = {}
    for occurrence in reached or ():
        count: PartCount = 1
        for _, part in occurrence.steps:
            if part.count is None:
                return None
            count = count * part.count
        name = occurrence.node.name
        counts[name] = (count + counts[name][0] if name in counts else count, occurrence.node)
    return None if reached is None else tuple(counts.values())


def members(graph: Graph, node: Node[Any], kind: type[T]) -> tuple[tuple[PartCount, Node[T]], ...] | None:
    """The documents of a kind that a document is built of, itself included, each with its count.

    Returns:
        ``None`` where a part or a count is not known; ``()`` where the document is not built of such.
    """
    return merged(
        occurrences(graph, node, lambda n: isinstance(n.spec, kind), lambda declared: issubclass(declared, kind))
    )


def chips(graph: Graph, node: Node[Any]) -> tuple[int, Node[Chip]] | None:
    """The number of chips and the chip, of a document that is built of one kind of chip (or is a chip).

    Returns:
        ``None`` where it has no chips, several kinds of chips, or a number of chips that is not known exactly.
    """
    return _only(members(graph, node, Chip))


def chip_count(graph: Graph, node: Node[Any]) -> PartCount | None:
    """The number of chips of all kinds; ``None`` where it is not known, 0 where the document has no chips."""
    counted = members(graph, node, Chip)
    return None if counted is None else added([count for count, _ in counted])


def added(counts: list[PartCount]) -> PartCount:
    """The sum of some counts."""
    total: PartCount = 0
    for count in counts:
        total = count + total
    return total


def server_occurrences(graph: Graph, node: Node[Any]) -> tuple[Occurrence, ...] | None:
    """The servers of a document, itself included: the documents that chips are direct parts of, of whatever kind."""
    return occurrences(graph, node, lambda n: any(isinstance(part.node.spec, Chip) for part in parts(graph, n) or ()))


def servers(graph: Graph, node: Node[Any]) -> tuple[int, Node[Any]] | None:
    """The number of servers and the server, of a document that is built of one server (or is a server)."""
    return _only(merged(server_occurrences(graph, node)))


def _only(counted: tuple[tuple[PartCount, Node[T]], ...] | None) -> tuple[int, Node[T]] | None:
    """The one document and its count; ``None`` for several, none, and a count that is not known exactly."""
    count, node = counted[0] if counted is not None and len(counted) == 1 else (None, None)
    return (count, node) if isinstance(count, int) and node is not None else None


def count_path(holder: Node[Any], ref: Ref[Any]) -> Path | None:
    """The path of the count of a part, which is the field ``count`` next to the reference; ``None`` without one."""
    for path, _, each in references(holder):
        if each is ref:
            at = (*path[:-1], "count")
            return at if isinstance(value_at(holder.spec, at[1:]), int) else None
    return None


def counted_at(holder: Node[Any], path: Path) -> Ref[Any] | None:
    """The part whose count is at a path: ``cores.core`` for ``("spec", "cores", "count")`` of a chip."""
    if path[-1:] != ("count",) or not has_parts(type(holder.spec)):
        return None
    return next((ref for _, ref in holder.spec.parts() if count_path(holder, ref) == path), None)


# Kinds of parts, and the words that paths of queries name them by.


@cached_by_graph
def part_kinds(graph: Graph, spec: type[Any]) -> tuple[type, ...]:
    """The kinds of parts at any depth, nearest first: the declared ones, and the classes of the documents in use."""

    def below(kind: Any) -> list[type]:
        documents = graph.of(kind) if has_parts(kind) else ()
        used = (type(part.node.spec) for node in documents for part in parts(graph, node) or ())
        return list(dict.fromkeys((*declared_parts(kind), *used)))

    return _closure(spec, below)


def word(spec: type[Any]) -> str:
    """The word for a kind in paths: ``server``; a derived kind has that of the kind it is derived from."""
    return _name(spec).lower()


def _name(spec: type[Any]) -> str:
    return next((name for cls in spec.__mro__ if (name := kind_of(cls)) is not None), spec.__name__)


def part_words(graph: Graph, spec: type[Any]) -> dict[str, list[type]]:
    """The words for the parts of a kind, nearest first, each with its kinds."""
    by_word: dict[str, list[type]] = {}
    for kind in part_kinds(graph, spec):
        by_word.setdefault(word(kind), []).append(kind)
    return by_word


def in_text(spec: type[Any]) -> str:
    """The name of a kind in a sentence: ``server``, ``UltraServer``."""
    name = _name(spec)
    return name.lower() if name[1:].islower() else name
