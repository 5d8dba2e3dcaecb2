"""The codes that do not belong to a rule: those of reading, syntax, form, names and the run itself.

The page of a code is the Markdown file ``<id>.md`` of this folder, read when :attr:`~trnspec.diagnostics.Code.doc` is
used. The page of a rule is its docstring. Both have the same sections, and the tests run the examples of both.
"""

from __future__ import annotations

from pathlib import Path as FilePath

from trnspec.diagnostics import Code, Severity

_FOLDER = FilePath(__file__).parent
_CODES: dict[Severity, dict[str, str]] = {
    Severity.ERROR: {
        "TRN001": "unreadable-file",
        "TRN002": "wrong-encoding",
        "TRN003": "control-character",
        "TRN004": "syntax-error",
        "TRN005": "duplicate-key",
        "TRN006": "anchor-or-alias",
        "TRN007": "merge-key",
        "TRN008": "explicit-tag",
        "TRN009": "non-text-key",
        "TRN010": "unrepresentable-number",
        "TRN011": "excessive-depth",
        "TRN012": "excessive-size",
        "TRN013": "empty-file",
        "TRN014": "root-not-mapping",
        "TRN015": "second-document",
        "TRN016": "yaml-directive",
        "TRN101": "unknown-key",
        "TRN102": "missing-field",
        "TRN103": "wrong-type",
        "TRN104": "unknown-word",
        "TRN105": "malformed-text",
        "TRN106": "out-of-bounds",
        "TRN107": "unknown-kind",
        "TRN108": "unknown-version",
        "TRN109": "both-paths",
        "TRN110": "figure-without-unit",
        "TRN111": "unknown-unit",
        "TRN112": "wrong-dimension",
        "TRN113": "malformed-figure",
        "TRN190": "structure-mismatch",
        "TRN201": "dangling-reference",
        "TRN202": "wrong-kind-reference",
        "TRN203": "unusable-reference",
        "TRN204": "duplicate-name",
        "TRN900": "rule-failed",
    },
    Severity.WARNING: {
        "TRN050": "ambiguous-number",
        "TRN054": "invisible-character",
        "TRN055": "confusable-keys",
        "TRN304": "unused-waiver",
    },
    Severity.INFO: {
        "TRN051": "byte-order-mark",
        "TRN052": "carriage-return",
        "TRN053": "no-final-newline",
        "TRN056": "space-before-colon",
        "TRN057": "former-path",
        "TRN058": "older-version",
        "TRN059": "crlf-line-end",
    },
}
"""The front matter of the pages, repeated here so that a run without findings reads no page; a test compares both."""

CODES: tuple[Code, ...] = tuple(
    sorted(
        (
            Code(code, name, severity, _FOLDER / f"{code}.md")
            for severity, names in _CODES.items()
            for code, name in names.items()
        ),
        key=lambda code: code.id,
    )
)
"""Codes that do not belong to a rule, sorted by id."""
