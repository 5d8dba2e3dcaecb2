"""Cost of offloading to the host: exposed time of the bytes moved over the stated link."""

from __future__ import annotations

import math

import pytest

from tests.support.engine import shipped
from tests.support.evaluations import keywords
from trnspec.errors import UsageError
from trnspec.evaluators.training import host_rate
from trnspec.evaluators.training import run as training_

run = keywords(training_)

LLAMA = {
    "model": "llama-3.1-8b", "on": "trn1.32xlarge*32", "tp": 32, "dp": 32, "seq": 8192, "global_batch": 1024,
    "calibration": "none", "must_fit": False,
}  # fmt: skip
SLOW = "1 MB/s"
"""So slow that next to nothing hides."""


def parts(found):
    return {(p.of, p.name): p.value for p in found.parts}


@pytest.mark.parametrize("what", ["optimizer", "activations", "weights"])
def test_offload_time_is_size_over_rate(what):
    """Optimizer: gradients out and weights in, once. Activations out and in, weights in twice and gradients out, each time."""
    plain, moved = run(shipped(), **LLAMA), run(shipped(), **LLAMA, offload=what, host_link=SLOW)
    here, there = parts(plain), parts(moved)
    held = {n: here["memory", n] for n in ("weights", "gradients", "optimizer", "activations")}
    bytes_ = {
        "optimizer": held["optimizer"] / 12 * (2 + 2),
        "activations": 32 * 2 * held["activations"],
        "weights": 32 * (2 * held["weights"] + held["gradients"]),
    }[what]
    expected = bytes_ / 1e6 - there["step_time", "compute"]

    assert math.isclose(expected, there["step_time", "offload"], rel_tol=1e-12)
    assert math.isclose(plain["step_time"] + expected, moved["step_time"], rel_tol=1e-12)
    assert moved["memory"] < plain["memory"]


def test_fast_offload_is_hidden():
    moved = run(shipped(), **LLAMA, offload="optimizer", host_link="1 TB/s")

    assert ("step_time", "offload") not in parts(moved)
    assert run(shipped(), **LLAMA)["step_time"] == moved["step_time"]


@pytest.mark.parametrize("text", ["16", "16 GB", "fast", ""])
def test_a_rate_has_a_unit(text):
    with pytest.raises(UsageError, match="host_link: "):
        host_rate(text)
