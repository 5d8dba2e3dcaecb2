"""The engine agrees with a second implementation that shares none of its formulas."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
import reference_engine
from engine_samples import ESTIMATORS, MODELS, SYSTEMS, possible

from trnspec.perf.training.step import PARTS
from trnspec.perf.work.activations import RECOMPUTE
from trnspec.perf.work.layout import BUBBLES

COUNT = 2_000


@pytest.fixture(scope="module")
def samples():
    draw = random.Random(20261121)
    return [possible(draw) for _ in range(COUNT)]


def test_samples_cover_everything(samples) -> None:
    seen = Counter(name for s in samples for name in (
        ESTIMATORS[s.which].name, s.layout.schedule, f"zero {s.layout.zero}", s.layout.recompute, s.layout.optimizer,
        f"levels {len(ESTIMATORS[s.which].system.levels)}", f"{s.layout.dispatch} {s.layout.expert_overlap}",
        f"split experts {s.layout.expert_split < s.layout.tp}", f"load {s.layout.load}",
    ))  # fmt: skip
    wanted = {*MODELS, *BUBBLES, *(f"zero {i}" for i in range(4)), *RECOMPUTE}
    wanted |= {f"{d} {o}" for d in ("per-node", "per-copy") for o in (False, True)}
    wanted |= {"split experts True", "split experts False", "load 1.0", "load 1.2", "load 1.25"}
    wanted |= {*reference_engine.BYTES, *(f"levels {len(s.levels)}" for s in SYSTEMS)}

    assert set(seen) == wanted
    assert min(seen.values()) > COUNT // 100
    for name in ("tp", "pp", "dp", "cp", "ep"):
        assert sum(getattr(s.layout, name) > 1 for s in samples) > COUNT // 20, name


def test_times(samples) -> None:
    for s in samples:
        e = ESTIMATORS[s.which]
        expected = reference_engine.step(e.dims, e.system, e.calibration.efficiency, e.dtype, s.layout)
        found = e.step(s.layout)
        for name in (*PARTS, "total"):
            # A part that others nearly cancel is as exact as what it is the difference of.
            assert math.isclose(expected[name], getattr(found, name), rel_tol=1e-12, abs_tol=1e-12 * found.total), (
                name,
                s,
            )
        assert math.isclose(expected["total"], found.total, rel_tol=1e-12), s


def test_memory(samples) -> None:
    for s in samples:
        e = ESTIMATORS[s.which]
        expected = reference_engine.memory(e.dims, s.layout, e.runtime)
        assert math.isclose(expected, e.memory(s.layout).total, rel_tol=1e-12), s
