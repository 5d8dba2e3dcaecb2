"""trnspec.evaluate: inputs checked before, the evaluation checked after, what breaks named."""

import math
from typing import Literal, Optional

import pytest

import trnspec
from tests.support.evaluations import RAISED, UNSOUND, install
from tests.support.tables import tables
from trnspec.errors import RefusalError, UnknownNameError, UsageError
from trnspec.evaluation.inputs import Docstring, Input, docstring, inputs
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evaluation.runner import traced
from trnspec.plugins.api import Evaluator

TABLES = tables(__file__)

CATALOG = trnspec.load()


@pytest.fixture(autouse=True)
def samples(tmp_path, monkeypatch):
    return install(tmp_path / "site", monkeypatch)


def sweep(**given) -> Evaluation:
    return trnspec.evaluate("sweep", CATALOG, **given)


def test_answer() -> None:
    """96 GiB at 2.9 TB/s, twice; a catalog that is not given is the shipped one."""
    found = trnspec.evaluate("sweep", chip="trainium2", times=2)

    assert found["time"] == pytest.approx(2 * 96 * 2**30 / 2.9e12, rel=1e-12)
    assert found == sweep(chip="trainium2", times=2)


def test_a_question_that_is_not_reported_is_filled_in() -> None:
    assert {} == dict(trnspec.evaluate("bare", CATALOG).inputs)


def test_refusal() -> None:
    with pytest.raises(RefusalError, match="65 times are too many") as caught:
        sweep(chip="trainium2", times=65)
    assert ("does-not-fit", "times", "") == (caught.value.reason, caught.value.place, caught.value.hint)
    assert isinstance(caught.value, trnspec.TrnspecError)


def test_true_and_false_are_values_of_their_type_only() -> None:
    assert [True, False, "true"] == [
        Input("n", type_).read(text) for type_, text in ((bool, "true"), (bool, "false"), (str, "true"))
    ]
    with pytest.raises(UsageError, match="n: true or false is expected, not 'yes'"):
        Input("n", bool).read("yes")


@pytest.mark.parametrize("type_", [int, float])
@pytest.mark.parametrize("text", ["4,096", "1,024", "1,048,576", "16,000"])
def test_thousands_are_no_values(type_, text) -> None:
    """What a comma leaves of 4,096 is no number: two values would be made of one."""
    with pytest.raises(UsageError, match=r"n: '0.*' is not a number; a comma separates values here"):
        _ = [Input("n", type_).read(part) for part in text.split(",")]


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        *TABLES["wrong inputs"],
        ({"chip": "trainium2", "share": math.nan}, "share: a finite number is expected, not nan"),
        ({"chip": "trainium2", "share": 10**400}, "share: a finite number is expected, not inf"),
    ],
)
def test_wrong_inputs(given, reported) -> None:
    with pytest.raises(UsageError) as caught:
        sweep(**given)
    assert reported in str(caught.value)


@pytest.mark.parametrize(("name", "reported"), TABLES["no such evaluator"])
def test_no_such_evaluator(name, reported) -> None:
    with pytest.raises(UsageError) as caught:
        trnspec.evaluate(name, CATALOG)
    assert reported in str(caught.value)


def test_not_a_catalog() -> None:
    with pytest.raises(UsageError, match="catalog is the result of trnspec"):
        trnspec.evaluate("sweep", "catalog", chip="trainium2")


def test_errors_of_trnspec_are_passed_on() -> None:
    with pytest.raises(UnknownNameError, match="trainum2"):
        sweep(chip="trainum2")
    with pytest.raises(UsageError, match=r"\Athat is not how it is used\Z"):
        trnspec.evaluate("broken", CATALOG, how="misuse")


@pytest.mark.parametrize("how", UNSOUND)
def test_unsound(how) -> None:
    with pytest.raises(UsageError) as caught:
        trnspec.evaluate("broken", CATALOG, how=how)
    assert "the evaluator broken of the plugin samples of trnspec-samples 1.0 returned an invalid result: " in str(
        caught.value
    )
    assert how in str(caught.value)


