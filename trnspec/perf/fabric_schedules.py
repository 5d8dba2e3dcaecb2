"""Schedules of collectives: phases, and what each member sends to which in them, as shares of the buffer.

Members are numbered by their position in a group.  A schedule knows neither links nor rates; on links it is put by
``trnspec.perf.fabric_routes``.  A phase is several equal steps: latency counts each, transfers are their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from trnspec.perf.collectives import Kind
    from trnspec.perf.fabric_routes import Send

Schedule = tuple[tuple[float, tuple["Send", ...]], ...]
"""Phases: steps, and the sends of all of them together."""

PASSES = ("all-reduce", "all-gather", "reduce-scatter")


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
    """All-reduce: everyone sends everything to everyone."""
    assert kind == "all-reduce"
    return ((1.0, tuple((i, j, 1.0) for i in range(n) for j in range(n) if i != j)),)


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


def straight(kind: Kind, n: int) -> Schedule:
    """The first member sends to the last."""
    assert kind == "send"
    return ((1.0, ((0, n - 1, 1.0),)),)


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


def possible(kind: Kind, n: int) -> tuple[str, ...]:
    """The schedules of a collective among ``n`` members."""
    if kind == "send":
        return ("send",)
    if kind == "broadcast":
        return ("tree", "pipelined")
    halving = ("recursive",) if n & (n - 1) == 0 else ()
    once = ("direct-one-step",) if kind == "all-reduce" else ()
    return ("ring", "bidirectional-ring", *halving, "direct", *once)
