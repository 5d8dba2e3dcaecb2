"""Closed forms for the time [s] of collectives, the oracle that tests compare the engine's algorithms with.

Conventions are those of ``trnspec.perf.collectives.closed_forms``, whose functions this module offers too.  Each
function says whether ``beta`` is one link of a rank or all of them.

Sources: R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective communication operations in MPICH, 2005
(ring, recursive halving and doubling, binomial tree); J. Bruck et al., Efficient algorithms for all-to-all
communications in multiport message-passing systems, 1997 (numbers of ranks that are not a power of two, all-to-all); P.
Sack and W. Gropp, Collective algorithms for multiported torus networks, 2015 (torus); E. Chan et al., Collective
communication: theory, practice, and experience, 2007 (lower bounds).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from trnspec.perf import ops
from trnspec.perf.collectives.closed_forms import (
    Kind,
    bus_factor,
    injection_bound,
    pipelined_broadcast,
    ring_links,
    torus_shares,
)

if TYPE_CHECKING:
    from trnspec.perf.ops import Number

__all__ = ["Kind", "bus_factor", "injection_bound", "pipelined_broadcast", "torus_shares"]

Steps = Literal["ring", "recursive", "direct"]


def _pass(size: Number, n: Number, steps: Number, alpha: Number, beta: Number) -> Number:
    """One pass of ``steps`` steps, in which a rank sends and receives (n - 1) / n of the buffer."""
    return steps * alpha + (n - 1.0) / n * size / beta


def _multiple(n: Number) -> Number:
    """1 where there is more than one rank, else 0."""
    return ops.smaller(n - 1.0, 1.0)


def halves(n: Number) -> Number:
    """Steps of a bidirectional ring, floor(n / 2): the hops to the farthest member."""
    return ops.floor(n / 2.0)


# Rings.  Neuron calls the bidirectional one KangaRing.


def ring_all_gather(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Ring one way: (n - 1) alpha + (n - 1) / n S / beta; beta is one link (Thakur et al. 2005)."""
    return _pass(size, n, n - 1.0, alpha, beta)


