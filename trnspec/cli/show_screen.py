"""``trnspec show`` on one screen: main figures, totals, prices and power, then what is disputed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.cli.quotes import quoted
from trnspec.cli.render import SCREEN, lines_of, width
from trnspec.graph.facts import group
from trnspec.model.chip import Chip
from trnspec.text_table import Column, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.facts import Fact
    from trnspec.graph.graph import Graph
    from trnspec.graph.totals import Sum
    from trnspec.model.document import Node
    from trnspec.text_table import Block

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


@frozen(kw_only=True)
class _Row:
    """A value at a path; equal values of one group become one row."""

    at: str
    text: str
    interval: str = ""
    date: str = ""

    @property
    def rank(self) -> int:
        """Its importance."""
        return importance(self.at)


def importance(at: str) -> int:
    """The index of the most important path that a path belongs to; low is important."""
    return next((i for i, main in enumerate(_MAIN) if at == main or at.startswith(f"{main}.")), len(_MAIN))


@frozen(kw_only=True)
class _Dispute:
    """The values that other sources give for a figure, by verdict."""

    at: str
    values: Mapping[str, tuple[str, ...]]

    @property
    def severity(self) -> int:
        """The index of its worst verdict."""
        return min(map(_severity, self.values))


def _severity(verdict: str) -> int:
    return _SEVERITY.index(verdict) if verdict in _SEVERITY else len(_SEVERITY)


def screen(
    graph: Graph, node: Node[Any], node_facts: Sequence[Fact], totals: Sequence[Sum], heading: str
) -> list[Block]:
    """The page of a document, of at most :data:`~trnspec.cli.render.SCREEN` lines.

    Unresolved figures, missing figures and intervals are never hidden; what is hidden is counted in the last line.

    Args:
        graph: The catalog.
        node: The document.
        node_facts: Its facts.
        totals: The totals over its parts.
        heading: The first paragraph.
    """
    rows = _merged(_rows(graph, node, node_facts, totals))
    disputes = sorted(_disputes(node_facts), key=lambda d: d.severity)
    open_ = sum(d.severity == 0 for d in disputes)
    rows.sort(key=lambda r: r.rank)
    unresolved = {at for d in disputes[:open_] for at in _paths(d.at)}
    rows.sort(key=lambda r: unresolved.isdisjoint(_paths(r.at)))  # their adopted values are always shown
    shown_disputes = len(disputes)
    shown_rows = min(len(rows), SCREEN)
    while True:
        blocks = _blocks(node, heading, rows[:shown_rows], disputes[:shown_disputes])
        blocks.append(_rest(node, node_facts, len(rows) - shown_rows, disputes[shown_disputes:]))
        excess = lines_of(blocks) - SCREEN
        if excess <= 0 or shown_rows <= 1:
            return blocks
        least = max(open_, min(len(disputes), _EXPLAINED))
        if shown_disputes > least:
            shown_disputes = max(shown_disputes - excess, least)
        else:
            shown_rows = max(shown_rows - max(excess // 2, 1), 1)  # a row may have two lines


def _blocks(node: Node[Any], heading: str, rows: Sequence[_Row], disputes: Sequence[_Dispute]) -> list[Block]:
    columns = [
        Column("figure", wrap=True, keep=True),
        Column("value", wrap=True, keep=True),
        Column("interval", keep=True),
        Column("date", keep=True),
    ]
    blocks: list[Block] = [heading]
    rows = sorted(rows, key=lambda r: r.rank)
    blocks.append(table(columns, [(r.at, r.text, r.interval, r.date) for r in rows]))
    if isinstance(node.spec, Chip) and (missing := [at for at in _EXPECTED if not _has(rows, at)]):
        blocks.append(wrapped("no source    ", ", ".join(missing), width()))
    if disputes:
        names = (Column("disputed", wrap=True, keep=True), Column("verdict: values of other sources", wrap=True))
        cells = [(d.at, "; ".join(f"{v}: {', '.join(values)}" for v, values in d.values.items())) for d in disputes]
        blocks.append(table(names, cells))
    return blocks


def _has(rows: Sequence[_Row], at: str) -> bool:
    return any(at in _paths(row.at) for row in rows)


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
    parts = [f"{n} {word}{'' if n == 1 else 's'}" for word, n in counts.items() if n]
    parts += ["a note"] if node.metadata.note else []
    return wrapped("--full: ", ", ".join(parts), width())


def _rows(graph: Graph, node: Node[Any], node_facts: Sequence[Fact], totals: Sequence[Sum]) -> Iterator[_Row]:
    """Totals, facts, prices and power; of the facts neither stated totals nor ratios to other documents."""
    for total in totals:
        yield _Row(at=total.at, text=total.text, interval=total.interval_text, date="total")
    known = {total.at for total in totals}
    for fact in node_facts:
        counted = fact.at.removesuffix(".count") in known or fact.at.removeprefix("stated.") in known
        if fact.text and not counted and not fact.at.startswith("ratios.") and not fact.at.endswith("note"):
            date = "derived" if fact.verdict == "derived" else fact.as_of
            yield _Row(at=fact.at, text=fact.text, interval=fact.interval_text, date=date[:7])
    seen = set()
    for row in quoted(graph, node):
        if (row.kind, row.type) not in seen and row.verdict == "adopted":
            seen.add((row.kind, row.type))
            text = f"{row.text}, {row.place}" if row.place else row.text
            yield _Row(at=f"{row.kind}.{row.type}", text=text, date=row.date[:7])


def _merged(rows: Iterator[_Row]) -> list[_Row]:
    """The rows, equal ones of a group as one: ``peak.dense.{bf16,fp16,tf32}``."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        key = (group(row.at) or row.at, row.text, row.interval, row.date)
        found.setdefault(key, []).append(row.at)
    return [_Row(at=_joined(ats), text=k[1], interval=k[2], date=k[3]) for k, ats in found.items()]


def _joined(ats: Sequence[str]) -> str:
    if len(ats) == 1:
        return ats[0]
    return f"{group(ats[0])}.{{{','.join(at.rpartition('.')[2] for at in ats)}}}"


def _disputes(node_facts: Sequence[Fact]) -> list[_Dispute]:
    """What is disputed of the facts; figures of one group with the same other values are one."""
    found: dict[tuple[object, ...], list[str]] = {}
    for fact in node_facts:
        claims = [c for c in fact.conflicting if c.verdict not in _AGREEING]
        claims.sort(key=lambda c: _severity(c.verdict))
        values: dict[str, dict[str, None]] = {}
        for claim in claims:
            values.setdefault(claim.verdict, {})[claim.says] = None
        if values:
            key = tuple((verdict, tuple(says)) for verdict, says in values.items())
            found.setdefault((group(fact.at), fact.value is None, key), []).append(fact.at)
    return [_Dispute(at=_joined(ats), values=dict(key[2])) for key, ats in found.items()]  # type: ignore[call-overload]
