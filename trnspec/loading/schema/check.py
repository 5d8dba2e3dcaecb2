"""Errors of JSON Schema validation as problems with a code, a position, a message and a hint.

Only documents that the classes rejected are validated here, so that a valid file does not import ``jsonschema``.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from attrs import evolve, frozen
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from trnspec.diagnostics import did_you_mean, nearest
from trnspec.errors import QuantityError
from trnspec.loading.values import show
from trnspec.model.annotations import DATE_PATTERN, NAME_PATTERN
from trnspec.model.document import API_VERSIONS, Claim
from trnspec.model.json_schema import document_schema
from trnspec.model.ref import indefinite, target_word
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
    dotted,
    fields_of,
    shape_at,
    shape_in_document,
    spread,
    unless_announced,
)
from trnspec.model.renames import renames
from trnspec.model.rounded import PATTERN as ROUNDED
from trnspec.plugins.api import Kind
from trnspec.quantities.dates import likely_date
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, Dimension, UnitTable
from trnspec.yaml import Document, Path, Place, Problem, ReadingLimits
from trnspec.yaml.edits import cut_text, quoting, renaming, replacement
from trnspec.yaml.text import foreign


@frozen
class Unsound:
    """A problem, and the part of the document that cannot be used because of it.

    Attributes:
        problem: What to report; ``None`` for a part that another problem already covers.
        drop: The path to remove so that the rest is valid; ``()`` for the whole document.
        missing: The key that is missing in ``drop``, or an empty text.
    """

    problem: Problem | None
    drop: Path
    missing: str = ""


def check(
    kind: str,
    spec: type,
    document: Document,
    data: Mapping[str, Any],
    units: UnitTable = UNITS,
    api_versions: tuple[str, ...] = API_VERSIONS,
) -> list[Unsound]:
    """The violations of the schema of a kind, in the order of the document.

    Args:
        kind: The name of the kind.
        spec: The class of its specs.
        document: The document, for positions.
        data: The plain data to check.
        units: The allowed units of figures.
        api_versions: The allowed versions.
    """
    schema = validator(kind, spec, units, api_versions)
    errors = (e for e in schema.iter_errors(data) if tuple(e.absolute_path) not in document.rejected)
    unsound = (u for error in errors for u in _translate(error, spec, document, units))
    found = list(islice(unsound, _MOST))
    if next(unsound, None) is not None:
        # What was not translated cannot be removed, so nothing of the document can be used.
        found.append(Unsound(None, ()))
    return _listed(list(_said_once(sorted(found, key=_position))))


def _kinds_with(spec: Any, kinds: Mapping[str, Kind]) -> list[str]:
    """The kinds that have all keys of a spec, and require none that it lacks; none for an empty spec."""
    if not spec or not isinstance(spec, dict):
        return []
    return [name for name, kind in kinds.items() if not any(_misfits(spec, kind.spec))]


def likely_kind(value: Any, data: Mapping[str, Any], kinds: Mapping[str, Kind]) -> str:
    """The hint for an unknown kind: the similar ones, if some have the keys of the spec only those; may be empty."""
    similar = nearest(value, kinds) if isinstance(value, str) else []
    fitting = _kinds_with(data.get("spec"), kinds)
    names = [name for name in similar if name in fitting] or similar or fitting
    return f"did you mean {' or '.join(map(repr, names))}?{foreign(str(value))}" if names else ""


def wrong_kind(kind: str, document: Document, data: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Problem | None:
    """The problem of a document whose keys are those of another kind, if more than one key differs from its own."""
    others = _kinds_with(data.get("spec"), kinds)
    unknown, absent = _misfits(data["spec"], kinds[kind].spec) if others else ([], [])
    differences = len(unknown) + len(absent)
    if not unknown or differences == 1 or (differences == 2 and nearest(unknown[0], absent)):  # one key misspelt
        return None
    listed = ", ".join(map(repr, unknown[:_KEYS])) + (", ..." if len(unknown) > _KEYS else "")
    message = f"spec has {listed}, which {indefinite(kind)} does not have"
    hint = f"did you mean {' or '.join(map(repr, others))}?"
    return Problem("TRN107", message, document.place(("kind",)), hint, ("kind",))


def _misfits(spec: Mapping[str, Any], cls: type) -> tuple[list[str], list[str]]:
    """The keys of a spec that a class does not have, and those that it requires and the spec lacks."""
    fields = fields_of(cls)
    known = {*fields, *(old[0] for old in renames(cls))}
    optional = unless_announced(cls) if "status" in spec else ()
    absent = [name for name, member in fields.items() if member.required and name not in spec and name not in optional]
    return [key for key in spec if key not in known], absent


def _said_once(unsound: Sequence[Unsound]) -> Iterator[Unsound]:
    """Problems of claims that were one claim with several sources are reported once, and a misspelt key as missing only."""
    seen: set[object] = {("TRN101", u.problem.path) for u in unsound if u.problem and u.problem.code == "TRN102"}
    for one in unsound:
        problem = one.problem
        key: object = problem and (problem.code, problem.path)
        if problem is not None and problem.path[:1] == ("claims",) and key not in seen:
            key = (problem.code, problem.place, problem.path[2:], problem.hint)
        yield evolve(one, problem=None) if key in seen else one
        if problem is not None and problem.path[:1] == ("claims",):
            seen.add(key)


_MOST = 1_000
"""Errors of a document that are examined. Each takes a search for similar names."""


def _position(unsound: Unsound) -> tuple[int, int]:
    place = unsound.problem.place if unsound.problem is not None else None
    return (place.line, place.column) if place is not None else (0, 0)


def _listed(unsound: list[Unsound]) -> list[Unsound]:
    """The first problems of each code; a last one counts the others, as in reading a file."""
    most, count, more = ReadingLimits().problems, Counter[str](), "at least " if len(unsound) > _MOST else ""
    result: list[Unsound] = []
    beyond: dict[str, Problem] = {}
    for one in unsound:
        problem = one.problem
        if problem is not None:
            count[problem.code] += 1
            if count[problem.code] > most:
                beyond.setdefault(problem.code, problem)
                one = evolve(one, problem=None)  # noqa: PLW2901  # its part is still removed
        result.append(one)
    for code, problem in beyond.items():
        message = f"{more}{count[code] - most:,} more problems of this kind follow from here"
        result.append(Unsound(Problem(code, message, problem.place, "", problem.path), problem.path))
    return result


def _pattern(_: Any, regex: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    # In ECMA-262, which JSON Schema refers to, '$' matches the end; in Python it also matches before a final newline.
    if isinstance(instance, str) and (
        not re.search(regex, instance) or (instance.endswith("\n") and regex.endswith("$"))
    ):
        yield ValidationError(f"{instance!r} does not match {regex!r}")


def _max_paths(_: Any, __: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    # A text that does not match the pattern is reported for that.
    if isinstance(instance, str) and re.search(schema["pattern"], instance):
        try:
            spread(instance)
        except ValueError as error:
            yield ValidationError(str(error))


def _is_integer(_: Any, value: Any) -> bool:
    # JSON Schema accepts 8.0 as an integer; a typed program would get a float.
    return type(value) is int


def _required(_: Any, required: list[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    # One error for all missing keys; jsonschema would report one for each, without the key.
    if isinstance(instance, dict) and any(key not in instance for key in required):
        yield ValidationError("a required key is missing")


_extend: Any = extend  # not annotated in jsonschema
_VALIDATOR = _extend(
    Draft202012Validator,
    {"pattern": _pattern, "required": _required, "maxPaths": _max_paths},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


@functools.cache
def validator(kind: str, spec: type, units: UnitTable = UNITS, api_versions: tuple[str, ...] = API_VERSIONS) -> Any:
    """The JSON Schema validator of a kind, with the stricter rules of trnspec for patterns and integers."""
    return _VALIDATOR(document_schema(kind, spec, units, api_versions))


def _translate(error: ValidationError, spec: type, document: Document, units: UnitTable) -> Iterator[Unsound]:
    path: Path = tuple(error.absolute_path)
    shape = shape_in_document(spec, path)
    above = shape_in_document(spec, path[:-1]) if path and path[-1] == "value" else None
    figure = above if isinstance(above, FigureShape) else shape
    schema, instance = _mapping(error.schema), _mapping(error.instance)
    if error.validator == "additionalProperties":
        known = list(shape.fields if isinstance(shape, ObjectShape) else schema["properties"])
        for key in instance:
            if key not in known:
                yield from _unknown_key(document, path, key, known, shape)
    elif error.validator == "required":
        yield from _missing(schema, instance, document, path, spec)
    elif error.validator == "oneOf" and isinstance(shape, ObjectShape) and shape.cls is Claim:
        # Claims have one source each when they are checked; what is no mapping is reported for that.
        if isinstance(error.instance, dict):
            yield from _missing({**schema, "required": ["source"]}, instance, document, path, spec)
    elif isinstance(figure, FigureShape) and not (figure is shape and isinstance(error.instance, dict)):
        yield _bad_figure(document, path, figure.dimension, error.instance, units)
    elif isinstance(shape, FigureShape):
        yield from _bad_mapping(error, path, spec, document, units)
    else:
        yield _bad_value(document, path, shape, error, spec)


def _bad_mapping(
    error: ValidationError, path: Path, spec: type, document: Document, units: UnitTable
) -> Iterator[Unsound]:
    """The problems of a figure that is a mapping: the schema branch of mappings has the causes."""
    instance = _mapping(error.instance)
    if isinstance(unit := instance.get("unit"), str):
        hint = f"write value: {str(instance.get('value', '')).removesuffix('.0')} {unit}"
        place = document.place((*path, "unit"), key=True)
        yield Unsound(Problem("TRN110", f"the unit of {_name(path)} is not in its value", place, hint, path), path)
        return
    inner = [each for each in error.context or () if each.schema_path and each.schema_path[0] == 1]
    for each in inner:
        if each.validator == "required" and any(other.validator == "additionalProperties" for other in inner):
            yield Unsound(None, path, "value")  # the unknown key is reported
        else:
            yield from _translate(each, spec, document, units)


def _unknown_key(document: Document, path: Path, key: str, known: list[str], shape: Shape | None) -> Iterator[Unsound]:
    at = (*path, key)
    place = document.place(at, key=True)
    if _cut_number(document, place):
        yield Unsound(None, at)
        return
    hint = _similar(key, known, shape) or _member_of_group(key, shape)
    hint = hint or ("one of " + ", ".join(known) if known else "this mapping takes no keys")
    hint += foreign(key)
    meant = _meant(key, known, document, path)
    message = f"unknown key {key!r} in {_name(path)}"
    yield Unsound(Problem("TRN101", message, place, hint, at, edit=renaming(document, at, meant)), at)
    if meant:
        yield Unsound(None, (*path, meant))  # reported here


_USUAL_WORDS = {
    "date": "as_of",
    "url": "address",
    "link": "address",
    "hbm": "memory.capacity",
    "vram": "memory.capacity",
    "hbm_bandwidth": "memory.bandwidth",
    "tdp": "power",
}
"""Words that authors use for attributes, and the attributes."""


def _similar(key: str, known: Iterable[str], shape: Shape | None) -> str:
    """The hint that names the keys which another one may be meant for; empty if there is none."""
    path = _USUAL_WORDS.get(key.casefold(), "")
    found = isinstance(shape, ObjectShape) and path and shape_at(shape.cls, tuple(path.split(".")))
    return f"did you mean {path!r}?" if found else did_you_mean(key, known)


def _member_of_group(key: str, shape: Shape | None) -> str:
    """The hint for a key that a mapping below has: ``bf16`` of a peak is in ``dense``."""
    fields = shape.fields.values() if isinstance(shape, ObjectShape) else ()
    groups = (f.name for f in fields if isinstance(f.shape, ObjectShape) and key in f.shape.fields)
    return next((f"did you mean {f'{name}.{key}'!r}?" for name in groups), "")


def _meant(key: str, known: list[str], document: Document, path: Path) -> str:
    """The one key of which another is a misspelling, if it is not in the mapping already; otherwise an empty text."""
    names = nearest(key, known)
    if len(names) != 1 or (*path, names[0]) in document.places:
        return ""
    # fp4 is not a misspelling of fp8.
    digits = re.sub(r"\D", "", key) == re.sub(r"\D", "", names[0])
    return names[0] if digits and SequenceMatcher(None, key.casefold(), names[0]).ratio() >= _ALIKE else ""


_ALIKE = 0.75
"""The similarity of a key and a misspelling of it that is corrected: ``bandwith``, but not ``mem`` for ``memory``."""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _missing(
    schema: Mapping[str, Any], instance: Mapping[str, Any], document: Document, path: Path, spec: type
) -> Iterator[Unsound]:
    absent = [
        key
        for key in schema["required"]
        if key not in instance and document.rejected.isdisjoint(((*path, key), (*path, "<<")))
    ]
    above = shape_in_document(spec, path)
    known = list(above.fields if isinstance(above, ObjectShape) else schema["properties"])
    misspelt = _misspelt(absent, known, instance, above)
    place = document.place(path, key=True)
    blocks = [key for key in absent if not path and key in ("metadata", "spec") and key not in misspelt]
    if blocks:
        # One finding with what to write, in place of one for each key below.
        message = f"the document has no {' and no '.join(map(repr, blocks))}"
        hint = "add " + " and ".join(f"{key}: {_skeleton(shape_in_document(spec, (key,)))}" for key in blocks)
        yield Unsound(Problem("TRN102", message, place, hint, path), path, blocks[0])
    # Whether these may be missing depends on the status, which has an error.
    doubtful = unless_announced(above.cls) if isinstance(above, ObjectShape) and "status" in instance else ()
    for key in absent:
        if key in blocks:
            continue
        if key in doubtful:
            yield Unsound(None, path, key)
            continue
        rule = schema["properties"][key]
        message = f"{_name(path)} has no {key!r}"
        if (other := misspelt.get(key)) is not None:
            # One finding, of what is below the misspelt key too; its value is not used.
            at, message = (*path, other), f"{message}, but the unknown key {other!r}"
            hint = _similar(other, known, above) + foreign(other)
            edit = renaming(document, at, _meant(other, known, document, path))
            yield Unsound(Problem("TRN102", message, document.place(at, key=True), hint, at, edit=edit), path, key)
            yield Unsound(None, at)
            continue
        member = above.fields.get(key) if isinstance(above, ObjectShape) else None
        of_version = rule["enum"][0] if (*path, key) == ("api_version",) else ""
        hint = _addition(key, of_version or rule.get("const") or rule.get("description", ""), member)
        yield Unsound(Problem("TRN102", message, place, hint, path), path, key)


def _misspelt(
    required: Iterable[str], known: list[str], instance: Mapping[str, Any], shape: Shape | None
) -> dict[str, str]:
    """The required keys that are missing, each with the unknown key that is likely meant for it."""
    unknown = list(islice((k for k in instance if k not in known), ReadingLimits().problems))
    found: dict[str, str] = {}
    for key in required:
        if key not in instance and (
            near := next((k for k in unknown if repr(key) in _similar(k, known, shape) and k not in found.values()), "")
        ):
            found[key] = near
    return found


def _addition(key: str, value: str, member: Field | None) -> str:
    """The hint for a missing key: its description, the keys that it requires, or of a reference the kind of document."""
    if member is not None and (keys := _skeleton(member.shape)) != "{}":
        value = keys
    elif member is not None and isinstance(member.shape, RefShape):
        value = f"the {member.expected}"
    return f"add {key}: {value}" if value else f"add {key}"


def _skeleton(shape: Shape | None) -> str:
    """The required keys of a mapping with examples of their values."""
    fields = shape.fields.values() if isinstance(shape, ObjectShape) else ()
    return f"{{{', '.join(f'{f.name}: {_sample(f)}' for f in fields if f.required)}}}"


def _sample(member: Field) -> str:
    if isinstance(member.shape, ObjectShape):
        return _skeleton(member.shape)
    sample = member.example or f"<{member.type_words}>"
    return f'"{sample}"' if "," in sample else sample


def _is_required(spec: type, path: Path) -> bool:
    above = shape_in_document(spec, path[:-1])
    if len(path) == 1 or not isinstance(above, ObjectShape):
        return len(path) == 1
    # A former key is not among the fields.
    member = above.fields.get(str(path[-1]))
    return member is not None and member.required


def _bad_figure(document: Document, path: Path, dimension: Dimension | None, value: Any, units: UnitTable) -> Unsound:
    if value is None and _cut_number(document, document.place(path, key=True)):
        return Unsound(None, path)
    if text := _cut_number(document, document.place(path)):
        span = document.places.get(path)
        if span is not None and span.end.column < span.value.column + len(text):
            message = f"the comma in {text} ends the figure {show(value)} at {dotted(path)}"
            edit = quoting(document, span.value, text) if _is_figure(text, dimension, units) else None
            grouped = re.search(r",[0-9]{3}(?![0-9])", text)
            hint = f'quote it: "{text}"' if grouped else f"write {text.replace(',', '.')}, with a point"
            return Unsound(Problem("TRN113", message, span.value, hint, path, edit=edit), path)
    code, message, hint = "TRN103", f"{show(value)} at {dotted(path)} is not a figure", ""
    edit = None
    try:
        parse(value, dimension, units)
    except QuantityError as error:
        hint = error.hint
        if isinstance(value, str):
            code, message = _FIGURE_CODES[error.reason], f"{error} (at {dotted(path)})"
            unit = units.correction(error.unit, dimension) if error.unit else ""
            if unit and _is_figure(value.replace(error.unit, unit), dimension, units):
                edit = replacement(document, path, error.unit, unit)
        elif error.reason == "no-unit":
            code, message = "TRN110", f"the figure {show(value).removesuffix('.0')} at {dotted(path)} has no unit"
    return Unsound(Problem(code, message, document.place(path), hint, path, edit=edit), path)


def _is_figure(text: str, dimension: Dimension | None, units: UnitTable) -> bool:
    try:
        parse(text, dimension, units)
    except QuantityError:
        return False
    return True


_CUT_NUMBER = re.compile(
    r"(?:~ ?)?[0-9]{1,3}(?:(?:,[0-9]{3})+(?:\.[0-9]+)?|,[0-9]+) ?[A-Za-z\u00b5\u03bc][A-Za-z\u00b5\u03bc/]*"
)


def _cut_number(document: Document, place: Place | None) -> str:
    """The number with grouped digits and a unit that covers a position of the text, or an empty text.

    In a flow mapping, ``{bandwidth: 4,800 Gbps}``, the comma ends the value 4, and "800 Gbps" is the next key.
    """
    if place is None:
        return ""
    # Only around the position: a line may hold all of a document.
    offset = document.lines.offset(place)
    start = max(offset - _AROUND, document.text.rfind("\n", 0, offset) + 1)
    matches = _CUT_NUMBER.finditer(document.text, start, offset + _AROUND)
    return next((m[0] for m in matches if m.start() <= offset < m.end()), "")


_AROUND = 80
"""Length of a number, in characters."""


_FIGURE_CODES = {"malformed": "TRN113", "no-unit": "TRN110", "unknown-unit": "TRN111", "dimension": "TRN112"}


def _bad_value(document: Document, path: Path, shape: Shape | None, error: ValidationError, spec: type) -> Unsound:
    value = error.instance
    if error.validator == "minItems":
        hint = "add one" if _is_required(spec, path) else "add one, or leave the key out"
        return Unsound(Problem("TRN102", f"{_name(path)} has no items", document.place(path), hint, path), path)
    if isinstance(shape, TextShape) and isinstance(value, int) and (text := cut_text(document, path)):
        place = document.place(path)
        message = f"the comma in {text} ends the value {value} at {dotted(path)}"
        edit = quoting(document, place, text)
        return Unsound(Problem("TRN113", message, place, f'quote it: "{text}"', path, edit=edit), path)
    # A whole number that may be written for a text, and is not one of those: the 99999 of a date.
    code = _VALUE_CODES.get(str(error.validator), "TRN103") if not isinstance(shape, TextShape) else _text_code(error)
    expected = _expected(shape, error)
    hint = _type_hint(shape, value, expected) if code == "TRN103" else f"write {expected}" if path else ""
    if isinstance(value, float) and hint == _IN_QUOTES and path in document.places:
        # The number does not have all digits of 1.10.
        hint = f'{hint}: "{document.text[slice(*document.extent(path)[1:])]}"'
    if value is None and _is_required(spec, path):
        hint = f"null is not a value: write {_skeleton(shape) if isinstance(shape, ObjectShape) else 'one'}"
    place = document.place(path)
    comment = place is not None and document.text.startswith("#", document.lines.offset(place) + 1)
    if value is None and isinstance(shape, TextShape) and comment:
        hint = "the text after # is a comment: put the value in quotes"
    if code == "TRN105" and shape == _DATE and (meant := likely_date(str(value))):
        hint = f"write {meant}"
    elif code == "TRN106":
        hint = f"write a number of {expected}"
    elif expected == NAME_PATTERN.words and (name := re.sub(r"[^a-z0-9.-]+", "-", str(value).casefold()).strip("-.")):
        hint = f"write {name!r}"
    if code == "TRN104" and isinstance(value, str):
        hint = did_you_mean(value, _choices(error)) or f"known: {', '.join(_choices(error))}"
    message = f"{show(value)} at {dotted(path)} is not {expected}" if path else f"the document is not {expected}"
    return Unsound(Problem(code, message, document.place(path), hint, path), path)


_DATE = TextShape(DATE_PATTERN)


def _text_code(error: ValidationError) -> str:
    # "anyOf": a text or a whole number may be written.
    other = isinstance(error.instance, bool) or not isinstance(error.instance, (str, int))
    return "TRN103" if error.validator == "type" or (error.validator == "anyOf" and other) else "TRN105"


_VALUE_CODES = {
    "pattern": "TRN105",
    "maxLength": "TRN105",
    "maxPaths": "TRN105",
    "minimum": "TRN106",
    "enum": "TRN104",
    "const": "TRN104",
}


def _type_hint(shape: Shape | None, value: Any, expected: str) -> str:
    hint = ""
    if value is None:
        hint = "null is not a value: write one, or leave the key out"
    elif isinstance(shape, (TextShape, RefShape)) and isinstance(value, (bool, int, float)):
        pattern = shape.pattern if isinstance(shape, TextShape) else None
        hint = _IN_QUOTES if pattern is None or re.search(pattern.regex, str(value)) else ""
    elif isinstance(shape, ListShape) and not isinstance(value, dict):
        hint = "write a list in brackets, also with one item"
    elif isinstance(shape, NumberShape) and isinstance(value, float) and value.is_integer():
        hint = f"write {int(value)}"
    elif isinstance(shape, NumberShape) and shape.rounded:
        hint = "write the digits, or the rounded number with K, M, B or T"
    elif isinstance(shape, NumberShape) and isinstance(value, str):
        hint = "write it without quotes" if value.isascii() and value.isdigit() else "write the digits only, such as 16"
    elif isinstance(shape, FlagShape):
        hint = "write it without quotes" if value in ("true", "false") else "write true or false"
    elif isinstance(shape, ObjectShape) and not isinstance(value, dict):
        keys = ", ".join(f"{name}:" for name in list(shape.fields)[:_KEYS])
        hint = f"write keys such as {keys}" + (", without '-'" if isinstance(value, list) else "")
    return hint or f"write {expected}"


_IN_QUOTES = "write it in quotes"

_KEYS = 3
"""Keys of a mapping that a hint names."""


def _choices(error: ValidationError) -> list[str]:
    value = error.validator_value
    return [str(v) for v in value] if isinstance(value, list) else [str(value)]


def _expected(shape: Shape | None, error: ValidationError) -> str:  # noqa: C901  # one branch for each shape
    words = "allowed by the schema"
    if error.validator in ("enum", "const"):
        words = "one of " + ", ".join(_choices(error)) if error.validator == "enum" else _choices(error)[0]
    elif isinstance(shape, TextShape):
        words = "a text" if shape.pattern is None or error.validator == "type" else shape.pattern.words
        if error.validator == "maxLength":
            words = f"a text of at most {error.validator_value} characters"
        elif error.validator == "maxPaths":
            words = f"a text that names at most {error.validator_value} paths"
    elif isinstance(shape, NumberShape):
        words = ROUNDED.words if shape.rounded else "a whole number" if shape.whole else "a number"
        if error.validator == "minimum":
            words = f"at least {shape.least}"
    elif isinstance(shape, (ObjectShape, MapShape)) or (shape is None and error.validator_value == "object"):
        words = "a mapping"
    elif isinstance(shape, ListShape) or error.validator_value == "array":
        words = "a list"
    elif isinstance(shape, RefShape):
        words = (
            NAME_PATTERN.words
            if isinstance(error.instance, str)
            else f"the name of {indefinite(target_word(shape.target))}"
        )
    elif isinstance(shape, FlagShape):
        words = "true or false"
    elif isinstance(shape, ChoiceShape):
        words = "one of " + ", ".join(shape.words)
    elif isinstance(shape, EitherShape):
        words = "a whole number or a text"
    return words


def _name(path: Path) -> str:
    return dotted(path) if path else "the document"
