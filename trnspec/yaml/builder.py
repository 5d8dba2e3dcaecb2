"""Parser events to plain data and positions: one loop, without recursion and within the limits."""

from __future__ import annotations

import bisect
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from attrs import define, field

from trnspec.yaml.document import Json, LineTable, Path, Place, Places, Position, Problems, ReadingLimits, shorten, show
from trnspec.yaml.scalars import NUMBER_STARTS, WORDS, OutOfRange, doubt, resolve
from trnspec.yaml.syntax import lacks_space
from trnspec.yaml.text import BIDI, INVISIBLE, name_of


class UnreadableError(Exception):
    """The rest of the text is unusable; the problem was reported."""


class _Rejected:
    """Marks a value that was reported and is left out."""


_REJECTED: Final = _Rejected()
_BEGIN: Final = "begin with keys such as 'kind: Chip'"
_Slot: TypeAlias = tuple[Path, Position | None, bool]
"""Path of a node, position of its key if it has one, and whether its value is used (not that of a duplicate key)."""
_NO_SLOT: Final[_Slot] = ((), None, True)
_NUMBER_BEFORE = re.compile(r"(?<![^ ])([0-9]{1,3}),$")
"""A number that a comma parts from the next key: ``{count: 1,600}``."""

_COLON = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?[\r\n])*[ \t]*:")
_SPACE_BEFORE_COLON = re.compile(r"[ \t]+:")
_Value: TypeAlias = "Json | _Rejected"


@define
class _Frame:
    """An open mapping or sequence; ``key`` is that of a value that was not read yet, and ends at the offset ``key_end``."""

    node: Any
    is_mapping: bool
    slot: _Slot
    start: Position
    rejected: bool
    merge: bool
    flow: bool
    is_key: bool
    keys: dict[str, Position] = field(factory=dict)
    index: int = 0
    key: str | None = None
    key_end: int = 0
    key_slot: _Slot = _NO_SLOT
    key_rejected: bool = False
    key_merge: bool = False

    def expect(self, key: str, end: int, slot: _Slot, *, rejected: bool = False, merge: bool = False) -> None:
        """The next value is that of a key."""
        self.key, self.key_end, self.key_slot, self.key_rejected, self.key_merge = key, end, slot, rejected, merge


