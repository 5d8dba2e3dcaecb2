"""Quoted quantities, prices and powers: conflicts between two of them, which one is blamed, and scales as likely causes."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from attrs import evolve, frozen

from trnspec.model.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trnspec.model.chip import Chip
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
    """One conflict for each value to blame, the value of most conflicts first.

    ``wrong`` chooses among values with equally many; of a value the conflict is reported that is the least by ``order``.
    """
    while conflicts:
        votes = Counter(quoted for one in conflicts for quoted in one.parties)
        most = max(votes.values())
        worst = wrong([quoted for quoted, count in votes.items() if count == most])
        yield min((one.about(worst) for one in conflicts if worst in one.parties), key=order)
        conflicts = [one for one in conflicts if worst not in one.parties]


def likely_cause(conflict: QuoteConflict[Any], count: float, unit: str, what: str, near: float | None = None) -> str:
    """The likely cause of a wrong value: a power of ten, or one chip instead of all; empty if neither is within the bounds.

    Of several it is the one nearest to ``near``, by default the middle of the bounds.
    """
    if conflict.bounds is None:
        return ""
    (low, high), value = conflict.bounds, conflict.one.value
    causes = [(value / f, f"a factor of {f:,g}: {value / f:,.6g} {unit} is within the bounds") for f in FACTORS]
    if count > 1:
        whole = value * count
        causes.append((whole, f"the {what} of one chip: {count:,.0f} x {value:,.6g} = {whole:,.6g} {unit}"))
    center = math.sqrt(low * high) if near is None else near
    fits = [(abs(math.log(other / center)), text) for other, text in causes if low <= other <= high]
    return min(fits)[1] if fits else ""


def half_precision(chip: Node[Chip]) -> float:
    """The dense rate of a chip in 16-bit numbers, in FLOPS; 0 if it is not known."""
    dense = None if chip.spec.peak is None else chip.spec.peak.dense
    rates = [] if dense is None else [r for r in (dense.bf16, dense.fp16) if isinstance(r, Figure)]
    return max((float(r.value.value) for r in rates), default=0.0)
