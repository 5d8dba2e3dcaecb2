"""The timeline of a training step as Chrome trace events."""

import json
import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

import trnspec
from tests.support.engine import refusal

CATALOG = trnspec.load()
TRAINING: dict[str, Any] = {
    "model": "llama-3.1-70b", "on": "trn2.48xlarge*16", "seq": 8192, "global_batch": 256, "tp": 16, "pp": 4, "zero": 1,
    "must_fit": False,
}  # fmt: skip
CASES: list[dict[str, Any]] = [
    {},
    {"pp": 1, "zero": 3},
    {"global_batch": 16, "framework": "megatron"},
    {"pp": 8, "cp": 2, "sequence_parallel": False, "calibration": "trainium1-neuron"},
    {"interleave": 4, "recompute": "selective", "overlap": True},
    {"offload": "optimizer", "host_link": "16 GB/s"},
    {"schedule": "zb2p", "recompute": "full"},
    {"model": "llama-3.1-405b", "tp": 8, "pp": 16, "uneven": True, "schedule": "zb1p", "calibration": "none"},
    {"model": "mixtral-8x7b", "tp": 8, "pp": 4, "ep": 8, "schedule": "zbv", "expert_overlap": True},
    # Stages of different length; the slowest has the output, or is another one.
    {"model": "llama-3.1-405b", "pp": 8, "tp": 8, "uneven": True, "schedule": "v-half", "global_batch": 64},
    {"model": "deepseek-v3", "tp": 8, "pp": 8, "ep": 8, "uneven": True, "seq": 4096, "schedule": "v-min"},
]
"""Of the other layouts tests/perf/training/test_timeline.py executes the schedules."""


@pytest.mark.parametrize("case", CASES)
def test_trace(case) -> None:
    """Events of a thread do not overlap; those of a stage sum to the step time; forward passes go down the pipeline."""
    inputs = {**TRAINING, **case}
    evaluation = trnspec.evaluate("training", CATALOG, **inputs)
    data = json.loads(json.dumps(trnspec.trace("training", CATALOG, **inputs), allow_nan=False))
    total = evaluation.number("step_time") * 1e6
    stages = inputs["pp"]
    spans: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in data["traceEvents"]:
        if event["ph"] == "X":
            spans[event["pid"]].append(event)

    assert set(range(stages)) == set(spans)
    for events in spans.values():
        assert total == pytest.approx(math.fsum(e["dur"] for e in events), rel=1e-9)
        assert all(e["dur"] > 0.0 for e in events)
        for thread in (1, 2):
            for one, two in pairwise(sorted((e for e in events if e["tid"] == thread), key=lambda e: e["ts"])):
                assert one["ts"] + one["dur"] <= two["ts"] + 1e-9 * total
    for name, pass_, later in (("forward", "F", 1), ("backward", "B", -1)):
        first = {
            (e["pid"], e["args"]["microbatch"], e["args"]["chunk"]): e["ts"]
            for e in data["traceEvents"]
            if e["name"] == name and e["args"]["pass"] == pass_
        }
        for (stage, microbatch, chunk), start in first.items():
            # The second chunks of a V-shaped schedule are passed in the other direction.
            towards = stage - later if chunk and inputs.get("schedule", "").startswith(("zbv", "v-")) else stage + later
            if 0 <= towards < stages:
                assert start < first[towards, microbatch, chunk]


@pytest.mark.parametrize(
    "case", [{}, {"interleave": 4}, {"recompute": "full"}, {"schedule": "zbv"}, {"schedule": "v-min"}]
)
def test_memory_over_time(case) -> None:
    """The peak of the first stage is the memory of the evaluation; at the end no activations remain."""
    inputs = {**TRAINING, **case}
    counters = [
        e for e in trnspec.trace("training", CATALOG, **inputs)["traceEvents"] if e["ph"] == "C" and e["pid"] == 0
    ]
    peak = max(math.fsum(e["args"].values()) for e in counters)

    assert trnspec.evaluate("training", CATALOG, **inputs).number("memory") == pytest.approx(peak, rel=1e-9)
    assert 0 == counters[-1]["args"]["activations"]
    assert counters == sorted(counters, key=lambda e: e["ts"])


def test_a_layout_without_an_answer_has_no_timeline() -> None:
    assert "rank-count" == refusal(trnspec.trace, "training", CATALOG, **{**TRAINING, "pp": 3}).reason
