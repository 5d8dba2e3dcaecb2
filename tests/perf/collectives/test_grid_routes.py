"""Routes on grids, against a walk over the graph, and on a torus that is too large for one."""

import math
import tracemalloc
from collections import Counter

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.perf.collectives.conftest import GIB, on, timings
from tests.support.engine import refusal
from tests.support.explicit import Explicit
from trnspec.perf.collectives.algorithms import plans
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.grid_routes import ring
from trnspec.perf.collectives.groups import Group, LinkRates, group
from trnspec.perf.collectives.groups import group as group_of
from trnspec.perf.collectives.groups import group_of as explicit_group
from trnspec.perf.collectives.routes import Routes
from trnspec.perf.collectives.timing import time_plan
from trnspec.topology import shapes
from trnspec.topology.fabric import FabricGraph
from trnspec.topology.shapes import Chain, FullyConnected, GridShape, Hypercube, Mesh, Ring, Torus
from trnspec.topology.switched import Switched, SwitchLevel

SHAPES = st.one_of(
    st.builds(Ring, st.integers(2, 9)),
    st.builds(Chain, st.integers(2, 9)),
    st.builds(Hypercube, st.integers(1, 4)),
    st.builds(Torus, st.lists(st.integers(1, 6), min_size=2, max_size=3).map(tuple).filter(lambda d: max(d) > 1)),
    st.builds(Mesh, st.lists(st.integers(1, 4), min_size=2, max_size=3).map(tuple).filter(lambda d: max(d) > 1)),
)


def walked(shape: GridShape, sends: list[tuple[int, int, float]]) -> dict[str, float]:
    """The load of the busiest link of each axis: every send spread over all shortest paths, counted in the graph."""
    axes = [evolve(axis, rate=None, kind=f"axis{i}") for i, axis in enumerate(shape.axes)]
    fabric = FabricGraph(shape.nodes, tuple(shapes.edges(axes)))
    carried: Counter[tuple[int, int]] = Counter()
    for source, target, share in sends:
        ways, hops = paths_from(fabric, source)
        back, left = paths_from(fabric, target)
        for number, e in enumerate(fabric.edges):
            for a, b in ((e.a, e.b), (e.b, e.a)):
                if hops[a] + 1 + left[b] == hops[target]:
                    carried[number, a] += share * ways[a] * back[b] / ways[target]
    busiest: dict[str, float] = {}
    for (number, _), load in carried.items():
        kind = fabric.edges[number].kind
        busiest[kind] = max(busiest.get(kind, 0.0), load)
    return busiest


def paths_from(fabric: FabricGraph, source: int) -> tuple[Counter[int], dict[int, int]]:
    """The number of shortest paths to every chip, and their hops."""
    ways, hops, order = Counter({source: 1}), {source: 0}, [source]
    for v in order:
        for u in fabric.adjacency[v]:
            if u not in hops:
                hops[u] = hops[v] + 1
                order.append(u)
            if hops[u] == hops[v] + 1:
                ways[u] += ways[v]
    return ways, hops


@given(shape=SHAPES, data=st.data())
def test_loads_are_those_of_all_shortest_paths_in_the_graph(shape, data):
    chips = st.integers(0, shape.nodes - 1)
    sends = data.draw(st.lists(st.tuples(chips, chips, st.floats(0.01, 1.0)), min_size=1, max_size=60))

    assert pytest.approx(walked(shape, [s for s in sends if s[0] != s[1]]), rel=1e-12) == Routes(shape).loads(sends)


@pytest.mark.parametrize(
    "shape", [Torus((4, 4)), Torus((2, 3, 4)), Torus((5, 3)), Mesh((3, 4)), Hypercube(4), Chain(2)], ids=str
)
def test_one_chip_to_all_and_all_to_one(shape):
    nodes = range(1, shape.nodes)

    for sends in ([(0, i, 0.5 + i) for i in nodes], [(i, 0, 0.5 + i) for i in nodes]):
        assert pytest.approx(walked(shape, sends), rel=1e-12) == Routes(shape).loads(sends)


GROUPS = [
    (Torus((4, 4)), 1, 16, 1), (Torus((4, 4)), 1, 4, 1), (Torus((4, 4)), 1, 4, 4), (Torus((4, 4)), 1, 8, 2),
    (Torus((4, 4)), 4, 64, 1), (Torus((4, 4)), 4, 16, 4), (Torus((2, 3, 4)), 2, 48, 1), (Torus((4, 6)), 1, 8, 3),
    (Hypercube(4), 2, 32, 1), (Ring(6), 1, 3, 2), (Switched(8, (SwitchLevel(8),)), 2, 8, 2),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "per_chip", "ranks", "stride"), GROUPS, ids=str)
