"""``trnspec diff``: the differences between two catalogs, with ratios, sources and reasons."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import attrs
import click

from trnspec.catalog.versions.diff import Change, Differences, Side, ratio_text
from trnspec.cli.catalogs import label, open_catalog
from trnspec.cli.complete import documents
from trnspec.cli.help import GroupedCommand, option
from trnspec.cli.render import VERDICTS, colored, formats, is_colored
from trnspec.text_table import markdown, table

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command(
    "diff",
    cls=GroupedCommand,
    examples=(
        ("trnspec diff as-of:2023-06 working", "What was published since June 2023:"),
        ("trnspec diff as-of:2024-12 working --name trainium2", "The same for one chip:"),
        ("trnspec diff working working --format json", "No differences, for programs:"),
    ),
)
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@option(
    "--name",
    "names",
    group="Catalog",
    multiple=True,
    metavar="NAME",
    shell_complete=documents(),
    help="Only this document; may be repeated.",
)
@formats("text", "json", "markdown")
def command(old: str, new: str, names: tuple[str, ...], format_: str) -> None:
    """Print the differences between the catalogs A and B: documents, figures, counts and texts, with reasons.

    A and B are each an edition (2026.11), 'working' for the shipped catalog, a catalog folder, a date (as-of:2023-03
    for what was published by then), or a git revision (git:HEAD~1, or git:v1:path/to/catalog if the folder is not
    named catalog). Write ./2026.11 for a folder that is named like an edition. Exit status: 0 no differences, 1
    differences, 2 wrong usage.
    """
    differences = open_catalog(old).diff(open_catalog(new), *names, called=(label(old), label(new)))
    writers: dict[str, Callable[[Differences], str]] = {"text": _text, "json": _json, "markdown": _markdown}
    click.echo(writers[format_](differences), color=is_colored())
    sys.exit(1 if differences else 0)


_VERDICT = re.compile(rf"\b({'|'.join(VERDICTS)})(?=[:,)]|$)")


def _text(differences: Differences) -> str:
    """The differences as lines; names of documents bold and verdicts coloured on a terminal."""
    if not is_colored():
        return str(differences)
    lines = []
    for line in str(differences).split("\n"):
        is_heading = bool(line) and not line.startswith(" ")
        lines.append(click.style(line, bold=True) if is_heading else _VERDICT.sub(lambda m: colored(m[0]), line))
    return "\n".join(lines)


def _json(differences: Differences) -> str:
    return json.dumps({"version": 1, **attrs.asdict(differences)}, indent=2, ensure_ascii=False)


def _markdown(differences: Differences) -> str:
    lines = [f"From {differences.old} to {differences.new}:", ""]
    if not differences:
        return "\n".join([*lines, "no differences."])
    if differences.figures or differences.restated or differences.words:
        changes = (*differences.figures, *differences.restated, *differences.words)
        lines.append(
            markdown(table(["document", "at", "old", "new", "ratio", "source", "reason"], [_cells(c) for c in changes]))
        )
    for title, present in (("Added", differences.added), ("Removed", differences.removed)):
        lines += [f"- {title}: {p.kind} {p.name}{f', {p.reason}' if p.reason else ''}" for p in present]
    lines += [
        f"- Claims of {c.of}: {c.added} added, {c.removed} removed, {c.judged} with another verdict"
        for c in differences.claims
    ]
    lines += [f"- Not compared, because of errors on one side: {n} ({file})" for n, file in differences.unread.items()]
    return "\n".join(lines).rstrip()


def _cells(change: Change) -> list[str]:
    ratio = "" if change.ratio is None else ratio_text(change.ratio)
    sides = [str(s) for s in (change.old, change.new) if s is not None and (s.source or s.derived)]
    why = ": ".join(filter(None, (change.verdict, change.reason)))
    return [change.of, change.at, _says(change.old), _says(change.new), ratio, "; then ".join(sides), why]


def _says(side: Side | None) -> str:
    return "-" if side is None else side.says
