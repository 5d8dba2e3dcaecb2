"""Findings as diagnostics of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import evolve
from lsprotocol import types
from pygls.uris import from_fs_path

from trnspec.diagnostics import Code, Diagnostic, Location, Severity
from trnspec.lsp.positions import TextLines

SOURCE = "trnspec"

_SEVERITY = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}


def by_file(
    diagnostics: Iterable[Diagnostic],
    opened: Iterable[str],
    lines_of: Callable[[str], TextLines],
    codes: Mapping[str, Code],
) -> dict[str, list[types.Diagnostic]]:
    """The diagnostics of each file.

    A finding in another file that refers to an open document is also shown there, at the place that it refers to.
    """
    opened = set(opened)
    result: dict[str, list[types.Diagnostic]] = {file: [] for file in opened}
    for diagnostic in diagnostics:
        message = _message(diagnostic, lines_of, codes)
        result.setdefault(diagnostic.where.file, []).append(message)
        if diagnostic.where.file not in opened:
            mirrored = next((see for see in diagnostic.see if see.file in opened), None)
            if mirrored is not None:
                here = evolve(diagnostic, where=mirrored, see=(diagnostic.where,), edit=None)
                result[mirrored.file].append(_message(here, lines_of, codes))
    return {file: found for file, found in result.items() if not file.startswith("<")}


def _message(
    diagnostic: Diagnostic, lines_of: Callable[[str], TextLines], codes: Mapping[str, Code]
) -> types.Diagnostic:
    code = codes.get(diagnostic.code)
    page = None if code is None else code.page
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    related = [
        types.DiagnosticRelatedInformation(_location(see, lines_of), see.text or "see")
        for see in diagnostic.see
        if not see.file.startswith("<")
    ]
    data: dict[str, Any] = {
        "path": list(diagnostic.where.path),
        "hint": diagnostic.hint,
        "text": diagnostic.where.text,
        "rule": code is not None and page is None,
    }
    if diagnostic.edit is not None:
        start, end = diagnostic.edit.start, diagnostic.edit.end
        data["edit"] = {
            "start": [start.line, start.column],
            "end": [end.line, end.column],
            "text": diagnostic.edit.text,
        }
    return types.Diagnostic(
        range=lines_of(diagnostic.where.file).range_at(diagnostic.where),
        message=f"{diagnostic.message}{hint}",
        severity=_SEVERITY[diagnostic.severity],
        code=diagnostic.code,
        code_description=None if page is None else types.CodeDescription(from_fs_path(str(page)) or ""),
        source=SOURCE,
        related_information=related or None,
        data=data,
    )


def _location(where: Location, lines_of: Callable[[str], TextLines]) -> types.Location:
    return types.Location(from_fs_path(where.file) or "", lines_of(where.file).range_at(where))
