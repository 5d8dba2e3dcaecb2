"""The files that a run reads: those to check, and those to resolve names against."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.loading.files import SUFFIXES, documents_in, root_of, shipped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from trnspec.loading.settings import Settings

STDIN = "-"
"""The path that means standard input."""


@frozen
class Selection:
    """The files of a run: those to check, and those to resolve names against.

    Attributes:
        targets: The files to check.
        stdin: Whether standard input is checked too.
        context: The files to resolve names against.
        layers: The layer of the catalog of a file, counted from the user, if it is not 0.
    """

    targets: tuple[FilePath, ...]
    stdin: bool
    context: tuple[FilePath, ...]
    layers: Mapping[FilePath, int] = field(factory=dict)


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
    targets: dict[object, FilePath] = {}
    roots: dict[FilePath, None] = {}
    for path in paths or [str(shipped())]:
        if path == STDIN:
            continue
        file = FilePath(path)
        if _is_folder(file):
            inside = list(documents_in(file))
            if not inside:
                raise UsageError(f"{path} holds no .yaml files")
            roots[file.absolute().parent if file.absolute().name in folders else file.absolute()] = None
        else:
            inside = [file]
            roots[root_of(file, folders)] = None
        for document in inside:
            targets.setdefault(_identity(document), document)
    roots.update(dict.fromkeys(folder.absolute() for folder in _named(settings)))
    installed = dict.fromkeys(c.absolute() for c in catalogs)
    roots.update(installed)
    context: dict[object, FilePath] = {}
    layers: dict[FilePath, int] = {}
    for number, root in enumerate(roots, 1):
        for file in _context(root, folders):
            identity = _identity(file)
            if identity not in targets and context.setdefault(identity, file) is file:
                # All plugins are one layer, because their order must not matter.
                layers[file] = number if root not in installed else len(roots) + 1
    return Selection(tuple(targets.values()), STDIN in paths, tuple(context.values()), layers)


def _named(settings: Settings) -> tuple[FilePath, ...]:
    for folder in settings.catalogs:
        if not _is_folder(folder):
            raise UsageError(f"the catalog {folder} is not a folder")
    return settings.catalogs


def _every(catalogs: Iterable[FilePath], settings: Settings) -> Selection:
    """All documents of all catalogs: those of the user, one layer each, and the installed ones."""
    targets: dict[object, FilePath] = {}
    layers: dict[FilePath, int] = {}
    layered = [[folder] for folder in _named(settings)] + [list(dict.fromkeys((shipped(), *catalogs)))]
    for number, roots in enumerate(layered):
        for file in (f for root in roots for f in documents_in(root)):
            if targets.setdefault(_identity(file), file) is file:
                layers[file] = number
    return Selection(tuple(targets.values()), stdin=False, context=(), layers=layers)


def _is_folder(path: FilePath) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        reason = "is a broken link" if path.is_symlink() else "does not exist"
        raise UsageError(f"{path} {reason}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _identity(file: FilePath) -> object:
    """A key that two paths to one file share; the path itself if the file is inaccessible."""
    try:
        status = file.stat()
    except OSError:
        return file.absolute()
    # Some file systems have no inode numbers.
    return (status.st_dev, status.st_ino) if status.st_ino else file.absolute()


def _context(root: FilePath, folders: Collection[str]) -> Iterator[FilePath]:
    """The documents of a catalog: those in the folders of the kinds, and those directly in it."""
    for folder in sorted(folders):
        yield from documents_in(root / folder)
    try:
        files = sorted(root.iterdir())
    except OSError:
        return  # a named file can be in a folder that cannot be listed
    yield from (f for f in files if f.suffix in SUFFIXES and not f.name.startswith(".") and f.is_file())
