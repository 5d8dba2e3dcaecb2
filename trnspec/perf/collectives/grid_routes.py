"""Routes on rings, tori, meshes and hypercubes: the loads of sends without building the graph.

A shortest path on a grid takes ``|d_i|`` hops along each axis i, in any order, so a send spread evenly over all of them
leaves a chip along axis i with the share ``|d_i| / (|d_1| + ... )`` of what still has to go, and the loads depend only on the
displacement.  Sends of one displacement are therefore placed together.  If every chip of a torus sends by the same
displacement, all links of an axis carry the same, ``|d_i|`` shares (symmetry by translation).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

from trnspec.topology.shapes import GridAxis

Steps = tuple[int, ...]

# Estimates that only choose between two ways to the same loads.
_CALL, _ENTRY = 1e-5, 3e-8


@frozen(slots=False)
class ChipGrid:
    """The chips of a grid by their positions.

    Attributes:
        axes: The dimensions; chips are numbered row by row, the last dimension fastest.
    """

    axes: tuple[GridAxis, ...]

    @cached_property
    def sizes(self) -> Steps:
        """Chips along each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def nodes(self) -> int:
        """Number of chips."""
        return int(np.prod(self.sizes))

    @cached_property
    def places(self) -> Any:
        """The position of each chip: one row per axis, one column per chip."""
        return np.array(np.unravel_index(np.arange(self.nodes), self.sizes))

    @cached_property
    def symmetric(self) -> bool:
        """Whether every chip is like every other: all axes are rings, or pairs."""
        return all(axis.wrap or axis.size <= 2 for axis in self.axes)

    def number(self, places: Any) -> Any:
        """The numbers of chips at positions, which may lie beyond the end of a ring."""
        return np.ravel_multi_index(tuple(p % k for p, k in zip(places, self.sizes, strict=True)), self.sizes)

    def hops(self, difference: Any, number: int) -> tuple[Any, Any]:
        """Signed hops along an axis, by the shorter way, and whether the other way is as short."""
        axis = self.axes[number]
        k = axis.size
        if not axis.wrap or k <= 2:
            return difference, np.zeros(np.shape(difference), bool)
        forward = difference % k
        return np.where(2 * forward <= k, forward, forward - k), 2 * forward == k

    def loads(self, sources: Any, targets: Any, shares: Any) -> list[float]:
        """Load of the busiest link along each axis in one direction, as a share of the buffer.

        Args:
            sources: The sending chips.
            targets: The receiving chips, each another than its source.
            shares: What is sent, as a share of the buffer.
        """
        carried = np.zeros((len(self.axes), 2, self.nodes))
        if len(np.unique(targets)) < len(np.unique(sources)):
            # Backwards the sends load the same links in the other direction, and few sources are faster.
            sources, targets = targets, sources
        sources, steps, shares = self._expanded(np.asarray(sources), np.asarray(targets), np.asarray(shares, float))
        keys = np.zeros(len(sources), np.int64)
        for row, k in zip(steps, self.sizes, strict=True):
            keys = keys * (2 * k + 1) + row + k
        order = np.argsort(keys, kind="stable")
        cuts = np.flatnonzero(np.diff(keys[order])) + 1
        rest: list[Any] = []
        for sends in np.split(order, cuts):
            step = steps[:, sends[0]]
            if self._everywhere(sources[sends], shares[sends]):
                for number, hops in enumerate(step):
                    carried[number, int(hops < 0)] += shares[sends[0]] * abs(int(hops))
            else:
                rest.append(sends)
        if rest:
            self._place(rest, sources, steps, shares, carried)
        return self._busiest(carried)

    def exchange(self, steps: Sequence[Sequence[int]]) -> list[float]:
        """Loads, see :meth:`loads`, if every chip of a symmetric grid sends one buffer by each of some displacements.

        Args:
            steps: For each axis the differences of position; every combination of them is a displacement.
        """
        carried = np.zeros((len(self.axes), 2, 1))
        for number, differences in enumerate(steps):
            others = np.prod([len(d) for i, d in enumerate(steps) if i != number])
            hops, tie = self.hops(np.array(differences), number)
            # On a pair half of the chips send forwards and half backwards, each over a link of its own.
            forward = np.sum(np.where(tie, np.abs(hops) / 2.0, np.where(hops > 0, hops, 0)))
            backward = np.sum(np.where(tie, np.abs(hops) / 2.0, np.where(hops < 0, -hops, 0)))
            carried[number, :, 0] = forward * others, backward * others
        return self._busiest(carried)

    def _busiest(self, carried: Any) -> list[float]:
        """The largest load along each axis."""
        return [float(np.max(load)) for load in carried]

    def _expanded(self, sources: Any, targets: Any, shares: Any) -> tuple[Any, Any, Any]:
        """Sends with signed hops; where both ways are as short, half of the send goes each way."""
        by_axis = [self.hops(row[targets] - row[sources], number) for number, row in enumerate(self.places)]
        steps, ties = (np.array(column) for column in zip(*by_axis, strict=True))
        for number in range(len(self.axes)):
            both = np.flatnonzero(ties[number])
            if not len(both):
                continue
            shares = shares.copy()
            shares[both] /= 2.0
            turned = steps[:, both]
            turned[number] *= -1
            sources, shares = np.concatenate([sources, sources[both]]), np.concatenate([shares, shares[both]])
            steps, ties = np.hstack([steps, turned]), np.hstack([ties, ties[:, both]])
        return sources, steps, shares

    def _everywhere(self, sources: Any, shares: Any) -> bool:
        """Whether every chip of a symmetric grid sends the same; on a pair the displacement depends on the chip."""
        return bool(
            self.symmetric
            and len(sources) == self.nodes
            and 2 not in self.sizes
            and np.all(shares == shares[0])
            and len(np.unique(sources)) == self.nodes
        )

    def _place(self, sends: list[Any], sources: Any, steps: Any, shares: Any, carried: Any) -> None:
        """Places sends by displacement, or by source where few sources send by many displacements."""
        links = [_links(tuple(abs(int(h)) for h in steps[:, s[0]])) for s in sends]
        by_step = sum(n * (_CALL + len(s) * _ENTRY) for n, s in zip(links, sends, strict=True))
        every = np.concatenate(sends)
        senders = np.unique(sources[every])
        reach = sum(axis.diameter for axis in self.axes)
        by_source = len(senders) * 2.0 * len(self.axes) * (reach * _CALL + self.nodes * _ENTRY)
        if by_step <= by_source:
            for same in sends:
                self._by_displacement(sources[same], steps[:, same[0]], shares[same], carried)
            return
        for source in senders:
            own = every[sources[every] == source]
            targets = self.number(self.places[:, [source]] + steps[:, own])
            self._by_source(int(source), np.bincount(targets, shares[own], self.nodes), carried)

    def _by_displacement(self, sources: Any, step: Any, shares: Any, carried: Any) -> None:
        signs = np.sign(step)
        start = self.places[:, sources]
        for at, number, part in _spread(tuple(abs(int(h)) for h in step)):
            chips = self.number(start + (signs * np.array(at))[:, None])
            np.add.at(carried[number, int(signs[number] < 0)], chips, shares * part)

    def _by_source(self, source: int, passing: Any, carried: Any) -> None:
        """From the farthest chips back: what passes a chip came along each axis in proportion to its hops."""
        hops, ties = zip(*(self.hops(row - row[source], number) for number, row in enumerate(self.places)), strict=True)
        distance = np.sum(np.abs(hops), axis=0)
        for far in range(int(distance.max()), 0, -1):
            chips = np.flatnonzero((distance == far) & (passing > 0.0))
            for number, (along, tie) in enumerate(zip(hops, ties, strict=True)):
                used = chips[along[chips] != 0]
                part = passing[used] * np.abs(along[used]) / far
                for sign in (1, -1):
                    way = (np.sign(along[used]) == sign) | tie[used]
                    places = self.places[:, used[way]].copy()
                    places[number] -= sign
                    before = self.number(places)
                    flow = np.where(tie[used[way]], 0.5, 1.0) * part[way]
                    np.add.at(carried[number, int(sign < 0)], before, flow)
                    np.add.at(passing, before, flow)


