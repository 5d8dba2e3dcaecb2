"""A report as workflow commands: GitHub shows each finding at its line of the change.

The escaping is that of the runner: ``%``, CR and LF in what follows ``::``, and ``:`` and ``,`` in properties besides,
since these end a property there.
"""

from __future__ import annotations

from trnspec.diagnostics import Diagnostic, Report, Severity
from trnspec.output.reporters.common import title
from trnspec.text_table import escape

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def report(report: Report, **_: object) -> str:
    """One line per finding; an empty text when there is none."""
    return "\n".join(_command(found) for found in report.diagnostics)


def _command(found: Diagnostic) -> str:
    where = found.where
    properties = {"file": where.file}
    if where.place is not None:
        properties |= {"line": str(where.place.line), "col": str(where.place.column)}
    properties["title"] = title(found)
    # A property without a value makes the runner refuse the whole command.
    shown = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    parts = [found.message]
    parts += [f"see: {other} {other.text}".rstrip() for other in found.see]
    parts += [f"hint: {found.hint}"] if found.hint else []
    return f"::{_COMMAND[found.severity]} {shown}::{_data(chr(10).join(parts))}"


def _data(text: str) -> str:
    text = text.replace("\r\n", "\n")
    # Line by line, since line breaks are the only control characters that mean something here.
    return "%0A".join(escape(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return escape(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
