"""``trnspec plugin``: what is installed, and the start of a new one."""

from __future__ import annotations

import json
from pathlib import Path as FilePath

import click


@click.group("plugin")
def command() -> None:
    """List the installed plugins and what became of them; start a new one."""


@command.command("list")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_(format_: str) -> None:
    """List the installed plugins: which are used, and why the others are not."""
    from attrs import asdict

    from trnspec.api import plugins

    records = plugins().records
    if format_ == "json":
        click.echo(json.dumps({"version": 1, "plugins": [asdict(r) for r in records]}, indent=2, ensure_ascii=False))
        return
    if not records:
        click.echo("No plugins are installed.")
        return
    rows = [(r.name, f"{r.distribution} {r.version}", r.status, f"{1000 * r.seconds:.0f} ms") for r in records]
    heads = ("plugin", "distribution", "status", "import")
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(4)]
    for row, message in zip((heads, *rows), ("", *(r.message for r in records)), strict=True):
        cells = [*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=False)), row[3].rjust(widths[3])]
        click.echo("  ".join([*cells, " ".join(message.split())]).rstrip())


@command.command("new")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["generation", "rules", "evaluator"]),
    default="generation",
    show_default=True,
    help="What it adds: documents of new hardware, cross-checks, or something that computes.",
)
@click.option("--into", metavar="DIR", default=".", show_default=True, help="The folder to make it in.")
def new(name: str, kind: str, into: str) -> None:
    """Write a working distribution, NAME and its tests, to start a plugin from.

    The folder must not exist yet. NAME is made of lower-case letters, digits and hyphens: acme-tpu.
    """
    from trnspec.skeleton import write

    folder = write(name, kind, FilePath(into))
    click.echo(f"{folder}: a plugin with its own tests. Next:\n")
    click.echo(f"  pip install --editable {folder}\n  python -m pytest {folder}\n  trnspec plugin list")
