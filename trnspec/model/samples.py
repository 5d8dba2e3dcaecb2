"""Values of the classes of documents by shape: samples of them, and membership."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
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
    fields_of,
)
from trnspec.quantities.quantity import parse


def has_shape(value: Any, shape: Shape) -> bool:  # noqa: PLR0911  # one branch for each shape
    """Whether a structured value is of a shape."""
    match shape:
        case EitherShape(options):
            return any(has_shape(value, option) for option in options)
        case ListShape(item):
            return isinstance(value, tuple) and all(has_shape(v, item) for v in value)
        case MapShape(item):
            return isinstance(value, Mapping) and all(has_shape(v, item) for v in value.values())
        case ObjectShape(cls):
            return isinstance(value, cls)
        case FigureShape():
            return isinstance(value, Figure)
        case RefShape():
            return isinstance(value, Ref)
        case FlagShape():
            return isinstance(value, bool)
        case NumberShape(whole):
            return isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        case ChoiceShape(words):
            return value in words
    return isinstance(value, str)


def sample_of(shape: Shape, *, complete: bool) -> Any:
    """A structured value of a shape.

    Args:
        shape: The shape.
        complete: Whether its optional fields have values, but for those of a class inside itself.
    """
    return _sample(shape, complete=complete, above=())


def _sample(shape: Shape, *, complete: bool, above: tuple[type, ...]) -> Any:  # noqa: PLR0911
    match shape:
        case EitherShape(options):
            return _sample(options[0], complete=complete, above=above)
        case ListShape(item):
            return (_sample(item, complete=complete, above=above),)
        case MapShape(item):
            return {"name": _sample(item, complete=complete, above=above)}
        case ObjectShape(cls):
            used = {
                name: _sample(each.shape, complete=complete, above=(*above, cls))
                for name, each in fields_of(cls).items()
                if each.required or (complete and each.cls not in (*above, cls))
            }
            return cls(**used)
        case FigureShape(dimension):
            return Figure(value=parse("1 " + (dimension.example if dimension is not None else "W")))
        case RefShape(target):
            return Ref("name", target)
        case FlagShape():
            return True
        case NumberShape(_, least):
            return least or 1
        case ChoiceShape(words):
            return words[0]
    return "text"
