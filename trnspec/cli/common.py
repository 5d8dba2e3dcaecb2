"""Options that several commands share, the catalog or graph that they choose, and changes of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trnspec.atomic_write import write
from trnspec.cli.help import option
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading import settings
from trnspec.loading.index import shipped_graph
from trnspec.loading.settings import Settings
from trnspec.plugins.entry_points import installed
from trnspec.plugins.selection import chosen

# The API, the catalog and what rewrites files are imported where they are used: most commands need none of them.
if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.loading.rewriting import TextFile

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    ("--catalog DIR", "Also read the documents in this folder; they take precedence over others of the same name."),
    ("--edition NAME", "Use a frozen edition, such as 2026.11, of the shipped catalog or of that in DIR."),
    ("--as-of DATE", "Use only what was published by this date: a day, a month or a year."),
    ("--overlay FILE", "Apply the changes in this YAML file to the catalog."),
)
ALSO = "Also resolve names in this catalog; may be repeated."


def catalog_options(command: F) -> F:
    """Adds the options that choose a catalog; the function passes them to :func:`load_catalog` by name."""
    for usage, text in reversed(_OPTIONS):
        command = option(usage, "Catalog", text)(command)
    return command


def catalog_option(command: F) -> F:
    """Adds ``--catalog`` alone, to a command that reads the working edition only."""
    usage, text = _OPTIONS[0]
    return option(usage, "Catalog", text)(command)


def working_graph(catalog: str | None) -> Graph:
    """The graph of the shipped catalog, those of the settings, and that of ``--catalog``."""
    from trnspec.api import graph

    return graph([catalog] if catalog else [], settings=here())


def catalogs_option(text: str = ALSO) -> Callable[[F], F]:
    """The repeated ``--catalog`` of commands that check documents; the function gets ``catalogs``."""
    return option("--catalog DIR catalogs", "Catalog", text, multiple=True)


def check_options(command: F) -> F:
    """The options of commands that rewrite documents: ``--check`` and ``--diff``, which write nothing."""
    shown = {"--check": "list the files that would change", "--diff": "print what would change"}
    for name, effect in reversed(shown.items()):
        text = f"Write nothing; {effect}, with exit status 1."
        command = option(name, "Output", text)(command)
    return command


def rewrite(
    changes: Sequence[tuple[TextFile, str]],
    verb: str,
    removed: Sequence[TextFile] = (),
    *,
    check: bool,
    diff: bool,
) -> bool:
    """Write new texts of files and delete others, or only show what would change as :func:`check_options` say.

    Returns:
        Whether it was written.
    """
    for file, text in (*changes, *((file, "") for file in removed)) if diff or check else ():
        done = verb if text else "delete"
        click.echo(file.diff(text) if diff else f"would {done} {file.file}", nl=not diff)
    if diff or check:
        return False
    from trnspec.loading.rewriting import write_texts

    write_texts(changes)
    for file in removed:
        file.file.unlink()
    return True


def write_new(file: str | None, make: Callable[[], str]) -> None:
    """Write a new document to a file, or print it without one.

    Raises:
        UsageError: The file exists.
    """
    if file is not None and FilePath(file).exists():
        raise UsageError(f"{file} exists; remove it, or name another file")
    text = make()
    if file is None:
        click.echo(text, nl=False)
        return
    write({FilePath(file): text.encode()})
    click.echo(f"{file}: written. Next: trnspec validate {file}")


def load_catalog(
    *,
    catalog: str | None = None,
    edition: str | None = None,
    as_of: str | None = None,
    overlay: str | None = None,
) -> Catalog:
    """The catalog that the options choose; it raises what :func:`trnspec.api.load` raises."""
    from trnspec.api import load
    from trnspec.catalog.catalog import Catalog

    if edition is None and as_of is None and overlay is None:
        return Catalog(graph_for(catalog=catalog))
    # An edition is complete: the catalogs that settings name are not added to it.
    settings = here() if edition is None else None
    return load([catalog] if catalog else [], edition=edition, as_of=as_of, overlay=overlay, settings=settings)


def graph_for(*names: str, catalog: str | None = None, **others: Any) -> Graph:
    """The graph of the catalog that the options choose; only the files that are needed are read.

    Args:
        names: Documents that must be in it.
        catalog: What ``--catalog`` says.
        others: The other options that choose a catalog; any of them makes it necessary to read all of it.

    Raises:
        UnknownNameError: One of the documents is not there; the message says why, or lists the nearest names.
    """
    if any(others.values()):
        loaded = load_catalog(catalog=catalog, **others)
        for name in names:
            loaded[name]  # a catalog of another date has the reason why it lacks a document
        return loaded.graph
    paths, settings = [catalog] if catalog else [], here()

    def load_all() -> Graph:
        from trnspec.api import graph

        return graph(paths, settings=settings)

    only = chosen().only
    if paths or settings.catalogs or not (only == () or (only is None and not installed())):
        known = load_all()
    else:
        known = shipped_graph(load_all)
    for name in names:
        known.named(name)
    return known


def here(catalogs: Sequence[str] = ()) -> Settings:
    """The settings of the current folder, with the catalogs that ``--catalog`` names."""
    try:
        found = settings.find(FilePath.cwd())
        return found.merged(settings.Settings(catalogs=tuple(map(FilePath, catalogs)))) if catalogs else found
    except FileNotFoundError:
        raise UsageError("the current folder does not exist") from None
