"""Plans of a serving fleet: limits are met with the printed probability, and the parts of a plan agree."""

import itertools
import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from tests.support.engine import everything, refusal
from tests.support.evaluations import BuiltinConformance, keywords
from tests.support.tables import tables
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.result import Evaluation
from trnspec.evaluators.planning.serving import _time
from trnspec.evaluators.planning.serving import run as plan_

plan = keywords(plan_)
CAT = trnspec.load()

QUESTION: dict[str, Any] = {
    "model": "llama-3.1-8b", "rate": 20.0, "isl": 2048, "osl": 256, "ttft": "1s", "tpot": "40ms", "tp": (4, 8),
    "on": ("trn2.48xlarge",), "pools": ("aggregated",),
}  # fmt: skip
OF_FILE = {name: value for name, value in QUESTION.items() if name not in ("isl", "osl")}


def rows(found: Evaluation, title: str = "Plans") -> list[dict[str, Any]]:
    return next(table for table in found.tables if table.title == title).records()


def test_the_parts_of_a_plan_agree() -> None:
    found = plan(CAT, **QUESTION)
    best = rows(found)[0]
    systems = int(best["system"].split("*")[1])
    ranks = 64  # Logical cores of a server.

    assert best["chips"] == 16 * systems
    assert best["replicas"] == systems * ranks // best["tp"]
    assert best["rate_per_replica"] == pytest.approx(20.0 / best["replicas"])
    assert best["million_tokens"] == pytest.approx(best["hourly"] / (20.0 * 256 * 3600) * 1e6)
    assert best["utilization"] == pytest.approx(100 * 20.0 / best["saturation"])
    assert best["utilization"] < 100


@pytest.mark.parametrize(("rate", "pools"), [(2.0, "aggregated"), (200.0, "disaggregated")])
def test_chips_have_the_counts_at_the_ends_of_the_times_as_interval(pools, rate) -> None:
    """The upper end is what the limits need with a confidence of 90 %; no fleet serves more than the bound."""
    asked = {**QUESTION, "rate": rate, "pools": (pools,), "objective": "chips", "tp": (8,)}
    chips = plan(CAT, **asked).answer("chips")
    bound = plan(CAT, **asked, calibration="none")

    assert chips.low is not None
    assert chips.high is not None
    assert chips.low <= chips.value <= chips.high
    # That of the queueing model; the plan may need more in the simulation.
    assert chips.high <= plan(CAT, **asked, confidence=0.9).answer("chips").value
    served = [row["saturation"] / row["chips"] for row in rows(bound)]
    assert chips.low >= 0.999 * rate / max(served)
    assert (bound.answer("chips").low, bound.answer("chips").high) == (None, None)


