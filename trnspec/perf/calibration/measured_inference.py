"""Published measurements of serving: every row of a table as a case that can be computed, or skipped with a reason."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.result import RefusalError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.measurements import cases, cell, dtype_of, hardware, integer, model_of, number
from trnspec.perf.lowering.efficiency import IDEAL
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import System
from trnspec.perf.roofline import ELEMENT_BYTES
from trnspec.perf.serving.forward_pass import Deployment, Serving
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measurements import Record, Skipped

OPTIMUM = "Optimum Neuron"
"""The server whose rows serve several users at once; rows of the vendor's own libraries run one batch."""

SOFTWARE = ("Transformers NeuronX", "NeuronX Distributed")
"""The vendor's libraries, as the notes of rows name them."""


@frozen(kw_only=True)
class InferenceCase:
    """One measurement of serving that can be computed.

    Attributes:
        id: Name of the row.
        model: Name of the model, for grouping.
        software: The software that ran.
        dims: Dimensions of the model.
        system: The system it ran on.
        plan: Its deployment and workload; ``prompts`` are those prefilled together.
        dtype: Compute dtype of matrix multiplications.
        tpot: Measured time per output token [s].
        ttft: Measured time to first token [s]; 0 where none was published, or where it includes queueing.
        interrupted: Whether prompts of other users were prefilled during decoding.
        host: Whether tokens were sampled on the host.
        assumptions: What the row does not state, and what is assumed.
        source_text: Source, note and precision of the row.
    """

    id: str
    model: str
    software: str
    dims: Dimensions = field(repr=False)
    system: System = field(repr=False)
    plan: Deployment
    dtype: str
    tpot: float
    ttft: float = 0.0
    interrupted: bool = False
    host: bool = False
    assumptions: tuple[str, ...] = ()
    source_text: str = ""


def inference_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[InferenceCase | Skipped]:
    """Every row of inference as a case, or as skipped."""
    return cases(rows, "infer", partial(_case, graph, _compiled_batches(rows)))


def _compiled_batches(rows: Sequence[Record]) -> dict[tuple[str, str], int]:
    """For each server of Optimum Neuron the batch it was compiled for: the largest of its rows."""
    batches: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.get("kind") == "infer" and _software(row) == OPTIMUM:
            batches[_server(row)] = max(batches.get(_server(row), 1), _replica_batch(row))
    return batches


def _server(row: Record) -> tuple[str, str]:
    return row.get("model", ""), row.get("hardware", "")


def _replica_batch(row: Record) -> int:
    """Concurrent sequences of a replica."""
    try:
        return max(1, integer(row, "batch_conc") // (integer(row, "dp") or 1))
    except UsageError:
        # The row itself is skipped with this reason.
        return 1


def _software(row: Record) -> str:
    if "optimum" in (row.get("source") or "").lower() or row.get("id", "").startswith("optimum"):
        return OPTIMUM
    note = row.get("note") or ""
    return next((name for name in SOFTWARE if name.lower() in note.lower()), note.split(";")[0])


def _case(graph: Graph, compiled_batches: dict[tuple[str, str], int], row: Record, name: str) -> InferenceCase:
    tpot, ttft = (number(row, column) * 1e-3 for column in ("tpot_ms", "ttft_ms"))
    if not tpot:
        raise UsageError("the row states no time per output token; an encoder has none")
    assumptions: list[str] = []
    model, dims = model_of(graph, row, assumptions)
    if not dims.causal:
        raise UsageError(f"{model} is an encoder and generates no tokens")
    system = hardware(graph, cell(row, "hardware"), integer(row, "n_chips", needed=True), assumptions)
    tp, dp = integer(row, "tp", needed=True), integer(row, "dp") or 1
    if tp * dp > system.ranks:
        raise RefusalError("rank-count", f"tp {tp} x dp {dp} exceeds the {system.ranks:g} ranks of {system.name}")
    integer(row, "batch_conc", needed=True)
    replica_batch = _replica_batch(row)
    software = _software(row)
    lower_name = name.lower()
    queued = software == OPTIMUM and ("throughput" in lower_name or "asynchronous" in lower_name)
    batch = replica_batch
    if software == OPTIMUM:
        # It decodes the compiled batch, whatever the number of requests.
        batch = compiled_batches[_server(row)]
        assumptions.append(f"batch: {batch}, the largest batch in rows of its server")
    continuous = not queued and batch > 1 and _CONTINUOUS.search(_described(row)) is not None
    if continuous and not integer(row, "batch_compiled"):
        raise UsageError("the row states the requests in flight, of which some may wait, and not the batch that runs")
    if queued or continuous:
        assumptions.append("time to first token: not used, since it includes queueing")
    precision = cell(row, "precision")
    plan = Deployment(
        tp=float(tp),
        dp=float(dp),
        batch=float(batch),
        prompts=float(replica_batch if software != OPTIMUM and not continuous else 1),
        prompt=float(integer(row, "isl", needed=True)),
        output=float(integer(row, "osl", needed=True)),
        weight_bytes=_weight_bytes(precision),
    )
    dtype = dtype_of(precision, system)
    _check_links(dims, plan, system, dtype)
    return InferenceCase(
        id=name,
        model=model,
        software=software,
        dims=dims,
        system=system,
        plan=plan,
        dtype=dtype,
        tpot=tpot,
        ttft=0.0 if queued or continuous else ttft,
        interrupted=queued or continuous,
        host=software == OPTIMUM and "cpu" in lower_name,
        assumptions=tuple(assumptions),
        source_text=" ".join(row.get(column) or "" for column in ("source", "note", "precision")),
    )


_CONTINUOUS = re.compile(r"vllm|continuous|bench serve|sglang|trtllm|tensorrt", re.IGNORECASE)
"""Servers that replace a finished request by a new one; the first token of a request then waits for other prompts."""


def _described(row: Record) -> str:
    return " ".join(row.get(column) or "" for column in ("software", "framework", "schedule", "note"))


def _check_links(dims: Dimensions, plan: Deployment, system: System, dtype: str) -> None:
    """Reject deployments that use a link without a published rate, which would count as taking no time."""
    if serve(transformer(dims), plan, machine(system, IDEAL, dtype), Serving()).unknown > 0.0:
        raise RefusalError("unknown-figure", f"the layout needs a link of {system.name} whose rate is not published")


def _weight_bytes(precision: str) -> float:
    """Bytes of a stored weight: int8 for ``FP16/Matmult-BF16/w:int8``, the dtype itself where only one is stated."""
    match = re.search(r"w:([a-z0-9]+)", precision.lower()) or re.fullmatch(r"([a-z0-9]+)", precision.lower())
    if match is None or match[1] not in ELEMENT_BYTES:
        raise UsageError(f"{precision!r} does not state the dtype of stored weights")
    return ELEMENT_BYTES[match[1]]
