"""Documents that earlier runs read without problems, each loaded when it is first used.

A run knows nearly all documents around the file that it checks from the run before. There is one file for each catalog: a
table with the name of each document, what it refers to and the state of its file, and the typed document, which is loaded
when one of its values is needed. A document whose file has another content is read again. An entry depends on nothing but
the bytes of its file and the programs that read them, and is compared with both.
"""

from __future__ import annotations

import functools
import io
import marshal
import os
import pickle
import sys
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs

from trnspec._version import __version__
from trnspec.cache import observer, verdicts
from trnspec.graph.graph import names_used
from trnspec.loading.pipeline import Reading, read
from trnspec.loading.structure import structure
from trnspec.model.document import Node
from trnspec.model.kinds import BUILTIN, spec_of
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml import Document, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.plugins.api import Registry
    from trnspec.quantities.units import UnitTable

FORMAT = 5
"""Changes with the structure of a file."""

MOST_BYTES = 64 * 2**20
"""Limit of the file of one catalog; a larger catalog is read each time."""

SHARE = 50
"""The file of a catalog is written again when one of this number of documents is new."""

_SETTLED = 100_000_000
"""A file that was written less than this number of nanoseconds ago may change without another time."""

_Entry = tuple[tuple[int, ...], bytes, str, str, tuple[str, ...], tuple[str, ...], int, tuple[int, ...]]
"""State and hash of the file, kind, name, aliases, names that it refers to, offset of the document, lengths of its parts."""

_PARTS = ("metadata", "spec", "claims")
"""The parts of a document, which are loaded separately: many rules need one of them."""


