"""Evaluations as one table in base units, for CSV: the answers in one row, or a table of the evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import evolve

from trnspec.cli.request import EvalRequest
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.inputs import bound, inputs
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.result import Table as Rows
from trnspec.evaluation.summary import SYNONYMS, label
from trnspec.evaluation.sweeps import FigureValue, Row
from trnspec.evidence import rank_class
from trnspec.output.reporters.evaluation import cells, record
from trnspec.text_table import Column, TextTable, table

KIND = " kind"
"""The end of the name of a column that has the kind of evidence of an answer."""

EVIDENCE = "evidence"
"""The column of the kind of evidence in the tables of a sweep, of which one row has several predictions."""

REFUSED = ("refused", "message", "place", "hint")
"""The last columns of every sweep: why a combination has no answer; empty where it has one."""


def one(request: EvalRequest, evaluation: Evaluation) -> TextTable:
    """One evaluation: the table that is requested, the first table of an evaluator of rows, or the answers.

    Raises:
        UsageError: There is no table of that title, or several.
    """
    chosen = _chosen(request, evaluation)
    if chosen is not None:
        return table(_heads(chosen), chosen.rows)
    row = record(evaluation)
    return table(list(row), [list(row.values())])


def table_of(evaluation: Evaluation) -> TextTable:
    """The first table of an evaluation."""
    return table(_heads(evaluation.tables[0]), evaluation.tables[0].rows)


def many(request: EvalRequest, rows: Sequence[Row]) -> TextTable:
    """A sweep: a row for each combination, or for each row of its table; for a refusal the inputs and the reason.

    The columns do not depend on which combinations are rejected, as long as one has an answer.

    Raises:
        UsageError: There is no table of that title, or several.
    """
    tables = [None if isinstance(r, RefusalError) else _chosen(request, r) for _, r in rows]
    if request.table is not None or request.evaluator.rows or any(tables):
        return _tables(rows, tables)
    name = request.evaluator.name
    known = inputs(request.evaluator.load(), name)
    figures = [{n: v for n, v in chosen.items() if isinstance(v, FigureValue)} for chosen, _ in rows]
    given = [
        flat(bound(known, {**request.given, **{n: v for n, v in chosen.items() if n not in varied}}, name))
        for (chosen, _), varied in zip(rows, figures, strict=True)
    ]
    evaluations = [r for _, r in rows if not isinstance(r, RefusalError)]
    input_heads = dict.fromkeys([*axis_cells(figures[0]), *given[0], *(n for e in evaluations for n in e.inputs)])
    # An answer that has an interval in some rows has columns for its ends in all of them.
    answers: dict[str, dict[str, Any]] = {}
    for evaluation in evaluations:
        for answer, group in cells(evaluation).items():
            answers.setdefault(answer, {}).update(group)
    heads = [*input_heads, *(head for group in answers.values() for head in group)]
    records = [
        # The inputs of a refusal that are left to the evaluator are unknown: it did not choose any.
        axis_cells(varied)
        | (
            {n: None if v == "auto" else v for n, v in values.items()}
            if isinstance(result, RefusalError)
            else record(result)
        )
        for values, varied, (_, result) in zip(given, figures, rows, strict=True)
    ]
    return answer_table(heads, records, [result for _, result in rows], axis_cells(rows[0][0]))


def ranked(shown: TextTable, sort: str | None) -> TextTable:
    """A table of evaluations in the order that is requested.

    Bounds are not compared with estimates, so they are sorted by themselves, after them; rows without an answer are last.

    Raises:
        UsageError: There is no column of that name.
    """
    ordered = shown.sorted(sort)
    names = [column.name for column in ordered.columns]
    kinds = {name: i for i, name in enumerate(names) if name.endswith(KIND) or name == EVIDENCE}
    if sort is None or not kinds:
        return ordered
    by = ordered.columns[ordered.index(sort.removeprefix("-"), "--sort")].name.partition(" [")[0]
    at = kinds.get(f"{by}{KIND}", next(iter(kinds.values())))
    return evolve(ordered, rows=tuple(sorted(ordered.rows, key=lambda row: rank_class(row[at]))))


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as cells: several values of one input as one text."""
    return {n: ", ".join(map(str, v)) if isinstance(v, tuple) else v for n, v in values.items()}


