"""The page of an evaluation: a first page of at most 40 lines, and the same page in full.

The first page has a summary, the evidence, disputed and missing data, and the beginning of the tables; ``--full`` prints all
answers, breakdowns, tables, assumptions and sources. ``trnspec eval`` prints it, and ``str(evaluation)`` is the first page
at 80 columns. Text, Markdown and HTML are three renderings of the same sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isclose

from attrs import evolve

from trnspec.errors import UsageError
from trnspec.evaluation import summary
from trnspec.evaluation.measures import Scale, columns, common, edge, mark, measure, outward, predicted, printed
from trnspec.evaluation.result import COLUMN_ANSWERS, Answer, Evaluation, Part, Value, command
from trnspec.evaluation.result import Table as Rows
from trnspec.evidence import PREDICTED
from trnspec.text_table import (
    Block,
    Cell,
    Column,
    Heading,
    Number,
    TextTable,
    columns_of,
    escape,
    folded,
    html,
    in_html,
    markdown,
    padded,
    rendered,
    table,
    wrapped,
)

Section = tuple[str, Block]
"""A heading, which may be empty, and what is below it."""

LINES = 40
"""The most lines of a first page of 80 columns."""
WIDTH = 80
"""The width of ``str(evaluation)``."""
BOUNDS = ">= and <= mark bounds: at least, at most; the other end is not known."
IDEAL = "Without a calibration the result is ideal (no losses): lower bounds on time, upper bounds on throughput."

_AGREES = re.compile(r", agrees\b")
_SHARE = re.compile(r"^(  (?:bottleneck|largest part) .*) \(\d[^()]*%[^()]*\)$", re.MULTILINE)
"""The share of the bottleneck in a summary."""
_JSON = "--format json"


class _CommandSection(str):
    """A section that is a command of a shell."""

    __slots__ = ()


def page(
    evaluation: Evaluation,
    width: int = WIDTH,
    catalog: str = "",
    options: Mapping[str, str] = {},
    *,
    full: bool = False,
    columns: str | None = None,
) -> list[Block]:
    """The page as blocks of text: the first page, unless ``full`` or ``columns`` are given or the full page fits in 40 lines.

    Args:
        evaluation: The evaluation.
        width: The width of the page.
        catalog: What follows the edition of the catalog, such as `` in DIR``.
        options: The options that chose the catalog, for the commands of suggestions.
        full: All sections.
        columns: The columns to print of the tables that have them, separated by commas; all of them when left out.

    Raises:
        UsageError: No table has any of the columns.
    """
    head = [wrapped("", escape(evaluation.heading), width), *summary.lines_of(summary.summary_items(evaluation), width)]
    blocks: list[Block] = ["\n".join(head)]
    for section in _sections(evaluation, options):
        blocks += _in_text(section, width)
    if inputs := _inputs(evaluation):
        blocks += _in_text(("Inputs", ", ".join(f"{n} {v}" for n, v in inputs.items())), width)
    blocks.append(wrapped("catalog  ", _edition(evaluation) + catalog, width))
    if columns is not None:
        return _only(blocks, columns)
    if full or len(rendered(blocks, width).splitlines()) <= LINES:
        return blocks
    return _first_page(evaluation, head, width, catalog, options)


def _in_text(section: Section, width: int) -> list[Block]:
    """A section as blocks of text, its paragraph indented below the heading."""
    heading, block = section
    if isinstance(block, _CommandSection):
        block = "\n".join(folded(block, width))
    elif isinstance(block, str):
        block = wrapped("  " if heading else "", block, width)
    return [Heading(wrapped("", heading, width)), block] if heading else [block]


def markdown_page(
    evaluation: Evaluation,
    catalog: str = "",
    options: Mapping[str, str] = {},
    *,
    full: bool = False,
) -> str:
    """The same page in Markdown, whose first page has no limit of lines."""
    items = [(name, text) for name, text, *_ in summary.summary_items(evaluation)]
    if full:
        sections = list(_sections(evaluation, options, counted=False))
    else:
        items += [*summary.evidence_lines(evaluation), *summary.uncertain(evaluation), ("more", _rest(evaluation))]
        sections = [_beginning(*section) for section in _first_sections(evaluation, options)]
    lines = [f"## {escape(evaluation.heading)}\n", *(f"- {name}: {text}" for name, text in items), ""]
    for heading, block in sections:
        lines += [f"### {heading}\n"] if heading else []
        text = f"```sh\n{block}\n```" if isinstance(block, _CommandSection) else block
        lines.append(markdown(block) if isinstance(block, TextTable) else f"{text}\n")
    if full and (inputs := _inputs(evaluation)):
        lines += ["### Inputs\n", f"{', '.join(f'{n} `{v}`' for n, v in inputs.items())}\n"]
    lines.append(f"Catalog: {_edition(evaluation)}{catalog}.\n")
    return "\n".join(lines)


def html_page(evaluation: Evaluation) -> str:
    """The same page in HTML, for a notebook."""
    lines = [f"<h3>{in_html(evaluation.heading)}</h3>", "<ul>"]
    lines += [f"<li>{in_html(name)}: {in_html(text)}</li>" for name, text, *_ in summary.summary_items(evaluation)]
    lines.append("</ul>")
    for heading, block in _sections(evaluation, {}, counted=False):
        lines += [f"<h4>{in_html(heading)}</h4>"] if heading else []
        tag = "pre" if isinstance(block, _CommandSection) else "p"
        lines.append(html(block) if isinstance(block, TextTable) else f"<{tag}>{in_html(block)}</{tag}>")
    return "\n".join([*lines, f"<p>Catalog: {in_html(_edition(evaluation))}.</p>"])


def _only(blocks: Sequence[Block], columns: str) -> list[Block]:
    """The blocks with the tables of rows, which are those with a hint about columns, reduced to some columns."""
    selected: dict[int, Block] = {}
    error = UsageError("--columns: the page has no table whose columns can be chosen")
    for index, block in enumerate(blocks):
        if isinstance(block, TextTable) and "--columns" in block.hint:
            try:
                selected[index] = block.selected(columns)
            except UsageError as unknown:
                error = unknown
    if not selected:
        raise error
    return [selected.get(index, block) for index, block in enumerate(blocks)]


# The first page.


def _first_page(
    evaluation: Evaluation, head: Sequence[str], width: int, catalog: str, options: Mapping[str, str]
) -> list[Block]:
    """The summary, what could change the answer, and as many of the first sections as fit in :data:`LINES` lines."""
    blocks: list[Block] = ["\n".join([*head, *_layout_lines(evaluation, width)])]
    if notes := [*summary.evidence_lines(evaluation), *summary.uncertain(evaluation)]:
        size = max(columns_of(name) for name, _ in notes)
        text = "\n".join(wrapped(f"  {padded(name, size)}  ", text, width) for name, text in notes)
        blocks.append(text if text.count("\n") < summary.MOST_UNCERTAIN else "\n".join(summary.lines_of(notes, width)))
    rest = [wrapped("more     ", _rest(evaluation), width), wrapped("catalog  ", _edition(evaluation) + catalog, width)]
    if _has_bounds(evaluation, (t for t in evaluation.tables if t.first_rows)):
        rest = [wrapped("", BOUNDS, width), *rest]
    end = "\n".join(rest)
    for heading, block, rows in _first_sections(evaluation, options):
        least = min(rows, 2, len(block.rows)) if isinstance(block, TextTable) else rows
        for shown in range(rows, least - 1, -1):
            added = [*blocks, *_in_text(_beginning(heading, block, shown), width)]
            if len(rendered([*added, end], width).splitlines()) <= LINES:
                blocks = added
                break
    if any(isinstance(b, TextTable) and [c.name for c in b.columns][2:3] == ["share"] for b in blocks):
        blocks[0] = _SHARE.sub(r"\1", str(blocks[0]))  # the breakdown has it
    return [*blocks, end]


def _beginning(heading: str, block: Block, rows: int) -> Section:
    """A section with the first rows of its table, whose heading states how many there are."""
    if not isinstance(block, TextTable) or len(block.rows) <= rows:
        return heading, block
    return f"{heading} (first {rows} of {len(block.rows)} rows)", evolve(block, rows=block.rows[:rows])


def _first_sections(evaluation: Evaluation, options: Mapping[str, str]) -> Iterator[tuple[str, Block, int]]:
    """The sections of a first page, the most important first: heading, block, and the most rows to show."""
    for each in sorted(evaluation.tables, key=lambda table: -table.first_rows):
        begins_with_best = _is_best(evaluation, each)
        rest = evolve(each, rows=each.rows[1:]) if begins_with_best else each
        if rest.first_rows and rest.rows:
            title = f"{_capital(each.title)}{', after the best' if begins_with_best else ''}"
            yield escape(title), table_of(evaluation, rest), each.first_rows
    for heading, text in _commands(evaluation, options):
        yield heading, text, 1
    for name in list(dict.fromkeys(p.of for p in evaluation.parts))[:1]:
        parts = sorted((p for p in evaluation.parts if p.value), key=lambda p: -abs(p.value))
        breakdown = _breakdown([evolve(p, note="") for p in parts if p.of == name], evaluation.answer(name).unit)
        yield f"{_capital(summary.label(name))} breakdown, largest first", breakdown, len(breakdown.rows)
    if others := summary.not_summarized(evaluation):
        answers = [evolve(a, note=a.note if len(a.note) <= 2 * summary.BAR else "") for a in others]
        yield "Other answers", _answers(answers), len(answers)


def _rest(evaluation: Evaluation) -> str:
    """The line that names what ``--full`` adds."""
    counts = {
        "answers": len(evaluation.answers),
        "breakdowns": len({p.of for p in evaluation.parts}),
        "tables": len(evaluation.tables),
        "assumptions": len(evaluation.assumptions),
        "catalog figures": len(evaluation.figures_used),
        "commands": len(list(_commands(evaluation, {}))),
    }
    named = (f"{n} {name if n > 1 else name.removesuffix('s')}" for name, n in counts.items() if n)
    return f"--full: {', '.join(named)}, inputs"


def _is_best(evaluation: Evaluation, rows: Rows) -> bool:
    """True if the first row of a table is the plan that the answers are about."""
    values = {a.name: a.value for a in evaluation.answers}
    row = dict(zip(rows.columns, rows.rows[0], strict=True)) if rows.rows else {}
    pairs = [(value, values.get(COLUMN_ANSWERS.get(name, name))) for name, value in row.items()]
    same = [a is None or isclose(a, b) for a, b in pairs if summary.is_number(b)]  # type: ignore[arg-type]  # numbers
    return rows.first_rows > 0 and bool(same) and all(same)


_LAYOUT = (
    *("pools", "tp", "pp", "dp", "cp", "ep", "replicas", "prefill_tp", "prefill_replicas", "chunk"),
    *("microbatch", "schedule", "interleave", "uneven", "zero", "recompute", "sequence_parallel"),
)
"""The columns of a table of plans that are the layout."""


def _layout_lines(evaluation: Evaluation, width: int) -> list[str]:
    """The layout of the best plan, where the first row of a table has it and no answer."""
    best = next((t for t in evaluation.tables if _is_best(evaluation, t)), None)
    if best is None or any(a.name == "layout" for a in evaluation.answers):
        return []
    row = dict(zip(best.columns, best.rows[0], strict=True))
    text = ", ".join(f"{summary.label(n)} {measure(row[n])}" for n in _LAYOUT if row.get(n) not in (None, ""))
    size = max(columns_of(name) for name, *_ in summary.summary_items(evaluation))
    return [wrapped(f"  {padded('layout', size)}  ", escape(text), width)] if text else []


# The details.


def _sections(evaluation: Evaluation, options: Mapping[str, str], *, counted: bool = True) -> Iterator[Section]:
    """The parts of the page after the summary.

    Args:
        evaluation: The evaluation.
        options: The options that chose the catalog.
        counted: Whether values that agree with a catalog figure are counted rather than listed.
    """
    if evaluation.answers:
        yield "Answers", _answers(evaluation.answers)
    if evaluation.evidence is not None:
        yield "Evidence", escape(summary.evidence_text(evaluation))
        if details := [(name, escape(text)) for name, text in summary.evidence_details(evaluation.evidence)]:
            yield "", table([Column("evidence"), Column("value", wrap=True)], details, _JSON)
    yield from _commands(evaluation, options)
    if evaluation.bottleneck:
        yield summary.bottleneck_label(evaluation), escape(evaluation.bottleneck)
    for name in dict.fromkeys(p.of for p in evaluation.parts):
        parts = [p for p in evaluation.parts if p.of == name]
        yield _capital(f"{summary.label(name)} breakdown"), _breakdown(parts, evaluation.answer(name).unit)
    for each in evaluation.tables:
        yield escape(_capital(each.title)), table_of(evaluation, each)
    if _has_bounds(evaluation, evaluation.tables):
        yield "", BOUNDS
    if evaluation.assumptions:
        rows = [(summary.label(a.name), escape(a.value), escape(a.why)) for a in evaluation.assumptions]
        heads = [Column("assumption", wrap=True), Column("value", wrap=True, keep=True), Column("origin", wrap=True)]
        yield "Assumptions", table(heads, rows, _JSON)
    if evaluation.figures_used:
        yield "Catalog figures used", _figures_used(evaluation, counted=counted)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _inputs(evaluation: Evaluation) -> dict[str, str]:
    return {n: escape(measure(v)) for n, v in evaluation.inputs.items() if v is not None and v != ""}


def _edition(evaluation: Evaluation) -> str:
    edition = f"edition {evaluation.edition}" if evaluation.edition else "working edition"
    return f"{edition}, as of {evaluation.as_of}" if evaluation.as_of else edition


def _commands(evaluation: Evaluation, options: Mapping[str, str]) -> Iterator[tuple[str, _CommandSection]]:
    """The commands of the answers and the suggested ones, each with a heading."""
    for answer in evaluation.answers:
        if answer.unit == summary.COMMAND:
            note = f": {answer.note}" if answer.note else ""
            yield escape(f"{_capital(summary.label(answer.name))}{note}"), _CommandSection(escape(str(answer.value)))
    for suggestion in evaluation.suggestions:
        text = _CommandSection(escape(command(suggestion, options)))
        yield f"Next command: {escape(suggestion.note or suggestion.evaluator)}", text


def _answers(answers: Iterable[Answer]) -> TextTable:
    rows = []
    for answer in answers:
        if answer.unit == summary.COMMAND:
            continue
        shown, name = printed(answer), summary.label(answer.name)
        name = f"{name} ({summary.SYNONYMS[name]})" if name in summary.SYNONYMS else name
        rows.append((name, escape(shown.value), shown.interval, escape(answer.note)))
    heads = [
        Column("answer", wrap=True),
        Column("value", right=True, wrap=True, keep=True),
        Column("interval", wrap=True),
        Column("note", wrap=True),
    ]
    return _without_empty(heads, rows, 2)


def _breakdown(parts: Sequence[Part], unit: str) -> TextTable:
    # Shares are of the sum of sizes: a part that subtracts has a share too, and none is above 100 %.
    total = sum(abs(p.value) for p in parts)
    within = common([p.value for p in parts], unit)
    rows = []
    for part in parts:
        share = abs(part.value) / total if total else 0.0
        value = cell(part.value, unit, within)
        rows.append(
            (
                escape(summary.label(part.name)),
                value,
                f"{share:.1%}",
                "#" * round(summary.BAR * share),
                escape(part.note),
            )
        )
    heads = [
        Column("part", wrap=True),
        Column(with_unit("value", within), right=True, keep=True),
        Column("share", right=True, keep=True),
        Column("", importance=-1),
        Column("note", wrap=True),
    ]
    return _without_empty(heads, rows, 4)


def _without_empty(heads: Sequence[Column], rows: Sequence[tuple[Cell, ...]], first: int) -> TextTable:
    """A table without the columns from ``first`` on that have no text in any row."""
    kept = [i for i in range(len(heads)) if i < first or any(row[i] for row in rows)]
    return table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows], _JSON)


def with_unit(name: str, within: Scale | None) -> str:
    """The heading of a column of numbers in one unit, if they have one."""
    return f"{name} [{within[1]}]" if within is not None and within[1] else name


def cell(value: Value | None, unit: str, within: Scale | None, sign: str = "", end: float | None = None) -> Cell:
    """A cell: a number without its unit where its column has one, any other value as text.

    Args:
        value: The value.
        unit: Its base unit.
        within: The unit of the column, if it has one.
        sign: ``~`` of a prediction, which has three digits; ``>=`` or ``<=`` of a bound, rounded outward.
        end: The end of a bound that is printed; by default the value.
    """
    if value is None:
        return None
    text = escape(measure(value, unit, None if within is None else (within[0], "")))
    if not summary.is_number(value):
        return text
    assert isinstance(value, (int, float))
    if sign and within is not None:
        shown = (value if end is None else end) / within[0]
        text = predicted(shown) if sign == "~" else outward(shown, lower=sign == ">=")
    return Number(value, f"{sign}{' ' if sign in _BOUND else ''}{text}")


_BOUND = (">=", "<=")


def _marks(evaluation: Evaluation, rows: Rows) -> dict[str, str]:
    """The marks of the columns of a table; of one without losses they are bounds, whatever the answers are."""
    marks = {a.name: edge(a) or mark(a) for a in evaluation.answers}
    marks |= {short: marks[name] for short, name in COLUMN_ANSWERS.items() if name in marks}
    if rows.kind != "ideal":
        return {name: marks[name] for name in rows.columns if name in marks}
    units = dict(zip(rows.columns, rows.units or ("",) * len(rows.columns), strict=True))
    return {name: ">=" if unit == "s" else "<=" for name, unit in units.items() if name in marks and unit in PREDICTED}


def _has_bounds(evaluation: Evaluation, tables: Iterable[Rows]) -> bool:
    return any(sign in _BOUND for rows in tables for sign in _marks(evaluation, rows).values())


def table_of(evaluation: Evaluation, rows: Rows) -> TextTable:
    """A table of an evaluation as the page shows it: numbers with units, and with marks where answers of the name have some."""
    units = rows.units or ("",) * len(rows.columns)
    marks = _marks(evaluation, rows)
    heads: list[Column] = []
    cells: list[list[Cell]] = []
    for i, (name, unit, within) in enumerate(zip(rows.columns, units, columns(rows), strict=True)):
        values = [row[i] for row in rows.rows]
        right = any(map(summary.is_number, values)) or bool(unit)
        cells.append([cell(v, unit, within, marks.get(name, "")) for v in values])
        heads.append(
            Column(with_unit(summary.label(name), within), right=right, wrap=i > 0 and not right, keep=i == 0, key=name)
        )
    return table(heads, list(zip(*cells, strict=True)), "--columns")


def _figures_used(evaluation: Evaluation, *, counted: bool) -> TextTable:
    """The figures with their sources; values that agree are counted rather than listed where ``counted``."""
    rows: list[tuple[str, ...] | str] = []
    for figure in evaluation.figures_used:
        rows.append(
            (escape(f"{figure.of} {figure.at}"), escape(figure.says), escape(figure.source), escape(figure.as_of))
        )
        if not counted:
            rows += [("conflicting value", escape(c), "", "") for c in figure.conflicting]
            continue
        conflicting = [c for c in figure.conflicting if not _AGREES.search(c)]
        rows += [f"  conflicting value: {escape(c)}" for c in conflicting]
        if agreeing := len(figure.conflicting) - len(conflicting):
            rows.append(f"  {agreeing} other{'s agree' if agreeing > 1 else ' agrees'}")
    heads = [
        Column("figure", wrap=True),
        Column("published", wrap=True, keep=True),
        Column("source", wrap=True, keep=True),
        Column("date", keep=True),
    ]
    return table(heads, rows, _JSON)
