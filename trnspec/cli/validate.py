"""``trnspec validate``: the checks, which pre-commit runs."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path as FilePath

import click

from trnspec.api import plugins, validate
from trnspec.cli.common import here
from trnspec.cli.complete import codes
from trnspec.cli.formats import Format
from trnspec.cli.help import GroupedCommand, NamedPath, option
from trnspec.diagnostics import Severity
from trnspec.errors import UsageError
from trnspec.loading.files import documents_among, documents_in
from trnspec.loading.selection import STDIN
from trnspec.loading.settings import Settings
from trnspec.output.reporters import render, use_color


@click.command(
    "validate",
    cls=GroupedCommand,
    examples=(
        ("trnspec validate my-catalog", "Check the documents of a folder:"),
        ("trnspec validate --format github chips/acme-1.yaml", "Check one file, with annotations for GitHub:"),
        ("trnspec validate --ignore TRN6 --table", "Check the shipped catalog without the codes TRN6xx, and list it:"),
        ("trnspec validate --watch my-catalog", "Check the documents of a folder whenever one changes:"),
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@option(
    "--format",
    "format_",
    group="Output",
    type=Format("reporters"),
    default="text",
    show_default=True,
    help="Report format.",
)
@option(
    "--table",
    is_flag=True,
    group="Output",
    help="Print the main figures of the checked documents first.",
)
@option(
    "--select",
    multiple=True,
    group="Findings",
    metavar="CODE",
    shell_complete=codes,
    help="Report only codes with this prefix; may be repeated.",
)
@option(
    "--ignore",
    multiple=True,
    group="Findings",
    metavar="CODE",
    shell_complete=codes,
    help="Do not report codes with this prefix; may be repeated.",
)
@option(
    "--severity",
    multiple=True,
    group="Findings",
    metavar="CODE=LEVEL",
    help="Change the severity of a code: info, warning or error; may be repeated.",
)
@option(
    "--baseline",
    group="Findings",
    metavar="FILE",
    type=NamedPath(dir_okay=False),
    help="Do not report the findings that trnspec baseline wrote to FILE; list those that no longer occur.",
)
@option(
    "--skip-others",
    is_flag=True,
    group="Catalog",
    help="Skip the YAML files of other programs, as pre-commit hooks do.",
)
@option(
    "--catalog",
    "catalogs",
    multiple=True,
    group="Catalog",
    metavar="DIR",
    help="Also resolve names in this catalog, and check it if no PATH is given; may be repeated.",
)
@option(
    "--watch",
    "watching",
    is_flag=True,
    group="Watch",
    help="Stay, and check again whenever a document, a table or the settings change; print what is new and what is resolved.",
)
@option(
    "--interval",
    group="Watch",
    type=click.FloatRange(min=0.05, max=3600),
    default=0.5,
    show_default=True,
    metavar="SECONDS",
    help="How often files are looked at; less often where that takes long.",
)
@click.option("--jobs", type=click.IntRange(min=1), hidden=True, expose_value=False)  # without effect
@click.option("--no-cache", is_flag=True, hidden=True, expose_value=False)  # without effect
def command(  # noqa: PLR0913, PLR0917  # one parameter for each option
    paths: tuple[str, ...],
    format_: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: tuple[str, ...],
    catalogs: tuple[str, ...],
    table: bool,  # noqa: FBT001  # click passes it by name
    baseline: FilePath | None,
    skip_others: bool,  # noqa: FBT001
    watching: bool,  # noqa: FBT001
    interval: float,
) -> None:
    """Check catalog files and all documents that refer to them.

    PATH is a file, a folder, or - for standard input. Names are resolved in the catalog of the file, those of --catalog
    and of the settings, the shipped one and those of plugins. Without PATH all these catalogs are checked. Exit status:
    0 no findings, 1 findings, 2 wrong usage.

    With --watch, PATH is a file or a folder, by default the current folder; YAML files of other programs
    are skipped, changes of the catalogs that names are resolved in count too, and Ctrl-C ends the command with exit status 0.
    """
    given = Settings(
        select=_codes(select),
        ignore=_codes(ignore),
        severity=dict(_severity(text) for text in severity),
        catalogs=tuple(FilePath(c) for c in catalogs),
    )
    if watching:
        if table or baseline is not None or format_ != "text":
            raise UsageError("--watch prints findings as text; it excludes --format, --table and --baseline")
        from trnspec.cli.watch import watch

        watch(paths, given, interval)
    if table and format_ != "text":
        raise UsageError(f"--table is printed with --format text only, not with --format {format_}")
    if not paths:
        _require_documents(given.catalogs)
    settings = here().merged(given)
    if skip_others and paths:
        named = [path for path in paths if path != STDIN]
        found = documents_among(named, plugins().registry.kinds, settings.catalogs)
        paths = (*map(str, found), *(path for path in paths if path == STDIN))
        if not paths:
            sys.exit(0)
    checked = validate(paths, settings=settings, registry=plugins().registry, every=True)
    stale: list[str] = []
    if baseline is not None:
        from trnspec.checks.baseline import read, without

        checked, stale = without(checked, read(baseline), settings)
    if table:
        from trnspec.catalog.system_table import contents
        from trnspec.cli.render import show

        show(contents(checked.graph))
        click.echo()
    color = use_color(sys.stdout, os.environ)
    text = render(checked.report, format_, color=color, texts=checked.texts, when=datetime.now(UTC))
    if text:
        click.echo(text, sys.stdout, color=color)  # click would write UTF-8 where the encoding is ASCII
    for line in stale:
        click.echo(f"no longer occurs: {line}", err=True)
    if stale:
        click.echo(f"trnspec baseline {baseline} removes what no longer occurs", err=True)
    sys.exit(0 if checked.report.ok else 1)


def _require_documents(folders: tuple[FilePath, ...]) -> None:
    """Raise an error for a folder of --catalog without documents, as for such a PATH."""
    for folder in folders:
        if folder.is_dir() and not any(documents_in(folder)):
            raise UsageError(f"{folder} holds no .yaml files")


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
