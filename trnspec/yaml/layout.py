"""The canonical layout of a document: order of keys, indentation and spacing. Comments and values keep their text.

The parser gives the position of every scalar; what lies between two of them is punctuation, space and comments. From
both, a tree is built and printed again. Before the result is used, it is read: the data are the same, and every comment is
there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from attrs import define, field

from trnspec.yaml.document import Path
from trnspec.yaml.reader import libyaml_parser, read_text

Order: TypeAlias = Callable[[Path, Sequence[str]], Sequence[int]]
"""The ranks of the keys of the mapping at a path; keys of equal rank keep their order."""


class LayoutError(ValueError):
    """A document that cannot be laid out without changing its content."""


@define
class _Scalar:
    """A key or value; ``raw`` is its text with quotes, empty for a missing value."""

    start: int
    end: int
    raw: str
    value: str
    style: str


@define
class _LayoutEntry:
    """A key with its value, or an item; ``lead`` are the comments and blank lines above it."""

    lead: list[str]
    key: _Scalar | None
    value: _Node
    comment: str = ""


@define
class _Collection:
    """A mapping or sequence; ``tail`` are the comments below its last entry."""

    path: Path
    start: int
    end: int
    column: int
    mapping: bool
    flow: bool
    entries: list[_LayoutEntry] = field(factory=list)
    tail: list[str] = field(factory=list)


_Node: TypeAlias = "_Scalar | _Collection"

_INDENT = 2
_UNREADABLE = "TRN050"
"""Codes below this one are errors of the text or of its syntax; those from here on are doubts."""
_COMMENT = re.compile(r"(?:(?<=[\s,\[\]{}:-])|\A)#[^\n]*")
_BLANK = "\0"
"""A blank line that is part of a value, while lines are collected; a document cannot hold the character."""
_MARKER = re.compile(r"(?:---|\.\.\.)[ \t]*(?:#.*)?")


def layout(text: str, order: Order) -> str:
    """``text`` in the canonical layout, with line feeds; laying it out again gives the same text.

    Raises:
        LayoutError: The text has syntax errors, or a construct that is not laid out.
    """
    text = _line_feeds(text)
    document = read_text(text)
    problem = next((p for p in document.problems if p.code < _UNREADABLE), None)
    if problem is not None or document.data is None:
        raise LayoutError(problem.message.rstrip(".") if problem is not None else "it contains no mapping")
    tree = _Tree(text)
    printed = _print(tree, order)
    if read_text(printed).data != document.data or Counter(_Tree(printed).comments) != Counter(tree.comments):
        raise LayoutError("it has a construct that cannot be laid out without changing its content")
    return printed


def _line_feeds(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def comments(text: str) -> list[str]:
    """The comments of a text without syntax errors, in their order."""
    return _Tree(_line_feeds(text)).comments


def _events(text: str) -> list[Any]:
    from ruamel.yaml.error import MarkedYAMLError

    try:
        parser, stand_in = libyaml_parser(text)
        events = list(iter(parser.get_event, None))
    except MarkedYAMLError as error:
        # The reader stops after the first document.
        raise LayoutError("there is text after the end of the document") from error
    for event in events:
        if stand_in and stand_in in (getattr(event, "value", None) or ""):
            event.value = event.value.replace(stand_in, ":")
    return events


def _keeps(header: str) -> bool:
    """Whether a block scalar keeps the blank lines at its end."""
    return "+" in header.partition("#")[0]


def _is_empty(event: Any) -> bool:
    """Whether an event is a missing value."""
    return type(event).__name__ == "ScalarEvent" and event.start_mark.index == event.end_mark.index


class _Tree:
    """The tree of a text.

    Attributes:
        text: The text.
        root: Its root.
        head: The lines above the root.
        comments: All comments.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        events = _events(text)
        self._events = [e for e in events if not type(e).__name__.startswith(("Stream", "Document"))]
        self._next = 0
        self._at = 0
        self.comments: list[str] = []
        self._find_comments()
        start = self._events[0].start_mark.index
        above = text[:start]
        self.head = [line.rstrip() for line in above.split("\n")[:-1]]
        if above.rpartition("\n")[2].strip() or not all(self._is_outside(line) for line in self.head):
            raise LayoutError("its first line has more than a comment or '---' before the first key")
        self._at = start
        root = self._node((), -1)
        if isinstance(root, _Scalar):
            raise LayoutError("it contains no mapping")
        self.root = root
        self.root.tail += self._lines(len(text))

    @staticmethod
    def _is_outside(line: str) -> bool:
        return not line.strip() or line.lstrip().startswith("#") or _MARKER.fullmatch(line) is not None

    def _find_comments(self) -> None:
        at = 0
        for event in [*self._events, None]:
            if event is not None and type(event).__name__ != "ScalarEvent":
                continue
            start = len(self.text) if event is None else event.start_mark.index
            self.comments += (m.group().rstrip() for m in _COMMENT.finditer(self.text, at, start))
            if event is not None:
                end = self._end(event)
                header = self.text[event.start_mark.index : end].partition("\n")[0] if event.style in ("|", ">") else ""
                self.comments += (m.group().rstrip() for m in _COMMENT.finditer(header))
                at = max(at, end)

    def _end(self, event: Any) -> int:
        """The end of a scalar; that of a block scalar is the end of its last line."""
        end: int = event.end_mark.index
        if event.style in ("|", ">"):
            raw = self.text[event.start_mark.index : end]
            lines, _, rest = raw.rpartition("\n")
            if not rest.strip(" "):  # the indentation of the line that follows
                raw = lines if _keeps(raw.partition("\n")[0]) else lines.rstrip("\n")
            end = event.start_mark.index + len(raw)
        return end

    def _peek(self) -> Any:
        return self._events[self._next]

    def _take(self) -> Any:
        self._next += 1
        return self._events[self._next - 1]

    def _upcoming(self) -> int:
        """Position of the next scalar or collection."""
        for number in range(self._next, len(self._events)):
            event = self._events[number]
            if not type(event).__name__.endswith("EndEvent") and not _is_empty(event):
                return int(event.start_mark.index)
        return len(self.text)

    def _lines(self, end: int, column: int = 0) -> list[str]:
        """The comments and blank lines up to an offset, as far as they begin at or right of a column; moves on."""
        lines: list[str] = []
        at = first = self._at
        taken = 0
        while at < end:
            stop = self.text.find("\n", at, end)
            line = self.text[at : end if stop < 0 else stop]
            begin = self.text.rfind("\n", 0, at) + 1
            match = _COMMENT.search(self.text, at, at + len(line))
            if match is not None:
                if match.start() - begin < column or (column and at > first and self.text[at : match.start()].strip()):
                    break  # of what is further out, or of an item without a value
                lines.append(match.group().rstrip())
                taken = len(lines)
                self._at = at + len(line)
            elif not line.strip() and at > first and stop >= 0:
                lines.append("")
            elif line.strip() and column and at > first:
                break  # punctuation
            at += len(line) + 1
        if column:
            return lines[:taken]
        self._at = end
        return lines

    def _comment(self) -> str:
        """The comment at the end of the present line; moves on."""
        stop = self.text.find("\n", self._at)
        stop = len(self.text) if stop < 0 else stop
        match = _COMMENT.search(self.text, self._at, min(stop, max(self._upcoming(), self._at)))
        if match is None:
            return ""
        self._at = stop
        return match.group().rstrip()

    def _node(self, path: Path, column: int) -> _Node:
        return self._scalar() if type(self._peek()).__name__ == "ScalarEvent" else self._collection(path, column)

    def _scalar(self) -> _Scalar:
        event = self._take()
        if _is_empty(event):
            return _Scalar(self._at, self._at, "", "", "")
        start, end = event.start_mark.index, self._end(event)
        self._at = end
        return _Scalar(start, end, self.text[start:end], event.value, event.style or "")

    def _collection(self, path: Path, column: int) -> _Collection:
        event = self._take()
        mark = event.start_mark
        mapping = type(event).__name__.startswith("Mapping")
        node = _Collection(path, mark.index, 0, mark.column, mapping, bool(event.flow_style))
        while not type(self._peek()).__name__.endswith("EndEvent"):
            # An item without a value has the position after its dash.
            start = self._peek().start_mark.index if not mapping and _is_empty(self._peek()) else self._upcoming()
            lead = [] if node.flow else self._lines(start)
            key = self._scalar() if mapping else None
            step = len(node.entries) if key is None else key.value
            if node.flow:
                entry = _LayoutEntry(lead, key, self._node((*path, step), node.column))
            else:
                entry = self._block_entry((*path, step), lead, key, node.column)
            node.entries.append(entry)
        end = self._take()
        if node.flow:
            node.end = self._at = end.end_mark.index
        else:
            node.end = self._at
            node.tail = self._lines(self._upcoming(), max(node.column + (not mapping and node.column == column), 1))
        return node

    def _block_entry(self, path: Path, lead: list[str], key: _Scalar | None, column: int) -> _LayoutEntry:
        comment = self._comment()
        event = self._peek()
        block = type(event).__name__.startswith(("Mapping", "Sequence")) and not event.flow_style
        if block or _is_empty(event):
            return _LayoutEntry(lead, key, self._node(path, column), comment)
        # A comment between a key and its value moves above the key.
        lead += [comment] * bool(comment) + [c for c in self._lines(self._upcoming()) if c]
        value = self._node(path, column)
        return _LayoutEntry(lead, key, value, self._comment())


