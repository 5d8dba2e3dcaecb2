"""Parser events to plain data and positions, without recursion and within the limits."""

from __future__ import annotations

import bisect
import unicodedata
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import define, field

from trnspec.yaml.document import Json, Limits, Lines, Path, Place, Problems, Span, shorten, show
from trnspec.yaml.scalars import OutOfRange, doubt, resolve
from trnspec.yaml.syntax import bad_escape, escape_verdict, lacks_space
from trnspec.yaml.text import BIDI, INVISIBLE, name_of

if TYPE_CHECKING:
    from collections.abc import Callable


class UnreadableError(Exception):
    """The rest of the text is unusable; the problem was reported."""


class _Rejected:
    """Marks a value that was reported and is left out."""


_REJECTED: Final = _Rejected()
_BEGIN: Final = "begin with keys such as 'kind: Chip'"
_Value: TypeAlias = "Json | _Rejected"


@define
class _Key:
    """A key whose value was not read yet."""

    name: str
    path: Path
    place: Place
    end: int
    live: bool = True
    rejected: bool = False
    merge: bool = False


@define
class _Frame:
    """An open mapping or sequence."""

    node: dict[str, Json] | list[Json]
    path: Path
    start: Place
    key_place: Place | None
    live: bool
    rejected: bool
    merge: bool
    flow: bool
    is_key: bool
    key: _Key | None = None
    keys: dict[str, Place] = field(factory=dict)
    index: int = 0


