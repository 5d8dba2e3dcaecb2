"""Sameness up to numbering, the reasons against it, and the names of shapes."""

import random

import networkx as nx  # type: ignore[import-untyped,unused-ignore]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher  # type: ignore[import-untyped,unused-ignore]

from tests.support.explicit import Explicit, renumbered
from trnspec.topology.compare import difference, isomorphic
from trnspec.topology.fabric import Edge, FabricGraph
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Shape, Single, Torus
from trnspec.topology.switched import PeerLinks, Switched, SwitchLevel

KINDS: list[Shape] = [
    Torus((4, 4)), Torus((4, 4, 4), (64.0, 128.0, 128.0)), Hypercube(6), Chain(6), Ring(12), Mesh((3, 4)),
    FullyConnected(20), Switched(64, (SwitchLevel(32, 320.0),), (PeerLinks(32, 128.0),)),
    Switched(144, (SwitchLevel(4), SwitchLevel(72)), (PeerLinks(72),)),
    Switched(16, (SwitchLevel(4), SwitchLevel(16))),
]  # fmt: skip


def _shuffled(fabric: FabricGraph, seed: int) -> FabricGraph:
    dice = random.Random(seed)
    chips, switches = list(range(fabric.nodes)), list(range(fabric.nodes, fabric.size))
    dice.shuffle(chips)
    dice.shuffle(switches)
    return renumbered(fabric, chips + switches)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (Torus((4, 4)), Hypercube(4), True), (Torus((2, 2, 4)), Hypercube(4), True),
        (Torus((2, 8)), Hypercube(4), False), (Torus((4, 4, 4)), Hypercube(6), True),
        (Torus((8, 8)), Hypercube(6), False), (Torus((4, 16)), Torus((8, 8)), False),
        (Torus((4, 6)), Torus((6, 4)), True), (Torus((3, 8)), Torus((4, 6)), False), (Ring(12), Chain(12), False),
        (Ring(4), Torus((2, 2)), True), (Ring(3), FullyConnected(3), True), (Single(), Hypercube(0), True),
    ],
)  # fmt: skip
def test_equal_shapes(a: Shape, b: Shape, same: bool) -> None:
    """A word is not a shape: a 4D hypercube is a 4x4 torus, but no 2x8 torus."""
    assert same == isomorphic(a.build(), b.build())
    assert same == (difference(a.build(), b.build()) == "")


@pytest.mark.parametrize("shape", KINDS, ids=str)
def test_renumbering_changes_nothing_and_a_missing_link_does(shape: Shape) -> None:
    fabric = shape.build()
    other = _shuffled(fabric, 7)
    fewer = FabricGraph(other.nodes, other.edges[1:], other.switches)
    assert isomorphic(fabric, other)
    assert not isomorphic(fabric, fewer)
    assert difference(fabric, fewer) == f"{len(fabric.edges)} links against {len(fabric.edges) - 1}"


def _look_alikes() -> tuple[FabricGraph, FabricGraph]:
    """The two strongly regular graphs of 16 chips, 6 links, 2 and 2 common neighbours: every count agrees."""
    rook, shrikhande = [], []
    for v in range(16):
        a, b = divmod(v, 4)
        rook.append([4 * a + k for k in range(4) if k != b] + [4 * k + b for k in range(4) if k != a])
        steps = ((0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3))
        shrikhande.append([4 * ((a + x) % 4) + (b + y) % 4 for x, y in steps])
    return Explicit(rook).build(), Explicit(shrikhande).build()


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (Ring(12).build(), Ring(11).build(), "12 chips against 11"),
        (FabricGraph(2, (Edge(0, 2),), 1), FabricGraph(2, (Edge(0, 1),), 0), "1 switches against 0"),
        (Ring(12).build(), Chain(12).build(), "12 links against 11"),
        (Ring(6).build(), FabricGraph(6, tuple(Edge(a, b) for a, b in ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)))), "1 connected parts against 2"),
        (FabricGraph(4, (Edge(0, 1), Edge(1, 2), Edge(2, 3))), FabricGraph(4, (Edge(0, 1), Edge(0, 2), Edge(0, 3))), "links at the chips: 2 with 1, 2 with 2 against 3 with 1, 1 with 3"),
        (Torus((8, 8)).build(), Torus((4, 16)).build(), "the farthest chips are 8 hops apart against 10"),
        (Torus((3, 8)).build(), Torus((4, 6)).build(), "the chips at 0, 1, 2, ... hops from a chip are (1, 4, 6, 6, 5, 2) against (1, 4, 7, 7, 4, 1)"),
        (*_look_alikes(), "chips, links, degrees and hops agree, but no renumbering takes one to the other"),
    ],
)  # fmt: skip
def test_the_reason_in_one_sentence(a: FabricGraph, b: FabricGraph, says: str) -> None:
    assert difference(a, b) == says
    assert difference(a, a) == ""


def test_comparison_of_many_equal_parts() -> None:
    """Parts that look alike but are not are matched one by one, not in all orders."""
    rook, shrikhande = _look_alikes()

    def side_by_side(parts: list[FabricGraph]) -> FabricGraph:
        edges = [Edge(e.a + 16 * k, e.b + 16 * k) for k, part in enumerate(parts) for e in part.edges]
        return FabricGraph(16 * len(parts), tuple(edges))

    one = side_by_side([rook] * 5 + [shrikhande] * 4)
    assert isomorphic(one, _shuffled(side_by_side([shrikhande] * 4 + [rook] * 5), 3))
    assert not isomorphic(one, side_by_side([rook] * 4 + [shrikhande] * 5))


@st.composite
def two_fabrics(draw: st.DrawFn) -> tuple[FabricGraph, FabricGraph]:
    """Two multigraphs with as many links, often the same up to numbering, often nearly so."""
    nodes = draw(st.integers(2, 7))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda p: p[0] != p[1])
    pairs = draw(st.lists(ends, max_size=12))
    one = FabricGraph(nodes, tuple(Edge(a, b) for a, b in pairs))
    edges = list(renumbered(one, draw(st.permutations(range(nodes)))).edges)
    spoil: bool = draw(st.booleans())
    if edges and spoil:
        a, b = draw(ends)
        edges[draw(st.integers(0, len(edges) - 1))] = Edge(a, b)
    return one, FabricGraph(nodes, tuple(edges))


def _simple(fabric: FabricGraph) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(fabric.nodes))
    for e in fabric.edges:
        graph.add_edge(e.a, e.b, links=1 + graph.get_edge_data(e.a, e.b, {"links": 0})["links"])
    return graph


@given(two_fabrics())
def test_agrees_with_networkx(pair: tuple[FabricGraph, FabricGraph]) -> None:
    a, b = pair
    matcher = GraphMatcher(_simple(a), _simple(b), edge_match=lambda x, y: x == y)
    assert matcher.is_isomorphic() == isomorphic(a, b)
    assert isomorphic(a, b) == (difference(a, b) == "")
