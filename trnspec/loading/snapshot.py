"""Documents that earlier runs read without problems, each loaded when it is first used.

A run knows nearly all documents around the file that it checks from the run before. There is one file for each catalog: a
table with the name of each document, what it refers to and the state of its file, and the typed document, which is loaded
when one of its values is needed. A document whose file has another content is read again. An entry depends on nothing but
the bytes of its file and the programs that read them, and is compared with both.
"""

from __future__ import annotations

import itertools
import marshal
import os
import sys
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from trnspec._version import __version__
from trnspec.cache import observer, verdicts
from trnspec.graph.generations import numbers_of
from trnspec.graph.graph import names_used
from trnspec.loading import processes
from trnspec.loading.building import builder
from trnspec.loading.pipeline import Reading, read
from trnspec.loading.structure import structure
from trnspec.model.document import Claim, Metadata, Node
from trnspec.model.kinds import BUILTIN, kind_of, spec_of
from trnspec.yaml import Document, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trnspec.plugins.api import Registry
    from trnspec.quantities.units import UnitTable
    from trnspec.yaml.document import Json

FORMAT = 6
"""Changes with the structure of a file."""

MOST_BYTES = 64 * 2**20
"""Limit of the file of one catalog; a larger catalog is read each time."""

SHARE = 50
"""The file of a catalog is written again when one of this number of documents is new."""

_Entry = tuple[
    tuple[int, ...], bytes, str, str, tuple[str, ...], tuple[str, ...], int, tuple[int, ...], tuple[Any, ...]
]
"""State and hash of the file, kind, name, aliases, names that it refers to, offset of the document, lengths of its parts,
and what rules over the whole graph read of every document of the kind."""

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

    __slots__ = ("_entry", "_parts")

    def __getattr__(self, name: str) -> Any:
        """A value that is not known yet: that part of the document is loaded."""
        if name in ("_entry", "_parts"):
            return None  # a node that was derived from one of these
        if name not in _PARTS:
            raise AttributeError(name)
        parts = self._parts.load(self._entry, _PARTS.index(name), self.units)
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

    def is_of(self, *specs: type) -> bool:
        """Whether the spec is of one of some classes; the class of its kind need not be imported for another kind."""
        for spec in specs:
            kind = kind_of(spec)
            if kind == self.kind or (kind is None and issubclass(self.spec_class, spec)):
                return True
        return False

    @property
    def names_used(self) -> tuple[str, ...] | None:
        """The names that it refers to."""
        return None if self._entry is None else self._entry[5]

    @property
    def summary(self) -> tuple[Any, ...]:
        """What rules over the whole graph read of every document of the kind."""
        return () if self._entry is None else self._entry[8]

    def __reduce__(self) -> tuple[Any, ...]:
        return _node, (self.kind, self.metadata, self.spec, self.claims, self.document, self.target, self.units)


def _node(*values: Any) -> Node[Any]:
    names = ("kind", "metadata", "spec", "claims", "document", "target", "units")
    return Node(**dict(zip(names, values, strict=True)))


