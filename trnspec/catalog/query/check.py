"""Checks of a query against a kind: paths, dimensions, comparisons; and the functions that read documents.

All errors of a query are found before the first document is read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from typing import Any

from attrs import evolve, field, frozen

from trnspec.catalog.query.tree import (
    Comparison,
    Known,
    Measure,
    NumberLiteral,
    Operand,
    PathTerm,
    QueryError,
    Quotient,
    Term,
    Word,
)
from trnspec.diagnostics import did_you_mean
from trnspec.graph.graph import Graph
from trnspec.graph.paths import paths, place, present_path, unknown_path
from trnspec.graph.totals import BoundedAmount
from trnspec.graph.values import PathField, PathValue, Read, Side, Sort
from trnspec.graph.values import compare as compare_bounds
from trnspec.model.annotations import Date
from trnspec.model.document import Node
from trnspec.model.parts import CountRange
from trnspec.model.reflection import TextShape, shape_of
from trnspec.quantities.amount import Amount
from trnspec.quantities.arithmetic import quotient
from trnspec.quantities.quantity import parse
from trnspec.quantities.units import Dimension

Test = Callable[[Node[Any]], bool | None]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TEXT_OPERATORS = ("=", "!=")


@frozen
class QueryColumn:
    """A path, or one path over another, of a kind.

    Attributes:
        name: As written in the query.
        holds: The dimension of its figures, or the type of its other values; ``None`` if documents differ in it.
        read: Gives its value in a document; ``None`` if that is unknown.
        words: The allowed texts, if they are a closed set.
        target: The class of the documents that it names.
    """

    name: str
    holds: Dimension | Sort | None
    read: Read = field(repr=False)
    words: tuple[str, ...] = ()
    target: type[Any] | None = None

    def __str__(self) -> str:
        if isinstance(self.holds, Dimension):
            return f"{self.name} measures {_described(self.holds)}"
        return f"{self.name} is {_described(self.holds)}"


def _described(kind: Dimension | Sort | None) -> str:
    if isinstance(kind, Dimension):
        return f"{kind.word} (base unit {kind.base})"
    return "a figure whose dimension differs between documents" if kind is None else kind.value


@frozen
class Check:
    """The checks of a query of a kind.

    Attributes:
        graph: The documents.
        spec: The class of the kind.
        text: The query, for messages.
        absent: Names that may be compared with although there are no such documents.
    """

    graph: Graph
    spec: type[Any]
    text: str
    absent: Collection[str] = ()

    def refuse(self, message: str, operand: Operand, hint: str = "") -> QueryError:
        """The error that marks the position of an operand."""
        return QueryError(message, self.text, operand.span, hint)

    def column(self, term: Term) -> QueryColumn:
        """The column of a term.

        Raises:
            QueryError: The kind has no such path, or the two paths of a quotient cannot be divided.
        """
        if isinstance(term, PathTerm):
            field = self._field(term)
            return QueryColumn(str(term), field.holds, field.read, field.words, field.target)
        top, bottom = self.column(term.top), self.column(term.bottom)
        kind = _quotient(top.holds, bottom.holds)
        if kind is None:
            raise self.refuse(f"{top}, which cannot be divided by {_described(bottom.holds)}", term)
        return QueryColumn(str(term), kind, lambda node: _divided(top.read(node), bottom.read(node)))

    def _field(self, path: PathTerm) -> PathField:
        field = place(self.graph, self.spec, path.text)
        if field is None:
            hint = unknown_path(self.graph, self.spec, path.text) or did_you_mean(
                path.text, paths(self.graph, self.spec)
            )
            if not hint and "." not in path.text:
                hint = f'write a text in quotes: "{path.text}"'
            raise self.refuse(f"{self.spec.__name__} has no {path.text}", path, hint)
        return field

    def known(self, condition: Known) -> Test:
        """``known PATH`` as a function of a document."""
        read = self._field(condition.path).read
        return lambda node: (read(node) is None) is condition.unknown

    def comparison(self, comparison: Comparison) -> Test:
        """A comparison as a function of a document: ``None`` if a side is unknown.

        Raises:
            QueryError: The two sides cannot be compared, or not with this operator.
        """
        comparison = self.with_text(comparison)
        left = self.column(comparison.left) if isinstance(comparison.left, (PathTerm, Quotient)) else None
        right = self.column(comparison.right) if isinstance(comparison.right, (PathTerm, Quotient)) else None
        if left is None and right is None:
            raise QueryError("a comparison needs a path on at least one side", self.text, comparison.span)
        if left is not None and right is not None:
            return self._two(comparison, left, right)
        column = left or right
        assert column is not None
        literal = comparison.right if left is not None else comparison.left
        self._comparable(comparison, column)
        value = self._literal(column, literal)
        compare = _date if column.holds is Sort.DATE else _has if column.holds is Sort.WORDS else _compare
        read = column.read
        operator = comparison.operator
        if left is not None:
            return lambda node: None if (a := read(node)) is None else compare(operator, a.value, value)
        mirrored = _MIRRORED.get(operator, operator)
        return lambda node: None if (b := read(node)) is None else compare(mirrored, b.value, value)

    def with_text(self, comparison: Comparison) -> Comparison:
        """The comparison with a text on its right side, if that is a word without quotes and not a path of the kind."""
        left, right = comparison.left, comparison.right
        if not (isinstance(left, PathTerm) and isinstance(right, PathTerm)):
            return comparison
        if self._field(left).holds not in (Sort.WORD, Sort.WORDS) or place(self.graph, self.spec, str(right)):
            return comparison
        with_text: Comparison = evolve(comparison, right=Word(str(right), right.span))
        return with_text

    def _two(self, comparison: Comparison, left: QueryColumn, right: QueryColumn) -> Test:
        for column in (left, right):
            self._comparable(comparison, column)
        if left.holds is not right.holds:
            raise self.refuse(f"{left}, and {right}: they cannot be compared", comparison.right)
        compare = _dates if left.holds is Sort.DATE else _compare

        def test(node: Node[Any]) -> bool | None:
            a, b = left.read(node), right.read(node)
            return None if a is None or b is None else compare(comparison.operator, a.value, b.value)

        return test

    def _comparable(self, comparison: Comparison, column: QueryColumn) -> None:
        """Raises if a column cannot be compared, or not with this operator."""
        operand = comparison.left if str(comparison.left) == column.name else comparison.right
        if column.holds is Sort.GROUP:
            inner = [p for p in paths(self.graph, self.spec) if p.startswith(f"{column.name}.")]
            present = present_path(self.spec, column.name)
            hint = (
                f"{column.name} is now {present}"
                if present
                else f"compare one of its paths, such as {inner[0]}"
                if inner
                else ""
            )
            raise self.refuse(f"{column.name} is a group, which cannot be compared", operand, hint)
        if column.holds is None:
            raise self.refuse(f"{column}: it cannot be compared", operand)
        if column.holds in (Sort.WORD, Sort.WORDS) and comparison.operator not in _TEXT_OPERATORS:
            raise self.refuse(f"{column}, which supports = and != only", operand)
        if comparison.operator == "~" and not isinstance(column.holds, Dimension):
            raise self.refuse(f"{column}, which is not rounded", operand, "~ compares figures; write =")

    def _literal(self, column: QueryColumn, literal: Operand) -> Side:
        """The value of a literal, in the type of the column."""
        kind = column.holds
        if isinstance(kind, Dimension):
            return self._amount(kind, column, literal)
        if kind is Sort.COUNT:
            if isinstance(literal, NumberLiteral):
                return literal.value
            raise self.refuse(f"{column}: compare it with a number without unit", literal)
        if not isinstance(literal, Word):
            raise self.refuse(f"{column}: compare it with a text in quotes", literal, f'such as "{literal}"')
        if kind is Sort.DATE:
            shape = shape_of(Date)
            assert isinstance(shape, TextShape)
            assert shape.pattern is not None
            if re.search(shape.pattern.regex, literal.text) is None:
                raise self.refuse(f"{column}, and {literal} is not", literal, f"write {shape.pattern.words}")
            return literal.text
        return self._word(column, literal)

    def _amount(self, kind: Dimension, column: QueryColumn, literal: Operand) -> Amount:
        if isinstance(literal, NumberLiteral):
            if kind is Dimension.RATIO:
                return Amount.of(parse(f"{literal.text}x"))
            raise self.refuse(f"{column}, and a number alone has no unit", literal, f"such as {literal} {kind.example}")
        if not isinstance(literal, Measure):
            raise self.refuse(f"{column}: compare it with a quantity", literal, f"such as 3 {kind.example}")
        if literal.quantity.dimension is not kind:
            units = self.graph.units
            unit = units.counterpart(literal.quantity.unit, kind)
            number = literal.quantity.text.removesuffix(literal.quantity.unit.symbol)
            hint = units.choices(kind) if unit is None else f"did you mean {number.strip()} {unit}?"
            raise self.refuse(f"{column}, and {literal} measures {literal.quantity.dimension.word}", literal, hint)
        return Amount.of(literal.quantity)

    def _word(self, column: QueryColumn, literal: Word) -> str:
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
    """One value over another; unknown if either is, or if the divisor is zero."""
    if top is None or bottom is None or isinstance(top.value, str) or isinstance(bottom.value, str):
        return None
    if isinstance(top.value, CountRange) or isinstance(bottom.value, CountRange) or top.is_bound or bottom.is_bound:
        return None  # the quotient of bounds is not known
    above, below = (v if isinstance(v, Amount) else Amount.exact(v) for v in (top.value, bottom.value))
    if below.value == 0:
        return None
    # A count divides every figure; as an exact ratio it would divide ratios only.
    divided = above / below if isinstance(bottom.value, Amount) else above / below.value
    return PathValue(divided, str(divided))


def _compare(sign: str, a: Any, b: Any) -> bool | None:
    if isinstance(a, (CountRange, BoundedAmount)) or isinstance(b, (CountRange, BoundedAmount)):
        return compare_bounds(sign, a, b)
    return bool(a.agrees(b)) if sign == "~" else _ORDER[sign](a, b)


def _has(sign: str, words: Any, word: Any) -> bool:
    """True if a list has a word (``=``), or does not have it."""
    return (word in words.split(", ")) is (sign == "=")


def _date(sign: str, known: Any, literal: Any) -> bool | None:
    """A known date compared to the precision of the literal; unknown if the date is a prefix of the literal."""
    if len(known) < len(literal) and literal.startswith(known):
        return None
    return _ORDER[sign](known[: len(literal)], literal)


def _dates(sign: str, a: Any, b: Any) -> bool | None:
    """Two known dates compared; unknown if one is a prefix of the other."""
    return None if a != b and (a.startswith(b) or b.startswith(a)) else _ORDER[sign](a, b)
