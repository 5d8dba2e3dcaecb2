"""The system as the engine uses it: the rates of one rank and of the links to other ranks."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from trnspec.errors import RefusalError
from trnspec.evidence import UsedFigure
from trnspec.topology.shapes import Shape

UNKNOWN = 0.0
"""A rate that is not published. A computation that needs it raises ``RefusalError``; no other rate replaces it."""


@frozen(kw_only=True)
class Level:
    """One level of the hierarchy of links between ranks.

    Attributes:
        name: ``chip``, ``server``, ``ultraserver`` or ``network``.
        ranks: Ranks within one unit of this level.
        rate: Rate of one rank over this level in one direction, when all ranks send and receive concurrently, in B/s;
            :data:`UNKNOWN` where it is not published.
        latency: Time of the smallest message over this level, in s, as published; 0 if none is.
        link: The name of the link.
        place: The document and the attribute of the rate, whether or not it is stated.
        latency_place: The document and the attribute of the latency, whether or not it is stated.
        reduces: Whether its switches can reduce and multicast (in-network reduction).
        shape: The declared topology among the chips; ``None`` for a network, a chip, or if not declared.
    """

    name: str
    ranks: float
    rate: float
    latency: float = 0.0
    link: str = ""
    place: str = ""
    latency_place: str = ""
    reduces: bool = False
    shape: Shape | None = field(default=None, repr=False)


@frozen(kw_only=True)
class System:
    """The system of an evaluation.  Rates and capacities are those of one rank.

    Attributes:
        name: The system as given in the input: ``trn1.32xlarge*32``.
        chip: The name of the chip.
        chips: Chips of all servers.
        servers: Servers.
        ranks: Ranks: logical cores of all chips, or chips if a chip is one rank.
        ranks_per_chip: Ranks that share a chip, and its memory, links and rates.
        lnc: Physical cores of one logical core; 0 if a core of the chip is not a rank.
        rates: Peak dense rate of matrix multiplication by data type, in FLOP/s (or OP/s).
        published: Peak dense rate by data type as published, the denominator of MFU.
        capacity: Device memory, in B, where all ranks of the chip are in use.
        bandwidth: Rate between a rank and its device memory, in B/s.
        sharing: Ranks that share one memory stack; one in use alone reaches all of it.
        host_memory: Memory of the host, in B; :data:`UNKNOWN` if it is not published.
        levels: From the innermost outwards.
        figures_used: The catalog figures used.
        ends: The same system with every figure at the slow end, and at the fast end of its interval.
    """

    name: str
    chip: str
    chips: float
    servers: float
    ranks: float
    ranks_per_chip: float
    lnc: float
    rates: Mapping[str, float]
    published: Mapping[str, float]
    capacity: float
    bandwidth: float
    sharing: float = 1.0
    host_memory: float = UNKNOWN
    levels: tuple[Level, ...]
    figures_used: tuple[UsedFigure, ...] = field(default=(), repr=False)
    ends: tuple[System, System] | None = field(default=None, repr=False)

    def rate(self, dtype: str) -> float:
        """The peak dense rate of matrix multiplication in FLOP/s, of one rank.

        Raises:
            RefusalError: ``unknown-figure``: no rate is published for the type.
        """
        if dtype not in self.rates:
            raise RefusalError(
                "unknown-figure",
                f"{self.chip} has no published dense rate for {dtype}",
                place=f"{self.chip} spec.peak.dense.{dtype}",
                hint=f"types with a rate: {', '.join(self.rates)}",
            )
        return self.rates[dtype]

    def unknown_link(self) -> RefusalError:
        """The error of a layout that communicates over links whose rate is not published: the innermost such level."""
        missing = next((level for level in self.levels if not level.rate), None)
        link = "a link between servers" if missing is None else f"the links of the level {missing.name}"
        return RefusalError(
            "unknown-figure",
            f"the layout needs {link} of {self.name}, whose rate is not published",
            place="" if missing is None else missing.place,
        )

    def figures_used_for(self, *names: str) -> tuple[UsedFigure, ...]:
        """The figures whose path ends in one of some names: ``bf16``, ``bandwidth``."""
        return tuple(b for b in self.figures_used if b.at.rsplit(".", 1)[-1] in names)
