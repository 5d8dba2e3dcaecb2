"""Counts of a summary of an audit, and the order of its disagreements."""

import pytest

from tests.support.rules import shipped
from trnspec.checks.reconcile.audit import Disagreement, SourceValue, audit
from trnspec.checks.reconcile.overview import is_at, overview, paths_of


def disagreement(verdict="unresolved", gap=0.5, source="neuron-trn2-2026-08", at="spec.memory.bandwidth"):
    return Disagreement(
        name="trainium2",
        at=at,
        adopted=SourceValue("1 TB/s", "x"),
        conflicting=(SourceValue("2 TB/s", source),),
        gap=gap,
        verdict=verdict,
    )


@pytest.mark.parametrize(
    ("at", "paths"),
    [
        ("spec.peak.dense.{bf16,fp16}", ("peak.dense.bf16", "peak.dense.fp16")),
        ("spec.memory.capacity, spec.memory.bandwidth", ("memory.capacity", "memory.bandwidth")),
    ],
)
def test_paths(at, paths) -> None:
    assert paths == paths_of(disagreement(at=at))


def test_below() -> None:
    assert [True, True, False, True] == [
        is_at("memory.bandwidth", wanted) for wanted in ((), ("memory",), ("mem",), ("memory.bandwidth", "x"))
    ]


def test_order_of_importance() -> None:
    """Not recorded, then unresolved, resolved, coarse, a word and rounded; vendors before third parties, large gaps first.

    Texts without a gap are last. A gap is large by its factor: half is as far as twice. Of 0 there is no factor.
    """
    in_order = [
        disagreement("found", 0.01, "semianalysis-2024-12"), disagreement(gap=-0.5), disagreement(gap=0.9),
        disagreement(gap=-0.4), disagreement(gap=-1.0), disagreement(gap=2.0, source="semianalysis-2024-12"),
        disagreement(gap=None), disagreement("rejected", 9.0), disagreement("coarse", 9.0), disagreement("word", 9.0),
        disagreement("rounded", 9.0),
    ]  # fmt: skip

    assert in_order == list(overview(shipped(), reversed(in_order)).important)


def test_counts() -> None:
    """Each figure has one outcome; what is found counts before what its claims say."""
    names = frozenset({"trainium2"})
    summary = overview(shipped(), audit(shipped(), names).disagreements, names)
    one = overview(shipped(), [disagreement("found")], names, ("memory.bandwidth",))

    assert summary.figures == summary.agreeing + summary.resolved + summary.unresolved
    assert (1, summary.found) == (summary.documents, 0)
    assert (1, 1, 0) == (one.figures, one.found, one.agreeing)
