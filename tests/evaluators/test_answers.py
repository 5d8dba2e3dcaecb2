"""Answers of every built-in evaluator to calls with one input changed in turn.

The calls are bases, and each with one input changed, for the inputs that the evaluator declares. An input is given every
choice that it has, both truth values, or the numbers and texts below: its least value, typical ones, and ones that are
rejected. An input that is declared later needs a line here only if it is a text.

They are on the edition 2026.11.1, which does not change; those of plugins' chips are on the present catalog.  A line of ``tests/data/answers/EVALUATOR.txt`` is a call: all answers of a base, and of another
call those that differ from its base.  After a change of an answer, ``python tests/evaluators/test_answers.py`` writes the files;
read the difference.
"""

import functools
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

# Run as a program, too.
sys.path.extend(map(str, Path(__file__).parents[2].glob("plugins/*/src")))

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from tests.support.engine import everything
from tests.support.stored import answered, line, same, sums, words, write
from tests.support.stored import read as stored
from tests.support.tables import tables
from trnspec.api import evaluate, load, trace
from trnspec.builtin import plugin
from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.inputs import Input
from trnspec.evaluation.runner import resolved
from trnspec.evaluators.traces import execution
from trnspec.evaluators.training import TrainingQuestion
from trnspec.loading.files import shipped
from trnspec.output.chakra import parsed


@frozen
class Base:
    """A call, and which of its inputs are changed.

    Attributes:
        evaluator: The name of the evaluator.
        inputs: The inputs by name.
        changed: The names of the inputs that are changed in turn, separated by spaces.
        plugins: Whether it needs the chips of plugins.
    """

    evaluator: str
    inputs: Mapping[str, Any]
    changed: str = ""
    plugins: bool = False


def _all_but(evaluator: str, names: str = "") -> str:
    return " ".join(one.name for one in declared(evaluator) if one.name not in names.split())


def declared(evaluator: str) -> tuple[Input, ...]:
    """The inputs of a built-in evaluator."""
    (found,) = (e for e in plugin.evaluators if e.name == evaluator)
    return tuple(resolved(found, "trnspec")[1])


TABLES = tables(__file__)
TEXTS: Mapping[str, Sequence[str]] = TABLES["texts"]
NUMBERS: Mapping[str, Sequence[float]] = TABLES["numbers"]
"""The values of inputs that are texts or numbers; of other numbers, see below."""

DEGREES = (1, 2, 3, 16)


def calls(base: Base) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls of a base with one input changed, each with this input and its value as a text."""
    for one in declared(base.evaluator):
        if one.name in base.changed.split():
            now = base.inputs.get(one.name, one.default)
            for value in _values(one):
                if value != now:
                    yield f"{one.name} {json.dumps(value)}", {**base.inputs, one.name: value}


def _values(one: Input) -> Iterator[Any]:
    """The values of an input; of one that takes several, each alone, and all choices together."""
    values: tuple[Any, ...] = one.choices or tuple(map(one.type, NUMBERS.get(one.name, DEGREES)))
    if one.type is bool:
        values = (False, True)
    elif one.type is str and not one.choices:
        values = TEXTS.get(one.name, ())
    for value in values:
        several = tuple(value.split(",")) if isinstance(value, str) else (value,)
        yield several if one.many else value
    if one.many and one.choices:
        yield one.choices


LLAMA = "llama-3.1-8b"
MIXTRAL = "mixtral-8x7b"


def _base(name: str, inputs: Mapping[str, Any], changed: str = "", plugins: str = "") -> Base:
    """A base of the table; a minus stands for all inputs but those that follow it."""
    evaluator = name.partition(",")[0]
    minus, _, names = changed.partition("-")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in inputs.items()}
    return Base(evaluator, given, minus or _all_but(evaluator, names) if changed else "", bool(plugins))


BASES = {name: _base(name, *row) for name, row in TABLES["bases"].items()}
"""The bases by name."""


@functools.cache
def catalog(*, plugins: bool) -> Catalog:
    return Catalog(everything()) if plugins else load(edition="2026.11.1")


def of_calls(name: str) -> Iterator[tuple[str, str]]:
    """The answers of a base, and of each of its calls what differs; last a checksum of all that is not a number."""
    base, checksums = BASES[name], []

    def answer(inputs: Mapping[str, Any]) -> dict[str, str]:
        found = answered(lambda: evaluate(base.evaluator, catalog(plugins=base.plugins), **inputs))
        checksums.append(found.pop("words", ""))
        return found

    at_base = answer(base.inputs)
    yield name, line(at_base)
    for call, inputs in calls(base):
        yield f"{name}: {call}", line(answer(inputs), at_base)
    yield f"{name}: words", words(checksums)


def by_name(rows: Iterable[tuple[str, float]]) -> str:
    """The number and the sum of the values of each name."""
    found: dict[str, list[float]] = {}
    for name, value in rows:
        found.setdefault(name, []).append(value)
    return "; ".join(f"{name} {sums(values)}" for name, values in found.items())


def timeline(**inputs: Any) -> str:
    """The events of the timeline of a training step, by name: their durations, their starts, and what counters show."""
    events = trace("training", catalog(plugins=False), **inputs)["traceEvents"]
    timed = [(f"{event['tid']} {event['name']}", event) for event in events if "dur" in event]
    counted = [event for event in events if event["ph"] == "C"]
    shown = [value for event in counted for value in event["args"].values()]
    return "; ".join(
        (
            by_name((name, event["dur"]) for name, event in timed),
            f"starts {sums(event['ts'] for _, event in timed)}",
            f"counters {sums(shown)} at {sums(event['ts'] for event in counted)}",
        )
    )


def executed(**inputs: Any) -> str:
    """The nodes of the first and the last rank of an execution trace, by name, with their durations and sizes."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    files = execution(catalog(plugins=False), TrainingQuestion(**inputs))
    ranks = sorted((name for name in files if name.endswith(".et")), key=lambda name: int(name.partition(".")[0]))
    found = [f"{len(files)} files, {len(ranks)} ranks"]
    for name in (ranks[0], ranks[-1]):
        nodes = parsed(files[name])
        sizes = sums(getattr(a, a.WhichOneof("value")) for node in nodes for a in node.attr)
        found.append(
            f"{name}: {by_name((node.name, float(node.duration_micros)) for node in nodes)}; attributes {sizes}"
        )
    return "; ".join(found)