@pytest.mark.parametrize("pools", ["aggregated", "disaggregated"])
def test_large_median_errors_are_stated(pools) -> None:
    """The limits are met at the median of the errors; what they need by the computed times is stated next to it."""
    asked = QUESTION | {"rate": 100.0, "tpot": "30ms", "tp": (8,), "pools": (pools,)}
    found, computed = (plan(CAT, **asked, framework="optimum-neuron", confidence=share) for share in (0.5, 0.01))
    at_once = plan(CAT, **QUESTION)

    tpot, likely = (float(found.answer(name).value) for name in ("time_per_output_token", "likely_tpot"))
    assert 1.1 * tpot < likely <= 0.03
    on, _, count = found.answer("by_computed_times").value.split(",")[0].partition("*")
    # That of the queueing model; the plan may need more in the simulation.
    assert (on, int(count)) <= ("trn2.48xlarge", computed.answer("chips").value // 16)
    assert found.answer("chips").value > computed.answer("chips").value
    assert not {"likely_tpot", "by_computed_times"} & {answer.name for answer in at_once.answers}


def test_times_with_a_wide_interval_are_bounds() -> None:
    """Of models with experts on Trainium2 measured times are within a factor of more than 8."""
    asked = QUESTION | {"model": "qwen3-235b-a22b", "rate": 5.0, "tp": (32,), "tpot": "100ms", "ttft": "2s"}
    found, bound = plan(CAT, **asked), plan(CAT, **asked, calibration="none")

    assert found.evidence.kind == "ideal"
    assert found.evidence.reason.startswith("no estimate: TPOT spans a factor of ")
    assert [a.value for a in found.answers] == [a.value for a in bound.answers]


def test_chips_without_links_serve_with_aggregated_replicas() -> None:
    """How several are linked is not known, so that no pool sends the KV cache to another one."""
    found = plan(
        CAT, **QUESTION | {"on": ("trainium2",), "pools": ("aggregated", "disaggregated"), "rate": 40.0, "tp": ()}
    )

    assert int(found["system"].partition("*")[2]) > 1
    assert {row["pools"] for row in rows(found)} == {"aggregated"}


def test_percentiles_that_are_near_saturation_at_the_slow_end_have_no_upper_end() -> None:
    """A factor of more than 8 would be no information; the note states the slow end."""
    tpot = [plan(CAT, **QUESTION | {"tp": (8,), "rate": rate}).answer("time_per_output_token") for rate in (5.0, 32.0)]

    assert [(one.low is None, one.high is None) for one in tpot] == [(False, False), (False, True)]
    assert re.search(r"no upper end: [\d.,]+ m?s at the slow end, [\d.]+ times the fast one$", tpot[1].note)


LIMITS = [("llama-3.1-8b", 200.0, 0.5, 0.02, (4, 8)), ("llama-3.3-70b", 20.0, 1.0, 0.03, (8, 32))]


@pytest.mark.parametrize(("model", "rate", "ttft", "tpot", "tp"), LIMITS)
def test_no_plan_misses_its_limits_in_the_simulation(model, rate, ttft, tpot, tp) -> None:
    goals = {"rate": rate, "ttft": f"{ttft}s", "tpot": f"{tpot}s"}
    plans = rows(plan(CAT, model=model, isl=4096, osl=512, on=("trn2.48xlarge",), tp=tp, top=1000, **goals))

    assert len(plans) > 1
    assert all(row["ttft"] <= ttft and row["tpot"] <= tpot for row in plans)


@pytest.mark.parametrize(("more", "name"), [({"isl": 2048}, "isl"), ({"osl": 2}, "osl"), ({"isl": 5, "osl": 5}, "isl")])
def test_lengths_of_a_file_exclude_others(tmp_path, more, name) -> None:
    file = tmp_path / "lengths.csv"
    file.write_text("isl,osl\n2048,256\n", encoding="utf-8")

    with pytest.raises(UsageError, match=f"^{name}: "):
        plan(CAT, **OF_FILE, **more, lengths=str(file))


@pytest.mark.parametrize("more", [{"speculate": 5}, {"acceptance": 0.5}])
def test_speculative_decoding_needs_a_draft(more) -> None:
    (name,) = more
    searched = {"model": "llama-3.1-8b", "on": ("trn2.48xlarge",)}
    for evaluator, inputs in (
        ("plan-serve", QUESTION),
        ("search", searched),
        ("inference", {**searched, "on": "trn2.48xlarge"}),
    ):
        with pytest.raises(UsageError, match=f"^{name}: only speculative decoding uses it"):
            trnspec.evaluate(evaluator, CAT, **inputs, **more)


def test_a_trace_is_simulated_and_sizes_the_fleet(tmp_path) -> None:
    even, bursts = tmp_path / "even.csv", tmp_path / "bursts.csv"
    head = "arrival,isl,osl\n"
    even.write_text(head + "".join(f"{n / 40.0},2048,64\n" for n in range(800)), encoding="utf-8")
    together = "".join(f"{n // 200 * 5.0 + n % 200 * 0.001},2048,64\n" for n in range(801))
    bursts.write_text(head + together, encoding="utf-8")
    question = {**OF_FILE, "rate": None, "tp": (8,)}
    smooth, bursty = (plan(CAT, **question, lengths=str(file)) for file in (even, bursts))

    assert smooth.title.partition(" at ")[2].startswith("40")
    assert bursty["chips"] > smooth["chips"]
    for found in (smooth, bursty):
        assert found.number("time_to_first_token") <= 1.0
        assert found.number("time_per_output_token") <= 0.040
    scaled = plan(CAT, **{**question, "rate": 80.0}, lengths=str(even))
    assert scaled.title.partition(" at ")[2].startswith("80")


def test_a_trace_that_no_number_of_systems_serves(tmp_path) -> None:
    file = tmp_path / "trace.csv"
    rows_ = "".join(f"{n / 10.0},{100_000 if n % 4 == 0 else 100},16\n" for n in range(200))
    file.write_text("arrival,isl,osl\n" + rows_, encoding="utf-8")
    assert refusal(plan, CAT, **{**OF_FILE, "rate": None, "tp": (4,)}, lengths=str(file)).reason == "no-plan"


def test_pools_are_apart() -> None:
    question = {**QUESTION, "pools": ("disaggregated",), "tp": (4, 8)}
    found = plan(CAT, **question)
    best = rows(found)[0]
    ranks = 4 if best["tp"] == 4 else 8

    assert best["pools"] == f"{best['prefill_replicas']}P:{best['replicas']}D"
    assert best["replicas"] * ranks + best["prefill_replicas"] * best["prefill_tp"] <= best["chips"] * 4
    together = trnspec.evaluate(
        "inference", CAT, model="llama-3.1-8b", on="trn2.48xlarge", prefill_on="trn2.48xlarge", prompt=2048, output=256,
        tp=best["tp"], dp=1,
    )  # fmt: skip
    # The evaluator has a wider prefill pool, which sends at a higher rate than a replica of the plan.
    assert best["transfer"] >= together.number("transfer_time")
    assert "NixlConnector" in str(found["launch"])
    assert "NixlConnector" in str(found["launch_prefill"])


SPLIT = {"model": "llama-3.1-70b", "tpot": "80ms", "ttft": "3s", "tp": (32,), "pp": (2,), "chunk": (512,), "kv_dtype": "fp8",
         "draft": "llama-3.2-1b"}  # fmt: skip
HALF_A_SERVER = {"on": ("dgx-h100",), "tp": (4,), "weight_dtype": "fp8"}


@pytest.mark.parametrize(
    ("asked", "start", "options", "end", "note"),
    [
        (SPLIT, "vllm serve ", {"--tensor-parallel-size": "32", "--pipeline-parallel-size": "2", "--kv-cache-dtype": "fp8",
                                "--max-num-batched-tokens": "512", "--max-model-len": "2304"}, "", ""),
        *((HALF_A_SERVER | {"framework": framework}, f"CUDA_VISIBLE_DEVICES=0,1,2,3 {command} ", options, " --port 8000",
           "the next one has GPUs 4 to 7 and port 8001") for framework, command, options in (
            ("vllm", "vllm serve", {"--tensor-parallel-size": "4", "--quantization": "fp8"}),
            ("sglang", "python -m sglang.launch_server", {"--tp-size": "4", "--context-length": "2304", "--quantization": "fp8"}),
            ("trtllm", "trtllm-serve", {"--tp_size": "4", "--max_seq_len": "2304", "--max_num_tokens": "8192"}),
        )),
        ({"tp": (8,), "framework": "nxd-inference"}, "NEURON_RT_VISIBLE_CORES=0-7 vllm serve ",
         {"--tensor-parallel-size": "8"}, " --port 8000", "no support from SDK 2.34.0; successor: vllm-neuron-trainium2"),
        ({"model": "qwen3-30b-a3b", "tp": (8,), "ep": (8,)}, "vllm serve ", {"--data-parallel-size": "8"}, "", ""),
        (HALF_A_SERVER | {"model": "qwen3-30b-a3b", "ep": (2,), "framework": "sglang"}, "", {"--tp-size": "8", "--dp-size": "2"}, "", ""),
        *((HALF_A_SERVER | {"pp": (2,), "framework": framework}, "", {option: "2"}, "", "")
          for framework, option in (("sglang", "--pp-size"), ("trtllm", "--pp_size"))),
    ],
)  # fmt: skip
def test_launch_commands(asked, start, options, end, note) -> None:
    """They have the deployment in the words of the framework, and the devices where a server has several replicas."""
    found = plan(Catalog(everything()), **QUESTION | asked)
    launched = str(found["launch"])

    assert launched.startswith(start)
    assert options.items() <= dict(itertools.pairwise(shlex.split(launched))).items()
    assert ("pp" in asked) == bool({"--pipeline-parallel-size", "--pp-size", "--pp_size"} & {*shlex.split(launched)})
    assert ("ep" in asked) == ("--enable-expert-parallel" in launched or "--ep-size" in launched)
    assert launched.endswith(end)
    assert note in found.answer("launch").note


def test_unknown_links_are_not_computed_with() -> None:
    """Where the rate of a link is not published, a deployment over it is rejected with the figure."""
    with pytest.raises(RefusalError, match="not published"):
        plan(CAT, **{**QUESTION, "on": ("trn3-gen2-server",), "tp": (16,)})


def test_a_limit_that_keeps_the_fleet_far_below_saturation_is_stated() -> None:
    """Not where the fleet is loaded, nor of one system, which cannot be smaller."""
    tight, loose, one = (
        plan(CAT, **QUESTION | {"rate": rate, "tpot": tpot, "tp": (8,)})
        for rate, tpot in ((400.0, "9ms"), (400.0, "60ms"), (0.1, "9ms"))
    )

    assert tight["limited_by"].startswith("TPOT 9 ms: without other requests it is ")
    assert float(tight["limited_by"].split()[-2]) < 9.0
    assert not {"limited_by"} & {*loose.names, *one.names}


def test_requests_beyond_the_context_of_the_model() -> None:
    longer, inside = (
        [
            a.value
            for a in plan(CAT, **QUESTION | {"tp": (8,), "isl": isl, "ttft": "60s"}).assumptions
            if a.name == "context"
        ]
        for isl in (140_000, 2048)
    )

    assert longer == ["the model has 131,072 tokens"]
    assert not inside


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    st.floats(1.1, 4.0),
    st.sampled_from(["ttft", "tpot", "rate", "confidence", "percentile", "running", "pools", "tp", "on"]),
    st.floats(5.0, 200.0),
    st.sampled_from([("aggregated",), ("disaggregated",)]),
    st.sampled_from([(2048, 256), (500, 500)]),
    st.sampled_from(["chips", "cost"]),
)
def test_a_looser_goal_never_needs_more(factor, name, rate, pools, lengths, objective) -> None:
    """A longer limit, fewer requests, less confidence, more choices: no more chips, or no higher cost of all systems."""
    strict = {"ttft": 0.6, "tpot": 0.03, "rate": rate, "confidence": 0.8, "percentile": 95.0, "running": 64}
    strict |= {"tp": (8,), "pools": pools, "on": ("trn2.48xlarge",)}
    choices = {"pools": ("aggregated", "disaggregated"), "tp": (4, 8), "on": ("trn2.48xlarge", "trn1.32xlarge")}
    longer = {"ttft": factor, "tpot": factor, "running": 2}
    loose = strict | {name: choices[name] if name in choices else strict[name] * longer.get(name, 1.0 / factor)}
    fixed = {"isl": lengths[0], "osl": lengths[1], "objective": objective}
    column = {"chips": "chips", "cost": "hourly"}[objective]
    most, least = (
        rows(plan(CAT, **QUESTION | fixed | goals | {n: f"{goals[n]:.4f}s" for n in ("ttft", "tpot")}))[0][column]
        for goals in (strict, loose)
    )

    assert least <= most