class SnapshotDocument(Document):
    """The text of a document without problems, which is read when it is first used."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """A value that is not known yet: the file is read."""
        if name not in ("data", "places", "text"):
            raise AttributeError(name)
        document = read_file(self.file)
        for each in ("data", "places", "text"):
            object.__setattr__(self, each, getattr(document, each))
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Document, (self.file, self.data, dict(self.places), self.problems, self.text, self.rejected)


class SnapshotNode(Node[Any]):
    """A document of an earlier run: its names are known, its values are loaded when one of them is first used."""

    __slots__ = ("_entry", "_snapshot")

    def __getattr__(self, name: str) -> Any:
        """A value that is not known yet: that part of the document is loaded."""
        if name in ("_entry", "_snapshot"):
            return None  # a node that was derived from one of these
        if name not in _PARTS:
            raise AttributeError(name)
        parts = self._snapshot.load(self._entry, _PARTS.index(name), self.units)
        if not parts:  # the file of the cache is damaged
            node = structure(self.kind, self.spec_class, self.document, self.document.data or {}, self.units)
            parts = (getattr(node, name),)
        object.__setattr__(self, name, parts[0])
        return parts[0]

    @property
    def name(self) -> str:
        """The name that other documents refer to."""
        return super().name if self._entry is None else self._entry[3]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return super().aliases if self._entry is None else self._entry[4]

    @property
    def spec_class(self) -> type[Any]:
        """The class of the spec."""
        return spec_of(self.kind)

    @property
    def names_used(self) -> tuple[str, ...] | None:
        """The names that it refers to."""
        return None if self._entry is None else self._entry[5]

    def __reduce__(self) -> tuple[Any, ...]:
        return _node, (self.kind, self.metadata, self.spec, self.claims, self.document, self.target, self.units)


def _node(*values: Any) -> Node[Any]:
    names = ("kind", "metadata", "spec", "claims", "document", "target", "units")
    return Node(**dict(zip(names, values, strict=True)))


class Snapshots:
    """The documents of earlier runs, one file of a folder for each catalog."""

    def __init__(self, folder: str, units: UnitTable) -> None:
        self._folder = folder
        self._units = units
        self._program = _program(units)
        self._by_catalog: dict[str, _Snapshot] = {}

    def reading(self, file: str, *, target: bool, plugin: str, layer: int) -> Reading | None:
        """The reading of a file; ``None`` if it is not known as it is now."""
        snapshot, key = self._of(file)
        entry = snapshot.entries.get(key)
        if entry is None:
            return None
        state = verdicts.change_of(file)
        if not state or state != entry[0]:
            digest, _ = verdicts.content(file)
            if digest != entry[1]:
                return None
            snapshot.stale += 1
            entry = (_settled(state), *entry[1:])
        snapshot.used[key] = entry
        observer.depend(file, entry[1], state)
        document, node = object.__new__(SnapshotDocument), object.__new__(SnapshotNode)
        put = object.__setattr__
        put(document, "file", file)
        put(document, "problems", ())
        put(document, "rejected", frozenset())
        put(node, "kind", entry[2])
        put(node, "document", document)
        put(node, "positions", ())
        put(node, "target", target)
        put(node, "folder", "")
        put(node, "units", self._units)
        put(node, "_entry", entry)
        put(node, "_snapshot", snapshot)
        return Reading(document, node, (), entry[3], target, plugin, layer)

    def keep(self, file: str, state: tuple[int, ...], reading: Reading) -> None:
        """Keep a document that was read, if it has no problems and is of a built-in kind."""
        node, document = reading.node, reading.document
        if node is None or reading.problems or document.rejected or node.positions or node.kind not in BUILTIN:
            return
        snapshot, key = self._of(file)
        snapshot.added[key] = (_settled(state), reading)

    def _of(self, file: str) -> tuple[_Snapshot, str]:
        folder, name = os.path.split(file)
        catalog, kind = os.path.split(folder)
        if catalog not in self._by_catalog:
            place = os.path.abspath(catalog).encode("utf-8", "surrogateescape")
            self._by_catalog[catalog] = _Snapshot(self._folder, verdicts.digest(self._program, place).hex(), catalog)
        return self._by_catalog[catalog], f"{kind}/{name}"

    def save(self) -> None:
        """Write what is new; without an error wherever that is not possible."""
        for snapshot in self._by_catalog.values():
            # A document that is being edited is read each time, rather than all others written each time.
            if (len(snapshot.added) + snapshot.stale) * SHARE > len(snapshot.used) + len(snapshot.added):
                try:
                    snapshot.save()
                except (OSError, ValueError, RecursionError, pickle.PicklingError):
                    continue


class _Snapshot:
    """The documents of one catalog by the folder and name of their files."""

    def __init__(self, folder: str, name: str, catalog: str) -> None:
        self.folder, self.name, self.catalog = folder, name, catalog
        self.stale = 0
        self.used: dict[str, _Entry] = {}
        self.added: dict[str, tuple[tuple[int, ...], Reading]] = {}
        self._descriptor = -1
        self._begin = 0
        with observer.unobserved():
            try:
                self.entries: dict[str, _Entry] = self._table()
            except (OSError, ValueError, TypeError, EOFError):
                self.entries = {}

    def _table(self) -> dict[str, _Entry]:
        """The table at the beginning of the file; its hash and its length come first."""
        file = os.path.join(self.folder, self.name)
        self._descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        if hasattr(os, "getuid") and os.fstat(self._descriptor).st_uid != os.getuid():
            return {}
        head = os.read(self._descriptor, verdicts.DIGEST + _LENGTH)
        size = int.from_bytes(head[verdicts.DIGEST :], "little")
        if size > MOST_BYTES:
            return {}
        raw = os.read(self._descriptor, size)
        if len(raw) != size or verdicts.digest(raw) != head[: verdicts.DIGEST]:
            return {}
        self._begin = len(head) + size
        os.utime(file)  # files that are used stay
        entries: dict[str, _Entry] = marshal.loads(raw)
        return entries

    def raw(self, entry: _Entry, part: slice = slice(None)) -> bytes:
        """A document, or a part of it, as it is in the file."""
        lengths = entry[7]
        size = sum(lengths[part])
        os.lseek(self._descriptor, self._begin + entry[6] + sum(lengths[: part.start or 0]), os.SEEK_SET)
        raw = os.read(self._descriptor, size)
        if len(raw) != size:
            raise OSError(f"{self.name} is incomplete")
        return raw

    def load(self, entry: _Entry, part: int, units: UnitTable) -> tuple[Any, ...]:
        """A part of a document; nothing if it is damaged."""
        try:
            raw = self.raw(entry, slice(part, part + 1))
            blob = raw[verdicts.DIGEST :]
            if verdicts.digest(blob) == raw[: verdicts.DIGEST]:
                return (_Unpickler(blob, units).load(),)
        except Exception:  # noqa: BLE001, S110  # whatever cannot be loaded is read from the file
            pass
        return ()

    def save(self) -> None:
        """Write the documents that this run has used or read, and those that it had no use for."""
        if sum(len(reading.document.text) for _, reading in self.added.values()) > MOST_BYTES:
            return
        others = (k for k in self.entries if k not in self.used and k not in self.added)
        parts = {k: self.entries[k] for k in others if os.path.exists(os.path.join(self.catalog, k))} | self.used
        written: list[tuple[str, tuple[Any, ...], tuple[int, ...], bytes]]
        written = [(k, e[:6], e[7], self.raw(e)) for k, e in parts.items()]
        for key, (state, reading) in self.added.items():
            node = reading.node
            assert node is not None  # others are not added
            # Without problems the text is that of the file, byte for byte.
            digest = verdicts.hashed(reading.document.text.encode())
            blobs = [_pickled(getattr(node, part)) for part in _PARTS]
            head = (state, digest, node.kind, node.name, node.aliases, names_used(node))
            lengths = tuple(len(blob) for blob in blobs)
            written.append((key, head, lengths, b"".join(blobs)))
        table: dict[str, _Entry] = {}
        size = 0
        for key, head, lengths, blob in written:
            table[key] = (*head, size, lengths)
            size += len(blob)
        raw = marshal.dumps(table)
        if size + len(raw) <= MOST_BYTES:
            start = verdicts.digest(raw) + len(raw).to_bytes(_LENGTH, "little") + raw
            observer.write(self.folder, self.name, b"".join((start, *(blob for *_, blob in written))), 2 * MOST_BYTES)


_LENGTH = 8


class _Pickler(pickle.Pickler):
    """Writes quantities as their texts, and other attrs objects as their values."""

    def reducer_override(self, obj: Any) -> Any:
        """How an object is made again."""
        cls = type(obj)
        if cls is Quantity:
            return parse, (obj.text,)
        if not attrs.has(cls):
            return NotImplemented
        return _made, (cls, *(getattr(obj, field.name) for field in attrs.fields(cls)))


def _made(cls: type, *values: Any) -> Any:
    """An object of a class of attrs with these values; they were checked when it was made first."""
    made: Any = object.__new__(cls)
    for put, value in zip(_setters(cls), values, strict=True):
        put(made, value)
    return made


@functools.cache
def _setters(cls: type) -> tuple[Any, ...]:
    """The functions that set the fields of a class with slots, also of a frozen one."""
    return tuple(getattr(cls, field.name).__set__ for field in attrs.fields(cls))


def _pickled(value: object) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    raw = stream.getvalue()
    return verdicts.digest(raw) + raw


class _Unpickler(pickle.Unpickler):
    """Loads objects of trnspec and nothing else."""

    def __init__(self, raw: bytes, units: UnitTable) -> None:
        super().__init__(io.BytesIO(raw))
        self._units = units

    def find_class(self, module: str, name: str) -> Any:
        """A class of the model, or of the numbers in it."""
        if (module, name) == _PARSE:
            return self._parse
        return _class(module, name)

    def _parse(self, text: str) -> Quantity:
        return parse(text, None, self._units)


_PARSE = (parse.__module__, parse.__name__)


@functools.cache
def _class(module: str, name: str) -> Any:
    if (module, name) == (__name__, _made.__name__):
        return _made
    if not module.startswith(_PACKAGES) and (module, name) != ("fractions", "Fraction"):
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a document")
    return getattr(import_module(module), name)


_PACKAGES = ("trnspec.model.", "trnspec.quantities.")


def _settled(state: tuple[int, ...]) -> tuple[int, ...]:
    """A state that any later change alters; empty for a file that was written just now, so that it is hashed."""
    return state if state and time.time_ns() - max(state[0], state[-1]) > _SETTLED else ()


def _program(units: UnitTable) -> bytes:
    """What a document depends on apart from its file: the modules that read it, its units, its libraries and Python."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    stamps = []
    for name in ("", "yaml", "quantities", "model", "model/transformers", "graph", "loading", "loading/schema"):
        with os.scandir(os.path.join(here, name)) as inside:
            states = [(e.path, e.stat()) for e in inside if e.name.endswith(".py")]
        stamps += sorted(f"{path} {status.st_mtime_ns} {status.st_size}" for path, status in states)
    added = [f"{u.symbol} {u.dimension} {u.factor} {u.aliases}" for u in units]
    version = f"{__version__} {FORMAT} {sys.version} {stamps} {added}"
    return verdicts.digest(version.encode("utf-8", "surrogateescape"), verdicts.distributions(sys.path))


