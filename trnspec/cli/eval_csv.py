"""Evaluations as one table of base units, for programs: the answers in one line, or a table of the evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.errors import UsageError
from trnspec.evaluation.inputs import bound, inputs
from trnspec.evaluation.result import RefusalError
from trnspec.output.reporters.evaluation import cells, record
from trnspec.text_table import Table, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.cli.eval import Asking
    from trnspec.evaluation.result import Evaluation
    from trnspec.evaluation.result import Table as Rows
    from trnspec.evaluation.sweep_page import Row

REFUSED = ("refused", "message", "place", "hint")
"""The last columns of every sweep: why a combination has no answer; empty where it has one."""


def one(asking: Asking, found: Evaluation) -> Table:
    """One evaluation: the table that is asked for, else the first of one whose answer that is, else the answers.

    Raises:
        UsageError: There is no table of that title, or several.
    """
    only = _chosen(asking, found)
    if only is not None:
        return table(_heads(only), only.rows)
    made = record(found)
    return table(list(made), [list(made.values())])


def many(asking: Asking, rows: Sequence[Row]) -> Table:
    """A sweep: a line for each combination, or for each row of its table; of a refusal the question and the reason.

    The columns do not depend on which combinations are refused, as long as one has an answer.

    Raises:
        UsageError: There is no table of that title, or several.
    """
    tables = [None if isinstance(f, RefusalError) else _chosen(asking, f) for _, f in rows]
    if asking.table is not None or asking.evaluator.rows or any(tables):
        return _tables(rows, tables)
    name = asking.evaluator.name
    asked = [flat(bound(inputs(asking.evaluator.load(), name), {**asking.given, **chosen}, name)) for chosen, _ in rows]
    answered = [f for _, f in rows if not isinstance(f, RefusalError)]
    question = dict.fromkeys([*asked[0], *(n for f in answered for n in f.inputs)])
    # An answer that has an interval in some rows alone has its ends beside it all the same.
    answers: dict[str, dict[str, Any]] = {}
    for found in answered:
        for of, each in cells(found).items():
            answers.setdefault(of, {}).update(each)
    heads = [*question, *(head for each in answers.values() for head in each)]
    made = [_left(v) if isinstance(f, RefusalError) else record(f) for v, (_, f) in zip(asked, rows, strict=True)]
    return _table(heads, made, [f for _, f in rows])


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as cells: several values of one as one text."""
    return {n: ", ".join(map(str, v)) if isinstance(v, tuple) else v for n, v in values.items()}


def _left(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The question of a refusal: what was left to the evaluator is not known, for it found nothing."""
    return {n: None if v == "auto" else v for n, v in asked.items()}


def _table(
    heads: Sequence[str], made: Sequence[Mapping[str, Any]], found: Sequence[Evaluation | RefusalError]
) -> Table:
    """Cells under their headings, and behind them why there is no answer; one of the same name is told apart."""
    told = [f"asked or answered {head}" if head in REFUSED else head for head in heads]
    return table([*told, *REFUSED], [[*(r.get(h) for h in heads), *_why(f)] for r, f in zip(made, found, strict=True)])


def _why(found: Evaluation | RefusalError) -> tuple[str, ...]:
    if isinstance(found, RefusalError):
        return found.reason, str(found), found.place, found.hint
    return ("",) * len(REFUSED)


def _tables(rows: Sequence[Row], tables: Sequence[Rows | None]) -> Table:
    """The tables of all combinations in one, the inputs that vary before their columns."""
    varied = list(rows[0][0])
    columns = dict.fromkeys(head for each in tables if each is not None for head in _heads(each))
    named = {head: f"answer {head}" if head in varied else head for head in columns}
    made: list[dict[str, Any]] = []
    of: list[Evaluation | RefusalError] = []
    for (chosen, found), each in zip(rows, tables, strict=True):
        some: list[dict[str, Any]] = [{}]
        if each is not None:
            some = [{named[h]: v for h, v in zip(_heads(each), row, strict=True)} for row in each.rows]
        made += [{**chosen, **row} for row in some]
        of += [found] * len(some)
    return _table([*varied, *named.values()], made, of)


def _chosen(asking: Asking, found: Evaluation) -> Rows | None:
    """The table that CSV has; none where it has the answers."""
    wanted = asking.table
    if wanted is None:
        first = asking.evaluator.rows or not found.answers
        return found.tables[0] if first and found.tables else None
    low = wanted.casefold()
    fitting = [t for t in found.tables if t.title.casefold() == low]
    fitting = fitting or [t for t in found.tables if low in t.title.casefold()]
    if len(fitting) != 1:
        told = ", ".join(repr(t.title) for t in fitting or found.tables) or "none"
        what = "several tables have" if fitting else "no table has"
        raise UsageError(f"--table: {what} {wanted!r} in the title; there are {told}")
    return fitting[0]


def _heads(rows: Rows) -> list[str]:
    units = rows.units or ("",) * len(rows.columns)
    return [f"{n} [{u}]" if u else n for n, u in zip(rows.columns, units, strict=True)]
