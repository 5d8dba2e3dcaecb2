"""Tokens on their way to experts: how many copies of each are sent, over which links, and how long that takes.

A token is routed to ``k`` experts, which are spread over ``n`` ranks.  Two ways to send it are in use:

- **per copy**: one copy for each expert, directly to its rank (all-to-all of a collective library; the ``alltoall``
  dispatcher of NVIDIA/Megatron-LM).
- **per node**: one copy for each unit (server, chip, rank) that has at least one of the experts, handed on inside the unit
  (DeepSeek-V3, arXiv 2412.19437, section 3.2.2; deepseek-ai/DeepEP; HybridEP).

Experts are chosen uniformly and independently, so a unit with the share ``s`` of the experts is visited with the probability
``1 - (1 - s)^k``.  Of ``n`` units ``n (1 - (1 - 1/n)^k)`` are visited, the own one included.

All functions take floats or float64 arrays that broadcast.  Times are in s, sizes in B.
"""

from __future__ import annotations

from itertools import pairwise

from attrs import frozen

from trnspec.perf.lowering.machine import Machine, across, carried, unit_shares
from trnspec.perf.ops import Number, larger, power, smaller, where

SENT = {"bf16": 1.0, "fp8": (1.0 + 4.0 / 128.0 + 2.0) / 4.0}
"""Bytes of an all-to-all and of the one back over those of 16 bit, by the dtype of tokens on their way to experts.

In ``fp8`` every 128 elements have a scale of 4 bytes; results return in 16 bit (DeepSeek-V3, arXiv 2412.19437, section 3.3).
"""
_BITS = 6
"""Binary digits of the most experts per token that are distinguished."""
_MOST = 2.0**_BITS - 1.0
"""Experts per token from which on as many are assumed: they are nearly everywhere."""
_NONE = 1e-12
"""Threshold of a share: rounding may leave a difference of equal ones."""


@frozen
class Exchange:
    """The links that an all-to-all among the ranks of a group uses.

    Attributes:
        shares: Shares of the group: one rank, and the part within a unit of each level, innermost first; the last is 1.
        bytes: Time of one byte over the links of each level [s].
        across: Time of a byte to a random chip of a torus or mesh over its slowest dimension, for each level [s]; else 0.
        across_share: Share of the group within the torus or mesh.
        hop: Latency of the farthest level that is used [s].
        unknown: Above 0 where a link is used whose rate is not published.
    """

    shares: tuple[Number, ...]
    bytes: tuple[Number, ...]
    across: tuple[Number, ...]
    across_share: Number
    hop: Number
    unknown: Number


def exchange(machine: Machine, n: Number, stride: Number) -> Exchange:
    """The links of an all-to-all among ``n`` ranks with a stride."""
    shares = tuple(1.0 / n / share for share in unit_shares(machine, n, stride))
    hop, unknown, torus = machine.levels[0].hop, 0.0, shares[2]
    for level, (near, far), share in zip(machine.levels, pairwise(shares), shares[1:], strict=True):
        hop = where(far - near > _NONE, level.hop, hop)
        unknown = unknown + (far - near) * level.unknown
        if level.axes:
            # Dimensions within a server and between servers are one torus.
            torus = where(level.axes[0].line > 0.0, share, torus)
    return Exchange(
        shares,
        tuple(level.seconds_per_byte / carried(level, n, stride) for level in machine.levels),
        tuple(level.seconds_per_byte * across(level, n, stride) for level in machine.levels),
        torus,
        where(n > 1.0, hop, 0.0),
        unknown,
    )


def reach(links: Exchange, node_limit: Number) -> Number:
    """Share of the experts among which those of a token are, with routing limited to some nodes; 1 without a limit.

    Args:
        links: The links; a unit within which no network is used is a node.
        node_limit: Nodes that the experts of a token are on, at most; 0 for no limit.
    """
    return where(node_limit > 0.0, smaller(1.0, larger(1.0, node_limit) * links.shares[-2]), 1.0)


def visited(share: Number, k: Number) -> Number:
    """The probability that a token is sent to a unit with this share of the experts: ``1 - (1 - share)^k``.

    Args:
        share: Share of the experts.
        k: Experts per token, an integer.
    """
    return 1.0 - power(1.0 - share, smaller(k, _MOST), _BITS)


def copies(n: Number, k: Number, per_node: Number, within: Number = 1.0) -> Number:
    """Copies of a token that ``n`` ranks receive, the rank that it comes from included.

    ``k`` per copy; per node ``n (1 - (1 - 1/n)^k)``, one for each rank that has some of its experts.

    Args:
        n: Ranks that the experts are spread over.
        k: Experts per token.
        per_node: 1 where a rank receives a token once, 0 where once for each expert.
        within: Result of :func:`reach`.
    """
    return where(per_node > 0.0, n * _met(1.0 / n, k, within), k)


def _met(share: Number, k: Number, within: Number) -> Number:
    """:func:`visited`, where experts are chosen in a share of them that is itself chosen uniformly."""
    return within * visited(smaller(1.0, share / within), k)


def byte_time(links: Exchange, k: Number, per_node: Number, within: Number = 1.0) -> Number:
    """Time of an all-to-all of one byte per token of a rank [s].

    Level i carries what leaves a unit of level i - 1, with the share ``s_(i-1)``, and stays in one of level i; the levels work
    at the same time, so the slowest counts.

    - per copy: ``k (s_i - s_(i-1))``; in a torus, whose servers are a part of it, also what crosses the middle of each
      dimension;
    - per node: a copy for each unit that is visited, except the one where it arrives, which is one of ``s_i / s_(i-1)``:
      ``(1 - (1 - s_(i-1))^k) (1/s_(i-1) - 1/s_i)``. Copies are handed on while others arrive.

    Args:
        links: The links.
        k: Experts per token.
        per_node: 1 where tokens are sent per node, 0 where per copy.
        within: Result of :func:`reach`: with the share ``w`` of the experts, ``w (1 - (1 - s/w)^k)`` is visited.
    """
    direct: Number = 0.0
    handed_on: Number = 0.0
    for crossing in links.across:
        direct = larger(direct, k * links.across_share * crossing)
    for (near, far), byte in zip(pairwise(links.shares), links.bytes, strict=True):
        direct = larger(direct, k * (far - near) * byte)
        handed_on = larger(handed_on, _met(near, k, within) * (1.0 / near - 1.0 / far) * byte)
    return where(per_node > 0.0, handed_on, direct)
