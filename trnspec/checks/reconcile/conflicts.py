"""Claims that exclude each other where nothing is adopted: neither is right until somebody says so."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, get_args

from attrs import frozen

from trnspec.checks.reconcile.hypotheses import Case, Explanation, explain, sentence, tried
from trnspec.checks.reconcile.relations import AGREES, claimed_paths, relations, sums
from trnspec.checks.reconcile.sites import CLAIM, Relation, Site, Term
from trnspec.checks.reconcile.suspects import Suspect
from trnspec.graph.graph import figure_at
from trnspec.model.reflection import FigureShape, NumberShape, dotted, shape_at
from trnspec.model.source import Rank, Source
from trnspec.plugins.api import Finding
from trnspec.quantities.quantity import Quantity
from trnspec.yaml import Path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node

_RANKS: tuple[str, ...] = get_args(Rank)
_EITHER = ("rounding", "truncation", "part-for-whole", "whole-for-part")
"""Causes that are told of whichever claim has them: each is of one side only, and the other cannot tell it."""


@frozen
class Conflict:
    """Two claims of one document that exclude each other where nothing is adopted.

    Attributes:
        doubted: The one that stands behind in the order by which a figure is adopted.
        other: The one that is before it.
        paths: Every path at which both speak, at least one; that of the two sites is the first.
    """

    doubted: Site
    other: Site
    paths: tuple[Path, ...]


def conflicts(graph: Graph) -> Iterator[Conflict]:
    """Every pair of claims without a verdict that exclude each other where nothing is adopted, each pair once.

    A claim that does not fit a sum is reported with the sum, and not once more here.
    """
    reported = {site.key for relation in relations(graph) if not relation.holds for site in relation.sites}
    for node in graph:
        found: dict[tuple[int, int], list[Path]] = {}
        for path, indices in _open(node).items():
            sites = {index: Site(node, path, index) for index in indices}
            for one, two in combinations(indices, 2):
                if not reported.intersection((sites[one].key, sites[two].key)) and _exclude(sites[one], sites[two]):
                    found.setdefault((one, two), []).append(path)
        for pair, paths in found.items():
            first, last = (Site(node, paths[0], index) for index in pair)
            doubted, other = (first, last) if _standing(first, graph) < _standing(last, graph) else (last, first)
            yield Conflict(doubted, other, tuple(paths))


def disputed(conflict: Conflict, graph: Graph) -> Finding:
    """The finding that tells of a conflict: both values, who says them and when, the likely cause."""
    doubted, other = conflict.doubted, conflict.other
    more = len(conflict.paths) - 1
    what = f"{dotted(doubted.path[1:])}{f' and {more} more' if more else ''} of {doubted.node.name}"
    message = f"{what} is {_said(doubted, graph)}, but {_said(other, graph)}, and nothing is adopted"
    hint = f"add a verdict and a reason to one of them; {sentence(causes(conflict, graph))}"
    return Finding(doubted.place, message, hint, (other.location,), node=doubted.node)


def causes(conflict: Conflict, graph: Graph) -> list[Explanation]:
    """What closes the gap, of the claim that is doubted.

    The other one may be wrong as well: told is whether it has lost digits or is of a part or of the whole, and any other
    cause of it only where the doubted one has none.
    """
    doubted, other = conflict.doubted, conflict.other
    own, others = _causes(doubted, other, graph), _causes(other, doubted, graph)
    return [*own, *(e for e in others if not own or (e.id in _EITHER and e.id not in {o.id for o in own}))]


def _source(site: Site, graph: Graph) -> Source | None:
    """The source of a claim; ``None`` where its name leads nowhere or to something else, which is reported elsewhere."""
    assert site.claim is not None  # a conflict is made of claims
    found = graph.find(site.node.claims[site.claim].source)
    return found.spec if found is not None and isinstance(found.spec, Source) else None


def _open(node: Node[Any]) -> dict[Path, list[int]]:
    """The claims that nobody has judged, by the path they speak of, where figures and counts belong and none stands."""
    found: dict[Path, list[int]] = {}
    for index, claim in enumerate(node.claims):
        for path in claimed_paths(claim.at) if claim.verdict in AGREES else ():
            if figure_at(node, path) is None and _measures(Site(node, path, index)):
                found.setdefault(path, []).append(index)
    return found


def _measures(site: Site) -> bool:
    """True for a claim that says what belongs there; a word does not, and another dimension is reported elsewhere."""
    shape, value = shape_at(type(site.node.spec), site.path[1:]), site.value
    if isinstance(shape, FigureShape):
        return isinstance(value, Quantity) and shape.dimension in (None, value.dimension)
    return isinstance(shape, NumberShape) and isinstance(value, int)


def _exclude(one: Site, two: Site) -> bool:
    relation = _relation(one, two)
    return relation.stands and not relation.holds


def _relation(site: Site, other: Site) -> Relation:
    return Relation(site, (Term((), other),), CLAIM)


def _standing(site: Site, graph: Graph) -> tuple[int, str, int]:
    """Sorts last what would be adopted: the nearer rank, then the newer text, then what stands first."""
    assert site.claim is not None  # a conflict is made of claims
    source = _source(site, graph)
    if source is None:
        return -len(_RANKS), "", -site.claim
    return -_RANKS.index(source.rank), source.as_of, -site.claim


def _said(site: Site, graph: Graph) -> str:
    assert site.claim is not None  # a conflict is made of claims
    source = _source(site, graph)
    date = f" ({source.as_of})" if source is not None else ""
    return f"{site.value}, says {site.node.claims[site.claim].source}{date}"


def _causes(site: Site, other: Site, graph: Graph) -> list[Explanation]:
    """What explains one claim if the other one is right."""
    relation, value = _relation(site, other), site.value
    if not isinstance(value, Quantity):
        return explain(Suspect(site, (relation,)), graph)
    terms, shares = list(relation.terms), []
    for counts, whole in _multiples(site, graph):
        # What the claim says may be of one part where the whole is asked for, or the reverse.
        term = Term(counts, site)
        if whole:
            terms.append(term)
        else:
            shares.append((term.times, value))
    found = tried(Case(site, value, (other.interval,), tuple(terms), tuple(shares), graph))
    # That another open claim says the same explains nothing.
    return [e for e in found if not (e.id == "older-claim" and "(agrees)" in e.sentence)]


def _multiples(site: Site, graph: Graph) -> Iterator[tuple[tuple[Site, ...], bool]]:
    """The counts of the sums that a path enters, each with whether it is their total or their part."""
    here = (site.node.name, site.path)
    for skeleton in sums(graph):
        for term in skeleton.terms:
            if skeleton.across or not term.counts or any(count.value is None for count in term.counts):
                continue
            for end in (skeleton.total, term.part):
                if (end.node.name, end.path) == here:
                    yield term.counts, end is skeleton.total
