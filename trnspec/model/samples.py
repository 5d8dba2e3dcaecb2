"""Samples of the values of documents by shape."""

from __future__ import annotations

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
