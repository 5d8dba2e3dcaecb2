"""Totals against their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.checks.reconcile.hypotheses import NOT_EXPLAINED, Budget, explain, sentence
from trnspec.checks.reconcile.sites import CLAIM, Relation, Site
from trnspec.checks.reconcile.suspects import Suspect, blamed
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Interval, Quantity, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph


@rule("TRN402", "aggregate-mismatch", local=True)
def aggregate_mismatch(graph: Graph) -> Iterator[Finding]:
    """A total that its parts do not add up to.

    Why:
        A page prints the figure of a chip and, in another table, the total of the server.  One of the two is often
        older, counted otherwise, or in another unit, and a plan that copies the wrong one is wrong.  The figures are
        compared as intervals, so that rounding is never reported; when several totals fail because of one figure, that
        figure is reported once.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 16}
          stated:
            memory: {capacity: 480 GiB}  #! TRN402
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 16}
          stated:
            memory: {capacity: 512 GiB}
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), chapter 2, for the arithmetic.
    """
    budget = Budget()
    for suspect in blamed(graph):
        if not suspect.is_claim:
            yield disagreement(suspect, graph, explained=budget.allows(suspect.site.node))


def disagreement(suspect: Suspect, graph: Graph, *, explained: bool = True) -> Finding:
    """The finding for a suspect: both values, the other places, and, if ``explained``, the likely cause."""
    site, relation = suspect.site, suspect.failing[0]
    message = f"{site} is {site.value}, but {_arithmetic(relation, site)}"
    sums = sum(not r.is_claim for r in suspect.failing[1:])
    claims = sum(r.is_claim for r in suspect.failing[1:])
    more = [f"{n} more {word}{'' if n == 1 else 's'}" for n, word in ((sums, "total"), (claims, "source")) if n]
    if more:
        message += f"; {' and '.join(more)} disagree{'s' if sums + claims == 1 else ''} with it"
    places = dict.fromkeys(s.location for r in suspect.failing for s in r.sites if s.key != site.key)
    hint = sentence(explain(suspect, graph)) if explained else NOT_EXPLAINED
    return Finding(site.place, message, hint, tuple(places)[:MOST_PLACES], node=site.node)


MOST_PLACES = 6
"""The maximum number of other places that a finding lists; a figure of a chip may be used in fifty."""


def _arithmetic(relation: Relation, site: Site) -> str:
    """The calculation that the site contradicts, solved for the site."""
    if site.key == relation.total.key:
        terms = " + ".join(str(t) for t in relation.terms)
        shown = _show(relation.expected, site.value, [t.part.value for t in relation.terms])
        return f"{terms} = {shown} ({relation.level})" if relation.level != CLAIM else f"{terms} is adopted"
    wanted = relation.expects(site)
    total = (
        f"{relation.total} {relation.total.value}"
        if relation.is_claim
        else f"{relation.total} is {relation.total.value}"
    )
    if relation.is_claim or wanted is None:
        return total
    return f"{total}, which needs {_show(wanted, site.value, [relation.total.value])} here ({relation.level})"


def _show(interval: Interval, like: Quantity | int | None, others: list[Quantity | int | None]) -> str:
    """An expected interval in the unit of what it is compared with, to as many digits as it has."""
    middle = interval.low if interval.high is None else (interval.low + interval.high) / 2
    if not isinstance(like, Quantity):
        return f"{middle}" if middle.denominator == 1 else f"{float(middle):.4g}"
    digits = max([3, like.digits, *(o.digits + 1 for o in others if isinstance(o, Quantity))])
    least = "at least " if interval.high is None else ""
    return least + render(middle, like.unit, digits)
