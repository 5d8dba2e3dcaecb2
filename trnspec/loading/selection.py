"""Which files a run reads: those that are named, and those that names resolve against."""

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
        targets: Those to check.
        stdin: Whether standard input is one more of them.
        context: Those to resolve names against.
        layers: How far the catalog of a file is from the user, where it is not as near as can be.
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
    """The files that some arguments mean; one that is named twice, by whatever path, is one file.

    Args:
        paths: Files, folders, or ``-`` for standard input; nothing means the shipped catalog.
        folders: The folders of a catalog that hold documents.
        catalogs: The catalogs that are installed.
        settings: Names further catalogs to resolve against.
        every: Where no path is named, take every catalog for one that is, those that the settings name first.

    Raises:
        UsageError: A path is not there or cannot be read, or a folder holds no documents.
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
        for each in inside:
            targets.setdefault(_identity(each), each)
    roots.update(dict.fromkeys(folder.absolute() for folder in _named(settings)))
    installed = dict.fromkeys(c.absolute() for c in catalogs)
    roots.update(installed)
    context: dict[object, FilePath] = {}
    layers: dict[FilePath, int] = {}
    for number, root in enumerate(roots, 1):
        for file in _context(root, folders):
            identity = _identity(file)
            if identity not in targets and context.setdefault(identity, file) is file:
                # Between plugins it is not their order that decides.
                layers[file] = number if root not in installed else len(roots) + 1
    return Selection(tuple(targets.values()), STDIN in paths, tuple(context.values()), layers)


def _named(settings: Settings) -> tuple[FilePath, ...]:
    for folder in settings.catalogs:
        if not _is_folder(folder):
            raise UsageError(f"the catalog {folder} is not a folder")
    return settings.catalogs


def _every(catalogs: Iterable[FilePath], settings: Settings) -> Selection:
    """All documents of all catalogs: those of the user, each a layer of its own, and those that are installed."""
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
        yield from documents_in(root / folder)
    try:
        beside = sorted(root.iterdir())
    except OSError:
        return  # a file may be named in a folder that cannot be listed
    yield from (f for f in beside if f.suffix in SUFFIXES and not f.name.startswith(".") and f.is_file())
