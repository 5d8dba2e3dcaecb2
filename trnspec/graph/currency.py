"""The age of a catalog: the newest source that supports each value, and what documents leave unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import claims_at
from trnspec.graph.quotes import draws, power_documents
from trnspec.model.calibration import Calibration
from trnspec.model.document import Node
from trnspec.model.measurements import Measurements
from trnspec.model.reflection import ObjectShape, value_at
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model

# Architectures and measurements do not change after their publication, so an old source of them is not out of date.
_UNDATED = (Calibration, Measurements, Model, Source)
_SUPPORT = ("agrees", "rounded")
_MONTHS = 12


@frozen(kw_only=True)
class Age:
    """The newest source of one adopted value.

    Attributes:
        name: The document.
        at: The path below ``spec``: ``memory.bandwidth``.
        value: The value as printed.
        source: The newest source that states it.
        as_of: The date of that source.
        sources: How many sources state it.
        months: Its age in whole months.
    """

    name: str
    at: str
    value: str
    source: str
    as_of: str
    sources: int
    months: int


@frozen(kw_only=True)
class Currency:
    """Age of one document.

    Attributes:
        name: The document.
        kind: Its kind.
        source: Its newest source.
        as_of: The date of that source.
        months: The age of that source in whole months.
        years: The number of adopted values by the year of their newest source, oldest first.
        derived: The number of values that are computed from others and have no date of their own.
        unknown: The paths that other documents of the kind state and this one does not.
    """

    name: str
    kind: str
    source: str
    as_of: str
    months: int
    years: tuple[tuple[str, int], ...]
    derived: int
    unknown: tuple[str, ...]


def months_between(as_of: str, reference: str) -> int:
    """The age of a date in whole calendar months, at least 0.

    Args:
        as_of: A day, a month, or a year, which counts as its December.
        reference: A day or a month; the name of an edition such as ``2026.12`` is one.
    """
    return max(0, _month(reference) - _month(as_of))


def _month(date: str) -> int:
    year, *rest = re.split(r"[-.]", date)
    return _MONTHS * int(year) + (int(rest[0]) if rest else _MONTHS)


def limit(text: str) -> int:
    """The months of a limit such as ``12mo`` or ``2y``.

    Raises:
        UsageError: It is not such a text.
    """
    match = re.fullmatch(r"(\d{1,4}) ?(mo|months?|y|years?)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age; write months or years, such as 12mo or 2y")
    return int(match[1]) * (_MONTHS if match[2].startswith("y") else 1)


def ages(graph: Graph, reference: str, names: Iterable[str] = ()) -> Iterator[Age]:
    """The age of every adopted value of hardware and prices, in the order of the documents.

    A claim supports a value if it agrees with it or is a rounding of it. Derived values are as old as those that they
    are computed from, and are left out.
    """
    wanted = frozenset(names)
    for node in _documents(graph):
        if not wanted or node.name in wanted:
            for fact in facts(graph, node):
                support = _support(fact)
                if support:
                    as_of, source = max(support)
                    yield Age(
                        name=node.name,
                        at=fact.at,
                        value=fact.text or "",
                        source=source,
                        as_of=as_of,
                        sources=len({name for _, name in support}),
                        months=months_between(as_of, reference),
                    )


def _documents(graph: Graph) -> Iterator[Node[Any]]:
    return (node for node in graph if not isinstance(node.spec, _UNDATED))


def _support(fact: Fact) -> list[tuple[str, str]]:
    """The date and name of each source that states an adopted value; none for a derived value and for a remark."""
    if fact.verdict == "derived" or not fact.as_of:
        return []
    claims = [(c.as_of, c.source) for c in fact.conflicting if c.verdict in _SUPPORT]
    return [(fact.as_of, fact.source), *claims]


def currencies(graph: Graph, reference: str) -> tuple[Currency, ...]:
    """Age of each document of hardware, in the order of kinds and names."""
    by_document: dict[str, list[Age]] = {}
    for age in ages(graph, reference):
        by_document.setdefault(age.name, []).append(age)
    nodes = [node for node in _documents(graph) if node.name in by_document]
    order = {kind: n for n, kind in enumerate(dict.fromkeys(node.kind for node in nodes))}
    result = []
    for node in sorted(nodes, key=lambda n: (order[n.kind], n.name)):
        found = by_document[node.name]
        newest = max(found, key=lambda age: (age.as_of, age.source))
        years: dict[str, int] = {}
        for age in sorted(found, key=lambda a: a.as_of):
            years[age.as_of[:4]] = years.get(age.as_of[:4], 0) + 1
        siblings = [n for n in nodes if n.kind == node.kind]
        result.append(
            Currency(
                name=node.name,
                kind=node.kind,
                source=newest.source,
                as_of=newest.as_of,
                months=newest.months,
                years=tuple(years.items()),
                derived=sum(fact.verdict == "derived" for fact in facts(graph, node)),
                unknown=_unknown(graph, node, siblings),
            )
        )
    return tuple(result)


_REMARKS = ("note", "other", "features", "ratios", "generation", "family")


def _unknown(graph: Graph, node: Node[Any], siblings: list[Node[Any]]) -> tuple[str, ...]:
    """The attributes of a kind, at most two steps deep, that are stated or claimed of a sibling but not adopted here."""
    return tuple(
        ".".join(path)
        for path in _attributes(type(node.spec))
        if not _stated(graph, node, path)
        and _stated(graph, node, path[:-1])
        and any(_stated(graph, other, path) or _claimed(graph, other, path) for other in siblings)
    )


_POWER = ("power",)
"""Documents of the kind Power state it too."""


def _attributes(spec: type[Any]) -> Iterator[tuple[str, ...]]:
    for name, shape in ObjectShape(spec).fields.items():
        if name not in _REMARKS:
            yield (name,)
            if isinstance(shape.shape, ObjectShape) and name not in ("peak", "tensor_peak", "stated"):
                yield from ((name, below) for below in shape.shape.fields if below not in _REMARKS)


def _stated(graph: Graph, node: Node[Any], path: tuple[str, ...]) -> bool:
    return value_at(node.spec, path) is not None or (path == _POWER and bool(draws(graph, node)))


def _claimed(graph: Graph, node: Node[Any], path: tuple[str, ...]) -> bool:
    if path == _POWER and power_documents(graph, node):
        return True
    return ("spec", *path) in claims_at(node)
