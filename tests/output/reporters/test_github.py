"""The annotations of GitHub."""

from urllib.parse import unquote

from attrs import evolve
from hypothesis import given

from tests.support.outputs import AGGREGATE, CHIP, CLEAN, FULL, SERVER, reports
from trnspec.diagnostics import Diagnostic, Location, Report, Severity
from trnspec.output.reporters import render
from trnspec.text_table import escape
from trnspec.yaml import Place


class TestGithub:
    def test_golden(self) -> None:
        odd = Diagnostic("X1", Severity.ERROR, "a, b: 5%\r\nc", Location("d,e:f%.yaml", Place(1, 2)), name="odd")
        expected = f"""\
::notice file={CHIP},title=TRN950 few-dates::50%25 of the figures have a date
::error file={SERVER},line=2,col=18,title=TRN402 aggregate-mismatch::{AGGREGATE.message}%0A\
see: {CHIP}:14:20 190 TFLOPS%0Ahint: write 3.04 PFLOPS, or add a claim%0Aand say whose figure it is
::warning file={SERVER},line=5,col=3,title=TRN901::the waiver suppresses nothing
::error file=d%2Ce%3Af%25.yaml,line=1,col=2,title=X1 odd::a, b: 5%25%0Ac"""
        assert expected == render(evolve(FULL, diagnostics=(*FULL.diagnostics, odd)), "github")

    def test_clean(self) -> None:
        assert "" == render(CLEAN, "github")

    @given(reports)
    def test_one_command_each(self, report: Report) -> None:
        lines = render(report, "github").splitlines()
        assert len(report.diagnostics) == len(lines)
        for found, line in zip(report.diagnostics, lines, strict=True):
            head, message = line.removeprefix("::").split("::", 1)
            properties = dict(p.split("=", 1) for p in head.partition(" ")[2].split(",") if p)
            assert properties.keys() <= {"file", "line", "col", "title"}
            assert escape(found.where.file) == unquote(properties.get("file", ""))
            assert unquote(message).startswith(escape(found.message.split("\n")[0].split("\r")[0]))
