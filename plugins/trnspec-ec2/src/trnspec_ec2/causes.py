"""Possible causes of a difference between a record and the catalog: the hypotheses of trnspec, and other figures of the record."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec import Interval, Quantity
from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, explain_case
from trnspec.checks.reconcile.sites import PartsTerm, Site
from trnspec.graph.graph import figure_at
from trnspec.graph.totals import total
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec_ec2.statements import DEVICES, Statement, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec import Graph, Node
    from trnspec.yaml import Path
    from trnspec_ec2.comparing import Parts

_ROW = re.compile(r"this is the figure of (?P<row>\S+)(?P<more>.*): (?P<figure>.*)")
_TOTAL: Path = ("spec", "stated", "memory", "capacity")
_ONE: Path = ("spec", "memory", "capacity")


def causes(
    statement: Statement, target: Target, wanted: Interval | None, parts: Parts, data: Mapping[str, Any]
) -> tuple[Explanation, ...]:
    """The explanations that close the gap between a statement and the catalog, the most specific first.

    Args:
        statement: The statement of the record.
        target: Its attribute.
        wanted: The value of the catalog, in base units.
        parts: The documents of the type.
        data: The whole record.
    """
    explanations: list[Explanation] = []
    if isinstance(statement.says, Quantity) and wanted is not None and statement.says.value != 0:
        explanations += _within(statement, data)
        if statement.id == "device-memory":
            explanations += _of_many(statement.says, parts)
        for case in _cases(statement.says, target, wanted, parts):
            explanations += (e for e in (_placed(e, case) for e in explain_case(case)) if e not in explanations)
    elif isinstance(statement.says, int):
        explanations += _counts(statement.says, target, parts)
    return tuple(explanations)


def _within(statement: Statement, data: Mapping[str, Any]) -> Iterator[Explanation]:
    """A total that follows from the figure of one part in the same record; the figure of the part is then the cause."""
    for info, listed, whole in DEVICES:
        if statement.where != f"{info}.{whole}":
            continue
        each = [d for d in data[info].get(listed, ()) if "Count" in d and "SizeInMiB" in d.get("MemoryInfo", {})]
        sizes = [d["Count"] * d["MemoryInfo"]["SizeInMiB"] for d in each]
        if sizes and sum(sizes) == data[info][whole] and (len(each) > 1 or each[0]["Count"] > 1):
            formula = " + ".join(f"{d['Count']} x {d['MemoryInfo']['SizeInMiB']:,} MiB" for d in each)
            yield Explanation("same-record", f"it is {formula}, the figure of one chip in the same record")


def _of_many(says: Quantity, parts: Parts) -> Iterator[Explanation]:
    """The figure of one chip equals the total of all chips of another size."""
    for server in parts.graph.of(Server):
        memory = total(parts.graph, server, _ONE)
        if memory is None or memory.count == 1 or server.name == parts.server.name:
            continue
        if float(memory) == float(says):
            sentence = (
                f"{memory} is the memory of {memory.count} chips of {memory.figure}, {memory.part.name}: {server.name}"
            )
            yield Explanation("total-of-another", sentence)
            return


def _cases(says: Quantity, target: Target, wanted: Interval, parts: Parts) -> Iterator[Mismatch]:
    """The possible meanings of a figure: that of one chip, or the total of all chips."""
    node = parts.node(target.part)
    assert node is not None  # the attribute has a value
    own = _site(node, tuple(target.path.split(".")), parts.graph)
    if target.part == "chip" and own.path == _ONE:
        whole = _site(parts.server, _TOTAL, parts.graph)
        count = parts.server.spec.chips.count
        stated = figure_at(whole.node, _TOTAL)
        shares = ((Fraction(count), stated.value),) if stated is not None and count > 1 else ()
        yield Mismatch(own, says, (wanted,), (), shares, parts.graph)
        # As the total of all chips: for instance 16 x the figure of another generation.
        yield Mismatch(whole, says, (wanted.scaled(count),), (_term(parts, own),), (), parts.graph)
    elif own.path == _TOTAL and parts.chip is not None:
        part = _site(parts.chip, _ONE, parts.graph)
        yield Mismatch(own, says, (wanted,), (_term(parts, part),), (), parts.graph)
    else:
        yield Mismatch(own, says, (wanted,), (), (), parts.graph)


def _placed(explanation: Explanation, case: Mismatch) -> Explanation:
    """The explanation with the full path of another figure of the document: ``baseline`` alone is ambiguous."""
    match = _ROW.fullmatch(explanation.sentence) if explanation.id == "swapped-row" else None
    if match is None:
        return explanation
    # The figure of a part is multiplied by the number of parts.
    sites = [t.part for t in case.terms] if " x " in match["figure"] else [case.site]
    for site in sites:
        for path in ((*site.path[:-1], match["row"]), ("spec", *match["row"].split("."))):
            if figure_at(site.node, path) is not None:
                where = f"{'.'.join(map(str, path))} of {site.node.name}{match['more']}"
                return evolve(explanation, sentence=f"this is the figure at {where}: {match['figure']}")
    return explanation


def _term(parts: Parts, part: Site) -> PartsTerm:
    return PartsTerm((Site(parts.server, ("spec", "chips", "count")),), part)


def _site(node: Node[Any], path: Path, graph: Graph) -> Site:
    """A site whose document keeps only the superseded claims.

    Other claims with the same value, those of the API included, are not an explanation.
    """
    kept = tuple(c for c in node.claims if c.verdict == "superseded" and not _is_api(graph, c.source.name))
    return Site(evolve(node, claims=kept, positions=()), path)


def _is_api(graph: Graph, source: str) -> bool:
    node = graph.nodes.get(source)
    return node is not None and isinstance(node.spec, Source) and node.spec.rank == "vendor-api"


def _counts(says: int, target: Target, parts: Parts) -> Iterator[Explanation]:
    """The explanations for a count: that of another size, that of all chips instead of one, or the reverse."""
    path = tuple(target.path.split("."))
    node = parts.node(target.part)
    assert node is not None  # the attribute has a value
    count, own = parts.server.spec.chips.count, figure_at(node, path)
    if target.path == "spec.cores.count" and count > 1 and says == count * own:
        yield Explanation("whole-for-part", f"the total, {count} x {own}, was used for one chip")
    if target.path == "spec.chips.count" and parts.chip is not None and parts.chip.spec.cores is not None:
        cores = parts.chip.spec.cores.count
        if cores > 1 and says == own * cores:
            yield Explanation("cores-for-chips", f"cores are counted, not chips: {own} x {cores}")
    if target.path == "spec.host.vcpus" and own == 2 * says:
        yield Explanation("cores-for-vcpus", "physical cores are counted, not vCPUs: each has two")
    others = [n.name for n in parts.graph.of(type(node.spec)) if n.name != node.name and figure_at(n, path) == says]
    if others:
        more = len(others) - 1
        words = f"{others[0]}{f' and {more} other' + 's' * (more > 1) if more else ''}"
        yield Explanation("neighbour", f"this is the count of {words}")
