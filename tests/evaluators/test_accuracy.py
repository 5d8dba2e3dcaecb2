"""Evaluator `accuracy` on tables with known errors."""

import csv
import json
from statistics import mean, median
from typing import Any

import jsonschema
import pytest

import trnspec
from tests.support.engine import everything, refusal, shipped
from tests.support.evaluations import BuiltinConformance, keywords, table
from tests.support.programs import ROOT
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluators.accuracy import run as accuracy_
from trnspec.loading.files import shipped as folder
from trnspec.model.document_text import document_text
from trnspec.perf.calibration.measured.cells import records, row_hashes
from trnspec.perf.calibration.score import score

run = keywords(accuracy_)

MEASURED = folder() / "measured"
UNSEEN = "Errors of rows not in the fit"
IDEAL = "Errors without calibration"
TRN1 = str(MEASURED / "training_trn1.csv")


@pytest.fixture(scope="module")
def of_trn1():
    return run(shipped(), data=TRN1, rows=True)


def test_every_row_is_listed_or_its_reason(of_trn1):
    with (MEASURED / "training_trn1.csv").open(newline="") as stream:
        written = {row["id"]: float(row["step_time_s"]) for row in csv.DictReader(stream)}
    measured = {row["id"]: row["measured"] for row in of_trn1.rows if not row["skipped"]}
    left_out = {row["id"]: row["skipped"] for row in of_trn1.rows if row["skipped"]}

    assert measured == {name: written[name] for name in measured}
    assert set(written) == {*measured, *left_out}
    assert "the row states no seq" in left_out.values()
    assert len(left_out) == sum(row[1] for row in table(of_trn1, "Rows without an estimate").rows)
    assert list(measured) == [row[1] for row in table(of_trn1, "Rows").rows]


def test_errors_are_those_of_the_rows(of_trn1):
    rows = [row for row in of_trn1.rows if not row["skipped"]]
    (line,) = table(of_trn1, "Errors by data set").rows
    off = [row["computed"] / row["measured"] - 1.0 for row in rows]
    inside = [row["low"] <= row["measured"] <= row["high"] for row in rows]
    absolute = [abs(e) for e in off]
    expected = [mean(absolute), median(absolute), mean(off), max(absolute), sum(inside) / len(inside)]

    assert ("training_trn1", "step", len(rows)) == line[:3]
    assert [100.0 * x for x in expected] == pytest.approx(list(line[3:]), rel=1e-12)
    ideal = [row["ideal"] / row["measured"] - 1.0 for row in rows]
    ((*_, of_mean, _, bias, of_worst, _),) = table(of_trn1, IDEAL).rows
    assert [100.0 * x for x in (-mean(ideal), mean(ideal), -min(ideal))] == pytest.approx([of_mean, bias, of_worst])
    assert all(row["ideal"] < row["measured"] for row in rows), "published figures alone are a lower bound"
    known = {
        "set": "training_trn1", "part": "step", "unit": "s", "chip": "trainium1", "calibration": "trainium1-neuron",
    }  # fmt: skip
    assert [known] * len(rows) == [{name: row[name] for name in known} for row in rows]


def copied(tmp_path, change=lambda row: row, calibration=None):
    """The rows of a table in a file of another name, and a catalog whose calibration was fitted to them."""
    graph = shipped().graph
    rows = records(MEASURED / "training_trn1.csv")
    hashes = [h for row in rows for h in row_hashes(row)]
    own = tmp_path / "own" / "calibrations"
    own.mkdir(parents=True)
    data: Any = graph.named("trainium1-neuron").document.data
    spec = {k: v for k, v in data["spec"].items() if k != "tables"} | {"data": "own.csv", "rows": " ".join(hashes)}
    metadata = {**data["metadata"], "name": "trainium1-neuron-own"}
    (own / "trainium1-neuron-own.yaml").write_text(document_text("Calibration", metadata, spec))
    file = tmp_path / "somebodys.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, sorted(rows[0], reverse=True))
        writer.writeheader()
        writer.writerows(change(dict(row)) for row in rows)
    return trnspec.load([str(folder()), str(tmp_path / "own")]), str(file)


