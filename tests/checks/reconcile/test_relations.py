"""trnspec.checks.reconcile.relations: which figures determine which."""

import pytest
from attrs import evolve

from tests.support.rules import bare, claim, shipped
from trnspec.checks.reconcile.relations import relations
from trnspec.graph.graph import Graph
from trnspec.model.reflection import dotted


def described(graph: Graph) -> set[tuple[str, str, str, str]]:
    return {(r.total.node.name, dotted(r.total.path[1:]), str(r.terms[0]), r.level) for r in relations(graph)}


@pytest.mark.parametrize(
    ("name", "total", "term", "level"),
    [
        ("trn1.32xlarge", "stated.peak.dense.bf16", "16 x 190 TFLOPS of trainium1", "chips of a server"),
        ("trn1.32xlarge", "stated.memory.capacity", "16 x 32 GiB of trainium1", "chips of a server"),
        ("trn1.32xlarge", "stated.cores", "16 x 2 of trainium1", "chips of a server"),
        ("trn1.32xlarge", "network.bandwidth", "8 x 100.0 Gbps of efa", "NICs"),
        ("trn1.32xlarge", "fabric.bandwidth.both", "4 x 96 GB/s of neuronlink-v2", "links of a chip"),
        ("trn2-ultraserver", "stated.chips", "4 x 16 of trn2u.48xlarge", "servers of an UltraServer"),
        ("trn2-ultraserver", "stated.host.memory", "4 x 2,048 GiB of trn2u.48xlarge", "servers of an UltraServer"),
        ("trn2-ultraserver", "stated.peak.dense.fp8", "4 x 16 x 1,299 TFLOPS of trainium2", "chips of an UltraServer"),
        ("trn2-ultraserver", "between_servers.bandwidth.both", "2 x 128 GB/s of neuronlink-v3-z", "links of a chip"),
        (
            "trn3-gen2-ultraserver",
            "stated.network.bandwidth",
            "36 x 800 Gbps of trn3-gen2-server",
            "servers of an UltraServer",
        ),
        ("trn3-gen2-ultraserver", "stated.memory.capacity", "36 x 4 x 144 GiB of trainium3", "chips of an UltraServer"),
        ("trainium2", "memory.capacity", "4 x 24 GiB of trainium2", "stacks"),
        ("neuronlink-v3", "bandwidth.both", "2 x 128 GByte/s of neuronlink-v3", "directions"),
        ("neuronlink-v3", "bandwidth.per_direction", "32 x 32 Gbit/s of neuronlink-v3", "lanes"),
        ("trainium1", "links.bandwidth.both", "4 x 96 GB/s of neuronlink-v2", "ports of a chip"),
        ("trn1-ultracluster", "per_server", "800 Gbps of trn1.32xlarge", "one server"),
    ],
)
def test_the_sums_of_the_catalog(name, total, term, level):
    assert (name, total, term, level) in described(bare())


@pytest.mark.parametrize("name", ["trainium2", "trainium3"])
def test_ports_that_combine_links_or_leave_the_server_are_in_no_relation(name):
    assert not [level for chip, _, _, level in described(shipped()) if (chip, level) == (name, "ports of a chip")]


def test_a_chip_without_systems_is_compared_as_the_chips_with_its_link():
    """A copy of trainium3, whose lanes are more than its ports, is in no relation; one of trainium1 is."""
    levels = []
    for name in ("trainium3", "trainium1"):
        graph = shipped()
        node = graph.named(name)
        copied = evolve(node, metadata=evolve(node.metadata, name="acme", aliases=()))
        graph = Graph({**graph.nodes, "acme": copied})
        levels.append(
            [r.level for r in relations(graph) if r.level == "ports of a chip" and r.total.node.name == "acme"]
        )

    assert [0, 1] == [len(each) for each in levels]


def test_every_relation_of_the_catalog_holds():
    every = list(relations(shipped()))

    assert len(every) > 300
    assert [r for r in every if not (r.is_stated and r.holds)] == []


def test_a_claim_is_related_to_the_adopted_figure():
    graph = claim(bare(), "trainium1", "spec.peak.dense.{bf16,fp16}", "190 TFLOPS")
    claims = {(dotted(r.total.path), str(r.terms[0].part.value)) for r in relations(graph) if r.is_claim}

    assert {("spec.peak.dense.bf16", "190 TFLOPS"), ("spec.peak.dense.fp16", "190 TFLOPS")} == claims


def test_a_claim_represents_a_total_that_is_not_adopted():
    """The UltraServer states no EFA: what is claimed of it is checked against four servers."""
    at = "spec.stated.network.bandwidth"
    graph = claim(bare(), "trn2-ultraserver", at, "3,200 Gbps")
    judged = claim(bare(), "trn2-ultraserver", at, "3,200 Gbps", verdict="rejected", reason="It is one server's.")

    assert [str(r.total.value) for r in relations(graph) if not r.holds] == ["3,200 Gbps"]
    assert [r for r in relations(judged) if not r.holds] == []
