"""Runs an evaluator: checks its inputs, its result, and reports an evaluator that raises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields

from trnspec.errors import UsageError
from trnspec.evaluation.assumptions import INPUTS, applied
from trnspec.evaluation.assumptions import evaluate as under_assumptions
from trnspec.evaluation.inputs import Input, bound, call, inputs
from trnspec.evaluation.result import ROWS, Evaluation, Suggestion
from trnspec.evidence import KINDS, Evidence, UsedFigure
from trnspec.plugins.api import loaded
from trnspec.plugins.failures import described, guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trnspec.evaluation.figure_path import CatalogLike
    from trnspec.evaluation.result import Answer, Table
    from trnspec.plugins.api import Evaluator

CLOSE = 1e-9
"""Relative tolerance of the sum of the parts of an answer."""


def run(evaluator: Evaluator, provider: str, catalog: CatalogLike, given: Mapping[str, Any]) -> Evaluation:
    """Runs an evaluator.

    Args:
        evaluator: The evaluator.
        provider: The plugin that provides it, for messages: ``the plugin energy of trnspec-energy 0.1.0``.
        catalog: The catalog.
        given: Inputs by name; also ``assume`` and ``use_claims``, see :mod:`trnspec.evaluation.assumptions`.

    Raises:
        UsageError: An input is missing, unknown or wrong; or the evaluator cannot be imported, raised another error, or
            returned an invalid result.
        RefusalError: There is no answer.
    """
    own = {name: value for name, value in given.items() if name not in INPUTS}
    assumptions = {name: given[name] for name in INPUTS if name in given}
    return under_assumptions(catalog, lambda used: _run(evaluator, provider, used, own), **assumptions)


def _run(evaluator: Evaluator, provider: str, catalog: CatalogLike, given: Mapping[str, Any]) -> Evaluation:
    who = f"the evaluator {evaluator.name} of {provider}"
    function, inputs_ = resolved(evaluator, provider)
    values = bound(inputs_, given, evaluator.name)
    with guarded(f"the evaluator {evaluator.name}", provider):
        evaluation: Evaluation = call(function, catalog, values)
    try:
        fault = next(unsound(evaluation, evaluator.name), "")
    except Exception as error:
        # Fields of wrong types can fail in their own ways.
        raise UsageError(f"{who} returned an invalid result: {described(error)}") from error
    if fault:
        raise UsageError(f"{who} returned an invalid result: {fault}")
    return evolve(
        evaluation,
        inputs=evaluation.inputs or {n: plain(v) for n, v in values.items()},
        edition=evaluation.edition or catalog.edition or "",
        as_of=evaluation.as_of or catalog.as_of or "",
    )


def traced(evaluator: Evaluator, provider: str, catalog: CatalogLike, given: Mapping[str, Any], what: str) -> Any:
    """The trace of an evaluation.

    Args:
        evaluator: The evaluator.
        provider: The plugin that provides it.
        catalog: The catalog.
        given: Inputs by name, and assumptions.
        what: ``timeline``, plain data in the Chrome trace event format; or ``execution trace``, the content of each file by what
            follows the stem of its name.

    Raises:
        UsageError: The evaluator has no such trace, or an input is wrong.
        RefusalError: There is no answer, or no exact timeline, or its schedule has no order of passes.
    """
    function = evaluator.trace if what == "timeline" else evaluator.execution
    if function is None:
        raise UsageError(f"the evaluator {evaluator.name} has no {what}")
    used, rest = applied(catalog, given)
    if rest.pop("use_claims", False):
        raise UsageError(f"the {what} is that of one value of each figure; give assume instead of use_claims")
    values = bound(resolved(evaluator, provider)[1], rest, evaluator.name)
    with guarded(f"the {what} of {evaluator.name}", provider):
        return call(loaded(evaluator.name, function), used, values)


def resolved(evaluator: Evaluator, provider: str) -> tuple[Callable[..., Any], tuple[Input, ...]]:
    """The function of an evaluator, imported now, and its inputs.

    Raises:
        UsageError: It cannot be imported, or its inputs are not valid; the message names evaluator and plugin.
    """
    try:
        function = evaluator.load()
        return function, inputs(function, evaluator.name)
    except UsageError as error:
        raise UsageError(f"the evaluator {evaluator.name} of {provider} cannot be used: {error}") from error


def plain(value: Any) -> Any:
    """The value of an input as an evaluation reports it: several values as one text."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def unsound(result: object, name: str) -> Iterator[str]:
    """Faults of the result of an evaluator; none if it is valid.

    Args:
        result: What the function returned.
        name: The name of the evaluator.
    """
    if not isinstance(result, Evaluation):
        yield f"{type(result).__module__}.{type(result).__qualname__}; an Evaluation is expected"
        return
    faults = list(_forms(result))
    if result.evaluator != name:
        faults.append(f"its evaluator is {result.evaluator!r}")
    if not faults:
        faults += [*_answers(result.answers), *_parts(result), *(w for t in result.tables for w in _table(t))]
    yield from faults


