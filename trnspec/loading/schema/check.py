"""JSON Schema's errors as problems with a code, a place and the sentence that a person can act on.

Only documents that the classes refused come here, so a sound file never pays for importing ``jsonschema``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from trnspec.diagnostics import did_you_mean
from trnspec.errors import QuantityError
from trnspec.model.annotations import NAME_PATTERN
from trnspec.model.json_schema import document_schema
from trnspec.model.reflection import (
    ChoiceShape,
    EitherShape,
    FigureShape,
    FlagShape,
    ListShape,
    MapShape,
    NumberShape,
    ObjectShape,
    RefShape,
    Shape,
    TextShape,
    dotted,
    shape_in_document,
)
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import Document, Path, Problem

if TYPE_CHECKING:
    from trnspec.quantities.units import Dimension


@frozen
class Unsound:
    """A problem, and the part of the document that cannot be used because of it.

    Attributes:
        problem: What to tell.
        drop: The path to leave out so that the rest is sound; ``()`` when nothing of the document is left.
    """

    problem: Problem
    drop: Path


def check(
    kind: str, spec: type, document: Document, data: Mapping[str, Any], units: UnitTable = UNITS
) -> list[Unsound]:
    """What the schema of a kind finds wrong with a document, in the order of the document.

    Args:
        kind: The name of the kind.
        spec: The class of its specs.
        document: Where the places are.
        data: The plain data to check.
        units: The units that figures may be written in.
    """
    made = validator(kind, spec, units)
    errors = (e for e in made.iter_errors(data) if tuple(e.absolute_path) not in document.refused)
    found = [u for error in errors for u in _translate(error, spec, document, units)]
    return sorted(found, key=lambda u: (u.problem.place.line, u.problem.place.column) if u.problem.place else (0, 0))


def _pattern(_: Any, regex: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    # In ECMA-262, the language of JSON Schema, '$' is the end; in Python it also stands before a final newline.
    import re

    if isinstance(instance, str) and (
        not re.search(regex, instance) or (instance.endswith("\n") and regex.endswith("$"))
    ):
        yield ValidationError(f"{instance!r} does not match {regex!r}")


def _whole(_: Any, value: Any) -> bool:
    # JSON Schema counts 8.0 as an integer; a typed program would get a float.
    return type(value) is int


def _required(_: Any, required: list[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    # One error for all that is missing; jsonschema would give one for each, and not say for which.
    if isinstance(instance, dict) and any(key not in instance for key in required):
        yield ValidationError("a required key is missing")


_extend: Any = extend  # jsonschema leaves it without annotations
_VALIDATOR = _extend(
    Draft202012Validator,
    {"pattern": _pattern, "required": _required},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _whole),
)


@functools.cache
def validator(kind: str, spec: type, units: UnitTable = UNITS) -> Any:
    """The validator of a kind: JSON Schema's, but as strict as YAML and Python need it."""
    return _VALIDATOR(document_schema(kind, spec, units))


def _translate(error: ValidationError, spec: type, document: Document, units: UnitTable) -> Iterator[Unsound]:
    path: Path = tuple(error.absolute_path)
    shape = shape_in_document(spec, path)
    above = shape_in_document(spec, path[:-1]) if path and path[-1] == "value" else None
    figure = above if isinstance(above, FigureShape) else shape
    schema, instance = _mapping(error.schema), _mapping(error.instance)
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        # Where a class is derived from another, the schema of neither has all keys.
        known = list(shape.fields if isinstance(shape, ObjectShape) else schema["properties"])
        for key in instance:
            if key not in known:
                yield _unknown_key(document, path, key, known)
    elif error.validator == "required":
        yield from _missing(schema, instance, document, path)
    elif isinstance(figure, FigureShape) and not (figure is shape and isinstance(error.instance, dict)):
        yield _bad_figure(document, path, figure.dimension, error.instance, units)
    elif isinstance(shape, FigureShape):
        # The mapping form: the branch that speaks of mappings has the real causes.
        for inner in error.context or ():
            if inner.schema_path and inner.schema_path[0] == 1:
                yield from _translate(inner, spec, document, units)
    else:
        yield _bad_value(document, path, shape, error)


