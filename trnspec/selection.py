"""Which files a run reads: those that are named, and those that names resolve against."""

from __future__ import annotations

import stat
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec import catalog
from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from trnspec.settings import Settings

STDIN = "-"
"""The path that means standard input."""


@frozen
class Selection:
    """The files of a run: those to check, and those to resolve names against."""

    targets: tuple[FilePath, ...]
    stdin: bool
    context: tuple[FilePath, ...]


def choose(
    paths: Iterable[str], folders: Collection[str], catalogs: Iterable[FilePath], settings: Settings
) -> Selection:
    """The files that some arguments mean; one that is named twice, by whatever path, is one file.

    Args:
        paths: Files, folders, or ``-`` for standard input; nothing means the shipped catalog.
        folders: The folders of a catalog that hold documents.
        catalogs: The catalogs that are installed.
        settings: Names further catalogs to resolve against.

    Raises:
        UsageError: A path is not there or cannot be read, or a folder holds no documents.
    """
    paths = list(paths)
    targets: dict[object, FilePath] = {}
    roots: dict[FilePath, None] = {}
    for path in paths or [str(catalog.shipped())]:
        if path == STDIN:
            continue
        file = FilePath(path)
        if _is_folder(file):
            inside = list(catalog.files(file))
            if not inside:
                raise UsageError(f"{path} holds no .yaml files")
            roots[file.absolute().parent if file.absolute().name in folders else file.absolute()] = None
        else:
            inside = [file]
            roots[catalog.root_of(file, folders)] = None
        for each in inside:
            targets.setdefault(_identity(each), each)
    for folder in settings.catalogs:
        if not _is_folder(folder):
            raise UsageError(f"the catalog {folder} is not a folder")
        roots[folder.absolute()] = None
    roots.update(dict.fromkeys(c.absolute() for c in catalogs))
    context: dict[object, FilePath] = {}
    for file in (f for root in roots for f in _context(root, folders)):
        identity = _identity(file)
        if identity not in targets:
            context.setdefault(identity, file)
    return Selection(tuple(targets.values()), STDIN in paths, tuple(context.values()))


def _is_folder(path: FilePath) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        what = "is a link to nothing" if path.is_symlink() else "does not exist"
        raise UsageError(f"{path} {what}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _identity(file: FilePath) -> object:
    """What two paths to one file have in common; one that cannot be looked at is its own."""
    try:
        found = file.stat()
    except OSError:
        return file.absolute()
    # Some file systems number no files.
    return (found.st_dev, found.st_ino) if found.st_ino else file.absolute()


def _context(root: FilePath, folders: Collection[str]) -> Iterator[FilePath]:
    """The documents of a catalog: those in the folders of the kinds, and those that lie directly in it."""
    for folder in sorted(folders):
        yield from catalog.files(root / folder)
    try:
        beside = sorted(root.iterdir())
    except OSError:
        return  # a file may be named in a folder that cannot be listed
    yield from (f for f in beside if f.suffix in catalog.SUFFIXES and not f.name.startswith(".") and f.is_file())
