"""``eval inference``: what is answered of systems of the catalog, and what is refused."""

from typing import Any

import pytest
from attrs import asdict
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.engine import everything, reason_and_place, refusal, shipped
from tests.support.evaluations import assumed, keywords, parts
from tests.support.tables import tables
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.runner import run as checked
from trnspec.evaluators import deployment
from trnspec.evaluators.inference import run as inference_
from trnspec.perf.calibration.measured.serving import ServingCase, ServingRuns, serving_cases
from trnspec.perf.frameworks import SERVING
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.machine import Efficiency
from trnspec.plugins.api import Evaluator

run = keywords(inference_)

EVALUATOR = Evaluator("inference", "What serving takes.", "trnspec.evaluators.inference:run")

OF_TRN1 = "trainium1-optimum-neuron-2025-dense-inference"
OF_TRN2 = "trainium2-nxd-inference-2026-dense-inference"
"""The newest calibrations of dense models."""
CATALOG, WHOLE = shipped(), Catalog(everything())


def asked(catalog, **given):
    """What the evaluator finds, after the checks that every evaluator goes through."""
    defaults = {"model": "llama-3.1-70b", "on": "trn2.48xlarge", "calibration": "none"}
    return checked(EVALUATOR, "the tests", catalog, {**defaults, **given})


def test_answers():
    found = asked(CATALOG)

    assert [a.name for a in found.answers] == [
        *("time_to_first_token", "time_per_output_token", "latency", "throughput", "throughput_per_chip"),
        *("step_at_first", "step_at_last", "memory", "capacity", "kv_per_token", "max_batch"),
    ]
    assert (64, 1, 1, 1) == tuple(found.inputs[name] for name in ("tp", "dp", "pp", "ep"))
    assert 2.0 * 80 * 2 * 8 * 128 == found["kv_per_token"]
    assert pytest.approx(found["time_to_first_token"] + 1023 * found["time_per_output_token"]) == found["latency"]
    assert pytest.approx(1024 / found["latency"]) == found["throughput"]
    assert pytest.approx(found["throughput"] / 16) == found["throughput_per_chip"]
    assert found["step_at_first"] < found["time_per_output_token"] < found["step_at_last"]


@pytest.mark.parametrize(
    ("model", "weight_dtype", "size"),
    [
        # Grattafiori et al. 2024, table 3: embedding and output of 128,256 x 4,096 in 16 bit, all else in 8.
        ("llama-3.1-8b", "fp8", 8_030_261_248 + 2 * 128256 * 4096),
        # Checkpoint sizes of OpenAI 2025, gpt-oss model card (arXiv 2508.10925), table 1: experts in MXFP4, all else in 16 bit.
        ("gpt-oss-120b", "mxfp4", 60.8 * 2**30),
        ("gpt-oss-20b", "mxfp4", 12.8 * 2**30),
    ],
)
def test_weights_of_checkpoints_for_gpus(model, weight_dtype, size):
    """What is read in 16 bit is stored in 16 bit."""
    found = asked(WHOLE, model=model, weight_dtype=weight_dtype, on="p5.48xlarge", tp=1, dp=1, framework="vllm")

    assert size == pytest.approx(parts(found, "memory")["weights"], rel=2e-3)


def test_a_token_is_bound_by_reading_weights():
    found = asked(CATALOG)

    # Attention's matrices and the network of 80 layers, 2 B each, on 64 ranks of 725 GB/s; each of 8 heads of keys and
    # values is on 8 ranks.
    matrices = 80 * (2 * 8192 * 8192 + 2 * 8192 * 8 * 1024 + 3 * 8192 * 28672) * 2 / 64 / 725e9
    assert matrices == pytest.approx(parts(found, "time_per_output_token")["matrices"], rel=1e-12)
    assert {"matrices", "attention", "head", "tensor"} == set(parts(found, "time_per_output_token"))
    assert "HBM-bound: reading weights (84% of TPOT)" == found.bottleneck


