"""A quick reader of plain data, for texts in the usual style without anything that has to be reported.

It reads lines of block mappings and lists whose keys are identifiers, with values on one line or in a block scalar, and
gives up at everything else; the text is then read by a parser, with positions and problems. It accepts no text that the
parser reads differently, or that has a problem. Nearly every document of a catalog is of this form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trnspec.yaml.scalars import NUMBER_STARTS, WORDS, OutOfRange, doubt, resolve
from trnspec.yaml.text import BIDI, CONTROL, INVISIBLE

if TYPE_CHECKING:
    from trnspec.yaml.document import Json, Limits

_PRINTABLE = bytes(range(0x20, 0x7F)) + b"\n"
_DOUBTFUL = re.compile(rf"{CONTROL.pattern}|{INVISIBLE.pattern}|{BIDI.pattern}|[\t\r\ud800-\udfff]")

_KEY = r"[A-Za-z_][A-Za-z0-9_.-]*+"
_LINE = re.compile(rf"^( *+)((?:- ++)?+)(?:({_KEY}):(?: ++|$))?+(.*+)$", re.MULTILINE)
_OTHER_KEY = re.compile(r'(?:"([^"\\]{1,1000})"|([A-Za-z0-9_](?:[A-Za-z0-9_./()=,-]| (?![ :]))*+)):(?: ++(.*+)|$)')
"""A key of several words, or in quotes."""

_START = r"""[^\x00- !"#%&')*,\-:>?@\[\\\]`{|}\x7f-\xa0]"""
"""How a plain scalar begins: a letter, a digit, one of ``_./(+$^;~<=``, or any character from U+00A1. A few more are
allowed, but are unusual or hold for some positions only. Written as what it is not, it is compiled ten times as fast."""
_PLAIN = re.compile(_START)
_QUOTED = re.compile(r""""([^"\\]*+)"|'((?:[^']|'')*+)'""")
_END = re.compile(r"(?: ++#.*+| *+)")
# In a flow collection a plain scalar ends at its indicators, and libyaml allows no colon in it.
_IN_FLOW = rf"{_START}(?:[^,\[\]{{}}:#?\n]|(?<! )#)*+"
_PAIR = rf'({_KEY}): ++(?:"([^"\\]*+)"|({_IN_FLOW}))(?:, *+(?!}})|(?=}}))'
_PAIRS = re.compile(_PAIR)
_FLAT = re.compile(rf"\{{ *+(?:{_PAIR})++\}}")
_ITEM = re.compile(rf""" *+(?:({_KEY}): ++)?+(?:"([^"\\]*+)"|'((?:[^']|'')*+)'|({_IN_FLOW})|([\[{{]))""")
_AFTER = re.compile(r" *+([,\]}])")

_LONGEST_KEY = 1000
_MOST_COLUMNS = 200
_MARGINS = tuple(" " * (column + 1) for column in range(2 * _MOST_COLUMNS))
"""What a line begins with that is indented further than a column."""

_BLOCKS = {">": (True, True), ">-": (True, False), "|": (False, True), "|-": (False, False)}
"""Headers of block scalars: whether lines are folded, and whether a line end is kept at the end."""


class _OtherStyle(Exception):  # noqa: N818  # not an error: the parser reads the text
    """The text has to be read by the parser."""


def sound_data(text: str, limits: Limits) -> dict[str, Json] | None:
    """The data of a text that is in the usual style and has no problems; ``None`` for other texts.

    Args:
        text: The text of a file, without a byte order mark.
        limits: The limits of the reader.
    """
    try:
        return _read(text, limits)
    except _OtherStyle:
        return None


def usual_text(raw: str | bytes) -> str | None:
    """The characters of a text, if all of them are visible characters, spaces and line feeds; otherwise ``None``."""
    if isinstance(raw, bytes):
        if raw.isascii():
            return None if raw.translate(None, _PRINTABLE) else raw.decode("ascii")
        try:
            raw = raw.decode()
        except UnicodeDecodeError:
            return None
    return None if _DOUBTFUL.search(raw) else raw


def _read(text: str, limits: Limits) -> dict[str, Json]:  # noqa: C901, PLR0912, PLR0915  # the loop over all lines of all files
    # An upper bound: every node follows one of these, and a key precedes a colon.
    nodes = 2 * text.count(":") + sum(map(text.count, ",[{-"))
    if not text.endswith("\n") or nodes >= limits.nodes:
        raise _OtherStyle
    lines = text.split("\n")
    longest = limits.scalar if len(text) > limits.scalar else 0
    if longest and max(map(len, lines)) > longest:
        raise _OtherStyle
    depth = limits.depth
    root: dict[str, Any] = {}
    node: Any = root  # the innermost open mapping or list
    is_mapping, indent = True, 0
    key: str | None = None  # the key of the mapping that has no value yet
    stack: list[tuple[Any, bool, int]] = []
    skip = 0
    for number, line in enumerate(_LINE.findall(text)):
        spaces, dash, name, value = line
        if number < skip or (not name and not dash and (not value or value[0] == "#")):
            continue
        column = len(spaces)
        if not name and (match := _OTHER_KEY.match(value)):
            quoted, words, value = match.groups("")
            name = quoted or words
            if len(name) > _LONGEST_KEY or not name.isascii() or (words and not isinstance(resolve(words), str)):
                raise _OtherStyle
        if column > indent:
            if key is None or column >= _MOST_COLUMNS:
                raise _OtherStyle
            if not name and not dash:
                node[key], skip = _continued(lines, value, number + 1, indent, depth - len(stack) - 1, longest)
                key = None
                continue
            inner: Any = [] if dash else {}
            node[key] = inner
            stack.append((node, is_mapping, indent))
            node, is_mapping, indent = inner, not dash, column
        else:
            while column < indent:
                node, is_mapping, indent = stack.pop()
                key = None
            if column != indent:
                raise _OtherStyle
            if dash and is_mapping:
                # A list that is indented as the key it belongs to.
                if key is None:
                    raise _OtherStyle
                inner = node[key] = []
                stack.append((node, True, indent))
                node, is_mapping = inner, False
            elif not dash and not is_mapping:
                node, is_mapping, indent = stack.pop() if stack else (node, False, 0)
                if not is_mapping or indent != column:
                    raise _OtherStyle
        key = None
        if dash:
            if name:
                inner = {}
                node.append(inner)
                stack.append((node, False, indent))
                node, is_mapping, indent = inner, True, column + len(dash)
                if indent >= _MOST_COLUMNS:
                    raise _OtherStyle
            elif not value:
                raise _OtherStyle
        elif not name:
            raise _OtherStyle
        if len(stack) >= depth:
            raise _OtherStyle
        if name and (name in node or name in WORDS):
            raise _OtherStyle
        if not value or value[0] == "#":
            if not name:
                raise _OtherStyle
            node[name] = None
            key = name
            continue
        item: Any
        first = value[0]
        if value in _BLOCKS:
            item, skip = _block(lines, number + 1, indent, *_BLOCKS[value])
            if longest and len(item) > longest:
                raise _OtherStyle
        elif lines[number + 1].startswith(_MARGINS[indent]):
            item, skip = _continued(lines, value, number + 1, indent, depth - len(stack) - 1, longest)
        elif first in "{[":
            item = _flow(value, depth - len(stack) - 1)
        elif first in "\"'":
            item = _quoted(value)
        else:
            item = _plain(value)
        if is_mapping:
            node[name] = item
        else:
            node.append(item)
    if not root:
        raise _OtherStyle
    return root


def _plain(value: str) -> Json:
    """The value of a plain scalar on one line, which a comment may follow."""
    comment = value.find(" #")
    value = (value if comment < 0 else value[:comment]).rstrip(" ")
    if not _PLAIN.match(value) or ": " in value or " :" in value or value[-1] == ":":
        raise _OtherStyle
    return _resolved(value) if value[0] in NUMBER_STARTS or value in WORDS else value


@lru_cache(maxsize=4096)
def _resolved(text: str) -> Json:
    value = resolve(text)
    if isinstance(value, OutOfRange):
        raise _OtherStyle
    if type(value) in (int, float) and doubt(text, value):  # type: ignore[arg-type]  # a number
        raise _OtherStyle
    return value


def _quoted(value: str) -> str:
    """The text of a quoted scalar on one line, which a comment may follow."""
    match = _QUOTED.match(value)
    if match is None or not _END.fullmatch(value, match.end()):
        raise _OtherStyle
    double, single = match.groups()
    return double if single is None else single.replace("''", "'")


def _continued(lines: list[str], value: str, first: int, indent: int, depth: int, longest: int) -> tuple[Any, int]:
    """The value of a scalar or a flow collection on several lines, which are joined by spaces, and the line after it."""
    margin, number, parts = _MARGINS[indent], first, [value.rstrip(" ")]
    while lines[number].startswith(margin):
        part = lines[number].strip(" ")
        if not part or part[0] == "#":
            break
        parts.append(part)
        number += 1
    text = " ".join(parts)
    if (len(parts) > 1 and " #" in text) or (longest and len(text) > longest):
        raise _OtherStyle  # a comment ends a plain scalar
    if value[0] in "{[":
        return _flow(text, depth), number
    if value[0] in "\"'":
        return _quoted(text), number
    if not all(map(_PLAIN.match, parts)):
        raise _OtherStyle
    return _plain(text), number


def _block(lines: list[str], first: int, indent: int, folded: bool, ended: bool) -> tuple[str, int]:  # noqa: FBT001  # from a table
    """The text of a block scalar, and the number of the line after it.

    Args:
        lines: All lines.
        first: The first line of the scalar.
        indent: The indentation of the mapping or list that holds it.
        folded: Whether line ends become spaces.
        ended: Whether the text keeps its last line end.
    """
    start = lines[first]
    column = len(start) - len(start.lstrip(" "))
    if column <= indent or column == len(start):
        raise _OtherStyle
    margin, parts, number, blank = start[:column], [start[column:]], first + 1, 0
    while number < len(lines):
        line = lines[number]
        if line.startswith(margin):
            parts.append("\n" * blank if folded and blank else " " if folded else "\n" * (blank + 1))
            parts.append(line[column:])
            blank = 0
        elif line.strip(" "):
            break
        else:
            blank += 1
        number += 1
    if any(not part or part[0] == " " or part[-1] == " " for part in parts[::2]):
        raise _OtherStyle  # lines that are indented further are not folded
    if ended:
        parts.append("\n")
    return "".join(parts), number


def _flow(value: str, depth: int) -> Json:
    """The value of a flow collection on one line, which a comment may follow."""
    flat = _flat(value) if depth > 0 else None
    return _nested_flow(value, depth) if flat is None else flat.copy()


@lru_cache(maxsize=4096)
def _flat(value: str) -> dict[str, Json] | None:
    """The value of a flow mapping of scalars; ``None`` for another one. Documents of one catalog repeat many of them."""
    match = _FLAT.match(value)
    if match is None:
        return None
    if not _END.fullmatch(value, match.end()):
        raise _OtherStyle
    pairs = _PAIRS.findall(value, 1, match.end())
    data: dict[str, Json] = {}
    for key, quoted, plain in pairs:
        if plain:
            text = plain.rstrip(" ")
            data[key] = _resolved(text) if text[0] in NUMBER_STARTS or text in WORDS else text
        else:
            data[key] = quoted
        if key in WORDS:
            raise _OtherStyle
    if len(data) != len(pairs):
        raise _OtherStyle
    return data


def _nested_flow(value: str, depth: int) -> Json:  # noqa: C901, PLR0912  # one branch for each token
    """The value of a flow collection that holds lists or mappings."""
    root: Any = {} if value[0] == "{" else []
    node, stack, at = root, [], 1
    if depth < 1:
        raise _OtherStyle
    while True:
        match = _ITEM.match(value, at)
        if match is not None:
            key, double, single, plain, opened = match.groups()
            if (key is None) != isinstance(node, list) or key in WORDS or (key is not None and key in node):
                raise _OtherStyle
            at = match.end()
            inner: Any
            if opened:
                inner = {} if opened == "{" else []
            elif plain:
                inner = _resolved(plain.rstrip(" "))
            else:
                inner = double if single is None else single.replace("''", "'")
            if key is None:
                node.append(inner)
            else:
                node[key] = inner
            if opened:
                stack.append(node)
                node = inner
                if len(stack) >= depth:
                    raise _OtherStyle
                continue
        elif node:
            raise _OtherStyle  # a comma at the end, or another style of values
        while (after := _AFTER.match(value, at)) is not None and after[1] == ("]" if isinstance(node, list) else "}"):
            at = after.end()
            if not stack:
                if not _END.fullmatch(value, at):
                    raise _OtherStyle
                return root  # type: ignore[no-any-return]  # of JSON
            node = stack.pop()
        if after is None or after[1] != "," or not node:
            raise _OtherStyle
        at = after.end()
