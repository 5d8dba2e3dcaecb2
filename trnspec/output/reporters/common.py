"""Paths, titles and counts as texts, for several reporters."""

from __future__ import annotations

import re
from urllib.parse import quote

from trnspec.diagnostics import Diagnostic, Report, Severity
from trnspec.text_table import plural
from trnspec.yaml import Path

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def dotted(path: Path) -> str:
    """The path in dotted notation: ``spec.peak.dense.bf16``, ``links[2].rate``, ``spec["a.b"]``."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_KEY.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            quoted = step.replace("\\", "\\\\").replace('"', '\\"')
            parts.append(f'["{quoted}"]')
    return "".join(parts)


def pointer(path: Path) -> str:
    """The path as a JSON Pointer (RFC 6901): ``/spec/peak/dense/bf16``; an empty text for the whole document."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def title(diagnostic: Diagnostic) -> str:
    """``TRN402 aggregate-mismatch``, or the code alone when it has no name."""
    return f"{diagnostic.code} {diagnostic.name}" if diagnostic.name else diagnostic.code


def details(diagnostic: Diagnostic) -> list[str]:
    """The related places and the hint of a finding as lines."""
    lines = [f"see: {other} {other.text}".rstrip() for other in diagnostic.see]
    return [*lines, f"hint: {diagnostic.hint}"] if diagnostic.hint else lines


def page(docs: str, code: str) -> str:
    """The address of the page of a code, or an empty text without a site."""
    return f"{docs.rstrip('/')}/{quote(code, safe='', errors='backslashreplace')}" if docs else ""


def documents(report: Report) -> int:
    """The number of documents checked, of all kinds; those with an error that leaves them out of the graph included."""
    return max(report.files, sum(report.checked.values()))


def tally(report: Report) -> str:
    """The summary line of a report, such as ``2 errors, 1 warning in 14 documents``."""
    counts = [(report.count(s), s.label) for s in sorted(Severity, reverse=True)]
    findings = ", ".join(plural(n, noun) for n, noun in counts if n)
    where = plural(documents(report), "document")
    waived = f", {report.waived} waived" if report.waived else ""
    waived += f", {report.accepted} accepted" if report.accepted else ""
    return f"{findings} in {where}{waived}." if findings else f"{where} checked, no findings{waived}."
