"""How far the engine lies from measurements: of tables of which one can tell what must come out."""

from __future__ import annotations

import csv
import math
from statistics import mean, median

import pytest
from engine_catalogs import FOLDERS, everything, shipped
from evaluator_samples import keywords

import trnspec
from trnspec.builtin import plugin as house
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluation.page import page
from trnspec.evaluation.result import RefusalError
from trnspec.evaluators.accuracy import run as accuracy_
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measurements import Skipped, records
from trnspec.perf.calibration.score import Scored
from trnspec.perf.calibration.score_training import score_training
from trnspec.perf.training.estimator import prepare
from trnspec.testing import EvaluatorConformance
from trnspec.text_table import lines

run = keywords(accuracy_)

MEASURED = folder() / "measured"
UNSEEN = "Errors of rows not in the fit"
IDEAL = "Errors without calibration"
TRN1 = str(MEASURED / "training_trn1.csv")


def table(found, title):
    return next(t for t in found.tables if t.title == title)


@pytest.fixture(scope="module")
def of_trn1():
    return run(shipped(), data=TRN1, rows=True)


def test_every_row_is_told_or_its_reason(of_trn1):
    with (MEASURED / "training_trn1.csv").open(newline="") as stream:
        written = {row["id"]: float(row["step_time_s"]) for row in csv.DictReader(stream)}
    told = {row[1]: row[2] for row in table(of_trn1, "Rows").rows}
    left_out = table(of_trn1, "Rows without an estimate").rows

    assert told == {name: written[name] for name in told}
    assert len(written) == len(told) + sum(row[1] for row in left_out)
    assert {"the row states no seq"} < {row[2] for row in left_out}


def test_errors_are_those_of_the_rows(of_trn1):
    rows = table(of_trn1, "Rows").rows
    (line,) = table(of_trn1, "Errors by data set").rows
    ideal = [abs(row[3] / row[2] - 1.0) for row in rows]
    fitted = [abs(row[4] / row[2] - 1.0) for row in rows]
    inside = [row[6] <= row[2] <= row[7] for row in rows]
    expected = [mean(ideal), mean(fitted), median(fitted), max(fitted), sum(inside) / len(inside)]

    assert ("training_trn1", "step", len(rows)) == line[:3]
    assert [100.0 * x for x in expected] == pytest.approx(list(line[3:]), rel=1e-12)
    assert of_trn1["step_error"] == pytest.approx(100.0 * mean(fitted), rel=1e-12)
    ((*_, of_mean, of_median, of_worst),) = table(of_trn1, IDEAL).rows
    expected = [100.0 * x for x in (mean(ideal), median(ideal), max(ideal))]
    assert expected == pytest.approx([of_mean, of_median, of_worst], rel=1e-12)
    assert all(row[3] < row[2] for row in rows), "published figures alone are faster than anybody was"


def test_rows_that_the_fit_had_not_seen_are_further_off():
    found = run(shipped(), data=TRN1, refit=True)
    ((*_, mean_seen, _, _, _),) = table(found, "Errors by data set").rows
    ((name, of, count, unseen, *_),) = table(found, UNSEEN).rows

    assert ("training_trn1", "step", 7) == (name, of, count)
    assert unseen > mean_seen
    assert (mean_seen, unseen) == (found["step_error"], found["step_unseen_error"])
    assert [
        ("step_error", "of the fit: mean of 7 rows, training step"),
        ("step_unseen_error", "of rows not in the fit: mean of 7"),
        ("step_unseen_median", "of rows not in the fit: median"),
    ] == [(a.name, a.note) for a in found.answers[:3]]


def test_without_a_calibration_there_is_a_bound_alone():
    found = run(shipped(), data=TRN1, calibration="none")

    assert (None, None, None, None) == table(found, "Errors by data set").rows[0][4:]
    assert () == found.answers
    assert ["Errors by data set", IDEAL] == [t.title for t in found.tables if t.title.startswith("Errors")]


def test_what_was_computed_is_met_exactly(tmp_path):
    """A row whose time is what the engine says is off by nothing, and lies in the interval; no fit has seen it."""
    estimator = prepare(shipped().graph, "llama-3.1-8b", "trn1.32xlarge*32")
    row = {
        "kind": "train", "id": "made", "model": "llama-3.1-8b", "hardware": "trn1.32xlarge", "n_chips": "512", "tp": "32",
        "pp": "1", "dp": "32", "zero": "1", "seq": "8192", "microbatch": "1", "global_batch": "1024", "precision": "bf16",
    }  # fmt: skip
    file = tmp_path / "made.csv"
    write(file, {**row, "step_time_s": "1"})
    (scored,) = score_training(shipped().graph, records(file), file.name)
    write(file, {**row, "step_time_s": repr(scored.calibrated)})
    found = run(shipped(), data=str(file))

    assert isinstance(scored, Scored)
    assert "trainium1-neuron" == estimator.calibration.name
    assert {"step_unseen_error": 0.0, "step_unseen_median": 0.0, "inside": 100.0} == {
        a.name: a.value for a in found.answers
    }


def write(file, row):
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerow(row)


