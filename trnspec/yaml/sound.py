"""A quick reader of plain data, for texts without anything that has to be reported.

It takes the same events as :class:`trnspec.yaml.builder.Builder` and gives up at the first construct that might be a problem;
the text is then read again with positions and problems. Nearly every document of a catalog is free of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.yaml.scalars import OutOfRange, doubt, resolve
from trnspec.yaml.syntax import bad_escape
from trnspec.yaml.text import INVISIBLE

if TYPE_CHECKING:
    from trnspec.yaml.document import Json, Limits


def sound_data(text: str, parser: Any, limits: Limits) -> dict[str, Json] | None:
    """The data of a text that has no problems; ``None`` if it has any, or might have.

    Args:
        text: The first document of a file.
        parser: A parser of this text, with ``get_event()``.
        limits: The limits of the reader.
    """
    if not text.isascii() and INVISIBLE.search(text):
        return None
    try:
        return _read(text, parser.get_event, limits)
    except Exception:  # noqa: BLE001  # a syntax error, or an error of the pure scanner; the builder reports it
        return None


def _read(text: str, get_event: Any, limits: Limits) -> dict[str, Json] | None:  # noqa: C901, PLR0911, PLR0912  # the loop over all events of all files
    is_ascii, most, depth, longest = text.isascii(), limits.nodes, limits.depth, limits.scalar
    nodes = 0
    root: Any = None
    stack: list[Any] = []
    node: Any = None  # the innermost open mapping or list
    is_mapping = False
    key: str | None = None
    while (event := get_event()) is not None:
        name = type(event).__name__
        if name == "ScalarEvent":
            style, value = event.style, event.value
            nodes += 1
            if event.anchor is not None or event.tag is not None or len(value) > longest or nodes > most:
                return None
            if style == '"':
                first, last = event.start_mark.index, event.end_mark.index
                if text.find("\\", first, last) >= 0 and bad_escape(text, first, last) is not None:
                    return None
            if is_mapping and key is None:
                last = event.end_mark.index
                if (not style and (value == "<<" or type(resolve(value)) is not str)) or value in node:
                    return None
                if text[last : last + 1] in (" ", "\t") or not (is_ascii or value.isascii()):
                    return None  # a space before the colon, or a name that looks like another one
                key = value
                continue
            if not style:
                plain = resolve(value)
                if isinstance(plain, OutOfRange):
                    return None
                if isinstance(plain, (int, float)) and not isinstance(plain, bool) and doubt(value, plain):
                    return None
                value = plain
            if node is None:
                return None
            if is_mapping:
                node[key] = value
                key = None
            else:
                node.append(value)
        elif name in ("MappingStartEvent", "SequenceStartEvent"):
            nodes += 1
            if event.anchor is not None or event.tag is not None or (is_mapping and key is None):
                return None
            if nodes > most or len(stack) >= depth:
                return None
            inner: Any = {} if name == "MappingStartEvent" else []
            if node is None:
                root = inner
            elif is_mapping:
                node[key] = inner
            else:
                node.append(inner)
            stack.append((node, is_mapping))
            node, is_mapping, key = inner, name == "MappingStartEvent", None
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            node, is_mapping = stack.pop()
            key = None
        elif name == "AliasEvent":
            return None
    return root if isinstance(root, dict) else None
