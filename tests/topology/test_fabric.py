"""Fabrics and tables of neighbours."""

import pytest

from trnspec.errors import TrnspecError
from trnspec.topology import measures
from trnspec.topology.fabric import Edge, FabricGraph, TopologyError, asymmetries


def test_equal_links_in_any_order_are_equal_fabrics() -> None:
    assert FabricGraph(3, (Edge(0, 1), Edge(1, 2))) == FabricGraph(3, (Edge(2, 1), Edge(1, 0)))
    assert FabricGraph(2, (Edge(0, 1),)) != FabricGraph(2, (Edge(0, 1), Edge(0, 1)))


@pytest.mark.parametrize(
    ("nodes", "edges", "says"),
    [
        (0, (), "at least one chip"),
        (2, (Edge(1, 1),), "linked to itself"),
        (2, (Edge(0, 2),), "leaves the vertices"),
        (2, (Edge(-1, 0),), "leaves the vertices"),
        (2, (Edge(0, 1, 0.0),), "positive rate"),
        (2, (Edge(0, 1, float("nan")),), "positive rate"),
    ],
)
def test_refuses_invalid_fabrics(nodes, edges, says) -> None:
    with pytest.raises(TopologyError, match=says) as caught:
        FabricGraph(nodes, edges)
    assert isinstance(caught.value, TrnspecError)
    assert isinstance(caught.value, ValueError)


def test_a_table_keeps_parallel_links() -> None:
    fabric = FabricGraph.from_adjacency([[1, 1], [0, 0, 2], [1]])
    assert fabric.adjacency == ((1, 1), (0, 0, 2), (1,))
    assert len(fabric.edges) == 3


@pytest.mark.parametrize(
    ("table", "pairs", "says"),
    [
        ([[1], []], ((0, 1),), "seen from both its ends"),
        ([[1, 1], [0]], ((0, 1),), "more often"),
        ([[0]], ((0, 0),), "itself"),
        ([[7]], ((0, 7),), "the chips are 0 to 0"),
        ([[-1], [0]], ((0, -1), (1, 0)), "the chips are 0 to 1"),
    ],
)
def test_link_table_with_inconsistent_ends(table, pairs, says) -> None:
    assert asymmetries(table) == pairs
    with pytest.raises(TopologyError, match=says):
        FabricGraph.from_adjacency(table)


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [([[], [0]], "chip 1 lists 0 more often than 0 lists 1"), ([[2], []], "chip 0 lists 2, but the chips are 0 to 1"),
     ([[-1], []], "chip 0 lists -1, but"), ([[0]], "chip 0 lists itself")],
)  # fmt: skip
def test_tables_of_neighbours_that_do_not_agree(neighbours, message) -> None:
    with pytest.raises(TopologyError, match=message):
        FabricGraph.from_adjacency(neighbours)


def test_chips_without_a_path() -> None:
    """No distance is known where some pair has no path."""
    fabric = FabricGraph(4, (Edge(0, 1), Edge(2, 3), Edge(3, 2)))

    assert None is measures.diameter(fabric)
    assert [None, None] == [measures.mean_hops(fabric, self_included=included) for included in (True, False)]
    assert "<Fabric of 4 chips, 0 switches and 3 links>" == repr(fabric)
