"""trnspec.checks.rules.topology: declared topologies against counts, links and words."""

from __future__ import annotations

import attrs
import pytest

from tests.support.rules import bare, claim, findings, found, linked, put, shipped
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.fabric import Fabric, Switch, Topology
from trnspec.model.link import Link
from trnspec.model.ref import Ref
from trnspec.model.server import Server

ULTRA, SERVER, GEN1, GEN2 = "trn2-ultraserver", "trn2.48xlarge", "trn3-gen1-ultraserver", "trn3-gen2-ultraserver"


def torus(*dims):
    return Topology(shape="torus", dimensions=dims)


def switched(*levels, direct=None):
    return Topology(
        shape="switched",
        levels=tuple(Switch(name="NeuronSwitch-v1", count=n, chips=c) for n, c in levels),
        direct=direct,
    )


def wired(name, topology):
    return put(bare(), name, "fabric.topology", topology)


@pytest.mark.parametrize("code", ["TRN501", "TRN502", "TRN503", "TRN505", "TRN506"])
def test_the_shipped_wirings(code):
    assert findings(code, shipped()) == []


@pytest.mark.parametrize(
    ("name", "topology"),
    [
        ("trn1.32xlarge", torus(4, 4)),
        ("trn1.32xlarge", torus(2, 8)),
        ("trn1.32xlarge", Topology(shape="hypercube", dimensions=(4,))),
        ("trn1.32xlarge", Topology(shape="hypercube")),
        ("trn1.32xlarge", Topology(shape="ring")),
        (ULTRA, torus(4, 4, 4)),
        (ULTRA, Topology(shape="mesh", dimensions=(4, 16))),
        (GEN1, switched((2, 32), direct=1)),
        (GEN1, switched((1, 64))),
        (GEN2, switched((36, 4), (2, 72), direct=1)),
        (GEN2, switched((36, 4), (1, 144))),
    ],
)
def test_topologies_of_the_right_size(name, topology):
    assert findings("TRN501", wired(name, topology)) == []


@pytest.mark.parametrize(
    ("name", "topology", "word"),
    [
        ("trn1.32xlarge", torus(4, 8), "32 chips, trn1.32xlarge has 16"),
        ("trn1.32xlarge", torus(4), "4 chips, trn1.32xlarge has 16"),
        (ULTRA, torus(4, 4), "16 chips, trn2-ultraserver has 64"),
        (ULTRA, torus(100_000, 100_000), "10000000000 chips"),
        (ULTRA, Topology(shape="hypercube", dimensions=(4,)), "16 chips, trn2-ultraserver has 64"),
        (ULTRA, Topology(shape="torus"), "cannot be built"),
        ("trn1.32xlarge", Topology(shape="hypercube", dimensions=(4, 4)), "cannot be built"),
        (GEN1, switched((2, 48)), "cannot be built"),
        (GEN2, switched((2, 72), (36, 4)), "cannot be built"),
        (GEN2, switched((36, 4), (2, 72), direct=5), "cannot be built"),
    ],
)
def test_topologies_of_another_size(name, topology, word):
    (finding,) = findings("TRN501", wired(name, topology))

    assert finding.where.path == ("spec", "fabric", "topology")
    assert word in finding.message


@pytest.mark.parametrize(
    ("topology", "level", "word"),
    [
        (switched((4, 32), direct=1), 0, "4 NeuronSwitch-v1 of 32 chips connect 128 chips"),
        (switched((2, 16), direct=1), 0, "2 NeuronSwitch-v1 of 16 chips connect 32 chips"),
        (switched((16, 4), (3, 32)), 1, "3 NeuronSwitch-v1 of 32 chips connect 96 chips"),
    ],
)
def test_levels_that_do_not_cover_the_chips(topology, level, word):
    (finding,) = findings("TRN501", wired(GEN1, topology))

    assert ("spec", "fabric", "topology", "levels", level) == finding.where.path
    assert f"{word}, {GEN1} has 64" == finding.message


