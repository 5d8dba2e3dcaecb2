"""A file or a text to a :class:`Document`: the stages of reading in order."""

from __future__ import annotations

import marshal
import os
import re
import stat
import zlib
from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trnspec.yaml.builder import Builder, UnreadableError
from trnspec.yaml.document import Document, Limits, Lines, Path, Place, Problems, Span, show
from trnspec.yaml.sound import sound_data, usual_text
from trnspec.yaml.syntax import Complaint, bad_escape, escape_verdict, explain
from trnspec.yaml.text import bidi, clean, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trnspec.yaml.document import Json


Parser = Any
"""An object with ``get_event()``, a parser of ruamel.yaml."""

_DIRECTIVE = re.compile(r"%[^\r\n]*")
_MARKER = re.compile(r"(?:\A|(?<=[\r\n]))(---|\.\.\.)(?=[ \t\r\n]|\Z)")
_DEFAULT = Limits()


def c_parser(text: str) -> Parser:
    """The events of libyaml; ``ImportError`` where its binding is not installed."""
    from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]

    if not _COLON_IN_WORD.search(text):
        return CParser(text)
    # A private character that is not in the text, as an escape neither.
    escaped = text.casefold()
    stand_in = next(c for c in map(chr, range(0xE000, 0xF900)) if c not in text and f"{ord(c):x}" not in escaped)
    hidden = _COLON_IN_WORD.sub(lambda match: stand_in if match[0] == ":" else match[0], text)
    return _ColonParser(CParser(hidden), stand_in)


# Or a tag, an anchor or an alias, whose colons are not those of a plain scalar.
_COLON_IN_WORD = re.compile(r"""(?<![^\s\[\]{},])[!&*%][^\s]*|(?<=[^\s\[\]{},"']):(?=[^\s,\[\]{}])""")


class _ColonParser:
    """Events of a text in which a character represents each colon within a word.

    By YAML 1.2 such a colon is part of a plain scalar, as in ``{address: https://example.com}``. libyaml rejects it in
    brackets. The offsets of both texts are equal.
    """

    def __init__(self, parser: Parser, stand_in: str) -> None:
        self._parser, self._stand_in = parser, stand_in

    def get_event(self) -> Any:
        """The next event, with the colons of the text."""
        event = self._parser.get_event()
        if self._stand_in in (getattr(event, "value", None) or ""):
            event.value = event.value.replace(self._stand_in, ":")
        return event


def pure_parser(text: str) -> Parser:
    """The events of ruamel.yaml's own scanner, slower and the same everywhere."""
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).get_constructor_parser(text)[1]


def best_parser(text: str) -> Parser:
    """The C parser if it is installed."""
    try:
        return c_parser(text)
    except ImportError:
        return pure_parser(text)


def read_file(
    path: str | os.PathLike[str],
    file: str | None = None,
    limits: Limits = _DEFAULT,
    parser: Callable[[str], Parser] = best_parser,
) -> Document:
    """The document in the file at ``path``, shown in messages as ``file``.

    A file that is missing, unreadable or not a regular file gives a document with the problem ``TRN001``.
    At most one byte more than ``limits.bytes`` is read.
    """
    name = os.fsdecode(path) if file is None else file
    problems = Problems(limits.problems)
    raw = b""
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as stream:
            if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raw = stream.read(limits.bytes + 1)
            else:
                problems.add("TRN001", f"{show(name)} is not a regular file.", None, "name a file")
    except IsADirectoryError:
        problems.add("TRN001", f"{show(name)} is a directory.", None, "name a file in it")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problems.add("TRN001", f"{show(name)} cannot be read: {reason}.", None, "check its name and permissions")
    except ValueError as error:
        problems.add("TRN001", f"{show(name)} is not a file name: {error}.", None, "name a file")
    if "TRN001" in problems:
        return Document(name, None, {}, problems.sorted(), "")
    return read_text(raw, name, limits, parser)


def read_text(
    text: str | bytes,
    file: str = "<stdin>",
    limits: Limits = _DEFAULT,
    parser: Callable[[str], Parser] = best_parser,
) -> Document:
    """The document in ``text``; ``parser`` creates a parser for its characters."""
    return _read(text, file, limits, parser, quick=True)


def _read(text: str | bytes, file: str, limits: Limits, parser: Callable[[str], Parser], *, quick: bool) -> Document:
    """The document in a text; ``quick`` puts the positions of a text without problems off until they are needed."""
    problems = Problems(limits.problems)
    if _size(text, limits.bytes) > limits.bytes:
        problems.add("TRN012", f"The file has more than {limits.bytes:,} bytes.", None, "split the file")
        return Document(file, None, {}, problems.sorted(), "")
    if quick and (usual := usual_text(text)) is not None and (data := sound_data(usual, limits)) is not None:
        return Document(file, data, _LazyPlaces(usual, limits, parser), (), usual)
    characters = decode(text, problems) if isinstance(text, bytes) else clean(text, problems)
    lines = Lines(characters)
    if "TRN002" in problems or "TRN003" in problems:
        return Document(file, None, {}, problems.sorted(), characters)
    bidi(characters, lines, problems)
    first, readable = _first_document(characters, lines, problems)
    builder = Builder(Lines(first), limits, problems)
    sound = readable and _feed(builder, parser(first), problems)
    data = builder.data if sound else None
    return Document(file, data, builder.places, problems.sorted(), characters, frozenset(builder.rejected))


