"""No measurement of the catalog beats the ideal time of its software: compiled graphs that do what they are compiled for."""

from __future__ import annotations

from attrs import evolve

from tests.support.engine import everything
from trnspec.loading.files import shipped
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured.tables import records
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL as RATES
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.forward_pass import IDEAL
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.static_graphs import all_experts_from, compiled, narrow_shards, powers_of_two
from trnspec.perf.work.transformer import transformer


def bounds(case):
    """The ideal times per token and to the first token, with compiled graphs."""
    d, model, plan = case.dims, transformer(case.dims), case.plan
    contexts = powers_of_two(128, int(plan.prompt + plan.output))
    plan = compiled(model, plan, contexts, powers_of_two(1, int(plan.batch)))
    plan = narrow_shards(d, model, plan, 128.0)
    plan = evolve(plan, all_experts_from=all_experts_from("selective-loading", d))
    numbers = machine(case.system, RATES, case.dtype)
    return decode_time(model, plan, numbers, IDEAL), prefill(model, plan, numbers, IDEAL).total


def test_no_measurement_beats_its_bound():
    rows = records(shipped() / "measured" / "inference_neuron.csv")
    # Rows with speculation need fewer passes than tokens.
    cases = [
        c
        for c in inference_cases(everything(), rows)
        if isinstance(c, InferenceCase) and "spec" not in f"{c.id} {c.source_text}".lower()
    ]
    faster = [
        (case.id, found / measured)
        for case in cases
        for found, measured in zip(bounds(case), (case.tpot, case.ttft), strict=True)
        if measured and found > measured
    ]

    assert len(cases) > 40
    assert [] == faster
