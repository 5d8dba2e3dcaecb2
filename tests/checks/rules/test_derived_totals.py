"""trnspec.checks.rules.derived: how a total that does not add up is reported."""

from __future__ import annotations

import attrs
import pytest

from tests.support.rules import bare, claim, findings, found, put, shipped
from trnspec.checks.reconcile.sites import CLAIM
from trnspec.checks.reconcile.suspects import blamed
from trnspec.checks.rules.derived import disagreement
from trnspec.testing import report


def one(graph, code="TRN402"):
    (shown,) = findings(code, graph)
    return shown


def test_the_shipped_catalog_adds_up():
    assert findings("TRN402", shipped()) == []


def test_a_total_with_its_arithmetic():
    shown = one(put(bare(), "trn1.32xlarge", "stated.memory.capacity", "480 GiB"))

    expected = (
        "stated.memory.capacity of trn1.32xlarge is 480 GiB, but 16 x 32 GiB of trainium1 = 512 GiB (chips of a server)"
    )
    assert expected == shown.message
    assert shown.hint == "likely cause: a wrong count: 480 GiB is 15 x 32 GiB, not 16 x"
    assert shown.where.path == ("spec", "stated", "memory", "capacity")


def test_part_finding_names_the_required_value():
    shown = one(put(bare(), "trainium1", "peak.dense.bf16", "290 TFLOPS"))

    assert shown.message.startswith("peak.dense.bf16 of trainium1 is 290 TFLOPS, but stated.peak.dense.bf16 of ")
    assert " is 190 TFLOPS, which needs 190 TFLOPS here (chips of a server)" in shown.message
    assert shown.message.endswith("; 2 more totals disagree with it")


def test_count_finding_names_the_required_count():
    shown = one(put(bare(), "trn1.32xlarge", "chips.count", 12))

    assert shown.where.path == ("spec", "chips", "count")
    assert "chips.count of trn1.32xlarge is 12, but " in shown.message
    assert " which needs 16 here " in shown.message
    assert shown.hint == "likely cause: a wrong count: 16 closes every gap"


def test_a_sum_of_two_terms():
    shown = one(put(bare(), "trainium2", "links.bandwidth.both", "1.42 TB/s"))

    assert "1,024 GB/sec of trn2-ultraserver + 256 GB/sec of trn2-ultraserver = 1.28 TB/s" in shown.message


def test_the_other_places_are_named_but_not_all_of_them():
    graph = put(shipped(), "trainium1", "peak.dense.bf16", "290 TFLOPS")
    shown = one(graph)

    assert "more total" in shown.message
    assert len(shown.see) == 6
    assert len(set(shown.see)) == len(shown.see)
    assert shown.where.path not in {s.path for s in shown.see if s.file == shown.where.file}


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("12.8 Tbps", None),
        (
            "3,200 Gbps",
            "several causes would close the gap: the figure of one part, 3,200 Gbps, was used for the whole",
        ),
        ("12,800 GB/s", "likely cause: bits for bytes or the reverse: 12,800 Gbit/s was meant"),
        ("12,800 Gibit/s", "likely cause: a decimal for a binary unit or the reverse: 12,800 Gbit/s was meant"),
        ("12,800 Mbps", "likely cause: a wrong unit prefix: 12,800 Gbit/s was meant"),
        ("25,600 Gbps", "both directions instead of one"),
        ("9,999 Gbps", "none of the usual causes closes the gap"),
    ],
)
def test_the_efa_of_an_ultraserver(wrong, hint):
    """The published total of Trn2 is that of one of its four servers."""
    graph = claim(bare(), "trn2-ultraserver", "spec.stated.network.bandwidth", wrong)
    shown = [*findings("TRN402", graph), *findings("TRN303", graph)]

    assert (hint is None) == (not shown)
    if hint is not None:
        assert len(shown) == 1
        assert hint in shown[0].hint


def test_several_causes_are_reported_as_several():
    """A total of half the size is eight chips, or one direction."""
    shown = one(put(bare(), "trn1.32xlarge", "network.bandwidth", "400.0 Gbps"))

    assert shown.hint.startswith("several causes would close the gap: ")
    assert "one direction instead of both" in shown.hint
    assert "4 x 100.0 Gbps, not 8 x" in shown.hint


