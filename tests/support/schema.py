"""Strategies of Hypothesis for documents and JSON Schemas."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from attrs import field, frozen
from hypothesis import strategies as st

from trnspec.api import registry
from trnspec.model import reflection
from trnspec.model.annotations import Count, Date, Least, Text
from trnspec.model.document import API_VERSION, Claim, Metadata
from trnspec.model.fields import AnyFigure, Bandwidth, Rates
from trnspec.model.json_schema import Schema, document_schema
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.yaml import Document, Places
from trnspec.yaml.text import UNSAFE


@frozen(kw_only=True)
class Part:
    """A part of a sampler, which may hold another.

    Attributes:
        inner: The same again.
        size: How large it is. Example: 3
    """

    inner: Part | None = None
    size: Count


@frozen(kw_only=True)
class Sampler:
    """One attribute of every shape that a document can have, more than the kinds of trnspec use.

    Attributes:
        flag: A flag. Example: true
        maybe: A flag that may be absent.
        share: Any number. Example: 0.5
        shares: Several numbers. Example: 2
        least: A number with a bound below. Example: -3
        either: A whole number or a text. Example: many
        part: A part.
        parts: Several parts.
        names: Names by name.
        by_name: Parts by name.
        lists: Lists by name.
        nested: Lists of lists. Example: 4
        figure: A figure that must be there. Example: 5 GB/s
        figures: Several figures. Example: 5 GB/s
        rates: Rates by name.
        word: A word with a default.
        day: A day. Example: 2024-02-13
        any: A figure of any dimension. Example: 3 W
    """

    flag: bool
    maybe: bool | None = None
    share: float | None = None
    shares: tuple[float, ...] = ()
    least: Annotated[int, Least(-3)] | None = None
    either: int | str | None = None
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    names: Mapping[str, Ref[Source]] = field(factory=dict)
    by_name: Mapping[str, Part] = field(factory=dict)
    lists: Mapping[str, tuple[Text, ...]] = field(factory=dict)
    nested: tuple[tuple[Count, ...], ...] = ()
    figure: Bandwidth
    figures: tuple[Bandwidth, ...] = ()
    rates: Mapping[str, Rates] = field(factory=dict)
    word: Literal["first", "second"] = "first"
    day: Date | None = None
    any: AnyFigure | None = None


KINDS: dict[str, type] = {k.name: k.spec for k in registry().kinds.values()} | {"Sampler": Sampler}
"""Every kind of trnspec, and one that has every shape."""


@functools.cache
def documents(kind: str) -> st.SearchStrategy[Schema]:
    """Documents that the schema of a kind allows, of the present version: others are read as if they were of it."""
    schema = document_schema(kind, KINDS[kind])
    schema["properties"] = schema["properties"] | {"api_version": {"const": API_VERSION}}
    return _Made(schema["$defs"]).of(schema)


def unplaced(data: Any) -> Document:
    """A document with data and no places: as if it had been read."""
    return Document("example.yaml", data, Places(), (), "")


def _within(limits: Schema, text: str) -> bool:
    """What a pattern cannot express: lengths and numbers of paths."""
    try:
        short = "maxPaths" not in limits or bool(reflection.spread(text))
    except ValueError:
        short = False
    return short and len(text) <= limits.get("maxLength", len(text))


def _less(properties: Schema, name: str) -> Schema:
    return {key: value for key, value in properties.items() if key != name}


class _Made:
    """Strategies for the keywords that the generator writes; another keyword is an error."""

    silent = frozenset(("$schema", "$id", "$comment", "$defs", "title", "description", "examples", "errorMessage"))

    def __init__(self, definitions: Schema) -> None:
        self._definitions = definitions
        self._known: dict[str, st.SearchStrategy[Any]] = {}

    def of(self, schema: Schema) -> st.SearchStrategy[Any]:  # noqa: C901  # one return for each keyword
        said = {k: v for k, v in schema.items() if k not in self.silent}
        match said:
            case {"$ref": ref, **rest} if not rest:
                return self._named(ref.removeprefix("#/$defs/"))
            case {"anyOf": options, **rest} if not rest:
                return st.one_of([self.of(o) for o in options])
            case {"if": _, "then": {"deprecated": True}, "else": present, **rest} if not rest:
                return self.of(present)
            case {"if": {"type": "object"}, "then": sourced, "else": bare, **rest} if not rest:
                return self.of(bare) | self.of(sourced)
            case {"const": value, **rest} if not rest:
                return st.just(value)
            case {"enum": words, **rest} if not rest:
                return st.sampled_from(words)
            case {"type": "boolean", **rest} if not rest:
                return st.booleans()
            case {"type": "integer", **rest} if rest.keys() <= {"minimum", "maximum"}:
                return st.integers(rest.get("minimum", -(10**6)), rest.get("maximum", 10**6))
            case {"type": ["integer", "string"], "pattern": str(pattern), **rest} if rest.keys() <= {"minimum"}:
                return st.integers(rest.get("minimum", -(10**6)), 10**6) | texts(pattern)
            case {"type": "number", **rest} if not rest:
                return st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
            case {"type": "string", **rest} if rest.keys() <= {"pattern", "maxLength", "maxPaths"}:
                pattern = rest.get("pattern", "")
                plain = (
                    texts(pattern).map(functools.partial(UNSAFE.sub, "x")).filter(functools.partial(re.search, pattern))
                )
                return plain.filter(functools.partial(_within, rest)) if len(rest) > 1 else plain
            case {"type": "array", "items": items, **rest} if rest.keys() <= {"minItems"}:
                return st.lists(self.of(items), min_size=rest.get("minItems", 0), max_size=3)
            case {"type": "object", "additionalProperties": dict(value), **rest} if not rest:
                return st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), self.of(value), max_size=2)
            case {
                "type": "object",
                "additionalProperties": False,
                "properties": properties,
                "required": required,
                **rest,
            } if set(rest) <= {"if", "else"}:
                # What is required unless a product is announced is drawn always.
                return self._object(properties, rest.get("else", {"required": required})["required"])
            case {"oneOf": [{"required": [alone]}, {"required": [several]}], "properties": properties, **rest}:
                # Documents are checked and structured once each claim has one source.
                return self.of(
                    {**rest, "properties": _less(properties, several), "required": [*rest["required"], alone]}
                )
        raise AssertionError(f"no strategy for {sorted(said)}: teach this module what the generator has learnt")

    def _named(self, name: str) -> st.SearchStrategy[Any]:
        if name not in self._known:
            self._known[name] = st.deferred(lambda: self._of_definition(name))
        return self._known[name]

    @functools.cache  # noqa: B019  # lives as long as the strategies
    def _of_definition(self, name: str) -> st.SearchStrategy[Any]:
        return self.of(self._definitions[name])

    def _object(self, properties: Schema, required: list[str]) -> st.SearchStrategy[Schema]:
        members = {name: self.of(p) for name, p in properties.items() if not p.get("deprecated")}
        optional = [name for name in members if name not in required]

        @st.composite
        def drawn(draw: st.DrawFn) -> Schema:
            few = draw(st.lists(st.sampled_from(optional), unique=True, max_size=2)) if optional else []
            return {name: draw(members[name]) for name in [*required, *few]}

        return drawn()


@functools.cache
def texts(pattern: str) -> st.SearchStrategy[str]:
    """Texts that match as JSON Schema means it: ``$`` is the end, also where a last line break is before it."""
    alphabet = st.characters(codec="utf-8")
    if pattern.startswith("^") and pattern.endswith("$"):
        whole = st.from_regex(pattern[1:-1], fullmatch=True, alphabet=alphabet)
        return whole.filter(lambda text: re.search(pattern, text) is not None)
    return st.from_regex(pattern, alphabet=alphabet)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below the root."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


SCALARS = (None, True, False, 3.9, 8.0, 0, -1, 7, "", "\n", "7", "first", "no such thing", "true", "2024-02-30\n")
FIGURES = (
    "5 GB/s", "5 TFLOPS", "5 TOPS", "5 GiB", "5 furlongs", "5", "5GB/s", "5 GB/s\n", " 5 GB/s", "3x", "over 5 us",
)  # fmt: skip
COLLECTIONS: tuple[Any, ...] = (
    [], {}, [None], [[]], {"": None}, {"value": "5 GB/s"}, {"value": "5 us", "derived": "a\n"}, {"value": 5},
    {"note": "x"},
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, kind: str) -> Schema:
    """Documents of a kind with one mistake or two at random places; now and then the result is sound after all."""
    data: Schema = copy.deepcopy(draw(documents(kind)))
    for _ in range(draw(st.integers(1, 2))):
        every = [*places(data)]
        # Most places hold texts; what is rare is where mistakes of ours would hide.
        rare = [path for path in every if not isinstance(_at(data, path), str)]
        path = draw(st.sampled_from(rare if draw(st.booleans()) else every))
        _damage(draw, _at(data, path[:-1]), path[-1])
        if not any(isinstance(value, (dict, list)) for value in data.values()):
            break
    return data


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    return functools.reduce(lambda value, step: value[step], path, data)


def _damage(draw: st.DrawFn, parent: Any, key: Any) -> None:
    value = parent[key]
    ways = ["scalar", "figure", "collection", "wrap", "delete"]
    ways += ["add"] * 2 if isinstance(value, dict) else ["break"] * 2 if isinstance(value, str) else []
    ways += ["turn"] * 8 if isinstance(value, (int, float)) else []
    way = draw(st.sampled_from(ways))
    if way == "delete":
        del parent[key]
    elif way == "add":
        value[draw(st.sampled_from(("unknown", "Value", "<<", "name", "note")))] = draw(st.sampled_from(SCALARS))
    elif way == "turn":
        # What a careless comparison takes for the same number.
        parent[key] = draw(st.sampled_from((True, False, 3.9, float(value), str(value), -abs(value) - 7)))
    elif way == "wrap":
        parent[key] = draw(st.sampled_from(([value], {"value": value}, {"name": value})))
    elif way == "break":
        breaks = (value + "\n", " " + value, value + "!", value.upper(), value[1:], value[:-1])
        parent[key] = draw(st.sampled_from(breaks))
    else:
        choices = {"scalar": SCALARS, "figure": FIGURES, "collection": COLLECTIONS}[way]
        parent[key] = copy.deepcopy(draw(st.sampled_from(choices)))


def normal(kind: str, data: Mapping[str, Any]) -> str:
    """A sound document as one text: equal texts say the same.

    What says the same is written the same way: a figure that is a mapping with nothing but a ``value`` is that text;
    an empty list, an empty mapping of names and a word that is the default are left out; of the numbers that need not
    be whole all are floats; a whole number that is a date is a text.  A mapping with known keys stays, also when it is empty.
    """
    made = {k: v for k, v in data.items() if k in ("api_version", "kind")}
    made["metadata"] = _normal(reflection.shape_of(Metadata), data["metadata"])
    made["spec"] = _normal(reflection.ObjectShape(KINDS[kind]), data["spec"])
    if data.get("claims"):
        made["claims"] = [_normal(reflection.shape_of(Claim), claim) for claim in data["claims"]]
    return json.dumps(made, sort_keys=True, indent=1)


def _normal(shape: reflection.Shape, value: Any) -> Any:
    if isinstance(shape, reflection.ObjectShape):
        every = {k: _normal(shape.fields[k].shape, _bare(shape, k, v)) for k, v in value.items()}
        return {k: v for k, v in every.items() if v not in ([], shape.fields[k].default) and not _no_names(shape, k, v)}
    if isinstance(shape, reflection.ListShape):
        return [_normal(shape.item, item) for item in value]
    if isinstance(shape, reflection.MapShape):
        return {k: _normal(shape.value, item) for k, item in value.items()}
    if isinstance(shape, reflection.FigureShape) and isinstance(value, dict) and len(value) == 1:
        return value["value"]
    if isinstance(shape, reflection.TextShape) and shape.pattern is not None:
        is_sourced = isinstance(value, dict) and "value" in value
        text_of = shape.pattern.text_of
        return {**value, "value": text_of(value["value"])} if is_sourced else text_of(value)
    return float(value) if isinstance(shape, reflection.NumberShape) and not shape.whole else value


def _bare(shape: reflection.ObjectShape, key: str, value: Any) -> Any:
    """A count or a word that is a mapping with nothing but a ``value``."""
    is_alone = shape.fields[key].sourced and isinstance(value, dict) and len(value) == 1
    return value["value"] if is_alone else value


def _no_names(shape: reflection.ObjectShape, key: str, value: Any) -> bool:
    """An empty mapping of names, or of known keys where that is the default."""
    field = shape.fields[key]
    empty = isinstance(field.shape, reflection.MapShape) or (
        isinstance(field.shape, reflection.ObjectShape) and not field.required
    )
    return value == {} and empty and (isinstance(field.shape, reflection.MapShape) or field.default is not None)