class _LazyPlaces(Mapping[Path, Span]):
    """The positions of a text without problems, which is read again when a position is needed first.

    The first positions are looked up in the part of the text that they are in: most documents have few findings. Then all
    are kept in a compact form: as objects they take ten times the memory of the text.
    """

    __slots__ = ("_limits", "_packed", "_parser", "_parts", "_text")

    def __init__(self, text: str | bytes, limits: Limits, parser: Callable[[str], Parser]) -> None:
        self._text, self._limits, self._parser = text, limits, parser
        self._packed = b""
        self._parts: dict[Path, Mapping[Path, Span]] = {}

    @property
    def text(self) -> str:
        """The text, which may be compressed."""
        return self._text if isinstance(self._text, str) else zlib.decompress(self._text).decode()

    def compressed(self) -> _LazyPlaces:
        """The same with a compressed text."""
        text = self._text if isinstance(self._text, bytes) else zlib.compress(self._text.encode(), 1)
        return _LazyPlaces(text, self._limits, self._parser)

    @property
    def _places(self) -> Mapping[Path, Span]:
        if not self._packed:
            self._packed = _packed(_read(self.text, "", self._limits, self._parser, quick=False).places)
        return _unpacked(self._packed)

    def data(self) -> dict[str, Json] | None:
        """The data, read again."""
        return sound_data(self.text, self._limits)

    def __getitem__(self, path: Path) -> Span:
        if path and not self._packed:
            known = self._parts.get(path[:2]) or self._parts.get(path[:1])
            if known is None and len(self._parts) < _MOST_PARTS:
                known = self._part(path)
            if known is not None:
                return known[path]
        return self._places[path]

    def _part(self, path: Path) -> Mapping[Path, Span] | None:
        """The positions in the value of a key of the document, or in the item of a list there, that a path leads to."""
        part = _part_of(self.text, path)
        if part is None:
            return None
        prefix, first, text = part
        document = _read(text, "", self._limits, self._parser, quick=False)
        if document.problems or document.data is None:
            return None
        inside = ((each, span) for each, span in document.places.items() if len(each) >= len(prefix))
        known = self._parts[prefix] = {(*prefix, *each[len(prefix) :]): span.moved(first) for each, span in inside}
        return known

    def __iter__(self) -> Iterator[Path]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self._places),)


_MOST_PARTS = 50
"""From this number of parts on, all positions are read at once."""

_LIST = re.compile(r"^( *)- ", re.MULTILINE)
_NEXT_KEY = re.compile(r"^[^\s#-]", re.MULTILINE)


def _part_of(text: str, path: Path) -> tuple[Path, int, str] | None:
    """The part of a text in the usual style that a path leads to: its path, the line before it, and its text."""
    key = re.compile(rf"^{re.escape(str(path[0]))}:", re.MULTILINE).search(text)
    if key is None:
        return None
    after = text.find("\n", key.end()) + 1
    following = _NEXT_KEY.search(text, after)
    end = following.start() if following else len(text)
    start, prefix, head = key.start(), path[:1], ""
    if len(path) > 1 and isinstance(path[1], int) and (first := _LIST.search(text, after, end)) is not None:
        # Nothing but an item is indented as the first one is.
        items = [m.start() for m in re.compile(rf"^{first[1]}- ", re.MULTILINE).finditer(text, after, end)]
        if path[1] >= len(items):
            return None
        start, prefix, head = items[path[1]], path[:2], f"{path[0]}:\n"
        end = items[path[1] + 1] if path[1] + 1 < len(items) else end
    return prefix, text.count("\n", 0, start) - len(head.splitlines()), head + text[start:end]


def _packed(places: Mapping[Path, Span]) -> bytes:
    numbers = array("I")
    for span in places.values():
        key = span.key or _NO_KEY
        numbers.extend((key.line, key.column, span.value.line, span.value.column, span.end.line, span.end.column))
    return zlib.compress(marshal.dumps((list(places), numbers.tobytes())), 1)


@lru_cache(maxsize=64)
def _unpacked(packed: bytes) -> Mapping[Path, Span]:
    paths, raw = marshal.loads(zlib.decompress(packed))  # noqa: S302  # of this process
    numbers = array("I", raw)
    places: dict[Path, Span] = {}
    for index, path in enumerate(paths):
        key_line, key_column, *rest = numbers[6 * index : 6 * index + 6]
        key = Place(key_line, key_column) if key_line else None
        places[path] = Span(key, Place(rest[0], rest[1]), Place(rest[2], rest[3]))
    return places


