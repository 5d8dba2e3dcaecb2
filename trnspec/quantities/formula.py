"""The formulas of derived figures: ``27,648 GiB / 36``, ``8 x 128 x 128 x 2 x 2.4 GHz``.

Grammar: sums of products and quotients (``x``, ``*``, ``/``) of quantities, numbers and brackets; there is no minus. A
number may be followed by words that name what it counts (``4 links``). Dimensions are not checked: a clock rate times
operations is a rate, and both are base units.
"""

from __future__ import annotations

from functools import lru_cache

from trnspec.errors import QuantityError, UsageError
from trnspec.quantities.quantity import Interval, Qualifier
from trnspec.quantities.tokens import NUMBER, UNIT, Token, Tokenizer, read_number
from trnspec.quantities.units import UNITS, UnitTable

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
