"""The formulas of derived figures: ``27,648 GiB / 36``, ``8 x 128 x 128 x 2 x 2.4 GHz``.

Grammar: sums of products and quotients (``x``, ``*``, ``/``) of quantities, numbers and brackets; there is no minus.  A
number may be followed by words that say what it counts (``4 links``).  Dimensions are not checked: a clock rate times operations is a rate, and both are base units.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trnspec.errors import QuantityError, UsageError
from trnspec.model.reflection import dotted
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Interval, Qualifier, parse, render
from trnspec.quantities.units import UNITS, UnitTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node

_NUMBER = re.compile(r"(~ ?)?[0-9][0-9,]*(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r" +([A-Za-zµμ]+(?:/[A-Za-zµμ]+)*)")
# Before what it multiplies, not as the beginning of a word.
_TIMES = re.compile(r" *(x(?=[ (0-9~])|[\u00d7*/])")

MOST_CHARACTERS = 400
"""The longest formula: more would be a program, and its numbers would grow past what can be shown."""

MOST_BRACKETS = 20
"""How many brackets may lie inside each other."""


class FormulaError(ValueError):
    """A text that is not a formula."""


def evaluate(text: str, units: UnitTable = UNITS) -> Interval:
    """What a formula gives, in base units, with the rounding of its figures carried through.

    Raises:
        FormulaError: The text does not follow the grammar, divides by nothing, or is too long or too deep; the message
            says where.
    """
    if len(text) > MOST_CHARACTERS:
        raise FormulaError(f"a formula has at most {MOST_CHARACTERS} characters, this one has {len(text)}")
    parser = _Parser(text, units)
    value = parser.sum()
    if parser.rest():
        raise FormulaError(f"{parser.rest()!r} is not understood in the formula {text!r}")
    return value


class _Parser:
    """A descent over the three levels of the grammar."""

    def __init__(self, text: str, units: UnitTable) -> None:
        self.text = text
        self.units = units
        self.at = 0
        self.depth = 0

    def rest(self) -> str:
        return self.text[self.at :].strip()

    def _take(self, sign: str) -> bool:
        while self.text.startswith(" ", self.at):
            self.at += 1
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

    def sum(self) -> Interval:
        value = self.product()
        while self._take("+"):
            value += self.product()
        return value

    def product(self) -> Interval:
        value = self.factor()
        while sign := _TIMES.match(self.text, self.at):
            self.at = sign.end()
            other = self.factor()
            try:
                value = value.ratio(other) if sign[1] == "/" else value.times(other)
            except UsageError as error:
                raise FormulaError(f"{error} (in the formula {self.text!r})") from error
        return value

    def factor(self) -> Interval:
        if self._take("("):
            self.depth += 1
            if self.depth > MOST_BRACKETS:
                raise FormulaError(f"more than {MOST_BRACKETS} brackets lie inside each other")
            value = self.sum()
            self.depth -= 1
            if not self._take(")"):
                raise FormulaError(f"a bracket is not closed in the formula {self.text!r}")
            return value
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise FormulaError(f"a number is expected at {self.rest()!r} in the formula {self.text!r}")
        self.at = match.end()
        word = _WORD.match(self.text, self.at)
        unit = word[1] if word is not None and word[1] in self.units and word[1] != "x" else ""
        while word is not None and word[1] != "x":
            if "/" in word[1] and not unit:
                raise FormulaError(f"{word[1]!r} is neither a unit nor what is counted in the formula {self.text!r}")
            self.at = word.end()
            word = None if unit else _WORD.match(self.text, self.at)
        try:
            quantity = parse(f"{match[0]} {unit or 'x'}", None, self.units)
        except QuantityError as error:
            raise FormulaError(str(error)) from error
        # What is counted is exact, unless it is said to be about so many.
        counted = not unit and quantity.qualifier is Qualifier.EXACT
        return Interval.point(quantity.value) if counted else quantity.interval


@rule("TRN404", "derived-mismatch", over=object)
def derived_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A derived figure that its formula does not give.

    Why:
        A figure that nobody printed is only as good as its formula.  When a part of it changes, the figure must follow.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example, title: Example}
        spec:
          connects: chips
          bandwidth:
            both:
              value: 98 GB/s  #! TRN404
              derived: 384 GB/s / 4 links
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example, title: Example}
        spec:
          connects: chips
          bandwidth:
            both:
              value: 96 GB/s
              derived: 384 GB/s / 4 links
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), chapter 5, for functions of intervals.
    """
    for path, figure in graph.figures(node).items():
        if figure.derived is None:
            continue
        try:
            given = evaluate(figure.derived, node.units)
        except FormulaError as error:
            yield Finding((*path, "derived"), str(error), "write for instance: 8 x 128 x 128 x 2 x 2.4 GHz")
            continue
        if not given.overlaps(figure.value.interval):
            middle = given.low if given.high is None else (given.low + given.high) / 2
            shown = render(middle, figure.value.unit, figure.value.digits + 1)
            message = f"{dotted(path)} is {figure}, but {figure.derived} is {shown}"
            yield Finding((*path, "value"), message, "one of the two has changed without the other")
