"""Regions of a sweep: how combinations are cut into regions changes nothing, and what is counted is what is left out."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from engine_samples import FITTED, SYSTEMS, estimator, system

from trnspec.perf.sweep import grid, regions
from trnspec.perf.sweep.batch import REASONS, Best, Pareto, Top, sweep

AXES = {
    "tp": [1, 3, 8], "pp": [1, 2, 4], "cp": [1, 2], "ep": [1, 2], "expert_tp": [None, 1], "seq": [2048, 6000],
    "microbatch": [1, 2], "schedule": ["1f1b", ("interleaved", 2), "zb2p", "v-half"], "uneven": [False, True],
    "sequence_parallel": [False, True], "recompute": ["none", "full"], "zero": [0, 1, 2], "global_batch": [64, 2048],
}  # fmt: skip
UNPUBLISHED = system((("chip", 2.0, 2e11, 0.0), ("server", 32.0, 0.0, 0.0)), 128)
"""Links between chips have no published rate."""
PREPARED = tuple(
    estimator(name, on, FITTED) for name, on in (("llama-8b", SYSTEMS[0]), ("mixtral", SYSTEMS[2]), ("llama-8b", UNPUBLISHED))
)  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    return sweep(PREPARED, **AXES)


@pytest.fixture
def small(monkeypatch):
    """Regions of few rows and combinations, each of one kind."""
    monkeypatch.setattr(grid, "_REGION", 50)
    limits = {"_ROWS": 17, "_AT_ONCE": 20, "_FEW_ROWS": 6, "_SHORTEST": 3, "_LONGEST": 5, "_FEW": 0, "_REGION_COST": 1}
    for name, limit in limits.items():
        monkeypatch.setattr(regions, name, limit)


def test_small_regions_change_nothing(whole, small) -> None:
    found = sweep(PREPARED, **AXES)

    for name in ("time", "code", "memory"):
        assert (getattr(whole.result, name) == getattr(found.result, name)).all()
    assert whole.rejected == found.rejected


def test_every_reason_is_counted(whole) -> None:
    codes, counts = np.unique(whole.result.code, return_counts=True)

    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == {
        0: whole.evaluated - sum(whole.rejected.values()),
        **{REASONS.index(reason): count for reason, count in whole.rejected.items()},
    }
    assert {"rank-count", "unknown-figure", "does-not-fit", "batch-not-divisible", "schedule"} <= whole.rejected.keys()


@pytest.mark.parametrize(("kind", "memory"), [(Top, True), (Best, True), (Pareto, True), (Top, False), (Best, False)])
def test_reductions_see_regions_as_blocks(small, kind, memory) -> None:
    """A reduction of regions keeps what one of blocks keeps, and as many are rejected; it does not need blocks."""
    counts = () if kind is Pareto else (20,)
    of_regions, of_blocks = kind(*counts), kind(*counts)
    with patch.object(kind, "take", side_effect=AssertionError):
        by_region = sweep(PREPARED, keep=of_regions, memory=memory, **AXES)
    by_block = sweep(PREPARED, keep=of_blocks.take, memory=memory, **AXES)

    kept, expected = of_regions.result(), of_blocks.result()
    for name in ("which", "number", "time", "memory"):
        assert getattr(expected, name).tolist() == getattr(kept, name).tolist()
    assert by_block.rejected == by_region.rejected
