"""The repository's own catalogs, and what is installed, are read once in a process, however many tests load them.

Documents, nodes and graphs are frozen.  What is kept is the document of a file's bytes, so that a copy of a catalog need
not be parsed either, and a changed file is; and the graph of the same documents.
"""

import os
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any

from attrs import evolve

from trnspec import api
from trnspec.checks import runner
from trnspec.diagnostics import Diagnostic
from trnspec.graph.graph import Graph
from trnspec.loading import index
from trnspec.loading.pipeline import LoadResult, link, load_document
from trnspec.lsp import documents
from trnspec.plugins import entry_points as plugin_entries
from trnspec.plugins.api import Registry
from trnspec.testing import helpers
from trnspec.yaml import Document, read_file

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = (f"{ROOT / 'catalog'}{os.sep}", f"{ROOT / 'plugins'}{os.sep}")
_LIBRARIES = (str(ROOT), sys.prefix, sys.base_prefix)

_documents: dict[bytes, Document] = {}
# By identity, which no other object takes as long as document and registry are kept beside the result.
_identities: set[int] = set()
_results: dict[tuple[int, int, bool, str, int], tuple[Registry, LoadResult]] = {}
_loaded: set[int] = set()
_linked: dict[tuple[Any, ...], tuple[Graph, list[Diagnostic]]] = {}
_states: dict[str, tuple[tuple[int, int, int], Document]] = {}
_entries: dict[tuple[tuple[str, int], ...], EntryPoints] = {}


def _read_file(path: str | os.PathLike[str]) -> Document:
    name = os.fspath(path)
    own = name.startswith(_FOLDERS)
    if own and name in _states and _states[name][0] == _state(name):
        return _states[name][1]
    try:
        text = Path(name).read_bytes() if Path(name).is_file() else b""
    except (OSError, ValueError):
        text = b""
    if own and text not in _documents:
        _documents[text] = read_file(path)
        _identities.add(id(_documents[text]))
        _states[name] = (_state(name), _documents[text])
    document = _documents.get(text)
    # The places of problems are those of one file.
    if document is None or document.problems:
        return read_file(path)
    return document if document.file == name else evolve(document, file=name)


def _state(name: str) -> tuple[int, int, int]:
    found = Path(name).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _load_document(
    document: Document, registry: Registry, *, target: bool = True, plugin: str = "", layer: int = 0
) -> LoadResult:
    if id(document) not in _identities:
        return load_document(document, registry, target=target, plugin=plugin, layer=layer)
    key = (id(document), id(registry), target, plugin, layer)
    if key not in _results:
        _results[key] = (registry, load_document(document, registry, target=target, plugin=plugin, layer=layer))
        _loaded.add(id(_results[key][1]))
    return _results[key][1]


def _link(results: Iterable[LoadResult], **how: bool) -> tuple[Graph, list[Diagnostic]]:
    results = tuple(results)
    key = (tuple(map(id, results)), *how.items())
    if not _loaded.issuperset(key[0]):
        return link(results, **how)
    if key not in _linked:
        _linked[key] = link(results, **how)
    linked, diagnostics = _linked[key]
    # The list is added to.
    return linked, [*diagnostics]


def _entry_points(*, group: str) -> EntryPoints:
    """Entry points of distributions; reading the metadata of all of them takes longer than most commands."""
    if not all(folder.startswith(_LIBRARIES) for folder in sys.path):
        return entry_points(group=group)
    key = ((group, 0), *((f, os.stat(f).st_mtime_ns) for f in sys.path if os.path.isdir(f)))  # noqa: PTH112, PTH116
    if key not in _entries:
        _entries[key] = entry_points(group=group)
    return _entries[key]


def keep() -> None:
    """Makes ``trnspec.load``, ``trnspec.testing`` and the command line, in this process, use what was parsed before."""
    plugin_entries.entry_points = _entry_points  # type: ignore[assignment]
    for module in (api, index, helpers, documents):
        module.read_file = _read_file  # type: ignore[attr-defined]
    for module in (api, helpers, documents):
        module.load_document = _load_document  # type: ignore[attr-defined]
    for module in (api, runner):
        module.link = _link  # type: ignore[attr-defined]
