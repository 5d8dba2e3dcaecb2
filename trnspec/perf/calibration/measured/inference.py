"""Published measurements of serving: every row of a table as a case that can be computed, or skipped with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from typing import ClassVar

from attrs import evolve, frozen

from trnspec.errors import RefusalError, UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.measured import UNSTATED
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.fit_range import serving_inputs
from trnspec.perf.calibration.measured.case import ModelCase, Part, Skipped, cases
from trnspec.perf.calibration.measured.cells import Record, RowCells, dtype_of, first
from trnspec.perf.frameworks import SERVING, Setting
from trnspec.perf.lowering.machine import IDEAL, LoweredSystem, machine
from trnspec.perf.roofline import ELEMENT_BYTES
from trnspec.perf.serving.forward_pass import Deployment, Serving, context_at
from trnspec.perf.serving.request import serve
from trnspec.perf.serving.static_graphs import all_experts_from, compiled, narrow_shards, powers_of_two, tile_of
from trnspec.perf.work.transformer import transformer

FRAMEWORKS_OF_ROWS = (
    (r"optimum", "optimum-neuron"),
    (r"transformers.?neuronx", "transformers-neuronx"),
    (r"nxd|neuronx.?distributed|vllm.(on.)?neuron|neuron.?vllm", "nxd-inference"),
    (r"sglang", "sglang"),
    (r"trt.?llm|tensorrt", "trtllm"),
    (r"vllm", "vllm"),
)
"""Serving frameworks as rows name them: a pattern of id, software, framework, note and source, and the framework."""

ROUNDS = 4.0
"""Requests over users of a benchmark that sends them all at once, where a row does not state it.

