"""trnspec.checks.rules.verdicts: what the verdict "rounded" says, and the arithmetic of reasons."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.api import validate
from trnspec.checks.rules.verdicts import wrong_results
from trnspec.quantities.units import UNITS
from trnspec.yaml import read_text

TEXTS = read_text(Path(__file__).with_name("arithmetic.yaml").read_text("utf-8"), "arithmetic.yaml").data["texts"]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
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

    # Where that document is not checked, its formulas cannot be checked either, which is an error.
    alone = validate([tmp_path / "acme.yaml"]).report.diagnostics
    assert {("TRN404", 6), ("TRN314", 12)} == {(d.code, d.where.place.line) for d in alone}
