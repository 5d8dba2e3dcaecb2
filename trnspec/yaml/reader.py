"""A file or a text to a :class:`Document`: the stages of reading in order."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Any

from trnspec.yaml.builder import Builder, UnreadableError
from trnspec.yaml.document import Document, LineTable, Place, Places, Problems, ReadingLimits, show
from trnspec.yaml.syntax import Complaint, explain
from trnspec.yaml.text import bidi, clean, decode

Parser = Any
"""An object with ``get_event()``."""

_DIRECTIVE = re.compile(r"%[^\r\n]*")
# Here and below the look-behind is after the characters that are searched for: it is then tried at these only.
_MARKER = re.compile(r"(---|\.\.\.)(?<![^\r\n].{3})(?=[ \t\r\n]|\Z)")
_DEFAULT = ReadingLimits()


def libyaml_parser(text: str) -> tuple[Parser, str]:
    """The parser of libyaml, and the character that represents each colon within a word in its values; or an empty text.

    By YAML 1.2 such a colon is part of a plain scalar, as in ``{address: https://example.com}``. libyaml rejects it in
    brackets. The offsets of both texts are equal; ``get_event()`` gives ``None`` after the last event.
    """
    from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]

    if not _COLON_IN_WORD.search(text):
        return CParser(text), ""
    # A private character that is not in the text, as an escape neither.
    escaped = text.casefold()
    stand_in = next(c for c in map(chr, range(0xE000, 0xF900)) if c not in text and f"{ord(c):x}" not in escaped)
    hidden = _COLON_IN_WORD.sub(lambda match: stand_in if match[0] == ":" else match[0], text)
    return CParser(hidden), stand_in


# Or a tag, an anchor or an alias, whose colons are not those of a plain scalar.
_COLON_IN_WORD = re.compile(r"""[!&*%](?<![^\s\[\]{},].)[^\s]*|:(?<=[^\s\[\]{},"'].)(?=[^\s,\[\]{}])""")


class IrregularFileError(OSError):
    """A pipe or a device, which may have no end."""


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """At most ``most`` bytes of a regular file.

    Raises:
        OSError: It cannot be read, or is another kind of file.
        ValueError: The path is not a file name.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise IrregularFileError(errno.EINVAL, "it is not a regular file", os.fsdecode(path))
        return stream.read(most)


def read_file(path: str | os.PathLike[str]) -> Document:
    """The document in a file; one that is missing, unreadable or not a regular file gives one with the problem ``TRN001``.

    At most one byte more than the limit is read.
    """
    name = os.fsdecode(path)
    problems = Problems(_DEFAULT.problems)
    raw = b""
    try:
        raw = read_bytes(path, _DEFAULT.bytes + 1)
    except IrregularFileError:
        problems.add("TRN001", f"{show(name)} is not a regular file.", None, "name a file")
    except IsADirectoryError:
        problems.add("TRN001", f"{show(name)} is a directory.", None, "name a file in it")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        problems.add("TRN001", f"{show(name)} cannot be read: {reason}.", None, "check its name and permissions")
    except ValueError as error:
        problems.add("TRN001", f"{show(name)} is not a file name: {error}.", None, "name a file")
    if "TRN001" in problems:
        return Document(name, None, Places(), problems.sorted(), "")
    return read_text(raw, name)


def read_text(
    text: str | bytes,
    file: str = "<stdin>",
    limits: ReadingLimits = _DEFAULT,
) -> Document:
    """The document in ``text``."""
    problems = Problems(limits.problems)
    if _size(text, limits.bytes) > limits.bytes:
        problems.add("TRN012", f"The file has more than {limits.bytes:,} bytes.", None, "split the file")
        return Document(file, None, Places(), problems.sorted(), "")
    characters = decode(text, problems) if isinstance(text, bytes) else clean(text, problems)
    lines = LineTable(characters)
    if "TRN002" in problems or "TRN003" in problems:
        return Document(file, None, Places(), problems.sorted(), characters)
    bidi(characters, lines, problems)
    first, readable = _first_document(characters, lines, problems)
    builder = Builder(LineTable(first), limits, problems)
    sound = readable and _feed(builder, *libyaml_parser(first), problems)
    data = builder.data if sound else None
    return Document(file, data, builder.places, problems.sorted(), characters, frozenset(builder.rejected))


def _size(text: str | bytes, enough: int) -> int:
    if isinstance(text, bytes) or len(text) > enough:
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def _first_document(text: str, lines: LineTable, problems: Problems) -> tuple[str, bool]:
    """The first document of ``text``, at the same offsets, and whether it can be read.

    Directives become comments, so that libyaml does not interpret them.
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
            hint = "move it to another file, or delete '---' or '...'"
            problems.add("TRN015", message, lines.place(rest), hint)
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


def _feed(builder: Builder, parser: Parser, stand_in: str, problems: Problems) -> bool:
    """Pass all events to the builder; True if the parser reached the end."""
    from ruamel.yaml.error import MarkedYAMLError

    try:
        builder.build(parser.get_event, stand_in)
    except UnreadableError:
        return False
    except MarkedYAMLError as error:
        _syntax(builder, error, problems)
        return False
    return True


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
