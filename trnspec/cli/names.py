"""The graph for the documents that a command names, of which no more is read than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.plugins.selection import asked

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from trnspec.graph.graph import Graph


def _catalogs() -> list[FilePath] | None:
    from trnspec.plugins.discovery import simple

    return simple()


def graph_for(*names: str, catalog: str | None = None, **others: Any) -> Graph:
    """The graph of the catalog that the options choose, read as far as needed.

    Args:
        names: Documents that it must hold.
        catalog: The value of ``--catalog``.
        others: The other options that choose a catalog; with any of them all of it is read.

    Raises:
        UnknownNameError: A document does not exist; the message has the reason or the nearest names.
    """
    from trnspec.cli.common import here, load_catalog

    if any(others.values()):
        chosen = load_catalog(catalog=catalog, **others)
        for name in names:
            chosen[name]  # a catalog of another date has the reason why it lacks a document
        return chosen.graph
    # Not through trnspec.api, which imports the checks.
    from trnspec.loading.index import on_demand
    from trnspec.plugins.entry_points import alone

    paths, settings = [catalog] if catalog else [], here()

    def everything() -> Graph:
        from trnspec import api

        return api.graph(paths, settings=settings)

    graph = on_demand(paths, settings, everything, [] if not asked() and alone() else _catalogs())
    for name in names:
        graph.named(name)
    return graph