@pytest.mark.parametrize(
    ("topology", "reported"),
    [
        (Topology(shape="ring", dimensions=(4,)), False),
        (Topology(shape="ring"), False),
        (Topology(shape="ring", dimensions=(64,)), True),
        (torus(2, 4), True),
        (Topology(shape="torus"), True),
    ],
)
def test_between_servers_the_servers_are_counted(topology, reported):
    graph = put(bare(), ULTRA, "between_servers.topology", topology)

    assert ({(ULTRA, "spec.between_servers.topology")} if reported else set()) == found("TRN501", graph)


def test_another_count_of_chips_is_another_size():
    graph = put(bare(), "trn2u.48xlarge", "chips.count", 8)

    assert {("trn2u.48xlarge", "spec.fabric.topology"), (ULTRA, "spec.fabric.topology")} == found("TRN501", graph)


# TRN502.


@pytest.mark.parametrize(
    ("name", "topology", "links", "reported"),
    [
        ("trn1.32xlarge", torus(4, 4), 4, False),
        ("trn1.32xlarge", torus(4, 4), 2, True),
        ("trn1.32xlarge", torus(4, 4), 8, True),
        ("trn1.32xlarge", torus(4, 4), None, False),
        ("trn1.32xlarge", torus(2, 8), 4, True),
        ("trn1.32xlarge", torus(2, 8), 3, False),
        ("trn1.32xlarge", Topology(shape="hypercube"), 4, False),
        ("trn1.32xlarge", Topology(shape="ring"), 2, False),
        ("trn1.32xlarge", Topology(shape="chain"), 2, False),
        ("trn1.32xlarge", Topology(shape="fully-connected"), 15, False),
        ("trn1.32xlarge", Topology(shape="torus"), 4, False),  # TRN501 reports that it cannot be built
        (ULTRA, torus(4, 4, 4), 4, False),
        (ULTRA, torus(4, 4, 4), 6, True),
        (ULTRA, torus(4, 16), 4, True),
        (ULTRA, torus(100_000, 100_000), 4, False),  # TRN501 reports how large it is
        (GEN1, switched((2, 32), direct=1), 7, False),
    ],
)
def test_the_links_of_a_chip(name, topology, links, reported):
    graph = put(wired(name, topology), name, "fabric.links_per_chip", links)

    assert ({(name, "spec.fabric.links_per_chip")} if reported else set()) == found("TRN502", graph)


def test_links_in_and_between_servers_are_distinguished():
    (finding,) = findings("TRN502", put(bare(), ULTRA, "between_servers.links_per_chip", 4))

    assert f"a chip of {ULTRA} has 4 + 4 links, but 6 in the topology" == finding.message


def test_unknown_links_between_servers_are_no_difference():
    assert findings("TRN502", put(bare(), ULTRA, "between_servers.links_per_chip", None)) == []


def test_an_ultraserver_whose_fabric_is_one():
    """Without a part between servers all links are in one fabric."""
    graph = put(put(bare(), ULTRA, "between_servers", None), ULTRA, "fabric.links_per_chip", 6)

    assert findings("TRN502", graph) == []


# TRN503.


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("trn1.32xlarge", "2D Torus"),
        ("trn1.32xlarge", "4x4, 2D Torus"),
        ("trn1.32xlarge", "4D-HyperCube topology"),
        ("trn1.32xlarge", "hypercube(4)"),
        (ULTRA, "3D Torus"),
        (ULTRA, "6D hypercube"),
        (ULTRA, "4x4x4 torus"),
        ("trn1.32xlarge", "2 non-overlapping cycles"),
        ("trn1.32xlarge", "12, 3, 4, 1"),
        ("trn1.32xlarge", "all-to-all"),
        ("trn1.32xlarge", "3D Torus"),  # sixteen chips have no three equal sides, and no others are said
    ],
)
def test_words_for_the_same_graph_or_for_none(name, says):
    assert findings("TRN503", claim(bare(), name, "spec.fabric.topology", says)) == []


