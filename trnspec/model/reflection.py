"""The annotations of a class as plain values.

The schema generator writes these shapes, traversals of a spec follow them, and the checks look up the shape of a path.
"""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs
from attrs import field, frozen

from trnspec.model.annotations import MOST_PATHS, Extensive, Least, Measures, Pattern, Rounded
from trnspec.model.document import Claim, Metadata
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.sourced import Origin, origin_of
from trnspec.quantities.quantity import Quantity
from trnspec.quantities.units import Dimension

if typing.TYPE_CHECKING:
    from trnspec.yaml import Path


@frozen
class FigureShape:
    """A printed quantity; ``None`` for the dimension allows every one, ``decimal`` marks the capacity of a disk."""

    dimension: Dimension | None
    decimal: bool = field(default=False, eq=False)


@frozen
class RefShape:
    """The name of a document whose spec is of the class ``target``."""

    target: type


@frozen
class TextShape:
    """A text that matches the pattern, when there is one."""

    pattern: Pattern | None = None


@frozen
class NumberShape:
    """A number; ``whole`` allows integers only, ``rounded`` also texts such as ``70.6 B``."""

    whole: bool
    least: int | None = None
    rounded: bool = False


@frozen
class FlagShape:
    """True or false."""


@frozen
class ChoiceShape:
    """One of a closed set of words."""

    words: tuple[str, ...]


@frozen
class ListShape:
    """A list of items of one shape."""

    item: Shape


@frozen
class MapShape:
    """A mapping from names to values of one shape."""

    value: Shape


@frozen
class EitherShape:
    """One of several shapes."""

    options: tuple[Shape, ...]


@frozen(eq=False)
class ObjectShape:
    """A mapping with known keys; its fields are read on first use, so that classes may be recursive."""

    cls: type

    @property
    def fields(self) -> Mapping[str, FieldShape]:
        """The fields by name, in the order of the class."""
        return _fields(self.cls)


Shape = (
    ObjectShape
    | FigureShape
    | RefShape
    | TextShape
    | NumberShape
    | FlagShape
    | ChoiceShape
    | ListShape
    | MapShape
    | EitherShape
)


@frozen
class FieldShape:
    """A field of a class: its shape, whether it is required, adds up over parts, and may have a source of its own."""

    name: str
    shape: Shape
    required: bool
    extensive: bool = False
    sourced: bool = False


@functools.cache
def shape_of(annotation: Any) -> Shape:  # noqa: C901, PLR0912  # one branch for each shape
    """The shape that an annotation describes; ``TypeError`` for one that documents cannot express."""
    marks: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        marks = tuple(rest)
    shape: Shape | None = None
    origin = get_origin(annotation)
    if annotation is Figure:
        measures = [m for m in marks if isinstance(m, Measures)]
        shape = FigureShape(measures[0].dimension, measures[0].decimal) if measures else FigureShape(None)
    elif annotation is Quantity:
        shape = TextShape()
    elif annotation is str:
        patterns = [m for m in marks if isinstance(m, Pattern)]
        shape = TextShape(patterns[0] if patterns else None)
    elif annotation is bool:
        shape = FlagShape()
    elif annotation in (int, float):
        least = [m.value for m in marks if isinstance(m, Least)]
        rounded = any(isinstance(m, Rounded) for m in marks)
        shape = NumberShape(annotation is int, least[0] if least else None, rounded)
    elif origin is Ref and isinstance(get_args(annotation)[0], type):
        shape = RefShape(get_args(annotation)[0])
    elif origin is Literal and all(isinstance(word, str) for word in get_args(annotation)):
        shape = ChoiceShape(get_args(annotation))
    elif origin in (Union, types.UnionType):
        shape = _union([a for a in get_args(annotation) if a is not type(None)])
    elif origin is tuple and get_args(annotation)[1:] == (Ellipsis,):
        shape = ListShape(shape_of(get_args(annotation)[0]))
    elif origin is Mapping:
        shape = MapShape(shape_of(get_args(annotation)[1]))
    elif isinstance(annotation, type) and attrs.has(annotation):
        shape = ObjectShape(annotation)
    if shape is None:
        raise TypeError(f"a document cannot hold a {annotation!r}")
    return shape


def _union(options: list[Any]) -> Shape:
    return shape_of(options[0]) if len(options) == 1 else EitherShape(tuple(shape_of(o) for o in options))


