"""Values without parts from plain data, as strictly as the schema: ``True`` is not 1, and a text holds no control characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trnspec.model.annotations import NAME_PATTERN, Pattern
from trnspec.model.ref import Ref
from trnspec.model.reflection import spread
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml.text import UNSAFE

if TYPE_CHECKING:
    from trnspec.quantities.units import UnitTable

Build = Callable[[Any], Any]
"""A function from plain data to a value; it raises ``ValueError`` or ``QuantityError``."""


def text(value: Any) -> str:
    """A text without control characters."""
    if type(value) is not str:
        raise ValueError(f"{value!r} is not a text")
    if not (value.isascii() and value.isprintable()) and UNSAFE.search(value):
        raise ValueError(f"{value!r} holds a control character")
    return value


def exactly(cls: type, words: str) -> Build:
    """A value of one class and of no class derived from it."""

    def build(value: Any) -> Any:
        if type(value) is not cls:
            raise ValueError(f"{value!r} is not {words}")
        return value

    return build


def number(value: Any) -> float:
    """A number."""
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def int_or_text(value: Any) -> int | str:
    """A whole number or a text."""
    if type(value) not in (int, str):
        raise ValueError(f"{value!r} is neither a whole number nor a text")
    return text(value) if type(value) is str else value


def input_value(value: Any) -> bool | int | float | str | tuple[Any, ...]:
    """A value of an input of an evaluator: a scalar, or a list of texts or of whole numbers."""
    if type(value) is list:
        if {type(item) for item in value} not in (set(), {int}, {str}):
            raise ValueError(f"{value!r} is not a list of texts or of whole numbers")
        return tuple(text(item) if type(item) is str else item for item in value)
    if type(value) not in (bool, int, float, str):
        raise ValueError(f"{value!r} is neither a number, a text, true or false, nor a list")
    return text(value) if type(value) is str else value


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
