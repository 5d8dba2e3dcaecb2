"""Fabrics with switches: a chip has a link to one switch of *each* level.

Passing one switch of any level is chip, switch, chip: two edges.  This gives the published classes of the two-level
Trainium3 UltraServer: of 143 other chips one at 1 edge (the direct peer), 71 at 2 (through the second-level switch, three of
them through the sled's own switch as well), 71 at 3 (peer and switch). In a tree of switches, the other sleds of the rack would
be 4 edges away.
"""

from __future__ import annotations

from attrs import frozen

from trnspec.topology.bisection import Bisection, By, bisection, weight_of
from trnspec.topology.fabric import Edge, FabricGraph, TopologyError
from trnspec.topology.shapes import Shape


@frozen
class SwitchLevel:
    """Switches of one level; each joins ``size`` chips that follow each other in number.

    Attributes:
        size: How many chips one switch joins.
        rate: The rate of the link to it in one direction, or None.  Parallel lanes of one link are one edge.
        kind: The class of the links to it.
    """

    size: int
    rate: float | None = None
    kind: str = "switch"


@frozen
class PeerLinks:
    """Direct links from chip ``i`` to ``i + stride``, within blocks of ``2 * stride`` chips.

    Attributes:
        stride: How far apart the peers are in number.
        rate: The rate of one link in one direction, or None.
        kind: The class of these links.
    """

    stride: int
    rate: float | None = None
    kind: str = "peer"


@frozen
class Switched(Shape):
    """Chips joined by switches, and optionally by direct links.

    Four servers of 16 chips, where two servers share a switch and each chip has a direct link to its peer two servers
    on: ``Switched(64, (SwitchLevel(32),), (PeerLinks(32),))``.  36 servers of 4 with a switch in each, a switch for
    each 18 servers, and peers 18 servers on: ``Switched(144, (SwitchLevel(4), SwitchLevel(72)), (PeerLinks(72),))``.

    Attributes:
        chips: How many chips.
        levels: The levels of switches, the smallest first.
        peers: Direct links.

    Raises:
        TopologyError: A level or a stride does not divide the chips, or the levels do not grow.
    """

    chips: int
    levels: tuple[SwitchLevel, ...]
    peers: tuple[PeerLinks, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.chips < 1:
            raise TopologyError(f"{self.chips} chips; expected 1 or more")
        below = 1
        for level in self.levels:
            if level.size < 1 or self.chips % level.size:
                raise TopologyError(f"switches of {level.size} chips do not divide {self.chips} chips evenly")
            if level.size % below or (level.size == below and below > 1):
                raise TopologyError(f"a level of {level.size} chips over one of {below}: expected a larger multiple")
            below = level.size
        for peer in self.peers:
            if peer.stride < 1 or self.chips % (2 * peer.stride):
                raise TopologyError(f"peers {peer.stride} apart do not pair {self.chips} chips evenly")

    @property
    def nodes(self) -> int:
        """The number of chips."""
        return self.chips

    @property
    def switches(self) -> int:
        """The number of switches, all levels together."""
        return sum(self.chips // level.size for level in self.levels)

    def build(self) -> FabricGraph:
        """The graph; the switches are numbered level by level after the chips."""
        edges: list[Edge] = []
        first = self.chips
        for level in self.levels:
            edges += (Edge(k, first + k // level.size, level.rate, level.kind) for k in range(self.chips))
            first += self.chips // level.size
        for peer in self.peers:
            firsts = (a for a in range(self.chips) if a // peer.stride % 2 == 0)
            edges += (Edge(a, a + peer.stride, peer.rate, peer.kind) for a in firsts)
        return FabricGraph(self.chips, tuple(edges), self.switches)

    def bisection(self, by: By = "links") -> Bisection:
        """The narrowest cut; proven where two racks of one switch each are joined by direct links.

        Then, with h chips in a rack, w for a link to the switch and p for the link to the peer, a cut with x chips of
        one rack and h - x of the other weighs at least 2 min(x, h - x) w + |2 x - h| p, which is linear between x = 0
        and x = h / 2, so h min(p, w) or more.  Under one switch for all chips it weighs (n // 2) w or more.
        """
        return bisection(self.build(), by, lower=self._lower_bound(by))

    def _lower_bound(self, by: By) -> float:
        bounds = [self.chips // 2 * weight_of(level.rate, by) for level in self.levels if level.size == self.chips]
        half = self.chips // 2
        switch = sum(weight_of(level.rate, by) for level in self.levels if level.size == half)
        peer = sum(weight_of(p.rate, by) for p in self.peers if p.stride == half)
        return max([*bounds, half * min(switch, peer)], default=0.0)

    def __str__(self) -> str:
        return f"switched, {self.chips} chips, {self.switches} switches"
