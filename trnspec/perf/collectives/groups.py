"""Groups of ranks that take part in a collective, and the groups that work at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import RefusalError
from trnspec.perf.collectives.link_rates import NETWORK, fabric_level, level_named
from trnspec.perf.collectives.routes import INSIDE, Routes
from trnspec.topology.shapes import GridShape
from trnspec.topology.switched import Switched

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.lowering.system import System


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


def unit_ranks(system: System) -> int:
    """Ranks of one fabric; of one chip where no topology is declared."""
    level = fabric_level(system)
    return int(level.ranks if level is not None else system.ranks_per_chip)


def group(system: System, size: int | None = None, stride: int = 1) -> Group:
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
    first_group = _split(system, ranks)
    block = n * stride
    if first_group.units == 1:
        starts = [b + r for b in range(0, max(unit - block, 0) + 1, block) for r in range(stride)]
        shifts = [s for s in starts if s + ranks[-1] < unit]
    else:
        shifts = [s for s in range(min(stride, unit)) if s + first_group.inside[-1] < unit]
    return Group(
        ranks, first_group.inside, first_group.units, tuple(tuple(r + s for r in first_group.inside) for s in shifts)
    )


def explicit_group(system: System, ranks: Sequence[int]) -> Group:
    """A group given by its ranks, which works alone.

    Raises:
        RefusalError: ``rank-count``: a rank is repeated or does not exist, or the fabrics have unequal shares.
    """
    if not ranks or len(set(ranks)) != len(ranks) or min(ranks) < 0 or max(ranks) >= system.ranks:
        raise RefusalError("rank-count", f"expected distinct ranks from 0 to {int(system.ranks) - 1}", place="ranks")
    return _split(system, tuple(ranks))


def _split(system: System, ranks: tuple[int, ...]) -> Group:
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


def routes_of(system: System, of: Group) -> Routes:
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
