"""Removes the invalid parts of a document, so that one run can report all problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.model.reflection import (
    ChoiceShape,
    FigureShape,
    MapShape,
    NumberShape,
    ObjectShape,
    TextShape,
    shape_in_document,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trnspec.yaml import Path


def prune(spec: type, data: Mapping[str, Any], drops: Iterable[Path]) -> tuple[dict[str, Any] | None, tuple[int, ...]]:
    """The data without the paths in ``drops`` and without the parts that require them.

    Single items are removed from the list of claims only; any other list is removed as a whole, so that positions keep
    their meaning.

    Returns:
        The valid rest, or ``None`` if the metadata or the whole spec would be removed; and the positions in the file of
        the remaining claims.
    """
    removed = {_widen(spec, path) for path in drops}
    if () in removed or ("metadata",) in removed or ("spec",) in removed:
        return None, ()
    claims = data.get("claims")
    positions = range(len(claims)) if isinstance(claims, list) and ("claims",) not in removed else ()
    rest: dict[str, Any] = _copy(data, (), removed)
    return rest, tuple(i for i in positions if ("claims", i) not in removed)


def _widen(spec: type, path: Path) -> Path:
    """The nearest path at or above ``path`` that is optional."""
    while path:
        if len(path) == 1 and path[0] not in ("api_version", "kind"):
            return path
        parent = shape_in_document(spec, path[:-1])
        if isinstance(parent, ObjectShape):
            field = parent.fields.get(str(path[-1]))
            if field is None or not field.required:
                return path
        elif isinstance(parent, (ChoiceShape, FigureShape, NumberShape, TextShape)):
            if path[-1] != "value":
                return path
        elif path[:-1] == ("claims",) or isinstance(parent, MapShape):
            return path
        path = path[:-1]
    return path


def _copy(value: Any, path: Path, removed: set[Path]) -> Any:
    if isinstance(value, dict):
        return {k: _copy(v, (*path, k), removed) for k, v in value.items() if (*path, k) not in removed}
    if isinstance(value, list):
        return [_copy(v, (*path, i), removed) for i, v in enumerate(value) if (*path, i) not in removed]
    return value