@pytest.mark.parametrize(
    ("inputs", "text", "differences"), tables(__file__)["the_nearest_published_fleet_is_next_to_the_plan"]
)
def test_the_nearest_published_fleet_is_next_to_the_plan(inputs, text, differences) -> None:
    """Differences of twice or more in lengths and limits come first; chips below one system are inside."""
    found = plan(CAT, **QUESTION | {"tp": (8,)} | inputs)
    (stated,) = (a for a in found.assumptions if a.name == "published_fleet")

    assert str(found["published_fleet"]).startswith(text)
    assert stated.first
    assert stated.value.startswith(differences)


def test_no_plan() -> None:
    """The error names the nearest deployment, the limit that it misses, and limits that it meets."""
    error = refusal(plan, CAT, **{**QUESTION, "tpot": "0.1ms"})
    (suggestion,) = error.suggestions

    assert error.reason == "no-plan"
    assert ("TPOT" in str(error), "as computed" in str(error)) == (True, False)
    assert (suggestion.evaluator, set(suggestion.inputs) - set(QUESTION)) == ("plan-serve", {"tpot"} - set(QUESTION))
    again = trnspec.evaluate("plan-serve", CAT, **suggestion.inputs)
    assert again.number("time_per_output_token") > 1e-4


def test_limits_are_rounded_up() -> None:
    times = (0.0295, 0.0301, 0.000123, 0.99, 0.991, 1.0, 1.21)
    assert ["30ms", "31ms", "0.13ms", "990ms", "1s", "1s", "1.3s"] == [_time(seconds) for seconds in times]