Source: ``NUM_PROMPTS`` over ``--max-concurrency`` in the scripts of xniwangaws/NeuronStuff@48c4bc5.
"""

OUTPUT = 128.0
"""Output tokens where a row states none and they matter little: without prefill of other requests."""


@frozen(kw_only=True)
class InferenceCase(ModelCase):
    """One measurement of serving that can be computed.

    Attributes:
        plan: Its deployment and workload; ``prompts`` are those prefilled together.
        tpot: Measured time per output token [s]; 0 where none was published.
        ttft: Measured time to first token [s]; 0 where none was published, or where its prompt is not known.
        encoded: Measured time of one pass of an encoder over its batch [s]; 0 for a model that generates tokens.
        queued: Prefills of other requests that a request waits for, on average, before its own.
        interrupted: Whether prompts of other users were prefilled during decoding.
        host: Whether tokens were sampled on the host.
    """

    PARTS: ClassVar[Mapping[Part, str]] = {"tpot": "tpot", "ttft": "ttft", "encoder": "encoded"}

    plan: Deployment
    tpot: float
    ttft: float = 0.0
    encoded: float = 0.0
    queued: float = 0.0
    interrupted: bool = False
    host: bool = False

    @property
    def ranks(self) -> float:
        """Ranks of a replica."""
        return float(self.plan.tp * self.plan.pp)

    @property
    def inputs(self) -> dict[str, float]:
        """The inputs of a deployment."""
        return serving_inputs(self.dims, self.plan)

    @property
    def cluster(self) -> str:
        """Model, chip and framework: rows of one model are off in the same way, however many there are."""
        return f"{self.model} {self.chip} {self.framework}"


def inference_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[InferenceCase | Skipped]:
    """Every row of inference as a case, or as skipped."""
    return cases(graph, rows, "infer", partial(_case, _compiled_batches([RowCells(graph, row) for row in rows])))


def _compiled_batches(rows: Sequence[RowCells]) -> dict[tuple[str, str], int]:
    """For each server of Optimum Neuron the batch it was compiled for: the largest of its rows."""
    batches: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.get("kind") == "infer" and framework_of(row) == "optimum-neuron":
            batches[_server(row)] = max(batches.get(_server(row), 1), _replica_batch(row))
    return batches


def _server(row: RowCells) -> tuple[str, str]:
    return row.get("model"), row.get("hardware")


def _replica_batch(row: RowCells) -> int:
    """Concurrent sequences of a replica; those of the compiled graph where none are stated."""
    try:
        stated = row.integer("batch_conc") // (row.integer("dp") or 1)
        return max(1, stated or row.integer("batch_compiled"))
    except UsageError:
        # The row itself is skipped with this reason.
        return 1


def framework_of(row: RowCells) -> str:
    """The serving framework of a row, by the names of ``--framework``; empty if none is recognised."""
    named = first(FRAMEWORKS_OF_ROWS, row.texts("software", "framework", "id"))
    if named is None and not row.get("software"):
        named = first(FRAMEWORKS_OF_ROWS, row.texts("note", "source"))
    return named or ""


def _era(row: RowCells) -> str:
    """The year in which a row was measured: its date, a date in its name, or the year of its release."""
    for column in ("date", "id", "note"):
        match = re.search(r"\b20[12]\d(?=-|\b)", row.get(column))
        if match:
            return match[0]
    release = re.search(r"Neuron (\d+\.\d+)", row.get("note"))
    return RELEASES.get(release[1], "") if release else ""


RELEASES = {"2.16": "2023", "2.17": "2024", "2.18": "2024", "2.19": "2024", "2.20": "2024"}
"""Years of releases of the Neuron SDK, for rows that state no date."""

_DRAFT = re.compile(r"spec(ulative)?[ ._-]?dec|speculat|draft|eagle|medusa|\bmtp\b", re.IGNORECASE)


def _check_speculation(row: RowCells) -> None:
    stated = row.get("speculation").strip()
    if stated.lower() not in UNSTATED and stated.lower() not in ("none", "no", "off"):
        raise UsageError(
            f"speculative decoding ({stated}); neither the acceptance nor the draft's dimensions are stated"
        )
    match = _DRAFT.search(row.texts("model")) or re.search(r"fused spec|with spec|draft model", row.texts("note"))
    if match is not None:
        raise UsageError("speculative decoding; neither the acceptance nor the draft's dimensions are stated")


@frozen
class _Times:
    """Measured times [s], 0 where there is none, and the lengths of a request."""

    tpot: float
    ttft: float
    prompt: float
    output: float
    encoded: float = 0.0


def _encoded(row: RowCells) -> _Times:
    """The time of one pass of an encoder: its median latency, of the sequences of a batch on one rank."""
    latency, prompt = row.number("lat_p50_ms") * 1e-3, float(row.integer("seq"))
    if not latency:
        raise UsageError("the row states no time per output token; of an encoder, no latency")
    if not prompt:
        raise UsageError("the row states no seq, which is what an encoder computes")
    return _Times(0.0, 0.0, prompt, 1.0, latency)


def _times(row: RowCells, *, interrupted: bool) -> _Times:
    """The measured times of a row, as far as the lengths that it states are enough to compute them.

    Without a prompt the compiled lengths are used: prefill computes its whole bucket, and decoding reads its own.
    """
    tpot, ttft = (row.number(column) * 1e-3 for column in ("tpot_ms", "ttft_ms"))
    if not (tpot or ttft):
        return _encoded(row)
    prompt, output = float(row.integer("isl")), float(row.integer("osl"))
    context, decoded = (max(_buckets(row, column), default=0) for column in ("ctx_bucket", "tkg_bucket"))
    if not output:
        if interrupted and tpot:
            raise UsageError("the row states no osl, over which prefill of other requests is distributed")
        output = min(OUTPUT, 0.5 * decoded or OUTPUT)
    if not prompt:
        if not (context or decoded):
            raise UsageError("the row states no isl")
        # The bucket of decoding holds prompt and output.
        prompt = float(min(context or decoded, max(decoded - output, 1.0) if decoded else context))
        ttft = ttft if context else 0.0
        if not (tpot or ttft):
            raise UsageError("the row states no isl")
    return _Times(tpot, ttft, prompt, output)


def _case(compiled_batches: dict[tuple[str, str], int], row: RowCells) -> InferenceCase:
    status = (row.get("status") or "ok").strip()
    if status.lower() != "ok":
        raise UsageError(f"it did not run: {status}")
    _check_speculation(row)
    framework = framework_of(row)
    optimum = framework == "optimum-neuron"
    # Of a server for several users, one of whom sends requests.
    replica_batch = 1 if re.search(r"one user on a server", row.texts("note")) else _replica_batch(row)
    if not optimum and _CONTINUOUS.search(row.texts(*_DESCRIBED)) is None:
        continuous = False
    else:
        continuous = replica_batch > 1 and not (
            optimum and "synchronous" in re.sub("asynchronous", "", row.name.lower())
        )
    times = _times(row, interrupted=continuous)
    model, dims = row.model()
    if model not in row.graph and not row.integer("ffn"):
        raise UsageError(f"the catalog has no model like {model!r}, and the row states no ffn")
    if not dims.causal and not times.encoded:
        raise UsageError(f"{model} is an encoder and generates no tokens")
    if dims.causal and times.encoded:
        raise UsageError("the row states no time per output token")
    # Encoders run in parallel on the data, each copy on one rank, unless a row states otherwise.
    tp, dp = row.integer("tp", needed=not times.encoded) or 1, row.integer("dp") or 1
    system = _system(row, tp * dp)
    if tp * dp > system.ranks:
        raise RefusalError("rank-count", f"tp {tp} x dp {dp} exceeds the {system.ranks:g} ranks of {system.name}")
    if continuous and not (row.integer("batch_compiled") or optimum):
        raise UsageError("the row states the requests in flight, of which some may wait, and not the batch that runs")
    precision = row.cell("precision")
    settings = SERVING[framework].settings if framework in SERVING and system.lnc else {}
    attention = settings["prefill_attention"].value if "prefill_attention" in settings else None
    compiled_batch = compiled_batches.get(_server(row), 0) if optimum else row.integer("batch_compiled")
    row.integer("batch_conc", needed=not compiled_batch)
    if continuous and 0 < compiled_batch < replica_batch:
        # Others wait for one of these to finish, which is not modelled.
        replica_batch, times = compiled_batch, evolve(times, ttft=0.0)
    waiting = continuous and "asynchronous" not in row.name.lower()
    plan = Deployment(
        tp=float(tp),
        dp=float(dp),
        batch=float(replica_batch),
        compiled_batch=float(max(compiled_batch, replica_batch)) if compiled_batch else 0.0,
        prompts=1.0 if continuous else float(replica_batch),
        prompt=times.prompt,
        output=times.output,
        all_experts_from=all_experts_from(str(settings["experts"].value) if "experts" in settings else None, dims),
        flash=float(attention == "flash"),
        materialized=float(attention == "materialized"),
        single_core=float(system.sharing > 1.0),
        weight_bytes=_NARROW if times.encoded and precision.endswith("/w:") else _weight_bytes(precision),
        cache_bytes=_cache_bytes(row),
    )
    plan = _compiled(row, dims, system, settings, plan)
    dtype = _dtype(precision, system)
    _check_links(dims, plan, system, dtype)
    return InferenceCase(
        model=model,
        framework=framework,
        era=_era(row),
        dims=dims,
        system=system,
        plan=plan,
        dtype=dtype,
        tpot=times.tpot,
        ttft=times.ttft,
        encoded=times.encoded,
        queued=0.5 * (replica_batch - 1.0) / ROUNDS if waiting else 0.0,
        interrupted=continuous,
        host=optimum and "cpu" in row.name.lower(),
        source_text=row.texts("source", "note", "precision"),
    )


def _system(row: RowCells, ranks: int) -> LoweredSystem:
    """The system of a row; with logical cores of one physical core where those of two are too few and none are stated."""
    share = row.number("n_chips")
    # Of a part of a chip the other cores are idle.
    chips = 1 if 0.0 < share < 1.0 else row.integer("n_chips", needed=bool(row.cell("hardware")))
    lnc = row.integer("lnc") or None
    system = row.hardware(chips, lnc=lnc)
    if lnc is None and system.lnc == _TWO and system.ranks < ranks <= system.ranks * system.lnc:
        system = row.hardware(chips, lnc=1)
    return system


_TWO = 2.0
"""Physical cores of a logical core, by default from Trainium2 on."""


def _dtype(precision: str, system: LoweredSystem) -> str:
    """The compute dtype: of ``bf16/w:mxfp4`` the first; 16 bit where Neuron has no rate for that of the weights."""
    try:
        return dtype_of(precision.split("/w:", maxsplit=1)[0], system)
    except RefusalError:
        if not system.lnc:
            raise
        return "bf16"


def _compiled(
    row: RowCells, dims: Dimensions, system: LoweredSystem, settings: Mapping[str, Setting], plan: Deployment
) -> Deployment:
    """A deployment with the graphs of a Neuron framework: narrow shards, and the buckets that the row states."""
    model = transformer(dims)
    tile = tile_of(row.graph, system.chip) if "tile" in settings else None
    if tile is not None:
        ep = row.integer("ep") or 1
        plan = narrow_shards(dims, model, plan, float(tile), ep if plan.tp % ep == 0 else 1)
    if "context_buckets" not in settings:
        return plan
    end = plan.prompt + plan.output
    default = powers_of_two(int(settings["context_buckets"].value), ceil(end))
    plan = compiled(model, plan, default)
    if decoded := _buckets(row, "tkg_bucket"):
        longest = _holding(end, decoded)
        keys = context_at(model, longest)
        plan = evolve(
            plan, compiled_context=longest, compiled_keys=keys.full, compiled_window=keys.window,
            compiled_chosen=keys.chosen, compiled_first=longest, compiled_last=longest,
        )  # fmt: skip
    if context := _buckets(row, "ctx_bucket"):
        width = _holding(plan.prompt, context)
        plan = evolve(plan, compiled_tokens=width, compiled_prompt=width)
    return plan


def _buckets(row: RowCells, column: str) -> tuple[int, ...]:
    """The compiled lengths of a row in increasing order: of its cell, or of a list in its note that has the one in the cell."""
    sizes = row.sizes(column)
    for text in re.findall(_LISTED, row.get("note")):
        listed = {int(number) for number in re.findall(r"\d+", text)}
        if listed.issuperset(sizes) and sizes:
            return tuple(sorted(listed))
    return sizes


_LISTED = r"buckets[\s:=(\[]*(\d+(?:[\s,/]+(?:and )?\d+)+)"
"""Buckets as notes list them: ``buckets [512, 4096]`` or ``buckets 512 and 4096``."""


def _holding(size: float, buckets: Sequence[int]) -> float:
    """The smallest bucket that holds a size; the size itself where none does."""
    return next((float(one) for one in buckets if one >= size), float(size))


_CONTINUOUS = re.compile(r"vllm|continuous|bench serve|sglang|trtllm|tensorrt", re.IGNORECASE)
"""Servers that replace a finished request by a new one; the first token of a request then waits for other prompts."""

_DESCRIBED = ("software", "framework", "schedule", "note")


def _check_links(dims: Dimensions, plan: Deployment, system: LoweredSystem, dtype: str) -> None:
    """Reject deployments that use a link without a published rate, which would count as taking no time."""
    if serve(transformer(dims), plan, machine(system, IDEAL, dtype), Serving()).unknown > 0.0:
        raise RefusalError("unknown-figure", f"the layout needs a link of {system.name} whose rate is not published")


_NARROW = 2.0
"""Bytes of a weight where a table leaves open whether the compiler stores weights as it multiplies them, or in 32 bit."""


def _weight_bytes(precision: str) -> float:
    """Bytes of a stored weight: int8 for ``FP16/Matmult-BF16/w:int8``, the dtype itself where only one is stated."""
    match = re.search(r"w:([a-z0-9]+)", precision.lower()) or re.fullmatch(r"([a-z0-9]+)", precision.lower())
    name = "" if match is None else _STORED.get(match[1], match[1])
    if name not in ELEMENT_BYTES:
        raise UsageError(f"{precision!r} does not state the dtype of stored weights")
    return ELEMENT_BYTES[name]


_STORED = {"fp4": "mxfp4", "nvfp4": "mxfp4", "int4": "mxfp4", "f8e4m3": "fp8", "e4m3": "fp8"}
"""Other names of dtypes of stored elements; those of 4 bit have a scale for each block."""


def _cache_bytes(row: RowCells) -> float:
    """Bytes of an element of the KV cache: 16 bit where none is stated."""
    text = row.get("kv_precision").strip().lower()
    if text in UNSTATED:
        return 2.0
    if (name := _STORED.get(text, text)) not in ELEMENT_BYTES:
        raise UsageError(f"kv_precision is {text!r}, which is not a dtype")
    return ELEMENT_BYTES[name]
