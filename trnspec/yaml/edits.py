"""Edits of a document: each replaces a part of its text, and leaves all the rest as it is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from trnspec.yaml.document import Edit, Lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.yaml.document import Document, Path, Place


def apply(text: str, edits: Iterable[Edit]) -> tuple[str, list[Edit]]:
    """A text after some edits, and those that were applied: where two overlap, the earlier one."""
    lines = Lines(text)
    spans = sorted({(lines.offset(e.start), lines.offset(e.end), e.text): e for e in edits}.items())
    pieces, at, applied = [], 0, []
    for (start, end, new), edit in spans:
        if start >= at:
            pieces += [text[at:start], new]
            at = end
            applied.append(edit)
    return "".join([*pieces, text[at:]]), applied


def renaming(document: Document, path: Path, name: str) -> Edit | None:
    """The edit that renames the key of a value; ``None`` for an empty name or a key that is not written plainly."""
    span = document.places.get(path)
    if span is None or span.key is None or not name:
        return None
    lines = Lines(document.text)
    start = lines.offset(span.key)
    for raw in (str(path[-1]), json.dumps(path[-1]), f"'{path[-1]}'"):
        if document.text.startswith(raw, start):
            return Edit(span.key, lines.place(start + len(raw)), raw.replace(str(path[-1]), name))
    return None


def quoting(document: Document, start: Place, text: str) -> Edit | None:
    """The edit that puts a text of a flow collection in quotes; ``None`` if it does not end where a value ends."""
    lines = Lines(document.text)
    first = lines.offset(start)
    last = first + len(text)
    if document.text[first:last] != text or not re.match(r"[ \t]*[,}\]\r\n]", document.text[last:]):
        return None
    return Edit(start, lines.place(last), f'"{text}"')


def replacement(document: Document, path: Path, old: str, new: str) -> Edit | None:
    """The edit that replaces a part of a value; ``None`` if the value does not contain it exactly once."""
    span = document.places.get(path)
    if span is None:
        return None
    lines = Lines(document.text)
    start, end = lines.offset(span.value), lines.offset(span.end)
    if document.text.count(old, start, end) != 1:
        return None
    at = document.text.index(old, start, end)
    return Edit(lines.place(at), lines.place(at + len(old)), new)


def removal(document: Document, path: Path) -> Edit | None:
    """The edit that removes an item or a key with its value, and the collection that would be empty without it.

    Comments are never removed: ``None`` if there is one on the lines of the value.
    """
    span = document.places.get(path)
    if span is None or not path:
        return None
    siblings = [p for p in document.places if p[:-1] == path[:-1] and len(p) == len(path)]
    if len(siblings) == 1:
        return removal(document, path[:-1])
    lines, text = Lines(document.text), document.text
    starts = {p: lines.offset(document.places[p].key or document.places[p].value) for p in siblings}
    start, end = starts[path], lines.offset(span.end)
    if text.startswith(("{", "["), lines.offset(document.places[path[:-1]].value)):
        index = siblings.index(path)
        if index + 1 < len(siblings):
            end = starts[siblings[index + 1]]
        else:
            start = lines.offset(document.places[siblings[index - 1]].end)
    else:
        line = start - (lines.place(start).column - 1)
        before = text[line:start]
        rest = re.compile(r"[ \t]*(\r\n|\n|\r|\Z)").match(text, end)
        if lines.place(end).column > 1:
            end = rest.end() if rest is not None else -1
        if re.fullmatch(r" *" if span.key is not None else r" *- +", before) is None or end < 0:
            return None
        start = line
    if re.search(r"(?:^|\s)#", text[start:end]) is not None:
        return None
    return Edit(lines.place(start), lines.place(end), "")
