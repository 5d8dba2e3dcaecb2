"""Closed forms that the collective algorithms share: pipelined broadcast, torus shares, bus factor, injection bound.

Conventions, here and in the algorithms:

- ``n`` is the number of ranks; ``size`` is S, the whole buffer [B]: what every rank holds after an all-gather, before a
  reduce-scatter, and before and after an all-reduce or a broadcast.  In an all-to-all it is what one rank sends: all
  ``n`` blocks, its own included, so that an array of V bytes over all ranks has S = V / n.
- ``alpha`` is the latency of one step [s]; ``beta`` is a rate in one direction [B/s].  Links are full duplex.
- Arguments are floats or float64 arrays that broadcast; the result has the broadcast shape, with the same bits.
- One rank takes exactly 0; S = 0 takes the latency only.

Sources: R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective communication operations in MPICH, 2005; P.
Sack and W. Gropp, Collective algorithms for multiported torus networks, 2015 (torus); E. Chan et al., Collective
communication: theory, practice, and experience, 2007 (lower bounds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trnspec.perf import ops

if TYPE_CHECKING:
    from trnspec.perf.ops import Number

Kind = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"]


def ring_links(n: Number) -> Number:
    """Links over which a member of a bidirectional ring sends: 1 in a pair, 2 from three members on."""
    return ops.smaller(ops.larger(n - 1.0, 1.0), 2.0)


def pipelined_broadcast(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Time [s] of a broadcast along a chain of ranks in m pieces: (m + n - 2) (alpha + S / (m beta)), for the best m.

    The optimum is m = sqrt((n - 2) S / (alpha beta)); the better of the two neighbouring integers is taken.  Without
    latency the limit is S / beta; for two ranks m = 1.
    """
    behind = ops.larger(n - 2.0, 0.0)
    # alpha = 0 is handled below; 1.0 only avoids a division by zero here.
    best = ops.sqrt(behind * size / beta / ops.where(alpha > 0.0, alpha, 1.0))
    lower = ops.larger(ops.floor(best), 1.0)
    upper = ops.larger(ops.ceil(best), 1.0)
    time_lower = (lower + behind) * alpha + size / beta + behind * size / beta / lower
    time_upper = (upper + behind) * alpha + size / beta + behind * size / beta / upper
    return ops.where(n > 1.0, ops.where(alpha > 0.0, ops.smaller(time_lower, time_upper), size / beta), 0.0)


def torus_shares(dims: tuple[Number, ...], rates: tuple[Number, ...]) -> tuple[Number, ...]:
    """The share of the buffer that starts on each axis of a torus, such that all axes finish the first phase together.

    Proportional to k / (k - 1) times what a member sends along the axis (Sack and Gropp 2015); 0 on an axis of one.

    Args:
        dims: Members along each axis; an axis of two has one link.
        rates: One link along each axis, one direction [B/s].
    """
    weights = [
        ops.where(k > 1.0, k / ops.larger(k - 1.0, 1.0) * (ring_links(k) * b), 0.0)
        for k, b in zip(dims, rates, strict=True)
    ]
    total: Number = 0.0
    for weight in weights:
        total = total + weight
    return tuple(weight / ops.where(total > 0.0, total, 1.0) for weight in weights)


def bus_factor(kind: Kind, n: Number) -> Number:
    """Bus bandwidth over algorithm bandwidth S / time: 2 (n - 1) / n, (n - 1) / n, or 1 for broadcast and send.

    The factors of nccl-tests and nccom-test.  0 for one rank, which sends nothing.
    """
    if kind == "all-reduce":
        return 2.0 * ((n - 1.0) / n)
    if kind in ("broadcast", "send"):
        return ops.smaller(n - 1.0, 1.0)
    return (n - 1.0) / n


def injection_bound(kind: Kind, size: Number, n: Number, beta: Number) -> Number:
    """Lower bound on time [s]: the least that a rank must send, over ``beta``, all that it can send (Chan et al. 2007)."""
    return bus_factor(kind, n) * size / beta