def _links(hops: Steps) -> int:
    """Links on the shortest paths of a displacement."""
    volume = int(np.prod([h + 1 for h in hops]))
    return sum(volume // (h + 1) * h for h in hops)


@lru_cache(maxsize=4096)
def _spread(hops: Steps) -> tuple[tuple[Steps, int, float], ...]:
    """Destination of a send: position relative to the source, axis of the next hop, share of the send."""
    flows, arrived = [], {(0,) * len(hops): 1.0}
    for at in product(*(range(h + 1) for h in hops)):
        left = [h - p for h, p in zip(hops, at, strict=True)]
        for number, remaining in enumerate(left):
            if remaining:
                flow = arrived[at] * remaining / sum(left)
                flows.append((at, number, flow))
                ahead = (*at[:number], at[number] + 1, *at[number + 1 :])
                arrived[ahead] = arrived.get(ahead, 0.0) + flow
    return tuple(flows)


def ring(sizes: Steps, closed: Sequence[bool]) -> list[Steps]:
    """A ring through all positions of a box, each one hop from the next; empty if none is known.

    A box of two dimensions or more with an even size is walked along its other positions at 0, back and forth over the rest of
    the even size, and home along the first.  A box of one dimension is a ring if it is closed.

    Args:
        sizes: Chips along each axis.
        closed: Whether the last is linked to the first.
    """
    wide = [i for i, k in enumerate(sizes) if k > 1]
    if len(wide) == 1:
        positions = [tuple(p if i == wide[0] else 0 for i in range(len(sizes))) for p in range(sizes[wide[0]])]
        return positions if closed[wide[0]] else []
    even = next((i for i in wide if sizes[i] % 2 == 0), None)
    if even is None:
        return []
    line = _snake([1 if i == even else k for i, k in enumerate(sizes)])
    walk = [(0, at) for at in line]
    for position in range(1, sizes[even]):
        rest = line[1:] if position % 2 == 0 else line[:0:-1]
        walk += [(position, at) for at in rest]
    walk += [(position, line[0]) for position in range(sizes[even] - 1, 0, -1)]
    return [(*at[:even], position, *at[even + 1 :]) for position, at in walk]


def _snake(sizes: Sequence[int]) -> list[Steps]:
    """All positions of a box in an order in which each is one hop from the next: a reflected Gray code."""
    order: list[Steps] = [()]
    for k in sizes:
        order = [(*head, p) for i, head in enumerate(order) for p in (range(k) if i % 2 == 0 else range(k - 1, -1, -1))]
    return order
