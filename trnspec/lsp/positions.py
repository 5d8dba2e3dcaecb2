"""Positions: those of the protocol, those of the YAML reader, and the path of the value at a position.

A line of the protocol ends where a line of the reader ends. Its columns count units of an encoding, usually UTF-16, those
of the reader count characters.
"""

from __future__ import annotations

import re

from attrs import frozen
from lsprotocol import types

from trnspec.diagnostics import Location
from trnspec.yaml import Document, Path, Place

_BREAK = re.compile(r"\r\n|\n|\r")


@frozen
class TextLines:
    """The lines of a text, without their ends.

    Attributes:
        texts: The lines.
        encoding: The units of columns in the protocol: ``utf-8``, ``utf-16`` or ``utf-32``.
    """

    texts: list[str]
    encoding: str = "utf-16"

    @classmethod
    def of(cls, text: str, encoding: str = "utf-16") -> TextLines:
        """The lines of a text."""
        return cls(_BREAK.split(text), encoding)

    def __getitem__(self, line: int) -> str:
        """A line, counted from 1; an empty one after the end."""
        return self.texts[line - 1] if line <= len(self.texts) else ""

    def units(self, text: str) -> int:
        """The length of a text in the units of the protocol."""
        if text.isascii() or self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def place(self, position: types.Position) -> Place:
        """The position of the reader; a position after the end of a line is its end."""
        if position.line >= len(self.texts):
            return Place(len(self.texts), len(self.texts[-1]) + 1)
        line = self.texts[position.line]
        if line.isascii():
            return Place(position.line + 1, min(position.character, len(line)) + 1)
        column, left = 0, position.character
        while column < len(line) and left > 0:
            left -= self.units(line[column])
            column += 1
        return Place(position.line + 1, column + 1)

    def position(self, place: Place) -> types.Position:
        """The position of the protocol."""
        return types.Position(place.line - 1, self.units(self[place.line][: place.column - 1]))

    def range(self, begin: Place, end: Place) -> types.Range:
        """The range between two positions of the reader."""
        return types.Range(self.position(begin), self.position(end))

    def range_at(self, where: Location) -> types.Range:
        """The range of a location: its text if it is on that line, otherwise the rest of the line."""
        place = where.place or Place(1, 1)
        rest = self[place.line][place.column - 1 :]
        length = len(where.text) if where.text and rest.startswith(where.text) else max(len(rest.rstrip()), 1)
        return self.range(place, Place(place.line, place.column + length))


@frozen
class Spot:
    """Element at a position of a document.

    Attributes:
        path: The path of the innermost value.
        key: Whether the position is in the key of that value.
    """

    path: Path
    key: bool


def spot_at(document: Document, place: Place) -> Spot | None:
    """The innermost value at a position; ``None`` outside the document."""
    containing = [(p, s) for p, s in document.places.items() if (s.key or s.value) <= place <= s.end]
    if not containing:
        return None
    path, span = max(containing, key=lambda each: len(each[0]))
    return Spot(path, span.key is not None and place < span.value)
