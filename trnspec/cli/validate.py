"""``trnspec validate``: the checks, which pre-commit runs."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath

import click

from trnspec.cli.complete import codes
from trnspec.cli.formats import Format
from trnspec.cli.help import GroupedCommand, GroupedOption, NamedPath
from trnspec.cli.validation import outcome
from trnspec.diagnostics import Severity
from trnspec.errors import UsageError
from trnspec.loading.files import documents_in
from trnspec.loading.processes import LIMIT
from trnspec.loading.settings import Settings


@click.command(
    "validate",
    cls=GroupedCommand,
    examples=(
        ("trnspec validate my-catalog", "Check the documents of a folder:"),
        ("trnspec validate --format github chips/acme-1.yaml", "Check one file, with annotations for GitHub:"),
        ("trnspec validate --ignore TRN6 --table", "Check the shipped catalog without the codes TRN6xx, and list it:"),
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@click.option(
    "--format",
    "format_",
    cls=GroupedOption,
    group="Output",
    type=Format("reporters"),
    default="text",
    show_default=True,
    help="Report format.",
)
@click.option(
    "--table",
    is_flag=True,
    cls=GroupedOption,
    group="Output",
    help="Print the main figures of the checked documents first.",
)
@click.option(
    "--select",
    multiple=True,
    cls=GroupedOption,
    group="Findings",
    metavar="CODE",
    shell_complete=codes,
    help="Report only codes with this prefix; may be repeated.",
)
@click.option(
    "--ignore",
    multiple=True,
    cls=GroupedOption,
    group="Findings",
    metavar="CODE",
    shell_complete=codes,
    help="Do not report codes with this prefix; may be repeated.",
)
@click.option(
    "--severity",
    multiple=True,
    cls=GroupedOption,
    group="Findings",
    metavar="CODE=LEVEL",
    help="Change the severity of a code: info, warning or error; may be repeated.",
)
@click.option(
    "--baseline",
    cls=GroupedOption,
    group="Findings",
    metavar="FILE",
    type=NamedPath(dir_okay=False),
    help="Do not report the findings that trnspec baseline wrote to FILE; list those that no longer occur.",
)
@click.option(
    "--skip-others",
    is_flag=True,
    cls=GroupedOption,
    group="Catalog",
    help="Skip files without api_version: trnspec/, which other programs use, as pre-commit hooks do.",
)
@click.option(
    "--catalog",
    "catalogs",
    multiple=True,
    cls=GroupedOption,
    group="Catalog",
    metavar="DIR",
    help="Also resolve names in this catalog, and check it if no PATH is given; may be repeated.",
)
@click.option(
    "--jobs",
    cls=GroupedOption,
    group="Output",
    metavar="N",
    type=click.IntRange(1, LIMIT),
    help="Check many documents with N processes, by default one for each core, at most 8; TRNSPEC_JOBS=N does the same.",
)
@click.option(
    "--no-cache",
    is_flag=True,
    cls=GroupedOption,
    group="Output",
    help="Check again, even if nothing has changed since the same run; TRNSPEC_NO_CACHE=1 does the same.",
)
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
    jobs: int | None,
    no_cache: bool,  # noqa: ARG001, FBT001  # it is looked for before anything is imported
) -> None:
    """Check catalog files and all documents that refer to them.

    PATH is a file, a folder, or - for standard input. Names are resolved in the catalog of the file, those of --catalog
    and of the settings, the shipped one and those of plugins. Without PATH all these catalogs are checked. Exit status:
    0 no findings, 1 findings, 2 wrong usage.
    """
    given = Settings(
        select=_codes(select),
        ignore=_codes(ignore),
        severity=dict(_severity(text) for text in severity),
        catalogs=tuple(FilePath(c) for c in catalogs),
    )
    if table and format_ != "text":
        raise UsageError(f"--table is printed with --format text only, not with --format {format_}")
    if not paths:
        _hold_something(given.catalogs)
    found = outcome(paths, given, format_, skip_others=skip_others, baseline=baseline, jobs=jobs)
    if found is None:
        sys.exit(0)
    if table:
        from trnspec.cli.render import show
        from trnspec.cli.tables import contents

        show(contents(found.checked.graph))
        click.echo()
    if found.text:
        click.echo(found.text, color=found.color)
    for line in found.idle:
        click.echo(f"no longer occurs: {line}", err=True)
    if found.idle:
        click.echo(f"trnspec baseline {baseline} removes what no longer occurs", err=True)
    if not table:
        found.store(format_)
    sys.exit(found.status)


def _hold_something(folders: tuple[FilePath, ...]) -> None:
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
