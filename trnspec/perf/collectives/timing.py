"""Times of the collectives of a group of ranks on the declared topology of a system.

The algorithms are those of ``trnspec.perf.collectives.algorithms``; here their loads are combined with rates and a size.
Stages (device memory, fabric, network) work on different pieces of the buffer at the same time, so the slowest counts; the
phases of one stage follow each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from trnspec.errors import RefusalError
from trnspec.perf.collectives.algorithms import CollectivePlan, Stage
from trnspec.perf.collectives.groups import NETWORK, LinkRates
from trnspec.perf.collectives.routes import INSIDE

NEURON_NAMES = {"mesh": "direct", "rdh": "recursive", "kangaring": "rings-both-ways"}
"""Neuron's names of algorithms: for small, medium and large sizes within a server."""

ALIASES = {**NEURON_NAMES, "nvls": "in-network", "sharp": "in-network"}
"""Other names of algorithms."""


@frozen
class PlanTime:
    """The time of a plan.

    Attributes:
        algorithm: Name of the plan.
        time: Total [s].
        steps: Number of steps; ``None`` for a pipeline, whose number of pieces is free.
        latency: The part that does not depend on the size [s].
        transfers: Transfer time [s] of the slowest stage, by the kind of links that is the bottleneck; with the latency it
            sums to the total.
        overlapped: Transfer time [s] of each other stage.
    """

    algorithm: str
    time: float
    steps: float | None
    latency: float
    transfers: tuple[tuple[str, float], ...]
    overlapped: tuple[tuple[str, float], ...] = ()

    @property
    def transfer(self) -> float:
        """Transfer time [s] of the slowest stage."""
        return sum((seconds for _, seconds in self.transfers), 0.0)


def stage_of(name: str) -> Stage:
    """The stage that a link class belongs to."""
    return "chip" if name == INSIDE else "network" if name == NETWORK else "fabric"


def time_plan(plan: CollectivePlan, rates: LinkRates, size: float) -> PlanTime:
    """The time of a plan at given rates, for S = ``size`` [B]."""
    if not plan.phases:
        return PlanTime(plan.name, 0.0, 0.0, 0.0, ())
    latency, steps = 0.0, 0.0
    pipelined = False
    stages: dict[tuple[str, bool], dict[str, float]] = {}
    for phase in plan.phases:
        alpha = max(rates.latency(name) for name, _ in phase.loads)
        transfer, bottleneck = max((load * size / rates(name), name) for name, load in phase.loads)
        if phase.steps:
            latency += phase.steps * alpha
            steps += phase.steps
        else:
            pipelined = True
            latency += _waiting(transfer, phase.behind, alpha)
        # A flat algorithm can be limited by device memory within a chip: the time counts for those links.
        links = stage_of(bottleneck)
        of_stage = stages.setdefault((phase.stage, phase.far), {})
        of_stage[links] = of_stage.get(links, 0.0) + transfer
    transfers = {stage: sum(of_stage.values()) for stage, of_stage in stages.items()}
    slowest = max(transfers, key=transfers.__getitem__)
    others = {stage: max(transfers.get((stage, far), 0.0) for far in (False, True)) for stage, _ in transfers}
    return PlanTime(
        plan.name,
        latency + transfers[slowest],
        None if pipelined else steps,
        latency,
        tuple(stages[slowest].items()),
        tuple((stage, seconds) for stage, seconds in others.items() if stage != slowest[0]),
    )


def _waiting(transfer: float, behind: float, alpha: float) -> float:
    """Time [s] of a pipeline of m pieces besides its transfer: (m + behind) (alpha + transfer / m) for the best m.

    The optimum is m = sqrt(behind transfer / alpha); the better of the two neighbouring integers is taken.  Without
    latency nothing waits.
    """
    if not alpha:
        return 0.0
    best = math.sqrt(behind * transfer / alpha)
    pieces = (max(math.floor(best), 1.0), max(math.ceil(best), 1.0))
    return min((m + behind) * alpha + behind * transfer / m for m in pieces)


def fastest(candidates: Sequence[PlanTime], algorithm: str | None = None) -> PlanTime:
    """The fastest timing; with ``algorithm``, the fastest of that name, or else of those with a stage of that name.

    Raises:
        RefusalError: ``unknown-algorithm``: the group has no such algorithm.
    """
    # Among equally fast plans, the one with fewer steps comes first.
    ordered = sorted(candidates, key=lambda t: (t.time, math.inf if t.steps is None else t.steps))
    if algorithm is None:
        return ordered[0]
    name = ALIASES.get(algorithm.lower(), algorithm.lower())
    for timing in ordered:
        if timing.algorithm == name:
            return timing
    for timing in ordered:
        if name in timing.algorithm.split("+"):
            return timing
    raise RefusalError(
        "unknown-algorithm",
        f"no algorithm {algorithm!r} for this group",
        place="algorithm",
        hint=f"expected one of {', '.join(sorted({t.algorithm for t in ordered}))}",
    )
