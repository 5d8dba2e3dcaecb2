"""Measurements beside what is computed for them: of serving, of collectives and of matrix multiplications."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest
from engine_catalogs import everything, shipped
from evaluator_samples import keywords

from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluators.inference import run as inference_
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration import score_kernels as module
from trnspec.perf.calibration.measurements import Skipped, records
from trnspec.perf.calibration.score import Scored
from trnspec.perf.calibration.score_inference import refit_inference, score_inference
from trnspec.perf.calibration.score_collectives import score_collectives
from trnspec.perf.calibration.score_kernels import score_matmul

run = keywords(inference_)

DATA = folder() / "measured"
NVLS = "stas-h200-8-17179869184"


def scored(name: str, score, **options) -> list[Scored]:
    found = score(everything(), records(DATA / f"{name}.csv"), name, **options)
    return [s for s in found if isinstance(s, Scored)]


@pytest.fixture(scope="module")
def served() -> list[Scored]:
    return scored("inference_neuron", score_inference)


def errors(some: list[Scored], of: str) -> list[float]:
    return [abs(value / s.measured - 1.0) for s in some if (value := getattr(s, of)) is not None]


def test_every_row_is_scored_or_skipped():
    for name, score, what in (
        ("inference_neuron", score_inference, {"tpot": 61, "ttft": 51, "skipped": 20}),
        ("collectives_nccl", score_collectives, {"collective": 82, "skipped": 7}),
        ("collectives_nccom", score_collectives, {"skipped": 53}),
        ("matmul", score_matmul, {"gemm": 13, "skipped": 15}),
    ):
        found = score(everything(), records(DATA / f"{name}.csv"), name)
        assert what == Counter("skipped" if isinstance(s, Skipped) else s.part for s in found)
        assert {name} >= {s.dataset for s in found if isinstance(s, Scored)}


def test_serving(served):
    token = [s for s in served if s.part == "tpot"]
    vendor = [s for s in token if not s.id.startswith("optimum")]
    assert 0.066 == pytest.approx(statistics.mean(errors(vendor, "calibrated")), rel=0.02)
    rows = [r for r in records(DATA / "inference_neuron.csv") if r["id"] in {s.id for s in vendor}]
    held_out = refit_inference(everything(), rows)
    off = [abs(held_out[s.id, "tpot"] / s.measured - 1.0) for s in vendor]
    assert 0.0745 == pytest.approx(statistics.mean(off), rel=0.02)
    assert 0.0392 == pytest.approx(statistics.median(off), rel=0.02)
    # Published figures alone are a bound, and every row lies beyond it.
    assert all(s.ideal < s.measured for s in served)
    assert statistics.mean(errors(vendor, "ideal")) > 0.6
    inside = [s.low <= s.measured <= s.high for s in vendor]
    assert 0.7 < statistics.mean(inside) < 0.95


def test_a_calibration_of_other_software_has_not_seen_a_row(served):
    others = [s for s in served if s.id.startswith("optimum")]
    assert 15 + 5 == len(others)
    assert not any(s.seen for s in others)
    assert all(s.unseen == s.calibrated for s in others)
    # Nothing in it knows how slowly experts are read.
    mixtures = [s for s in others if s.part == "tpot" and ("qwen3" in s.id or "llama4" in s.id)]
    assert 3 == len(mixtures)
    assert all(s.calibrated < 0.5 * s.measured for s in mixtures)


def test_what_is_scored_is_what_the_evaluator_answers(served):
    name = "inf2-latency_data_decoder-11-Llama-2-7b"
    asked = {
        "model": "llama-2-7b",
        "on": "trn1.32xlarge",
        "tp": 32,
        "prompt": 128,
        "output": 8064,
        "batching": "static",
    }
    one = next(s for s in served if s.id == "trn1-latency_data_decoder-6-Llama-2-7b" and s.part == "tpot")
    first = next(s for s in served if s.id == one.id and s.part == "ttft")
    found = run(shipped(), **asked)
    for score, answer in ((one, "time_per_output_token"), (first, "time_to_first_token")):
        told = found.answer(answer)
        assert (told.value, told.low, told.high) == pytest.approx((score.calibrated, score.low, score.high))
        bound = run(shipped(), **asked, calibration="none")
        assert bound[answer] == pytest.approx(score.ideal)
    # The same fit, on a chip with the same figures but fewer of them.
    assert one.calibrated < next(s for s in served if s.id == name and s.part == "tpot").calibrated


def test_without_a_calibration_only_bounds_are_told():
    found = scored("inference_neuron", score_inference, calibration="none")
    assert {(None,) * 4} == {(s.calibrated, s.held_out, s.low, s.high) for s in found}


def test_a_calibration_by_name():
    found = scored("inference_neuron", score_inference, calibration="inferentia2-neuron-decode")
    # What both chips were fitted to together says the same of both.
    own = {(s.id, s.part): s.calibrated for s in scored("inference_neuron", score_inference)}
    assert own == {(s.id, s.part): s.calibrated for s in found}
    with pytest.raises(UnknownNameError, match="no calibration is named 'neurn'"):
        score_inference(everything(), records(DATA / "inference_neuron.csv"), "x", calibration="neurn")
    with pytest.raises(UsageError, match="trainium1-neuron is for training, not for inference"):
        score_inference(everything(), records(DATA / "inference_neuron.csv"), "x", calibration="trainium1-neuron")


def test_collectives():
    found = scored("collectives_nccl", score_collectives)
    fitted = [s for s in found if s.calibrated is not None]
    assert 75 == len(fitted)
    assert statistics.mean(errors(fitted, "ideal")) > 0.6
    assert 0.164 == pytest.approx(statistics.mean(errors(fitted, "calibrated")), rel=0.02)
    assert 0.210 == pytest.approx(statistics.mean(errors(fitted, "held_out")), rel=0.02)
    assert 0.75 <= statistics.mean(s.low <= s.measured <= s.high for s in fitted) <= 0.95
    assert {"nccl-aws-273", "nccl-aws-278"} < {s.id for s in found if s.calibrated is None}
    # Switches that reduce are faster than links alone allow, 2 x 7/8 S at 450 GB/s.
    (fast,) = [s for s in found if s.id == NVLS]
    assert fast.ideal < fast.measured < 1.75 * 2**34 / 450e9
    assert fast.calibrated == pytest.approx(fast.measured, rel=0.1)


def test_matrix_multiplications():
    found = scored("matmul", score_matmul)
    fitted = [s for s in found if s.calibrated is not None]
    assert 10 == len(fitted)
    assert 0.040 == pytest.approx(statistics.mean(errors(fitted, "calibrated")), rel=0.02)
    assert 0.076 == pytest.approx(statistics.mean(errors(fitted, "held_out")), rel=0.02)
    # The roofline is a bound.
    assert all(s.ideal < s.measured for s in found)


def test_without_scipy_nothing_is_fitted(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "scipy" else pytest.fail(name))
    assert {None} == {s.calibrated for s in scored("matmul", score_matmul)}
    found = scored("inference_neuron", score_inference)
    assert None not in {s.calibrated for s in found}
