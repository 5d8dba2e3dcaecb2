"""Plans compared: in classes of evidence, and the Pareto front of several costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from trnspec.evidence import KINDS, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Evident(Protocol):
    """A plan with evidence."""

    @property
    def evidence(self) -> Evidence:
        """What its times are based on."""


P = TypeVar("P", bound=Evident)

Costs = tuple[float | None, ...]
"""Costs to minimize, such as time, cost and energy; ``None`` where one is not known."""


def best_of(plans: int) -> str:
    """What the best of some plans is called in a title."""
    return f"the best of {plans} plans" if plans > 1 else "the only plan"


def percent(chance: float | None) -> int | None:
    """A probability in whole percent, 1 to 99: errors are not known well enough for more."""
    return None if chance is None else min(max(round(100.0 * chance), 1), 99)


def evidence_class(plan: Evident) -> int:
    """The position of a plan's kind of evidence, the strongest first; plans are ranked within one kind."""
    return KINDS.index(plan.evidence.kind)


def best_of_kinds(ranked: Iterable[P]) -> list[P]:
    """The first plan of each kind of evidence, the strongest kind first."""
    first: dict[int, P] = {}
    for plan in ranked:
        first.setdefault(evidence_class(plan), plan)
    return [first[kind] for kind in sorted(first)]


def dominates(one: Costs, other: Costs) -> bool:
    """Whether something is nowhere worse and somewhere better; costs that only one of them has are not compared."""
    if any((a is None) != (b is None) for a, b in zip(one, other, strict=True)):
        return False
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def pareto(plan: P, plans: Sequence[P], costs: Callable[[P], Costs]) -> bool:
    """Whether no other plan of the same kind of evidence is nowhere worse and somewhere better.

    Args:
        plan: The plan.
        plans: All plans.
        costs: What should be small.
    """
    alike = [other for other in plans if evidence_class(other) == evidence_class(plan)]
    return not any(dominates(costs(other), costs(plan)) for other in alike)


def listed(ranked: Sequence[P], most: int, system: Callable[[P], str]) -> list[P]:
    """The first of some plans, in their order, with the best of every system as far as they fit.

    Args:
        ranked: All plans, the best first.
        most: How many.
        system: The system of a plan, without its count.
    """
    first: dict[str, P] = {}
    for plan in ranked:
        first.setdefault(system(plan), plan)
    best = list(first.values())[:most]
    others = [plan for plan in ranked if not any(plan is one for one in best)]
    chosen = [*best, *others[: most - len(best)]]
    return [plan for plan in ranked if any(plan is one for one in chosen)]
