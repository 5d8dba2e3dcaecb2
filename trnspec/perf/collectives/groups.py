"""Groups of ranks: which ranks of a system work together, and which groups work at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.evaluation.result import RefusalError
from trnspec.perf.collectives.link_rates import NETWORK, fabric_level, level_named
from trnspec.perf.collectives.routes import INSIDE, Routes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.lowering.system import System


@frozen
class Group:
    """Ranks that take part in one collective.

    Attributes:
        ranks: All of them.
        inside: Those in the first fabric, by their number in it.
        units: How many fabrics the group spans, each with as many members.
        siblings: The members in one fabric of all groups that work at the same time, this one first.
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
    """The ranks 0, stride, 2 stride, ...; all groups that tile the system like this work at the same time.

    Args:
        system: Where.
        size: How many; all ranks that the stride leaves if not given.
        stride: How far apart.

    Raises:
        RefusalError: ``rank-count``: more than there are, or not equally many in each fabric.
    """
    total, unit = int(system.ranks), unit_ranks(system)
    if stride < 1:
        raise RefusalError("rank-count", f"a stride of {stride}; expected 1 or more", place="stride")
    n = total // stride if size is None else size
    if n < 1 or (n - 1) * stride >= total:
        raise RefusalError(
            "rank-count",
            f"{n} ranks {stride} apart, of {total} ranks that {system.name} has",
            place="ranks",
            hint=f"at most {max(1, (total - 1) // stride + 1)}",
        )
    ranks = tuple(range(0, n * stride, stride))
    made = _split(system, ranks)
    block = n * stride
    if made.units == 1:
        starts = [b + r for b in range(0, max(unit - block, 0) + 1, block) for r in range(stride)]
        shifts = [s for s in starts if s + ranks[-1] < unit]
    else:
        shifts = [s for s in range(min(stride, unit)) if s + made.inside[-1] < unit]
    return Group(ranks, made.inside, made.units, tuple(tuple(r + s for r in made.inside) for s in shifts))


def explicit_group(system: System, ranks: Sequence[int]) -> Group:
    """Some ranks, which work alone.

    Raises:
        RefusalError: ``rank-count``: one is named twice, or does not exist, or the fabrics have unequal shares.
    """
    if not ranks or len(set(ranks)) != len(ranks) or min(ranks) < 0 or max(ranks) >= system.ranks:
        raise RefusalError("rank-count", f"expected different ranks from 0 to {int(system.ranks) - 1}", place="ranks")
    return _split(system, tuple(ranks))


def _split(system: System, ranks: tuple[int, ...]) -> Group:
    unit = unit_ranks(system)
    inside: dict[int, list[int]] = {}
    for rank in ranks:
        inside.setdefault(rank // unit, []).append(rank % unit)
    shares = list(inside.values())
    if len({len(share) for share in shares}) > 1 or (len(shares[0]) > 1 and any(s != shares[0] for s in shares)):
        raise RefusalError(
            "rank-count",
            f"{len(ranks)} ranks do not lie alike in the {len(shares)} fabrics of {unit} ranks that they span",
            place="ranks",
            hint="take as many ranks in each fabric, at the same places",
        )
    first = tuple(shares[0])
    return Group(ranks, first, len(shares), (first,))


def routes_of(system: System, of: Group) -> Routes:
    """The ways between the members of a group within a fabric.

    Raises:
        RefusalError: ``unknown-topology``: it spans chips whose links nobody declared.
    """
    level, per_chip = fabric_level(system), int(system.ranks_per_chip)
    unit = unit_ranks(system)
    undeclared = [one for one in system.levels if one.name not in (INSIDE, NETWORK) and one.ranks > unit]
    if of.units > 1 and (undeclared or level_named(system, NETWORK) is None):
        raise RefusalError(
            "unknown-topology",
            f"how the chips of {system.name} that this group spans are linked is not declared",
            place=undeclared[0].place if undeclared else "on",
            hint="declare the topology of its fabric, or ask for ranks that a declared one links",
        )
    return Routes(None if level is None else level.shape, per_chip)
