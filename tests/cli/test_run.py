"""trnspec run: scenarios of a file in one table, differences, formats, errors at their line."""

import json

import pytest

import trnspec
from tests.support.programs import Here

CATALOG = trnspec.load()
TEXT = """api_version: trnspec/v1
kind: Scenarios
metadata: {name: plan, title: Llama 3.1 8B}
spec:
  scenarios:
    ideal:
      evaluator: training
      inputs:
        model: llama-3.1-8b
        on: trn2.48xlarge*2
        seq: 4096
        global_batch: 64
        tp: 8
        pp: 2
        calibration: none
    faster:
      base: ideal
      assume: {trn2.48xlarge.network.bandwidth: 6.4 Tbps}
    wide:
      base: ideal
      inputs: {tp: 24}
    calibrated:
      base: ideal
      inputs: {calibration: auto}
"""
INPUTS = {"model": "llama-3.1-8b", "on": "trn2.48xlarge*2", "seq": 4096, "global_batch": 64, "tp": 8, "pp": 2,
          "calibration": "none"}  # fmt: skip
NETWORK = "trn2.48xlarge.network.bandwidth"


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "plan.yaml").write_text(TEXT)
    return Here(tmp_path, monkeypatch, capsys)


def test_every_scenario_is_the_single_evaluation(here) -> None:
    ideal = trnspec.evaluate("training", CATALOG, **INPUTS)
    faster = trnspec.evaluate("training", CATALOG, **INPUTS, assume={NETWORK: "6.4 Tbps"})
    data = here("run", "plan.yaml", "--format", "json").data["scenarios"]
    rows = here("run", "plan.yaml", "--format", "csv").rows

    assert ["ideal", "faster", "wide", "calibrated"] == [s["name"] for s in data] == [r["scenario"] for r in rows]
    assert json.loads(json.dumps([ideal.to_dict(), faster.to_dict()])) == [s["evaluation"] for s in data[:2]]
    assert (
        ["", "", "rank-count", ""]
        == [s.get("refusal", {}).get("reason", "") for s in data]
        == [r["refused"] for r in rows]
    )
    assert [ideal["step_time"], faster["step_time"]] == [float(r["step_time [s]"]) for r in rows[:2]]


def test_diff(here) -> None:
    ideal = trnspec.evaluate("training", CATALOG, **INPUTS)
    faster = trnspec.evaluate("training", CATALOG, **INPUTS, assume={NETWORK: "6.4 Tbps"})
    diff = here("run", "plan.yaml", "--diff", "ideal", "faster", "--format", "json").data["diff"]
    rows = here("run", "plan.yaml", "--diff", "ideal", "faster", "--format", "csv").rows
    text = here("run", "plan.yaml", "--diff", "ideal", "faster").out

    assert [(NETWORK, [4e11, 8e11], 2.0)] == [(d["name"], d["values"], d["ratio"]) for d in diff["inputs"]]
    ratios = {d["name"]: d["ratio"] for d in diff["answers"]}
    assert faster["step_time"] / ideal["step_time"] == ratios["step_time"] < 1
    assert {a.name for a in ideal.answers if a.value == faster[a.name]} == set(diff["equal"])
    assert [(r["name"], float(r["ratio"])) for r in rows] == [(NETWORK, 2.0), *ratios.items()]
    assert all(name in text for name in ("ideal", "faster", NETWORK, "2x", "Equal: "))


def test_a_refusal_in_a_diff(here) -> None:
    done = here("run", "plan.yaml", "--diff", "ideal", "wide")

    assert (0, True) == (done.status, "wide has no answer: rank-count" in " ".join(done.out.split()))
    assert 1 == here("run", "plan.yaml", "--only", "wide").status


def test_errors_of_the_file(here) -> None:
    """File, line, column, code and hint; nothing is evaluated. validate reports the same findings."""
    (here.folder / "bad.yaml").write_text(
        TEXT.replace("tp: 24", "tpp: 24").replace("base: ideal\n      assume", "base: idael\n      assume")
        .replace("metadata", "metadta").replace("calibration: auto", "calibration: [auto, 1]")
    )  # fmt: skip
    (here.folder / "semantic.yaml").write_text(TEXT.replace("tp: 24", "tpp: 24").replace("6.4 Tbps", "6.4 TB"))
    (here.folder / "model.yaml").write_text(TEXT.replace("llama-3.1-8b", "llama-3.1-9b"))
    bad, semantic, model = (here("run", f"{name}.yaml") for name in ("bad", "semantic", "model"))
    validated = here("validate", "semantic.yaml")

    assert (2, "") == (bad.status, bad.out)
    assert "bad.yaml:3:1: error TRN102 missing-field" in {
        x.partition(": the document")[0] for x in bad.err.splitlines()
    }
    assert "model.yaml:9:16: error TRN820 invalid-scenario: no model is named 'llama-3.1-9b'" in model.err
    assert (2, "", 1) == (semantic.status, semantic.out, validated.status)
    assert ["18:49", "21:16"] == [
        line.split(":", 1)[1].split(": ")[0] for line in semantic.err.splitlines() if "TRN820" in line
    ]
    assert "did you mean 'tp'" in semantic.err
    assert [x for x in semantic.err.splitlines() if "TRN820" in x] == [
        x for x in validated.out.splitlines() if "TRN820" in x
    ]


def test_bounds_and_estimates_have_no_ratio(here) -> None:
    diff = here("run", "plan.yaml", "--diff", "ideal", "calibrated", "--format", "json").data["diff"]
    (step,) = [d for d in diff["answers"] if d["name"] == "step_time"]

    assert (None, True) == (step["ratio"], "not comparable" in step["note"])
