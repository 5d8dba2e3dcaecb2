"""Tables as text: aligned columns that fit a width, and the same rows as CSV, JSON or Markdown.

A table that is too wide is narrowed in this order: headings and cells that may wrap are wrapped between words, then
columns are hidden, least important first, and a line below the table names them. A word is broken only where the
columns that cannot be hidden do not fit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from attrs import evolve, field, frozen

from trnspec.errors import UsageError
from trnspec.yaml.text import escape as escape  # noqa: PLC0414  # also used from here
from trnspec.yaml.text import visible as visible  # noqa: PLC0414


@frozen
class Number:
    """A number in a table with the text that people read; tables are sorted by the value.

    Attributes:
        value: The value in base units.
        text: As people read it: ``96``, ``~1.5``.
    """

    value: float | Fraction
    text: str


Cell = str | int | float | Fraction | bool | Number | None
"""A value of a table; ``None`` is a gap, which is neither empty nor 0."""

GAP = "-"

_GUTTER = "  "
_LONG_WORD = 28
"""Words longer than this, such as file names and figure paths, may be broken after punctuation."""
_BREAKS = re.compile(r"(?<=[/_.,;:=&?)-])")


@frozen
class Column:
    """A column of a table.

    Attributes:
        name: Its heading; line breaks in it are kept.
        right: True for numbers, which are aligned right.
        wrap: True where long cells may be wrapped into several lines. Headings always may.
        keep: True for a column that is never hidden.
        importance: Columns of the least importance are hidden first, of equal importance the rightmost.
        key: What ``--columns`` and ``--sort`` call it, where that is not its heading.
        identity: True for a column that identifies the row; every selection of columns has it.
    """

    name: str = field(converter=visible)
    right: bool = False
    wrap: bool = False
    keep: bool = False
    importance: int = 0
    key: str = ""
    identity: bool = False

    @property
    def label(self) -> str:
        """Its name in one line."""
        return self.key or " ".join(self.name.split())


@frozen
class TextTable:
    """Rows under columns.

    Attributes:
        columns: The columns.
        rows: A cell for each column, or a text alone for a heading between rows.
        hint: The options that print the hidden columns.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...] | str, ...]
    hint: str = "--format csv"

    def selected(self, names: str | None) -> TextTable:
        """The columns that a comma-separated list names, in its order, after those that identify rows and are not named.

        All of them for ``None``.

        Raises:
            UsageError: There is no column of such a name.
        """
        if names is None:
            return self
        named = [self.index(name, "--columns") for name in names.split(",")]
        chosen = [*(i for i, c in enumerate(self.columns) if c.identity and i not in named), *named]
        columns = tuple(evolve(self.columns[i], keep=True) for i in chosen)
        rows = tuple(r if isinstance(r, str) else tuple(r[i] for i in chosen) for r in self.rows)
        return evolve(self, columns=columns, rows=rows)

    def sorted(self, by: str | None) -> TextTable:
        """Sorted by a column, descending with ``-`` before its name; gaps last, headings between rows dropped.

        Raises:
            UsageError: There is no column of that name.
        """
        if by is None:
            return self
        index = self.index(by.removeprefix("-"), "--sort")
        rows = [r for r in self.rows if not isinstance(r, str)]
        gaps = [r for r in rows if r[index] is None]
        valued = [r for r in rows if r[index] is not None]
        valued.sort(key=lambda r: _order(r[index]), reverse=by.startswith("-"))
        return evolve(self, rows=(*valued, *gaps))

    def index(self, name: str, option: str) -> int:
        """The index of the column of a name; case, unit and the kind of space do not matter.

        Raises:
            UsageError: There is none.
        """
        wanted = _normal(name)
        for text in (lambda c: c.label, lambda c: _unit_removed(c.label), lambda c: _unit_removed(c.name)):
            labels = [_normal(text(c)) for c in self.columns]
            if wanted in labels:
                return labels.index(wanted)
        from trnspec.diagnostics import did_you_mean

        known = [_unit_removed(c.label) for c in self.columns]
        hint = did_you_mean(name, known) or f"the columns are {', '.join(known)}"
        raise UsageError(f"{option}: there is no column {name.strip()!r}; {hint}")


def _order(cell: Cell) -> tuple[bool, Any]:
    """Sorts numbers before text."""
    if isinstance(cell, Number):
        return (False, cell.value)
    return (isinstance(cell, str), cell)


def _normal(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.strip().casefold())


def _unit_removed(label: str) -> str:
    return re.sub(r" \[[^\]]*\]$", "", label)