class Builder:
    """Takes events one by one; afterwards ``root``, ``places`` and ``rejected`` contain the result."""

    def __init__(self, lines: Lines, limits: Limits, problems: Problems) -> None:
        self.root: _Value = None
        self.places: dict[Path, Span] = {}
        self.rejected: set[Path] = set()
        self.last_scalar: tuple[int, int, str] = (0, 0, "")
        self.lines, self._text, self._limits, self._problems = lines, lines.text, limits, problems
        self._stack: list[_Frame] = []
        self._anchors: set[str] = set()
        self._nodes = 0
        self._end = Place(1, 1)
        self._bare_root = False
        self._hidden = [m.start() for m in INVISIBLE.finditer(self._text) if not BIDI.match(m.group())]
        self._take: dict[str, Callable[[Any], None]] = {
            "ScalarEvent": self._scalar,
            "AliasEvent": self._alias,
            "MappingStartEvent": self._open,
            "SequenceStartEvent": self._open,
            "MappingEndEvent": self._close,
            "SequenceEndEvent": self._close,
        }

    def take(self, event: Any) -> None:
        """One event of ruamel.yaml; raises :class:`UnreadableError` if a limit is exceeded."""
        take = self._take.get(type(event).__name__)
        if take is not None:
            take(event)

    def finish(self) -> None:
        """Checks the root; called after all events, because a syntax error is more specific."""
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

    def _place(self, mark: Any) -> Place:
        if mark.index >= len(self._text):
            # At the end of a text without a final line end, libyaml reports a new line.
            return self.lines.place(len(self._text))
        return Place(mark.line + 1, mark.column + 1)

    # The position of the next node.

    def _awaits_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].node, dict) and self._stack[-1].key is None

    def _slot(self) -> tuple[Path, Place | None, bool]:
        """Path, position of the key, and whether the value is used (not that of a duplicate key)."""
        if not self._stack:
            return (), None, True
        frame = self._stack[-1]
        if frame.key is not None:
            return frame.key.path, frame.key.place, frame.live and frame.key.live
        if isinstance(frame.node, list):
            return (*frame.path, frame.index), None, frame.live
        return frame.path, None, False

    def _attach(self, value: _Value, start: Place, end: Place) -> None:
        path, key_place, live = self._slot()
        if live:
            self.places[path] = Span(key_place, start, end)
        if not self._stack:
            self.root = value
            if value is _REJECTED:
                self.rejected.add(path)
            return
        frame = self._stack[-1]
        if frame.key is not None and frame.key.rejected:
            value = _REJECTED
        if live and isinstance(value, _Rejected):
            self.rejected.add(path)
        if isinstance(frame.node, list):
            frame.node.append(None if isinstance(value, _Rejected) else value)
            frame.index += 1
        else:
            if live and frame.key is not None and not isinstance(value, _Rejected):
                frame.node[frame.key.name] = value
            frame.key = None

    # Limits and properties of all nodes.

    def _count(self, place: Place, path: Path) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            most = f"{self._limits.nodes:,}"
            self._problems.add(
                "TRN012", f"The file has more than {most} keys and values.", place, "split the file", path
            )
            raise UnreadableError

    def _properties(self, event: Any, place: Place, path: Path) -> bool:
        """Reports an anchor and a tag; True if there is one."""
        if event.anchor is not None:
            name = str(event.anchor)
            self._anchors.add(name)
            message = f"Anchors are not allowed: {show('&' + name)}."
            self._problems.add("TRN006", message, place, "delete it, and repeat the value", path)
        tag = event.tag
        if tag is not None:
            written = str(tag).replace("tag:yaml.org,2002:", "!!")
            message = f"Tags are not allowed: {show(written)}."
            self._problems.add("TRN008", message, place, "delete it; for text, put the value in quotes", path)
        return event.anchor is not None or tag is not None

    # Events.

    def _open(self, event: Any) -> None:
        mapping = type(event).__name__ == "MappingStartEvent"
        start = self._place(event.start_mark)
        is_key = self._awaits_key()
        path, key_place, live = self._slot()
        self._count(start, path)
        if len(self._stack) >= self._limits.depth:
            most = self._limits.depth
            self._problems.add("TRN011", f"The nesting is deeper than {most}.", start, "nest less deeply", path)
            raise UnreadableError
        if is_key:
            kind = "mapping" if mapping else "list"
            message = f"A {kind} is used as a key; keys are text."
            self._problems.add("TRN009", message, start, "write text as a key; '{{ }}' needs quotes", path)
        rejected = self._properties(event, start, path)
        outer = self._stack[-1] if self._stack else None
        merge = outer is not None and (outer.merge or (outer.key is not None and outer.key.merge))
        node: dict[str, Json] | list[Json] = {} if mapping else []
        flow = bool(event.flow_style)
        self._stack.append(_Frame(node, path, start, key_place, live, rejected, merge, flow, is_key))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        # For the parser a block ends where the next token begins; here it ends with its last value.
        if frame.flow or self._end < frame.start:
            self._end = self._place(event.end_mark)
        self._confusable(frame)
        if frame.is_key:
            self._stack[-1].key = _Key("", frame.path, frame.start, event.end_mark.index, live=False)
            return
        self._attach(_REJECTED if frame.rejected else frame.node, frame.start, self._end)

    def _alias(self, event: Any) -> None:
        start, end = self._place(event.start_mark), self._place(event.end_mark)
        path, _, _ = self._slot()
        self._count(start, path)
        outer = self._stack[-1] if self._stack else None
        merge = outer is not None and (outer.merge or (outer.key is not None and outer.key.merge))
        if not merge:
            # The merge key of such an alias was reported.
            name = str(event.anchor)
            none = "" if name in self._anchors else ", and there is no anchor of that name before it"
            message = f"Aliases are not allowed: {show('*' + name)}{none}."
            hint = "repeat the value here" if not none else "put the value in quotes if it is text"
            self._problems.add("TRN006", message, start, hint, path)
        self._end = end
        if self._awaits_key():
            self._stack[-1].key = _Key("", path, start, event.end_mark.index, live=False)
        else:
            self._attach(_REJECTED, start, end)

    def _scalar(self, event: Any) -> None:
        first, last = event.start_mark.index, event.end_mark.index
        style = event.style or ""
        if style == '"' and (wrong := bad_escape(self._text, first, last)) is not None:
            # Only the pure scanner accepts these.
            verdict = escape_verdict(wrong)
            self._problems.add(verdict.code, verdict.message, self.lines.place(wrong), verdict.hint)
            raise UnreadableError
        self.last_scalar = (first, last, style)
        if self._awaits_key():
            self._key(event, style)
        else:
            self._value(event, style)

    def _value(self, event: Any, style: str) -> None:
        start, end = self._place(event.start_mark), self._place(event.end_mark)
        path, _, _ = self._slot()
        text: str = event.value
        self._count(start, path)
        bare = event.anchor is None and event.tag is None
        frame = self._stack[-1] if self._stack else None
        if not text and bare and event.start_mark.index == event.end_mark.index and frame and frame.key:
            # An empty value: the two parsers report different positions; use the one after the colon.
            start = end = self.lines.place(self._behind_colon(frame.key.end))
            if frame.flow and start == self.lines.place(frame.key.end):
                self._colon_in_key(frame.key)
        value: _Value = text
        if not bare:
            self._properties(event, start, path)
            value = _REJECTED
        elif not style:
            value = self._plain(text, start, path)
        if not style:
            self._invisible(event, path)
        if len(text) > self._limits.scalar and value is not _REJECTED:
            self._too_long(text, start, path)
            value = _REJECTED
        if frame is None:
            self._bare_root = bare and not style
        self._end = end
        self._attach(value, start, end)

    def _colon_in_key(self, key: _Key) -> None:
        """Reports ``{count:16}``, which is a key without a value."""
        begin, colon = key.end - len(key.name), lacks_space(key.name)
        if colon is not None and self._text[begin : key.end] == key.name:
            message = f"A space is missing after the colon of {show(key.name[:colon])}."
            place = self.lines.place(begin + colon)
            self._problems.add("TRN004", message, place, "write a space after the colon", key.path)
            raise UnreadableError

    def _plain(self, text: str, start: Place, path: Path) -> _Value:
        value = resolve(text)
        if isinstance(value, OutOfRange):
            self._problems.add("TRN010", f"The number {show(text)[1:-1]} {value.why}.", start, value.hint, path)
            return _REJECTED
        if isinstance(value, int | float) and not isinstance(value, bool):
            ambiguity = doubt(text, value)
            if ambiguity:
                self._problems.add("TRN050", ambiguity[0], start, ambiguity[1], path)
        return value

    def _too_long(self, text: str, start: Place, path: Path) -> None:
        message = f"The text has {len(text):,} characters; at most {self._limits.scalar:,} are read."
        self._problems.add("TRN012", message, start, "shorten the text", path)

    def _key(self, event: Any, style: str) -> None:
        frame = self._stack[-1]
        text: str = event.value
        start, first, last = self._place(event.start_mark), event.start_mark.index, event.end_mark.index
        path = (*frame.path, text)
        self._count(start, frame.path)
        self._end = self._place(event.end_mark)
        key = frame.key = _Key(text, path, start, last)
        bare = event.anchor is None and event.tag is None
        if not style:
            self._invisible(event, path)
        else:
            self._hidden_in(first, last, path)
        if not bare:
            self._properties(event, start, path)
            key.rejected = True
        elif not style and not text:
            self._empty_key(first)
            key.live = False
            return
        elif not style and text == "<<":
            message = "Merge keys are not allowed: '<<'."
            self._problems.add("TRN007", message, start, "write the keys out here", path)
            key.rejected = key.merge = True
        elif not style and not isinstance(value := resolve(text), str):
            kind = _kind(value)
            message = f"The key {show(text)[1:-1]} is {kind}; keys are text."
            self._problems.add("TRN009", message, start, f'put it in quotes: "{shorten(text)}"', path)
            key.rejected = True
        if len(text) > self._limits.scalar:
            self._too_long(text, start, frame.path)
            key.live = False
            return
        if text in frame.keys:
            message = f"The key {show(text)} is repeated; the first value is kept."
            self._problems.add("TRN005", message, start, "delete or rename one of them", path, frame.keys[text])
            key.live = False
            return
        frame.keys[text] = start
        if self._text[last : last + 1] in (" ", "\t") and self._text[last:].lstrip(" \t")[:1] == ":":
            message = f"There is a space between the key {show(text)} and its colon."
            self._problems.add("TRN056", message, self._end, "write the colon directly after the key", path)

    def _empty_key(self, first: int) -> None:
        """Reports an empty key; reading ends here, because only the pure parser can continue."""
        colon = next((i for i in (first, first - 1) if i >= 0 and self._text[i : i + 1] == ":"), None)
        at = first if colon is None else colon
        message, hint = "A key is missing before the colon.", "write a key before the colon"
        self._problems.add("TRN009", message, self.lines.place(at), hint)
        if colon is not None:
            raise UnreadableError

    # Doubtful characters.

    def _invisible(self, event: Any, path: Path) -> None:
        self._hidden_in(event.start_mark.index, event.end_mark.index, path)

    def _hidden_in(self, first: int, last: int, path: Path) -> None:
        if not self._hidden:
            return
        for at in self._hidden[bisect.bisect_left(self._hidden, first) : bisect.bisect_left(self._hidden, last)]:
            message = f"An invisible character: {name_of(self._text[at])}."
            self._problems.add("TRN054", message, self.lines.place(at), "delete it, or write a plain space", path)

    def _confusable(self, frame: _Frame) -> None:
        if all(map(str.isascii, frame.keys)):
            return
        folded: dict[str, str] = {}
        for name, place in frame.keys.items():
            other = folded.setdefault(unicodedata.normalize("NFKC", name), name)
            if other != name:
                message = f"The keys {other!a} and {name!a} are different, but look the same."
                self._problems.add(
                    "TRN055", message, place, "write both the same way", (*frame.path, name), frame.keys[other]
                )

    def _behind_colon(self, at: int) -> int:
        """The offset just after the colon that follows the key ending at ``at``; ``at`` if there is none."""
        text, i = self._text, at
        while i < len(text) and text[i] in " \t\r\n#":
            if text[i] == "#":
                ends = [e for e in (text.find("\n", i), text.find("\r", i)) if e >= 0]
                i = min(ends, default=len(text))
            else:
                i += 1
        return i + 1 if text[i : i + 1] == ":" else at


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return "a truth value" if isinstance(value, bool) else "a number"
