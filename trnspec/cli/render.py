"""Tables: with rich on a terminal, plain and aligned in a pipe, CSV, JSON and Markdown for programs and pages.

A table for people fits the width it is given (80 columns in a pipe): long cells are folded first, then columns are
left out from the right, and a line below says which.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import click
from attrs import frozen

Cell = str | int | float | Fraction | bool | None
"""A value of a table; ``None`` is a gap, which is neither empty nor 0."""

FORMATS = ("text", "json", "csv", "markdown")

GAP = "-"

_SPACE = 2
_USUAL = 80
_LEAST = 20

F = TypeVar("F", bound=Callable[..., Any])


def format_option(command: F) -> F:
    """Adds ``--format`` to a command; the function gets ``format_``."""
    return click.option(
        "--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print it."
    )(command)


@frozen
class Column:
    """A column of a table.

    Attributes:
        name: Its heading; of several lines where there are line breaks in it.
        right: True for numbers, which stand at the right.
        fold: True where long cells may be folded into several lines.
        least: How narrow it may become by that.
        keep: True for a column that is never left out.
        unit: The unit of its numbers, below the heading, where they are shown without.
    """

    name: str
    right: bool = False
    fold: bool = False
    least: int = 8
    keep: bool = False
    unit: str = ""

    @property
    def heading(self) -> list[str]:
        """The lines of the heading."""
        return [*self.name.split("\n"), *([self.unit] if self.unit else [])]


@frozen
class Table:
    """Rows under columns.

    Attributes:
        columns: The columns.
        rows: A cell for each column, or a text alone for a heading between rows.
        whole: The options that print all of it; told where columns are left out.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...] | str, ...]
    whole: str = "--format csv"


def table(columns: Sequence[str | Column], rows: Sequence[Sequence[Cell] | str], whole: str = "--format csv") -> Table:
    """A table; a column that is given by its name alone is an ordinary one."""
    made = tuple(Column(c) if isinstance(c, str) else c for c in columns)
    return Table(made, tuple(r if isinstance(r, str) else tuple(r) for r in rows), whole)


Block = str | Table
"""What people read: a paragraph, which is printed as it is, or a table."""


def emit(
    format_: str,
    blocks: Callable[[], Sequence[Block]],
    data: Callable[[], Table],
    about: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Print the one or the other.

    Args:
        format_: One of :data:`FORMATS`.
        blocks: What people read; asked for only where the format is ``text``.
        data: The same as one table with a value in every cell, for programs.
        about: What JSON says beside the rows.
    """
    if format_ == "text":
        show(blocks())
    else:
        click.echo(written(data(), format_, about() if format_ == "json" else {}), nl=False)


def written(found: Table, format_: str, about: Mapping[str, Any] = {}) -> str:
    """A table as CSV, JSON or Markdown, with a newline at the end."""
    rows = [row for row in found.rows if not isinstance(row, str)]
    names = [" ".join(c.heading) for c in found.columns]
    if format_ == "csv":
        import csv
        import io

        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(["" if c is None else _plain(c) for c in row] for row in rows)
        return buffer.getvalue()
    if format_ == "json":
        import json

        records = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
        return json.dumps({"version": 1, **about, "rows": records}, indent=2, ensure_ascii=False) + "\n"
    lines = ["| " + " | ".join(names) + " |"]
    lines.append("|" + "|".join(" ---: " if c.right else " --- " for c in found.columns) + "|")
    lines += ["| " + " | ".join(_marked(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _plain(cell: Cell) -> str | int | float | bool | None:
    """A value that CSV and JSON can hold; a whole number stays whole."""
    if isinstance(cell, Fraction):
        return cell.numerator if cell.denominator == 1 else float(cell)
    return cell


def _marked(cell: Cell) -> str:
    return shown(cell).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def shown(cell: Cell) -> str:
    """A cell for people; a gap is shown as one."""
    if cell is None:
        return GAP
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{float(cell):,.4g}" if isinstance(cell, (float, Fraction)) else cell


def width() -> int:
    """The columns to print in: those of the terminal or of ``COLUMNS``, 80 in a pipe."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(int(given), _LEAST)
    try:
        # Not by way of shutil, which imports every kind of archive.
        return max(os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL, _LEAST)
    except (OSError, AttributeError, ValueError):
        return _USUAL


def show(blocks: Sequence[Block]) -> None:
    """Print what people read, an empty line between blocks."""
    room = width()
    if sys.stdout is not None and sys.stdout.isatty():
        _on_terminal(blocks, room)
        return
    texts = ["\n".join(lines(b, room)) if isinstance(b, Table) else b for b in blocks]
    click.echo("\n\n".join(texts))


def _on_terminal(blocks: Sequence[Block], room: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(width=room, highlight=False, soft_wrap=False)
    for index, block in enumerate(blocks):
        if index:
            console.print()
        if isinstance(block, str):
            console.print(Text(block))
            continue
        layout = fit(block, room)
        # The box has a space of its own between columns.
        made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _SPACE - 1, 0, 0), show_edge=False)
        for column, size, head in zip(layout.columns, layout.widths, _heads(layout), strict=True):
            made.add_column(
                Text("\n".join(head)),
                justify="right" if column.right else "left",
                overflow="fold",
                min_width=size,
            )
        for row in layout.rows:
            if isinstance(row, str):
                made.add_row(Text(row, "bold"))
            else:
                made.add_row(*(Text(cell, "dim" if cell == GAP else "") for cell in row))
        console.print(made)
        if layout.left_out:
            console.print(Text(_left_out(layout.left_out, block.whole), "italic"))


