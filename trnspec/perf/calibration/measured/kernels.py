"""Published measurements of kernels on one chip: every row as a case that can be computed, or skipped with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.perf.calibration.measured.case import Case, Part, Skipped, cases
from trnspec.perf.calibration.measured.cells import Record, RowCells, chip_of, dtype_of
from trnspec.perf.kernels.times import Roof, attention_decode, attention_prefill, expert_layer, experts_hit, gemm
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import LoweredSystem

FRAMEWORK = "torch"
"""The framework of rows that state none: matrix multiplications of PyTorch."""

STORED = {"int4_wo": 0.5 + 1.0 / 64.0, "nvfp4": 0.5 + 1.0 / 16.0, "mxfp4": 0.5 + 1.0 / 32.0, "fp8": 1.0, "int8": 1.0}
"""Bytes of an element of an operand, or of a stored weight, scales included; of others 2, by a part of the precision."""


@frozen(kw_only=True)
class KernelCase(Case):
    """One measurement of a kernel.

    Attributes:
        part: What was measured.
        chip: Name of the chip.
        precision: Its precision, as the row states it.
        family: Rows of one family have a shape in common and are held out together.
        seconds: Measured time [s].
        shape: The inputs of its formula in :mod:`trnspec.perf.kernels.times`, the time of one FLOP and of one byte included.
    """

    part: Part
    chip: str
    precision: str
    family: str
    seconds: float
    shape: Mapping[str, float] = field(repr=False)

    def measured(self, part: Part) -> float:
        """The measured time of its part [s]."""
        return self.seconds if part == self.part else 0.0


FORMULAS: Mapping[str, Any] = {
    "gemm": gemm,
    "attention_prefill": attention_prefill,
    "attention_decode": attention_decode,
    "moe": expert_layer,
}
"""The formula of each kernel."""


@frozen
class KernelRuns:
    """Cases of one kernel as arrays."""

    part: Part
    shape: Mapping[str, Any]

    @classmethod
    def of(cls, part: Part, cases: Sequence[KernelCase]) -> KernelRuns:
        """Cases of one kernel as arrays."""
        return cls(part, {n: np.array([c.shape[n] for c in cases]) for n in cases[0].shape})

    def times(self, values: Mapping[str, Any]) -> dict[Part, Any]:
        """The computed times [s]; ``values`` are those of :class:`~trnspec.perf.kernels.times.Roof`."""
        return {self.part: FORMULAS[self.part](**self.shape, roof=Roof(**values))}


def kernel_cases(graph: Graph, rows: Sequence[Record], kind: str) -> list[KernelCase | Skipped]:
    """Every row of a kind of kernel, ``matmul``, ``attention`` or ``moe``, as a case, or as skipped.

    A row faster than the peak rate and the rate of the device memory allow is skipped, unless its operands fit the cache.
    """
    return list(cases(graph, rows, kind, partial(_case, _READERS[kind])))


def _case(read: Any, row: RowCells) -> KernelCase:
    chip = chip_of(row.graph, row.cell("hardware"), "matmul")
    system = _on(row.graph, chip)
    if not system.bandwidth:
        raise UsageError(f"{chip} has no published memory bandwidth")
    precision = row.cell("precision").strip().lower()
    dtype = dtype_of(_arithmetic(precision), system)
    part, family, shape, work = read(row)
    # The figures are those of the chip; a rank may be a part of it.
    shape |= {
        "flop": 1.0 / (system.rate(dtype) * system.ranks_per_chip),
        "byte": 1.0 / (system.bandwidth * system.ranks_per_chip),
    }
    measured, rate = row.number("time_us") * 1e-6, row.number("tflops_per_chip")
    if not measured and rate:
        measured = work / (rate * 1e12)
    if not measured:
        raise UsageError("the row states neither a time nor a rate")
    return KernelCase(
        part=part, chip=chip, framework=(row.get("framework") or FRAMEWORK).strip().lower(), precision=precision,
        family=family, seconds=measured, shape=shape,
    )  # fmt: skip


@cached_by_graph
def _on(graph: Graph, chip: str) -> LoweredSystem:
    return lower(graph, chip)


def _arithmetic(precision: str) -> str:
    """The precision of the arithmetic: 16 bit where only weights are narrow, 8 bit with MXFP8 activations."""
    if "a16" in precision or precision.endswith("_wo"):
        return "bf16"
    return "fp8" if "a8" in precision else precision


def _stored(precision: str) -> float:
    return next((size for part, size in STORED.items() if part in precision), 2.0)


def _gemm(row: RowCells) -> tuple[Part, str, dict[str, float], float]:
    sizes = [float(row.integer(name)) for name in "mnk"]
    if not all(sizes):
        shape = re.search(r"([1-9][0-9]*)x([1-9][0-9]*)x([1-9][0-9]*)", row.cell("model"))
        if shape is None:
            raise UsageError(f"{row.get('model')!r} is not a shape, such as 4096x4096x4096")
        sizes = [float(shape[i]) for i in (1, 2, 3)]
    m, n, k = sizes
    element = _stored(row.cell("precision").lower())
    # Tables that state a kernel include quantizing the left operand; records of the best rate do not.
    quantized = float(element < 2.0 and bool(row.get("kernel")))
    work = 2.0 * m * n * k
    return "gemm", f"{n:g}x{k:g}", {"m": m, "n": n, "k": k, "element": element, "quantized": quantized}, work


def _attention(row: RowCells) -> tuple[Part, str, dict[str, float], float]:
    batch, q, kv, heads, kv_heads, size = (
        float(row.integer(name, needed=True)) for name in ("batch", "q_len", "kv_len", "heads", "kv_heads", "head_dim")
    )
    element = _stored((row.get("kv_precision") or row.cell("precision")).lower())
    family = f"{heads:g} {kv_heads:g} {size:g}"
    shape = {"batch": batch, "kv": kv, "heads": heads, "kv_heads": kv_heads, "size": size, "element": element}
    decode = row.get("phase").strip() == "decode" or q == 1.0
    if decode:
        return "attention_decode", family, shape, 4.0 * batch * heads * kv * size
    return "attention_prefill", family, {**shape, "q": q}, 4.0 * batch * heads * q * (kv - 0.5 * (q - 1.0)) * size


def _moe(row: RowCells) -> tuple[Part, str, dict[str, float], float]:
    tokens, hidden, ffn, topk, experts = (
        float(row.integer(name, needed=True)) for name in ("tokens", "hidden", "expert_ffn", "topk", "experts")
    )
    tp, ep = (float(row.integer(name) or 1) for name in ("tp", "ep"))
    pairs = max(tokens * topk / ep, 1.0)
    routing = row.get("routing").strip()
    hit = float(experts_hit(experts / ep, pairs, balanced=float(routing == "balanced")))
    width = ffn / tp
    family = f"{hidden:g} {ffn:g} {experts:g}"
    shape = {
        "tokens": tokens, "pairs": pairs, "hit": hit, "hidden": hidden, "width": width,
        "stored": _stored(row.cell("precision").lower()),
    }  # fmt: skip
    return "moe", family, shape, 6.0 * pairs * hidden * width


_READERS = {"matmul": _gemm, "attention": _attention, "moe": _moe}
