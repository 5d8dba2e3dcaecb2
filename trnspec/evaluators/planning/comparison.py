"""Plans compared: by kinds of evidence, and the Pareto front of several costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from trnspec.errors import RefusalError
from trnspec.evidence import KINDS, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Evident(Protocol):
    """A plan with evidence."""

    @property
    def evidence(self) -> Evidence:
        """Evidence of its times."""


P = TypeVar("P", bound=Evident)

Costs = tuple[float | None, ...]
"""Costs to minimize, such as time, cost and energy; ``None`` where one is not known."""


def best_of(plans: int) -> str:
    """Title of the best of some plans."""
    return f"the best of {plans} plans" if plans > 1 else "the only plan"


def percent(chance: float | None) -> int | None:
    """A probability in whole percent, 1 to 99: errors are not known well enough for more."""
    return None if chance is None else min(max(round(100.0 * chance), 1), 99)


def is_bound(plan: Evident) -> bool:
    """Whether the times of a plan are bounds, which are not compared with estimates."""
    return plan.evidence.kind == "ideal"


def evident(plans: Iterable[P], weakest: str | None) -> list[P]:
    """The plans of a kind of evidence or of a stronger one.

    Raises:
        RefusalError: ``no-plan``: there is none, of those given.
    """
    known = list(plans)
    found = [one for one in known if weakest is None or KINDS.index(one.evidence.kind) <= KINDS.index(weakest)]
    if known and not found:
        kinds = sorted({one.evidence.kind for one in known}, key=KINDS.index)
        reason = min(known, key=lambda one: KINDS.index(one.evidence.kind)).evidence.reason
        raise RefusalError(
            "no-plan",
            f"no plan is of the evidence {weakest} or a stronger one: the strongest is {kinds[0]}: {reason}",
            place="evidence",
            hint=f"the evidence {kinds[0]}",
        )
    return found


def best_of_kinds(ranked: Iterable[P]) -> list[P]:
    """The first plan of each kind of evidence, the strongest kind first."""
    first: dict[str, P] = {}
    for plan in ranked:
        first.setdefault(plan.evidence.kind, plan)
    return sorted(first.values(), key=lambda plan: KINDS.index(plan.evidence.kind))


def supported(kinds: Sequence[P], best: P) -> P | None:
    """The plan of the strongest evidence, where it is stronger than that of the best one."""
    return None if not kinds or kinds[0].evidence.kind == best.evidence.kind else kinds[0]


def dominates(one: Costs, other: Costs) -> bool:
    """Whether something is nowhere worse and somewhere better; costs that only one of them has are not compared."""
    if any((a is None) != (b is None) for a, b in zip(one, other, strict=True)):
        return False
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def pareto(plan: P, plans: Sequence[P], costs: Callable[[P], Costs]) -> bool:
    """Whether no other plan is nowhere worse and somewhere better; bounds and estimates are not compared.

    Args:
        plan: The plan.
        plans: All plans.
        costs: What should be small.
    """
    alike = [other for other in plans if is_bound(other) == is_bound(plan)]
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
