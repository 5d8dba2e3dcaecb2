"""trnspec.checks.reconcile.conflicts: many claims that contradict each other where no figure is adopted; tables of edits have few."""

import pytest

from tests.support.rules import bare, claim
from trnspec.checks.reconcile import conflicts as module
from trnspec.checks.reconcile.conflicts import conflicts


@pytest.mark.parametrize("most", [2, 3, 8])
def test_many_claims_are_compared_with_the_best(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(module, "MOST_IN_PAIRS", most)
    graph = bare()
    for says, source in (("400 W", "trn1-2023-02"), ("450 W", "trn2-2026-08"), ("500 W", "trn1-2023-02")):
        graph = claim(graph, "trainium2", "spec.power", says, source=f"neuron-{source}")
    pairs = [(0, 1), (2, 1)] if most < 3 else [(0, 1), (2, 0), (2, 1)]

    assert sorted((c.doubted.claim, c.other.claim) for c in conflicts(graph)) == pairs
