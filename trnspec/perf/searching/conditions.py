"""Conditions on configurations, in three-valued logic: where each is true, and where it is false; elsewhere it is unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen

Measure = Callable[[str], Any]
"""The values of a measure of some configurations by its name: an array, one value for all, or ``None`` if it is unknown."""
Masks = tuple[Any, Any]
"""Masks of a condition, true and false: arrays, or one value for all."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@frozen
class Named:
    """A measure, or one over another.

    Attributes:
        name: Its name.
        over: The name of the divisor; empty for none.
    """

    name: str
    over: str = ""

    def of(self, measure: Measure) -> Any:
        """Its values; ``None`` if unknown."""
        value = measure(self.name)
        if not self.over or value is None:
            return value
        divisor = measure(self.over)
        return None if divisor is None else value / divisor

    @property
    def names(self) -> tuple[str, ...]:
        """The measures it reads."""
        return (self.name, self.over) if self.over else (self.name,)


@frozen
class Constant:
    """A number in the base unit, a text, or a truth value."""

    value: float | str | bool
    names: tuple[str, ...] = ()

    def of(self, measure: Measure) -> Any:  # noqa: ARG002  # as for a measure
        """The value."""
        return self.value


Term = Named | Constant


@frozen
class Compare:
    """A comparison of two terms."""

    left: Term
    operator: str
    right: Term

    def masks(self, measure: Measure) -> Masks:
        """Where it is true and false."""
        left, right = self.left.of(measure), self.right.of(measure)
        if left is None or right is None:
            return False, False
        true = np.asarray(_OPERATORS[self.operator](left, right))
        return true, ~true

    def names(self) -> Iterator[str]:
        """The measures it reads."""
        yield from (*self.left.names, *self.right.names)


@frozen
class IsKnown:
    """Whether a measure is known."""

    name: str

    def masks(self, measure: Measure) -> Masks:
        """Where it is true and false."""
        known = measure(self.name) is not None
        return known, not known

    def names(self) -> Iterator[str]:
        """The measures it reads."""
        yield self.name


@frozen
class Negation:
    """The negation of a condition."""

    inner: Condition

    def masks(self, measure: Measure) -> Masks:
        """Where it is true and false."""
        true, false = self.inner.masks(measure)
        return false, true

    def names(self) -> Iterator[str]:
        """The measures it reads."""
        yield from self.inner.names()


@frozen
class All:
    """Several conditions at once."""

    parts: tuple[Condition, ...]

    def masks(self, measure: Measure) -> Masks:
        """Where it is true and false."""
        both = [part.masks(measure) for part in self.parts]
        true = np.logical_and.reduce(np.broadcast_arrays(*(t for t, _ in both)))
        return true, np.logical_or.reduce(np.broadcast_arrays(*(f for _, f in both)))

    def names(self) -> Iterator[str]:
        """The measures it reads."""
        for part in self.parts:
            yield from part.names()


@frozen
class AnyOf:
    """One of several conditions."""

    parts: tuple[Condition, ...]

    def masks(self, measure: Measure) -> Masks:
        """Where it is true and false."""
        false, true = All(tuple(Negation(part) for part in self.parts)).masks(measure)
        return true, false

    def names(self) -> Iterator[str]:
        """The measures it reads."""
        for part in self.parts:
            yield from part.names()


Condition = Compare | IsKnown | Negation | All | AnyOf


def holds(condition: Condition | None, measure: Measure, count: int) -> Any:
    """Where a condition is true, as an array of ``count`` truth values; everywhere without one."""
    true = True if condition is None else condition.masks(measure)[0]
    return np.array(np.broadcast_to(true, count), dtype=bool)
