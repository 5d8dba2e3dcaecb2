"""Bytes to text: UTF-8 and printable characters only, each error with its position."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from trnspec.yaml.document import Json, LineTable, Path, Place, Problems

# Not allowed by YAML, or (U+0085, U+2028, U+2029) a line break for some parsers only.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SURROGATES = re.compile("[\ud800-\udfff]+")
_ESCAPED_BYTES = re.compile("[\udc80-\udcff]+")  # the result of surrogateescape
_LISTED = 4
_LINE_FEEDS = "end lines with a line feed; git does it with '*.yaml text eol=lf' in .gitattributes"
_LONE_CR = re.compile(r"\r(?!\n)")
INVISIBLE = re.compile(
    "[\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180e\u2000-\u200f\u202a-\u202f\u205f-\u206f"
    "\u3000\u3164\uffa0\U000e0000-\U000e007f]"
)
"""Characters that are invisible, or look like a space."""

BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters among them that reorder the text on the screen, also in comments and quotes."""

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Characters that no text of a document may hold, also not as an escape: a terminal obeys them, or XML cannot hold them.

Tabs and line feeds are allowed.
"""

_MARKS = (
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_SAVE_AS_UTF8 = "save the file as UTF-8"
_BEGINNING = Place(1, 1)


def name_of(character: str) -> str:
    """``U+200B (zero width space)``."""
    name = unicodedata.name(character, "").lower() or {"\0": "NUL", "\x1b": "escape"}.get(character, "")
    return f"U+{ord(character):04X}" + (f" ({name})" if name else "")


def foreign(name: str) -> str:
    """The first character of a name that is not ASCII, as the end of a hint; it may look like a letter that is."""
    return next((f" (it contains {name_of(c)})" for c in name if not c.isascii()), "")


def decode(raw: bytes, problems: Problems) -> str:
    """The text of ``raw`` without its byte order mark; bytes that are not UTF-8 are reported and become U+FFFD."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return _wide(raw, name, problems)
    if raw.count(0) * 4 > len(raw) and not _binary(raw):
        return _wide(raw, "UTF-16 or UTF-32", problems)
    if wrong := _binary(raw):
        problems.add("TRN002", f"The file is {wrong}, not text.", _BEGINNING, "check a file of text in UTF-8")
        return ""
    # surrogateescape keeps one character for each bad byte, so that all errors are found in one pass.
    return clean(raw.decode("utf-8", "surrogateescape"), problems)


_MAGIC = {
    b"\x7fELF": "a program",
    b"MZ\x90\0": "a program",
    b"\x1f\x8b": "compressed (gzip)",
    b"PK\x03\x04": "an archive (zip)",
    b"BZh": "compressed (bzip2)",
    b"\xfd7zXZ\0": "compressed (xz)",
    b"\x28\xb5\x2f\xfd": "compressed (zstd)",
    b"\x89PNG\r\n": "an image (PNG)",
    b"\xff\xd8\xff": "an image (JPEG)",
    b"GIF8": "an image (GIF)",
    b"%PDF-": "a document (PDF)",
    b"SQLite format 3\0": "a database (SQLite)",
}
"""First bytes of files that are not text."""

_CONTROLS = bytes({*range(1, 32)} - {*b"\t\n\r\x1b"})


