"""The result of reading a file (data, positions, problems), and the limits of the reader."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias

from attrs import field, frozen

Path: TypeAlias = tuple[str | int, ...]
"""The path from the root to a value: keys and, in sequences, indices from 0."""

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""The data model of JSON."""


Position: TypeAlias = tuple[int, int]
"""Line and column from 1: as plain numbers a table of them is made in a fraction of the time."""


@frozen(order=True)
class Place:
    """A position in a text.

    Attributes:
        line: From 1; a line ends with LF, CR LF or CR.
        column: From 1, in characters (code points), without a byte order mark at the start of the file.
    """

    line: int
    column: int


@frozen
class Span:
    """The position of a value.

    Attributes:
        key: The beginning of its key; ``None`` for the root and for items of a sequence.
        value: The beginning of the value, or of its anchor or tag.
        end: The position after the value.
    """

    key: Place | None
    value: Place
    end: Place


class Places(Mapping[Path, Span]):
    """The position of each value of a document by its path.

    Positions are kept as plain numbers, in a fraction of the time of objects: line and column of the key if there is one, of
    the value, and of the position after it.
    """

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: dict[Path, tuple[Position | None, Position, Position]] = {}

    def add(self, path: Path, key: Position | None, start: Position, end: Position) -> None:
        """Add the three positions of a value."""
        self._numbers[path] = key, start, end

    def renamed(self, pairs: Iterable[tuple[Path, Path]]) -> Places:
        """The positions of values at other paths: pairs of a new path and the present one; of equal new paths the first."""
        places = Places()
        for new, path in pairs:
            places._numbers.setdefault(new, self._numbers[path])
        return places

    def __getitem__(self, path: Path) -> Span:
        key, value, end = self._numbers[path]
        return Span(Place(*key) if key else None, Place(*value), Place(*end))

    def __iter__(self) -> Iterator[Path]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


@frozen
class Edit:
    """A replacement of a part of a text.

    Attributes:
        start: Where the part begins.
        end: The position after it.
        text: The text to put there.
    """

    start: Place
    end: Place
    text: str


@frozen
class Problem:
    """An error or a doubtful construct in a file; its code determines the severity.

    Attributes:
        code: For instance ``TRN005``.
        message: One sentence that shows the text in question.
        place: The position, or ``None`` for the file as a whole.
        hint: The text to write instead, or an empty text.
        path: The path in the document.
        see: A related position, such as the first of two equal keys.
        edit: A correction that is safe to apply, if there is one.
    """

    code: str
    message: str
    place: Place | None
    hint: str = ""
    path: Path = ()
    see: Place | None = None
    edit: Edit | None = None


@frozen
class ReadingLimits:
    """Limits that bound the time and memory of reading a file.

    Attributes:
        bytes: Size of the file; a typical document has about 10,000.
        depth: Nesting of mappings and sequences; the root has depth 1.
        nodes: Number of keys, values and collections.
        scalar: Length of one key or value in characters.
        problems: The most problems of one code that are listed; a last problem counts the others.
    """

    bytes: int = 1_000_000
    depth: int = 64
    nodes: int = 100_000
    scalar: int = 65_536
    problems: int = 100


@frozen
class Document:
    """The content of a file.

    Attributes:
        file: The file as it was named.
        data: Plain data, or ``None`` if the file is unusable.
        places: The position of each value, rejected ones included.
        problems: In reading order.
        text: The text of the file without byte order mark; bytes that are not UTF-8 are replaced by U+FFFD.
        rejected: Paths of values that were reported and left out of ``data`` (an item of a sequence becomes ``None``, so
            that the others keep their indices). Later stages do not report them as missing. A merge key gives a path
            that ends in ``<<``: any key of that mapping may be missing for this reason.
    """

    file: str
    data: dict[str, Json] | None
    places: Places
    problems: tuple[Problem, ...]
    text: str
    rejected: frozenset[Path] = field(default=frozenset())

    @cached_property
    def lines(self) -> LineTable:
        """The lines of the text, which convert positions and offsets."""
        return LineTable(self.text)

    def rejects(self, path: Path) -> bool:
        """Whether the value at a path is missing because it, or a mapping that it is in, was reported."""
        return any(path[:length] in self.rejected for length in range(len(path) + 1))

    def damages(self, path: Path) -> bool:
        """Whether the value at a path, or a part of it, was reported, so that it may lack anything."""
        return self.rejects(path) or any(rejected[: len(path)] == path for rejected in self.rejected)

    def extent(self, path: Path) -> tuple[int, int, int]:
        """The offsets of a key or an item, of its value, and of the end of the value."""
        span, offset = self.places[path], self.lines.offset
        return offset(span.key or span.value), offset(span.value), offset(span.end)

    def edit(self, start: int, end: int, text: str) -> Edit:
        """The edit that replaces the text between two offsets."""
        return Edit(self.lines.place(start), self.lines.place(end), text)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """The beginning of the value at ``path``, or with ``key`` of its key.

        For a path that is not in the file, such as a missing key, the beginning of the key of its nearest ancestor in
        the file, and for the root the beginning of the root.
        """
        places = self.places
        for length in range(len(path), -1, -1):
            span = places.get(path[:length])
            if span is not None:
                return span.key if span.key is not None and (key or length < len(path)) else span.value
        return Place(1, 1)


_BREAK = re.compile(r"\r\n|\n|\r")


class LineTable:
    """Converts offsets of a text to positions; the table is built on first use."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] = []

    def place(self, offset: int) -> Place:
        """The position of the character at ``offset``, which may be the end of the text."""
        if not self._starts:
            self._starts = [0, *(m.end() for m in _BREAK.finditer(self.text))]
        offset = min(max(offset, 0), len(self.text))
        line = bisect.bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)

    def offset(self, place: Place) -> int:
        """The offset of a position."""
        self.place(0)
        return self._starts[place.line - 1] + place.column - 1


class Problems:
    """Collects problems: keeps the first ``most`` of each code and counts the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[Problem] = []
        self._count: Counter[str] = Counter()
        self._first_omitted: dict[str, Place | None] = {}

    def add(
        self,
        code: str,
        message: str,
        place: Place | None,
        hint: str = "",
        path: Path = (),
        see: Place | None = None,
    ) -> None:
        """Adds one problem."""
        self._count[code] += 1
        if self._count[code] <= self._most:
            self._kept.append(Problem(code, message, place, hint, path, see))
        else:
            self._first_omitted.setdefault(code, place)

    def __bool__(self) -> bool:
        return bool(self._kept)

    def __contains__(self, code: str) -> bool:
        return code in self._count

    def sorted(self) -> tuple[Problem, ...]:
        """All problems in reading order; those of the file as a whole come first."""
        rest = [
            Problem(code, f"{self._count[code] - self._most:,} more problems of this kind follow from here.", place)
            for code, place in self._first_omitted.items()
        ]
        return tuple(sorted([*self._kept, *rest], key=lambda p: p.place or Place(0, 0)))


_SHOWN = 40


def shorten(text: str) -> str:
    """``text`` cut to at most 40 characters."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def show(text: str) -> str:
    """``text`` in quotes for a message: at most about 40 characters, nothing invisible, one line."""
    return repr(shorten(text))
