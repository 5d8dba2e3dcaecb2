"""Plain data to typed values by cattrs, whose errors have paths, and typed values to plain data.

It is as strict as the schema, so that accepted data needs no further check: ``True`` is not 1, 3.9 is not 3, an extra
key is rejected, ``null`` is not "absent".
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import attrs
from cattrs import ClassValidationError, Converter, IterableValidationError
from cattrs.errors import AttributeValidationNote, CattrsError, ForbiddenExtraKeysError, IterableValidationNote

from trnspec.errors import QuantityError
from trnspec.loading.values import (
    exactly,
    input_value,
    int_or_text,
    matching,
    named,
    number,
    one_of,
    quantity,
    text,
)
from trnspec.model.annotations import Least, Measures, Pattern, Rounded
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import ObjectShape, hints_of
from trnspec.model.rounded import RoundedCount, rounded
from trnspec.model.scenarios import InputValue
from trnspec.model.sourced import Origin, SourcedCount, SourcedText, origin_of, sourced
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import UNITS, UnitTable

if TYPE_CHECKING:
    from trnspec.loading.values import Build
    from trnspec.quantities.units import Dimension
    from trnspec.yaml import Path

Hook = Callable[[Any, Any], Any]


def _of_origin(origin: Any) -> Callable[[Any], bool]:
    return lambda annotation: get_origin(annotation) is origin


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _optional(annotation: Any, converter: Converter) -> Hook:
    union: Any = Union
    inner = union[tuple(a for a in get_args(annotation) if a is not type(None))]

    def hook(value: Any, _: Any) -> Any:
        if value is None:
            raise ValueError("null is not a value: leave the key out")
        return converter.structure(value, inner)

    return hook


def _leaf(build: Build) -> Hook:
    """The hook of a value without parts."""
    return lambda value, _: build(value)


def _reference(annotation: Any, _: Converter) -> Hook:
    (target,) = get_args(annotation)
    return _leaf(named(target if isinstance(target, type) else None))


def _words(annotation: Any, _: Converter) -> Hook:
    return _leaf(one_of(get_args(annotation)))


class _FigureConverter(Converter):
    """A converter that parses figures in the units of a table."""

    def __init__(self, units: UnitTable) -> None:
        super().__init__(forbid_extra_keys=True)
        self.units = units


def _annotated(annotation: Any, converter: _FigureConverter) -> Hook:
    base, *marks = get_args(annotation)
    if base is Figure:
        return _figure(next((m.dimension for m in marks if isinstance(m, Measures)), None), converter)
    inner = converter.get_structure_hook(base)
    patterns = [m for m in marks if isinstance(m, Pattern)]
    checks = [matching(m) for m in patterns]
    least = [m.value for m in marks if isinstance(m, Least)]
    may_be_rounded = any(isinstance(m, Rounded) for m in marks)

    def hook(value: Any, _: Any) -> Any:
        for pattern in patterns:
            value = pattern.text_of(value)
        value = rounded(value) if may_be_rounded and type(value) is str else inner(value, base)
        for check in checks:
            check(value)
        for bound in least:
            if value < bound:
                raise ValueError(f"{value!r} is less than {bound}")
        return value

    return hook


def _figure(dimension: Dimension | None, converter: _FigureConverter) -> Hook:
    units = converter.units

    @functools.cache
    def rest() -> Hook:
        return _object(Figure, converter)

    def hook(value: Any, _: Any) -> Figure:
        if type(value) is str:
            return Figure(value=parse(value, dimension, units))
        figure: Figure = rest()(value, Figure)
        if dimension is not None:
            parse(figure.value.text, dimension, units)
        return figure

    return hook


def _tuple(annotation: Any, converter: Converter) -> Hook:
    items: Any = types.GenericAlias(list, get_args(annotation)[:1])

    def hook(value: Any, _: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise ValueError(f"{value!r} is not a list")
        return tuple(converter.structure(value, items))

    return hook


def _mapping(annotation: Any, converter: Converter) -> Hook:
    items: Any = types.GenericAlias(dict, get_args(annotation))

    def hook(value: Any, _: Any) -> Mapping[str, Any]:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        mapping: Mapping[str, Any] = converter.structure(value, items)
        return mapping

    return hook


def _with_origin(annotation: Any, converter: Converter) -> Hook:
    """A hook for a count or a word that may be a mapping of the value and its origin."""
    inner = converter.get_structure_hook(annotation)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            return inner(value, annotation)
        origin = converter.structure({key: v for key, v in value.items() if key != "value"}, Origin)
        if "value" not in value:
            raise ValueError("value is missing")
        bare = inner(value["value"], annotation)
        return bare if origin == Origin() else sourced(bare, origin)

    return hook


@functools.cache  # cattrs calls this for every class with a field of this class
def _object(cls: Any, converter: Converter) -> Hook:
    from cattrs.gen import make_dict_structure_fn, override

    attrs.resolve_types(cls)  # cattrs uses the annotations that attrs has resolved
    hints = hints_of(cls)
    hooks: dict[str, Any] = {
        name: override(struct_hook=_with_origin(hints[name], converter))
        for name, member in ObjectShape(cls).fields.items()
        if member.sourced
    }
    inner = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **hooks)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        return inner(value, cls)

    return hook


@functools.cache
def converter(units: UnitTable = UNITS) -> Converter:
    """The converter whose errors have paths."""
    converter = _FigureConverter(units)
    factories: tuple[tuple[Callable[[Any], bool], Any], ...] = (
        (attrs.has, _object),
        (_of_origin(tuple), _tuple),
        (_of_origin(Mapping), _mapping),
        (_is_optional, _optional),
        (_of_origin(Annotated), _annotated),
        (_of_origin(Ref), _reference),
        (_of_origin(Literal), _words),
    )
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, factory)
    leaves: tuple[tuple[Any, Build], ...] = (
        (int, exactly(int, "a whole number")),
        (bool, exactly(bool, "true or false")),
        (float, number),
        (str, text),
        (int | str, int_or_text),
        (Quantity, quantity(units)),
    )
    for leaf, build in leaves:
        converter.register_structure_hook(leaf, _leaf(build))
    # A union is compared with each annotation: a predicate of its class would find other unions.
    converter.register_structure_hook_func(lambda annotation: annotation == InputValue, _leaf(input_value))
    converter.register_unstructure_hook(Quantity, lambda q: q.text)
    converter.register_unstructure_hook_factory(_of_origin(Ref), lambda _: str)
    converter.register_unstructure_hook_factory(attrs.has, _plain_object)
    converter.register_unstructure_hook(Ref, str)
    converter.register_unstructure_hook(Figure, _plain_figure)
    for cls, plain_cls in ((SourcedCount, int), (SourcedText, str)):
        converter.register_unstructure_hook(cls, _plain_sourced(plain_cls))
    converter.register_unstructure_hook(RoundedCount, _plain_rounded)
    return converter


def _plain_object(cls: Any) -> Callable[[Any], dict[str, Any]]:
    fields = attrs.fields(cls)

    def hook(value: Any) -> dict[str, Any]:
        # A default value is the same as an absent key, unless it has a source of its own.
        present = ((a, getattr(value, a.name)) for a in fields)
        return {a.name: converter().unstructure(v) for a, v in present if v != _default(a) or origin_of(v) is not None}

    return hook


def _default(attribute: attrs.Attribute[Any]) -> Any:
    default: Any = attribute.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]  # a class


def _plain_sourced(cls: type) -> Callable[[Any], Any]:
    def hook(value: Any) -> Any:
        return {"value": cls(value), **_plain_object(Origin)(value.origin)}

    return hook


def _plain_rounded(value: RoundedCount) -> Any:
    return value.text if value.origin is None else {"value": value.text, **_plain_object(Origin)(value.origin)}


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