def test_an_exchange_by_symmetry_is_that_of_every_send(shape, per_chip, ranks, stride):
    of = group(on(shape, per_chip=per_chip), ranks, stride)
    routes = Routes(shape, per_chip)
    sends = [(a, b, 0.25) for members in of.siblings for a in members for b in members if a != b]

    assert pytest.approx(routes.rank_loads(sends), rel=1e-12) == routes.exchange(of.siblings, 0.25)


@pytest.mark.parametrize(
    ("shape", "ranks"),
    [(Torus((4, 4)), (0, 1, 4, 5)), (Torus((4, 4)), (0, 3, 5)), (Mesh((4, 4)), range(16)), (Torus((6,)), (0, 1, 2))],
    ids=str,
)
def test_other_groups_are_not_taken_for_symmetric(shape, ranks):
    of = explicit_group(on(shape), list(ranks))

    assert Routes(shape).exchange(of.siblings, 0.25) is None


@pytest.mark.parametrize(
    ("sizes", "closed"),
    [((4,), (True,)), ((4, 4), (True, True)), ((2, 3), (False, False)), ((3, 4), (False, False)), ((3, 5, 2), (False,) * 3),
     ((1, 6, 3), (True, False, False)), ((16, 20, 28), (True,) * 3)],
)  # fmt: skip
def test_a_ring_passes_every_position_once_by_single_hops(sizes, closed):
    walk = ring(sizes, closed)

    assert len(set(walk)) == len(walk) == math.prod(sizes)
    for a, b in zip(walk, [*walk[1:], walk[0]], strict=True):
        ((k, hop),) = [(k, q - p) for p, q, k in zip(a, b, sizes, strict=True) if p != q]
        assert abs(hop) == 1 or (abs(hop) == k - 1 and len(sizes) == 1)


@pytest.mark.parametrize(
    ("shape", "chips", "rings"), [(Ring(600), 600, 1), (Ring(700), 600, 0), (Chain(600), 600, 0)], ids=str
)
def test_many_chips_of_one_axis_have_a_ring_if_it_is_closed(shape, chips, rings):
    assert [tuple(range(chips))] * rings == list(Routes(shape).rings_through(tuple(range(chips))))


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        *((kind, (16, 20, 28)) for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")),
        ("broadcast", (8, 10, 14)),
    ],
)
def test_a_large_torus(kind, sizes):
    where = on(Torus(sizes), degree=6.0)
    tracemalloc.start()
    of = group(where)
    fastest = timings(where, of, kind, GIB)[0]
    least = bound(where, of, kind, GIB)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 500e6
    assert 0.4 * fastest.time < least.time <= fastest.time * (1 + 1e-12)
    if kind == "all-to-all":
        # 8960^2 / 4 blocks cross 2 x 16 x 20 links of the longest axis each way.
        assert pytest.approx(GIB * 8960 / 4 / (2 * 16 * 20) / 10.0) == least.time == fastest.time


@pytest.mark.parametrize(
    ("where", "ranks", "place"),
    [
        (on(Torus((1000, 1000, 1000)), degree=6.0), None, "ranks"),
        (on(Torus((1000, 1000, 1000)), degree=6.0), 8, "ranks"),
        (on(Mesh((64, 64)), degree=4.0), None, "ranks"),
        (on(FullyConnected(300), degree=299.0), None, "on"),
    ],
    ids=["10^9 chips", "8 of 10^9 chips", "mesh", "without symmetry"],
)
def test_oversized_grid_is_refused(where, ranks, place):
    tracemalloc.start()
    caught = refusal(lambda: plans(where, group(where, ranks), "all-reduce"))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert ("too-large", place) == (caught.reason, caught.place)
    assert most < 50e6


def test_plans_of_a_shape_without_symmetry_are_the_general_ones():
    table = [[1, 3], [0, 2], [1, 3], [0, 2]]
    explicit, closed = on(Explicit(table)), on(Ring(4))
    for kind in ("all-reduce", "all-to-all"):
        of = Group(tuple(range(4)), tuple(range(4)), 1, (tuple(range(4)),))
        assert group_of(explicit) == of
        by_name = {p.name: time_plan(p, LinkRates(closed), GIB).time for p in plans(closed, of, kind)}
        for plan in plans(explicit, of, kind):
            # Only on a grid is the order of the exchanges known in which all of them are single hops.
            if plan.name in by_name and plan.name != "recursive":
                assert pytest.approx(by_name[plan.name], rel=1e-12) == time_plan(plan, LinkRates(explicit), GIB).time
