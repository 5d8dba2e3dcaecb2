"""A report for programs: the object that ``schemas/v1/report.schema.json`` describes."""

from __future__ import annotations

import json
from typing import Any

from trnspec._version import __version__
from trnspec.diagnostics import Diagnostic, Location, Report, Severity
from trnspec.output.reporters.common import documents, page, pointer

VERSION = 1
"""Raised when a key is removed or changes its meaning; a new key does not change it."""


def report(report: Report, *, docs: str = "", **_: object) -> str:
    """The report as JSON in ASCII, which every pipe can carry; ``docs`` as in ``render``."""
    return json.dumps(as_data(report, docs=docs), indent=2)


def as_data(report: Report, *, docs: str = "") -> dict[str, Any]:
    """The report as plain data, as :func:`report` writes it."""
    return {
        "version": VERSION,
        "tool": {"name": "trnspec", "version": __version__},
        "ok": report.ok,
        "summary": {
            "errors": report.count(Severity.ERROR),
            "warnings": report.count(Severity.WARNING),
            "infos": report.count(Severity.INFO),
            "waived": report.waived,
            "files": report.files,
            "documents": documents(report),
            "checked": dict(sorted(report.checked.items())),
        },
        "diagnostics": [_diagnostic(d, docs) for d in report.diagnostics],
    }


def _diagnostic(finding: Diagnostic, docs: str) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.label,
        "message": finding.message,
        **_location(finding.where),
        "hint": finding.hint,
        "see": [_location(other) for other in finding.see],
        "url": page(docs, finding.code) or None,
    }


def _location(where: Location) -> dict[str, Any]:
    return {
        "file": where.file,
        "line": where.place.line if where.place else None,
        "column": where.place.column if where.place else None,
        "path": list(where.path),
        "pointer": pointer(where.path),
        "text": where.text,
    }
