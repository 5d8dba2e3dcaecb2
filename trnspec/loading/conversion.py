"""Plain data to typed values by cattrs, whose errors have paths, and typed values to plain data.

It is as strict as the schema, so that accepted data needs no further check: ``True`` is not 1, 3.9 is not 3, an extra
key is rejected, ``null`` is not "absent". Types for cattrs are the shapes of the description of documents.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from cattrs import ClassValidationError, Converter, IterableValidationError
from cattrs.errors import AttributeValidationNote, CattrsError, ForbiddenExtraKeysError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn, override

from trnspec.errors import QuantityError
from trnspec.loading.values import Build, flag, named, number, one_of, quantity, text
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
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
    type_words,
)
from trnspec.model.rounded import RoundedCount
from trnspec.model.sourced import Origin, SourcedCount, SourcedText, origin_of, sourced
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import UNITS, Dimension, UnitTable
from trnspec.yaml import Path

Hook = Callable[[Any, Any], Any]
"""A function of cattrs from plain data, and their type, to a value."""


class _FigureConverter(Converter):
    """A converter that parses figures in the units of a table."""

    def __init__(self, units: UnitTable) -> None:
        super().__init__(forbid_extra_keys=True)
        self.units = units


def _hook(shape: Shape, converter: _FigureConverter) -> Hook:  # noqa: PLR0911  # one branch for each shape
    match shape:
        case ObjectShape(cls):
            return _object(cls, converter)
        case FigureShape(dimension):
            return _figure(dimension, converter)
        case ListShape(item, least):
            return _collection(list, "a list", (item,), tuple, converter, least)
        case MapShape(value):
            return _collection(dict, "a mapping", (TextShape(), value), dict, converter)
        case EitherShape(options):
            return _either(shape, [converter.get_structure_hook(option) for option in options])
        case RefShape(target):
            return _leaf(named(target))
        case TextShape(pattern, is_quantity):
            return _leaf(quantity(converter.units) if is_quantity else text(pattern))
        case NumberShape(whole, least, may_be_rounded):
            return _leaf(number(whole=whole, least=least, may_be_rounded=may_be_rounded))
        case FlagShape():
            return _leaf(flag)
        case ChoiceShape(words):
            return _leaf(one_of(words))


def _leaf(build: Build) -> Hook:
    """The hook of a value without parts."""
    return lambda value, _: build(value)


def _either(shape: EitherShape, options: list[Hook]) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        for option in options:
            try:
                return option(value, shape)
            except Exception:  # noqa: BLE001, S112  # the value may be of the next shape
                continue
        raise ValueError(f"{value!r} is none of {', '.join(map(type_words, shape.options))}")

    return hook


def _collection(
    cls: Any, words: str, inside: tuple[Shape, ...], result: Any, converter: Converter, least: int = 0
) -> Hook:
    inner = converter.get_structure_hook(types.GenericAlias(cls, inside))

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not cls:
            raise ValueError(f"{value!r} is not {words}")
        if len(value) < least:
            raise ValueError("the list has no items")
        return result(inner(value, cls))

    return hook


# As mappings; cattrs expects a class.
_FIGURE: Any = ObjectShape(Figure)
_ORIGIN: Any = ObjectShape(Origin)


def _figure(dimension: Dimension | None, converter: _FigureConverter) -> Hook:
    units, as_mapping = converter.units, converter.get_structure_hook(_FIGURE)

    def hook(value: Any, _: Any) -> Figure:
        if type(value) is not dict:
            return Figure(value=parse(value, dimension, units))
        figure: Figure = as_mapping(value, Figure)
        if dimension is not None:
            parse(figure.value.text, dimension, units)
        return figure

    return hook


def _member(member: Field, converter: Converter) -> Hook:
    """The hook of a field; a count or a word may be a mapping of the value and its origin."""
    inner = converter.get_structure_hook(member.shape)

    def hook(value: Any, _: Any) -> Any:
        if value is None:
            raise ValueError("null is not a value" + ("" if member.required else ": leave the key out"))
        if not member.sourced or type(value) is not dict:
            return inner(value, member.shape)
        origin = converter.structure({key: v for key, v in value.items() if key != "value"}, _ORIGIN)
        if "value" not in value:
            raise ValueError("value is missing")
        bare = inner(value["value"], member.shape)
        return bare if origin == Origin() else sourced(bare, origin)

    return hook


def _object(cls: Any, converter: Converter) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        return _generated(cls, converter)(value, cls)  # on first use, because a class may contain itself

    return hook


@functools.cache
def _generated(cls: Any, converter: Converter) -> Hook:
    hooks: Any = {name: override(struct_hook=_member(each, converter)) for name, each in fields_of(cls).items()}
    return make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **hooks)


@functools.cache
def converter(units: UnitTable = UNITS) -> Converter:
    """The converter from plain data to values of a :data:`Shape`, whose errors have paths, and back."""
    converter = _FigureConverter(units)
    of_shape: Any = _hook
    converter.register_structure_hook_factory(lambda shape: isinstance(shape, Shape), of_shape)
    converter.register_unstructure_hook(Quantity, lambda q: q.text)
    converter.register_unstructure_hook_factory(attrs.has, _plain_object)
    converter.register_unstructure_hook(Ref, str)
    converter.register_unstructure_hook(Figure, _plain_figure)
    for cls in (SourcedCount, SourcedText, RoundedCount):
        converter.register_unstructure_hook(cls, _plain_sourced)
    return converter


def _plain_object(cls: Any) -> Callable[[Any], dict[str, Any]]:
    def hook(value: Any) -> dict[str, Any]:
        # A default value is the same as an absent key, unless it has a source of its own.
        present = ((each, getattr(value, each.name)) for each in fields_of(cls).values())
        return {
            each.name: converter().unstructure(v)
            for each, v in present
            if v != each.default or origin_of(v) is not None
        }

    return hook


def _plain_sourced(value: SourcedCount | SourcedText) -> Any:
    bare = str(value) if isinstance(value, (RoundedCount, SourcedText)) else int(value)
    return bare if value.origin is None else {"value": bare, **_plain_object(Origin)(value.origin)}


def _plain_figure(figure: Figure) -> Any:
    plain = _plain_object(Figure)(figure)
    return plain["value"] if len(plain) == 1 else plain


def rejections_of(error: BaseException, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The leaves of cattrs' tree of exceptions, with the paths rebuilt from its typed notes."""
    if isinstance(error, (ClassValidationError, IterableValidationError)):
        for inner in error.exceptions:
            step: Path = ()
            for note in getattr(inner, "__notes__", ()):
                if isinstance(note, AttributeValidationNote):
                    step = (note.name,)
                elif isinstance(note, IterableValidationNote):
                    step = (note.index,)
            yield from rejections_of(inner, (*path, *step))
    elif isinstance(error, ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            yield (*path, key), f"{key!r} is not a key here"
    elif isinstance(error, KeyError):
        yield path, f"{error.args[0]} is missing"
    elif isinstance(error, (ValueError, TypeError, QuantityError, CattrsError)):
        yield path, str(error)
    else:
        raise error
