"""What reading a file yields: data, places, problems; and the budgets that reading keeps."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

Path: TypeAlias = tuple[str | int, ...]
"""From the root to a value: keys and, within sequences, indexes from 0."""

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""The data model of JSON."""


@frozen(order=True)
class Place:
    """A place in a text.

    Attributes:
        line: From 1; a line ends with LF, CR LF or CR.
        column: From 1, in characters (code points); a byte order mark at the start of the file is not counted.
    """

    line: int
    column: int


@frozen
class Span:
    """Where a value stands.

    Attributes:
        key: Where its key begins; ``None`` for the root and for items of a sequence.
        value: Where the value begins (its anchor or tag, when it has one).
        end: Just after the value.
    """

    key: Place | None
    value: Place
    end: Place


@frozen
class Problem:
    """A mistake, or something doubtful, in a file; how severe it is, is decided elsewhere.

    Attributes:
        code: For instance ``TRN005``.
        message: One sentence that names what stands there.
        place: Where, or ``None`` when it concerns the file as a whole.
        hint: What to write instead, or an empty text.
        path: Where in the document.
        see: The other place that belongs to it, such as the first of two equal keys.
    """

    code: str
    message: str
    place: Place | None
    hint: str = ""
    path: Path = ()
    see: Place | None = None


@frozen
class Limits:
    """Budgets, so that no file costs more than a moment.

    Attributes:
        bytes: Size of the file; a page of specifications has about 10,000.
        depth: Nesting of mappings and sequences; the root has depth 1.
        nodes: Number of keys, values and collections.
        scalar: Length of one key or value in characters.
        problems: How many problems of one code are listed; the rest are counted in one last problem.
    """

    bytes: int = 1_000_000
    depth: int = 64
    nodes: int = 100_000
    scalar: int = 65_536
    problems: int = 100


@frozen
class Document:
    """A file as it was read.

    Attributes:
        file: The file as it was named.
        data: Plain data, or ``None`` when nothing sound can be said of the file.
        places: Where each value stands, also those that were refused.
        problems: In reading order.
        text: The file's text without byte order mark; bytes that are not UTF-8 stand as U+FFFD.
        refused: Paths of values that were reported and left out of ``data`` (an item of a sequence stands there as
            ``None``, so that the others keep their indexes).  Later stages do not call them missing.  A merge key
            gives the path ending in ``<<``: then any key of that mapping may be missing for that reason.
    """

    file: str
    data: dict[str, Json] | None
    places: Mapping[Path, Span]
    problems: tuple[Problem, ...]
    text: str
    refused: frozenset[Path] = field(default=frozenset())

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where the value at ``path`` (with ``key``: its key) begins.

        For a path that is not in the file, such as a missing key, it is the key of its nearest ancestor that is,
        which is what the reader has to extend; for the root it is where the root begins.
        """
        for length in range(len(path), -1, -1):
            span = self.places.get(path[:length])
            if span is not None:
                return span.key if span.key is not None and (key or length < len(path)) else span.value
        return Place(1, 1)


_BREAK = re.compile(r"\r\n|\n|\r")


class Lines:
    """Offsets of a text as places; the table is made on first use."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] = []

    def place(self, offset: int) -> Place:
        """The place of the character at ``offset``, which may be the end of the text."""
        if not self._starts:
            self._starts = [0, *(m.end() for m in _BREAK.finditer(self.text))]
        offset = min(max(offset, 0), len(self.text))
        line = bisect.bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


class Problems:
    """Collects problems; of each code it keeps the first ``most`` and counts the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[Problem] = []
        self._count: Counter[str] = Counter()
        self._first_left_out: dict[str, Place | None] = {}

    def add(
        self,
        code: str,
        message: str,
        place: Place | None,
        hint: str = "",
        path: Path = (),
        see: Place | None = None,
    ) -> None:
        """Notes one problem."""
        self._count[code] += 1
        if self._count[code] <= self._most:
            self._kept.append(Problem(code, message, place, hint, path, see))
        else:
            self._first_left_out.setdefault(code, place)

    def __contains__(self, code: str) -> bool:
        return code in self._count

    def sorted(self) -> tuple[Problem, ...]:
        """All of them in reading order; those of the file as a whole come first."""
        rest = [
            Problem(code, f"{self._count[code] - self._most:,} more of the same kind follow from here on.", place)
            for code, place in self._first_left_out.items()
        ]
        return tuple(sorted([*self._kept, *rest], key=lambda p: p.place or Place(0, 0)))


_SHOWN = 40


def shorten(text: str) -> str:
    """``text`` cut to at most 40 characters."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def show(text: str) -> str:
    """``text`` in quotes for a message: at most about 40 characters, nothing invisible, one line."""
    return repr(shorten(text))
