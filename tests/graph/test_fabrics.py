"""trnspec.graph.fabrics: declared topologies as structures with rates."""

import pytest

from tests.support.rules import bare, put, shipped
from trnspec.graph.fabrics import fabric, per_direction, shape
from trnspec.model.fabric import Switch, Topology
from trnspec.topology.fabric import TopologyError
from trnspec.topology.measures import degrees, spheres
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Torus
from trnspec.topology.switched import PeerLinks, Switched, SwitchLevel


def built(name):
    found = fabric(shipped(), shipped().named(name))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "dims", "rates"),
    [
        ("trn1.32xlarge", (4, 4), (48e9, 48e9)),
        ("trn1n.32xlarge", (4, 4), (48e9, 48e9)),
        ("trn2.48xlarge", (4, 4), (128e9, 128e9)),
        ("trn2u.48xlarge", (4, 4), (128e9, 128e9)),
        ("trn2-ultraserver", (4, 4, 4), (64e9, 128e9, 128e9)),
    ],
)
def test_the_rate_of_a_link_in_each_dimension(name, dims, rates):
    """B/s in one direction; the first dimension of an UltraServer is the one between its servers."""
    assert Torus(dims, rates) == built(name)


@pytest.mark.parametrize(
    ("name", "sizes", "degree", "mean", "cut"),
    [
        ("trn1.32xlarge", (16, 32, 4), 4, 2.133, (8, 384e9, True)),
        ("trn2.48xlarge", (16, 32, 4), 4, 2.133, (8, 1_024e9, True)),
        ("trn2-ultraserver", (64, 192, 6), 6, 3.048, (32, 2_048e9, True)),
    ],
)
def test_the_published_wirings(name, sizes, degree, mean, cut):
    """Chips, links and diameter; then the narrowest cut into halves, in links and B/s of one direction."""
    found = built(name)
    narrowest = found.bisection("rate")

    assert (found.nodes, found.links, found.diameter) == sizes
    assert {degree} == set(degrees(found.build()))
    assert mean == pytest.approx(found.mean_hops(self_included=False), abs=0.0005)
    assert (narrowest.links, narrowest.rate, narrowest.exact) == cut


@pytest.mark.parametrize(
    ("name", "chips", "switches", "cut", "hops"),
    [
        ("trn3-gen1-ultraserver", 64, 2, 32, {1: 1, 2: 31, 3: 31}),
        ("trn3-gen2-ultraserver", 144, 38, 72, {1: 1, 2: 71, 3: 71}),
    ],
)
def test_the_switched_ultraservers(name, chips, switches, cut, hops):
    """One chip at one hop, its peer in the other rack; then those through the switch, then those through both."""
    found = built(name)
    fabric_of_chips = found.build()

    assert (chips, switches) == (found.nodes, found.switches)
    assert cut == found.bisection().links
    assert hops == {h: n for h, n in enumerate(spheres(fabric_of_chips)[0]) if h and n}
    assert {None} == {e.rate for e in fabric_of_chips.edges}


def test_one_chip_has_no_fabric():
    assert fabric(shipped(), shipped().named("trn1.2xlarge")) is None
    assert fabric(shipped(), shipped().named("trainium1")) is None


def test_the_rate_is_printed_or_half_of_both():
    graph, declared = bare(), bare().named("trn2.48xlarge").spec.fabric
    halved = put(graph, "neuronlink-v3", "bandwidth.per_direction", None)
    unknown = put(halved, "neuronlink-v3", "bandwidth", None)

    assert per_direction(graph, declared) == 128e9
    assert per_direction(put(graph, "neuronlink-v3", "bandwidth.per_direction", "100 GB/s"), declared) == 100e9
    assert per_direction(halved, declared) == 128e9
    assert per_direction(unknown, declared) is None
    assert Torus((4, 4), (None, None)) == fabric(unknown, unknown.named("trn2.48xlarge"))


@pytest.mark.parametrize(
    ("topology", "chips", "expected"),
    [
        (Topology(shape="torus", dimensions=(4, 4)), 16, Torus((4, 4))),
        (Topology(shape="torus"), 1, Torus((1,))),
        (Topology(shape="mesh", dimensions=(2, 8)), 16, Mesh((2, 8))),
        (Topology(shape="hypercube"), 16, Hypercube(4)),
        (Topology(shape="hypercube", dimensions=(4,)), 16, Hypercube(4)),
        (Topology(shape="hypercube", dimensions=(2, 2, 2, 2)), 16, Hypercube(4)),
        (Topology(shape="ring"), 12, Ring(12)),
        (Topology(shape="ring", dimensions=(12,)), 12, Ring(12)),
        (Topology(shape="chain", dimensions=(6,)), 6, Chain(6)),
        (Topology(shape="fully-connected"), 8, FullyConnected(8)),
        (
            Topology(shape="switched", levels=(Switch(name="s", count=2, chips=8),), direct=1),
            16,
            Switched(16, (SwitchLevel(8),), (PeerLinks(8),)),
        ),
    ],
)
def test_every_shape(topology, chips, expected):
    assert expected == shape(topology, chips)


S = Switch(name="s", count=4, chips=4)


@pytest.mark.parametrize(
    ("topology", "chips", "word"),
    [
        (Topology(shape="torus"), 16, "needs the chips"), (Topology(shape="mesh"), 2, "needs the chips"),
        (Topology(shape="hypercube", dimensions=(4, 4)), 16, "2 chips along each"),
        (Topology(shape="hypercube", dimensions=(1_000_000_000,)), 16, "expected 0 to 20"),
        (Topology(shape="ring", dimensions=(4, 4)), 16, "one length"),
        (Topology(shape="chain", dimensions=(4, 4)), 16, "one length"),
        (Topology(shape="fully-connected", dimensions=(4, 4)), 16, "one length"),
        (Topology(shape="switched"), 16, "levels"),
        (Topology(shape="switched", dimensions=(4, 4), levels=(S,)), 16, "levels"),
        (Topology(shape="switched", levels=(S,), direct=3), 16, "direct links"),
        (Topology(shape="switched", levels=(S,), direct=1), 15, "evenly"),
        (Topology(shape="switched", levels=(Switch(name="s", count=3, chips=5),)), 16, "evenly"),
        (Topology(shape="torus", dimensions=(4, 4), levels=(S,)), 16, "belong to a switched"),
        (Topology(shape="torus", dimensions=(4, 4), direct=1), 16, "belong to a switched"),
    ],
)  # fmt: skip
def test_declarations_that_contradict_themselves(topology, chips, word):
    with pytest.raises(TopologyError, match=r".") as raised:
        shape(topology, chips)

    assert word in str(raised.value)
