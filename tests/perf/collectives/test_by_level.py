"""Collectives as training and inference count them, level by level, against explicit schedules on every fabric of the catalogs.

Without losses they are bounds, so that no schedule on the declared links may be faster.
"""

import pytest

from tests.perf.collectives.conftest import servers, system, timings
from trnspec.errors import RefusalError
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.groups import group
from trnspec.perf.experts import byte_time, exchange
from trnspec.perf.lowering.machine import IDEAL, collective_time, machine
from trnspec.perf.lowering.machine import group as by_level

SIZE = 2.0**34
PASSES = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0}
MOST = 256
"""Ranks; schedules of more take long to place."""


def groups(ranks: int) -> list[tuple[int, int]]:
    """Numbers of ranks and strides: all, parts of neighbours, and ranks at a distance."""
    some = {(ranks, 1), (ranks // 2, 1), (ranks // 4, 4), (ranks // 8, 8), (4, 1), (8, 2)}
    return sorted(one for one in some if 2 <= one[0] <= MOST and ranks % (one[0] * one[1]) == 0)


def counted(where, n: int, stride: int) -> dict[str, list[float]]:
    """The time of each collective by level; an all-to-all with one copy for each rank, directly and by units."""
    numbers = machine(where, IDEAL, next(iter(where.rates)))
    times = {}
    cost, links = by_level(numbers, float(n), float(stride)), exchange(numbers, float(n), float(stride))
    if cost.unknown < 1e-12:
        times = {kind: [float(collective_time(numbers, cost, SIZE, passes))] for kind, passes in PASSES.items()}
    if links.unknown < 1e-12:
        times["all-to-all"] = [float(links.hop + SIZE * byte_time(links, 1.0, way)) for way in (0.0, 1.0)]
    return times


QUICK = (
    "trn1.32xlarge", "trn2.48xlarge", "trn2-ultraserver", "trn3-gen1-ultraserver", "p5.48xlarge*4", "inf2.48xlarge*4",
)  # fmt: skip
"""A torus of 4 x 4, with servers in a third dimension, switches, a ring, and networks between them."""


SLOW = [pytest.param(n, marks=pytest.mark.slow) for s in servers() for n in (s, f"{s}*4") if n not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_no_schedule_is_faster_and_no_bound_slower(name):
    where = system(name)
    if not where.rates or not where.bandwidth:
        pytest.skip("the chip has no published rate")
    wrong = []
    for n, stride in groups(int(where.ranks)):
        try:
            of, expected = group(where, n, stride), counted(where, n, stride)
            fastest = {kind: timings(where, of, kind, SIZE)[0].time for kind in expected}
            least = {kind: bound(where, of, kind, SIZE).time for kind in expected}
        except RefusalError as refusal:
            assert refusal.reason in {"rank-count", "unknown-figure", "unknown-topology", "too-large"}  # noqa: PT017
            continue
        wrong += [
            (n, stride, kind, time / fastest[kind])
            for kind, times in expected.items()
            for way, time in enumerate(times)
            # Forwarded copies are the mean over ranks that are chosen at random, the own one among them.
            if time > fastest[kind] * (1 + 1e-9) or (way == 0 and time < least[kind] * (1 - 1e-9))
        ]
    assert [] == wrong
