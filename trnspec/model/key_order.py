"""The canonical order of the keys of a document: that of the fields of its classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trnspec.model.figure import Figure
from trnspec.model.reflection import EitherShape, FigureShape, MapShape, ObjectShape, shape_in_document
from trnspec.model.sourced import Origin
from trnspec.yaml import Path

ENVELOPE = ("api_version", "kind", "metadata", "spec", "claims")


def key_order(spec: type | None) -> Callable[[Path, Sequence[str]], list[int]]:
    """A function from the path of a mapping and its keys to their ranks.

    A key that no class has keeps the rank of the key above it. Names that authors choose, and data types, keep the order
    of the document, which is that of the source.

    Args:
        spec: The class of the spec; ``None`` orders the top of a document only.
    """

    def ranks(path: Path, keys: Sequence[str]) -> list[int]:
        order = _order(spec, path, keys)
        result: list[int] = []
        for key in keys:
            result.append(order.index(key) if key in order else result[-1] if result else -1)
        return result

    return ranks


def _order(spec: type | None, path: Path, keys: Sequence[str]) -> tuple[str, ...]:
    if not path:
        return ENVELOPE
    shape = None if spec is None else shape_in_document(spec, path)
    if isinstance(shape, EitherShape):
        options = (o for o in shape.options if isinstance(o, ObjectShape) and o.fields.keys() >= set(keys))
        shape = next(options, shape)
    if isinstance(shape, ObjectShape):
        first = getattr(shape.cls, "FIRST", ())
        return tuple(dict.fromkeys((*first, *shape.fields))) if getattr(shape.cls, "ORDERED", True) else ()
    if isinstance(shape, FigureShape):
        return tuple(ObjectShape(Figure).fields)
    if isinstance(shape, MapShape) or shape is None or "value" not in keys:
        return ()
    return ("value", *ObjectShape(Origin).fields)
