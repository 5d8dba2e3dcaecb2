"""A sweep as one table: units, bounds, calibrations, refusals."""

from __future__ import annotations

from trnspec.evaluation.page import BOUNDS, IDEAL
from trnspec.evaluation.result import Answer, Evaluation, RefusalError
from trnspec.evaluation.sweep_page import sweep_markdown, sweep_note, sweep_page, sweep_table
from trnspec.text_table import lines


def estimate(time: float) -> Evaluation:
    answers = (Answer("time", time, "s", 0.9 * time, 1.1 * time), Answer("rate", 1 / time, "%", 0.9 / time, 1.1 / time))
    return Evaluation(evaluator="x", title="x", answers=answers, inputs={"calibration": "good"})


def bound(time: float, name: str = "none") -> Evaluation:
    answers = (Answer("time", time, "s", low=time), Answer("rate", 1 / time, "%", high=1 / time))
    return Evaluation(evaluator="x", title="x", answers=answers, inputs={"calibration": name})


SOME = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, bound(1.0)), ({"on": "c"}, RefusalError("no", "never"))]


def test_a_bound_does_not_look_like_an_estimate() -> None:
    assert [
        "on  calibration  time [s]  rate [%]  refused",
        "--  -----------  --------  --------  ---------",
        "a   good                2       0.5",
        "b   none             >= 1      <= 1",
        "c   -                   -         -  no: never",
    ] == lines(sweep_table(SOME), 80)
    assert f"{BOUNDS} {IDEAL}" == sweep_note(SOME)


def test_columns_are_added_only_where_they_differ() -> None:
    both = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, estimate(1.0))]

    assert ["on", "time", "rate"] == [c.label for c in sweep_table(both).columns]
    assert "" == sweep_note(both)
    # Bounds of a calibration are not ideal.
    assert BOUNDS == sweep_note([({"on": "a"}, bound(1.0, "good"))])


def test_a_calibration_that_varies_is_a_column_once() -> None:
    both = [({"calibration": "auto"}, estimate(2.0)), ({"calibration": "none"}, bound(1.0))]

    assert ["calibration", "time", "rate"] == [c.label for c in sweep_table(both).columns]


def test_one_unit_per_column() -> None:
    both = [({"on": "a"}, estimate(2e-3)), ({"on": "b"}, estimate(0.3))]

    assert "on  time [ms]  rate [%]" == lines(sweep_table(both), 80)[0]


def test_columns_and_order() -> None:
    """By the names of the answers; what has no answer is last."""
    head, shown, _ = sweep_page(SOME, "x: 3 combinations", 80, columns="on,time", sort="-time")

    assert "x: 3 combinations" == head
    assert ["on  time [s]", "--  --------", "a          2", "b       >= 1", "c          -"] == lines(shown, 80)


def test_markdown_names_the_inputs() -> None:
    text = sweep_markdown(SOME, "x: 3 combinations, model m")

    assert text.startswith("x: 3 combinations, model m\n\n| on | calibration | time [s] |")