def test_errors_of_the_fit_are_those_of_its_rows(tmp_path):
    other = records(MEASURED / "training_trn1.csv")[0]["id"]
    catalog, file = copied(tmp_path, lambda row: row | ({"step_time_s": "1"} if row["id"] == other else {}))
    found = run(catalog, data=file)
    off = {row["id"]: abs(row["computed"] / row["measured"] - 1.0) for row in found.rows if row["seen"]}

    assert {row["id"] for row in found.rows if not row["skipped"]} == {*off, other} > off.keys()
    assert 100 * mean(off.values()) == pytest.approx(found["step_error"])


def test_seen_rows_held_out_are_further_off(tmp_path):
    catalog, file = copied(tmp_path)
    found = run(catalog, data=file, refit=True)
    rows = [row for row in found.rows if not row["skipped"]]
    off = [abs(row["computed"] / row["measured"] - 1.0) for row in rows]
    held = [abs(row["held_out"] / row["measured"] - 1.0) for row in rows]
    assert mean(held) > mean(off)
    assert (100 * mean(off), 100 * mean(held)) == pytest.approx((found["step_error"], found["step_unseen_error"]))
    ((_, _, count, unseen, *_),) = table(found, UNSEEN).rows
    assert (len(rows), 100 * mean(held)) == (count, pytest.approx(unseen))


def test_the_rows_follow_their_schema():
    schema = json.loads((ROOT / "schemas" / "v1" / "accuracy.schema.json").read_text())
    found = json.loads(json.dumps(run(shipped(), data=TRN1).to_dict()))
    jsonschema.Draft202012Validator(schema).validate(found)
    assert set(schema["$defs"]["row"]["properties"]) == set(found["rows"][0])
    assert "Rows" not in {one["title"] for one in found["tables"]}


def test_the_calibration_is_that_of_the_framework():
    """Rows of LLM Foundry are computed with what was fitted to it, though another calibration has more rows."""
    rows = records(MEASURED / "training_mpt.csv")
    mine = [s for s in score(everything(), {"x": rows}) if not s.skipped]
    named = score(everything(), {"x": rows}, calibration="a100-80gb-megatron-2022")

    assert 102 == len(mine)
    assert {"llm-foundry"} == {s.framework for s in mine}
    assert {"llm-foundry"} == {everything().named(s.calibration).spec.framework for s in mine}
    assert {s.id: s.calibrated for s in named} != {s.id: s.calibrated for s in mine}


def test_measurements_on_chips_that_are_not_known_are_refused():
    caught = refusal(run, shipped(), data=str(MEASURED / "training_a100_vtrain.csv"))

    assert ("no-rows", "data") == (caught.reason, caught.place)
    assert "774 rows: the catalog has no document named a100-800gbps" in str(caught)
    assert "trnspec-nvidia" in caught.hint


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        ({"data": "nowhere.csv"}, UsageError, "nowhere.csv"),
        ({"data": TRN1, "calibration": "nobodys"}, UnknownNameError, "no calibration is named 'nobodys'"),
        (
            {"data": TRN1, "calibration": "trainium1-transformers-neuronx-2024-inference"},
            UsageError,
            "is for inference, not for training",
        ),
    ],
)
def test_misuse(question, error, message):
    with pytest.raises(error, match=message):
        run(shipped(), **question)


class TestConformance(BuiltinConformance):
    """What every evaluator must keep."""

    name = "accuracy"
    good = ({"data": TRN1}, {"data": TRN1, "calibration": "none", "rows": True})
    bad = (({"data": "nowhere.csv"}, "misuse"), ({"data": str(MEASURED / "matmul.csv")}, "no-rows"))
