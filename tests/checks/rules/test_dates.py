"""trnspec.checks.rules.dates: dates of sources and products, and pages about other products."""

from __future__ import annotations

from datetime import date, timedelta

import attrs
import pytest

from tests.support.rules import bare, claim, findings, found, put, shipped, stopped_after
from trnspec.graph.graph import Graph
from trnspec.graph.products import about, chips_of
from trnspec.model.document import Claim
from trnspec.model.ref import Ref

CODES = ["TRN307", "TRN308", "TRN309", "TRN310", "TRN311"]
BF16 = "spec.peak.dense.bf16"
PAGE = "neuron-trainium-2026-08"
REASON = "For a reason."
TODAY = date.today()


@pytest.mark.parametrize("code", CODES)
def test_shipped_catalog_has_no_findings(code):
    assert findings(code, shipped()) == []


def dated(graph: Graph, name: str, as_of: str, dating: str = "exact") -> Graph:
    """The graph with another date of a source."""
    spec = attrs.evolve(graph.named(name).spec, as_of=as_of, dating=dating)
    return graph.replace(name, spec)


def sourced(graph: Graph, name: str, source: str, where: str | None = None) -> Graph:
    """The graph with another source of a document."""
    node = graph.named(name)
    metadata = attrs.evolve(node.metadata, source=Ref(source), where=where)
    return Graph({**graph.nodes, name: attrs.evolve(node, metadata=metadata)})


# Dates.

# TRN307.


@pytest.mark.parametrize(
    ("name", "as_of", "dating", "reported"),
    [
        ("thirdparty-trainium-overview", f"{TODAY}", "exact", False),
        ("thirdparty-trainium-overview", f"{TODAY + timedelta(1)}", "exact", True),
    ],
)
def test_trn307_date_of_today_and_of_tomorrow(name, as_of, dating, reported):
    expected = {(name, "spec.as_of")} if reported else set()

    assert expected == found("TRN307", dated(shipped(), name, as_of, dating))


# TRN308.


def superseded(source: str, graph: Graph | None = None) -> Graph:
    return claim(graph or bare(), "trainium1", BF16, "210 TFLOPS", source=source, verdict="superseded", reason=REASON)


@pytest.mark.parametrize(("name", "as_of"), [("neuron-trn1-2022-10", "2026-09-01"), (PAGE, "2022-01-01")])
def test_superseded_by_an_older_figure(name, as_of):
    graph = superseded("neuron-trn1-2022-10", dated(bare(), name, as_of))

    assert ("trainium1", "claims.0.verdict") in found("TRN308", graph)


def test_lower_bound_of_a_date_does_not_make_a_figure_older():
    graph = superseded("neuron-trn1-2022-10", dated(bare(), PAGE, "2022-01-01", "not-before"))

    assert set() == found("TRN308", graph)


def test_every_superseded_claim_is_compared():
    graph = superseded(PAGE, superseded("neuron-trn1-2022-10"))

    assert {("trainium1", "claims.1.verdict")} == found("TRN308", graph)


# TRN309.


def test_two_claims_of_one_source():
    graph = bare()
    for says in (2, 3, 2):
        graph = claim(graph, "trainium1", "spec.cores.count", says, source="neuron-trn1-2022-10")

    assert {("trainium1", "claims.1.source"), ("trainium1", "claims.2.source")} == found("TRN309", graph)


def test_many_equal_claims_of_one_source_are_not_compared_in_pairs():
    """3,000 claims of one place have 4.5 million pairs; the odd one is found."""
    graph = bare()
    node = graph.named("trainium1")
    same = Claim(at=BF16, says="210 TFLOPS", source=Ref(PAGE), where="line 1")
    claims = (*[same] * 3000, attrs.evolve(same, says="190 TFLOPS"), *[same] * 3000)
    graph = Graph({**graph.nodes, node.name: attrs.evolve(node, claims=claims)})
    with stopped_after(2.0):
        reported = found("TRN309", graph)

    assert {f"claims.{n}.source" for n in range(3000, 6001)} == {path for _, path in reported}


# TRN310.


@pytest.mark.parametrize("launched", ["2012-10", "2023-10", "2022-11"])
def test_launch_that_a_claim_contradicts(launched):
    assert {("trainium1", "spec.launched")} == found("TRN310", put_word(shipped(), "trainium1", launched))


