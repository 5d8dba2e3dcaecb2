"""Age of each document of the catalog, and what it leaves unknown; for a page of the manual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from trnspec.graph.currency import Age, ages, dated_documents
from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import claims_at
from trnspec.graph.quotes import draws, power_documents
from trnspec.model.document import Node
from trnspec.model.reflection import ObjectShape, value_at


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


def currencies(graph: Graph, reference: str) -> tuple[Currency, ...]:
    """Age of each document of hardware, in the order of kinds and names."""
    by_document: dict[str, list[Age]] = {}
    for age in ages(graph, reference):
        by_document.setdefault(age.name, []).append(age)
    nodes = [node for node in dated_documents(graph) if node.name in by_document]
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
