"""Collectives of a group of ranks on the declared topology of a system: which algorithms there are, and their loads.

Every algorithm is a schedule whose sends are laid on the links of the topology, so that what shares a link shares its
rate; one phase ends before the next begins.  All groups like the one that is asked about work at the same time, as
they do when a model is split; an explicit list of ranks works alone.

Stages, from the inside: the ranks of a chip exchange through their memory, the chips of a fabric over its links, the
fabrics over the network.  A flat algorithm takes all ranks of a fabric as one stage.

What one rank has, a broadcast or a send, goes whole (``tree``, ``pipelined``, ``pipelined-both-ways``,
``direct-one-step``, ``send``) or by any of the others as an all-reduce does: it is scattered on the way out, so that all
ranks of a fabric use the network, and gathered on the way back.  A send is what of a broadcast leads to the last rank.  An all-reduce in which all others have zeros is a broadcast, so none may be slower.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from attrs import evolve, frozen

from trnspec.perf import ops
from trnspec.perf.collectives import closed_forms
from trnspec.perf.collectives.groups import routes_of
from trnspec.perf.collectives.link_rates import NETWORK, Rates
from trnspec.perf.collectives.routes import Routes
from trnspec.perf.collectives.schedules import SCATTERS, SCHEDULES, backwards, chains, possible, towards
from trnspec.topology.shapes import GridShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trnspec.perf.collectives.closed_forms import Kind
    from trnspec.perf.collectives.groups import Group
    from trnspec.perf.collectives.routes import Send
    from trnspec.perf.collectives.schedules import Schedule
    from trnspec.perf.lowering.system import System

Stage = Literal["chip", "fabric", "network"]
Members = tuple[int, ...]


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
        phases: What happens.  Of a stage the way out and the way back stand together; what lies further out happens
            between them.  An all-gather goes only back, and what is sent whole goes from the outside inwards.
        parts: Ranks of a fabric that have different parts of the buffer between the way out and the way back.
    """

    name: str
    phases: tuple[Phase, ...]
    parts: float = 1.0

    def then(self, outer: Plan) -> Plan:
        """This one with another around it."""
        name = "+".join(filter(None, (self.name, outer.name)))
        return Plan(name, (*self.phases, *outer.phases), self.parts * outer.parts)


def plans(system: System, of: Group, kind: Kind) -> tuple[Plan, ...]:
    """All algorithms for a group.

    Raises:
        RefusalError: ``unknown-topology``: the group spans chips whose links nobody declared.
    """
    if len(of.ranks) == 1:
        return (Plan("none", ()),)
    routes = routes_of(system, of)
    n = float(len(of.inside))
    inner = [Plan("", ())] if n == 1 else list(_within(routes, of, kind, Rates(system)))
    if of.units == 1:
        return tuple(inner)
    if kind == "send":
        # Whole from the first rank to the last, or a part by every rank.
        inner = [Plan("", ()), *(plan for plan in inner if plan.parts > 1.0)]
    return tuple(
        plan.then(_network(kind, float(of.units), plan.parts, name))
        for plan in inner
        for name in _network_names(kind, of.units)
    )


def _network_names(kind: Kind, units: int) -> tuple[str, ...]:
    if kind == "send":
        return ("send",)
    if kind == "broadcast":
        # Of scatters over the network the direct one has the fewest steps, and the others send as much.
        return ("tree", "pipelined", "direct")
    return tuple(name for name in ("ring", "recursive", "direct") if name != "recursive" or not units & (units - 1))


def _network(kind: Kind, units: float, parts: float, name: str) -> Plan:
    """The stage between fabrics, of which each rank carries one of so many parts; of an all-to-all all that it has."""
    if name == "send":
        return Plan(name, (Phase("network", 1.0, ((NETWORK, 1.0 / parts),)),))
    if name == "pipelined":
        return Plan(name, (Phase("network", 0.0, ((NETWORK, 1.0 / parts),), units - 2.0),))
    steps = {"ring": units - 1.0, "recursive": ops.steps(units), "tree": ops.steps(units), "direct": 1.0}[name]
    if name == "tree":
        return Plan(name, (Phase("network", steps, ((NETWORK, steps / parts),)),))
    share = (units - 1.0) / units
    if kind != "all-to-all":
        share /= parts
    elif name == "ring":
        share = (units - 1.0) / 2.0
    elif name == "recursive":
        share = steps / 2.0
    twice = float(_passes(kind))
    return Plan(name, (Phase("network", twice * steps, ((NETWORK, twice * share),)),))