def errors(table: str) -> str:
    """The errors of a table of measurements."""
    data = str(shipped() / "measured" / table)
    found = answered(lambda: evaluate("accuracy", catalog(plugins=False), data=data, rows=True))
    return line({name: text for name, text in found.items() if name != "words"})  # it has the path of the table


_TRAINIUM = {"on": "trn1.32xlarge", "seq": 1024, "tp": 8, "pp": 2, "must_fit": False}
_GPT = {"model": "gpt2-large", "on": "trn1.32xlarge", "chips": 2, "seq": 512}
MORE: Mapping[str, Callable[[], str]] = {
    "timeline, one stage": partial(timeline, **_GPT, global_batch=8, zero=1),
    "timeline, recompute": partial(timeline, **_TRAINIUM, model=LLAMA, global_batch=6, recompute="full"),
    "timeline, V-shaped": partial(
        timeline, **_TRAINIUM, model=LLAMA, global_batch=6, schedule="zbv", calibration="none"
    ),
    "execution, ZeRO 3": partial(executed, **_GPT, global_batch=2, tp=2, pp=2, zero=3, must_fit=False),
    "execution, experts": partial(executed, **_TRAINIUM | {"tp": 2}, model=MIXTRAL, global_batch=4, cp=2, ep=8, zero=1),
    "accuracy, training": partial(errors, "training_trn1.csv"),
}
"""Other outputs by name."""


def found_in(file: str) -> Iterator[tuple[str, str]]:
    """The cases of a stored file, in order."""
    if file == OTHERS:
        yield from ((name, made()) for name, made in MORE.items())
    else:
        yield from (case for name, base in BASES.items() if file_of(base) == file for case in of_calls(name))


def file_of(base: Base) -> str:
    return f"answers/{base.evaluator}.txt"


OTHERS = "answers/others.txt"
FILES = [*dict.fromkeys(map(file_of, BASES.values())), OTHERS]


@pytest.mark.parametrize("name", BASES)
def test_answers_of_calls(name: str) -> None:
    expected = stored(file_of(BASES[name]))

    assert [case for case in of_calls(name) if not same(expected[case[0]], case[1])] == []


@pytest.mark.parametrize("name", MORE)
def test_answers_of_traces_and_tables(name: str) -> None:
    assert same(stored(OTHERS)[name], MORE[name]())


@pytest.mark.parametrize("file", FILES)
def test_stored_cases_are_called(file: str) -> None:
    names = [
        n
        for name, base in BASES.items()
        if file_of(base) == file
        for n in (name, *(f"{name}: {c}" for c, _ in calls(base)), f"{name}: words")
    ]

    assert [*stored(file)] == (names or [*MORE])


if __name__ == "__main__":
    for each in FILES:
        write(each, dict(found_in(each)))
