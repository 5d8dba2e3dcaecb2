"""Rewriting documents: their canonical layout, and files that keep their line ends and byte order mark."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath

from attrs import field, frozen

from trnspec.atomic_write import write
from trnspec.errors import UsageError
from trnspec.loading.files import documents_among
from trnspec.model.key_order import key_order
from trnspec.plugins.api import Kind
from trnspec.yaml import ReadingLimits, read_bytes, read_text
from trnspec.yaml.layout import layout

_BOM = b"\xef\xbb\xbf"


def formatted(text: str, kinds: Mapping[str, Kind]) -> str:
    """A document in its canonical layout, with the keys in the order of the classes of its kind.

    Args:
        text: The document.
        kinds: The kinds by name; a document of none of them keeps the order of the keys of its spec.

    Raises:
        LayoutError: The text has syntax errors, or a construct that cannot be laid out.
    """
    kind = (read_text(text).data or {}).get("kind")
    known = kinds.get(kind) if isinstance(kind, str) else None
    return layout(text, key_order(known.spec if known is not None else None))


@frozen
class TextFile:
    """A text file and the way it is stored.

    Attributes:
        file: The file, as it was named.
        text: Its text without byte order mark, with its line ends.
        mark: Whether it begins with a byte order mark.
    """

    file: FilePath
    text: str = field(repr=False)
    mark: bool = False

    @property
    def line_end(self) -> str:
        """The line end that most lines have."""
        pairs = self.text.count("\r\n")
        counts = {"\n": self.text.count("\n") - pairs, "\r\n": pairs, "\r": self.text.count("\r") - pairs}
        return max(counts, key=lambda end: counts[end])

    def contents(self, text: str) -> bytes:
        """The bytes of the file with another text."""
        return _BOM * self.mark + text.encode("utf-8")

    def with_line_ends(self, text: str) -> str:
        """A text of lines that end with a line feed, with the line ends of the file."""
        return text.replace("\n", self.line_end)

    def diff(self, text: str) -> str:
        """A unified diff from the file to another text; empty if they are equal."""

        def lines(of: str) -> list[str]:
            # Not splitlines, which also splits at form feeds.
            return re.findall(r"[^\n]*\n|[^\n]+", of)

        before, after = (str(self.file) if each else "/dev/null" for each in (self.text, text))
        pieces = difflib.unified_diff(lines(self.text), lines(text), before, after)
        return "".join(p if p.endswith("\n") else f"{p}\n\\ No newline at end of file\n" for p in pieces)


def read_as_text(file: FilePath) -> TextFile:
    """A file as text.

    Raises:
        UsageError: It cannot be read, is larger than a document may be, or is not UTF-8.
    """
    try:
        raw = read_bytes(file, ReadingLimits().bytes + 1)
        text = raw.removeprefix(_BOM).decode("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    if len(raw) > ReadingLimits().bytes:
        raise UsageError(f"{file}: it has more than {ReadingLimits().bytes:,} bytes")
    return TextFile(file, text, raw.startswith(_BOM))


def write_texts(texts: Iterable[tuple[TextFile, str]]) -> None:
    """Replace the texts of some files, all of them or none; a link keeps its target, a file its permissions.

    Raises:
        OSError: One of them cannot be written.
    """
    write({FilePath(os.path.realpath(old.file)): old.contents(text) for old, text in texts})


def documents_of(paths: Iterable[str], kinds: Mapping[str, Kind], catalogs: Iterable[FilePath]) -> list[TextFile]:
    """The documents that some paths name; files of other programs are skipped, also named ones.

    Raises:
        UsageError: A path does not exist or cannot be read.
    """
    files: dict[str, TextFile] = {}
    for file in documents_among(paths, kinds, catalogs):
        files.setdefault(os.path.realpath(file), read_as_text(file))
    return list(files.values())
