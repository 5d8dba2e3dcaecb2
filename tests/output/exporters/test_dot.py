"""Fabrics for Graphviz, read by another reader of its language."""

from collections import Counter

import pydot
import pytest
from hypothesis import given, settings

import trnspec
from tests.support.outputs import TOPOLOGIES, with_topology

# The reader itself calls what its parser has renamed.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pydot.dot_parser")

CAT = trnspec.load()


def read(text: str) -> pydot.Dot:
    (made,) = pydot.graph_from_dot_data(text)
    return made


def parts(graph: pydot.Graph):
    """The graph and everything inside it."""
    yield graph
    for inner in graph.get_subgraphs():
        yield from parts(inner)


def links(text: str) -> Counter[tuple[str, str]]:
    return Counter((e.get_source(), e.get_destination()) for g in parts(read(text)) for e in g.get_edges())


def expected(name: str, catalog: trnspec.Catalog = CAT) -> Counter[tuple[str, str]]:
    fabric = catalog[name].topology.build()

    def called(vertex: int) -> str:
        return f"switch{vertex - fabric.nodes}" if vertex >= fabric.nodes else f"chip{vertex}"

    return Counter((called(e.a), called(e.b)) for e in fabric.edges)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trn1.32xlarge", "trn2-ultraserver", "trn3-gen1-ultraserver"])
def test_the_links_are_those_of_the_structure(name) -> None:
    text = CAT[name].export("dot").text

    assert expected(name) == links(text)
    assert "graph" == read(text).get_type(), "undirected"


def test_chips_are_grouped_by_server() -> None:
    found = {
        g.get_name(): {n.get_name() for n in g.get_nodes()} - {"node", "edge", "graph"}
        for g in read(CAT["trn2-ultraserver"].export("dot").text).get_subgraphs()
        if g.get_name().startswith("cluster")
    }

    assert {f"cluster_server{s}": {f"chip{i}" for i in range(16 * s, 16 * s + 16)} for s in range(4)} == found
    for name, label in (("trn1.32xlarge", "trn1.32xlarge"), ("trn2-ultraserver", "server 3: trn2u.48xlarge")):
        assert f'[label="{label}", fontsize=12' in CAT[name].export("dot").text


def test_a_switched_fabric_reports_the_rate_of_a_link() -> None:
    text = CAT["trn3-gen2-ultraserver"].export("dot").text

    assert 3 == text.count('label="64 GB/s a link"')
    assert 36 == text.count('label="NeuronSwitch-v1 of 4 chips"')
    assert 2 == text.count('label="NeuronSwitch-v1 of 72 chips"')


@pytest.mark.slow
@given(TOPOLOGIES)
@settings(max_examples=8, deadline=None)
def test_any_fabric(topology) -> None:
    changed = with_topology(*topology)

    assert expected("trn1.32xlarge", changed) == links(changed["trn1.32xlarge"].export("dot").text)
