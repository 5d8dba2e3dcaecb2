"""Algorithms for collectives of a group of ranks on the declared topology of a system, with their link loads.

Every algorithm is a schedule whose sends are mapped to the links of the topology, so that sends on the same link share its
rate; a phase ends before the next begins.  All groups that tile the system like the given one work at the same time, as
they do under tensor or data parallelism; an explicit list of ranks works alone.

Stages, innermost first: the ranks of a chip exchange through device memory, the chips of a fabric over its links, the
fabrics over the network.  A flat algorithm treats all ranks of a fabric as one stage.  Where switches reduce and multicast
(NVLink SHARP in a fabric, SHARP in a network), ``in-network`` is an algorithm of an all-reduce and of a broadcast.

The buffer of one rank, in a broadcast or a send, is sent whole (``tree``, ``pipelined``, ``pipelined-both-ways``,
``direct-one-step``, ``send``) or scattered and gathered by one of the other algorithms, so that all ranks of a fabric use
the network.  A send keeps those sends of a broadcast that lead to the last rank.  A broadcast is an all-reduce in which all
other ranks have zeros, so every algorithm of an all-reduce is available to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from attrs import evolve, frozen

from trnspec.errors import RefusalError
from trnspec.perf import ops
from trnspec.perf.collectives.groups import NETWORK, Group, LinkRates, fabric_level, level_named, routes_of
from trnspec.perf.collectives.routes import Routes, Send
from trnspec.perf.collectives.schedules import (
    SCATTERS,
    SCHEDULES,
    Kind,
    Schedule,
    chains,
    restricted_to,
    reversed_schedule,
    schedule_names,
)
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.topology.shapes import GridShape

Stage = Literal["chip", "fabric", "network"]
Members = tuple[int, ...]


@frozen
class Phase:
    """Several equal steps of an algorithm.

    Attributes:
        stage: The stage.
        steps: Number of steps.
        loads: For each link class the load of its busiest link, as a share of the buffer, over all steps.
        behind: Members that wait for the first piece of a pipeline; 0 where the buffer is not cut into pieces.
        far: Whether it takes place in another fabric than the phases of its stage that are not far.
    """

    stage: Stage
    steps: float
    loads: tuple[tuple[str, float], ...]
    behind: float = 0.0
    far: bool = False


@frozen
class CollectivePlan:
    """An algorithm for one group, independent of sizes and rates.

    Attributes:
        name: The algorithms of its stages, innermost first, joined by ``+``.
        phases: The phases.  Both passes of a stage are adjacent, although outer stages run between them.  An all-gather
            has only the pass inwards, and an unscattered buffer goes from the outside inwards.
        parts: Number of ranks of a fabric that hold different parts of the buffer between the two passes.
    """

    name: str
    phases: tuple[Phase, ...]
    parts: float = 1.0

    def then(self, outer: CollectivePlan) -> CollectivePlan:
        """Add an outer plan around this one."""
        name = "+".join(filter(None, (self.name, outer.name)))
        return CollectivePlan(name, (*self.phases, *outer.phases), self.parts * outer.parts)


def plans(system: LoweredSystem, of: Group, kind: Kind) -> tuple[CollectivePlan, ...]:
    """All algorithms for a group.

    Raises:
        RefusalError: ``unknown-topology``: the group spans chips whose links are not declared.
    """
    if len(of.ranks) == 1:
        return (CollectivePlan("none", ()),)
    routes = routes_of(system, of)
    n = float(len(of.inside))
    inner = [CollectivePlan("", ())] if n == 1 else list(_within(routes, of, kind, LinkRates(system)))
    if n > 1:
        inner += _reduced_in_fabric(system, routes, of, kind)
    if of.units == 1:
        return tuple(inner)
    if kind == "send":
        # Either unscattered from the first rank to the last, or one part per rank.
        inner = [CollectivePlan("", ()), *(_from_fabric_to_fabric(plan) for plan in inner if plan.parts > 1.0)]
    return tuple(
        plan.then(_network(kind, float(of.units), plan.parts, name))
        for plan in inner
        for name in _network_names(system, kind, of.units)
    )


def _network_names(system: LoweredSystem, kind: Kind, units: int) -> tuple[str, ...]:
    if kind == "send":
        return ("send",)
    level = level_named(system, NETWORK)
    reduced = ("in-network",) if level is not None and level.reduces and kind in IN_NETWORK else ()
    if kind == "broadcast":
        # Scatters over the network send equally much; the direct one has the fewest steps.
        return ("tree", "pipelined", "direct", *reduced)
    names = (name for name in ("ring", "recursive", "direct") if name != "recursive" or not units & (units - 1))
    return (*names, *reduced)


def _from_fabric_to_fabric(plan: CollectivePlan) -> CollectivePlan:
    """A send whose second pass at every stage, the gather, takes place in the fabric of the last rank."""
    phases: list[Phase] = []
    for stage in dict.fromkeys(phase.stage for phase in plan.phases):
        own = [phase for phase in plan.phases if phase.stage == stage]
        phases += [evolve(phase, far=2 * i >= len(own)) for i, phase in enumerate(own)]
    return evolve(plan, phases=tuple(phases))


IN_NETWORK: tuple[Kind, ...] = ("all-reduce", "broadcast")
"""Collectives that are faster where switches reduce and multicast."""


def _reduced_in_fabric(system: LoweredSystem, routes: Routes, of: Group, kind: Kind) -> Iterator[CollectivePlan]:
    """Reduction and multicast by the switches of a fabric.

    All-reduce: the switches add up one part for each chip, which sends the sum back to be multicast.  A chip sends its
    buffer once and its part of the sum, 1 + 1/n in all, in two steps.  Broadcast: the first chip sends the buffer once, or over
    several fabrics a part to every chip, which multicast them in each.
    """
    level = fabric_level(system)
    chips = [tuple(dict.fromkeys(rank // routes.per_chip for rank in members)) for members in of.siblings]
    n = len(chips[0])
    # All ranks of a chip form one member; they must be equally many on each.
    each = len(of.inside) // n
    counts = {tuple(Counter(rank // routes.per_chip for rank in members).values()) for members in of.siblings}
    if level is None or not level.reduces or kind not in IN_NETWORK or n < 2 or counts != {(each,) * n}:
        return
    sharing = float(max(Counter(chip for group in chips for chip in group).values()))
    if kind == "broadcast" and of.units == 1:
        plan = CollectivePlan("in-network", (Phase("fabric", 1.0, (("injection", sharing),)),))
    elif kind == "broadcast":
        plan = CollectivePlan("in-network", (Phase("fabric", 2.0, (("injection", sharing),)),), float(n))
    else:
        plan = CollectivePlan(
            "in-network", (Phase("fabric", 2.0, (("injection", (1.0 + 1.0 / n) * sharing),)),), float(n)
        )
    if each > 1:
        plan = _stage(Routes(None, routes.per_chip), [tuple(range(each))], kind, "direct", "chip").then(plan)
    yield plan


def _network(kind: Kind, units: float, parts: float, name: str) -> CollectivePlan:
    """The stage between fabrics: each rank carries one of ``parts`` parts; in an all-to-all its whole buffer."""
    if name == "send":
        return CollectivePlan(name, (Phase("network", 1.0, ((NETWORK, 1.0 / parts),)),))
    if name == "pipelined":
        return CollectivePlan(name, (Phase("network", 0.0, ((NETWORK, 1.0 / parts),), units - 2.0),))
    if name == "in-network":
        # Switches reduce on the way up and multicast on the way down: each part is sent once and received once.
        return CollectivePlan(
            name, (Phase("network", 2.0 if kind == "all-reduce" else 1.0, ((NETWORK, 1.0 / parts),)),)
        )
    steps = {"ring": units - 1.0, "recursive": ops.steps(units), "tree": ops.steps(units), "direct": 1.0}[name]
    if name == "tree":
        return CollectivePlan(name, (Phase("network", steps, ((NETWORK, steps / parts),)),))
    share = (units - 1.0) / units
    if kind != "all-to-all":
        share /= parts
    elif name == "ring":
        share = (units - 1.0) / 2.0
    elif name == "recursive":
        share = steps / 2.0
    passes = float(_passes(kind))
    return CollectivePlan(name, (Phase("network", passes * steps, ((NETWORK, passes * share),)),))


def _passes(kind: Kind) -> int:
    """Passes over the buffer: scatter and gather, or only one of them."""
    return 2 if kind in ("all-reduce", "broadcast", "send") else 1


def _within(routes: Routes, of: Group, kind: Kind, rates: LinkRates) -> Iterator[CollectivePlan]:
    """The algorithms within one fabric."""
    per_chip = routes.per_chip
    chips = [tuple(dict.fromkeys(rank // per_chip for rank in members)) for members in of.siblings]
    chip_count, n = len(chips[0]), len(of.inside)
    # Where groups are placed differently on their chips, the slowest counts, and only flat algorithms are used.
    stage: Stage = "chip" if max(map(len, chips)) == 1 else "fabric"
    for name in schedule_names(kind, n):
        yield _stage(routes, of.siblings, kind, name, stage)
    if stage == "chip":
        return
    if kind != "all-to-all":
        yield from _lanes(routes, of.siblings, kind)
    equal_shares = all(
        set(Counter(rank // per_chip for rank in members).values()) == {n // chip_count} for members in of.siblings
    )
    # An explicit list of ranks can start and end on the same chip; then no chip sends anything.
    distinct_ends = all(
        members[-1] // per_chip == group_chips[-1] for members, group_chips in zip(of.siblings, chips, strict=True)
    )
    if not equal_shares or n % chip_count or (kind == "send" and not distinct_ends):
        return
    between_chips = evolve(routes, per_chip=1)
    if n == chip_count:
        yield from _torus(routes, chips, kind, rates)
        return
    on_chip = _stage(Routes(None, per_chip), [tuple(range(n // chip_count))], kind, "direct", "chip")
    # All ranks of a chip form one member; in an all-to-all each contributes a buffer of its own.
    buffers = float(n // chip_count) if kind == "all-to-all" else 1.0
    for name in schedule_names(kind, chip_count):
        yield on_chip.then(_stage(between_chips, chips, kind, name, "fabric", buffers))
    if kind != "all-to-all":
        for plan in (*_lanes(between_chips, chips, kind), *_torus(routes, chips, kind, rates)):
            yield on_chip.then(plan)


def _stage(
    routes: Routes, groups: Sequence[Members], kind: Kind, name: str, stage: Stage, buffers: float = 1.0
) -> CollectivePlan:
    """One stage with one schedule."""
    n = len(groups[0])
    # Among all members no order matters, and the number of sends grows with the square.
    every = {"direct": _passes(kind), "direct-one-step": 1}.get(name, 0) if kind not in ("broadcast", "send") else 0
    loads = routes.exchange(groups, (1.0 if name == "direct-one-step" else 1.0 / n) * buffers) if every else None
    if loads is not None:
        return CollectivePlan(name, (Phase(stage, 1.0, tuple(sorted(loads.items()))),) * every, _parts(name, n))
    if every:
        _limit(len(groups) * n * n, f"{name} {kind}", n)
    orders = [_ordered(routes, g, name, g[0]) for g in groups]

    def place(schedule: Schedule, members: Sequence[Members] = orders) -> tuple[Phase, ...]:
        return _place(routes, [schedule] * len(groups), members, stage, buffers)

    if name not in SCATTERS:
        if kind == "send" and name != "send":
            broadcast = SCHEDULES[name]("broadcast", n)
            pruned = [restricted_to(broadcast, order.index(g[-1])) for order, g in zip(orders, groups, strict=True)]
            return CollectivePlan(name, _place(routes, pruned, orders, stage, buffers))
        return CollectivePlan(name, place(SCHEDULES[name](kind, n)))
    if kind == "broadcast":
        gather = _stage(routes, groups, "all-gather", name, stage, buffers)
        return CollectivePlan(name, place(SCATTERS[name](n)) + gather.phases, float(n))
    if kind == "send":
        gather_orders = [_ordered(routes, g, name, g[-1]) for g in groups]
        return CollectivePlan(
            name, place(SCATTERS[name](n)) + place(reversed_schedule(SCATTERS[name](n)), gather_orders), float(n)
        )
    return CollectivePlan(name, place(SCHEDULES[name](kind, n)), float(n))


def _parts(name: str, n: int) -> float:
    return float(n) if name in SCATTERS else 1.0


def _limit(sends: int, what: str, n: int) -> None:
    """Refuses groups that would take too long.

    Raises:
        RefusalError: ``too-large``.
    """
    if sends > MOST_SENDS:
        raise RefusalError(
            "too-large",
            f"{what} among {n:,} ranks that are not placed evenly around a torus: {sends:,} sends; the limit is {MOST_SENDS:,}",
            place="ranks",
            hint="use whole dimensions of the torus, or fewer ranks",
        )


MOST_SENDS = 2_000_000
"""Sends of one algorithm that are placed one by one."""


def _ordered(routes: Routes, members: Members, name: str, first: int) -> Members:
    """The members in the order that suits an algorithm, along a ring or by bits, starting with ``first``."""
    chips = tuple(dict.fromkeys(m // routes.per_chip for m in members))
    order = chips
    if routes.shape is None or len(chips) == 1:
        return _circle(members, first)
    if name in ("ring", "bidirectional-ring", "pipelined"):
        order = next(iter(routes.rings_through(chips)), chips)
    elif name == "recursive":
        order = routes.by_bits(chips)
    ordered = _by_chip_order(order, members, routes.per_chip)
    if name != "recursive":
        return _circle(ordered, first)
    # XOR keeps pairs that differ in one bit.
    start = ordered.index(first)
    return tuple(ordered[i ^ start] for i in range(len(ordered)))


def _by_chip_order(chips: Members, members: Members, per_chip: int) -> Members:
    """The members in the order of their chips."""
    position = {chip: i for i, chip in enumerate(chips)}
    return tuple(sorted(members, key=lambda m: position[m // per_chip]))


def _circle(members: Members, first: int) -> Members:
    start = members.index(first)
    return members[start:] + members[:start]


def _place(
    routes: Routes, schedules: Sequence[Schedule], groups: Sequence[Members], stage: Stage, buffers: float
) -> tuple[Phase, ...]:
    """The phases of all groups at once, each by its schedule."""
    phases = []
    for by_group in zip(*schedules, strict=True):
        steps = by_group[0][0]
        placed: list[Send] = [
            (g[i], g[j], share * buffers)
            for g, (_, group_sends) in zip(groups, by_group, strict=True)
            for i, j, share in group_sends
        ]
        if placed:
            # A phase without steps is a pipeline along the group.
            behind = max(len(groups[0]) - 2.0, 0.0) if not steps else 0.0
            phases.append(Phase(stage, steps, tuple(sorted(routes.rank_loads(placed).items())), behind))
    return tuple(phases)


def _lanes(routes: Routes, groups: Sequence[Members], kind: Kind) -> Iterator[CollectivePlan]:
    """Bidirectional rings on all edge-disjoint rings through the chips, each with an equal part of the buffer."""
    n = len(groups[0])
    rings = [routes.rings_through(tuple(dict.fromkeys(m // routes.per_chip for m in g))) for g in groups]
    lanes = min(map(len, rings))
    if not lanes:
        return

    def phase(schedule: Callable[[int], Schedule], first: int = 0) -> Phase:
        rank_sends: list[Send] = []
        steps = 0.0
        for members, group_rings in zip(groups, rings, strict=True):
            for ring in group_rings[:lanes]:
                order = _circle(_by_chip_order(ring, members, routes.per_chip), members[first])
                ((steps, sends),) = schedule(order.index(members[-1]))
                rank_sends += [(order[i], order[j], share / lanes) for i, j, share in sends]
        loads = tuple(sorted(routes.rank_loads(rank_sends).items()))
        return Phase("fabric", steps, loads, 0.0 if steps else n - 2.0)

    if kind in ("broadcast", "send"):
        yield CollectivePlan("pipelined-both-ways", (phase(lambda last: chains(n, last if kind == "send" else None)),))
    if lanes < 2:
        return
    scatter, all_gather = SCATTERS["bidirectional-ring"](n), SCHEDULES["bidirectional-ring"]("all-gather", n)
    if kind in ("broadcast", "send"):
        gather = phase(lambda _: all_gather) if kind == "broadcast" else phase(lambda _: reversed_schedule(scatter), -1)
        phases: tuple[Phase, ...] = (phase(lambda _: scatter), gather)
    else:
        phases = (phase(lambda _: all_gather),) * _passes(kind)
    yield CollectivePlan("rings-both-ways", phases, float(n))


def _torus(routes: Routes, chips: list[Members], kind: Kind, rates: LinkRates) -> Iterator[CollectivePlan]:
    """All axes of a torus at once, each with its part of the buffer (Sack and Gropp 2015), if the chips are a torus."""
    if kind == "all-to-all":
        return
    axes_of_groups = {_rings(routes, group) for group in chips}
    axes = axes_of_groups.pop()
    # Groups that are placed differently have no phases in common.
    if axes_of_groups or len(axes) < 2:
        return
    # Groups may overlap without having the same chips; then a link carries at most as many as a chip is in.
    sharing = float(max(Counter(chip for group in chips for chip in group).values()))
    sizes = tuple(size for _, size in axes)
    # The share that starts on each axis, such that all finish the first phase together; an axis of two has one link.
    weights = [k / (k - 1.0) * (min(k - 1.0, 2.0) * rates(name)) for name, k in axes]
    shares = [weight / sum(weights) for weight in weights]
    phases = []
    for step in range(len(axes)):
        loads = {}
        for part in range(len(axes)):
            name, k = axes[(part + step) % len(axes)]
            loads[name] = (k - 1.0) / k * shares[part] * sharing / (2.0 if k > 2.0 else 1.0)
            shares[part] /= k
        phases.append(Phase("fabric", max(float(k // 2) for k in sizes), tuple(sorted(loads.items()))))
    yield CollectivePlan("torus", tuple(phases) * _passes(kind), float(len(chips[0])))


def _rings(routes: Routes, chips: Members) -> tuple[tuple[str, float], ...]:
    """The axes along which some chips are whole rings or pairs, with their extents; empty if they are not such a box."""
    box = routes.box(chips)
    if box is None:
        return ()
    assert isinstance(routes.shape, GridShape)
    axes = []
    for number, (axis, size, places) in enumerate(zip(routes.shape.axes, *box, strict=True)):
        adjacent = size == 2 and (places[1] - places[0] == 1 or (axis.wrap and places[1] - places[0] == axis.size - 1))
        if size > 1 and not adjacent and not (axis.wrap and size == axis.size):
            return ()
        if size > 1:
            axes.append((f"axis{number}", float(size)))
    return tuple(axes)
