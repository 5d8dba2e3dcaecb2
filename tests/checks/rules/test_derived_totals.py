"""trnspec.checks.rules.derived: how a total that does not add up is reported."""

import attrs
import pytest

from tests.support.rules import bare, findings, put, shipped
from trnspec.checks.reconcile.hints import Budget
from trnspec.checks.reconcile.sites import CLAIM
from trnspec.checks.reconcile.suspects import blamed
from trnspec.checks.rules.derived import disagreement
from trnspec.testing import report


def one(graph, code="TRN402"):
    (shown,) = findings(code, graph)
    return shown


def test_the_other_places_are_named_but_not_all_of_them():
    graph = put(shipped(), "trainium1", "peak.dense.bf16", "290 TFLOPS")
    shown = one(graph)

    assert "more total" in shown.message
    assert len(shown.see) == 6
    assert len(set(shown.see)) == len(shown.see)
    assert shown.where.path not in {s.path for s in shown.see if s.file == shown.where.file}


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
    finding = disagreement(attrs.evolve(suspect, failing=(relation, *[relation] * totals, *claims)), graph, Budget())

    assert finding.message.partition(" (chips of a server)")[2] == words


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
