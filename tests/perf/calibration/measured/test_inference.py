"""Published measurements of serving as cases: which rows become one, what is taken for granted, and why others do not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.inference import ROUNDS, InferenceCase, inference_cases
from trnspec.perf.calibration.measured.tables import records

DATA = folder() / "measured"


@pytest.fixture(scope="module")
def found():
    return list(inference_cases(everything(), records(DATA / "inference_neuron.csv")))


def test_shipped_rows_are_cases_or_skipped_with_reason(found):
    cases = [c for c in found if isinstance(c, InferenceCase)]
    lacking = "the catalog has no model like {!r}, and the row lacks its dimensions"
    assert {
        lacking.format("albert-base-v2"): 4,
        lacking.format("google/flan-t5-xl"): 2,
        lacking.format("t5-3b"): 1 + 1,
    } == Counter(s.reason for s in found if isinstance(s, Skipped))
    assert {"transformers-neuronx": 46, "optimum-neuron": 15, "": 12} == Counter(c.framework for c in cases)
    assert {"trainium1": 31, "inferentia2": 42} == Counter(c.system.chip for c in cases)
    assert 12 == sum(c.encoded > 0.0 for c in cases)
    assert 10 == sum(c.interrupted for c in cases)
    assert 61 == sum(c.ttft > 0.0 for c in cases)
    assert 7 == sum(c.queued > 0.0 for c in cases)
    assert 4 == sum(c.host for c in cases)


def test_a_server_makes_tokens_for_the_batch_it_was_compiled_for(found):
    cases = {c.id: c for c in found if isinstance(c, InferenceCase)}
    alone = cases["optimum-trn1-8b-dp4-2025-09-22-07-53-25-synchronous"]
    many = cases["optimum-trn1-8b-dp4-2025-09-22-07-53-25-throughput"]
    assert (32.0, 32.0, 4.0) == (many.plan.compiled_batch, many.plan.batch, many.plan.dp)
    assert (1.0, 0.47766, False) == (alone.plan.prompts, pytest.approx(alone.ttft), alone.interrupted)
    # Its time to first token has a queue: each of 32 users sends several requests, the first ones at once.
    assert (2.24474, True) == (pytest.approx(many.ttft), many.interrupted)
    assert 31.0 / 2.0 / ROUNDS == many.queued
    assert (1.0, 32.0, 0.0) == (alone.plan.batch, alone.plan.compiled_batch, alone.queued)
    host = {i for i, c in cases.items() if c.host}
    assert {f"optimum-inf2-8b-{a}-cpu-{b}" for a in ("std", "chunked") for b in ("synchronous", "throughput")} == host
