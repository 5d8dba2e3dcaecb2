"""Elasticities of an answer: by how many percent it changes when a figure grows by one percent.

The elasticity of an answer ``y`` with respect to a figure ``x`` is ``d log y / d log x``. It is computed as a central
difference in log space: the evaluator runs at ``x e^h`` and at ``x e^-h`` with ``h`` = :data:`STEP`, so that the error is
of the order ``h^2`` where the answer is smooth, and ``h`` at a kink. Where the answer has a kink at the present value, as a maximum of two times
has, the slopes on both sides differ; the note then has both, and the elasticity is their mean.

A time is homogeneous of degree -1 in all rates and inverse latencies: their elasticities sum to -1, which the tests check.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.assumptions import applied
from trnspec.evaluation.figure_path import FigurePath, figures_of, scaled
from trnspec.evaluation.result import Evaluation, Table
from trnspec.evaluation.runner import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trnspec.evaluation.assumptions import Evaluate
    from trnspec.evaluation.figure_path import Documents
    from trnspec.plugins.api import Evaluator

STEP = 1e-4
"""The change of a figure, in log space: 0.01 %."""
COLUMNS = ("figure", "value", "elasticity", "note")
"""The columns of the table."""

_KINK = 1e-2
"""Slopes on both sides that differ by more than this are both reported; curvature makes a smooth answer differ by ``STEP``."""
_NOISE = 1e-9
"""An elasticity below this is rounding of the evaluator, and is reported as 0."""


@frozen
class Elasticity:
    """The elasticity of an answer with respect to one figure.

    Attributes:
        path: The figure.
        value: The elasticity; ``None`` where the answer is 0, or the evaluator refuses on both sides.
        note: What a reader should know: a kink, or a refusal on one side.
    """

    path: FigurePath
    value: float | None
    note: str = ""


def sensitivity(
    evaluator: Evaluator, provider: str, catalog: Documents, given: Mapping[str, Any], answer: str = ""
) -> tuple[Evaluation, Table]:
    """An evaluation, and the elasticities of one of its answers as a table.

    Args:
        evaluator: The evaluator.
        provider: The plugin that provides it.
        catalog: The catalog.
        given: The inputs, assumptions included; an assumed figure is varied from its assumed value.
        answer: The name of an answer that is a number; the first number if empty.

    Raises:
        UsageError: As for :func:`trnspec.evaluation.runner.run`, or the answer is not a number.
        UnknownNameError: There is no such answer.
        RefusalError: There is no answer.
    """
    evaluation = run(evaluator, provider, catalog, given)
    used, rest = applied(catalog, given)
    name = answer or first_number(evaluation)
    rows = elasticities(used, lambda changed: run(evaluator, provider, changed, rest), evaluation, name)
    cells = tuple((str(r.path), "" if (f := r.path.figure) is None else f.value.text, r.value, r.note) for r in rows)
    return evaluation, Table(f"sensitivity of {name}", COLUMNS, cells, first_rows=10)


def elasticities(
    catalog: Documents, evaluate: Evaluate, evaluation: Evaluation, answer: str = ""
) -> tuple[Elasticity, ...]:
    """The elasticities of an answer, the largest first, equal ones in the order of the figures used.

    Args:
        catalog: The catalog of the evaluation.
        evaluate: Runs the evaluator on a catalog, with the inputs of the evaluation.
        evaluation: The evaluation.
        answer: The name of an answer that is a number; the first number if empty.

    Raises:
        UnknownNameError: There is no such answer.
        UsageError: It is a text, or no answer is a number.
    """
    name = answer or first_number(evaluation)
    present = evaluation.number(name)
    rows = [_elasticity(catalog, evaluate, path, name, present) for path in figures_of(evaluation, catalog.graph)]
    return tuple(sorted(rows, key=lambda row: -1.0 if row.value is None else abs(row.value), reverse=True))


def first_number(evaluation: Evaluation) -> str:
    """The name of the first answer that is a number.

    Raises:
        UsageError: There is none.
    """
    for answer in evaluation.answers:
        if not isinstance(answer.value, (bool, str)):
            return answer.name
    raise UsageError(f"the evaluator {evaluation.evaluator} has no answer that is a number")


def _elasticity(catalog: Documents, evaluate: Evaluate, path: FigurePath, name: str, present: float) -> Elasticity:
    if not present:
        return Elasticity(path, None, f"{name} is 0")
    slopes: list[float] = []
    notes: list[str] = []
    for sign, side in ((-1.0, "below"), (1.0, "above")):
        try:
            changed = evaluate(scaled(catalog, path, Fraction(math.exp(sign * STEP)))).number(name)
        except RefusalError as refusal:
            notes.append(f"{refusal.reason} {side} it")
            continue
        ratio = changed / present
        if ratio > 0.0:
            slopes.append(math.log(ratio) / (sign * STEP))
        else:
            notes.append(f"{name} is {changed:g} {side} it")
    if not slopes:
        return Elasticity(path, None, "; ".join(notes))
    if len(slopes) == 2 and abs(slopes[0] - slopes[1]) > _KINK:
        notes.append(f"{_rounded(slopes[0]):.3g} below, {_rounded(slopes[1]):.3g} above")
    return Elasticity(path, _rounded(math.fsum(slopes) / len(slopes)), "; ".join(notes))


def _rounded(slope: float) -> float:
    return slope if abs(slope) > _NOISE else 0.0
