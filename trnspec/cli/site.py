"""``trnspec site``: the catalog as web pages."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import click

from trnspec.api import evaluate
from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.help import CommandGroup, NamedPath, documented, option
from trnspec.errors import library
from trnspec.site.build import build, write_site
from trnspec.site.planner import cases
from trnspec.site.serve import server


@click.group("site", cls=CommandGroup)
def command() -> None:
    """Write the catalog as web pages that work without a server.

    The pages need Jinja2: pip install 'trnspec[site]'.
    """


@documented(
    "build",
    ("trnspec site build catalog-site", "Write the pages of the catalog:"),
    ("trnspec site build catalog-site --no-plans", "The same without the page of plans, which is quicker:"),
    ("trnspec site build acme-site --catalog my-catalog", "With your own documents:"),
    ("trnspec site build site-2026 --edition 2026.11 --no-plans", "An edition of the catalog:"),
    of=command,
)
@click.argument("folder", metavar="DIR", type=NamedPath(file_okay=False))
@option(
    "--plans/--no-plans",
    "Output",
    "Also compute the page of plans for common questions, which takes most of the time.",
    default=True,
)
@catalog_options
def build_(folder: FilePath, *, plans: bool, **options: Any) -> None:
    """Write a folder of web pages; open DIR/index.html in a browser.

    There is a table of all documents with filters, ratios and comparisons, a page for each document and source, the
    audit, the topologies, and plans for common questions. The pages load nothing from elsewhere. Pages of an earlier site in DIR are replaced.
    """
    library("jinja2", "site")  # before anything is computed
    catalog = load_catalog(**options)
    names = [node.name for node in catalog.graph] if plans else []
    pages = build(catalog.graph, cases(lambda name, inputs: evaluate(name, catalog, **inputs), names))
    write_site(folder, pages)
    click.echo(f"wrote {folder / 'index.html'} and the files it links to", err=True)


@documented(
    "serve",
    ("trnspec site serve catalog-site", "Serve the pages to this machine:"),
    ("trnspec site serve catalog-site --port 0", "On any free port:"),
    of=command,
)
@click.argument("folder", metavar="DIR", type=NamedPath(file_okay=False))
@option(
    "--port PORT", "Output", "The port on 127.0.0.1; 0 for any free one.", type=click.IntRange(0, 65535), default=8000
)
def serve_(folder: FilePath, port: int) -> None:
    """Serve a site that trnspec site build wrote, to programs of this machine only, until interrupted."""
    with server(folder, port) as listening:
        click.echo(f"http://127.0.0.1:{listening.server_port}/index.html; Ctrl-C stops it", err=True)
        try:
            listening.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
