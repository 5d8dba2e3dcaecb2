"""Runs an evaluator: checks its inputs and its result, and reports an evaluator that raises; applies assumed figures.

Assumptions are inputs of every evaluator: ``assume={"trn2.48xlarge.network.bandwidth": "6,400 Gbps"}`` replaces figures of the
catalog in memory, and ``use_claims=True`` evaluates a missing figure at every value that a source claims for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

from attrs import evolve, fields, frozen

from trnspec.errors import QuantityError, RefusalError, TrnspecError, UsageError
from trnspec.evaluation.amounts import spaced
from trnspec.evaluation.figure_path import CatalogLike, FigurePath, figure_path
from trnspec.evaluation.inputs import Input, bound, call, inputs
from trnspec.evaluation.measures import measure
from trnspec.evaluation.result import ROWS, Answer, Assumption, Evaluation, Suggestion, Table
from trnspec.evidence import KINDS, Evidence, UsedFigure
from trnspec.graph.graph import Graph, figure_at
from trnspec.model.document import Node
from trnspec.model.reflection import FigureShape, NumberShape, Shape, shape_at, spread
from trnspec.plugins.api import Evaluator, loaded
from trnspec.plugins.failures import described, guarded
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml import Path

Evaluate = Callable[[Any], Evaluation]
"""Runs one evaluator with fixed inputs on a catalog."""

INPUTS = ("assume", "use_claims")
"""The inputs that every evaluator has in addition to its own."""

_INTEGER = re.compile(r"\d{1,3}(,\d{3})*|\d{1,12}", re.ASCII)
_USABLE = ("agrees", "rounded", "unresolved")
"""Verdicts on claims that may be right for the figure they are about."""
_PLACE = re.compile(r"(?P<of>[a-z0-9][a-z0-9.-]*) spec\.(?P<at>[A-Za-z0-9_.]+)")
_MOST = 64
"""The most combinations of claims that one evaluation computes."""


@frozen
class Assumed:
    """One figure or count with another value.

    Attributes:
        path: What is assumed.
        value: The value as written: a quantity, or a whole number for a count.
        why: Who says so.
    """

    path: FigurePath
    value: str
    why: str

    @property
    def written(self) -> Any:
        """The value as a document has it."""
        return int(self.value.replace(",", "")) if isinstance(self.path.shape, NumberShape) else self.value


def _with(catalog: CatalogLike, given: Iterable[Assumed]) -> CatalogLike:
    """The catalog with some values, those of a document together: a part may need several."""
    changes: dict[str, dict[str, Any]] = {}
    for one in given:
        changes.setdefault(one.path.node.name, {})[one.path.at] = one.written
    for name, values in changes.items():
        catalog = catalog.replace(name, values)
    return catalog


def assumed(graph: Graph, values: Mapping[str, str], name: str = "assume") -> tuple[Assumed, ...]:
    """Assumptions of a caller, checked.

    Args:
        graph: The catalog.
        values: Values by path: ``{"trn2.48xlarge.network.bandwidth": "6,400 Gbps"}``. The space before a unit may be missing.
        name: The input, for messages.

    Raises:
        UsageError: A path is unknown, names the same figure as another, or is a total; or a value has no unit, one of
            another dimension, or is not positive.
    """
    if not isinstance(values, Mapping) or not all(isinstance(x, str) for pair in values.items() for x in pair):
        example = '{"trainium2.memory.bandwidth": "3 TB/s"}'
        raise UsageError(f"{name}: a mapping from paths to texts is expected, {example}")
    result: dict[str, Assumed] = {}
    for text, given in values.items():
        path, value = figure_path(graph, text), spaced(given)
        if str(path) in result:
            raise UsageError(f"{name}: {path} is given twice")
        _check(path, value, name)
        before = figure_at(path.node, ("spec", *path.steps))
        instead = "the catalog has no value" if before is None else f"instead of {before}"
        result[str(path)] = Assumed(path, value, f"the input assume; {instead}")
    return tuple(result.values())


def _check(path: FigurePath, value: str, name: str) -> None:
    if isinstance(path.shape, NumberShape):
        if not _INTEGER.fullmatch(value):
            raise UsageError(f"{name}: {path} is a count; a whole number is expected, not {value!r}")
        return
    assert isinstance(path.shape, FigureShape)
    dimension = path.shape.dimension
    if dimension is None and path.figure is not None:
        dimension = path.figure.value.dimension
    try:
        quantity = parse(value, dimension, path.node.units)
    except QuantityError as error:
        raise UsageError(f"{name}: {path}: {error}") from error
    if not quantity.value:
        raise UsageError(f"{name}: {path} is {value}; a value above 0 is expected")


def as_mapping(texts: Sequence[str]) -> dict[str, str]:
    """Assumptions as mapping from texts such as ``trainium2.memory.bandwidth=3 TB/s``.

    Raises:
        UsageError: A text has no ``=``, nothing before or after it, or its path was given before.
    """
    values: dict[str, str] = {}
    for text in texts:
        path, _, value = (part.strip() for part in text.partition("="))
        if not (path and value):
            raise UsageError(f"assume: {text!r}; PATH=VALUE is expected, such as trainium2.memory.bandwidth=3 TB/s")
        if path in values:
            raise UsageError(f"assume: {path} is given twice")
        values[path] = value
    return values


def applied(catalog: CatalogLike, given: Mapping[str, Any]) -> tuple[CatalogLike, dict[str, Any]]:
    """The catalog with the assumptions in some inputs applied, and the other inputs.

    Raises:
        UsageError: An assumption is invalid.
    """
    catalog = _with(catalog, assumed(catalog.graph, given.get("assume", {})))
    return catalog, {name: value for name, value in given.items() if name != "assume"}


def under_assumptions(
    catalog: CatalogLike, evaluate_: Evaluate, *, assume: Mapping[str, str] = {}, use_claims: bool = False
) -> Evaluation:
    """An evaluation under assumptions, which it lists.

    Args:
        catalog: The catalog.
        evaluate_: Runs the evaluator on a catalog.
        assume: Values by path.
        use_claims: Evaluate a figure that is not adopted at every value that is claimed for it. The answers are those at
            the claim with the middle first answer, of two at that with the larger; their intervals span all claims.

    Raises:
        UsageError: An assumption is invalid.
        RefusalError: There is no answer.
    """
    if not isinstance(use_claims, bool):
        raise UsageError(f"use_claims: true or false is expected, not {use_claims!r}")
    given = assumed(catalog.graph, assume)
    used = _with(catalog, given) if given else catalog
    try:
        evaluation = _over_claims(used, evaluate_) if use_claims else evaluate_(used)
    except RefusalError as refusal:
        if refusal.reason == "unknown-figure" and not use_claims:
            known = claims(used.graph, refusal.place)
            values = " and ".join(f"{one.path.at} {one.value}" for one in known)
            hint = f"use_claims=True evaluates it at {values}, which sources claim" if known else ""
            hint = hint or assumable(used.graph, refusal.place)
            refusal.hint = "; or ".join(filter(None, (hint, refusal.hint)))
        raise
    listed = tuple(_listed(one, evaluation) for one in given)
    inputs = dict(evaluation.inputs)
    if given:
        inputs["assume"] = "; ".join(f"{one.path}={one.value}" for one in given)
    if use_claims:
        inputs["use_claims"] = True
    return evolve(evaluation, assumptions=(*listed, *evaluation.assumptions), inputs=inputs)


def _listed(one: Assumed, evaluation: Evaluation) -> Assumption:
    names = {(used.of, used.at) for used in evaluation.figures_used}
    unused = names and isinstance(one.path.shape, FigureShape) and (one.path.node.name, one.path.at) not in names
    calibrated = one.path.node.kind == "Calibration"
    return Assumption(str(one.path), one.value, one.why + ("; not used" if unused and not calibrated else ""))


# Claims.


def claims(graph: Graph, place: str) -> tuple[Assumed, ...]:
    """The values that sources claim for a missing figure, or for a count of its group, such as that of links.

    Args:
        graph: The catalog.
        place: The place of a refusal: ``trn3-gen2-server spec.fabric.bandwidth``.

    Returns:
        Each value once, with its first source. Claims that were rejected, superseded or are about something else are left
        out, and so are those of a path that has an adopted value.
    """
    if (found := _missing(graph, place)) is None:
        return ()
    node, at = found
    missing: Path = ("spec", *at.split("."))
    result: dict[tuple[Path, Fraction], Assumed] = {}
    for claim in node.claims:
        if (claim.verdict or "agrees") not in _USABLE:
            continue
        for path in spread(claim.at):
            shape, text = shape_at(type(node.spec), path[1:]), str(claim.says)
            sibling = isinstance(shape, NumberShape) and path[:-1] == missing[:-1]
            value = _value(shape, text) if sibling or path[: len(missing)] == missing else None
            if shape is None or value is None or figure_at(node, path) is not None:
                continue
            source = graph.find(claim.source)
            date = "" if source is None else f", {source.spec.as_of}"
            why = f"claimed by {claim.source.name}{date}, {claim.verdict or 'agrees'}"
            result.setdefault((path, value), Assumed(FigurePath(node, path[1:], shape), text, why))
    return tuple(result.values())


def _value(shape: Shape | None, text: str) -> Fraction | None:
    """The value of a claim in base units; ``None`` where it is not a positive quantity or count."""
    if isinstance(shape, NumberShape):
        return Fraction(text.replace(",", "")) or None if _INTEGER.fullmatch(text) else None
    if not isinstance(shape, FigureShape):
        return None
    try:
        return Quantity.parse(text, shape.dimension).value or None
    except QuantityError:
        return None


def assumable(graph: Graph, place: str) -> str:
    """Hint to assume a missing figure; empty where more than the figure is missing.

    Args:
        graph: The catalog.
        place: The place of a refusal: ``trn3-gen1-server spec.fabric.bandwidth``.
    """
    if (missing := _missing(graph, place)) is None:
        return ""
    node, at = missing
    group = at.rpartition(".")[0]
    if group and figure_at(node, ("spec", *group.split("."))) is None:
        return ""
    # The rate of a link has two ways to state it.
    for path in (f"{node.name}.{at}", f"{node.name}.{at}.per_direction"):
        with suppress(TrnspecError):
            return f"no source has a value; assume {figure_path(graph, path)}=VALUE"
    return ""


def _missing(graph: Graph, place: str) -> tuple[Node[Any], str] | None:
    """The document and the path of a place such as ``trn3-gen2-server spec.fabric.bandwidth``."""
    match = _PLACE.fullmatch(place)
    return None if match is None or match["of"] not in graph else (graph.named(match["of"]), match["at"])


def _over_claims(catalog: CatalogLike, evaluate_: Evaluate) -> Evaluation:
    """The evaluation at every combination of claims of the figures that are missing."""
    results = list(_combinations(catalog, evaluate_))
    if len(results) == 1 and not results[0][0]:
        unused = Assumption("use_claims", "not used", "no figure that is needed is missing")
        return evolve(results[0][1], assumptions=(unused, *results[0][1].assumptions))
    ordered = sorted(results, key=lambda row: _first(row[1]))
    chosen, evaluation = ordered[len(ordered) // 2]
    every = list(dict.fromkeys(one for combination, _ in results for one in combination))
    places = dict.fromkeys(f"{one.path.node.name}.{one.path.steps[0]}" for one in every)
    listed = tuple(
        Assumption(str(o.path), o.value, o.why + ("" if o in chosen else "; in the interval")) for o in every
    )
    note = f"over the claims about {' and '.join(places)}"
    answers = tuple(_spanned(a, [e for _, e in results], note) for a in evaluation.answers)
    return evolve(evaluation, answers=answers, assumptions=(*listed, *evaluation.assumptions))


def _combinations(catalog: CatalogLike, evaluate_: Evaluate) -> Iterator[tuple[tuple[Assumed, ...], Evaluation]]:
    """Every combination of claims under which there is an answer; without missing figures, one that is empty.

    Raises:
        RefusalError: No combination has an answer; the first refusal of them.
    """
    open_: list[tuple[CatalogLike, tuple[Assumed, ...]]] = [(catalog, ())]
    first: RefusalError | None = None
    count = answered = 0
    while open_:
        used, combination = open_.pop(0)
        count += 1
        try:
            evaluation = evaluate_(used)
        except RefusalError as refusal:
            first = first or refusal
            known = claims(used.graph, refusal.place) if refusal.reason == "unknown-figure" else ()
            if not known or count > _MOST:
                continue
            open_ += [(_with(used, [one]), (*combination, one)) for one in known]
            continue
        answered += 1
        yield combination, evaluation
    if not answered and first is not None:
        if first.reason == "unknown-figure" and count == 1:
            first.hint = first.hint or assumable(catalog.graph, first.place) or "no source claims a value for it"
        raise first


def _first(evaluation: Evaluation) -> float:
    value = evaluation.answers[0].value if evaluation.answers else 0.0
    return 0.0 if isinstance(value, (bool, str)) else float(value)


def _spanned(answer: Answer, evaluations: Sequence[Evaluation], note: str) -> Answer:
    """An answer with the interval over several evaluations; an end that one of them does not know is not known."""
    others = [a for e in evaluations for a in e.answers if a.name == answer.name]
    values = [float(a.value) for a in others if not isinstance(a.value, (bool, str))]
    if len(values) < len(evaluations) or min(values) == max(values):
        return answer
    ends = [measure(end, answer.unit) for end in (min(values), max(values))]
    note = f"{' to '.join(ends)} {note}" if ends[0] != ends[1] else f"the same {note}"
    bounded = answer.low is not None or answer.high is not None
    lows = [a.low for a in others] if bounded else values
    highs = [a.high for a in others] if bounded else values
    return evolve(
        answer,
        low=None if None in lows else min(x for x in lows if x is not None),
        high=None if None in highs else max(x for x in highs if x is not None),
        note=f"{answer.note}; {note}" if answer.note else note,
    )


CLOSE = 1e-9
"""Relative tolerance of the sum of the parts of an answer."""


def run(evaluator: Evaluator, provider: str, catalog: CatalogLike, given: Mapping[str, Any]) -> Evaluation:
    """Runs an evaluator.

    Args:
        evaluator: The evaluator.
        provider: The plugin that provides it, for messages: ``the plugin energy of trnspec-energy 0.1.0``.
        catalog: The catalog.
        given: Inputs by name; also ``assume`` and ``use_claims``.

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
        function = loaded(evaluator.name, evaluator.run)
        return function, inputs(function, evaluator.name)
    except UsageError as error:
        raise UsageError(f"the evaluator {evaluator.name} of {provider} cannot be used: {error}") from error


def plain(value: Any) -> Any:
    """The value of an input as an evaluation reports it: several values as one text."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else value


def unsound(result: object, name: str) -> Iterator[str]:
    """Faults of the result of an evaluator of some name; none if it is valid."""
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
        # Value and ends are computed separately and may differ by rounding.
        number: Any = value
        slack = CLOSE * abs(number) if _number(value) else 0
        if not all(map(_number, ends)):
            yield f"the interval of {name} is [{answer.low}, {answer.high}]; finite numbers are expected"
        elif ends and not _number(value):
            yield f"{name} has an interval and is not a number"
        elif (answer.low is not None and answer.low > number + slack) or (
            answer.high is not None and number > answer.high + slack
        ):
            yield f"{name} is {value}, which is outside its interval [{answer.low}, {answer.high}]"


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
