"""Collectives as a library runs them: a few protocols, each a line of latency and rate, of which the fastest is used.

A library (NCCL, Neuron's collectives, the all-reduce kernels of an inference framework) has several ways to run a collective:
protocols that trade latency for rate, and algorithms.  The time of each is linear in the size::

    t = call + s hop + s_n network_hop + max(S (l + own o) / link, S l_n / network)

with ``s`` steps within servers and UltraServers, ``s_n`` over the network, and the loads ``l``, ``l_n`` and ``o`` [s/B] of a
rank's links at their published rates.  The library uses the fastest (NVIDIA/nccl, ``src/graph/tuning.cc``: latency plus
size over bandwidth for each pair of algorithm and protocol), so the time is the least of these lines: concave in the size.

``call`` and the ``hop`` are measured and include the published latency of a link.  All functions take floats or float64 arrays
that broadcast.  Times are in s, sizes in B.
"""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Literal

from attrs import frozen

from trnspec.perf.collectives.schedules import Kind
from trnspec.perf.lowering.machine import Machine, carried, detour, unit_shares
from trnspec.perf.ops import Number, larger, smaller, steps, where

Algorithm = Literal["ring", "recursive", "direct", "one-shot", "in-network"]
"""Data movement of a protocol.

``ring``
    Rings through all ranks, one step for each further rank.  Over the network an all-reduce is a tree.
``recursive``
    Halving and doubling: the binary logarithm of the ranks.
``direct``
    Every rank sends each other its part, in one step: the two-shot all-reduce, Neuron's mesh.
``one-shot``
    All-reduce: every rank sends each other its whole buffer, in one step.
``in-network``
    All-reduce: the switches that can do so reduce and multicast (NVLink SHARP); over the network a tree.
"""

Launch = Literal["graph", "eager", "synchronous"]
"""Launch of a collective.

``graph``
    By the device, from a CUDA graph or a compiled Neuron graph, or one of many that are queued: no time of the host.
``eager``
    By the host, which launches one after the other and does not launch faster than its own time.  Result and input differ.
``synchronous``
    By the host, which waits for each.
"""

_EVERY: tuple[Kind, ...] = ("all-reduce", "all-gather", "reduce-scatter", "broadcast")


@frozen(kw_only=True)
class LibraryProtocol:
    """One way of a library to run collectives.

    Attributes:
        name: Its name in the library.
        algorithm: How it moves the data.
        kinds: The collectives that it runs.
        call: Time that does not depend on size and ranks [s].
        hop: Time of a step within a server or UltraServer [s].
        network_hop: Time of a step over the network [s].
        link: Share of the rate of links within servers and UltraServers, and of device memory between ranks of a chip.
        network: Share of the rate of the network.
        own: How often a rank's own part of the buffer passes its links in addition: it is copied as the others are.
    """

    name: str
    algorithm: Algorithm
    kinds: tuple[Kind, ...] = _EVERY
    call: float = 0.0
    hop: float = 0.0
    network_hop: float = 0.0
    link: float = 1.0
    network: float = 1.0
    own: float = 0.0


@frozen(kw_only=True)
class Library:
    """The protocols of a library on a chip.

    Attributes:
        protocols: The protocols.
        host: Least time of an eager call [s].
        wait: Time by which a synchronous call takes longer [s].
        copies: How often an eager call reads or writes the buffer in device memory in addition.
    """

    protocols: tuple[LibraryProtocol, ...]
    host: float = 0.0
    wait: float = 0.0
    copies: float = 0.0


@frozen
class CollectiveShape:
    """Steps and loads of a collective by one algorithm.

    Attributes:
        steps: Steps within servers and UltraServers.
        network_steps: Steps over the network.
        local: Time per byte of the buffer over the busiest links within them, at published rates [s].
        network: The same over the network.
        own: Time per byte of the buffer of a rank's own part over its innermost links.
        unknown: Above 0 where a link is used whose rate is not published.
    """

    steps: Number
    network_steps: Number
    local: Number
    network: Number
    own: Number
    unknown: Number


