"""A baseline: findings that are accepted, so that only new ones are reported."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TypeAlias

from attrs import evolve, frozen

from trnspec.checks.runner import Checked, causes
from trnspec.diagnostics import Diagnostic, Severity, present_id
from trnspec.errors import UsageError
from trnspec.loading.settings import Settings
from trnspec.model.reflection import dotted

Key: TypeAlias = "tuple[str, str, str]"
"""Identity of a finding: its code, the document, and the path there. Lines may change."""

_MOST_BYTES = 64_000_000


@frozen
class Baseline:
    """Accepted findings.

    Attributes:
        file: The file that holds them; documents that cannot be used are named relative to its folder.
        findings: How often each one is accepted.
    """

    file: FilePath
    findings: Counter[Key]

    def text(self) -> str:
        """The content of the file, one finding on a line."""
        rows = []
        for (code, document, path), count in sorted(self.findings.items()):
            row: dict[str, str | int] = {"code": code, "document": document, "path": path}
            rows.append(json.dumps(row | ({"count": count} if count > 1 else {}), ensure_ascii=False))
        return '{"version": 1, "findings": [' + ",".join(f"\n  {row}" for row in rows) + "\n]}\n"


def accepting(checked: Checked, file: FilePath) -> Baseline:
    """The baseline of all findings above ``INFO``, and of what follows from them."""
    name = _namer(checked, file)
    kept = (d for d in (*checked.report.diagnostics, *checked.consequences) if d.severity > Severity.INFO)
    return Baseline(file, Counter(_key(d, name) for d in kept))


def read(file: FilePath) -> Baseline:
    """The baseline in a file.

    Raises:
        UsageError: The file cannot be read, or is not a baseline.
    """
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{file}: it has more than {_MOST_BYTES:,} bytes")
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != 1:
            raise UsageError(f"{file}: version {data['version']!r} of a baseline is not known; write it again")
        counts: Counter[Key] = Counter()
        for row in data["findings"]:
            counts[present_id(str(row["code"])), str(row["document"]), str(row["path"])] += int(row.get("count", 1))
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", hint=f"trnspec baseline {file} [PATH]... writes it") from None
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError):
        raise UsageError(f"{file} is not a baseline; trnspec baseline {file} writes one") from None
    return Baseline(file, counts)


def without(checked: Checked, baseline: Baseline, settings: Settings) -> tuple[Checked, list[str]]:
    """The findings that a baseline does not accept, and a line for each accepted one that no longer occurs.

    Of a finding that occurs more often than it was accepted, the last ones are new. An accepted finding of a document
    that was not checked is not listed. What follows from an accepted error is new where it was not accepted too.
    """
    name = _namer(checked, baseline.file)
    rest = Counter(baseline.findings)
    kept: list[Diagnostic] = []
    for diagnostic in (*checked.report.diagnostics, *checked.consequences):
        key = _key(diagnostic, name)
        if diagnostic.severity > Severity.INFO and rest[key] > 0:
            rest[key] -= 1
        else:
            kept.append(diagnostic)
    accepted = sum(baseline.findings.values()) - sum(rest.values())
    report = evolve(checked.report, diagnostics=tuple(causes(kept)[0]), accepted=accepted)
    unchecked = _unchecked(checked, name)
    stale = [
        f"{code} of {document}{f' at {path}' if path else ''}{f', {count} times' if count > 1 else ''}"
        for (code, document, path), count in sorted((+rest).items())
        if settings.reports(code) and document not in unchecked
    ]
    return evolve(checked, report=report), stale


def _unchecked(checked: Checked, name: Callable[[str], str]) -> set[str]:
    """The documents, and the files of documents that cannot be used, that were read but not checked."""
    targets = {node.document.file for node in checked.graph if node.target}
    targets |= {d.where.file for d in checked.report.diagnostics}
    files = [file for file in checked.texts if file not in targets]
    return {name(file) for file in files}


def _key(diagnostic: Diagnostic, name: Callable[[str], str]) -> Key:
    return diagnostic.code, name(diagnostic.where.file), dotted(diagnostic.where.path)


def _namer(checked: Checked, file: FilePath) -> Callable[[str], str]:
    """A function from a file to the name of its document: kind and name, or the path of a file that cannot be used."""
    names = {node.document.file: f"{node.kind}/{node.name}" for node in checked.graph}
    folder = os.path.realpath(file.parent)

    def name(path: str) -> str:
        if path.startswith("<"):
            return path
        return names.get(path) or FilePath(os.path.relpath(os.path.realpath(path), folder)).as_posix()

    return name
