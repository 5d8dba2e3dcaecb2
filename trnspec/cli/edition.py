"""``trnspec edition``: frozen copies of the catalog, and a check that they were not altered."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path as FilePath

import click

from trnspec.api import validate
from trnspec.catalog.versions import editions
from trnspec.checks.credit import OUTCOMES, credited
from trnspec.cli.help import CommandGroup, documented, option
from trnspec.cli.render import formats, show, versioned_json
from trnspec.errors import EditionError
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped
from trnspec.text_table import table

_CATALOG = option("--catalog DIR root", "Catalog", "Use the editions of this catalog instead of the shipped one.")


@click.group("edition", cls=CommandGroup)
def command() -> None:
    """Freeze the catalog, list its editions, and verify that none was altered.

    An edition is one file, editions/NAME.json.gz in the catalog. The same documents always give the same bytes.
    """


@documented(
    "list",
    ("trnspec edition list", "The editions of the shipped catalog:"),
    ("trnspec edition list --format json", "For programs:"),
    ("trnspec edition list --catalog my-catalog", "The editions of another catalog:"),
    of=command,
)
@_CATALOG
@formats("text", "json")
def list_(root: str | None, format_: str) -> None:
    """List the editions of the catalog, oldest first, without verifying them."""
    folder = _folder(root)
    released = editions.released(folder)
    rows: list[dict[str, str | None]] = [
        {"name": name, "file": str(editions.file_of(folder, name)), "sha256": released.get(name)}
        for name in editions.names(folder)
    ]
    if format_ == "json":
        click.echo(versioned_json({"editions": rows}))
        return
    listed = table(
        ["edition", "sha256"], [(row["name"], (row["sha256"] or f"not in {editions.RELEASED}")[:16]) for row in rows]
    )
    show([listed if rows else f"There are no editions in {folder}."])


@documented(
    "freeze",
    ("trnspec edition freeze 2027.01 --catalog my-catalog", "A private edition:"),
    ("trnspec edition freeze 2027.01.1 --catalog my-catalog", "A further one of the same month:"),
    of=command,
)
@click.argument("name")
@option("--pages DIR", "Catalog", "Record how many values the pages in this folder print; see trnspec audit --pages.")
@_CATALOG
def freeze(name: str, pages: str | None, root: str | None) -> None:
    """Freeze the working catalog as edition NAME, such as 2026.11.

    Only a catalog without findings is frozen (exit status 1 otherwise). An edition is never overwritten: freezing the
    same contents again changes nothing, other contents are rejected. With --pages the edition has the result of the audit
    of its sources.
    """
    editions.named(name)
    checked = validate([root] if root else [])
    if not checked.report.ok:
        click.echo(
            f"The catalog has {len(checked.report.diagnostics)} findings; run trnspec validate. Nothing was frozen."
        )
        sys.exit(1)
    graph = editions.part(checked.graph)
    audit = None if pages is None else _audit(graph, FilePath(pages))
    text = editions.freeze(graph, name, audit)
    file = editions.write(_folder(root), name, text)
    click.echo(f"{file}: {len(graph)} documents, sha256 {editions.verify(text).sha256}")


@documented(
    "verify",
    ("trnspec edition verify", "All editions of the shipped catalog:"),
    ("trnspec edition verify 2026.11", "One of them:"),
    of=command,
)
@click.argument("name", required=False)
@_CATALOG
def verify(name: str | None, root: str | None) -> None:
    """Verify edition NAME, or all of them, against their own hashes and against the list of released editions.

    Exit status 1: an edition was altered, is missing, or is not in the list.
    """
    folder = _folder(root)
    released = editions.released(folder)
    known = editions.names(folder)
    sound = True
    for each in [name] if name else dict.fromkeys((*known, *released)):
        try:
            edition = editions.verify(editions.checked(folder, each))
        except EditionError as error:
            sound = False
            click.echo(str(error))
            continue
        if each in released:
            click.echo(f"edition {each}: {len(edition.documents)} documents, unaltered{_printed(edition.audit)}")
        else:
            sound = False
            click.echo(f"edition {each} is unaltered, but not in {editions.RELEASED}: freeze it again to add it")
    if not name and not known and not released:
        click.echo(f"There are no editions in {folder}.")
    sys.exit(0 if sound else 1)


def _audit(graph: Graph, pages: FilePath) -> dict[str, int]:
    """Numbers of values that the pages print at the named line, elsewhere, and not at all."""
    printed = Counter(outcome for _, outcome in credited(graph, pages))
    return {"values": printed.total(), **{outcome: printed[outcome] for outcome in OUTCOMES}}


def _printed(audit: Mapping[str, int] | None) -> str:
    return "" if audit is None else f"; pages print {audit['values'] - audit['no']:,} of {audit['values']:,} values"


def _folder(root: str | None) -> FilePath:
    return (FilePath(root) if root else shipped()) / editions.FOLDER