def _passes(kind: Kind) -> int:
    """The way out and the way back: how many of the two a collective takes."""
    return 2 if kind in ("all-reduce", "broadcast", "send") else 1


def _within(routes: Routes, of: Group, kind: Kind, rates: Rates) -> Iterator[Plan]:
    """The algorithms within one fabric."""
    per_chip = routes.per_chip
    chips = [tuple(dict.fromkeys(r // per_chip for r in s)) for s in of.siblings]
    c, n = len(chips[0]), len(of.inside)
    # Where groups lie differently on their chips, the slowest of them decides, and only flat algorithms are laid.
    stage: Stage = "chip" if max(map(len, chips)) == 1 else "fabric"
    for name in possible(kind, n):
        yield _stage(routes, of.siblings, kind, name, stage)
    if stage == "chip":
        return
    if kind != "all-to-all":
        yield from _lanes(routes, of.siblings, kind)
    alike = all(set(Counter(r // per_chip for r in s).values()) == {n // c} for s in of.siblings)
    # A list of ranks can begin and end on the same chip, between whose ranks no chip sends anything.
    apart = all(s[-1] // per_chip == between[-1] for s, between in zip(of.siblings, chips, strict=True))
    if not alike or n % c or (kind == "send" and not apart):
        return
    between_chips = evolve(routes, per_chip=1)
    if n == c:
        yield from _torus(routes, chips, kind, rates)
        return
    before = _stage(Routes(None, per_chip), [tuple(range(n // c))], kind, "direct", "chip")
    # All ranks of a chip together are one member: each brings a buffer of its own to an all-to-all.
    more = float(n // c) if kind == "all-to-all" else 1.0
    for name in possible(kind, c):
        yield before.then(_stage(between_chips, chips, kind, name, "fabric", more))
    if kind != "all-to-all":
        for plan in (*_lanes(between_chips, chips, kind), *_torus(routes, chips, kind, rates)):
            yield before.then(plan)


def _stage(routes: Routes, groups: Sequence[Members], kind: Kind, name: str, stage: Stage, times: float = 1.0) -> Plan:
    """One stage by one schedule."""
    n = len(groups[0])
    out = [_ordered(routes, g, name, g[0]) for g in groups]

    def laid(schedule: Schedule, among: Sequence[Members] = out) -> tuple[Phase, ...]:
        return _laid(routes, [schedule] * len(groups), among, stage, times)

    if name not in SCATTERS:
        if kind == "send" and name != "send":
            ways = SCHEDULES[name]("broadcast", n)
            kept = [towards(ways, order.index(g[-1])) for order, g in zip(out, groups, strict=True)]
            return Plan(name, _laid(routes, kept, out, stage, times))
        return Plan(name, laid(SCHEDULES[name](kind, n)))
    if kind == "broadcast":
        return Plan(name, laid(SCATTERS[name](n)) + laid(SCHEDULES[name]("all-gather", n)), float(n))
    if kind == "send":
        back = [_ordered(routes, g, name, g[-1]) for g in groups]
        return Plan(name, laid(SCATTERS[name](n)) + laid(backwards(SCATTERS[name](n)), back), float(n))
    return Plan(name, laid(SCHEDULES[name](kind, n)), float(n))


def _ordered(routes: Routes, members: Members, name: str, first: int) -> Members:
    """The members in the order in which an algorithm does best, along a round, or by bits; from one of them on."""
    chips = tuple(dict.fromkeys(m // routes.per_chip for m in members))
    order = chips
    if routes.shape is None or len(chips) == 1:
        return _circle(members, first)
    if name in ("ring", "bidirectional-ring", "pipelined"):
        order = next(iter(routes.around(chips)), chips)
    elif name == "recursive":
        order = routes.by_bits(chips)
    ordered = _along(order, members, routes.per_chip)
    if name != "recursive":
        return _circle(ordered, first)
    # Numbers change places in pairs, so that those which differed in one bit still do.
    start = ordered.index(first)
    return tuple(ordered[i ^ start] for i in range(len(ordered)))


def _along(chips: Members, members: Members, per_chip: int) -> Members:
    """The members in the order of their chips."""
    at = {chip: i for i, chip in enumerate(chips)}
    return tuple(sorted(members, key=lambda m: at[m // per_chip]))


def _circle(members: Members, first: int) -> Members:
    start = members.index(first)
    return members[start:] + members[:start]


def _laid(
    routes: Routes, schedules: Sequence[Schedule], groups: Sequence[Members], stage: Stage, times: float
) -> tuple[Phase, ...]:
    """The phases of all groups at once, each by its schedule; an all-reduce is laid once and goes there and back."""
    made: dict[tuple[int, ...], Phase | None] = {}
    phases = []
    for each in zip(*schedules, strict=True):
        steps = each[0][0]
        same = tuple(id(sends) for _, sends in each)
        if same not in made:
            placed: list[Send] = [
                (g[i], g[j], share * times) for g, (_, sends) in zip(groups, each, strict=True) for i, j, share in sends
            ]
            # No step of its own: a pipeline along the group.
            behind = max(len(groups[0]) - 2.0, 0.0) if not steps else 0.0
            loads = tuple(sorted(routes.rank_loads(placed).items()))
            made[same] = Phase(stage, steps, loads, behind) if placed else None
        phases.append(made[same])
    return tuple(phase for phase in phases if phase is not None)


def _lanes(routes: Routes, groups: Sequence[Members], kind: Kind) -> Iterator[Plan]:
    """Both ways round on all rounds through the chips that share no link, each with an equal part of the buffer."""
    n = len(groups[0])
    rounds = [routes.around(tuple(dict.fromkeys(m // routes.per_chip for m in g))) for g in groups]
    lanes = min(map(len, rounds))
    if not lanes:
        return

    def phase(schedule: Callable[[int], Schedule], first: int = 0) -> Phase:
        placed: list[Send] = []
        steps = 0.0
        for members, each in zip(groups, rounds, strict=True):
            for lane in each[:lanes]:
                order = _circle(_along(lane, members, routes.per_chip), members[first])
                ((steps, sends),) = schedule(order.index(members[-1]))
                placed += [(order[i], order[j], share / lanes) for i, j, share in sends]
        loads = tuple(sorted(routes.rank_loads(placed).items()))
        return Phase("fabric", steps, loads, 0.0 if steps else n - 2.0)

    if kind in ("broadcast", "send"):
        yield Plan("pipelined-both-ways", (phase(lambda last: chains(n, last if kind == "send" else None)),))
    if lanes < 2:
        return
    scatter, whole = SCATTERS["bidirectional-ring"](n), SCHEDULES["bidirectional-ring"]("all-gather", n)
    if kind in ("broadcast", "send"):
        back = phase(lambda _: whole) if kind == "broadcast" else phase(lambda _: backwards(scatter), -1)
        phases: tuple[Phase, ...] = (phase(lambda _: scatter), back)
    else:
        phases = (phase(lambda _: whole),) * _passes(kind)
    yield Plan("rings-both-ways", phases, float(n))


def _torus(routes: Routes, chips: list[Members], kind: Kind, rates: Rates) -> Iterator[Plan]:
    """As :func:`trnspec.perf.collectives.closed_forms.torus_all_gather`, if the chips are a torus; a scatter loads a row as much."""
    if kind == "all-to-all":
        return
    every = {_rings(routes, s) for s in chips}
    used = every.pop()
    # Groups that lie differently have no phases in common.
    if every or len(used) < 2:
        return
    # Where groups overlap without lying on the same chips, no link has more of them than a chip.
    sharing = float(max(Counter(chip for s in chips for chip in s).values()))
    sizes = tuple(size for _, size in used)
    left = list(closed_forms.torus_shares(sizes, tuple(rates(name) for name, _ in used)))
    phases = []
    for step in range(len(used)):
        loads = {}
        for part in range(len(used)):
            name, k = used[(part + step) % len(used)]
            loads[name] = (k - 1.0) / k * left[part] * sharing / (2.0 if k > 2.0 else 1.0)
            left[part] /= k
        phases.append(Phase("fabric", max(float(k // 2) for k in sizes), tuple(sorted(loads.items()))))
    yield Plan("torus", tuple(phases) * _passes(kind), float(len(chips[0])))


def _rings(routes: Routes, chips: Members) -> tuple[tuple[str, float], ...]:
    """The axes along which some chips are whole rings, or pairs, with how many; none where they are no such box."""
    found = routes.box(chips)
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
    return tuple(used)
