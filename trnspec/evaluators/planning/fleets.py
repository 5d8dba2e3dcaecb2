"""The fleets of a kind of system that meet limits under a load."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.evaluators.deployment import InferenceQuestion
from trnspec.evaluators.inference import transfer
from trnspec.evaluators.planning.deployments import Deployed, Reason, TimeErrors, deployed, fit_inputs
from trnspec.evaluators.planning.requests import Lengths
from trnspec.evaluators.prices import HOUR, ChipPower, Rent, chip_power, rent
from trnspec.evidence import Evidence, weakest
from trnspec.perf.calibration.fit_range import nearest_row
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.serving.pools import Fleet, FleetState, least
from trnspec.perf.serving.replay import replay

if TYPE_CHECKING:  # serving imports this module
    from trnspec.evaluators.planning.serving import FleetProblem

MOST_SYSTEMS = 1 << 20
"""The most systems, and replicas of a pool, of a plan."""
TOO_MANY = f"more than {MOST_SYSTEMS:,} systems are needed"
"""Why a deployment has no plan at a high rate."""
UNITS = (2, 4, 8)
"""Systems that one replica is split over, by pipeline parallelism if layers allow, where it does not fit on one."""
WIDE = (2, 4)
"""Systems that the experts of a replica group are split over, if the model has experts."""
_PREFILLS = 3
"""Prefill deployments with which decode deployments are combined: those with the least chip time per prompt."""
_RELAXED = 0.25
"""The share of saturation of the limits that a deployment is said to meet."""
NOTABLE = 1.1
"""The factor from which on errors of times are stated."""
_SIMULATED, _FOLLOWED = 8, 2
"""Replicas of a simulation, and those of them whose requests are followed; the others get the same share."""
_IDLE = 1e-3
"""The share of saturation at which requests do not meet each other."""


@frozen(kw_only=True)
class RequestLimits:
    """Limits of requests.

    Attributes:
        ttft: Limit of the time to first token [s].
        tpot: Limit of the time per output token [s].
        percentile: Of both, from 0 to 100.
    """

    ttft: float
    tpot: float
    percentile: float

    def met(self, state: FleetState | None) -> bool:
        """Whether a fleet at some load meets the limits."""
        if state is None:
            return False
        return state.tpot(self.percentile) <= self.tpot and state.ttft(self.percentile) <= self.ttft

    def excess(self, state: FleetState) -> float:
        """By which factor the limit that is missed most is exceeded."""
        return max(state.ttft(self.percentile) / self.ttft, state.tpot(self.percentile) / self.tpot)


@frozen(kw_only=True, eq=False)
class FleetPlan:
    """A fleet that meets the limits.

    Attributes:
        pools: The systems of each pool and how many: of the one that decodes, and of the one that prefills if it is apart.
        chips: Chips of all systems.
        decode: The deployment that decodes, and prefills unless another does.
        before: The deployment that prefills, if it is another.
        fleet: The replicas.
        state: The fleet under its load.
        spread: The errors of times; ``None`` for bounds.
        evidence: What the times are based on.
        rents: The price of the systems of each pool; empty if one is not known.
        powers: The power of the chips of each pool; empty if one is not known.
    """

    pools: tuple[tuple[str, int], ...]
    chips: float
    decode: Deployed = field(repr=False)
    before: Deployed | None = field(repr=False)
    fleet: Fleet = field(repr=False)
    state: FleetState = field(repr=False)
    spread: TimeErrors | None
    evidence: Evidence
    rents: tuple[Rent, ...]
    powers: tuple[ChipPower, ...] = ()

    @property
    def systems(self) -> str:
        """Text such as ``trn2.48xlarge*3`` or ``trn2.48xlarge*3 + trn1.32xlarge*2``."""
        return " + ".join(_times(on, count) for on, count in self.pools)

    @property
    def chip(self) -> str:
        """The name of the chip that decodes."""
        return self.decode.setup.pool.system.chip

    @property
    def inputs(self) -> InferenceQuestion:
        """The inputs of a replica that decodes."""
        return self.decode.setup.question

    @property
    def hourly(self) -> float | None:
        """The price of all systems per hour [USD]."""
        return sum(rent.hourly for rent in self.rents) if self.rents else None

    @property
    def watts(self) -> float | None:
        """The power of all chips [W]; ``None`` if it is not published."""
        return sum(power.watts for power in self.powers) if self.powers else None

    def million_tokens(self, output: int) -> float | None:
        """The price of a million output tokens [USD]; ``None`` without a price."""
        return None if self.hourly is None else self.per_million_tokens(self.hourly / HOUR, output)

    def million_tokens_energy(self, output: int) -> float | None:
        """The energy of the chips for a million output tokens [J]; ``None`` if their power is not published."""
        return None if self.watts is None else self.per_million_tokens(self.watts, output)

    def per_million_tokens(self, each_second: float, output: int) -> float:
        """An amount that the fleet takes each second, for a million output tokens of requests with ``output`` each."""
        return each_second / (self.state.rate * output) * 1e6

    def costs(self, which: float, output: int) -> tuple[float | None, ...]:
        """Objectives of a Pareto front: TPOT, cost and energy; without a price chips, with others of the chip only.

        Args:
            which: The percentile of TPOT.
            output: Output length [tokens].
        """
        cost, energy = self.million_tokens(output), self.million_tokens_energy(output)
        return self.state.tpot(which), cost, energy, self.chips if cost is None else None

    def slower(self, quantile: float) -> FleetState | None:
        """The fleet with times that are longer by a quantile of their errors; ``None`` where it is saturated."""
        assert self.spread is not None
        return self.fleet.slower(*self.spread.factors(quantile)).at(self.state.rate)

    def risk(self, limits: RequestLimits) -> float:
        """By which factor limits are exceeded with times one standard deviation longer: infinite where it is saturated."""
        state = self.state if self.spread is None else self.slower(1.0)
        return math.inf if state is None else limits.excess(state)

    def percentiles(self, which: float, lengths: Lengths, quantile: float | None = None) -> tuple[float, float] | None:
        """A percentile of TTFT and of TPOT in the simulation [s]; ``None`` where the fleet is saturated.

        Args:
            which: The percentile.
            lengths: The requests.
            quantile: Times are longer by this quantile of their errors; as computed if left out.
        """
        factors = (1.0, 1.0) if quantile is None or self.spread is None else self.spread.factors(quantile)
        return _simulated(self, which, lengths, factors)

    def meets(self, limits: RequestLimits, lengths: Lengths, factors: tuple[float, float]) -> bool:
        """Whether the fleet meets the limits in the simulation, with longer times of prompts and of steps."""
        times = _simulated(self, limits.percentile, lengths, factors)
        return times is not None and times[0] <= limits.ttft and times[1] <= limits.tpot

    def probability(self, limits: RequestLimits, lengths: Lengths) -> float | None:
        """The probability of meeting the limits, from the errors of times; ``None`` for a bound."""
        if self.spread is None:
            return None
        low, high = -_FAR, _FAR
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            met = self.meets(limits, lengths, self.spread.factors(middle))
            low, high = (middle, high) if met else (low, middle)
        return NormalDist().cdf(0.5 * (low + high))


_FAR, _HALVINGS = 2.5, 7


@lru_cache(512)
def _simulated(
    plan: FleetPlan, percentile: float, lengths: Lengths, factors: tuple[float, float]
) -> tuple[float, float] | None:
    """A percentile of TTFT and of TPOT in a discrete-event simulation [s]; the first tenth of random requests is warm-up."""
    fleet, rate = plan.fleet.slower(*factors), plan.state.rate
    if rate >= fleet.saturation:
        return None
    if lengths.trace is None and fleet.prefill is None and fleet.replicas > _SIMULATED:
        # Replicas are queues of their own: a part of them gets its share. A smaller prefill pool would wait longer.
        fleet, rate = evolve(fleet, replicas=_SIMULATED), rate * _SIMULATED / fleet.replicas
    requests = lengths.requests(fleet.replicas, rate, plan.state.running)
    times = replay(fleet, requests, most=_SIMULATED if lengths.trace else _FOLLOWED)
    return times.percentiles(percentile, warm=0.0 if lengths.trace is not None else 0.1)


def _times(on: str, count: int) -> str:
    name, _, own = on.partition("*")
    return f"{name}*{int(own or 1) * count}"


@frozen(kw_only=True)
class Missed:
    """A deployment that cannot meet the limits, whatever the number of systems.

    Attributes:
        deployed: The deployment.
        state: The fleet almost without load, with times as long as the confidence demands.
        relaxed: The same at a quarter of its saturation: limits that it would meet.
    """

    deployed: Deployed = field(repr=False)
    state: FleetState = field(repr=False)
    relaxed: FleetState | None = field(repr=False)

    @property
    def computed(self) -> FleetState:
        """The fleet almost without load, with times as computed."""
        fleet = Fleet(replica=self.deployed.replica, replicas=1)
        state = fleet.at(_IDLE * fleet.saturation)
        assert state is not None
        return state


@frozen(kw_only=True)
class Offers:
    """Deployments of one kind of system.

    Attributes:
        plans: The fleets that meet the limits.
        missed: The deployments that cannot.
        reasons: Why other deployments are invalid.
    """

    plans: list[FleetPlan] = field(factory=list)
    missed: list[Missed] = field(factory=list)
    reasons: list[Reason] = field(factory=list)


def offers(problem: FleetProblem, on: str) -> Offers:
    """The fleets on one kind of system; several of them where a model does not fit on one, or may split its experts.

    Raises:
        RefusalError: No deployment is valid, or a figure is not published.
    """
    q = problem.question
    found = _offers(problem, on)
    if "*" in on or q.pp != (1,):
        return found
    for unit in UNITS if not (found.plans or found.missed) else ():
        # Layers that cannot be divided into stages, such as 61, leave tensor and expert parallelism.
        for pp in (unit, 1):
            larger = _offers(evolve(problem, question=evolve(q, pp=(pp,))), f"{on}*{unit}")
            if larger.plans or larger.missed:
                return larger
    for unit in WIDE if model_named(problem.catalog.graph, q.model).spec.experts is not None else ():
        wide = _offers(problem, f"{on}*{unit}", wide=True)
        found.plans.extend(wide.plans)
        found.missed.extend(wide.missed)
    return found


def _offers(problem: FleetProblem, on: str, *, wide: bool = False) -> Offers:
    offer, pools = Offers(), problem.question.pools
    for one in deployed(problem.catalog, problem.question, on, problem.lengths, offer.reasons, wide=wide):
        if "aggregated" not in pools:
            continue
        found = smallest(problem, one)
        if isinstance(found, FleetPlan):
            offer.plans.append(found)
        elif isinstance(found, Missed):
            offer.missed.append(found)
        else:
            offer.reasons.append((f"tp {one.setup.question.tp}", TOO_MANY))
    if "disaggregated" in pools:
        _disaggregated(problem, on, offer, wide=wide)
    return offer


def smallest(problem: FleetProblem, one: Deployed) -> FleetPlan | Missed | None:
    """The smallest fleet of a deployment that meets the limits; ``None`` if it has too many systems."""
    limits, rate = problem.limits, problem.lengths.rate
    careful = Fleet(replica=one.replica, replicas=1).slower(*problem.factors(one.spread))
    idle = careful.at(_IDLE * careful.saturation)
    if not limits.met(idle):
        assert idle is not None
        return Missed(deployed=one, state=idle, relaxed=careful.at(_RELAXED * careful.saturation))

    def met(systems: int) -> bool:
        replicas = systems * one.per_system
        share = rate / replicas
        return share <= problem.utilized * careful.saturation and limits.met(
            evolve(careful, replicas=replicas).at(rate)
        )

    low = math.ceil(rate / (problem.utilized * careful.saturation * one.per_system))
    systems = least(met, max(1, low), MOST_SYSTEMS)
    if systems is None:
        return None
    fleet = Fleet(replica=one.replica, replicas=systems * one.per_system)
    return fleet_plan(problem, one, None, fleet, ((one.on, systems),))


def _disaggregated(problem: FleetProblem, on: str, offer: Offers, *, wide: bool) -> None:
    """Adds the smallest fleet of each deployment that decodes, with the best pool that computes its prompts."""
    catalog, q, lengths = problem.catalog, problem.question, problem.lengths
    reasons: list[Reason] = []
    computing = list(deployed(catalog, evolve(q, ep=(1,)), q.prefill_on or on, lengths, reasons, part="prefill"))
    computing.sort(key=lambda one: one.replica.each * one.ranks / one.setup.pool.system.ranks)
    quick = []
    for one in computing:
        longest = one.replica.slower(*problem.factors(one.spread))
        if longest.prompt + longest.fixed + longest.first <= problem.limits.ttft:
            quick.append(one)
    for decoding in deployed(catalog, q, on, lengths, reasons, part="decode", wide=wide):
        name = f"tp {decoding.setup.question.tp}"
        replicas = decoding_replicas(problem, decoding)
        if replicas is None:
            reasons.append((name, f"no {MOST_SYSTEMS:,} replicas decode within tpot"))
            continue
        same = [one for one in quick if _dtypes(one) == _dtypes(decoding)][:_PREFILLS]
        plans = [plan for one in same if (plan := with_prefill(problem, decoding, replicas, one)) is not None]
        if plans:
            best = min(plans, key=lambda p: (p.hourly is None, p.hourly, p.chips, p.risk(problem.limits)))
            offer.plans.append(best)
        else:
            reasons.append((name, "no prefill deployment computes a prompt and sends it within ttft"))
    offer.reasons.extend((f"disaggregated {name}", why) for name, why in reasons)


def decoding_replicas(problem: FleetProblem, decoding: Deployed) -> int | None:
    """The fewest replicas that decode within the limit of TPOT; ``None`` if not even many do."""
    limits, rate, utilized = problem.limits, problem.lengths.rate, problem.utilized
    slow = Fleet(replica=decoding.replica, replicas=1).slower(*problem.factors(decoding.spread))

    def decodes(replicas: int) -> bool:
        state = evolve(slow, replicas=replicas).at(rate)
        return state is not None and state.utilization <= utilized and state.tpot(limits.percentile) <= limits.tpot

    alone = slow.at(_IDLE * slow.saturation)
    if alone is None or alone.tpot(limits.percentile) > limits.tpot:
        return None
    return least(decodes, max(1, math.ceil(rate / (utilized * slow.saturation))), MOST_SYSTEMS)


def _dtypes(one: Deployed) -> tuple[str | None, ...]:
    """Compute, weights and KV cache, which both pools share."""
    q = one.setup.question
    return q.dtype, q.weight_dtype, q.kv_dtype


def with_prefill(problem: FleetProblem, decoding: Deployed, replicas: int, before: Deployed) -> FleetPlan | None:
    """The smallest pool that computes prompts within the limit of TTFT for some replicas that decode."""
    rate, utilized, setup = problem.lengths.rate, problem.utilized, decoding.setup
    assert setup.before is not None
    sender = evolve(setup.before, plan=before.setup.pool.plan, system=before.setup.pool.system)
    sent = transfer(evolve(setup, before=sender), sender)
    slow = Fleet(
        replica=decoding.replica.slower(1.0, problem.factors(decoding.spread)[1]), replicas=replicas,
        prefill=before.replica.slower(problem.factors(before.spread)[0], 1.0), prefills=1, transfer=sent,
    )  # fmt: skip
    assert slow.prefill is not None
    load = rate * slow.prefill.each

    def computes(prefills: int) -> bool:
        state = evolve(slow, prefills=prefills).at(rate)
        return state is not None and load <= utilized * prefills and problem.limits.met(state)

    prefills = least(computes, max(1, math.ceil(load / utilized)), max(4, math.ceil(4 * load)))
    if prefills is None:
        return None
    pools: tuple[tuple[str, int], ...]
    if before.on != decoding.on:
        pools = ((decoding.on, -(-replicas // decoding.per_system)), (before.on, -(-prefills // before.per_system)))
        replicas, prefills = pools[0][1] * decoding.per_system, pools[1][1] * before.per_system
    else:
        ranks = float(setup.pool.system.ranks)
        systems = math.ceil((replicas * decoding.ranks + prefills * before.ranks) / ranks)
        # What is left of the systems decodes.
        replicas = int((systems * ranks - prefills * before.ranks) // decoding.ranks)
        pools = ((decoding.on, systems),)
    fleet = Fleet(replica=decoding.replica, replicas=replicas, prefill=before.replica, prefills=prefills, transfer=sent)
    return fleet_plan(problem, decoding, before, fleet, pools)


def fleet_plan(
    problem: FleetProblem, decoding: Deployed, before: Deployed | None, fleet: Fleet, pools: tuple[tuple[str, int], ...]
) -> FleetPlan:
    """The plan of a fleet, with its chips, prices, power and evidence."""
    catalog, q = problem.catalog, problem.question
    state = fleet.at(problem.lengths.rate)
    assert state is not None
    rents = [rent(catalog, _times(on, n), type=q.price_type, region=q.region, price=q.price) for on, n in pools]
    known = [r for r in rents if r is not None]
    powers = [power for on, n in pools if (power := chip_power(catalog, _times(on, n))) is not None]
    both = [decoding] if before is None else [decoding, before]
    spreads = [one.spread for one in both]
    spread = spreads[0]
    if before is not None and spread is not None:
        spread = None if spreads[1] is None else TimeErrors(spreads[1].prompts, spread.steps)
    return FleetPlan(
        pools=pools,
        chips=sum(float(lower(catalog.graph, on, lnc=q.lnc).chips) * n for on, n in pools),
        decode=decoding,
        before=before,
        fleet=fleet,
        state=state,
        spread=spread,
        evidence=weakest([one.known.evidence for one in both]),
        rents=tuple(known) if len(known) == len(rents) else (),
        powers=tuple(powers) if len(powers) == len(pools) else (),
    )


def with_nearest_row(catalog: Catalog, plan: FleetPlan) -> Evidence:
    """The evidence of a plan, with the measured row that is nearest to it."""
    setup, known = plan.decode.setup, plan.decode.known
    if plan.evidence is not known.evidence:
        return plan.evidence
    inputs = fit_inputs(setup, plan.fleet.replica.most)
    row = nearest_row(
        catalog.graph, known.name, inputs, setup.name, chip=setup.pool.system.chip, dtype=setup.question.dtype,
        experts=setup.dims.experts > 0,
    )  # fmt: skip
    return evolve(known.evidence, nearest=row)
