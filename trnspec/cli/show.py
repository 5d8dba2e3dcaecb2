"""``trnspec show``: all that is known of one document, and on whose word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options
from trnspec.cli.names import completer, graph_for
from trnspec.cli.render import Block, Cell, Column, Table, emit, format_option, table, wrapped
from trnspec.graph.facts import Fact, facts, group, in_groups
from trnspec.model.chip import Chip
from trnspec.model.parts import CountRange
from trnspec.quantities.quantity import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.graph.totals import Sum, Total
    from trnspec.model.document import Node
    from trnspec.model.parts import PartCount
    from trnspec.quantities.quantity import Interval
    from trnspec.quantities.units import Unit


_Row = tuple[Cell, ...] | str


@click.command("show")
@click.argument("name", shell_complete=completer())
@click.option("--reasons", is_flag=True, help="Tell the notes and why each verdict was given.")
@format_option
@catalog_options
def command(name: str, reasons: bool, format_: str, **options: Any) -> None:  # noqa: FBT001  # click passes it by name
    """Print every figure of the document NAME with its interval, source, date and rivals, and its totals.

    An interval is what rounding leaves possible: [low, high) in the unit of the figure. Rivals, what others say, stand
    below the figure, each after the verdict on it.
    """
    graph = graph_for(name, **options)
    node = graph.named(name)
    found = facts(graph, node)
    emit(
        format_,
        lambda: _page(graph, node, found, reasons=reasons),
        lambda: _data(graph, node, found),
        lambda: _about(graph, node, found),
    )


def _about(graph: Graph, node: Node[Any], found: Sequence[Fact]) -> dict[str, Any]:
    head = node.metadata
    return {
        "name": node.name,
        "kind": node.kind,
        "title": head.title,
        "aliases": list(head.aliases),
        "source": None if head.source is None else head.source.name,
        "where": head.where,
        "note": head.note,
        "sources": {name: _of_source(graph.named(name)) for name in _cited(found) if name in graph},
    }


def _of_source(node: Node[Any]) -> dict[str, str]:
    spec = node.spec
    return {"title": node.metadata.title, "publisher": spec.publisher, "as_of": spec.as_of, "rank": spec.rank}


def _cited(found: Sequence[Fact]) -> dict[str, int]:
    """The sources of some facts and of their rivals, numbered in the order in which they appear."""
    names = (name for fact in found for name in (fact.source, *(r.source for r in fact.conflicting)) if name)
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


# For people.


def _page(graph: Graph, node: Node[Any], found: Sequence[Fact], *, reasons: bool) -> list[Block]:
    head = node.metadata
    lines = [f"{node.name}: {head.title} ({node.kind})"]
    if head.aliases:
        lines.append(wrapped("  also called  ", ", ".join(head.aliases)))
    if head.source is not None:
        lines.append(wrapped("  source       ", f"{head.source}{f', {head.where}' if head.where else ''}"))
    if head.note:
        lines.append(wrapped("  note         ", head.note))
    numbers = _cited(found)
    blocks: list[Block] = ["\n".join(lines)]
    if found:
        columns = [
            Column("figure", fold=True),
            Column("value", fold=True, keep=True),
            Column("interval", fold=True),
            Column("source", right=True, keep=True),
            Column("date", keep=True),
        ]
        rows = {f.at: list(_rows(f, numbers, reasons=reasons)) for f in found}
        blocks.append(table(columns, list(_grouped(rows))))
    totals = _sums(graph, node)
    if totals:
        names = (
            Column("total", fold=True),
            Column("value", keep=True),
            Column("interval"),
            Column("made of", fold=True),
        )
        added = {s.at: [(_last(s.at), s.text, _of_total(s.value), s.parts)] for s in totals}
        blocks.append(table(names, list(_grouped(added))))
    legend = [_legend(graph, number, name) for name, number in numbers.items()]
    if legend:
        blocks.append("\n".join(["sources", *legend]))
    if not reasons and any(f.note or f.reason or any(r.reason for r in f.conflicting) for f in found):
        blocks.append("--reasons tells notes, formulas and why each verdict was given.")
    return blocks


def _sums(graph: Graph, node: Node[Any]) -> tuple[Sum, ...]:
    if isinstance(node.spec, Chip):
        return ()
    # A question about a chip does not pay for the classes of servers.
    from trnspec.graph.totals import sums

    return sums(graph, node)


def _grouped(rows: Mapping[str, Sequence[_Row]]) -> Iterator[_Row]:
    """The rows of each path, indented below a heading for their group."""
    shown = ""
    for at in in_groups(rows):
        if group(at) != shown:
            shown = group(at)
            yield shown
        indent = "  " if shown else ""
        for row in rows[at]:
            yield indent + row if isinstance(row, str) else (f"{indent}{row[0]}", *row[1:])


def _last(at: str) -> str:
    return at.rpartition(".")[2]


def _rows(fact: Fact, numbers: Mapping[str, int], *, reasons: bool) -> Iterator[_Row]:
    label = _last(fact.at) if fact.label == fact.at else fact.label
    dated = "derived" if fact.verdict == "derived" else fact.as_of
    figure = fact.figure
    bounds = "" if figure is None else interval(figure.interval, figure.value.unit, figure.value.digits + 3)
    yield label, fact.text, bounds, numbers.get(fact.source, ""), dated
    if fact.verdict not in ("adopted", "derived", "-"):
        yield f"  {fact.verdict}"
    if reasons:
        yield from (f"  {text}" for text in (fact.reason, fact.note) if text)
    for rival in fact.conflicting:
        yield f"  {rival.verdict}", rival.says, "", numbers.get(rival.source, ""), rival.as_of
        if reasons and rival.reason:
            yield f"    {rival.reason}"


def _of_total(value: Total | PartCount) -> str:
    if isinstance(value, int):
        return "exact"
    if isinstance(value, CountRange):
        return f"[{value.low:,}, {'...' if value.high is None else f'{value.high:,}'})"
    return interval(value.interval, value.unit, value.digits + 3)


def interval(found: Interval, unit: Unit, digits: int) -> str:
    """An interval in a unit that is told beside it: ``[2.85, 2.95)``; what has no end ends in ``...``."""

    def number(value: Any) -> str:
        return render(value, unit, digits).removesuffix(unit.symbol).rstrip()

    return f"[{number(found.low)}, {'...' if found.high is None else number(found.high)})"


def _legend(graph: Graph, number: int, name: str) -> str:
    if name not in graph:
        return f"{number:>3}  {name}"
    node = graph.named(name)
    return wrapped(f"{number:>3}  ", f"{name}: {node.metadata.title} ({node.spec.publisher}, {node.spec.rank})")


# For programs.

_COLUMNS = (
    "at", "says", "verdict", "value", "low", "high", "unit", "scope", "source", "as_of", "where", "reason", "note",
)  # fmt: skip


def _data(graph: Graph, node: Node[Any], found: Sequence[Fact]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for fact in found:
        if fact.value is not None:
            numbers = _numbers(fact)
            scope = "" if fact.figure is None else fact.figure.scope
            told = (fact.source or None, fact.as_of or None, fact.where, fact.reason, fact.note)
            rows.append((fact.at, fact.text, fact.verdict, *numbers, scope, *told))
        for r in fact.conflicting:
            scope = ""
            rows.append((fact.at, r.says, r.verdict, *[None] * 4, scope, r.source, r.as_of, r.where, r.reason, ""))
    for total in _sums(graph, node):
        unit = None if isinstance(total.value, (int, CountRange)) else total.value.figures[0].value.dimension.base
        bounds = (*total.bounds, unit)
        rows.append((total.at, total.text, "total", *bounds, f"per {node.kind}", None, None, "", total.parts, ""))
    return table([Column(name, right=name in ("value", "low", "high")) for name in _COLUMNS], rows)


def _numbers(fact: Fact) -> tuple[Cell, ...]:
    """Value, bounds and unit: base units for a figure, none for a count; gaps for a word."""
    if fact.figure is not None:
        return (fact.figure.value.value, *_ends(fact.figure.interval), fact.figure.value.dimension.base)
    if isinstance(fact.value, int) and not isinstance(fact.value, bool):
        return fact.value, fact.value, fact.value, None
    return None, None, None, None


def _ends(found: Interval) -> tuple[Cell, Cell]:
    return found.low, found.high