@functools.cache
def hints_of(cls: Any) -> dict[str, Any]:
    """The annotations of the fields of a class, evaluated as ``typing.get_type_hints`` does, in a third of its time."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        names = vars(sys.modules[base.__module__])
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if not isinstance(annotation, str):
                hints[name] = annotation
            elif not annotation.startswith("ClassVar"):
                # Names of the module come before those of the class.
                hints[name] = eval(_expression(annotation), dict(vars(base)), names)  # noqa: S307  # code of a module
    fields = [a.name for a in attrs.fields(cls)]
    if any(name not in hints or _is_open(hints[name]) for name in fields):
        hints = typing.get_type_hints(cls, include_extras=True)
    return {name: hints[name] for name in fields}


_expression = functools.cache(functools.partial(compile, filename="<annotation>", mode="eval"))


def _is_open(hint: Any) -> bool:
    """Whether an annotation is, or contains, a text or ``None``, which has to be evaluated further."""
    if hint is None or isinstance(hint, (str, typing.ForwardRef)):
        return True
    if get_origin(hint) is Literal:
        return False
    return any(map(_is_open, get_args(hint)[: 1 if get_origin(hint) is Annotated else None]))


@functools.cache
def _fields(cls: type) -> Mapping[str, FieldShape]:
    hints = hints_of(cls)
    return {
        a.name: FieldShape(
            a.name,
            shape_of(hints[a.name]),
            a.default is attrs.NOTHING,
            _marked_extensive(hints[a.name]),
            getattr(cls, "SOURCED", True) and a.name != "note" and _may_have_source(shape_of(hints[a.name])),
        )
        for a in attrs.fields(cls)
        if a.init
    }


def _may_have_source(shape: Shape) -> bool:
    """Whether a value is a count, a word or a date; figures have sources anyway."""
    return isinstance(shape, (ChoiceShape, TextShape)) or (isinstance(shape, NumberShape) and shape.whole)


def _marked_extensive(annotation: Any) -> bool:
    """Whether an annotation, or a member of a union, carries ``Extensive()``."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return any(isinstance(m, Extensive) for m in marks) or _marked_extensive(inner)
    if get_origin(annotation) in (Union, types.UnionType):
        return any(_marked_extensive(a) for a in get_args(annotation))
    return False


def is_extensive(cls: Any, path: Path) -> bool:
    """Whether the values at ``path`` below a class add up over parts: a field on the path is marked ``Extensive()``."""
    return _is_extensive(cls, path)


@functools.cache
def _is_extensive(cls: Any, path: Path) -> bool:
    shape: Shape | None = ObjectShape(cls)
    for length, step in enumerate(path, 1):
        if isinstance(shape, ObjectShape) and step in shape.fields and shape.fields[str(step)].extensive:
            return shape_at(cls, path) is not None
        shape = shape_at(cls, path[:length])
    return False


def shape_at(cls: Any, path: Path) -> Shape | None:
    """The shape at ``path`` below a class, or ``None`` where a document of that class has no such path."""
    return _shape_at(cls, path)


@functools.lru_cache(maxsize=16_384)
def _shape_at(cls: Any, path: Path) -> Shape | None:
    shape: Shape = shape_of(cls)
    sourced = False
    for step in path:
        if isinstance(shape, FigureShape):
            shape = ObjectShape(Figure)  # its form as a mapping
        if isinstance(shape, ObjectShape) and step in shape.fields:
            sourced, shape = shape.fields[str(step)].sourced, shape.fields[str(step)].shape
        elif sourced and step == "value":
            sourced = False
        elif sourced and step in ObjectShape(Origin).fields:
            sourced, shape = False, ObjectShape(Origin).fields[str(step)].shape
        elif isinstance(shape, ListShape) and isinstance(step, int):
            shape = shape.item
        elif isinstance(shape, MapShape) and isinstance(step, str):
            shape = shape.value
        else:
            return None
    return shape


def class_paths(shape: Shape, path: Path = ()) -> Iterator[Path]:
    """The paths of all figures and numbers of a class, those in lists and mappings apart."""
    if isinstance(shape, ObjectShape):
        for name, member in shape.fields.items():
            yield from class_paths(member.shape, (*path, name))
    elif isinstance(shape, (FigureShape, NumberShape)):
        yield path


def shape_in_document(spec: type, path: Path) -> Shape | None:
    """The shape at ``path`` from the top of a document with a spec of that class; ``None`` above its three parts."""
    if path[:1] == ("metadata",):
        return shape_at(Metadata, path[1:])
    if path[:1] == ("spec",):
        return shape_at(spec, path[1:])
    if path[:1] == ("claims",) and len(path) > 1:
        return shape_at(Claim, path[2:])
    return None


def leaves(value: Any, shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape, Any]]:
    """Every leaf of a structured value with its path and shape, in the order of the classes; a figure is a leaf."""
    found: list[tuple[Path, Shape, Any]] = []
    _collect(value, shape, path, _any_leaf, found)
    return iter(found)


def figures_of(value: Any, path: Path = ()) -> dict[Path, Figure]:
    """Every figure of a structured object by its path."""
    found: list[tuple[Path, Shape, Any]] = []
    _collect(value, ObjectShape(type(value)), path, _is_figure, found)
    return {at: figure for at, _, figure in found}


def referring_leaves(value: Any, shape: Shape, path: Path = ()) -> list[tuple[Path, Shape, Any]]:
    """The leaves that are references, or that may have a source of their own."""
    found: list[tuple[Path, Shape, Any]] = []
    _collect(value, shape, path, _may_refer, found)
    return found


