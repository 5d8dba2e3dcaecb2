"""Plain data to typed nodes: the cattrs converter, and its errors with their paths.

It is as strict as the schema, so that what it accepts needs no second look: ``True`` is not 1, 3.9 is not 3, an extra
key is refused, ``null`` is not "absent".  Only when it refuses is the schema asked, which has the better sentences.
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
from trnspec.model.annotations import NAME_PATTERN, Least, Measures, Pattern
from trnspec.model.document import API_VERSION, Claim, Metadata, Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import Document, Json, Path

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


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _match(pattern: Pattern, value: str) -> str:
    # fullmatch would need every pattern to cover the whole text; '$' alone lets a final newline through.
    if not re.search(pattern.regex, value) or (value.endswith("\n") and pattern.regex.endswith("$")):
        raise ValueError(f"{value!r} is not {pattern.words}")
    return value


def _made_of(origin: Any) -> Callable[[Any], bool]:
    return lambda annotation: get_origin(annotation) is origin


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _optional(annotation: Any, converter: Converter) -> Hook:
    union: Any = Union
    inner = union[tuple(a for a in get_args(annotation) if a is not type(None))]

    def hook(value: Any, _: Any) -> Any:
        if value is None:
            raise ValueError("null says nothing: leave the key out")
        return converter.structure(value, inner)

    return hook


class _Reader(Converter):
    """A converter that reads figures in the units of a table."""

    def __init__(self, units: UnitTable, *, detailed: bool) -> None:
        super().__init__(forbid_extra_keys=True, detailed_validation=detailed)
        self.units = units


def _annotated(annotation: Any, converter: _Reader) -> Hook:
    base, *marks = get_args(annotation)
    if base is Figure:
        return _figure(next((m.dimension for m in marks if isinstance(m, Measures)), None), converter)
    inner = converter.get_structure_hook(base)
    patterns = [m for m in marks if isinstance(m, Pattern)]
    least = [m.value for m in marks if isinstance(m, Least)]

    def hook(value: Any, _: Any) -> Any:
        value = inner(value, base)
        for pattern in patterns:
            _match(pattern, value)
        for bound in least:
            if value < bound:
                raise ValueError(f"{value!r} is less than {bound}")
        return value

    return hook


def _figure(dimension: Dimension | None, converter: _Reader) -> Hook:
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


def _ref(value: Any, _: Any) -> Ref[Any]:
    if type(value) is not str:
        raise ValueError(f"{value!r} is not a name")
    return Ref(_match(NAME_PATTERN, value))


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
        made: Mapping[str, Any] = converter.structure(value, items)
        return made

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
    return value  # type: ignore[no-any-return]  # narrowed by the line above


@functools.cache  # cattrs asks again for every class that has one of this class
def _object(cls: Any, converter: Converter) -> Hook:
    from cattrs.gen import make_dict_structure_fn

    detailed = converter.detailed_validation
    inner = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=detailed)

    def hook(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{value!r} is not a mapping")
        return inner(value, cls)

    return hook


def converter(units: UnitTable = UNITS) -> Converter:
    """The converter whose errors have paths; it holds no state that a caller could change the meaning of."""
    return _converter(units, detailed=True)


@functools.cache
def _converter(units: UnitTable, *, detailed: bool) -> Converter:
    """The same converter twice: what is right is structured without the bookkeeping that tells where an error is."""
    made = _Reader(units, detailed=detailed)
    factories: tuple[tuple[Callable[[Any], bool], Any], ...] = (
        (attrs.has, _object),
        (_made_of(Ref), lambda _: _ref),
        (_made_of(tuple), _tuple),
        (_made_of(Mapping), _mapping),
        (_made_of(Literal), _choice),
        (_is_optional, _optional),
        (_made_of(Annotated), _annotated),
    )
    for predicate, factory in factories:
        made.register_structure_hook_factory(predicate, factory)
    made.register_structure_hook(int, _exactly(int, "a whole number"))
    made.register_structure_hook(str, _exactly(str, "a text"))
    made.register_structure_hook(bool, _exactly(bool, "true or false"))
    made.register_structure_hook(float, _number)
    made.register_structure_hook(Quantity, _quantity(units))
    made.register_structure_hook(int | str, _int_or_str)
    made.register_unstructure_hook(Quantity, lambda q: q.text)
    made.register_unstructure_hook_factory(_made_of(Ref), lambda _: str)
    made.register_unstructure_hook_factory(attrs.has, _plain_object)
    made.register_unstructure_hook(Ref, str)
    made.register_unstructure_hook(Figure, _plain_figure)
    return made


def _plain_object(cls: Any) -> Callable[[Any], dict[str, Any]]:
    fields = attrs.fields(cls)

    def hook(value: Any) -> dict[str, Any]:
        # What is at its default says the same as an absent key.
        present = ((a, getattr(value, a.name)) for a in fields)
        return {a.name: converter().unstructure(v) for a, v in present if v != _default(a)}

    return hook


def _default(attribute: attrs.Attribute[Any]) -> Any:
    default: Any = attribute.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]  # a class


def _plain_figure(figure: Figure) -> Any:
    plain = _plain_object(Figure)(figure)
    return plain["value"] if len(plain) == 1 else plain


@attrs.frozen
class Refusal:
    """Why a value was not structured, and where it stands."""

    path: Path
    message: str


def structure(
    kind: str, spec: type[T], document: Document, data: Mapping[str, Json], units: UnitTable = UNITS
) -> Node[T]:
    """The node that ``data`` describes, its figures read in the units of a table.

    Raises:
        StructureError: With every refusal and its path.
    """
    refusals: list[Refusal] = []
    parts: dict[str, Any] = {}
    for key, cls in (("metadata", Metadata), ("spec", spec), ("claims", tuple[Claim, ...])):
        if key not in data:
            if key != "claims":
                refusals.append(Refusal((), f"{key} is missing"))
            continue
        try:
            parts[key] = _structured(data[key], cls, units)
        except Exception as error:  # noqa: BLE001  # every refusal of a hook arrives here, as a group or alone
            refusals += [Refusal((key, *r.path), r.message) for r in _refusals(error)]
    refusals += [Refusal((k,), f"{k} is not a key of a document") for k in data if k not in _ENVELOPE]
    for key, value in (("api_version", API_VERSION), ("kind", kind)):
        if data.get(key) != value:
            refusals.append(Refusal((key,), f"{key} is not {value}"))
    if refusals:
        raise StructureError(refusals)
    return Node(kind=kind, document=document, units=units, **parts)


def _structured(value: Any, cls: Any, units: UnitTable) -> Any:
    try:
        return _converter(units, detailed=False).structure(value, cls)
    except Exception:  # noqa: BLE001  # whatever it was, the other converter tells it with its path
        return converter(units).structure(value, cls)


_ENVELOPE = ("api_version", "kind", "metadata", "spec", "claims")


class StructureError(Exception):
    """Data that the classes refuse."""

    def __init__(self, refusals: list[Refusal]) -> None:
        super().__init__("; ".join(r.message for r in refusals))
        self.refusals = refusals


def _refusals(error: BaseException, path: Path = ()) -> Iterator[Refusal]:
    """The leaves of cattrs' tree of exceptions, with the paths rebuilt from its typed notes."""
    if isinstance(error, (ClassValidationError, IterableValidationError)):
        for inner in error.exceptions:
            step: Path = ()
            for note in getattr(inner, "__notes__", ()):
                if isinstance(note, AttributeValidationNote):
                    step = (note.name,)
                elif isinstance(note, IterableValidationNote):
                    step = (note.index,)
            yield from _refusals(inner, (*path, *step))
    elif isinstance(error, ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            yield Refusal((*path, key), f"{key!r} is not a key here")
    elif isinstance(error, KeyError):
        yield Refusal(path, f"{error.args[0]} is missing")
    elif isinstance(error, (ValueError, TypeError, QuantityError, CattrsError)):
        yield Refusal(path, str(error))
    else:
        raise error


def plain(node: Node[Any]) -> dict[str, Json]:
    """The document that a node came from, as plain data: structuring it again gives an equal node."""
    data: dict[str, Json] = {"api_version": API_VERSION, "kind": node.kind}
    data["metadata"] = converter().unstructure(node.metadata)
    data["spec"] = converter().unstructure(node.spec)
    if node.claims:
        data["claims"] = [converter().unstructure(c) for c in node.claims]
    return data
