"""Analyses of an answer by the figures that it depends on: elasticities, and the value that a figure needs for a target.

The elasticity of an answer ``y`` with respect to a figure ``x`` is ``d log y / d log x``. It is computed as a central
difference in log space: the evaluator runs at ``x e^h`` and at ``x e^-h`` with ``h`` = :data:`STEP`, so that the error is
of the order ``h^2`` where the answer is smooth, and ``h`` at a kink. Where the answer has a kink at the present value, as a maximum of two times
has, the slopes on both sides differ; the note then has both, and the elasticity is their mean. A time is homogeneous of
degree -1 in all rates and inverse latencies: their elasticities sum to -1.

For a target such as ``step_time=20 s`` a figure is multiplied by 2, 4, 16, ... up to :data:`FARTHEST`, then divided by the
same, until the target lies between two answers; a calibrated share is not above 1. Bisection in log space then narrows the
bracket to :data:`CLOSE`, for which the answer is taken to be monotone in the figure. Where no value suffices, the refusal
has the answer at the farthest value, the limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from attrs import evolve, frozen

from trnspec.errors import QuantityError, RefusalError, UsageError
from trnspec.evaluation.figure_path import CatalogLike, FigurePath, calibrations, figure_path, figures_of, scaled
from trnspec.evaluation.measures import measure, multiples
from trnspec.evaluation.result import Answer, Evaluation, Table
from trnspec.evaluation.runner import Evaluate, applied, run
from trnspec.graph.graph import Graph
from trnspec.plugins.api import Evaluator
from trnspec.quantities.grammar import PARTS
from trnspec.quantities.quantity import Qualifier, Quantity, parse, render
from trnspec.quantities.units import Dimension

# Elasticities.

STEP = 1e-4
"""The change of a figure, in log space: 0.01 %."""
COLUMNS = ("figure", "value", "elasticity", "note")
"""The columns of the table."""

_KINK = 1e-2
"""Slopes on both sides that differ by more than this are both reported; curvature makes a smooth answer differ by ``STEP``."""
_NOISE = 1e-9
"""An elasticity below this is rounding of the evaluator, and is reported as 0."""


def sensitivity(
    evaluator: Evaluator, provider: str, catalog: CatalogLike, given: Mapping[str, Any], answer: str = ""
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
    name = answer or next((a.name for a in evaluation.answers if not isinstance(a.value, (bool, str))), "")
    if not name:
        raise UsageError(f"the evaluator {evaluation.evaluator} has no answer that is a number")
    rows = elasticities(used, lambda changed: run(evaluator, provider, changed, rest), evaluation, name)
    cells = tuple((str(path), "" if (f := path.figure) is None else f.value.text, *row) for path, *row in rows)
    return evaluation, Table(f"sensitivity of {name}", COLUMNS, cells, first_rows=10)


Elasticity = tuple[FigurePath, float | None, str]
"""A figure, the elasticity with respect to it, and what a reader should know: a kink, or a refusal on one side.