def test_no_deployment_fits() -> None:
    caught = refusal(plan, CAT, **{**QUESTION, "model": "llama-3.1-405b", "on": ("trn1.2xlarge",), "tp": ()})

    assert re.search(r": trn1.2xlarge: none of \d+ deployments fits in memory$", str(caught))
    with pytest.raises(RefusalError, match=r"limits at this rate: trn2\.48xlarge: tp 4 and 1 other: more") as caught:
        plan(CAT, **QUESTION | {"rate": 1e12, "pools": ("aggregated", "disaggregated")})
    assert (caught.value.place, str(caught.value.hint).split(",")[0]) == ("rate", "a lower rate")


def test_context_buckets() -> None:
    """Each prompt and context takes the smallest bucket that holds it; exact ones are no slower than longer ones."""
    asked = QUESTION | {"tp": (8,)}
    tight, loose = (plan(CAT, **asked, context_buckets=(512, 2048, most)) for most in (2304, 8192))
    one = plan(CAT, **asked, context_buckets=(8192,))

    assert tight["time_per_output_token"] < loose["time_per_output_token"]
    assert tight["time_to_first_token"] < one["time_to_first_token"]
    assert '"context_encoding_buckets": [8192]' in one["launch"]
    assert one.suggestions[0].inputs["context_buckets"] == (8192,)
    with pytest.raises(
        RefusalError, match="the longest prompt \\+ output is 2,304; the largest of context_buckets is 2,048"
    ):
        plan(CAT, **asked, context_buckets=(512, 2048))


