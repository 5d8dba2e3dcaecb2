"""The tree of a query, which is written back as a text that gives the same tree, and what is wrong with a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.quantities.quantity import Quantity
from trnspec.quantities.tokens import Token, read_number
from trnspec.quantities.units import UNITS

if TYPE_CHECKING:
    from fractions import Fraction

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~"]
OPERATORS: dict[str, Operator] = {
    "=": "=", "==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "~": "~",
}  # fmt: skip


class QueryError(UsageError):
    """What is wrong with a query, and where: the message shows the line with a mark below the place.

    Attributes:
        text: The query.
        start: Where the wrong part begins, in characters.
        end: Where it ends.
        hint: What to write instead, or an empty text.
    """

    def __init__(self, message: str, text: str, span: tuple[int, int], hint: str = "") -> None:
        self.text, self.hint = text, hint
        self.start, self.end = span
        super().__init__(f"{message}{f'; {hint}' if hint else ''}\n{_marked(text, span)}")


def _marked(text: str, span: tuple[int, int]) -> str:
    """The line in which a span begins, with carets below it."""
    start, end = span
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    line = text[first : len(text) if last < 0 else last]
    before, marked = line[: start - first], line[start - first : max(end, start + 1) - first]
    shown = "".join(c if c.isprintable() else " " for c in line)
    return f"  {shown}\n  {' ' * _columns(before)}{'^' * max(_columns(marked), 1)}"


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(c) in ("W", "F") for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in text)


# The tree.  Spans tell where something stands; they play no part in equality.


def _span() -> tuple[int, int]:
    span: tuple[int, int] = field(default=(0, 0), eq=False, repr=False)
    return span


@frozen
class Path:
    """A dotted path: ``memory.capacity``."""

    text: str
    span: tuple[int, int] = _span()

    @property
    def steps(self) -> tuple[str, ...]:
        """Its steps."""
        return tuple(self.text.split("."))

    def __str__(self) -> str:
        return self.text


@frozen
class Quotient:
    """One path over another: ``peak.dense.bf16 / memory.bandwidth``."""

    top: Path
    bottom: Path
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
class Number:
    """A number without a unit: ``16``."""

    text: str
    span: tuple[int, int] = _span()

    @property
    def value(self) -> Fraction:
        """What it says, exactly."""
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


Term = Path | Quotient
Operand = Path | Quotient | Measure | Number | Word


@frozen
class Comparison:
    """Two operands and what is asked of them; ``~`` asks whether rounding alone can explain the difference."""

    left: Operand
    operator: Operator
    right: Operand
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@frozen
class Known:
    """``known PATH``, or with ``unknown`` its contrary; never itself unknown."""

    path: Path
    unknown: bool = False

    def __str__(self) -> str:
        return f"{'unknown' if self.unknown else 'known'} {self.path}"


@frozen
class Not:
    """The contrary; of what is unknown, unknown."""

    inner: Condition

    def __str__(self) -> str:
        return f"not {_bracketed(self.inner, (And, Or))}"


@frozen
class And:
    """All of some conditions, at least two."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(_bracketed(p, (And, Or)) for p in self.parts)


@frozen
class Or:
    """Any of some conditions, at least two."""

    parts: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(_bracketed(p, (Or,)) for p in self.parts)


Condition = Comparison | Known | Not | And | Or


@frozen
class Query:
    """A kind, and the condition on its documents, if there is one."""

    kind: str
    where: Condition | None = None
    text: str = field(default="", eq=False, repr=False)
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return self.kind if self.where is None else f"{self.kind} where {self.where}"


def _bracketed(part: Condition, kinds: tuple[type, ...]) -> str:
    return f"({part})" if isinstance(part, kinds) else str(part)