def remarks_of(value: Any, shape: Shape, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every reason and note of a structured value, with its path."""
    found: list[tuple[Path, Shape, Any]] = []
    _collect(value, shape, path, _may_be_remark, found)
    for at, _, leaf in found:
        if isinstance(leaf, str) and at[-1] in REMARKS:
            yield at, leaf
        origin = leaf if isinstance(leaf, Figure) else origin_of(leaf)
        if origin is not None and origin.note is not None:
            yield (*at, "note"), origin.note


REMARKS = ("reason", "note")
"""The keys of texts in which authors explain values."""


def _any_leaf(_member: FieldShape, _leaf: Shape) -> bool:
    return True


def _is_figure(_member: FieldShape, leaf: Shape) -> bool:
    return isinstance(leaf, FigureShape)


def _may_refer(member: FieldShape, leaf: Shape) -> bool:
    return member.sourced or isinstance(leaf, (FigureShape, RefShape))


def _may_be_remark(member: FieldShape, leaf: Shape) -> bool:
    return (
        member.name in REMARKS
        or member.sourced
        or isinstance(leaf, FigureShape)
        or _holds_mapping(member.shape)  # whose keys are anything
    )


def _holds_mapping(shape: Shape) -> bool:
    return isinstance(shape, MapShape) or (isinstance(shape, ListShape) and _holds_mapping(shape.item))


_Wanted = Callable[[FieldShape, Shape], bool]


_OUTER = (ObjectShape, ListShape, MapShape)


def _collect(value: Any, shape: Shape, path: Path, wanted: _Wanted, found: list[tuple[Path, Shape, Any]]) -> None:
    """Appends the wanted leaves of a value; without generators, because every document is traversed many times."""
    if value is None:
        return
    if isinstance(shape, ObjectShape):
        for name, inner, is_leaf in _wanted_fields(shape.cls, wanted):
            item = getattr(value, name)
            if item is not None:
                if is_leaf:
                    found.append(((*path, name), inner, item))
                else:
                    _collect(item, inner, (*path, name), wanted, found)
    elif isinstance(shape, ListShape):
        for index, item in enumerate(value):
            _collect(item, shape.item, (*path, index), wanted, found)
    elif isinstance(shape, MapShape):
        for key, item in value.items():
            _collect(item, shape.value, (*path, key), wanted, found)
    else:
        found.append((path, shape, value))


@functools.cache
def _wanted_fields(cls: Any, wanted: _Wanted) -> tuple[tuple[str, Shape, bool], ...]:
    """The fields of a class that are wanted leaves, or may contain some; each with whether it is a leaf."""
    return tuple(
        (name, member.shape, not isinstance(member.shape, _OUTER))
        for name, member in _fields(cls).items()
        if _contains(member, wanted, ())
    )


def _contains(member: FieldShape, wanted: _Wanted, above: tuple[type, ...]) -> bool:
    shape = member.shape
    while isinstance(shape, (ListShape, MapShape)):
        shape = shape.item if isinstance(shape, ListShape) else shape.value
    if not isinstance(shape, ObjectShape):
        return wanted(member, shape)
    if shape.cls in above:
        return False  # the fields of a class that contains itself are examined once
    return any(_contains(inner, wanted, (*above, shape.cls)) for inner in _fields(shape.cls).values())


def value_at(value: Any, path: Path) -> Any:
    """The value at ``path`` below a structured value, or ``None`` where there is none."""
    for step in path:
        if value is None:
            return None
        cls: Any = value.__class__
        names = _names_of.get(cls)
        if names is None:
            names = _names_of[cls] = _field_names(cls)
        # Not hasattr: a text has an attribute "upper" and a tuple one called "count".
        if step in names:
            value = getattr(value, step)
        elif isinstance(step, int):
            value = value[step] if isinstance(value, tuple) and step < len(value) else None
        else:
            value = value.get(step) if cls is dict or _is_mapping(cls) else None
    return value


@functools.cache
def _is_mapping(cls: Any) -> bool:
    return issubclass(cls, Mapping)


_names_of: dict[type, frozenset[str]] = {}


def _field_names(cls: Any) -> frozenset[str]:
    return frozenset(a.name for a in attrs.fields(cls)) if attrs.has(cls) else frozenset()


def dotted(path: Path) -> str:
    """``("spec", "peak", "dense")`` as text: ``spec.peak.dense``."""
    return ".".join(str(step) for step in path)


def spread(text: str) -> list[Path]:
    """The paths that a text with alternatives names: ``spec.peak.dense.{bf16,fp16}`` names two.

    Raises:
        ValueError: The braces do not match, or there are more than :data:`MOST_PATHS` paths.
    """
    paths: list[Path] = [()]
    for step in _steps(text):
        inside = step[1:-1] if step.startswith("{") and step.endswith("}") else step
        if "{" in inside or "}" in inside:
            raise ValueError(f"the braces in {text!r} do not match")
        words = [step] if inside is step else inside.split(",")
        if len(paths) * len(words) > MOST_PATHS:
            raise ValueError(f"{text!r} names more than {MOST_PATHS} paths")
        paths = [(*path, int(word) if word.isdigit() else word) for path in paths for word in words]
    return paths


def _steps(text: str) -> Iterator[str]:
    step, depth = "", 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "." and depth == 0:
            yield step
            step = ""
        else:
            step += char
    yield step
