"""Named shapes against the published tables, closed forms against the built graphs and against networkx."""

import math

import networkx as nx  # type: ignore[import-untyped,unused-ignore]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.explicit import Explicit
from trnspec.topology import measures, shapes
from trnspec.topology.bisection import By, bisection
from trnspec.topology.fabric import Edge, FabricGraph, TopologyError
from trnspec.topology.shapes import Chain, FullyConnected, GridShape, Hypercube, Mesh, Ring, Shape, Single, Torus
from trnspec.topology.switched import PeerLinks, Switched, SwitchLevel

BOTH: tuple[By, ...] = ("links", "rate")

# Rates are GB/s, one direction.
ULTRASERVER = Torus((4, 4, 4), (64.0, 128.0, 128.0), ("z", "in-plane", "in-plane"))
GEN1 = Switched(64, (SwitchLevel(32, 320.0),), (PeerLinks(32, 128.0),))
GEN2 = Switched(144, (SwitchLevel(4, 256.0, "sled"), SwitchLevel(72, 320.0, "rack")), (PeerLinks(72, 128.0),))


# shape: links, degrees, diameter, mean hops (self excluded), bisection links and rate
PUBLISHED: list[tuple[Shape, int, set[int], int, float, int, float]] = [
    (Single(), 0, {0}, 0, 0.0, 0, 0.0),
    (Chain(4, 8.0), 3, {1, 2}, 3, 1.667, 1, 8.0),
    (Chain(16, 8.0), 15, {1, 2}, 15, 5.667, 1, 8.0),
    (Chain(6, 48.0), 5, {1, 2}, 5, 2.333, 1, 48.0),
    (Ring(12, 48.0), 12, {2}, 6, 3.273, 2, 96.0),
    (Ring(3, 48.0), 3, {2}, 1, 1.0, 2, 96.0),
    (Torus((4, 4), (48.0,)), 32, {4}, 4, 2.133, 8, 384.0),
    (Torus((4, 4), (128.0,)), 32, {4}, 4, 2.133, 8, 1024.0),
    (Hypercube(4, 48.0), 32, {4}, 4, 2.133, 8, 384.0),
    (ULTRASERVER, 192, {6}, 6, 3.048, 32, 2048.0),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: str(row[0]))
def test_the_published_table(row: tuple[Shape, int, set[int], int, float, int, float]) -> None:
    shape, links, degree, diameter, mean, cut, rate = row
    fabric = shape.build()
    assert (links, links) == (shape.links, len(fabric.edges))
    assert degree == set(measures.degrees(fabric))
    assert (diameter, diameter) == (shape.diameter, measures.diameter(fabric))
    closed, counted = shape.mean_hops(self_included=False), measures.mean_hops(fabric, self_included=False)
    assert closed == counted
    assert closed is not None
    assert round(closed, 3) == mean
    for by in BOTH:
        formula, searched = shape.bisection(by), bisection(fabric, by)
        assert (cut, rate, True) == (formula.links, formula.rate, formula.exact)
        assert (cut, rate) == (searched.links, searched.rate)


TRN1 = (
    *((12, 3, 4, 1), (13, 0, 5, 2), (14, 1, 6, 3), (15, 2, 7, 0)),
    *((0, 7, 8, 5), (1, 4, 9, 6), (2, 5, 10, 7), (3, 6, 11, 4)),
    *((4, 11, 12, 9), (5, 8, 13, 10), (6, 9, 14, 11), (7, 10, 15, 8)),
    *((8, 15, 0, 13), (9, 12, 1, 14), (10, 13, 2, 15), (11, 14, 3, 12)),
)


def test_published_adjacency() -> None:
    assert Torus((4, 4)).build() == Explicit(TRN1).build()
    assert Ring(12).build() == Explicit([[(i - 1) % 12, (i + 1) % 12] for i in range(12)]).build()
    chain = [[1], [0, 2], [1, 3], [2, 4], [3, 5], [4]]
    assert Chain(6).build() == Explicit(chain).build()


@pytest.mark.parametrize(
    ("shape", "hops", "cut", "rate"), [(GEN1, (1, 1, 31, 31), 32, 4096.0), (GEN2, (1, 1, 71, 71), 72, 9216.0)]
)
def test_switched_hop_classes(shape: Switched, hops: tuple[int, ...], cut: int, rate: float) -> None:
    """Every chip sees the published hop classes, and the cut between the racks is proven to be the narrowest."""
    fabric = shape.build()
    half = shape.chips // 2
    assert measures.spheres(fabric) == (hops,) * shape.chips
    assert measures.diameter(fabric) == 3
    assert {e.other(0) for e in fabric.links[0] if e.kind == "peer"} == {half}
    for by in BOTH:
        found = shape.bisection(by)
        assert (cut, rate, True) == (found.links, found.rate, found.exact)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Torus(()), lambda: Torus((4, 0)), lambda: Torus((4, 4), (1.0, 2.0, 3.0)),
        lambda: Mesh((4, 4), (), ("x", "y", "z")), lambda: Hypercube(-1), lambda: Hypercube(21), lambda: Ring(0),
        lambda: FullyConnected(0), lambda: Explicit(()).build(), lambda: Switched(10, (SwitchLevel(4),)),
        lambda: Switched(16, (SwitchLevel(8), SwitchLevel(4))), lambda: Switched(16, (), (PeerLinks(3),)), lambda: Switched(0, ()),
        lambda: Torus((4, 4)).bisection("rate"), lambda: FullyConnected(4).bisection("rate"),
    ],
)  # fmt: skip
def test_refuses_invalid_shapes(wrong: object) -> None:
    with pytest.raises(TopologyError):
        wrong()  # type: ignore[operator]


