"""What is left of a document when its unsound parts are taken out, so that one run can show everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.model.reflection import FigureShape, MapShape, ObjectShape, shape_in_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trnspec.yaml import Path


def prune(spec: type, data: Mapping[str, Any], drops: Iterable[Path]) -> tuple[dict[str, Any] | None, tuple[int, ...]]:
    """The data without the paths in ``drops``; what needs a dropped part goes with it.

    A list loses an item only among the claims; elsewhere the whole list goes, so that positions keep their meaning.

    Returns:
        The sound rest, or ``None`` when the metadata or the whole spec would have to go; and the positions in the file
        of the claims that were kept.
    """
    gone = {_widen(spec, path) for path in drops}
    if () in gone or ("metadata",) in gone or ("spec",) in gone:
        return None, ()
    claims = data.get("claims")
    positions = range(len(claims)) if isinstance(claims, list) and ("claims",) not in gone else ()
    kept: dict[str, Any] = _copy(data, (), gone)
    return kept, tuple(i for i in positions if ("claims", i) not in gone)


def _widen(spec: type, path: Path) -> Path:
    """The nearest place above ``path`` that may be left out."""
    while path:
        if len(path) == 1 and path[0] not in ("api_version", "kind"):
            return path
        parent = shape_in_document(spec, path[:-1])
        if isinstance(parent, ObjectShape):
            field = parent.fields.get(str(path[-1]))
            if field is None or not field.required:
                return path
        elif isinstance(parent, FigureShape):
            if path[-1] != "value":
                return path
        elif path[:-1] == ("claims",) or isinstance(parent, MapShape):
            return path
        path = path[:-1]
    return path


def _copy(value: Any, path: Path, gone: set[Path]) -> Any:
    if isinstance(value, dict):
        return {k: _copy(v, (*path, k), gone) for k, v in value.items() if (*path, k) not in gone}
    if isinstance(value, list):
        return [_copy(v, (*path, i), gone) for i, v in enumerate(value) if (*path, i) not in gone]
    return value
