"""A report as SARIF 2.1.0 (OASIS), for code-scanning services and editors."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from typing import Any
from urllib.parse import quote

from trnspec._version import __version__
from trnspec.diagnostics import Code, Diagnostic, Location, Report, Severity
from trnspec.output.reporters.common import dotted, page, pointer

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The ``$schema`` of the output."""

FINGERPRINT = "trnspecFinding/v1"
"""The key of the fingerprint that identifies a result from run to run."""

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")


def report(report: Report, *, docs: str = "", **_: object) -> str:
    """The report as a SARIF log with one run, a JSON text in ASCII; ``docs`` as in ``render``."""
    codes = _codes(report)
    index = {code.id: i for i, code in enumerate(codes)}
    seen: Counter[str] = Counter()
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "trnspec",
                        "version": __version__,
                        "rules": [_rule(code, docs) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": True}],
                "results": [_result(finding, index[finding.code], seen) for finding in report.diagnostics],
            }
        ],
    }
    return json.dumps(log, indent=2)


def _codes(report: Report) -> list[Code]:
    """Every code once: those in the report, then those that occur only in a finding."""
    codes: dict[str, Code] = {}
    for code in report.codes:
        codes.setdefault(code.id, code)
    for finding in report.diagnostics:
        codes.setdefault(finding.code, Code(finding.code, finding.name, finding.severity, ""))
    return list(codes.values())


def _rule(code: Code, docs: str) -> dict[str, Any]:
    summary = code.summary or code.name or code.id
    rule: dict[str, Any] = {"id": code.id}
    if code.name:
        rule["name"] = code.name
    rule["shortDescription"] = _message(summary)
    rule["fullDescription"] = _message(summary)
    if doc := code.doc.strip():
        rule["help"] = _message(doc)
    if url := page(docs, code.id):
        rule["helpUri"] = url
    rule["defaultConfiguration"] = {"level": _LEVEL[code.severity]}
    return rule


def _result(finding: Diagnostic, index: int, seen: Counter[str]) -> dict[str, Any]:
    message = f"{finding.message}\nhint: {finding.hint}" if finding.hint else finding.message
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": _message(message),
        "locations": [_location(finding.where, len(finding.where.text))],
    }
    if finding.see:
        result["relatedLocations"] = [
            {"id": i, **_location(other), "message": _message(other.text or "see also")}
            for i, other in enumerate(finding.see)
        ]
    result["partialFingerprints"] = {FINGERPRINT: _fingerprint(finding, seen)}
    return result


def _location(where: Location, length: int = 0) -> dict[str, Any]:
    """A place; ``length`` is that of the text there, where the text is known and on one line."""
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri(where.file)}}
    if where.place is not None:
        region = {"startLine": where.place.line, "startColumn": where.place.column}
        physical["region"] = region | ({"endColumn": where.place.column + length} if length else {})
    location: dict[str, Any] = {"physicalLocation": physical}
    if where.path:
        location["logicalLocations"] = [{"name": str(where.path[-1]), "fullyQualifiedName": dotted(where.path)}]
    return location


def uri(file: str) -> str:
    """The file as a percent-encoded URI reference: relative as given, ``file:///...`` if absolute."""
    path = _portable(file)
    if _DRIVE.match(file):
        return "file:///" + path[:2] + quote(path[2:].encode("utf-8", "surrogatepass"))
    try:
        # Python decodes file names that are not UTF-8 with surrogates: encode them to the original bytes.
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogatepass")
    # An absolute path gets an empty authority; without it, "//a" would be read as a host.
    return ("file://" if path.startswith("/") else "") + quote(raw)


def _portable(file: str) -> str:
    if os.sep == "\\" or _DRIVE.match(file):
        file = file.replace("\\", "/")
    while file.startswith("./"):
        file = file[2:]
    return file


def _fingerprint(finding: Diagnostic, seen: Counter[str]) -> str:
    """A hash of code, file and path, and a count of equal ones; unchanged when lines move."""
    key = json.dumps([finding.code, _portable(finding.where.file), pointer(finding.where.path)])
    seen[key] += 1
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}:{seen[key]}"


def _message(text: str) -> dict[str, str]:
    """A message object.

    The standard reads ``{0}`` as a placeholder, so that braces are doubled (section 3.11.5), and ``[a](1)`` as a link,
    so that such a bracket gets a backslash (section 3.11.6).
    """
    return {"text": _LINK.sub(r"\\[", text.replace("{", "{{").replace("}", "}}"))}
