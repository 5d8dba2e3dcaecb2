"""Published measurements of kernels: how rows are read, and which are skipped."""

from collections import Counter

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.kernels import STORED, KernelCase, KernelRuns, kernel_cases
from trnspec.perf.lowering.lower import lower

DATA = folder() / "measured"
PRODUCT = {
    "kind": "matmul", "id": "m", "model": "matmul 4096x8192x2048", "hardware": "H100 SXM", "precision": "bf16",
    "tflops_per_chip": "700", "time_us": "",
}  # fmt: skip
LAYER = {
    "kind": "moe", "id": "e", "hardware": "B200", "precision": "w4a16_mxfp4", "tokens": "4", "hidden": "2880",
    "expert_ffn": "2880", "topk": "4", "experts": "128", "tp": "2", "ep": "4", "routing": "balanced", "time_us": "40",
    "framework": "vllm",
}  # fmt: skip
ATTENTION = {
    "kind": "attention", "id": "a", "phase": "prefill", "hardware": "H200 SXM", "precision": "bf16", "kv_precision": "fp8",
    "batch": "2", "q_len": "4096", "kv_len": "4096", "heads": "32", "kv_heads": "8", "head_dim": "128", "time_us": "500",
}  # fmt: skip


def one(row: dict[str, str], **changed: str) -> KernelCase | Skipped:
    (found,) = kernel_cases(everything(), [row | changed], row["kind"])
    return found


def ideal(case: KernelCase | Skipped) -> float:
    assert isinstance(case, KernelCase)
    return float(KernelRuns.of(case.part, [case]).times({})[case.part][0])


def test_every_row_is_read_or_the_catalog_lacks_its_chip() -> None:
    found = Counter(
        c.part if isinstance(c, KernelCase) else c.reason.split(",")[0]
        for name, kind in (
            ("gemm_gpu", "matmul"), ("matmul", "matmul"), ("attention_prefill_gpu", "attention"),
            ("attention_decode_gpu", "attention"), ("moe_gpu", "moe"),
        )
        for c in kernel_cases(everything(), records(DATA / f"{name}.csv"), kind)
    )  # fmt: skip
    assert {
        "gemm": 443, "attention_prefill": 196, "attention_decode": 154, "moe": 170, "unknown hardware 'MI210'": 12,
        "unknown hardware 'MI300X'": 1, "unknown hardware 'MI355X'": 1, "the catalog has no document named gh200": 1,
    } == found  # fmt: skip


def test_a_product_is_compute_or_memory_bound() -> None:
    chip = lower(everything(), "h100-sxm")
    flops = 2.0 * 4096 * 8192 * 2048
    case = one(PRODUCT)
    assert isinstance(case, KernelCase)
    assert (flops / chip.rate("bf16"), flops / 700e12) == pytest.approx((ideal(case), case.seconds))
    # Of two narrow operands a product in 16 bit; one row of a matrix reads the other matrix.
    narrow = one(PRODUCT, precision="fp8", model="matmul 1x8192x2048")
    assert (2048 + 2048 * 8192 + 2 * 8192) / chip.bandwidth == pytest.approx(ideal(narrow))


def test_a_chip_of_several_ranks_is_taken_whole() -> None:
    core = lower(everything(), "trainium1")
    assert 2.0 == core.ranks_per_chip
    assert 2.0 * 4096 * 8192 * 2048 / (2.0 * core.rate("bf16")) == pytest.approx(
        ideal(one(PRODUCT, hardware="trainium1"))
    )


def test_an_expert_layer_reads_the_experts_that_are_hit() -> None:
    """16 pairs on 4 chips hit 4 experts of each, of which tp has half the width; weights in 4 bit, arithmetic in 16."""
    chip = lower(everything(), "b200")
    case = one(LAYER)
    assert isinstance(case, KernelCase)
    assert (4.0, 4.0, 1440.0) == tuple(case.shape[n] for n in ("pairs", "hit", "width"))
    moved = 3 * 4 * 2880 * 1440 * (0.5 + 1 / 32) + 4 * 4 * 2880
    assert moved / chip.bandwidth == pytest.approx(ideal(case))
    uneven = one(LAYER, routing="power_law_1.2", tokens="64")
    assert isinstance(uneven, KernelCase)
    # 64 pairs on 32 experts: 32 (1 - (31/32)^64).
    assert 32 * (1 - (31 / 32) ** 64) == pytest.approx(uneven.shape["hit"])


def test_activations_of_8_bit_are_multiplied_in_8() -> None:
    chip = lower(everything(), "b200")
    narrow, wide = (ideal(one(LAYER, precision=p, tokens="65536")) for p in ("w4a8_mxfp4_mxfp8", "w4a16_mxfp4"))
    assert chip.rate("bf16") / chip.rate("fp8") == pytest.approx(narrow / wide)


def test_bits_of_a_stored_weight() -> None:
    """With the scales of groups of 128 in 16 bit, and of 16 and of 32 in 8 bit."""
    bits = {"int4_wo": 4 + 16 / 128, "nvfp4": 4 + 8 / 16, "mxfp4": 4 + 8 / 32, "fp8": 8, "int8": 8}
    assert bits == {name: 8 * size for name, size in STORED.items()}


def test_attention_in_prefill_and_decode() -> None:
    chip = lower(everything(), "h200")
    products = 2 * 32 * 4096 * 4097 / 2
    assert 4 * products * 128 / chip.rate("bf16") == pytest.approx(ideal(one(ATTENTION)))
    decode = one(ATTENTION, phase="decode", q_len="1")
    assert (2 * 2 * (4096 * 8 + 2 * 32) * 128) / chip.bandwidth == pytest.approx(ideal(decode))