@frozen
class Layout:
    """A table as it will stand on the page.

    Attributes:
        columns: The columns that have room.
        widths: How wide each is.
        rows: The cells as texts, or a heading.
        left_out: The names of the columns that have no room.
    """

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...] | str, ...]
    left_out: tuple[str, ...]


def fit(found: Table, room: int) -> Layout:
    """The table in so many columns of text: folded, and without its last columns where it must be."""
    chosen = list(range(len(found.columns)))
    rows = [r if isinstance(r, str) else tuple(shown(c) for c in r) for r in found.rows]
    natural = [
        max([_heading(c), *(columns_of(r[i]) for r in rows if not isinstance(r, str))])
        for i, c in enumerate(found.columns)
    ]
    least = [min(n, max(c.least, _heading(c))) if c.fold else n for n, c in zip(natural, found.columns, strict=True)]
    may_go = [i for i in chosen[1:] if not found.columns[i].keep]
    while may_go and sum(least[i] for i in chosen) + _SPACE * (len(chosen) - 1) > room:
        chosen.remove(may_go.pop())
    widths = _narrowed([natural[i] for i in chosen], [found.columns[i] for i in chosen], room)
    if sum(widths) + _SPACE * (len(widths) - 1) > room:
        # Nothing may go any more: every cell is folded, wherever that breaks it.
        each = max((room + _SPACE) // len(widths) - _SPACE, 1)
        widths = [min(w, each) for w in widths]
    left = tuple(c.name.replace("\n", " ") for i, c in enumerate(found.columns) if i not in chosen)
    kept = tuple(r if isinstance(r, str) else tuple(r[i] for i in chosen) for r in rows)
    return Layout(tuple(found.columns[i] for i in chosen), tuple(widths), kept, left)


def _heading(column: Column) -> int:
    """How wide the heading of a column is."""
    return max(map(columns_of, column.heading))


def _narrowed(widths: list[int], columns: list[Column], room: int) -> list[int]:
    """The widths with the widest column that may be folded made narrower, again and again, as far as it goes."""
    widths = list(widths)
    while sum(widths) + _SPACE * (len(widths) - 1) > room:
        folding = [i for i, c in enumerate(columns) if c.fold and widths[i] > max(c.least, _heading(c))]
        if not folding:
            break
        widths[max(folding, key=lambda i: widths[i])] -= 1
    return widths


def lines(found: Table, room: int) -> list[str]:
    """A table as plain lines, none longer than ``room`` columns of text."""
    layout = fit(found, room)
    made = [*_side_by_side(_heads(layout), layout), _SPACE * " "]
    made[-1] = (_SPACE * " ").join("-" * w for w in layout.widths)
    for row in layout.rows:
        if isinstance(row, str):
            made += _folded(row, room)
        else:
            made += _side_by_side([_folded(c, w) for c, w in zip(row, layout.widths, strict=True)], layout)
    if layout.left_out:
        made += ["", *_folded(_left_out(layout.left_out, found.whole), room)]
    return made


def _heads(layout: Layout) -> list[list[str]]:
    """The lines of each heading; where there are units they end in one line, so that units stand beside units."""
    heads = [
        [line for part in c.heading for line in _folded(part, w)]
        for c, w in zip(layout.columns, layout.widths, strict=True)
    ]
    if any(c.unit for c in layout.columns):
        heads = [[""] * (max(map(len, heads)) - len(h)) + h for h in heads]
    return heads


def _left_out(names: Sequence[str], whole: str) -> str:
    return f"Left out for want of room: {', '.join(names)}. A wider page (COLUMNS) or {whole} has all."


def _side_by_side(cells: list[list[str]], layout: Layout) -> list[str]:
    made = []
    for n in range(max(map(len, cells))):
        parts = [
            padded(cell[n] if n < len(cell) else "", size, right=column.right)
            for cell, size, column in zip(cells, layout.widths, layout.columns, strict=True)
        ]
        made.append((_SPACE * " ").join(parts).rstrip())
    return made


def padded(text: str, size: int, *, right: bool = False) -> str:
    """A text filled with spaces to so many columns of a terminal."""
    fill = " " * (size - columns_of(text))
    return fill + text if right else text + fill


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character, none for one that joins another."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def wrapped(head: str, text: str, room: int | None = None) -> str:
    """A paragraph behind a head, such as ``note:``, its further lines indented as far."""
    room = width() if room is None else room
    indent = columns_of(head)
    folded = _folded(text, max(room - indent, 8))
    return "\n".join([head + folded[0], *(" " * indent + line for line in folded[1:])])


def _folded(text: str, size: int) -> list[str]:
    """A text in lines of at most so many columns, broken at spaces where there are any; its indent is kept."""
    if columns_of(text) <= size:
        return [text]
    indent = " " * min(len(text) - len(text.lstrip(" ")), size // 2)
    made: list[str] = []
    line = ""
    for word in text.split():
        if line and columns_of(indent + line) + 1 + columns_of(word) <= size:
            line += " " + word
            continue
        if line:
            made.append(indent + line)
        line = word
        while columns_of(indent + line) > size:
            head = _head(line, max(size - len(indent), 1))
            made.append(indent + head)
            line = line[len(head) :]
    return [*made, indent + line] if line or not made else made


def _head(text: str, size: int) -> str:
    """As much of a text as takes at most so many columns, and at least one character."""
    taken = 0
    for index, char in enumerate(text):
        taken += _columns(char)
        if taken > size and index:
            return text[:index]
    return text
