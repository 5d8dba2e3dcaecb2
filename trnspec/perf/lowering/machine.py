"""The system as formulas take it: the rates of one rank and of its links, what software achieves of them, and times per unit.

:class:`LoweredSystem` has the published rates of a rank, :class:`Efficiency` the achieved shares, and :class:`Machine` both as
times per FLOP and per byte, with the costs of groups of ranks and of messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from attrs import define, field, frozen

from trnspec.errors import RefusalError
from trnspec.evidence import UsedFigure
from trnspec.perf.ops import Number, ceil, floor, larger, smaller, where
from trnspec.topology.shapes import GridShape, Shape


@frozen(kw_only=True)
class Efficiency:
    """Achieved over published performance.  The defaults are ideal, so that uncalibrated times are lower bounds.

    A "pass" is one read or write of a tensor in device memory; passes count the memory traffic that is not overlapped with
    matrix multiplication.

    Attributes:
        matmul: Share of the peak rate that large matrix multiplications achieve.
        matmul_fp8: The same in 8 bit; ``None`` for that of ``matmul``.
        matmul_fp4: The same in 4 bit; ``None`` for that in 8 bit.
        attention: Share of the peak rate that attention scores and values achieve.
        matmul_passes: Passes over the operands and results of each matrix multiplication.
        hidden_passes: Passes over the residual stream in a layer's forward pass (norms, residuals, dropout).
        score_passes: Passes over the matrix of attention scores where it is written, so not with flash attention.
        head_passes: Passes over the logits, forward and backward together.
        optimizer_passes: Passes over what the optimizer reads and writes in one step, beyond one.
        memory: Share of the device-memory bandwidth that is achieved.
        forward: Least time of a layer's forward pass, due to kernel launches by the host [s].
        backward: Least time of a layer's backward pass [s].
        chip: Share of the rate between the ranks of a chip that collectives achieve.
        server: Share of the rate of the links within a server.
        ultraserver: Share of the rate of the links between the servers of an UltraServer.
        network: Share of the rate of the network between servers.
        call: Fixed time of one collective [s].
        hop: Time of one step of a ring within a server or an UltraServer [s]; the first takes the published latency, if any.
        network_hop: The same over the network [s].
        send: Fixed time of one message between pipeline stages [s].
        overlap: Share of the computation that can overlap with communication of gradients and sharded weights.
        exposed: Share of that communication that is exposed in any case, where a stage is one model chunk.
        tensor_overlap: Share of a layer's computation that can overlap with its tensor-parallel collectives.
        pipeline_overlap: Share of the messages between pipeline stages that the interleaved schedule overlaps with the
            computation of other model chunks.
        exchange: Share of the rate that other collectives achieve which an all-to-all between experts achieves.
        dispatch: Fixed time of one all-to-all between experts besides that of a collective: sorting and permuting tokens,
            and the launch of their kernels [s].
        expert_overlap: Share of the rest of a layer that the all-to-all can overlap with, where software overlaps them.
        step: Fixed time of a step [s].
        causal: 1.0 where attention that writes its scores computes only the causal half, 0.0 where it computes all.
    """

    matmul: float = 1.0
    matmul_fp8: float | None = None
    matmul_fp4: float | None = None
    attention: float = 1.0
    matmul_passes: float = 0.0
    hidden_passes: float = 0.0
    score_passes: float = 0.0
    head_passes: float = 0.0
    optimizer_passes: float = 0.0
    memory: float = 1.0
    forward: float = 0.0
    backward: float = 0.0
    chip: float = 1.0
    server: float = 1.0
    ultraserver: float = 1.0
    network: float = 1.0
    call: float = 0.0
    hop: float = 0.0
    network_hop: float = 0.0
    send: float = 0.0
    overlap: float = 1.0
    exposed: float = 0.0
    tensor_overlap: float = 0.0
    pipeline_overlap: float = 0.0
    exchange: float = 1.0
    dispatch: float = 0.0
    expert_overlap: float = 1.0
    step: float = 0.0
    causal: float = 1.0

    def matmul_share(self, dtype: str) -> float:
        """Share of the peak rate that large matrix multiplications in a compute dtype achieve."""
        four_bit = dtype.endswith(("fp4", "int4"))
        if four_bit and self.matmul_fp4 is not None:
            return self.matmul_fp4
        if (four_bit or dtype.endswith(("fp8", "int8"))) and self.matmul_fp8 is not None:
            return self.matmul_fp8
        return self.matmul


IDEAL = Efficiency()
"""No losses: times computed with it are lower bounds, throughputs upper bounds."""


UNKNOWN = 0.0
"""A rate that is not published. A computation that needs it raises ``RefusalError``; no other rate replaces it."""


@frozen(kw_only=True)
class Level:
    """One level of the hierarchy of links between ranks.

    Attributes:
        name: ``chip``, ``server``, ``ultraserver`` or ``network``.
        ranks: Ranks within one unit of this level.
        rate: Rate of one rank over this level in one direction, when all ranks send and receive concurrently, in B/s;
            :data:`UNKNOWN` where it is not published.
        latency: Time of the smallest message over this level, in s, as published; 0 if none is.
        link: The name of the link.
        place: The document and the attribute of the rate, whether or not it is stated.
        latency_place: The document and the attribute of the latency, whether or not it is stated.
        reduces: Whether its switches can reduce and multicast (in-network reduction).
        shape: The declared topology among the chips; ``None`` for a network, a chip, or if not declared.
    """

    name: str
    ranks: float
    rate: float
    latency: float = 0.0
    link: str = ""
    place: str = ""
    latency_place: str = ""
    reduces: bool = False
    shape: Shape | None = field(default=None, repr=False)


@frozen(kw_only=True)
class LoweredSystem:
    """The system of an evaluation.  Rates and capacities are those of one rank.

    Attributes:
        name: The system as given in the input: ``trn1.32xlarge*32``.
        chip: The name of the chip.
        chips: Chips of all servers.
        servers: Servers.
        ranks: Ranks: logical cores of all chips, or chips if a chip is one rank.
        ranks_per_chip: Ranks that share a chip, and its memory, links and rates.
        lnc: Physical cores of one logical core; 0 if a core of the chip is not a rank.
        rates: Peak dense rate of matrix multiplication by data type, in FLOP/s (or OP/s).
        published: Peak dense rate by data type as published, the denominator of MFU.
        capacity: Device memory, in B, where all ranks of the chip are in use.
        bandwidth: Rate between a rank and its device memory, in B/s.
        sharing: Ranks that share one memory stack; one in use alone reaches all of it.
        host_memory: Memory of the host, in B; :data:`UNKNOWN` if it is not published.
        levels: From the innermost outwards.
        figures_used: The catalog figures used.
        ends: The same system with every figure at the slow end, and at the fast end of its interval.
    """

    name: str
    chip: str
    chips: float
    servers: float
    ranks: float
    ranks_per_chip: float
    lnc: float
    rates: Mapping[str, float]
    published: Mapping[str, float]
    capacity: float
    bandwidth: float
    sharing: float = 1.0
    host_memory: float = UNKNOWN
    levels: tuple[Level, ...]
    figures_used: tuple[UsedFigure, ...] = field(default=(), repr=False)
    ends: tuple[LoweredSystem, LoweredSystem] | None = field(default=None, repr=False)

    def rate(self, dtype: str) -> float:
        """The peak dense rate of matrix multiplication in FLOP/s, of one rank.

        Raises:
            RefusalError: ``unknown-figure``: no rate is published for the type.
        """
        if dtype not in self.rates:
            raise RefusalError(
                "unknown-figure",
                f"{self.chip} has no published dense rate for {dtype}",
                place=f"{self.chip} spec.peak.dense.{dtype}",
                hint=f"types with a rate: {', '.join(self.rates)}",
            )
        return self.rates[dtype]

    def peak(self, dtype: str) -> float:
        """The rate of all ranks that MFU is a share of [FLOP/s]: as published, else that of the tensor engine."""
        return self.ranks * self.published.get(dtype, self.rates[dtype])

    def unknown_link(self) -> RefusalError:
        """The error of a layout that communicates over links whose rate is not published: the innermost such level."""
        missing = next((level for level in self.levels if not level.rate), None)
        link = "a link between servers" if missing is None else f"the links of the level {missing.name}"
        return RefusalError(
            "unknown-figure",
            f"the layout needs {link} of {self.name}, whose rate is not published",
            place="" if missing is None else missing.place,
        )

    def figures_with(self, dtype: str) -> tuple[UsedFigure, ...]:
        """The catalog figures used; of the compute rates only that of a dtype."""
        return tuple(b for b in self.figures_used if ".dense." not in b.at or b.at.endswith(f".{dtype}"))

    def figures_used_for(self, *names: str) -> tuple[UsedFigure, ...]:
        """The figures whose path ends in one of some names: ``bf16``, ``bandwidth``."""
        return tuple(b for b in self.figures_used if b.at.rsplit(".", 1)[-1] in names)


SLOTS = ("chip", "server", "ultraserver", "network")
"""The levels of links that a rank may have, innermost first."""


@frozen(kw_only=True)
class TorusAxis:
    """A dimension of a torus or mesh; a fabric that has none has chips of 1 and no links.

    Attributes:
        chips: Chips along the dimension.
        ring: Share of a chip's rate that the links along it have where a group closes the ring.
        line: Share of a chip's rate that they have where a group is only a part of the ring.
    """

    chips: Number = 1.0
    ring: Number = 0.0
    line: Number = 0.0


@frozen(kw_only=True)
class LevelCosts:
    """Communication of one rank over the links of one level, as times per unit; an absent level costs nothing.

    Attributes:
        share: One over the ranks of a unit; that of the level inside where the level is absent.
        seconds_per_byte: Time of one byte [s].
        hop: Time of one message [s]: the published latency, or else the fitted one.
        step: Time of each further step of a ring [s], as fitted; 0 without a calibration.
        reduces: 1 where its switches reduce and multicast.
        unknown: 1 where the rate is not published, or there is no such level.
        chips_inside: Chips of a unit inside.
        chip_share: One over the ranks of a chip.
        axes: The dimensions of a torus or mesh, innermost first.
    """

    share: Number
    seconds_per_byte: Number
    hop: Number
    step: Number
    reduces: Number
    unknown: Number
    chips_inside: Number
    chip_share: Number
    axes: tuple[TorusAxis, ...]


@frozen(kw_only=True)
class Machine:
    """Compute and communication of one rank, as times per unit, so that formulas multiply and never divide.

    Attributes:
        ranks: Ranks of the system.
        seconds_per_flop: Time of one FLOP of a matrix multiplication [s].
        score: Time of one FLOP of attention scores and values [s].
        head: Time of one FLOP of the output matrix [s], which software keeps in 16 bit where others are narrower.
        seconds_per_byte: Time of one byte to or from device memory [s].
        capacity: Device memory of a rank [B].
        levels: The levels of links, those of :data:`SLOTS`.
        achieved: Achieved performance: passes over memory, fixed times and overlaps; its shares of rates are in the times above.
    """

    ranks: Number
    seconds_per_flop: Number
    score: Number
    head: Number
    seconds_per_byte: Number
    capacity: Number
    levels: tuple[LevelCosts, ...]
    achieved: Efficiency


def machine(system: LoweredSystem, efficiency: Efficiency, dtype: str) -> Machine:
    """The numbers of one rank.

    Raises:
        RefusalError: ``unknown-figure``: no peak rate is published for a dtype, or no memory bandwidth.
    """
    if not system.bandwidth:
        place = f"{system.chip} spec.memory.bandwidth"
        raise RefusalError("unknown-figure", f"{system.chip} has no published memory bandwidth", place=place)
    flop = 1.0 / (system.rate(dtype) * efficiency.matmul_share(dtype))
    score_dtype = dtype if dtype in _SCORE_DTYPES else "bf16"
    by_name = {level.name: level for level in system.levels}
    levels: list[LevelCosts] = []
    for name in SLOTS:
        level, inside = by_name.get(name), levels[-1].share if levels else 1.0
        fitted_hop = efficiency.network_hop if name == "network" else efficiency.hop
        chips_inside = levels[0].share / inside if name == "ultraserver" and inside else 1.0
        # Servers are joined by one fabric, or an UltraServer is: the dimensions within a server are its own.
        below = by_name.get("server") if name == "ultraserver" else None
        chips_below = 1.0 if below is None else below.ranks / system.ranks_per_chip
        has_axes = name in {"server", "ultraserver"}
        levels.append(
            LevelCosts(
                share=inside if level is None else 1.0 / level.ranks,
                seconds_per_byte=1.0 / (level.rate * getattr(efficiency, name))
                if level is not None and level.rate
                else 0.0,
                hop=0.0 if level is None else level.latency or fitted_hop,
                step=0.0 if level is None else fitted_hop,
                reduces=1.0 if level is not None and level.reduces and levels else 0.0,
                unknown=0.0 if level is not None and level.rate else 1.0,
                chips_inside=chips_inside,
                chip_share=levels[0].share if levels else 1.0,
                axes=_axes(None if level is None else level.shape, chips_below) if has_axes else (),
            )
        )
    return Machine(
        ranks=system.ranks,
        seconds_per_flop=flop,
        head=1.0 / (system.rate(score_dtype) * efficiency.matmul_share(score_dtype)),
        score=1.0 / (system.rate(score_dtype) * efficiency.attention),
        seconds_per_byte=1.0 / (system.bandwidth * efficiency.memory),
        capacity=system.capacity,
        levels=tuple(levels),
        achieved=efficiency,
    )


def _axes(shape: Shape | None, inside: float) -> tuple[TorusAxis, ...]:
    """The dimensions of a torus or mesh, innermost first, and what its links along each have of a chip's rate.

    Args:
        shape: The fabric of a level, which includes that of the units inside.
        inside: Chips of a unit inside; the dimensions within such a unit belong to its own level.
    """
    none = (TorusAxis(),) * _MOST_AXES
    # A fabric of more dimensions counts as one without: groups are then not slower than whole servers.
    if not isinstance(shape, GridShape) or len(shape.axes) > _MOST_AXES:
        return none
    axes = [axis for axis in reversed(shape.axes) if axis.links]
    while axes and inside > 1.0:
        inside /= axes.pop(0).size
    if inside != 1.0:
        return none
    rates = [axis.rate or 1.0 for axis in axes]
    ends = [2.0 if axis.size > 2 else float(axis.links) for axis in axes]
    whole = sum(end * rate for end, rate in zip(ends, rates, strict=True))
    found = tuple(
        TorusAxis(
            chips=float(axis.size),
            line=(end if axis.size == 2 else 1.0) * rate / whole,
            ring=(end if axis.wrap or axis.size == 2 else 1.0) * rate / whole,
        )
        for axis, rate, end in zip(axes, rates, ends, strict=True)
    )
    return (*found, *none)[:_MOST_AXES]


_MOST_AXES = 3

_SCORE_DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16")
"""Dtypes in which attention scores and values are computed when matrices are; narrower ones are not accurate enough."""


# Single calls create many of these; frozen classes take three times as long.
@define
class GroupCost:
    """The cost of collectives among the ranks of a group.

    Attributes:
        latency: Time of the steps of an all-gather or a reduce-scatter [s]; an all-reduce takes twice that.
        allgather_s_per_byte: Time of an all-gather or a reduce-scatter per byte of the whole buffer [s].
        allreduce_s_per_byte: Time of an all-reduce per byte [s]: twice that, or less where switches reduce.
        is_group: 1 where there is more than one rank, else 0.
        unknown: Above 0 where it uses a link whose rate is not published.
    """

    latency: Number
    allgather_s_per_byte: Number
    allreduce_s_per_byte: Number
    is_group: Number
    unknown: Number


def collective_time(machine: Machine, group: GroupCost, size: Number, passes: float) -> Number:
    """Time of a collective as training and inference count it [s].

    Args:
        machine: Compute and communication of a rank.
        group: The group.
        size: The whole buffer [B].
        passes: 2 for an all-reduce, 1 for an all-gather or a reduce-scatter; a call counts once per all-reduce.
    """
    s_per_byte = group.allreduce_s_per_byte if passes > 1.0 else group.allgather_s_per_byte
    return passes * (0.5 * machine.achieved.call * group.is_group + group.latency) + s_per_byte * size


def unit_shares(machine: Machine, n: Number, stride: Number) -> tuple[Number, ...]:
    """One over the ranks of a group within a unit of each level, from one rank outwards: 1, ..., ``1/n``.

    Where a unit does not hold an integer number of the group's ranks, the share is the mean.

    Args:
        machine: Compute and communication of a rank.
        n: Ranks of the group.
        stride: Distance of neighbouring ranks.
    """
    least = 1.0 / n
    return 1.0, *(larger(least, smaller(1.0, stride * level.share)) for level in machine.levels[:-1]), least


def group(machine: Machine, n: Number, stride: Number) -> GroupCost:
    """A group of ``n`` ranks with a stride, on the levels it spans, innermost first.

    ``w_i`` of its ranks are within a unit of level i; that level then carries ``1/w_(i-1) - 1/w_i`` of the buffer among
    ``m_i = w_i / w_(i-1)`` members (hierarchical collective; Thakur et al. 2005, section 4).  The buffer is cut into pieces that
    pass the levels as a pipeline, so the slowest level decides; the latencies of the levels add up.  At each level one
    message is the least, ``hop_i``; a ring has ``m_i - 2`` further steps, whose time is fitted (``step_i``).
    Where switches reduce, an all-reduce sends the part ``1/w_(i-1)`` once, and its share of the sum, instead of twice
    the share of the level: ``1/w_(i-1) + 1/w_i`` remain of ``2 (1/w_(i-1) - 1/w_i)``.
    """
    gather: Number = 0.0
    reduce: Number = 0.0
    latency: Number = 0.0
    unknown: Number = 0.0
    for level, (near, far) in zip(machine.levels, pairwise(unit_shares(machine, n, stride)), strict=True):
        part, others = near - far, near / far - 1.0
        byte = level.seconds_per_byte / carried(level, n, stride)
        gather = larger(gather, part * byte)
        reduce = larger(reduce, (2.0 * part - level.reduces * larger(near - 3.0 * far, 0.0)) * byte)
        # The first message, and each further step of a ring.
        latency = latency + (smaller(others, 1.0) * level.hop + larger(others - 1.0, 0.0) * level.step)
        unknown = unknown + part * level.unknown
    return GroupCost(latency, gather, reduce, smaller(n - 1.0, 1.0), unknown)


def same_links(machine: Machine, inner: Number, outer: Number, stride: Number) -> Number:
    """1.0 where a group of ``outer`` ranks with a stride uses the links of groups of ``inner`` neighbouring ranks, else 0.0.

    The outermost level of the former decides: groups within it are their only other ones.
    """
    same: Number = 0.0
    each = (pairwise(unit_shares(machine, *of)) for of in ((inner, 1.0), (outer, stride)))
    for (near, far), (before, after) in zip(*each, strict=True):
        same = where(before > after, where(near > far, 1.0, 0.0), same)
    return same


def carried(level: LevelCosts, n: Number, stride: Number) -> Number:
    """Share of a chip's rate in a torus or mesh that a group can use while all groups of its kind communicate.

    Chips are numbered with the innermost dimension fastest.  A group uses the links along the dimensions in which it has
    more than one chip: both directions of a ring that it closes, one link where it is a part of a ring.  Groups with a stride
    within a dimension share its links.  No cut of the fabric allows more (Dally and Towles 2004, section 3.3).
    """
    share: Number = 0.0
    for links, _ in _along(level, n, stride):
        share = share + links
    return where(share > 0.0, share, 1.0)


def across(level: LevelCosts, n: Number, stride: Number) -> Number:
    """Time of an all-to-all within a torus or mesh over that of its bytes at a chip's whole rate, all groups at work.

    Of ``m`` chips in a row, half of the bytes of one half cross the middle: about ``m/4`` of a chip's buffer over the links
    of the dimension (Dally and Towles 2004, section 3.3).  The slowest dimension decides, whose cut no schedule avoids; with
    equal shares over all shortest paths none of the links carries more.
    """
    slowest: Number = 0.0
    for links, row in _along(level, n, stride):
        half = floor(0.5 * row)
        crossing = half * (row - half) / row
        slowest = larger(slowest, where(links > 0.0, crossing / where(links > 0.0, links, 1.0), 0.0))
    return slowest


def detour(level: LevelCosts, n: Number, stride: Number) -> Number:
    """Time of an all-to-all within a torus or mesh over that of the same bytes to neighbours; at least 1.

    Arguments are those of :func:`across`.
    """
    members: Number = 1.0
    share: Number = 0.0
    for links, row in _along(level, n, stride):
        members, share = members * row, share + links
    leaving = 1.0 - 1.0 / members
    least = 1.0 / where(share > 0.0, share, 1.0)
    crossing = across(level, n, stride) / where(leaving > 0.0, leaving, 1.0)
    return larger(least, where(leaving > 0.0, crossing, 1.0))


def towards(level: LevelCosts, stride: Number) -> Number:
    """Share of a chip's rate in a torus or mesh that a message to the chip at a distance can use while all chips send one.

    The links of one direction along the dimension in which the next chip is; each carries the messages of the chips that are
    between them, too.  No more links cross the cut between those chips and the next ones.

    Args:
        level: The level.
        stride: Distance in ranks.
    """
    share: Number = 1.0
    first, inside = stride * level.chip_share, level.chips_inside
    for axis in level.axes:
        along = (axis.line > 0.0) & ((first >= inside) & (first < inside * axis.chips))
        share = where(along, axis.line * inside / first, share)
        inside = inside * axis.chips
    return share


def send(machine: Machine, stages: Number, stride: Number) -> tuple[Number, Number, Number]:
    """A message between stages and one back: time per call and per byte [s], and use of unknown links.

    A message counts on the outermost level that the pipeline reaches.

    Args:
        machine: Compute and communication of a rank.
        stages: Pipeline stages.
        stride: Ranks of a stage.
    """
    if np.all(stages == 1):
        return 0.0, 0.0, 0.0
    span = stride * stages
    byte, hop, unknown = 0.0, 0.0, 0.0
    reached: Number = 1.0
    for level in machine.levels:
        # 1 where the pipeline extends beyond a unit of the level.
        beyond = 0.0 if level is machine.levels[-1] else smaller(1.0, ceil(span * level.share - 1.0))
        part, reached = reached - beyond, beyond
        byte = byte + part * (level.seconds_per_byte / towards(level, stride))
        hop = hop + part * level.hop
        unknown = unknown + part * level.unknown
    used = smaller(stages - 1.0, 1.0)
    return 2.0 * used * (machine.achieved.send + hop), 2.0 * used * byte, used * unknown


def _along(level: LevelCosts, n: Number, stride: Number) -> Iterator[tuple[Number, Number]]:
    """For each dimension the share of a chip's rate that a group has along it, and the chips of the group in a row."""
    first, inside = stride * level.chip_share, level.chips_inside
    for axis in level.axes:
        reach = smaller(axis.chips, larger(1.0, n * first / inside))
        skip = smaller(axis.chips, larger(1.0, first / inside))
        # Where no other group fits beside it, the links of the rest of the ring close it, too.
        yield where(reach > skip, where(2.0 * reach > axis.chips, axis.ring, axis.line) / skip, 0.0), reach / skip
        inside = inside * axis.chips
