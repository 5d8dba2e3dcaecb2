"""Measurements next to what is computed for them: what every scorer keeps, and what the evaluators answer for the same row."""

from __future__ import annotations

import statistics

import pytest

from tests.support.engine import everything, shipped
from tests.support.evaluations import keywords
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluators.inference import run as inference_
from trnspec.loading.files import shipped as folder
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured.tables import PARTS, Skipped, records, row_hashes
from trnspec.perf.calibration.scores.inference import refit_inference, score_inference
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.calibration.scores.scorers import REFITS, SCORERS, score

run = keywords(inference_)

DATA = folder() / "measured"
KINDS = {
    "train": "training_torchtitan", "infer": "inference_neuron", "collective": "collectives_nccl", "matmul": "matmul",
    "attention": "attention_prefill_gpu", "moe": "moe_gpu",
}  # fmt: skip


def scored(name: str, score, **options) -> list[Scored]:
    found = score(everything(), records(DATA / f"{name}.csv"), name, **options)
    return [s for s in found if isinstance(s, Scored)]


@pytest.fixture(scope="module")
def served() -> list[Scored]:
    return scored("inference_neuron", score_inference)


def errors(some: list[Scored], of: str) -> list[float]:
    return [abs(value / s.measured - 1.0) for s in some if (value := getattr(s, of)) is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_scored_or_skipped(kind):
    """With a part that is known; an interval, a kind of evidence and a calibration are together or absent."""
    rows = records(DATA / f"{KINDS[kind]}.csv")
    found = list(SCORERS[kind](everything(), rows, "a-name"))
    assert {row["id"] for row in rows if row["kind"] == kind} == {s.id for s in found}
    for each in found:
        if isinstance(each, Skipped):
            assert each.reason
            continue
        assert ("a-name", True) == (each.dataset, each.part in PARTS)
        assert 0.0 < each.ideal
        together = {
            each.calibrated is None,
            each.low is None,
            each.high is None,
            each.calibration == "",
            each.kind == "ideal",
        }
        assert 1 == len(together), each


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_calibration_only_bounds_are_stated(kind):
    found = scored(KINDS[kind], SCORERS[kind], calibration="none")
    assert found
    assert {(None, None, None, None, "ideal", "")} == {
        (s.calibrated, s.held_out, s.low, s.high, s.kind, s.calibration) for s in found
    }
    assert all(s.ideal < s.measured for s in found if s.part != "memory")


def test_a_row_of_another_kind_is_ignored():
    for kind, scorer in SCORERS.items():
        assert [] == list(scorer(everything(), [{"kind": f"not-{kind}", "id": "x"}], "x"))


def test_serving(served):
    vendor = [s for s in served if s.part == "tpot" and not s.id.startswith("optimum")]
    rows = [r for r in records(DATA / "inference_neuron.csv") if r["id"] in {s.id for s in vendor}]
    held_out = refit_inference(everything(), rows)
    off = [abs(held_out[s.id, "tpot"] / s.measured - 1.0) for s in vendor]
    assert statistics.mean(errors(vendor, "calibrated")) < statistics.mean(off) < 0.1
    assert statistics.mean(errors(vendor, "ideal")) > 0.6
    assert {"transformers-neuronx"} == {s.framework for s in vendor}


def test_rows_of_a_framework_have_its_calibration(served):
    """Not one of another framework, though the chip is the same."""
    known = {n.name: n.spec.framework for n in everything().of(Calibration)}
    assert {"transformers-neuronx", "optimum-neuron"} <= {s.framework for s in served}
    assert [] == [s.id for s in served if s.kind == "estimate" and known[s.calibration] != s.framework]


def test_what_is_scored_is_what_the_evaluator_answers(served):
    one = next(s for s in served if s.id == "trn1-latency_data_decoder-6-Llama-2-7b" and s.part == "tpot")
    first = next(s for s in served if s.id == one.id and s.part == "ttft")
    asked = {
        "model": "llama-2-7b", "on": "trn1.32xlarge", "tp": 32, "prompt": 128, "output": 8064, "batching": "static",
        "framework": "transformers-neuronx",
    }  # fmt: skip
    found = run(shipped(), **asked)
    for each, answer in ((one, "time_per_output_token"), (first, "time_to_first_token")):
        stated = found.answer(answer)
        assert (stated.value, stated.low, stated.high) == pytest.approx(
            (each.calibrated, each.low, each.high), rel=0.02
        )
        assert run(shipped(), **asked, calibration="none")[answer] == pytest.approx(each.ideal, rel=0.02)


def test_a_calibration_by_name(served):
    name = next(s.calibration for s in served if s.chip == "inferentia2")
    assert {name} == {s.calibration for s in scored("inference_neuron", score_inference, calibration=name)}
    with pytest.raises(UnknownNameError, match="no calibration is named 'neurn'"):
        score_inference(everything(), records(DATA / "inference_neuron.csv"), "x", calibration="neurn")
    with pytest.raises(UsageError, match="trainium1-neuron is for training, not for inference"):
        score_inference(everything(), records(DATA / "inference_neuron.csv"), "x", calibration="trainium1-neuron")


@pytest.mark.parametrize("name", ["gemm_gpu", "attention_decode_gpu", "moe_gpu"])
def test_kernels_have_the_roofs_of_their_chip_and_framework(name):
    rows = records(DATA / f"{name}.csv")
    found = [s for s in SCORERS[rows[0]["kind"]](everything(), rows, name) if isinstance(s, Scored)]
    specs = {n.name: n.spec for n in everything().of(Calibration)}
    assert {"estimate"} == {s.kind for s in found}
    assert [] == [
        s.id for s in found if (specs[s.calibration].chip.name, specs[s.calibration].framework) != (s.chip, s.framework)
    ]
    assert statistics.mean(errors(found, "calibrated")) < 0.6 * statistics.mean(errors(found, "ideal"))


@pytest.mark.slow
def test_seen_and_held_out():
    """Only rows that the calibration used was fitted to, by content; each of them held out with ``refit``."""
    rows = records(DATA / "inference_neuron.csv")
    changed = [{**row, "tpot_ms": "123.456", "ttft_ms": ""} for row in rows[:40]]
    tables = {"mine": [{**row, "id": f"new-{row['id']}"} for row in rows], "changed": changed}
    steps = []
    found = score(everything(), tables, refit=True, progress=lambda done, of: steps.append((done, of)))
    fitted = {n.name: (n.spec.rows or "").split() for n in everything().of(Calibration)}
    by_id = {f"new-{row['id']}": row for row in rows}
    mine = [s for s in found["mine"] if isinstance(s, Scored)]
    assert any(s.seen for s in mine)
    assert [s.seen for s in mine] == [bool({*row_hashes(by_id[s.id])} & {*fitted[s.calibration]}) for s in mine]
    assert {False} == {s.seen for s in found["changed"] if isinstance(s, Scored)}
    # Of a fit to fewer rows than it has parameters none is held out.
    assert all(s.seen for s in mine if s.held_out is not None)
    assert sum(s.held_out is not None for s in mine) > 0.8 * sum(s.seen for s in mine)
    assert all(s.unseen == (s.held_out if s.seen else s.calibrated) for s in mine)
    # Work is reported to the end, never backwards.
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]


def test_kinds_without_a_scorer_are_skipped():
    rows = [{"kind": "weather", "id": "a"}, {"kind": "", "id": ""}]
    found = score(everything(), {"odd": rows})["odd"]
    assert [("a", "no evaluator for the kind weather"), ("line 3", "no evaluator for rows without a kind")] == [
        (s.id, s.reason) for s in found
    ]
    assert set(REFITS) < set(SCORERS)