def _print(tree: _Tree, order: Order) -> str:
    printer = _Printer(tree.text, order)
    head = _collapsed(tree.head)
    root = tree.root
    lines = [printer.flow(root, 0)] if root.flow else printer.block(root, 0, blank=bool(head and head[-1]))
    if root.flow:
        lines += root.tail
    return "\n".join(_stripped([*head, *lines])).replace(_BLANK, "") + "\n"


def _collapsed(lines: Sequence[str]) -> list[str]:
    """Lines with at most one blank line in a row, and none at the top."""
    return [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]


def _stripped(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines


class _Printer:
    def __init__(self, text: str, order: Order) -> None:
        self._text, self._order = text, order

    def _sorted(self, node: _Collection) -> list[_LayoutEntry]:
        if not node.mapping or len(node.entries) < 2:
            return node.entries
        ranks = self._order(node.path, [e.key.value for e in node.entries if e.key is not None])
        return [entry for _, entry in sorted(zip(ranks, node.entries, strict=True), key=lambda pair: pair[0])]

    def block(self, node: _Collection, indent: int, *, blank: bool = False) -> list[str]:
        """The lines of a block collection; ``blank`` keeps blank lines above its first entry."""
        margin = " " * indent
        lines: list[str] = []
        for number, entry in enumerate(self._sorted(node)):
            lead = _collapsed(entry.lead) if number == 0 and not blank else entry.lead
            body = self._entry(entry, node, indent)
            if entry.key is None and isinstance(entry.value, _Collection) and not entry.value.flow:
                # Comments above the first key of an item would separate the dash from it.
                count = next(i for i, line in enumerate(body) if line.lstrip() and not line.lstrip().startswith("#"))
                lead, body = [*lead, *(line.strip() for line in body[:count])], body[count:]
                body[0] = f"{margin}- {body[0][indent + _INDENT :]}"
            # Lines of a block scalar may be blank any number of times; only those of the lead are collapsed.
            lead = _collapsed(["#", *lead])[1:]
            lines += [f"{margin}{line}" if line else "" for line in lead]
            lines += body
        lines += [f"{margin}{line}" if line else "" for line in _collapsed(["#", *_stripped(node.tail)])[1:]]
        return lines

    def _entry(self, entry: _LayoutEntry, node: _Collection, indent: int) -> list[str]:
        margin = " " * indent
        comment = f"  {entry.comment}" if entry.comment else ""
        if entry.key is not None and "\n" in entry.key.raw:
            raise LayoutError("it has a key of several lines")
        start = f"{margin}-" if entry.key is None else f"{margin}{entry.key.raw}:"
        value = entry.value
        if isinstance(value, _Collection) and not value.flow:
            lines = self.block(value, indent + _INDENT)
            if entry.key is None:
                return [f"{margin}{entry.comment}", *lines] if entry.comment else lines
            return [start + comment, *lines]
        if isinstance(value, _Collection):
            return f"{start} {self.flow(value, indent - node.column)}{comment}".split("\n")
        if not value.raw:
            return [start + comment]
        first, *rest = value.raw.split("\n")
        if value.style in ("|", ">"):
            return [f"{start} {self._header(first)}", *self._literal(first, rest, node.column, indent + _INDENT)]
        stripped = [line.lstrip(" \t") for line in rest]
        lines = [f"{margin}  {line}" if line else "" for line in stripped]
        if rest and entry.key is not None and "\n" in self._text[entry.key.end : value.start]:
            lines = [start, f"{margin}  {first}", *lines]  # a long text may begin below its key
        else:
            lines = [f"{start} {first}", *lines]
        if not rest or value.style == "":
            lines = [line.rstrip() for line in lines]
        lines[-1] += comment
        return lines

    @staticmethod
    def _header(header: str) -> str:
        indicators, mark, comment = header.partition("#")
        indicators = re.sub("[1-9]", str(_INDENT), indicators.strip())
        return f"{indicators}  {mark}{comment.rstrip()}" if mark else indicators

    @staticmethod
    def _literal(header: str, lines: list[str], column: int, indent: int) -> list[str]:
        digit = re.search("[1-9]", header.partition("#")[0])
        widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
        present = column + int(digit.group()) if digit else widths[0] if widths else indent
        kept = [" " * indent + line[present:] if len(line) > present else "" for line in lines]
        return [line or _BLANK for line in kept] if _keeps(header) else _stripped(kept)

    def flow(self, node: _Collection, shift: int) -> str:
        """A flow collection: one on a line of its own in canonical spacing, a longer one with its own line breaks."""
        raw = self._text[node.start : node.end]
        if "\n" not in raw:
            return self._line(node)
        if not _COMMENT.search(raw):
            raw = self._swapped(node)
        first, *rest = raw.split("\n")
        moved = [" " * max(len(line) - len(line.lstrip(" ")) + shift, 0) + line.lstrip(" ") for line in rest]
        return "\n".join([first, *(line if line.strip() else "" for line in moved)])

    def _line(self, node: _Node) -> str:
        if isinstance(node, _Scalar):
            return node.raw
        if self._text[node.start] not in "{[":  # the single pair of [a: b]
            return self._text[node.start : node.end]
        items = []
        for entry in self._sorted(node):
            value = self._line(entry.value)
            key = "" if entry.key is None else entry.key.raw
            items.append(f"{key}: {value}" if key and value else key or value)
        start, end = "{}" if node.mapping else "[]"
        return f"{start}{', '.join(items)}{end}"

    def _swapped(self, node: _Collection) -> str:
        """A flow collection of several lines with its pairs in canonical order, and what separates them as it is."""
        pieces, at = [], node.start
        for place, entry in zip(node.entries, self._sorted(node), strict=True):
            begin, end = _extent(place)
            pieces += [self._text[at:begin], self._pair(entry)]
            at = end
        return "".join([*pieces, self._text[at : node.end]])

    def _pair(self, entry: _LayoutEntry) -> str:
        begin, end = _extent(entry)
        if isinstance(entry.value, _Scalar):
            return self._text[begin:end]
        return self._text[begin : entry.value.start] + self._swapped(entry.value)


def _extent(entry: _LayoutEntry) -> tuple[int, int]:
    begin = entry.key.start if entry.key is not None else entry.value.start
    end = entry.value.end
    return begin, max(end, entry.key.end if entry.key is not None else end)
