"""trnspec.checks.reconcile.conflicts: claims that contradict each other where no figure is adopted."""

import pytest

from tests.support.rules import bare, claim, put, shipped
from trnspec.checks.reconcile import conflicts as module
from trnspec.checks.reconcile.conflicts import conflict_finding, conflicts
from trnspec.checks.reconcile.hints import Budget
from trnspec.graph.graph import Graph
from trnspec.model.reflection import dotted

# A page of the vendor is closer than an article, and of two pages the newer one.
OLD, NEW, ARTICLE = "neuron-trn1-2023-02", "neuron-trn2-2026-08", "semianalysis-2024-12"
AT = "spec.power"


def claimed(*claims: tuple[str, str], at: str = AT, name: str = "trainium2") -> Graph:
    graph = put(bare(), name, at.removeprefix("spec."), None)
    for says, source in claims:
        graph = claim(graph, name, at, says, source=source)
    return graph


def found(graph: Graph, name: str = "trainium2") -> list[tuple[int | None, int | None, tuple[str, ...]]]:
    return [
        (c.doubted.claim, c.other.claim, tuple(dotted(p) for p in c.paths))
        for c in conflicts(graph)
        if c.doubted.node.name == name
    ]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([("450 W", OLD), ("500 W", NEW)], [(0, 1)]),
        ([("500 W", NEW), ("450 W", OLD)], [(1, 0)]),
        ([("450 W", NEW), ("500 W", ARTICLE)], [(1, 0)]),
        ([("450 W", ARTICLE), ("500 W", OLD)], [(0, 1)]),
        # Of one source the first has precedence.
        ([("450 W", NEW), ("500 W", NEW)], [(1, 0)]),
        ([("450 W", OLD), ("450 W", NEW)], []),
        ([("450 W", OLD), ("450 W", NEW), ("500 W", ARTICLE)], [(2, 0), (2, 1)]),
        ([("450 W", OLD)], []),
        # A source that is missing, a text and another dimension are reported elsewhere.
        ([("450 W", OLD), ("500 W", "none-such")], [(1, 0)]),
        ([("450 W", OLD), ("large", NEW)], []),
        ([("450 W", OLD), ("28 GB/s", NEW)], []),
    ],
)
def test_doubted_claim_of_a_conflict(claims: list[tuple[str, str]], expected: list[tuple[int, int]]) -> None:
    assert found(claimed(*claims)) == [(*pair, (AT,)) for pair in expected]


def test_an_adopted_figure_leaves_no_conflict() -> None:
    graph = put(claimed(("450 W", OLD), ("500 W", NEW)), "trainium2", "power", "450 W")

    assert found(graph) == []
    assert list(conflicts(shipped())) == []


def test_claims_on_several_figures() -> None:
    """Of one pair all figures are in one finding."""
    at = "spec.peak.sparse.{fp16,tf32}"
    graph = bare()
    for says, source in (("100 TFLOPS", OLD), ("200 TFLOPS", NEW)):
        graph = claim(graph, "trainium1", at, says, source=source)
    (conflict,) = [c for c in conflicts(graph) if len(c.paths) > 1]
    finding = conflict_finding(conflict, graph, Budget())

    assert [dotted(p) for p in conflict.paths] == ["spec.peak.sparse.fp16", "spec.peak.sparse.tf32"]
    assert finding.message == (
        "peak.sparse.fp16 and 1 more of trainium1 is 100 TFLOPS according to neuron-trn1-2023-02 (2023-02-24), but "
        "200 TFLOPS according to neuron-trn2-2026-08 (2026-08-21), and no figure is adopted"
    )
    assert finding.see == (conflict.other.location,)


@pytest.mark.parametrize("most", [2, 3, 8])
def test_many_claims_are_compared_with_the_best(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(module, "MOST_IN_PAIRS", most)
    values = [("400 W", OLD), ("450 W", NEW), ("500 W", OLD)]
    pairs = [(0, 1), (2, 1)] if most < len(values) else [(0, 1), (2, 0), (2, 1)]

    assert sorted(pair[:2] for pair in found(claimed(*values))) == pairs
