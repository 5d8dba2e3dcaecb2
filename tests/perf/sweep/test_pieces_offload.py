"""Searches of layouts that keep something in host memory: each measure is that of the single call."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import FITTED, MODELS, SYSTEMS, estimator
from trnspec.evaluators.fit import Demand
from trnspec.perf.sweep.grid import grid
from trnspec.perf.sweep.pieces import TrainingPiece
from trnspec.perf.sweep.reductions import EXCESS, Candidates
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import transformer

AXES = {
    "seq": 2048, "global_batch": 32, "tp": [1, 8], "pp": [1, 2, 3, 32], "ep": [1, 4], "zero": [0, 2],
    "recompute": "selective", "schedule": ["1f1b", ("interleaved", 2)],
}  # fmt: skip
RATE = 5e10
"""So fast that some transfers are hidden."""
WIDE = evolve(MODELS["predicting"], width=32768.0, mlp_weights=3.0 * 2048 * 32768)
"""Its layers without experts have the most activations."""
OFFSET, SKIPPED = 1000, 5


@pytest.mark.parametrize("what", ["optimizer", "activations", "weights"])
@pytest.mark.parametrize(
    ("d", "capacity"),
    [(MODELS["llama-8b"], 17e9), (MODELS["mixtral"], 60e9), (MODELS["predicting"], 17e9), (WIDE, 17e9)],
    ids=["dense", "experts", "both", "both, wide"],
)
def test_a_search_is_single_calls(d, capacity, what) -> None:
    e = estimator("llama-8b", SYSTEMS[1], FITTED)
    e = evolve(e, dims=d, model=transformer(d), system=evolve(e.system, capacity=capacity))
    piece = TrainingPiece(e, grid(**AXES), offset=OFFSET, offload=what, rate=RATE)
    taken: list[Candidates] = []
    piece.search(OFFSET + SKIPPED, OFFSET + piece.size, taken.append)

    def needed(layout: Layout) -> float:
        demand = Demand(mode="training", layout=layout, microbatches=layout.microbatches, runtime=e.runtime)
        return float(demand.worst(e.dims)[1].total)

    found, expected, reasons = [], [], []
    for some in taken:
        reasons += [some.reasons[code] for code in some.code]
        at = np.flatnonzero(some.code == 0)
        found += zip(*(some.measure(n, at).tolist() for n in ("step_time", "memory", "tp", EXCESS)), strict=True)
        assert some.measure("offload", at) == what
    layouts = [piece.layout(OFFSET + SKIPPED + i) for i in range(len(reasons))]
    for layout, reason in zip(layouts, reasons, strict=True):
        if reason == "":
            step = e.step(layout)
            moved = e.offload_time(layout, e.memory(layout), step.compute + step.recompute, RATE)
            expected.append((step.total + moved, needed(layout), layout.tp, needed(layout) / capacity))
        elif reason == "does-not-fit":
            assert needed(layout) > capacity
    assert len(layouts) == piece.size - SKIPPED
    assert {layout.offload for layout in layouts} == {what}
    assert {"", "does-not-fit"} < set(reasons)
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-12)
