"""An evaluation as a page: what an engineer pastes into a design document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trnspec.cli.render import Block, Column, Table, lines, table, wrapped, written
from trnspec.reporters.common import escape
from trnspec.reporters.evaluation import columns, common, digits_of, interval, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.evaluation import Evaluation, RefusalError, Value
    from trnspec.evaluation import Table as Rows

_BAR = 20
_AGREES = re.compile(r", agrees\b")

Row = tuple["Mapping[str, Value | None]", "Evaluation | RefusalError"]
"""One row of a sweep: the inputs that vary, and what came of it."""


def told(name: str) -> str:
    """A name for people: ``step_time`` is ``step time``."""
    return name.replace("_", " ")


def sections(found: Evaluation, *, spread: bool = True) -> Iterator[tuple[str, Block]]:
    """The parts of the page: a heading, which may be empty, and what stands under it.

    Args:
        found: The evaluation.
        spread: Rivals of a figure take a line of their own, from edge to edge; those that agree are counted.
    """
    if found.answers:
        yield "", _answers(found)
    for name in dict.fromkeys(p.of for p in found.parts):
        yield f"What {told(name)} is made of", _parts(found, name)
    for rows in found.tables:
        yield escape(rows.title), _rows(rows)
    if found.assumptions:
        yield (
            "Assumptions",
            table(
                [
                    Column("assumed"),
                    Column("value", fold=True, least=12, keep=True),
                    Column("why", fold=True, least=16),
                ],
                [(told(a.name), escape(a.value), escape(a.why)) for a in found.assumptions],
            ),
        )
    if found.basis:
        yield "Figures it rests on", _basis(found, spread=spread)


def page(found: Evaluation, room: int, beside: str = "") -> list[Block]:
    """An evaluation as blocks of text; ``beside`` tells what was done to the catalog."""
    head = [wrapped("", escape(f"{found.evaluator}: {found.title}"), room)]
    question = {n: v for n, v in found.question.items() if v is not None and v != ""}
    if question:
        head.append(wrapped("  asked  ", ", ".join(f"{n} {escape(measure(v))}" for n, v in question.items()), room))
    head.append(wrapped("  from   ", _edition(found) + beside, room))
    blocks: list[Block] = ["\n".join(head)]
    for heading, block in sections(found):
        if heading:
            blocks.append(wrapped("", heading, room))
        # Lines from edge to edge are no headings, as which a terminal would show them in the first column.
        edged = isinstance(block, Table) and any(isinstance(row, str) for row in block.rows)
        blocks.append("\n".join(lines(block, room)) if isinstance(block, Table) and edged else block)
        if not heading and found.binds:
            blocks.append(wrapped("What binds: ", escape(found.binds), room))
    if found.binds and not found.answers:
        blocks.append(wrapped("What binds: ", escape(found.binds), room))
    return blocks


def markdown(found: Evaluation, beside: str = "") -> str:
    """The same page in Markdown."""
    made = [f"## {escape(f'{found.evaluator}: {found.title}')}\n"]
    question = {n: v for n, v in found.question.items() if v is not None and v != ""}
    if question:
        asked = ", ".join(f"{n} `{escape(measure(v))}`" for n, v in question.items())
        made.append(f"Asked: {asked}; from {_edition(found)}{beside}.\n")
    if found.binds:
        made.append(f"What binds: {escape(found.binds)}\n")
    for heading, block in sections(found, spread=False):
        if heading:
            made.append(f"### {heading}\n")
        made.append(written(block, "markdown") if isinstance(block, Table) else f"{block}\n")
    return "\n".join(made)


def _edition(found: Evaluation) -> str:
    edition = f"edition {found.edition} of the catalog" if found.edition else "the working edition of the catalog"
    return f"{edition}, as of {found.as_of}" if found.as_of else edition


def _answers(found: Evaluation) -> Table:
    rows = [
        (told(a.name), escape(measure(a.value, a.unit, digits=digits_of(a))), interval(a), escape(a.note)) for a in found.answers
    ]  # fmt: skip
    heads = [
        Column("answer"),
        Column("value", right=True, fold=True, keep=True),
        Column("interval", fold=True, least=14),
        Column("note", fold=True, least=16),
    ]
    # A column that would be empty is left out.
    kept = [i for i in range(4) if i < 2 or any(row[i] for row in rows)]
    return table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _parts(found: Evaluation, name: str) -> Table:
    whole = found.answer(name)
    parts = [p for p in found.parts if p.of == name]
    # The shares are of the sum of sizes: a part that takes away has a share too, and none is above 100 %.
    total = sum(abs(p.value) for p in parts)
    within = common([p.value for p in parts], whole.unit)
    rows = []
    for part in parts:
        share = abs(part.value) / total if total else 0.0
        bar = "#" * round(_BAR * share)
        rows.append(
            (escape(told(part.name)), measure(part.value, whole.unit, within), f"{share:.1%}", bar, escape(part.note))
        )
    heads = [
        Column("part"),
        Column("value", right=True, keep=True),
        Column("share", right=True, keep=True),
        Column(""),
        Column("note", fold=True, least=16),
    ]
    kept = [i for i in range(5) if i < 4 or any(row[i] for row in rows)]
    return table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _rows(rows: Rows) -> Table:
    units = rows.units or ("",) * len(rows.columns)
    scales = columns(rows)
    cells = [
        [escape(measure(v, u, s)) for v, u, s in zip(row, units, scales, strict=True)] for row in rows.rows
    ]  # fmt: skip
    heads = [
        Column(told(name), right=any(_numeric(row[i]) for row in rows.rows), fold=i > 0, keep=i == 0)
        for i, name in enumerate(rows.columns)
    ]
    return table(heads, cells)


def _numeric(value: Value | None) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _basis(found: Evaluation, *, spread: bool) -> Table:
    rows: list[tuple[str, ...] | str] = []
    for b in found.basis:
        rows.append((escape(f"{b.of} {b.at}"), escape(b.says), escape(b.source), escape(b.as_of)))
        if not spread:
            rows += [("rival", escape(r), "", "") for r in b.rivals]
            continue
        others = [r for r in b.rivals if not _AGREES.search(r)]
        rows += [f"  rival: {escape(r)}" for r in others]
        if agreeing := len(b.rivals) - len(others):
            rows.append(f"  {agreeing} other{'s agree' if agreeing > 1 else ' agrees'}")
    heads = [
        Column("figure", fold=True, least=24),
        Column("says", fold=True, keep=True),
        Column("source", fold=True, least=16, keep=True),
        Column("date", keep=True),
    ]
    return table(heads, rows)


def swept(rows: Sequence[Row]) -> Table:
    """A sweep as one table: the inputs that vary, the answers, and why there are none where there are none."""
    answers: dict[str, str] = {}
    for _, found in rows:
        if not isinstance(found, Exception):
            answers.update({a.name: a.unit for a in found.answers if a.name not in answers})
    values = {name: [None if isinstance(f, Exception) else _value(f, name) for _, f in rows] for name in answers}
    scales = {name: common(values[name], unit) for name, unit in answers.items()}
    varied = list(rows[0][0])
    refused = any(isinstance(f, Exception) for _, f in rows)
    cells = []
    for number, (given, found) in enumerate(rows):
        row = [escape(measure(given[name])) for name in varied]
        row += [escape(measure(values[n][number], u, scales[n])) for n, u in answers.items()]
        if refused:
            row.append(f"{found.reason}: {escape(str(found))}" if isinstance(found, Exception) else "")
        cells.append(row)
    heads = [Column(n, right=_numeric(rows[0][0][n]), keep=True) for n in varied]
    heads += [Column(told(n), right=any(map(_numeric, values[n])), keep=i == 0) for i, n in enumerate(answers)]
    # Beside the inputs, why there is no answer matters most; it is folded before an answer is left out.
    return table([*heads, *([Column("refused", fold=True, least=16, keep=True)] if refused else [])], cells)


def _value(found: Evaluation, name: str) -> Value | None:
    return next((a.value for a in found.answers if a.name == name), None)
