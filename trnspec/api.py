"""What a program calls: validate files, load a catalog."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath

from attrs import frozen

from trnspec import catalog
from trnspec.errors import UsageError
from trnspec.pipeline import Checked, Reading, check, read
from trnspec.plugin import Registry
from trnspec.settings import Settings
from trnspec.source import read_file, read_text

STDIN = "-"


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
    """The files that some arguments mean.

    Args:
        paths: Files, folders, or ``-`` for standard input; nothing means the shipped catalog.
        known: Tells which folders hold documents of which kind.
        settings: Names further catalogs to resolve against.

    Raises:
        UsageError: A path is not there, or a folder holds no documents.
    """
    paths = list(paths)
    folders = {k.folder for k in known.kinds.values()}
    targets: dict[FilePath, FilePath] = {}
    roots: dict[FilePath, None] = {}
    shipped = catalog.shipped()
    for path in paths or [str(shipped)]:
        if path == STDIN:
            continue
        file = FilePath(path)
        if file.is_dir():
            inside = list(catalog.files(file))
            if not inside:
                raise UsageError(f"{path} holds no .yaml files")
            roots[file.absolute().parent if file.absolute().name in folders else file.absolute()] = None
        elif file.exists():
            inside = [file]
            roots[catalog.root_of(file, folders)] = None
        else:
            raise UsageError(f"{path} does not exist")
        targets.update({f.absolute(): f for f in inside})
    roots.update(dict.fromkeys(c.absolute() for c in settings.catalogs))
    for folder in settings.catalogs:
        if not folder.is_dir():
            raise UsageError(f"the catalog {folder} is not a folder")
    roots[shipped] = None
    context = {f.absolute(): f for root in roots for f in _context(root, folders) if f.absolute() not in targets}
    return Selection(tuple(targets.values()), STDIN in paths, tuple(context.values()))


def _context(root: FilePath, folders: set[str]) -> Iterator[FilePath]:
    """The documents of a catalog: those in the folders of the kinds, and those that lie directly in it."""
    for folder in sorted(folders):
        yield from catalog.files(root / folder)
    if root.is_dir():
        yield from (f for f in sorted(root.iterdir()) if f.suffix in catalog.SUFFIXES and f.is_file())


def readings(selection: Selection, known: Registry) -> Iterator[Reading]:
    """Every document of a selection, read: the targets first, so that their names win."""
    if selection.stdin:
        yield read(read_text(sys.stdin.buffer.read(), "<stdin>"), known)
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
        UsageError: A path is not there.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    return check(readings(select(paths, known, chosen), known), known, chosen)


_registry = registry
