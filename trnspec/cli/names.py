"""The names of documents as arguments: completed, and found, by the names of files where those are enough."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from trnspec.loading.files import documents_in, shipped
from trnspec.plugins.selection import chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    import click
    from click.shell_completion import CompletionItem

    from trnspec.graph.graph import Graph


_PATIENCE = 0.2
"""How many seconds a shell that completes a word waits for a plugin."""


def completer(folder: str = "") -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """What completes the names of documents: a file has the name of its document, so none is read.

    Args:
        folder: Only names in this folder of a catalog, such as ``sources``; all when empty.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
        from click.shell_completion import CompletionItem

        given = ctx.params.get("catalog")
        root = FilePath(given) if isinstance(given, str) else shipped()
        roots = [root]
        if given is None:
            from trnspec.plugins.discovery import catalogs

            roots += catalogs(_PATIENCE)
        found = {f.stem for each in roots for f in documents_in(each / folder)}
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


def graph_for(*names: str, catalog: str | None = None, **others: Any) -> Graph:
    """The graph of the catalog that the options choose, read as far as it is asked.

    Args:
        names: Documents that must be in it.
        catalog: What ``--catalog`` says.
        others: The other options that choose a catalog; any of them makes it necessary to read all of it.

    Raises:
        UnknownNameError: One of the documents is not there; the message says why, or lists the nearest names.
    """
    from trnspec.cli.common import here, load_catalog

    if any(others.values()):
        loaded = load_catalog(catalog=catalog, **others)
        for name in names:
            loaded[name]  # a catalog of another day tells why it lacks a document
        return loaded.graph
    from trnspec.plugins.entry_points import alone

    paths, settings = [catalog] if catalog else [], here()

    def load_all() -> Graph:
        # Imported here, for the API imports what checking needs.
        from trnspec.api import graph

        return graph(paths, settings=settings)

    only = chosen().only
    if paths or settings.catalogs or not (only == () or (only is None and alone())):
        known = load_all()
    else:
        from trnspec.loading.index import shipped_graph

        known = shipped_graph(load_all)
    for name in names:
        known.named(name)
    return known
