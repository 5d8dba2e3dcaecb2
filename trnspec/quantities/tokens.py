"""Tokens of the two small languages that contain quantities: catalog queries and the formulas of derived figures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import QuantityError
from trnspec.quantities.quantity import Quantity, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trnspec.quantities.units import UnitTable

NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""A number as a token; whether its digits are grouped correctly is decided by :func:`read_number`."""

UNIT = r"[A-Za-zµμ$%]+(?:/[A-Za-zµμ$%]+)*"
"""The spelling of a unit."""

_SPACE = re.compile(r"\s*")
_UNIT = re.compile(rf"\s*({UNIT})")


@frozen
class Token:
    """One token of a text.

    Attributes:
        kind: The name of the pattern that matched, or ``end`` for the end of the text.
        text: The characters of the token; of a number, those before its unit.
        span: Where the token begins and ends in the text, its unit included.
        unit: The unit after a number, or an empty text.
    """

    kind: str
    text: str
    span: tuple[int, int]
    unit: str = ""


class Tokenizer:
    """Splits a text into tokens.

    Args:
        patterns: A regular expression for each kind of token, in order of precedence; that of numbers is called ``number``.
        is_unit: Whether a word after a number is its unit.
        error: Creates the exception for a character at which no token begins, from the text and the position.
    """

    def __init__(
        self,
        patterns: dict[str, str],
        is_unit: Callable[[str], bool],
        error: Callable[[str, int], Exception],
    ) -> None:
        self._pattern = re.compile("|".join(f"(?P<{kind}>{p})" for kind, p in patterns.items()), re.DOTALL)
        self._is_unit = is_unit
        self._error = error

    def __call__(self, text: str) -> Iterator[Token]:
        """The tokens of a text; the last one is its end."""
        at = self._skip_space(text, 0)
        while at < len(text):
            match = self._pattern.match(text, at)
            if match is None:
                raise self._error(text, at)
            kind, start, at = str(match.lastgroup), match.start(), match.end()
            unit = _UNIT.match(text, at) if kind == "number" else None
            if unit is not None and self._is_unit(unit[1]):
                at = unit.end()
                yield Token(kind, match[0], (start, at), unit[1])
            else:
                yield Token(kind, match[0], (start, at))
            at = self._skip_space(text, at)
        yield Token("end", "", (at, at))

    @staticmethod
    def _skip_space(text: str, at: int) -> int:
        match = _SPACE.match(text, at)
        return match.end() if match is not None else at


def read_number(token: Token, units: UnitTable) -> Quantity:
    """The quantity of a number token; a number without a unit is a ratio.

    Raises:
        QuantityError: The number is malformed, or the unit is unknown.
    """
    if token.unit:
        separator = units.unit(token.unit).separator
        return parse(f"{token.text}{separator}{token.unit}", None, units)
    try:
        return parse(f"{token.text}x", None, units)
    except QuantityError as error:
        message = str(error).replace('x"', '"', 1)
        raise QuantityError(error.reason, message, error.hint) from error
