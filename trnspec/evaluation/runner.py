"""Running an evaluator: inputs checked before, the evaluation checked after, and what breaks named."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.errors import TrnspecError, UsageError
from trnspec.evaluation.inputs import Input, bound, inputs
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table, UsedFigure
from trnspec.plugins.failures import print_traceback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trnspec.plugins.api import Evaluator

CLOSE = 1e-9
"""How far the parts of an answer may be from it, relative to it."""


def run(evaluator: Evaluator, giver: str, catalog: Any, given: Mapping[str, Any]) -> Evaluation:
    """What an evaluator finds.

    Args:
        evaluator: The evaluator.
        giver: Who brings it, for messages: ``the plugin energy of trnspec-energy 0.1.0``.
        catalog: The catalog.
        given: Inputs by name.

    Raises:
        UsageError: An input is missing, unknown or wrong; or the evaluator cannot be imported, or broke, or what it gave
            is unsound.
        RefusalError: There is no answer.
    """
    who = f"the evaluator {evaluator.name} of {giver}"
    function, inputs_ = asked(evaluator, giver)
    values = bound(inputs_, given, evaluator.name)
    try:
        found = function(catalog, **values)
    except (TrnspecError, KeyboardInterrupt):
        raise
    except BaseException as error:  # whatever it raises, it ends with a message and no more than this question
        print_traceback(error)
        raise UsageError(f"{who} broke: {_told(error)}") from error
    try:
        wrong = next(unsound(found, evaluator.name), "")
    except Exception as error:
        # Fields of other types than they should have can fail in ways of their own.
        raise UsageError(f"{who} gave something unsound: {_told(error)}") from error
    if wrong:
        raise UsageError(f"{who} gave something unsound: {wrong}")
    evaluation: Evaluation = found
    question = evaluation.inputs or {n: _plain(v) for n, v in values.items()}
    return evolve(
        evaluation,
        inputs=question,
        edition=evaluation.edition or catalog.edition or "",
        as_of=evaluation.as_of or catalog.as_of or "",
    )


def asked(evaluator: Evaluator, giver: str) -> tuple[Callable[..., Any], tuple[Input, ...]]:
    """The function of an evaluator, imported now, and its inputs.

    Raises:
        UsageError: It cannot be imported, or its inputs are not told as they should be; the message names both.
    """
    try:
        function = evaluator.load()
        return function, _asked(function, evaluator.name)
    except UsageError as error:
        raise UsageError(f"the evaluator {evaluator.name} of {giver} cannot be used: {error}") from error


_kept = functools.lru_cache(64)(inputs)


def _asked(function: Callable[..., Any], name: str) -> tuple[Input, ...]:
    """The inputs of an evaluator, read once for all combinations of a sweep."""
    return _kept(function, name) if isinstance(function, FunctionType) else inputs(function, name)


def _told(error: BaseException) -> str:
    # Not even the message of an error need be sound.
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001
        text = "its message cannot be shown"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def unsound(found: object, name: str) -> Iterator[str]:
    """What is wrong with what an evaluator gave, in words; nothing where all is well.

    Args:
        found: What it gave.
        name: The name of the evaluator.
    """
    if not isinstance(found, Evaluation):
        yield f"{type(found).__module__}.{type(found).__qualname__}; an Evaluation is expected"
        return
    wrong = list(_forms(found))
    if found.evaluator != name:
        wrong.append(f"it says that it is of the evaluator {found.evaluator!r}")
    if not wrong:
        wrong += [*_answers(found.answers), *_parts(found), *(w for t in found.tables for w in _table(t))]
    yield from wrong


_FORMS: dict[str, type] = {
    "answers": Answer,
    "parts": Part,
    "assumptions": Assumption,
    "figures_used": UsedFigure,
    "tables": Table,
}


_TEXTS: dict[type, tuple[str, ...]] = {
    Answer: ("name", "unit", "note"),
    Part: ("of", "name", "note"),
    Assumption: ("name", "value", "why"),
    UsedFigure: ("of", "at", "says", "source", "as_of"),
    Table: ("title",),
}


def _forms(found: Evaluation) -> Iterator[str]:
    for name, kind in _FORMS.items():
        values = getattr(found, name)
        if not isinstance(values, tuple) or not all(isinstance(v, kind) for v in values):
            yield f"its {name} are not a tuple of {kind.__name__}"
            continue
        for value in values:
            wrong = [n for n in _TEXTS[kind] if not isinstance(getattr(value, n), str)]
            if wrong:
                yield f"{' and '.join(wrong)} of {value!r} should be texts"
    if not all(isinstance(r, str) for b in found.figures_used if isinstance(b, UsedFigure) for r in b.conflicting):
        yield "its basis has rivals that are not texts"
    for name in ("title", "bottleneck", "edition", "as_of"):
        if not isinstance(getattr(found, name), str):
            yield f"its {name} is not a text"
    question: Any = found.inputs
    if not isinstance(question, Mapping):
        yield "its question is not a mapping"
        return
    for key, value in question.items():
        if not isinstance(key, str) or (value is not None and not _sound(value)):
            yield f"its question has {key} = {value!r}; a finite number, a text, true or false is expected"
    if not found.answers and not found.tables:
        yield "it has neither answers nor tables"


def _sound(value: object) -> bool:
    """True for a value that an answer may have."""
    return isinstance(value, (str, bool)) or _number(value)


def _number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # A whole number that no float can hold.
        return False


def _answers(answers: Iterable[Answer]) -> Iterator[str]:
    seen: set[str] = set()
    for answer in answers:
        name, value = answer.name, answer.value
        if name in seen:
            yield f"it answers {name} twice"
        seen.add(name)
        if not _sound(value):
            yield f"{name} is {value!r}; a finite number, a text, true or false is expected"
            continue
        ends = [e for e in (answer.low, answer.high) if e is not None]
        if not all(map(_number, ends)):
            yield f"the interval of {name} is [{answer.low}, {answer.high}]; finite numbers are expected"
        elif ends and not _number(value):
            yield f"{name} has an interval and is no number"
        elif not _within(answer):
            yield f"{name} is {value}, which lies outside its interval [{answer.low}, {answer.high}]"


def _within(answer: Answer) -> bool:
    # The ends come another way than the value, so that they may differ from it by a rounding.
    value: Any = answer.value
    slack = CLOSE * abs(value) if _number(value) else 0
    above = answer.low is None or answer.low <= value + slack
    return above and (answer.high is None or value <= answer.high + slack)


def _parts(found: Evaluation) -> Iterator[str]:
    answers = {a.name: a for a in found.answers}
    for name in dict.fromkeys(p.of for p in found.parts):
        parts = [p for p in found.parts if p.of == name]
        if name not in answers:
            yield f"it has parts of {name}, which it does not answer"
        elif not _number(answers[name].value):
            yield f"it has parts of {name}, which is no number"
        elif not all(_number(p.value) for p in parts):
            yield f"the parts of {name} are {', '.join(f'{p.name} {p.value}' for p in parts)}; numbers are expected"
        else:
            total, value = _sum(p.value for p in parts), float(answers[name].value)
            if not math.isclose(total, value, rel_tol=CLOSE):
                yield f"the parts of {name} sum to {total!r}, and it is {value!r}"


def _sum(values: Iterable[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _table(table: Table) -> Iterator[str]:
    if not all(isinstance(t, str) for t in (*table.columns, *table.units)):
        yield f"the table {table.title} has columns or units that are not texts"
        return
    columns = len(table.columns)
    if len(table.units) not in (0, columns):
        yield f"the table {table.title} has {columns} columns and {len(table.units)} units"
    for number, row in enumerate(table.rows, 1):
        if len(row) != columns:
            yield f"the table {table.title} has {columns} columns and {len(row)} cells in row {number}"
        elif not all(v is None or _sound(v) for v in row):
            yield f"the table {table.title} has a value in row {number} that is not finite, or of another type: {row}"
