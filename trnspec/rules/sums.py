"""Totals against their parts."""

from __future__ import annotations

from collections.abc import Iterator

from trnspec.diagnostics import Location
from trnspec.graph import Graph
from trnspec.model.figure import Figure
from trnspec.plugin import Finding, rule
from trnspec.quantity import Interval, render
from trnspec.rules.blame import Suspect, suspects
from trnspec.rules.hypotheses import expected, explain, sentence
from trnspec.rules.relations import Relation, Site, relations
from trnspec.units import Unit


@rule("TRN402", "aggregate-mismatch")
def aggregate_mismatch(graph: Graph) -> Iterator[Finding]:
    """A total that its parts do not add up to.

    Why:
        A page prints the figure of a chip and, in another table, the total of the server.  One of the two is often
        older, counted otherwise, or in another unit, and whoever copies the wrong one plans with it.  The figures are
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
    for suspect in suspects(relations(graph)):
        yield _finding(suspect, graph)


def _finding(suspect: Suspect, graph: Graph) -> Finding:
    site, relation = suspect.site, suspect.failing[0]
    message = f"{site} is {site.value}, but {_arithmetic(relation, site)}"
    more = len(suspect.failing) - 1
    if more:
        message += f"; {more} more total{'s' if more > 1 else ''} fail{'' if more > 1 else 's'} because of it"
    see: list[Location] = []
    for other in suspect.failing:
        see += [s.location for s in other.sites if s.key != site.key]
    unique = tuple(dict.fromkeys(see))
    return Finding(site.path, message, sentence(explain(suspect, graph)), unique[:6], node=site.node)


def _arithmetic(relation: Relation, site: Site) -> str:
    """The calculation that the site contradicts, told with the site as the unknown."""
    part, total, times = relation.part.value, relation.total.value, relation.times
    if site.key == relation.total.key:
        return f"{_product(relation)} = {_show(relation.expected, total, part)} ({relation.level})"
    wanted = _show(expected(Suspect(site, (relation,)))[0], site.value, total if site.key == relation.part.key else None)
    return f"{relation.total} is {total} = {times} x {wanted if site.key == relation.part.key else part} ({relation.level})"


def _product(relation: Relation) -> str:
    counts = [f"{c.value}" for c in relation.counts]
    return " x ".join([*counts, f"{relation.part.value} of {relation.part.node.name}"])


def _show(interval: Interval, like: Figure | int | None, other: Figure | int | None) -> str:
    """An expected interval in the unit of what it is compared with, to as many digits as it has."""
    if not isinstance(like, Figure):
        low = interval.low
        return f"{low}" if low.denominator == 1 else f"{float(low):g}"
    unit: Unit = like.value.unit
    digits = max(like.value.digits, other.value.digits if isinstance(other, Figure) else 0, 3)
    if interval.high is None:
        return f"at least {render(interval.low, unit, digits)}"
    return render((interval.low + interval.high) / 2, unit, digits)