rates = st.sampled_from([1.0, 2.0, 3.0, 8.0])
small = st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda d: 1 < math.prod(d) <= 14)
medium = st.lists(st.integers(1, 6), min_size=1, max_size=4).filter(lambda d: math.prod(d) <= 80)


@st.composite
def grids(draw: st.DrawFn, dims: st.SearchStrategy[list[int]]) -> GridShape:
    """A torus or a mesh with a rate for each dimension."""
    sizes = tuple(draw(dims))
    of = tuple(draw(rates) for _ in sizes)
    return Mesh(sizes, of) if draw(st.booleans()) else Torus(sizes, of)


def _oracle(fabric: FabricGraph) -> nx.MultiGraph:
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(fabric.size))
    graph.add_edges_from((e.a, e.b) for e in fabric.edges)
    return graph


@settings(max_examples=60, deadline=None)
@given(grids(medium))
def test_closed_forms_agree_with_the_graph(shape: GridShape) -> None:
    fabric = shape.build()
    graph = _oracle(fabric)
    assert shape.links == graph.number_of_edges()
    assert shape.diameter == measures.diameter(fabric) == nx.diameter(graph)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    n = fabric.nodes
    total = sum(sum(row.values()) for row in lengths.values())
    for included in (True, False):
        pairs = n * n if included else max(n * (n - 1), 1)
        expected = total / pairs
        assert expected == shape.mean_hops(self_included=included)
        assert expected == measures.mean_hops(fabric, self_included=included)
    assert measures.degrees(fabric) == tuple(graph.degree(v) for v in range(n))


@pytest.mark.parametrize(
    ("shape", "by", "links", "rate"),
    [(Torus((4, 7), (1.0, 8.0)), "links", 10, 66.0), (Mesh((8, 7), (8.0, 1.0)), "rate", 9, 16.0)],
)
def test_a_cut_that_is_not_across_an_axis(shape: Shape, by: By, links: int, rate: float) -> None:
    """Across the axis of even size: 14 links with 14 GB/s, and 7 links with 56 GB/s."""
    found = shape.bisection(by)
    assert (links, rate, False) == (found.links, found.rate, found.exact)


@st.composite
def fabrics(draw: st.DrawFn, most: int = 9, most_switches: int = 2) -> FabricGraph:
    """Any multigraph, connected or not."""
    nodes, switches = draw(st.integers(1, most)), draw(st.integers(0, most_switches))
    size = nodes + switches
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda p: p[0] != p[1])
    pairs = draw(st.lists(ends, max_size=3 * size)) if size > 1 else []
    return FabricGraph(nodes, tuple(Edge(a, b, draw(rates)) for a, b in pairs), switches)


@settings(max_examples=60, deadline=None)
@given(fabrics())
def test_counting_on_any_fabric(fabric: FabricGraph) -> None:
    graph = _oracle(fabric)
    parts = sorted(map(sorted, nx.connected_components(graph)))
    assert parts == sorted(map(sorted, measures.components(fabric)))
    assert measures.is_connected(fabric) == (len(parts) == 1)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    spheres = measures.spheres(fabric)
    for v in range(fabric.nodes):
        row = [lengths[v].get(u) for u in range(fabric.nodes)]
        assert [row.count(h) for h in range(len(spheres[v]))] == list(spheres[v])
    hops = [h for v in range(fabric.nodes) for h in (lengths[v].get(u) for u in range(fabric.nodes))]
    assert measures.diameter(fabric) == (None if None in hops else max(h for h in hops if h is not None))


