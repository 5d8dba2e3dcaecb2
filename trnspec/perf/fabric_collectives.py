"""Collectives of a group of ranks on the declared topology of a system: which algorithms there are, and their times.

Every algorithm is a schedule whose sends are laid on the links of the topology, so that what shares a link shares its
rate; one phase ends before the next begins.  All groups like the one that is asked about work at the same time, as
they do when a model is split; an explicit list of ranks works alone.

Stages, from the inside: the ranks of a chip exchange through their memory, the chips of a fabric over its links, the
fabrics over the network.  A flat algorithm takes all ranks of a fabric as one stage.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from trnspec.evaluation import RefusalError
from trnspec.perf import collectives, ops
from trnspec.perf.fabric_groups import Group, group, listed, routes_of
from trnspec.perf.fabric_rates import NETWORK, Rates
from trnspec.perf.fabric_routes import INSIDE, Routes
from trnspec.perf.fabric_schedules import PASSES, SCHEDULES, possible
from trnspec.topology.shapes import GridShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.perf.collectives import Kind
    from trnspec.perf.fabric_routes import Send
    from trnspec.perf.fabric_schedules import Schedule
    from trnspec.perf.system import System

__all__ = ["ALIASES", "Group", "Launch", "Phase", "Plan", "Timing", "chosen", "group", "listed", "plans", "timings"]

ALIASES = {"mesh": "direct", "rdh": "recursive", "kangaring": "rings-both-ways"}
"""What Neuron's documents call some algorithms: for small, middle and large sizes within a server."""

Stage = Literal["chip", "fabric", "network"]


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
class Phase:
    """Some equal steps of an algorithm.

    Attributes:
        stage: Where.
        steps: How many.
        loads: By class of link what the busiest one carries, as a share of the buffer, all steps together.
        behind: Members that wait for the first piece in a pipeline; 0 where nothing is cut in pieces.
    """

    stage: Stage
    steps: float
    loads: tuple[tuple[str, float], ...]
    behind: float = 0.0


@frozen
class Plan:
    """An algorithm for one group, free of sizes and rates.

    Attributes:
        name: The algorithms of its stages, from the inside, joined by ``+``.
        phases: What happens, in this order or, for an all-gather and a broadcast, backwards.
    """

    name: str
    phases: tuple[Phase, ...]


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


def plans(system: System, of: Group, kind: Kind) -> tuple[Plan, ...]:
    """All algorithms for a group.

    Raises:
        RefusalError: ``unknown-topology``: the group spans chips whose links nobody declared.
    """
    if len(of.ranks) == 1:
        return (Plan("none", ()),)
    routes = routes_of(system, of)
    if kind == "send" and of.units > 1:
        return (Plan("send", (Phase("network", 1.0, ((NETWORK, 1.0),)),)),)
    inner = [Plan("", ())] if len(of.inside) == 1 else list(_within(routes, of, kind, Rates(system)))
    if of.units == 1:
        return tuple(inner)
    outer = [_network(kind, float(of.units), float(len(of.inside)), name) for name in _network_names(kind, of.units)]
    return tuple(Plan("+".join(filter(None, (a.name, b.name))), (*a.phases, *b.phases)) for a in inner for b in outer)


def _network_names(kind: Kind, units: int) -> tuple[str, ...]:
    if kind == "broadcast":
        return ("tree",)
    return tuple(name for name in ("ring", "recursive", "direct") if name != "recursive" or not units & (units - 1))


def _network(kind: Kind, units: float, inside: float, name: str) -> Plan:
    if kind == "broadcast":
        steps = ops.steps(units)
        return Plan(name, (Phase("network", steps, ((NETWORK, steps),)),))
    steps = {"ring": units - 1.0, "recursive": ops.steps(units), "direct": 1.0}[name]
    share = (units - 1.0) / units
    if kind in PASSES:
        share /= inside
    elif name == "ring":
        share = (units - 1.0) / 2.0
    elif name == "recursive":
        share = steps / 2.0
    twice = 2.0 if kind == "all-reduce" else 1.0
    return Plan(name, (Phase("network", twice * steps, ((NETWORK, twice * share),)),))


