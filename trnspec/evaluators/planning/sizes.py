"""The number of systems of a fleet: the smallest that meets the limits in the simulation, and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve

from trnspec.evaluators.planning import fleets
from trnspec.evaluators.planning.deployments import Deployed, deployed
from trnspec.evaluators.planning.distribution import NORMAL_90
from trnspec.perf.lowering.calibrated import serving_of
from trnspec.perf.lowering.lower import lower
from trnspec.perf.serving.pools import least
from trnspec.perf.serving.prefill import prefill

if TYPE_CHECKING:  # serving imports this module
    from trnspec.evaluators.planning.serving import FleetProblem

LARGEST = 8
"""Largest factor by which a fleet grows beyond that of the queueing model to meet the limits in the simulation."""
_SPLITS = 5
"""The most numbers of prefill replicas that are simulated on the same systems."""
_PACKED = 64
"""Prompts that share a pass in the bound of the rate."""


def sized(problem: FleetProblem, plan: fleets.FleetPlan) -> fleets.FleetPlan | None:
    """The plan with the fewest systems that meet the limits in the simulation; ``None`` if not even many do.

    Args:
        problem: What to plan.
        plan: The plan, whose size is that of the queueing model.
    """
    found: dict[int, fleets.FleetPlan] = {}
    factors = problem.factors(plan.spread)

    def meets(systems: int) -> bool:
        each = (
            one for one in _with_systems(problem, plan, systems) if one.meets(problem.limits, problem.lengths, factors)
        )
        best = next(each, None)
        if best is not None:
            found[systems] = best
        return best is not None

    count = plan.pools[0][1]
    low = math.ceil(count * plan.state.rate / plan.fleet.slower(*factors).saturation * (1.0 - 1e-9))
    systems = least(meets, min(low, count), LARGEST * count)
    return None if systems is None else found[systems]


def _with_systems(problem: FleetProblem, plan: fleets.FleetPlan, systems: int) -> list[fleets.FleetPlan]:
    """The plan with another number of systems of the pool that decodes, and of others in proportion.

    Where both pools share systems, one for each of some numbers of replicas that prefill; all others decode.
    """
    (on, count), *others = plan.pools
    rate, before, fleet = plan.state.rate, plan.before, plan.fleet
    pools = ((on, systems), *((other, -(-n * systems // count)) for other, n in others))
    if before is None or others:
        sizes = [(fleet.replicas * systems // count, fleet.prefills * systems // count)]
    else:
        assert fleet.prefill is not None
        ranks = systems * float(plan.decode.setup.pool.system.ranks)
        fewest = math.floor(rate * fleet.prefill.each) + 1
        replicas = math.floor(rate / fleet.replica.saturation) + 1
        most = int((ranks - replicas * plan.decode.ranks) // before.ranks)
        numbers = {fewest + (most - fewest) * i // (_SPLITS - 1) for i in range(_SPLITS)} if most >= fewest else set()
        sizes = [(int((ranks - n * before.ranks) // plan.decode.ranks), n) for n in sorted(numbers)]
    changed = [evolve(fleet, replicas=replicas, prefills=prefills) for replicas, prefills in sizes]
    return [fleets.fleet_plan(problem, plan.decode, before, one, pools) for one in changed if one.at(rate) is not None]


def resized(problem: FleetProblem, plan: fleets.FleetPlan, quantile: float | None = None) -> fleets.FleetPlan | None:
    """The smallest fleet of the deployments of a plan that meets the limits if times are as given.

    Args:
        problem: What to plan.
        plan: The plan.
        quantile: Times are longer by this quantile of their errors; as computed if left out.
    """
    decode = _certain(plan.decode, quantile)
    if plan.before is None:
        found = fleets.smallest(problem, decode)
        return found if isinstance(found, fleets.FleetPlan) else None
    replicas = fleets.decoding_replicas(problem, decode)
    return None if replicas is None else fleets.with_prefill(problem, decode, replicas, _certain(plan.before, quantile))


def _certain(one: Deployed, quantile: float | None) -> Deployed:
    """A deployment whose times have no spread: as computed, or longer by a quantile of their errors."""
    spread = one.spread
    replica = one.replica if spread is None or quantile is None else one.replica.slower(*spread.factors(quantile))
    return evolve(one, replica=replica, known=evolve(one.known, coverage=0.0))


def chips_interval(problem: FleetProblem, ranked: Sequence[fleets.FleetPlan]) -> tuple[float, float | None] | None:
    """The chips that the limits need at the ends of an 80 % interval of the times; ``None`` for bounds.

    Of the plans on the systems of the first one each end takes the one with the fewest chips: what would be chosen if its
    times were known. With short times a fleet may run up to saturation, but no fleet exceeds the saturation of the bound;
    with long ones up to the share that plans have. The upper end is ``None`` where no number of systems is enough.
    """
    best = ranked[0]
    if best.spread is None:
        return None
    same = [plan for plan in ranked if plan.spread is not None and _kinds_of_systems(plan) == _kinds_of_systems(best)]

    def fewest(limited: FleetProblem, quantile: float) -> list[fleets.FleetPlan]:
        return [one for plan in same if (one := resized(limited, plan, quantile)) is not None]

    low = min((one.chips for one in fewest(evolve(problem, utilized=1.0), -NORMAL_90)), default=0.0)
    high: float | None = None
    # Those that could be smallest first: no fleet is loaded beyond saturation.
    slow = [(plan.chips * plan.state.utilization, plan) for plan in fewest(problem, NORMAL_90)]
    for saturated, one in sorted(slow, key=lambda pair: pair[0]):
        if high is not None and saturated > high:
            break
        found = sized(problem, one)
        if found is not None:
            high = found.chips if high is None else min(found.chips, high)
    least_chips = min((_least_chips(problem, plan) for plan in same), default=0.0)
    return min(max(low, least_chips), best.chips), None if high is None else max(high, best.chips)


def _kinds_of_systems(plan: fleets.FleetPlan) -> tuple[str, ...]:
    """The systems of each pool, without their numbers."""
    return tuple(on.partition("*")[0] for on, _ in plan.pools)


def _least_chips(problem: FleetProblem, plan: fleets.FleetPlan) -> float:
    """The chips whose bound of the rate at saturation is that of the requests, in whole systems; 0 if it is not known."""
    catalog, q, lengths = problem.catalog, problem.question, problem.lengths
    needed: dict[str, float] = {}
    parts: list[tuple[Deployed | None, Literal["all", "prefill", "decode"]]]
    parts = [(plan.decode, "all" if plan.before is None else "decode"), (plan.before, "prefill")]
    for one, part in parts:
        if one is None:
            continue
        own = one.setup.question
        known: dict[str, Any] = {name: (getattr(own, name),) for name in ("tp", "pp", "ep", "dtype")}
        known |= {name: (value,) for name in ("weight_dtype", "kv_dtype", "chunk") if (value := getattr(own, name))}
        asked = evolve(q, **known, calibration="none")
        bound = next(deployed(catalog, asked, one.on, lengths, [], part=part), None)
        if bound is None:
            return 0.0
        time = _least_time(bound, part)
        needed[one.on] = needed.get(one.on, 0.0) + lengths.rate * time / one.per_system
    return sum(math.ceil(n) * float(lower(catalog.graph, on, lnc=q.lnc).chips) for on, n in needed.items())


def _least_time(bound: Deployed, part: str) -> float:
    """The time that a request keeps a replica busy at least [s]: prompts that share a pass, or its share of decode steps.

    The larger of both: passes that have prompts and decode steps overlap computation and reads.
    """
    setup, replica = bound.setup, bound.replica
    plan = evolve(setup.pool.plan, prompts=float(_PACKED))
    prompts = prefill(setup.model, plan, setup.pool.numbers, serving_of(bound.known))
    prompt = float(prompts.total) / (_PACKED * float(plan.pp)) if part != "decode" else 0.0
    decoded = (replica.output - 1.0) * min(step / n for n, step in enumerate(replica.steps.tolist(), 1))
    return prompt if part == "prefill" else max(prompt, decoded)