def _brute_force(fabric: FabricGraph, by: By) -> float:
    """The weight of the narrowest cut, by trying every side of every vertex."""
    best = float("inf")
    for mask in range(1 << fabric.size):
        chips = (mask & ((1 << fabric.nodes) - 1)).bit_count()
        if chips in (fabric.nodes // 2, (fabric.nodes + 1) // 2):
            cut = [e for e in fabric.edges if (mask >> e.a & 1) != (mask >> e.b & 1)]
            best = min(best, len(cut) if by == "links" else sum(e.rate or 0.0 for e in cut))
    return best


@settings(max_examples=60, deadline=None)
@given(fabrics(), st.sampled_from(BOTH))
def test_bisection_of_any_small_fabric_is_exact(fabric: FabricGraph, by: By) -> None:
    found = bisection(fabric, by)
    cut = measures.cut_edges(fabric, found.cut)
    chips = sum(v < fabric.nodes for v in found.cut)
    assert found.exact
    assert chips in (fabric.nodes // 2, (fabric.nodes + 1) // 2)
    assert (len(cut), measures.total_rate(cut)) == (found.links, found.rate)
    if fabric.nodes > 1:
        assert _brute_force(fabric, by) == (found.links if by == "links" else found.rate)


@pytest.mark.parametrize("by", BOTH)
@pytest.mark.parametrize(("nodes", "method"), [(8, "all cuts"), (40, "local search")])
def test_of_cuts_with_equal_links_the_slowest_is_found(nodes: int, method: str, by: By) -> None:
    """A ring with two slow links opposite each other."""
    edges = [Edge(i, (i + 1) % nodes, 1.0 if i % (nodes // 2) == 1 else 8.0) for i in range(nodes)]
    found = bisection(FabricGraph(nodes, edges), by)
    assert (2, 2.0, method) == (found.links, found.rate, found.method)


@settings(max_examples=60, deadline=None)
@given(grids(small), st.sampled_from(BOTH))
def test_bisection_of_small_grids(shape: GridShape, by: By) -> None:
    found = shape.bisection(by)
    assert found.exact
    weight = found.links if by == "links" else found.rate
    assert shapes.lower_bound(shape.axes, by) - 1e-9 <= _brute_force(shape.build(), by) == weight
    assert found.links == len(measures.cut_edges(shape.build(), found.cut))


@pytest.mark.parametrize(
    ("dims", "links"),
    [((8, 8), 16), ((4, 8), 8), ((2, 8), 4), ((6,), 2), ((5,), 2), ((16, 16, 16), 512), ((8, 4, 2), 16)],
)
def test_bisection_of_tori(dims: tuple[int, ...], links: int) -> None:
    """2 N / k links across the longest axis of k, proven; (5,) is a ring, which is always cut in two places."""
    found = Torus(dims).bisection()
    assert (links, True) == (found.links, found.exact)


def test_bisection_by_rate_may_cut_the_shorter_axis() -> None:
    assert 32.0 == Torus((4, 16), (1.0, 10.0)).bisection("rate").rate
    for sizes in ((4, 16), (16, 4)):
        cut = shapes.axis_cut(Torus(sizes).axes, "links")
        assert (8, True) == (cut.links, cut.exact)


@pytest.mark.parametrize(("dims", "links"), [((7, 7), 16), ((5, 7), 12), ((3, 5, 7), 38)])
def test_upper_bound_is_marked(dims: tuple[int, ...], links: int) -> None:
    found = Torus(dims).bisection()
    assert (found.exact, found.method) == (False, "local search")
    assert links == found.links == len(measures.cut_edges(Torus(dims).build(), found.cut))


def test_each_switch_is_on_the_side_of_its_chips() -> None:
    """Also where all rates together are below 1."""
    racks = (Edge(chip, 30 + chip // 15, 0.01) for chip in range(30))
    assert bisection(FabricGraph(30, (*racks, Edge(30, 31, 0.01)), 2), "rate").rate == 0.01


@pytest.mark.parametrize(("n", "links"), [(2, 1), (5, 6), (8, 16)])
def test_fully_connected(n: int, links: int) -> None:
    shape = FullyConnected(n, 3.0)
    assert (links, 3.0 * links) == (shape.bisection("rate").links, shape.bisection("rate").rate)
    assert bisection(shape.build()).links == links == len(measures.cut_edges(shape.build(), shape.bisection().cut))
    assert [*range((n + 1) // 2)] == sorted(shape.bisection().cut)
    assert (shape.diameter, shape.mean_hops(self_included=False)) == (1, 1.0)
    assert shape.links == len(shape.build().edges)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(
        [(8, (2, 4), 4), (8, (4,), 4), (4, (2,), 2), (8, (8,), 4), (6, (3,), 3), (8, (2, 8), 2), (6, (2,), 3)]
    ),
    st.lists(rates, min_size=3, max_size=3),
    st.sampled_from(BOTH),
)
def test_bisection_of_switched_fabrics(of: tuple[int, tuple[int, ...], int], given_rates: list[float], by: By) -> None:
    chips, sizes, stride = of
    levels = tuple(SwitchLevel(size, rate) for size, rate in zip(sizes, given_rates, strict=False))
    shape = Switched(chips, levels, (PeerLinks(stride, given_rates[2]),))
    found = shape.bisection(by)
    assert found.exact
    weight = found.links if by == "links" else found.rate
    assert shape._lower_bound(by) <= _brute_force(shape.build(), by) == weight
