"""Printing pages and tables: the formats, the width and the colours of a terminal."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from json import dumps
from typing import Any, TypeVar

import click

from trnspec.cli.help import option
from trnspec.diagnostics import Report
from trnspec.output.reporters import render, use_color
from trnspec.quantities.amount import Amount
from trnspec.text_table import (
    Block,
    Cell,
    Style,
    TextTable,
    csv,
    json,
    markdown,
    rendered,
    sections_in_markdown,
    wrapped,
)

FORMATS = ("text", "json", "csv", "markdown")

VERDICTS = {
    "adopted": "32",
    "agrees": "32",
    "derived": "36",
    "rounded": "36",
    "other-scope": "36",
    "superseded": "33",
    "unresolved": "1;33",
    "rejected": "31",
    "found": "1;31",
}
"""The SGR parameters of verdicts on a terminal."""

SCREEN = 40
"""Lines of a page without ``--full``."""

_STYLE = Style(heading="1", cells={**VERDICTS, "-": "2"})
_DEFAULT_WIDTH = 80
_MIN_WIDTH = 20

F = TypeVar("F", bound=Callable[..., Any])


def formats(*names: str) -> Callable[[F], F]:
    """The option ``--format`` of a command that has these formats; the function gets ``format_``."""
    return option("--format format_", "Output", "Output format.", type=click.Choice(names), default="text")


format_option = formats(*FORMATS)
"""The option ``--format`` of a command that prints a table."""


def full_option(*former: str) -> Callable[[F], F]:
    """Adds ``--full``, also by its former names, to a command whose page fits a screen; the function gets ``full``."""
    text = f"Print the whole page; by default it has at most {SCREEN} lines at 80 columns."
    return option(" ".join(["--full", *former]), "Output", text)


def table_options(command: F) -> F:
    """Adds ``--columns`` and ``--sort`` to a command that prints a table."""
    sort = option("--sort COLUMN", "Output", "Sort by this column; -COLUMN descending.")
    columns = option("--columns COLUMN,...", "Output", "Print only these columns.")
    return columns(sort(command))


def emit(
    format_: str,
    blocks: Callable[[], Sequence[Block]],
    data: Callable[[], TextTable],
    about: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Print a page for people, or a table for programs.

    Args:
        format_: One of :data:`FORMATS`.
        blocks: The page; called only for the format ``text``.
        data: The same as one table with a value in every cell.
        about: What JSON has before the rows.
    """
    if format_ == "text":
        show(blocks())
    elif format_ == "json":
        click.echo(json(data(), about()), nl=False)
    else:
        click.echo((csv if format_ == "csv" else markdown)(data()), nl=False)


def print_sections(sections: Iterable[tuple[str, Block]], format_: str) -> None:
    """Print sections without headings as ``text`` or ``markdown``."""
    if format_ == "markdown":
        click.echo(sections_in_markdown(sections), nl=False)
    else:
        show([wrapped("", block, width()) if isinstance(block, str) else block for _, block in sections])


def versioned_json(data: Mapping[str, Any]) -> str:
    """An object as JSON, after the version of the formats of commands, 1."""
    return dumps({"version": 1, **data}, indent=2, ensure_ascii=False)


def width() -> int:
    """The width to print in: that of the terminal or of ``COLUMNS``, 80 in a pipe."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(int(given), _MIN_WIDTH)
    try:
        # Not shutil.get_terminal_size: shutil imports every archive format.
        return max(os.get_terminal_size(sys.stdout.fileno()).columns or _DEFAULT_WIDTH, _MIN_WIDTH)
    except (OSError, AttributeError, ValueError):
        return _DEFAULT_WIDTH


def lines_of(blocks: Sequence[Block]) -> int:
    """The number of lines of a page in the width to print in."""
    return rendered(blocks, width()).count("\n") + 1


def fitted(page: Callable[[int], Sequence[Block]], rows: int, *, full: bool = False) -> Sequence[Block]:
    """A page with as many rows as fit a screen, at least one; with all of them if ``full``."""
    whole = page(rows)
    if full or rows < 2 or lines_of(whole) <= SCREEN:
        return whole
    return page(bisect_right(range(rows), SCREEN, lo=2, key=lambda count: lines_of(page(count))) - 1)


def numbers(value: object) -> tuple[Cell, ...]:
    """Value, ends of the interval and unit of an amount, in base units; no unit for a count, and gaps for other values."""
    if isinstance(value, Amount):
        return value.value, value.interval.low, value.interval.high, value.dimension.base
    return (value, value, value, None) if isinstance(value, int) and not isinstance(value, bool) else (None,) * 4


def is_colored(*, err: bool = False) -> bool:
    """True if standard output or error shows colours: a terminal, unless NO_COLOR or FORCE_COLOR is set."""
    stream = sys.stderr if err else sys.stdout
    return stream is not None and use_color(stream, os.environ)


def report_findings(checked: Report, texts: Mapping[str, str]) -> None:
    """Print a report on standard error."""
    color = is_colored(err=True)
    click.echo(render(checked, "text", color=color, texts=texts), err=True, color=color)


def show(blocks: Sequence[Block]) -> None:
    """Print a page, an empty line between its blocks."""
    color = is_colored()
    click.echo(rendered(blocks, width(), _STYLE) if color else rendered(blocks, width()), color=color)


def colored(verdict: str, text: str | None = None) -> str:
    """A verdict, or a text about it, in the colour of the verdict; unchanged where there are no colours."""
    shown = verdict if text is None else text
    return _STYLE.paint(VERDICTS.get(verdict, ""), shown) if is_colored() else shown
