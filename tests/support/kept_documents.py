"""The documents of the repository's own catalogs are parsed once in a process, however many tests load a catalog.

Documents and nodes are frozen.  A file is read each time; what is kept is the document of its bytes, so that a copy of a
catalog need not be parsed either, and a changed file is.  Everything after parsing is done anew for each catalog: names,
references, overlays, dates and rules.
"""

import os
from pathlib import Path

from attrs import evolve

from trnspec import api
from trnspec.loading import index
from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.lsp import documents
from trnspec.plugins.api import Registry
from trnspec.testing import helpers
from trnspec.yaml import Document, read_file

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = (f"{ROOT / 'catalog'}{os.sep}", f"{ROOT / 'plugins'}{os.sep}")

_documents: dict[bytes, Document] = {}
# By identity, which no other object takes as long as document and registry are kept beside the result.
_identities: set[int] = set()
_results: dict[tuple[int, int, bool, str, int], tuple[Registry, LoadResult]] = {}


def _read_file(path: str | os.PathLike[str]) -> Document:
    name = os.fspath(path)
    try:
        text = Path(name).read_bytes() if Path(name).is_file() else b""
    except (OSError, ValueError):
        text = b""
    if name.startswith(_FOLDERS) and text not in _documents:
        _documents[text] = read_file(path)
        _identities.add(id(_documents[text]))
    document = _documents.get(text)
    # The places of problems are those of one file.
    if document is None or document.problems:
        return read_file(path)
    return document if document.file == name else evolve(document, file=name)


def _load_document(
    document: Document,
    registry: Registry,
    *,
    target: bool = True,
    plugin: str = "",
    layer: int = 0,
) -> LoadResult:
    if id(document) not in _identities:
        return load_document(document, registry, target=target, plugin=plugin, layer=layer)
    key = (id(document), id(registry), target, plugin, layer)
    if key not in _results:
        _results[key] = (registry, load_document(document, registry, target=target, plugin=plugin, layer=layer))
    return _results[key][1]


def keep() -> None:
    """Makes ``trnspec.load``, ``trnspec.testing`` and the command line, in this process, use what was parsed before."""
    for module in (api, index, helpers, documents):
        module.read_file = _read_file  # type: ignore[attr-defined]
    for module in (api, helpers, documents):
        module.load_document = _load_document  # type: ignore[attr-defined]
