"""Scenarios with what they inherit from their bases, what is wrong with those of a document, and their comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from attrs import evolve, frozen

from trnspec.diagnostics import Location, did_you_mean
from trnspec.errors import RefusalError, TrnspecError, UsageError
from trnspec.evaluation.amounts import amount, until
from trnspec.evaluation.inputs import Input
from trnspec.evaluation.measures import measure, printed
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evaluation.runner import assumed, plain
from trnspec.evaluation.runner import resolved as inputs_of
from trnspec.evaluation.summary import is_number, label
from trnspec.evaluation.sweeps import FigureValue, Row, answers_of, number_of
from trnspec.graph.composition import chip_count
from trnspec.graph.graph import Graph
from trnspec.model.scenarios import Scenario, Scenarios
from trnspec.perf.lowering.lower import ON, model_named
from trnspec.perf.roofline import element_bytes
from trnspec.plugins.api import Evaluator, Finding
from trnspec.text_table import Column, TextTable, escape, table
from trnspec.yaml import Path

MOST = 1000
"""The maximum number of scenarios of a document."""
_DEEPEST = 64
"""The maximum number of bases of a scenario, one of another."""
_LONGEST = 200
"""The maximum length of the path of an assumed figure."""


def resolve(spec: Scenarios, name: str) -> Scenario:
    """A scenario with what it inherits; its own inputs and assumptions replace those of its base.

    Raises:
        UsageError: It, or a base, does not exist; or it is a base of itself, or has too many.
    """
    found = Scenario(evaluator="", use_claims=False)
    for own in reversed(_chain(spec, name)):
        found = evolve(
            found,
            evaluator=own.evaluator or found.evaluator,
            inputs={**found.inputs, **own.inputs},
            assume={**found.assume, **own.assume},
            use_claims=found.use_claims if own.use_claims is None else own.use_claims,
        )
    return found


def given(scenario: Scenario) -> dict[str, Any]:
    """The inputs of the evaluation of a scenario, assumptions included."""
    assume = {"assume": dict(scenario.assume)} if scenario.assume else {}
    return {**scenario.inputs, **assume, **({"use_claims": True} if scenario.use_claims else {})}


def _chain(spec: Scenarios, name: str) -> list[Scenario]:
    """A scenario, its base, the base of that, ..."""
    chain: list[Scenario] = []
    names = [name]
    while True:
        one = spec.scenarios.get(names[-1])
        if one is None:
            hint = did_you_mean(names[-1], spec.scenarios) or f"there are {', '.join(spec.scenarios) or 'none'}"
            raise UsageError(f"there is no scenario {names[-1]!r}; {hint}")
        chain.append(one)
        if one.base is None:
            return chain
        if one.base in names:
            raise UsageError(f"the scenario is a base of itself: {' -> '.join([*names, one.base])}")
        if len(names) > _DEEPEST:
            raise UsageError(f"the scenario has more than {_DEEPEST} bases, one of another")
        names.append(one.base)


def faults(spec: Scenarios, evaluators: Mapping[str, Evaluator], graph: Graph) -> Iterator[Finding]:
    """Faults of the scenarios of a document.

    Args:
        spec: The scenarios.
        evaluators: The evaluators by name.
        graph: The catalog, for the figures that are assumed.
    """
    if not spec.scenarios:
        yield Finding(("spec", "scenarios"), "there are no scenarios", "write at least one")
    if len(spec.scenarios) > MOST:
        count = f"there are {len(spec.scenarios):,} scenarios"
        yield Finding(("spec", "scenarios"), f"{count}; one document has at most {MOST:,}", "split the file", key=True)
        return
    for name in spec.scenarios:
        yield from _faults(spec, name, evaluators, graph)


def _faults(spec: Scenarios, name: str, evaluators: Mapping[str, Evaluator], graph: Graph) -> Iterator[Finding]:
    path: Path = ("spec", "scenarios", name)
    own = spec.scenarios[name]
    try:
        scenario = resolve(spec, name)
    except UsageError as error:
        # A base with an error of its own is reported where that is written.
        if own.base not in spec.scenarios or "there is no scenario" not in str(error):
            message, _, hint = str(error).partition("; ")
            yield Finding((*path, "base"), message, hint)
        return
    if (evaluator := evaluators.get(scenario.evaluator or "")) is not None:
        yield from _of_inputs(path, own, scenario, evaluator, graph)
    elif own.evaluator or not own.base:  # otherwise reported at the base
        yield _no_evaluator(path, own, scenario, evaluators)
    yield from _of_figures(path, own, scenario, graph)


def _no_evaluator(path: Path, own: Scenario, scenario: Scenario, known: Mapping[str, Evaluator]) -> Finding:
    expected = f"write one of {', '.join(known)}"
    if not scenario.evaluator:
        return Finding(
            path, f"the scenario {path[-1]} has no evaluator", f"{expected}, or a base that has one", key=True
        )
    at: Path = (*path, "evaluator") if own.evaluator else path
    hint = did_you_mean(scenario.evaluator, known) or expected
    return Finding(at, f"there is no evaluator {scenario.evaluator!r}", hint, key=not own.evaluator)


def _of_inputs(path: Path, own: Scenario, scenario: Scenario, evaluator: Evaluator, graph: Graph) -> Iterator[Finding]:
    name = evaluator.name
    try:
        known: dict[str, Input] = {one.name: one for one in inputs_of(evaluator, "its plugin")[1]}
    except UsageError as error:
        yield Finding(path, str(error), key=True)
        return
    for key, value in scenario.inputs.items():
        inherited = key not in own.inputs
        if inherited and not own.evaluator:
            continue  # reported at the base
        at: Path = (*path, "evaluator") if inherited else (*path, "inputs", key)
        if key not in known:
            which = f", which {path[-1]} inherits" if inherited else ""
            hint = did_you_mean(key.replace("-", "_"), known) or f"it has {', '.join(known)}"
            hint = f"leave base out, and write the inputs of {name}" if inherited else hint
            yield Finding(at, f"the evaluator {name} has no input {key!r}{which}", hint, key=not inherited)
            continue
        try:
            known[key].check(value)
        except UsageError as error:
            yield Finding(at, str(error), f"trnspec eval {name} --help lists the inputs")
    given = {key.replace("-", "_") for key in scenario.inputs}
    missing = [one for one in known.values() if one.required and one.name not in given]
    if missing and (own.evaluator or not own.base):  # otherwise reported at the base
        needed = ", ".join(f"{one.name} ({one.expected})" for one in missing)
        yield Finding(path, f"the scenario {path[-1]} has no input {needed}", "add it under inputs", key=True)
    for key, value in own.inputs.items():
        if key in known:
            yield from _of_texts((*path, "inputs", key), known[key], value, graph)


def _of_texts(path: Path, known: Input, value: Any, graph: Graph) -> Iterator[Finding]:
    """Faults of names that are in no catalog, of unknown data types, and of texts that are not amounts."""
    texts = [value] if isinstance(value, str) else value if isinstance(value, tuple) else ()
    for name in (name.strip() for text in texts if known.type is str for name in str(text).split(",")):
        try:
            match known.metavar:
                case "SYSTEM":
                    if (match := ON.match(name)) is None and "*" in name:
                        message = f"{name!r} is not a system; write a name, and how many: trn1.32xlarge*32"
                        raise UsageError(message)
                    node = graph.named(match["name"] if match else name)
                    if chip_count(graph, node) == 0:
                        message = f"{node.name} is a {node.kind}, which has no chips"
                        yield Finding(path, message, "name a chip, a server or an UltraServer")
                case "MODEL" if not name.endswith(".json"):
                    model_named(graph, name)
                case "DTYPE":
                    element_bytes(name, known.name)
                case "TIME":
                    until(name, known.name, date.min)
                case "TOKENS" | "USD" as unit:
                    amount(name, known.name, unit.removesuffix("TOKENS") or "tokens")
        except TrnspecError as error:
            message, _, hint = str(error).partition("; ")
            file = graph.broken.get(name.partition("*")[0].strip())
            yield Finding(path, message, hint or error.hint, (Location(file),) if file else ())


def _of_figures(path: Path, own: Scenario, scenario: Scenario, graph: Graph) -> Iterator[Finding]:
    sound = True
    for place, value in own.assume.items():
        try:
            if len(place) > _LONGEST:
                raise UsageError(f"a path of a figure has at most {_LONGEST} characters")
            assumed(graph, {place: value})
        except TrnspecError as error:
            sound = False
            message, _, hint = str(error).removeprefix("assume: ").partition("; ")
            yield Finding((*path, "assume", place), message, hint)
    if sound and own.assume:
        try:
            assumed(graph, scenario.assume)
        except UsageError as error:
            if "given twice" in str(error):
                yield Finding(
                    (*path, "assume"), str(error).removeprefix("assume: "), "write its path in one way", key=True
                )
        except TrnspecError:
            pass  # reported at the base


@frozen
class ScenarioOutcome:
    """A scenario with its evaluation, or with the refusal.

    Attributes:
        name: Its name.
        scenario: The scenario, with what it inherits.
        result: The result.
    """

    name: str
    scenario: Scenario
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
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    unit: str
    ratio: float | None
    note: str = ""


def settings(outcomes: Sequence[ScenarioOutcome], graph: Graph) -> list[dict[str, Any]]:
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
        row |= {name: plain(scenario.inputs.get(name, used.get(name))) for name in inputs}
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


def rows(outcomes: Sequence[ScenarioOutcome], graph: Graph) -> tuple[list[Row], dict[str, Any]]:
    """The scenarios as rows of a sweep, with the inputs that differ; and the inputs that all have in common."""
    every = settings(outcomes, graph)
    common = {name: value for name, value in every[0].items() if all(row[name] == value for row in every)}
    return [
        ({"scenario": o.name, **{n: v for n, v in row.items() if n not in common}}, o.result)
        for o, row in zip(outcomes, every, strict=True)
    ], common


def changed_inputs(one: ScenarioOutcome, other: ScenarioOutcome, graph: Graph) -> list[Difference]:
    """The inputs and assumptions that differ."""
    first, second = settings((one, other), graph)
    return [_of_input(name, first[name], second[name]) for name in first if first[name] != second[name]]


def _of_input(name: str, *values: Any) -> Difference:
    texts = tuple(str(v) if isinstance(v, FigureValue) else measure(v) for v in values)
    unit = next((v.unit for v in values if isinstance(v, FigureValue)), "")
    numbers = tuple(map(number_of, values))
    return Difference(name, numbers, texts, unit, _ratio(*numbers))


def changed_answers(one: ScenarioOutcome, other: ScenarioOutcome) -> tuple[list[Difference], list[str]]:
    """The answers that differ, and the names of those that are equal."""
    first, second = answers_of(one.result), answers_of(other.result)
    pairs = {name: (first.get(name), second.get(name)) for name in (*first, *second)}
    equal = [name for name, (a, b) in pairs.items() if _compared(a) == _compared(b)]
    return [_of_answers(name, *pair) for name, pair in pairs.items() if name not in equal], equal


def _compared(answer: Answer | None) -> Any:
    return None if answer is None else (answer.value, answer.unit, answer.kind)


def _of_answers(name: str, *pair: Answer | None) -> Difference:
    known = [answer for answer in pair if answer is not None]
    texts = tuple("-" if answer is None else printed(answer).value for answer in pair)
    values = tuple(None if answer is None else answer.value for answer in pair)
    kinds = list(dict.fromkeys(answer.kind or "none" for answer in known))
    note = f"{' and '.join(kinds)}: not comparable" if kinds[1:] else ""
    comparable = None not in pair and known[0].unit == known[-1].unit and not note
    ratio = _ratio(*values) if comparable else None
    return Difference(name, values, texts, known[0].unit, ratio, note)


def _ratio(first: Any, second: Any) -> float | None:
    return second / first if is_number(first) and is_number(second) and first else None


def difference_table(what: str, names: tuple[str, str], differences: Sequence[Difference]) -> TextTable:
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
