"""The fastest layouts of a training step on a system, of all that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.evaluation.questions import CalibratedSystem, Listed, TrainingWorkload
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Suggestion, Table
from trnspec.evaluators import training
from trnspec.evaluators.layouts import EVALUATED, Found, LayoutChoices, divisors, fastest
from trnspec.evaluators.training import TrainingQuestion
from trnspec.perf.work import frameworks
from trnspec.perf.work.flops import model_flops_per_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.work.layout import Layout

COLUMNS = (
    *("step_time", "mfu", "memory", "tp", "pp", "dp", "cp", "ep", "expert_tp", "microbatch"),
    *("schedule", "interleave", "uneven", "zero", "recompute", "sequence_parallel"),
)
"""The columns of the table."""
LAYOUT = COLUMNS[3:]
"""The columns that describe a layout; each has the name of an input of the evaluator training."""
UNITS = {"step_time": "s", "mfu": "%", "memory": "B"}
"""The units of columns."""
MOST_ALTERNATIVES = 6
"""The most other batches, and the most multiples of the system, that are searched where no layout is feasible."""


@frozen(kw_only=True, slots=False)
class SearchQuestion(TrainingWorkload, CalibratedSystem, LayoutChoices, Listed):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    def on_system(self) -> dict[str, Any]:
        """What an estimator needs to know of the system besides its name."""
        return {name: getattr(self, name) for name in ("calibration", "era", "lnc", "chips")}


def run(catalog: Catalog, question: SearchQuestion) -> Evaluation:
    """Find the fastest layouts of a training step that fit in memory, by evaluating all of them.

    Degrees that are not given are the divisors of the number of ranks; data parallelism takes the remaining ranks, and
    stages have different numbers of layers where these do not divide. All ZeRO stages are evaluated, recompute none and
    full, without flash attention also selective, and sequence parallelism with tensor parallelism; the interleaved
    schedule with 2, 4 and 8 model chunks per stage. An input such as --tp 4,8 limits the search to these values.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        RefusalError: No layout fits, or a figure is not published.

    Examples:
        The three fastest layouts of Llama 3.1 70B on 16 Trn2 servers:

            trnspec eval search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --top 3

        The same without pipeline parallelism, with ZeRO stage 1:

            trnspec eval search --model llama-3.1-70b --on 'trn2.48xlarge*16' --seq 8192
            --global-batch 1024 --pp 1 --zero 1
    """
    q = frameworks.resolved(question)
    estimator = q.estimator(catalog, q.model, q.on, **q.on_system())
    ranks = int(estimator.system.ranks)
    found = fastest(estimator, q, seq=q.seq, global_batch=q.global_batch, top=q.top)
    if not found.layouts:
        raise _infeasible(catalog, question, estimator, found)
    work = model_flops_per_token(estimator.dims, float(q.seq), "megatron" if q.attention == "causal" else "matmul-full")
    rows_of = [_row(estimator, *one, work) for one in found.layouts]
    columns = tuple(name for name in COLUMNS if name != "expert_tp" or estimator.dims.experts)
    rows = tuple(tuple(row[name] for name in columns) for row in rows_of)
    best = training_question(question, found.layouts[0][2])
    single = training.run(catalog, best)
    step, rejected = single.answer("step_time"), found.rejected
    return Evaluation(
        evaluator="search",
        title=f"{estimator.name} on {estimator.system.name}: the fastest of {found.evaluated:,} layouts, {ranks:,} ranks",
        inputs={**q.values(), "model": estimator.name, "calibration": estimator.calibration.name or "none"},
        answers=(
            evolve(step, note=f"of the fastest layout; {step.note}"),
            single.answer("throughput"),
            single.answer("mfu"),
            *(a for a in single.answers if a.name == "ideal_step_time"),
            Answer("evaluated", found.evaluated, note="layouts"),
            Answer("feasible", found.evaluated - rejected.total(), note="layouts that are valid and fit"),
            Answer("rejected", rejected.total(), note="layouts that are invalid or do not fit"),
        ),
        parts=tuple(Part("rejected", reason, count) for reason, count in rejected.most_common()),
        assumptions=(
            Assumption("calibration", estimator.calibration.name or "none", estimator.calibration.description),
            Assumption(
                "selection",
                f"the fastest of {found.evaluated:,}",
                "errors of the model favor the layouts it underestimates",
            ),
            Assumption("degrees", EVALUATED, "the layouts that are evaluated, where no degree is given"),
            Assumption("rank_order", "tensor, context, data, pipeline", "neighbors are in one tensor-parallel group"),
            *frameworks.assumptions(question, [n for n in frameworks.SETTINGS if n not in found.axes]),
            *(a for a in single.assumptions if a.name in ("experts", "dispatch")),
        ),
        figures_used=tuple(
            b for b in estimator.system.figures_used if ".dense." not in b.at or b.at.endswith(f".{q.dtype}")
        ),
        tables=(Table("Fastest layouts", columns, rows, tuple(UNITS.get(name, "") for name in columns)),),
        evidence=single.evidence,
        suggestions=(Suggestion("training", _inputs(best), "the fastest layout"),),
        edition=catalog.edition or "",
    )


def training_question(question: LayoutChoices, layout: Layout, **values: Any) -> TrainingQuestion:
    """The question of the evaluator training about one layout.

    Args:
        question: The inputs of a search.
        layout: The layout.
        values: Inputs that the search has not.
    """
    return TrainingQuestion(
        **question.common(TrainingQuestion) | values | {name: getattr(layout, name) for name in LAYOUT}
    )


def _inputs(question: TrainingQuestion) -> dict[str, Any]:
    """What is given to the evaluator training: the whole layout."""
    return question.given(always=tuple(name for name in LAYOUT if getattr(question, name) is not None))


def _row(estimator: Estimator, time: float, needs: float, layout: Layout, work: float) -> dict[str, Any]:
    system = estimator.system
    peak = system.ranks * system.published.get(estimator.dtype, system.rates[estimator.dtype])
    chosen = {name: getattr(layout, name) for name in LAYOUT} | {"expert_tp": layout.expert_split}
    return {"step_time": time, "mfu": 100.0 * work * layout.tokens / (time * peak), "memory": needs} | chosen


# Nothing is feasible.


def _infeasible(catalog: Catalog, question: SearchQuestion, estimator: Estimator, found: Found) -> RefusalError:
    """The error with the nearest searches that have an answer: another batch, fewer chips, more of the system."""
    suggestions = tuple(_alternatives(catalog, question, estimator, found))
    hint = "; ".join(s.note for s in suggestions) or "no other batch, and no multiple of the system, has one either"
    return RefusalError(
        "no-layout",
        f"none of {found.evaluated:,} layouts is feasible: {found.reasons()}",
        place="on",
        hint=hint,
        suggestions=suggestions,
    )


def _alternatives(
    catalog: Catalog, question: SearchQuestion, estimator: Estimator, found: Found
) -> Iterator[Suggestion]:
    """Searches with one changed input that have an answer."""
    q, given = frameworks.resolved(question), question.given()

    def feasible(estimator: Estimator, batch: int) -> bool:
        return bool(fastest(estimator, q, seq=q.seq, global_batch=batch).layouts)

    if found.rejected["batch-not-divisible"]:
        for batch in _batches(q.global_batch, int(estimator.system.ranks)):
            if feasible(estimator, batch):
                yield Suggestion("search", given | {"global_batch": batch}, f"a global batch of {batch:,} is feasible")
                break
    if q.chips is None:
        all_chips = int(estimator.system.chips)
        fewer = 1 << (all_chips.bit_length() - 1)
        if fewer < all_chips:
            part = _or_none(catalog, q, q.on, chips=fewer)
            if part is not None and feasible(part, q.global_batch):
                note = f"{fewer:,} of {all_chips:,} chips have a layout"
                yield Suggestion("search", given | {"chips": fewer}, note)
    if found.rejected["does-not-fit"]:
        name, _, count = q.on.partition("*")
        for power in range(1, MOST_ALTERNATIVES + 1):
            on = f"{name}*{int(count or 1) << power}"
            larger = _or_none(catalog, q, on)
            if larger is not None and feasible(larger, q.global_batch):
                yield Suggestion("search", given | {"on": on}, f"{on} has a layout that fits")
                break


def _or_none(catalog: Catalog, q: SearchQuestion, on: str, **changed: Any) -> Estimator | None:
    """The estimator on another system; ``None`` where it cannot be made."""
    try:
        return q.estimator(catalog, q.model, on, **q.on_system() | changed)
    except RefusalError:
        return None


def _batches(batch: int, ranks: int) -> list[int]:
    """The nearest batches that are multiples of a divisor of the ranks, the nearest first."""
    near = {
        multiple
        for divisor in divisors(ranks)
        for multiple in (batch // divisor * divisor, -(-batch // divisor) * divisor)
        if 0 < multiple != batch
    }
    return sorted(near, key=lambda other: (abs(other - batch), other))[:MOST_ALTERNATIVES]
