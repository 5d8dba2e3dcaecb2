"""What a program calls: validate files, load a catalog."""

from __future__ import annotations

import stat
import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec import catalog
from trnspec.errors import UsageError
from trnspec.pipeline import Checked, Reading, check, link, read
from trnspec.plugin import Registry
from trnspec.settings import Settings
from trnspec.source import Limits, read_file, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.ask import Catalog
    from trnspec.graph import Graph

STDIN = "-"
"""The path that means standard input."""


def registry() -> Registry:
    """The registry of what this installation knows."""
    from trnspec.builtin import plugin

    return Registry.of([plugin])


@frozen
class Selection:
    """The files of a run: those to check, and those to resolve names against."""

    targets: tuple[FilePath, ...]
    stdin: bool
    context: tuple[FilePath, ...]


def select(paths: Iterable[str], known: Registry, settings: Settings) -> Selection:
    """The files that some arguments mean; one that is named twice, by whatever path, is one file.

    Args:
        paths: Files, folders, or ``-`` for standard input; nothing means the shipped catalog.
        known: Tells which folders hold documents of which kind, and which catalogs are installed.
        settings: Names further catalogs to resolve against.

    Raises:
        UsageError: A path is not there or cannot be read, or a folder holds no documents.
    """
    paths = list(paths)
    folders = {k.folder for k in known.kinds.values()}
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
    roots.update(dict.fromkeys(c.absolute() for p in known.plugins for c in p.catalogs))
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


def _context(root: FilePath, folders: set[str]) -> Iterator[FilePath]:
    """The documents of a catalog: those in the folders of the kinds, and those that lie directly in it."""
    for folder in sorted(folders):
        yield from catalog.files(root / folder)
    try:
        beside = sorted(root.iterdir())
    except OSError:
        return  # a file may be named in a folder that cannot be listed
    yield from (f for f in beside if f.suffix in catalog.SUFFIXES and not f.name.startswith(".") and f.is_file())


def readings(selection: Selection, known: Registry) -> Iterator[Reading]:
    """Every document of a selection, read: the targets first, so that their names win.

    Raises:
        UsageError: Standard input is asked for and closed.
    """
    if selection.stdin:
        if sys.stdin is None:
            raise UsageError("there is no standard input to read")
        # One byte more than a document may have shows that it has too many.
        yield read(read_text(sys.stdin.buffer.read(Limits().bytes + 1), "<stdin>"), known)
    for file in selection.targets:
        yield read(read_file(file), known)
    for file in selection.context:
        yield read(read_file(file), known, target=False)


def validate(
    paths: Iterable[str] = (),
    *,
    settings: Settings | None = None,
    registry: Registry | None = None,
) -> Checked:
    """Check documents and everything they take part in.

    Args:
        paths: Files, folders, or ``-``; nothing means the shipped catalog.
        settings: What to report; the usual settings when left out.
        registry: The kinds and rules; those of this installation when left out.

    Raises:
        UsageError: A path is not there, or a setting names a code that is not known.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    chosen.verify(known.codes)
    return check(readings(select(paths, known, chosen), known), known, chosen)


def graph(
    paths: Iterable[str] = (), *, settings: Settings | None = None, registry: Registry | None = None
) -> Graph:
    """The documents of some catalogs, linked: what queries and audits work on.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        settings: Names further catalogs.
        registry: The kinds; those of this installation when left out.

    Raises:
        UsageError: A path is not there.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    return link(readings(select(paths, known, chosen), known))[0]


def graph_of(names: Iterable[str], paths: Iterable[str] = (), *, settings: Settings | None = None) -> Graph:
    """A graph that holds some documents, what they are built of, and the sources that they cite; perhaps more.

    Reading these alone is several times quicker than reading the catalog. Where the names of files do not tell enough
    (a name is an alias, a document is wrong, a kind comes from a plugin), the whole catalog is read.

    Args:
        names: The documents; whether they are there shows when the graph is asked.
        paths: Files and folders; nothing means the shipped catalog.
        settings: Names further catalogs.

    Raises:
        UsageError: A path is not there.
    """
    from trnspec.closure import closure
    from trnspec.kinds import KINDS
    from trnspec.plugin import API, Plugin

    chosen = settings if settings is not None else Settings()
    known = Registry.of([Plugin(name="trnspec", api=API, kinds=KINDS, catalogs=(catalog.shipped(),))])
    found = select(paths, known, chosen)
    files: dict[str, FilePath] = {}
    for file in (*found.targets, *found.context):
        files.setdefault(file.stem, file)
    made = closure(files, names, known)
    return made if made is not None else graph(paths, settings=settings)


def load(paths: Iterable[str] = (), *, settings: Settings | None = None, registry: Registry | None = None) -> Catalog:
    """The catalog, to ask.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        settings: Names further catalogs.
        registry: The kinds; those of this installation when left out.

    Raises:
        UsageError: A path is not there.
    """
    from trnspec.ask import Catalog

    return Catalog(graph(paths, settings=settings, registry=registry))


_registry = registry