It is ``None`` where the answer is 0, or the evaluator refuses on both sides.
"""


def elasticities(catalog: CatalogLike, evaluate: Evaluate, evaluation: Evaluation, name: str) -> list[Elasticity]:
    """The elasticities of an answer, the largest first, equal ones in the order of the figures used.

    Args:
        catalog: The catalog of the evaluation.
        evaluate: Runs the evaluator on a catalog, with the inputs of the evaluation.
        evaluation: The evaluation.
        name: The name of an answer that is a number.

    Raises:
        UnknownNameError: There is no such answer.
        UsageError: It is a text.
    """
    present = evaluation.number(name)
    rows = [_elasticity(catalog, evaluate, path, name, present) for path in figures_of(evaluation, catalog.graph)]
    return sorted(rows, key=lambda row: -1.0 if row[1] is None else abs(row[1]), reverse=True)


def _elasticity(catalog: CatalogLike, evaluate: Evaluate, path: FigurePath, name: str, present: float) -> Elasticity:
    if not present:
        return (path, None, f"{name} is 0")
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
        return (path, None, "; ".join(notes))
    if len(slopes) == 2 and abs(slopes[0] - slopes[1]) > _KINK:
        notes.append(f"{_rounded(slopes[0]):.3g} below, {_rounded(slopes[1]):.3g} above")
    return (path, _rounded(math.fsum(slopes) / len(slopes)), "; ".join(notes))


def _rounded(slope: float) -> float:
    return slope if abs(slope) > _NOISE else 0.0


# Targets.

FARTHEST = 2.0**40
"""The largest factor, and the inverse of the smallest, by which a figure is changed; farther away is its limit."""
CLOSE = 1e-10
"""The width of the bracket at which bisection ends, relative to the figure."""

_REACHED = 1e-6
"""Relative distance of the answer at the value found from the target, at most; farther away, it jumps there."""
_EDGE = 1e-6
"""Tolerance in log space of the last value before a refusal."""
_DIGITS = 4
_NUMBER = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)\s*(?P<unit>.*)", re.ASCII)
_DIMENSIONS = {
    "s": Dimension.TIME,
    "B": Dimension.INFORMATION,
    "B/s": Dimension.BANDWIDTH,
    "FLOP/s": Dimension.FLOP_RATE,
    "W": Dimension.POWER,
    "J": Dimension.ENERGY,
}


@frozen
class Target:
    """The value that an answer is to have.

    Attributes:
        name: The name of the answer.
        text: The value as written.
        value: In the unit of the answer.
        now: The present value.
        unit: The unit.
    """

    name: str
    text: str
    value: float
    now: float
    unit: str

    @classmethod
    def of(cls, name: str, text: str, evaluation: Evaluation) -> Target:
        """The target of an answer of an evaluation.

        Raises:
            UnknownNameError: There is no such answer.
            UsageError: It is not a number, or the text is not a positive number in a unit of it.
        """
        now, answer = evaluation.number(name), evaluation.answer(name)
        value = 0.0
        if (dimension := _DIMENSIONS.get(answer.unit)) is not None:
            with suppress(QuantityError):
                quantity = parse(text, dimension)
                value = float(quantity.value) if quantity.qualifier is Qualifier.EXACT else 0.0
        if not value and (match := _NUMBER.fullmatch(text)):
            value = float(match["number"].replace(",", "")) * (_factor(match["unit"], answer.unit) or 0.0)
        if not value:
            what = f"a value above 0 in {answer.unit}" if answer.unit else "a number above 0"
            example = measure(answer.value, answer.unit)
            raise UsageError(f"target: {name} is {what}, such as {example}; {text!r} is not")
        return cls(name, text, value, now, answer.unit)

    def shown(self, value: float) -> str:
        """A value of the answer with its unit."""
        return measure(value, self.unit, digits=_DIGITS)


def _factor(symbol: str, unit: str) -> float | None:
    """Factor from a symbol to the unit; ``None`` where it is not a multiple of the unit."""
    symbol = " ".join(symbol.split())
    return next((size for size, known in multiples(unit) if known == symbol), None)


def solve(
    evaluator: Evaluator, provider: str, catalog: CatalogLike, given: Mapping[str, Any], target: str, vary: str
) -> Evaluation:
    """The value of a figure, or of a calibrated parameter, at which an answer has a value.

    Args:
        evaluator: The evaluator.
        provider: The plugin that provides it.
        catalog: The catalog.
        given: The inputs.
        target: The answer and its value: ``step_time=20 s``, ``mfu=50 %``.
        vary: The figure: ``trn2.48xlarge.network.bandwidth``, ``CALIBRATION.achieved.matmul``.

    Returns:
        The evaluation at that value, with the answers ``needed``, ``present`` and ``ratio`` before its own.

    Raises:
        UsageError: The target or the figure is invalid, or the evaluation does not use the figure.
        UnknownNameError: There is no such answer, document or path.
        RefusalError: ``out-of-reach``: no value of the figure suffices; ``jump``: the answer jumps over the target.
    """
    name, _, value = (part.strip() for part in target.partition("="))
    if not (name and value):
        raise UsageError(f"target: {target!r}; ANSWER=VALUE is expected, such as 'step_time=20 s'")
    present = run(evaluator, provider, catalog, given)
    used, rest = applied(catalog, given)
    path = _used(used.graph, vary, present)
    wanted = Target.of(name.replace("-", "_").replace(" ", "_"), value, present)

    def at(factor: float) -> Evaluation:
        return run(evaluator, provider, scaled(used, path, Fraction(factor)), rest)

    factor = _needed(wanted, path, lambda factor: at(factor).number(wanted.name))
    figure = path.figure
    assert figure is not None
    quantity = figure.value
    needed = _spelled(quantity, Fraction(factor))
    result = run(evaluator, provider, scaled(used, path, Fraction(factor), needed), rest)
    dimension, now = quantity.dimension, float(quantity.value)
    unit = _UNITS.get(dimension, "" if dimension is Dimension.RATIO else dimension.base)
    times = "the present" if factor == 1.0 else f"{factor:.4g} times the present"
    assumed = {a.name for a in result.assumptions}
    return evolve(
        result,
        title=f"{path} for {wanted.name} = {wanted.text}: {needed}, {times} {quantity.text}; {result.title}",
        answers=(
            Answer("needed", now * factor, unit, note=f"{path}: {needed}"),
            Answer("present", now, unit, note=f"{path}: {quantity.text}"),
            Answer("ratio", factor, note="needed over present"),
            *result.answers,
        ),
        inputs={**present.inputs, "target": f"{wanted.name}={wanted.text}", "vary": str(path)},
        assumptions=(*(a for a in present.assumptions if a.name not in assumed), *result.assumptions),
        suggestions=(),
    )


def _spelled(quantity: Quantity, factor: Fraction) -> str:
    """A multiple of a quantity, in its unit as it is spelled there: ``Gbps``, not ``Gbit/s``."""
    text = render(quantity.value * factor, quantity.unit, _DIGITS)
    match = PARTS.match(quantity.text)
    return text if match is None else text.removesuffix(quantity.unit.symbol) + match[6]


_UNITS = {dimension: unit for unit, dimension in _DIMENSIONS.items()}


def _used(graph: Graph, vary: str, evaluation: Evaluation) -> FigurePath:
    """The figure to vary, which the evaluation must use."""
    path = figure_path(graph, vary)
    if path.figure is None:
        raise UsageError(f"vary: {path} has no value; assume gives one")
    if not path.figure.value.value:
        raise UsageError(f"vary: {path} is 0; a share of it is 0 too")
    known = [str(p) for p in figures_of(evaluation, graph)]
    if str(path) not in known:
        calibration = path.node.kind == "Calibration" and path.node not in calibrations(evaluation, graph)
        what = f"the calibration {path.node.name}" if calibration else str(path)
        raise UsageError(f"vary: the evaluation does not use {what}; it uses {', '.join(known) or 'no figures'}")
    return path


_Point = tuple[float, float]
"""A factor on the figure, and the answer there."""


def _needed(target: Target, path: FigurePath, answer: Callable[[float], float]) -> float:
    """The factor on a figure at which an answer, as a function of that factor, has a value.

    Raises:
        RefusalError: ``out-of-reach`` or ``jump``.
    """
    if target.now == target.value:
        return 1.0
    limits: list[tuple[_Point, str]] = []
    for factors in _factors(path):
        near, far, refusal = _toward(target, answer, factors)
        if far is not None:
            return _bisected(target, path, answer, *sorted((near, far)))
        limits.append((near, refusal))
    raise _out_of_reach(target, path, limits)


def _factors(path: FigurePath) -> tuple[list[float], list[float]]:
    """The factors to try, ever farther from 1: above and below."""
    figure = path.figure
    assert figure is not None
    most = max(1.0, min(path.most / float(figure.value.value), FARTHEST))
    down = [2.0**-exponent for exponent in (1, 2, 4, 8, 16, 32)]
    return [*(1.0 / f for f in down if f * most > 1.0), most], [*down, 1.0 / FARTHEST]


def _toward(
    target: Target, answer: Callable[[float], float], factors: list[float]
) -> tuple[_Point, _Point | None, str]:
    """The points between which the target lies in one direction; or the farthest, and why there is none beyond it."""
    near, refusal = (1.0, target.now), ""
    while factors:
        factor, *factors = factors
        try:
            value = answer(factor)
        except RefusalError as error:
            refusal = f"{error.reason}: {error}"
            middle = math.sqrt(near[0] * factor)
            # The edge of what is refused is approached by halves.
            factors = [] if abs(math.log(factor / near[0])) < _EDGE else [middle, factor]
            continue
        if (near[1] - target.value) * (value - target.value) <= 0.0:
            return near, (factor, value), ""
        near = (factor, value)
    return near, None, refusal


def _bisected(
    target: Target, path: FigurePath, answer: Callable[[float], float], below: _Point, above: _Point
) -> float:
    (low, at_low), (high, at_high) = below, above
    rising = at_high > at_low
    while high > low * (1.0 + CLOSE):
        middle = math.sqrt(low * high)
        value = answer(middle)
        if (value > target.value) == rising:
            high, at_high = middle, value
        else:
            low, at_low = middle, value
    factor, value = min(((low, at_low), (high, at_high)), key=lambda p: abs(p[1] - target.value))
    if abs(value - target.value) > _REACHED * abs(target.value):
        raise RefusalError(
            "jump",
            f"{target.name} jumps from {target.shown(at_low)} to {target.shown(at_high)} at "
            f"{low:.4g} times the present {path}; no value gives {target.text}",
            place=str(path),
        )
    return factor


def _out_of_reach(target: Target, path: FigurePath, limits: list[tuple[_Point, str]]) -> RefusalError:
    (factor, answer), refusal = min(limits, key=lambda limit: abs(limit[0][1] - target.value))
    there = target.shown(answer)
    if all(math.isclose(value, target.now, rel_tol=_REACHED) for (_, value), _ in limits):
        why = ", and the figure does not change it"
    elif refusal:
        why = f", {there} at {factor:.4g} times the present figure, and none beyond: {refusal}"
    elif math.isfinite(path.most) and factor >= 1.0:
        why = f" and {there} at {path.most:g}x, the largest share there is"
    else:
        why = f" and approaches {there} as the figure goes to {'infinity' if factor > 1.0 else 'zero'}"
    now = target.shown(target.now)
    sentence = f"no value of {path} gives {target.name} = {target.text}: it is {now} at present"
    return RefusalError("out-of-reach", sentence + why, place=str(path))
