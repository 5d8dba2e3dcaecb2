"""Compare a stated value with the catalog, and explain a difference."""

from __future__ import annotations

from typing import Any, Literal

from attrs import frozen

from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, case_of, explain_case
from trnspec.checks.reconcile.relations import sums_of
from trnspec.checks.reconcile.sites import Site
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph
from trnspec.graph.paths import paths, place, unknown_path
from trnspec.graph.provenance import conflicting
from trnspec.graph.quotes import draws
from trnspec.graph.totals import total
from trnspec.model.document import Node
from trnspec.model.reflection import FigureShape, NumberShape, dotted, shape_at, steps_of
from trnspec.quantities.amount import Amount
from trnspec.quantities.quantity import Interval, Quantity, parse
from trnspec.yaml import Path

Outcome = Literal["agrees", "rounded", "differs"]
"""The result of a comparison:

``agrees``   the intervals of both values overlap;
``rounded``  they overlap if trailing zeros of the stated value are not significant;
``differs``  they do not overlap.
"""


@frozen(kw_only=True)
class Judgement:
    """A stated value compared with the catalog.

    Attributes:
        name: The document.
        at: The path of the figure, such as ``memory.bandwidth``.
        says: The stated value.
        value: The value of the catalog, adopted or computed from parts.
        formula: How a total is computed: ``16 x 2.9 TB/sec of trainium2``; empty for an adopted figure.
        outcome: The result of the comparison.
        factor: The stated value over that of the catalog; ``None`` where the latter is 0.
        causes: The explanations that close the gap, the likeliest first.
        facts: The facts that the value comes from, with their sources and the conflicting values.
    """

    name: str
    at: str
    says: str
    value: str
    formula: str
    outcome: Outcome
    factor: float | None
    causes: tuple[Explanation, ...]
    facts: tuple[Fact, ...]


def judge(graph: Graph, node: Node[Any], at: str, says: str) -> Judgement:
    """Compare a stated value with the catalog.

    Args:
        graph: The catalog.
        node: The document.
        at: A path of its kind, as in queries: of its own, of its parts, or a total over them. ``power`` may be stated by a
            document of the kind Power.
        says: A figure with its unit, or a count.

    Raises:
        UsageError: The path is not one of the kind, has no value in this document, or is not a figure or a count.
        QuantityError: ``says`` is not a figure of the dimension of the path.
    """
    field = place(graph, type(node.spec), at)
    if field is None:
        known_paths = list(paths(graph, type(node.spec)))
        hint = unknown_path(graph, type(node.spec), at) or did_you_mean(at, known_paths)
        raise UsageError(f"a {node.kind} has no {at}" + (f"; {hint}" if hint else ""))
    known = field.read(node)
    if known is None:
        stating = draws(graph, node) if at == "power" else ()
        if stating:
            return judge(graph, stating[0].document, at, says)
        claims = conflicting(graph, node).get(("spec", *at.split(".")), ())
        listed = "; ".join(f"{c.says}, {c.verdict} ({c.source}, {c.as_of})" for c in claims)
        raise UsageError(f"{node.name} has no adopted value at {at}" + (f"; claims: {listed}" if listed else ""))
    steps = steps_of(at)
    sites = _sites(graph, node, steps)
    stated: Quantity | int
    if isinstance(known.value, Amount):
        stated = parse(says, known.value.dimension, node.units)
        interval = known.value.interval
        factor = float(stated.value / known.value.value) if known.value.value else None
    elif isinstance(known.value, int):
        if not says.replace(",", "").isdecimal():
            raise UsageError(f"{at} is a count; {says!r} is not a whole number")
        stated = int(says.replace(",", ""))
        factor, interval = stated / known.value, Interval.point(known.value)
    else:
        raise UsageError(f"{at} of {node.name} is {known.text}; only figures and counts are compared")
    causes: tuple[Explanation, ...] = ()
    result = outcome(stated, interval)
    if isinstance(stated, Quantity) and result == "differs" and sites:
        causes = tuple(explain_case(_case(graph, sites[0], stated, interval)))
    whole = total(graph, node, ("spec", *steps)) if field.total else None
    return Judgement(
        name=node.name,
        at=at,
        says=says,
        value=known.text,
        formula="" if whole is None else " + ".join(f"{term} of {term.part.name}" for term in whole.terms),
        outcome=result,
        factor=factor,
        causes=causes,
        facts=tuple(fact for site in sites for fact in facts(graph, site.node) if fact.at == dotted(site.path[1:])),
    )


def outcome(stated: Quantity | int, interval: Interval) -> Outcome:
    """The result of the comparison of a stated value with an interval."""
    if isinstance(stated, int):
        return "agrees" if stated in interval else "differs"
    if stated.interval.overlaps(interval):
        return "agrees"
    return "rounded" if stated.loose.overlaps(interval) else "differs"


def _sites(graph: Graph, node: Node[Any], steps: Path) -> list[Site]:
    """Locations of the figure: in the document, as its printed total, and in the parts that a total is computed from."""
    own = [Site(node, ("spec", *path)) for path in (steps, ("stated", *steps)) if _measured(type(node.spec), path)]
    whole = total(graph, node, ("spec", *steps))
    parts = [] if whole is None else [Site(term.part, term.path) for term in whole.terms]
    return [*own, *(part for part in parts if part.key not in {s.key for s in own})]


def _measured(spec: type[Any], path: Path) -> bool:
    return isinstance(shape_at(spec, path), (FigureShape, NumberShape))


def _case(graph: Graph, site: Site, stated: Quantity, interval: Interval) -> Mismatch:
    """The case of a figure that disagrees with one value: its parts, and the totals that it is a part of."""
    known = (relation for relation in sums_of(site, graph) if relation.has_parts)
    return case_of(site, stated, [interval], known, graph)
