"""The sums among the figures of each source, which distinguish an outdated page from one that contradicts itself."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.checks.reconcile.relations import claimed_paths, sums
from trnspec.checks.reconcile.sites import Relation, Site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.yaml import Path

_cache: weakref.WeakKeyDictionary[Graph, dict[str, list[Relation]]] = weakref.WeakKeyDictionary()


def views(graph: Graph) -> Mapping[str, list[Relation]]:
    """For each source, by name, the sums among its own figures for totals and parts, with the adopted counts."""
    by_source = _cache.get(graph)
    if by_source is None:
        by_source = _cache[graph] = defaultdict(list)
        sites = functools.cache(functools.partial(_sites, graph))
        for skeleton in sums(graph, lambda total: total.path in sites(total.node), graph.scope):
            where = [sites(s.node).get(s.path, {}) for s in (skeleton.total, *(t.part for t in skeleton.terms))]
            for source in set(where[0]).intersection(*where[1:]):
                by_source[source] += _relations(skeleton, [sites_at[source] for sites_at in where])
    return by_source


def _relations(skeleton: Relation, sides: list[list[Site]]) -> Iterator[Relation]:
    for total, *parts in itertools.product(*sides):
        terms = tuple(evolve(t, part=p) for t, p in zip(skeleton.terms, parts, strict=True))
        relation = evolve(skeleton, total=total, terms=terms)
        if relation.is_stated:
            yield relation


def _sites(graph: Graph, node: Node[Any]) -> Mapping[Path, Mapping[str, list[Site]]]:
    """The figures of each source in a document by path: adopted figures and claims."""
    sites: dict[Path, dict[str, list[Site]]] = defaultdict(lambda: defaultdict(list))
    for path, figure in graph.figures(node).items():
        own = figure.source or node.metadata.source
        if figure.derived is None and own is not None:
            sites[path][graph.aliases.get(own.name, own.name)].append(Site(node, path))
    for index, claim in enumerate(node.claims):
        source = graph.aliases.get(claim.source.name, claim.source.name)
        for path in claimed_paths(claim.at):
            sites[path][source].append(Site(node, path, index))
    return sites
