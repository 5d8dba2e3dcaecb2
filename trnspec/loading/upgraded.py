"""The edit that writes a document whose data were upgraded: what stays keeps its text, and every comment is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trnspec.model.document_text import entry_text, flow_text
from trnspec.yaml import Document, Edit, Path, read_text
from trnspec.yaml.edits import apply, joined, line_end_of, next_line, removal, renaming
from trnspec.yaml.layout import LayoutError, comments


def upgrade_edit(document: Document, data: Mapping[str, Any]) -> Edit | None:
    """The edit after which a document has other data; ``None`` where it cannot be written, or a comment would be lost."""
    try:
        edit = joined(document, _Upgrade(document).mapping((), document.data or {}, data))
        if edit is None:
            return None
        text, _ = apply(document.text, [edit])
        is_kept = sorted(comments(text)) == sorted(comments(document.text))
    except (LayoutError, _UnwritableError):
        return None
    return edit if is_kept and read_text(text).data == data else None


class _UnwritableError(Exception):
    """A value that only a change of the collection around it can change."""


def _is_alike(old: Any, new: Any) -> bool:
    """Whether a value may be another one under another key."""
    return old == new or (isinstance(old, dict) and isinstance(new, dict))


class _Upgrade:
    """The edits of the parts of a document that differ."""

    def __init__(self, document: Document) -> None:
        self._document, self._text, self._lines = document, document.text, document.lines
        self._end = line_end_of(document.text)

    def mapping(self, path: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Edit]:
        """The edits of a mapping.

        Raises:
            _UnwritableError: It is in braces and its keys change, or its first key has a dash before it.
        """
        added = [key for key in new if key not in old]
        removed = [key for key in old if key not in new]
        if len(added) == len(removed) and all(map(_is_alike, map(old.get, removed), map(new.get, added))):
            names = dict(zip(removed, added, strict=True))
            edits = [self._renaming((*path, key), name) for key, name in names.items()]
            inside = (self._value((*path, key), value, new[names.get(key, key)]) for key, value in old.items())
            return [*edits, *(edit for each in inside for edit in each)]
        if (added or removed) and self._text.startswith("{", self._document.extent(path)[1]):
            raise _UnwritableError
        edits = [edit for key in removed for edit in self._entry((*path, key), None)]
        edits += [edit for key in old if key in new for edit in self._value((*path, key), old[key], new[key])]
        groups: list[tuple[int, list[str]]] = [(-1, [])]  # the position of a key that stays, and the entries below it
        keys = list(old)
        for key in new:
            if key in old:
                groups.append((keys.index(key), []))
            else:
                groups[-1][1].extend(entry_text({key: new[key]}, self._margin((*path, keys[0]))))
        for above, lines in groups:
            while lines and keys[above + 1 : above + 2] and keys[above + 1] in removed:
                above += 1  # noqa: PLW2901  # in the place of what is removed, below its comments
            edits += self._insertion((*path, keys[max(above, 0)]), lines, below=above >= 0)
        return edits

    def _renaming(self, path: Path, name: str) -> Edit:
        edit = renaming(self._document, path, name)
        if edit is None:
            raise _UnwritableError
        return edit

    def _value(self, path: Path, old: Any, new: Any) -> list[Edit]:
        if old == new and type(old) is type(new):
            return []
        try:
            if old and new and isinstance(old, dict) and isinstance(new, dict):
                return self.mapping(path, old, new)
            if isinstance(old, list) and isinstance(new, list) and len(old) >= len(new) > 0:
                return list(self._sequence(path, old, new))
        except _UnwritableError:
            pass
        return self._entry(path, new)

    def _sequence(self, path: Path, old: list[Any], new: list[Any]) -> Iterator[Edit]:
        """Changes of items of a list, or removals of items."""
        if len(old) == len(new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from self._value((*path, index), one, other)
            return
        if self._text.startswith("[", self._document.extent(path)[1]):
            raise _UnwritableError
        rest = list(new)
        for index, item in enumerate(old):
            if rest and item == rest[0]:
                rest.pop(0)
            elif (edit := removal(self._document, (*path, index))) is not None:
                yield edit
            else:
                raise _UnwritableError
        if rest:
            raise _UnwritableError

    def _margin(self, path: Path) -> str:
        """The indentation of a key that begins its line."""
        start = self._document.extent(path)[0]
        margin = self._text[self._line(start) : start]
        if margin.strip(" "):
            raise _UnwritableError
        return margin

    def _line(self, offset: int) -> int:
        return offset - self._lines.place(offset).column + 1

    def _entry(self, path: Path, new: Any) -> list[Edit]:
        """The replacement of an entry, or its removal for ``None``; comments in it go above it."""
        start, value, end = self._document.extent(path)
        raw = self._text[start:end]
        kept = comments(raw) if "#" in raw and "\n" in raw else []
        if not kept and new is not None and "\n" not in raw:
            return [self._document.edit(value, end, flow_text(new))]
        if isinstance(path[-1], int):
            raise _UnwritableError  # an item of several lines
        margin = self._margin(path)
        last = next_line(self._document, end)
        rest = self._text[end:last].rstrip("\r\n")
        kept += [rest.strip()] if new is None and rest.strip() else []
        lines = [f"{margin}{comment}" for comment in kept]
        lines += [] if new is None else entry_text({str(path[-1]): new}, margin)
        if new is not None:
            lines[-1] += rest
        text = "".join(line + self._end for line in lines)
        return [self._document.edit(start - len(margin), last, text)]

    def _insertion(self, path: Path, lines: list[str], *, below: bool) -> list[Edit]:
        """New entries below one, or above it."""
        if not lines:
            return []
        start, _, end = self._document.extent(path)
        at = next_line(self._document, end) if below else self._line(start)
        lead = "" if self._lines.place(at).column == 1 else self._end
        return [self._document.edit(at, at, lead + "".join(line + self._end for line in lines))]
