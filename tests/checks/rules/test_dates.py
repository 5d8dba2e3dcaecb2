"""trnspec.checks.rules.dates: dates of sources and products, and pages about other products."""

from datetime import date, timedelta

import attrs
import pytest

from tests.support.rules import bare, claim, found, shipped, stopped_after
from trnspec.graph.graph import Graph
from trnspec.model.document import Claim
from trnspec.model.ref import Ref

BF16 = "spec.peak.dense.bf16"
PAGE = "neuron-trainium-2026-08"
TODAY = date.today()


def dated(graph: Graph, name: str, as_of: str, dating: str = "exact") -> Graph:
    """The graph with another date of a source."""
    spec = attrs.evolve(graph.named(name).spec, as_of=as_of, dating=dating)
    return graph.replace(name, spec)


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


@pytest.mark.parametrize(("days", "reported"), [(0, False), (1, True)])
def test_a_change_of_today_and_of_tomorrow(days, reported):
    more = {"verdict": "rejected", "reason": f"It was lowered on {TODAY + timedelta(days)}."}
    expected = {("trainium1", "claims.0.reason")} if reported else set()

    assert expected == found("TRN315", claim(bare(), "trainium1", BF16, "210 TFLOPS", **more))