def test_the_calibration_is_that_of_the_table_then_of_the_software():
    """Rows of LLM Foundry are computed with what was fitted to it, though another calibration has more rows."""
    rows = records(MEASURED / "training_mpt.csv")
    mine = {s.id: s.calibrated for s in score_training(everything(), rows, "training_mpt.csv")}
    elsewhere = {s.id: s.calibrated for s in score_training(everything(), rows, "of-somebody.csv")}
    unsaid = [{**row, "source": "", "note": ""} for row in rows]
    unknown = {s.id: s.calibrated for s in score_training(everything(), unsaid, "of-somebody.csv")}
    named = score_training(everything(), rows, "x.csv", calibration="a100-80gb-megatron-deepspeed")

    assert 102 == len(mine)
    assert mine == elsewhere, "the rows name the software"
    assert mine != unknown, "of the chip's calibrations that with the most rows is taken"
    assert {s.id: s.calibrated for s in named} != mine


def test_rows_that_no_fit_has_seen_need_no_fit():
    """Those of tables that no calibration was fitted on; their error is that of the calibrated answer."""
    cat = trnspec.load([str(folder()), *FOLDERS])
    found = run(cat, data=str(MEASURED / "training_korthikanti.csv"))
    ((*_, ideal, mean, median, worst, _),) = table(found, "Errors by data set").rows
    ((_, _, count, *unseen),) = table(found, UNSEEN).rows

    assert (8, [mean, median, worst]) == (count, unseen)
    assert [("step_unseen_error", mean), ("step_unseen_median", median)] == [
        (a.name, a.value) for a in found.answers if a.name.startswith("step")
    ]
    # Of the best other tool it is 3.65 %.
    assert mean < 3.65 < ideal
    fitted = score_training(cat.graph, records(MEASURED / "training_megatron_sc21.csv"), "training_megatron_sc21.csv")
    assert {None} == {s.held_out for s in fitted if not isinstance(s, Skipped)}


def test_measurements_on_chips_that_are_not_known_are_refused():
    with pytest.raises(RefusalError) as caught:
        run(shipped(), data=str(MEASURED / "training_a100_vtrain.csv"))

    assert ("no-rows", "data") == (caught.value.reason, caught.value.place)
    assert "774 rows: the catalog has no document named a100-800gbps" in str(caught.value)
    assert "trnspec-nvidia" in caught.value.hint


def test_memory_is_told_beside_time():
    found = run(trnspec.load([str(folder()), *FOLDERS]), data=str(MEASURED / "training_torchtitan.csv"))
    lines = {row[1]: row for row in table(found, "Errors by data set").rows}

    assert {"step", "memory"} == set(lines)
    assert (8, None) == (lines["memory"][2], lines["memory"][4])
    # Nothing is fitted to memory, so that its error is the same with and without.
    assert lines["memory"][3] == found["memory_error"]
    assert "not fitted: mean of 8 rows, memory of a rank" == found.answer("memory_error").note
    reasons = {row[2]: row[1] for row in table(found, "Rows without an estimate").rows}
    assert 1 == reasons["its memory: the row does not state the microbatch"]


def test_a_row_of_a_kind_that_is_not_known_is_told(tmp_path):
    file = tmp_path / "odd.csv"
    file.write_text("kind,id\nweather,a\n")
    with pytest.raises(RefusalError, match="no evaluator for this kind of measurement"):
        run(shipped(), data=str(file))


@pytest.mark.parametrize(
    ("question", "error", "told"),
    [
        ({"data": "nowhere.csv"}, UsageError, "nowhere.csv"),
        ({"data": TRN1, "calibration": "nobodys"}, UnknownNameError, "no calibration is named 'nobodys'"),
        ({"data": TRN1, "calibration": "trainium1-neuron-decode"}, UsageError, "is for inference, not for training"),
    ],
)
def test_misuse(question, error, told):
    with pytest.raises(error, match=told):
        run(shipped(), **question)


def test_a_folder_without_tables(tmp_path):
    with pytest.raises(UsageError, match="holds no CSV files"):
        run(shipped(), data=str(tmp_path))


def test_skipped_rows_have_reasons():
    found = score_training(shipped().graph, records(MEASURED / "training_trn1.csv"), "training_trn1.csv")

    assert all(s.reason for s in found if isinstance(s, Skipped))
    assert not any(math.isnan(s.ideal) for s in found if isinstance(s, Scored))


def test_the_page_is_not_wider_than_a_page():
    """With the longest names there are, and all columns."""
    found = run(trnspec.load([str(folder()), *FOLDERS]), data=str(MEASURED / "training_megatron_bridge.csv"))
    told = [line for b in page(found, 80) for line in (b.splitlines() if isinstance(b, str) else lines(b, 80))]

    assert max(map(len, told)) <= 80
    assert not any("Left out" in line for line in told)


class TestConformance(EvaluatorConformance):
    """What every evaluator must keep."""

    plugin = house
    name = "accuracy"
    good = ({"data": TRN1}, {"data": TRN1, "calibration": "none", "rows": True})
    bad = (({"data": "nowhere.csv"}, "misuse"), ({"data": str(MEASURED / "matmul.csv")}, "no-rows"))
