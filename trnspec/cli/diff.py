"""``trnspec diff``: what changed between two catalogs, by how much, and on whose word."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import attrs
import click

from trnspec.catalog.versions.diff import Change, Differences, Side, ratio_text
from trnspec.cli.opening import called, opened

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command("diff")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Only this document; may be repeated.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(old: str, new: str, names: tuple[str, ...], format_: str) -> None:
    """Tell what changed from A to B: documents, figures, counts, words, and why.

    A and B are each an edition (2026.11), 'working' for the shipped catalog, a catalog folder, a date (as-of:2023-03
    is what was published by then), or a git revision (git:HEAD~1, or git:v1:path/to/catalog when the folder is not
    called catalog). A folder that is called like an edition is written ./2026.11. Exit status: 0 nothing differs,
    1 something does, 2 misuse.
    """
    found = opened(old).diff(opened(new), *names, called=(called(old), called(new)))
    writers: dict[str, Callable[[Differences], str]] = {"text": str, "json": _json, "markdown": _markdown}
    click.echo(writers[format_](found))
    sys.exit(1 if found else 0)


def _json(found: Differences) -> str:
    return json.dumps({"version": 1, **attrs.asdict(found)}, indent=2, ensure_ascii=False)


def _markdown(found: Differences) -> str:
    lines = [f"From {found.old} to {found.new}:", ""]
    if not found:
        return "\n".join([*lines, "nothing differs."])
    if found.figures or found.restated or found.words:
        head = ["document", "at", "old", "new", "ratio", "on whose word", "why"]
        lines += [_row(head), "|" + " --- |" * len(head)]
        lines += [_row(_cells(c)) for c in (*found.figures, *found.restated, *found.words)]
        lines.append("")
    for title, present in (("Added", found.added), ("Removed", found.removed)):
        lines += [f"- {title}: {p.kind} {p.name}{f', {p.reason}' if p.reason else ''}" for p in present]
    lines += [f"- Claims of {c.of}: {c.added} added, {c.removed} removed, {c.judged} judged anew" for c in found.claims]
    lines += [f"- Not compared, because of errors on one side: {n} ({file})" for n, file in found.unread.items()]
    return "\n".join(lines).rstrip()


def _cells(change: Change) -> list[str]:
    ratio = "" if change.ratio is None else ratio_text(change.ratio)
    sides = [str(s) for s in (change.old, change.new) if s is not None and (s.source or s.derived)]
    why = ": ".join(filter(None, (change.verdict, change.reason)))
    return [change.of, change.at, _says(change.old), _says(change.new), ratio, "; then ".join(sides), why]


def _says(side: Side | None) -> str:
    return "-" if side is None else side.says


def _row(cells: list[Any]) -> str:
    return "| " + " | ".join(c.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for c in cells) + " |"
