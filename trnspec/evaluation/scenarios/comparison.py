"""Evaluated scenarios side by side: one table of all, and the differences between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.errors import RefusalError
from trnspec.evaluation.assumptions import assumed
from trnspec.evaluation.measures import measure, printed
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.scenarios.resolution import ResolvedScenario
from trnspec.evaluation.summary import is_number, label
from trnspec.evaluation.sweeps.figure_axes import FigureValue
from trnspec.text_table import Column, escape, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.evaluation.result import Answer
    from trnspec.evaluation.sweeps.sweep import Row
    from trnspec.graph.graph import Graph
    from trnspec.text_table import Table


@frozen
class Outcome:
    """A scenario with its evaluation, or with the refusal.

    Attributes:
        scenario: The scenario.
        result: The result.
    """

    scenario: ResolvedScenario
    result: Evaluation | RefusalError


@frozen
class Difference:
    """A value that differs between two scenarios.

    Attributes:
        name: The input, the path of a figure, or the answer.
        values: The two values in base units; ``None`` where there is none.
        texts: The two values for readers.
        unit: The base unit, empty for none.
        ratio: The second over the first; ``None`` if they are not comparable numbers.
        note: Why they are not comparable; may be empty.
    """

    name: str
    values: tuple[Any, Any]
    texts: tuple[str, str]
    unit: str = ""
    ratio: float | None = None
    note: str = ""


def settings(outcomes: Sequence[Outcome], graph: Graph) -> list[dict[str, Any]]:
    """Evaluator, inputs and assumptions of each scenario, under the same names in the same order.

    A figure that a scenario does not assume has the value of the catalog, and an input that is left out the value that
    the evaluator reports; ``None`` where it reports none.
    """
    figures = {str(one.path): one.path for o in outcomes for one in assumed(graph, o.scenario.assume)}
    inputs = dict.fromkeys(name for o in outcomes for name in o.scenario.inputs)
    rows = []
    for outcome in outcomes:
        scenario = outcome.scenario
        row: dict[str, Any] = {"evaluator": scenario.evaluator}
        used = {} if isinstance(outcome.result, RefusalError) else outcome.result.inputs
        row |= {name: _plain(scenario.inputs.get(name, used.get(name))) for name in inputs}
        own = {str(one.path): FigureValue.of(one) for one in assumed(graph, scenario.assume)}
        for name, path in figures.items():
            if name in own:
                row[name] = own[name]
            else:
                row[name] = None if path.figure is None else FigureValue.of_quantity(path.figure.value)
        if any(o.scenario.use_claims for o in outcomes):
            row["use_claims"] = scenario.use_claims
        rows.append(row)
    return rows


def rows(outcomes: Sequence[Outcome], graph: Graph) -> tuple[list[Row], dict[str, Any]]:
    """The scenarios as rows of a sweep, with the inputs that differ; and the inputs that all have in common."""
    every = settings(outcomes, graph)
    common = {name: value for name, value in every[0].items() if all(row[name] == value for row in every)}
    return [
        ({"scenario": o.scenario.name, **{n: v for n, v in row.items() if n not in common}}, o.result)
        for o, row in zip(outcomes, every, strict=True)
    ], common


def changed_inputs(one: Outcome, other: Outcome, graph: Graph) -> list[Difference]:
    """The inputs and assumptions that differ."""
    first, second = settings((one, other), graph)
    return [
        _difference(name, (first[name], second[name]), _unit(first[name], second[name]))
        for name in first
        if first[name] != second[name]
    ]


def changed_answers(one: Outcome, other: Outcome) -> tuple[list[Difference], list[str]]:
    """The answers that differ, and the names of those that are equal."""
    first, second = _answers(one.result), _answers(other.result)
    changed: list[Difference] = []
    equal: list[str] = []
    for name in dict.fromkeys([*first, *second]):
        a, b = first.get(name), second.get(name)
        if a is not None and b is not None and (a.value, a.unit, a.kind) == (b.value, b.unit, b.kind):
            equal.append(name)
            continue
        changed.append(_of_answers(name, a, b))
    return changed, equal


def _of_answers(name: str, a: Answer | None, b: Answer | None) -> Difference:
    known = [x for x in (a, b) if x is not None]
    texts = tuple("-" if x is None else printed(x).value for x in (a, b))
    values = tuple(None if x is None else x.value for x in (a, b))
    kinds = [x.kind or "none" for x in known]
    comparable = len(known) == 2 and known[0].unit == known[1].unit and kinds[0] == kinds[1]
    note = f"{kinds[0]} and {kinds[1]}: not comparable" if len(known) == 2 and kinds[0] != kinds[1] else ""
    ratio = _ratio(*values) if comparable else None
    return Difference(name, (values[0], values[1]), (texts[0], texts[1]), known[0].unit, ratio, note)


def _difference(name: str, values: tuple[Any, Any], unit: str) -> Difference:
    texts = tuple(str(v) if isinstance(v, FigureValue) else measure(v) for v in values)
    numbers = tuple(v.number if isinstance(v, FigureValue) else v for v in values)
    return Difference(name, (numbers[0], numbers[1]), (texts[0], texts[1]), unit, _ratio(*numbers))


def _ratio(first: Any, second: Any) -> float | None:
    return second / first if is_number(first) and is_number(second) and first else None


def _unit(*values: Any) -> str:
    return next((v.unit for v in values if isinstance(v, FigureValue)), "")


def difference_table(what: str, names: tuple[str, str], differences: Sequence[Difference]) -> Table:
    """Differences for readers: one row each, with the ratio of the second to the first."""
    columns = [
        Column(what, wrap=True, keep=True),
        *(Column(name, right=True, keep=True) for name in names),
        Column("ratio", right=True, keep=True),
    ]
    cells = []
    for one in differences:
        name = label(one.name) if what == "answer" else one.name
        ratio = one.note if one.ratio is None else f"{one.ratio:.4g}x"
        cells.append([escape(name), *map(escape, one.texts), ratio or "-"])
    return table(columns, cells)


def _answers(result: Evaluation | RefusalError) -> dict[str, Answer]:
    return {} if isinstance(result, RefusalError) else {a.name: a for a in result.answers}


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value
