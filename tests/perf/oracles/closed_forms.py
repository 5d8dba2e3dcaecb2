"""Closed forms for the time [s] of collectives, the oracle that tests compare the engine's algorithms with.

``size`` is S, the whole buffer [B], ``alpha`` the latency of a step [s], ``beta`` a rate in one direction [B/s].

Sources: R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective communication operations in MPICH, 2005
(ring, recursive halving and doubling, binomial tree); P. Sack and W. Gropp, Collective algorithms for multiported torus
networks, 2015 (torus); E. Chan et al., Collective communication: theory, practice, and experience, 2007 (lower bounds).
"""

import math


def taken(algorithm: str, kind: str, size: float, n: int, alpha: float, beta: float) -> float:
    """One or two passes around a ring, by halving and doubling (n a power of two), or directly.

    ``beta`` is one link of a ring, of which a pair has one; else all that a rank sends.
    """
    steps = {"ring": n - 1, "bidirectional-ring": n // 2, "recursive": n.bit_length() - 1, "direct": 1}[algorithm]
    share = (n - 1) / n
    if kind == "all-to-all":
        # A block of S / n goes n / 2 hops around a ring in the mean; halving sends half of the buffer in every step.
        share = {"ring": (n - 1) / 2, "bidirectional-ring": n * n // 4 / n, "recursive": steps / 2, "direct": share}[
            algorithm
        ]
    links = min(n - 1, 2) if algorithm == "bidirectional-ring" else 1
    return (2 if kind == "all-reduce" else 1) * (steps * alpha + share * size / (links * beta))


def tree_broadcast(size: float, n: int, alpha: float, beta: float) -> float:
    """Binomial tree: ceil(log2 n) (alpha + S / beta)."""
    return math.ceil(math.log2(n)) * (alpha + size / beta)


def pipelined_broadcast(size: float, n: int, alpha: float, beta: float) -> float:
    """Along a chain in the best number of up to 2,000 pieces."""
    return min((m + n - 2) * (alpha + size / (m * beta)) for m in range(1, 2000)) if alpha else size / beta


def torus(kind: str, size: float, dims: tuple[int, ...], alpha: float, beta: float) -> float:
    """As many parts of the buffer as axes, each on another axis in each phase; every axis a ring both ways.

    The part that starts on an axis is such that all axes finish the first phase together.  An all-to-all sends all blocks
    at once, axis after axis, the shorter way: the busiest axis decides.  ``beta`` is one link.
    """
    if kind == "all-to-all":
        loads = [k * k // 4 / (min(k - 1, 2) * k) * size / beta for k in dims]
        return sum(k // 2 for k in dims) * alpha + max(loads)
    weights = [k / (k - 1) * min(k - 1, 2) for k in dims]
    left = [size * weight / sum(weights) for weight in weights]
    total = 0.0
    for phase in range(len(dims)):
        times = []
        for part in range(len(dims)):
            k = dims[(part + phase) % len(dims)]
            times.append(taken("bidirectional-ring", "all-gather", left[part], k, alpha, beta))
            left[part] /= k
        total += max(times)
    return (2 if kind == "all-reduce" else 1) * total


def sent(kind: str, n: int) -> float:
    """The least that a rank sends of the buffer (Chan et al. 2007)."""
    return {"all-reduce": 2 * (n - 1) / n, "broadcast": min(n - 1, 1), "send": min(n - 1, 1)}.get(kind, (n - 1) / n)
