"""The fastest layouts of a training step on a system, of all that fit."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.evaluation.questions import (
    CalibratedSystem,
    ExpertDispatch,
    Kernels,
    PipelineSchedule,
    Schedule,
    Software,
    StepSchedule,
    TrainingParallelism,
    TrainingPrecision,
    TrainingWorkload,
    axis,
    like,
)
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Suggestion, Table
from trnspec.evaluators import training
from trnspec.evaluators.training import TrainingQuestion
from trnspec.perf.sweep.batch import Top, sweep
from trnspec.perf.training.estimator import prepare
from trnspec.perf.work import frameworks
from trnspec.perf.work.flops import model_flops_per_token

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.sweep.batch import Kept, SweepResult
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.layout import Layout

COLUMNS = (
    *("step_time", "mfu", "memory", "tp", "pp", "dp", "cp", "ep", "expert_tp", "microbatch"),
    *("schedule", "interleave", "zero", "recompute", "sequence_parallel"),
)
"""The columns of the table."""
LAYOUT = COLUMNS[3:]
"""The columns that describe a layout; each has the name of an input of the evaluator training."""
UNITS = {"step_time": "s", "mfu": "%", "memory": "B"}
"""The units of columns."""
CHUNKS = (2, 4, 8)
"""The model chunks per stage with which the interleaved schedule is evaluated."""


@frozen(kw_only=True, slots=False)
class SearchQuestion(TrainingWorkload, CalibratedSystem, Software, TrainingPrecision, Kernels, ExpertDispatch):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    microbatch: tuple[int, ...] = field(default=(1, 2, 4, 8), metadata=like(Schedule, "microbatch"))
    schedule: tuple[PipelineSchedule, ...] = field(default=("1f1b", "interleaved"), metadata=like(Schedule, "schedule"))
    overlap: bool | None = field(default=None, metadata=like(StepSchedule, "overlap"))
    expert_tp: int | None = field(default=None, metadata=like(TrainingParallelism, "expert_tp", unset="1 and tp"))
    top: int = field(default=10, metadata=axis("Number of layouts to list.", "LAYOUTS", group="Output", minimum=1))


def run(catalog: Catalog, question: SearchQuestion) -> Evaluation:
    """Find the fastest layouts of a training step that fit in memory, by evaluating all of them.

    Evaluated are all powers of two for tensor, pipeline, context and expert parallelism, all ZeRO stages, recompute
    none and full, without flash attention also selective, and sequence parallelism with tensor parallelism; data
    parallelism takes the remaining ranks. The interleaved schedule is evaluated with 2, 4 and 8 model chunks per stage.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        RefusalError: No layout fits, or a figure is not published.

    Examples:
        The three fastest layouts of Llama 3.1 70B on 16 Trn2 servers:

            trnspec eval search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --top 3
    """
    q = frameworks.resolved(question)
    top = q.top
    estimator = prepare(
        catalog.graph, q.model, q.on, dtype=q.dtype, calibration=q.calibration, lnc=q.lnc, chips=q.chips,
        framework=q.framework, era=q.era, reserve=q.reserve, gathered_inputs=q.gathered_inputs, bucket=q.bucket,
    )  # fmt: skip
    ranks = int(estimator.system.ranks)
    powers = [2**i for i in range(ranks.bit_length())]
    axes: dict[str, Any] = {
        "tp": [n for n in powers if n <= estimator.dims.heads],
        "pp": [n for n in powers if n <= estimator.dims.layers + 2],
        "cp": [n for n in powers if n <= min(q.seq, 64)],
        "ep": [n for n in powers if n <= max(1.0, estimator.dims.experts)],
        "microbatch": list(dict.fromkeys(q.microbatch)),
        "schedule": [pair for name in dict.fromkeys(q.schedule) for pair in _chunked(name)],
        "zero": [0, 1, 2, 3],
        # With flash attention there are no stored scores that selective recompute could save.
        "recompute": ["none", "full"] if q.flash else ["none", "selective", "full"],
        "sequence_parallel": [False, True],
    }
    if estimator.dims.experts:
        axes["expert_tp"] = [None, 1] if q.expert_tp is None else [q.expert_tp]
    names = ("seq", "global_batch", "overlap", "flash", "fused_loss", "optimizer", "imbalance", "capacity_factor",
             "dispatch_dtype", "node_limit")  # fmt: skip
    fixed = {name: getattr(q, name) for name in names}
    fixed |= training.dispatched(q, calibrated=bool(estimator.calibration.name))
    # Four times as many, since with one replica all ZeRO stages are the same layout.
    results = [sweep(estimator, keep=Top(4 * top), **fixed, **choices) for choices in _distinct(axes)]
    evaluated = sum(result.evaluated for result in results)
    rejected: Counter[str] = Counter()
    for result in results:
        rejected.update(result.rejected)
    best = _fastest(results, top)
    if not best:
        counts = ", ".join(f"{reason} {count:,}" for reason, count in rejected.most_common())
        raise RefusalError("no-layout", f"none of {evaluated:,} layouts is feasible: {counts}", place="on")
    work = model_flops_per_token(estimator.dims, float(q.seq), "megatron" if q.attention == "causal" else "matmul-full")
    columns = tuple(name for name in COLUMNS if name != "expert_tp" or estimator.dims.experts)
    rows = tuple(tuple(_row(estimator, *one, work)[name] for name in columns) for one in best)
    fastest = _training_question(question, best[0][2])
    single = training.run(catalog, fastest)
    step = single.answer("step_time")
    return Evaluation(
        evaluator="search",
        title=f"{estimator.name} on {estimator.system.name}: the fastest of {evaluated:,} layouts, {ranks:,} ranks",
        inputs={**q.values(), "model": estimator.name, "calibration": estimator.calibration.name or "none"},
        answers=(
            evolve(step, note=f"of the fastest layout; {step.note}"),
            single.answer("throughput"),
            single.answer("mfu"),
            *(a for a in single.answers if a.name == "ideal_step_time"),
            Answer("evaluated", evaluated, note="layouts"),
            Answer("feasible", evaluated - rejected.total(), note="layouts that are valid and fit"),
            Answer("rejected", rejected.total(), note="layouts that are invalid or do not fit"),
        ),
        parts=tuple(Part("rejected", reason, count) for reason, count in rejected.most_common()),
        assumptions=(
            Assumption("calibration", estimator.calibration.name or "none", estimator.calibration.description),
            Assumption(
                "selection", f"the fastest of {evaluated:,}", "errors of the model favor the layouts it underestimates"
            ),
            Assumption("degrees", "powers of two", "the layouts that are evaluated"),
            Assumption("rank_order", "tensor, context, data, pipeline", "neighbors are in one tensor-parallel group"),
            *frameworks.assumptions(question, [n for n in frameworks.SETTINGS if n not in axes]),
            *(a for a in single.assumptions if a.name in ("experts", "dispatch")),
        ),
        figures_used=tuple(
            b for b in estimator.system.figures_used if ".dense." not in b.at or b.at.endswith(f".{q.dtype}")
        ),
        tables=(Table("Fastest layouts", columns, rows, tuple(UNITS.get(name, "") for name in columns)),),
        evidence=single.evidence,
        suggestions=(Suggestion("training", _inputs(fastest), "the fastest layout"),),
        edition=catalog.edition or "",
    )


def _training_question(question: SearchQuestion, layout: Layout) -> TrainingQuestion:
    """The question of the evaluator training about one layout."""
    values: dict[str, Any] = {**question.common(TrainingQuestion), **{name: getattr(layout, name) for name in LAYOUT}}
    return TrainingQuestion(**values)


def _inputs(question: TrainingQuestion) -> dict[str, Any]:
    """What is given to the evaluator training: the whole layout."""
    return question.given(always=tuple(name for name in LAYOUT if getattr(question, name) is not None))


def _chunked(schedule: str) -> list[tuple[str, int]]:
    return [(schedule, n) for n in CHUNKS] if schedule == "interleaved" else [(schedule, 1)]


def _distinct(axes: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices in parts, so that no layout is evaluated twice: one stage has no schedule, one rank no split sequence."""
    parts = []
    for pp in ([1], [n for n in axes["pp"] if n > 1]):
        for tp in ([1], [n for n in axes["tp"] if n > 1]):
            choices = axes | {"tp": tp, "pp": pp}
            choices |= {"schedule": "1f1b"} if pp == [1] else {}
            choices |= {"sequence_parallel": False} if tp == [1] else {}
            choices |= {"expert_tp": None} if tp == [1] and None in axes.get("expert_tp", ()) else {}
            if tp and pp:
                parts.append(choices)
    return parts


def _fastest(results: list[SweepResult[Kept]], top: int) -> list[tuple[float, float, Layout]]:
    """Time, memory and layout of the fastest; of equal layouts the simplest."""
    rows = [
        (float(time), float(needs), layout)
        for r in results
        for (_, layout), time, needs in zip(r.layouts(), r.result.time, r.result.memory, strict=True)
    ]
    kept: dict[Layout, tuple[float, float, Layout]] = {}
    for row in sorted(rows, key=lambda row: row[0]):
        layout = row[2]
        kept.setdefault(evolve(layout, zero=0) if layout.dp * layout.cp == 1 else layout, row)
    return list(kept.values())[:top]


def _row(estimator: Estimator, time: float, needs: float, layout: Layout, work: float) -> dict[str, Any]:
    system = estimator.system
    peak = system.ranks * system.published.get(estimator.dtype, system.rates[estimator.dtype])
    chosen = {name: getattr(layout, name) for name in LAYOUT} | {"expert_tp": layout.expert_split}
    return {"step_time": time, "mfu": 100.0 * work * layout.tokens / (time * peak), "memory": needs} | chosen
