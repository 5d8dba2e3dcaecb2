"""The layouts of a training step that a search evaluates, and the fastest of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from attrs import fields, frozen

from trnspec.evaluation import questions
from trnspec.evaluation.questions import like
from trnspec.perf.sweep.grid import framework_defaults, grid
from trnspec.perf.sweep.pieces import TrainingPiece
from trnspec.perf.sweep.reductions import ConfigurationSelection, Goal, TimeLimit
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import common_heads

CHUNKS = (2, 4, 8)
"""The model chunks per stage with which the interleaved schedule is evaluated."""
MOST_CONTEXT = 64
"""The most context-parallel ranks that are evaluated where no degree is given."""
EVALUATED = "divisors of the number of ranks"
"""Default of a parallel degree, as help texts state it."""

_ALL = "all that divide the ranks"


@frozen(kw_only=True, slots=False)
class Splits(questions.Kernels, questions.ExpertDispatch):
    """Space of splits of a model: each input limits the search to some values, or leaves them all."""

    tp: tuple[int, ...] | None = like(questions.Parallelism, "tp", unset=_ALL)
    pp: tuple[int, ...] | None = like(questions.Degrees, "pp", unset=_ALL)
    dp: tuple[int, ...] | None = like(questions.Degrees, "dp", unset="the remaining ranks")
    cp: tuple[int, ...] | None = like(questions.TrainingParallelism, "cp", unset=f"{_ALL}, up to {MOST_CONTEXT}")
    ep: tuple[int, ...] | None = like(questions.Degrees, "ep", unset="all that divide the experts")
    expert_tp: int | None = like(questions.TrainingParallelism, "expert_tp", unset="1 and tp")
    zero: tuple[questions.ZeroStage, ...] | None = like(questions.TrainingParallelism, "zero", unset="all")
    microbatch: tuple[int, ...] = like(questions.ScheduleInputs, "microbatch", default=(1, 2, 4, 8))


RECOMPUTE_UNSET = "none and full, without flash attention also selective"
"""The kinds of recompute that are evaluated where none is given."""


@frozen(kw_only=True, slots=False)
class LayoutChoices(questions.SoftwareInputs, questions.TrainingPrecision, Splits):
    """Space of layouts: each input limits the search to some values, or leaves them all."""

    schedule: tuple[questions.PipelineSchedule, ...] = like(
        questions.ScheduleInputs, "schedule", default=("1f1b", "interleaved")
    )
    recompute: tuple[questions.Recompute, ...] | None = like(
        questions.ScheduleInputs, "recompute", unset=RECOMPUTE_UNSET
    )
    overlap: bool | None = like(questions.StepSchedule, "overlap")


def rejected(counts: Counter[str]) -> list[tuple[str, int]]:
    """The number of rejected configurations by reason, the most frequent first."""
    return [(reason, count) for reason, count in counts.most_common() if reason and count]


def reasons(counts: Counter[str]) -> str:
    """The same as text."""
    return ", ".join(f"{reason} {count:,}" for reason, count in rejected(counts))


def fastest(
    estimator: Estimator, choices: LayoutChoices, *, seq: int, global_batch: int
) -> tuple[Layout | None, Counter[str]]:
    """Find the fastest layout that fits, of all that some choices leave.

    Degrees that are not given are the divisors of the ranks; data parallelism takes the remaining ranks. Stages have
    different numbers of layers where these do not divide.

    Args:
        estimator: The model on a system.
        choices: What a layout may be, frameworks resolved.
        seq: Sequence length.
        global_batch: Sequences per step.

    Returns:
        The layout, ``None`` where none is valid and fits; and the number of layouts by reason for rejection.
    """
    kept, limit = ConfigurationSelection(Goal("step_time"), 1).empty(), TimeLimit(1)
    pieces = pieces_of(estimator, choices, seq=seq, global_batch=global_batch)
    for piece in pieces:
        piece.search(piece.offset, piece.offset + piece.size, kept.take, limit, only_best=True)
    layouts = [p.layout(n) for n in kept.best.index.tolist() for p in pieces if p.offset <= n < p.offset + p.size]
    return (layouts[0] if layouts else None), kept.counts


def pieces_of(
    estimator: Estimator,
    choices: LayoutChoices,
    *,
    seq: int,
    global_batch: int,
    offset: int = 0,
    overlap: tuple[bool, ...] | None = None,
    **about: Any,
) -> list[TrainingPiece]:
    """The layouts that some choices leave, as consecutive pieces of a search.

    Args:
        estimator: The model on a system.
        choices: What a layout may be, frameworks resolved.
        seq: Sequence length.
        global_batch: Sequences per step.
        offset: The number of the first layout.
        overlap: Several values of the choice ``overlap``.
        about: Further attributes of :class:`~trnspec.perf.sweep.pieces.TrainingPiece`.
    """
    q = choices
    axes = _axes(estimator, q, seq) | {"overlap": list(dict.fromkeys(overlap or (bool(q.overlap),)))}
    names = ("flash", "fused_loss", "optimizer", *(one.name for one in fields(questions.ExpertDispatch)))
    fixed: dict[str, Any] = {name: value for name in names if (value := getattr(q, name)) is not None}
    fixed |= {"seq": seq, "global_batch": global_batch, "uneven": True}
    pieces = []
    for part in _distinct(axes, q, estimator):
        axes_of = grid(framework_defaults((estimator,)), **fixed, **part)
        pieces.append(TrainingPiece(estimator, axes_of, offset=offset, **about))
        offset += axes_of.size
    return pieces


def divisors(number: int) -> list[int]:
    """The divisors of a number, ascending."""
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def _axes(estimator: Estimator, q: LayoutChoices, seq: int) -> dict[str, Any]:
    """The values of each axis."""
    dims, of_ranks = estimator.dims, divisors(int(estimator.system.ranks))
    experts = int(dims.experts)
    axes: dict[str, Any] = {
        "tp": q.tp or [n for n in of_ranks if common_heads(dims) % n == 0],
        "pp": q.pp or [n for n in of_ranks if n <= dims.layers + 2],
        "cp": q.cp or [n for n in of_ranks if n <= MOST_CONTEXT and seq % n == 0],
        "ep": q.ep or divisors(max(1, experts)),
        "microbatch": q.microbatch,
        "schedule": [(name, n) for name in q.schedule for n in (CHUNKS if name == "interleaved" else (1,))],
        "zero": q.zero or (0, 1, 2, 3),
        # With flash attention there are no stored scores that selective recompute could save.
        "recompute": q.recompute or (("none", "full") if q.flash else ("none", "selective", "full")),
        "sequence_parallel": (False, True),
    }
    if experts:
        axes["expert_tp"] = (None, 1) if q.expert_tp is None else (q.expert_tp,)
    return {name: list(dict.fromkeys(values)) for name, values in axes.items()}


def _distinct(axes: dict[str, Any], q: LayoutChoices, estimator: Estimator) -> list[dict[str, Any]]:
    """The choices in parts, so that no layout is evaluated twice: one stage has no schedule, one rank no split sequence.

    Where data-parallel degrees are given, each combination of the others that leaves one of them is a part.
    """
    parts = []
    for pp in ([1], [n for n in axes["pp"] if n > 1]):
        for tp in ([1], [n for n in axes["tp"] if n > 1]):
            choices = axes | {"tp": [n for n in tp if n in axes["tp"]], "pp": [n for n in pp if n in axes["pp"]]}
            choices |= {"schedule": "1f1b"} if pp == [1] else {}
            choices |= {"sequence_parallel": False, "overlap": axes["overlap"][:1]} if tp == [1] else {}
            choices |= {"expert_tp": None} if tp == [1] and None in axes.get("expert_tp", ()) else {}
            if choices["tp"] and choices["pp"]:
                parts.append(choices)
    if q.dp is None:
        return parts
    ranks = int(estimator.system.ranks)
    return [
        part | {"tp": tp, "pp": pp, "cp": cp}
        for part in parts
        for tp in part["tp"]
        for pp in part["pp"]
        for cp in part["cp"]
        if ranks % (tp * pp * cp) == 0 and ranks // (tp * pp * cp) in q.dp
    ]
