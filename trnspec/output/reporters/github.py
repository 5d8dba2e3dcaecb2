"""A report as workflow commands: GitHub shows each finding at its line of the change.

The runner needs ``%``, CR and LF escaped in the message, and also ``:`` and ``,`` in properties, where they separate.
"""

from __future__ import annotations

from trnspec.diagnostics import Diagnostic, Report, Severity
from trnspec.output.reporters.common import details, title
from trnspec.text_table import escape

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def report(report: Report, **_: object) -> str:
    """One line per finding; an empty text when there is none."""
    return "\n".join(_command(finding) for finding in report.diagnostics)


def _command(finding: Diagnostic) -> str:
    where = finding.where
    properties = {"file": where.file}
    if where.place is not None:
        properties |= {"line": str(where.place.line), "col": str(where.place.column)}
    properties["title"] = title(finding)
    # The runner rejects a command with a property without a value.
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{_COMMAND[finding.severity]} {shown}::{_data(chr(10).join([finding.message, *details(finding)]))}"


def _data(text: str) -> str:
    text = text.replace("\r\n", "\n")
    # Line by line: line breaks are the only control characters that are kept.
    return "%0A".join(escape(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return escape(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
