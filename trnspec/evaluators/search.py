"""The fastest layouts of a model on a system: every one is tried."""

from __future__ import annotations

import inspect
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve

from trnspec.errors import UsageError
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Table
from trnspec.evaluators import training
from trnspec.perf.sweep.batch import Top, sweep
from trnspec.perf.training.estimator import prepare
from trnspec.perf.work.flops import model_flops_per_token
from trnspec.perf.work.layout import BUBBLES

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.sweep.batch import Kept, SweepResult
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.layout import Layout

COLUMNS = (
    *("step_time", "mfu", "memory", "tp", "pp", "dp", "cp", "ep", "microbatch", "schedule", "interleave"),
    *("zero", "recompute", "sequence_parallel"),
)
"""The columns of the table."""
LAYOUT = COLUMNS[3:]
"""Those that tell a layout, each called as the input of the evaluator of training."""
UNITS = ("s", "%", "B", *("" for _ in LAYOUT))
CHUNKS = (2, 4, 8)
"""The chunks of a stage that the interleaved schedule is tried with."""


def run(  # noqa: PLR0913  # each is an axis of the question
    catalog: Catalog,
    *,
    model: str,
    on: str,
    seq: int,
    global_batch: int,
    top: int = 10,
    dtype: str = "bf16",
    optimizer: str = "adam",
    schedule: tuple[str, ...] = ("1f1b", "interleaved"),
    microbatch: tuple[int, ...] = (1, 2, 4, 8),
    overlap: bool = False,
    flash: bool = True,
    fused_loss: bool = True,
    attention: Literal["causal", "full"] = "causal",
    lnc: int | None = None,
    calibration: str = "auto",
) -> Evaluation:
    """The fastest layouts of a training run that fit into memory; every layout of the choices is tried.

    Tried are all powers of two for tensor, pipeline, context and expert parallelism, all stages of ZeRO, recomputing nothing,
    attention's scores or all, and sequence parallelism with tensor parallelism; data parallelism is what is left of the
    ranks.

    Args:
        catalog: The catalog.
        model: The name of a model, such as llama-3.1-70b.
        on: Servers or UltraServers and how many, such as trn2.48xlarge*16.
        seq: Tokens of a sequence.
        global_batch: Sequences of a step, all replicas together.
        top: How many layouts are told.
        dtype: What matrices are multiplied in.
        optimizer: The optimizer, with the precision of its states.
        schedule: The pipeline's schedules; the interleaved one with 2, 4 and 8 chunks of a stage.
        microbatch: Sequences that go through the pipeline together.
        overlap: Let tensor-parallel collectives hide behind computation.
        flash: Never write attention's scores to memory.
        fused_loss: Keep 4 bytes of each logit for the loss; else the 14 that PyTorch's operators need.
        attention: Which work counts for MFU: the half of attention that causality leaves, or all.
        lnc: Physical cores of a logical core, which is a rank; 2 from Trainium2 on.
        calibration: The name of a calibration, auto for the chip's own, none for a bound.
    """
    if top < 1:
        raise UsageError(f"top is {top}, and counts from 1")
    if unknown := [name for name in schedule if name not in BUBBLES]:
        raise UsageError(f"{unknown[0]!r} is no schedule; there are {', '.join(BUBBLES)}")
    estimator = prepare(catalog.graph, model, on, dtype=dtype, calibration=calibration, lnc=lnc)
    ranks = int(estimator.system.ranks)
    powers = [2**i for i in range(ranks.bit_length())]
    axes: dict[str, Any] = {
        "tp": [n for n in powers if n <= estimator.dims.heads],
        "pp": [n for n in powers if n <= estimator.dims.layers + 2],
        "cp": [n for n in powers if n <= min(seq, 64)],
        "ep": [n for n in powers if n <= max(1.0, estimator.dims.experts)],
        "microbatch": list(dict.fromkeys(microbatch)),
        "schedule": [pair for name in dict.fromkeys(schedule) for pair in _chunked(name)],
        "zero": [0, 1, 2, 3],
        "recompute": ["none", "selective", "full"],
        "sequence_parallel": [False, True],
    }
    fixed: dict[str, Any] = {
        "seq": seq,
        "global_batch": global_batch,
        "overlap": overlap,
        "flash": flash,
        "fused_loss": fused_loss,
        "optimizer": optimizer,
    }
    # Four times as many, since on one replica the stages of ZeRO are the same.
    found = [sweep(estimator, keep=Top(4 * top), **fixed, **some) for some in _different(axes)]
    tried = sum(f.evaluated for f in found)
    refused: Counter[str] = Counter()
    for f in found:
        refused.update(f.rejected)
    best = _fastest(found, top)
    if not best:
        told = ", ".join(f"{reason} {count:,}" for reason, count in refused.most_common())
        raise RefusalError("no-layout", f"none of {tried:,} layouts can be: {told}", place="on")
    work = model_flops_per_token(estimator.dims, float(seq), "megatron" if attention == "causal" else "matmul-full")
    rows = tuple(_row(estimator, layout, time, needs, work) for time, needs, layout in best)
    first = best[0][2]
    asked = {
        "model": model, "on": on, "seq": seq, "global_batch": global_batch,
        **{name: getattr(first, name) for name in LAYOUT},
        "overlap": overlap, "flash": flash, "fused_loss": fused_loss, "dtype": dtype, "optimizer": optimizer,
        "attention": attention, "lnc": lnc, "calibration": calibration,
    }  # fmt: skip
    again = training.run(catalog, **asked)
    step = again.answer("step_time")
    return Evaluation(
        evaluator="search",
        title=f"{estimator.name} on {estimator.system.name}: the fastest of {tried:,} layouts, {ranks:,} ranks",
        inputs={
            "model": estimator.name, "on": estimator.system.name, "seq": seq, "global_batch": global_batch, "top": top,
            "dtype": dtype, "optimizer": optimizer, "schedule": ",".join(schedule),
            "microbatch": ",".join(map(str, microbatch)), "overlap": overlap, "flash": flash, "fused_loss": fused_loss,
            "attention": attention,
            "calibration": estimator.calibration.name or "none",
        },
        answers=(
            evolve(step, note=f"of the fastest layout that fits; {step.note}"),
            again.answer("throughput"),
            again.answer("mfu"),
            Answer("tried", tried, note="layouts"),
            Answer("possible", tried - refused.total(), note="layouts that fit"),
            Answer("refused", refused.total(), note="layouts that cannot be, or do not fit"),
            Answer("command", _command(asked), note="the fastest layout alone"),
        ),
        parts=tuple(Part("refused", reason, count) for reason, count in refused.most_common()),
        assumptions=(
            Assumption("calibration", estimator.calibration.name or "none", estimator.calibration.description),
            Assumption("degrees", "powers of two", "what is tried"),
            Assumption("rank_order", "tensor, context, data, pipeline", "neighbours are in the tensor-parallel group"),
        ),
        figures_used=tuple(b for b in estimator.system.figures_used if ".dense." not in b.at or b.at.endswith(f".{dtype}")),
        tables=(Table("the fastest layouts that fit", COLUMNS, rows, UNITS),),
        edition=catalog.edition or "",
    )  # fmt: skip


