"""The description of documents: shapes and fields of the classes, built once for each class from annotations and docstrings.

JSON Schema, field reference, completion, key order and structuring are functions of these fields; so are the traversals of
structured values by path.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs
from attrs import field, frozen

from trnspec.model.annotations import MOST_PATHS, Extensive, Least, Measures, Pattern, Rounded
from trnspec.model.document import Claim, Metadata
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref, indefinite, target_word
from trnspec.model.sourced import Origin
from trnspec.quantities.quantity import Quantity
from trnspec.quantities.units import UNITS, Dimension, UnitTable
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
    """A text that matches the pattern, when there is one; ``is_quantity`` marks that of a figure."""

    pattern: Pattern | None = None
    is_quantity: bool = False


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
    """A list of items of one shape; ``least`` is the smallest number of them."""

    item: Shape
    least: int = 0


@frozen
class MapShape:
    """A mapping from names to values of one shape."""

    value: Shape


@frozen
class EitherShape:
    """One of several shapes."""

    options: tuple[Shape, ...]


@frozen
class ObjectShape:
    """A mapping with known keys; its fields are read on first use, so that classes may be recursive."""

    cls: type

    @property
    def fields(self) -> Mapping[str, Field]:
        """The fields by name, in the order of the class."""
        return fields_of(self.cls)


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
class Field:
    """A field of a class.

    Attributes:
        name: Its name.
        shape: The shape of its value.
        required: Whether every document must have it.
        default: Its value where a document does not have it; ``attrs.NOTHING`` if there is none.
        description: A sentence; empty where the docstring of the class has none.
        example: An example value, or an empty text.
        extensive: Whether its values add up over the parts of a system.
        sourced: Whether its value may have a source of its own.
    """

    name: str
    shape: Shape
    required: bool
    default: Any = field(eq=False)
    description: str = field(eq=False)
    example: str = field(eq=False)
    extensive: bool
    sourced: bool

    @property
    def type_words(self) -> str:
        """The type in words: ``bandwidth``, ``name of a Server``, ``integer >= 1``."""
        return type_words(self.shape)

    @property
    def expected(self) -> str:
        """The type or the words to choose from, with the example where there is one."""
        if isinstance(self.shape, ChoiceShape):
            return f"one of {', '.join(self.shape.words)}"
        return self.type_words + (f", such as {self.example}" if self.example else "")

    @property
    def cls(self) -> type | None:
        """The class whose fields the value has; that of the items for a list or a mapping."""
        return next((cls for cls in classes_in(self.shape) if cls is not Figure), None)

    def units(self, table: UnitTable = UNITS) -> tuple[str, ...]:
        """The units of a figure, those nearest to the commonly printed one first; empty for other types."""
        shape = item_of(self.shape)
        if not isinstance(shape, FigureShape) or shape.dimension is None:
            return ()
        example = table.get(self.example.split(" ")[-1]) or table.unit(shape.dimension.example)
        same = [u for u in table if u.dimension is shape.dimension]
        same.sort(key=lambda u: (abs(math.log(u.factor / example.factor)), u.symbol != example.symbol))
        return tuple(u.symbol for u in same)


@functools.cache
def shape_of(annotation: Any) -> Shape:  # noqa: C901, PLR0911  # one branch for each shape
    """The shape that an annotation describes; ``TypeError`` for one that documents cannot express."""
    marks: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *marks = get_args(annotation)  # type: ignore[assignment]  # any sequence

    def mark(cls: Any) -> Any:
        return next((m for m in marks if isinstance(m, cls)), None)

    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is Figure:
        measures = mark(Measures) or Measures(None)
        return FigureShape(measures.dimension, measures.decimal)
    if annotation in (str, Quantity):
        return TextShape(mark(Pattern), annotation is Quantity)
    if annotation is bool:
        return FlagShape()
    if annotation in (int, float):
        least = mark(Least)
        return NumberShape(annotation is int, least and least.value, mark(Rounded) is not None)
    if annotation is Ref:
        raise TypeError("a Ref names the kind of its document, such as Ref[Server]")
    if origin is Ref and isinstance(args[0], type):
        return RefShape(args[0])
    if origin is Literal and all(isinstance(word, str) for word in args):
        return ChoiceShape(args)
    if origin in (Union, types.UnionType):
        options = tuple(shape_of(a) for a in args if a is not type(None))
        return options[0] if len(options) == 1 else EitherShape(options)
    if origin is tuple and args[1:] == (Ellipsis,):
        return ListShape(shape_of(args[0]), (mark(Least) or Least(0)).value)
    if origin is Mapping:
        return MapShape(shape_of(args[1]))
    if isinstance(annotation, type) and attrs.has(annotation):
        return ObjectShape(annotation)
    raise TypeError(f"a document cannot hold a {annotation!r}")


@functools.cache
def fields_of(cls: type) -> Mapping[str, Field]:
    """The fields of a class by name, in its order."""
    docs = field_docs(cls)
    fields: dict[str, Field] = {}
    attributes: tuple[attrs.Attribute[Any], ...] = attrs.fields(attrs.resolve_types(cls))
    for a in attributes:
        if a.init:
            annotation: Any = a.type
            shape = shape_of(annotation)
            text, example = docs.get(a.name, ("", None))
            # Counts, words and dates; figures have sources anyway.
            plain = isinstance(shape, (ChoiceShape, TextShape)) or (isinstance(shape, NumberShape) and shape.whole)
            sourced = getattr(cls, "SOURCED", True) and a.name != "note" and plain
            required = a.default is attrs.NOTHING or a.name in unless_announced(cls)
            if required and isinstance(shape, ListShape):
                shape = attrs.evolve(shape, least=1)
            extensive = _marked_extensive(annotation)
            fields[a.name] = Field(a.name, shape, required, default_of(a), text, example or "", extensive, sourced)
    return fields


def default_of(attribute: attrs.Attribute[Any]) -> Any:
    """The default value of an attribute; ``attrs.NOTHING`` for one without, or with one that depends on the object."""
    default: Any = attribute.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class
        return attrs.NOTHING if default.takes_self else default.factory()
    return default


def unless_announced(cls: type) -> tuple[str, ...]:
    """The fields that a document must have, unless its ``status`` is ``announced``: those in ``_UNLESS_ANNOUNCED``."""
    names: tuple[str, ...] = getattr(cls, "_UNLESS_ANNOUNCED", ())
    return names


def _marked_extensive(annotation: Any) -> bool:
    """Whether an annotation, or a member of a union, carries ``Extensive()``."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return any(isinstance(m, Extensive) for m in marks) or _marked_extensive(inner)
    if get_origin(annotation) in (Union, types.UnionType):
        return any(map(_marked_extensive, get_args(annotation)))
    return False