def test_the_interval_is_that_of_the_printed_digits():
    """2.9 TB/s a chip is anything from 2.85 to 2.95, ~1.5 us a hop from 1.4 to 1.6.  Without a calibration it is a bound."""
    found = asked(CATALOG, calibration="none")
    time, rate = found.answer("time_per_output_token"), found.answer("throughput")

    assert 1.4 / 1.5 < time.low / time.value < 2.9 / 2.95
    assert 2.95 / 2.9 < rate.high / rate.value < 1.5 / 1.4
    assert (None, None) == (time.high, rate.low)
    times = {a.name: a for a in found.answers if a.low is not None}
    assert {"time_to_first_token", "time_per_output_token", "latency", "step_at_first", "step_at_last"} == times.keys()
    assert all(a.low <= a.value for a in times.values())
    for answer in asked(CATALOG, calibration=OF_TRN2).answers:
        if answer.low is not None and answer.high is not None:
            assert answer.low <= answer.value <= answer.high
    assert {"memory.bandwidth", "memory.capacity", "fabric.bandwidth.both", "peak.dense.bf16"} <= {
        b.at for b in found.figures_used
    }


def test_the_table_ends_where_memory_does():
    found = asked(CATALOG, model="llama-3.1-8b", on="trn1.32xlarge", tp=8)
    table = found.tables[0]
    batches = [row[0] for row in table.rows]
    most = found["max_batch"]

    assert [1, 2, 4, 8, 16, 32, 64, 128, 256] == batches[:9]
    assert most == batches[-1]
    assert all(row[-1] <= found["capacity"] for row in table.rows)
    row = dict(zip(table.columns, table.rows[batches.index(64)], strict=True))
    one = asked(CATALOG, model="llama-3.1-8b", on="trn1.32xlarge", tp=8, batch=64)
    assert {name: one[name] for name in table.columns[1:]} == {name: row[name] for name in table.columns[1:]}
    assert most == asked(CATALOG, model="llama-3.1-8b", on="trn1.32xlarge", tp=8, batch=most).inputs["batch"]
    with pytest.raises(RefusalError, match=r"needs 16\.0. GiB and has 16\.00 .*cache") as refused:
        asked(CATALOG, model="llama-3.1-8b", on="trn1.32xlarge", tp=8, batch=most + 1)
    assert ("does-not-fit", "batch", f"batch {most} fits") == (
        refused.value.reason, refused.value.place, refused.value.hint,
    )  # fmt: skip


def test_framework_defaults_fill_unset_inputs():
    given = {"model": "qwen3-30b-a3b", "tp": 32, "batch": 5, "prompt": 1000, "output": 100}
    found = asked(CATALOG, framework="nxd-inference", **given)
    explicit = asked(
        CATALOG, batching="continuous", prefill_batch=1, prefill_attention="flash", experts="selective-loading", tile=128,
        context_buckets=(128, 256, 512, 1024, 2048), batch_buckets=(1, 2, 4, 8), **given,
    )  # fmt: skip

    assert explicit.answers[:-1] == found.answers[:-1]
    assert {n: v for n, v in explicit.inputs.items() if n != "framework"} == {
        n: v for n, v in found.inputs.items() if n != "framework"
    }
    settings = SERVING["nxd-inference"].settings
    assert {n: f"nxd-inference: {s.origin}" for n, s in settings.items()} == {
        a.name: a.why for a in found.assumptions if a.name in settings
    }
    assert set() == set(settings) & assumed(explicit).keys()
    assert "8 sequences" == assumed(found)["compiled_batch"]


def test_prompts_elsewhere():
    here = asked(CATALOG, batch=8)
    found = asked(CATALOG, batch=8, prefill_on="trn2.48xlarge")

    assert "prefill_interference" not in parts(found, "time_per_output_token")
    # 1,024 tokens of 327,680 B over the 3,200 Gbps of a server, and the latency of its network.
    assert 1024 * 327_680 / 400e9 + 15e-6 == pytest.approx(found["transfer_time"])
    half = asked(CATALOG, batch=8, prefill_on="trn2.48xlarge", lnc=1, tp=64)  # of 128 ranks
    assert 1024 * 327_680 / 200e9 + 15e-6 == pytest.approx(half["transfer_time"])
    assert here["time_to_first_token"] + found["transfer_time"] == pytest.approx(found["time_to_first_token"])
    assert found["throughput"] / 32 == pytest.approx(found["throughput_per_chip"])
    assert 0.0 < found["prefill_decode_ratio"] < 1.0
    # The pool that is slower sets the rate.
    slow = asked(
        CATALOG, batch=256, prompt=8192, output=2, kv_dtype="fp8", prefill_on="trn1.32xlarge", model="llama-3.1-8b"
    )
    assert slow["prefill_decode_ratio"] > 1.0


