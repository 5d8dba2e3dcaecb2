"""trnspec.rules.provenance: sources, claims, verdicts, dates, and pages that contradict themselves."""

from __future__ import annotations

import attrs
import pytest
from rules_world import bare, beside, claim, findings, found, put, shipped

from trnspec.graph import Graph
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.quantity import parse

CODES = ["TRN301", "TRN302", "TRN303", "TRN305", "TRN306", "TRN403"]
BF16 = "spec.peak.dense.bf16"
REASON = "For a reason."


@pytest.mark.parametrize("code", CODES)
def test_the_shipped_catalog_is_in_order(code):
    assert findings(code, shipped()) == []


# TRN301.


def orphan() -> Graph:
    """Link neuronlink-v2 without the source of its figures."""
    node = shipped().named("neuronlink-v2")
    metadata = attrs.evolve(node.metadata, source=None)
    return Graph({**bare().nodes, node.name: attrs.evolve(node, metadata=metadata, claims=())})


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        (Figure(value=parse("96 GB/s")), True),
        (Figure(value=parse("96 GB/s"), note="Everybody knows."), True),
        (Figure(value=parse("96 GB/s"), source=Ref("neuron-trn1-2023-02")), False),
        (Figure(value=parse("96 GB/s"), derived="384 GB/s / 4"), False),
    ],
)
def test_a_figure_needs_a_source_or_a_formula(figure, told):
    expected = {("neuronlink-v2", "spec.bandwidth.both")} if told else set()

    assert expected == found("TRN301", put(orphan(), "neuronlink-v2", "bandwidth.both", figure))


# TRN302.


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (BF16, "190 TFLOPS"),
        ("spec.peak.dense.{bf16,fp16}", "190 TFLOPS"),
        ("spec.cores.count", 2),
        ("spec.cores", "two"),
        ("spec.memory.technology", "HBM2"),
        ("spec.launched", "October"),
        ("spec.ratios", "none"),
    ],
)
def test_claims_that_speak_of_something(at, says):
    assert findings("TRN302", claim(bare(), "trainium1", at, says)) == []


@pytest.mark.parametrize(
    ("at", "says", "where", "word"),
    [
        ("spec.memory.capacty", "32 GiB", "at", "no spec.memory.capacty"),
        ("spec.peak.dense.{bf16,bf61}", "190 TFLOPS", "at", "no spec.peak.dense.bf61"),
        ("spec.peak.{dense", "190 TFLOPS", "at", "is not a path"),
        (BF16, "190 GB/s", "says", "measures bandwidth"),
        (BF16, "190 TOPS", "says", "operation rate"),
        (BF16, "fast", "says", "fast"),
        (BF16, 190, "says", "190"),
        ("spec.cores.count", "two", "says", "is not a count"),
        ("spec.cores.count", "2", "says", "is not a count"),
        ("spec.cores.core", "neuroncore-v3", "at", "nothing can be claimed"),
        ("spec.peak.dense.bf16.value.number", "1 x", "at", "no spec.peak"),
    ],
)
def test_claims_that_speak_of_nothing(at, says, where, word):
    (told,) = findings("TRN302", claim(bare(), "trainium1", at, says))

    assert ("claims", 0, where) == told.where.path
    assert word in told.message


# TRN303.


@pytest.mark.parametrize("says", ["190 TFLOPS", "~189 TFLOPS", "0.19 PFLOPS", "over 100 TFLOPS"])
def test_claims_that_overlap_need_no_verdict(says):
    assert findings("TRN303", claim(bare(), "trainium1", BF16, says)) == []


@pytest.mark.parametrize("verdict", [None, "agrees"])
def test_a_conflict_without_a_verdict(verdict):
    graph = claim(shipped(), "trainium1", BF16, "230 TFLOPS", verdict=verdict)
    index = len(graph.named("trainium1").claims) - 1
    (told,) = findings("TRN303", graph)

    assert ("claims", index, "says") == told.where.path
    assert "says neuron-trn1-2023-02, is 230 TFLOPS, but 190 TFLOPS of trainium1 is adopted" in told.message
    assert told.hint.startswith("add a verdict and a reason; ")


def test_the_likely_cause_of_a_conflict_is_told():
    graph = claim(shipped(), "trainium1", "spec.memory.bandwidth", "820 GiB/s")
    (told,) = findings("TRN303", graph)

    assert "a decimal for a binary unit or the reverse: 820 GB/s was meant" in told.hint


def test_a_conflict_of_counts():
    (told,) = findings("TRN303", claim(shipped(), "trainium1", "spec.cores.count", 4))

    assert "a wrong count: 2 closes every gap" in told.hint