def put_word(graph: Graph, name: str, launched: str) -> Graph:
    return graph.replace(name, attrs.evolve(graph.named(name).spec, launched=launched))


# TRN311.


@pytest.mark.parametrize(
    ("name", "source", "where", "reported"),
    [
        ("trainium1", "neuron-trn1-2026-08", None, False),
        ("trainium1", "neuron-trainium-inferentia2-arch-2026-08", None, False),
        ("trainium1", "ec2-api-moto-5.2.1", None, False),
        ("trainium1", "neuron-trainium2-2026-08", None, True),
        ("trainium1", "neuron-trainium2-2026-08", "line 3", True),
        ("trn2.48xlarge", "neuron-trn1-2026-08", None, True),
        ("trn2-ultraserver", "neuron-trn3-2026-08", None, True),
        ("neuroncore-v2", "neuron-trn3-2026-08", None, True),
        ("neuronlink-v2", "neuron-trn3-2026-08", None, True),
    ],
)
def test_source_of_a_document(name, source, where, reported):
    expected = {(name, "metadata.source")} if reported else set()

    assert expected == found("TRN311", sourced(bare(), name, source, where))


def test_products():
    graph = shipped()

    assert chips_of(graph, graph.named("trn2-ultraserver")) == {"trainium2"}
    assert chips_of(graph, graph.named("llama-3.1-8b")) == set()
    assert about(graph, "neuron-trn1-2026-08") == {"trainium1"}
    assert about(graph, "neuron-trainium2-2026-08") == {"trainium2"}
    assert about(graph, "ec2-api-moto-5.2.1") == set()


def test_own_source_of_a_figure():
    graph = put(bare(), "trainium1", "memory.capacity", "32 GiB")
    spec = graph.named("trainium1").spec
    figure = attrs.evolve(spec.memory.capacity, source=Ref("neuron-trn3-2026-08"))
    spec = attrs.evolve(spec, memory=attrs.evolve(spec.memory, capacity=figure))

    assert {("trainium1", "spec.memory.capacity.source")} == found("TRN311", graph.replace("trainium1", spec))


# TRN315.


@pytest.mark.parametrize(
    ("reason", "more", "reported"),
    [
        # Between 2023-02-24, the claim, and 2026-08-21, the adopted figure.
        ("It was lowered in 2023-02.", {}, 0),
        ("It was lowered on 2023-02-24.", {}, 0),
        ("It was lowered on 2026-08-21.", {}, 0),
        ("It was lowered on 2023-02-23.", {}, 1),
        ("It was lowered on 2026-08-22.", {}, 1),
        ("It was lowered in 2023-01, and printed so in 2024-02 and 2026-09.", {}, 2),
        ("It was lowered in 2022-12 by 2022-12-031.", {}, 1),
        ("It was lowered in 2022-12.", {"verdict": "rejected"}, 0),
        ("It was lowered in 2022-12.", {"source": "no-such-page"}, 0),
        # Whatever the verdict: the calendar, and the future.
        ("It was lowered on 2024-02-29.", {}, 0),
        ("It was lowered on 2023-02-29.", {"verdict": "rejected"}, 1),
        ("It was lowered in 2023-13, 2023-00, 2023-12-32 and 2023-04.", {}, 3),
        (f"It was lowered on {TODAY}.", {"verdict": "rejected"}, 0),
        (f"It was lowered on {TODAY + timedelta(1)}.", {"verdict": "rejected"}, 1),
    ],
)
def test_the_date_of_a_change(reason, more, reported):
    values = {"source": "neuron-trn1-2023-02", "verdict": "superseded", "reason": reason} | more
    graph = claim(bare(), "trainium1", BF16, "210 TFLOPS", **values)

    assert [("claims", 0, "reason")] * reported == [d.where.path for d in findings("TRN315", graph)]


def test_the_date_of_a_change_may_be_before_a_lower_bound_of_a_date():
    graph = dated(bare(), "neuron-trn1-2023-02", "2023-02-24", "not-before")
    reason = "It was lowered in 2022-12."
    values = {"source": "neuron-trn1-2023-02", "verdict": "superseded", "reason": reason}

    assert set() == found("TRN315", claim(graph, "trainium1", BF16, "210 TFLOPS", **values))
