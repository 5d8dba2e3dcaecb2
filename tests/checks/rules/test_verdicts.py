"""trnspec.checks.rules.verdicts: what the verdict "rounded" says, and the arithmetic of reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import beside, found, shipped
from trnspec.api import validate
from trnspec.checks.rules.verdicts import wrong_results
from trnspec.quantities.units import UNITS

REASON = "It has fewer digits."


@pytest.mark.parametrize("code", ["TRN312", "TRN313"])
def test_shipped_catalog_has_no_findings(code):
    assert found(code, shipped()) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is twice one direction, 2 x 640 = 1,280 GB/s.", []),
        ("3 x 640 = 1,280 GB/s.", ["3 x 640"]),
        ("16 x 210 = 3,360 and 16 x 52.5 = 840.", []),
        ("16 x 210 = 3,360 and 16 x 52.5 = 850.", ["16 x 52.5"]),
        ("46.4 / 16 = 2.9 TB/s", []),
        ("32 engines x 27.2 GB/s = 0.87 TB/s", []),
        ("32 engines x 27.2 GB/s = 0.97 TB/s", ["32 engines x 27.2 GB/s"]),
        ("128 x 128 x 2 x 2 x 2.4 GHz = 157.3", []),
        ("128 x 128 x 2 x 2 x 2.4 GHz = 175.3", ["128 x 128 x 2 x 2 x 2.4 GHz"]),
        ("(420 / 190 = 2.21)", []),
        ("(420 / 190 = 2.31)", ["420 / 190"]),
        ("64 + 80 + 16 = 160", []),
        ("64 + 80 + 26 = 160", ["64 + 80 + 26"]),
        ("92 / 0.440 = 209", []),
        ("91 / 0.440 = 209", ["91 / 0.440"]),
        # A comma ends the result; a result without a unit has any prefix, decimal or binary.
        ("16 x 52.5 TFLOPS = 840, the rate", []),
        ("16 x 55.2 TFLOPS = 840, the rate", ["16 x 55.2 TFLOPS"]),
        ("16 x 32 GiB = 512", []),
        ("16 x 32 GiB = 521", ["16 x 32 GiB"]),
        ("2 x 3 ns = 6 of them", []),
        ("2 x 3 ns = 9 of them", ["2 x 3 ns"]),
        ("1 / 8 = 12.5 %", []),
        ("1 / 8 = 12.5 per cent, 1 / 4 = 25 percent", []),
        ("1 / 8 = 13.5 % and 1 / 4 = 26 percent", ["1 / 8", "1 / 4"]),
        # Brackets are part of a calculation, or surround it.
        ("2 x (3 + 4) = 14", []),
        ("2 x (3 + 4) = 15", ["2 x (3 + 4)"]),
        ("of two sides (as printed), 3 x 4 = 13", ["3 x 4"]),
        ("(one of 4; 3 x 4 = 13)", ["3 x 4"]),
        ("2 of them (3 x 4 = 13)", ["3 x 4"]),
        ("2 x 3 = 6 and then 6 x 7 = 43.", ["6 x 7"]),
        ("2 x 3 = 6 = 2 + 5", []),
        # What the grammar does not cover is not checked.
        ("192 - 64 = 100", []),
        ("2^10 = 1000", []),
        ("LNC = 2 and tp = 4", []),
        ("one third of it = 5", []),
    ],
)
def test_arithmetic_of_a_text(text, expected):
    assert expected == [calculation for calculation, *_ in wrong_results(text, UNITS)]


def test_the_result_that_is_offered():
    """The middle of what the rounded operands allow, in the unit of the printed one."""
    assert wrong_results("2 x 100 GB/s = 100 GB/s", UNITS) == (("2 x 100 GB/s", "100 GB/s", "200 GB/s"),)
    assert wrong_results("it is 16 x 55.2 = 840.", UNITS) == (("16 x 55.2", "840", "883.2"),)
    # Without the unit of both there is none to show it in.
    assert wrong_results("it is 16 x 55.2 = 840 GB/s.", UNITS) == (("16 x 55.2", "840 GB/s", "883.2"),)
    assert wrong_results("it is 2 x 55.2 GB/s = 840.", UNITS) == (("2 x 55.2 GB/s", "840", "1.104e+11"),)


@given(st.integers(2, 999), st.integers(2, 999), st.integers(0, 3))
def test_product_is_right_exactly_if_it_is(one, other, off):
    right = one * other
    wrong = right + off * max(2, right // 10)
    text = f"There are {one:,} x {other:,} = {wrong:,} of them."

    # Trailing zeros of an integer may be placeholders.
    slack = 10 ** (len(str(wrong)) - len(str(wrong).rstrip("0")))
    if off == 0:
        assert list(wrong_results(text, UNITS)) == []
    elif abs(wrong - right) > slack:
        assert [f"{one:,} x {other:,}"] == [calculation for calculation, *_ in wrong_results(text, UNITS)]


def test_every_reason_and_note_of_a_document():
    text = """\
api_version: trnspec/v1
kind: Chip
metadata:
  name: example
  title: Example
  source: neuron-trainium2-2026-08
  note: 2 x 3 = 7.
spec:
  peak: {dense: {bf16: {value: 667 TFLOPS, note: 2 x 4 = 9.}}}
  memory: {capacity: 96 GiB}
claims:
  - at: spec.peak.dense.bf16
    says: 667 TFLOPS
    source: neuron-trainium2-2026-08
    reason: 2 x 2 = 4.
  - at: spec.peak.dense.bf16
    says: 667 TFLOPS
    source: neuron-trainium2-2026-08
    reason: 2 x 5 = 11.
"""
    findings = {where for where in found("TRN313", beside(text)) if where[0] == "example"}

    assert {("example", p) for p in ("metadata.note", "spec.peak.dense.bf16.note", "claims.1.reason")} == findings


def test_a_document_with_errors_is_not_reported_again_by_formulas(tmp_path):
    """Its own errors are; a formula that names it adds nothing."""
    head = "api_version: trnspec/v1\nkind: {}\nmetadata: {{name: {}, title: Example, source: semianalysis-2024-12}}\nspec:\n"
    (tmp_path / "broken-link.yaml").write_text(head.format("Link", "broken-link") + "  connects: 3\n")
    (tmp_path / "acme.yaml").write_text(
        head.format("Chip", "acme")
        + "  memory: {capacity: 96 GiB}\n"
        + "  other: {pair: {value: 8 GB/s, derived: 'broken-link:spec.bandwidth.both / 2'}}\n"
        + "claims:\n  - at: spec.memory.bandwidth\n    says: 4 GB/s\n    source: semianalysis-2024-12\n"
        + "    verdict: other-scope\n    scope: broken-link:spec.bandwidth.both / 4\n    reason: Of one lane.\n"
    )
    found = {(d.code, Path(d.where.file).name) for d in validate([tmp_path]).report.diagnostics}

    assert {name for _, name in found} == {"broken-link.yaml"}
