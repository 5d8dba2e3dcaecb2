"""Values without parts from plain data, as strictly as the schema: ``True`` is not 1, and a text holds no control characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trnspec.model.annotations import NAME_PATTERN, Pattern
from trnspec.model.ref import Ref
from trnspec.model.reflection import spread
from trnspec.model.rounded import rounded
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import UnitTable
from trnspec.yaml.text import UNSAFE

Build = Callable[[Any], Any]
"""A function from plain data to a value; it raises ``ValueError`` or ``QuantityError``."""


def text(pattern: Pattern | None) -> Build:
    """A text without control characters, which matches a pattern if there is one."""
    match = None if pattern is None else matching(pattern)

    def build(value: Any) -> str:
        if pattern is not None:
            value = pattern.text_of(value)
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a text")
        if not (value.isascii() and value.isprintable()) and UNSAFE.search(value):
            raise ValueError(f"{value!r} holds a control character")
        return value if match is None else match(value)

    return build


def flag(value: Any) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise ValueError(f"{value!r} is not true or false")
    return value


def number(*, whole: bool, least: int | None, may_be_rounded: bool) -> Build:
    """A number: whole, at least some value, or as publishers round it."""

    def build(value: Any) -> float:
        if may_be_rounded and type(value) is str:
            value = rounded(value)
        elif type(value) not in ((int,) if whole else (int, float)):
            raise ValueError(f"{value!r} is not a {'whole ' if whole else ''}number")
        result: float = value if whole else float(value)
        if least is not None and result < least:
            raise ValueError(f"{value!r} is less than {least}")
        return result

    return build


def matching(pattern: Pattern) -> Callable[[str], str]:
    """A check that a text matches a pattern."""
    search, whole = re.compile(pattern.regex).search, pattern.regex.endswith("$")

    def check(value: str) -> str:
        # fullmatch would need every pattern to cover the whole text; '$' alone lets a final newline through.
        if not search(value) or (whole and value.endswith("\n")):
            raise ValueError(f"{value!r} is not {pattern.words}")
        if pattern.longest is not None and len(value) > pattern.longest:
            raise ValueError(f"{value!r} has more than {pattern.longest} characters")
        if pattern.paths is not None:
            spread(value)
        return value

    return check


def named(target: type | None) -> Build:
    """A reference to a document of a kind; each is an object of its own, by which its path is found."""
    match = matching(NAME_PATTERN)

    def build(value: Any) -> Ref[Any]:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a name")
        return Ref(match(value), target)

    return build


def one_of(words: tuple[Any, ...]) -> Build:
    """One of some words."""

    def build(value: Any) -> str:
        if type(value) is not str or value not in words:
            raise ValueError(f"{value!r} is not one of {', '.join(words)}")
        return value

    return build


def quantity(units: UnitTable) -> Build:
    """A printed quantity of any dimension."""

    def build(value: Any) -> Quantity:
        if type(value) is not str:
            raise ValueError(f"{value!r} is not a figure: write it with its unit")
        return parse(value, None, units)

    return build


def show(value: Any) -> str:
    """A value of a document in a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = _WORDS[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


_WORDS = {None: "null", True: "true", False: "false"}
_SHOWN = 50
