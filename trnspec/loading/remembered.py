"""The plain data of documents that earlier runs read without problems, by the hash of their content.

A run reads the documents of the catalogs around the file that it checks. Nearly all of them are those of the run before,
so that parsing them again is most of its work. There is one file of data for each catalog; an entry of it depends on nothing
but the bytes of its document, and on the programs that read it.
"""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trnspec._version import __version__
from trnspec.cache import observer, verdicts
from trnspec.yaml import reader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FORMAT = 1
"""Changes with the structure of a file."""

MOST_BYTES = 16 * 2**20
"""Limit of the data of one catalog; the documents of a larger one are read each time."""

SHARE = 50
"""The data of a catalog are written again when one of this number of documents is new."""


class Documents:
    """The data of documents, one file of a folder for each catalog."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._program = _program()
        self._packs: dict[str, _Pack] = {}

    def get(self, text: bytes, file: str) -> dict[str, Any] | None:
        """The data of a text; ``None`` if it is not known."""
        pack, key = self._pack(file), verdicts.digest(text)
        raw = pack.entries.get(key)
        if raw is None:
            return None
        pack.use(key, raw)
        data: dict[str, Any] = marshal.loads(raw)
        return data

    def put(self, text: bytes, file: str, data: dict[str, Any]) -> None:
        """Keep the data of a text that has no problems."""
        pack = self._pack(file)
        try:
            raw = marshal.dumps(data)
        except ValueError:
            return
        pack.use(verdicts.digest(text), raw)
        pack.new += 1

    def _pack(self, file: str) -> _Pack:
        catalog = os.path.dirname(os.path.dirname(file))
        if catalog not in self._packs:
            name = verdicts.digest(self._program, os.path.abspath(catalog).encode("utf-8", "surrogateescape")).hex()
            self._packs[catalog] = _Pack(os.path.join(self._folder, name))
        return self._packs[catalog]

    def save(self) -> None:
        """Write what is new; without an error wherever that is not possible."""
        for pack in self._packs.values():
            # A document that is being edited is read each time, rather than all others written each time.
            if pack.new * SHARE > len(pack.used) and pack.size <= MOST_BYTES:
                try:
                    observer.write(self._folder, os.path.basename(pack.file), verdicts.packed(pack.used))
                except (OSError, ValueError):
                    return


class _Pack:
    """The data of the documents of one catalog, by the hashes of their texts."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.new = 0
        self.size = 0
        self.entries: dict[bytes, bytes] = {}
        self.used: dict[bytes, bytes] = {}
        with observer.unobserved():
            try:
                entries: Any = verdicts.read(file)
                self.entries = entries or {}
                if self.entries:
                    os.utime(file)  # files that are used stay
            except (OSError, ValueError, TypeError, EOFError):
                pass

    def use(self, key: bytes, raw: bytes) -> None:
        """Keep the data of a document for the next run; those of a catalog that is too large are not held in memory."""
        self.size += len(raw)
        if self.size <= MOST_BYTES:
            self.used[key] = raw
        else:
            self.used.clear()


def _program() -> bytes:
    """What the data of a text depends on apart from it: the reader, its libraries and Python."""
    here = os.path.dirname(os.path.abspath(reader.__file__))
    stamps = [
        f"{name} {verdicts.stamp(os.path.join(here, name))}"
        for name in sorted(os.listdir(here))
        if name.endswith(".py")
    ]
    version = f"{__version__} {FORMAT} {sys.version} {stamps}"
    return verdicts.digest(version.encode("utf-8", "surrogateescape"), verdicts.distributions(sys.path))


@contextmanager
def remembered() -> Iterator[None]:
    """Read documents from the data of earlier runs, and keep those that are new, if this run may use the cache."""
    place = verdicts.folder()
    if not place or not verdicts.is_enabled(sys.argv[1:], os.environ):
        yield
        return
    with observer.unobserved():
        documents = Documents(os.path.join(os.path.dirname(place), f"documents-{FORMAT}"))
    reader.memory = documents
    try:
        yield
    finally:
        reader.memory = None
        with observer.unobserved():
            documents.save()
