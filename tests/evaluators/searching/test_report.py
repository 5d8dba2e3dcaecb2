"""The search for layouts: what it reports is what the training evaluator says of each, and nothing faster was missed."""

import pytest

import trnspec
from tests.support.engine import refusal
from tests.support.evaluations import BuiltinConformance, keywords
from trnspec.evaluators.searching.report import run as search_
from trnspec.evaluators.searching.space import LAYOUT
from trnspec.evaluators.training import run as training_

run = keywords(search_)
train = keywords(training_)

CAT = trnspec.load()


def rows(found) -> list[dict]:
    return [dict(zip(found.tables[0].columns, row, strict=True)) for row in found.tables[0].rows]


def layout(row: dict) -> dict:
    return {name: row[name] for name in LAYOUT if name in row}


def test_search_rows_equal_training_evaluations() -> None:
    question = {"model": "llama-3.1-70b", "on": "trn2.48xlarge*16", "seq": 8192, "global_batch": 1024}
    found = run(CAT, **question)

    assert len(found.tables[0].rows) == 10
    for row in rows(found):
        expected = train(CAT, **question, **layout(row))
        assert (row["step_time"], row["mfu"], row["memory"]) == tuple(
            expected[n] for n in ("step_time", "mfu", "memory")
        )
        assert expected["fits"] is True
    times = [row["step_time"] for row in rows(found)]
    assert times == sorted(times)
    assert found["step_time"] == times[0]
    assert len({tuple(layout(row).items()) for row in rows(found)}) == 10, "no layout is reported twice"
    assert found["evaluated"] == found["feasible"] + found["rejected"]
    assert sum(p.value for p in found.parts) == found["rejected"]


@pytest.mark.parametrize(
    ("question", "changed"),
    [
        ({"model": "llama-3.2-1b", "on": "trn1.2xlarge", "seq": 1023, "global_batch": 7, "microbatch": (2,)},
         [{"global_batch": 6}]),
        ({"model": "llama-3.1-70b", "on": "trn1.32xlarge", "seq": 4096, "global_batch": 256}, [{"on": "trn1.32xlarge*4"}]),
        ({"model": "llama-3.2-1b", "on": "trn1.2xlarge*6", "seq": 1024, "global_batch": 4, "tp": (2,), "pp": (1,)},
         [{"global_batch": 3}, {"chips": 4}]),
        # How several chips alone are linked is not known.
        ({"model": "llama-3.1-405b", "on": "trainium1", "seq": 4096, "global_batch": 256}, []),
    ],
)  # fmt: skip
def test_refusal_suggests_feasible_layouts(question, changed) -> None:
    suggested = [dict(s.inputs) for s in refusal(run, CAT, **question).suggestions]

    assert [{k: v for k, v in s.items() if question.get(k) != v} for s in suggested] == changed
    for inputs in suggested:
        assert run(CAT, **inputs)["feasible"] > 0


class TestConformance(BuiltinConformance):
    """It keeps what every evaluator keeps."""

    name = "search"
    dimensionless = ("evaluated", "feasible", "rejected")
    good = (
        {"model": "mixtral-8x7b", "on": "trn1.32xlarge*8", "seq": 4096, "global_batch": 256, "top": 3},
        {"model": "gpt2", "on": "trn1.2xlarge", "seq": 1024, "global_batch": 8, "schedule": ("zbv",), "microbatch": (1, 3)},
    )  # fmt: skip
    bad = (
        ({"model": "llama-3.1-405b", "on": "trn1.2xlarge", "seq": 4096, "global_batch": 8}, "no-layout"),
        ({"model": "gpt2", "on": "trn1.2xlarge", "seq": 1024, "global_batch": 8, "top": 0}, "misuse"),
        ({"model": "gpt2", "on": "trn1.2xlarge", "seq": 1024, "global_batch": 8, "microbatch": (0,)}, "misuse"),
    )
