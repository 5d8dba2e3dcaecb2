"""``trnspec validate``: what pre-commit runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import click

from trnspec.api import validate
from trnspec.cli.formats import Format
from trnspec.diagnostics import Severity
from trnspec.errors import UsageError
from trnspec.loading import settings as settings_
from trnspec.loading.files import documents_in
from trnspec.loading.settings import Settings
from trnspec.output.reporters import render, use_color

if TYPE_CHECKING:
    from datetime import datetime


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--format", "format_", type=Format("reporters"), default="text", show_default=True, help="Report format.")
@click.option("--select", multiple=True, metavar="CODE", help="Report only codes that begin so; may be repeated.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Do not report codes that begin so; may be repeated.")
@click.option("--severity", multiple=True, metavar="CODE=LEVEL", help="Another severity: info, warning or error.")
@click.option(
    "--catalog",
    "catalogs",
    multiple=True,
    metavar="DIR",
    help="Resolve names in this catalog too, and check it where no PATH is given; may be repeated.",
)
@click.option("--table", is_flag=True, help="Print what the checked documents hold, before the verdict.")
def command(  # noqa: PLR0917  # one parameter for each option
    paths: tuple[str, ...],
    format_: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: tuple[str, ...],
    catalogs: tuple[str, ...],
    table: bool,  # noqa: FBT001  # click passes it by name
) -> None:
    """Check catalog files and everything they take part in.

    PATH is a file, a folder, or - for standard input; names in them resolve against the catalog they lie in, those of
    --catalog and of the settings, the shipped one and those of plugins. Without PATH all these catalogs are checked.
    Exit status: 0 clean, 1 findings, 2 misuse.
    """
    given = Settings(
        select=_codes(select),
        ignore=_codes(ignore),
        severity=dict(_severity(text) for text in severity),
        catalogs=tuple(FilePath(c) for c in catalogs),
    )
    if table and format_ != "text":
        raise UsageError(f"--table is for people; it does not go with --format {format_}")
    if not paths:
        _hold_something(given.catalogs)
    checked = validate(paths, settings=settings_.find(_here()).merged(given), every=True)
    color = sys.stdout is not None and use_color(sys.stdout, os.environ)
    if table:
        from trnspec.cli.tables import holdings

        click.echo(holdings(checked.graph), color=color)
    text = render(checked.report, format_, color=color, texts=checked.texts, when=_now())
    if text:
        click.echo(text, color=color)
    sys.exit(0 if checked.report.ok else 1)


def _hold_something(folders: tuple[FilePath, ...]) -> None:
    """Refuse a catalog that is named to be checked and holds nothing to check, as a PATH of that kind is."""
    for folder in folders:
        if folder.is_dir() and not any(documents_in(folder)):
            raise UsageError(f"{folder} holds no .yaml files")


def _here() -> FilePath:
    try:
        return FilePath.cwd()
    except FileNotFoundError:
        raise UsageError("the current folder does not exist") from None


def _codes(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for value in values for code in value.split(",") if code.strip())


def _severity(text: str) -> tuple[str, Severity]:
    code, equals, label = text.partition("=")
    if not equals:
        raise UsageError(f"--severity {text}: write CODE=LEVEL, for instance TRN402=warning")
    try:
        return code.strip().upper(), Severity.of(label.strip())
    except ValueError as error:
        raise UsageError(f"--severity {text}: {error}") from error


def _now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)
