"""Editions: one canonical, sorted, hashed text for a whole catalog, that nobody changes unnoticed.

The same documents always give the same bytes.  A hash stands beside every document, so that a damaged edition says which
document was touched, and one over all of them together with the header.  Since anybody can compute hashes anew, the
hash of the whole file also stands in ``RELEASED`` beside the editions, which is reviewed like code.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import EditionError, UnknownNameError, UsageError
from trnspec.graph.graph import Graph, build, references
from trnspec.loading.renamed import upgrade
from trnspec.loading.structure import StructureError, plain, structure
from trnspec.model.kinds import BUILTIN
from trnspec.short_repr import short_repr
from trnspec.yaml import Document

if TYPE_CHECKING:
    from trnspec.model.document import Node
    from trnspec.plugins.api import Registry

FORMAT = "trnspec-edition/1"
"""What the first line of an edition says."""

FOLDER = "editions"
"""The folder of a catalog that holds its editions."""

RELEASED = "RELEASED"
"""The file beside the editions with the hash of each, in the form that ``sha256sum -c`` reads."""

_NAME = re.compile(r"[0-9]{4}\.[0-9]{2}(\.[0-9]+)?", re.ASCII)
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)\.json")


@frozen
class Edition:
    """A sound edition.

    Attributes:
        name: What it is called: ``2026.11``.
        sha256: The hash over its documents and its header.
        made_of: How many documents of each kind it has.
        documents: The documents as plain data, by kind and name.
    """

    name: str
    sha256: str
    made_of: Mapping[str, int]
    documents: tuple[Mapping[str, Any], ...]

    __repr__ = short_repr


def named(name: str) -> str:
    """The name, when an edition may have it: a year and a month, ``2026.11``, perhaps with a number, ``2026.11.2``.

    Raises:
        UsageError: It may not.
    """
    if not is_name(name):
        raise UsageError(f"{name!r} is not the name of an edition; write year and month, such as 2026.11 or 2026.11.1")
    return name


def is_name(text: str) -> bool:
    """True for a text that may be the name of an edition."""
    return _NAME.fullmatch(text) is not None


def freeze(graph: Graph, name: str) -> str:
    """The text of an edition: the same for the same documents, in whatever order and notation they come.

    Raises:
        UsageError: An edition cannot be called so, or a document could not be read and would be missing.
    """
    named(name)
    if graph.broken:
        told = ", ".join(f"{n} ({file})" for n, file in sorted(graph.broken.items()))
        raise UsageError(f"an edition is frozen from sound documents; these have errors: {told}")
    nodes = sorted(graph, key=lambda n: (n.kind, n.name))
    return _text(name, [_sorted(plain(node)) for node in nodes])


def part(graph: Graph) -> Graph:
    """The documents that were asked for, and all that they refer to: what an edition of them must hold."""
    kept: dict[str, Node[Any]] = {}
    waiting = [node for node in graph if node.target]
    while waiting:
        node = waiting.pop()
        if node.name not in kept:
            kept[node.name] = node
            waiting += [found for _, _, ref in references(node) if (found := graph.find(ref)) is not None]
    return Graph(kept, graph.broken)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    from hashlib import sha256

    # In ASCII, since an altered text may hold what UTF-8 cannot.
    return sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def _text(name: str, documents: list[Any]) -> str:
    """The canonical text of some documents, which are sorted already."""
    made_of = dict(sorted(Counter(str(d["kind"]) for d in documents).items()))
    header = {"format": FORMAT, "edition": name, "made_of": made_of}
    whole: dict[str, Any] = {**header, "sha256": _hash([header, documents])}
    whole["documents"] = [{"sha256": _hash(d), "document": d} for d in documents]
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def verify(text: str | bytes) -> Edition:
    """The edition in a text, when not one byte of it was changed.

    Raises:
        EditionError: It was altered; the message names the documents that no longer match, or what else is wrong.
    """
    whole, written = _parsed(text)
    name, documents = whole["edition"], [entry["document"] for entry in whole["documents"]]
    wrong = [_called(e["document"]) for e in whole["documents"] if e["sha256"] != _hash(e["document"])]
    if wrong:
        hashes = "the hashes do" if len(wrong) > 1 else "the hash does"
        raise EditionError(f"edition {name} was altered: {hashes} not match of {', '.join(wrong)}")
    header = {"format": whole["format"], "edition": name, "made_of": whole["made_of"]}
    if whole["sha256"] != _hash([header, documents]):
        message = "its header, or the number or order of its documents, does not match its hash"
        raise EditionError(f"edition {name} was altered: {message}")
    canonical = _text(name, documents)
    if written != canonical:
        line = next(i for i, (a, b) in enumerate(_pairs(written, canonical), 1) if a != b)
        raise EditionError(f"edition {name} was altered: line {line} is not written as trnspec writes it")
    return Edition(name, whole["sha256"], whole["made_of"], tuple(documents))


def _pairs(one: str, other: str) -> Iterator[tuple[str | None, str | None]]:
    from itertools import zip_longest

    return zip_longest(one.split("\n"), other.split("\n"))


def _parsed(text: str | bytes) -> tuple[dict[str, Any], str]:
    """The data of an edition, of whose form one can be sure, and its text."""
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
    sound = (
        isinstance(data, dict)
        and list(data) == ["format", "edition", "made_of", "sha256", "documents"]
        and format_ == FORMAT
        and isinstance(data["edition"], str)
        and is_name(data["edition"])
        and isinstance(entries, list)
        and all(isinstance(e, dict) and list(e) == ["sha256", "document"] for e in entries)
        and all(isinstance(e["document"], dict) and isinstance(e["document"].get("kind"), str) for e in entries)
    )
    if not sound:
        raise EditionError("this is not an edition, or it was altered: its form is not that of one")
    return data, written


def _called(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.get('kind')} {name}"


def read(text: str | bytes, registry: Registry) -> Graph:
    """The graph of an edition; the file of each document is called ``edition 2026.11: chips/trainium1``.

    Raises:
        EditionError: The edition was altered, or holds what this installation does not know.
    """
    edition = verify(text)
    nodes: list[Node[Any]] = []
    for data in edition.documents:
        kind = registry.kinds.get(data["kind"])
        if kind is None:
            raise EditionError(
                f"edition {edition.name} has documents of the kind {data['kind']}, which is not installed"
            )
        file = f"edition {edition.name}: {kind.folder}/{_called(data).partition(' ')[2]}"
        document = upgrade(Document(file, dict(data), {}, (), ""), kind.spec)
        try:
            made: Node[Any] = structure(kind.name, kind.spec, document, document.data or {}, registry.units)
            nodes.append(made if kind.name in BUILTIN else evolve(made, folder=kind.folder))
        except StructureError as error:
            raise EditionError(f"{file} cannot be read by this version of trnspec: {error}") from error
    graph, problems = build(nodes)
    if problems:
        first = problems[0]
        raise EditionError(f"{first.node.document.file}: {first.problem.message}")
    return graph


def names(folder: FilePath) -> tuple[str, ...]:
    """The names of the editions in a folder, oldest first; none where there is no such folder."""
    found = [f.name.removesuffix(".json") for f in folder.glob("*.json")] if folder.is_dir() else []
    return tuple(sorted((n for n in found if is_name(n)), key=lambda n: [int(p) for p in n.split(".")]))


def _contents(folder: FilePath, name: str) -> bytes:
    """The bytes of an edition.

    Raises:
        UnknownNameError: There is no such edition; the message lists those that there are.
        EditionError: The file holds an edition of another name, or is not the one that was released.
    """
    known = names(folder)
    if name not in known:
        hint = did_you_mean(name, known) or (f"known: {', '.join(known)}" if known else f"there are none in {folder}")
        raise UnknownNameError(f"there is no edition {name!r}; {hint}")
    return (folder / f"{name}.json").read_bytes()


def checked(folder: FilePath, name: str) -> bytes:
    """The bytes of the edition of that name in a folder, verified against its own hashes and against ``RELEASED``.

    Raises:
        UnknownNameError: There is none, and none was released.
        EditionError: It was altered, is missing, or holds another edition.
    """
    released_ = released(folder)
    if name in released_ and name not in names(folder):
        raise EditionError(f"edition {name} was released, and its file is missing")
    found = _contents(folder, name)
    edition = verify(found)
    if edition.name != name:
        raise EditionError(f"{name}.json holds the edition {edition.name}")
    if name in released_ and released_[name] != _digest(found):
        raise EditionError(f"edition {name} is not the one that was released: {RELEASED} has another hash")
    return found


def released(folder: FilePath) -> dict[str, str]:
    """The hashes of the released editions by name.

    Raises:
        EditionError: A line of the list cannot be read.
    """
    file = folder / RELEASED
    found: dict[str, str] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.is_file() else (), 1):
        match = _LINE.fullmatch(line)
        if match is None or not is_name(match[2]) or match[2] in found:
            raise EditionError(f"{file}:{number}:1: write 'HASH  NAME.json', each edition once")
        found[match[2]] = match[1]
    return found


def _digest(contents: bytes) -> str:
    from hashlib import sha256

    return sha256(contents).hexdigest()


def write(folder: FilePath, name: str, text: str) -> FilePath:
    """Put an edition into a folder and its hash into ``RELEASED``; the same edition once more changes nothing.

    Raises:
        EditionError: An edition of that name was frozen with other contents; it stays as it is.
    """
    named(name)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    made = text.encode()
    before = file.read_bytes() if file.exists() else None
    list_ = released(folder)
    if (before is not None and before != made) or list_.get(name, _digest(made)) != _digest(made):
        raise EditionError(
            f"edition {name} is frozen, with other contents; take another name, such as {_next(folder, name)}"
        )
    if before is None:
        _write(file, made)
    if name not in list_:
        list_[name] = _digest(made)
        lines = (f"{list_[n]}  {n}.json\n" for n in sorted(list_, key=lambda n: [int(p) for p in n.split(".")]))
        _write(folder / RELEASED, "".join(lines).encode())
    return file


def _next(folder: FilePath, name: str) -> str:
    taken: Iterable[str] = (*names(folder), *released(folder))
    stem = ".".join(name.split(".")[:2])
    number = 1 + max((int(n.split(".")[2]) for n in taken if n.startswith(f"{stem}.")), default=0)
    return f"{stem}.{number}"


def _write(file: FilePath, contents: bytes) -> None:
    """All of it or nothing: a temporary file in the same folder, on the disk before it takes the name."""
    import tempfile

    number, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(contents)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes files for one person alone; these are for everybody.
        FilePath(temporary).chmod(0o644)
        FilePath(temporary).replace(file)
    except BaseException:
        FilePath(temporary).unlink(missing_ok=True)
        raise
