"""Quoted quantities, prices and powers: conflicts between two of them, which one is blamed, and scales as likely causes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from attrs import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trnspec.model.document import Node

Range = tuple[float, float]
FACTORS = (10.0, 0.1, 1000.0, 0.001, 100.0, 0.01)
"""Wrong powers of ten, the likely ones first."""


class QuotedValue(Protocol):
    """A value that a document states of a product."""

    @property
    def value(self) -> float:
        """In the base unit."""

    @property
    def document(self) -> Node[Any]:
        """The document that states it."""


Q = TypeVar("Q", bound=QuotedValue)


@frozen(eq=False)
class QuoteConflict(Generic[Q]):
    """A value that is outside the bounds that another one, or the rate of its chips, sets.

    Attributes:
        code: The rule that it violates.
        one: The value that is blamed.
        other: The other; ``None`` where the rate sets the bounds.
        bounds: The least and the greatest plausible value; ``None`` for a copied one.
        why: What the bounds allow for.
    """

    code: str
    one: Q
    other: Q | None
    bounds: Range | None
    why: str

    @property
    def parties(self) -> tuple[Q, ...]:
        """The values that may be wrong: those of documents to check, or all if none is to be checked."""
        both = (self.one,) if self.other is None else (self.one, self.other)
        return tuple(q for q in both if q.document.target) or both

    def about(self, quoted: Q) -> QuoteConflict[Q]:
        """The same with one of the two values first."""
        if self.other is None or quoted is self.one:
            return self
        bounds = self.bounds
        if bounds is not None:
            product = self.one.value * self.other.value
            bounds = product / bounds[1], product / bounds[0]
        return evolve(self, one=self.other, other=self.one, bounds=bounds)

    def text(self, unit: str) -> str:
        """The message of a finding about the value that is blamed."""
        bounds = "" if self.bounds is None else f"expected {self.bounds[0]:,.4g} to {self.bounds[1]:,.4g} {unit}"
        if self.other is None:
            return f"{self.one} is implausible for {self.why}: {bounds}"
        return f"{self.one} does not agree with {self.other}: {bounds}, by {self.why}"


def blamed(
    conflicts: Sequence[QuoteConflict[Q]],
    wrong: Callable[[list[Q]], Q],
    order: Callable[[QuoteConflict[Q]], Any],
) -> Iterator[QuoteConflict[Q]]:
    """One conflict for each value to blame: first the value of most conflicts, then the next.

    Args:
        conflicts: The conflicts.
        wrong: Which of several values with equally many conflicts is blamed.
        order: The key by which the conflict to report of a value is the least.
    """
    while conflicts:
        votes = Counter(quoted for one in conflicts for quoted in one.parties)
        most = max(votes.values())
        worst = wrong([quoted for quoted, count in votes.items() if count == most])
        yield min((one.about(worst) for one in conflicts if worst in one.parties), key=order)
        conflicts = [one for one in conflicts if worst not in one.parties]


def scales(value: float, count: float, unit: str, what: str) -> Iterator[tuple[float, str]]:
    """Plausible values behind a wrong one, with the cause: another power of ten, or one chip instead of all.

    Args:
        value: The value.
        count: Chips of the product.
        unit: Its unit.
        what: The name of the quantity.
    """
    for factor in FACTORS:
        yield value / factor, f"a factor of {factor:,g}: {value / factor:,.6g} {unit} is within the bounds"
    if count > 1:
        whole = value * count
        yield whole, f"the {what} of one chip: {count:,.0f} x {value:,.6g} = {whole:,.6g} {unit}"
