"""A sweep as one table: units, bounds, calibrations, refusals."""

from __future__ import annotations

from trnspec.errors import RefusalError
from trnspec.evaluation.page import BOUNDS, IDEAL
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evaluation.sweeps import sections, sweep_note, sweep_table
from trnspec.evidence import Evidence
from trnspec.text_table import lines, sections_in_markdown


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


def test_long_reasons_are_printed_once_below_the_table() -> None:
    long, other = (RefusalError("no-plan", f"{word * 30}here") for word in ("why ", "how "))
    rows = [*SOME, ({"on": "d"}, long), ({"on": "e"}, other), ({"on": "f"}, long)]
    cells = [row.rpartition("  ")[2] for row in lines(sweep_table(rows), 80)[4:]]
    _, _, *notes, _ = (block for _, block in sections(rows, "x"))

    assert cells == ["no: never", "no-plan [1]", "no-plan [2]", "no-plan [1]"]
    assert notes == [f"[1] {long}", f"[2] {other}"]
    assert sections_in_markdown(sections(rows, "x")).count(str(long)) == 1


def test_columns_are_added_only_where_they_differ() -> None:
    both = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, estimate(1.0))]

    assert ["on", "time", "rate"] == [c.label for c in sweep_table(both).columns]
    assert "" == sweep_note(both)
    # Bounds of a calibration are not ideal.
    assert BOUNDS == sweep_note([({"on": "a"}, bound(1.0, "good"))])


def test_columns_and_order() -> None:
    head, shown, _ = (b for _, b in sections(SOME, "x: 3 combinations", columns="on,time", sort="-time"))

    assert "x: 3 combinations" == head
    assert ["on  time [s]", "--  --------", "a          2", "b       >= 1", "c          -"] == lines(shown, 80)


def of_kind(kind: str, time: float) -> Evaluation:
    ends = {"low": 0.9 * time} if kind == "ideal" else {"low": 0.5 * time, "high": 2 * time}
    return Evaluation(
        evaluator="x",
        title="x",
        answers=(Answer("time", time, "s", **ends, kind=kind), Answer("memory", 1.0, "B")),
        evidence=Evidence(kind=kind, reason="a reason"),
    )


def test_bounds_are_not_ranked_with_estimates() -> None:
    rows = [
        ({"on": "d"}, RefusalError("no", "never")),
        ({"on": "a"}, of_kind("ideal", 1.0)),
        ({"on": "b"}, of_kind("transferred", 3.0)),
        ({"on": "c"}, of_kind("estimate", 2.0)),
    ]
    _, shown, note = (block for _, block in sections(rows, "x", sort="time"))

    assert [
        "on  evidence     time [s]  memory [B]  refused",
        "--  -----------  --------  ----------  ---------",
        "c   estimate           ~2           1",
        "b   transferred        ~3           1",
        "a   ideal          >= 0.9           1",
        "d                       -           -  no: never",
    ] == lines(shown, 80)
    assert "not comparable" in " ".join(note.split())
    assert "" == sweep_note(rows[2:])
    # One kind needs no column.
    assert ["on", "time", "memory"] == [c.label for c in sweep_table(rows[2:3] * 2).columns]
