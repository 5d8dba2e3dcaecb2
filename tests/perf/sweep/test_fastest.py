"""The fastest layouts of some grids are those of all times, with and without a limit."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import trnspec
from trnspec.perf.sweep.batch import Top, estimators, sweep
from trnspec.perf.sweep.grid import Grid, grid
from trnspec.perf.sweep.pieces import TrainingPiece
from trnspec.perf.sweep.reductions import Goal, Kept, Limit, Selection
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.work.layout import SCHEDULES as LAYOUT_SCHEDULES

SCHEDULES = [(name, 1) for name in LAYOUT_SCHEDULES if name not in {"interleaved", "gpipe"}] + [
    ("interleaved", 2),
    ("interleaved", 4),
]
CHOICES: dict[str, Any] = {
    "tp": [4, 8, 32], "cp": [1, 2], "microbatch": [1, 2, 4], "zero": [0, 1, 2, 3], "recompute": ["none", "full"],
    "overlap": [False, True], "uneven": True, "sequence_parallel": [False, True],
}  # fmt: skip
Question = tuple[Estimator, list[Grid]]
QUESTIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dense": ("llama-3.1-8b", "trn1.32xlarge*3", {"pp": [1, 2, 3, 6, 12], "global_batch": 48, "seq": 4096}),
    "experts": (
        "deepseek-v3", "trn2.48xlarge*32",
        {"pp": [4, 8, 16, 32], "ep": [8, 32, 64], "expert_tp": [None, 1], "expert_overlap": [False, True],
         "global_batch": 256, "seq": 4096, "microbatch": [1, 2], "zero": [1, 2], "tp": [4, 8], "cp": 1},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=QUESTIONS)
def question(request: pytest.FixtureRequest) -> Question:
    model, on, more = QUESTIONS[request.param]
    (estimator,) = estimators(trnspec.load().graph, (model,), (on,))
    axes = CHOICES | more
    # Schedules of unequal stages that are executed: few of them, since all are computed to compare.
    grids = [
        grid(**axes | {"schedule": [one], "tp": axes["tp"][-2:] if i else axes["tp"]})
        for i, one in enumerate(SCHEDULES)
    ]
    return estimator, grids


@pytest.fixture(scope="module")
def brute(question: Question) -> list[Kept]:
    """The time of the fastest layout of each grid, and its number."""
    estimator, grids = question
    return [sweep(estimator, keep=Top(3), **one.axes).result for one in grids]


def pieces_of(estimator: Estimator, grids: list[Grid]) -> list[TrainingPiece]:
    offsets = itertools.accumulate((one.size for one in grids), initial=0)
    return [TrainingPiece(estimator, one, offset=offset) for one, offset in zip(grids, offsets, strict=False)]


def test_a_search_for_the_fastest_keeps_the_same_and_counts_the_same(question: Question, brute: list[Kept]) -> None:
    assert len([k for k in brute if len(k)]) >= 4
    pieces, selection = pieces_of(*question), Selection(Goal("step_time"), 3)
    kept, plain, limit = selection.empty(), selection.empty(), Limit(3)
    for piece in pieces:
        piece.search(piece.offset, piece.offset + piece.size, kept.take, limit)
        piece.search(piece.offset, piece.offset + piece.size, plain.take)
    assert kept.best.plain() == plain.best.plain()
    assert kept.counts == plain.counts
    assert kept.best.columns["step_time"].tolist() == sorted(t for k in brute for t in k.time.tolist())[:3]