@pytest.mark.parametrize(
    ("name", "says", "word"),
    [
        ("trn1.32xlarge", "ring", "ring"),
        ("trn1.32xlarge", "2x8 torus", "2x8"),
        ("trn1.32xlarge", "4x4 mesh", "mesh"),
        ("trn1.32xlarge", "4x8 torus", "16 chips against 32"),
        ("trn1.32xlarge", "ring of 12", "16 chips against 12"),
        ("trn1.32xlarge", "100000x100000 torus", "16 chips against 10,000,000,000"),
        (ULTRA, "2D Torus", "2D Torus"),
        (ULTRA, "4x4 torus", "64 chips against 16"),
        (ULTRA, "4D hypercube", "64 chips against 16"),
    ],
)
def test_words_for_another_graph(name, says, word):
    graph = claim(bare(), name, "spec.fabric.topology", says)
    (finding,) = findings("TRN503", graph)

    assert finding.where.path == ("claims", 0, "says")
    assert word in finding.message
    assert f"neuron-trn1-2023-02 has {says}, but the declared topology is a " in finding.message


@pytest.mark.parametrize("dims", [(2, 8), (16, 1)])
def test_a_hypercube_is_a_torus_of_fours_only(dims):
    graph = claim(wired("trn1.32xlarge", torus(*dims)), "trn1.32xlarge", "spec.fabric.topology", "4D hypercube")

    assert {("trn1.32xlarge", "claims.0.says")} == found("TRN503", graph)


def test_topology_words_between_servers():
    at = "spec.between_servers.topology"

    assert findings("TRN503", claim(bare(), ULTRA, at, "ring")) == []
    assert {(ULTRA, "claims.0.says")} == found("TRN503", claim(bare(), ULTRA, at, "chain"))


@pytest.mark.parametrize("verdict", ["rejected", "superseded", "unresolved", "other-scope"])
def test_words_that_were_judged(verdict):
    graph = claim(bare(), SERVER, "spec.fabric.topology", "ring", verdict=verdict, reason="For a reason.")

    assert findings("TRN503", graph) == []


def test_a_wrong_size_is_reported_once():
    """Where the declaration has another number of chips than the system, words are not held against it."""
    graph = claim(wired("trn1.32xlarge", torus(4, 8)), "trn1.32xlarge", "spec.fabric.topology", "2D Torus")

    assert len(findings("TRN501", graph)) == 1
    assert findings("TRN503", graph) == []


def test_documents_without_a_fabric():
    graph = claim(bare(), "trn1.2xlarge", "spec.fabric.topology", "ring")
    without = put(graph, ULTRA, "fabric", None)
    bare_link = put(bare(), SERVER, "fabric", Fabric(link=Ref("neuronlink-v3"), links_per_chip=4))

    for code in ("TRN501", "TRN502", "TRN503"):
        assert findings(code, without) == []
        assert findings(code, bare_link) == []


@pytest.mark.parametrize(
    ("says", "reason"),
    [("2 x 4 torus", "16 chips against 8"), ("4 x 8 torus", "16 chips against 32"), ("4 x 4 torus", "")],
)
def test_a_claim_of_another_size(says, reason):
    graph = claim(bare(), "trn2.48xlarge", "spec.fabric.topology", says)
    messages = [d.message.rpartition(": ")[2] for d in findings("TRN503", graph)]

    assert messages == [reason] * bool(reason)


# TRN504.


