"""Evaluations as Python objects: names, numbers, records, short reprs."""

import json

import pytest

from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Suggestion, Table, command, hint

TIMES = Table("Times", ("batch", "time"), ((1, 0.5), (2, None)), ("", "s"))
FOUND = Evaluation(
    evaluator="x",
    title="a title " * 40,
    inputs={f"input_{n}": n for n in range(30)},
    answers=(Answer("step_time", 2.5, "s", 2.0, 3.0, "a note"), Answer("fits", True), Answer("algorithm", "ring")),
    parts=(Part("step_time", "compute", 2.5),),
    tables=(TIMES,),
    suggestions=(Suggestion("training", {"tp": 8, "flash": False}, "the fastest"),),
)


@pytest.mark.parametrize("name", ["step time", "step-time", "Step Time", "steptime"])
def test_an_unknown_name_has_a_hint(name):
    for call in (FOUND.__getitem__, FOUND.answer, FOUND.number):
        with pytest.raises(UnknownNameError, match=f"there is no answer '{name}'; did you mean 'step_time'?") as caught:
            call(name)
        assert isinstance(caught.value, KeyError)


def test_a_name_with_nothing_near_lists_all():
    with pytest.raises(UnknownNameError, match="there is no answer 'watts'; there are step_time, fits, algorithm"):
        FOUND["watts"]
    with pytest.raises(UnknownNameError, match="there are none"):
        Evaluation(evaluator="x", title="x")["watts"]


def test_names_and_numbers():
    assert ("step_time", "fits", "algorithm") == FOUND.names
    assert 2.5 == FOUND.number("step_time")
    for name in ("fits", "algorithm"):
        with pytest.raises(UsageError, match=f"{name} is .*, which is not a number"):
            FOUND.number(name)


def test_records():
    assert {"name": "step_time", "value": 2.5, "unit": "s", "low": 2.0, "high": 3.0, "note": "a note", "kind": ""} == (
        FOUND.records()[0]
    )
    assert [{"batch": 1, "time": 0.5}, {"batch": 2, "time": None}] == TIMES.records()


def test_suggestions_go_through_json():
    data = json.loads(json.dumps(FOUND.to_dict()))
    data["suggestions"][0]["command"] = "trnspec eval training"

    assert FOUND == Evaluation.from_dict(data)
    del data["suggestions"]
    assert () == Evaluation.from_dict(data).suggestions


def test_the_command_of_a_suggestion():
    inputs = {"on": "trn1.32xlarge*2", "tp": 8, "dp": None, "flash": False, "overlap": True, "host_link": "1,000 GB/s",
              "schedule": ("1f1b", "zbv")}  # fmt: skip

    assert (
        "trnspec eval training --on 'trn1.32xlarge*2' --tp 8 --no-flash --overlap --host-link '1\\,000 GB/s' "
        "--schedule 1f1b,zbv --as-of 2026-01 --set a.b=1,2 --set a.c=3"
    ) == command(Suggestion("training", inputs), {"as_of": "2026-01", "edition": None, "set": ("a.b=1,2", "a.c=3")})
    assert command(Suggestion("plan-train", {"n": 20.0, "text": "1.0"}), {}) == "trnspec plan train --n 20 --text 1.0"


def test_hints_name_options():
    assert "use --no-must-fit or --full; x=1" == hint("use must_fit=False or full=True; x=1")


def test_what_a_first_page_has_is_no_difference():
    assert Assumption("a", "1") == Assumption("a", "1", first=True)


def test_names_of_tables_are_hints():
    found = Evaluation(evaluator="x", title="x", answers=(Answer("time_per_output_token", 1.0, "s"),))

    with pytest.raises(UnknownNameError, match="did you mean 'time_per_output_token'"):
        found.answer("TPOT")


def test_pandas():
    pytest.importorskip("pandas")
    answers, times = FOUND.to_pandas(), TIMES.to_pandas()

    assert ["step_time", "fits", "algorithm"] == list(answers["name"])
    assert (0.5, {"batch": "", "time": "s"}) == (times["time"][0], times.attrs["units"])
