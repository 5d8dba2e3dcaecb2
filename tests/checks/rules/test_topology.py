"""trnspec.checks.rules.topology: what is named of many systems, and the size of fabrics that are built; tables have the rest."""

import attrs
import pytest

from tests.support.rules import claim, findings, linked, put
from trnspec.graph.graph import Graph
from trnspec.model.fabric import Topology
from trnspec.model.ref import Ref


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
