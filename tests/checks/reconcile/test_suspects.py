"""trnspec.checks.reconcile.suspects: each fault is laid at the figure that has it, and only there."""

import random
from fractions import Fraction

import pytest

from tests.support.rules import bare, claim, put, shipped, sites
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.suspects import _is_majority, suspects
from trnspec.graph.graph import Graph
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.quantities.quantity import Interval

CHIPS = ("trainium1", "trainium2", "trainium3")
SERVERS = ("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge")


def blamed(graph: Graph) -> list[tuple[str, str, int | None]]:
    return [(s.site.node.name, dotted(s.site.path[1:]), s.site.claim) for s in suspects(relations(graph))]


@pytest.mark.parametrize(
    ("name", "at", "wrong"),
    [("trainium1", "peak.dense.bf16", "290 TFLOPS"), ("trainium3", "memory.capacity", "141 GiB")],
)
def test_a_wrong_figure_of_a_chip(name, at, wrong):
    """It breaks every total made of it and every claim that agreed with it; all are laid at the chip, as one."""
    graph = put(shipped(), name, at, wrong)
    (suspect,) = suspects(relations(graph))

    assert (name, at) == (suspect.site.node.name, dotted(suspect.site.path[1:]))
    assert suspect.site.claim is None
    assert len(suspect.failing) > 1
    assert not suspect.is_claim
    assert {r for r in relations(graph) if not r.holds} == set(suspect.failing)


def test_a_wrong_claim():
    """The adopted figure is needed by sound totals, so the claim is doubted."""
    graph = claim(shipped(), "trainium1", "spec.peak.dense.bf16", "210 TFLOPS")
    index = len(graph.named("trainium1").claims) - 1
    (suspect,) = suspects(relations(graph))

    assert [("trainium1", "peak.dense.bf16", index)] == blamed(graph)
    assert suspect.is_claim


def test_a_claim_of_a_figure_that_is_wrong_in_another_way():
    """A chip's figure is wrong, and a claim disagrees with the right one too: these are two things to mend."""
    graph = claim(
        put(shipped(), "trainium1", "peak.dense.bf16", "290 TFLOPS"), "trainium1", "spec.peak.dense.bf16", "250 TFLOPS"
    )
    index = len(graph.named("trainium1").claims) - 1

    assert [("trainium1", "peak.dense.bf16", None), ("trainium1", "peak.dense.bf16", index)] == blamed(graph)


def test_suspects_do_not_depend_on_relation_order():
    graph = put(put(shipped(), "trainium1", "peak.dense.bf16", "290 TFLOPS"), "trn2.48xlarge", "chips.count", 8)
    expected = blamed(graph)
    shuffled = list(relations(graph))
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        keys = [(s.site.node.name, dotted(s.site.path[1:]), s.site.claim) for s in suspects(shuffled)]
        assert expected == keys


def test_every_failing_relation_is_laid_at_one_suspect():
    graph = bare()
    for chip in CHIPS:
        graph = put(graph, chip, "peak.dense.bf16", "1.23 TFLOPS")
    for server in SERVERS:
        graph = put(graph, server, "chips.count", 7)
    every = list(relations(graph))
    failing = [r for r in every if not r.holds]
    laid = [r for s in suspects(every) for r in s.failing]

    assert len(failing) == len(laid)
    assert set(map(id, failing)) == set(map(id, laid))


@pytest.mark.parametrize(
    ("name", "at", "value", "expected", "most"),
    [
        ("trn2.48xlarge", "chips.count", 61, (16,), True),
        ("trn2.48xlarge", "chips.count", 61, (4, 16), False),
        ("trn2.48xlarge", "chips.count", 61, (4,), False),
        # It has the value of another document already, or is not a count.
        ("trn2.48xlarge", "chips.count", 4, (16,), False),
        ("trainium2", "memory.capacity", "61 GiB", (16,), False),
    ],
)
def test_suspect_count_differs_from_the_majority(name, at, value, expected, most):
    """More than half of the other documents: five of six servers have 16 chips."""
    counts = [n.spec.chips.count for n in bare().of(Server) if n.name in COUNTED]
    graph = Graph(
        {n.name: n for n in put(bare(), name, at, value) if not isinstance(n.spec, Server) or n.name in COUNTED}
    )
    site = sites(graph, name, at)[0]

    assert sorted(counts) == [4, 16, 16, 16, 16, 16]
    assert _is_majority(site, [Interval.point(Fraction(e)) for e in expected], graph) is most


@pytest.mark.parametrize(("others", "most"), [((16, 16, 4), True), ((16, 4), False), ((16, 4, 4), False), ((), False)])
def test_half_of_the_others_are_not_most(others, most):
    graph = Graph({n.name: n for n in bare() if not isinstance(n.spec, Server) or n.name in COUNTED[: len(others) + 1]})
    for name, count in zip(COUNTED, (61, *others), strict=False):
        graph = put(graph, name, "chips.count", count)

    assert _is_majority(sites(graph, COUNTED[0], "chips.count")[0], [Interval.point(Fraction(16))], graph) is most


COUNTED = (*SERVERS, "trn3-gen1-server", "trn3-gen2-server")


@pytest.mark.parametrize(
    ("source", "doubted"),
    [
        ("neuron-trn1-2023-02", 0),
        ("neuron-trn2-2026-08", 0),
        ("neuron-trainium2-2026-08", None),
        ("neuron-availability-survey-2026-10", 0),
    ],
)
def test_the_older_of_two_sources_or_the_third_party_is_doubted(source, doubted):
    """Of a claim and a figure that is in no sum; of two sources of one date that of a system, and of one source the figure."""
    graph = claim(put(bare(), "trainium2", "power", "500 W"), "trainium2", "spec.power", "400 W", source=source)
    found = suspects(relations(graph), graph=graph)

    assert [(s.site.node.name, dotted(s.site.path), s.site.claim) for s in found] == [
        ("trainium2", "spec.power", doubted)
    ]


@pytest.mark.parametrize(
    ("adopted", "claimed", "doubted"), [("20,763 GiB", "20,736 GiB", None), ("20,736 GiB", "20,763 GiB", 0)]
)
def test_a_sum_supports_the_value_that_it_agrees_with_far_better(adopted, claimed, doubted):
    """144 chips of 144 GiB are 20,736 GiB, and within rounding 20,763; the source of the claim is the older one."""
    name, at = "trn3-gen2-ultraserver", "stated.memory.capacity"
    graph = claim(put(bare(), name, at, adopted), name, f"spec.{at}", claimed, source="neuron-trn1-2023-02")
    found = suspects(relations(graph), graph=graph)

    assert [(s.site.node.name, dotted(s.site.path), s.site.claim) for s in found] == [(name, f"spec.{at}", doubted)]
