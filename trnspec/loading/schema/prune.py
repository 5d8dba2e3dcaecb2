"""Removes the invalid parts of a document, so that one run can report all problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from trnspec.model.kinds import LISTS, kind_of
from trnspec.model.reflection import (
    ChoiceShape,
    FigureShape,
    ListShape,
    MapShape,
    NumberShape,
    ObjectShape,
    TextShape,
    shape_in_document,
)
from trnspec.yaml import Path


def prune(
    spec: type, data: Mapping[str, Any], drops: Iterable[Path], *, items: bool = False
) -> tuple[dict[str, Any] | None, tuple[int, ...]]:
    """The data without the paths in ``drops``, without the parts that require them, and without lists of too few items.

    Args:
        spec: The class of the spec.
        data: The data of a document.
        drops: The paths to remove.
        items: Whether to remove single items of any list, values whose source is removed, and optional objects that become
            empty. Otherwise only single claims and rows of :data:`~trnspec.model.kinds.LISTS` are removed, and any other
            list as a whole, so that positions keep their meaning; claims and waivers are removed with each of their keys,
            since a waiver without its path would accept all findings, and a claim without its verdict contradict.

    Returns:
        The valid rest, or ``None`` if the metadata or the whole spec would be removed; and the positions in the data of
        the remaining claims.
    """
    removed = {_widen(spec, path, items=items) for path in drops}
    before = -1
    while len(removed) != before:  # a list without items may be all of an item of another list
        before = len(removed)
        items_removed = Counter(path[:-1] for path in removed if path and isinstance(path[-1], int))
        for path, number in items_removed.items():
            shape = shape_in_document(spec, path)
            value: Any = data
            for key in path:
                value = value[key]
            if isinstance(shape, ListShape) and len(value) - number < shape.least:
                removed.add(_widen(spec, path, items=items))
    if not removed.isdisjoint(_NEEDED):
        return None, ()
    claims = data.get("claims")
    positions = range(len(claims)) if isinstance(claims, list) and ("claims",) not in removed else ()
    rest: dict[str, Any] = _copy(spec if items else None, data, (), removed)
    return rest, tuple(i for i in positions if ("claims", i) not in removed)


_NEEDED: tuple[Path, ...] = ((), ("metadata",), ("spec",))


def is_needed(spec: type, path: Path) -> bool:
    """Whether a document cannot be used without the value at a path."""
    return _widen(spec, path, items=True) in _NEEDED


def _widen(spec: type, path: Path, *, items: bool) -> Path:
    """The nearest path at or above ``path`` that is optional."""
    if not items and (path[:1] == ("claims",) or path[:2] == ("metadata", "allow")):
        return path[: 2 if path[0] == "claims" else 3]
    while path:
        if len(path) == 1 and path[0] not in ("api_version", "kind"):
            return path
        parent = shape_in_document(spec, path[:-1])
        if isinstance(parent, ObjectShape):
            field = parent.fields.get(str(path[-1]))
            if field is None or not field.required:
                return path
        elif isinstance(parent, (ChoiceShape, FigureShape, NumberShape, TextShape)):
            if path[-1] != "value" and not items:
                return path
        elif (
            path[:-1] == ("claims",)
            or isinstance(parent, MapShape)
            or (isinstance(parent, ListShape) and (items or kind_of(spec) in LISTS))
        ):
            return path
        path = path[:-1]
    return path


def _copy(spec: type | None, value: Any, path: Path, removed: set[Path]) -> Any:
    """The data without the removed paths; with a class also without optional objects that become empty."""
    if isinstance(value, dict):
        kept = {
            key: _copy(spec, item, (*path, key), removed) for key, item in value.items() if (*path, key) not in removed
        }
        emptied = [
            key
            for key, item in kept.items()
            if spec is not None and item in ({}, []) and value[key] and len(path) > 0
            if _widen(spec, (*path, key), items=True) == (*path, key)
        ]
        return {key: item for key, item in kept.items() if key not in emptied}
    if isinstance(value, list):
        return [_copy(spec, v, (*path, i), removed) for i, v in enumerate(value) if (*path, i) not in removed]
    return value