def table(
    columns: Sequence[str | Column], rows: Sequence[Sequence[Cell] | str], hint: str = "--format csv"
) -> TextTable:
    """A table; a column that is given by its name alone is an ordinary one."""
    described = tuple(Column(c) if isinstance(c, str) else c for c in columns)
    return TextTable(described, tuple(r if isinstance(r, str) else tuple(r) for r in rows), hint)


class Heading(str):
    """A paragraph that is a heading."""

    __slots__ = ()


Block = str | TextTable
"""A part of a page: a paragraph, which is printed as it is, or a table."""


@frozen
class Style:
    """Styles of a page in a terminal; the values are SGR parameters such as ``1;31``.

    Attributes:
        heading: Of headings.
        cells: Of cells, by their whole text: verdicts, gaps.
    """

    heading: str = ""
    cells: Mapping[str, str] = {}

    def paint(self, parameters: str, text: str) -> str:
        """The text with the parameters, or unchanged for none."""
        return f"\x1b[{parameters}m{text}\x1b[0m" if parameters and text.strip() else text


_PLAIN = Style()


def rendered(blocks: Sequence[Block], width: int, style: Style = _PLAIN) -> str:
    """A page: blocks with an empty line between them."""
    texts = []
    for block in blocks:
        if isinstance(block, TextTable):
            texts.append("\n".join(lines(block, width, style)))
        else:
            texts.append(style.paint(style.heading, block) if isinstance(block, Heading) else _visible_paragraph(block))
    return "\n\n".join(texts)


# For programs and for Markdown.