class Snapshots:
    """The documents of earlier runs, one file of a folder for each catalog.

    Without a folder, those that other processes of this run read, and no others.
    """

    def __init__(self, folder: str, units: UnitTable) -> None:
        self._folder = folder
        self._units = units
        self._program = _program(units) if folder else b""
        self._spool = _Spool(folder)
        self._by_catalog: dict[str, _Snapshot] = {}
        self._by_folder: dict[str, tuple[_Snapshot, str, str]] = {}

    def reading(
        self, file: str, *, target: bool, plugin: str, layer: int, state: tuple[int, ...] | None = None
    ) -> Reading | None:
        """The reading of a file; ``None`` if it is not known as it is now."""
        folder, name = os.path.split(file)
        snapshot, kind, place = self._by_folder.get(folder) or self._of(folder)
        key = f"{kind}/{name}"
        parts: _Parts = self._spool
        entry = snapshot.fetched.get(key)
        if entry is not None:
            state = entry[0]
        else:
            entry, parts = snapshot.entries.get(key), snapshot
            if entry is None:
                return None
            if state is None:
                state = verdicts.change_of(file)
            if not state or state != entry[0]:
                digest, _ = verdicts.content(file)
                if digest != entry[1]:
                    return None
                snapshot.stale += 1
                entry = (verdicts.settled(state), *entry[1:])
            snapshot.used[key] = entry
        observer.depend(f"{place}{name}", entry[1], state)
        document, node = object.__new__(SnapshotDocument), object.__new__(SnapshotNode)
        _set_file(document, file)
        _set_problems(document, ())
        _set_rejected(document, _NOTHING)
        _set_kind(node, entry[2])
        _set_document(node, document)
        _set_positions(node, ())
        _set_target(node, target)
        _set_folder(node, "")
        _set_units(node, self._units)
        _set_entry(node, entry)
        _set_parts(node, parts)
        return Reading(document, node, (), entry[3], target, plugin, layer)

    def keep(self, file: str, state: tuple[int, ...], document: Document, reading: Reading, *, many: bool) -> None:
        """Keep a document that was read for later runs, if it has no problems and is of a built-in kind.

        Args:
            file: The file.
            state: Its state before it was read.
            document: What was read.
            reading: Its typed values.
            many: Whether it is one of many, which are kept in less space.
        """
        node = reading.node
        if node is None or not self._folder or not _can_be_kept(document, reading):
            return
        folder, name = os.path.split(file)
        snapshot, kind, _ = self._by_folder.get(folder) or self._of(folder)
        blobs = _packed(document.data or {}, compressed=many)
        raw = b"".join(blobs)
        offset = self._spool.add(raw) if many else None
        head = (verdicts.settled(state), _digest(document), node, tuple(map(len, blobs)))
        snapshot.added[f"{kind}/{name}"] = _Added(*head, raw if offset is None else offset)

    def fetch(self, files: Sequence[tuple[str, tuple[int, ...]]], known: Registry, jobs: int, *, many: bool) -> None:
        """Let other processes read the files that are not known as they are now.

        What has problems, or is of a kind of a plugin, is left to this process, and so is everything of a process that
        fails.

        Args:
            files: The files and their states.
            known: The kinds and units.
            jobs: The number of processes.
            many: Whether they are kept in less space.
        """

        def is_new(file: str, state: tuple[int, ...]) -> bool:
            folder, name = os.path.split(file)
            snapshot, kind, _ = self._by_folder.get(folder) or self._of(folder)
            entry = snapshot.entries.get(f"{kind}/{name}")
            return entry is None or not state or state != entry[0]

        def of_part(part: Sequence[tuple[str, tuple[int, ...]]]) -> list[tuple[str, _Entry, bytes]]:
            with observer.unobserved():
                return [each for file, state in part if (each := self._fetched(file, state, known, many=many))]

        new = [each for each in files if is_new(*each)]
        if len(new) < processes.LEAST:
            return
        first, *others = processes.parts_of(new, jobs)
        results = itertools.chain([of_part(first)], (result for _, result in processes.each(of_part, others, jobs)))
        for file, entry, raw in itertools.chain.from_iterable(result or () for result in results):
            offset = self._spool.add(raw)
            if offset is not None:
                folder, name = os.path.split(file)
                snapshot, kind, _ = self._of(folder)
                snapshot.fetched[f"{kind}/{name}"] = (*entry[:6], offset, *entry[7:])

    def _fetched(
        self, file: str, state: tuple[int, ...], known: Registry, *, many: bool
    ) -> tuple[str, _Entry, bytes] | None:
        """A document as it is kept; ``None`` if that of an earlier run can be used, or if it cannot be kept."""
        if self.reading(file, target=False, plugin="", layer=0, state=state) is not None:
            return None
        document = read_file(file)
        found = read(document, known)
        node = found.node
        if node is None or not _can_be_kept(document, found):
            return None
        blobs = _packed(document.data or {}, compressed=many)
        head = (verdicts.settled(state), _digest(document), node.kind, node.name)
        entry = (*head, node.aliases, names_used(node), 0, tuple(map(len, blobs)), (numbers_of(node),))
        return file, entry, b"".join(blobs)

    def _of(self, folder: str) -> tuple[_Snapshot, str, str]:
        """The snapshot of the documents in a folder, the name of the folder, and its absolute path with a separator."""
        catalog, kind = os.path.split(folder)
        if catalog not in self._by_catalog:
            place = os.path.abspath(catalog).encode("utf-8", "surrogateescape")
            name = verdicts.digest(self._program, place).hex()
            self._by_catalog[catalog] = _Snapshot(self._folder, name, catalog, self._spool)
        known = self._by_folder[folder] = self._by_catalog[catalog], kind, os.path.join(os.path.abspath(folder), "")
        return known

    def save(self) -> None:
        """Write what is new; without an error wherever that is not possible."""
        for snapshot in self._by_catalog.values() if self._folder else ():
            new = len(snapshot.added) + len(snapshot.fetched)
            # A document that is being edited is read each time, rather than all others written each time.
            if (new + snapshot.stale) * SHARE > len(snapshot.used) + new:
                try:
                    snapshot.save()
                except (OSError, ValueError):
                    continue


