"""An evaluation as a page: what an engineer pastes into a design document."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from trnspec.cli.help import folded
from trnspec.cli.render import Block, Column, Table, fit, lines, table, wrapped, written
from trnspec.cli.suggestion import command
from trnspec.output.reporters.common import escape
from trnspec.output.reporters.evaluation import columns, common, digits_of, edge, interval, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.evaluation.result import Answer, Evaluation, RefusalError, Suggestion, Value
    from trnspec.evaluation.result import Table as Rows

_BAR = 20
_AGREES = re.compile(r", agrees\b")
_ANY = 10_000
"""A width in which every table fits."""
_JSON = "--format json"
_BOUNDS = ">= (at least) and <= (at most) stand before bounds: their other end is not known."

Row = tuple["Mapping[str, Value | None]", "Evaluation | RefusalError"]
"""One row of a sweep: the inputs that vary, and what came of it."""


def told(name: str) -> str:
    """A name for people: ``step_time`` is ``step time``."""
    return name.replace("_", " ")


def sections(
    found: Evaluation, room: int | None = None, options: Mapping[str, str] = {}, *, rows: bool = False
) -> Iterator[tuple[str, Block]]:
    """The parts of the page: a heading, which may be empty, and what stands under it.

    Args:
        found: The evaluation.
        room: How wide the page is, nothing for any width. Where it is told rivals of a figure take a line of their own,
            from edge to edge, and those that agree are counted.
        options: The options that chose the catalog, for the commands of suggestions.
        rows: The first table is the answer.
    """
    if found.answers:
        yield "", _answers(found)
    for suggestion in found.suggestions:
        yield f"command: {escape(suggestion.note or suggestion.evaluator)}", _pasted(suggestion, options, room)
    for name in dict.fromkeys(p.of for p in found.parts):
        yield f"What {told(name)} is made of", _parts(found, name)
    marks = {a.name: edge(a) for a in found.answers}
    for number, each in enumerate(found.tables):
        title = shlex.quote(each.title)
        first = number == 0 and (rows or not found.answers)
        yield escape(each.title), _rows(each, marks, "--format csv" if first else f"--format csv --table {title}", room)
    if any(marks.get(c) for each in found.tables for c in each.columns):
        yield "", wrapped("", _BOUNDS, room or _ANY)
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
                _JSON,
            ),
        )
    if found.figures_used:
        yield "Figures it rests on", _basis(found, spread=room is not None)


def page(
    found: Evaluation, room: int, beside: str = "", options: Mapping[str, str] = {}, *, rows: bool = False
) -> list[Block]:
    """An evaluation as blocks of text; ``beside`` tells what was done to the catalog, ``rows`` is the evaluator's."""
    head = [wrapped("", escape(f"{found.evaluator}: {found.title}"), room)]
    question = {n: v for n, v in found.inputs.items() if v is not None and v != ""}
    if question:
        head.append(wrapped("  asked  ", ", ".join(f"{n} {escape(measure(v))}" for n, v in question.items()), room))
    head.append(wrapped("  from   ", _edition(found) + beside, room))
    blocks: list[Block] = ["\n".join(head)]
    for number, (heading, block) in enumerate(sections(found, room, options, rows=rows)):
        if heading:
            blocks.append(wrapped("", heading, room))
        # Lines from edge to edge are no headings, as which a terminal would show them in the first column.
        edged = isinstance(block, Table) and any(isinstance(row, str) for row in block.rows)
        blocks.append("\n".join(lines(block, room)) if isinstance(block, Table) and edged else block)
        if number == 0 and found.answers and found.bottleneck:
            blocks.append(wrapped("What binds: ", escape(found.bottleneck), room))
    if found.bottleneck and not found.answers:
        blocks.append(wrapped("What binds: ", escape(found.bottleneck), room))
    return blocks


def markdown(found: Evaluation, beside: str = "", options: Mapping[str, str] = {}) -> str:
    """The same page in Markdown."""
    made = [f"## {escape(f'{found.evaluator}: {found.title}')}\n"]
    question = {n: v for n, v in found.inputs.items() if v is not None and v != ""}
    if question:
        asked = ", ".join(f"{n} `{escape(measure(v))}`" for n, v in question.items())
        made.append(f"Asked: {asked}; from {_edition(found)}{beside}.\n")
    if found.bottleneck:
        made.append(f"What binds: {escape(found.bottleneck)}\n")
    for heading, block in sections(found, None, options):
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
    return table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows], _JSON)


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
    return table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows], _JSON)


def _rows(rows: Rows, marks: Mapping[str, str], whole: str, room: int | None) -> Table:
    """A table of the evaluation; where it is too wide, units go into the headings, and those into several lines.

    Args:
        rows: The table.
        marks: What stands before the values of some columns: of those that are called as an answer that is a bound.
        whole: The options that print all of it.
        room: How wide the page is, nothing for any width.
    """
    made = _units(rows, marks, whole)
    for space in (" ", "\n"):
        if room is not None and sum(n + 2 for n in fit(made, _ANY).widths) - 2 > room:
            made = _units(rows, marks, whole, space)
    return made


