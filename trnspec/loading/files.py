"""The folders of catalogs and the files in them."""

from __future__ import annotations

import os
import re
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

SUFFIXES = (".yaml", ".yml")


def shipped() -> FilePath:
    """The folder of the catalog of this installation."""
    here = FilePath(__file__).resolve().parent.parent
    packaged = here / "_data" / "catalog"
    return packaged if packaged.is_dir() else here.parent / "catalog"


def schemas() -> FilePath:
    """The folder of the JSON Schemas of this installation."""
    here = FilePath(__file__).resolve().parent.parent
    packaged = here / "_data" / "schemas"
    return packaged if packaged.is_dir() else here.parent / "schemas"


def documents_in(folder: FilePath) -> Iterator[FilePath]:
    """The documents below a folder, in a fixed order; hidden folders and links to folders are skipped.

    A missing folder has no documents.

    Raises:
        UsageError: The folder, or a folder in it, cannot be read.
    """
    return map(FilePath, documents_below(str(folder)))


def documents_below(folder: str) -> Iterator[str]:
    """The paths of the documents below a folder as :func:`documents_in` orders them; a catalog may have many thousands."""
    folders = [folder]
    while folders:
        where = folders.pop()
        try:
            with os.scandir(where) as inside:
                entries = sorted((e.name, e) for e in inside if not e.name.startswith("."))
        except OSError as error:
            _unreadable(error)
            continue
        below: list[str] = []
        for name, entry in entries:
            path = name if where == "." else entry.path
            if _is_folder(entry):
                if not entry.is_symlink():
                    below.append(path)
            elif name.endswith(SUFFIXES):
                yield path
        folders += reversed(below)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a loop of links, which is reported when it is read


def _unreadable(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise UsageError(f"the folder {error.filename} cannot be read: {error.strerror}") from error


def root_of(file: FilePath, kind_folders: Collection[str]) -> FilePath:
    """The catalog of a file: two folders up if the file is in the folder of a kind, otherwise its own folder."""
    parent = file.absolute().parent
    return parent.parent if parent.name in kind_folders else parent


_VERSION = re.compile(rb"""(?<![\w-])api_version["']?[ \t]*:[ \t]*["']?trnspec/""")
_MOST_BYTES = 1_000_001  # one more than a document may have


def is_document(file: FilePath) -> bool:
    """Whether a file holds ``api_version: trnspec/...``; one that cannot be read counts, so that this is reported."""
    try:
        with file.open("rb") as stream:
            return _VERSION.search(stream.read(_MOST_BYTES)) is not None
    except OSError:
        return True