def shape(machine: Machine, kind: Kind, algorithm: Algorithm, n: Number, stride: Number) -> CollectiveShape:
    """Steps and loads of a collective among ``n`` ranks with a stride, all groups of its kind at work.

    ``w_i`` of the ranks are within a unit of level i, as in :func:`trnspec.perf.lowering.machine.group`.

    Args:
        machine: Compute and communication of a rank, at published rates.
        kind: The collective.
        algorithm: The algorithm.
        n: Ranks of the group.
        stride: Distance of neighbouring ranks.
    """
    shares, levels = unit_shares(machine, n, stride), machine.levels
    inverse, local_share = shares[-1], shares[-2]
    on = [near - far for near, far in itertools.pairwise(shares)]
    bytes_ = [level.seconds_per_byte / carried(level, n, stride) for level in levels]
    unknown = sum(part * level.unknown for part, level in zip(on, levels, strict=True))
    # Members within a unit that needs no network, and such units.
    local, units = 1.0 / local_share, n * local_share
    if kind == "send":
        near = where(local_share > inverse, 0.0, 1.0)
        some = smaller(n - 1.0, 1.0)
        byte = bytes_[0]
        for part, each in zip(on[1:-1], bytes_[1:-1], strict=True):
            byte = where(part > 0.0, each, byte)
        return CollectiveShape(
            some * near, some * (1.0 - near), some * near * byte, some * (1.0 - near) * bytes_[-1], 0.0, unknown
        )
    if kind == "all-to-all":
        # Of the blocks of a rank, those to the ranks of its unit of level i less those to its unit inside.
        within = [inverse / share for share in shares]
        blocks = [far - near for near, far in itertools.pairwise(within)]
        loads = [
            part * (level.seconds_per_byte * detour(level, n, stride) if level.axes else level.seconds_per_byte)
            for part, level in zip(blocks, levels, strict=True)
        ]
        return CollectiveShape(steps(local), steps(units), reduce(larger, loads[:-1]), loads[-1], 0.0, unknown)
    passes = 2.0 if kind == "all-reduce" else 1.0
    if kind == "broadcast":
        # A pipeline along the ring: every link carries the whole part.
        factors = [where(part > 0.0, outer, 0.0) for part, outer in zip(on, shares, strict=False)]
    elif algorithm == "in-network":
        # Levels whose switches do not reduce are passed as a ring would.
        factors = [
            passes * part + where(part > 0.0, level.reduces * (outer + inner - passes * part), 0.0)
            for part, (outer, inner), level in zip(on, itertools.pairwise(shares), levels, strict=True)
        ]
    elif algorithm == "one-shot" and kind == "all-reduce":
        factors = [outer / inner - 1.0 for outer, inner in itertools.pairwise(shares)]
    else:
        factors = [passes * part for part in on]
    loads = [factor * byte for factor, byte in zip(factors, bytes_, strict=True)]
    innermost: Number = 0.0
    for part, byte in zip(on[-2::-1], bytes_[-2::-1], strict=True):
        innermost = where(part > 0.0, byte, innermost)
    inside, between = _steps(algorithm, kind, local, units)
    return CollectiveShape(inside, between, reduce(larger, loads[:-1]), loads[-1], inverse * innermost, unknown)


def _steps(algorithm: Algorithm, kind: Kind, local: Number, units: Number) -> tuple[Number, Number]:
    """Steps within units that need no network, and between them."""
    passes = 2.0 if kind == "all-reduce" else 1.0
    beyond = smaller(units - 1.0, 1.0)
    if algorithm == "ring":
        # Over the network the least latency of an all-reduce is that of a tree (nccl: ncclTopoGetAlgoTime).
        network = steps(units) if kind == "all-reduce" else units - 1.0
        return passes * (local - 1.0), passes * network
    if algorithm == "recursive":
        return passes * steps(local), passes * steps(units)
    if algorithm == "in-network":
        return passes * smaller(local - 1.0, 1.0), passes * steps(units)
    if algorithm == "one-shot":
        # Each further rank is one more flag to wait for.
        return local - 1.0, units - 1.0
    return passes * smaller(local - 1.0, 1.0), passes * beyond


def time_of(protocol: LibraryProtocol, at: CollectiveShape, size: Number) -> Number:
    """The time of a collective by one protocol [s]; more than one rank."""
    fixed = protocol.call + at.steps * protocol.hop + at.network_steps * protocol.network_hop
    transfer = larger((at.local + protocol.own * at.own) / protocol.link, at.network / protocol.network)
    return fixed + size * transfer


def launched(library: Library, launch: Launch, time: Number, size: Number, byte: Number) -> Number:
    """The time of a collective as the host sees it [s].

    Args:
        library: The library.
        launch: How it is launched.
        time: Its time on the device [s].
        size: The buffer [B].
        byte: Time of a byte of device memory [s].
    """
    if launch == "eager":
        return larger(time, library.host) + library.copies * size * byte
    return time + library.wait if launch == "synchronous" else time


@frozen
class Timed:
    """The time of a collective by one protocol, on the device.

    Attributes:
        protocol: The protocol.
        steps: Its steps, within servers and over the network.
        latency: The part that does not depend on the size [s].
        transfer: The part that does [s].
        network: Whether the network is slower than the links within servers and UltraServers.
        time: The sum of both parts [s].
    """

    protocol: LibraryProtocol
    steps: float
    latency: float
    transfer: float
    network: bool
    time: float


def timed(library: Library, machine: Machine, kind: Kind, n: float, stride: float, size: float) -> tuple[Timed, ...]:
    """The time of a collective by every protocol that a library has for it, fastest first.

    Args:
        library: The library.
        machine: Compute and communication of a rank, at published rates.
        kind: The collective.
        n: Ranks of the group, more than one.
        stride: Distance of neighbouring ranks.
        size: The buffer [B].
    """
    results, reduces = [], any(level.reduces for level in machine.levels)
    for protocol in library.protocols:
        if kind not in protocol.kinds or (protocol.algorithm == "in-network" and not reduces):
            continue
        at = shape(machine, kind, protocol.algorithm, n, stride)
        latency = float(time_of(protocol, at, 0.0))
        transfer = float(time_of(protocol, at, size)) - latency
        network = at.network / protocol.network > (at.local + protocol.own * at.own) / protocol.link
        steps_ = float(at.steps + at.network_steps)
        results.append(Timed(protocol, steps_, latency, transfer, bool(network), latency + transfer))
    return tuple(sorted(results, key=lambda t: t.time))
