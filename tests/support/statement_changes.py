"""Changes of dates, sources and verdicts, made in a catalog one at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.checks.reconcile.relations import claimed_paths
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import source_of
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.quantities.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.model.document import Node

YEARS = 4
"""How far a date is moved."""

FAR = 1.1
"""Values that differ by this factor are not roundings of each other."""


_GENERATION = re.compile(r"(?:trn|trainium|inf|inferentia)([0-9]?)(?![a-z0-9])")


@frozen
class Statement:
    """A change of a document that leaves its figures as they are.

    Attributes:
        kind: ``date``, ``source`` or ``verdict``.
        text: The change in words.
        node: The changed document.
    """

    kind: str
    text: str
    node: Node[Any]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"

    def made(self, graph: Graph) -> Graph:
        """The catalog with the change."""
        return Graph({**graph.nodes, self.node.name: self.node})


def statement_changes(graph: Graph) -> Iterator[Statement]:
    """Every change of a date, a source or a verdict that another statement of the catalog determines."""
    for node in graph:
        if isinstance(node.spec, Source):
            yield from _dates(node)
        elif node.kind in ("Chip", "Server", "UltraServer", "Link", "Core"):
            yield from _launches(node)
            yield from _sources(graph, node)
            yield from _verdicts(graph, node)


def _dates(node: Node[Source]) -> Iterator[Statement]:
    """Years of sources that are dated exactly: into the future, and away from the date in the name."""
    as_of = node.spec.as_of
    if node.spec.dating != "exact":
        return
    moved = [int(as_of[:4]) + YEARS + 1]
    if as_of[:4] in node.name:
        moved += [int(as_of[:4]) - YEARS, int(as_of[:4]) - 1]
    for year in moved:
        after = f"{year}{as_of[4:]}"
        yield Statement("date", f"{node.name} {as_of} -> {after}", evolve(node, spec=evolve(node.spec, as_of=after)))


def _launches(node: Node[Any]) -> Iterator[Statement]:
    launched = getattr(node.spec, "launched", None)
    if isinstance(launched, str):
        for years in (-10, YEARS):
            after = f"{int(launched[:4]) + years}{launched[4:]}"
            if years > 0 or any("spec.launched" in claim.at for claim in node.claims):
                spec = evolve(node.spec, launched=after)
                yield Statement("date", f"{node.name} launched {launched} -> {after}", evolve(node, spec=spec))


def _sources(graph: Graph, node: Node[Any]) -> Iterator[Statement]:
    """The page of another product for a document, and the page of the adopted figure for a claim that contradicts it."""
    own = node.metadata.source
    if own is not None and node.kind in ("Chip", "Server", "UltraServer"):
        for other in graph.of(type(node.spec)):
            page = other.metadata.source
            if page is not None and page.name != own.name and is_about_another(page.name, own.name):
                metadata = evolve(node.metadata, source=Ref(page.name))
                yield Statement("source", f"{node.name} {own} -> {page}", evolve(node, metadata=metadata))
    for index, claim in enumerate(node.claims):
        for path in claimed_paths(claim.at)[:1]:
            adopted = source_of(node, path)
            if adopted is not None and adopted.name != claim.source.name and _differs(node, index):
                text = f"{node.name} claim {index} {claim.source} -> {adopted}"
                yield Statement(
                    "source", text, _with_claim(node, index, source=Ref(adopted.name), where=_where(node, path))
                )


def _where(node: Node[Any], path: Any) -> str | None:
    from trnspec.graph.graph import figure_at

    figure = figure_at(node, path)
    return getattr(figure, "where", None)


def is_about_another(page: str, own: str) -> bool:
    """Whether both pages are named after a generation, such as trn1 and trainium2, and after different ones."""
    named = [_GENERATION.findall(name) for name in (page, own)]
    return all(named) and not {number or "1" for number in named[0]} & {number or "1" for number in named[1]}


def _verdicts(graph: Graph, node: Node[Any]) -> Iterator[Statement]:
    for index, claim in enumerate(node.claims):
        if claim.verdict in (None, "agrees") or not _differs(node, index):
            continue
        for verdict in ("rounded", "agrees", None):
            if verdict != claim.verdict:
                changed = _with_claim(node, index, verdict=verdict, scope=None)
                yield Statement("verdict", f"{node.name} claim {index} {claim.verdict} -> {verdict}", changed)


def _differs(node: Node[Any], index: int) -> bool:
    """Whether the value of a claim is far from the adopted one."""
    claim = node.claims[index]
    if claim.verdict == "other-scope":
        return False
    for path in claimed_paths(claim.at)[:1]:
        one, two = Site(node, path, index).value, Site(node, path).value
        if isinstance(one, Quantity) and isinstance(two, Quantity) and one.value and two.value:
            low, high = sorted((one.value, two.value))
            return high > low * FAR and not one.loose.overlaps(two.loose)
    return False


def _with_claim(node: Node[Any], index: int, **changes: Any) -> Node[Any]:
    claims = [evolve(claim, **changes) if i == index else claim for i, claim in enumerate(node.claims)]
    return evolve(node, claims=tuple(claims))
