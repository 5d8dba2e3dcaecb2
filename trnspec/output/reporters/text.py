"""A report for people: one line per finding that grep and editors understand, then what belongs to it.

For instance::

    catalog/servers/trn1.yaml:31:18: error TRN402 aggregate-mismatch: 3.4 PFLOPS, but 16 x 190 TFLOPS = 3.04 PFLOPS
        31 |   stated: {bf16: 3.4 PFLOPS}
           |                  ^^^^^^^^^^
        see: catalog/chips/trainium1.yaml:14:20 190 TFLOPS
        hint: write 3.04 PFLOPS
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from trnspec.diagnostics import Diagnostic, Location, Report, Severity
from trnspec.output.reporters.common import tally, title
from trnspec.text_table import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INDENT = "    "
_TAB = 4
_WIDTH = 100
_LEAST_WIDTH = 20
_CUT = "…"
# The breaks of YAML 1.2; str.splitlines knows more, and would count other lines than the reader of the file.
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
    """The findings, then a line that sums them up.

    Args:
        report: What was found.
        color: Colour it with ANSI sequences; no text of a user can add one.
        width: How many columns a source line may take, 100 by default; the findings themselves are never cut.
        texts: File name -> text, for the source lines; files that are not in it are shown without.
    """
    pen = _Pen(color=color)
    lines_of: dict[str, list[str]] = {}
    blocks: list[list[str]] = []
    for found in report.diagnostics:
        file = found.where.file
        if texts is not None and file in texts and file not in lines_of:
            lines_of[file] = _BREAK.split(texts[file].removeprefix("\ufeff"))
        blocks.append(list(_block(found, pen, lines_of.get(file, []), width or _WIDTH)))
    # Bare findings stand close together; as soon as one carries more, a gap shows what belongs to which.
    gap = "\n\n" if any(len(block) > 1 for block in blocks) else "\n"
    body = gap.join("\n".join(block) for block in blocks)
    last = pen(_closing(report), tally(report))
    return f"{body}\n\n{last}" if body else last


class _Pen:
    """Colours a text, or leaves it as it is."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def __call__(self, style: str, text: str) -> str:
        return f"{style}{text}{_RESET}" if self._color and style else text


def _closing(report: Report) -> str:
    return _OF_SEVERITY[max(d.severity for d in report.diagnostics)] if report.diagnostics else _GREEN


def _block(found: Diagnostic, pen: _Pen, lines: list[str], width: int) -> Iterator[str]:
    style = _OF_SEVERITY[found.severity]
    place = pen(_BOLD, escape(str(found.where)) + ":")
    yield f"{place} {pen(style, found.severity.label)} {pen(_BOLD, escape(title(found)))}: {escape(found.message)}"
    yield from _excerpt(found.where, style, pen, lines, width)
    for other in found.see:
        text = f" {escape(other.text)}" if other.text else ""
        yield f"{_INDENT}{pen(_CYAN, 'see:')} {escape(str(other))}{text}"
    if found.hint:
        first, *rest = found.hint.split("\n")
        yield f"{_INDENT}{pen(_GREEN, 'hint:')} {escape(first)}".rstrip()
        yield from (f"{_INDENT}      {escape(line)}".rstrip() for line in rest)


def _excerpt(where: Location, style: str, pen: _Pen, lines: list[str], width: int) -> Iterator[str]:
    """The source line and a caret below the column; nothing when there is no such line, or only blanks in it."""
    if where.place is None or not 1 <= where.place.line <= len(lines):
        return
    line = lines[where.place.line - 1]
    if not line.strip():
        return
    start = min(max(where.place.column - 1, 0), len(line))
    # What stands there is underlined as a whole, if it stands there as it was quoted.
    length = len(where.text) if where.text and line.startswith(where.text, start) else 1
    number = str(where.place.line)
    text, before, under = _window(line, start, length, max(width - len(_INDENT) - len(number) - 3, _LEAST_WIDTH))
    yield f"{_INDENT}{pen(_DIM, number + ' |')} {text}".rstrip()
    yield f"{_INDENT}{pen(_DIM, ' ' * len(number) + ' |')} {' ' * before}{pen(style, '^' * under)}"


def _window(line: str, start: int, length: int, room: int) -> tuple[str, int, int]:
    """The part of ``line`` to show in ``room`` columns, the columns before the caret, and the carets.

    ``start`` and ``length`` count characters of the line; ``start`` may be its end.
    """
    # The neighbourhood is all that can be shown; a line of megabytes is not laid out for it.
    base = max(0, start - 2 * room)
    cells = _cells(line[base : start + 2 * room])
    start -= base
    total = sum(size for _, size in cells)
    before = sum(size for _, size in cells[:start])
    left, right = 0, len(cells)
    if base or base + right < len(line) or total > room:
        # What follows the caret gets two thirds of the room, or less when it needs less; a mark takes a column.
        ahead = max(total - before, 1)
        most = max(room // 3, room - ahead - 1)
        while left < start and before > most:
            before -= cells[left][1]
            left += 1
        before += bool(left or base)
        if base + right < len(line) or before + ahead > room:
            used, right = before, start
            while right < len(cells) and used + cells[right][1] <= room - 1:
                used += cells[right][1]
                right += 1
    under = sum(size for _, size in cells[start : min(start + length, right)])
    head = _CUT if left or base else ""
    tail = _CUT if base + right < len(line) else ""
    return head + "".join(shown for shown, _ in cells[left:right]) + tail, before, max(under, 1)


def _cells(text: str) -> list[tuple[str, int]]:
    """Each character as it is shown, and how many columns of a terminal that takes."""
    cells: list[tuple[str, int]] = []
    column = 0
    for char in text:
        if char == "\t":
            size = _TAB - column % _TAB
            cells.append((" " * size, size))
        else:
            shown = escape(char)
            size = len(shown) if shown != char else _columns(char)
            cells.append((shown, size))
        column += size
    return cells


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