def _binary(raw: bytes) -> str:
    """The format of a file that is not text; empty if it may be text."""
    for start, name in _MAGIC.items():
        if raw.startswith(start):
            return name
    sample = raw[:4096]
    # A text has hardly any. Zero bytes do not count: UTF-16 has one in each character of ASCII.
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return "binary" if controls > max(8, len(sample) // 20) or (raw and not any(raw)) else ""


def _wide(raw: bytes, name: str, problems: Problems) -> str:
    problems.add("TRN002", f"The file is {name}, not UTF-8.", _BEGINNING, _SAVE_AS_UTF8)
    return raw.decode("latin-1").replace("\0", "")


def clean(text: str, problems: Problems) -> str:
    """``text`` without a byte order mark at its start; reports characters that YAML does not allow, and line ends."""
    if text.startswith("\ufeff"):
        text = text[1:]
        problems.add(
            "TRN051",
            "The file begins with a byte order mark.",
            _BEGINNING,
            "save the file as UTF-8 without a byte order mark",
        )
    lines = LineTable(text)
    for match in () if text.isascii() else _SURROGATES.finditer(text):
        run = match.group()
        codes = [ord(c) for c in run[:_LISTED]]
        more = " ..." if len(run) > _LISTED else ""
        if _ESCAPED_BYTES.fullmatch(run):
            description = (
                ("Byte " if len(codes) == 1 else "Bytes ")
                + " ".join(f"0x{c - 0xDC00:02X}" for c in codes)
                + more
                + (" is not UTF-8" if len(codes) == 1 else " are not UTF-8")
            )
        else:
            description = "Surrogate " + " ".join(f"U+{c:04X}" for c in codes) + more + " cannot be written as UTF-8"
        problems.add("TRN002", description + ".", lines.place(match.start()), _SAVE_AS_UTF8)
    for match in CONTROL.finditer(text):
        character = match.group()
        description = "A byte order mark inside the text" if character == "\ufeff" else "A control character"
        problems.add(
            "TRN003",
            f"{description}: {name_of(character)}.",
            lines.place(match.start()),
            'delete it; if it is intended, write an escape such as "\\x1B" in double quotes',
        )
    if "\r" in text:
        lone = [m.start() for m in _LONE_CR.finditer(text)]
        if lone:
            times = "1 line ends" if len(lone) == 1 else f"{len(lone):,} lines end"
            problems.add(
                "TRN052",
                f"{times} with a carriage return only; programs differ in whether that ends a line.",
                lines.place(lone[0]),
                "end lines with a line feed",
            )
        pairs = text.count("\r\n")
        if pairs:
            times = "1 line ends" if pairs == 1 else f"{pairs:,} lines end"
            message = f"{times} with a carriage return and a line feed; the catalog has line feeds only."
            problems.add("TRN059", message, lines.place(text.index("\r\n")), _LINE_FEEDS)
    if text and text[-1] not in "\r\n":
        problems.add("TRN053", "The last line has no line end.", lines.place(len(text)), "end it with a line feed")
    return text if text.isascii() else _SURROGATES.sub(lambda m: "\ufffd" * len(m.group()), text)


def unsafe_texts(value: Json, path: Path = ()) -> Iterator[tuple[Path, bool, str]]:
    """Every text of plain data that holds an unsafe character: its path, whether it is a key, and the character."""
    if isinstance(value, dict):
        for key, item in value.items():
            if match := UNSAFE.search(key):
                yield (*path, key), True, match.group()
            else:
                yield from unsafe_texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unsafe_texts(item, (*path, index))
    elif isinstance(value, str) and (match := UNSAFE.search(value)):
        yield path, False, match.group()


def bidi(text: str, lines: LineTable, problems: Problems) -> None:
    """Reports characters that change the order in which the text is shown."""
    for match in BIDI.finditer(text):
        problems.add(
            "TRN054",
            f"An invisible character reorders the text shown: {name_of(match.group())}.",
            lines.place(match.start()),
            "delete it",
        )


def escape(text: str) -> str:
    r"""``text`` with everything that a reader cannot see, or a terminal would obey, written out as ``\x1b``.

    That is control, format (direction marks among them), surrogate, private and unassigned characters, and the line
    and paragraph separators. The result is one line, and encodes as UTF-8. Spaces of all kinds stay.
    """
    if text.isprintable():
        return text
    return "".join(c if _is_shown(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def _is_shown(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def visible(text: str) -> str:
    r"""``text`` with control characters, and those that reorder it, written out as ``\x1b``; it keeps its lines."""
    return text if text.isprintable() else UNSAFE.sub(lambda match: escape(match[0]), text)