def summary(cls: type) -> str:
    """The first paragraph of the docstring of a class."""
    return " ".join((inspect.getdoc(cls) or "").split("\n\n", 1)[0].split())


def field_docs(cls: type) -> dict[str, tuple[str, str | None]]:
    """The description of each attribute in the docstrings of a class and its bases, and its example if there is one."""
    docs: dict[str, tuple[str, str | None]] = {}
    for base in reversed(cls.__mro__):
        _, _, rest = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")
        section = re.split(r"\n(?=\S)", rest, maxsplit=1)[0]
        for entry in re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, flags=re.MULTILINE):
            text, _, example = " ".join(entry[1].split()).partition(" Example: ")
            docs[entry[0]] = (text, example or None)
    return docs


def type_words(shape: Shape) -> str:  # noqa: PLR0911  # one branch for each shape
    """The type of a value in words."""
    match shape:
        case FigureShape(dimension):
            return "figure" if dimension is None else dimension.word
        case RefShape(target):
            return f"name of {indefinite(target_word(target))}"
        case NumberShape(whole, least):
            number = "integer" if whole else "number"
            return number if least is None else f"{number} >= {least}"
        case ChoiceShape(words):
            return " | ".join(words)
        case ListShape(item):
            return f"list of {type_words(item)}"
        case MapShape(value):
            return f"mapping to {type_words(value)}"
        case EitherShape(options):
            return " or ".join(map(type_words, options))
        case ObjectShape(cls):
            return cls.__name__
        case FlagShape():
            return "true or false"
        case TextShape():
            return "text"


