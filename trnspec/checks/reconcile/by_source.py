"""The sums among the figures of each source, which distinguish an outdated page from one that contradicts itself."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.checks.reconcile.relations import claims_at, sums
from trnspec.checks.reconcile.sites import Relation, Site
from trnspec.graph.graph import cached_by_graph, figure_at
from trnspec.graph.provenance import source_of
from trnspec.model.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.model.ref import Ref
    from trnspec.model.source import Source
    from trnspec.yaml import Path


@cached_by_graph
def views(graph: Graph) -> Mapping[str, list[Relation]]:
    """For each source, by name, the sums among its own figures for totals and parts, with the adopted counts."""
    return _grouped(_views(graph))


def contradictions(graph: Graph) -> Mapping[str, list[Relation]]:
    """Relations that do not hold; the others are not kept."""
    return _grouped((source, relation) for source, relation in _views(graph) if not relation.holds)


def _grouped(relations: Iterable[tuple[str, Relation]]) -> dict[str, list[Relation]]:
    by_source: dict[str, list[Relation]] = {}
    for source, relation in relations:
        by_source.setdefault(source, []).append(relation)
    return by_source


def _views(graph: Graph) -> Iterator[tuple[str, Relation]]:
    for skeleton in sums(graph, _has_source, graph.scope):
        of_total = _sources(graph, skeleton.total.node, skeleton.total.path)
        if not of_total:
            continue
        where = [of_total, *(_sources(graph, t.part.node, t.part.path) for t in skeleton.terms)]
        for source in of_total:
            if all(source in sources for sources in where):
                for relation in _relations(skeleton, [sources[source] for sources in where]):
                    yield source, relation


def _relations(skeleton: Relation, sides: list[list[int | None]]) -> Iterator[Relation]:
    whole = skeleton.total
    for claim, *claims in itertools.product(*sides):
        terms = tuple(
            evolve(t, part=Site(t.part.node, t.part.path, c)) for t, c in zip(skeleton.terms, claims, strict=True)
        )
        relation = evolve(skeleton, total=Site(whole.node, whole.path, claim), terms=terms)
        if relation.is_stated:
            yield relation


def _has_source(node: Node[Any], path: Path) -> bool:
    """Whether a source gives the figure at a path: whether :func:`_sources` has one."""
    return path in claims_at(node) or _own_source(node, path) is not None


def _own_source(node: Node[Any], path: Path) -> Ref[Source] | None:
    figure = figure_at(node, path)
    if not isinstance(figure, Figure) or figure.derived is not None:
        return None
    return source_of(node, path)


def _sources(graph: Graph, node: Node[Any], path: Path) -> Mapping[str, list[int | None]]:
    """The sources of the figure at a path: ``None`` for the adopted figure, and the indices of claims."""
    sources: dict[str, list[int | None]] = {}
    own = _own_source(node, path)
    if own is not None:
        sources[graph.aliases.get(own.name, own.name)] = [None]
    for index in claims_at(node).get(path, ()):
        name = node.claims[index].source.name
        sources.setdefault(graph.aliases.get(name, name), []).append(index)
    return sources
