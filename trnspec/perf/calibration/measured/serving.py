"""Published measurements of serving on GPUs with requests in flight: every row as a case, or skipped with a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.perf.calibration.fits.search import stacked
from trnspec.perf.calibration.measured.case import Part, Skipped, cases
from trnspec.perf.calibration.measured.cells import Record, RowCells, dtype_of, first
from trnspec.perf.calibration.measured.inference import FRAMEWORKS_OF_ROWS, InferenceCase
from trnspec.perf.frameworks import SERVING
from trnspec.perf.lowering.machine import IDEAL, Efficiency, LoweredSystem, Machine, machine
from trnspec.perf.serving.forward_pass import Deployment, Serving
from trnspec.perf.serving.in_flight import InFlight, in_flight, most_running
from trnspec.perf.training.step import UNUSED
from trnspec.perf.work.transformer import Transformer, transformer

WEIGHTS = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5 + 1.0 / 64.0, "nvfp4": 0.5 + 1.0 / 16.0}
WEIGHTS |= {"mxfp4": 0.5 + 1.0 / 32.0, "fp4": 0.5 + 1.0 / 16.0, "mxfp8": 1.0 + 1.0 / 32.0}
"""Bytes of a stored weight, scales included: one of 16 bit for 32 elements of int4 (compressed-tensors), one of 8 bit for 16
of NVFP4 and for 32 of MXFP4."""

OVERLOADED = 30.0
"""Time to first token [s] from which on a server is overloaded: the time then depends on how long the client sent."""

FEW, NOT_AS_STATED = 3, 0.25
"""Least number, and least share, of the rows of a sweep below their bounds that say that its conditions are not those stated."""

_TOLERANCE = 1.05
"""Tolerance of a time below its bound, since the number of requests that run varies."""

_NEURON = re.compile(r"trn[0-9]|inf[0-9]|trainium|inferentia", re.IGNORECASE)


@frozen(kw_only=True)
class ServingCase(InferenceCase):
    """A measurement with requests in flight; times to first token include queueing.

    Attributes:
        requests: Requests in flight of a replica.
        separate: Whether prefill ran on other chips.
        cache_known: Whether the row states the dtype of the KV cache, or its model is in 16 bit.
    """

    requests: float = 1.0
    separate: bool = False
    cache_known: bool = True

    @property
    def cluster(self) -> str:
        """Model, hardware, deployment and load; most chips and frameworks have rows of one or two models."""
        names = ("tp", "ep", "dp", "prompt", "output", "weight_bytes")
        return " ".join(
            map(str, (self.model, self.system.name, *(getattr(self.plan, n) for n in names), self.requests))
        )


def on_gpu(row: Record) -> bool:
    """Whether a row is of serving on a GPU, with requests in flight."""
    return row.get("kind") == "infer" and not _NEURON.search(row.get("hardware") or "")


def serving_cases(graph: Graph, rows: Sequence[Record]) -> list[ServingCase | Skipped]:
    """Every row of serving on GPUs as a case, or as skipped.

    A row whose time per output token is below its lower bound is skipped: fewer requests were running than in flight, or
    prompts came from a prefix cache.  If these are many of the rows of a sweep, one table of one model on one chip, then its other
    rows are skipped too: they were measured in the same way, and are only far enough above the bound by their shape.
    """
    mine = [row if on_gpu(row) else {**row, "kind": ""} for row in rows]
    read = list(cases(graph, mine, "infer", _case))
    known = [c for c in read if isinstance(c, ServingCase)]
    if not known:
        return read
    ideal = ServingRuns.of(known).run({})
    reasons: dict[str, str] = {}
    sweeps: dict[tuple[str, ...], list[str]] = {}
    for i, case in enumerate(known):
        sweep = case.system.chip, case.framework, case.model, str(case.plan.weight_bytes), case.source_text
        sweeps.setdefault(sweep, []).append(case.id)
        if ideal.unknown[i] > UNUSED:
            reasons[case.id] = f"the layout needs a link of {case.system.name} whose rate is not published"
        elif ideal.tpot[i] > _TOLERANCE * case.tpot:
            reasons[case.id] = (
                f"the time per output token is below its lower bound with {case.requests:g} requests in flight: "
                "fewer were running"
            )
    for names in sweeps.values():
        below = [name for name in names if name in reasons]
        if len(below) >= FEW and len(below) >= NOT_AS_STATED * len(names):
            reason = (
                f"of the {len(names)} rows of its sweep {len(below)} are below their lower bound: prompts came from a prefix cache, "
                "or fewer requests were running than stated"
            )
            reasons = dict.fromkeys(names, reason) | reasons
    return [Skipped(c.id, reasons[c.id]) if c.id in reasons else c for c in read]


def _case(row: RowCells) -> ServingCase:
    tpot, ttft = (row.number(column) * 1e-3 for column in ("tpot_ms", "ttft_ms"))
    if not tpot:
        raise UsageError("the row states no time per output token")
    if (row.get("speculative") or row.get("speculation") or "none").strip().lower() not in ("none", ""):
        raise UsageError("the row was measured with speculative decoding, whose acceptance it does not state")
    model, dims = row.model()
    framework = _framework(row)
    separate = row.get("mode") == "disagg"
    prefix = "decode_" if separate else ""
    tp, dp, ep = (row.integer(prefix + name) or 1 for name in ("tp", "dp", "ep"))
    if row.integer("pp") > 1:
        raise UsageError("the row has pipeline stages, whose schedule it does not state")
    system = row.hardware(tp * dp, of="infer")
    requests = row.integer("batch_conc", needed=True) / dp
    if separate:
        requests /= row.integer("decode_workers", needed=True)
    compute, stored = _precisions(row.cell("precision"))
    dtype = dtype_of("fp8" if compute == "mxfp4" else compute, system)
    cache = row.get("kv_precision").strip().lower()
    script = _cache_of_script(row, framework, dtype, system)
    if not cache:
        cache = script or ("bf16" if dtype in ("bf16", "fp16") else "fp8")
    if cache not in WEIGHTS:
        raise UsageError(f"unknown dtype of the KV cache {cache!r}")
    # Checkpoints in 4 bit have the routed experts in 4 bit, and all else in 16.
    narrow = dims.experts > 0 and WEIGHTS[stored] < 1.0
    share = _mean_length(row)
    prompt = max(1.0, share * row.integer("isl", needed=True))
    chunk = float(SERVING[framework].settings["chunk"].value)
    return ServingCase(
        model=model,
        framework=framework,
        dims=dims,
        system=system,
        plan=Deployment(
            tp=float(tp),
            dp=float(dp),
            # Experts on the ranks of a tensor-parallel group are as many weights and tokens as their columns on all.
            ep=float(min(ep, dp)),
            batch=max(1.0, round(requests)),
            prompt=prompt,
            output=max(1.0, share * row.integer("osl", needed=True)),
            passes=float(-(-prompt // chunk)),
            weight_bytes=WEIGHTS[stored],
            whole_bytes=2.0 if narrow else WEIGHTS[stored],
            head_bytes=2.0,
            cache_bytes=WEIGHTS[cache],
            narrow_whole=system.rate(dtype) / system.rate("bf16") - 1.0 if narrow else 0.0,
            flash=1.0,
        ),
        dtype=dtype,
        tpot=tpot,
        # The load of a separate pool of prefill is not modelled.
        ttft=0.0 if separate or ttft > OVERLOADED else ttft,
        interrupted=True,
        requests=requests,
        separate=separate,
        # Of a model that is not quantized servers keep the dtype for the cache; others are often started with 8 bit.
        cache_known=bool(row.get("kv_precision").strip() or script) or WEIGHTS[stored] == 2.0,
        source_text=row.texts("source", "note", "precision", "framework_version"),
    )


_LENGTHS = re.compile(r"uniform\s+([0-9.]+)\s*L\s*\.\.\s*L$")


def _mean_length(row: RowCells) -> float:
    """The mean of the lengths over the stated ones ``L``: 0.9 of ``uniform 0.8L..L``, otherwise 1."""
    match = _LENGTHS.fullmatch(row.get("length_rule").strip())
    return 0.5 * (1.0 + float(match[1])) if match else 1.0


def _cache_of_script(row: RowCells, framework: str, dtype: str, system: LoweredSystem) -> str:
    """The dtype of the KV cache in the scripts of InferenceX, whose rows have lengths from 0.8 L on; empty if unknown.

    vLLM keeps the 16 bit of the model by default.  The scripts ask for 8 bit on Blackwell, with weights in 8 bit from vLLM
    0.19 on; checkpoints in 4 bit state 8 themselves.  Those of TensorRT-LLM ask for the width of the compute dtype.
    Source: ``benchmarks/`` of SemiAnalysisAI/InferenceX in its history from 2025-11 to 2026-04.
    """
    release = tuple(int(part) for part in re.findall(r"[0-9]+", row.get("framework_version"))[:2])
    if _mean_length(row) == 1.0 or not (release or framework == "trtllm"):
        return ""
    stored = row.cell("precision").rpartition("/w:")[2].strip().lower()
    asked = framework != "vllm" or WEIGHTS[stored] < 1.0 or (release >= _EIGHT_BIT and "fp4" in system.rates)
    return "fp8" if asked and dtype not in ("bf16", "fp16") else "bf16"


_EIGHT_BIT = (0, 19)
"""The release of vLLM from which on scripts ask for a KV cache in 8 bit."""


def _framework(row: RowCells) -> str:
    each = (first(FRAMEWORKS_OF_ROWS, row.get(column)) for column in ("framework", "software", "note"))
    if (name := next(filter(None, each), None)) is None:
        raise UsageError("the row does not state the framework: vllm, sglang or trtllm")
    return name


def _precisions(text: str) -> tuple[str, str]:
    """Arithmetic and stored weights: ``bf16`` and ``mxfp4`` of ``bf16/w:mxfp4``."""
    compute, _, stored = text.strip().lower().partition("/w:")
    stored = stored or compute
    if stored not in WEIGHTS:
        raise UsageError(f"{text!r} does not state the dtype of stored weights")
    return compute, stored


@frozen
class ServingRuns:
    """Cases as arrays.

    Attributes:
        model: The transformers, one per row.
        plan: The deployments.
        machine: Compute and communication of a rank.
        requests: Requests in flight of a replica.
        most: Requests that can run at the same time.
        mixed: 1 where prompts and decoded tokens share passes.
        separate: 1 where prefill ran on other chips.
    """

    model: Transformer = field(repr=False)
    plan: Deployment = field(repr=False)
    machine: Machine = field(repr=False)
    requests: Any
    most: Any
    mixed: Any
    separate: Any

    @classmethod
    def of(cls, cases: Sequence[ServingCase], efficiency: Efficiency = IDEAL) -> ServingRuns:
        """Cases as arrays, on machines with some efficiency."""
        machines = {(c.system.name, c.dtype): machine(c.system, efficiency, c.dtype) for c in cases}
        models = {c.model: transformer(c.dims) for c in cases}
        model = stacked([models[c.model] for c in cases])
        plan = stacked([c.plan for c in cases])
        rank = stacked([machines[c.system.name, c.dtype] for c in cases])
        return cls(
            model,
            plan,
            rank,
            np.array([c.requests for c in cases]),
            most_running(model, plan, rank),
            np.array([float(SERVING[c.framework].mixed) for c in cases]),
            np.array([float(c.separate) for c in cases]),
        )

    def times(self, values: Mapping[str, Any]) -> dict[Part, Any]:
        """The computed times per output token and to first token [s], one per row."""
        found = self.run(values)
        return {"tpot": found.tpot, "ttft": found.ttft}

    def run(self, values: Mapping[str, Any]) -> InFlight:
        """Latency and throughput, one per row."""
        return in_flight(
            self.model, self.plan, self.machine, Serving(**values),
            requests=self.requests, most=self.most, mixed=self.mixed, separate=self.separate,
        )  # fmt: skip
