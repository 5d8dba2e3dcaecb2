"""``trnspec show``: every figure of one document, with its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options, graph_for
from trnspec.cli.complete import documents
from trnspec.cli.help import GroupedCommand, option
from trnspec.cli.quotes import quoted, quoted_tables
from trnspec.cli.render import SCREEN, emit, format_option, full_option, lines_of, width
from trnspec.graph.facts import Fact, facts, group
from trnspec.model.chip import Chip
from trnspec.model.parts import CountRange
from trnspec.model.source import Source
from trnspec.text_table import Block, Cell, Column, Table, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.graph.totals import Sum
    from trnspec.model.document import Node
    from trnspec.quantities.quantity import Interval


_Row = tuple[Cell, ...] | str


@click.command(
    "show",
    cls=GroupedCommand,
    examples=(
        ("trnspec show trainium2", "The main figures of a chip, and those that are disputed:"),
        ("trnspec show trainium2 --full", "Every figure, with all values of other sources:"),
        ("trnspec show trn2.48xlarge --reasons", "A server, with notes and why each verdict was given:"),
        ("trnspec show trainium1 --as-of 2023-03 --format json", "What was published by March 2023, for programs:"),
    ),
)
@click.argument("name", shell_complete=documents())
@option(
    "--reasons",
    is_flag=True,
    group="Output",
    help="Print --full with notes, formulas and the reason of each verdict.",
)
@full_option
@format_option
@catalog_options
def command(name: str, format_: str, *, reasons: bool, full: bool, **options: Any) -> None:
    """Print the figures of the document NAME with interval and date, its totals, prices and power.

    An interval holds all values that are printed the same way: [low, high) in the unit of the figure. Disputed figures
    follow with the values of other sources, each after its verdict. --full prints all figures, each with its source,
    and all values of other sources below it, also those that agree.
    """
    graph = graph_for(name, **options)
    node = graph.named(name)
    node_facts = facts(graph, node)
    emit(
        format_,
        lambda: _page(graph, node, node_facts, full=full, reasons=reasons),
        lambda: _data(graph, node, node_facts),
        lambda: _about(graph, node, node_facts),
    )


def _about(graph: Graph, node: Node[Any], node_facts: Sequence[Fact]) -> dict[str, Any]:
    head = node.metadata
    names = _numbered(graph, node, node_facts)
    return {
        "name": node.name,
        "kind": node.kind,
        "title": head.title,
        "aliases": list(head.aliases),
        "source": None if head.source is None else head.source.name,
        "where": head.where,
        "note": head.note,
        "sources": {n: _of_source(s) for n in names if (s := graph.lookup(n, Source)) is not None},
    }


def _of_source(node: Node[Source]) -> dict[str, str]:
    spec = node.spec
    return {"title": node.metadata.title, "publisher": spec.publisher, "as_of": spec.as_of, "rank": spec.rank}


def _numbered(graph: Graph, node: Node[Any], node_facts: Sequence[Fact]) -> dict[str, int]:
    """The sources of facts, of their conflicting values, and of prices, numbered in the order in which they appear."""
    names = [name for fact in node_facts for name in (fact.source, *(r.source for r in fact.conflicting)) if name]
    names += [row.source for row in quoted(graph, node) if row.source]
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


# For people.


def _page(graph: Graph, node: Node[Any], node_facts: Sequence[Fact], *, full: bool, reasons: bool) -> Sequence[Block]:
    """The whole page where it is wanted or fits the screen, else what matters most."""
    whole = _whole(graph, node, node_facts, reasons=reasons)
    if full or reasons or lines_of(whole) <= SCREEN:
        return whole
    from trnspec.cli.show_screen import screen

    return screen(graph, node, node_facts, _sums(graph, node), _heading(node))


def _heading(node: Node[Any]) -> str:
    """Name, title and kind, the other names, and the source of what names no other."""
    head = node.metadata
    lines = [wrapped("", f"{node.name}: {head.title} ({node.kind})", width())]
    if head.aliases:
        lines.append(wrapped("also called  ", ", ".join(head.aliases), width()))
    if head.source is not None:
        lines.append(wrapped("source       ", f"{head.source}{f', {head.where}' if head.where else ''}", width()))
    return "\n".join(lines)


def _whole(graph: Graph, node: Node[Any], node_facts: Sequence[Fact], *, reasons: bool) -> list[Block]:
    numbers = _numbered(graph, node, node_facts)
    blocks: list[Block] = [_heading(node)]
    if node.metadata.note:
        blocks.append(wrapped("note         ", node.metadata.note, width()))
    if node_facts:
        columns = [
            Column("figure", wrap=True),
            Column("value", wrap=True, keep=True),
            Column("interval", wrap=True),
            Column("source", right=True, keep=True),
            Column("date", keep=True),
        ]
        blocks.append(table(columns, list(_sections(node_facts, numbers, reasons=reasons))))
    totals = _sums(graph, node)
    if totals:
        names = (
            Column("total", wrap=True),
            Column("value", keep=True),
            Column("interval"),
            Column("sum of", wrap=True),
        )
        rows = {s.at: [(_last(s.at), s.text, s.interval_text, s.parts)] for s in totals}
        blocks.append(table(names, list(_grouped(rows, {at: group(at) for at in rows}))))
    blocks += quoted_tables(quoted(graph, node), numbers)
    legend = [_legend(graph, number, name) for name, number in numbers.items()]
    if legend:
        blocks.append("\n".join(["sources", *legend]))
    if not reasons and any(f.note or f.reason or any(r.reason for r in f.conflicting) for f in node_facts):
        blocks.append("--reasons prints notes, formulas and why each verdict was given.")
    return blocks


def _sums(graph: Graph, node: Node[Any]) -> tuple[Sum, ...]:
    if isinstance(node.spec, Chip):
        return ()
    # A chip has no totals, so that its page does not import the classes of servers.
    from trnspec.graph.totals import sums

    return sums(graph, node)


def _sections(node_facts: Sequence[Fact], numbers: Mapping[str, int], *, reasons: bool) -> Iterator[_Row]:
    """The rows of all facts, each section once; claims about a section as a whole come first in it."""
    parents = {parent for f in node_facts for parent in _parents(f.at)}
    rows: dict[str, list[_Row]] = {}
    for fact in node_facts:
        lines = list(_rows(fact, numbers, reasons=reasons))
        rows[fact.at] = lines[1:] if fact.at in parents and fact.value is None else lines
    return _grouped(rows, {at: at if at in parents else group(at) for at in rows})


def _parents(at: str) -> Iterator[str]:
    while at := group(at):
        yield at


def _grouped(rows: Mapping[str, Sequence[_Row]], section: Mapping[str, str]) -> Iterator[_Row]:
    """The rows of each path below a heading for its section: first those of no section, then each section once."""
    order = {name: n for n, name in enumerate(dict.fromkeys(("", *section.values())))}
    shown = ""
    for at in sorted(rows, key=lambda at: (order[section[at]], at != section[at])):
        if section[at] != shown:
            shown = section[at]
            yield shown
        indent = "  " if shown else ""
        for row in rows[at]:
            yield indent + row if isinstance(row, str) else (f"{indent}{row[0]}", *row[1:])


def _last(at: str) -> str:
    return at.rpartition(".")[2]


def _rows(fact: Fact, numbers: Mapping[str, int], *, reasons: bool) -> Iterator[_Row]:
    label = _last(fact.at) if fact.label == fact.at else fact.label
    dated = "derived" if fact.verdict == "derived" else fact.as_of
    yield label, fact.text, fact.interval_text, numbers.get(fact.source, ""), dated
    if fact.verdict not in ("adopted", "derived", "-"):
        yield f"  {fact.verdict}"
    if reasons:
        yield from (f"  {text}" for text in (fact.reason, fact.note) if text)
    for claim in fact.conflicting:
        yield f"  {claim.verdict}", claim.says, "", numbers.get(claim.source, ""), claim.as_of
        if reasons and claim.reason:
            yield f"    {claim.reason}"


def _legend(graph: Graph, number: int, name: str) -> str:
    node = graph.lookup(name, Source)
    if node is None:
        return f"{number:>3}  {name}"
    return wrapped(
        f"{number:>3}  ", f"{name}: {node.metadata.title} ({node.spec.publisher}, {node.spec.rank})", width()
    )


# For programs.

_COLUMNS = (
    "at", "says", "verdict", "value", "low", "high", "unit", "scope", "source", "as_of", "where", "reason", "note",
)  # fmt: skip


def _data(graph: Graph, node: Node[Any], node_facts: Sequence[Fact]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for fact in node_facts:
        if fact.value is not None:
            numbers = _numbers(fact)
            scope = "" if fact.figure is None else fact.figure.scope
            origin = (fact.source or None, fact.as_of or None, fact.where, fact.reason, fact.note)
            rows.append((fact.at, fact.text, fact.verdict, *numbers, scope, *origin))
        for r in fact.conflicting:
            scope = ""
            rows.append((fact.at, r.says, r.verdict, *[None] * 4, scope, r.source, r.as_of, r.where, r.reason, ""))
    for row in quoted(graph, node):
        at = f"prices.{row.type}.{row.place}" if row.kind == "price" else f"power.{row.type}"
        stated = row.figure
        if stated is not None:
            numbers = (stated.value.value, *_ends(stated.interval), stated.value.dimension.base)
            more = (stated.where or "", row.condition, stated.note or "")
            rows.append((at, row.text, row.verdict, *numbers, stated.scope, row.source, row.date, *more))
        elif row.kind == "power" and row.source:
            rows.append((at, row.text, row.verdict, *[None] * 4, "", row.source, row.date, "", row.reason, ""))
    for total in _sums(graph, node):
        unit = None if isinstance(total.value, (int, CountRange)) else total.value.figures[0].value.dimension.base
        bounds = (*total.bounds, unit)
        rows.append((total.at, total.text, "total", *bounds, f"per {node.kind}", None, None, "", total.parts, ""))
    return table([Column(name, right=name in ("value", "low", "high")) for name in _COLUMNS], rows)


def _numbers(fact: Fact) -> tuple[Cell, ...]:
    """Value, bounds and unit: base units for a figure, none for a count; gaps for text."""
    if fact.figure is not None:
        return (fact.figure.value.value, *_ends(fact.figure.interval), fact.figure.value.dimension.base)
    if isinstance(fact.value, int) and not isinstance(fact.value, bool):
        return fact.value, fact.value, fact.value, None
    return None, None, None, None


def _ends(value: Interval) -> tuple[Cell, Cell]:
    return value.low, value.high
