"""A report as JUnit XML, for servers that collect test results.

The structure is that of Apache Ant, which Jenkins, GitLab and others read: one ``testsuite`` with ``properties``,
``testcase`` elements that hold at most one ``failure`` or ``skipped``, then ``system-out`` and ``system-err``.
"""

from __future__ import annotations

import re
from datetime import datetime
from xml.etree import ElementTree

from trnspec._version import __version__
from trnspec.diagnostics import Diagnostic, Report, Severity
from trnspec.output.reporters.common import details, dotted, tally, title

# XML 1.0 section 2.2: characters outside these ranges are not allowed, not even as references.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report(report: Report, *, when: datetime | None = None, **_: object) -> str:
    """One test case per finding, plus one that passes when there are no errors and warnings.

    Errors and warnings are failures; an information is a skipped test, so that the build result agrees with the
    exit status. ``when`` becomes the time stamp, which strict readers require.
    """
    failures = sum(d.severity > Severity.INFO for d in report.diagnostics)
    skipped = len(report.diagnostics) - failures
    suite = ElementTree.Element(
        "testsuite",
        name="trnspec",
        tests=str(len(report.diagnostics) + report.ok),
        failures=str(failures),
        errors="0",
        skipped=str(skipped),
        hostname="localhost",
        time="0",
    )
    if when is not None:
        suite.set("timestamp", when.replace(tzinfo=None).isoformat(timespec="seconds"))
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="version", value=__version__)
    if report.ok:
        ElementTree.SubElement(suite, "testcase", classname="trnspec", name="nothing is wrong", time="0")
    for finding in report.diagnostics:
        _case(suite, finding)
    ElementTree.SubElement(suite, "system-out").text = tally(report)
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(suite)
    # Character references instead of UTF-8: the declared encoding is then right in every pipe.
    body: bytes = ElementTree.tostring(suite, encoding="us-ascii")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + body.decode("ascii")


def _case(suite: ElementTree.Element, finding: Diagnostic) -> None:
    where = finding.where
    # Named after the path in the document, not the line, so that a server can follow the case when lines move.
    name = f"{where.file} {dotted(where.path)}" if where.path else str(where)
    case = ElementTree.SubElement(
        suite, "testcase", classname=_clean(f"trnspec.{finding.code}"), name=_clean(name), time="0"
    )
    outcome = ElementTree.SubElement(case, "failure" if finding.severity > Severity.INFO else "skipped")
    outcome.set("type", _clean(finding.code))
    outcome.set("message", _clean(finding.message))
    first = f"{where}: {finding.severity.label} {title(finding)}: {finding.message}"
    outcome.text = _clean("\n".join([first, *details(finding)]))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
