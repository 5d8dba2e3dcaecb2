"""The format of build servers."""

from datetime import datetime
from xml.etree import ElementTree

from hypothesis import given

from tests.support.outputs import AGGREGATE, CHIP, FULL, SERVER, reports
from trnspec._version import __version__
from trnspec.diagnostics import Report
from trnspec.output.reporters import render


class TestJunit:
    def test_golden(self) -> None:
        """Failures for errors and warnings, a skip for information, in the order the schema of Ant asks for."""
        expected = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="trnspec" tests="3" failures="2" errors="0" skipped="1" hostname="localhost" time="0" \
timestamp="2026-01-02T03:04:05">
  <properties>
    <property name="version" value="{__version__}" />
  </properties>
  <testcase classname="trnspec.TRN950" name="{CHIP}" time="0">
    <skipped type="TRN950" message="50% of the figures have a date">\
{CHIP}: info TRN950 few-dates: 50% of the figures have a date</skipped>
  </testcase>
  <testcase classname="trnspec.TRN402" name="{SERVER} spec.stated.bf16" time="0">
    <failure type="TRN402" message="{AGGREGATE.message}">\
{SERVER}:2:18: error TRN402 aggregate-mismatch: {AGGREGATE.message}
see: {CHIP}:14:20 190 TFLOPS
hint: {AGGREGATE.hint}</failure>
  </testcase>
  <testcase classname="trnspec.TRN901" name="{SERVER}:5:3" time="0">
    <failure type="TRN901" message="the waiver suppresses nothing">\
{SERVER}:5:3: warning TRN901: the waiver suppresses nothing</failure>
  </testcase>
  <system-out>1 error, 1 warning, 1 info in 14 documents, 3 waived.</system-out>
  <system-err />
</testsuite>"""
        assert expected == render(FULL, "junit", when=datetime(2026, 1, 2, 3, 4, 5, 6))

    @given(reports)
    def test_well_formed(self, report: Report) -> None:
        """It parses, its counts are those of its cases, and it fails just when the report is not ok."""
        suite = ElementTree.fromstring(render(report, "junit").encode())
        cases = suite.findall("testcase")
        assert len(report.diagnostics) + report.ok == len(cases) == int(suite.get("tests", ""))
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
        assert report.ok is (suite.find("testcase/failure") is None)
