"""trnspec.diagnostics and trnspec.errors: the order of findings, what they count for, and suggestions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import ROOT
from tests.support.tables import tables
from trnspec import errors
from trnspec.diagnostics import Diagnostic, Location, Report, Severity, in_plugin, nearest, read_page, unknown_name
from trnspec.errors import QuantityError, TrnspecError, UnknownNameError, UsageError
from trnspec.yaml import Place

INFO, WARNING, ERROR = Severity.INFO, Severity.WARNING, Severity.ERROR


def diagnostic(  # they are the fields of a diagnostic
    code="TRN101", severity=ERROR, *, file="a.yaml", line=1, column=1, text=""
) -> Diagnostic:
    return Diagnostic(code, severity, text, Location(file, Place(line, column) if line else None))


@pytest.mark.parametrize("severity", Severity)
def test_severity_from_its_name(severity):
    assert Severity.of(severity.label) is severity
    assert Severity.of(severity.label.upper()) is severity


@pytest.mark.parametrize("word", ["", "fatal", "errors", "3"])
def test_unknown_severity_name(word):
    with pytest.raises(ValueError, match=r"is not a severity; write one of info, warning, error$") as caught:
        Severity.of(word)
    assert repr(word) in str(caught.value)
    assert caught.value.__cause__ is None


def test_findings_are_in_reading_order():
    """By file, then by place, where the file as a whole comes first, then by code and message."""
    ordered = [
        diagnostic(line=0, code="TRN901"),
        diagnostic(line=2, column=9),
        diagnostic(line=10, column=1),
        diagnostic(line=10, column=2, code="TRN101", text="a"),
        diagnostic(line=10, column=2, code="TRN101", text="b"),
        diagnostic(line=10, column=2, code="TRN102", text="a"),
        diagnostic(file="b.yaml", line=1),
    ]
    report = Report(tuple(reversed(ordered)))
    assert list(report.diagnostics) == ordered
    assert report.lines() == {("TRN901", 0), ("TRN101", 2), ("TRN101", 10), ("TRN102", 10), ("TRN101", 1)}
    assert (report.files, report.waived, report.accepted) == (0, 0, 0)


def test_a_page_has_the_form_of_a_docstring(tmp_path):
    """A section is indented below its heading, without a blank line; a fenced line that looks like a heading is none."""
    page = "---\nname: x\nseverity: error\n---\n\nA sentence:\n\n    code\n\n## Why\n\nText.\n\n```yaml\n## no: heading\n```\n"
    (tmp_path / "X.md").write_text(page)
    text = "A sentence:\n    code\n\nWhy:\n    Text.\n\n    ```yaml\n    ## no: heading\n    ```"
    assert read_page(tmp_path / "X.md") == ({"name": "x", "severity": "error"}, text)


@given(st.permutations([diagnostic(f, file=g, line=n) for f in ("A1", "B2") for g in ("a", "b") for n in (0, 1, 2)]))
def test_report_order_is_independent_of_finding_order(diagnostics):
    assert Report(tuple(diagnostics)) == Report(tuple(reversed(diagnostics)))
    assert len(Report(tuple(diagnostics)).diagnostics) == 12


@pytest.mark.parametrize(
    ("severities", "ok"), [([], True), ([INFO, INFO], True), ([INFO, WARNING], False), ([ERROR], False)]
)
def test_when_a_report_is_fine(severities, ok):
    report = Report(tuple(diagnostic(severity=s) for s in severities))
    assert report.ok is ok
    assert {s: report.count(s) for s in Severity} == {s: severities.count(s) for s in Severity}


@pytest.mark.parametrize(("word", "words", "found"), tables(__file__)["nearest_names"])
def test_nearest_names(word, words, found):
    result = nearest(word, words)
    assert (len(result) if isinstance(found, int) else result) == found
    assert set(result) <= set(words)
    hint = f"; did you mean {' or '.join(map(repr, result))}?" if result else ""
    assert f"there is none{hint}" == str(unknown_name("there is none", word, words))


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, unique_by=str.casefold), st.data())
def test_name_is_nearest_to_itself(words, data):
    word = data.draw(st.sampled_from(words))
    assert nearest(word, words)[0] == word


def test_one_class_catches_all_that_is_raised():
    raised = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)]
    assert {TrnspecError, UsageError, QuantityError, UnknownNameError} <= set(raised)
    assert all(issubclass(e, TrnspecError) for e in raised)


def test_errors_derive_from_builtin_exceptions():
    quantity = QuantityError("no-unit", "a message", "a hint")
    assert isinstance(quantity, ValueError)
    assert (quantity.reason, str(quantity), quantity.hint) == ("no-unit", "a message", "a hint")
    assert QuantityError("malformed", "a message").hint == ""
    name = UnknownNameError("no document is named 'x'")
    assert isinstance(name, KeyError)
    assert str(name) == "no document is named 'x'"
    assert str(UnknownNameError()) == ""
    assert not isinstance(UsageError("x"), (ValueError, KeyError))


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("plugin", ["trnspec-inferentia", "trnspec-nvidia"])
def test_systems_of_a_plugin_name_it_unless_it_is_installed(plugin: str, installed: bool, monkeypatch) -> None:
    package = plugin.replace("-", "_")
    catalog = ROOT / "plugins" / plugin / "src" / package / "catalog"
    names = [f.stem for folder in ("chips", "servers", "ultraservers") for f in catalog.glob(f"{folder}/*.yaml")]
    monkeypatch.setattr("importlib.util.find_spec", {package: "found" if installed else None}.__getitem__)
    assert names
    assert {name for name in names if (f"pip install {plugin}" in in_plugin(name)) is installed} == set()
