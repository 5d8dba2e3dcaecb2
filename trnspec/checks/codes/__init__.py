"""The codes that do not belong to a rule: those of reading, syntax, form, names and the run itself.

The page of a code is the Markdown file ``<id>.md`` of this folder, whose front matter has its name and severity; the text is
read when :attr:`~trnspec.diagnostics.Code.doc` is used. The page of a rule is its docstring. Both have the same sections,
and the tests run the examples of both.
"""

from __future__ import annotations

from pathlib import Path as FilePath

from trnspec.diagnostics import Code, Severity, read_page


def _code(page: FilePath) -> Code:
    front, _ = read_page(page)
    return Code(front["id"], front["name"], Severity[front["severity"].upper()], page)


CODES: tuple[Code, ...] = tuple(map(_code, sorted(FilePath(__file__).parent.glob("*.md"))))
"""Codes that do not belong to a rule, sorted by id."""