# The descriptors of the slots: assigning to the attributes of a frozen object looks them up each time.
_set_file, _set_problems, _set_rejected = (vars(Document)[name].__set__ for name in ("file", "problems", "rejected"))
_set_kind, _set_document, _set_positions, _set_target, _set_folder, _set_units = (
    vars(Node)[name].__set__ for name in ("kind", "document", "positions", "target", "folder", "units")
)
_set_entry, _set_parts = (vars(SnapshotNode)[name].__set__ for name in ("_entry", "_parts"))
_NOTHING: frozenset[Any] = frozenset()


class _Parts:
    """A file with the parts of documents."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._begin = 0

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def raw(self, entry: _Entry, part: slice = slice(None)) -> bytes:
        """A document, or a part of it, as it is in the file."""
        lengths = entry[7]
        return self.read(entry[6] + sum(lengths[: part.start or 0]), sum(lengths[part]))

    def read(self, offset: int, size: int) -> bytes:
        """Some bytes of the file; other processes may read it at the same time."""
        if sys.platform == "win32":
            os.lseek(self._descriptor, self._begin + offset, os.SEEK_SET)
            raw = os.read(self._descriptor, size)
        else:
            raw = os.pread(self._descriptor, size, self._begin + offset)
        if len(raw) != size:
            raise OSError("the file is incomplete")
        return raw

    def load(self, entry: _Entry, part: int, units: UnitTable) -> tuple[Any, ...]:
        """A part of a document; nothing if it is damaged."""
        try:
            raw = self.raw(entry, slice(part, part + 1))
            blob = raw[verdicts.DIGEST :]
            if verdicts.digest(blob) == raw[: verdicts.DIGEST]:
                cls: Any = (Metadata, spec_of(entry[2]), tuple[Claim, ...])[part]
                return (builder(cls, units)(_unpacked(blob)) if blob else (),)
        except Exception:  # noqa: BLE001, S110  # whatever cannot be loaded is read from the file
            pass
        return ()


class _Spool(_Parts):
    """A file without a name, which is gone when the run ends: what is read in it is not held in memory."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self._is_open = False
        self._size = 0

    def add(self, raw: bytes) -> int | None:
        """Add a document; its offset, or ``None`` where there can be no such file, or on a full disk."""
        if not self._is_open:
            self._is_open = True
            self._descriptor = _nameless(self._folder)
        offset = self._size
        if self._descriptor >= 0:
            with suppress(OSError):
                self._size += os.write(self._descriptor, raw)
        return offset if self._size == offset + len(raw) else None


class _Snapshot(_Parts):
    """The documents of one catalog by the folder and name of their files."""

    def __init__(self, folder: str, name: str, catalog: str, spool: _Spool) -> None:
        super().__init__()
        self.folder, self.name, self.catalog, self.spool = folder, name, catalog, spool
        self.stale = 0
        self.used: dict[str, _Entry] = {}
        self.added: dict[str, _Added] = {}
        self.fetched: dict[str, _Entry] = {}
        with observer.unobserved():
            try:
                self.entries: dict[str, _Entry] = self._table() if folder else {}
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

    def save(self) -> None:
        """Write the documents that this run has used or read, and those that it had no use for."""
        new = self.added.keys() | self.fetched.keys()
        others = (k for k in self.entries if k not in self.used and k not in new)
        parts = {k: self.entries[k] for k in others if os.path.exists(os.path.join(self.catalog, k))} | self.used
        table: dict[str, _Entry] = {}
        size = 0
        for key, entry in itertools.chain(parts.items(), self.fetched.items()):
            table[key] = (*entry[:6], size, *entry[7:])
            size += sum(entry[7])
        for key, (state, digest, node, lengths, _) in self.added.items():
            head = (state, digest, node.kind, node.name, node.aliases, names_used(node))
            table[key] = (*head, size, lengths, (numbers_of(node),))
            size += sum(lengths)
        raw = marshal.dumps(table)
        if size + len(raw) <= MOST_BYTES:
            start = verdicts.digest(raw) + len(raw).to_bytes(_LENGTH, "little") + raw
            known = (self.raw(entry) for entry in parts.values())
            fetched = (self.spool.raw(entry) for entry in self.fetched.values())
            added = (self._unspooled(each) for each in self.added.values())
            observer.write(self.folder, self.name, itertools.chain((start,), known, fetched, added), 2 * MOST_BYTES)

    def _unspooled(self, added: _Added) -> bytes:
        return added.raw if isinstance(added.raw, bytes) else self.spool.read(added.raw, sum(added.lengths))


