"""AST of queries; ``str(tree)`` round-trips. The error of an invalid query."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.quantities.formula import Token, read_number
from trnspec.quantities.quantity import Quantity
from trnspec.quantities.units import UNITS
from trnspec.text_table import columns_of

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~"]
OPERATORS: dict[str, Operator] = {
    "=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "~": "~",
}  # fmt: skip


class QueryError(UsageError):
    """An invalid query; the message shows the line and marks the position of the error.

    Attributes:
        text: The query.
        start: The start of the invalid part, in characters.
        end: Its end.
        hint: The suggested correction, or an empty text.
    """

    def __init__(self, message: str, text: str, span: tuple[int, int], hint: str = "") -> None:
        # The hint is in the message, before the marked line.
        super().__init__(f"{message}{f'; {hint}' if hint else ''}\n{_marked(text, span)}")
        self.text, self.hint = text, hint
        self.start, self.end = span


def _marked(text: str, span: tuple[int, int]) -> str:
    """The line in which a span begins, with carets below the span."""
    start, end = span
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    line = text[first : len(text) if last < 0 else last]
    before, marked = line[: start - first], line[start - first : max(end, start + 1) - first]
    shown = "".join(c if c.isprintable() else " " for c in line)
    return f"  {shown}\n  {' ' * columns_of(before)}{'^' * max(columns_of(marked), 1)}"


# The tree. A span is the position of a node in the text; comparisons ignore it.


def _span() -> tuple[int, int]:
    span: tuple[int, int] = field(default=(0, 0), eq=False, repr=False)
    return span


@frozen
class PathTerm:
    """A dotted path: ``memory.capacity``."""

    text: str
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return self.text


@frozen
class Quotient:
    """One path over another: ``peak.dense.bf16 / memory.bandwidth``."""

    top: PathTerm
    bottom: PathTerm
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return f"{self.top} / {self.bottom}"


@frozen
class Measure:
    """A quantity with its unit: ``1 TiB``."""

    quantity: Quantity
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return self.quantity.text


@frozen
class NumberLiteral:
    """A number without a unit: ``16``."""

    text: str
    span: tuple[int, int] = _span()

    @property
    def value(self) -> Fraction:
        """The exact value."""
        return read_number(Token("number", self.text, self.span), UNITS).value

    def __str__(self) -> str:
        return self.text


@frozen
class Word:
    """A text in quotes."""

    text: str
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


Term = PathTerm | Quotient
Operand = PathTerm | Quotient | Measure | NumberLiteral | Word


@frozen
class Comparison:
    """Two operands and an operator; ``~`` is true if rounding alone can explain the difference."""

    left: Operand
    operator: Operator
    right: Operand
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@frozen
class Known:
    """``known PATH``, or ``unknown PATH``; always true or false."""

    path: PathTerm
    unknown: bool = False

    def __str__(self) -> str:
        return f"{'unknown' if self.unknown else 'known'} {self.path}"


@frozen
class Flag:
    """A path alone, which is true or false."""

    path: PathTerm

    def __str__(self) -> str:
        return str(self.path)


@frozen
class Not:
    """The negation; unknown if the condition is unknown."""

    inner: Condition

    def __str__(self) -> str:
        return f"not {_parenthesized(self.inner, (And, Or))}"


@frozen
class And:
    """The conjunction of at least two conditions."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(_parenthesized(p, (And, Or)) for p in self.parts)


@frozen
class Or:
    """The disjunction of at least two conditions."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(_parenthesized(p, (Or,)) for p in self.parts)


Condition = Comparison | Known | Flag | Not | And | Or


@frozen
class Query:
    """A kind, and optionally a condition on its documents."""

    kind: str
    where: Condition | None
    text: str = field(default="", eq=False, repr=False)
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return self.kind if self.where is None else f"{self.kind} where {self.where}"


def _parenthesized(part: Condition, kinds: tuple[type, ...]) -> str:
    return f"({part})" if isinstance(part, kinds) else str(part)
