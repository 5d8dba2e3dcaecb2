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

from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.perf import ops
from trnspec.perf.lowering.machine import always_zero, carried, detour, remembered
from trnspec.perf.ops import Number, larger, power, smaller, where

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine

LEAST_DISPATCH: dict[str, Any] = {"dispatch": "per-node", "expert_overlap": True}
"""The fields of a layout with the least traffic that is exposed, for ideal times."""
SOFTWARE_DISPATCH: dict[str, Any] = {"dispatch": "per-node", "expert_overlap": True}
"""The same in software whose dispatch is not stated: a calibration has how much of the all-to-all is hidden."""
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
    """The links that an all-to-all among the ranks of a group uses; ``_1`` is the innermost level.

    Attributes:
        share_0: Share of the group that is one rank.
        share_1: Share of the group within a unit of level 1.
        share_2: The same, level 2.
        share_3: The same, level 3.
        byte_1: Time of one byte over the links of level 1 [s].
        byte_2: The same, level 2.
        byte_3: The same, level 3.
        byte_4: The same, level 4.
        detour_2: Time of a byte to a random chip of the group over that to a neighbour, in a torus or mesh within a server.
        detour_3: The same, within an UltraServer.
        hop: Latency of the farthest level that is used [s].
        unknown: Above 0 where a link is used whose rate is not published.
    """

    share_0: Number
    share_1: Number
    share_2: Number
    share_3: Number
    byte_1: Number
    byte_2: Number
    byte_3: Number
    byte_4: Number
    detour_2: Number
    detour_3: Number
    hop: Number
    unknown: Number


_NO_EXCHANGE = Exchange(1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
"""That of one rank."""


@remembered
def exchange(machine: Machine, n: Number, stride: Number) -> Exchange:
    """The links of an all-to-all among ``n`` ranks with a stride.

    Where a unit does not hold an integer number of the group's ranks, its share is the mean.

    Args:
        machine: Compute and communication of a rank.
        n: Ranks of the group.
        stride: Distance of neighbors in the group, in ranks.
    """
    if always_zero(n - 1.0):
        return _NO_EXCHANGE
    share_0 = 1.0 / n
    share_1 = share_0 / larger(share_0, smaller(1.0, stride * machine.inverse_1))
    share_2 = share_0 / larger(share_0, smaller(1.0, stride * machine.inverse_2))
    share_3 = share_0 / larger(share_0, smaller(1.0, stride * machine.inverse_3))
    on_1, on_2, on_3, on_4 = share_1 - share_0, share_2 - share_1, share_3 - share_2, 1.0 - share_3
    hop = where(
        on_4 > _NONE,
        machine.hop_4,
        where(on_3 > _NONE, machine.hop_3, where(on_2 > _NONE, machine.hop_2, machine.hop_1)),
    )
    unknown = on_1 * machine.unknown_1 + on_2 * machine.unknown_2 + on_3 * machine.unknown_3 + on_4 * machine.unknown_4
    byte_2, byte_3 = machine.byte_2, machine.byte_3
    detour_2: Number = 1.0
    detour_3: Number = 1.0
    if not always_zero(machine.line_2a):
        part = carried(machine, 2, n, stride)
        byte_2, detour_2 = byte_2 / part, part * detour(machine, 2, n, stride)
    if not always_zero(machine.line_3a):
        part = carried(machine, 3, n, stride)
        byte_3, detour_3 = byte_3 / part, part * detour(machine, 3, n, stride)
    return Exchange(
        *(share_0, share_1, share_2, share_3),
        *(machine.byte_1, byte_2, byte_3, machine.byte_4),
        *(detour_2, detour_3),
        hop,
        unknown,
    )


def reach(links: Exchange, node_limit: Number) -> Number:
    """Share of the experts among which those of a token are, with routing limited to some nodes; 1 without a limit.

    Args:
        links: The links; a unit within which no network is used is a node.
        node_limit: Nodes that the experts of a token are on, at most; 0 for no limit.
    """
    if always_zero(node_limit):
        return 1.0
    return where(node_limit > 0.0, smaller(1.0, larger(1.0, node_limit) * links.share_3), 1.0)


@ops.remembered
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
    if always_zero(per_node):
        return k
    ranks = n * _met(1.0 / n, k, within)
    return ranks if type(per_node) is float else where(per_node > 0.0, ranks, k)


def _met(share: Number, k: Number, within: Number) -> Number:
    """:func:`visited`, where experts are chosen in a share of them that is itself chosen uniformly."""
    if type(within) is float and within == 1.0:
        return visited(share, k)
    return within * visited(smaller(1.0, share / within), k)


def byte_time(links: Exchange, k: Number, per_node: Number, within: Number = 1.0) -> Number:
    """Time of an all-to-all of one byte per token of a rank [s].

    Level i carries what leaves a unit of level i - 1, with the share ``s_(i-1)``, and stays in one of level i.

    - per copy: ``k (s_i - s_(i-1))``, in a torus over as many links as the copies pass, and the times of the levels add up;
    - per node: a copy for each unit that is visited, except the one where it arrives, which is one of ``s_i / s_(i-1)``:
      ``(1 - (1 - s_(i-1))^k) (1/s_(i-1) - 1/s_i)``. Copies are handed on while others arrive, so the slowest level counts.

    Args:
        links: The links.
        k: Experts per token.
        per_node: 1 where tokens are sent per node, 0 where per copy.
        within: Result of :func:`reach`: with the share ``w`` of the experts, ``w (1 - (1 - s/w)^k)`` is visited.
    """
    one_way = type(per_node) is float
    direct: Number = 0.0
    handed_on: Number = 0.0
    for near, far, byte, detours in (
        (links.share_0, links.share_1, links.byte_1, 1.0),
        (links.share_1, links.share_2, links.byte_2, links.detour_2),
        (links.share_2, links.share_3, links.byte_3, links.detour_3),
        (links.share_3, 1.0, links.byte_4, 1.0),
    ):
        if always_zero(byte) or always_zero(far - near):
            continue
        if not one_way or not per_node:
            direct = direct + k * (far - near) * (byte * detours)
        if not one_way or per_node:
            handed_on = larger(handed_on, _met(near, k, within) * (1.0 / near - 1.0 / far) * byte)
    if one_way:
        return handed_on if per_node else direct
    return where(per_node > 0.0, handed_on, direct)
