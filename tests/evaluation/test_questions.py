"""Questions: one field is one option, one keyword and one axis of a sweep, with the same error everywhere."""

import inspect
import json

import pytest
from attrs import field, frozen
from click.testing import CliRunner

import trnspec
from tests.support.tables import tables
from trnspec.api import registry
from trnspec.builtin import plugin as builtin
from trnspec.catalog.catalog import Catalog
from trnspec.cli.eval import evaluator_command
from trnspec.errors import UsageError
from trnspec.evaluation.inputs import fields_of, inputs, question_of
from trnspec.evaluation.questions import Parallelism, System, axis
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evaluation.runner import run as evaluated
from trnspec.plugins.api import Evaluator

CATALOG = trnspec.load(registry=registry())
LLAMA = {"model": "llama-3.1-8b", "on": "trn1.32xlarge*32", "seq": 8192, "global_batch": 1024}


@frozen(kw_only=True, slots=False)
class Shared(Parallelism):
    """A shared class with a new axis."""

    slices: int = axis("Slices of each stage.", "SLICES", group="Parallelism", minimum=1, default=1)


@frozen(kw_only=True, slots=False)
class First(System, Shared):
    """A question that composes it."""


@frozen(kw_only=True, slots=False)
class Second(Shared):
    """Another one."""


def first(catalog: Catalog, question: First) -> Evaluation:
    """Count ranks.

    Examples:
        Two slices:

            trnspec eval first --on trn2.48xlarge
            --slices 2
    """
    return _counted("first", question)


def second(catalog: Catalog, question: Second) -> Evaluation:
    """Count ranks."""
    return _counted("second", question)


def _counted(name: str, question: Shared) -> Evaluation:
    ranks = question.tp * question.pp * question.slices
    return Evaluation(evaluator=name, title="ranks", inputs=question.values(), answers=(Answer("ranks", ranks),))


SCRATCH = [(Evaluator("first", "Ranks.", first), {"on": "trn2.48xlarge"}), (Evaluator("second", "Ranks.", second), {})]


@pytest.mark.parametrize(("evaluator", "given"), SCRATCH)
def test_a_new_axis_is_an_option_a_keyword_and_an_axis_of_a_sweep(evaluator, given):
    command = evaluator_command(evaluator, "the tests")
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    help_ = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    swept = CliRunner().invoke(command, [*options, "--tp", "2", "--slices", "1,4", "--format", "json"])

    assert "--slices SLICES Slices of each stage. [default: 1]" in help_.partition("Parallelism:")[2]
    assert 8 == evaluated(evaluator, "the tests", CATALOG, {**given, "tp": 2, "slices": 4})["ranks"]
    assert "slices" in inspect.signature(question_of(evaluator.load())).parameters
    rows = json.loads(swept.output)["rows"]
    assert [({"slices": 1}, 2), ({"slices": 4}, 8)] == [(r["combination"], r["answers"][0]["value"]) for r in rows]
    message = "slices: a whole number of at least 1 is expected, not 0"
    assert message in str(CliRunner().invoke(command, [*options, "--slices", "0"]).exception)
    with pytest.raises(UsageError, match=message):
        evaluated(evaluator, "the tests", CATALOG, {**given, "slices": 0})


def of_all() -> list[tuple[str, object]]:
    return [(e.name, i) for e in builtin.evaluators for i in inputs(e.load(), e.name)]


OF_ITS_OWN = {
    *((name, "framework") for name in ("inference", "collective", "plan-serve")),
    *((name, "objective") for name in ("search", "plan-serve")),
    *(("search", name) for name in ("schedule", "recompute")),
}
"""Each help of framework names those that have a part in the phase; objectives differ by what is searched or planned; a
search has all schedules and all kinds of recompute as one choice."""


def test_one_name_is_one_type_with_the_same_choices_and_help():
    seen: dict[str, dict[tuple, list[str]]] = {}
    for name, one in of_all():
        if (name, one.name) in OF_ITS_OWN:
            continue
        kind = (one.type, one.choices, one.help, one.metavar, one.group, one.minimum, one.maximum)
        seen.setdefault(one.name, {}).setdefault(kind, []).append(name)

    assert {} == {name: kinds for name, kinds in seen.items() if len(kinds) > 1}


def test_bounds_and_defaults():
    """The least and the largest value of every input, and its default."""
    found: dict[str, dict[str, list[object]]] = {}
    for name, one in of_all():
        default = list(one.default) if isinstance(one.default, tuple) else one.default
        found.setdefault(name, {})[one.name] = [one.minimum, one.maximum, default]

    assert tables(__file__) == found
    assert ["a whole number from 0 to 63"] == [
        i.expected for n, i in of_all() if (n, i.name) == ("training", "node_limit")
    ]


@pytest.mark.parametrize("name", ["training", "memory"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"zero": 5}, "zero: one of 0, 1, 2, 3 is expected, not 5"),
        ({"tp": True}, "tp: a whole number of at least 1 is expected, not True"),
        ({"schedule": "1f2b"}, "schedule: one of 1f1b, interleaved, .* is expected, not '1f2b'; did you mean '1f1b'"),
        ({"optimizer": "lion"}, "optimizer: one of adam, .* is expected, not 'lion'"),
    ],
)
def test_the_same_mistake_is_the_same_error(name, wrong, message):
    given = {n: v for n, v in LLAMA.items() if n != "global_batch" or name == "training"}
    with pytest.raises(UsageError, match=message):
        trnspec.evaluate(name, CATALOG, **given, **wrong)


def test_values_given_and_common():
    given = First(on="trn2.48xlarge", tp=2, slices=1)

    assert {"on": "trn2.48xlarge", "tp": 2} == given.given()
    assert {"on": "trn2.48xlarge", "tp": 2, "slices": 1} == given.given(always=("slices",))
    assert {"tp": 2, "pp": 1, "dp": None, "ep": 1, "slices": 1} == given.common(Second)
    assert {"on", "chips", "lnc", "tp", "pp", "dp", "ep", "slices"} == set(given.values())


def test_a_field_of_a_type_that_is_not_an_input():
    @frozen(kw_only=True, slots=False)
    class Wrong:
        sizes: dict[str, int] = field(factory=dict)

    with pytest.raises(UsageError, match=r"the field sizes of Wrong: dict\[str, int\] is not a type of an input"):
        fields_of(Wrong)
