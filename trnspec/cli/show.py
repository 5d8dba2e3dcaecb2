"""``trnspec show``: every figure of one document, with its sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from trnspec.cli.common import catalog_options, graph_for
from trnspec.cli.complete import documents
from trnspec.cli.help import documented, option
from trnspec.cli.render import SCREEN, emit, format_option, full_option, lines_of, numbers, width
from trnspec.graph.facts import Fact, facts, group, joined
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import quoted_facts
from trnspec.graph.totals import Sum, sums
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.parts import CountRange
from trnspec.model.source import Source
from trnspec.quantities.quantity import render
from trnspec.text_table import Block, Cell, Column, TextTable, plural, table, wrapped

_Row = tuple[Cell, ...] | str

_ShownLine = tuple[str, str, str, str]
"""A value at a path: path, text, interval and date; equal values of one group become one row."""

_Dispute = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]
"""The path of a figure, and the values of other sources by verdict, the worst verdict first."""


@documented(
    "show",
    ("trnspec show trainium2", "The main figures of a chip, and those that are disputed:"),
    ("trnspec show trainium2 --full", "Every figure, with all values of other sources:"),
    ("trnspec show trn2.48xlarge --reasons", "A server, with notes and why each verdict was given:"),
    ("trnspec show trainium1 --as-of 2023-03 --format json", "What was published by March 2023, for programs:"),
)
@click.argument("name", shell_complete=documents())
@option("--reasons", "Output", "Print --full with notes, formulas and the reason of each verdict.")
@full_option()
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
        "sources": {
            name: {"title": s.metadata.title, "publisher": s.spec.publisher, "as_of": s.spec.as_of, "rank": s.spec.rank}
            for name in names
            if (s := graph.lookup(name, Source)) is not None
        },
    }


def _numbered(graph: Graph, node: Node[Any], node_facts: Sequence[Fact]) -> dict[str, int]:
    """The sources of facts, of their conflicting values, and of prices, numbered in the order in which they appear."""
    stated = (*node_facts, *quoted_facts(graph, node))
    names = [name for fact in stated for name in (fact.source, *(r.source for r in fact.conflicting)) if name]
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


# For people.


def _page(graph: Graph, node: Node[Any], node_facts: Sequence[Fact], *, full: bool, reasons: bool) -> Sequence[Block]:
    """The whole page where it is wanted or fits the screen, else what matters most."""
    whole = _whole(graph, node, node_facts, reasons=reasons)
    if full or reasons or lines_of(whole) <= SCREEN:
        return whole
    return _screen(graph, node, node_facts, _sums(graph, node), _heading(node))


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
        blocks.append(_filled(columns, list(_sections(node_facts, numbers, reasons=reasons))))
    totals = _sums(graph, node)
    if totals:
        names = (
            Column("total", wrap=True),
            Column("value", keep=True),
            Column("interval"),
            Column("sum of", wrap=True),
        )
        rows = {s.at: [(s.at.rpartition(".")[2], s.text, s.interval_text, s.parts)] for s in totals}
        blocks.append(table(names, list(_grouped(rows, {at: group(at) for at in rows}))))
    blocks += _quoted_tables(graph, node, numbers)
    legend = [_legend(graph, number, name) for name, number in numbers.items()]
    if legend:
        blocks.append("\n".join(["sources", *legend]))
    if not reasons and any(f.note or f.reason or any(r.reason for r in f.conflicting) for f in node_facts):
        blocks.append("--reasons prints notes, formulas and why each verdict was given.")
    return blocks


def _filled(columns: Sequence[Column], rows: Sequence[_Row]) -> TextTable:
    """The table of some rows, without the columns in which no row has a text, such as the intervals of a source."""
    kept = [i for i in range(len(columns)) if any(not isinstance(r, str) and r[i] not in (None, "") for r in rows)]
    cells = [row if isinstance(row, str) else tuple(row[i] for i in kept) for row in rows]
    return table([columns[i] for i in kept], cells)


def _quoted_tables(graph: Graph, node: Node[Any], numbers: Mapping[str, int]) -> Iterator[TextTable]:
    """The prices and the power of a document."""
    known = quoted_facts(graph, node)
    for kind, detail in (("price", "per chip"), ("power", "scope")):
        cells: list[_Row] = []
        for fact in (f for f in known if f.at.startswith(kind)):
            place = fact.at.split(".", 2)[2:]
            if place and fact.label not in cells:
                cells.append(fact.label)
            more = graph.named(fact.of).spec.scope if kind == "power" else None
            if fact.figure is not None and kind == "price":
                value = fact.figure.value
                more = render(value.value / node.spec.chips.count, value.unit, value.digits)
            label = f"  {place[0]}" if place else fact.label
            cells.append((label, _quoted_text(fact), more, numbers.get(fact.source), fact.as_of))
            cells += [(f"  {c.verdict}", c.says, None, numbers.get(c.source), c.as_of) for c in fact.conflicting]
        columns = [
            Column(kind, wrap=True),
            Column("value", keep=True),
            Column(detail),
            Column("source", right=True, keep=True),
            Column("date", keep=True),
        ]
        if cells:
            yield table(columns, cells)


def _quoted_text(fact: Fact) -> str:
    return fact.text or ("unlisted" if fact.verdict == "unlisted" else "unknown")


def _sums(graph: Graph, node: Node[Any]) -> tuple[Sum, ...]:
    if isinstance(node.spec, Chip):
        return ()
    # A chip has no totals, so that its page does not import the classes of servers.
    return sums(graph, node)


def _sections(node_facts: Sequence[Fact], numbers: Mapping[str, int], *, reasons: bool) -> Iterator[_Row]:
    """The rows of all facts, each section once; claims about a section as a whole come first in it."""
    parents = {".".join(steps[:n]) for f in node_facts for steps in [f.at.split(".")] for n in range(1, len(steps))}
    rows: dict[str, list[_Row]] = {}
    for fact in node_facts:
        lines = list(_rows(fact, numbers, reasons=reasons))
        rows[fact.at] = lines[1:] if fact.at in parents and fact.value is None else lines
    return _grouped(rows, {at: at if at in parents else group(at) for at in rows})


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


def _rows(fact: Fact, numbers: Mapping[str, int], *, reasons: bool) -> Iterator[_Row]:
    label = fact.at.rpartition(".")[2] if fact.label == fact.at else fact.label
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
        f"{number:>3}  ", f"{name}: {node.metadata.title} ({node.spec.publisher}, {node.spec.standing})", width()
    )


# On one screen: main figures, totals, prices and power, then what is disputed.

_MAIN = (
    "parameters", "peak.dense", "tensor_peak.dense", "memory.capacity", "memory.bandwidth", "chips", "cores", "links",
    "fabric.bandwidth", "network.bandwidth", "efa", "price", "power", "fabric", "peak", "tensor_peak", "sbuf",
    "memory", "dma", "network",
)  # fmt: skip
"""Paths by importance; all figures at or below an earlier one come first."""

_EXPECTED = ("peak.dense.bf16", "memory.capacity", "memory.bandwidth", "links.bandwidth.both")
"""The figures of a chip that calculations need."""

_AGREEING = ("agrees", "rounded", "coarse", "word")
_SEVERITY = ("unresolved", "found", "rejected", "other-scope", "superseded")
_EXPLAINED = 6
"""Disputed figures with an explanation, where not all fit."""


def importance(at: str) -> int:
    """The index of the most important path that a path belongs to; low is important."""
    return next((i for i, main in enumerate(_MAIN) if at == main or at.startswith(f"{main}.")), len(_MAIN))


def _severity(verdict: str) -> int:
    return _SEVERITY.index(verdict) if verdict in _SEVERITY else len(_SEVERITY)


def _screen(
    graph: Graph, node: Node[Any], node_facts: Sequence[Fact], totals: Sequence[Sum], heading: str
) -> list[Block]:
    """The page of a document, of at most :data:`~trnspec.cli.render.SCREEN` lines.

    Unresolved figures, missing figures and intervals are never hidden; what is hidden is counted in the last line.
    """
    rows = _merged(_lines(graph, node, node_facts, totals))
    disputes = sorted(_disputes(node_facts), key=lambda d: _severity(d[1][0][0]))
    open_ = sum(_severity(values[0][0]) == 0 for _, values in disputes)
    rows.sort(key=lambda r: importance(r[0]))
    known = {at for row in rows for at in _paths(row[0])}
    missing = [at for at in _EXPECTED if at not in known] if isinstance(node.spec, Chip) else []
    unresolved = {at for d in disputes[:open_] for at in _paths(d[0])}
    rows.sort(key=lambda r: unresolved.isdisjoint(_paths(r[0])))  # their adopted values are always shown
    shown_disputes = len(disputes)
    shown_rows = min(len(rows), SCREEN)
    while True:
        blocks = _blocks(heading, missing, rows[:shown_rows], disputes[:shown_disputes])
        blocks.append(_rest(node, node_facts, len(rows) - shown_rows, disputes[shown_disputes:]))
        excess = lines_of(blocks) - SCREEN
        if excess <= 0 or shown_rows <= 1:
            return blocks
        least = max(open_, min(len(disputes), _EXPLAINED))
        if shown_disputes > least:
            shown_disputes = max(shown_disputes - excess, least)
        else:
            shown_rows = max(shown_rows - max(excess // 2, 1), 1)  # a row may have two lines


def _blocks(
    heading: str, missing: Sequence[str], rows: Sequence[_ShownLine], disputes: Sequence[_Dispute]
) -> list[Block]:
    columns = [
        Column("figure", wrap=True, keep=True),
        Column("value", wrap=True, keep=True),
        Column("interval", keep=True),
        Column("date", keep=True),
    ]
    blocks: list[Block] = [heading]
    blocks.append(_filled(columns, [*sorted(rows, key=lambda r: importance(r[0]))]))
    if missing:
        blocks.append(wrapped("no source    ", ", ".join(missing), width()))
    if disputes:
        names = (Column("disputed", wrap=True, keep=True), Column("verdict: values of other sources", wrap=True))
        cells = [(at, "; ".join(f"{v}: {', '.join(says)}" for v, says in values)) for at, values in disputes]
        blocks.append(table(names, cells))
    return blocks


def _paths(at: str) -> list[str]:
    """The paths of a row: ``peak.dense.{bf16,fp16}`` is two."""
    before, brace, names = at.partition("{")
    return [before + name for name in names.rstrip("}").split(",")] if brace else [at]


def _rest(node: Node[Any], node_facts: Sequence[Fact], figures: int, disputes: Sequence[_Dispute]) -> str:
    claims = [c for fact in node_facts for c in fact.conflicting]
    sources = {name for fact in node_facts for name in (fact.source, *(c.source for c in fact.conflicting)) if name}
    counts = {
        "more value": figures,
        "more disputed figure": len(disputes),
        "agreeing value": sum(c.verdict in _AGREEING for c in claims),
        "source": len(sources),
    }
    parts = [plural(n, word) for word, n in counts.items() if n]
    parts += ["a note"] if node.metadata.note else []
    return wrapped("--full: ", ", ".join(parts), width())


def _lines(graph: Graph, node: Node[Any], node_facts: Sequence[Fact], totals: Sequence[Sum]) -> Iterator[_ShownLine]:
    """Totals, facts, prices and power; of the facts neither stated totals nor ratios to other documents."""
    for total in totals:
        yield total.at, total.text, total.interval_text, "total"
    known = {total.at for total in totals}
    for fact in node_facts:
        counted = fact.at.removesuffix(".count") in known or fact.at.removeprefix("stated.") in known
        if fact.text and not counted and not fact.at.startswith("ratios.") and not fact.at.endswith("note"):
            date = "derived" if fact.verdict == "derived" else fact.as_of
            yield fact.at, fact.text, fact.interval_text, date[:7]
    seen = set()
    for fact in quoted_facts(graph, node):
        kind, type_, *place = fact.at.split(".", 2)
        if (kind, type_) not in seen:
            seen.add((kind, type_))
            text = ", ".join([_quoted_text(fact), *place])
            yield f"{kind.removesuffix('s')}.{type_}", text, "", fact.as_of[:7]


def _merged(rows: Iterator[_ShownLine]) -> list[_ShownLine]:
    """The rows, equal ones of a group as one: ``peak.dense.{bf16,fp16,tf32}``."""
    found: dict[_ShownLine, list[str]] = {}
    for at, text, interval, date in rows:
        found.setdefault((group(at) or at, text, interval, date), []).append(at)
    return [(joined(ats)[0], text, interval, date) for (_, text, interval, date), ats in found.items()]


def _disputes(node_facts: Sequence[Fact]) -> list[_Dispute]:
    """Disputed facts; figures of one group with the same other values are one."""
    found: dict[tuple[str, bool, Any], list[str]] = {}
    for fact in node_facts:
        claims = [c for c in fact.conflicting if c.verdict not in _AGREEING]
        claims.sort(key=lambda c: _severity(c.verdict))
        values: dict[str, dict[str, None]] = {}
        for claim in claims:
            values.setdefault(claim.verdict, {})[claim.says] = None
        if values:
            key = tuple((verdict, tuple(says)) for verdict, says in values.items())
            found.setdefault((group(fact.at), fact.value is None, key), []).append(fact.at)
    return [(joined(ats)[0], values) for (*_, values), ats in found.items()]


# For programs.

_COLUMNS = (
    "at", "says", "verdict", "value", "low", "high", "unit", "scope", "source", "as_of", "where", "reason", "note",
)  # fmt: skip


def _data(graph: Graph, node: Node[Any], node_facts: Sequence[Fact]) -> TextTable:
    rows: list[tuple[Cell, ...]] = []
    for fact in (*node_facts, *quoted_facts(graph, node)):
        if fact.value is not None:
            amount = fact.value if fact.figure is None else fact.figure.amount
            scope = "" if fact.figure is None else fact.figure.scope
            origin = (fact.source or None, fact.as_of or None, fact.where, fact.reason, fact.note)
            rows.append((fact.at, fact.text, fact.verdict, *numbers(amount), scope, *origin))
        for r in fact.conflicting:
            scope = ""
            rows.append((fact.at, r.says, r.verdict, *[None] * 4, scope, r.source, r.as_of, r.where, r.reason, ""))
    for total in _sums(graph, node):
        unit = None if isinstance(total.value, (int, CountRange)) else total.value.figures[0].value.dimension.base
        bounds = (*total.bounds, unit)
        rows.append((total.at, total.text, "total", *bounds, f"per {node.kind}", None, None, "", total.parts, ""))
    return table([Column(name, right=name in ("value", "low", "high")) for name in _COLUMNS], rows)
