"""Chips that are announced: few figures are needed, engines refuse them, and assumptions make up for what is not published."""

import pytest

import trnspec
from tests.support.engine import refusal
from trnspec.model.chip import Chip
from trnspec.plugins.api import Finding, rule

CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: next, title: Next, source: page}
spec: {STATUSgeneration: {training: 4}}
"""
SOURCE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: page, title: A page}
spec: {publisher: P, as_of: 2026-01, rank: third-party}
"""


@pytest.mark.parametrize(
    ("status", "codes"),
    [
        ("status: announced, ", []),
        ("", ["TRN102"]),
        ("status: sold, ", ["TRN104"]),
        ("status: {value: announced, where: end}, ", []),
    ],
)
def test_memory_is_required_unless_announced(tmp_path, status, codes) -> None:
    (tmp_path / "next.yaml").write_text(CHIP.replace("STATUS", status))
    (tmp_path / "page.yaml").write_text(SOURCE)

    assert codes == sorted(d.code for d in trnspec.validate([str(tmp_path)]).report.diagnostics)


def test_trainium4_is_queried_with_its_ratios() -> None:
    catalog = trnspec.load()

    assert ["trainium4"] == [row.name for row in catalog.query('chip where status = "announced"')]
    ratios = {r.of: (str(r.says), r.over.name) for r in catalog.chips["trainium4"].node.spec.ratios}
    assert ratios["spec.peak.dense.mxfp4"] == (">= 6x", "trainium3")


def test_engine_refuses_an_announced_chip_without_assumptions() -> None:
    catalog = trnspec.load()
    matmul = {"on": "trainium4", "matmul": "64x64x64"}
    assume = {"memory.capacity": "288 GiB", "memory.bandwidth": "20 TB/s", "peak.dense.bf16": "4 PFLOPS"}
    refused = refusal(trnspec.evaluate, "roofline", catalog, **matmul)
    found = trnspec.evaluate(
        "roofline", catalog, **matmul, assume={f"trainium4.{path}": value for path, value in assume.items()}
    )

    assert ("announced", "trainium4 spec.memory") == (refused.reason, refused.place)
    assert found["ridge_point"] == pytest.approx(4e15 / 20e12)


def test_rules_of_plugins_are_not_over_announced_chips() -> None:
    def tiny(node, graph):
        """A chip with little memory."""
        yield Finding(("spec", "memory"), str(node.spec.memory.capacity.to("GiB")))

    catalog = trnspec.load()
    own = rule("ACME001", "tiny-memory", over=Chip)(tiny)
    named = {chip.name for chip in catalog.graph.of(Chip) if own.concerns(chip)}

    assert {"trainium1", "trainium2", "trainium3"} == named
