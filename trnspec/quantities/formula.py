"""The formulas of derived figures: ``27,648 GiB / 36``, ``8 x 128 x 128 x 2 x 2.4 GHz``.

Grammar: sums of products and quotients (``x``, ``*``, ``/``) of quantities, numbers and brackets; there is no minus. A
number may be followed by words that name what it counts (``4 links``). Dimensions are not checked: a clock rate times
operations is a rate, and both are base units.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.quantity import Interval, Qualifier, Quantity, parse
from trnspec.quantities.units import UNITS, UnitTable

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


MOST_CHARACTERS = 400
"""The longest formula, so that its numbers stay short enough to print."""

MOST_BRACKETS = 20
"""The deepest nesting of brackets."""

_TIMES = ("x", "*", "\u00d7")


class FormulaError(ValueError):
    """A text that is not a formula."""


@lru_cache(maxsize=1024)
def evaluate(text: str, units: UnitTable = UNITS) -> Interval:
    """The value of a formula in base units, with the rounding of its figures carried through.

    Raises:
        FormulaError: The text does not follow the grammar, divides by 0, or is too long or too deep; the message names
            the position.
    """
    if len(text) > MOST_CHARACTERS:
        raise FormulaError(f"a formula has at most {MOST_CHARACTERS} characters, this one has {len(text)}")
    parser = _Parser(text, units)
    value = parser.sum()
    if parser.now.kind != "end":
        raise parser.expected("an operator or the end")
    return value


class _Parser:
    """Recursive descent over the three levels of the grammar."""

    def __init__(self, text: str, units: UnitTable) -> None:
        self.text = text
        self.units = units
        tokenizer = Tokenizer(
            {"number": rf"(?:~ ?)?{NUMBER}", "word": UNIT, "sign": "[+*/()\u00d7]"},
            is_unit=lambda word: word != "x" and word in units,
            error=lambda _, at: FormulaError(f"{text[at]!r} at column {at + 1} of the formula {text!r} means nothing"),
        )
        self.tokens = tokenizer(text)
        self.now = next(self.tokens)
        self.depth = 0

    def expected(self, noun: str) -> FormulaError:
        at = self.now.span[0]
        place = "at the end of" if self.now.kind == "end" else f"at {self.text[at:]!r} (column {at + 1}) in"
        return FormulaError(f"{noun} is expected {place} the formula {self.text!r}")

    def take(self) -> Token:
        token = self.now
        self.now = next(self.tokens, token)
        return token

    def sum(self) -> Interval:
        value = self.product()
        while self.now.text == "+":
            self.take()
            value += self.product()
        return value

    def product(self) -> Interval:
        value = self.factor()
        while self.now.text in (*_TIMES, "/"):
            sign = self.take()
            other = self.factor()
            if sign.text == "/" and other.low <= 0 and not other.is_point:
                raise FormulaError(f"the divisor may be 0 (in the formula {self.text!r})")
            try:
                value = value.ratio(other) if sign.text == "/" else value.times(other)
            except UsageError as error:
                raise FormulaError(f"{error} (in the formula {self.text!r})") from error
        return value

    def factor(self) -> Interval:
        if self.now.text == "(":
            self.take()
            self.depth += 1
            if self.depth > MOST_BRACKETS:
                raise FormulaError(f"a formula has at most {MOST_BRACKETS} nested brackets")
            value = self.sum()
            self.depth -= 1
            if self.now.text != ")":
                raise self.expected("a closing bracket")
            self.take()
            return value
        if self.now.kind != "number":
            raise self.expected("a number")
        number = self.take()
        try:
            quantity = read_number(number, self.units)
        except QuantityError as error:
            raise FormulaError(f"{error} (in the formula {self.text!r})") from error
        if number.unit:
            return quantity.interval
        while self.now.kind == "word" and self.now.text != "x":
            word = self.take().text
            if "/" in word:
                raise FormulaError(f"{word!r} is neither a unit nor what is counted in the formula {self.text!r}")
        # A count is exact, unless it is qualified as approximate.
        return Interval.point(quantity.value) if quantity.qualifier is Qualifier.EXACT else quantity.interval
