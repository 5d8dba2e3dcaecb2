"""Scenarios: what they inherit, and what is wrong with them."""

import pytest

import trnspec
from tests.support.tables import tables
from trnspec.errors import UsageError
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evaluation.scenarios import ScenarioOutcome, changed_answers, faults, given, resolve
from trnspec.model.scenarios import Scenario, Scenarios
from trnspec.plugins.discovery import installed

GRAPH = trnspec.load().graph
INPUTS = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 4096, "global_batch": 64, "tp": 8}
NOW = Scenario(evaluator="training", inputs=INPUTS, assume={"trainium2.memory.bandwidth": "3 TB/s"})


def found(**scenarios: Scenario) -> set[tuple[str, ...]]:
    """Where something is wrong, below ``spec.scenarios``."""
    return {f.path[2:] for f in faults(Scenarios(scenarios=scenarios), installed().registry.evaluators, GRAPH)}


def test_a_base_is_inherited_one_by_one() -> None:
    spec = Scenarios(
        scenarios={
            "last": Scenario(base="next", inputs={"zero": 1}, use_claims=False),
            "next": Scenario(
                base="now", inputs={"tp": 16}, assume={"trainium2.memory.capacity": "64 GiB"}, use_claims=True
            ),
            "now": NOW,
        }
    )
    last = resolve(spec, "last")

    assert ("training", INPUTS | {"tp": 16, "zero": 1}, False) == (last.evaluator, last.inputs, last.use_claims)
    assert {"trainium2.memory.bandwidth": "3 TB/s", "trainium2.memory.capacity": "64 GiB"} == last.assume
    assert {**INPUTS, "tp": 16, "assume": last.assume, "use_claims": True} == given(resolve(spec, "next"))
    assert set() == found(**spec.scenarios)


@pytest.mark.parametrize(("scenario", "place"), tables(__file__)["faults"])
def test_faults_are_where_they_are_written(scenario: dict, place: list[str]) -> None:
    inputs = {
        name: tuple(value) if isinstance(value, list) else value for name, value in scenario.get("inputs", {}).items()
    }
    places = found(now=NOW, x=Scenario(**scenario | {"inputs": inputs}), y=Scenario(base="x"))

    assert tuple(place) in places
    assert not {p for p in places if p[0] == "now"}
    if place[1:2] == ["inputs"]:
        assert {tuple(place)} == places


def test_limits() -> None:
    """A chain of bases, and a document of many scenarios, are refused before they are followed."""
    chain = {f"x{i}": Scenario(base=f"x{i - 1}") for i in range(1, 900)}
    many = {f"x{i}": NOW for i in range(1001)}

    assert {(f"x{i}", "base") for i in range(65, 900)} == found(x0=NOW, **chain)
    assert {()} == found(**many)
    assert {("x", "assume", "a" * 201)} == found(
        x=Scenario(evaluator="training", inputs=INPUTS, assume={"a" * 201: "1 W"})
    )


def test_no_scenarios() -> None:
    assert {()} == found()
    with pytest.raises(UsageError, match="there is no scenario 'x'"):
        resolve(Scenarios(scenarios={}), "x")


def test_answers_that_differ() -> None:
    """Only answers of one unit and one kind have a ratio."""
    answers = (
        (Answer("same", 1), Answer("time", 2.0, "s"), Answer("rate", 1.0, "B/s", kind="ideal"), Answer("one", True), Answer("size", 1.0, "s"), Answer("zero", 0), Answer("some", 1), Answer("none", "no")),
        (Answer("same", 1), Answer("time", 3.0, "s"), Answer("rate", 2.0, "B/s", kind="estimate"), Answer("size", 2.0, "B"), Answer("zero", 1), Answer("some", "yes"), Answer("none", 1)),
    )  # fmt: skip
    scenario = Scenario(evaluator="training")
    found = (ScenarioOutcome("x", scenario, Evaluation(evaluator="x", title="x", answers=each)) for each in answers)
    different, equal = changed_answers(*found)

    assert equal == ["same"]
    assert [(d.name, d.values, d.texts, d.unit, d.ratio, d.note) for d in different] == [
        ("time", (2.0, 3.0), ("2 s", "3 s"), "s", 1.5, ""),
        ("rate", (1.0, 2.0), ("1 B/s", "~2 B/s"), "B/s", None, "ideal and estimate: not comparable"),
        ("one", (True, None), ("yes", "-"), "", None, ""),
        ("size", (1.0, 2.0), ("1 s", "2 B"), "s", None, ""),
        ("zero", (0, 1), ("0", "1"), "", None, ""),
        ("some", (1, "yes"), ("1", "yes"), "", None, ""),
        ("none", ("no", 1), ("no", "1"), "", None, ""),
    ]