def _unknown_key(document: Document, path: Path, key: str, known: list[str]) -> Unsound:
    hint = did_you_mean(key, known) or ("one of " + ", ".join(known) if known else "this mapping takes no keys")
    message = f"unknown key {key!r} in {_words(path)}"
    place = document.place((*path, key), key=True)
    return Unsound(Problem("TRN101", message, place, hint, (*path, key)), (*path, key))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _missing(
    schema: Mapping[str, Any], instance: Mapping[str, Any], document: Document, path: Path
) -> Iterator[Unsound]:
    for key in schema["required"]:
        if key in instance or not document.refused.isdisjoint(((*path, key), (*path, "<<"))):
            continue
        place = document.place(path, key=True)
        doc = schema["properties"][key].get("description", "")
        message = f"{_words(path)} has no {key!r}"
        yield Unsound(Problem("TRN102", message, place, f"add {key}: {doc}" if doc else f"add {key}", path), path)


def _bad_figure(document: Document, path: Path, dimension: Dimension | None, value: Any, units: UnitTable) -> Unsound:
    code, message, hint = "TRN103", f"{_show(value)} at {dotted(path)} is not a figure", ""
    try:
        parse(value, dimension, units)
    except QuantityError as error:
        hint = error.hint
        if isinstance(value, str):
            code, message = _FIGURE_CODES[error.reason], f"{error} (at {dotted(path)})"
        elif error.reason == "no-unit":
            code, message = "TRN110", f"the figure {value!r} at {dotted(path)} has no unit"
    return Unsound(Problem(code, message, document.place(path), hint, path), path)


_FIGURE_CODES = {"malformed": "TRN113", "no-unit": "TRN110", "unknown-unit": "TRN111", "dimension": "TRN112"}


def _bad_value(document: Document, path: Path, shape: Shape | None, error: ValidationError) -> Unsound:
    value = error.instance
    code = {"pattern": "TRN105", "minimum": "TRN106", "enum": "TRN104", "const": "TRN104"}.get(
        str(error.validator), "TRN103"
    )
    expected = _expected(shape, error)
    hint = _type_hint(shape, value) if code == "TRN103" else ""
    if code == "TRN104" and isinstance(value, str):
        hint = did_you_mean(value, _choices(error))
    message = f"{_show(value)} at {dotted(path)} is not {expected}" if path else f"the document is not {expected}"
    return Unsound(Problem(code, message, document.place(path), hint, path), path)


def _type_hint(shape: Shape | None, value: Any) -> str:
    hint = ""
    if value is None:
        hint = "null says nothing: write a value, or leave the key out"
    elif isinstance(shape, (TextShape, RefShape)) and isinstance(value, (bool, int, float)):
        hint = "write it in quotes"
    elif isinstance(shape, ListShape) and not isinstance(value, dict):
        hint = "write it in brackets, also when there is only one"
    elif isinstance(shape, NumberShape) and isinstance(value, float) and value.is_integer():
        hint = f"write {int(value)}"
    elif isinstance(shape, (NumberShape, FlagShape)) and isinstance(value, str):
        hint = "write it without quotes"
    return hint


def _choices(error: ValidationError) -> list[str]:
    value = error.validator_value
    return [str(v) for v in value] if isinstance(value, list) else [str(value)]


def _expected(shape: Shape | None, error: ValidationError) -> str:  # one branch for each shape
    words = "what the schema allows"
    if error.validator in ("enum", "const"):
        words = "one of " + ", ".join(_choices(error)) if error.validator == "enum" else _choices(error)[0]
    elif isinstance(shape, TextShape):
        words = shape.pattern.words if shape.pattern and isinstance(error.instance, str) else "a text"
    elif isinstance(shape, NumberShape):
        words = "a whole number" if shape.whole else "a number"
        if error.validator == "minimum":
            words = f"at least {shape.least}"
    elif isinstance(shape, (ObjectShape, MapShape)) or (shape is None and error.validator_value == "object"):
        words = "a mapping"
    elif isinstance(shape, ListShape) or error.validator_value == "array":
        words = "a list"
    elif isinstance(shape, RefShape):
        words = NAME_PATTERN.words if isinstance(error.instance, str) else f"the name of a {shape.target.__name__}"
    elif isinstance(shape, FlagShape):
        words = "true or false"
    elif isinstance(shape, ChoiceShape):
        words = "one of " + ", ".join(shape.words)
    elif isinstance(shape, EitherShape):
        words = "a whole number or a text"
    return words


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


_SHOWN = 50


def _words(path: Path) -> str:
    return dotted(path) if path else "the document"
