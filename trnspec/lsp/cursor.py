"""Completion context at the cursor, from the text alone: a text that is being edited often cannot be parsed."""

from __future__ import annotations

import re

from attrs import frozen

from trnspec.yaml import Path, Place

_KEY = re.compile(r"""(?P<quote>["']?)(?P<key>[\w.-]+)(?P=quote)[ \t]*:(?=[ \t]|$)""")
_LINE = re.compile(r"(?P<indent> *)(?P<dashes>(?:- +)*(?:-$)?)(?P<rest>.*)")


@frozen
class Cursor:
    """Context of the cursor.

    Attributes:
        path: The path of the mapping or list that contains it; the index of an item of a list is 0.
        key: The key whose value is typed; ``None`` where a key, or an item of a list, is typed.
        typed: The text from the beginning of the key or the value to the position.
        item: Whether it begins an item of a list, which may be a value or the first key of a mapping.
        flow: Whether it is within braces or brackets.
    """

    path: Path
    key: str | None
    typed: str
    item: bool = False
    flow: bool = False

    @property
    def value_path(self) -> Path:
        """The path of the value that is typed."""
        return self.path if self.key is None else (*self.path, self.key)


def cursor_at(lines: list[str], place: Place) -> Cursor:
    """Context at a position, by indentation, and within braces and brackets of the same line."""
    line = lines[place.line - 1][: place.column - 1] if place.line <= len(lines) else ""
    parsed = _LINE.match(line)
    assert parsed is not None  # every part may be empty
    indent, dashes, rest = len(parsed["indent"]), parsed["dashes"], parsed["rest"]
    column = indent + len(dashes)
    outer = list(_above(lines, place.line - 1, column, dash=indent if dashes else None))
    outer += [0] * dashes.count("-")
    inner, key, typed, item = _in_line(rest)
    return Cursor((*outer, *inner), key, typed, item or (bool(dashes) and key is None and not inner), bool(inner))


def keys_of(lines: list[str], line: int, cursor: Cursor) -> set[str]:
    """The keys of the mapping that a position is in, as far as they are recognized without parsing."""
    here = lines[line - 1]
    if cursor.flow:
        return {m["key"] for m in _KEY.finditer(here, here.rfind("{") + 1)}
    keys = {m["key"] for m in _KEY.finditer(here)}
    column = _column(here)
    for step in (-1, 1):
        at = line - 1
        while not (step < 0 and _dashes(lines[at]) and _column(lines[at]) == column):
            at += step
            if not 0 <= at < len(lines):
                break
            indent = _indent(lines[at])
            # A list may be as far to the left as its key.
            if not _is_text(lines[at]) or indent > column or (indent == column and _dashes(lines[at])):
                continue
            if _column(lines[at]) != column or (step > 0 and _dashes(lines[at])):
                break
            match = _KEY.match(lines[at][column:])
            keys |= {match["key"]} if match else set()
    return keys


def _above(lines: list[str], at: int, column: int, *, dash: int | None) -> Path:
    """The keys and items above a line that contain what begins at ``column``."""
    steps: list[str | int] = []
    if dash is not None:
        column, in_list = dash, True
    else:
        in_list = False
    for number in range(at - 1, -1, -1):
        line = lines[number]
        if not _is_text(line):
            continue
        indent, own = _indent(line), _column(line)
        if in_list and indent == column and _dashes(line):
            continue  # another item of the same list
        if not in_list and own == column and _dashes(line):
            # A key of the mapping that begins in this line: its item.
            steps += [0] * line[indent:own].count("-")
            column, in_list = indent, True
            continue
        limit = column if in_list else column - 1
        match = _KEY.match(line[own:])
        if own > limit or match is None or line[own + match.end() :].strip().split("#")[0].strip():
            if own <= limit and indent <= column and match is not None:
                column, in_list = min(column, own), False
            continue
        steps.append(match["key"])
        column, in_list = own, False
        if _dashes(line):
            steps += [0] * line[indent:own].count("-")
            column, in_list = indent, True
        if column == 0 and not in_list:
            break
    return tuple(reversed(steps))


def _in_line(rest: str) -> tuple[Path, str | None, str, bool]:
    """The path within a line, the key whose value is typed, what is typed, and whether it is an item."""
    steps: list[str | int] = []
    frames: list[tuple[str, str | None]] = []
    key: str | None = None
    start, at, quote = 0, 0, ""
    while at < len(rest):
        char = rest[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and not rest[start:at].strip():
            quote = char
        elif char == ":" and (at + 1 == len(rest) or rest[at + 1] in " \t") and key is None:
            key, start = rest[start:at].strip().strip("\"'"), at + 1
        elif char in "{[" and not rest[start:at].strip():
            if key is not None:
                steps.append(key)
            elif frames and frames[-1][0] == "[":
                steps.append(0)
            frames.append((char, key))
            key, start = None, at + 1
        elif char in "}]" and frames:
            _opened, key = frames.pop()
            if key is not None or (frames and frames[-1][0] == "["):
                steps.pop()
            start = at + 1
        elif char == "," and frames:
            key, start = None, at + 1
        at += 1
    typed = rest[start:].lstrip()
    if frames and frames[-1][0] == "[" and key is None:
        return (*steps, 0), None, typed, True
    return tuple(steps), key, typed, False


def _is_text(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _dashes(line: str) -> bool:
    match = _LINE.match(line)
    return bool(match and match["dashes"])


def _column(line: str) -> int:
    """The column of the content of a line, after the dashes of items."""
    match = _LINE.match(line)
    return len(match["indent"]) + len(match["dashes"]) if match else 0