def _within(routes: Routes, of: Group, kind: Kind, rates: Rates) -> Iterator[Plan]:
    """The algorithms within one fabric."""
    per_chip = routes.per_chip
    chips = [tuple(dict.fromkeys(r // per_chip for r in s)) for s in of.siblings]
    c, n = len(chips[0]), len(of.inside)
    # Where groups lie differently on their chips, the slowest of them decides, and only flat algorithms are laid.
    stage: Stage = "chip" if max(map(len, chips)) == 1 else "fabric"
    for name in possible(kind, n):
        each = [_ordered(routes, s, per_chip, name) for s in of.siblings]
        yield Plan(name, _laid(routes, SCHEDULES[name](kind, n), each, stage, 1.0, ranks=True))
    if stage == "chip" or kind == "send":
        return
    if kind in PASSES:
        yield from _lanes(routes, of.siblings, per_chip, kind, "")
    alike = all(set(Counter(r // per_chip for r in s).values()) == {n // c} for s in of.siblings)
    if not alike or n % c:
        return
    before = _chip(kind, n // c, per_chip) if n > c else Plan("", ())
    if n > c:
        # All ranks of a chip together are one member: each brings a buffer of its own to an all-to-all.
        more = float(n // c) if kind == "all-to-all" else 1.0
        for name in possible(kind, c):
            each = [_ordered(routes, s, 1, name) for s in chips]
            phases = _laid(routes, SCHEDULES[name](kind, c), each, "fabric", more, ranks=False)
            yield Plan(f"{before.name}+{name}", (*before.phases, *phases))
        if kind in PASSES:
            for plan in _lanes(routes, chips, 1, kind, before.name):
                yield Plan(plan.name, (*before.phases, *plan.phases))
    torus = _torus(routes, chips, rates) if kind in PASSES else ()
    if torus:
        name = f"{before.name}+torus" if before.name else "torus"
        yield Plan(name, (*before.phases, *torus * (2 if kind == "all-reduce" else 1)))


def _chip(kind: Kind, m: int, per_chip: int) -> Plan:
    """The exchange among the ranks of one chip that goes before, or after, that of the chips."""
    name = "tree" if kind == "broadcast" else "direct"
    phases = _laid(Routes(None, per_chip), SCHEDULES[name](kind, m), [tuple(range(m))], "chip", 1.0, ranks=True)
    return Plan(name, phases)


def _ordered(routes: Routes, members: tuple[int, ...], per_chip: int, name: str) -> tuple[int, ...]:
    """The members in the order in which an algorithm does best: along a round, or by bits."""
    chips = tuple(dict.fromkeys(m // per_chip for m in members))
    if routes.shape is None or len(chips) == 1:
        return members
    order = chips
    if name in ("ring", "bidirectional-ring", "pipelined"):
        order = next(iter(routes.around(chips)), chips)
        start = order.index(chips[0])
        order = order[start:] + order[:start]
    elif name == "recursive":
        order = routes.by_bits(chips)
    at = {chip: i for i, chip in enumerate(order)}
    return tuple(sorted(members, key=lambda m: (at[m // per_chip], m)))


def _laid(
    routes: Routes, schedule: Schedule, groups: Sequence[tuple[int, ...]], stage: Stage, times: float, *, ranks: bool
) -> tuple[Phase, ...]:
    """The phases of a schedule for all groups at once; an all-reduce is laid once and goes there and back."""
    made: dict[int, Phase] = {}
    phases = []
    for steps, sends in schedule:
        if id(sends) not in made:
            placed: list[Send] = [(g[i], g[j], share * times) for g in groups for i, j, share in sends]
            loads = routes.rank_loads(placed) if ranks else routes.loads(placed)
            # No step of its own: a pipeline along the group.
            behind = max(len(groups[0]) - 2.0, 0.0) if not steps else 0.0
            made[id(sends)] = Phase(stage, steps, tuple(sorted(loads.items())), behind)
        phases.append(made[id(sends)])
    return tuple(phases)


def _lanes(routes: Routes, groups: Sequence[tuple[int, ...]], per_chip: int, kind: Kind, before: str) -> Iterator[Plan]:
    """Both ways round on all rounds through the chips that share no link, each with an equal part of the buffer."""
    n = len(groups[0])
    rounds = [routes.around(tuple(dict.fromkeys(m // per_chip for m in g))) for g in groups]
    lanes = min(map(len, rounds))
    if lanes < 2:
        return
    (_, sends), *_ = SCHEDULES["bidirectional-ring"]("all-gather", n)
    placed: list[Send] = []
    for members, each in zip(groups, rounds, strict=True):
        for lane in each[:lanes]:
            at = {chip: i for i, chip in enumerate(lane)}
            order = sorted(members, key=lambda m, at=at: (at[m // per_chip], m))  # type: ignore[misc]  # bound now
            placed += [(order[i], order[j], share / lanes) for i, j, share in sends]
    loads = routes.loads(placed) if before else routes.rank_loads(placed)
    phase = Phase("fabric", float(n // 2), tuple(sorted(loads.items())))
    name = f"{before}+rings-both-ways" if before else "rings-both-ways"
    yield Plan(name, (phase,) * (2 if kind == "all-reduce" else 1))


def _torus(routes: Routes, chips: list[tuple[int, ...]], rates: Rates) -> tuple[Phase, ...]:
    """One pass of :func:`trnspec.perf.collectives.torus_all_gather`; none where the chips are no torus."""
    found = routes.box(chips[0])
    if found is None:
        return ()
    assert isinstance(routes.shape, GridShape)
    used = []
    for number, (axis, size, places) in enumerate(zip(routes.shape.axes, *found, strict=True)):
        near = size == 2 and (places[1] - places[0] == 1 or (axis.wrap and places[1] - places[0] == axis.size - 1))
        if size > 1 and not near and not (axis.wrap and size == axis.size):
            return ()
        if size > 1:
            used.append((f"axis{number}", float(size)))
    if len(used) < 2:
        return ()
    sharing = float(sum(set(s) == set(chips[0]) for s in chips))
    sizes = tuple(size for _, size in used)
    left = list(collectives.torus_shares(sizes, tuple(rates(name) for name, _ in used)))
    phases = []
    for step in range(len(used)):
        loads = {}
        for part in range(len(used)):
            name, k = used[(part + step) % len(used)]
            loads[name] = (k - 1.0) / k * left[part] * sharing / (2.0 if k > 2.0 else 1.0)
            left[part] /= k
        phases.append(Phase("fabric", max(float(k // 2) for k in sizes), tuple(sorted(loads.items()))))
    return tuple(phases)


def timings(system: System, of: Group, kind: Kind, size: float, launch: Launch = IDEAL) -> tuple[Timing, ...]:
    """What every algorithm takes, the fastest first.

    Args:
        system: Where.
        of: The group.
        kind: Which collective; a broadcast starts at the first rank, a send goes from the first to the last.
        size: S in B, as in ``trnspec.perf.collectives``.
        launch: What measurements add.

    Raises:
        RefusalError: ``unknown-figure``: a rate on the way is not published; ``unknown-topology``.
    """
    rates = Rates(system)
    found = [timed(plan, rates, size, launch) for plan in plans(system, of, kind)]
    return tuple(sorted(found, key=_order))


def _order(timing: Timing) -> tuple[float, float]:
    # Of equally fast ones that with fewer steps comes first.
    return timing.time, float("inf") if timing.steps is None else timing.steps


def stage_of(name: str) -> Stage:
    """The stage that a class of link belongs to."""
    return "chip" if name == INSIDE else "network" if name == NETWORK else "fabric"


def timed(plan: Plan, rates: Rates, size: float, launch: Launch = IDEAL) -> Timing:
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
            latency += collectives.pipelined_broadcast(slowest, phase.behind + 2.0, alpha, 1.0) - slowest
        # A flat algorithm can wait for the memory of a chip; what it waits for takes the time.
        at = stage_of(binding)
        transfers[at] = transfers.get(at, 0.0) + slowest
    time = latency + sum(transfers.values())
    return Timing(plan.name, time, None if pieces else steps, latency, tuple(transfers.items()))


def chosen(found: Sequence[Timing], algorithm: str | None = None) -> Timing:
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
