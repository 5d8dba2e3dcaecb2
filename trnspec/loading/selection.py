"""Selection of the files of a run: those to check, and those to resolve names against."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import TypeAlias

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.loading.files import SUFFIXES, documents_below, root_of, shipped
from trnspec.loading.settings import Settings

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

STDIN = "-"
"""The path that means standard input."""


@frozen
class Selection:
    """The files of a run: those to check, and those to resolve names against.

    Attributes:
        targets: The paths of the files to check.
        stdin: Whether standard input is checked too.
        context: The paths of the files to resolve names against.
        layers: The layer of the catalog of a file, counted from the user, if it is not 0.
    """

    targets: tuple[str, ...]
    stdin: bool
    context: tuple[str, ...]
    layers: Mapping[str, int]


def listed(paths: Paths) -> list[str]:
    """The paths that an argument names: one, or several of them."""
    return [os.fspath(path) for path in ((paths,) if isinstance(paths, (str, os.PathLike)) else paths)]


def choose(
    paths: Iterable[str],
    folders: Collection[str],
    catalogs: Iterable[FilePath],
    settings: Settings,
    *,
    every: bool = False,
) -> Selection:
    """The files that some arguments select; a file that is named twice, by any path, is selected once.

    Args:
        paths: Files, folders, or ``-`` for standard input; none selects the shipped catalog.
        folders: The folders of a catalog that contain documents.
        catalogs: The installed catalogs.
        settings: The settings, which can name further catalogs.
        every: If no path is given, select every catalog, those of the settings first.

    Raises:
        UsageError: A path does not exist or cannot be read, or a folder has no documents.
    """
    paths = list(paths)
    if every and not paths:
        return _every(catalogs, settings)
    files = _Files()
    roots: dict[FilePath, None] = {}
    for path in paths or [str(shipped())]:
        if path == STDIN:
            continue
        file = FilePath(path)
        if _is_folder(file):
            inside = list(documents_below(str(file)))
            if not inside:
                raise UsageError(f"{path} holds no .yaml files")
            roots[file.absolute().parent if file.absolute().name in folders else file.absolute()] = None
        else:
            inside = [str(file)]
            roots[root_of(file, folders)] = None
        for document in inside:
            files.add(document)
    targets = tuple(files.paths)
    roots.update(dict.fromkeys(folder.absolute() for folder in _named(settings)))
    installed = dict.fromkeys(c.absolute() for c in catalogs)
    roots.update(installed)
    layers: dict[str, int] = {}
    for number, root in enumerate(roots, 1):
        # All plugins are one layer, because their order must not matter.
        layer = number if root not in installed else len(roots) + 1
        for document in _context(str(root), folders):
            if files.add(document):
                layers[document] = layer
    context = tuple(files.paths[len(targets) :])
    return Selection(targets, STDIN in paths, context, layers)


class _Files:
    """Files in the order in which they were added; a file that is added twice, by any path, is there once.

    Attributes:
        paths: Their paths.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._known: set[object] = set()

    def add(self, path: str) -> bool:
        """Add a file; whether it is new."""
        identity: object
        try:
            status = os.stat(path)  # noqa: PTH116  # many files
        except (OSError, ValueError):
            identity = FilePath(path).absolute()  # a path of its own if the file is inaccessible
        else:
            # Some file systems have no inode numbers.
            identity = (status.st_dev, status.st_ino) if status.st_ino else FilePath(path).absolute()
        if identity in self._known:
            return False
        self._known.add(identity)
        self.paths.append(path)
        return True


def _named(settings: Settings) -> tuple[FilePath, ...]:
    for folder in settings.catalogs:
        if not _is_folder(folder):
            raise UsageError(f"the catalog {folder} is not a folder")
    return settings.catalogs


def _every(catalogs: Iterable[FilePath], settings: Settings) -> Selection:
    """All documents of all catalogs: those of the user, one layer each, and the installed ones."""
    files = _Files()
    layers: dict[str, int] = {}
    layered = [[folder] for folder in _named(settings)] + [list(dict.fromkeys((shipped(), *catalogs)))]
    for number, roots in enumerate(layered):
        for file in (f for root in roots for f in documents_below(str(root))):
            if files.add(file):
                layers[file] = number
    return Selection(tuple(files.paths), stdin=False, context=(), layers=layers)


def _is_folder(path: FilePath) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        reason = "is a broken link" if path.is_symlink() else "does not exist"
        raise UsageError(f"{path} {reason}", hint="name a document, or a folder with documents") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _context(root: str, folders: Collection[str]) -> Iterator[str]:
    """The documents of a catalog: those in the folders of the kinds, and those directly in it."""
    for folder in sorted(folders):
        yield from documents_below(str(FilePath(root, folder)))
    try:
        with os.scandir(root) as inside:
            files = sorted(e.path for e in inside if e.name.lower().endswith(SUFFIXES) and not e.name.startswith("."))
    except OSError:
        return  # a named file can be in a folder that cannot be listed
    yield from (path for path in files if FilePath(path).is_file())
