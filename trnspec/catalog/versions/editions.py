"""Editions: frozen catalogs, each as one canonical text whose hashes reveal every change.

The same documents always give the same bytes. Every document has a hash, so that the error for an altered edition names
the document, and another hash covers all of them and the header. Since hashes can be recomputed, the hash of the whole
file is also in ``RELEASED`` next to the editions, which is reviewed like code.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path as FilePath
from typing import Any

from attrs import evolve, frozen

from trnspec.atomic_write import create, locked
from trnspec.atomic_write import write as write_files
from trnspec.diagnostics import did_you_mean
from trnspec.errors import EditionError, UnknownNameError, UsageError
from trnspec.graph.graph import Graph, build, references
from trnspec.loading.renamed import upgrade
from trnspec.loading.structure import StructureError, plain, structure
from trnspec.model.document import Node
from trnspec.model.kinds import BUILTIN
from trnspec.plugins.api import Registry
from trnspec.short_repr import short_repr
from trnspec.yaml import Document, Places

FORMAT = "trnspec-edition/1"
"""The format of an edition, in its header."""

FOLDER = "editions"
"""The folder of a catalog that holds its editions."""

RELEASED = "RELEASED"
"""The file next to the editions with the SHA-256 of the text of each, before compression."""

SUFFIX = ".json.gz"
"""The suffix of the file of an edition: its text, compressed by gzip. A former ``.json`` without compression is read too."""

_MOST_BYTES = 100_000_000

_NAME = re.compile(r"[0-9]{4}\.(0[1-9]|1[0-2])(\.[0-9]{1,6})?", re.ASCII)
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)\.json")


@frozen
class Edition:
    """A verified edition.

    Attributes:
        name: Its name: ``2026.11``.
        sha256: The hash of its documents and its header.
        made_of: The number of documents of each kind.
        documents: The documents as plain data, by kind and name.
        audit: The result of ``trnspec audit --pages`` when it was frozen: the number of values and those printed at the
            named line, elsewhere on the page, and not at all; ``None`` if it was not run.
    """

    name: str
    sha256: str
    made_of: Mapping[str, int]
    documents: tuple[Mapping[str, Any], ...]
    audit: Mapping[str, int] | None = None

    __repr__ = short_repr


def named(name: str) -> str:
    """The name, if it is valid: year and month, ``2026.11``, optionally with a number, ``2026.11.2``.

    Raises:
        UsageError: It is not valid.
    """
    if not is_name(name):
        raise UsageError(f"{name!r} is not the name of an edition; write year and month, such as 2026.11 or 2026.11.1")
    return name


def is_name(text: str) -> bool:
    """True if a text is a valid name of an edition."""
    return _NAME.fullmatch(text) is not None


def freeze(graph: Graph, name: str, audit: Mapping[str, int] | None = None) -> str:
    """The text of an edition: the same for the same documents, in any order and YAML notation.

    Raises:
        UsageError: The name is not valid, or a document has errors and would be missing.
    """
    named(name)
    if graph.broken:
        broken = ", ".join(f"{n} ({file})" for n, file in sorted(graph.broken.items()))
        raise UsageError(f"an edition cannot be frozen from documents with errors: {broken}")
    nodes = sorted(graph, key=lambda n: (n.kind, n.name))
    return _text(name, [_sorted(plain(node)) for node in nodes], audit)


def part(graph: Graph) -> Graph:
    """The target documents and all documents they refer to: the content of an edition of them."""
    kept: dict[str, Node[Any]] = {}
    queue = [node for node in graph if node.target]
    while queue:
        node = queue.pop()
        if node.name not in kept:
            kept[node.name] = node
            queue += [target for _, _, ref in references(node) if (target := graph.find(ref)) is not None]
    return Graph(kept, graph.broken)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    # As ASCII: an altered text may contain characters that UTF-8 cannot encode.
    return sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def _text(name: str, documents: list[Any], audit: Mapping[str, int] | None = None) -> str:
    """The canonical text of documents whose keys are sorted."""
    made_of = dict(sorted(Counter(str(d["kind"]) for d in documents).items()))
    header: dict[str, Any] = {"format": FORMAT, "edition": name, "made_of": made_of}
    header |= {} if audit is None else {"audit": dict(sorted(audit.items()))}
    edition: dict[str, Any] = {**header, "sha256": _hash([header, documents])}
    edition["documents"] = [{"sha256": _hash(d), "document": d} for d in documents]
    return json.dumps(edition, indent=1, ensure_ascii=False) + "\n"


def verify(text: str | bytes) -> Edition:
    """The edition in a text, if no byte of it was changed.

    Raises:
        EditionError: It was altered; the message names the documents whose hashes do not match, or the other defect.
    """
    data, written = _parsed(text)
    name, documents = data["edition"], [entry["document"] for entry in data["documents"]]
    altered = [_label(e["document"]) for e in data["documents"] if e["sha256"] != _hash(e["document"])]
    if altered:
        raise EditionError(f"edition {name} was altered: hash mismatch of {', '.join(altered)}")
    header = {key: data[key] for key in data if key not in ("sha256", "documents")}
    if data["sha256"] != _hash([header, documents]):
        message = "its header, or the number or order of its documents, does not match its hash"
        raise EditionError(f"edition {name} was altered: {message}")
    canonical = _text(name, documents, data.get("audit"))
    if written != canonical:
        line = next(i for i, (a, b) in enumerate(_pairs(written, canonical), 1) if a != b)
        raise EditionError(f"edition {name} was altered: line {line} is not in canonical form")
    return Edition(name, data["sha256"], data["made_of"], tuple(documents), data.get("audit"))


def _pairs(one: str, other: str) -> Iterator[tuple[str | None, str | None]]:
    return zip_longest(one.split("\n"), other.split("\n"))


def _parsed(text: str | bytes) -> tuple[dict[str, Any], str]:
    """The data of an edition, whose structure is verified, and its text."""
    try:
        written = text.decode("utf-8") if isinstance(text, bytes) else text
        data = json.loads(written)
    except UnicodeDecodeError as error:
        raise EditionError(f"this is not an edition, or it was altered: byte {error.start} is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise EditionError(f"this is not an edition, or it was altered: {error}") from error
    format_ = data.get("format") if isinstance(data, dict) else None
    if isinstance(format_, str) and format_ != FORMAT and format_.startswith("trnspec-edition/"):
        raise EditionError(f"this edition has the format {format_}; this version of trnspec reads {FORMAT}")
    entries = data.get("documents") if isinstance(data, dict) else None
    valid = (
        isinstance(data, dict)
        and [k for k in data if k != "audit"] == ["format", "edition", "made_of", "sha256", "documents"]
        and _is_audit(data.get("audit"))
        and format_ == FORMAT
        and isinstance(data["edition"], str)
        and is_name(data["edition"])
        and isinstance(entries, list)
        and all(isinstance(e, dict) and list(e) == ["sha256", "document"] for e in entries)
        and all(isinstance(e["document"], dict) and isinstance(e["document"].get("kind"), str) for e in entries)
    )
    if not valid:
        raise EditionError("this is not an edition, or it was altered: its keys are not those of an edition")
    return data, written


def _is_audit(audit: Any) -> bool:
    """Whether the result of an audit in an edition has the numbers that :func:`freeze` writes, or there is none."""
    return audit is None or (isinstance(audit, dict) and all(type(number) is int for number in audit.values()))


def _label(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.get('kind')} {name}"


def read(text: str | bytes, registry: Registry) -> Graph:
    """The graph of an edition; the file of each document is named ``edition 2026.11: chips/trainium1``.

    Raises:
        EditionError: The edition was altered, or has kinds or fields that this installation does not know.
    """
    edition = verify(text)
    nodes: list[Node[Any]] = []
    for data in edition.documents:
        kind = registry.kinds.get(data["kind"])
        if kind is None:
            raise EditionError(
                f"edition {edition.name} has documents of the kind {data['kind']}, which is not installed"
            )
        file = f"edition {edition.name}: {kind.folder}/{_label(data).partition(' ')[2]}"
        document = upgrade(Document(file, dict(data), Places(), (), ""), kind)
        present = document.data or {}
        try:
            node: Node[Any] = structure(kind.name, kind.spec, document, present, registry.units, kind.api_versions)
            nodes.append(node if kind.name in BUILTIN else evolve(node, folder=kind.folder))
        except StructureError as error:
            raise EditionError(f"{file} cannot be read by this version of trnspec: {error}") from error
    graph, problems = build(nodes)
    if problems:
        first = problems[0]
        raise EditionError(f"{first.node.document.file}: {first.problem.message}")
    return graph


def file_of(folder: FilePath, name: str) -> FilePath:
    """The file of an edition in a folder, which need not exist."""
    former = folder / f"{name}.json"
    return former if former.is_file() else folder / f"{name}{SUFFIX}"


def names(folder: FilePath) -> tuple[str, ...]:
    """The names of the editions in a folder, oldest first; none if there is no such folder."""
    files = (f.name.removesuffix(".gz") for f in folder.iterdir()) if folder.is_dir() else ()
    stems = {f.removesuffix(".json") for f in files if f.endswith(".json")}
    return tuple(sorted(filter(is_name, stems), key=lambda n: [int(p) for p in n.split(".")]))


def _contents(folder: FilePath, name: str) -> bytes:
    """The bytes of the text of an edition.

    Raises:
        UnknownNameError: There is no such edition; the message lists the known ones.
        EditionError: Its file cannot be decompressed.
    """
    known = names(folder)
    if name not in known:
        hint = did_you_mean(name, known) or (f"known: {', '.join(known)}" if known else f"there are none in {folder}")
        raise UnknownNameError(f"there is no edition {name!r}; {hint}")
    return _text_of(file_of(folder, name))


def _text_of(file: FilePath) -> bytes:
    """The bytes of a file, decompressed if it is compressed."""
    if file.suffix != ".gz":
        return file.read_bytes()
    try:
        with gzip.open(file) as stream:
            contents = stream.read(_MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise EditionError(f"{file}: it cannot be decompressed: {error}") from error
    if len(contents) > _MOST_BYTES:
        raise EditionError(f"{file}: its text has more than {_MOST_BYTES:,} bytes")
    return contents


def checked(folder: FilePath, name: str) -> bytes:
    """The bytes of an edition in a folder, verified against its own hashes and against ``RELEASED``.

    Raises:
        UnknownNameError: There is no such edition, and none of that name was released.
        EditionError: It was altered, its file is missing, or the file contains another edition.
    """
    hashes = released(folder)
    if name in hashes and name not in names(folder):
        raise EditionError(f"edition {name} was released, but its file is missing")
    contents = _contents(folder, name)
    edition = verify(contents)
    if edition.name != name:
        raise EditionError(f"{file_of(folder, name).name} contains the edition {edition.name}")
    if name in hashes and hashes[name] != _digest(contents):
        raise EditionError(f"edition {name} is not the released one: {RELEASED} has another hash")
    return contents


def released(folder: FilePath) -> dict[str, str]:
    """The hashes of the released editions by name.

    Raises:
        EditionError: A line of the list cannot be read.
    """
    file = folder / RELEASED
    hashes: dict[str, str] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.is_file() else (), 1):
        match = _LINE.fullmatch(line)
        if match is None or not is_name(match[2]) or match[2] in hashes:
            raise EditionError(f"{file}:{number}:1: write 'HASH  NAME.json', each edition once")
        hashes[match[2]] = match[1]
    return hashes


def _digest(contents: bytes) -> str:
    return sha256(contents).hexdigest()


def write(folder: FilePath, name: str, text: str) -> FilePath:
    """Writes an edition to a folder and its hash to ``RELEASED``; writing the same edition again changes nothing.

    Raises:
        EditionError: An edition of that name exists with other contents; it is not changed.
    """
    named(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error
    with locked(folder):
        _write(folder, name, text.encode())
    return file_of(folder, name)


def _write(folder: FilePath, name: str, contents: bytes) -> None:
    """Writes an edition and its hash; no other process writes to the folder meanwhile."""
    file = file_of(folder, name)
    hashes = released(folder)
    frozen = EditionError(
        f"edition {name} is frozen with other contents; use another name, such as {_next(folder, name)}"
    )
    if hashes.get(name, _digest(contents)) != _digest(contents):
        raise frozen
    try:
        create(file, gzip.compress(contents, mtime=0))
    except FileExistsError:
        if _text_of(file) != contents:
            raise frozen from None
    if name not in hashes:
        hashes[name] = _digest(contents)
        lines = (f"{hashes[n]}  {n}.json\n" for n in sorted(hashes, key=lambda n: [int(p) for p in n.split(".")]))
        write_files({folder / RELEASED: "".join(lines).encode()})


def _next(folder: FilePath, name: str) -> str:
    taken: Iterable[str] = (*names(folder), *released(folder))
    stem = ".".join(name.split(".")[:2])
    number = 1 + max((int(n.split(".")[2]) for n in taken if n.startswith(f"{stem}.")), default=0)
    return f"{stem}.{number}"
