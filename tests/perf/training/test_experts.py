"""Experts in a training step: communication over tp and ep, whole experts, load, overlap."""

import random
from itertools import pairwise

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import ESTIMATORS, SYSTEMS, estimator, possible, reason_and_place, system
from tests.support.tables import tables
from trnspec.errors import UsageError
from trnspec.perf.sweep.batch import rows, sweep
from trnspec.perf.training.step import step
from trnspec.perf.work.layout import Layout

NVLINK, NETWORK = 450e9, 50e9
P5 = system((("server", 8.0, NVLINK, 0.0), ("network", float("inf"), NETWORK, 0.0)), 64)
"""Eight servers of eight GPUs."""
SPLIT = Layout(
    tp=8, dp=8, ep=8, seq=4096, global_batch=512, sequence_parallel=True, dispatch="per-copy", expert_overlap=False
)
"""Every expert on the eight GPUs of a server."""


@pytest.mark.parametrize(("changes", "reason", "place"), tables(__file__)["invalid expert layouts"])
def test_invalid_expert_layouts(changes, reason, place) -> None:
    assert reason_and_place(estimator("mixtral", P5).step, evolve(SPLIT, **changes)) == (reason, place)


def test_an_ideal_step_has_the_least_traffic() -> None:
    """What is not given is as fast as software can be: no other dispatch is faster."""
    draw = random.Random(5)
    seen = 0
    while seen < 300:
        s = possible(draw)
        e, x = ESTIMATORS[s.which], s.layout
        if x.ep == 1:
            continue
        seen += 1
        least = Layout(**{n: getattr(x, n) for n in ("tp", "pp", "dp", "cp", "ep", "expert_tp", "seq", "global_batch")},
                       microbatch=x.microbatch, schedule=x.schedule, interleave=x.interleave, uneven=x.uneven)  # fmt: skip
        total = e.step(least).total
        for changes in (
            {"dispatch": "per-copy"}, {"expert_overlap": False}, {"imbalance": 1.1}, {"capacity_factor": 1.1},
        ):  # fmt: skip
            assert e.step(evolve(least, **changes)).total >= total * (1 - 1e-12), (changes, x)


@pytest.mark.parametrize(
    "given", [{"imbalance": 0.5}, {"imbalance": [1.0, np.nan]}, {"capacity_factor": [1.0, np.inf]}]
)
def test_loads_that_are_none(given) -> None:
    with pytest.raises(UsageError, match="expected a number of at least 1"):
        rows([estimator("mixtral", SYSTEMS[0])], 0, seq=2048, global_batch=256, **given)
    (name, values), *_ = given.items()
    with pytest.raises(UsageError, match=name):
        sweep(estimator("mixtral", SYSTEMS[0]), seq=2048, global_batch=256, **{name: values})


@pytest.mark.parametrize("schedule", ["1f1b", "zb1p", "zb2p", "zbv"])
def test_a_faster_rank_is_not_slower_where_the_all_to_all_is_exposed(schedule) -> None:
    """The passes get shorter, and the exposed part of the all-to-all longer: in neither pass alone."""
    on = estimator("mixtral", evolve(P5, levels=tuple(evolve(x, rate=x.rate / 256) for x in P5.levels)))
    layout = Layout(tp=2, pp=4, dp=8, ep=8, seq=4096, global_batch=64, schedule=schedule, recompute="full")
    exposed, total = [], []
    for faster in (1.0, 2.0, 4.0, 8.0):
        found = step(on.model, layout, evolve(on.machine, seconds_per_flop=on.machine.seconds_per_flop / faster))
        exposed.append(found.expert)
        total.append(found.total)

    assert 0.0 < exposed[0]
    assert exposed == sorted(exposed)
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(total))