def csv(table: TextTable) -> str:
    """A table as CSV, with a newline at the end."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([c.name for c in table.columns])
    writer.writerows([_csv_cell(c) for c in row] for row in _rows(table))
    return buffer.getvalue()


def _csv_cell(cell: Cell) -> str | int | float | bool:
    value = _plain(cell)
    return "" if value is None else visible(value) if isinstance(value, str) else value


def json(table: TextTable, about: Mapping[str, Any] = {}) -> str:
    """A table as JSON: ``{"version": 1, ..., "rows": [...]}`` with ``about`` before the rows; a fraction is a number."""
    import json

    names = [c.name for c in table.columns]
    records = [dict(zip(names, map(_plain, row), strict=True)) for row in _rows(table)]
    return json.dumps({"version": 1, **about, "rows": records}, indent=2, ensure_ascii=False, default=_plain) + "\n"


def markdown(table: TextTable) -> str:
    """A table as Markdown, with a newline at the end; it is as wide as it needs."""
    output = ["| " + " | ".join(in_markdown(" ".join(c.name.split())) for c in table.columns) + " |"]
    output.append("|" + "|".join(" ---: " if c.right else " --- " for c in table.columns) + "|")
    output += ["| " + " | ".join(in_markdown(shown(cell)) for cell in row) + " |" for row in _rows(table)]
    return "\n".join(output) + "\n"


def html(table: TextTable) -> str:
    """A table as HTML, for a notebook."""
    head = "".join(f"<th{_align(c)}>{in_html(' '.join(c.name.split()))}</th>" for c in table.columns)
    lines = ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for row in table.rows:
        if isinstance(row, str):
            lines.append(f'<tr><th colspan="{len(table.columns)}" style="text-align: left">{in_html(row)}</th></tr>')
        else:
            cells = zip(table.columns, row, strict=True)
            lines.append("<tr>" + "".join(f"<td{_align(c)}>{in_html(shown(cell))}</td>" for c, cell in cells) + "</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


def _align(column: Column) -> str:
    return f' style="text-align: {"right" if column.right else "left"}"'


def in_html(text: str) -> str:
    """A text for HTML, without markup of its own."""
    import html

    return html.escape(visible(text))


def sections_in_markdown(sections: Iterable[tuple[str, Block]]) -> str:
    """Sections as Markdown, for a notebook: each a heading, which may be empty, and a block."""
    lines: list[str] = []
    for heading, block in sections:
        lines += [f"### {in_markdown(heading)}\n"] if heading else []
        lines.append(markdown(block) if isinstance(block, TextTable) else f"{in_markdown(block)}\n")
    return "\n".join(lines)


def sections_in_html(sections: Iterable[tuple[str, Block]]) -> str:
    """Sections as HTML, for a notebook: each a heading, which may be empty, and a block."""
    lines: list[str] = []
    for heading, block in sections:
        lines += [f"<h4>{in_html(heading)}</h4>"] if heading else []
        lines.append(html(block) if isinstance(block, TextTable) else f"<p>{in_html(block)}</p>")
    return "\n".join(lines)


class InNotebook:
    """Sections of an object in a notebook."""

    __slots__ = ()

    def _sections(self) -> Iterable[tuple[str, Block]]:
        raise NotImplementedError

    def _repr_markdown_(self) -> str:
        return sections_in_markdown(self._sections())

    def _repr_html_(self) -> str:
        return sections_in_html(self._sections())


def _rows(table: TextTable) -> Iterator[tuple[Cell, ...]]:
    return (row for row in table.rows if not isinstance(row, str))


def _plain(cell: Cell) -> str | int | float | bool | None:
    """A value that CSV and JSON can hold; a whole number stays whole."""
    if isinstance(cell, Number):
        cell = cell.value
    if isinstance(cell, Fraction):
        return cell.numerator if cell.denominator == 1 else float(cell)
    return cell


def in_markdown(text: str) -> str:
    """A text for Markdown, as a cell or in a line: it begins no HTML, no code, no link and no further cell."""
    text = re.sub(r"[\\|<`]|(?<=\])\(", r"\\\g<0>", visible(text))
    return text.replace("\n", " ")


# For people.


def shown(cell: Cell) -> str:
    """A cell as people read it."""
    if cell is None:
        return GAP
    if isinstance(cell, Number):
        return visible(cell.text)
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{float(cell):,.4g}" if isinstance(cell, (float, Fraction)) else visible(cell)


@frozen
class TableLayout:
    """A table as it is printed.

    Attributes:
        columns: The columns that are shown.
        widths: The width of each.
        rows: The cells as texts, or a heading.
        hidden: The names of the columns that are not shown.
    """

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...] | str, ...]
    hidden: tuple[str, ...]


def fit(table: TextTable, width: int) -> TableLayout:
    """The table in a width: wrapped, with the columns hidden that do not fit."""
    rows = [r if isinstance(r, str) else tuple(shown(c) for c in r) for r in table.rows]
    full, least, broken = [], [], []
    for i, column in enumerate(table.columns):
        cells = [r[i] for r in rows if not isinstance(r, str)]
        full.append(max(map(columns_of, [*column.name.split("\n"), *cells])))
        narrowest = max(map(_longest_word, cells), default=0) if column.wrap else max(map(columns_of, cells), default=0)
        least.append(min(full[-1], max(_longest_word(column.name), narrowest)))
        broken.append(max(map(columns_of, {*column.name, *"".join(cells)}), default=1))
    chosen = list(range(len(table.columns)))
    may_hide = sorted(
        (i for i in chosen[1:] if not table.columns[i].keep), key=lambda i: (table.columns[i].importance, -i)
    )
    while may_hide and _total([least[i] for i in chosen]) > width:
        chosen.remove(may_hide.pop(0))
    limits = [least[i] for i in chosen], [broken[i] for i in chosen]
    widths = _narrowed([full[i] for i in chosen], limits, width)
    hidden = tuple(c.label for i, c in enumerate(table.columns) if i not in chosen)
    kept = tuple(r if isinstance(r, str) else tuple(r[i] for i in chosen) for r in rows)
    columns = tuple(table.columns[i] for i in chosen)
    # Wrapped lines may leave a column narrower than it may be.
    widths = [
        max(columns_of(line) for text in _texts(column, i, kept) for line in _wrapped(text, widths[i]))
        for i, column in enumerate(columns)
    ]
    return TableLayout(columns, tuple(widths), kept, hidden)


def _texts(column: Column, index: int, rows: Sequence[tuple[str, ...] | str]) -> list[str]:
    """The lines of a heading and the cells below it."""
    return [*column.name.split("\n"), *(row[index] for row in rows if not isinstance(row, str))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GUTTER) * (len(widths) - 1)


def _narrowed(full: list[int], limits: Iterable[list[int]], width: int) -> list[int]:
    """The widths, the widest made narrower again and again, down to the first limits, then down to the next."""
    widths = list(full)
    for least in limits:
        while _total(widths) > width:
            wider = [i for i, w in enumerate(widths) if w > least[i]]
            if not wider:
                break
            widths[max(wider, key=lambda i: widths[i])] -= 1
    return widths


def lines(table: TextTable, width: int, style: Style = _PLAIN) -> list[str]:
    """A table as lines, none wider than ``width``."""
    layout = fit(table, width)
    heads = [
        [line for part in c.name.split("\n") for line in _wrapped(part, w)]
        for c, w in zip(layout.columns, layout.widths, strict=True)
    ]
    # Headings end in one line, directly above the rule.
    heads = [[""] * (max(map(len, heads)) - len(h)) + h for h in heads]
    output = _side_by_side(heads, layout, [style.heading] * len(heads), style)
    output.append(_GUTTER.join("-" * w for w in layout.widths))
    for row in layout.rows:
        if isinstance(row, str):
            output += [style.paint(style.cells.get(row.strip(), style.heading), line) for line in _wrapped(row, width)]
        else:
            cells = [_wrapped(c, w) for c, w in zip(row, layout.widths, strict=True)]
            output += _side_by_side(cells, layout, [style.cells.get(c.strip(), "") for c in row], style)
    if layout.hidden:
        output += ["", *_hidden(layout.hidden, table.hint, width)]
    return output


def _hidden(names: Sequence[str], hint: str, width: int) -> list[str]:
    """The names of hidden columns; the shortest where two lines cannot hold all."""
    ordered = sorted(names, key=len)
    for shown in range(len(names), 0, -1):
        more = f", ... {len(names) - shown} more" if shown < len(names) else ""
        note = f"hidden columns: {', '.join(ordered[:shown] if more else names)}{more} (use {hint} or a wider terminal)"
        lines = _wrapped(note, width)
        if len(lines) <= 2:
            break
    return lines


def _side_by_side(
    cells: Sequence[Sequence[str]], layout: TableLayout, parameters: Sequence[str], style: Style
) -> list[str]:
    output = []
    for n in range(max(map(len, cells))):
        parts = [
            padded(cell[n] if n < len(cell) else "", size, right=column.right)
            for cell, size, column in zip(cells, layout.widths, layout.columns, strict=True)
        ]
        parts[-1] = parts[-1].rstrip()
        line = _GUTTER.join(style.paint(p, part) for p, part in zip(parameters, parts, strict=True))
        output.append(line.rstrip())
    return output


def plural(count: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def padded(text: str, size: int, *, right: bool = False) -> str:
    """A text filled with spaces to a width."""
    fill = " " * (size - columns_of(text))
    return fill + text if right else text + fill


def columns_of(text: str) -> int:
    """Width of a text in columns of a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def wrapped(head: str, text: str, width: int) -> str:
    """A paragraph behind a head, such as ``note:``; its further lines are indented as far as the head is wide."""
    indent = columns_of(head)
    first, *rest = _wrapped(text, max(width - indent, 4))
    return "\n".join([head + first, *(" " * indent + line for line in rest)])


