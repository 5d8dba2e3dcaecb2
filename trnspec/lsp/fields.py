"""The documentation of the field at a path of a document."""

from __future__ import annotations

from trnspec.model.figure import Figure
from trnspec.model.reflection import (
    EitherShape,
    Field,
    FigureShape,
    ListShape,
    MapShape,
    ObjectShape,
    fields_of,
    shape_in_document,
)
from trnspec.model.sourced import Origin
from trnspec.quantities.units import UnitTable
from trnspec.yaml import Path

TOP = {
    "api_version": "The version of the format: trnspec/v1.",
    "kind": "The kind of the document, such as Chip.",
    "metadata": "Name, title and source of the document.",
    "spec": "The figures of the document.",
    "claims": "The values that other sources give for figures of the document.",
}


def classes_at(spec: type, path: Path) -> list[type]:
    """The classes whose fields a mapping at a path may have; none where it is not a mapping with known keys."""
    shape = shape_in_document(spec, path)
    if shape is None or isinstance(shape, (ListShape, MapShape)):
        return []
    options = shape.options if isinstance(shape, EitherShape) else (shape,)
    classes = [
        Figure if isinstance(o, FigureShape) else o.cls for o in options if isinstance(o, (FigureShape, ObjectShape))
    ]
    # A count, a word or a date may be a mapping, with its value and its source.
    return classes or [Origin]


def field_at(spec: type, path: Path) -> Field | None:
    """The field that a path of a document ends in; that of the list for an item of a list."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    if len(path) < 2:
        return None
    found = (fields_of(cls).get(str(path[-1])) for cls in classes_at(spec, path[:-1]))
    return next((field for field in found if field is not None), None)


def fields_at(spec: type, path: Path) -> list[Field]:
    """The fields that a mapping at a path may have."""
    return list({name: field for cls in classes_at(spec, path) for name, field in fields_of(cls).items()}.values())


def described(field: Field, table: UnitTable) -> str:
    """The documentation of a field as Markdown."""
    units = field.units(table)
    shown = ", ".join(units[:6]) + (", ..." if len(units) > 6 else "")
    head = f"**{field.name}**: {field.type_words}" + (f" [{shown}]" if shown else "")
    head += ", required" if field.required else ""
    example = f"Example: `{field.example}`" if field.example else ""
    return "\n\n".join(part for part in (head, field.description, example) if part)
