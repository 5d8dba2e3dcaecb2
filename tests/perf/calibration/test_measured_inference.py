"""Published measurements of serving as cases: which rows become one, what is taken for granted, and why others do not."""

from __future__ import annotations

from collections import Counter

import pytest
from engine_catalogs import everything

from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration import measurements
from trnspec.perf.calibration.measured_inference import OPTIMUM, InferenceCase, inference_cases
from trnspec.perf.calibration.measurements import Skipped, records

DATA = folder() / "measured"
ROW = {
    "kind": "infer", "id": "r", "model": "Llama-2-7b", "hardware": "trn1.32xlarge", "n_chips": "16", "tp": "32",
    "precision": "FP16/Matmult-BF16/w:bf16", "isl": "128", "osl": "1024", "batch_conc": "4", "tpot_ms": "7.5",
    "ttft_ms": "20", "source": "s", "note": "Transformers NeuronX; Tensor Parallel",
}  # fmt: skip


def case(**changed: str) -> InferenceCase | Skipped:
    (found,) = inference_cases(everything(), [ROW | changed])
    return found


@pytest.fixture(scope="module")
def found():
    return list(inference_cases(everything(), records(DATA / "inference_neuron.csv")))


def test_every_row_of_the_shipped_table_is_a_case_or_says_why_not(found):
    cases = [c for c in found if isinstance(c, InferenceCase)]
    lacking = "the catalog has no model like {!r}, and the row lacks its dimensions"
    assert {
        "the row states no time per output token; an encoder has none": 16,
        lacking.format("google/flan-t5-xl"): 2,
        lacking.format("t5-3b"): 1 + 1,
    } == Counter(s.reason for s in found if isinstance(s, Skipped))
    assert {"Transformers NeuronX": 46, OPTIMUM: 15} == Counter(c.software for c in cases)
    assert {"trainium1": 27, "inferentia2": 34} == Counter(c.system.chip for c in cases)
    assert 10 == sum(c.interrupted for c in cases)
    assert 51 == sum(c.ttft > 0.0 for c in cases)
    assert 4 == sum(c.host for c in cases)


def test_a_row_of_the_vendors_library():
    one = case()
    assert isinstance(one, InferenceCase)
    assert ("llama-2-7b", "bf16", 7.5e-3, 20e-3) == (one.model, one.dtype, one.tpot, one.ttft)
    # The prompts of a batch are computed together.
    assert (32.0, 4.0, 4.0, 128.0, 1024.0) == (
        one.plan.tp, one.plan.batch, one.plan.prompts, one.plan.prompt, one.plan.output,
    )  # fmt: skip
    assert (32.0, 16.0) == (one.system.ranks, one.system.chips)
    assert (False, False, ()) == (one.interrupted, one.host, one.assumptions)


@pytest.mark.parametrize(
    ("precision", "size"), [("FP16/Matmult-BF16/w:int8", 1.0), ("FP16/Matmult-BF16/w:bf16", 2.0), ("bf16", 2.0)]
)
def test_weights_are_stored_in_what_the_row_says(precision, size):
    one = case(precision=precision)
    assert isinstance(one, InferenceCase)
    assert (size, "bf16") == (one.plan.weight_bytes, one.dtype)


def test_a_server_makes_tokens_for_the_batch_it_was_compiled_for(found):
    cases = {c.id: c for c in found if isinstance(c, InferenceCase)}
    alone = cases["optimum-trn1-8b-dp4-2025-09-22-07-53-25-synchronous"]
    many = cases["optimum-trn1-8b-dp4-2025-09-22-07-53-25-throughput"]
    assert (32.0, 32.0, 4.0) == (alone.plan.batch, many.plan.batch, many.plan.dp)
    assert (1.0, 0.47766, False) == (alone.plan.prompts, pytest.approx(alone.ttft), alone.interrupted)
    # Its time to the first token holds a queue.
    assert (0.0, True) == (many.ttft, many.interrupted)
    assert "batch: 32, the largest batch in rows of its server" in alone.assumptions
    host = {i for i, c in cases.items() if c.host}
    assert {f"optimum-inf2-8b-{a}-cpu-{b}" for a in ("std", "chunked") for b in ("synchronous", "throughput")} == host


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "bert-large"}, "bert-large is an encoder and generates no tokens"),
        ({"model": ""}, "the row states no model"),
        ({"hardware": ""}, "the row states no hardware"),
        ({"hardware": "a TPU"}, "unknown hardware 'a TPU'"),
        ({"hardware": "trn9.xlarge"}, "unknown hardware 'trn9.xlarge'"),
        ({"tp": ""}, "the row states no tp"),
        ({"isl": ""}, "the row states no isl"),
        ({"osl": "x"}, "osl is 'x'; expected a number"),
        ({"batch_conc": ""}, "the row states no batch_conc"),
        ({"batch_conc": "1.5"}, "batch_conc is 1.5; expected an integer"),
        ({"dp": "2"}, "tp 32 x dp 2 exceeds the 32 ranks of trn1.32xlarge*1"),
        ({"precision": "BF16/w:int3"}, "'BF16/w:int3' does not state the dtype of stored weights"),
        ({"tpot_ms": "-3"}, "tpot_ms is -3; expected 0, or a number between 1e-12 and 1e15"),
        ({"tpot_ms": "nan"}, "the row states no time per output token; an encoder has none"),
    ],
)
def test_a_row_that_cannot_be_computed_says_why(changed, reason):
    assert Skipped("r", reason) == case(**changed)


def test_a_link_without_a_published_rate(monkeypatch):
    monkeypatch.setattr(measurements, "HARDWARE", (("b200", ("hgx-b200",), ""),))
    asked = {"hardware": "B200", "n_chips": "16", "tp": "16", "precision": "bf16"}
    reason = "the layout needs a link of hgx-b200*2 whose rate is not published"
    assert Skipped("r", reason) == case(**asked)
    assert isinstance(case(**asked | {"tp": "8"}), InferenceCase)


def test_rows_of_other_kinds_are_none():
    assert [] == list(inference_cases(everything(), [ROW | {"kind": "train"}]))


def test_a_row_without_a_name_is_called_by_its_line():
    assert [Skipped("line 2", "the row states no tp")] == list(
        inference_cases(everything(), [ROW | {"id": "", "tp": ""}])
    )
