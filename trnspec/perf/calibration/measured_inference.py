"""Published measurements of serving, read from CSV: each row a deployment with its times, or a reason why it is none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.errors import TrnspecError, UsageError
from trnspec.evaluation.result import RefusalError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.measured_training import Skipped, cell, dtype_of, hardware, model_of, number, whole
from trnspec.perf.lowering.efficiency import IDEAL
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import System
from trnspec.perf.roofline import ELEMENT_BYTES
from trnspec.perf.serving.forward_pass import Deployment, Serving
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured_training import Record

OPTIMUM = "Optimum Neuron"
"""The server whose rows are of many users at once; those of the vendor's own libraries are of one batch."""

SOFTWARE = ("Transformers NeuronX", "NeuronX Distributed")
"""What the notes of rows call the vendor's libraries."""


@frozen(kw_only=True)
class InferenceCase:
    """One measurement of serving that can be computed.

    Attributes:
        id: What the row is called.
        model: The name of the model, for grouping.
        software: What ran.
        dims: Its dimensions.
        system: What it ran on.
        plan: How it was laid out, and what was asked; ``prompts`` are those computed together.
        dtype: What matrices were multiplied in.
        token: The measured time per output token, in s.
        first: The measured time to the first token, in s; 0 where none was published, or where it holds a queue.
        interrupted: Whether the prompts of other users were computed while tokens were made.
        host: Whether tokens were picked on the host.
        assumptions: What the row leaves open, and what was taken for it.
        source_text: Source and note of the row.
    """

    id: str
    model: str
    software: str
    dims: Dimensions = field(repr=False)
    system: System = field(repr=False)
    plan: Deployment
    dtype: str
    token: float
    first: float = 0.0
    interrupted: bool = False
    host: bool = False
    assumptions: tuple[str, ...] = ()
    source_text: str = ""


def inference_cases(graph: Graph, rows: list[Record]) -> Iterator[InferenceCase | Skipped]:
    """Every row of inference as a case, or as one that is skipped."""
    most = _most(rows)
    for line, row in enumerate(rows, 2):
        if row.get("kind") == "infer":
            name = row.get("id") or f"line {line}"
            try:
                yield _case(graph, row, name, most)
            except TrnspecError as error:
                yield Skipped(name, str(error.args[0]))


def _most(rows: list[Record]) -> dict[tuple[str, str], int]:
    """The most sequences of a replica that any row of a server asks for: what it was compiled for."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.get("kind") == "infer" and _software(row) == OPTIMUM:
            found[_server(row)] = max(found.get(_server(row), 1), _each(row))
    return found


def _server(row: Record) -> tuple[str, str]:
    return row.get("model", ""), row.get("hardware", "")


def _each(row: Record) -> int:
    """Sequences that a replica has at once."""
    try:
        return max(1, whole(row, "batch_conc") // (whole(row, "dp") or 1))
    except UsageError:
        # The row itself is skipped for it.
        return 1


def _software(row: Record) -> str:
    if "optimum" in (row.get("source") or "").lower() or row.get("id", "").startswith("optimum"):
        return OPTIMUM
    note = row.get("note") or ""
    return next((name for name in SOFTWARE if name.lower() in note.lower()), note.split(";")[0])


def _case(graph: Graph, row: Record, name: str, most: dict[tuple[str, str], int]) -> InferenceCase:
    token, first = (number(row, column) * 1e-3 for column in ("tpot_ms", "ttft_ms"))
    if not token:
        raise UsageError("the row states no time per output token; an encoder makes none")
    told: list[str] = []
    model, dims = model_of(graph, row, told)
    if not dims.causal:
        raise UsageError(f"{model} sees all of its input at once and makes no tokens")
    system = hardware(graph, cell(row, "hardware"), whole(row, "n_chips", needed=True), told)
    tp, dp = whole(row, "tp", needed=True), whole(row, "dp") or 1
    if tp * dp > system.ranks:
        raise RefusalError("rank-count", f"tp {tp} x dp {dp} are more than the {system.ranks:g} ranks of {system.name}")
    whole(row, "batch_conc", needed=True)
    asked = _each(row)
    software = _software(row)
    words = name.lower()
    queued = software == OPTIMUM and ("throughput" in words or "asynchronous" in words)
    batch = asked
    if software == OPTIMUM:
        # What it makes tokens for does not depend on how many are asked for.
        batch = most[_server(row)]
        told.append(f"batch: {batch}, the most that a row of its server asks for")
    if queued:
        told.append("time to first token: left out, for requests wait in a queue")
    precision = cell(row, "precision")
    plan = Deployment(
        tp=float(tp),
        dp=float(dp),
        batch=float(batch),
        prompts=float(asked if software != OPTIMUM else 1),
        prompt=float(whole(row, "isl", needed=True)),
        output=float(whole(row, "osl", needed=True)),
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
        token=token,
        first=0.0 if queued else first,
        interrupted=queued,
        host=software == OPTIMUM and "cpu" in words,
        assumptions=tuple(told),
        source_text=" ".join(row.get(column) or "" for column in ("source", "note", "precision")),
    )


def _check_links(dims: Dimensions, plan: Deployment, system: System, dtype: str) -> None:
    """Nothing is fitted through a link whose rate is not published: it would pass for one that takes no time."""
    if serve(transformer(dims), plan, machine(system, IDEAL, dtype), Serving()).unknown > 0.0:
        raise RefusalError("unknown-figure", f"the layout needs a link of {system.name} whose rate is not published")


def _weight_bytes(precision: str) -> float:
    """What ``FP16/Matmult-BF16/w:int8`` stores a weight in; of a word alone, that."""
    found = re.search(r"w:([a-z0-9]+)", precision.lower()) or re.fullmatch(r"([a-z0-9]+)", precision.lower())
    if found is None or found[1] not in ELEMENT_BYTES:
        raise UsageError(f"{precision!r} does not say what weights are stored in")
    return ELEMENT_BYTES[found[1]]
