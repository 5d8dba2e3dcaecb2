"""``trnspec baseline``: the present findings, accepted."""

from __future__ import annotations

from pathlib import Path as FilePath

import click

from trnspec.api import validate
from trnspec.atomic_write import write
from trnspec.checks.baseline import accepting
from trnspec.cli.common import catalogs_option, here
from trnspec.cli.help import NamedPath, documented
from trnspec.text_table import plural


@documented(
    "baseline",
    ("trnspec baseline trnspec-baseline.json my-catalog", "Accept the present findings of a folder:"),
    ("trnspec baseline acme.json chips/acme-1.yaml --catalog my-catalog", "Those of one file, with another catalog:"),
    ("trnspec validate --baseline trnspec-baseline.json my-catalog", "Report what is new since then:"),
    ("trnspec baseline all.json", "Accept the present findings of the catalogs in the settings:"),
)
@click.argument("file", metavar="FILE", type=NamedPath(dir_okay=False))
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@catalogs_option()
def command(file: FilePath, paths: tuple[str, ...], catalogs: tuple[str, ...]) -> None:
    """Write the present findings to FILE, for trnspec validate --baseline FILE.

    A finding is identified by its code, its document and the path in it, and not by its line. PATH is a file or a
    folder; without it, all catalogs are checked, as by trnspec validate. A waiver with a reason in the document is the
    better way to accept a single finding.
    """
    baseline = accepting(validate(paths, settings=here(catalogs), every=True), file)
    write({file: baseline.text().encode("utf-8")})
    click.echo(f"{file}: {plural(sum(baseline.findings.values()), 'finding')} accepted")