def item_of(shape: Shape) -> Shape:
    """The shape of the items of a list or the values of a mapping, nested ones too; any other shape as it is."""
    while isinstance(shape, (ListShape, MapShape)):
        shape = shape.item if isinstance(shape, ListShape) else shape.value
    return shape


def classes_in(shape: Shape) -> Iterator[type]:
    """The classes of the objects that a value, its items or its options may be."""
    shape = item_of(shape)
    if isinstance(shape, EitherShape):
        for option in shape.options:
            yield from classes_in(option)
    elif isinstance(shape, ObjectShape):
        yield shape.cls


def classes_below(shape: Shape) -> Iterator[type]:
    """The classes of the objects that a value may be or contain at any depth, each once."""
    seen: dict[type, None] = {}
    waiting = list(classes_in(shape))
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen[cls] = None
            yield cls
            waiting += (inner for field in fields_of(cls).values() for inner in classes_in(field.shape))


def field_at(cls: type, path: Path) -> Field | None:
    """The field at a path below a class, or ``None``; items of lists and values of mappings are passed through."""
    found: Field | None = None
    current: type | None = cls
    for step in path:
        if current is None or step not in fields_of(current):
            return None
        found = fields_of(current)[str(step)]
        current = found.cls
    return found


def is_extensive(cls: Any, path: Path) -> bool:
    """Whether the values at ``path`` below a class add up over parts: a field on the path is marked ``Extensive()``."""
    shape: Shape | None = ObjectShape(cls)
    for length, step in enumerate(path, 1):
        if isinstance(shape, ObjectShape) and step in shape.fields and shape.fields[str(step)].extensive:
            return shape_at(cls, path) is not None
        shape = shape_at(cls, path[:length])
    return False


def shape_at(cls: Any, path: Path) -> Shape | None:
    """The shape at ``path`` below a class, or ``None`` where a document of that class has no such path."""
    shape: Shape = shape_of(cls)
    sourced = False
    for step in path:
        if isinstance(shape, FigureShape):
            shape = ObjectShape(Figure)  # its form as a mapping
        inner = step_into(shape, step)
        if inner is not None:
            sourced = isinstance(shape, ObjectShape) and shape.fields[str(step)].sourced
            shape = inner
        elif sourced and step == "value":
            sourced = False
        elif sourced and step in fields_of(Origin):
            sourced, shape = False, fields_of(Origin)[str(step)].shape
        else:
            return None
    return shape


def step_into(shape: Shape | None, step: str | int) -> Shape | None:
    """The shape of a field, an item or a value of a mapping; ``None`` where a shape has no such step."""
    if isinstance(shape, ObjectShape):
        return shape.fields[str(step)].shape if step in shape.fields else None
    if isinstance(shape, ListShape) and isinstance(step, int):
        return shape.item
    return shape.value if isinstance(shape, MapShape) and isinstance(step, str) else None


def shape_in_document(spec: type, path: Path) -> Shape | None:
    """The shape at ``path`` from the top of a document with a spec of that class; ``None`` above its three parts."""
    match path:
        case ("metadata", *below):
            return shape_at(Metadata, tuple(below))
        case ("spec", *below):
            return shape_at(spec, tuple(below))
        case ("claims", _, *below):
            return shape_at(Claim, tuple(below))
    return None


def fields_below(cls: type, path: Path = (), above: tuple[type, ...] = ()) -> Iterator[tuple[Path, Field]]:
    """The fields of a class and of its parts by path, those in lists and mappings apart; no class inside itself."""
    for name, member in fields_of(cls).items():
        yield (*path, name), member
        shape = member.shape
        if isinstance(shape, ObjectShape) and shape.cls not in (*above, cls):
            yield from fields_below(shape.cls, (*path, name), (*above, cls))


