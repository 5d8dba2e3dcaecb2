"""Audit of a catalog: disagreements with their values, sources, dates, gap, likely causes, and the adopted figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from attrs import field, frozen

from trnspec.checks.reconcile.conflicts import causes, conflicts
from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, explain, explain_case
from trnspec.checks.reconcile.judge import Outcome, outcome
from trnspec.checks.reconcile.relations import AGREES, relations, sums_by_source, sums_of
from trnspec.checks.reconcile.sites import PartsTerm, Site
from trnspec.checks.reconcile.suspects import blamed
from trnspec.graph.graph import Graph, figure_at
from trnspec.graph.provenance import credited_source
from trnspec.model.document import Claim, Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import dotted, spread
from trnspec.model.source import Source
from trnspec.quantities.quantity import Interval, Quantity, render
from trnspec.text_table import plural
from trnspec.yaml import Path

Rounding = Literal["explains it", "explains it only if trailing zeros are not significant", "cannot explain it", "-"]


@frozen
class SourceValue:
    """The value of one source.

    Attributes:
        says: The value as printed.
        source: The name of the source; ``computed`` for a total of parts.
        as_of: The date of the source.
        where: The place in the source.
    """

    says: str
    source: str
    as_of: str = ""
    where: str = ""


@frozen(kw_only=True)
class Disagreement:
    """One figure, and the values that disagree with it.

    Attributes:
        name: The document.
        at: The path, or several, as in the claim.
        adopted: The adopted or computed value; ``None`` if there is neither.
        conflicting: The sources with a conflicting value; all have the same value, except in a pair.
        gap: (conflicting - adopted) / adopted.
        rounding: Whether rounding alone can explain the gap.
        causes: The explanations that close the gap.
        verdict: The verdict of the claim; ``found`` for a disagreement without a verdict.
        reason: The reason of the verdict.
    """

    name: str
    at: str
    adopted: SourceValue | None
    conflicting: tuple[SourceValue, ...]
    gap: float | None = None
    rounding: Rounding = "-"
    causes: tuple[Explanation, ...] = ()
    verdict: str
    reason: str = ""

    @property
    def is_pair(self) -> bool:
        """True for two claims that contradict each other where no figure is adopted; the gap is that of the first."""
        return self.adopted is None and self.verdict == "found"


@frozen
class View:
    """Consistency of the figures of one source.

    Attributes:
        source: The name of the source.
        as_of: Its date.
        closing: The number of sums that close.
        contradicting: The sums that do not, one sentence each.
    """

    source: str
    as_of: str
    closing: int
    contradicting: tuple[str, ...]


@frozen
class Audit:
    """The result of an audit."""

    disagreements: tuple[Disagreement, ...]
    views: tuple[View, ...] = field(default=())


def audit(graph: Graph, names: frozenset[str] = frozenset()) -> Audit:
    """Every disagreement of a graph."""
    every = [*_findings(graph), *_pairs(graph), *_recorded(graph, names), *_coarse(graph), *_words(graph)]
    shown = [d for d in every if not names or d.name in names]
    views = () if names else tuple(_views(graph))
    return Audit(tuple(shown), views)


def _date(graph: Graph, name: str) -> str:
    node = graph.nodes.get(name)
    return node.spec.as_of if node is not None and isinstance(node.spec, Source) else ""


def _findings(graph: Graph) -> Iterator[Disagreement]:
    """The findings of the rules: sums that fail, and claims without a verdict that contradict the adopted figure."""
    for suspect in blamed(graph):
        site, relation = suspect.site, suspect.failing[0]
        expected = relation.expects(site)
        others = tuple(
            SourceValue(str(s.value), s.node.claims[s.claim].source.name if s.claim is not None else s.node.name)
            for s in relation.sites
            if s.key != site.key
        )
        yield Disagreement(
            name=site.node.name,
            at=dotted(site.path),
            adopted=SourceValue(str(site.value), "found"),
            conflicting=others,
            gap=None if expected is None else _gap(expected, site.interval),
            rounding="cannot explain it",
            causes=tuple(explain(suspect, graph)),
            verdict="found",
            reason=f"{relation.level}: {len(suspect.failing)} relation(s) fail",
        )


def _pairs(graph: Graph) -> Iterator[Disagreement]:
    """Claims without a verdict that contradict each other where no figure is adopted."""
    for conflict in conflicts(graph):
        doubted, other = conflict.doubted, conflict.other
        value = doubted.value
        assert value is not None  # both claims have the dimension of the figure
        yield Disagreement(
            name=doubted.node.name,
            at=", ".join(dotted(path) for path in conflict.paths),
            adopted=None,
            conflicting=tuple(_side(graph, s.node.claims[s.claim]) for s in (doubted, other) if s.claim is not None),
            gap=_gap(doubted.interval, other.interval),
            rounding=_ROUNDINGS[outcome(value, other.interval)],
            causes=tuple(causes(conflict, graph)),
            verdict="found",
            reason="neither claim has a verdict",
        )


COARSE = 0.05
"""The smallest relative gap at which a sum is reported that closes only because a figure has few digits."""


def _coarse(graph: Graph) -> Iterator[Disagreement]:
    """Sums that close only because a figure has so few digits that most values agree with it."""
    for relation in relations(graph):
        total, value = relation.total, relation.total.value
        gap = _gap(total.interval, relation.expected)
        if relation.is_claim or not isinstance(value, Quantity) or gap is None or abs(gap) < COARSE:
            continue
        if relation.holds:
            computed = (
                f"{render(relation.expected.middle, value.unit, 3)} = {' + '.join(str(t) for t in relation.terms)}"
            )
            digits = plural(value.digits, "digit")
            yield Disagreement(
                name=total.node.name,
                at=dotted(total.path),
                adopted=_of(graph, value, _source(total)),
                conflicting=(SourceValue(computed, "computed"),),
                gap=_gap(relation.expected, total.interval),
                rounding="explains it",
                causes=(Explanation("coarse", f"{value} has {digits}, so most values agree with it"),),
                verdict="coarse",
                reason="",
            )


def _source(site: Site) -> str:
    source = credited_source(site.node, site.path)
    return source.name if source is not None else ""


NO_FIGURE = frozenset({"yes", "no", "n/a", "not applicable"})
"""Words that tables print instead of a figure."""


def _words(graph: Graph) -> Iterator[Disagreement]:
    """Words instead of figures that other sources or systems have."""
    for node in graph:
        for index, claim in enumerate(node.claims):
            if str(claim.says).lower() not in NO_FIGURE or claim.verdict not in AGREES:
                continue
            path = (*spread(claim.at)[0], "bandwidth")
            adopted = _adopted(graph, node, path)[0]
            published = "was published elsewhere" if adopted is not None else "was not published"
            yield Disagreement(
                name=node.name,
                at=claim.at,
                adopted=adopted,
                conflicting=(_side(graph, node.claims[index]),),
                causes=(Explanation("word", f"a word instead of a figure, which {published}"),),
                verdict="word",
                reason=claim.reason or "",
            )


def _recorded(graph: Graph, names: frozenset[str]) -> Iterator[Disagreement]:
    """The claims with a verdict; of some documents alone, because causes take most of the time."""
    for node in (n for n in graph if not names or n.name in names):
        groups: dict[tuple[str, str, str | None], list[int]] = {}
        for index, claim in enumerate(node.claims):
            if claim.verdict not in AGREES:
                groups.setdefault((claim.at, _normal(node, index), claim.verdict), []).append(index)
        for indices in groups.values():
            yield _disagreement(graph, node, indices)


def _normal(node: Node[Any], index: int) -> str:
    claim = node.claims[index]
    value = Site(node, (), index).value
    return f"{value.value}{value.dimension}" if isinstance(value, Quantity) else str(claim.says)


def _disagreement(graph: Graph, node: Node[Any], indices: list[int]) -> Disagreement:
    claim = node.claims[indices[0]]
    paths = spread(claim.at)
    path = next((p for p in paths if figure_at(node, p) is not None), paths[0])
    adopted, interval, terms = _adopted(graph, node, path)
    site = Site(node, path, indices[0])
    value = site.value
    gap: float | None = None
    rounding: Rounding = "-"
    causes: tuple[Explanation, ...] = ()
    if interval is not None and value is not None:
        count = Site(node, path).value
        # The interval of a rounded count, such as 13B, is not symmetric.
        gap = _gap(site.interval, Interval.point(count) if isinstance(count, int) else interval)
        rounding = _ROUNDINGS[outcome(value, interval)]
        causes = tuple(_causes(site, value, interval, terms, graph))
    return Disagreement(
        name=node.name,
        at=claim.at,
        adopted=adopted,
        conflicting=tuple(_side(graph, node.claims[i]) for i in indices),
        gap=gap,
        rounding=rounding,
        causes=causes,
        verdict=str(claim.verdict),
        reason=" ".join(dict.fromkeys(r for i in indices if (r := node.claims[i].reason))),
    )


def _side(graph: Graph, claim: Claim) -> SourceValue:
    return _of(graph, claim.says, claim.source.name, claim.where or "")


def _of(graph: Graph, says: object, name: str, where: str = "") -> SourceValue:
    return SourceValue(str(says), name, _date(graph, name), where)


def _adopted(
    graph: Graph, node: Node[Any], path: Path
) -> tuple[SourceValue | None, Interval | None, tuple[PartsTerm, ...]]:
    """The adopted figure at a path, or else the sum of its parts; and the terms of the sum."""
    site = Site(node, path)
    totals = [r for r in sums_of(site, graph) if r.total.key == site.key and len(r.terms) == 1 and r.has_parts]
    skeleton = totals[-1] if totals else None
    terms = skeleton.terms if skeleton is not None else ()
    if site.value is not None:
        figure = figure_at(node, path)
        is_derived = isinstance(figure, Figure) and figure.derived is not None
        shown = figure if isinstance(figure, Figure) else site.value
        return _of(graph, shown, "derived" if is_derived else _source(site)), site.interval, terms
    if skeleton is not None:
        value, expected = skeleton.terms[0].part.value, skeleton.expected
        if isinstance(value, Quantity) and expected.high is not None:
            text = render(expected.middle, value.unit, value.digits + 2)
            return SourceValue(f"{text} = {skeleton.terms[0]}", "computed"), expected, terms
    return None, None, ()


def _gap(value: Interval, other: Interval) -> float | None:
    """The relative distance of the midpoints; ``None`` if one interval is unbounded or 0."""
    if value.high is None or other.high is None or other.low + other.high == 0:
        return None
    return float((value.low + value.high) / (other.low + other.high) - 1)


_ROUNDINGS: dict[Outcome, Rounding] = {
    "agrees": "explains it",
    "rounded": "explains it only if trailing zeros are not significant",
    "differs": "cannot explain it",
}


def _causes(
    site: Site, value: Quantity | int, interval: Interval, terms: tuple[PartsTerm, ...], graph: Graph
) -> Iterator[Explanation]:
    assert site.claim is not None  # only claims have verdicts
    if isinstance(value, Quantity):
        yield from explain_case(Mismatch(site, value, (interval,), terms, (), graph))
    claim = site.node.claims[site.claim]
    older, newer = _date(graph, claim.source.name), _date(graph, _source(Site(site.node, site.path)))
    if claim.verdict == "superseded" and older and newer and older < newer:
        yield Explanation("older-text", f"an older text: {older} against {newer}")


def _views(graph: Graph) -> Iterator[View]:
    by_source = sums_by_source(graph)
    for source in graph.of(Source):
        if sums_of_source := by_source.get(source.name, []):
            failing = tuple(
                f"{r.total} {r.total.value}; its own parts: {' + '.join(str(t) for t in r.terms)}"
                for r in sums_of_source
                if not r.holds
            )
            yield View(source.name, source.spec.as_of, len(sums_of_source) - len(failing), failing)
