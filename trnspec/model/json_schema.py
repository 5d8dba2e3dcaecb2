"""The JSON Schema of a kind, generated from its classes.

Fields, their constraints and descriptions are defined in the classes only; the schemas in ``schemas/`` are generated for
editors and other programs, and a test compares the two. See ``docs/explanation/schemas.md``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from trnspec.model.annotations import NAME_PATTERN, Pattern
from trnspec.model.document import API_VERSIONS, Claim, Metadata
from trnspec.model.figure import Figure
from trnspec.model.ref import target_word
from trnspec.model.reflection import (
    ChoiceShape,
    EitherShape,
    Field,
    FigureShape,
    FlagShape,
    ListShape,
    MapShape,
    NumberShape,
    ObjectShape,
    RefShape,
    Shape,
    TextShape,
    fields_of,
    shape_at,
    shape_of,
    summary,
    unless_announced,
)
from trnspec.model.renames import is_group, renames
from trnspec.model.rounded import PATTERN as ROUNDED
from trnspec.model.sourced import Origin
from trnspec.quantities.quantity import pattern
from trnspec.quantities.units import UNITS, Dimension, UnitTable

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

MESSAGE = "errorMessage"
"""The keyword of editors for what they show in place of a regular expression; validators ignore it."""


def document_schema(
    kind: str, spec: type, table: UnitTable = UNITS, api_versions: Sequence[str] = API_VERSIONS
) -> Schema:
    """The schema of the documents of one kind.

    Args:
        kind: The name of the kind, ``Chip``.
        spec: The class of its specs.
        table: The units that figures may be written in.
        api_versions: The versions of the documents.
    """
    definitions = _Definitions(table)
    return {
        "$schema": DIALECT,
        "$id": f"urn:trnspec:schema:v1:{kind.lower()}",
        **_document(kind, spec, definitions, api_versions),
        "$defs": dict(sorted(definitions.schemas.items())),
    }


def combined_schema(kinds: Mapping[str, tuple[type, Sequence[str]]], table: UnitTable = UNITS) -> Schema:
    """One schema of the documents of several kinds, which ``kind`` distinguishes.

    Args:
        kinds: The classes of the specs and the versions of the documents, by the names of the kinds.
        table: The units that figures may be written in.
    """
    definitions = _Definitions(table)
    branches = []
    for kind, (spec, api_versions) in kinds.items():
        build = functools.partial(_document, kind, spec, definitions, api_versions)
        document = definitions.refer((kind, "document"), f"{kind}Document", build)
        branches.append({"if": {"required": ["kind"], "properties": {"kind": {"const": kind}}}, "then": document})
    return {
        "$schema": DIALECT,
        "$id": "urn:trnspec:schema:v1",
        "title": "trnspec",
        "description": "A document of any kind.",
        "type": "object",
        "required": ["api_version", "kind"],
        "properties": {"kind": {"enum": list(kinds), "description": "The kind of the document."}},
        "allOf": branches,
        "$defs": dict(sorted(definitions.schemas.items())),
    }


def _document(kind: str, spec: type, definitions: _Definitions, api_versions: Sequence[str]) -> Schema:
    properties: Schema = {
        "api_version": {"enum": list(api_versions), "description": "The version of the document format."},
        "kind": {"const": kind, "description": summary(spec)},
        "metadata": _schema(shape_of(Metadata), definitions),
        "spec": _schema(shape_of(spec), definitions),
        "claims": {
            "type": "array",
            "items": _schema(shape_of(Claim), definitions),
            "description": "What other sources, or older versions of the same, say of these figures.",
        },
    }
    return {
        "title": kind,
        "description": summary(spec),
        "type": "object",
        "required": ["api_version", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": properties,
    }


class _Definitions:
    """The schemas that are referred to by name: one for each class, even if two classes have the same name."""

    def __init__(self, table: UnitTable) -> None:
        self.table = table
        self.schemas: Schema = {}
        self._names: dict[Hashable, str] = {}

    def refer(self, key: Hashable, name: str, build: Callable[[], Schema]) -> Schema:
        if key not in self._names:
            free = name
            while free in self.schemas:
                free = f"{name}{len(self.schemas)}"
            self._names[key] = free
            self.schemas[free] = {}  # a placeholder while the schema of a class that contains itself is built
            self.schemas[free] = build()
        return {"$ref": f"#/$defs/{self._names[key]}"}


def _schema(shape: Shape, definitions: _Definitions) -> Schema:  # noqa: PLR0911  # one branch for each shape
    match shape:
        case ObjectShape(cls):
            build = _claim if cls is Claim else functools.partial(_object, cls)
            return definitions.refer(cls, cls.__name__, lambda: build(definitions))
        case FigureShape(dimension):
            name = "".join(w.title() for w in dimension.name.split("_")) if dimension else "Any"
            return definitions.refer(shape, f"{name}Figure", lambda: _figure(dimension, definitions))
        case RefShape(cls):
            target = target_word(cls)
            text: Schema = {"type": "string", "pattern": NAME_PATTERN.regex, "$comment": f"names a {target}"}
            return {**text, MESSAGE: f"The name of a {target}: {NAME_PATTERN.words}."}
        case TextShape(pattern):
            return _text(pattern)
        case NumberShape(whole, least, rounded):
            number: Schema = {"type": "integer" if whole else "number"}
            if rounded:
                number = {"type": ["integer", "string"], **_limits(ROUNDED)}
            return number if least is None else {**number, "minimum": least}
        case FlagShape():
            return {"type": "boolean"}
        case ChoiceShape(words):
            return {"enum": list(words)}
        case ListShape(item, least):
            return {"type": "array", "items": _schema(item, definitions)} | ({"minItems": least} if least else {})
        case MapShape(value):
            return {"type": "object", "additionalProperties": _schema(value, definitions)}
        case EitherShape(options):
            return {"anyOf": [_schema(o, definitions) for o in options]}


def _text(pattern: Pattern | None) -> Schema:
    text: Schema = {"type": "string", **_limits(pattern)}
    if pattern is None or pattern.numbers is None:
        return text
    least, largest = pattern.numbers
    number = {"type": "integer", "minimum": least, "maximum": largest}
    return {"anyOf": [text, number], MESSAGE: text[MESSAGE]}


def _limits(pattern: Pattern | None) -> Schema:
    """The limits of a text. ``maxPaths`` is a keyword of trnspec, which other validators ignore."""
    if pattern is None:
        return {}
    limits = {"pattern": pattern.regex, "maxLength": pattern.longest, "maxPaths": pattern.paths}
    message = {MESSAGE: f"Write {pattern.words}."} if pattern.regex else {}
    return {keyword: limit for keyword, limit in limits.items() if limit is not None} | message


def _object(cls: type, definitions: _Definitions) -> Schema:
    fields = fields_of(cls).values()
    properties = {field.name: _property(field, definitions) for field in fields}
    _add_former_paths(properties, cls, definitions)
    required = [field.name for field in fields if field.required]
    always = [name for name in required if name not in unless_announced(cls)]
    plain = {"const": "announced"}
    announced = {"anyOf": [plain, {"type": "object", "required": ["value"], "properties": {"value": plain}}]}
    conditional = {
        "if": {"required": ["status"], "properties": {"status": announced}},
        "else": {
            "required": required,
            # Findings take the names and texts of fields from here.
            "properties": {f.name: {"description": f.description} if f.name not in always else {} for f in fields},
        },
    }
    return {
        "type": "object",
        "title": re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__),
        "description": summary(cls),
        "required": always,
        **({} if always == required else conditional),
        "additionalProperties": False,
        "properties": properties,
    }


def _claim(definitions: _Definitions) -> Schema:
    """The schema of a claim, which has ``sources`` in place of ``source`` where several make it alike."""
    schema = _object(Claim, definitions)
    source = schema["properties"]["source"]
    name = {key: source[key] for key in ("type", "pattern", "$comment", MESSAGE)}
    several = {
        "title": "sources",
        "description": "In place of source: the sources that make the same claim, at the same place if it is given.",
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": name,
        "examples": [["ec2-api-moto-5.2.1", "ec2-api-moto-5.2.5"]],
    }
    return {
        **schema,
        "required": [key for key in schema["required"] if key != "source"],
        "oneOf": [{"required": ["source"]}, {"required": ["sources"]}],
        "properties": {**schema["properties"], "sources": several},
    }


def _add_former_paths(properties: Schema, cls: type, definitions: _Definitions) -> None:
    """Add the former paths of renamed attributes to the properties of a class, marked as deprecated."""
    for old, new in reversed(list(renames(cls).items())):  # a group comes before its members
        present = shape_at(cls, new)
        if present is None:
            raise TypeError(f"{cls.__name__}.RENAMED leads to {'.'.join(map(str, new))}, which the class has not")
        former = {"description": f"Now {'.'.join(map(str, new))}.", "deprecated": True}
        *way, last = map(str, old)
        members = properties
        for step in way:
            members = members[step]["properties"]
        if is_group(old, new):
            figure = {**_schema(present, definitions), **former}
            group = shape_at(cls, old)
            names = group.fields if isinstance(group, ObjectShape) else ()
            # "required" and "not required" hold for a bare text; of mappings, for those in the form of a figure.
            bare: Schema = {
                "type": ["string", "number", "boolean", "object"],
                "required": ["value"],
                "not": {"type": "object", "anyOf": [{"required": [name]} for name in names]},
            }
            present_form = {"$ref": members[last].pop("$ref")}
            members[last] = {**members[last], "if": bare, "then": figure, "else": present_form}
        elif isinstance(present, ObjectShape):
            closed = {"type": "object", "additionalProperties": False, "properties": {}}
            members[last] = {"title": last, **former, **closed}
        else:
            members[last] = {"title": last, **_schema(present, definitions), **former}


def _property(field: Field, definitions: _Definitions) -> Schema:
    schema = _schema(field.shape, definitions)
    if field.sourced:
        name = "SourcedCount" if isinstance(field.shape, NumberShape) else "SourcedText"
        form = definitions.refer(("sourced", field.shape), name, lambda: _sourced(schema, definitions))
        schema = {"if": {"type": "object"}, "then": form, "else": schema}
    schema = {"title": field.name, "description": field.description, **schema}
    if field.example:
        schema["examples"] = [example_of(field.shape, field.example)]
    return schema


def _sourced(value: Schema, definitions: _Definitions) -> Schema:
    """The schema of a count or a word with an origin."""
    origin = _object(Origin, definitions)
    what = {"title": "value", "description": "The value."}
    return {**origin, "required": ["value"], "properties": {"value": {**what, **value}, **origin["properties"]}}


def example_of(shape: Shape, text: str) -> Any:
    """The value of an ``Example:`` in a docstring, of the type that the field has in a document.

    Raises:
        ValueError: The field is a number, and the text is not one.
    """
    if isinstance(shape, ListShape):
        return [example_of(shape.item, text)]
    if isinstance(shape, NumberShape):
        if shape.rounded and not text.isdigit():
            return text
        try:
            return int(text) if shape.whole else float(text)
        except ValueError:
            number = "a number; declare a quantity with a unit as a figure type such as Capacity"
            raise ValueError(f"the example {text!r} is not {'an integer' if shape.whole else number}") from None
    if isinstance(shape, FlagShape):
        return text == "true"
    return text


def _figure(dimension: Dimension | None, definitions: _Definitions) -> Schema:
    table = definitions.table
    regex = any_pattern(table) if dimension is None else pattern(dimension, table)
    words = "figure" if dimension is None else dimension.name.replace("_", " ").lower()
    units = "" if dimension is None else " Units: " + ", ".join(table.spellings(dimension)) + "."
    example = "2.9 TB/s" if dimension is None else f"2.5 {dimension.example}"
    message = f"Write the {words} with its unit, such as {example}; in braces, quote one with a comma."
    text: Schema = {"type": "string", "pattern": regex, MESSAGE: message}
    figure = _object(Figure, definitions)
    figure["properties"]["value"] = {**figure["properties"]["value"], **text}
    return {
        "title": f"{words}, as printed",
        "description": f"A {words} with its unit, as printed: digits carry the precision, '~' and 'up to' are kept.{units}",
        "anyOf": [text, figure],
    }


def any_pattern(table: UnitTable = UNITS) -> str:
    """The regular expression of a figure of any dimension."""
    return "|".join(pattern(d, table) for d in Dimension)
