"""What the collectives of a group of ranks take on the declared topology of a system, the fastest first.

The algorithms are those of ``trnspec.perf.collectives.algorithms``; here their loads meet rates and a size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.evaluation.result import RefusalError
from trnspec.perf.collectives import closed_forms
from trnspec.perf.collectives.algorithms import Phase, Plan, plans
from trnspec.perf.collectives.groups import Group, explicit_group, group
from trnspec.perf.collectives.link_rates import NETWORK, Rates
from trnspec.perf.collectives.routes import INSIDE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.collectives.algorithms import Stage
    from trnspec.perf.collectives.closed_forms import Kind
    from trnspec.perf.lowering.system import System

__all__ = [
    "ALIASES",
    "Group",
    "Launch",
    "Phase",
    "Plan",
    "Timing",
    "explicit_group",
    "fastest",
    "group",
    "plans",
    "timings",
]

ALIASES = {"mesh": "direct", "rdh": "recursive", "kangaring": "rings-both-ways"}
"""What Neuron's documents call some algorithms: for small, middle and large sizes within a server."""


@frozen(kw_only=True)
class Launch:
    """What measurements add to the ideal time; the defaults add nothing.

    Applied in one place, :func:`timings`: latency once for a call, step once for each step and on top of the latency
    that is published, efficiency as the share of every rate that is attained.

    Attributes:
        latency: In s, of a call.
        step: In s, of a step.
        efficiency: Above 0, at most 1.
    """

    latency: float = 0.0
    step: float = 0.0
    efficiency: float = 1.0


IDEAL = Launch()


@frozen
class Timing:
    """What a plan takes.

    Attributes:
        algorithm: The name of the plan.
        time: In s.
        steps: Steps; ``None`` where as many pieces as one likes follow each other.
        latency: In s, what does not depend on the size.
        transfers: In s by the stage that is waited for.
    """

    algorithm: str
    time: float
    steps: float | None
    latency: float
    transfers: tuple[tuple[str, float], ...]


def timings(system: System, of: Group, kind: Kind, size: float, launch: Launch = IDEAL) -> tuple[Timing, ...]:
    """What every algorithm takes, the fastest first.

    Args:
        system: Where.
        of: The group.
        kind: Which collective; a broadcast starts at the first rank, a send goes from the first to the last.
        size: S in B, as in ``trnspec.perf.collectives.closed_forms``.
        launch: What measurements add.

    Raises:
        RefusalError: ``unknown-figure``: a rate on the way is not published; ``unknown-topology``.
    """
    rates = Rates(system)
    found = [time_plan(plan, rates, size, launch) for plan in plans(system, of, kind)]
    return tuple(sorted(found, key=_order))


def _order(timing: Timing) -> tuple[float, float]:
    # Of equally fast ones that with fewer steps comes first.
    return timing.time, float("inf") if timing.steps is None else timing.steps


def stage_of(name: str) -> Stage:
    """The stage that a class of link belongs to."""
    return "chip" if name == INSIDE else "network" if name == NETWORK else "fabric"


def time_plan(plan: Plan, rates: Rates, size: float, launch: Launch = IDEAL) -> Timing:
    """What a plan takes with some rates; here alone a launch is applied."""
    if not plan.phases:
        return Timing(plan.name, 0.0, 0.0, 0.0, ())
    latency, steps = launch.latency, 0.0
    pieces = False
    transfers: dict[str, float] = {}
    for phase in plan.phases:
        alpha = rates.latency(phase.stage) + launch.step
        slowest, binding = max(((load * size / (rates(name) * launch.efficiency)), name) for name, load in phase.loads)
        if phase.steps:
            latency += phase.steps * alpha
            steps += phase.steps
        else:
            pieces = True
            latency += closed_forms.pipelined_broadcast(slowest, phase.behind + 2.0, alpha, 1.0) - slowest
        # A flat algorithm can wait for the memory of a chip; what it waits for takes the time.
        at = stage_of(binding)
        transfers[at] = transfers.get(at, 0.0) + slowest
    time = latency + sum(transfers.values())
    return Timing(plan.name, time, None if pieces else steps, latency, tuple(transfers.items()))


def fastest(found: Sequence[Timing], algorithm: str | None = None) -> Timing:
    """The fastest, or the fastest of those that a name names: all of its stages, or one of them.

    Raises:
        RefusalError: ``unknown-algorithm``: the group has no such algorithm.
    """
    ordered = sorted(found, key=_order)
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
        f"no algorithm {algorithm} for this group",
        place="algorithm",
        hint=f"there are {', '.join(sorted({t.algorithm for t in ordered}))}",
    )
