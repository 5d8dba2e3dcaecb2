"""Graph for the documents that a command names; no more files are read than needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.plugins.selection import chosen

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph


def graph_for(*names: str, catalog: str | None = None, **others: Any) -> Graph:
    """The graph of the catalog that the options choose; only the files that are needed are read.

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
            loaded[name]  # a catalog of another date has the reason why it lacks a document
        return loaded.graph
    from trnspec.plugins.entry_points import installed

    paths, settings = [catalog] if catalog else [], here()

    def load_all() -> Graph:
        # Imported here, for the API imports what checking needs.
        from trnspec.api import graph

        return graph(paths, settings=settings)

    only = chosen().only
    if paths or settings.catalogs or not (only == () or (only is None and not installed())):
        known = load_all()
    else:
        from trnspec.loading.index import shipped_graph

        known = shipped_graph(load_all)
    for name in names:
        known.named(name)
    return known
