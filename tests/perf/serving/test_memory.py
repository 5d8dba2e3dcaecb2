"""The memory of a rank in serving, against configurations that ran and those that did not."""

import itertools

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import everything
from trnspec.loading.files import shipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.lowering.lower import lower
from trnspec.perf.serving.memory import capacity, held

DATA = shipped() / "measured"
RESERVE = 0.05
"""Share of the memory that the runtime needs, the evaluator's default."""


def read(table: str, **changed: str) -> list[InferenceCase]:
    rows = [row | changed for row in records(DATA / table, everything())]
    return [c for c in inference_cases(everything(), rows) if isinstance(c, InferenceCase)]


def fits(case: InferenceCase) -> bool:
    plan = case.plan
    at_once = max(plan.prompts * plan.compiled_tokens, plan.compiled_batch or plan.batch)
    needed = held(case.dims, plan, plan.compiled_context or plan.prompt + plan.output, at_once)
    reached = capacity(case.system, float(plan.tp * plan.dp))
    return float(needed.total) <= (1.0 - RESERVE) * reached


@pytest.mark.parametrize(
    ("on", "lnc", "ranks", "gib"),
    [
        ("trn2.48xlarge", 1, 1.0, 24.0), ("trn2.48xlarge", 1, 2.0, 12.0), ("trn2.48xlarge", 1, 128.0, 12.0),
        ("trn2.48xlarge", 2, 1.0, 24.0), ("trn2.48xlarge", 2, 64.0, 24.0), ("trn1.32xlarge", None, 1.0, 16.0),
        ("trn3-gen2-server", 1, 1.0, 36.0), ("trn3-gen2-server", 1, 32.0, 18.0), ("dgx-h100", None, 1.0, 80.0),
    ],
)  # fmt: skip
def test_a_rank_alone_on_its_stack_reaches_all_of_it(on, lnc, ranks, gib):
    assert gib * 2**30 == capacity(lower(everything(), on, lnc=lnc), ranks)


@pytest.mark.parametrize("table", ["inference_neuron.csv", "inference_neuron_2026.csv"])
def test_configurations_that_ran_fit(table):
    assert [] == [c.id for c in read(table) if not fits(c)]


def test_configurations_that_ran_out_of_memory_do_not_fit():
    rows = {row["id"]: row["status"] for row in records(DATA / "inference_neuron_failed.csv")}
    cases = read("inference_neuron_failed.csv", status="ok", tpot_ms="1")
    assert len(cases) == len(rows)
    fitting = {c.id for c in cases if fits(c)}
    short = {name for name, status in rows.items() if "OOM" in status}
    # The server with two sequences of 32k on two ranks needs 6 GiB, and that of a smaller model ran.
    assert {"neuronstuff-Qwen3-1.7B-32k-tp2-lnc2-b2"} == short & fitting
    # Those that the compiler gave up on would fit.
    assert set() == rows.keys() - short - fitting


@pytest.mark.parametrize("table", ["inference_neuron_2026.csv"])
def test_memory_on_axes_that_the_layout_lacks_is_that_of_each_deployment(table):
    case = read(table)[0]
    weights, batches, stages = (1.0, 2.0), (1.0, 8.0, 64.0), (1.0, 2.0)
    axes = np.ix_(weights, batches, stages)
    many = evolve(case.plan, **dict(zip(("weight_bytes", "batch", "pp"), axes, strict=True)))
    found = np.broadcast_to(held(case.dims, many, 4096.0, 512.0).total, (2, 3, 2))

    for index, (w, b, p) in zip(np.ndindex(2, 3, 2), itertools.product(weights, batches, stages), strict=True):
        one = evolve(case.plan, weight_bytes=w, batch=b, pp=p)
        assert held(case.dims, one, 4096.0, 512.0).total == found[index]
