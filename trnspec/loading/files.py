"""The folders of catalogs and the files in them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path as FilePath

from trnspec.errors import UsageError
from trnspec.model.annotations import NAME_PATTERN
from trnspec.model.kinds import BUILTIN
from trnspec.plugins.api import Kind
from trnspec.yaml import Path, ReadingLimits, read_bytes

SUFFIXES = (".yaml", ".yml")


def shipped() -> FilePath:
    """The folder of the catalog of this installation."""
    return _installed("catalog")


def schemas() -> FilePath:
    """The folder of the JSON Schemas of this installation."""
    return _installed("schemas")


def _installed(name: str) -> FilePath:
    here = FilePath(__file__).resolve().parent.parent
    packaged = here / "_data" / name
    return packaged if packaged.is_dir() else here.parent / name


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
            elif name.lower().endswith(SUFFIXES):
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


def misplacements(file: str, kind: str, name: str) -> Iterator[tuple[Path, str, str]]:
    """The path, the message and the hint for a document whose file has another name, or is in the folder of another kind.

    Args:
        file: The file; one without an ending of YAML, such as standard input, is in its place.
        kind: The kind.
        name: The name of the document.
    """
    where = FilePath(file)
    if where.suffix.lower() not in SUFFIXES:
        return
    if where.stem != name:
        hint = f"rename the file to {name}{where.suffix}"
        hint += f" or the document to {where.stem}" if re.search(NAME_PATTERN.regex, where.stem) else ""
        yield ("metadata", "name"), f"the document {name!r} is in the file {where.name}", hint
    folder = where.absolute().parent.name
    own, _ = BUILTIN.get(kind, ("", ""))
    if own and folder != own and any(folder == other for other, _ in BUILTIN.values()):
        yield ("kind",), f"the {kind} {name!r} is in the folder {folder}", f"move the file to the folder {own}"


def documents_among(
    paths: Iterable[str | FilePath], kinds: Mapping[str, Kind], catalogs: Iterable[FilePath]
) -> Iterator[FilePath]:
    """The files that some paths name, also those in folders, without those of other programs.

    A file is a document if it states ``trnspec/`` as its version, or a kind of trnspec with a metadata or spec block and
    no version or a misspelt one. In a folder that holds documents, a file that is empty, is not UTF-8 or has a block of a
    document is one too; in the folder of a kind of a catalog, every file is. A file that cannot be read is one, so that this is
    reported.

    Args:
        paths: Files and folders.
        kinds: The kinds by name.
        catalogs: The catalogs of the settings.
    """
    folders = {kind.folder for kind in kinds.values() if kind.folder}
    catalogs = {catalog.absolute() for catalog in catalogs}
    holding: dict[FilePath, bool] = {}

    def is_document(file: FilePath) -> bool:
        text, valid = _beginning(file)
        if is_ours(text, kinds):
            return True
        folder = file.absolute().parent
        if folder.name in folders and catalogs & {*folder.parents}:
            return not file.name.startswith(".")
        if folder not in holding:
            holding[folder] = any(_VERSION.search(_beginning(f)[0]) for f in folder.glob("[!.]*.y*ml"))
        keys = _top_level(text)
        return holding[folder] and (
            not valid or not text.strip() or ("apiVersion" not in keys and not _BLOCKS.isdisjoint(keys))
        )

    for path in map(FilePath, paths):
        if not path.is_dir():
            yield from (path,) if is_document(path) else ()
        else:
            yield from filter(is_document, documents_in(path))


def is_ours(text: str, kinds: Collection[str]) -> bool:
    """Whether a text that may be invalid is a document of trnspec, and not one of another program.

    Args:
        text: The text.
        kinds: The names of the kinds.
    """
    if _VERSION.search(text):
        return True
    keys = _top_level(text)
    lowered = {key.lower(): value.lower() for key, value in keys.items()}
    near = {name: get_close_matches(name, lowered, 1, 0.75) for name in ("api_version", "kind", "metadata", "spec")}
    version, kind = (lowered[near[name][0]] if near[name] else "" for name in ("api_version", "kind"))
    if get_close_matches(version.partition("/")[0], ("trnspec",), 1, 0.75):
        return True
    # Kubernetes and its like write apiVersion.
    is_stated = bool(near["metadata"] or near["spec"]) and "apiVersion" not in keys
    return is_stated and bool(get_close_matches(kind, [name.lower() for name in kinds], 1, 0.75))


_VERSION = re.compile(r"""^[^#\n]*?(?<![\w./@-])trnspec/v\d""", re.MULTILINE)
_KEY = r"""["']?([A-Za-z][\w-]*)["']?[ \t]*:(?:[ \t]+["']?([^\s"'#,}]*)|[ \t]*$)"""
_BLOCKS = {"api_version", "kind", "metadata", "spec", "claims"}


def _beginning(file: FilePath) -> tuple[str, bool]:
    """The text of a file as far as a document may reach, and whether it is UTF-8; that of UTF-16 if it is ASCII."""
    try:
        raw = read_bytes(file, ReadingLimits().bytes)
    except (OSError, ValueError):
        return "api_version: trnspec/", False
    text = raw.decode("utf-8-sig", "replace")
    return text.replace("\0", "").lstrip("\ufffd"), "\ufffd" not in text and "\0" not in text


def _top_level(text: str) -> dict[str, str]:
    """The keys of a text's first level that are plain words, each with the first word of its value."""
    first = re.search(r"^([ ]*)(?![ \t\r\n#%]|---|\.\.\.)(\{?)", text, re.MULTILINE)
    before = r"[{,\n][ \t]*" if first and first[2] else f"^{first[1] if first else ''}"
    return dict(reversed(re.findall(before + _KEY, text, re.MULTILINE)))
