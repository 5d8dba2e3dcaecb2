"""Plans of a training run: the parts of each agree, and the best is the best."""

from __future__ import annotations

from typing import Any

import pytest
from evaluator_samples import keywords

import trnspec
from trnspec.builtin import plugin as builtin
from trnspec.errors import UsageError
from trnspec.evaluation.result import Evaluation, RefusalError
from trnspec.evaluators.planning.training import run as plan_
from trnspec.graph.prices import chosen
from trnspec.testing import EvaluatorConformance

plan = keywords(plan_)
CAT = trnspec.load()

SMALL: dict[str, Any] = {
    "model": "llama-3.2-1b",
    "tokens": "100B",
    "microbatch": (1, 2),
    "schedule": ("1f1b",),
    "recompute": ("none",),
    "seq": 4096,
}


def rows(found: Evaluation) -> list[dict[str, Any]]:
    return found.tables[0].records()


def test_the_parts_of_a_plan_agree() -> None:
    """Time, cost and chip hours follow from step time, price and chips."""
    found = plan(CAT, **SMALL, on=("trn1.32xlarge*4",))
    (row,) = rows(found)
    steps = 100e9 / (row["global_batch"] * 4096)
    server = CAT["trn1.32xlarge"]
    quote = chosen(CAT.graph, server.node, "on-demand")
    hours = row["run_time"] / 3600

    assert quote is not None
    assert row["chips"] == 64
    assert row["run_time"] * row["goodput"] / 100 == pytest.approx(steps * row["step_time"])
    assert row["chip_hours"] == pytest.approx(hours * 64)
    assert row["run_cost"] == pytest.approx(hours * 4 * float(quote.figure.value.value))
    assert row["time_low"] < row["run_time"] < row["time_high"]
    assert {a.name: a.value for a in found.answers}["steps"] == -(-100e9 // (row["global_batch"] * 4096))
    assert "trn1.32xlarge-on-demand" in {f.of for f in found.figures_used}


def test_the_step_is_that_of_the_suggested_evaluation() -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge*2",))
    (suggested,) = found.suggestions
    again = trnspec.evaluate(suggested.evaluator, CAT, **suggested.inputs)

    assert again["step_time"] == found["step_time"]
    assert again["mfu"] == found["mfu"]


@pytest.mark.parametrize(("objective", "column"), [("cost", "run_cost"), ("time", "run_time"), ("chips", "chips")])
def test_the_best_plan_has_the_smallest_objective(objective: str, column: str) -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge", "trn1.2xlarge"), count=(1, 2, 4), objective=objective, top=20)
    known = [row[column] for row in rows(found) if row[column] is not None]

    assert len(rows(found)) == 6
    assert rows(found)[0][column] == min(known)


def test_a_plan_on_the_front_is_not_beaten() -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge",), count=(1, 2, 4, 8), top=20)
    front = [row for row in rows(found) if row["pareto"]]

    assert front
    for row in front:
        assert not any(
            o["run_time"] <= row["run_time"] and o["run_cost"] <= row["run_cost"] and o != row for o in rows(found)
        )


def test_more_systems_until_the_deadline_is_met() -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge",), deadline="7d")
    best = rows(found)[0]

    assert found["meets_deadline"] is True
    assert found["in_time"] >= 50
    assert all(r["run_cost"] >= best["run_cost"] for r in rows(found) if r["in_time"] >= 50)


def test_confidence_asks_for_more() -> None:
    question = {**SMALL, "on": ("trn1.32xlarge",), "deadline": "7d"}
    likely, certain = (plan(CAT, **question, confidence=share) for share in (0.5, 0.9))

    assert certain["in_time"] >= 90
    assert certain["run_time"] <= likely["run_time"]


def test_failures_cost_time() -> None:
    question = {**SMALL, "on": ("trn1.32xlarge*4",), "checkpoint_rate": "1 GB/s"}
    often, seldom = (plan(CAT, **question, mtbf=text) for text in ("1000h", "100000h"))

    assert often["goodput"] < seldom["goodput"] < 100
    assert often["failures"] > 50 * seldom["failures"]
    assert often["step_time"] == seldom["step_time"]


def test_a_given_price_and_no_price() -> None:
    given = plan(CAT, **SMALL, on=("trn1.32xlarge*4",), price="10 USD/h")
    unknown = plan(CAT, **SMALL, on=("trn3-gen2-ultraserver",))

    assert given["run_cost"] == pytest.approx(given["run_time"] / 3600 * 40)
    assert "run_cost" not in unknown.names
    assert rows(unknown)[0]["run_cost"] is None
    assert {a.name: a.value for a in unknown.assumptions}["cost"] == "unknown"


def test_what_has_no_plan_is_named() -> None:
    mixed = plan(CAT, **{**SMALL, "model": "llama-3.1-8b"}, on=("trn1.32xlarge*2", "trn1.2xlarge*1"))

    assert [a.value for a in mixed.assumptions if a.name == "no_plan"] == ["trn1.2xlarge*1"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tokens": "many"}, "tokens: a number above 0"),
        ({"deadline": "soon"}, "deadline: a duration above 0"),
        ({"budget": "0"}, "budget: a number above 0"),
        ({"on": ("trn1.32xlarge*x",)}, "on: a system and a count"),
        ({"price": "10 EUR/h"}, "price: "),
        ({"checkpoint_rate": "fast"}, "checkpoint_rate: "),
    ],
)
def test_misuse(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(CAT, **{**SMALL, "on": ("trn1.32xlarge*2",), **changed})


def test_no_plan() -> None:
    with pytest.raises(RefusalError) as refused:
        plan(CAT, model="llama-3.1-405b", tokens="1T", on=("trn1.2xlarge*2",))
    assert refused.value.reason == "no-plan"


class TestConformance(EvaluatorConformance):
    """It keeps what every evaluator keeps."""

    plugin = builtin
    name = "plan-train"
    dimensionless = ("chip_hours", "steps", "failures")
    good = ({**SMALL, "on": ("trn1.32xlarge*4",)}, {**SMALL, "on": ("trn1.2xlarge",), "count": (2,), "deadline": "90d"})
    bad = (
        ({**SMALL, "on": ("trn1.32xlarge*4",), "tokens": "x"}, "misuse"),
        ({**SMALL, "model": "llama-3.1-405b", "on": ("trn1.2xlarge*2",)}, "no-plan"),
    )
