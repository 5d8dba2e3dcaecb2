"""Shapes as people print them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import tables
from trnspec.topology.fabric import TopologyError
from trnspec.topology.parse import parse
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Shape, Single, Torus

TABLES = tables(__file__)


@pytest.mark.parametrize(
    ("text", "nodes", "shape"),
    [
        ("4x4, 2D Torus", None, Torus((4, 4))), ("4x4x4 3D torus", None, Torus((4, 4, 4))),
        ("3D Torus (4x4x4)", 64, Torus((4, 4, 4))), ("2D-Torus topology", 16, Torus((4, 4))),
        ("3-dimensional torus", 64, Torus((4, 4, 4))), ("torus( 4 , 4 )", None, Torus((4, 4))),
        ("Torus(4\u00d74)", None, Torus((4, 4))), ("mesh 4 x 4", None, Mesh((4, 4))),
        ("4D-HyperCube", None, Hypercube(4)), ("4D-HyperCube topology", 16, Hypercube(4)),
        ("4-D hyper-cube", None, Hypercube(4)), ("hypercube(4)", None, Hypercube(4)), ("hypercube", 16, Hypercube(4)),
        ("16-chip 4D hypercube", None, Hypercube(4)), ("hypercube", 1, Hypercube(0)), ("20D hypercube", None, Hypercube(20)),
        ("ring(12)", None, Ring(12)), ("Ring Topology", 12, Ring(12)), ("a ring of 12 chips", None, Ring(12)),
        ("chain(6)", 6, Chain(6)), ("Chain of 6 devices", None, Chain(6)),
        ("Fully connected", 8, FullyConnected(8)), ("single chip", None, Single()), ("single", 1, Single()),
    ],
)  # fmt: skip
def test_published_spellings(text: str, nodes: int | None, shape: Shape) -> None:
    assert shape == parse(text, nodes)


@pytest.mark.parametrize(("text", "nodes", "says"), TABLES["refuses_invalid_topologies"])
def test_refuses_invalid_topologies(text: str, nodes: int | None, says: str) -> None:
    with pytest.raises(TopologyError, match=says):
        parse(text, nodes)


dims = st.lists(st.integers(1, 64), min_size=1, max_size=5).map(tuple)
shapes = st.one_of(
    dims.map(Torus),
    dims.map(Mesh),
    st.integers(1, 999).map(Ring),
    st.integers(1, 999).map(Chain),
    st.integers(0, 20).map(Hypercube),
    st.integers(1, 999).map(FullyConnected),
    st.just(Single()),
)


@given(shapes)
def test_the_text_of_a_shape_is_read_back(shape: Shape) -> None:
    assert shape == parse(str(shape), shape.nodes)


@given(st.text(max_size=40), st.none() | st.integers(-3, 100))
def test_any_text_is_a_shape_or_a_reason(text: str, nodes: int | None) -> None:
    try:
        shape = parse(text, nodes)
    except TopologyError:
        return
    assert nodes in (None, shape.nodes)
