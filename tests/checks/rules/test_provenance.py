"""trnspec.checks.rules.provenance: many claims; the rules are tested by tables of edits."""

import attrs

from tests.support.rules import SOURCE, bare, findings
from trnspec.graph.graph import Graph
from trnspec.model.document import Claim
from trnspec.model.ref import Ref


def test_many_claims_are_compared_with_one_and_explained_in_part(monkeypatch):
    """Sixty claims have 1,770 pairs; each but the best is reported once, and the causes of the first ones are named."""
    monkeypatch.setattr("trnspec.checks.reconcile.hints.MOST_EXPLAINED", 5)
    node = bare().named("trainium1")
    claims = tuple(Claim(at="spec.power", says=f"{n + 1} W", source=Ref(SOURCE), where=f"line {n}") for n in range(60))
    reported = findings("TRN303", Graph({**bare().nodes, node.name: attrs.evolve(node, claims=claims)}))

    assert 59 == len({d.where.path for d in reported}) == len(reported)
    assert 54 == sum("causes were searched for the first ones" in d.hint for d in reported)
