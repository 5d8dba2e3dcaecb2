"""Claims that contradict each other where no figure is adopted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from attrs import frozen

from trnspec.checks.reconcile.hints import Budget
from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, explain, explain_case
from trnspec.checks.reconcile.relations import AGREES, failing, sums_of
from trnspec.checks.reconcile.sites import PartsTerm, Site, claimed
from trnspec.checks.reconcile.suspects import Suspect, precedence
from trnspec.graph.graph import Graph, figure_at
from trnspec.graph.provenance import claims_at
from trnspec.model.document import Node
from trnspec.model.reflection import FigureShape, NumberShape, dotted, shape_at
from trnspec.model.source import Source
from trnspec.plugins.api import Finding
from trnspec.quantities.quantity import Quantity
from trnspec.yaml import Path

_EITHER = ("rounding", "truncation", "part-for-whole", "whole-for-part")
"""Causes that are reported for either claim, because each applies to one side only."""


@frozen
class Conflict:
    """Two claims of one document that contradict each other where no figure is adopted.

    Attributes:
        doubted: The claim with the lower precedence.
        other: The claim with the higher precedence.
        paths: Every path that both claims concern, at least one; the first is that of the two sites.
    """

    doubted: Site
    other: Site
    paths: tuple[Path, ...]


MOST_IN_PAIRS = 8
"""The most claims on one figure that are compared in pairs: a document with thousands would have millions of pairs."""


def conflicts(graph: Graph) -> Iterator[Conflict]:
    """Every pair of claims without a verdict that contradict each other where no figure is adopted, each pair once.

    A claim that contradicts a sum is reported with the sum and not here.
    """
    reported = {site.key for relation in failing(graph) for site in relation.sites}
    for node in graph.focused():
        pairs: dict[tuple[int, int], list[Path]] = {}
        for path, indices in _open(node).items():
            sites = {index: Site(node, path, index) for index in indices}
            for one, two in _pairs(indices, sites, graph):
                relation = claimed(sites[one], sites[two])
                is_new = not reported.intersection((sites[one].key, sites[two].key))
                if is_new and relation.is_stated and not relation.holds:
                    pairs.setdefault((one, two), []).append(path)
        for pair, paths in pairs.items():
            first, last = (Site(node, paths[0], index) for index in pair)
            doubted, other = (first, last) if _precedence(first, graph) < _precedence(last, graph) else (last, first)
            yield Conflict(doubted, other, tuple(paths))


def _pairs(indices: list[int], sites: Mapping[int, Site], graph: Graph) -> Iterator[tuple[int, int]]:
    """The claims on one figure that are compared: all pairs; of many, each with the one of the highest precedence."""
    if len(indices) <= MOST_IN_PAIRS:
        yield from combinations(indices, 2)
        return
    best = max(indices, key=lambda index: _precedence(sites[index], graph))
    yield from ((min(index, best), max(index, best)) for index in indices if index != best)


def conflict_finding(conflict: Conflict, graph: Graph, budget: Budget) -> Finding:
    """The finding for a conflict: both values with source and date, and the likely cause."""
    doubted, other = conflict.doubted, conflict.other
    more = len(conflict.paths) - 1
    what = f"{dotted(doubted.path[1:])}{f' and {more} more' if more else ''} of {doubted.node.name}"
    message = f"{what} is {_described(doubted, graph)}, but {_described(other, graph)}, and no figure is adopted"
    likely = budget.sentence(doubted.node, lambda: causes(conflict, graph))
    hint = f"add a verdict and a reason to one of them; {likely}"
    return Finding(doubted.place, message, hint, (other.location,), node=doubted.node)


def causes(conflict: Conflict, graph: Graph) -> list[Explanation]:
    """The explanations that close the gap, for the claim with the lower precedence.

    The other claim may be wrong as well: its lost digits and part-for-whole errors are included, and its other causes
    only if the first claim has none.
    """
    doubted, other = conflict.doubted, conflict.other
    own, others = _causes(doubted, other, graph), _causes(other, doubted, graph)
    return [*own, *(e for e in others if not own or (e.id in _EITHER and e.id not in {o.id for o in own}))]


def _open(node: Node[Any]) -> dict[Path, list[int]]:
    """The claims without a verdict, by path, for figures and counts that have no adopted value."""
    return {
        path: [i for i in indices if node.claims[i].verdict in AGREES and _measures(Site(node, path, i))]
        for path, indices in claims_at(node).items()
        if figure_at(node, path) is None
    }


def _measures(site: Site) -> bool:
    """True for a claim with a value of the right type; a wrong dimension is reported elsewhere."""
    shape, value = shape_at(type(site.node.spec), site.path[1:]), site.value
    if isinstance(shape, FigureShape):
        return isinstance(value, Quantity) and shape.dimension in (None, value.dimension)
    return isinstance(shape, NumberShape) and isinstance(value, int)


def _precedence(site: Site, graph: Graph) -> tuple[tuple[bool, str, int], int]:
    """A sort key that is largest for the claim that would be adopted: that of its source, then the first in the file."""
    assert site.claim is not None  # both sides are claims
    return precedence(site, graph), -site.claim


def _described(site: Site, graph: Graph) -> str:
    assert site.claim is not None  # both sides are claims
    name = site.node.claims[site.claim].source
    source = graph.lookup(name.name, Source)
    return f"{site.value} according to {name}" + ("" if source is None else f" ({source.spec.as_of})")


def _causes(site: Site, other: Site, graph: Graph) -> list[Explanation]:
    """The explanations of one claim if the other one is right."""
    relation, value = claimed(site, other), site.value
    if not isinstance(value, Quantity):
        return explain(Suspect(site, (relation,)), graph)
    terms, shares = list(relation.terms), []
    for skeleton in sums_of(site, graph):
        for known in skeleton.terms:
            if skeleton.across or not known.counts or any(count.value is None for count in known.counts):
                continue
            # The claim may be of one part instead of the whole, or the reverse.
            term = PartsTerm(known.counts, site)
            if skeleton.total.key[:2] == site.key[:2]:
                terms.append(term)
            elif known.part.key[:2] == site.key[:2]:
                shares.append((term.times, value))
    explanations = explain_case(Mismatch(site, value, (other.interval,), tuple(terms), tuple(shares), graph))
    # Another open claim with the same value is not an explanation.
    return [e for e in explanations if not (e.id == "older-claim" and "(agrees)" in e.sentence)]
