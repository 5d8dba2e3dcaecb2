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
    import os
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


def graph(paths: Iterable[str] = (), *, settings: Settings | None = None, registry: Registry | None = None) -> Graph:
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


def graph_of(paths: Iterable[str] = (), *, settings: Settings | None = None) -> Graph:
    """The same graph as :func:`graph`, whose documents are read when they are first asked for.

    A question about one document is answered several times quicker. What is found the same way: a name is that of a
    file; for an alias, a document that is wrong or a kind of a plugin, everything is read after all.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        settings: Names further catalogs.

    Raises:
        UsageError: A path is not there.
    """
    from trnspec.kinds import KINDS
    from trnspec.ondemand import on_demand
    from trnspec.plugin import API, Plugin

    paths = list(paths)
    chosen = settings if settings is not None else Settings()
    # The rules and codes of the real registry are no help in reading.
    known = Registry.of([Plugin(name="trnspec", api=API, kinds=KINDS, catalogs=(catalog.shipped(),))])
    found = select(paths, known, chosen)
    files: dict[str, FilePath] = {}
    for file in (*found.targets, *found.context):
        files.setdefault(file.stem, file)
    return on_demand(files, known, lambda: graph(paths, settings=chosen))


def load(  # noqa: PLR0913  # each one is independent of the others
    paths: Iterable[str] = (),
    *,
    edition: str | None = None,
    as_of: str | None = None,
    overlay: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    registry: Registry | None = None,
) -> Catalog:
    """The catalog, to ask.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        edition: A frozen edition of it instead of the working one: ``2026.11``. With one folder in ``paths``, an
            edition of the catalog there.
        as_of: A day, a month or a year: only what was published by its end. See ``docs/reference/dates.md``.
        overlay: A YAML file with changes, laid over all that. See ``docs/reference/overlay.md``.
        settings: Names further catalogs.
        registry: The kinds; those of this installation when left out.

    Raises:
        UsageError: A path is not there, the date is not one, or the overlay is wrong.
        UnknownNameError: There is no such edition.
        EditionError: The edition was altered.
    """
    from trnspec.ask import Catalog

    if edition is None:
        made = Catalog(graph(paths, settings=settings, registry=registry))
    else:
        from trnspec.editions import FOLDER, checked
        from trnspec.editions import read as thawed

        roots = list(paths)
        if len(roots) > 1 or settings is not None:
            raise UsageError("an edition is whole: it takes one catalog folder at most, and no settings")
        folder = (FilePath(roots[0]) if roots else catalog.shipped()) / FOLDER
        known = registry if registry is not None else _registry()
        made = Catalog(thawed(checked(folder, edition), known), edition)
    if as_of is not None:
        made = made.then(as_of)
    return made if overlay is None else made.overlay(overlay)


_registry = registry