class Builder:
    """Builds data, positions and rejected paths from the events of a parser.

    Args:
        lines: The text.
        limits: The limits of the reader.
        problems: Takes what is reported.
    """

    def __init__(self, lines: LineTable, limits: ReadingLimits, problems: Problems) -> None:
        self.root: _Value = None
        self.places = Places()
        self.rejected: set[Path] = set()
        self.last_scalar: tuple[int, int, str] = (0, 0, "")
        self.lines, self._text, self._limits, self._problems = lines, lines.text, limits, problems
        self._stack: list[_Frame] = []
        self._anchors: set[str] = set()
        self._nodes = 0
        self._end: Position = (1, 1)
        self._bare_root = False
        self._stand_in = ""
        self._hidden = [m.start() for m in INVISIBLE.finditer(self._text) if not BIDI.match(m.group())]

    def build(self, get_event: Callable[[], Any], stand_in: str = "") -> None:
        """Take all events of a parser, in whose values a character may represent a colon.

        Raises:
            UnreadableError: A limit is exceeded; it was reported.
        """
        from ruamel.yaml import events

        self._stand_in = stand_in
        take: dict[type, Callable[[Any], None]] = {
            events.ScalarEvent: self._scalar,
            events.AliasEvent: self._alias,
            events.MappingStartEvent: self._open,
            events.SequenceStartEvent: self._open,
            events.MappingEndEvent: self._close,
            events.SequenceEndEvent: self._close,
        }
        while (event := get_event()) is not None:
            if (step := take.get(type(event))) is not None:
                step(event)
        self._finish()

    def _finish(self) -> None:
        """Check the root; after all events, because a syntax error is more specific."""
        span = self.places.get(())
        start, end, _ = self.last_scalar
        if span is None or (self._bare_root and start == end):
            self._problems.add("TRN013", "The file contains no data.", Place(1, 1), _BEGIN)
        elif isinstance(self.root, list):
            message = "The file contains a list; a mapping with keys is expected."
            self._problems.add("TRN014", message, span.value, _BEGIN)
        elif self.root is not _REJECTED and not isinstance(self.root, dict):
            text = self._text[start:end]
            hint = _BEGIN if lacks_space(text) is None else "write a space after the colon"
            message = f"The file contains the single value {show(text)}; a mapping with keys is expected."
            self._problems.add("TRN014", message, span.value, hint)

    @property
    def data(self) -> dict[str, Json] | None:
        """The root, if it is a mapping."""
        return self.root if isinstance(self.root, dict) else None

    def _position(self, mark: Any) -> Position:
        if mark.index >= len(self._text):
            # At the end of a text without a final line end, libyaml reports a new line.
            return self._at(len(self._text))
        return mark.line + 1, mark.column + 1

    def _at(self, offset: int) -> Position:
        place = self.lines.place(offset)
        return place.line, place.column

    def _report(  # a problem of a node
        self, code: str, message: str, at: Position, hint: str, path: Path, see: Position | None = None
    ) -> None:
        self._problems.add(code, message, Place(*at), hint, path, None if see is None else Place(*see))

    # The position of the next node.

    def _awaits_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].is_mapping and self._stack[-1].key is None

    def _slot(self) -> _Slot:
        if not self._stack:
            return _NO_SLOT
        frame = self._stack[-1]
        if frame.key is not None:
            return frame.key_slot
        path, _, live = frame.slot
        return (path, None, False) if frame.is_mapping else ((*path, frame.index), None, live)

    def _attach(self, slot: _Slot, value: _Value, start: Position, end: Position) -> None:
        path, key_at, live = slot
        if live:
            self.places.add(path, key_at, start, end)
        if not self._stack:
            self.root = value
            if value is _REJECTED:
                self.rejected.add(path)
            return
        frame = self._stack[-1]
        if frame.key_rejected and frame.key is not None:
            value = _REJECTED
        if live and value is _REJECTED:
            self.rejected.add(path)
        if not frame.is_mapping:
            frame.node.append(None if value is _REJECTED else value)
            frame.index += 1
        else:
            if live and frame.key is not None and value is not _REJECTED:
                frame.node[frame.key] = value
            frame.key = None

    # Limits and properties of all nodes.

    def _count(self, at: Position, path: Path) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            self._too_many(at, path)

    def _too_many(self, at: Position, path: Path) -> NoReturn:
        most = f"{self._limits.nodes:,}"
        self._report("TRN012", f"The file has more than {most} keys and values.", at, "split the file", path)
        raise UnreadableError

    def _properties(self, event: Any, at: Position, path: Path) -> bool:
        """Reports an anchor and a tag; True if there is one."""
        if event.anchor is not None:
            name = str(event.anchor)
            self._anchors.add(name)
            message = f"Anchors are not allowed: {show('&' + name)}."
            self._report("TRN006", message, at, "delete it, and repeat the value", path)
        tag = event.tag
        if tag is not None:
            written = str(tag).replace("tag:yaml.org,2002:", "!!")
            message = f"Tags are not allowed: {show(written)}."
            self._report("TRN008", message, at, "delete it; for text, put the value in quotes", path)
        return event.anchor is not None or tag is not None

    # Events.

    def _open(self, event: Any) -> None:
        mapping = type(event).__name__ == "MappingStartEvent"
        start = self._position(event.start_mark)
        is_key = self._awaits_key()
        slot = path, _, _ = self._slot()
        self._count(start, path)
        if len(self._stack) >= self._limits.depth:
            most = self._limits.depth
            self._report("TRN011", f"The nesting is deeper than {most}.", start, "nest less deeply", path)
            raise UnreadableError
        if is_key:
            kind = "mapping" if mapping else "list"
            message = f"A {kind} is used as a key; keys are text."
            self._report("TRN009", message, start, "write text as a key; '{{ }}' needs quotes", path)
            self._stack[-1].rejected = True  # what the mapping has without this key is not what was meant
        rejected = self._properties(event, start, path)
        node: Any = {} if mapping else []
        flow = bool(event.flow_style)
        self._stack.append(_Frame(node, mapping, slot, start, rejected, self._in_merge(), flow, is_key))

    def _in_merge(self) -> bool:
        """Whether the next node is the value of a merge key, or inside of one."""
        outer = self._stack[-1] if self._stack else None
        return outer is not None and (outer.merge or (outer.key is not None and outer.key_merge))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        # For the parser a block ends where the next token begins; here it ends with its last value.
        if frame.flow or self._end < frame.start:
            self._end = self._position(event.end_mark)
        self._confusable(frame)
        if frame.is_key:
            self._stack[-1].expect("", event.end_mark.index, (frame.slot[0], frame.start, False))
            return
        self._attach(frame.slot, _REJECTED if frame.rejected else frame.node, frame.start, self._end)

    def _alias(self, event: Any) -> None:
        start, end = self._position(event.start_mark), self._position(event.end_mark)
        slot = path, _, _ = self._slot()
        self._count(start, path)
        if not self._in_merge():
            # The merge key of such an alias was reported.
            name = str(event.anchor)
            none = "" if name in self._anchors else ", and there is no anchor of that name before it"
            message = f"Aliases are not allowed: {show('*' + name)}{none}."
            hint = "repeat the value here" if not none else "put the value in quotes if it is text"
            self._report("TRN006", message, start, hint, path)
        self._end = end
        if self._awaits_key():
            self._stack[-1].expect("", event.end_mark.index, (path, start, False))
        else:
            self._attach(slot, _REJECTED, start, end)

    def _scalar(self, event: Any) -> None:
        # Most events are scalars: this is written out, without calls for what every one of them needs.
        begin, finish, size = event.start_mark, event.end_mark, len(self._text)
        first, last, text, style = begin.index, finish.index, event.value, event.style or ""
        if self._stand_in:
            text = text.replace(self._stand_in, ":")
        self.last_scalar = (first, last, style)
        start = (begin.line + 1, begin.column + 1) if first < size else self._at(size)
        end = (finish.line + 1, finish.column + 1) if last < size else self._at(size)
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.is_mapping and frame.key is None:
            self._key(frame, event, (start, end), first, last)
            return
        slot = path, _, _ = self._slot()
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            self._too_many(start, path)
        bare = event.anchor is None and event.ctag is None
        if first == last and not text and bare and frame and frame.key is not None:
            # An empty value: libyaml reports the position of the next token; use the one after the colon.
            start = end = self._at(self._behind_colon(frame.key_end))
            if frame.flow and start == self._at(frame.key_end):
                self._colon_in_key(frame.key, frame.key_end, path)
        value: _Value = text
        if not bare:
            self._properties(event, start, path)
            value = _REJECTED
        elif not style and (not text or text[0] in NUMBER_STARTS or text in WORDS):
            value = self._plain(text, start, path)
        if self._hidden and not style:
            self._hidden_in(first, last, path)
        if len(text) > self._limits.scalar and value is not _REJECTED:
            self._too_long(text, start, path)
            value = _REJECTED
        if frame is None:
            self._bare_root = bare and not style
        self._end = end
        self._attach(slot, value, start, end)

    def _colon_in_key(self, key: str, end: int, path: Path) -> None:
        """Reports ``{count:16}``, which is a key without a value."""
        begin, colon = end - len(key), lacks_space(key)
        if colon is not None and self._text[begin:end] == key:
            message = f"A space is missing after the colon of {show(key[:colon])}."
            place = self.lines.place(begin + colon)
            self._problems.add("TRN004", message, place, "write a space after the colon", path)
            raise UnreadableError

    def _plain(self, text: str, start: Position, path: Path) -> _Value:
        value = resolve(text)
        if isinstance(value, OutOfRange):
            self._report("TRN010", f"The number {show(text)[1:-1]} {value.why}.", start, value.hint, path)
            return _REJECTED
        if isinstance(value, int | float) and not isinstance(value, bool):
            ambiguity = doubt(text, value)
            if ambiguity:
                self._report("TRN050", ambiguity[0], start, ambiguity[1], path)
        return value

    def _too_long(self, text: str, start: Position, path: Path) -> None:
        message = f"The text has {len(text):,} characters; at most {self._limits.scalar:,} are read."
        self._report("TRN012", message, start, "shorten the text", path)

    def _key(self, frame: _Frame, event: Any, at: tuple[Position, Position], first: int, last: int) -> None:
        text: str = event.value.replace(self._stand_in, ":") if self._stand_in else event.value
        text = sys.intern(text)  # the same few keys are in all documents
        start, self._end = at
        above, _, live = frame.slot
        style, path = event.style, (*above, text)
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            self._too_many(start, above)
        if self._hidden:
            self._hidden_in(first, last, path)
        rejected = merge = False
        if event.anchor is not None or event.ctag is not None:
            self._properties(event, start, path)
            rejected = True
        elif not style and (not text or text[0] in NUMBER_STARTS or text in WORDS or text == "<<"):
            if not text:
                self._empty_key(first)
                frame.expect(text, last, (path, start, False))
                return
            if text == "<<":
                message = "Merge keys are not allowed: '<<'."
                self._report("TRN007", message, start, "write the keys out here", path)
                rejected = merge = True
            elif not isinstance(value := resolve(text), str):
                message = f"The key {show(text)[1:-1]} is {_kind(value)}; keys are text."
                cut = _NUMBER_BEFORE.search(self._text, max(first - 20, 0), first) if frame.flow else None
                hint = f'write {cut[1]}{text}, or "{cut[1]},{text}"' if cut else f'put it in quotes: "{shorten(text)}"'
                self._report("TRN009", message, start, hint, path)
                rejected = True
        too_long, repeated = len(text) > self._limits.scalar, text in frame.keys
        frame.expect(text, last, (path, start, live and not too_long and not repeated), rejected=rejected, merge=merge)
        if too_long:
            self._too_long(text, start, above)
            return
        if repeated:
            message = f"The key {show(text)} is repeated; the first value is kept."
            self._report("TRN005", message, start, "delete or rename one of them", path, frame.keys[text])
            return
        frame.keys[text] = start
        if not self._text.startswith(":", last) and _SPACE_BEFORE_COLON.match(self._text, last):
            message = f"There is a space between the key {show(text)} and its colon."
            self._report("TRN056", message, self._end, "write the colon directly after the key", path)

    def _empty_key(self, first: int) -> None:
        """Reports an empty key; reading ends here."""
        colon = next((i for i in (first, first - 1) if i >= 0 and self._text[i : i + 1] == ":"), None)
        at = first if colon is None else colon
        message, hint = "A key is missing before the colon.", "write a key before the colon"
        self._problems.add("TRN009", message, self.lines.place(at), hint)
        if colon is not None:
            raise UnreadableError

    # Doubtful characters.

    def _hidden_in(self, first: int, last: int, path: Path) -> None:
        for at in self._hidden[bisect.bisect_left(self._hidden, first) : bisect.bisect_left(self._hidden, last)]:
            message = f"An invisible character: {name_of(self._text[at])}."
            self._problems.add("TRN054", message, self.lines.place(at), "delete it, or write a plain space", path)

    def _confusable(self, frame: _Frame) -> None:
        if all(map(str.isascii, frame.keys)):
            return
        folded: dict[str, str] = {}
        for name, at in frame.keys.items():
            other = folded.setdefault(unicodedata.normalize("NFKC", name), name)
            if other != name:
                message = f"The keys {other!a} and {name!a} are different, but look the same."
                self._report(
                    "TRN055", message, at, "write both the same way", (*frame.slot[0], name), frame.keys[other]
                )

    def _behind_colon(self, at: int) -> int:
        """The offset just after the colon that follows the key ending at ``at``; ``at`` if there is none."""
        colon = _COLON.match(self._text, at)
        return at if colon is None else colon.end()


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return "a truth value" if isinstance(value, bool) else "a number"
