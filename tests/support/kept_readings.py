"""The documents of the repository's own catalogs are read once in a process, however many tests load a catalog.

Documents and nodes are frozen, and no test changes a file of the repository.  Everything after reading is done anew each
time: names, references, overlays, dates and rules.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trnspec import api
from trnspec.loading.pipeline import Reading, read
from trnspec.plugins.api import Registry
from trnspec.yaml import Document, read_file

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = (f"{ROOT / 'catalog'}{os.sep}", f"{ROOT / 'plugins'}{os.sep}")

_documents: dict[tuple[str, int, int], Document] = {}
# A reading keeps its document, and the key the registry, so that neither identity is used again.
_readings: dict[tuple[int, int, bool, str, int], tuple[Registry, Reading]] = {}
_kept: set[int] = set()


def _read_file(path: str | os.PathLike[str], **more: Any) -> Document:
    name = os.fspath(path)
    if more or not name.startswith(_FOLDERS):
        return read_file(path, **more)
    found = os.stat(name)
    key = (name, found.st_mtime_ns, found.st_size)
    if key not in _documents:
        _documents[key] = read_file(path)
        _kept.add(id(_documents[key]))
    return _documents[key]


def _read(document: Document, registry: Registry, *, target: bool = True, plugin: str = "", layer: int = 0) -> Reading:
    if id(document) not in _kept:
        return read(document, registry, target=target, plugin=plugin, layer=layer)
    key = (id(document), id(registry), target, plugin, layer)
    if key not in _readings:
        _readings[key] = (registry, read(document, registry, target=target, plugin=plugin, layer=layer))
    return _readings[key][1]


def keep() -> None:
    """Makes ``trnspec.load`` and the command line, in this process, use what was read before."""
    api.read_file = _read_file  # type: ignore[assignment]
    api.read = _read
