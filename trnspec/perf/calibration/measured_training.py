"""Published measurements of training: every row of a table as a case that can be computed, or skipped with a reason."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.result import RefusalError
from trnspec.loading.measured import UNSTATED
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.measurements import (
    cases,
    cell,
    dtype_of,
    flag,
    hardware,
    integer,
    model_of,
    number,
)
from trnspec.perf.experts import SOFTWARE_DISPATCH
from trnspec.perf.lowering.efficiency import IDEAL
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import System
from trnspec.perf.training.step import UNUSED, step
from trnspec.perf.work.flops import model_flops_per_token
from trnspec.perf.work.frameworks import ALLOCATED, Runtime, named_in, profile, runtime
from trnspec.perf.work.layout import Layout, Recompute, check, longest
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measurements import Record, Skipped


@frozen(kw_only=True)
class Case:
    """One measurement of a training step that can be computed.

    Attributes:
        id: Name of the row.
        model: Name of the model, for grouping.
        dims: Dimensions of the model.
        system: The system it ran on.
        layout: Its layout.
        dtype: Compute dtype of matrix multiplications.
        seconds: Measured time of a step [s].
        memory: Measured memory of a rank [B]; 0 where none was published.
        assumptions: What the row does not state, and what is assumed.
        source_text: Source, note and precision of the row.
        runtime: What the framework needs of memory besides the layout; measured memory has no reserve.
    """

    id: str
    model: str
    dims: Dimensions = field(repr=False)
    system: System = field(repr=False)
    layout: Layout
    dtype: str
    seconds: float
    memory: float = 0.0
    assumptions: tuple[str, ...] = ()
    source_text: str = ""
    runtime: Runtime = ALLOCATED


def training_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[Case | Skipped]:
    """Every row of training as a case, or as skipped."""
    return cases(rows, "train", partial(_case, graph))


def _case(graph: Graph, row: Record, name: str) -> Case:
    assumptions: list[str] = []
    chips = integer(row, "n_chips", needed=True)
    model, dims = model_of(graph, row, assumptions)
    system = hardware(graph, cell(row, "hardware"), chips, assumptions)
    framework = _framework(row)
    layout = _layout(row, system, framework, assumptions)
    chunks = layout.pp * layout.interleave
    if layout.pp > 1 and dims.layers % chunks and (dims.layers + 2) % chunks:
        assumptions.append("stages: different numbers of layers; computed with their mean")
        layout = evolve(layout, uneven=True)
    dtype = dtype_of(row.get("precision", ""), system)
    if layout.seq > longest(dims):
        assumptions.append(f"context: {layout.seq:,} tokens, as in the row; positions counted for {dims.context:,.0f}")
        dims = evolve(dims, context=float(layout.seq))
    check(layout, dims, int(system.ranks))
    seconds = _seconds(row, layout, chips, dims)
    _check_links(dims, layout, system, dtype)
    return Case(
        id=name,
        model=model,
        dims=dims,
        system=system,
        layout=layout,
        dtype=dtype,
        seconds=seconds,
        memory=number(row, "mem_gib") * 2**30,
        assumptions=tuple(assumptions),
        source_text=" ".join(row.get(column) or "" for column in ("source", "note", "precision")),
        # Asynchronous tensor parallelism gathers the inputs once more in the backward pass.
        runtime=runtime(
            system.capacity, framework=framework, reserve="0 B", gathered_inputs=False if layout.overlap else None
        ),
    )


def _framework(row: Record) -> str:
    """The framework of a row: its column, or the one that its source or note names; empty if unstated.

    Raises:
        UsageError: The column names an unknown framework.
    """
    stated = (row.get("framework") or "").strip().lower()
    if stated not in UNSTATED:
        profile(stated)
        return stated
    return named_in(" ".join(row.get(column) or "" for column in ("source", "note", "software")))


def _layout(row: Record, system: System, framework: str, assumptions: list[str]) -> Layout:
    ranks = int(system.ranks)
    tp, pp, cp, ep = (integer(row, name) or 1 for name in ("tp", "pp", "cp", "ep"))
    dp = integer(row, "dp") or max(1, ranks // (tp * pp * cp))
    interleave = integer(row, "vp") or 1
    whole = ep > 1 and (dp * cp) % ep > 0
    if whole:
        assumptions.append(f"experts: whole on each of {ep} ranks, since they do not divide dp x cp")
    zero = row.get("zero", "").lower()
    stage = 3 if "fsdp" in zero else integer(row, "zero") if zero.strip() not in UNSTATED else None
    if stage is not None and stage > 3:
        raise UsageError(f"zero is {stage}; expected a ZeRO stage from 0 to 3")
    if stage is None:
        # Megatron Bridge shards the optimizer states by default; other sources state what they do.
        stage = 1 if "megatron" in (row.get("source") or "").lower() and "bridge" in (row["source"]).lower() else 0
        assumptions.append(f"ZeRO: {stage}")
    microbatch = integer(row, "microbatch") or 1
    if not row.get("microbatch") or "microbatch size inside PP not stated" in (row.get("note") or ""):
        assumptions.append("microbatch: 1")
        microbatch = 1
    if not integer(row, "global_batch"):
        raise RefusalError("unstated", "the row states no global batch")
    text = f"{row.get('precision', '')} {row.get('note', '')}".lower()
    # Sequence parallelism is newer than both (Korthikanti et al. 2022); later software enables it by default.
    source = (row.get("source") or "").lower()
    settings, recompute = profile(framework), (row.get("recompute") or "").lower()
    if recompute.strip() in UNSTATED and settings.recompute != "none":
        assumptions.append(f"recompute: {settings.recompute}, the default of {framework}")
        recompute = settings.recompute
    return Layout(
        tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, seq=integer(row, "seq", needed=True),
        global_batch=integer(row, "global_batch", needed=True), microbatch=microbatch,
        schedule="interleaved" if interleave > 1 else "1f1b", interleave=interleave, zero=stage,
        recompute=_recompute(recompute),
        sequence_parallel=tp > 1 and flag(row, "sequence_parallel", not re.search("2104.04473|megatron-deepspeed", source)),
        overlap=flag(row, "overlap", "async" in text),
        # Flash attention is newer than the first two (Dao et al. 2022), and the software of the third does not have it.
        flash=flag(row, "flash", not re.search("2104.04473|2205.05198|megatron-deepspeed", source)),
        fused_loss=settings.fused_loss, optimizer=settings.optimizer,
        expert_tp=1 if whole else None, **SOFTWARE_DISPATCH,
    )  # fmt: skip


def _recompute(text: str) -> Recompute:
    """The recompute that a lower-case description names; torchtitan's option "op" is ``operators``."""
    if "full" in text:
        return "full"
    if re.search(r"operator|selective *\(? *op\b", text):
        return "operators"
    return "selective" if "selective" in text else "none"


def _seconds(row: Record, layout: Layout, chips: int, dims: Dimensions) -> float:
    seconds, rate, flops = (number(row, n) for n in ("step_time_s", "tokens_per_s_per_chip", "tflops_per_chip"))
    if seconds:
        return seconds
    if rate:
        return layout.tokens / (rate * chips)
    if flops and "2104.04473" in (row.get("source") or ""):
        # The rates of this paper are based on its own FLOP count.
        work = model_flops_per_token(dims, float(layout.seq), "sc21") * layout.tokens
        return float(work) / (flops * 1e12 * chips)
    raise UsageError("the row states neither a step time nor tokens per second")


def _check_links(dims: Dimensions, layout: Layout, system: System, dtype: str) -> None:
    """Reject layouts that use a link without a published rate, which would count as taking no time."""
    if step(transformer(dims), layout.plan(), machine(system, IDEAL, dtype)).unknown > UNUSED:
        raise RefusalError("unknown-figure", f"the layout needs a link of {system.name} whose rate is not published")
