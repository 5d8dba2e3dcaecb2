"""Rows of serving on GPUs: how they are read, and which are skipped."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.serving import ServingCase, on_gpu, serving_cases
from trnspec.perf.calibration.measured.tables import records

DATA = folder() / "measured"
ROW = {
    "kind": "infer", "id": "r", "model": "openai/gpt-oss-120b", "hardware": "H100 SXM", "n_chips": "2", "tp": "2", "pp": "1",
    "dp": "1", "ep": "1", "precision": "bf16/w:mxfp4", "isl": "8192", "osl": "1024", "batch_conc": "16", "ttft_ms": "411",
    "tpot_ms": "10.8", "mode": "agg", "framework": "vllm",
}  # fmt: skip


def one(**changed: str) -> ServingCase | Skipped:
    (found,) = serving_cases(everything(), [ROW | changed])
    return found


def test_a_row() -> None:
    case = one()
    assert isinstance(case, ServingCase)
    plan = case.plan
    assert ("gpt-oss-120b", "vllm", "bf16", 16.0) == (case.model, case.framework, case.dtype, case.requests)
    assert (2.0, 8192.0, 1024.0, 1.0) == (plan.tp, plan.prompt, plan.output, plan.passes)
    # Routed experts in 4 bit with a scale for 32 elements; all else, and the KV cache, in 16 bit.
    assert (0.53125, 2.0, 2.0, 2.0) == (plan.weight_bytes, plan.whole_bytes, plan.head_bytes, plan.cache_bytes)
    assert not case.cache_known
    whole = one(model="Qwen/Qwen3-8B", precision="bf16")
    assert isinstance(whole, ServingCase)
    assert whole.cache_known
    assert {"KV cache: bf16, by the compute dtype", "chunk: 8192 tokens, the default of vllm"} == {*case.assumptions}


def test_a_dense_model_in_8_bit() -> None:
    case = one(model="Qwen/Qwen3-32B", precision="fp8/w:fp8", isl="20000", kv_precision="fp8", tpot_ms="99")
    assert isinstance(case, ServingCase)
    assert ("qwen3-32b", "fp8", 3.0, True) == (case.model, case.dtype, case.plan.passes, case.cache_known)
    assert (1.0, 1.0, 2.0, 1.0) == tuple(
        getattr(case.plan, f"{name}_bytes") for name in ("weight", "whole", "head", "cache")
    )


def test_lengths_that_are_drawn_count_with_their_mean() -> None:
    drawn = one(length_rule="uniform 0.8L..L", isl="1024", osl="8192")
    assert isinstance(drawn, ServingCase)
    assert (921.6, pytest.approx(7372.8)) == (drawn.plan.prompt, drawn.plan.output)
    fixed = one(length_rule="fixed (assumed)", isl="1024")
    assert isinstance(fixed, ServingCase)
    assert fixed.plan.prompt == 1024.0


@pytest.mark.parametrize(
    ("changed", "cache"),
    [
        # The default of vLLM is the 16 bit of the model, unless a script asks for 8, as on Blackwell from 0.19 on.
        ({"precision": "fp8/w:fp8", "framework_version": "0.18.0"}, 2.0),
        ({"precision": "fp8/w:fp8", "framework_version": "0.19.0"}, 2.0),
        ({"precision": "fp8/w:fp8", "framework_version": "0.17.0", "hardware": "B200 SXM"}, 2.0),
        ({"precision": "fp8/w:fp8", "framework_version": "0.19.0", "hardware": "B200 SXM"}, 1.0),
        ({"precision": "nvfp4/w:nvfp4", "framework_version": "0.17.0", "hardware": "B200 SXM"}, 1.0),
        ({"precision": "bf16/w:mxfp4", "framework": "trtllm"}, 2.0),
        ({"precision": "mxfp4/w:mxfp4", "framework": "trtllm", "hardware": "B200 SXM"}, 1.0),
        ({"precision": "fp8/w:fp8", "framework_version": "0.18.0", "kv_precision": "fp8"}, 1.0),
    ],
)
def test_scripts_state_the_cache_where_rows_do_not(changed: dict[str, str], cache: float) -> None:
    case = one(length_rule="uniform 0.8L..L", tpot_ms="99", **changed)
    assert isinstance(case, ServingCase)
    assert (cache, True) == (case.plan.cache_bytes, case.cache_known)


def test_requests_are_those_of_a_replica() -> None:
    case = one(tp="1", dp="4", ep="4", n_chips="4", batch_conc="64")
    assert isinstance(case, ServingCase)
    assert (16.0, 4.0) == (case.requests, case.plan.ep)
    # Experts spread over a tensor-parallel group are as many weights and tokens as their columns.
    group = one(tp="4", ep="4", n_chips="4")
    assert isinstance(group, ServingCase)
    assert (16.0, 1.0) == (group.requests, group.plan.ep)


def test_disaggregated_rows_have_the_pool_that_decodes() -> None:
    case = one(
        mode="disagg", decode_workers="4", decode_tp="2", decode_dp="1", decode_ep="1", batch_conc="64", n_chips="12",
        tpot_ms="20",
    )  # fmt: skip
    assert isinstance(case, ServingCase)
    assert (True, 16.0, 0.0) == (case.separate, case.requests, case.ttft)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"framework": ""}, "the row does not state the framework: vllm, sglang or trtllm"),
        ({"pp": "2"}, "the row has pipeline stages, whose schedule it does not state"),
        ({"speculative": "mtp"}, "the row was measured with speculative decoding, whose acceptance it does not state"),
        ({"tpot_ms": ""}, "the row states no time per output token"),
        ({"precision": "int3"}, "'int3' does not state the dtype of stored weights"),
        (
            {"batch_conc": "512"},
            "the time per output token is below its lower bound with 512 requests in flight: fewer were running",
        ),
    ],
)
def test_skipped_row_states_its_reason(changed: dict[str, str], reason: str) -> None:
    assert Skipped("r", reason) == one(**changed)


@pytest.mark.parametrize(("below", "skipped"), [(2, 2), (3, 3), (4, 13)])
def test_a_sweep_with_many_rows_below_their_bounds_is_skipped(below: int, skipped: int) -> None:
    """Of 13 rows three are fewer than a quarter."""
    rows = [ROW | {"id": f"{i}", "tpot_ms": "0.5" if i < below else "20"} for i in range(13)]
    # The rows of another model are a sweep of their own.
    rows += [ROW | {"id": f"other {i}", "model": "openai/gpt-oss-20b", "tpot_ms": "20"} for i in range(3)]
    found = serving_cases(everything(), rows)
    assert skipped == sum(isinstance(c, Skipped) for c in found)
    assert all(isinstance(c, ServingCase) for c in found[-3:])


def test_times_of_overloaded_servers_are_not_used() -> None:
    case = one(ttft_ms="40000")
    assert isinstance(case, ServingCase)
    assert (0.0, 0.0108) == (case.ttft, pytest.approx(case.tpot))


def test_gpu_rows() -> None:
    assert on_gpu(ROW)
    assert not on_gpu(ROW | {"hardware": "trn2.48xlarge"})
    assert not on_gpu(ROW | {"kind": "train"})


def test_every_row_is_read_or_below_its_bound() -> None:
    found = serving_cases(everything(), records(DATA / "serving_gpu.csv"))
    reasons = Counter(c.reason.split(" with ")[0].split(":")[0] for c in found if isinstance(c, Skipped))
    sweep = "of the 21 rows of its sweep 7 are below their lower bound"
    assert {"the time per output token is below its lower bound": 15, sweep: 14} == reasons
    assert 967 == sum(isinstance(c, ServingCase) for c in found)