def test_disaggregated_prefill_has_its_own_efficiency():
    given = {"model": "llama-3.1-8b", "on": "trn1.32xlarge", "calibration": "auto"}
    found = asked(CATALOG, prefill_on="trn2.48xlarge", **given)
    alone = asked(CATALOG, **given | {"on": "trn2.48xlarge", "tp": 32})
    assumptions = assumed(found)
    assert (OF_TRN1, OF_TRN2) == (assumptions["calibration"], assumptions["prefill_calibration"])
    prompt = parts(alone, "time_to_first_token")
    sent = parts(found, "time_to_first_token")
    assert prompt == pytest.approx({name: sent[name] for name in prompt}, rel=1e-12)
    first, transfer = found.answer("time_to_first_token"), found.answer("transfer_time")
    assert first.low < first.value < first.high
    assert (None, "KV cache of one prompt") == (transfer.high, transfer.note)


def test_achieved_shares_of_a_calibration(monkeypatch):
    given = {"model": "llama-2-7b", "on": "trn1.32xlarge", "prompt": 128, "output": 8064}
    fitted = Calibrated("c", Efficiency(call=86e-6, memory=0.5), low=0.9, high=1.2, coverage=0.8, description="30 rows")
    of_each = iter((Calibrated(), Calibrated(efficiency=Efficiency(call=86e-6)), fitted))
    monkeypatch.setattr(deployment, "calibration_of", lambda *_: next(of_each))
    ideal, called, known = (run(CATALOG, **given) for _ in range(3))

    assert 65 * 86e-6 == pytest.approx(called["time_per_output_token"] - ideal["time_per_output_token"])
    before, after = (parts(e, "time_per_output_token") for e in (called, known))
    assert (before["tensor"], 2 * before["matrices"]) == pytest.approx((after["tensor"], after["matrices"]))
    time = known.answer("time_per_output_token")
    assert time.low < 0.9001 * time.value
    assert time.high > 1.1999 * time.value
    assert "c" == known.inputs["calibration"]
    assert "30 rows" in {a.why for a in known.assumptions}


def test_the_scale_counts_the_ranks_of_all_stages(monkeypatch):
    """A server has 32 ranks."""
    found, at = [], Calibrated.at
    monkeypatch.setattr(
        Calibrated, "at", lambda *of, scale, **more: found.append(scale) or at(*of, scale=scale, **more)
    )
    for tp, pp in ((8, 1), (8, 4), (8, 8), (32, 2)):
        asked(CATALOG, model="llama-3.1-8b", on="trn1.32xlarge*4", tp=tp, pp=pp)
    assert ["server", "server", "cluster", "cluster"] == found


@pytest.mark.parametrize(("given", "reason", "place"), tables(__file__)["refusals"])
def test_refusals(given, reason, place):
    assert (reason, place) == reason_and_place(asked, CATALOG, **given)


@pytest.mark.parametrize(("framework", "on", "hint"), tables(__file__)["hints_of_frameworks"])
def test_frameworks_of_other_devices(framework, on, hint):
    refused = refusal(asked, WHOLE, framework=framework, on=on)

    assert ("framework", hint) == (refused.place, refused.hint)


@pytest.mark.parametrize(("given", "name", "value", "why"), tables(__file__)["assumptions"])
def test_assumptions(given, name, value, why):
    found = asked(CATALOG, **{"model": "qwen3-30b-a3b", "tp": 32, **given})

    assert [(value, why)] == [(a.value, a.why) for a in found.assumptions if a.name == name]


def test_all_experts_of_a_batch():
    """Of 128 experts two tokens select 16: distinct ones, as many as they select, or all are read."""
    given = {"model": "qwen3-30b-a3b", "tp": 32, "batch": 2}
    found = [
        parts(asked(CATALOG, experts=e, **given), "time_per_output_token")["matrices"]
        for e in ("selected", "selective-loading", "all")
    ]

    expert = 48 * 128 * 3 * 2048 * 768 * 2 / 32 / 725e9
    assert expert * (16 / 128 - (1 - (15 / 16) ** 2)) == pytest.approx(found[1] - found[0], rel=1e-9)
    assert expert * (1 - 16 / 128) == pytest.approx(found[2] - found[1], rel=1e-9)


