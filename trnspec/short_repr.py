"""A ``repr`` that fits into a line of a terminal or of a log, whatever the object holds.

Documents, graphs and evaluations hold each other: the ``repr`` that attrs generates for one of them prints them all.
"""

from __future__ import annotations

import reprlib
from typing import Any

import attrs

LIMIT = 200
"""Longest ``repr`` of a public object, in characters."""

_VALUES = reprlib.Repr()
_VALUES.maxlevel = 2
_VALUES.maxtuple = _VALUES.maxlist = _VALUES.maxdict = _VALUES.maxset = _VALUES.maxfrozenset = 3
_VALUES.maxstring = _VALUES.maxother = 60


def short_repr(instance: Any) -> str:
    """The ``repr`` of an instance of an attrs class: its fields in order, less those with their default value.

    A long value is abbreviated; fields beyond :data:`LIMIT` are replaced by ``...``.
    """
    text = ""
    for field in attrs.fields(type(instance)):
        value = getattr(instance, field.name)
        if not field.repr or _is_default(field, value):
            continue
        part = f"{', ' if text else ''}{field.name.lstrip('_')}={_VALUES.repr(value)}"
        if len(text) + len(part) > LIMIT - len(type(instance).__name__) - len("(, ...)"):
            text += ", ..." if text else "..."
            break
        text += part
    return f"{type(instance).__name__}({text})"


class ShortRepr:
    """Base of attrs classes with this ``repr``; they are decorated with ``repr=False``."""

    __slots__ = ()

    __repr__ = short_repr


def _is_default(field: attrs.Attribute[Any], value: Any) -> bool:
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time, a function to mypy
        return hasattr(value, "__len__") and not len(value)
    return field.default is not attrs.NOTHING and bool(value == field.default)


def abbreviated(text: str) -> str:
    """A text of at most :data:`LIMIT` characters; a longer one ends with ``...``."""
    return text if len(text) <= LIMIT else f"{text[: LIMIT - 3]}..."
