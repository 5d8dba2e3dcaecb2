"""Published measurements of serving as cases: which rows become one, what is taken for granted, and why others do not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
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
