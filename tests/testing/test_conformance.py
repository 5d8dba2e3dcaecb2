"""trnspec.testing.EvaluatorConformance: it passes what is sound, and fails each way of not being so."""

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.evaluations import plugin as samples
from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evidence import UsedFigure
from trnspec.plugins.api import API, Evaluator, Plugin
from trnspec.testing import EvaluatorConformance
from trnspec.testing.conformance import _site


class TestSweep(EvaluatorConformance):
    """The sample evaluator keeps all of it."""

    plugin = samples
    name = "sweep"
    good = (
        {"chip": "trainium2"},
        {"chip": "trainium1", "times": 3, "share": 0.5, "double": True, "label": "a, b", "extra": (1, 2)},
    )
    bad = (
        ({"chip": "trainium2", "times": 65}, "does-not-fit"),
        ({"chip": "trainum2"}, "misuse"),
        ({"chip": "trainium2", "times": "1"}, "misuse"),
    )


def found(**more: object) -> Evaluation:
    reported = {"evaluator": "x", "title": "x", "inputs": {"chip": "trainium2"}, "answers": (Answer("time", 1.0, "s"),)}
    return Evaluation(**{**reported, **more})


BANDWIDTH = UsedFigure("trainium2", "memory.bandwidth", "2.9 TB/sec", "neuron-trainium2-2026-08")


def conformance(run, *, good=({"chip": "trainium2"},), bad=()) -> EvaluatorConformance:
    """The tests of one evaluator, to be called one by one."""
    plugin = Plugin(name="x", api=API, evaluators=(Evaluator("x", "X.", run),))
    made = type("Under", (EvaluatorConformance,), {"plugin": plugin, "name": "x", "good": good, "bad": bad})
    return made()


def undocumented(catalog: Catalog, *, chip: str) -> Evaluation:
    """Nothing is said of the input."""
    return found()


def reported(catalog: Catalog, *, chip: str) -> Evaluation:
    """All is well.

    Args:
        catalog: The catalog.
        chip: Which chip.
    """
    return found()


def nan(catalog: Catalog, *, chip: str) -> Evaluation:
    """It answers nothing."""
    return found(answers=(Answer("time", float("nan"), "s"),))


def silent(catalog: Catalog, *, chip: str) -> Evaluation:
    """It does not tell the question."""
    return found(inputs={"other": 1})


def moody(catalog: Catalog, *, chip: str) -> Evaluation:
    """It says something else each time."""
    return found(answers=(Answer("time", random.random(), "s"),))


def bare(catalog: Catalog, *, chip: str) -> Evaluation:
    """Seconds without a unit."""
    return found(answers=(Answer("time", 1.0), Answer("rank_count", 3), Answer("ring", "yes")))


def guessing(catalog: Catalog, *, chip: str) -> Evaluation:
    """It goes on where the figure is gone."""
    return found(figures_used=(BANDWIDTH,))


def raising(catalog: Catalog, *, chip: str) -> Evaluation:
    """It breaks where the figure is gone."""
    return found(answers=(Answer("time", float(catalog.chips[chip].memory.bandwidth), "s"),), figures_used=(BANDWIDTH,))


def misquoting(catalog: Catalog, *, chip: str) -> Evaluation:
    """It says what the catalog does not."""
    return found(figures_used=(UsedFigure("trainium2", "memory.bandwidth", "3 TB/s", "x"),))


def inventing(catalog: Catalog, *, chip: str) -> Evaluation:
    """It rests on a figure that no chip can have."""
    return found(figures_used=(UsedFigure("trainium2", "memory.speed", "3 TB/s", "x"),))


def odd(catalog: Catalog, *, chip: str) -> Evaluation:
    """A list, where an evaluation has tuples."""
    return found(figures_used=(UsedFigure("trainium2", "memory.bandwidth", "2.9 TB/sec", "x", conflicting=["3 TB/s"]),))


@pytest.mark.parametrize(
    ("run", "test", "message"),
    [
        (undocumented, "test_asks_for_what_the_command_line_can_give", "chip has no help text"),
        (nan, "test_answers", "time is nan"), (silent, "test_says_what_was_asked", "missing in the inputs"),
        (moody, "test_answers_the_same_again", "trainium2"), (bare, "test_numbers_have_units", "give each a unit"),
        (guessing, "test_refuses_rather_than_guesses", "trainium2 memory.bandwidth is gone"),
        (raising, "test_refuses_rather_than_guesses", "raise RefusalError"),
        (misquoting, "test_rests_on_figures_of_the_catalog", "trainium2 memory.bandwidth"),
        (inventing, "test_refuses_rather_than_guesses", "trainium2 has no memory.speed"),
        (odd, "test_goes_through_json", "trainium2"),
    ],
)  # fmt: skip
def test_conformance_fails_invalid_plugins(run, test, message) -> None:
    with pytest.raises(AssertionError, match=message):
        getattr(conformance(run), test)()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (({"chip": "trainium2"}, "does-not-fit"), "should be rejected"),
        (({"chip": 3}, "does-not-fit"), "should be rejected"),
    ],
)
def test_conformance_fails_missing_refusals(bad, message) -> None:
    with pytest.raises(AssertionError, match=message):
        conformance(reported, bad=(bad,)).test_refuses_what_has_no_answer()


def test_it_fails_without_good_inputs() -> None:
    with pytest.raises(AssertionError, match="name some good inputs"):
        conformance(reported, good=()).test_answers()


def test_a_sound_one_passes_but_for_the_command_line() -> None:
    """All its tests; the one by the command line needs a module, which TestSweep above has."""
    made = conformance(reported)
    tests = [n for n in dir(made) if n.startswith("test_") and n != "test_runs_from_the_command_line"]

    assert 9 == len(tests)
    for test in tests:
        getattr(made, test)()


def test_it_fails_without_such_an_evaluator() -> None:
    with pytest.raises(AssertionError, match="the plugin samples defines no evaluator nothing"):
        type("Under", (EvaluatorConformance,), {"plugin": samples, "name": "nothing"})().evaluator  # noqa: B018  # it raises


def test_dimensionless_names_can_be_reported() -> None:
    made = conformance(bare)
    type(made).dimensionless = ("time",)

    made.test_numbers_have_units()


@pytest.mark.parametrize("installed", ["samples", "other"])
def test_a_plugin_that_is_not_installed_has_an_entry_point(installed, monkeypatch, tmp_path) -> None:
    records = SimpleNamespace(records=[SimpleNamespace(name=installed)])
    monkeypatch.setattr("trnspec.testing.conformance.plugins", lambda: records)
    written = [
        (Path(f) / "trnspec_conformance_samples-0.dist-info" / "entry_points.txt") for f in _site(samples, tmp_path)
    ]

    expected = "[trnspec.plugins]\nsamples = tests.support.evaluations:plugin\n"
    assert [expected] * (installed == "other") == [file.read_text() for file in written]
