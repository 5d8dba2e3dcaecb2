"""The rate of one link of each class in a system's fabrics."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.errors import RefusalError
from trnspec.perf.collectives.routes import INSIDE
from trnspec.perf.lowering.system import System
from trnspec.topology.shapes import GridShape, Hypercube

if TYPE_CHECKING:
    from trnspec.perf.lowering.system import Level
    from trnspec.topology.shapes import Shape

NETWORK = "network"


def fabric_level(system: System) -> Level | None:
    """The outermost level with a declared topology; ``None`` where there is none."""
    return next((level for level in reversed(system.levels) if level.shape is not None), None)


def level_named(system: System, name: str) -> Level | None:
    """The level of that name; ``None`` if the system does not have it."""
    return next((level for level in system.levels if level.name == name), None)


@cache
def _degree(shape: Shape) -> float:
    """Links of the chip that has most."""
    built = shape.build()
    return float(max(len(at) for at in built.links[: built.nodes]))


@frozen
class Rates:
    """The rates of a system by class of link: ``chip``, ``axis0``, ..., ``link``, ``injection``, ``network``."""

    system: System

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
        links_by_axis = [
            0 if dimension.size == 1 else dimension.links if dimension.size == 2 else 2 for dimension in axes
        ]
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
