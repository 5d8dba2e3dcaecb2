"""Groups of ranks that take part in a collective, the groups that work at the same time, and the rates of their links."""

from __future__ import annotations

from functools import cache

from attrs import frozen

from trnspec.errors import RefusalError
from trnspec.perf.collectives.routes import INSIDE, Routes
from trnspec.perf.lowering.machine import Level, LoweredSystem
from trnspec.topology.shapes import GridShape, Hypercube, Shape
from trnspec.topology.switched import Switched

NETWORK = "network"


def fabric_level(system: LoweredSystem) -> Level | None:
    """The outermost level with a declared topology; ``None`` where there is none."""
    return next((level for level in reversed(system.levels) if level.shape is not None), None)


def level_named(system: LoweredSystem, name: str) -> Level | None:
    """The level of that name; ``None`` if the system does not have it."""
    return next((level for level in system.levels if level.name == name), None)


@cache
def _degree(shape: Shape) -> float:
    """Links of the chip that has most."""
    built = shape.build()
    return float(max(len(at) for at in built.links[: built.nodes]))


@frozen
class LinkRates:
    """The rates of a system by class of link: ``chip``, ``axis0``, ..., ``link``, ``injection``, ``network``."""

    system: LoweredSystem

    def __call__(self, name: str) -> float:
        """The rate of one link in one direction [B/s]; for ``chip`` and ``network`` the rate of one rank.

        A level states what a chip sends over all of its links there; one link has an equal share.

        Raises:
            RefusalError: ``unknown-figure``, with its place: the rate is not published.
        """
        level, links = self._level(name)
        if level is None:
            raise RefusalError("unknown-figure", f"{self.system.name} has no level for {name}", place="on")
        if not level.rate:
            raise RefusalError(
                "unknown-figure",
                f"no rate is published for the links at level {level.name} of {self.system.name}",
                place=level.place,
                hint="state the figure in the catalog or an overlay, or use a smaller group",
            )
        return level.rate if name in (INSIDE, NETWORK) else level.rate * self.system.ranks_per_chip / links

    def _level(self, name: str) -> tuple[Level | None, float]:
        if name in (INSIDE, NETWORK):
            return level_named(self.system, name), 1.0
        outer = fabric_level(self.system)
        if outer is None or name == "injection":
            return outer, 1.0
        assert outer.shape is not None
        if not isinstance(outer.shape, GridShape):
            return outer, _degree(outer.shape)
        axes = outer.shape.axes
        links_by_axis = [min(dimension.size - 1, 2) for dimension in axes]
        number = int(name.removeprefix("axis"))
        inner = level_named(self.system, "server")
        if inner is None or inner is outer or isinstance(outer.shape, Hypercube):
            return outer, float(sum(links_by_axis))
        # By convention the first dimension is the one that connects servers.
        return (outer, float(links_by_axis[0])) if number == 0 else (inner, float(sum(links_by_axis[1:])))

    def latency(self, name: str) -> float:
        """The published latency [s] of one message over a class of links; 0 where none is published."""
        level, _ = self._level(name)
        return 0.0 if level is None else level.latency


MOST_RANKS = 2**20
"""Ranks of a group up to which times are computed."""

MOST_FABRIC_RANKS = 2**16
"""Ranks of a fabric up to which times are computed: each of them is routed, with about 8 kB."""

MOST_CHIPS = 256
"""Chips of a fabric that is neither a grid nor switched, whose routes are searched chip by chip."""


@frozen
class Group:
    """Ranks that take part in one collective.

    Attributes:
        ranks: All of them.
        inside: Those in the first fabric, by their number in it.
        units: Number of fabrics that the group spans, each with as many members.
        siblings: For each group that works at the same time, this one first: its members in one fabric.
    """

    ranks: tuple[int, ...]
    inside: tuple[int, ...]
    units: int
    siblings: tuple[tuple[int, ...], ...]


def unit_ranks(system: LoweredSystem) -> int:
    """Ranks of one fabric; of one chip where no topology is declared."""
    level = fabric_level(system)
    return int(level.ranks if level is not None else system.ranks_per_chip)