def _chunked(schedule: str) -> list[tuple[str, int]]:
    return [(schedule, n) for n in CHUNKS] if schedule == "interleaved" else [(schedule, 1)]


def _different(axes: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices in parts, so that none is tried twice: one stage has no schedule, one rank splits no sequence."""
    found = []
    for pp in ([1], [n for n in axes["pp"] if n > 1]):
        for tp in ([1], [n for n in axes["tp"] if n > 1]):
            some = axes | {"tp": tp, "pp": pp}
            some |= {"schedule": "1f1b"} if pp == [1] else {}
            some |= {"sequence_parallel": False} if tp == [1] else {}
            if tp and pp:
                found.append(some)
    return found


def _fastest(found: list[SweepResult[Kept]], top: int) -> list[tuple[float, float, Layout]]:
    """Time, memory and layout of the fastest, of layouts that are the same the simplest."""
    every = [
        (float(time), float(needs), layout)
        for f in found
        for (_, layout), time, needs in zip(f.layouts(), f.result.time, f.result.memory, strict=True)
    ]
    kept: dict[Layout, tuple[float, float, Layout]] = {}
    for each in sorted(every, key=lambda row: row[0]):
        layout = each[2]
        kept.setdefault(evolve(layout, zero=0) if layout.dp * layout.cp == 1 else layout, each)
    return list(kept.values())[:top]


def _row(estimator: Estimator, layout: Layout, time: float, needs: float, work: float) -> tuple[Any, ...]:
    system = estimator.system
    peak = system.ranks * system.published.get(estimator.dtype, system.rates[estimator.dtype])
    return (time, 100.0 * work * layout.tokens / (time * peak), needs, *(getattr(layout, n) for n in LAYOUT))


def _command(asked: dict[str, Any]) -> str:
    """The command that computes the layout alone: the layout in full, of the rest what is not so without being said."""
    defaults = {n: p.default for n, p in inspect.signature(training.run).parameters.items()}
    words = ["trnspec", "eval", "training"]
    for name, value in asked.items():
        if name not in LAYOUT and value == defaults[name]:
            continue
        word = name.replace("_", "-")
        words += [f"--{'' if value else 'no-'}{word}"] if isinstance(value, bool) else [f"--{word}", str(value)]
    return shlex.join(words)
