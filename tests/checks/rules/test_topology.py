"""trnspec.checks.rules.topology: what is named of many systems; tables have the rest."""

import attrs

from tests.support.rules import findings, linked, put
from trnspec.graph.graph import Graph
from trnspec.model.ref import Ref


def test_three_systems_of_many_are_named():
    graph = put(linked(), "beta2", "links.link", Ref("wire-v1"))
    node = graph.named("b2.large")
    more = {n: attrs.evolve(node, metadata=attrs.evolve(node.metadata, name=n)) for n in ("b2.small", "b2.huge")}
    (finding,) = findings("TRN504", Graph({**graph.nodes, **more}))

    assert "in 4 systems of it" in finding.message
    assert len(finding.see) == 3