def axis_cells(combination: Mapping[str, Any]) -> dict[str, Any]:
    """Cells of the varying inputs: figures in base units, with the unit in the heading."""
    return {
        (f"{n} [{v.unit}]" if v.unit else n) if isinstance(v, FigureValue) else n: getattr(v, "number", v)
        for n, v in combination.items()
    }


def _column(head: str, *, identity: bool) -> Column:
    """The column of a heading; one of the same name as why there is no answer gets a prefix."""
    name = f"input or answer {head}" if head in REFUSED else head
    return Column(name, key=SYNONYMS.get(label(head.partition(" [")[0]), ""), identity=identity)


def answer_table(
    heads: Sequence[str],
    records: Sequence[Mapping[str, Any]],
    results: Sequence[Evaluation | RefusalError],
    varied: Collection[str],
) -> TextTable:
    """Records under their headings, then why there is no answer; a heading of the same name gets a prefix."""
    return table(
        [*(_column(head, identity=head in varied) for head in heads), *REFUSED],
        [[*(r.get(h) for h in heads), *_refusal(result)] for r, result in zip(records, results, strict=True)],
    )


def _refusal(result: Evaluation | RefusalError) -> tuple[str, ...]:
    if isinstance(result, RefusalError):
        return result.reason, str(result), result.place, result.hint
    return ("",) * len(REFUSED)


def _tables(rows: Sequence[Row], tables: Sequence[Rows | None]) -> TextTable:
    """The tables of all combinations in one, the inputs that vary and the kind of evidence before their columns."""
    stated = any(isinstance(r, Evaluation) and r.evidence is not None for _, r in rows)
    axes = axis_cells(rows[0][0])
    varied = [*axes, *([EVIDENCE] if stated else [])]
    columns = dict.fromkeys(head for each in tables if each is not None for head in _heads(each))
    names = {head: f"answer {head}" if head in varied else head for head in columns}
    records: list[dict[str, Any]] = []
    results: list[Evaluation | RefusalError] = []
    for (chosen, result), each in zip(rows, tables, strict=True):
        kind = result.evidence.kind if isinstance(result, Evaluation) and result.evidence is not None else ""
        cells_: list[dict[str, Any]] = [{}]
        if each is not None:
            cells_ = [{names[h]: v for h, v in zip(_heads(each), row, strict=True)} for row in each.rows]
        records += [{**axis_cells(chosen), EVIDENCE: kind, **row} for row in cells_]
        results += [result] * len(cells_)
    return answer_table([*varied, *names.values()], records, results, axes)


def _chosen(request: EvalRequest, evaluation: Evaluation) -> Rows | None:
    """The table that CSV prints; ``None`` for the answers."""
    title = request.table
    if title is None and request.sensitivity is not None:
        return next((t for t in evaluation.tables if t.title.startswith("sensitivity of ")), None)
    if title is None:
        if evaluation.rows:
            return Rows("Rows", tuple(evaluation.rows[0]), tuple(tuple(row.values()) for row in evaluation.rows))
        first = request.evaluator.rows or not evaluation.answers
        return evaluation.tables[0] if first and evaluation.tables else None
    folded = title.casefold()
    matches = [t for t in evaluation.tables if t.title.casefold() == folded]
    matches = matches or [t for t in evaluation.tables if folded in t.title.casefold()]
    if len(matches) != 1:
        titles = ", ".join(repr(t.title) for t in matches or evaluation.tables) or "none"
        what = "several tables have" if matches else "no table has"
        raise UsageError(f"--table: {what} {title!r} in the title; there are {titles}")
    return matches[0]


def _heads(rows: Rows) -> list[str]:
    units = rows.units or ("",) * len(rows.columns)
    return [f"{n} [{u}]" if u else n for n, u in zip(rows.columns, units, strict=True)]