@pytest.mark.parametrize(
    ("links", "reported"),
    [
        ({}, set()),
        ({"a1.large": "wire-v2"}, {("a1.large", "spec.fabric.link")}),
        ({"b2.large": "wire-v1"}, {("b2.large", "spec.fabric.link")}),
        ({"b2-ultra": "wire-v1"}, {("b2-ultra", "spec.fabric.link")}),
        # Both systems of a chip name one other link: the chip is wrong.
        ({"b2.large": "wire-v1", "b2-ultra": "wire-v1"}, {("beta2", "spec.links.link")}),
        (
            {"b2.large": "wire-v1", "b2-ultra": "nic-v1"},
            {("b2.large", "spec.fabric.link"), ("b2-ultra", "spec.fabric.link")},
        ),
    ],
)
def test_links_of_a_chip_and_of_its_systems(links, reported):
    graph = linked()
    for name, link in links.items():
        graph = put(graph, name, "fabric.link", Ref(link))

    assert reported == found("TRN504", graph)


@pytest.mark.parametrize(("links", "reported"), [("wire-v1", True), ("wire-v2", False)])
def test_the_link_of_a_chip_with_several_systems(links, reported):
    (*places,) = findings("TRN504", put(linked(), "beta2", "links.link", Ref(links)))

    assert [(d.where.path, d.hint, len(d.see)) for d in places] == [
        (("spec", "links", "link"), "wire-v2?", 2)
    ] * reported
    assert findings("TRN504", put(linked(), "beta2", "links", None)) == []


def test_three_systems_of_many_are_named():
    graph = put(linked(), "beta2", "links.link", Ref("wire-v1"))
    node = graph.named("b2.large")
    more = {n: attrs.evolve(node, metadata=attrs.evolve(node.metadata, name=n)) for n in ("b2.small", "b2.huge")}
    (finding,) = findings("TRN504", Graph({**graph.nodes, **more}))

    assert "in 4 systems of it" in finding.message
    assert len(finding.see) == 3


@pytest.mark.parametrize(("side", "reported"), [(32, True), (33, False)])
def test_large_fabrics_are_not_built(side, reported):
    """1,024 chips are; in a ring of them each has two links, not four."""
    graph = put(linked(), "a1.large", "chips.count", side * 32)
    graph = put(graph, "a1.large", "fabric.topology", Topology(shape="ring"))
    graph = claim(graph, "a1.large", "spec.fabric.topology", "chain")

    assert [len(findings(code, graph)) for code in ("TRN501", "TRN502")] == [0, int(reported)]
    assert ("chain" in "".join(d.message for d in findings("TRN503", graph))) is reported


# TRN505.


@pytest.mark.parametrize(
    ("name", "at", "link", "reported"),
    [
        (SERVER, "fabric.link", "neuronlink-v3", False),
        (SERVER, "fabric.link", "efa-v3", True),
        (SERVER, "network.link", "efa", False),
        (SERVER, "network.link", "neuronlink-v3", True),
        ("trainium2", "links.link", "efa-v3", True),
        (ULTRA, "fabric.link", "efa-v3", True),
        (ULTRA, "between_servers.link", "efa-v3", False),
    ],
)
def test_link_scope_matches_its_use(name, at, link, reported):
    graph = put(bare(), name, at, Ref(link, Link))

    assert ({(name, f"spec.{at}")} if reported else set()) == found("TRN505", graph)


# TRN506.


@pytest.mark.parametrize(
    ("chip", "servers", "reported"),
    [
        ("trainium1", ["trn1.32xlarge", "trn1n.32xlarge"], False),
        ("trainium", ["trn1.32xlarge"], False),
        ("trainium2", ["trn1.32xlarge"], True),
        ("trainium2", ["trn2.48xlarge", "trn1.32xlarge"], True),
        ("trainium2", [], False),
        (None, ["trn1.32xlarge"], False),
    ],
)
def test_a_cluster_has_the_chip_of_its_servers(chip, servers, reported):
    name = "trn1-ultracluster"
    graph = put(bare(), name, "chip", chip and Ref(chip, Chip))
    graph = put(graph, name, "servers", tuple(Ref(server, Server) for server in servers))

    assert ({(name, "spec.chip")} if reported else set()) == found("TRN506", graph)