@pytest.mark.parametrize("verdict", ["rounded", "superseded", "rejected", "other-scope", "unresolved"])
def test_a_verdict_needs_a_reason(verdict):
    with_reason = claim(bare(), "trainium1", BF16, "230 TFLOPS", verdict=verdict, reason=REASON)
    without = claim(bare(), "trainium1", BF16, "230 TFLOPS", verdict=verdict)

    assert set() == found("TRN303", with_reason)
    assert {("trainium1", "claims.0.verdict")} == found("TRN303", without)


# TRN305.


@pytest.mark.parametrize("verdict", ["superseded", "rejected"])
@pytest.mark.parametrize("says", ["190 TFLOPS", "0.19 PFLOPS", "190,000 GFLOPS"])
def test_what_was_judged_wrong_is_not_adopted(verdict, says):
    graph = claim(bare(), "trainium1", "spec.peak.dense.{bf16,fp32}", says, verdict=verdict, reason=REASON)

    assert {("trainium1", BF16)} == found("TRN305", graph)


@pytest.mark.parametrize(
    ("verdict", "says"),
    [("superseded", "210 TFLOPS"), ("rejected", "~190 TFLOPS"), ("rounded", "190 TFLOPS"), ("rejected", "none")],
)
def test_what_is_adopted_was_not_judged_wrong(verdict, says):
    graph = claim(bare(), "trainium1", BF16, says, verdict=verdict, reason=REASON)

    assert set() == found("TRN305", graph)


# TRN306.


@pytest.mark.parametrize(
    ("day", "told"),
    [
        ("2024-02-29", False),
        ("2023-02-29", True),
        ("2023-02-30", True),
        ("2023-13-01", True),
        ("2023-00-10", True),
        ("2023-04-31", True),
        ("2023-12-31", False),
        ("2023-02", False),
        ("2023", False),
    ],
)
def test_days_that_no_calendar_has(day, told):
    expected = {("neuron-trn1-2023-02", "spec.as_of")} if told else set()
    graph = bare().replace("neuron-trn1-2023-02", attrs.evolve(bare().named("neuron-trn1-2023-02").spec, as_of=day))

    assert expected == found("TRN306", graph)


# TRN403.

PAGE = """\
# file: sources/a-page.yaml
api_version: trnspec/v1
kind: Source
metadata: {name: a-page, title: A page, aliases: [the-page]}
spec: {publisher: Somebody, as_of: 2023-02-28, rank: third-party}
# file: chips/part.yaml
api_version: trnspec/v1
kind: Chip
metadata: {name: part, title: Part, source: neuron-trainium-2026-08}
spec:
  peak: {dense: {bf16: 190 TFLOPS}}
  memory: {capacity: 32 GiB}
claims:
  - {at: spec.peak.dense.bf16, says: 210 TFLOPS, source: SOURCE, verdict: superseded, reason: It is older.}
# file: servers/whole.yaml
api_version: trnspec/v1
kind: Server
metadata: {name: whole, title: Whole, source: neuron-trainium-2026-08}
spec:
  chips: {chip: part, count: 16}
claims:
  - {at: spec.stated.peak.dense.bf16, says: "TOTAL", source: a-page, verdict: VERDICT, reason: It is older.}
"""


def page(total: str, verdict: str = "superseded", source: str = "a-page") -> Graph:
    return beside(PAGE.replace("TOTAL", total).replace("VERDICT", verdict).replace("SOURCE", source))


@pytest.mark.parametrize("source", ["a-page", "the-page"])
def test_a_page_that_contradicts_itself(source):
    graph = page("3,380 TFLOPS", source=source)
    (told,) = findings("TRN403", graph)

    assert {("whole", "claims.0.says")} == found("TRN403", graph)
    assert told.message == "a-page says 3,380 TFLOPS of stated.peak.dense.bf16, but also 16 x 210 TFLOPS of part"


@pytest.mark.parametrize(
    ("total", "verdict"),
    [
        ("3,360 TFLOPS", "superseded"),
        ("3.4 PFLOPS", "superseded"),
        ("3,380 TFLOPS", "rejected"),
        ("3,380 TFLOPS", "unresolved"),
        ("3,380 TFLOPS", "other-scope"),
    ],
)
def test_a_page_that_closes_or_was_judged(total, verdict):
    assert set() == found("TRN403", page(total, verdict))


def test_pages_are_not_held_against_each_other():
    assert set() == found("TRN403", page("3,380 TFLOPS", source="neuron-trn1-2023-02"))
