"""Measures of the layouts of a search for training, against the layouts themselves."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import trnspec
from tests.support.engine import FITTED, SYSTEMS, estimator
from trnspec.perf.sweep.batch import Top, estimators, sweep
from trnspec.perf.sweep.grid import Grid, grid
from trnspec.perf.sweep.pieces import TrainingPiece, uneven
from trnspec.perf.sweep.reductions import BOUND, EXCESS, Candidates, ConfigurationSelection, Goal, Kept, TimeLimit
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.work.layout import SCHEDULES as LAYOUT_SCHEDULES
from trnspec.perf.work.layout import Layout

SEQ, BATCH, OFFSET = 2048, 32, 100
AXES = {
    "seq": SEQ, "global_batch": BATCH, "tp": [8, 4, 16], "pp": [1, 4], "schedule": ["1f1b", ("interleaved", 2)], "zero": [1, 3],
    "expert_tp": [None, 2], "capacity_factor": [None, 1.25], "recompute": ["full", "none"],
}  # fmt: skip
PIECE = TrainingPiece(
    estimator("mixtral", evolve(SYSTEMS[1], capacity=60e9), FITTED), grid(**AXES), work=3e9, hourly=20.0, watts=900.0, on="made",
    offset=OFFSET,
)  # fmt: skip


@pytest.fixture(scope="module")
def taken() -> list[Candidates]:
    found: list[Candidates] = []
    PIECE.search(OFFSET, OFFSET + PIECE.size, found.append)
    assert sum(len(some.code) for some in found) == PIECE.size
    return found


def test_measures_are_those_of_the_layouts(taken) -> None:
    """A million tokens cost what the system costs in their time; MFU counts the FLOP of the model at the peak of all ranks."""
    e, tokens, compared = PIECE.estimator, SEQ * BATCH, 0
    for some in taken:
        at = np.flatnonzero(some.code == 0)
        for place in at.tolist():
            layout = PIECE.layout(some.start + place)
            time, memory = e.step(layout).total, e.memory(layout).total
            expected = {
                "step_time": time, "memory": memory, EXCESS: memory / 60e9, "tokens_per_s": tokens / time,
                "tokens_per_s_per_chip": tokens / time / 32, "mfu": 100 * 3e9 * tokens / (time * 64 * 91.75e12),
                "usd": 1e6 / tokens * time * 20.0 / 3600.0, "energy": 1e6 / tokens * time * 900.0,
                "tp": layout.tp, "pp": layout.pp, "dp": layout.dp, "zero": layout.zero, "interleave": layout.interleave,
                "expert_tp": layout.expert_split, "capacity_factor": layout.capacity_factor or 0.0,
            }  # fmt: skip
            found = {name: float(some.measure(name, np.array([place]))[0]) for name in expected}
            assert found == pytest.approx(expected, rel=1e-12)
            texts = {name: some.measure(name, np.array([place]))[0] for name in ("schedule", "recompute")}
            assert texts == {name: getattr(layout, name) for name in texts}
            compared += 1
        same = {
            BOUND: PIECE.bound, "fits": True, "chips": 32.0, "system": "made", "model": "mixtral", "dtype": "bf16",
            "capacity": 60e9, "offload": "none",
        }  # fmt: skip
        assert {name: some.measure(name, at) for name in same} == same
    assert compared > 20


def test_stages_of_zero_without_replicas_are_one_layout() -> None:
    """16 x 4 ranks are all of them: ZeRO shards nothing, unless ranks of a group hold whole experts."""
    first = PIECE.first_of_equal(np.arange(PIECE.size))
    for number, listed in enumerate(first.tolist()):
        layout = PIECE.layout(OFFSET + number)
        alone = (layout.tp, layout.pp) == (16, 4) and layout.expert_split == 16
        assert listed == (not alone or layout.zero == 1)
    assert not first.all()
    assert evolve(PIECE, grid=grid(**AXES | {"zero": 3})).first_of_equal(np.arange(8)).all()
    assert evolve(PIECE, grid=grid(**AXES | {"tp": 8})).first_of_equal(np.arange(8)).all()


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


def test_time_limit() -> None:
    limit = TimeLimit(2)
    for times, slowest in (([3.0, 3.0], math.inf), ([4.0], 4.0), ([5.0, 2.0], 3.0)):
        limit.take(np.array(times))
        assert slowest == limit.limit


def test_a_search_for_the_fastest_keeps_the_same_and_counts_the_same(question: Question, brute: list[Kept]) -> None:
    assert len([k for k in brute if len(k)]) >= 4
    pieces, selection = pieces_of(*question), ConfigurationSelection(Goal("step_time"), 3)
    kept, plain, limit = selection.empty(), selection.empty(), TimeLimit(3)
    for piece in pieces:
        piece.search(piece.offset, piece.offset + piece.size, kept.take, limit)
        piece.search(piece.offset, piece.offset + piece.size, plain.take)
    assert kept.best.plain() == plain.best.plain()
    assert kept.counts == plain.counts
    assert kept.best.columns["step_time"].tolist() == sorted(t for k in brute for t in k.time.tolist())[:3]


def test_stages_with_different_numbers_of_layers() -> None:
    """Embedding and output may count as a layer each; a V-shaped schedule has two chunks per stage."""
    assert [False, False, True, False] == [uneven(Layout(pp=4, seq=1, global_batch=4), n) for n in (30, 32, 33, 36)]
    for given in ({"schedule": "zbv"}, {"schedule": "interleaved", "interleave": 2}):
        assert [True, False, False] == [uneven(Layout(pp=4, seq=1, global_batch=4, **given), n) for n in (36, 38, 40)]
    assert not uneven(Layout(schedule="zbv", seq=1, global_batch=4), 33)
