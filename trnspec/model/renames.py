"""Attributes that had another path in an earlier version, and the path that replaces it.

A class of the model declares its renamed attributes next to its fields::

    RENAMED: ClassVar[Mapping[str, str]] = {"efa": "network", "efa.cards": "network.nics"}

Both paths are relative to the class.  An entry whose new path begins with the old one, such as ``bandwidth`` and
``bandwidth.both``, is a figure that became a group: the old form is the bare figure.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence

from trnspec.model.figure import Figure
from trnspec.model.reflection import (
    FigureShape,
    ObjectShape,
    Shape,
    classes_below,
    shape_at,
    spread,
    step_into,
)
from trnspec.yaml import Path


@functools.cache
def renames(cls: type) -> Mapping[Path, Path]:
    """The renamed attributes of a class: new paths by former paths, the longest first."""
    table: Mapping[str, str] = getattr(cls, "RENAMED", {})
    pairs = ((tuple(old.split(".")), tuple(new.split("."))) for old, new in table.items())
    return dict(sorted(pairs, key=lambda pair: -len(pair[0])))


def is_group(old: Path, new: Path) -> bool:
    """Whether a figure became a group: the new path begins with the old one."""
    return new[: len(old)] == old


@functools.cache
def has_renames(cls: type) -> bool:
    """Whether a class, or a class of one of its fields, has renamed attributes."""
    return any(map(renames, classes_below(ObjectShape(cls))))


def current(cls: type, path: Path, *, groups: bool = True) -> Path:
    """The present path of an attribute that may have been renamed; the path itself where it was not.

    Args:
        cls: The class that the path starts at.
        path: The path, in its former or present form.
        groups: Whether the path of a figure that became a group leads to the member that replaces the figure.
            ``False`` where a path represents everything below it.
    """
    shape: Shape | None = ObjectShape(cls)
    done: Path = ()
    while path:
        if isinstance(shape, FigureShape):
            shape = ObjectShape(Figure)
        if isinstance(shape, ObjectShape):
            path = _renamed(shape.cls, path, groups=groups)
        step, path, done = path[0], path[1:], (*done, path[0])
        shape = step_into(shape, step)
        if shape is None:
            return (*done, *path)
    return done


def _renamed(cls: type, path: Path, *, groups: bool) -> Path:
    for old, new in renames(cls).items():
        if path[: len(old)] != old:
            continue
        if is_group(old, new):
            shape = shape_at(cls, old)
            members = shape.fields if isinstance(shape, ObjectShape) else ()
            if not groups or path[len(old) : len(old) + 1] in [(name,) for name in members]:
                continue
        return (*new, *path[len(old) :])
    return path


@functools.lru_cache(maxsize=4096)
def current_text(spec: type, text: str, *, groups: bool = True) -> str:
    """The present form of a path below ``spec`` as a text, which may have alternatives in braces.

    A text whose present paths cannot be written in one text is returned as it is, and so is one whose braces do not
    match.
    """
    try:
        paths = spread(text)
    except ValueError:
        return text
    if any(path[:1] != ("spec",) for path in paths):
        return text
    present = tuple(("spec", *current(spec, path[1:], groups=groups)) for path in paths)
    return text if present == paths else _joined(present) or text


def _joined(paths: Sequence[Path]) -> str:
    """Several paths as one text with braces; empty where that is not possible."""
    if len({len(path) for path in paths}) != 1:
        return ""
    steps = [tuple(dict.fromkeys(str(step) for step in column)) for column in zip(*paths, strict=True)]
    if set(itertools.product(*steps)) != {tuple(map(str, path)) for path in paths}:
        return ""
    return ".".join(step[0] if len(step) == 1 else "{" + ",".join(step) + "}" for step in steps)
