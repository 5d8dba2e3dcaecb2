"""Properties of all report formats, and parts that several share."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outputs import CLEAN, reports
from trnspec.builtin import plugin
from trnspec.diagnostics import Diagnostic, Location, Report, Severity
from trnspec.errors import UsageError
from trnspec.output.reporters import render, use_color
from trnspec.output.reporters.common import dotted


def test_dotted() -> None:
    assert 'spec.links[2]["a.b"].x-y["\\"1"][""]' == dotted(("spec", "links", 2, "a.b", "x-y", '"1', ""))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Always."""
        return True


@pytest.mark.parametrize(
    ("terminal", "environ", "expected"),
    [
        (True, {}, True), (False, {}, False), (True, {"TERM": "dumb"}, False), (True, {"NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "0"}, False), (False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        (False, {"FORCE_COLOR": ""}, False), (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)  # fmt: skip
def test_use_color(terminal: bool, environ: dict[str, str], expected: bool) -> None:
    assert expected is use_color(Terminal() if terminal else io.StringIO(), environ)


class TestRender:
    @given(reports, st.sampled_from([r.name for r in plugin.reporters]))
    def test_every_format(self, report: Report, format: str) -> None:
        text = render(report, format, color=True, width=30, docs="https://example.org")
        assert text.encode("utf-8").decode() == text
        assert not text.endswith("\n")

    @pytest.mark.parametrize("format", [r.name for r in plugin.reporters])
    def test_relative_files(self, format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files below the working directory are relative, also those of related places; GitHub needs it for annotations."""
        monkeypatch.chdir(tmp_path)
        inside, outside = Location(str(tmp_path / "servers/box.yaml")), Location(str(tmp_path.parent / "chip.yaml"))
        text = render(Report((Diagnostic("TRN402", Severity.ERROR, "wrong", inside, see=(inside, outside)),)), format)
        assert "servers/box.yaml" in text
        assert str(tmp_path / "servers") not in text
        assert str(outside) in text

    def test_unknown(self) -> None:
        with pytest.raises(UsageError, match=", ".join(r.name for r in plugin.reporters)):
            render(CLEAN, "xml")
