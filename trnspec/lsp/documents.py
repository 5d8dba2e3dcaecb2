"""Documents of a session: the texts in the editor, and all others as they are on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path as FilePath

from attrs import Factory, define, evolve, field, frozen
from pygls.uris import to_fs_path

from trnspec.api import owners, select
from trnspec.errors import UsageError
from trnspec.loading import settings as settings_
from trnspec.loading.files import is_ours, root_of
from trnspec.loading.pipeline import LoadResult
from trnspec.loading.settings import Settings
from trnspec.loading.store import DocumentStore
from trnspec.plugins.api import Registry

_KIND = re.compile(r"""^["']?kind["']?[ \t]*:[ \t]*["']?([\w-]+)""", re.MULTILINE)


def kind_in(text: str) -> str:
    """The kind that a text states, also where it cannot be parsed; or an empty text."""
    match = _KIND.search(text)
    return match[1] if match else ""


@frozen
class Surroundings:
    """The documents that the names of a catalog are resolved against, and its settings.

    Attributes:
        results: By file, every document of the catalog and of those below it.
        settings: The settings that apply to the catalog.
        warning: Why the settings could not be used, or an empty text.
    """

    results: Mapping[str, LoadResult] = field(repr=False)
    settings: Settings
    warning: str


@define
class OpenDocuments:
    """The documents of a session.

    Attributes:
        known: The kinds, rules and units.
        texts: The texts in the editor by file, as :func:`canonical` names it.
    """

    known: Registry
    texts: dict[str, str] = field(factory=dict)
    _store: DocumentStore = field(default=Factory(lambda self: DocumentStore(self.known, self.texts), takes_self=True))
    _surroundings: dict[FilePath, Surroundings] = field(factory=dict)

    def concerns(self, text: str) -> bool:
        """Whether a text is a document of trnspec: other YAML files are left alone."""
        return is_ours(text, self.known.kinds) or kind_in(text) in self.known.kinds

    def root(self, file: str) -> FilePath:
        """The catalog of a file."""
        return root_of(FilePath(file), [k.folder for k in self.known.kinds.values()])

    def target(self, file: str) -> LoadResult:
        """A document in the editor, loaded as the one to check."""
        return self._store.load(file)

    def surroundings(self, file: str, *, refresh: bool = False) -> Surroundings:
        """The documents around a file.

        Args:
            file: The file.
            refresh: Whether to look for files that have changed, also outside the editor.
        """
        root = self.root(file)
        if refresh or root not in self._surroundings:
            self._surroundings[root] = self._read(root)
        return self._surroundings[root]

    def is_ready(self, file: str) -> bool:
        """Whether the documents around a file were read before."""
        return self.root(file) in self._surroundings

    def _read(self, root: FilePath) -> Surroundings:
        settings, warning = self._settings(root)
        around = evolve(settings, catalogs=(*([root] if root.is_dir() else []), *settings.catalogs))
        try:
            selection = select(["-"], self.known, around)
        except UsageError as error:
            warning = warning or str(error)
            selection = select(["-"], self.known, evolve(settings, catalogs=()))
        owner = owners(self.known)
        results = {}
        for path in selection.context:
            file = canonical(path)
            results[file] = self._store.load(
                file, target=False, plugin=owner(path), layer=selection.layers.get(path, 0)
            )
        return Surroundings(results, settings, warning)

    def _settings(self, root: FilePath) -> tuple[Settings, str]:
        try:
            settings = settings_.find(root)
            settings.verify(self.known.codes)
        except UsageError as error:
            return settings_.Settings(), str(error)
        return settings, ""


def canonical(path: str | os.PathLike[str]) -> str:
    """The name of a file by which it is known here: absolute, without links."""
    return os.path.realpath(path)


def file_of(uri: str) -> str:
    """The file of an address; a name that no file has for a text that was not saved."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return canonical(path) if path else uri
