"""trnspec.checks.reconcile.relations: which figures determine which."""

import pytest
from attrs import evolve

from tests.support.rules import bare, claim, shipped
from tests.support.tables import tables
from trnspec.checks.reconcile.relations import relations
from trnspec.graph.graph import Graph
from trnspec.model.reflection import dotted


def described(graph: Graph) -> set[tuple[str, str, str, str]]:
    return {(r.total.node.name, dotted(r.total.path[1:]), str(r.terms[0]), r.level) for r in relations(graph)}


@pytest.mark.parametrize(("name", "total", "term", "level"), tables(__file__)["the sums of the catalog"])
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
