"""trnspec.evaluators.fit: changes of a layout, up to the last byte of the memory."""

from math import inf, nextafter

import pytest
from attrs import evolve

import trnspec
from trnspec.evaluators.fit import Capacity, Demand, nearest, neighbors
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.frameworks import ALLOCATED
from trnspec.perf.work.layout import Layout

MODEL = dimensions(trnspec.load().graph.named("qwen3-30b-a3b").spec)
LAYOUT = Layout(dp=64, seq=8192, global_batch=512, microbatch=8, fused_loss=False)
DEMAND = Demand(mode="training", layout=LAYOUT, runtime=ALLOCATED)


def test_twelve_layouts_are_returned_the_nearest_first() -> None:
    found = nearest(MODEL, DEMAND, Capacity(64, 200 * 2.0**30, inf))

    assert (12, {2}, {True}) == (len(found), {len(c.changes) for c in found}, {c.fits for c in found})
    assert [*found] == sorted(found, key=lambda c: (c.steps, -c.total))


@pytest.mark.parametrize("change", ["tp 1 -> 2", "zero 0 -> 1", "offload none -> optimizer"])
def test_a_layout_may_use_the_last_byte(change) -> None:
    total = next(c.total for c in neighbors(MODEL, DEMAND, Capacity(64, inf, inf)) if c.changes == (change,))
    _, _, host = evolve(DEMAND, layout=evolve(LAYOUT, offload="optimizer")).worst(MODEL)
    for capacity, fits in (
        (Capacity(64, total, host), True),
        (Capacity(64, nextafter(total, 0.0), host), False),
        (Capacity(64, total, nextafter(host, 0.0)), "offload" not in change),
    ):
        assert [fits] == [c.fits for c in neighbors(MODEL, DEMAND, capacity) if c.changes == (change,)]
