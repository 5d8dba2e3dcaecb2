"""Plans compared: by kinds of evidence, the Pareto front of several costs, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from attrs import frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.result import Answer, Table, Value
from trnspec.evaluators.planning.run import RunPlan
from trnspec.evaluators.prices import purchases
from trnspec.evidence import KINDS
from trnspec.perf.calibration.published_runs import PublishedFleet, PublishedRun

if TYPE_CHECKING:  # fleets imports this module
    from trnspec.evaluators.planning.fleets import FleetPlan


P = TypeVar("P", bound="RunPlan | FleetPlan")

Columns = Mapping[str, tuple[str, Callable[[P], Value | None]]]
"""The columns of a table of plans: name, unit and value."""

WIDEST = 8.0
"""The factor between the ends of an interval above which there is only a bound."""

Costs = tuple[float | None, ...]
"""Costs to minimize, such as time, cost and energy; ``None`` where one is not known."""


@frozen
class NearestPublished:
    """A published run or fleet next to the best plan.

    Attributes:
        published: The run or the fleet.
        amount: Chip hours or chips of the plan's load at its MFU, on the plan's chip.
        differences: How it differs from the plan, and what the table states of it.
        outside: Whether the amount is outside the interval of that of the plan.
    """

    published: PublishedRun | PublishedFleet
    amount: float
    differences: tuple[str, ...]
    outside: bool

    def __str__(self) -> str:
        """Text such as ``llama-3-405b on h100, MFU 41 %``."""
        one = self.published
        return f"{one.model} on {one.hardware.partition('-')[0]}, MFU {one.mfu:.0f} %"


def best_of(plans: int) -> str:
    """Title of the best of some plans."""
    return f"the best of {plans} plans" if plans > 1 else "the only plan"


def percent(chance: float | None) -> int | None:
    """A probability in whole percent, 1 to 99: errors are not known well enough for more."""
    return None if chance is None else min(max(round(100.0 * chance), 1), 99)


def is_bound(plan: RunPlan | FleetPlan) -> bool:
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


def listed(ranked: Sequence[P], most: int) -> list[P]:
    """The first of some plans, in their order, with the best of every system as far as they fit."""
    best = list(_best_of_systems(ranked).values())[:most]
    others = [plan for plan in ranked if not any(plan is one for one in best)]
    chosen = [*best, *others[: most - len(best)]]
    return [plan for plan in ranked if any(plan is one for one in chosen)]


def _best_of_systems(ranked: Iterable[P]) -> dict[str, P]:
    """The first plan of each system, by its name."""
    first: dict[str, P] = {}
    for plan in ranked:
        first.setdefault(plan.systems.partition("*")[0], plan)
    return first


def table(title: str, columns: Columns[P], plans: Iterable[P], first_rows: int) -> Table:
    """A table of plans, of which ``first_rows`` are on a short page."""
    rows = tuple(tuple(value(plan) for _, value in columns.values()) for plan in plans)
    return Table(title, tuple(columns), rows, tuple(unit for unit, _ in columns.values()), first_rows=first_rows)


def by_price(
    title: str,
    catalog: Catalog,
    ranked: Iterable[P],
    region: str | None,
    costs: Mapping[str, Callable[[P, float], float | None]],
) -> Table | None:
    """The costs of the best plan on each system by the price of each type; ``None`` if no price is known.

    Args:
        title: The title of the table.
        catalog: The catalog.
        ranked: All plans, the best first; those on several kinds of systems are left out.
        region: The region or availability zone.
        costs: The columns of costs [USD], each with its value of a plan and a price of all its servers per hour.
    """
    rows: list[tuple[Value | None, ...]] = []
    for plan in _best_of_systems(plan for plan in ranked if " + " not in plan.systems).values():
        for servers, quote in purchases(catalog, plan.systems, region):
            hourly = servers * float(quote.figure.value.value)
            bought = (quote.place, quote.figure.as_of, quote.document.spec.term or "")
            rows.append((plan.systems, quote.type, hourly, *(cost(plan, hourly) for cost in costs.values()), *bought))
    names = ("system", "price_type", "hourly", *costs, "region", "date", "term")
    units = tuple("USD" if name == "hourly" or name in costs else "" for name in names)
    return Table(title, names, tuple(rows), units, first_rows=0) if rows else None


def best_supported(plans: Sequence[P], best: P, text: Callable[[P], str]) -> Iterator[Answer]:
    """The first plan of the strongest evidence, with a text about it, where that is stronger than the evidence of the best one."""
    first = min(plans, key=lambda plan: plan.evidence.weakness, default=best)
    if first.evidence.weakness < best.evidence.weakness:
        kind = first.evidence.kind
        why = kind if kind != best.evidence.kind else "nearer to measured rows"
        note = "the best plan of the strongest evidence: of its kind, and of one kind by inputs that are not numbers"
        yield Answer("best_supported", f"{first.systems}: {text(first)} ({why})", note=note)