@pytest.mark.parametrize(("limit", "example"), [("ttft", "1s"), ("tpot", "30ms")])
def test_a_limit_without_a_unit(limit, example) -> None:
    with pytest.raises(UsageError, match=f"{limit}: a duration above 0 such as {example} is expected, not '30'"):
        plan(CAT, **{**QUESTION, limit: "30"})


class TestConformance(BuiltinConformance):
    """It keeps what every evaluator keeps."""

    name = "plan-serve"
    dimensionless = ("chips", "replicas", "prefill_replicas", "requests_in_flight", "saturation")
    good = ({**QUESTION, "tp": (8,)}, {**QUESTION, "tp": (4,), "calibration": "none"})
    bad = (
        ({**QUESTION, "ttft": "x"}, "misuse"),
        ({**QUESTION, "rate": 0.0}, "misuse"),
        ({**QUESTION, "tpot": "0.1ms"}, "no-plan"),
    )


def test_each_reason_is_stated_once() -> None:
    refused = refusal(
        plan, CAT, **QUESTION | {"tp": (4, 8, 16), "pools": ("disaggregated",)}, prefill_on="trn3.48xlarge"
    )

    why = "the rate between servers of trn3.48xlarge*2 is not published"
    assert f": trn2.48xlarge: disaggregated tp 4 and 2 others: {why}" in str(refused)
    assert str(refused).count(why) == 1


def test_buckets_of_a_framework_hold_the_longest_request_of_a_file(tmp_path) -> None:
    file = tmp_path / "lengths.csv"
    file.write_text("isl,osl\n" + "200,100\n20000,100\n" * 20, encoding="utf-8")
    asked = OF_FILE | {"rate": 1.0, "ttft": "9s", "tpot": "90ms", "tp": (8,), "lengths": str(file)}
    exact, padded = plan(CAT, **asked), plan(CAT, **asked, framework="nxd-inference")
    options = dict(itertools.pairwise(shlex.split(str(padded["launch"]))))

    assert json.loads(options["--additional-config"])["override_neuron_config"]["token_generation_buckets"][-1] == 32768
    assert padded["time_to_first_token"] > exact["time_to_first_token"]