def _units(rows: Rows, marks: Mapping[str, str], whole: str, space: str = "") -> Table:
    """A table with its units behind each number; in the headings where it is told what stands between their words."""
    made: list[list[str]] = []
    heads: list[Column] = []
    for i, (name, unit, scale) in enumerate(
        zip(rows.columns, rows.units or ("",) * len(rows.columns), columns(rows), strict=True)
    ):
        values = [row[i] for row in rows.rows]
        numbers = any(map(_numeric, values))
        head, mark, above, within = told(name), marks.get(name, ""), "", scale
        head = head.replace(" ", space or " ")
        if space and numbers and scale is not None and scale[1] and unit != "USD":
            above, within = scale[1], (scale[0], "")
        cells = [escape(measure(v, unit, within)) for v in values]
        made.append([f"{mark} {c}" if mark and _numeric(v) else c for v, c in zip(values, cells, strict=True)])
        # Words may be folded, numbers not.
        right = numbers or bool(unit)
        heads.append(Column(head, right=right, fold=i > 0 and not right, keep=i == 0, unit=above))
    return table(heads, list(zip(*made, strict=True)), whole)


def _pasted(suggestion: Suggestion, options: Mapping[str, str], room: int | None) -> str:
    """A command as a shell takes it: on a page in lines that it joins, in Markdown in one line of a block of code."""
    text = escape(command(suggestion, options))
    if room is None:
        return f"```sh\n{text}\n```"
    return "\n".join(folded(text, room))


def _numeric(value: Value | None) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _basis(found: Evaluation, *, spread: bool) -> Table:
    rows: list[tuple[str, ...] | str] = []
    for b in found.figures_used:
        rows.append((escape(f"{b.of} {b.at}"), escape(b.says), escape(b.source), escape(b.as_of)))
        if not spread:
            rows += [("rival", escape(r), "", "") for r in b.conflicting]
            continue
        others = [r for r in b.conflicting if not _AGREES.search(r)]
        rows += [f"  rival: {escape(r)}" for r in others]
        if agreeing := len(b.conflicting) - len(others):
            rows.append(f"  {agreeing} other{'s agree' if agreeing > 1 else ' agrees'}")
    heads = [
        Column("figure", fold=True, least=24),
        Column("says", fold=True, keep=True),
        Column("source", fold=True, least=16, keep=True),
        Column("date", keep=True),
    ]
    return table(heads, rows, _JSON)


def swept(rows: Sequence[Row], whole: str = "--format csv") -> Table:
    """A sweep as one table: the inputs that vary, the answers, and why there are none where there are none.

    Args:
        rows: The combinations.
        whole: The options that print all of it.
    """
    answers: dict[str, str] = {}
    for _, found in rows:
        if not isinstance(found, Exception):
            answers.update({a.name: a.unit for a in found.answers if a.name not in answers})
    given = [_answer(f) for _, f in rows]
    scales = {name: common([_value(g.get(name)) for g in given], unit) for name, unit in answers.items()}
    varied = list(rows[0][0])
    refused = any(isinstance(f, Exception) for _, f in rows)
    used = [_calibration(f) for _, f in rows]
    several = "calibration" not in varied and len({*used} - {None}) > 1
    cells = []
    for number, (chosen, found) in enumerate(rows):
        row = [escape(measure(chosen[name])) for name in varied]
        row += [escape(measure(used[number]))] if several else []
        for name, unit in answers.items():
            answer = given[number].get(name)
            shown = escape(measure(_value(answer), unit, scales[name]))
            row.append(f"{edge(answer)} {shown}" if answer is not None and edge(answer) else shown)
        if refused:
            row.append(f"{found.reason}: {escape(str(found))}" if isinstance(found, Exception) else "")
        cells.append(row)
    heads = [Column(n, right=_numeric(rows[0][0][n]), keep=True) for n in varied]
    # Beside the inputs, why there is no answer matters most; it is folded before an answer is left out.
    heads += [Column("calibration", fold=True, least=16, keep=True)] if several else []
    heads += [
        Column(told(n), right=any(_numeric(_value(g.get(n))) for g in given), keep=i == 0)
        for i, n in enumerate(answers)
    ]
    return table([*heads, *([Column("refused", fold=True, least=16, keep=True)] if refused else [])], cells, whole)


def marked(rows: Sequence[Row]) -> str:
    """What the marks in a sweep mean; empty where there are none."""
    bounds = [f for _, f in rows if not isinstance(f, Exception) and any(map(edge, f.answers))]
    if not bounds:
        return ""
    ideal = all(_calibration(f) == "none" for f in bounds)
    return f"{_BOUNDS} Without a calibration nothing is lost." if ideal else _BOUNDS


def _calibration(found: Evaluation | RefusalError) -> Value | None:
    return None if isinstance(found, Exception) else found.inputs.get("calibration")


def _answer(found: Evaluation | RefusalError) -> dict[str, Answer]:
    return {} if isinstance(found, Exception) else {a.name: a for a in found.answers}


def _value(answer: Answer | None) -> Value | None:
    return None if answer is None else answer.value
