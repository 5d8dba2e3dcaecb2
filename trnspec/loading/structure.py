"""Plain data to typed nodes: the cattrs converter, and its errors with their paths.

It is as strict as the schema, so that accepted data needs no further check: ``True`` is not 1, 3.9 is not 3, an extra
key is rejected, ``null`` is not "absent". Rejected data is validated against the schema for better messages.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
from cattrs import ClassValidationError, Converter, IterableValidationError
from cattrs.errors import AttributeValidationNote, CattrsError, ForbiddenExtraKeysError, IterableValidationNote

from trnspec.errors import QuantityError
from trnspec.model.annotations import NAME_PATTERN, Least, Measures, Pattern, Rounded
from trnspec.model.document import API_VERSION, OLDER_VERSIONS, Claim, Metadata, Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import ObjectShape, hints_of, spread
from trnspec.model.rounded import RoundedCount, rounded
from trnspec.model.scenarios import InputValue
from trnspec.model.sourced import Origin, SourcedCount, SourcedText, origin_of, sourced
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import Document, Json, Path
from trnspec.yaml.text import UNSAFE

if TYPE_CHECKING:
    from trnspec.quantities.units import Dimension

Hook = Callable[[Any, Any], Any]
T = TypeVar("T")


def _exactly(cls: type, words: str) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if type(value) is not cls:
            raise ValueError(f"{value!r} is not {words}")
        return value

    return hook


def _text(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r} is not a text")
    if UNSAFE.search(value):
        raise ValueError(f"{value!r} holds a control character")
    return value


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


_compiled = functools.cache(re.compile)


def _match(pattern: Pattern, value: str) -> str:
    # fullmatch would need every pattern to cover the whole text; '$' alone lets a final newline through.
    if not _compiled(pattern.regex).search(value) or (value.endswith("\n") and pattern.regex.endswith("$")):
        raise ValueError(f"{value!r} is not {pattern.words}")
    if pattern.longest is not None and len(value) > pattern.longest:
        raise ValueError(f"{value!r} has more than {pattern.longest} characters")
    if pattern.paths is not None:
        spread(value)
    return value


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


class _FigureConverter(Converter):
    """A converter that parses figures in the units of a table."""

    def __init__(self, units: UnitTable, *, detailed: bool) -> None:
        super().__init__(forbid_extra_keys=True, detailed_validation=detailed)
        self.units = units


def _annotated(annotation: Any, converter: _FigureConverter) -> Hook:
    base, *marks = get_args(annotation)
    if base is Figure:
        return _figure(next((m.dimension for m in marks if isinstance(m, Measures)), None), converter)
    inner = converter.get_structure_hook(base)
    patterns = [m for m in marks if isinstance(m, Pattern)]
    least = [m.value for m in marks if isinstance(m, Least)]
    may_be_rounded = any(isinstance(m, Rounded) for m in marks)

    def hook(value: Any, _: Any) -> Any:
        value = rounded(value) if may_be_rounded and type(value) is str else inner(value, base)
        for pattern in patterns:
            _match(pattern, value)
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


def _quantity(units: UnitTable) -> Hook:
    def hook(value: Any, _: Any) -> Quantity:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a figure: write it with its unit")
        return parse(value, None, units)

    return hook


def _ref(annotation: Any) -> Hook:
    (target,) = get_args(annotation)
    kind = target if isinstance(target, type) else None

    def hook(value: Any, _: Any) -> Ref[Any]:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a name")
        return Ref(_match(NAME_PATTERN, value), kind)

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


def _choice(annotation: Any) -> Hook:
    words = get_args(annotation)

    def hook(value: Any, _: Any) -> str:
        if type(value) is not str or value not in words:
            raise ValueError(f"{value!r} is not one of {', '.join(words)}")
        return value

    return hook


def _int_or_str(value: Any, _: Any) -> int | str:
    if type(value) not in (int, str):
        raise ValueError(f"{value!r} is neither a whole number nor a text")
    if type(value) is str:
        _text(value, str)
    return value  # type: ignore[no-any-return]  # narrowed by the line above


def _input_value(value: Any, _: Any) -> bool | int | float | str | tuple[Any, ...]:
    """A value of an input of an evaluator: a scalar, or a list of texts or of whole numbers."""
    if type(value) is list:
        if {type(item) for item in value} not in (set(), {int}, {str}):
            raise ValueError(f"{value!r} is not a list of texts or of whole numbers")
        return tuple(_text(item, str) if type(item) is str else item for item in value)
    if type(value) not in (bool, int, float, str):
        raise ValueError(f"{value!r} is neither a number, a text, true or false, nor a list")
    return _text(value, str) if type(value) is str else value


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

    detailed = converter.detailed_validation
    hints = hints_of(cls)
    hooks: dict[str, Any] = {
        name: override(struct_hook=_with_origin(hints[name], converter))
        for name, member in ObjectShape(cls).fields.items()
        if member.sourced
    }
    inner = make_dict_structure_fn(
        cls, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=detailed, **hooks
    )

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        return inner(value, cls)

    return hook


def converter(units: UnitTable = UNITS) -> Converter:
    """The converter whose errors have paths."""
    return _converter(units, detailed=True)


@functools.cache
def _converter(units: UnitTable, *, detailed: bool) -> Converter:
    """The converter with or without paths in its errors; without them, valid data is structured faster."""
    converter = _FigureConverter(units, detailed=detailed)
    factories: tuple[tuple[Callable[[Any], bool], Any], ...] = (
        (attrs.has, _object),
        (_of_origin(Ref), _ref),
        (_of_origin(tuple), _tuple),
        (_of_origin(Mapping), _mapping),
        (_of_origin(Literal), _choice),
        (_is_optional, _optional),
        (_of_origin(Annotated), _annotated),
    )
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, factory)
    converter.register_structure_hook(int, _exactly(int, "a whole number"))
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(bool, _exactly(bool, "true or false"))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(Quantity, _quantity(units))
    converter.register_structure_hook(int | str, _int_or_str)
    converter.register_structure_hook_func(lambda annotation: annotation == InputValue, _input_value)
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


@attrs.frozen
class Rejection:
    """The reason why a value was rejected, and its path."""

    path: Path
    message: str


def structure(
    kind: str, spec: type[T], document: Document, data: Mapping[str, Json], units: UnitTable = UNITS
) -> Node[T]:
    """The node that ``data`` describes, with figures in the units of a table.

    Raises:
        StructureError: With every rejected value and its path.
    """
    rejections: list[Rejection] = []
    parts: dict[str, Any] = {}
    for key, cls in (("metadata", Metadata), ("spec", spec), ("claims", tuple[Claim, ...])):
        if key not in data:
            if key != "claims":
                rejections.append(Rejection((), f"{key} is missing"))
            continue
        try:
            parts[key] = _structured(data[key], cls, units)
        except Exception as error:  # noqa: BLE001  # every error of a hook arrives here, alone or in a group
            rejections += [Rejection((key, *r.path), r.message) for r in _rejections(error)]
    rejections += [Rejection((k,), f"{k} is not a key of a document") for k in data if k not in _ENVELOPE]
    for key, values in (("api_version", (API_VERSION, *OLDER_VERSIONS)), ("kind", (kind,))):
        if data.get(key) not in values:
            rejections.append(Rejection((key,), f"{key} is not {values[0]}"))
    if rejections:
        raise StructureError(rejections)
    return Node(kind=kind, document=document, units=units, **parts)


def _structured(value: Any, cls: Any, units: UnitTable) -> Any:
    try:
        return _converter(units, detailed=False).structure(value, cls)
    except Exception:  # noqa: BLE001  # the other converter raises the same error with its path
        return converter(units).structure(value, cls)


_ENVELOPE = ("api_version", "kind", "metadata", "spec", "claims")


class StructureError(Exception):
    """Data that the classes reject."""

    def __init__(self, rejections: list[Rejection]) -> None:
        super().__init__("; ".join(r.message for r in rejections))
        self.rejections = rejections


def _rejections(error: BaseException, path: Path = ()) -> Iterator[Rejection]:
    """The leaves of cattrs' tree of exceptions, with the paths rebuilt from its typed notes."""
    if isinstance(error, (ClassValidationError, IterableValidationError)):
        for inner in error.exceptions:
            step: Path = ()
            for note in getattr(inner, "__notes__", ()):
                if isinstance(note, AttributeValidationNote):
                    step = (note.name,)
                elif isinstance(note, IterableValidationNote):
                    step = (note.index,)
            yield from _rejections(inner, (*path, *step))
    elif isinstance(error, ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            yield Rejection((*path, key), f"{key!r} is not a key here")
    elif isinstance(error, KeyError):
        yield Rejection(path, f"{error.args[0]} is missing")
    elif isinstance(error, (ValueError, TypeError, QuantityError, CattrsError)):
        yield Rejection(path, str(error))
    else:
        raise error


def plain(node: Node[Any]) -> dict[str, Json]:
    """The document of a node as plain data; structuring it again gives an equal node."""
    data: dict[str, Json] = {"api_version": API_VERSION, "kind": node.kind}
    data["metadata"] = converter().unstructure(node.metadata)
    data["spec"] = converter().unstructure(node.spec)
    if node.claims:
        data["claims"] = [converter().unstructure(c) for c in node.claims]
    return data
