"""Kernels of one device: matrix multiplication, copy of device memory, attention in prefill and in decoding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from trnspec.measure.device import Device, torch
from trnspec.measure.shapes import AttentionShape, Shapes
from trnspec.measure.timing import Timing, measured

Cells = dict[str, str]
"""The cells of a row by column, without those that all rows have."""


def dtype(name: str) -> Any:
    """The dtype of PyTorch of an operand; TF32 operands are stored in 32 bit."""
    module = torch()
    return {"bf16": module.bfloat16, "fp16": module.float16}.get(name, module.float32)


def width(name: str) -> int:
    """Bytes of an element."""
    return 2 if name in ("bf16", "fp16") else 4


def gemms(device: Device, shapes: Shapes) -> Iterator[Cells]:
    """Matrix multiplications ``a @ b.T``, as of a linear layer."""
    module = torch()
    for precision in shapes.dtypes:
        if precision == "tf32" and device.kind != "cuda":
            continue
        module.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        for m, n, k in shapes.gemms:
            a = module.randn(m, k, device=device.kind).to(dtype(precision))
            b = module.randn(n, k, device=device.kind).to(dtype(precision))
            time = measured(partial(module.nn.functional.linear, a, b), device, shapes.effort)
            flop = 2.0 * m * n * k
            moved = width(precision) * (m * k + n * k + m * n)
            yield {
                "id": f"gemm-{precision}-{m}x{n}x{k}", "precision": precision, "m": str(m), "n": str(n), "k": str(k),
                "tflops_per_chip": f"{flop / time.seconds / 1e12:.6g}", "bytes": str(moved),
            } | timed(time)  # fmt: skip
    module.set_float32_matmul_precision("highest")


def copies(device: Device, shapes: Shapes) -> Iterator[Cells]:
    """Copies within device memory; every byte is read once and written once."""
    module = torch()
    for size in shapes.copies:
        source = module.zeros(size, dtype=module.uint8, device=device.kind)
        target = module.empty_like(source)
        time = measured(partial(target.copy_, source), device, shapes.effort)
        yield {
            "id": f"copy-{size}", "op": "device2device", "precision": "uint8", "shape": str(size),
            "achieved": f"{2.0 * size / time.seconds / 1e9:.6g}", "unit": "GB/s",
        } | timed(time)  # fmt: skip


def attention(device: Device, shapes: Shapes) -> Iterator[Cells]:
    """Causal attention over the keys of a prompt, and of one new token over a cache, by PyTorch's fused kernel."""
    module = torch()
    precision = "bf16" if device.kind == "cuda" else "fp32"
    for one in shapes.attention:
        queries, keys, values = operands(one, device, precision)
        decode = one.queries == 1

        fused = module.nn.functional.scaled_dot_product_attention
        call = partial(fused, queries, keys, values, is_causal=not decode, enable_gqa=True)
        time = measured(call, device, shapes.effort)
        phase = "decode" if decode else "prefill"
        pairs = one.keys - 0.5 * (one.queries - 1)
        flop = 4.0 * one.batch * one.heads * one.queries * pairs * one.size
        yield {
            "id": f"{phase}-{precision}-b{one.batch}-q{one.queries}-kv{one.keys}-h{one.heads}-{one.kv_heads}-d{one.size}",
            "phase": phase, "precision": precision, "kv_precision": precision, "batch": str(one.batch),
            "q_len": str(one.queries), "kv_len": str(one.keys), "heads": str(one.heads), "kv_heads": str(one.kv_heads),
            "head_dim": str(one.size), "causal": "no" if decode else "yes",
            "tflops_per_chip": f"{flop / time.seconds / 1e12:.6g}",
        } | timed(time)  # fmt: skip


def operands(one: AttentionShape, device: Device, precision: str) -> tuple[Any, Any, Any]:
    """Random queries, keys and values: batch, heads, tokens, size."""
    module = torch()
    sizes = ((one.heads, one.queries), (one.kv_heads, one.keys), (one.kv_heads, one.keys))
    q, k, v = (
        module.randn(one.batch, heads, tokens, one.size, device=device.kind).to(dtype(precision))
        for heads, tokens in sizes
    )
    return q, k, v


def timed(time: Timing) -> Cells:
    """The cells of a measured time."""
    return {"time_us": f"{1e6 * time.seconds:.6g}", "note": time.note}