@pytest.mark.parametrize("how", RAISED)
def test_broken(how) -> None:
    with pytest.raises(UsageError) as caught:
        trnspec.evaluate("broken", CATALOG, how=how)
    assert f"the evaluator broken of the plugin samples of trnspec-samples 1.0 failed: {how}" == str(caught.value)


def test_inputs() -> None:
    def run(catalog, *, a: str, b: Optional[int] = None, c: tuple[float, ...] = (1.0,), d: Literal[1, 2] = 1):  # noqa: UP045  # as others write it
        """Runs.

        Args:
            catalog: The catalog.
            a: The first
                of all.
            b (int): The second.
            c: The third.
            d: The fourth.
        """

    assert (
        Input("a", str, required=True, help="The first of all."),
        Input("b", int, optional=True, help="The second."),
        Input("c", float, many=True, default=(1.0,), help="The third."),
        Input("d", int, choices=(1, 2), default=1, help="The fourth."),
    ) == inputs(run, "run")


@pytest.mark.parametrize(("signature", "reported"), TABLES["signatures that say too little"])
def test_signatures_that_say_too_little(signature, reported) -> None:
    scope = {"__name__": __name__, "Literal": Literal}
    exec(f"from __future__ import annotations\ndef run({signature or ''}): ...", scope)
    with pytest.raises(UsageError) as caught:
        inputs(3 if signature is None else scope["run"], "x")
    assert reported in str(caught.value)


def test_a_timeline_that_raises_is_one_message() -> None:
    def broken(catalog, *, chip: str) -> dict[str, object]:  # the parameters of an evaluator
        raise KeyError(chip)

    def bare(catalog, *, chip: str) -> Evaluation: ...

    with pytest.raises(UsageError, match="the timeline of drawn of the plugin acme failed: KeyError"):
        traced(
            Evaluator("drawn", "It draws.", bare, trace=broken),
            "the plugin acme",
            CATALOG,
            {"chip": "trainium2"},
            "timeline",
        )
    with pytest.raises(UsageError, match="has no timeline"):
        traced(Evaluator("drawn", "It draws.", bare), "the plugin acme", CATALOG, {"chip": "trainium2"}, "timeline")


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (int, "0", 0), (int, "8", 8), (int, "192", 192), (int, "-16", -16), (int, "1024", 1024), (int, "00", 0),
        (float, "0.096", 0.096), (float, ".096", 0.096), (float, "100.5", 100.5), (float, "0", 0.0),
        (str, "096", "096"),
    ],
)  # fmt: skip
def test_numbers_as_text(type_, text, value) -> None:
    assert value == Input("n", type_).read(text)


def test_whole_numbers_are_numbers() -> None:
    assert sweep(chip="trainium2", share=1) == sweep(chip="trainium2", share=1.0)
    assert sweep(chip="trainium2", label=None, extra=[1]) == sweep(chip="trainium2", extra=(1,))


def test_docstring_without_args() -> None:
    assert Docstring("One line.\n\nMore of it.", {}) == docstring(
        "One line.\n\nMore of it.\n\nRaises:\n    UsageError: Never."
    )


def test_inputs_of_a_docstring() -> None:
    """Only lines below an input belong to it: not one before it, nor those of the sections around."""
    text = "One.\n\nAttributes:\n    y: No.\n\nArgs:\n    of all:\n    x (int): The ``x``,\n        on.\nMore.\nRaises:\n    No: z.\n        Z.\n"
    assert Docstring("One.\n\nMore.", {"x": "The x, on."}) == docstring(text)


def test_examples_of_a_docstring() -> None:
    """The lines before a command explain it; it may have several lines itself."""
    text = "One.\n\nExamples:\n    Train ``it``\n    twice:\n\n    trnspec eval x\n      --full\n\n    trnspec eval y\n"

    assert (("trnspec eval x --full", "Train it twice:"), ("trnspec eval y", "")) == docstring(text).examples


def test_an_answer_within_rounding_of_its_interval() -> None:
    from trnspec.evaluation.runner import unsound

    found = Evaluation(evaluator="x", title="x", answers=(Answer("time", 0.1 + 0.2, "s", 0.1, 0.3),))

    assert [] == list(unsound(found, "x"))