def group(system: LoweredSystem, size: int | None = None, stride: int = 1) -> Group:
    """The ranks 0, stride, 2 stride, ...; all groups that tile the system in this way work at the same time.

    Args:
        system: The system.
        size: Number of ranks; by default as many as the stride allows.
        stride: Distance between consecutive ranks.

    Raises:
        RefusalError: ``rank-count``: more ranks than the system has, or unequal numbers in its fabrics; ``too-large``.
    """
    total, unit = int(system.ranks), unit_ranks(system)
    if stride < 1:
        raise RefusalError("rank-count", f"the stride is {stride}; expected 1 or more", place="stride")
    n = total // stride if size is None else size
    if n < 1 or (n - 1) * stride >= total:
        raise RefusalError(
            "rank-count",
            f"{n} ranks with stride {stride} do not fit into the {total} ranks of {system.name}",
            place="ranks",
            hint=f"at most {max(1, (total - 1) // stride + 1)}",
        )
    # Before anything is built whose size is that of the system.
    for what, ranks_of, most in (
        (f"a fabric of {system.name}", unit, MOST_FABRIC_RANKS),
        ("a group", n, MOST_RANKS),
    ):
        if ranks_of > most:
            raise RefusalError(
                "too-large",
                f"{what} has {ranks_of:,} ranks; the limit is {most:,}",
                place="ranks",
                hint="use fewer ranks or chips",
            )
    ranks = tuple(range(0, n * stride, stride))
    first_group = group_of(system, ranks)
    block = n * stride
    if first_group.units == 1:
        starts = [b + r for b in range(0, max(unit - block, 0) + 1, block) for r in range(stride)]
        shifts = [s for s in starts if s + ranks[-1] < unit]
    else:
        shifts = [s for s in range(min(stride, unit)) if s + first_group.inside[-1] < unit]
    return Group(
        ranks, first_group.inside, first_group.units, tuple(tuple(r + s for r in first_group.inside) for s in shifts)
    )


def group_of(system: LoweredSystem, ranks: tuple[int, ...]) -> Group:
    """A group of some ranks, which works alone.

    Raises:
        RefusalError: ``rank-count``: the fabrics have unequal shares.
    """
    unit = unit_ranks(system)
    by_fabric: dict[int, list[int]] = {}
    for rank in ranks:
        by_fabric.setdefault(rank // unit, []).append(rank % unit)
    members = list(by_fabric.values())
    if len({len(share) for share in members}) > 1 or (len(members[0]) > 1 and any(s != members[0] for s in members)):
        raise RefusalError(
            "rank-count",
            f"{len(ranks)} ranks are not placed equally in the {len(members)} fabrics of {unit} ranks that they span",
            place="ranks",
            hint="use equally many ranks in each fabric, at the same positions",
        )
    first = tuple(members[0])
    return Group(ranks, first, len(members), (first,))


def routes_of(system: LoweredSystem, of: Group) -> Routes:
    """The routes between the members of a group within a fabric.

    Raises:
        RefusalError: ``unknown-topology``: the group spans chips whose links are not declared; ``too-large``.
    """
    level, per_chip = fabric_level(system), int(system.ranks_per_chip)
    unit = unit_ranks(system)
    undeclared = [outer for outer in system.levels if outer.name not in (INSIDE, NETWORK) and outer.ranks > unit]
    if of.units > 1 and (undeclared or level_named(system, NETWORK) is None):
        raise RefusalError(
            "unknown-topology",
            f"the links between the chips of {system.name} that this group spans are not declared",
            place=undeclared[0].place if undeclared else "on",
            hint="declare the topology of the fabric, or use ranks within a declared one",
        )
    shape = None if level is None else level.shape
    if shape is not None and shape.nodes * per_chip != unit:
        raise RefusalError(
            "unknown-topology",
            f"the declared topology of {system.name} has {shape.nodes:,} chips, and its fabric has {unit // per_chip:,}",
            place="on",
            hint="trnspec validate reports such a topology (TRN501)",
        )
    if shape is not None and not isinstance(shape, GridShape | Switched) and shape.nodes > MOST_CHIPS:
        raise RefusalError(
            "too-large",
            f"the fabric of {system.name} has {shape.nodes:,} chips in a shape without symmetry; the limit is {MOST_CHIPS:,}",
            place="on",
            hint="rings, tori, meshes and switched fabrics have no such limit",
        )
    return Routes(shape, per_chip)
