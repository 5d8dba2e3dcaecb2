"""Schedules of collectives: phases, and what each member sends to which in them, as shares of the buffer.

Members are numbered by their position in a group.  A schedule knows neither links nor rates; on links it is put by
``trnspec.perf.collectives.routes``.  A phase is several equal steps: latency counts each, transfers are their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from trnspec.perf.collectives.closed_forms import Kind
    from trnspec.perf.collectives.routes import Send

Schedule = tuple[tuple[float, tuple["Send", ...]], ...]
"""Phases: steps, and the sends of all of them together."""


def _times(kind: Kind) -> int:
    """An all-reduce is two passes, each of the time of the other."""
    return 2 if kind == "all-reduce" else 1


def ring(kind: Kind, n: int) -> Schedule:
    """One way round."""
    total = (n - 1) / 2 if kind == "all-to-all" else (n - 1) / n
    sends = tuple((i, (i + 1) % n, total) for i in range(n))
    return ((float(n - 1), sends),) * _times(kind)


def bidirectional_ring(kind: Kind, n: int) -> Schedule:
    """Both ways round, by the shorter one; the block of the opposite member half by either."""
    total = (n * n // 4) / (2 * n) if kind == "all-to-all" else (n - 1) / (2 * n)
    sends = tuple((i, (i + turn) % n, total) for i in range(n) for turn in (1, -1))
    return ((float(n // 2), sends),) * _times(kind)


def recursive(kind: Kind, n: int) -> Schedule:
    """Exchanges between numbers that differ in one bit; as many parts as bits, each begins with another bit.

    So all links of a hypercube work at once, as in the exchanges along four axes that Neuron documents.
    """
    bits = n.bit_length() - 1
    phases = []
    for step in range(bits):
        share = (0.5 if kind == "all-to-all" else 2**step / n) / bits
        phases.append(
            (1.0, tuple((i, i ^ (1 << (step + part) % bits), share) for i in range(n) for part in range(bits)))
        )
    return tuple(phases) * _times(kind)


def direct(kind: Kind, n: int) -> Schedule:
    """Everyone to everyone at once."""
    sends = tuple((i, j, 1 / n) for i in range(n) for j in range(n) if i != j)
    return ((1.0, sends),) * _times(kind)


def direct_one_step(kind: Kind, n: int) -> Schedule:
    """All-reduce: everyone sends everything to everyone.  Broadcast: member 0 does."""
    assert kind in ("all-reduce", "broadcast")
    senders = 1 if kind == "broadcast" else n
    return ((1.0, tuple((i, j, 1.0) for i in range(senders) for j in range(n) if i != j)),)


def tree(kind: Kind, n: int) -> Schedule:
    """Broadcast from member 0 by a binomial tree, the far ones first."""
    assert kind == "broadcast"
    phases = []
    reach = 1 << (n - 1).bit_length()
    while reach > 1:
        half = reach // 2
        phases.append((1.0, tuple((i, i + half, 1.0) for i in range(0, n, reach) if i + half < n)))
        reach = half
    return tuple(phases)


def chain(kind: Kind, n: int) -> Schedule:
    """Broadcast from member 0 along the group, in pieces; the steps that fill the pipeline are not counted here."""
    assert kind == "broadcast"
    return ((0.0, tuple((i, i + 1, 1.0) for i in range(n - 1))),)


def chains(n: int, last: int | None = None) -> Schedule:
    """Two chains around a circle from member 0, one each way, each with half of the buffer; else as :func:`chain`.

    To all members, or only as far as one of them.
    """
    ends = (n - 1, n - 1) if last is None else (last, n - last)
    sends = (
        (turn * i % n, turn * (i + 1) % n, 0.5) for turn, end in zip((1, -1), ends, strict=True) for i in range(end)
    )
    return ((0.0, tuple(sends)),)


def straight(kind: Kind, n: int) -> Schedule:
    """The first member sends to the last."""
    assert kind == "send"
    return ((1.0, ((0, n - 1, 1.0),)),)


# What one member has, in equal parts to all: a reduce-scatter, backwards an all-gather, of which only what member 0 sends
# is left.  No link carries more of it, and it takes the same steps.  Then an all-gather makes a broadcast of it (M.
# Barnett et al., Interprocessor collective communication library, 1994; Thakur et al. 2005, section 4.2; Chan et al.
# 2007), a gather a send.


def ring_scatter(n: int) -> Schedule:
    """One way round: a link carries the parts of all behind it."""
    return ((float(n - 1), tuple((i, i + 1, (n - 1 - i) / n) for i in range(n - 1))),)


def bidirectional_ring_scatter(n: int) -> Schedule:
    """Both ways round, by the shorter one; the part of the opposite member half by either."""
    turns = ((i, (n - 1 - 2 * i) / (2 * n)) for i in range(n // 2))
    sends = tuple((turn * i % n, turn * (i + 1) % n, share) for i, share in turns for turn in (1, -1))
    return ((float(n // 2), sends),)


def recursive_scatter(n: int) -> Schedule:
    """Recursive halving: half of what a member has to one that has nothing, as many parts as bits."""
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
    """To all at once."""
    return ((1.0, tuple((0, i, 1 / n) for i in range(1, n))),)


def backwards(schedule: Schedule) -> Schedule:
    """The last phase first, and each send the other way: a gather from a scatter."""
    return tuple((steps, tuple((b, a, share) for a, b, share in sends)) for steps, sends in reversed(schedule))


def towards(schedule: Schedule, last: int) -> Schedule:
    """What of a broadcast that sends the buffer whole leads to one member; each phase stays, if only with nothing."""
    wanted = {last}
    phases = []
    for steps, sends in reversed(schedule):
        kept = []
        for a, b, share in reversed(sends):
            if b in wanted:
                wanted.add(a)
                kept.append((a, b, share))
        phases.append((steps, tuple(kept)))
    return tuple(reversed(phases))


SCHEDULES: dict[str, Callable[[Kind, int], Schedule]] = {
    "ring": ring,
    "bidirectional-ring": bidirectional_ring,
    "recursive": recursive,
    "direct": direct,
    "direct-one-step": direct_one_step,
    "tree": tree,
    "pipelined": chain,
    "send": straight,
}


SCATTERS: dict[str, Callable[[int], Schedule]] = {
    "ring": ring_scatter,
    "bidirectional-ring": bidirectional_ring_scatter,
    "recursive": recursive_scatter,
    "direct": direct_scatter,
}


def possible(kind: Kind, n: int) -> tuple[str, ...]:
    """The schedules of a collective among ``n`` members; of a broadcast and a send by those of ``SCATTERS`` too."""
    whole = {
        "send": ("send", "tree", "pipelined"),
        "broadcast": ("tree", "pipelined", "direct-one-step"),
        "all-reduce": ("direct-one-step",),
    }
    halving = ("recursive",) if n & (n - 1) == 0 else ()
    return ("ring", "bidirectional-ring", *halving, "direct", *whole.get(kind, ()))
