"""``trnspec fix``: the safe hints of findings, applied."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath

import click

from trnspec.api import load_documents, registry, select
from trnspec.catalog.versions.git import is_committed
from trnspec.checks.fixes import fix
from trnspec.cli.common import catalogs_option, check_options, here, rewrite
from trnspec.cli.help import documented
from trnspec.diagnostics import Severity
from trnspec.loading.rewriting import TextFile, read_as_text


@documented(
    "fix",
    ("trnspec fix --diff my-catalog", "Show what would change in a folder:"),
    ("trnspec fix --check my-catalog", "List the files that would change, with exit status 1:"),
    ("trnspec fix chips/acme-1.yaml", "Fix one file:"),
    ("trnspec fix my-catalog", "Fix all documents of a folder:"),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(readable=False))
@check_options
@catalogs_option()
def command(paths: tuple[str, ...], check: bool, diff: bool, catalogs: tuple[str, ...]) -> None:  # noqa: FBT001  # click passes them by name
    """Apply the safe hints of findings, and check again.

    Fixed are: a misspelt key and a misspelt unit if one correction is possible, a number such as 4,800 Gbps without
    quotes in a flow mapping, an older api_version, the former path of an attribute, and a waiver that suppresses nothing.
    Claims that differ in their sources alone become one with sources: [a, b]. The Price documents of a server become
    one PriceList with a row for each price, the Calibration documents of a chip and a framework one CalibrationList;
    their files are deleted, so this needs files that are committed to git. All other text stays as it is. For a source that is named and does not exist, a document is written whose fields are
    empty: it is invalid until they are filled in, so nothing unknown becomes known. Exit status: 0 no findings are
    left, 1 findings are left, or --check or --diff finds a change.
    """
    known, settings = registry(), here(catalogs)
    settings.verify(known.codes)
    fixed = fix(load_documents(select(paths, known, settings), known), known, settings, is_committed)
    changes = [(file, fixed.texts[str(file.file)]) for file in map(read_as_text, map(FilePath, fixed.texts))]
    changes += [(TextFile(_named(file), ""), text) for file, text in fixed.stubs.items()]
    changes += [(TextFile(_named(file), ""), text) for file, (text, _) in fixed.lists.items()]
    removed = [read_as_text(FilePath(file)) for _, files in fixed.lists.values() for file in files]
    left = sum(d.severity > Severity.INFO for d in fixed.checked.report.diagnostics)
    if not rewrite(changes, "fix", removed, check=check, diff=diff):
        sys.exit(1 if changes or left else 0)
    for finding in fixed.applied:
        click.echo(f"{finding.where}: fixed {finding.code} {finding.name}: {finding.message}")
    for file, (_, files) in fixed.lists.items():
        deleted = "1 document, which is" if len(files) == 1 else f"{len(files)} documents, which are"
        click.echo(f"{_named(file)}: new, with the contents of {deleted} deleted")
    for stub in fixed.stubs:
        click.echo(f"{_named(stub)}: new, to be filled in: it is invalid until its empty fields have values")
    if left:
        click.echo(f"{left:,} {'finding is' if left == 1 else 'findings are'} left; trnspec validate prints them")
    sys.exit(1 if left else 0)


def _named(file: str) -> FilePath:
    """A file, as seen from the current folder if it is below it."""
    path, here = FilePath(file), FilePath.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