_documents: Snapshots | None = None


def reading(  # each one is independent of the others
    file: str, known: Registry, *, target: bool = True, plugin: str = "", layer: int = 0, compacted: bool = False
) -> Reading:
    """The reading of a file, from an earlier run if its content is the same."""
    documents = _documents
    if documents is None:
        return read(read_file(file), known, target=target, plugin=plugin, layer=layer, compacted=compacted)
    earlier = documents.reading(file, target=target, plugin=plugin, layer=layer)
    if earlier is not None:
        return earlier
    state = verdicts.change_of(file)
    found = read(read_file(file), known, target=target, plugin=plugin, layer=layer, compacted=compacted)
    documents.keep(file, state, found)
    return found


@contextmanager
def snapshots(known: Registry, *, enabled: bool) -> Iterator[None]:
    """Load documents that earlier runs read, and keep those that are new.

    Args:
        known: The kinds and units.
        enabled: Whether the cache may be used.
    """
    global _documents  # noqa: PLW0603  # set for the duration of a run
    place = verdicts.folder()
    if place and enabled:
        with observer.unobserved(), suppress(OSError):  # the modules may be in an archive
            _documents = Snapshots(os.path.join(os.path.dirname(place), f"documents-{FORMAT}"), known.units)
    try:
        yield
    finally:
        documents, _documents = _documents, None
        if documents is not None:
            with observer.unobserved():
                documents.save()