_TEXTS = {kind: [f.name for f in fields(kind) if f.type in ("str", "Kind")] for kind in ROWS.values()}
"""The attributes of rows that are texts."""


def _forms(result: Evaluation) -> Iterator[str]:
    for name, kind in ROWS.items():
        values = getattr(result, name)
        if not isinstance(values, tuple) or not all(isinstance(v, kind) for v in values):
            yield f"its {name} are not a tuple of {kind.__name__}"
            continue
        for value in values:
            others = [n for n in _TEXTS[kind] if not isinstance(getattr(value, n), str)]
            if others:
                yield f"{' and '.join(others)} of {value!r} should be texts"
    if not all(isinstance(r, str) for b in result.figures_used if isinstance(b, UsedFigure) for r in b.conflicting):
        yield "its figures_used have conflicting values that are not texts"
    for name in ("title", "bottleneck", "edition", "as_of"):
        if not isinstance(getattr(result, name), str):
            yield f"its {name} is not a text"
    evidence: Any = result.evidence
    if evidence is not None and not isinstance(evidence, Evidence):
        yield "its evidence is not an Evidence"
    yield from _mappings(result)
    if not result.answers and not result.tables:
        yield "it has neither answers nor tables"


def _mappings(result: Evaluation) -> Iterator[str]:
    given: Any = result.inputs
    if not isinstance(given, Mapping):
        yield "its inputs are not a mapping"
        return
    if not all(isinstance(s.inputs, Mapping) for s in result.suggestions if isinstance(s, Suggestion)):
        yield "its suggestions have inputs that are not a mapping"
    for key, value in given.items():
        if not isinstance(key, str) or (value is not None and not _sound(value)):
            yield f"its inputs have {key} = {value!r}; a finite number, a text, true or false is expected"


def _sound(value: object) -> bool:
    """True for a value that an answer can have."""
    return isinstance(value, (str, bool)) or _number(value)


def _number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer too large for a float.
        return False


def _answers(answers: Iterable[Answer]) -> Iterator[str]:
    seen: set[str] = set()
    for answer in answers:
        name, value = answer.name, answer.value
        if name in seen:
            yield f"it answers {name} twice"
        seen.add(name)
        if answer.kind not in KINDS:
            yield f"{name} has the kind {answer.kind!r}; expected one of {', '.join(filter(None, KINDS))}"
        if not _sound(value):
            yield f"{name} is {value!r}; a finite number, a text, true or false is expected"
            continue
        ends = [e for e in (answer.low, answer.high) if e is not None]
        if not all(map(_number, ends)):
            yield f"the interval of {name} is [{answer.low}, {answer.high}]; finite numbers are expected"
        elif ends and not _number(value):
            yield f"{name} has an interval and is not a number"
        elif not _within(answer):
            yield f"{name} is {value}, which is outside its interval [{answer.low}, {answer.high}]"


def _within(answer: Answer) -> bool:
    # Value and ends are computed separately and may differ by rounding.
    value: Any = answer.value
    slack = CLOSE * abs(value) if _number(value) else 0
    above = answer.low is None or answer.low <= value + slack
    return above and (answer.high is None or value <= answer.high + slack)


def _parts(result: Evaluation) -> Iterator[str]:
    answers = {a.name: a for a in result.answers}
    for name in dict.fromkeys(p.of for p in result.parts):
        parts = [p for p in result.parts if p.of == name]
        if name not in answers:
            yield f"it has parts of {name}, which is not one of its answers"
        elif not _number(answers[name].value):
            yield f"it has parts of {name}, which is not a number"
        elif not all(_number(p.value) for p in parts):
            yield f"the parts of {name} are {', '.join(f'{p.name} {p.value}' for p in parts)}; numbers are expected"
        else:
            total, value = math.inf, float(answers[name].value)
            with suppress(OverflowError):
                total = math.fsum(p.value for p in parts)
            if not math.isclose(total, value, rel_tol=CLOSE):
                yield f"the parts of {name} sum to {total!r}, not to {value!r}"


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
