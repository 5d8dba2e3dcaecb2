"""The built-in kinds of documents as values of the plugin interface."""

from __future__ import annotations

from trnspec.model.kinds import BUILTIN, LISTS, spec_of
from trnspec.plugins.api import Kind

KINDS = tuple(Kind(name, folder, spec_of(name)) for name, (folder, _) in BUILTIN.items())

IN_GRAPH = tuple(kind for kind in KINDS if kind.name not in LISTS)
"""The kinds of the documents of a graph; a list is there as the documents of its rows."""