_NO_KEY = Place(0, 0)


class CompactDocument(Document):
    """A document without problems in less memory than its text; data and positions are read again when they are used."""

    __slots__ = ()

    def __init__(self, file: str, places: _LazyPlaces) -> None:
        for name, value in (("file", file), ("places", places), ("problems", ()), ("rejected", frozenset())):
            object.__setattr__(self, name, value)

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.places.text  # type: ignore[attr-defined,no-any-return]  # set above

    @property
    def data(self) -> dict[str, Json] | None:
        """Plain data."""
        return self.places.data()  # type: ignore[attr-defined,no-any-return]  # set above

    def __reduce__(self) -> tuple[Any, ...]:
        return Document, (self.file, self.data, dict(self.places), self.problems, self.text, self.rejected)


def compact(document: Document) -> Document:
    """The same document in less memory, if it has no problems."""
    if isinstance(document, CompactDocument) or not isinstance(document.places, _LazyPlaces) or document.problems:
        return document
    return CompactDocument(document.file, document.places.compressed())


def _size(text: str | bytes, enough: int) -> int:
    if isinstance(text, bytes) or len(text) > enough:
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def _first_document(text: str, lines: Lines, problems: Problems) -> tuple[str, bool]:
    """The first document of ``text``, at the same offsets, and whether it can be read.

    Directives become comments, because the two parsers treat them differently.
    """
    at, pieces, directives = 0, [], False
    while True:
        start = _skip_blank(text, at)
        pieces.append(text[at:start])
        at = start
        directive = _DIRECTIVE.match(text, at)
        if directive is None or lines.place(at).column != 1:
            break
        directives = True
        _directive(directive.group(), lines.place(at), problems)
        pieces.append("#" + directive.group()[1:])
        at = directive.end()
    opening = _MARKER.match(text, at)
    body = opening.end() if opening and opening[1] == "---" else at
    closing = _MARKER.search(text, body)
    end = len(text)
    if closing is not None:
        end = closing.start() if closing[1] == "---" else closing.end()
        rest = closing.start() if closing[1] == "---" else _skip_blank(text, closing.end())
        if rest < len(text):
            message = "A second document begins here; a file contains one."
            problems.add("TRN015", message, lines.place(rest), "move it to another file")
    if directives and body == at:
        problems.add("TRN004", "A directive is not followed by '---'.", lines.place(at), "delete the directive")
    pieces.append(text[at:end])
    return "".join(pieces), not (directives and body == at)


def _skip_blank(text: str, at: int) -> int:
    """The offset of the next character that is neither blank nor in a comment."""
    match = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*").match(text, at)
    return match.end() if match else at


def _directive(line: str, place: Place, problems: Problems) -> None:
    if re.fullmatch(r"%YAML[ \t]+1\.2(?:[ \t]+#.*|[ \t]*)", line):
        return
    hint = "delete it; files are read by YAML 1.2"
    problems.add("TRN016", f"Directives are not allowed: {show(line.rstrip())}.", place, hint)


def _feed(builder: Builder, parser: Parser, problems: Problems) -> bool:
    """Passes all events to the builder; True if the parser reached the end."""
    from ruamel.yaml.error import MarkedYAMLError

    while True:
        try:
            event = parser.get_event()
        except MarkedYAMLError as error:
            _syntax(builder, error, problems)
            return False
        except Exception:  # noqa: BLE001  The pure scanner can raise errors of Python, such as OverflowError.
            _crash(builder, problems)
            return False
        if event is None:
            builder.finish()
            return True
        try:
            builder.take(event)
        except UnreadableError:
            return False


def _syntax(builder: Builder, error: Any, problems: Problems) -> None:
    lines, text = builder.lines, builder.lines.text
    at, since = error.problem_mark, error.context_mark
    offset = at.index if at is not None else builder.last_scalar[1]
    complaint = Complaint(
        error.problem or "", offset, error.context or "", None if since is None else since.index, builder.last_scalar
    )
    verdict = explain(text, complaint)
    see = None if verdict.see is None else lines.place(verdict.see)
    problems.add(verdict.code, verdict.message, lines.place(verdict.at), verdict.hint, see=see)


def _crash(builder: Builder, problems: Problems) -> None:
    lines, begin = builder.lines, builder.last_scalar[1]
    wrong = bad_escape(lines.text, begin, len(lines.text))
    if wrong is not None:
        verdict = escape_verdict(wrong)
        problems.add(verdict.code, verdict.message, lines.place(wrong), verdict.hint)
    else:
        problems.add("TRN004", "The text cannot be read from here.", lines.place(begin), "check the text that follows")
