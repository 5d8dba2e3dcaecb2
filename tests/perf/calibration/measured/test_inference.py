"""Published measurements of serving as cases: which rows become one, what is taken for granted, and why others do not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured import cells
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import Cells
from trnspec.perf.calibration.measured.inference import ROUNDS, InferenceCase, framework_of, inference_cases
from trnspec.perf.calibration.measured.tables import records

DATA = folder() / "measured"
ROW = {
    "kind": "infer", "id": "r", "model": "Llama-2-7b", "hardware": "trn1.32xlarge", "n_chips": "16", "tp": "32",
    "precision": "FP16/Matmult-BF16/w:bf16", "isl": "128", "osl": "1024", "batch_conc": "4", "tpot_ms": "7.5",
    "ttft_ms": "20", "source": "s", "note": "Transformers NeuronX; Tensor Parallel",
}  # fmt: skip


def case(**changed: str) -> InferenceCase | Skipped:
    (found,) = inference_cases(everything(), [ROW | changed])
    return found


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


def test_a_row_of_the_vendors_library():
    one = case()
    assert isinstance(one, InferenceCase)
    assert ("llama-2-7b", "bf16", 7.5e-3, 20e-3) == (one.model, one.dtype, one.tpot, one.ttft)
    # The prompts of a batch are computed together.
    assert (32.0, 4.0, 4.0, 128.0, 1024.0) == (
        one.plan.tp, one.plan.batch, one.plan.prompts, one.plan.prompt, one.plan.output,
    )  # fmt: skip
    assert (32.0, 16.0) == (one.system.ranks, one.system.chips)
    assert (False, False, ()) == (one.interrupted, one.host, one.assumptions)


@pytest.mark.parametrize(
    ("precision", "size"), [("FP16/Matmult-BF16/w:int8", 1.0), ("FP16/Matmult-BF16/w:bf16", 2.0), ("bf16", 2.0)]
)
def test_weight_dtype_of_a_row(precision, size):
    one = case(precision=precision)
    assert isinstance(one, InferenceCase)
    assert (size, "bf16") == (one.plan.weight_bytes, one.dtype)


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
    assert "batch: 32, the largest batch in rows of its server" in alone.assumptions
    host = {i for i, c in cases.items() if c.host}
    assert {f"optimum-inf2-8b-{a}-cpu-{b}" for a in ("std", "chunked") for b in ("synchronous", "throughput")} == host


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "bert-large"}, "bert-large is an encoder and generates no tokens"),
        ({"model": ""}, "the row states no model"),
        ({"hardware": ""}, "the row states no hardware"),
        ({"hardware": "a TPU"}, "unknown hardware 'a TPU'"),
        ({"hardware": "trn9.xlarge"}, "unknown hardware 'trn9.xlarge'"),
        ({"tp": ""}, "the row states no tp"),
        ({"isl": ""}, "the row states no isl"),
        ({"osl": "x"}, "osl is 'x'; expected a number"),
        ({"batch_conc": ""}, "the row states no batch_conc"),
        ({"batch_conc": "1.5"}, "batch_conc is 1.5; expected an integer"),
        ({"dp": "2"}, "tp 32 x dp 2 exceeds the 32 ranks of trn1.32xlarge*1"),
        ({"precision": "BF16/w:int3"}, "'BF16/w:int3' does not state the dtype of stored weights"),
        ({"tpot_ms": "-3"}, "tpot_ms is -3; expected 0, or a number between 1e-12 and 1e15"),
        ({"tpot_ms": "nan", "ttft_ms": ""}, "the row states no time per output token; of an encoder, no latency"),
        (
            {"tpot_ms": "", "ttft_ms": "", "lat_p50_ms": "3"},
            "the row states no seq, which is what an encoder computes",
        ),
        (
            {"tpot_ms": "", "ttft_ms": "", "lat_p50_ms": "3", "seq": "128"},
            "the row states no time per output token",
        ),
        ({"status": "HBM_OOM"}, "it did not run: HBM_OOM"),
        (
            {"speculation": "EAGLE 3"},
            "speculative decoding (EAGLE 3); neither the acceptance nor the draft's dimensions are stated",
        ),
        (
            {"model": "Llama-2-7b + fused spec decode 1B draft"},
            "speculative decoding; neither the acceptance nor the draft's dimensions are stated",
        ),
        (
            {"model": "a-new-one", "layers": "4", "hidden": "512", "heads": "8", "seq": "2048"},
            "the catalog has no model like 'a-new-one', and the row states no ffn",
        ),
        ({"kv_precision": "int3"}, "kv_precision is 'int3', which is not a dtype"),
        (
            {"osl": "", "note": "vLLM-Neuron, continuous batching", "batch_compiled": "4"},
            "the row states no osl, over which prefill of other requests is distributed",
        ),
    ],
)
def test_skipped_row_states_its_reason(changed, reason):
    assert Skipped("r", reason) == case(**changed)


NXD = ROW | {
    "model": "Qwen3-1.7B", "hardware": "trn2.48xlarge (1 of 128 logical cores = 0.125 chips)", "n_chips": "1", "tp": "1",
    "lnc": "1", "precision": "bf16", "isl": "3700", "osl": "300", "batch_conc": "16", "batch_compiled": "16",
    "ctx_bucket": "4096", "tkg_bucket": "4396", "date": "2026-03", "note": "ctx_batch_size 1",
    "software": "vLLM 0.13.0 + vllm-neuron + NxD Inference, vllm bench serve",
}  # fmt: skip


def test_a_row_of_an_encoder():
    """One pass over a batch on one rank; whether weights are stored as they are multiplied is open."""
    encoder = {
        "model": "bert-large", "precision": "FP32/Matmult-BF16/w:", "tp": "", "isl": "", "osl": "", "tpot_ms": "", "ttft_ms": "",
        "lat_p50_ms": "7", "seq": "128", "n_chips": "1", "hardware": "trn1.2xlarge", "note": "PyTorch 2.9",
    }  # fmt: skip
    one = case(**encoder)
    assert isinstance(one, InferenceCase)
    assert (7e-3, 0.0, 0.0) == (one.encoded, one.tpot, one.ttft)
    assert (1.0, 4.0, 128.0, 1.0, 2.0) == (
        one.plan.tp, one.plan.prompts, one.plan.prompt, one.plan.output, one.plan.weight_bytes,
    )  # fmt: skip
    assert ["weights: 2 bytes" in each for each in one.assumptions] == [True]
    known = case(**encoder | {"precision": "FP32/Matmult-BF16/w:bf16"})
    assert isinstance(known, InferenceCase)
    assert () == known.assumptions


def test_a_row_of_compiled_graphs():
    one = case(**NXD)
    assert isinstance(one, InferenceCase)
    plan = one.plan
    assert ("nxd-inference", "2026", 1.0, 128.0 / 16.0) == (one.framework, one.era, one.system.lnc, one.system.ranks)
    assert (4096.0, 4396.0, 4396.0, 16.0, 1.0) == (
        plan.compiled_tokens, plan.compiled_context, plan.compiled_keys, plan.compiled_batch, plan.prompts,
    )  # fmt: skip
    assert (1.0, 0.0, 15.0 / 2.0 / ROUNDS, True) == (plan.flash, plan.materialized, one.queued, one.interrupted)
    # Without a prompt the compiled lengths are its own; without a bucket of prefill its time is not known.
    padded = case(**NXD | {"isl": ""})
    assert isinstance(padded, InferenceCase)
    assert (4096.0, plan.compiled_keys) == (padded.plan.prompt, padded.plan.compiled_keys)
    token = case(**NXD | {"isl": "", "ctx_bucket": ""})
    assert isinstance(token, InferenceCase)
    assert (0.0, 0.0075) == (token.ttft, token.tpot)
    # One of the users of a server sends requests.
    single = case(**NXD | {"note": "one user on a server compiled for this batch"})
    assert isinstance(single, InferenceCase)
    assert (1.0, 16.0, 0.0) == (single.plan.batch, single.plan.compiled_batch, single.queued)


@pytest.mark.parametrize(
    ("changed", "computed"),
    [
        ({"ctx_bucket": "512/4096", "isl": "400"}, 512.0),
        ({"ctx_bucket": "[512, 4096]", "isl": "513"}, 4096.0),
        ({"ctx_bucket": "4096", "isl": "400", "note": "context buckets 512 and 4096"}, 512.0),
        # Another list than that of the cell, one bucket, and a prompt that none holds.
        ({"ctx_bucket": "4096", "isl": "400", "note": "buckets 512, 8192"}, 4096.0),
        ({"ctx_bucket": "4096", "isl": "400"}, 4096.0),
        ({"ctx_bucket": "512/1024", "isl": "3700"}, 3700.0),
    ],
)
def test_a_prompt_is_padded_to_the_smallest_bucket_that_holds_it(changed, computed):
    one = case(**NXD | changed)
    assert isinstance(one, InferenceCase)
    assert one.plan.compiled_prompt == one.plan.compiled_tokens == computed


def test_a_list_of_buckets_has_integers():
    found = case(**NXD | {"ctx_bucket": "512/4k"})
    assert found == Skipped("r", "ctx_bucket is '512/4k'; expected an integer, or a list such as 512/4096")


def test_unset_columns_take_software_defaults():
    # Eight ranks of one chip of Trainium2 are physical cores.
    cores = case(**NXD | {"hardware": "trn2.3xlarge", "tp": "8", "lnc": ""})
    assert isinstance(cores, InferenceCase)
    assert (1.0, 8.0) == (cores.system.lnc, cores.system.ranks)
    assert "lnc: 1, since 8 ranks are more than 4" in cores.assumptions
    # Not where the row states the cores of a rank.
    stated = case(**NXD | {"hardware": "trn2.3xlarge", "tp": "8", "lnc": "2"})
    assert Skipped("r", "tp 8 x dp 1 exceeds the 4 ranks of trn2.3xlarge*1") == stated
    # 4-bit weights are multiplied in 16 bit.
    for precision in ("bf16/w:mxfp4", "mxfp4"):
        narrow = case(**NXD | {"precision": precision})
        assert isinstance(narrow, InferenceCase)
        assert ("bf16", 0.53125) == (narrow.dtype, narrow.plan.weight_bytes)
    # More requests than the graph has sequences wait for one of them.
    more = case(**NXD | {"batch_conc": "64"})
    assert isinstance(more, InferenceCase)
    assert (16.0, 16.0, 0.0) == (more.plan.batch, more.plan.compiled_batch, more.ttft)
    graph = case(**NXD | {"batch_conc": ""})
    assert isinstance(graph, InferenceCase)
    assert 16.0 == graph.plan.batch


def test_experts_of_a_tensor_parallel_group_are_whole():
    shape = {"model": "Qwen3-30B-A3B", "tp": "64", "n_chips": "16", "hardware": "trn2.48xlarge", "lnc": "2"}
    split, whole = (case(**NXD | shape | {"ep": ep}) for ep in ("", "64"))
    assert isinstance(split, InferenceCase)
    assert isinstance(whole, InferenceCase)
    # 768 columns over 64 ranks are 12 of 128; with whole experts they are six tiles.
    assert (128.0 / 12.0 - 1.0, 0.0) == pytest.approx((split.plan.narrow_routed, whole.plan.narrow_routed))
    assert (16.0, 16.0) == (split.plan.all_experts_from, whole.plan.all_experts_from)


@pytest.mark.parametrize(
    ("text", "chips", "name", "ranks"),
    [
        ("trn3.48xlarge", 16, "trn3-gen2-ultraserver", 64.0),
        ("trn3pds98.48xlarge (UltraServer)", 4, "trn3-gen2-ultraserver", 16.0),
        ("Trn3 UltraServer gen1", 64, "trn3-gen1-ultraserver", 256.0),
        ("trn3pd98.3xlarge (4 NeuronCores)", 1, "trainium3", 4.0),
        ("1 Trainium3 chip", 1, "trainium3", 4.0),
        ("4 NeuronCores of trn2.48xlarge", 1, "trn2.48xlarge", 4.0),
        ("trn2.48xlarge (2 of 64 logical cores = 0.5 chips)", 1, "trn2.48xlarge", 4.0),
    ],
)
def test_hardware_words_of_neuron(text, chips, name, ranks):
    system = Cells(everything(), {"hardware": text}).hardware(chips)
    assert (True, ranks) == (system.name.startswith(name), system.ranks)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"software": "vLLM 0.16.0 + vllm-neuron 0.5.0 + NxD Inference 0.9"}, "nxd-inference"),
        ({"software": "vLLM-Neuron"}, "nxd-inference"), ({"note": "Transformers NeuronX; Neuron 2.18.1"}, "transformers-neuronx"),
        ({"id": "optimum-inf2-8b"}, "optimum-neuron"), ({"software": "vLLM 0.17.1"}, "vllm"),
        ({"software": "TensorRT-LLM"}, "trtllm"), ({"framework": "sglang"}, "sglang"), ({}, ""),
    ],
)  # fmt: skip
def test_framework_of_a_row(row, name):
    assert name == framework_of(Cells(everything(), row))


def test_a_link_without_a_published_rate(monkeypatch):
    monkeypatch.setattr(cells, "HARDWARE", (("b200", ("hgx-b200",), ""),))
    # Systems are cached by their description.
    monkeypatch.setattr(cells, "_hardware", cells._hardware.__wrapped__)
    asked = {"hardware": "B200", "n_chips": "16", "tp": "16", "precision": "bf16"}
    reason = "the layout needs a link of hgx-b200*2 whose rate is not published"
    assert Skipped("r", reason) == case(**asked)
    assert isinstance(case(**asked | {"tp": "8"}), InferenceCase)


def test_rows_of_other_kinds_are_none():
    assert [] == list(inference_cases(everything(), [ROW | {"kind": "train"}]))


def test_a_row_without_a_name_is_called_by_its_line():
    assert [Skipped("line 2", "the row states no tp")] == list(
        inference_cases(everything(), [ROW | {"id": "", "tp": ""}])
    )
