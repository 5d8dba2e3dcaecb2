"""What one link of each class of a system's fabrics carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.evaluation.result import RefusalError
from trnspec.perf.collectives.routes import INSIDE
from trnspec.perf.lowering.system import System
from trnspec.topology.shapes import GridShape, Hypercube

if TYPE_CHECKING:
    from trnspec.perf.lowering.system import Level

NETWORK = "network"


def fabric_level(system: System) -> Level | None:
    """The outermost level with a declared topology; ``None`` where there is none."""
    return next((level for level in reversed(system.levels) if level.shape is not None), None)


def level_named(system: System, name: str) -> Level | None:
    """The level of that name, if the system has one."""
    return next((level for level in system.levels if level.name == name), None)


@frozen
class Rates:
    """The rates of a system by class of link: ``chip``, ``axis0``, ..., ``link``, ``injection``, ``network``."""

    system: System

    def __call__(self, name: str) -> float:
        """One link, one direction, in B/s; of ``chip`` and ``network`` and what one rank sends.

        A link's share of what a chip sends over its level, by the links that an inner chip has there.

        Raises:
            RefusalError: ``unknown-figure``, with the place: it is not published, and nothing stands in for it.
        """
        level, links = self._level(name)
        if level is None:
            raise RefusalError("unknown-figure", f"{self.system.name} has no level for {name}", place="on")
        if not level.rate:
            raise RefusalError(
                "unknown-figure",
                f"no rate is published for the links at level {level.name} of {self.system.name}",
                place=level.place,
                hint="nothing stands in for it; state the figure, or ask for a smaller group",
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
            built = outer.shape.build()
            return outer, float(max(len(at) for at in built.links[: built.nodes]))
        axes = outer.shape.axes
        each = [0 if a.size == 1 else a.links if a.size == 2 else 2 for a in axes]
        number = int(name.removeprefix("axis"))
        inner = level_named(self.system, "server")
        if inner is None or inner is outer or isinstance(outer.shape, Hypercube):
            return outer, float(sum(each))
        # By convention the first dimension is the one that crosses from server to server.
        return (outer, float(each[0])) if number == 0 else (inner, float(sum(each[1:])))

    def latency(self, stage: str) -> float:
        """The published latency of one step of a stage, in s; 0 where none is."""
        level = fabric_level(self.system) if stage == "fabric" else level_named(self.system, stage)
        return 0.0 if level is None else level.latency
