"""The fields of a kind for people: name, type, units, description and example, from the classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.model.figure import Figure
from trnspec.model.json_schema import field_docs
from trnspec.model.reflection import (
    ChoiceShape,
    EitherShape,
    FieldShape,
    FigureShape,
    FlagShape,
    ListShape,
    MapShape,
    NumberShape,
    ObjectShape,
    RefShape,
    Shape,
    TextShape,
)
from trnspec.quantities.units import UNITS, UnitTable

if TYPE_CHECKING:
    from collections.abc import Iterator


@frozen
class FieldReference:
    """One field.

    Attributes:
        path: Its dotted path below ``spec``.
        type: The type in words: ``bandwidth``, ``name of a Server``, ``integer >= 1``.
        units: The units of a figure, those nearest to the usual one first; empty for other types.
        required: Whether every document must have it.
        description: A sentence.
        example: An example value, or an empty text.
        nested: Whether it has fields of its own.
    """

    path: str
    type: str
    units: tuple[str, ...]
    required: bool
    description: str
    example: str
    nested: bool


def fields_of(cls: type, path: str = "", units: UnitTable = UNITS) -> Iterator[FieldReference]:
    """The fields of a class, in its order.

    Args:
        cls: The class of a spec, or of a part of one.
        path: The dotted path of the part.
        units: The units that figures may be written in.
    """
    docs = field_docs(cls)
    for field in ObjectShape(cls).fields.values():
        yield _reference(field, f"{path}.{field.name}" if path else field.name, docs.get(field.name, ("", None)), units)


def field_at(cls: type, path: str, units: UnitTable = UNITS) -> tuple[FieldReference, type | None] | None:
    """The field at a dotted path below a class, and the class of its own fields; ``None`` where there is no such field.

    Items of lists and values of mappings are passed through: ``peak.dense`` and ``slices.chips`` alike.
    """
    reference: FieldReference | None = None
    current: type | None = cls
    walked: list[str] = []
    for step in path.split("."):
        if current is None or step not in ObjectShape(current).fields:
            return None
        walked.append(step)
        field = ObjectShape(current).fields[step]
        docs = field_docs(current).get(step, ("", None))
        reference = _reference(field, ".".join(walked), docs, units)
        current = _class_of(field.shape)
    return None if reference is None else (reference, current)


def _reference(field: FieldShape, path: str, doc: tuple[str, str | None], units: UnitTable) -> FieldReference:
    return FieldReference(
        path,
        type_words(field.shape),
        _units(field.shape, units),
        field.required,
        doc[0],
        doc[1] or "",
        _class_of(field.shape) is not None,
    )


def _class_of(shape: Shape) -> type | None:
    """The class whose fields a value has; that of the items for a list or a mapping."""
    if isinstance(shape, ListShape):
        return _class_of(shape.item)
    if isinstance(shape, MapShape):
        return _class_of(shape.value)
    if isinstance(shape, EitherShape):
        return next((cls for option in shape.options if (cls := _class_of(option))), None)
    return shape.cls if isinstance(shape, ObjectShape) and shape.cls is not Figure else None


def _units(shape: Shape, units: UnitTable) -> tuple[str, ...]:
    if isinstance(shape, FigureShape) and shape.dimension is not None:
        usual = units.unit(shape.dimension.usual)
        same = [u for u in units if u.dimension is shape.dimension]
        return tuple(u.symbol for u in sorted(same, key=lambda u: abs(math.log(u.factor / usual.factor))))
    if isinstance(shape, (ListShape, MapShape)):
        return _units(shape.item if isinstance(shape, ListShape) else shape.value, units)
    return ()


def type_words(shape: Shape) -> str:  # noqa: PLR0911  # one branch for each shape
    """The type of a value in words."""
    if isinstance(shape, FigureShape):
        return "figure" if shape.dimension is None else shape.dimension.word
    if isinstance(shape, RefShape):
        return f"name of a {shape.target.__name__}"
    if isinstance(shape, TextShape):
        return "text"
    if isinstance(shape, NumberShape):
        number = "integer" if shape.whole else "number"
        return number if shape.least is None else f"{number} >= {shape.least}"
    if isinstance(shape, FlagShape):
        return "true or false"
    if isinstance(shape, ChoiceShape):
        return " | ".join(shape.words)
    if isinstance(shape, ListShape):
        return f"list of {type_words(shape.item)}"
    if isinstance(shape, MapShape):
        return f"mapping to {type_words(shape.value)}"
    if isinstance(shape, EitherShape):
        return " or ".join(type_words(option) for option in shape.options)
    return shape.cls.__name__
