"""Edits of a document: each replaces a part of its text, and leaves all the rest as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from attrs import evolve

from trnspec.yaml.document import Document, Edit, LineTable, Path, Place


def apply(text: str, edits: Iterable[Edit]) -> tuple[str, list[Edit]]:
    """A text after some edits, and those that were applied: where two overlap, the earlier one."""
    lines = LineTable(text)
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
    start, _, _ = document.extent(path)
    for raw in (str(path[-1]), json.dumps(path[-1]), f"'{path[-1]}'"):
        if document.text.startswith(raw, start):
            return document.edit(start, start + len(raw), raw.replace(str(path[-1]), name))
    return None


def joined(document: Document, edits: Iterable[Edit | None]) -> Edit | None:
    """Several edits as one, which also covers what is between them; ``None`` if one is missing."""
    known = list(edits)
    every = sorted((e for e in known if e is not None), key=lambda e: (e.start, e.end))
    if not every or len(every) < len(known):
        return None
    start, end = document.lines.offset(every[0].start), document.lines.offset(every[-1].end)
    text, _ = apply(document.text, every)
    rest = len(document.text) - end
    return Edit(every[0].start, every[-1].end, text[start : len(text) - rest])


def item(document: Document, path: Path, *content: str, instead: int | None = None) -> Edit | None:
    """The edit that adds the first item of a list in block style, which is created where it is missing.

    A new list at the root is the last key; another one is below the first key of its mapping.

    Args:
        document: The document.
        path: The path of the list.
        content: The lines of the item.
        instead: The index of an item that it replaces.

    Returns:
        ``None`` for a list in brackets or in a mapping in braces, and where a comment of the replaced item would be lost.
    """
    text, line_end, head = document.text, line_end_of(document.text), ""
    if path in document.places:
        first = document.places.get((*path, 0))
        at = 0 if first is None else document.lines.offset(Place(first.value.line, 1))
        dash = re.compile(r" *- +").match(text, at)
        if first is None or dash is None:
            return None
        margin = dash[0]
    else:
        siblings, own, at = _neighbours(document, path), "", len(text)
        if len(path) > 1:
            if not siblings or text.startswith("{", document.extent(path[:-1])[1]):
                return None
            start, _, end = document.extent(siblings[0])
            own, at = " " * (document.lines.place(start).column - 1), next_line(document, end)
        head = ("" if document.lines.place(at).column == 1 else line_end) + f"{own}{path[-1]}:{line_end}"
        margin = f"{own}  - "
    lines = [margin + content[0], *(" " * len(margin) + line for line in content[1:])]
    body = "".join(line + line_end for line in lines)
    if instead is None:
        return document.edit(at, at, head + body)
    removed = removal(document, (*path, instead))
    if (*path, 1) not in document.places:
        head = f"{path[-1]}:{line_end}"  # the only item is removed with its key
    return removed and evolve(removed, text=head + body)


def next_line(document: Document, at: int) -> int:
    """The start of the line after an offset, or the offset where it is at the start of a line."""
    if document.lines.place(at).column == 1:
        return at
    rest = re.compile(r"[^\r\n]*(\r\n|\n|\r|\Z)").match(document.text, at)
    return at if rest is None else rest.end()


def line_end_of(text: str) -> str:
    """The line end of the first line of a text."""
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"


_CUT = re.compile(r"(?:[^,}\]\"'\r\n]*[0-9](?:,[0-9]{3})+(?![0-9]))+[^,}\]\"'\r\n]*")


def cut_text(document: Document, path: Path) -> str:
    """The whole of a text in braces that the comma of a number ends, as in ``{derived: 4 x 3,200 Gbps}``; or empty."""
    if path not in document.places:
        return ""
    _, start, end = document.extent(path)
    match = _CUT.match(document.text, start)
    text = match[0].rstrip() if match is not None else ""
    return text if len(text) > end - start else ""


def quoting(document: Document, start: Place, text: str) -> Edit | None:
    """The edit that puts a text of a flow collection in quotes; ``None`` if it does not end where a value ends."""
    first = document.lines.offset(start)
    last = first + len(text)
    if document.text[first:last] != text or not re.match(r"[ \t]*[,}\]\r\n]", document.text[last:]):
        return None
    return document.edit(first, last, f'"{text}"')


def replacement(document: Document, path: Path, old: str, new: str) -> Edit | None:
    """The edit that replaces a part of a value; ``None`` if the value does not contain it exactly once."""
    if path not in document.places:
        return None
    _, start, end = document.extent(path)
    if document.text.count(old, start, end) != 1:
        return None
    at = document.text.index(old, start, end)
    return document.edit(at, at + len(old), new)


def _neighbours(document: Document, path: Path) -> list[Path]:
    """A path and those next to it: the items before and after it, or all keys of its mapping."""
    *above, last = path
    if isinstance(last, int):
        near = ((*above, index) for index in range(max(last - 1, 0), last + 2))
        return [each for each in near if each in document.places]
    return [p for p in document.places if p[:-1] == path[:-1] and len(p) == len(path)]


def removal(document: Document, path: Path) -> Edit | None:
    """The edit that removes an item or a key with its value, and the collection that would be empty without it.

    Comments are never removed: ``None`` if there is one on the lines of the value.
    """
    span = document.places.get(path)
    if span is None or not path:
        return None
    siblings = _neighbours(document, path)
    if len(siblings) == 1:
        return removal(document, path[:-1])
    lines, text = document.lines, document.text
    starts = {p: document.extent(p)[0] for p in siblings}
    start, _, end = document.extent(path)
    if text.startswith(("{", "["), document.extent(path[:-1])[1]):
        index = siblings.index(path)
        if index + 1 < len(siblings):
            end = starts[siblings[index + 1]]
        else:
            start = document.extent(siblings[index - 1])[2]
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
    return document.edit(start, end, "")
