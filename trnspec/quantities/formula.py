"""The formulas of derived figures: ``27,648 GiB / 36``, ``8 x 128 x 128 x 2 x 2.4 GHz``.

Grammar: sums of products and quotients (``x``, ``*``, ``/``) of quantities, numbers and brackets; there is no minus. A
number may be followed by words that name what it counts (``4 links``). Evaluation does not check dimensions: a clock rate
times operations is a rate, and both are base units; :func:`dimension` knows that of simple formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from attrs import define, frozen

from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.quantity import Interval, Qualifier, Quantity, parse
from trnspec.quantities.units import UNITS, Dimension, UnitTable

NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""A number as a token; whether its digits are grouped correctly is decided by :func:`read_number`."""

UNIT = r"[A-Za-zµμ$%]+(?:/[A-Za-zµμ$%]+)*"
"""The spelling of a unit."""

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


@frozen
class Tokenizer:
    """Splits a text into tokens.

    Attributes:
        patterns: A regular expression for each kind of token, in order of precedence; that of numbers is called ``number``.
        is_unit: Whether a word after a number is its unit.
        error: Creates the exception for a character at which no token begins, from the text and the position.
    """

    patterns: dict[str, str]
    is_unit: Callable[[str], bool]
    error: Callable[[str, int], Exception]

    def __call__(self, text: str) -> Iterator[Token]:
        """The tokens of a text; the last one is its end."""
        pattern = re.compile("|".join(f"(?P<{kind}>{p})" for kind, p in self.patterns.items()), re.DOTALL)
        at = len(text) - len(text.lstrip())
        while at < len(text):
            match = pattern.match(text, at)
            if match is None:
                raise self.error(text, at)
            kind, start, at = str(match.lastgroup), match.start(), match.end()
            unit = _UNIT.match(text, at) if kind == "number" else None
            if unit is not None and self.is_unit(unit[1]):
                at = unit.end()
                yield Token(kind, match[0], (start, at), unit[1])
            else:
                yield Token(kind, match[0], (start, at))
            at = len(text) - len(text[at:].lstrip())
        yield Token("end", "", (at, at))


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
    """A text that is not a formula.

    Attributes:
        hint: What was probably meant, or an empty text.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@lru_cache(maxsize=1024)
def evaluate(text: str, units: UnitTable = UNITS, *, exact: bool = False) -> Interval:
    """The value of a formula in base units, with the rounding of its figures carried through.

    Args:
        text: The formula.
        units: The units that it may use.
        exact: Whether a figure is the number that it shows, without rounding.

    Raises:
        FormulaError: The text does not follow the grammar, divides by 0, or is too long or too deep; the message names
            the position.
    """
    if len(text) > MOST_CHARACTERS:
        raise FormulaError(f"a formula has at most {MOST_CHARACTERS} characters, this one has {len(text)}")
    tokenizer = Tokenizer(
        {"number": rf"(?:~ ?)?{NUMBER}", "word": UNIT, "sign": "[+*/()\u00d7]"},
        is_unit=lambda word: word != "x" and units.get(word) is not None,
        error=lambda _, at: FormulaError(f"{text[at]!r} at column {at + 1} of the formula {text!r} means nothing"),
    )
    tokens = tokenizer(text)
    parser = _Parser(text, units, exact, tokens, next(tokens))
    value = parser.sum()
    if parser.now.kind != "end":
        raise parser.expected("an operator or the end")
    return value


def dimension(text: str, units: UnitTable) -> Dimension | None:
    """The dimension of a formula in which one quantity alone has a unit, which is not a divisor; ``None`` for others.

    That of a clock rate is not known: it is multiplied with operations or bytes.
    """
    used = [
        m for m in re.finditer(rf"(/ *\(?)?{NUMBER} ?({UNIT})", text) if m[2] != "x" and units.get(m[2]) is not None
    ]
    if len(used) != 1 or used[0][1] or ":" in text or "spec." in text:
        return None
    found = units.unit(used[0][2]).dimension
    return None if found is Dimension.FREQUENCY else found


@define
class _Parser:
    """Recursive descent over the levels of the grammar."""

    text: str
    units: UnitTable
    exact: bool
    tokens: Iterator[Token]
    now: Token
    depth: int = 0

    def expected(self, noun: str) -> FormulaError:
        at = self.now.span[0]
        place = "at the end of" if self.now.kind == "end" else f"at {self.text[at:]!r} (column {at + 1}) in"
        return FormulaError(f"{noun} is expected {place} the formula {self.text!r}")

    def take(self) -> Token:
        token = self.now
        self.now = next(self.tokens)
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
        while not number.unit and self.now.kind == "word" and self.now.text != "x":
            word = self.take().text
            if re.search("[/$%]", word):
                raise FormulaError(f"{word!r} is neither a unit nor what is counted in the formula {self.text!r}")
        # A count is exact, unless it is qualified as approximate.
        is_exact = quantity.qualifier is Qualifier.EXACT and (self.exact or not number.unit)
        return Interval.point(quantity.value) if is_exact else quantity.interval
