"""The account that every export keeps."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.small_catalog import GRAPH
from trnspec.output.exporters.export_log import ExportLog, in_unit, number
from trnspec.output.exporters.exported import ExportAssumption, ExportError

FULL, BOX = GRAPH.named("full"), GRAPH.named("box")


def export_log() -> ExportLog:
    return ExportLog(GRAPH, BOX, "form")


def test_use_remembers_the_figure() -> None:
    account = export_log()

    assert 600 * 10**12 == account.need("peak", FULL, "peak.dense.bf16")
    assert ["peak: 600 TFLOPS (full peak.dense.bf16; page, 2024-02)"] == [str(u) for u in account.used]
    assert () == account.assumptions


def test_uncertain_fields_are_assumptions() -> None:
    """Derived, noted and qualified figures each say so; a figure that is printed plainly says nothing."""
    account = export_log()
    for path in ("peak.dense.fp8", "memory.bandwidth", "links.bandwidth.both", "memory.capacity"):
        account.need(path, FULL, path)

    assert {
        "peak.dense.fp8": "1.2 PFLOPS (full peak.dense.fp8) is not published; it is derived: twice the bf16",
        "memory.bandwidth": "~3 TB/s (full memory.bandwidth) is used as an exact value, without its '~'",
        "links.bandwidth.both": "1 TB/s (full links.bandwidth.both): a note",
    } == {a.field: a.says for a in account.assumptions}


def test_the_same_is_noted_once() -> None:
    account = export_log()
    for _ in range(2):
        account.assume("a", "b")
        account.need("peak", FULL, "peak.dense.bf16")

    assert (ExportAssumption("a", "b"),) == account.assumptions
    assert 1 == len(account.used)


def test_a_figure_that_is_needed_and_not_there() -> None:
    with pytest.raises(ExportError) as caught:
        export_log().need("sbuf", FULL, "sbuf")

    assert "unknown-figure" == caught.value.reason
    assert str(caught.value).startswith("box cannot be exported to form: sbuf needs sbuf of full, which is not known; ")


def test_a_document_without_chips() -> None:
    with pytest.raises(ExportError, match="it has no chips") as caught:
        ExportLog(GRAPH, GRAPH.named("wire"), "form").chip()

    assert "no-chips" == caught.value.reason


@given(st.fractions(min_value=0, max_value=10**18))
def test_numbers_are_exact_or_nearest(value: Fraction) -> None:
    made = number(value)

    assert isinstance(made, int) == (value.denominator == 1)
    assert float(value) == made


def test_units_are_converted_exactly() -> None:
    assert (96, 2900, 1.5) == (
        in_unit(Fraction(103_079_215_104), "GiB"),
        in_unit(Fraction(2_900_000_000_000), "GB/s"),
        in_unit(Fraction(3, 2 * 10**6), "us"),
    )
