"""What may stand in a query of a kind, and what it asks of a document: paths, dimensions, comparisons.

Everything that can be wrong with a query is found before the first document is looked at.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Any

from attrs import field, frozen

from trnspec.catalog.query.tree import (
    Comparison,
    Known,
    Measure,
    Number,
    Operand,
    Path,
    QueryError,
    Quotient,
    Term,
    Word,
)
from trnspec.diagnostics import did_you_mean
from trnspec.graph.graph import Graph
from trnspec.graph.paths import paths, place, present_path, unknown_path
from trnspec.graph.values import PathField, PathValue, Read, Sort
from trnspec.model.annotations import Date
from trnspec.model.document import Node
from trnspec.model.reflection import TextShape, shape_of
from trnspec.quantities.amount import Amount, quotient
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import Dimension

Side = Amount | int | Fraction | str
Test = Callable[[Node[Any]], bool | None]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDLY = ("=", "!=")


@frozen
class Column:
    """A path, or one path over another, with what it means for a kind.

    Attributes:
        name: As it is written.
        holds: A dimension, or what stands there instead; ``None`` where that differs between documents.
        read: What a document has there; ``None`` where that is not known.
        words: The words that may stand there, where the set is closed.
        target: The class of the documents that are named there.
    """

    name: str
    holds: Dimension | Sort | None
    read: Read = field(repr=False)
    words: tuple[str, ...] = ()
    target: type[Any] | None = None

    def __str__(self) -> str:
        if isinstance(self.holds, Dimension):
            return f"{self.name} measures {_told(self.holds)}"
        return f"{self.name} is {_told(self.holds)}"


def _told(kind: Dimension | Sort | None) -> str:
    if isinstance(kind, Dimension):
        return f"{kind.word} (base unit {kind.base})"
    return "a figure whose dimension differs between documents" if kind is None else kind.value


@frozen
class Check:
    """What a text may ask of the documents of a kind.

    Attributes:
        graph: The documents.
        spec: The class of the kind.
        text: The text, for messages.
        absent: Names that are known though there are no such documents.
    """

    graph: Graph
    spec: type[Any]
    text: str
    absent: Collection[str] = ()

    def refuse(self, message: str, operand: Operand, hint: str = "") -> QueryError:
        """The error that marks an operand."""
        return QueryError(message, self.text, operand.span, hint)

    def column(self, term: Term) -> Column:
        """What a term means.

        Raises:
            QueryError: A path means nothing, or the two paths of a quotient cannot be divided.
        """
        if isinstance(term, Path):
            found = self._place(term)
            return Column(str(term), found.holds, found.read, found.words, found.target)
        top, bottom = self.column(term.top), self.column(term.bottom)
        kind = _quotient(top.holds, bottom.holds)
        if kind is None:
            raise self.refuse(f"{top}, which cannot be divided by {_told(bottom.holds)}", term)
        return Column(str(term), kind, lambda node: _divided(top.read(node), bottom.read(node)))

    def _place(self, path: Path) -> PathField:
        found = place(self.graph, self.spec, path.text)
        if found is None:
            hint = unknown_path(self.graph, self.spec, path.text) or did_you_mean(
                path.text, paths(self.graph, self.spec)
            )
            if not hint and "." not in path.text:
                hint = f'a word stands in quotes: "{path.text}"'
            raise self.refuse(f"{self.spec.__name__} has no {path.text}", path, hint)
        return found

    def known(self, condition: Known) -> Test:
        """``known PATH`` as a function of a document."""
        read = self._place(condition.path).read
        return lambda node: (read(node) is None) is condition.unknown

    def comparison(self, found: Comparison) -> Test:
        """A comparison as a function of a document: ``None`` where a side is not known.

        Raises:
            QueryError: The two sides, or the operator, do not go together.
        """
        left = self.column(found.left) if isinstance(found.left, (Path, Quotient)) else None
        right = self._right(found, left)
        if left is None and right is None:
            raise QueryError("a comparison has a path on one side at least", self.text, found.span)
        if left is not None and right is not None:
            return self._two(found, left, right)
        column = left or right
        assert column is not None
        literal = found.right if left is not None else found.left
        self._comparable(found, column)
        value = self._literal(column, literal)
        compare = _date if column.holds is Sort.DATE else _compare
        read = column.read
        if left is not None:
            return lambda node: None if (a := read(node)) is None else compare(found.operator, a.value, value)
        mirrored = _MIRRORED.get(found.operator, found.operator)
        return lambda node: None if (b := read(node)) is None else compare(mirrored, b.value, value)

    def _right(self, found: Comparison, left: Column | None) -> Column | None:
        """The right side, if it is a term; where a word is expected, a name without quotes is the likely slip."""
        if not isinstance(found.right, (Path, Quotient)):
            return None
        wordly = left is not None and left.holds in (Sort.WORD, Sort.DATE) and isinstance(found.right, Path)
        if wordly and place(self.graph, self.spec, str(found.right)) is None:
            hint = f'a word stands in quotes: "{found.right}"'
            raise self.refuse(f"{self.spec.__name__} has no {found.right}", found.right, hint)
        return self.column(found.right)

    def _two(self, found: Comparison, left: Column, right: Column) -> Test:
        for column in (left, right):
            self._comparable(found, column)
        if left.holds is not right.holds:
            raise self.refuse(f"{left}, and {right}: they cannot be compared", found.right)
        compare = _dates if left.holds is Sort.DATE else _compare

        def test(node: Node[Any]) -> bool | None:
            a, b = left.read(node), right.read(node)
            return None if a is None or b is None else compare(found.operator, a.value, b.value)

        return test

    def _comparable(self, found: Comparison, column: Column) -> None:
        """Raise where a column cannot be compared, or not by this operator."""
        operand = found.left if str(found.left) == column.name else found.right
        if column.holds is Sort.GROUP:
            inner = [p for p in paths(self.graph, self.spec) if p.startswith(f"{column.name}.")]
            present = present_path(self.spec, column.name)
            hint = (
                f"{column.name} is now {present}" if present else f"name one of it, such as {inner[0]}" if inner else ""
            )
            raise self.refuse(f"{column.name} is a group, which cannot be compared", operand, hint)
        if column.holds is None:
            raise self.refuse(f"{column}: it cannot be compared", operand)
        if column.holds is Sort.WORD and found.operator not in _WORDLY:
            raise self.refuse(f"{column}, which is compared with = and != only", operand)
        if found.operator == "~" and not isinstance(column.holds, Dimension):
            raise self.refuse(f"{column}, which has no rounding", operand, "~ compares figures; write =")

    def _literal(self, column: Column, literal: Operand) -> Side:
        """A value as what it is compared with."""
        kind = column.holds
        if isinstance(kind, Dimension):
            return self._amount(kind, column, literal)
        if kind is Sort.COUNT:
            if isinstance(literal, Number):
                return literal.value
            raise self.refuse(f"{column}: it is compared with a number without unit", literal)
        if not isinstance(literal, Word):
            raise self.refuse(f"{column}: it is compared with a word in quotes", literal, f'such as "{literal}"')
        if kind is Sort.DATE:
            shape = shape_of(Date)
            assert isinstance(shape, TextShape)
            assert shape.pattern is not None
            if re.search(shape.pattern.regex, literal.text) is None:
                raise self.refuse(f"{column}, and {literal} is none", literal, f"write {shape.pattern.words}")
            return literal.text
        return self._word(column, literal)

    def _amount(self, kind: Dimension, column: Column, literal: Operand) -> Amount:
        if isinstance(literal, Number):
            if kind is Dimension.RATIO:
                return Amount.of(parse(f"{literal.text}x"))
            raise self.refuse(f"{column}, and a number alone has no unit", literal, f"such as {literal} {kind.usual}")
        if not isinstance(literal, Measure):
            raise self.refuse(f"{column}: it is compared with a quantity", literal, f"such as 3 {kind.usual}")
        if literal.quantity.dimension is not kind:
            units = self.graph.units
            unit = units.counterpart(literal.quantity.unit, kind)
            number = literal.quantity.text.removesuffix(literal.quantity.unit.symbol)
            hint = units.choices(kind) if unit is None else f"did you mean {number.strip()} {unit}?"
            raise self.refuse(f"{column}, and {literal} measures {literal.quantity.dimension.word}", literal, hint)
        return Amount.of(literal.quantity)

    def _word(self, column: Column, literal: Word) -> str:
        if column.words and literal.text not in column.words:
            hint = did_you_mean(literal.text, column.words) or f"known: {', '.join(column.words)}"
            raise self.refuse(f"{column.name} is never {literal}", literal, hint)
        if column.target is None or literal.text in self.absent:
            return literal.text
        nodes = self.graph.of(column.target)
        names = {alias: n.name for n in nodes for alias in (n.name, *n.metadata.aliases)}
        if literal.text not in names:
            hint = did_you_mean(literal.text, names)
            raise self.refuse(f"no {column.target.__name__} is named {literal}", literal, hint)
        return names[literal.text]


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _quotient(top: Dimension | Sort | None, bottom: Dimension | Sort | None) -> Dimension | None:
    if isinstance(top, Dimension) and isinstance(bottom, Dimension):
        return quotient(top, bottom)
    if bottom is Sort.COUNT:
        return Dimension.RATIO if top is Sort.COUNT else top if isinstance(top, Dimension) else None
    return None


def _divided(top: PathValue | None, bottom: PathValue | None) -> PathValue | None:
    """One value over another; not known where either is not, or where the divisor is zero."""
    if top is None or bottom is None or isinstance(top.value, str) or isinstance(bottom.value, str):
        return None
    above, below = (v if isinstance(v, Amount) else Amount.exact(v) for v in (top.value, bottom.value))
    if below.value == 0:
        return None
    # A count divides every figure; as an exact ratio it would divide only another.
    made = above / below if isinstance(bottom.value, Amount) else above / below.value
    return PathValue(made, str(made))


def _compare(sign: str, a: Any, b: Any) -> bool | None:
    return bool(a.agrees(b)) if sign == "~" else _ORDER[sign](a, b)


def _date(sign: str, known: Any, asked: Any) -> bool | None:
    """A known date compared to the precision that is asked for; one that is less precise may leave it open."""
    if len(known) < len(asked) and asked.startswith(known):
        return None
    return _ORDER[sign](known[: len(asked)], asked)


def _dates(sign: str, a: Any, b: Any) -> bool | None:
    """Two known dates; where one is the beginning of the other, nobody can tell."""
    return None if a != b and (a.startswith(b) or b.startswith(a)) else _ORDER[sign](a, b)