def ring_reduce_scatter(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """The all-gather in reverse: the same time."""
    return _pass(size, n, n - 1.0, alpha, beta)


def ring_all_reduce(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Reduce-scatter, then all-gather: 2 (n - 1) alpha + 2 (n - 1) / n S / beta (Thakur et al. 2005)."""
    return 2.0 * _pass(size, n, n - 1.0, alpha, beta)


def bidirectional_ring_all_gather(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Ring both ways: floor(n / 2) alpha + (n - 1) / n S / (2 beta); beta is one link, a pair has one.

    Blocks travel the shorter way; where n is even, the block of the opposite member comes half from either side.
    """
    return _pass(size, n, halves(n), alpha, ring_links(n) * beta)


def bidirectional_ring_reduce_scatter(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """The all-gather in reverse: the same time."""
    return bidirectional_ring_all_gather(size, n, alpha, beta)


def bidirectional_ring_all_reduce(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Reduce-scatter, then all-gather, both ways round."""
    return 2.0 * bidirectional_ring_all_gather(size, n, alpha, beta)


def ring_all_to_all(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Ring one way: (n - 1) alpha + (n - 1) / 2 S / beta, since a block of S / n goes n / 2 hops in the mean.

    Of an array of V bytes in all, S = V / n: half the time of its all-gather.
    """
    return (n - 1.0) * alpha + (n - 1.0) / 2.0 * size / beta


def bidirectional_ring_all_to_all(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Ring both ways: floor(n / 2) alpha + floor(n^2 / 4) / (2 n) S / beta; beta is one link, a pair has one.

    Of an array of V bytes in all, S = V / n: a quarter of V / (2 beta) for even n.
    """
    return halves(n) * alpha + ops.floor(n * n / 4.0) / (ring_links(n) * n) * size / beta


# Recursive halving and doubling.


def recursive_all_gather(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Recursive doubling: ceil(log2 n) alpha + (n - 1) / n S / beta; beta is what a rank sends in one step.

    Where n is not a power of two it is Bruck's exchange, which takes the one further step that rounding up gives and
    moves no byte more (Bruck et al. 1997; Thakur et al. 2005).
    """
    return _pass(size, n, ops.steps(n), alpha, beta)


def recursive_reduce_scatter(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Recursive halving; the all-gather in reverse: the same time."""
    return _pass(size, n, ops.steps(n), alpha, beta)


def recursive_all_reduce(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Halving, then doubling: 2 ceil(log2 n) alpha + 2 (n - 1) / n S / beta (Thakur et al. 2005)."""
    return 2.0 * _pass(size, n, ops.steps(n), alpha, beta)


def recursive_all_to_all(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Bruck's: ceil(log2 n) steps, each with half of the buffer, for n a power of two (Thakur et al. 2005).

    Else the last step sends n - 2^floor(log2 n) blocks; here it counts as half of the buffer too, an upper bound.
    """
    return ops.steps(n) * (alpha + size / 2.0 / beta)


# Direct exchange: Mesh on Neuron.


def direct_all_gather(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Every rank sends to every other at once: alpha + (n - 1) / n S / beta; beta is all that a rank sends."""
    return _pass(size, n, _multiple(n), alpha, beta)


def direct_reduce_scatter(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Every rank sends every other its part at once: the same time as the all-gather."""
    return _pass(size, n, _multiple(n), alpha, beta)


def direct_all_reduce(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Reduce-scatter, then all-gather: 2 alpha + 2 (n - 1) / n S / beta."""
    return 2.0 * _pass(size, n, _multiple(n), alpha, beta)


def direct_all_reduce_one_step(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Every rank sends its buffer to every other and reduces locally: alpha + (n - 1) S / beta."""
    return _multiple(n) * alpha + (n - 1.0) * size / beta


def direct_all_to_all(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Switched or fully connected: alpha + (n - 1) / n S / beta; beta is all that a rank sends."""
    return _pass(size, n, _multiple(n), alpha, beta)


# Broadcast and send.


def tree_broadcast(size: Number, n: Number, alpha: Number, beta: Number) -> Number:
    """Binomial tree: ceil(log2 n) (alpha + S / beta) (Thakur et al. 2005)."""
    return ops.steps(n) * (alpha + size / beta)


def send(size: Number, hops: Number, alpha: Number, beta: Number) -> Number:
    """To one other rank: hops alpha + S / beta; what is passed on is not waited for in between.  No hop takes 0."""
    return hops * alpha + ops.smaller(hops, 1.0) * size / beta


# Torus: all axes at once.


def torus_all_gather(size: Number, dims: tuple[Number, ...], alpha: Number, rates: tuple[Number, ...]) -> Number:
    """As many parts of the buffer as axes, each part on another axis in each phase; every axis a ring both ways.

    In phase p the part that started on axis j is on axis j + p.  On two equal axes it attains (N - 1) / N S / (4 b),
    all that four links can do.  A phase ends with its slowest part.

    Args:
        size: S in B.
        dims: Members along each axis; a dimension of two has one link.
        alpha: Latency of a step in s.
        rates: One link along each axis, one direction, in B/s.
    """
    shares = torus_shares(dims, rates)
    axes = len(dims)
    left = [size * share for share in shares]
    total: Number = 0.0
    for phase in range(axes):
        slowest: Number = 0.0
        for part in range(axes):
            k, rate = dims[(part + phase) % axes], rates[(part + phase) % axes]
            slowest = ops.larger(
                slowest, _pass(left[part], k, ops.where(k > 1.0, halves(k), 0.0), alpha, ring_links(k) * rate)
            )
            left[part] = left[part] / k
        total = total + slowest
    return total


def torus_reduce_scatter(size: Number, dims: tuple[Number, ...], alpha: Number, rates: tuple[Number, ...]) -> Number:
    """The all-gather in reverse: the same time."""
    return torus_all_gather(size, dims, alpha, rates)


def torus_all_reduce(size: Number, dims: tuple[Number, ...], alpha: Number, rates: tuple[Number, ...]) -> Number:
    """Reduce-scatter, then all-gather: 2 (N - 1) / N S / (4 b) on two equal axes."""
    return 2.0 * torus_all_gather(size, dims, alpha, rates)


def torus_all_to_all(size: Number, dims: tuple[Number, ...], alpha: Number, rates: tuple[Number, ...]) -> Number:
    """All blocks at once, axis after axis, the shorter way: the busiest axis decides.

    A link of an axis of k carries floor(k^2 / 4) / (2 k) S, k / 8 S for even k; of a pair S / 2.  For even k that is
    the bound of the bisection (Dally and Towles, Principles and Practices of Interconnection Networks, 2004).
    Arguments as in :func:`torus_all_gather`.
    """
    steps: Number = 0.0
    slowest: Number = 0.0
    for k, rate in zip(dims, rates, strict=True):
        steps = steps + halves(k)
        slowest = ops.larger(slowest, ops.floor(k * k / 4.0) / (ring_links(k) * k) * size / rate)
    return steps * alpha + slowest


# Levels.


def _level_steps(k: Number, steps: Steps) -> Number:
    if steps == "ring":
        return k - 1.0
    return ops.steps(k) if steps == "recursive" else _multiple(k)


def hierarchical_parts(
    kind: Kind,
    size: Number,
    members: tuple[Number, ...],
    alphas: tuple[Number, ...],
    betas: tuple[Number, ...],
    steps: Steps = "ring",
) -> tuple[tuple[Number, Number], ...]:
    """Latency and transfer in s at each level; their sum is :func:`hierarchical`.  Arguments as there."""
    parts: list[tuple[Number, Number]] = []
    left = size
    for k, alpha, given in zip(members, alphas, betas, strict=True):
        # A level with one member needs no rate; it may be unknown.
        beta = ops.where(k > 1.0, given, 1.0)
        latency = _level_steps(k, steps) * alpha
        transfer = (k - 1.0) / k * left / beta
        if kind == "all-reduce":
            latency, transfer = 2.0 * latency, 2.0 * transfer
        elif kind == "broadcast":
            latency, transfer = ops.steps(k) * alpha, ops.steps(k) * left / beta
        elif kind == "send":
            latency, transfer = _multiple(k) * alpha, _multiple(k) * left / beta
        parts.append((latency, transfer))
        if kind in ("all-reduce", "all-gather", "reduce-scatter"):
            left = left / k
    return tuple(parts)


def hierarchical(
    kind: Kind,
    size: Number,
    members: tuple[Number, ...],
    alphas: tuple[Number, ...],
    betas: tuple[Number, ...],
    steps: Steps = "ring",
) -> Number:
    """A collective level by level, one after the other.

    A reduce-scatter goes from the inside outwards, an all-gather back, an all-reduce there and back; each level sees
    only the part of the buffer that the levels within it have left to a rank, S over the members within.  An
    all-to-all moves the whole buffer of a rank at each level.  A broadcast is a binomial tree at each level.

    Args:
        kind: Which collective.
        size: S in B.
        members: How many members each level joins, from the inside; a level of 1.0 takes exactly 0.
        alphas: Latency of a step at each level in s.
        betas: What a rank sends over each level in B/s when all ranks do; of a level of 1.0 it is not looked at. Of
            others it must be known: callers refuse a rate of 0 first.
        steps: Steps at a level of k members: ``ring`` k - 1, ``recursive`` ceil(log2 k), ``direct`` 1.
    """
    total: Number = 0.0
    for latency, transfer in hierarchical_parts(kind, size, members, alphas, betas, steps):
        total = total + (latency + transfer)
    return total


def members(group: Number, stride: Number, level_ranks: tuple[Number, ...]) -> tuple[Number, ...]:
    """How many members each level joins for the group of ranks 0, stride, 2 stride, ...

    32 ranks of stride 1 over levels of 2, 32 and any number of ranks: (2, 16, 1); of stride 32: (1, 1, 32).  Where a
    level does not divide what is in it, the fullest unit is counted, and the next level counts units as if all but
    the last were as full: both are rounded up, so the product may exceed the group.

    Args:
        group: Members of the group.
        stride: How far apart they are.
        level_ranks: Ranks within one unit of each level, from the inside; the last may be infinite.
    """
    factors: list[Number] = []
    within: Number = 1.0
    for ranks in level_ranks:
        reach = ops.larger(ops.ceil(ops.smaller(ranks, group * stride) / stride), within)
        factor = ops.ceil(reach / within)
        factors.append(factor)
        within = within * factor
    return tuple(factors)


def bisection_bound(kind: Kind, size: Number, n: Number, cut: Number) -> Number:
    """What must cross a cut into halves at least, over what the cut carries in one direction.

    All-reduce S; all-gather and reduce-scatter the parts of the larger half, ceil(n / 2) / n S; all-to-all a block of
    S / n for each pair, floor(n^2 / 4) / n S; broadcast and send S.

    Args:
        kind: Which collective; for a send the two ranks lie on different sides.
        size: S in B.
        n: Ranks.
        cut: What the links of the cut carry in one direction, in B/s.
    """
    if kind in ("all-gather", "reduce-scatter"):
        return _multiple(n) * ops.ceil(n / 2.0) / n * size / cut
    if kind == "all-to-all":
        return ops.floor(n * n / 4.0) / n * size / cut
    return _multiple(n) * size / cut