IN_FLIGHT = {
    "vllm": {"model": "Qwen/Qwen3-32B", "precision": "bf16"},
    "sglang": {"model": "Qwen/Qwen3-32B", "precision": "fp8", "kv_precision": "fp8"},
    "trtllm": {"model": "Qwen/Qwen3-30B-A3B", "precision": "bf16"},
}


@pytest.mark.parametrize("framework", IN_FLIGHT)
def test_a_server_on_gpus_is_computed_as_measured_rows_are(framework):
    """One model of serving for questions and for rows: requests in flight, queueing and response included."""
    row = {"kind": "infer", "id": "r", "hardware": "H100 SXM", "n_chips": "2", "tp": "2", "isl": "20000", "osl": "512",
           "batch_conc": "12", "tpot_ms": "99", "mode": "agg", "framework": framework, **IN_FLIGHT[framework]}  # fmt: skip
    (case,) = serving_cases(WHOLE.graph, [row])
    assert isinstance(case, ServingCase)
    experts = case.dims.experts > 0
    known = calibrated(WHOLE.graph, case.system.chip, "inference", "auto", framework, experts=experts)
    times = ServingRuns.of([case], known.efficiency).run(asdict(serving_of(known)))

    found = asked(
        WHOLE, model=case.model, on="p5.48xlarge", chips=2, tp=2, prompt=20000, output=512, batch=12,
        framework=framework, calibration="auto", dtype=case.dtype,
    )  # fmt: skip

    assert known.name == found.inputs["calibration"]
    assert times.ttft[0] == pytest.approx(found["time_to_first_token"], rel=1e-12)
    rates = times.tpot[0], times.throughput[0]
    assert rates == pytest.approx((found["time_per_output_token"], found["throughput"]), rel=1e-12)
    first = parts(found, "time_to_first_token")
    assert (True, known.serving.response) == (first["queueing"] > 0.0, first.get("response", 0.0))
    assert found["time_to_first_token"] == pytest.approx(sum(first.values()), rel=1e-12)


MODELS = ["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b"]
SYSTEMS = ["p5.48xlarge", "p5en.48xlarge", "dgx-b200", "trn1.32xlarge", "trn2.48xlarge"]
POWERS = [1 << i for i in range(9)]
CASES = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS), "on": st.sampled_from(SYSTEMS), "tp": st.sampled_from(POWERS[:5]),
        "dp": st.sampled_from(POWERS[:3]), "batch": st.sampled_from(POWERS),
        "prompt": st.sampled_from([16, 64, 128, 1024, 8192]), "output": st.sampled_from([1, 2, 16, 64, 512]),
        "dtype": st.sampled_from(["bf16", "fp8"]), "chunk": st.sampled_from([None, None, 64, 512]),
    }
)  # fmt: skip
P5: dict[str, Any] = {"on": "p5.48xlarge", "chunk": None}
SHORT_PROMPTS: dict[str, Any] = {
    **P5, "model": "gpt-oss-120b", "tp": 8, "dp": 1, "batch": 256, "prompt": 64, "output": 64, "dtype": "bf16",
}  # fmt: skip
SHORT_OUTPUTS: dict[str, Any] = {
    **P5, "model": "mixtral-8x7b", "tp": 4, "dp": 2, "batch": 4, "prompt": 128, "output": 2, "dtype": "bf16",
}  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(asked=CASES)
@example(asked=SHORT_PROMPTS)
@example(asked=SHORT_OUTPUTS)
@example(asked={**SHORT_OUTPUTS, "tp": 1, "dp": 8, "batch": 128, "dtype": "fp8"})
@example(asked={**SHORT_OUTPUTS, "tp": 2, "dp": 4, "batch": 128, "prompt": 8192, "chunk": 512})
@example(
    asked={
        **SHORT_PROMPTS,
        "on": "trn2.48xlarge",
        "model": "llama-3.1-70b",
        "dp": 2,
        "prompt": 8192,
        "output": 2,
        "chunk": 64,
    }
)
def test_no_estimate_is_better_than_the_ideal(asked: dict[str, Any]) -> None:
    try:
        ideal, estimate = (run(WHOLE, **asked, calibration=known) for known in ("none", "auto"))
    except RefusalError:
        assume(False)

    for name in ("time_to_first_token", "time_per_output_token", "latency"):
        if name in ideal.names:
            assert ideal.number(name) <= estimate.number(name) * (1.0 + 1e-9), name
    assert ideal.number("throughput") >= estimate.number("throughput") * (1.0 - 1e-9)
