"""``trnspec explain``: the explanation of a code."""

from __future__ import annotations

import json
import re

import click

from trnspec.api import registry
from trnspec.builtin import plugin
from trnspec.cli.complete import codes
from trnspec.cli.help import GroupedCommand
from trnspec.cli.render import emit, format_option, width
from trnspec.errors import UsageError
from trnspec.plugins.api import Registry
from trnspec.text_table import Column, table, wrapped

_FIXED = re.compile(r"\s*([-*|>#`]|\d+\. |\w+:$)")
"""A line that is not wrapped: of a list, a table or code, or a heading."""


@click.command(
    "explain",
    cls=GroupedCommand,
    examples=(
        ("trnspec explain TRN402", "One code:"),
        ("trnspec explain aggregate-mismatch", "The same by its name:"),
        ("trnspec explain --format json", "All codes, for programs:"),
    ),
)
@click.argument("code", required=False, shell_complete=codes)
@format_option
def command(code: str | None, format_: str) -> None:
    """Explain a code: its meaning, why it matters and how to fix the finding; without CODE, list all codes."""
    if code is None:
        known = registry().codes.values()
        heads = [Column("code", keep=True), Column("severity"), Column("name"), Column("summary", wrap=True, keep=True)]
        listed = table(heads, [(c.id, c.severity.label, c.name, c.summary) for c in known])
        emit(format_, lambda: [listed], lambda: listed)
        return
    try:
        # A built-in code is explained without importing any plugin.
        chosen = Registry.of([plugin]).code(code)
    except UsageError:
        chosen = registry().code(code)
    if format_ == "json":
        data = {"id": chosen.id, "name": chosen.name, "severity": chosen.severity.label, "doc": chosen.doc.strip()}
        click.echo(json.dumps({"version": 1, **data}, indent=2, ensure_ascii=False))
    elif format_ == "csv":
        raise UsageError("an explanation is text; --format csv lists all codes")
    elif format_ == "markdown":
        click.echo(f"# {chosen.id} {chosen.name} ({chosen.severity.label})\n\n{chosen.doc.strip()}")
    else:
        click.echo(f"{chosen.id} {chosen.name} ({chosen.severity.label})\n\n{_wrapped(chosen.doc.strip())}")


def _wrapped(text: str) -> str:
    """The paragraphs of a text, wrapped to the terminal; code, lists, tables and headings stay as they are."""
    lines: list[str] = []
    paragraph: list[str] = []
    is_code = False
    for line in [*text.split("\n"), ""]:
        is_fence = line.lstrip().startswith("```")
        if not (is_code or is_fence or not line.strip() or _FIXED.match(line)):
            paragraph.append(line)
            continue
        if paragraph:
            indent = paragraph[0][: len(paragraph[0]) - len(paragraph[0].lstrip())]
            lines.append(wrapped(indent, " ".join(paragraph).strip(), width()))
            paragraph = []
        lines.append(line)
        is_code ^= is_fence
    return "\n".join(lines).rstrip()
