"""The measures of a search, for objectives and Pareto fronts, and its constraints: ``memory < 80 GiB and tpot < 30 ms``.

Conditions are evaluated in three-valued logic: a comparison with an unknown measure is neither true nor false.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

from attrs import field, frozen

from trnspec.catalog.query import tree as syntax
from trnspec.catalog.query.parser import parse_condition
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.evaluators.searching.question import Mode
from trnspec.perf.sweep.reductions import Goal
from trnspec.quantities.units import Dimension, UnitTable


@frozen
class MeasureKind:
    """The kind of a measure.

    Attributes:
        unit: The base unit; empty for a count.
        sign: 1.0 where less is better, -1.0 where more is; 0.0 where it is not a goal.
        dimension: What constraints compare it with: a quantity, or a number for ``None``.
        text: Whether it is a text.
        flag: Whether it is true or false.
    """

    unit: str = ""
    sign: float = 0.0
    dimension: Dimension | None = None
    text: bool = False
    flag: bool = False


_COUNT, _TEXT = MeasureKind(), MeasureKind(text=True)
_TIME = MeasureKind("s", 1.0, Dimension.TIME)
_BOTH = {
    "memory": MeasureKind("B", 1.0, Dimension.INFORMATION),
    "capacity": MeasureKind("B", 0.0, Dimension.INFORMATION),
    "fits": MeasureKind(flag=True),
    "tokens_per_s": MeasureKind("tokens/s", -1.0),
    "tokens_per_s_per_chip": MeasureKind("tokens/s", -1.0),
    "usd": MeasureKind("USD", 1.0),
    "energy": MeasureKind("J", 1.0, Dimension.ENERGY),
    "chips": MeasureKind("", 1.0),
    **dict.fromkeys(("system", "dtype"), _TEXT),
    **dict.fromkeys(("tp", "pp", "dp", "ep"), _COUNT),
}
MEASURES: dict[Mode, dict[str, MeasureKind]] = {
    "training": {
        "step_time": _TIME,
        "mfu": MeasureKind("%", -1.0, Dimension.RATIO),
        **_BOTH,
        **dict.fromkeys(("cp", "expert_tp", "microbatch", "zero", "interleave"), _COUNT),
        **dict.fromkeys(("schedule", "recompute", "offload"), _TEXT),
        **dict.fromkeys(("overlap", "sequence_parallel"), MeasureKind(flag=True)),
    },
    "inference": {
        "ttft": _TIME,
        "tpot": _TIME,
        "latency": _TIME,
        **_BOTH,
        **dict.fromkeys(("batch", "chunk"), _COUNT),
        **dict.fromkeys(("weight_dtype", "kv_dtype"), _TEXT),
    },
}
"""The measures of each mode, by name."""

SHORT = {
    "cost": "usd",
    "throughput": "tokens_per_s_per_chip",
    "memory.total": "memory",
    "memory.fits": "fits",
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
}
"""Other names of measures."""


def resolved(name: str, mode: Mode) -> str:
    """The measure of a name; ``time`` is that of a step, or per output token.

    Raises:
        UsageError: There is none.
    """
    name = name.strip()
    meant = {"time": "step_time" if mode == "training" else "tpot", **SHORT}.get(name, name)
    known = MEASURES[mode]
    if meant not in known:
        hint = did_you_mean(name, [*known, *SHORT]) or f"known: {', '.join(known)}"
        raise UsageError(f"{name!r} is not a measure of a search for {mode}; {hint}")
    return meant


def unit(name: str, mode: Any) -> str:
    """The unit of a column."""
    measure, _, end = name.rpartition("_")
    kind = MEASURES[mode].get(measure if end in ("low", "high") else name)
    return "" if kind is None or kind.text else kind.unit


def goal(name: str, mode: Mode, place: str) -> Goal:
    """The goal of a measure.

    Raises:
        UsageError: It is not a measure, or not one that is to be small or large.
    """
    try:
        meant = resolved(name, mode)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    sign = MEASURES[mode][meant].sign
    if not sign:
        goals = ", ".join(n for n, kind in MEASURES[mode].items() if kind.sign)
        raise UsageError(f"{place}: {name} is not a goal; expected one of {goals}")
    return Goal(meant, sign)


Masks = tuple[Any, Any]
"""Elements for which a condition is true, and for which it is false: arrays, or one value for all."""

_EQUAL, _LESS, _MORE = (operator.eq, operator.ne), (operator.lt, operator.ge), (operator.gt, operator.le)
_OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "=": _EQUAL, "!=": _EQUAL[::-1], "<": _LESS, ">=": _LESS[::-1], ">": _MORE, "<=": _MORE[::-1],
}  # fmt: skip
"""For each operator what is true, and what is false."""


def condition(text: str, mode: Mode, units: UnitTable) -> Where:
    """The condition of a text.

    Raises:
        QueryError: It is not a condition on measures of the mode; the message marks the position.
        UsageError: It is too long.
    """
    found = Where(text, mode, parse_condition(text, units))
    found.masks(found.tree, lambda _: None)
    return found


@frozen
class Where:
    """A condition on the configurations of a search.

    Attributes:
        text: The text.
        mode: Training or inference.
        tree: Its syntax tree.
    """

    text: str
    mode: Mode
    tree: syntax.Condition = field(eq=False, repr=False)

    def holds(self, measure: Callable[[str], Any]) -> Any:
        """Truth value for each element.

        Args:
            measure: The values of a measure by its name: an array, one value for all, or ``None`` if it is unknown.
        """
        return self.masks(self.tree, measure)[0]

    def names(self) -> tuple[str, ...]:
        """The measures it reads."""
        read: dict[str, None] = {}
        self.masks(self.tree, read.setdefault)
        return tuple(read)

    def masks(self, tree: syntax.Condition, measure: Callable[[str], Any]) -> Masks:
        """Truth values of a part; see :meth:`holds`.

        Raises:
            QueryError: It is not a condition on measures of the mode.
        """
        if isinstance(tree, syntax.Comparison):
            return self._comparison(tree, measure)
        if isinstance(tree, syntax.Flag):
            name, kind = self._named(tree.path)
            if not kind.flag:
                raise self._refuse(f"{tree.path} is not true or false", tree.path, "compare it, such as with <")
            return _masks("=", measure(name), 1)
        if isinstance(tree, syntax.Known):
            known = (measure(self._named(tree.path)[0]) is None) == tree.unknown
            return known, not known
        if isinstance(tree, syntax.Not):
            true, false = self.masks(tree.inner, measure)
            return false, true
        true, false = zip(*(self.masks(part, measure) for part in tree.parts), strict=True)
        every, some = (and_, or_) if isinstance(tree, syntax.And) else (or_, and_)
        return reduce(every, true), reduce(some, false)

    def _refuse(
        self,
        message: str,
        at: syntax.PathTerm | syntax.Quotient | syntax.Measure | syntax.NumberLiteral | syntax.Word,
        hint: str = "",
    ) -> syntax.QueryError:
        return syntax.QueryError(message, self.text, at.span, hint)

    def _named(self, path: syntax.PathTerm) -> tuple[str, MeasureKind]:
        try:
            name = resolved(path.text, self.mode)
        except UsageError as error:
            message, _, hint = str(error).partition("; ")
            raise self._refuse(message, path, hint) from None
        return name, MEASURES[self.mode][name]

    def _comparison(self, tree: syntax.Comparison, measure: Callable[[str], Any]) -> Masks:
        sides = (tree.left, tree.right)
        kinds = [self._kind(side) for side in sides]
        if kinds[0] is None and kinds[1] is None:
            raise self._refuse(
                "a measure is compared with a value", tree.left, f"known: {', '.join(MEASURES[self.mode])}"
            )
        if tree.operator == "~":
            raise self._refuse("~ compares printed figures; a search has computed ones", tree.right, "use < and >")
        left, right = (self._value(side, kinds[1 - at], measure) for at, side in enumerate(sides))
        if kinds[0] is not None and kinds[1] is not None and kinds[0].unit != kinds[1].unit:
            raise self._refuse(f"{tree.left} and {tree.right} have different units", tree.right)
        if any(k is not None and (k.text or k.flag) for k in kinds) and tree.operator not in ("=", "!="):
            raise self._refuse("texts are equal or not", tree.right, "use = or !=")
        return _masks(tree.operator, left, right)

    def _kind(self, side: syntax.Operand) -> MeasureKind | None:
        """The kind of the measure on a side; ``None`` for a value."""
        if isinstance(side, syntax.PathTerm):
            return self._named(side)[1]
        if isinstance(side, syntax.Quotient):
            top, bottom = self._named(side.top)[1], self._named(side.bottom)[1]
            if top.text or top.flag or bottom.text or bottom.flag:
                raise self._refuse("only numbers can be divided", side)
            if bottom.unit and bottom.unit != top.unit:
                raise self._refuse("only by a count or a measure of the same unit can be divided", side)
            return MeasureKind() if bottom.unit else top
        return None

    def _value(self, side: syntax.Operand, other: MeasureKind | None, measure: Callable[[str], Any]) -> Any:
        """The values of one side, where the other is of some kind; ``None`` where they are unknown."""
        if isinstance(side, syntax.PathTerm):
            return measure(self._named(side)[0])
        if isinstance(side, syntax.Quotient):
            top, bottom = (measure(self._named(path)[0]) for path in (side.top, side.bottom))
            return None if top is None or bottom is None else top / bottom
        assert other is not None
        if isinstance(side, syntax.NumberLiteral):
            if other.dimension is not None and other.dimension is not Dimension.RATIO:
                raise self._refuse(
                    "a number alone has no unit",
                    side,
                    f"such as {side} {'s' if other.unit == 's' else other.dimension.example}",
                )
            if other.text or other.flag:
                raise self._refuse("it is compared with a number", side, 'write a text in quotes, "..."')
            return float(side.value)
        if isinstance(side, syntax.Measure):
            if other.dimension is None or side.quantity.dimension is not other.dimension:
                what = "a number without a unit" if other.dimension is None else f"{other.dimension.word}"
                raise self._refuse(f"{what} is expected, not {side}", side)
            value = float(side.quantity.value)
            # Ratios are shares in queries, and percent in evaluations.
            return 100.0 * value if other.dimension is Dimension.RATIO else value
        if not other.text:
            raise self._refuse("a text is expected nowhere here", side)
        return side.text


def _masks(compared: str, left: Any, right: Any) -> Masks:
    if left is None or right is None:
        return False, False
    true, false = _OPERATORS[compared]
    return true(left, right), false(left, right)