def class_paths(cls: type) -> Iterator[Path]:
    """The paths of all figures and numbers of a class, those in lists and mappings apart."""
    return (path for path, member in fields_below(cls) if isinstance(member.shape, (FigureShape, NumberShape)))


Leaf = tuple["Path", Shape, Any]
"""The path, the shape and the value of a leaf."""


def leaves(value: Any, path: Path = (), shape: Shape | None = None) -> list[Leaf]:
    """Every leaf of a structured value, in the order of the classes; a figure is a leaf.

    Args:
        value: The value.
        path: Its path, with which those of the leaves begin.
        shape: Its shape; by default that of its class.
    """
    found: list[Leaf] = []

    def collect(value: Any, shape: Shape, path: Path) -> None:
        if value is None:
            return
        if isinstance(shape, ObjectShape):
            for name, member in fields_of(shape.cls).items():
                collect(getattr(value, name), member.shape, (*path, name))
        elif isinstance(shape, ListShape):
            for index, item in enumerate(value):
                collect(item, shape.item, (*path, index))
        elif isinstance(shape, MapShape):
            for key, item in value.items():
                collect(item, shape.value, (*path, key))
        else:
            found.append((path, shape, value))

    collect(value, shape or ObjectShape(type(value)), path)
    return found


def figures_of(value: Any, path: Path = ()) -> dict[Path, Figure]:
    """Every figure of a structured object by its path."""
    return {at: leaf for at, _, leaf in leaves(value, path) if isinstance(leaf, Figure)}


def value_at(value: Any, path: Path) -> Any:
    """The value at ``path`` below a structured value, or ``None`` where there is none."""
    for step in path:
        if value is None:
            break
        cls: Any = type(value)
        # Not hasattr: a text has an attribute "upper" and a tuple one called "count".
        if step in _attributes(cls):
            value = getattr(value, str(step))
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            value = value[step] if isinstance(value, tuple) and isinstance(step, int) and step < len(value) else None
    return value


def with_value(value: Any, path: Path, leaf: Any) -> Any:
    """A structured value with another value at ``path`` below it."""
    if not path:
        return leaf
    first, rest = path[0], path[1:]
    if isinstance(value, tuple):
        return tuple(with_value(v, rest, leaf) if i == first else v for i, v in enumerate(value))
    if isinstance(value, Mapping):
        return {k: with_value(v, rest, leaf) if k == first else v for k, v in value.items()}
    return attrs.evolve(value, **{str(first): with_value(getattr(value, str(first)), rest, leaf)})


@functools.cache
def _attributes(cls: Any) -> frozenset[str]:
    return frozenset(a.name for a in attrs.fields(cls)) if attrs.has(cls) else frozenset()


def dotted(path: Path) -> str:
    """``("spec", "peak", "dense")`` as text: ``spec.peak.dense``."""
    return ".".join(map(str, path))


def steps_of(text: str) -> Path:
    """The path of a text in dotted notation: ``ratios.0.says``."""
    return tuple(int(step) if step.isascii() and step.isdigit() else step for step in text.split("."))


@functools.lru_cache(maxsize=4096)  # the paths of claims are read by many rules
def spread(text: str) -> tuple[Path, ...]:
    """The paths that a text with alternatives names: ``spec.peak.dense.{bf16,fp16}`` names two.

    Raises:
        ValueError: The braces do not match, or there are more than :data:`MOST_PATHS` paths.
    """
    paths: list[Path] = [()]
    for step in re.findall(r"((?:[^.{]|\{[^}]*\}?)*)\.", text + "."):  # points in braces do not separate
        inside = step[1:-1] if step.startswith("{") and step.endswith("}") else step
        if "{" in inside or "}" in inside:
            raise ValueError(f"the braces in {text!r} do not match")
        words = [step] if inside is step else inside.split(",")
        if len(paths) * len(words) > MOST_PATHS:
            raise ValueError(f"{text!r} names more than {MOST_PATHS} paths")
        paths = [(*path, int(word) if word.isdigit() else word) for path in paths for word in words]
    return tuple(paths)
