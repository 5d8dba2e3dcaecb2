"""The tensor-parallel all-reduce of a step by the calibration of the step, and by that of collectives."""

from __future__ import annotations

import re

import pytest

import trnspec
from tests.support.evaluations import keywords
from trnspec.evaluators.collective import run as collective_
from trnspec.evaluators.inference import run as inference_
from trnspec.evaluators.training import run as training_
from trnspec.perf.lowering.calibrated import calibrated

CAT = trnspec.load()
collective, inference, training = (keywords(f) for f in (collective_, inference_, training_))
SERVED = {"model": "llama-3.1-70b", "on": "trn2.48xlarge", "tp": 32, "batch": 16}
TRAINED = {"model": "llama-3.1-8b", "on": "trn1.32xlarge*4", "tp": 8, "seq": 4096, "global_batch": 64, "zero": 1}


def both(found) -> tuple[float, float, str]:
    """The time by the calibration of the step and by that of collectives [us], and the name of the latter."""
    row = next(a for a in found.assumptions if a.name == "tensor_all_reduce")
    match = re.search(r"; ([\d.e+]+) us by ([\w.-]+) \((\w+)\)", row.why)
    return float(row.value.removesuffix(" us")), float(match[1]), match[2]


def test_a_decode_step():
    counted, measured, name = both(inference(CAT, **SERVED))
    # 16 tokens of 8,192 elements of 2 bytes.
    alone = collective(CAT, kind="all-reduce", size="256 KiB", on="trn2.48xlarge", ranks=32)

    assert "trainium2-nccom-2026-collectives" == name
    assert measured == pytest.approx(1e6 * alone["time"], rel=5e-3)
    fixed = calibrated(CAT.graph, "trainium2", "inference", experts=False).efficiency.call
    assert counted >= 1e6 * fixed * (1 - 5e-3) > 0.0


@pytest.mark.parametrize(("evaluate", "given", "size"), [(training, TRAINED, "32 MiB"), (inference, SERVED, "256 KiB")])
def test_the_same_two_times_in_both_directions(evaluate, given, size):
    counted, measured, name = both(evaluate(CAT, **given))
    alone = collective(CAT, kind="all-reduce", size=size, on=given["on"], ranks=given["tp"])
    row = next(
        a for a in alone.assumptions if a.name == f"time_in_{'training' if evaluate is training else 'inference'}"
    )

    assert float(row.value.removesuffix(" us")) == counted
    assert row.why.endswith(f"here {measured:.3g} us by {name}")