@pytest.mark.parametrize(
    ("totals", "sources", "words"),
    [
        (0, 0, ""),
        (1, 0, "; 1 more total disagrees with it"),
        (2, 0, "; 2 more totals disagree with it"),
        (0, 1, "; 1 more source disagrees with it"),
        (1, 1, "; 1 more total and 1 more source disagree with it"),
        (0, 3, "; 3 more sources disagree with it"),
    ],
)
def test_the_relations_that_disagree_are_counted(totals, sources, words):
    graph = put(bare(), "trn1.32xlarge", "stated.memory.capacity", "480 GiB")
    (suspect,) = blamed(graph)
    (relation,) = suspect.failing
    claims = [attrs.evolve(relation, level=CLAIM)] * sources
    finding = disagreement(attrs.evolve(suspect, failing=(relation, *[relation] * totals, *claims)), graph)

    assert finding.message.partition(" (chips of a server)")[2] == words


def test_claims_are_left_to_another_rule():
    graph = claim(shipped(), "trainium1", "spec.peak.dense.bf16", "230 TFLOPS")

    assert findings("TRN402", graph) == []
    assert len(findings("TRN303", graph)) == 1


def test_two_faults_two_findings():
    graph = put(put(bare(), "trainium1", "peak.dense.bf16", "290 TFLOPS"), "trn1.32xlarge", "stated.cores", 64)

    assert {("trainium1", "spec.peak.dense.bf16"), ("trn1.32xlarge", "spec.stated.cores")} == found("TRN402", graph)


def test_a_total_is_compared_with_as_many_digits_as_it_has():
    graph = put(
        put(bare(), "trn1.32xlarge", "stated.memory.capacity", "480.00 GiB"),
        "trainium1",
        "memory.capacity",
        "32.011 GiB",
    )
    messages = [f.message for f in findings("TRN402", graph)]

    assert any("16 x 32.011 GiB of trainium1 = 512.176 GiB" in message for message in messages)


def test_the_total_that_was_used_for_one_part_is_named():
    """Through the rule: the totals of a part reach the explanations."""
    shown = one(put(bare(), "trainium1", "peak.dense.bf16", "3,040 TFLOPS"))

    assert "the total, 3,040 TFLOPS, was used for one part" in shown.hint


def test_the_clock_is_compared_with_the_peak():
    """Elements times clock is a rate of another dimension than the clock."""
    graph = put(bare(), "neuroncore-v2", "engines.tensor.clock", "2.0 GHz")

    assert {n for n, _ in found("TRN402", graph)} & {"neuroncore-v2"}


@pytest.mark.parametrize(
    ("rates", "files"),
    [
        (("1307.4 TFLOPS", "1307.4 TFLOPS"), {"servers/acme-1-box.yaml", "servers/acme-2-box.yaml"}),
        (("1307.4 TFLOPS", "1300 TFLOPS"), {"chips/acme-1.yaml"}),
    ],
)
def test_truncated_totals_of_equal_chips(rates, files):
    """The totals of both are doubted, and the first cause is the right one; of one chip alone it is the chip."""
    head = "api_version: trnspec/v1\nkind: {}\nmetadata: {{name: {}, title: Acme, source: neuron-trn1-2026-08}}\n"
    texts = {}
    for number, rate in enumerate(rates, 1):
        chip, box = f"acme-{number}", f"acme-{number}-box"
        texts[f"chips/{chip}.yaml"] = head.format("Chip", chip) + (
            f"spec: {{memory: {{capacity: 192 GiB}}, peak: {{dense: {{bf16: {rate}}}}}}}\n"
        )
        texts[f"servers/{box}.yaml"] = head.format("Server", box) + (
            f"spec: {{chips: {{chip: {chip}, count: 8}}, stated: {{peak: {{dense: {{bf16: 10.4 PFLOPS}}}}}}}}\n"
        )
    shown = [d for d in report(texts, plugins=()).diagnostics if d.code == "TRN402"]

    assert {d.where.file for d in shown} == files
    if len(files) > 1:
        assert all("gap: truncation: digits after 10.4 PFLOPS were cut off, not rounded" in d.hint for d in shown)
