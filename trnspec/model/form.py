"""The fields of a kind as a form: what a document of it may state, what it must, and the values as YAML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from trnspec.errors import QuantityError, UsageError
from trnspec.model.figure import Figure
from trnspec.model.reflection import (
    ChoiceShape,
    EitherShape,
    FigureShape,
    FlagShape,
    ListShape,
    MapShape,
    NumberShape,
    ObjectShape,
    Shape,
    TextShape,
    field_docs,
    type_words,
)
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, UnitTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@frozen
class Entry:
    """A value that a document may have.

    Attributes:
        path: Its dotted path below ``spec``.
        shape: The shape of the value; of a mapping, that of one of its values.
        description: A sentence.
        example: An example, or an empty text.
        words: The values to choose from, if they are a closed set.
        named: True for the values of a mapping, each of which has a name.
    """

    path: str
    shape: Shape = field(repr=False)
    description: str
    example: str
    words: tuple[str, ...] = ()
    named: bool = False

    @property
    def type(self) -> str:
        """The type of the value in words."""
        return type_words(self.shape)


def entries(cls: type, path: str = "", above: tuple[type, ...] = ()) -> Iterator[Entry]:
    """The entries of a class and of its parts, in its order; lists and mappings of objects are left out."""
    docs = field_docs(cls)
    for member in ObjectShape(cls).fields.values():
        at = f"{path}.{member.name}" if path else member.name
        shape, named = member.shape, False
        if isinstance(shape, ObjectShape) and shape.cls is not Figure:
            if shape.cls not in (*above, cls):
                yield from entries(shape.cls, at, (*above, cls))
            continue
        if isinstance(shape, MapShape):
            shape, named = shape.value, True
        item = shape.item if isinstance(shape, ListShape) else shape
        if isinstance(item, (ObjectShape, ListShape, MapShape)):
            continue
        words = shape.words if isinstance(shape, ChoiceShape) else ()
        yield Entry(at, shape, *_doc(docs.get(member.name)), words, named)


def _doc(doc: tuple[str, str | None] | None) -> tuple[str, str]:
    return ("", "") if doc is None else (doc[0], doc[1] or "")


def missing(cls: type, given: frozenset[str], path: str = "") -> Iterator[str]:
    """The paths that a document with these values must state too.

    The fields that a part requires are required only where the part itself is, or where another field of it is given.
    """
    for member in ObjectShape(cls).fields.values():
        at = f"{path}.{member.name}" if path else member.name
        begun = any(g == at or g.startswith(f"{at}.") for g in given)
        if isinstance(member.shape, ObjectShape) and member.shape.cls is not Figure:
            if member.required or begun:
                yield from missing(member.shape.cls, given, at)
        elif member.required and not begun:
            yield at


def value(entry: Entry, text: str, units: UnitTable = UNITS) -> Any:
    """The value of an entry as YAML has it.

    Args:
        entry: The entry.
        text: The value as text; of a list, with commas between the items.
        units: The units that figures may be written in.

    Raises:
        UsageError: The text is not such a value; the message states what is expected.
    """
    if isinstance(entry.shape, ListShape):
        return [_value(entry.shape.item, item.strip(), entry, units) for item in text.split(",") if item.strip()]
    return _value(entry.shape, text.strip(), entry, units)


def _value(shape: Shape, text: str, entry: Entry, units: UnitTable) -> Any:
    if isinstance(shape, EitherShape):
        return _either(shape, text, entry, units)
    if isinstance(shape, FigureShape):
        try:
            parse(text, shape.dimension, units)
        except QuantityError as error:
            raise UsageError(f"{error}{f'; {error.hint}' if error.hint else ''}{_such_as(entry)}") from None
        return text
    if isinstance(shape, NumberShape):
        digits = text.replace(",", "") if re.match(r"-?[0-9]{1,3}(,[0-9]{3})+(\.|$)", text) else text
        pattern = r"-?[0-9]{1,18}" if shape.whole else r"-?[0-9]{1,18}(\.[0-9]+)?"
        if not re.fullmatch(pattern, digits) or (shape.least is not None and float(digits) < shape.least):
            raise UsageError(f"{text!r} is not an {type_words(shape)}{_such_as(entry)}")
        return int(digits) if shape.whole else float(digits)
    if isinstance(shape, FlagShape):
        if text.lower() not in ("true", "false", "yes", "no"):
            raise UsageError(f"{text!r} is not true or false")
        return text.lower() in ("true", "yes")
    if isinstance(shape, ChoiceShape) and text not in shape.words:
        raise UsageError(f"{text!r} is not one of {', '.join(shape.words)}")
    pattern_ = shape.pattern if isinstance(shape, TextShape) else None
    if pattern_ is not None and not re.search(pattern_.regex, text):
        raise UsageError(f"{text!r} is not {pattern_.words}")
    return text


def _either(shape: EitherShape, text: str, entry: Entry, units: UnitTable) -> Any:
    """The value in the first of several shapes that it fits."""
    first: UsageError | None = None
    for option in shape.options:
        try:
            return _value(option, text, entry, units)
        except UsageError as error:
            first = first or error
    assert first is not None  # there is at least one shape
    raise first


def _such_as(entry: Entry) -> str:
    return f"; expected {entry.type}, such as {entry.example}" if entry.example else f"; expected {entry.type}"


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted path as nested mappings, in their order."""
    tree: dict[str, Any] = {}
    for path, each in values.items():
        *above, last = path.split(".")
        branch = tree
        for step in above:
            branch = branch.setdefault(step, {})
        branch[last] = each
    return tree
