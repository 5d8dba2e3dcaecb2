"""The fastest layout of some grids is that of all times, with and without a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

import trnspec
from trnspec.perf.searching.training import TrainingPiece
from trnspec.perf.sweep.batch import Top, estimators, sweep
from trnspec.perf.sweep.grid import Grid, fastest, grid
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


def test_the_fastest_layout_is_that_of_all_times(question: Question, brute: list[Kept]) -> None:
    estimator, grids = question
    expected = min((k.time[0], i, k.number[0]) for i, k in enumerate(brute) if len(k))
    assert len([k for k in brute if len(k)]) >= 4
    for limit in (math.inf, expected[0], 1.5 * expected[0]):
        found, _ = fastest(estimator, grids, limit)
        assert found is not None
        assert (found.time, found.which, found.number) == expected
    assert fastest(estimator, grids, math.nextafter(expected[0], 0.0))[0] is None


def test_a_search_for_the_fastest_keeps_the_same_and_counts_the_same(question: Question, brute: list[Kept]) -> None:
    estimator, grids = question
    expected, offset = [], 0
    kept = Selection(Goal("step_time"), 3).empty()
    limit = Limit(3)
    for one, best in zip(grids, brute, strict=True):
        expected += [(t, offset + n) for t, n in zip(best.time.tolist(), best.number.tolist(), strict=True)]
        piece = TrainingPiece(estimator, one, offset=offset)
        piece.search(offset, offset + one.size, kept.take, limit)
        offset += one.size
    plain = Selection(Goal("step_time"), 3).empty()
    offset = 0
    for one in grids:
        TrainingPiece(estimator, one, offset=offset).search(offset, offset + one.size, plain.take)
        offset += one.size
    assert kept.best.plain() == plain.best.plain()
    assert kept.counts == plain.counts
    assert kept.best.columns["step_time"].tolist() == sorted(t for t, _ in expected)[:3]
