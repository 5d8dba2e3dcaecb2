"""Constraints of a search in the query language: ``memory < 80 GiB and tpot < 30 ms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.catalog.query.parser import parse_condition
from trnspec.catalog.query.tree import (
    And,
    Comparison,
    Flag,
    Known,
    Measure,
    Not,
    Number,
    PathTerm,
    QueryError,
    Quotient,
)
from trnspec.errors import UsageError
from trnspec.evaluators.searching.measures import MEASURES, Kind, resolved
from trnspec.perf.searching.conditions import All, AnyOf, Compare, Constant, IsKnown, Named, Negation
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from trnspec.catalog.query.tree import Condition as Tree
    from trnspec.catalog.query.tree import Operand, Word
    from trnspec.evaluators.searching.question import Mode
    from trnspec.perf.searching.conditions import Condition, Term
    from trnspec.quantities.units import UnitTable


def condition(text: str, mode: Mode, units: UnitTable) -> Condition:
    """The condition of a text.

    Raises:
        QueryError: It is not a condition on measures of the mode; the message marks the position.
        UsageError: It is too long.
    """
    return _Reading(text, mode)(parse_condition(text, units))


class _Reading:
    """Makes a condition of a syntax tree."""

    def __init__(self, text: str, mode: Mode) -> None:
        self.text = text
        self.mode = mode

    def __call__(self, tree: Tree) -> Condition:
        if isinstance(tree, Comparison):
            return self.comparison(tree)
        if isinstance(tree, Flag):
            name, kind = self.named(tree.path)
            if not kind.flag:
                raise self.refuse(f"{tree.path} is not true or false", tree.path, "compare it, such as with <")
            return Compare(Named(name), "=", Constant(value=True))
        if isinstance(tree, Known):
            known = IsKnown(self.named(tree.path)[0])
            return Negation(known) if tree.unknown else known
        if isinstance(tree, Not):
            return Negation(self(tree.inner))
        parts = tuple(self(part) for part in tree.parts)
        return All(parts) if isinstance(tree, And) else AnyOf(parts)

    def refuse(self, message: str, at: PathTerm | Quotient | Measure | Number | Word, hint: str = "") -> QueryError:
        return QueryError(message, self.text, at.span, hint)

    def named(self, path: PathTerm) -> tuple[str, Kind]:
        try:
            name = resolved(path.text, self.mode)
        except UsageError as error:
            message, _, hint = str(error).partition("; ")
            raise self.refuse(message, path, hint) from None
        return name, MEASURES[self.mode][name]

    def comparison(self, tree: Comparison) -> Condition:
        sides = (tree.left, tree.right)
        kinds = [self.kind(side) for side in sides]
        if kinds[0] is None and kinds[1] is None:
            raise self.refuse(
                "a measure is compared with a value", tree.left, f"known: {', '.join(MEASURES[self.mode])}"
            )
        if tree.operator == "~":
            raise self.refuse("~ compares printed figures; a search has computed ones", tree.right, "use < and >")
        terms = [self.term(side, kinds[1 - at]) for at, side in enumerate(sides)]
        if kinds[0] is not None and kinds[1] is not None and kinds[0].unit != kinds[1].unit:
            raise self.refuse(f"{tree.left} and {tree.right} have different units", tree.right)
        if any(k is not None and (k.text or k.flag) for k in kinds) and tree.operator not in ("=", "!="):
            raise self.refuse("texts are equal or not", tree.right, "use = or !=")
        return Compare(terms[0], tree.operator, terms[1])

    def kind(self, side: Operand) -> Kind | None:
        """The kind of the measure on a side; ``None`` for a value."""
        if isinstance(side, PathTerm):
            return self.named(side)[1]
        if isinstance(side, Quotient):
            top, bottom = self.named(side.top)[1], self.named(side.bottom)[1]
            if top.text or top.flag or bottom.text or bottom.flag:
                raise self.refuse("only numbers can be divided", side)
            if bottom.unit and bottom.unit != top.unit:
                raise self.refuse("only by a count or a measure of the same unit can be divided", side)
            return Kind() if bottom.unit else top
        return None

    def term(self, side: Operand, other: Kind | None) -> Term:
        """One side, where the other is of some kind."""
        if isinstance(side, PathTerm):
            return Named(self.named(side)[0])
        if isinstance(side, Quotient):
            return Named(self.named(side.top)[0], self.named(side.bottom)[0])
        assert other is not None
        if isinstance(side, Number):
            if other.dimension is not None and other.dimension is not Dimension.RATIO:
                raise self.refuse(
                    "a number alone has no unit",
                    side,
                    f"such as {side} {'s' if other.unit == 's' else other.dimension.usual}",
                )
            if other.text or other.flag:
                raise self.refuse("it is compared with a number", side, 'write a text in quotes, "..."')
            return Constant(float(side.value))
        if isinstance(side, Measure):
            if other.dimension is None or side.quantity.dimension is not other.dimension:
                what = "a number without a unit" if other.dimension is None else f"{other.dimension.word}"
                raise self.refuse(f"{what} is expected, not {side}", side)
            value = float(side.quantity.value)
            # Ratios are shares in queries, and percent in evaluations.
            return Constant(100.0 * value if other.dimension is Dimension.RATIO else value)
        if not other.text:
            raise self.refuse("a text is expected nowhere here", side)
        return Constant(side.text)
