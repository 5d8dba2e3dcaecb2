"""Plain data to typed values, for valid data: every error is a reason to read the data again with paths.

A builder is a function from plain data to a value, made from an annotation. Builders of fields are made when a document
has the field. They accept exactly what :mod:`trnspec.loading.conversion` accepts, which reports where data are wrong.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import attrs

from trnspec.model.annotations import NAME_PATTERN, Least, Measures, Pattern, Rounded
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import ObjectShape, hints_of, spread
from trnspec.model.rounded import rounded
from trnspec.model.scenarios import InputValue
from trnspec.model.sourced import Origin, sourced
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml.text import UNSAFE

if TYPE_CHECKING:
    from trnspec.quantities.units import Dimension, UnitTable

Build = Callable[[Any], Any]

_SHORT = 32
"""The length of texts that are shared."""

_MOST_KEPT = 10_000
"""The most names and paths that one builder keeps: documents repeat them."""


def text(value: Any) -> str:
    """A text without control characters."""
    if type(value) is not str:
        raise ValueError(f"{value!r} is not a text")
    if not (value.isascii() and value.isprintable()) and UNSAFE.search(value):
        raise ValueError(f"{value!r} holds a control character")
    return value


def exactly(cls: type, words: str) -> Build:
    """A value of one class and of no class derived from it."""

    def build(value: Any) -> Any:
        if type(value) is not cls:
            raise ValueError(f"{value!r} is not {words}")
        return value

    return build


def number(value: Any) -> float:
    """A number."""
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def int_or_text(value: Any) -> int | str:
    """A whole number or a text."""
    if type(value) not in (int, str):
        raise ValueError(f"{value!r} is neither a whole number nor a text")
    return shared(text(value)) if type(value) is str else value


def shared(value: str) -> str:
    """One object for equal short texts, such as ``line 45``, which documents repeat."""
    return sys.intern(value) if len(value) <= _SHORT else value


def input_value(value: Any) -> bool | int | float | str | tuple[Any, ...]:
    """A value of an input of an evaluator: a scalar, or a list of texts or of whole numbers."""
    if type(value) is list:
        if {type(item) for item in value} not in (set(), {int}, {str}):
            raise ValueError(f"{value!r} is not a list of texts or of whole numbers")
        return tuple(text(item) if type(item) is str else item for item in value)
    if type(value) not in (bool, int, float, str):
        raise ValueError(f"{value!r} is neither a number, a text, true or false, nor a list")
    return text(value) if type(value) is str else value


def matching(pattern: Pattern) -> Callable[[str], str]:
    """A text that matches a pattern."""
    search, whole = re.compile(pattern.regex).search, pattern.regex.endswith("$")
    kept: dict[str, str] = {}
    if not whole and pattern.longest is pattern.paths is None:

        def found(value: str) -> str:
            if not search(value):
                raise ValueError(f"{value!r} is not {pattern.words}")
            return value

        return found

    def build(value: str) -> str:
        if (known := kept.get(value)) is not None:
            return known
        # fullmatch would need every pattern to cover the whole text; '$' alone lets a final newline through.
        if not search(value) or (whole and value.endswith("\n")):
            raise ValueError(f"{value!r} is not {pattern.words}")
        if pattern.longest is not None and len(value) > pattern.longest:
            raise ValueError(f"{value!r} has more than {pattern.longest} characters")
        if pattern.paths is not None:
            spread(value)
        if whole:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[value] = value
        return value

    return build


def named(target: type | None) -> Build:
    """A reference to a document of a kind; each is an object of its own, by which its path is found."""
    match = matching(NAME_PATTERN)

    def build(value: Any) -> Ref[Any]:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a name")
        return Ref(match(value), target)

    return build


def one_of(words: tuple[Any, ...]) -> Build:
    """One of some words."""

    def build(value: Any) -> str:
        if type(value) is not str or value not in words:
            raise ValueError(f"{value!r} is not one of {', '.join(words)}")
        return sys.intern(value)

    return build


def quantity(units: UnitTable) -> Build:
    """A printed quantity of any dimension."""

    def build(value: Any) -> Quantity:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a figure: write it with its unit")
        return parse(value, None, units)

    return build


@functools.cache
def builder(annotation: Any, units: UnitTable) -> Build:  # noqa: PLR0911  # one line for each form of annotation
    """The builder of an annotation, with figures in the units of a table."""
    simple = _simple(annotation, units)
    if simple is not None:
        return simple
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:], units)
    if origin in (Union, types.UnionType) and type(None) in arguments:
        union: Any = Union
        # None is no value: the builders reject it.
        return builder(union[tuple(a for a in arguments if a is not type(None))], units)
    if origin is Literal:
        return one_of(arguments)
    if origin is Mapping:
        return _mapping(builder(arguments[0], units), builder(arguments[1], units))
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return _list(builder(arguments[0], units))
    if origin is Ref:
        return named(arguments[0] if isinstance(arguments[0], type) else None)
    if isinstance(annotation, type) and attrs.has(annotation) and _is_usual(annotation):
        return _object(annotation, units)
    from trnspec.loading.conversion import hook_of

    hook = hook_of(annotation, units)

    def build(value: Any) -> Any:
        if value is None:
            raise ValueError("null is not a value: leave the key out")
        return hook(value)

    return build


def _simple(annotation: Any, units: UnitTable) -> Build | None:
    """The builder of an annotation without parameters."""
    if annotation is Quantity:
        return quantity(units)
    return next((build for form, build in _SIMPLE if annotation == form), None)


_SIMPLE: tuple[tuple[Any, Build], ...] = (
    (str, text),
    (int, exactly(int, "a whole number")),
    (bool, exactly(bool, "true or false")),
    (float, number),
    (int | str, int_or_text),
    (InputValue, input_value),
)


def _annotated(base: Any, marks: tuple[Any, ...], units: UnitTable) -> Build:
    if base is Figure:
        return _figure(next((m.dimension for m in marks if isinstance(m, Measures)), None), units)
    inner = builder(base, units)
    patterns = [m for m in marks if isinstance(m, Pattern)]
    checks = [matching(p) for p in patterns]
    least = max((m.value for m in marks if isinstance(m, Least)), default=None)
    may_be_rounded = any(isinstance(m, Rounded) for m in marks)
    if base is str and len(patterns) == 1 and least is None and not may_be_rounded:
        return _text_matching(patterns[0], checks[0])

    def build(value: Any) -> Any:
        value = rounded(value) if may_be_rounded and type(value) is str else inner(value)
        for check in checks:
            check(value)
        if least is not None and value < least:
            raise ValueError(f"{value!r} is less than {least}")
        return value

    return build


def _text_matching(pattern: Pattern, check: Callable[[str], str]) -> Build:
    def build(value: Any) -> str:
        if pattern.numbers is not None:
            value = pattern.text_of(value)
        # As text() does, of which most calls are made here.
        if type(value) is not str or not (value.isascii() and value.isprintable()):
            value = text(value)
        return check(shared(value))

    return build


def _figure(dimension: Dimension | None, units: UnitTable) -> Build:
    def build(value: Any) -> Figure:
        if type(value) is str:
            return Figure(value=parse(value, dimension, units))
        figure: Figure = builder(Figure, units)(value)
        if dimension is not None:
            parse(figure.value.text, dimension, units)
        return figure

    return build


def _list(item: Build) -> Build:
    def build(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise ValueError(f"{value!r} is not a list")
        return tuple(map(item, value))

    return build


def _mapping(key: Build, item: Build) -> Build:
    def build(value: Any) -> Mapping[str, Any]:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        return {key(k): item(v) for k, v in value.items()}

    return build


def _is_usual(cls: Any) -> bool:
    """Whether the arguments of a class are its fields, all of them annotated."""
    return all(a.alias == a.name and a.type is not None for a in attrs.fields(cls) if a.init)


class _Fields(dict[str, Build]):
    """The builders of the fields of a class, each made when it is used first."""

    def __init__(self, cls: Any, units: UnitTable) -> None:
        super().__init__()
        self._cls, self._units = cls, units

    def __missing__(self, name: str) -> Build:
        member = ObjectShape(self._cls).fields[name]
        build = builder(hints_of(self._cls)[name], self._units)
        self[name] = build = _with_origin(build, self._units) if member.sourced else build
        return build


def _object(cls: Any, units: UnitTable) -> Build:
    fields = _Fields(cls, units)

    def build(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        return cls(**{key: fields[key](item) for key, item in value.items()})

    return build


def _with_origin(inner: Build, units: UnitTable) -> Build:
    """A count or a word that may be a mapping of the value and its origin."""
    origin_of = builder(Origin, units)

    def build(value: Any) -> Any:
        if type(value) is not dict:
            return inner(value)
        origin = origin_of({key: v for key, v in value.items() if key != "value"})
        bare = inner(value["value"])
        return bare if origin == Origin() else sourced(bare, origin)

    return build