def _longest_word(text: str) -> int:
    """The width that keeps every word of a text whole; long words count by their parts."""
    indent = len(text) - len(text.lstrip(" "))
    return indent + max((columns_of(part) for word in text.split() for part in _parts(word)), default=0)


def _parts(word: str) -> list[str]:
    return [word] if columns_of(word) <= _LONG_WORD else _BREAKS.split(word)


def _wrapped(text: str, size: int) -> list[str]:
    """A text in lines of at most ``size`` columns, broken at spaces where there are any; its indent is kept."""
    if columns_of(text) <= size:
        return [text]
    room = size - max(map(_columns, text))  # next to a character of two columns
    indent = " " * min(len(text) - len(text.lstrip(" ")), size // 2, room)
    available = max(size - len(indent), 1)
    output: list[str] = []
    line = ""
    for word in text.split():
        if line and columns_of(line) + 1 + columns_of(word) <= available:
            line += " " + word
            continue
        if line:
            output.append(indent + line)
        line = word
        while columns_of(line) > available:
            head = _head(line, available)
            output.append(indent + head)
            line = line[len(head) :]
    return [*output, indent + line] if line or not output else output


def _head(word: str, size: int) -> str:
    """The beginning of a word that fits into ``size`` columns, after punctuation if possible; at least one character."""
    fitting, taken = len(word), 0
    for index, char in enumerate(word):
        taken += _columns(char)
        if taken > size and index:
            fitting = index
            break
    breaks = [m.start() for m in _BREAKS.finditer(word[:fitting]) if m.start()]
    return word[: breaks[-1]] if breaks else word[:fitting]


def folded(command: str, size: int) -> list[str]:
    r"""A shell command in lines of at most ``size`` columns if possible; all lines but the last end with ``\``.

    An option stays with its value.
    """
    import shlex

    words = [shlex.quote(word) for word in shlex.split(command)]
    pieces: list[str] = []
    for word in words:
        if pieces and pieces[-1].startswith("--") and " " not in pieces[-1] and not word.startswith("--"):
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + 1 + len(piece) <= size - 2:
            lines[-1] += f" {piece}"
        else:
            lines.append(f"  {piece}" if lines else piece)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


_SGR = re.compile(r"(\x1b\[[0-9;]*m)")


def _visible_paragraph(text: str) -> str:
    """A paragraph of a page, which may have colours of its own."""
    return "".join(part if _SGR.fullmatch(part) else visible(part) for part in _SGR.split(text))
