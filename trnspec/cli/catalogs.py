"""The catalogs that ``trnspec diff`` compares: the working one, an edition, a date, a folder, a git revision.

Unlike :func:`trnspec.api.load`, a folder or a revision is opened alone: what it lacks is not taken from the shipped
catalog, because a comparison has to show that.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from trnspec.api import load, registry
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.versions.editions import is_name
from trnspec.errors import UsageError
from trnspec.loading.files import SUFFIXES, documents_in
from trnspec.loading.pipeline import link, load_document
from trnspec.yaml import Document, read_file, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.plugins.api import Registry

WORKING = "working"
AS_OF = "as-of:"
GIT = "git:"


def open_catalog(text: str) -> Catalog:
    """The catalog that a text names.

    Args:
        text: ``2026.11`` (an edition), ``working``, ``as-of:2023-03``, ``git:HEAD~1``, ``git:v1:path/to/catalog``, or a
            folder; write ``./2026.11`` for a folder that is named like an edition.

    Raises:
        UsageError: The text names no catalog.
        UnknownNameError: There is no such edition.
        EditionError: The edition was altered.
    """
    if text == WORKING:
        return load()
    if text.startswith(AS_OF):
        return load(as_of=text.removeprefix(AS_OF))
    if text.startswith(GIT):
        revision, _, folder = text.removeprefix(GIT).partition(":")
        return of_revision(revision, folder or "catalog")
    if is_name(text):
        return load(edition=text)
    if text and FilePath(text).is_dir():
        return of_folder(FilePath(text))
    raise UsageError(
        f"{text!r} is not a folder; write an edition such as 2026.11, working, a catalog folder, as-of:2023-03 or git:HEAD; "
        "trnspec compare compares documents"
    )


def label(text: str) -> str:
    """The label of a catalog in output: ``edition 2026.11``."""
    if text.startswith(AS_OF):
        return f"what was published by {text.removeprefix(AS_OF)}"
    if is_name(text):
        return f"edition {text}"
    return "the working edition" if text == WORKING else text


def of_folder(folder: FilePath) -> Catalog:
    """The catalog in a folder, alone.

    Raises:
        UsageError: It has no documents, or cannot be read.
    """
    return _catalog((read_file(file) for file in documents_in(folder)), registry(), str(folder))


def of_revision(revision: str, folder: str = "catalog", where: FilePath | None = None) -> Catalog:
    """The catalog in a folder of a git revision, alone, without touching the working tree.

    Args:
        revision: A revision of git.
        folder: The folder, relative to the top of the repository.
        where: A folder in the repository; the current one when left out.

    Raises:
        UsageError: Git does not know the revision, or it has no documents.
    """
    from trnspec.catalog.versions.git import files

    known = registry()
    texts = files(revision, folder, where if where is not None else FilePath.cwd())
    # Hidden folders are skipped, as in a catalog on disk.
    named = {f: t for f, t in sorted(texts.items()) if f.endswith(SUFFIXES) and "/." not in f"/{f}"}
    return _catalog((read_text(t, f"{revision}:{folder}/{f}") for f, t in named.items()), known, f"{revision}:{folder}")


def _catalog(documents: Iterable[Document], known: Registry, what: str) -> Catalog:
    results = [load_document(document, known) for document in documents]
    if not results:
        raise UsageError(f"{what} holds no .yaml files")
    return Catalog(link(results)[0])
