"""trnspec.yaml.text, scalars and document: characters by their classes, words of the core schema, positions, limits."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.yaml import Place, Problem, ReadingLimits, read_text
from trnspec.yaml.document import LineTable, Problems, shorten, show
from trnspec.yaml.scalars import resolve
from trnspec.yaml.text import BIDI, CONTROL, INVISIBLE, UNSAFE, escape, foreign, name_of, unsafe_texts, visible

EVERY = [chr(n) for n in (*range(0x11000), *range(0xE0000, 0xE0200))]


def matched(pattern) -> set[str]:
    return {c for c in EVERY if pattern.match(c)}


def characters(*ranges: int | tuple[int, int]) -> set[str]:
    return {chr(n) for r in ranges for n in (range(r[0], r[1] + 1) if isinstance(r, tuple) else (r,))}


CONTROLS = characters((0, 8), 11, 12, (14, 31), (127, 159))


def test_classes_of_characters() -> None:
    """Character by character, over those that could be in a class."""
    order = characters(0x61C, 0x200E, 0x200F, (0x202A, 0x202E), (0x2066, 0x2069))

    assert matched(CONTROL) == CONTROLS | characters(0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
    assert matched(BIDI) == order
    assert matched(UNSAFE) == CONTROLS | order | characters(
        0x0D, 0x2028, 0x2029, (0xD800, 0xDFFF), 0xFEFF, 0xFFFE, 0xFFFF
    )
    assert order <= matched(INVISIBLE)
    spaces = {c for c in EVERY if unicodedata.category(c) == "Zs"} - {" "}
    assert spaces <= matched(INVISIBLE)
    # Hangul fillers are letters, and shown as nothing.
    letters = {c for c in matched(INVISIBLE) if unicodedata.category(c)[0] in "LNPS"}
    assert letters == characters(0x115F, 0x1160, 0x3164, 0xFFA0)


@pytest.mark.parametrize("byte", [*range(1, 32), 127, 128])
def test_control_bytes_make_a_file_binary(byte) -> None:
    """Nine are too many, but of tabs, line ends and escapes."""
    problems = read_text(b"a: 1\n" + bytes([byte]) * 9).problems
    is_binary = (
        Problem("TRN002", "The file is binary, not text.", Place(1, 1), "check a file of text in UTF-8") in problems
    )

    assert is_binary == (byte < 32 and byte not in (9, 10, 13, 27))


@pytest.mark.parametrize(("before", "binary"), [(4096 - 205, True), (4096 - 204, False)])
def test_the_first_4096_bytes_count(before, binary) -> None:
    """More than one control character in twenty."""
    problems = read_text(b"x" * before + b"\x01" * 300).problems

    assert binary == ("The file is binary, not text." in {p.message for p in problems})


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("a", "U+0061 (latin small letter a)"), ("\u200b", "U+200B (zero width space)"), ("\0", "U+0000 (NUL)"),
        ("\x1b", "U+001B (escape)"), ("\x07", "U+0007"), ("\U0001f600", "U+1F600 (grinning face)"),
        ("\ue000", "U+E000"),
    ],
)  # fmt: skip
def test_names(character, name) -> None:
    assert name == name_of(character)


@pytest.mark.parametrize(
    ("text", "end"), [("abc", ""), ("ab\u0441\u200b", " (it contains U+0441 (cyrillic small letter es))"), ("\u00e9", " (it contains U+00E9 (latin small letter e with acute))")]
)  # fmt: skip
def test_foreign_letters(text, end) -> None:
    """The first one."""
    assert end == foreign(text)


@pytest.mark.parametrize(
    ("text", "escaped", "seen"),
    [
        ("a b", "a b", "a b"), ("a\nb\tc", "a\\nb\\tc", "a\nb\tc"), ("\x1b[0m", "\\x1b[0m", "\\x1b[0m"),
        ("\u202ea\u00a0b", "\\u202ea\u00a0b", "\\u202ea\u00a0b"), ("\u00e9\u754c", "\u00e9\u754c", "\u00e9\u754c"),
        ("\ud800\r\ue000", "\\ud800\\r\\ue000", "\\ud800\\r\ue000"),
        ("\u200b\u2028", "\\u200b\\u2028", "\u200b\\u2028"),
    ],
)  # fmt: skip
def test_escapes(text, escaped, seen) -> None:
    assert (escaped, seen) == (escape(text), visible(text))


@given(st.text())
def test_escaped_texts_are_one_line_that_can_be_encoded(text) -> None:
    escaped = escape(text)

    assert escaped.encode().decode() == escaped
    assert len(escaped.splitlines()) <= 1
    assert not UNSAFE.search(visible(text))


def test_unsafe_texts() -> None:
    """In keys, whose values are not looked at, in values, and in lists; each with its path and character."""
    data = {
        "a": "ok",
        "b\x07": {"c": "\x08"},
        "d": [1, "\u202e\x01", {"e": "x\x7f", "f": "\n\t"}],
        "g": None,
        "h": {"i": "\r"},
    }

    assert [
        (("b\x07",), True, "\x07"),
        (("d", 1), False, "\u202e"),
        (("d", 2, "e"), False, "\x7f"),
        (("h", "i"), False, "\r"),
    ] == list(unsafe_texts(data))


@pytest.mark.parametrize(
    ("words", "value"),
    [(["", "~", "null", "Null", "NULL"], None), (["true", "True", "TRUE"], True), (["false", "False", "FALSE"], False)],
)
def test_text_values(words, value) -> None:
    """Those of the core schema, and no others."""
    assert [value] * len(words) == [resolve(word) for word in words]
    others = {word.swapcase() for word in words} | {word + "s" for word in words} - set(words)
    assert all(resolve(other) == other for other in others - set(words))


@given(st.text("ab\r\n\u00e9", max_size=12), st.integers(-2, 14))
def test_positions(text, offset) -> None:
    """Lines end with LF, CR LF or CR; an offset outside is that of the nearest end; both directions agree."""
    lines = LineTable(text)
    inside = min(max(offset, 0), len(text))
    before = text[:inside]
    if before.endswith("\r") and text[inside : inside + 1] == "\n":
        before = before[:-1] + "x"  # between the two characters of a line end
    rows = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    place = lines.place(offset)

    assert (len(rows), inside) == (place.line, lines.offset(place))
    assert place.column == len(rows[-1]) + 1


def test_problems() -> None:
    """Those of a file come first, then by position; the first of each code are kept, the others are counted."""
    problems = Problems(2)
    assert (False, False) == (bool(problems), "TRN001" in problems)
    for line in (5, 4, 3, 2):
        problems.add("TRN001", f"line {line}.", Place(line, 1))
    problems.add("TRN002", "file.", None, "hint", ("a",), Place(1, 1))
    for line in (1, 2, 3):
        problems.add("TRN003", "file.", None if line == 3 else Place(1, line))

    assert (True, True, False) == (bool(problems), "TRN001" in problems, "TRN004" in problems)
    assert (
        Problem("TRN002", "file.", None, "hint", ("a",), Place(1, 1)),
        Problem("TRN003", "1 more problems of this kind follow from here.", None),
        Problem("TRN003", "file.", Place(1, 1)),
        Problem("TRN003", "file.", Place(1, 2)),
        Problem("TRN001", "2 more problems of this kind follow from here.", Place(3, 1)),
        Problem("TRN001", "line 4.", Place(4, 1)),
        Problem("TRN001", "line 5.", Place(5, 1)),
    ) == problems.sorted()


def test_short_texts() -> None:
    """At most 40 characters, the last three of which are points where there are more."""
    assert ("x" * 40, "x" * 37 + "...", "'x\\n'") == (shorten("x" * 40), shorten("x" * 41), show("x\n"))


def test_default_limits() -> None:
    assert ReadingLimits(1_000_000, 64, 100_000, 65_536, 100) == ReadingLimits()