def _can_be_kept(document: Document, reading: Reading) -> bool:
    """Whether a document has no problems and is of a built-in kind."""
    node = reading.node
    is_sound = node is not None and not reading.problems and not document.rejected and not node.positions
    return is_sound and node is not None and node.kind in BUILTIN


def _digest(document: Document) -> bytes:
    """The hash of the file of a document without problems, of which the text is that of the file, byte for byte."""
    return verdicts.hashed(document.text.encode())


class _Added(NamedTuple):
    """A document that was read: state and hash of its file, the document, its parts as bytes or where they are."""

    state: tuple[int, ...]
    digest: bytes
    node: Node[Any]
    lengths: tuple[int, ...]
    raw: bytes | int


def _nameless(folder: str) -> int:
    """A descriptor of a new file that no other process can open, and that is gone when this process ends; or -1."""
    if sys.platform == "win32":
        return -1
    with observer.unobserved(), suppress(OSError):
        if not folder:
            import tempfile

            folder = tempfile.gettempdir()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        file = os.path.join(folder, f".{os.urandom(8).hex()}")
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(file)
        return descriptor
    return -1


_LENGTH = 8


def _packed(data: dict[str, Json], *, compressed: bool) -> tuple[bytes, ...]:
    """The parts of plain data as bytes, each after its hash; nothing for a part that is left out."""
    blobs = []
    for part in _PARTS:
        raw = marshal.dumps(data[part]) if part in data else b""
        raw = zlib.compress(raw, 1) if compressed and raw else raw
        blobs.append(verdicts.digest(raw) + raw)
    return tuple(blobs)


def _unpacked(blob: bytes) -> Any:
    """The plain data of a part that is there."""
    # Marshalled data begin with the code of their type, compressed ones with that of the method.
    return marshal.loads(zlib.decompress(blob) if blob[:1] == _ZLIB else blob)  # of this user


_ZLIB = zlib.compress(b"", 1)[:1]


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
    file: str,
    known: Registry,
    *,
    target: bool = True,
    plugin: str = "",
    layer: int = 0,
    compacted: bool = False,
    state: os.stat_result | None = None,
) -> Reading:
    """The reading of a file, from an earlier run if its content is the same; ``state`` is its state, if it is known."""
    documents = _documents
    if documents is None:
        return read(read_file(file), known, target=target, plugin=plugin, layer=layer, compacted=compacted)
    before = verdicts.change_of(file) if state is None else verdicts.change(state)
    earlier = documents.reading(file, target=target, plugin=plugin, layer=layer, state=before)
    if earlier is not None:
        return earlier
    document = read_file(file)
    found = read(document, known, target=target, plugin=plugin, layer=layer, compacted=compacted)
    documents.keep(file, before, document, found, many=compacted)
    return found


def fetch(
    files: Iterable[str], states: Mapping[str, os.stat_result], known: Registry, jobs: int, *, many: bool
) -> None:
    """Let other processes read the files that are not known from an earlier run, if they are many.

    Args:
        files: The files.
        states: Their states, of those that are accessible.
        known: The kinds and units.
        jobs: The number of processes.
        many: Whether the documents are kept in less space.
    """
    if _documents is not None and jobs > 1:
        accessible = [(file, verdicts.change(states[file])) for file in files if file in states]
        _documents.fetch(accessible, known, jobs, many=many)


@contextmanager
def snapshots(known: Registry, *, enabled: bool, jobs: int = 1) -> Iterator[None]:
    """Load documents that earlier runs read, and keep those that are new.

    Args:
        known: The kinds and units.
        enabled: Whether the cache may be used.
        jobs: The number of processes; with several, documents that they have read are used without the cache too.
    """
    global _documents  # noqa: PLW0603  # set for the duration of a run
    place = verdicts.folder()
    if place and enabled:
        with observer.unobserved(), suppress(OSError):  # the modules may be in an archive
            _documents = Snapshots(os.path.join(os.path.dirname(place), f"documents-{FORMAT}"), known.units)
    elif jobs > 1:
        _documents = Snapshots("", known.units)
    try:
        yield
    finally:
        documents, _documents = _documents, None
        if documents is not None:
            with observer.unobserved():
                documents.save()
