"""A report for people: one line per finding in the format of grep and compilers, then details.

Example::

    catalog/servers/trn1.yaml:31:18: error TRN402 aggregate-mismatch: 3.4 PFLOPS, but 16 x 190 TFLOPS = 3.04 PFLOPS
        31 |   stated: {bf16: 3.4 PFLOPS}
           |                  ^^^^^^^^^^
        see: catalog/chips/trainium1.yaml:14:20 190 TFLOPS
        hint: write 3.04 PFLOPS
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from trnspec.diagnostics import Diagnostic, Location, Report, Severity
from trnspec.output.reporters.common import tally, title
from trnspec.text_table import columns_of, escape

_INDENT = "    "
_TAB = 4
_WIDTH = 100
_LEAST_WIDTH = 20
_CUT = "…"
# The line breaks of YAML 1.2; str.splitlines splits at more characters.
_BREAK = re.compile(r"\r\n|[\r\n]")

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_DIM = "\x1b[2m"
_GREEN = "\x1b[32m"
_CYAN = "\x1b[36m"
_OF_SEVERITY = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.INFO: "\x1b[1;36m"}


def report(
    report: Report,
    *,
    color: bool = False,
    width: int | None = None,
    texts: Mapping[str, str] | None = None,
    **_: object,
) -> str:
    """The findings, then a summary line."""
    body = findings(report.diagnostics, color=color, width=width, texts=texts)
    last = _Pen(color=color)(_closing(report), tally(report))
    return f"{body}\n\n{last}" if body else last


def findings(
    diagnostics: Iterable[Diagnostic],
    *,
    color: bool = False,
    width: int | None = None,
    texts: Mapping[str, str] | None = None,
) -> str:
    """Some findings, without a summary; the arguments are those of :func:`report`."""
    pen = _Pen(color=color)
    lines_of: dict[str, list[str]] = {}
    blocks: list[list[str]] = []
    for finding in diagnostics:
        file = finding.where.file
        if texts is not None and file in texts and file not in lines_of:
            lines_of[file] = _BREAK.split(texts[file].removeprefix("\ufeff"))
        blocks.append(list(_block(finding, pen, lines_of.get(file, []), width or _WIDTH)))
    # A blank line between findings as soon as one has more than a line.
    gap = "\n\n" if any(len(block) > 1 for block in blocks) else "\n"
    return gap.join("\n".join(block) for block in blocks)


class _Pen:
    """Adds colour to a text, or returns it unchanged."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, style: str, text: str) -> str:
        return f"{style}{text}{_RESET}" if self._color and style else text


def _closing(report: Report) -> str:
    return _OF_SEVERITY[max(d.severity for d in report.diagnostics)] if report.diagnostics else _GREEN


def _block(finding: Diagnostic, pen: _Pen, lines: list[str], width: int) -> Iterator[str]:
    style = _OF_SEVERITY[finding.severity]
    place = pen(_BOLD, escape(str(finding.where)) + ":")
    yield f"{place} {pen(style, finding.severity.label)} {pen(_BOLD, escape(title(finding)))}: {escape(finding.message)}"
    yield from _excerpt(finding.where, style, pen, lines, width)
    for other in finding.see:
        text = f" {escape(other.text)}" if other.text else ""
        yield f"{_INDENT}{pen(_CYAN, 'see:')} {escape(str(other))}{text}"
    if finding.hint:
        first, *rest = finding.hint.split("\n")
        yield f"{_INDENT}{pen(_GREEN, 'hint:')} {escape(first)}".rstrip()
        yield from (f"{_INDENT}      {escape(line)}".rstrip() for line in rest)


def _excerpt(where: Location, style: str, pen: _Pen, lines: list[str], width: int) -> Iterator[str]:
    """The source line and a caret below the column; nothing for a line that is missing or blank."""
    if where.place is None or not 1 <= where.place.line <= len(lines):
        return
    line = lines[where.place.line - 1]
    if not line.strip():
        return
    start = min(max(where.place.column - 1, 0), len(line))
    # The whole value is underlined, if the line contains it as it is quoted.
    length = len(where.text) if where.text and line.startswith(where.text, start) else 1
    number = str(where.place.line)
    text, before, under = _window(line, start, length, max(width - len(_INDENT) - len(number) - 3, _LEAST_WIDTH))
    yield f"{_INDENT}{pen(_DIM, number + ' |')} {text}".rstrip()
    yield f"{_INDENT}{pen(_DIM, ' ' * len(number) + ' |')} {' ' * before}{pen(style, '^' * under)}"


def _window(line: str, start: int, length: int, columns: int) -> tuple[str, int, int]:
    """The part of ``line`` to show in ``columns`` columns, the columns before the caret, and the number of carets.

    ``start`` and ``length`` count characters of the line; ``start`` may be its end.
    """
    # Only the neighbourhood can be shown; the rest of a very long line is not measured.
    base = max(0, start - 2 * columns)
    cells = _cells(line[base : start + 2 * columns])
    start -= base
    total = sum(size for _, size in cells)
    before = sum(size for _, size in cells[:start])
    left, right = 0, len(cells)
    if base or base + right < len(line) or total > columns:
        # The text after the caret gets at most two thirds of the width; a cut mark takes a column.
        ahead = max(total - before, 1)
        most = max(columns // 3, columns - ahead - 1)
        while before > most:
            before -= cells[left][1]
            left += 1
        before += bool(left or base)
        if base + right < len(line) or before + ahead > columns:
            used, right = before, start
            while right < len(cells) and used + cells[right][1] <= columns - 1:
                used += cells[right][1]
                right += 1
    under = sum(size for _, size in cells[start : min(start + length, right)])
    head = _CUT if left or base else ""
    tail = _CUT if base + right < len(line) else ""
    return head + "".join(shown for shown, _ in cells[left:right]) + tail, before, max(under, 1)


def _cells(text: str) -> list[tuple[str, int]]:
    """Each character as it is shown, and its width in terminal columns."""
    cells: list[tuple[str, int]] = []
    column = 0
    for char in text:
        if char == "\t":
            size = _TAB - column % _TAB
            cells.append((" " * size, size))
        else:
            shown = escape(char)
            size = columns_of(shown)
            cells.append((shown, size))
        column += size
    return cells
