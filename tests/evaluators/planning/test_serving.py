"""Plans of a serving fleet: limits are met with the printed probability, and the parts of a plan agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluator_samples import keywords

import trnspec
from trnspec.builtin import plugin as builtin
from trnspec.errors import UsageError
from trnspec.evaluation.result import Evaluation, RefusalError
from trnspec.evaluators.planning.serving import run as plan_
from trnspec.testing import EvaluatorConformance

plan = keywords(plan_)
CAT = trnspec.load()

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "rate": 20.0,
    "isl": 2048,
    "osl": 256,
    "ttft": "1s",
    "tpot": "40ms",
    "tp": (4, 8),
    "on": ("trn2.48xlarge",),
}


def rows(found: Evaluation, table: int = 0) -> list[dict[str, Any]]:
    return found.tables[table].records()


def test_the_parts_of_a_plan_agree() -> None:
    found = plan(CAT, **QUESTION)
    best = rows(found)[0]
    systems = int(best["system"].split("*")[1])
    ranks = 64  # Logical cores of a server.

    assert best["chips"] == 16 * systems
    assert best["replicas"] == systems * ranks // best["tp"]
    assert best["rate_per_replica"] == pytest.approx(20.0 / best["replicas"])
    assert best["million_tokens"] == pytest.approx(best["hourly"] / (20.0 * 256 * 3600) * 1e6)
    assert best["utilization"] == pytest.approx(100 * best["rate_per_replica"] / best["saturation"])
    assert best["utilization"] <= 80


def test_limits_are_met_with_the_confidence() -> None:
    for row in rows(plan(CAT, **QUESTION)):
        assert row["probability"] >= 49.9
    sure = plan(CAT, **QUESTION, confidence=0.9)
    for row in rows(sure):
        assert row["probability"] >= 89.9
    assert sure["chips"] >= plan(CAT, **QUESTION)["chips"]


def test_an_ideal_plan_meets_the_limits() -> None:
    found = plan(CAT, **QUESTION, calibration="none")

    assert found.number("time_to_first_token") <= 1.0
    assert found.number("time_per_output_token") <= 0.040
    assert (found.answer("time_to_first_token").kind, "probability" in found.names) == ("ideal", False)


def test_one_system_fewer_does_not_meet_the_limits() -> None:
    """At 20 times the rate, so that a system is a small step."""
    question = {**QUESTION, "rate": 2000.0, "calibration": "none", "tp": (4,)}
    found = plan(CAT, **question)
    (row,) = rows(found)
    highest = max(r["rate"] for r in rows(found, 1) if r["within_limits"]) / row["replicas"]

    assert row["rate_per_replica"] * 64 // 4 <= 2000.0
    # A grid of 10 % steps brackets the highest rate.
    assert highest <= row["rate_per_replica"] * 1.001 + 0.1 * row["saturation"]
    assert row["rate_per_replica"] <= highest + 0.1 * row["saturation"]


def test_tighter_limits_need_no_fewer_chips() -> None:
    chips = [plan(CAT, **{**QUESTION, "tpot": text, "rate": 100.0})["chips"] for text in ("80ms", "40ms", "25ms")]

    assert chips == sorted(chips)


def test_percentiles_grow_with_the_rate() -> None:
    curve = rows(plan(CAT, **QUESTION), 1)

    for name in ("ttft", "tpot", "median_tpot"):
        assert [r[name] for r in curve] == sorted(r[name] for r in curve)


def test_lengths_of_a_file(tmp_path: Path) -> None:
    """Prompts of one length are the mean; of different lengths they queue longer."""
    same, mixed = tmp_path / "same.csv", tmp_path / "mixed.csv"
    same.write_text("isl,osl\n" + "2048,256\n" * 10, encoding="utf-8")
    mixed.write_text("isl,osl\n" + "1024,256\n3072,256\n" * 10, encoding="utf-8")
    question = {**QUESTION, "calibration": "none", "tp": (4,)}
    plain, equal, spread = (plan(CAT, **question, lengths=f) for f in (None, str(same), str(mixed)))

    assert rows(equal) == rows(plain)
    assert spread.number("time_to_first_token") > plain.number("time_to_first_token")


@pytest.mark.parametrize("text", ["", "isl,osl\n", "isl\n1\n", "isl,osl\n1,x\n", "isl,osl\n0,5\n"])
def test_a_file_without_lengths(tmp_path: Path, text: str) -> None:
    file = tmp_path / "lengths.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"lengths: .*lengths\.csv"):
        plan(CAT, **QUESTION, lengths=str(file))


def test_no_plan() -> None:
    with pytest.raises(RefusalError) as refused:
        plan(CAT, **{**QUESTION, "tpot": "0.1ms"})
    assert refused.value.reason == "no-plan"


class TestConformance(EvaluatorConformance):
    """It keeps what every evaluator keeps."""

    plugin = builtin
    name = "plan-serve"
    dimensionless = ("systems", "chips", "replicas", "requests_in_flight", "saturation")
    good = (QUESTION, {**QUESTION, "calibration": "none"})
    bad = (
        ({**QUESTION, "ttft": "x"}, "misuse"),
        ({**QUESTION, "rate": 0.0}, "misuse"),
        ({**QUESTION, "tpot": "0.1ms"}, "no-plan"),
    )
