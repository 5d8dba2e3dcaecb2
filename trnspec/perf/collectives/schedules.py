"""Schedules of collectives: phases with the share of the buffer that each member sends to others.

Members are numbered by their position in a group.  A schedule knows neither links nor rates;
``trnspec.perf.collectives.routes`` maps it to links.  A phase combines several equal steps: each step counts its
latency, and the sends are their sum.

The buffer of S bytes is what every rank holds after an all-gather, before a reduce-scatter, and before and after an all-reduce
or a broadcast.  In an all-to-all it is what one rank sends: all blocks, its own included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from trnspec.perf.collectives.routes import Send

Kind = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"]

Schedule = tuple[tuple[float, tuple["Send", ...]], ...]
"""Phases: number of steps, and the sends of all of them together."""


def _times(kind: Kind) -> int:
    """Passes over the buffer: an all-reduce is a reduce-scatter and an all-gather of equal time."""
    return 2 if kind == "all-reduce" else 1


def ring(kind: Kind, n: int) -> Schedule:
    """Unidirectional ring."""
    total = (n - 1) / 2 if kind == "all-to-all" else (n - 1) / n
    sends = tuple((i, (i + 1) % n, total) for i in range(n))
    return ((float(n - 1), sends),) * _times(kind)


def bidirectional_ring(kind: Kind, n: int) -> Schedule:
    """Bidirectional ring, each block by the shorter way; the block of the opposite member goes half in each direction."""
    total = (n * n // 4) / (2 * n) if kind == "all-to-all" else (n - 1) / (2 * n)
    sends = tuple((i, (i + direction) % n, total) for i in range(n) for direction in (1, -1))
    return ((float(n // 2), sends),) * _times(kind)


def recursive(kind: Kind, n: int) -> Schedule:
    """Recursive halving and doubling: members whose numbers differ in one bit exchange.

    The buffer is split into as many parts as bits, and each part starts with another bit, so that all links of a
    hypercube are used at once, as in the exchanges along four axes that Neuron documents.  Every step then sends over the same
    links, so all of them are one phase.
    """
    bits = n.bit_length() - 1
    share = 0.5 if kind == "all-to-all" else (n - 1) / n / max(bits, 1)
    return ((float(bits), tuple((i, i ^ (1 << bit), share) for i in range(n) for bit in range(bits))),) * _times(kind)


def direct(kind: Kind, n: int) -> Schedule:
    """Every member sends to every other at once."""
    sends = tuple((i, j, 1 / n) for i in range(n) for j in range(n) if i != j)
    return ((1.0, sends),) * _times(kind)


def direct_one_step(kind: Kind, n: int) -> Schedule:
    """All-reduce: every member sends its whole buffer to every other.  Broadcast: member 0 does."""
    assert kind in ("all-reduce", "broadcast")
    senders = 1 if kind == "broadcast" else n
    return ((1.0, tuple((i, j, 1.0) for i in range(senders) for j in range(n) if i != j)),)


def tree(kind: Kind, n: int) -> Schedule:
    """Broadcast from member 0 by a binomial tree, the farthest members first."""
    assert kind == "broadcast"
    phases = []
    reach = 1 << (n - 1).bit_length()
    while reach > 1:
        half = reach // 2
        phases.append((1.0, tuple((i, i + half, 1.0) for i in range(0, n, reach) if i + half < n)))
        reach = half
    return tuple(phases)


def chain(kind: Kind, n: int) -> Schedule:
    """Pipelined broadcast from member 0 along the group; the steps that fill the pipeline are not counted here."""
    assert kind == "broadcast"
    return ((0.0, tuple((i, i + 1, 1.0) for i in range(n - 1))),)


def chains(n: int, last: int | None) -> Schedule:
    """Two chains from member 0 around a ring, one in each direction, each with half of the buffer; see :func:`chain`.

    They reach all members, or end at member ``last``.
    """
    lengths = (n - 1, n - 1) if last is None else (last, n - last)
    sends = (
        (direction * i % n, direction * (i + 1) % n, 0.5)
        for direction, length in zip((1, -1), lengths, strict=True)
        for i in range(length)
    )
    return ((0.0, tuple(sends)),)


def point_to_point(kind: Kind, n: int) -> Schedule:
    """The first member sends to the last."""
    assert kind == "send"
    return ((1.0, ((0, n - 1, 1.0),)),)


# A scatter of one member's buffer in equal parts: a reduce-scatter in reverse is an all-gather, and of its sends only those
# that start at member 0 remain, in as many steps and with no higher load.  Followed by an all-gather it is a broadcast (M.
# Barnett et al., Interprocessor collective communication library, 1994; Thakur et al. 2005, section 4.2; Chan et al.
# 2007), followed by a gather a send.


def ring_scatter(n: int) -> Schedule:
    """Unidirectional ring: a link carries the parts of all members behind it."""
    return ((float(n - 1), tuple((i, i + 1, (n - 1 - i) / n) for i in range(n - 1))),)


def bidirectional_ring_scatter(n: int) -> Schedule:
    """Bidirectional ring, each part by the shorter way; the part of the opposite member goes half in each direction."""
    parts = ((i, (n - 1 - 2 * i) / (2 * n)) for i in range(n // 2))
    sends = tuple((direction * i % n, direction * (i + 1) % n, share) for i, share in parts for direction in (1, -1))
    return ((float(n // 2), sends),)


def recursive_scatter(n: int) -> Schedule:
    """Recursive halving: each member that has data sends half of it to one that has none, in as many parts as bits."""
    bits = n.bit_length() - 1
    phases = []
    for step in reversed(range(bits)):
        sends: list[Send] = []
        for part in range(bits):
            reached = sum(1 << (later + part) % bits for later in range(step + 1, bits))
            sends += [
                (i, i ^ 1 << (step + part) % bits, 2**step / n / bits) for i in range(n) if i | reached == reached
            ]
        phases.append((1.0, tuple(sends)))
    return tuple(phases)


def direct_scatter(n: int) -> Schedule:
    """Member 0 sends to all others at once."""
    return ((1.0, tuple((0, i, 1 / n) for i in range(1, n))),)


def reversed_schedule(schedule: Schedule) -> Schedule:
    """The schedule in reverse, phases and sends: a gather from a scatter."""
    return tuple((steps, tuple((b, a, share) for a, b, share in sends)) for steps, sends in reversed(schedule))


def restricted_to(schedule: Schedule, last: int) -> Schedule:
    """The sends of an unscattered broadcast that lead to member ``last``; phases remain, even without sends."""
    targets = {last}
    phases = []
    for steps, sends in reversed(schedule):
        needed = []
        for a, b, share in reversed(sends):
            if b in targets:
                targets.add(a)
                needed.append((a, b, share))
        phases.append((steps, tuple(needed)))
    return tuple(reversed(phases))


SCHEDULES: dict[str, Callable[[Kind, int], Schedule]] = {
    "ring": ring,
    "bidirectional-ring": bidirectional_ring,
    "recursive": recursive,
    "direct": direct,
    "direct-one-step": direct_one_step,
    "tree": tree,
    "pipelined": chain,
    "send": point_to_point,
}


SCATTERS: dict[str, Callable[[int], Schedule]] = {
    "ring": ring_scatter,
    "bidirectional-ring": bidirectional_ring_scatter,
    "recursive": recursive_scatter,
    "direct": direct_scatter,
}


def schedule_names(kind: Kind, n: int) -> tuple[str, ...]:
    """Names of the schedules of a collective among ``n`` members; those in ``SCATTERS`` scatter broadcasts and sends."""
    unscattered = {
        "send": ("send", "tree", "pipelined"),
        "broadcast": ("tree", "pipelined", "direct-one-step"),
        "all-reduce": ("direct-one-step",),
    }
    halving = ("recursive",) if n & (n - 1) == 0 else ()
    return ("ring", "bidirectional-ring", *halving, "direct", *unscattered.get(kind, ()))
