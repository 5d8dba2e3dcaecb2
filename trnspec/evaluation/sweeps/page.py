"""A sweep as one table: the inputs that vary, the answers, and why some combinations have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from trnspec.evaluation.measures import bound, common, edge, mark, measure, predicted
from trnspec.evaluation.page import BOUNDS, IDEAL
from trnspec.evaluation.summary import is_number, label
from trnspec.evaluation.sweeps.axes import FigureValue
from trnspec.evidence import mixed, rank_class
from trnspec.text_table import Block, Column, Number, Table, escape, html, in_html, markdown, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.errors import RefusalError
    from trnspec.evaluation.result import Answer, Evaluation, Value
    from trnspec.evidence import Kind
    from trnspec.text_table import Cell

Row = tuple["Mapping[str, Value | None]", "Evaluation | RefusalError"]
"""One row of a sweep: the inputs that vary, and the result."""

_COMPARED = ("step_time", "mfu", "time_to_first_token", "time_per_output_token", "throughput")
"""The answers that people compare; they are the last to be hidden."""
_PLANNED = ("system", "run_time", "run_cost", "million_tokens", "in_time", "probability")
"""The answers of plans, which are shown before those."""
MIXED = (
    "The rows have different kinds of evidence. Ideal rows are bounds, which are not comparable with the others: "
    "they are ranked by themselves, last."
)
_LONGEST = 80
"""The most characters of the message of a refusal in a cell."""
_MOST_NOTES = 10
SHORT = {"time_to_first_token": "TTFT", "time_per_output_token": "TPOT"}
"""Answers that people call by other names."""


def heading(evaluator: str, rows: Sequence[Row]) -> str:
    """Heading of a sweep: ``training: 3 combinations``."""
    return f"{evaluator}: {len(rows):,} {'combination' if len(rows) == 1 else 'combinations'}"


def sweep_table(rows: Sequence[Row]) -> Table:
    """A sweep as one table, each column in one unit."""
    units: dict[str, str] = {}
    for _, result in rows:
        if not isinstance(result, Exception):
            units.update({a.name: a.unit for a in result.answers if a.name not in units})
    answers = [_answers(result) for _, result in rows]
    varied = list(rows[0][0])
    calibrations = [_calibration(result) for _, result in rows]
    several = "calibration" not in varied and len({*calibrations} - {None}) > 1
    kinds = [_kind(result) for _, result in rows]
    refused = any(isinstance(result, Exception) for _, result in rows)

    columns = [
        Column(n, right=is_number(rows[0][0][n]) or isinstance(rows[0][0][n], FigureValue), keep=True, identity=True)
        for n in varied
    ]
    cells: list[list[Cell]] = [[_input(chosen[n]) for n in varied] for chosen, _ in rows]
    if mixed(kinds):
        columns.append(Column("evidence", keep=True))
        for row, kind in zip(cells, kinds, strict=True):
            row.append(kind)
    if several:
        columns.append(Column("calibration", wrap=True, importance=1))
        for row, calibration in zip(cells, calibrations, strict=True):
            row.append(escape(measure(calibration)))
    for name, unit in units.items():
        values = [a[name].value if name in a else None for a in answers]
        within = common(values, unit)
        columns.append(_column(name, values, within))
        for row, given in zip(cells, answers, strict=True):
            row.append(_cell(given.get(name), unit, within))
    if refused:
        columns.append(Column("refused", wrap=True, keep=True))
        numbers = _long_refusals(rows)
        for row, (_, result) in zip(cells, rows, strict=True):
            row.append(_refused(result, numbers) if isinstance(result, Exception) else "")
    return table(columns, cells, "--columns")


def sweep_page(
    rows: Sequence[Row], head: str, width: int, *, columns: str | None = None, sort: str | None = None
) -> list[Block]:
    """A sweep as blocks of text.

    Args:
        rows: The combinations.
        head: What was evaluated: evaluator, inputs and catalog in one line.
        width: The width of the page.
        columns: The columns to print, separated by commas; all of them when left out.
        sort: The column to sort by, with ``-`` before it for the largest first.

    Raises:
        UsageError: There is no column of such a name.
    """
    shown = _ranked(rows, sort).selected(columns)
    notes = [*_refusal_notes(rows), sweep_note(rows)]
    return [wrapped("", head, width), shown, *(wrapped("", note, width) for note in notes if note)]


def sweep_markdown(rows: Sequence[Row], head: str, *, columns: str | None = None, sort: str | None = None) -> str:
    """The same page in Markdown."""
    notes = [*map(escape, _refusal_notes(rows)), sweep_note(rows)]
    shown = _ranked(rows, sort).selected(columns)
    return f"{head}\n\n{markdown(shown)}" + "".join(f"\n{note}\n" for note in notes if note)


def sweep_html(rows: Sequence[Row], head: str) -> str:
    """The same page in HTML, for a notebook."""
    parts = [
        f"<p>{in_html(head)}</p>",
        html(_ranked(rows, None)) if rows else "",
        *(f"<p>{in_html(note)}</p>" for note in (*_refusal_notes(rows), sweep_note(rows))),
    ]
    return "\n".join(part for part in parts if part not in ("", "<p></p>"))


def _refused(refusal: RefusalError, numbers: Mapping[str, int]) -> str:
    """The reason of a refusal with its message, or with the number of the note that has it."""
    message = str(refusal)
    return f"{refusal.reason} [{numbers[message]}]" if message in numbers else f"{refusal.reason}: {escape(message)}"


def _long_refusals(rows: Sequence[Row]) -> dict[str, int]:
    """The messages of refusals that would take several lines of a cell, numbered."""
    messages = [str(result) for _, result in rows if isinstance(result, Exception)]
    return {m: n for n, m in enumerate(dict.fromkeys(m for m in messages if len(m) > _LONGEST), 1)}


def _refusal_notes(rows: Sequence[Row]) -> list[str]:
    """The long messages of refusals, each once."""
    notes = [f"[{number}] {message}" for message, number in _long_refusals(rows).items()]
    more = len(notes) - _MOST_NOTES
    return [*notes[:_MOST_NOTES], f"{more} more are in --format json."] if more > 0 else notes


def sweep_note(rows: Sequence[Row]) -> str:
    """Note on ``>=``, ``<=`` and the ranking of bounds; empty where no bound is shown."""
    bounds = [r for _, r in rows if not isinstance(r, Exception) and any(map(edge, r.answers))]
    notes = [BOUNDS] if bounds else []
    if bounds and all(_calibration(r) == "none" for r in bounds):
        notes.append(IDEAL)
    kinds = {_kind(result) for _, result in rows}
    return " ".join([*notes, MIXED] if mixed(kinds) and "ideal" in kinds else notes)


def _kind(result: Evaluation | RefusalError) -> Kind:
    return "" if isinstance(result, Exception) or result.evidence is None else result.evidence.kind


def _ranked(rows: Sequence[Row], sort: str | None) -> Table:
    """The table in an order; bounds are not compared with estimates, so they are sorted by themselves."""
    shown = sweep_table(rows).sorted(sort)
    if sort is None or not mixed(_kind(result) for _, result in rows):
        return shown
    at = [c.name for c in shown.columns].index("evidence")
    return evolve(shown, rows=tuple(sorted(shown.rows, key=lambda row: rank_class(row[at]))))


def _column(name: str, values: Sequence[Value | None], within: tuple[float, str] | None) -> Column:
    head = SHORT.get(name, label(name))
    unit = f" [{within[1]}]" if within is not None and within[1] else ""
    right = any(map(is_number, values))
    importance = 3 if name in _PLANNED else 2 if name in _COMPARED else 0
    return Column(f"{head}{unit}", right=right, importance=importance, key=name)


def _cell(answer: Answer | None, unit: str, within: tuple[float, str] | None) -> Cell:
    if answer is None:
        return None
    if edge(answer) and answer.kind == "ideal" and within is not None:
        text = bound(answer, within[0])
    elif mark(answer) and within is not None and is_number(answer.value):
        text = predicted(answer.value / within[0])  # type: ignore[operator]  # a number
    else:
        text = escape(measure(answer.value, unit, None if within is None else (within[0], "")))
    text = f"{edge(answer)} {text}" if edge(answer) else f"{mark(answer)}{text}"
    return Number(answer.value, text) if is_number(answer.value) else text  # type: ignore[arg-type]  # a number


def _input(value: Value | None) -> Cell:
    text = escape(measure(value))
    if isinstance(value, FigureValue):
        return Number(value.number, text)
    return Number(value, text) if is_number(value) else text  # type: ignore[arg-type]  # a number


def _calibration(result: Evaluation | RefusalError) -> Value | None:
    return None if isinstance(result, Exception) else result.inputs.get("calibration")


def _answers(result: Evaluation | RefusalError) -> dict[str, Answer]:
    return {} if isinstance(result, Exception) else {a.name: a for a in result.answers}
