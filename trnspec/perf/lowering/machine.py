"""A system and its achieved efficiency, as the numbers of one rank that formulas take."""

from __future__ import annotations

from functools import cached_property, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, frozen

from trnspec.errors import RefusalError
from trnspec.perf.ops import Number, both, floor, larger, smaller, where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trnspec.perf.lowering.efficiency import Efficiency
    from trnspec.perf.lowering.system import System
    from trnspec.topology.shapes import Shape

SLOTS = ("chip", "server", "ultraserver", "network")
"""The levels of links that a rank may have, innermost first."""


@frozen(kw_only=True)
class Machine:
    """Compute and communication of one rank, as times per unit, so that formulas multiply and never divide.

    Attributes:
        ranks: Ranks of the system.
        flop: Time of one FLOP of a matrix multiplication [s].
        score: Time of one FLOP of attention scores and values [s].
        head: Time of one FLOP of the output matrix [s], which software keeps in 16 bit where others are narrower.
        byte: Time of one byte to or from device memory [s].
        capacity: Device memory of a rank [B].
        matmul_passes: See :class:`~trnspec.perf.lowering.efficiency.Efficiency`, as for all fields with its names.
        inverse_1: One over the ranks of a chip; 1 where a chip is one rank.
        inverse_2: One over the ranks of a server.
        inverse_3: One over the ranks of an UltraServer, or of a server where there is none.
        byte_1: Time of one byte over the links within a chip [s]; 0 where the level is absent.
        byte_2: The same, within a server.
        byte_3: The same, within an UltraServer.
        byte_4: The same, over the network.
        hop_1: Time of one message over the links within a chip [s]: the published latency, or else the fitted one.
        hop_2: The same, within a server.
        hop_3: The same, within an UltraServer.
        hop_4: The same, over the network.
        step_1: Time of each further step of a ring within a chip [s], as fitted; 0 without a calibration.
        step_2: The same, within a server.
        step_3: The same, within an UltraServer.
        step_4: The same, over the network.
        reduces_2: 1 where the switches within a server reduce and multicast.
        reduces_3: The same, within an UltraServer.
        reduces_4: The same, in the network.
        axis_2a: Chips along the innermost dimension of a torus or mesh within a server; 1 without one.
        axis_2b: The same of the next dimension.
        axis_2c: The same of the third one.
        ring_2a: Share of a chip's rate within a server that the links along that dimension have where a group closes the
            ring; 0 where the fabric is not a torus or mesh.
        ring_2b: The same of the next dimension.
        ring_2c: The same of the third one.
        line_2a: The same where a group is only a part of the ring.
        line_2b: The same of the next dimension.
        line_2c: The same of the third one.
        axis_3a: As ``axis_2a``, within an UltraServer; so are the other names that end in 3 and a letter.
        axis_3b: As ``axis_2b``.
        axis_3c: As ``axis_2c``.
        ring_3a: As ``ring_2a``.
        ring_3b: As ``ring_2b``.
        ring_3c: As ``ring_2c``.
        line_3a: As ``line_2a``.
        line_3b: As ``line_2b``.
        line_3c: As ``line_2c``.
        unknown_1: 1 where the rate within a chip is not published.
        unknown_2: The same, within a server.
        unknown_3: The same, within an UltraServer.
        unknown_4: The same, over the network, or where there is no network.
    """

    ranks: Number
    flop: Number
    score: Number
    byte: Number
    capacity: Number
    inverse_1: Number
    inverse_2: Number
    inverse_3: Number
    byte_1: Number
    byte_2: Number
    byte_3: Number
    byte_4: Number
    hop_1: Number
    hop_2: Number
    hop_3: Number
    hop_4: Number
    unknown_1: Number
    unknown_2: Number
    unknown_3: Number
    unknown_4: Number
    step_1: Number = 0.0
    step_2: Number = 0.0
    step_3: Number = 0.0
    step_4: Number = 0.0
    reduces_2: Number = 0.0
    reduces_3: Number = 0.0
    reduces_4: Number = 0.0
    axis_2a: Number = 1.0
    axis_2b: Number = 1.0
    axis_2c: Number = 1.0
    axis_3a: Number = 1.0
    axis_3b: Number = 1.0
    axis_3c: Number = 1.0
    ring_2a: Number = 0.0
    ring_2b: Number = 0.0
    ring_2c: Number = 0.0
    ring_3a: Number = 0.0
    ring_3b: Number = 0.0
    ring_3c: Number = 0.0
    line_2a: Number = 0.0
    line_2b: Number = 0.0
    line_2c: Number = 0.0
    line_3a: Number = 0.0
    line_3b: Number = 0.0
    line_3c: Number = 0.0
    matmul_passes: Number
    hidden_passes: Number
    score_passes: Number
    head_passes: Number
    optimizer_passes: Number
    forward: Number
    backward: Number
    call: Number
    send: Number
    overlap: Number
    exposed: Number
    tensor_overlap: Number
    pipeline_overlap: Number
    head: Number
    exchange: Number
    dispatch: Number
    expert_overlap: Number
    step: Number
    causal: Number

    @cached_property
    def known(self) -> dict[tuple[object, ...], Any]:
        """Results of functions of a machine and some numbers, see :func:`recalled`."""
        return {}


_FROM_EFFICIENCY = (
    *("matmul_passes", "hidden_passes", "score_passes", "head_passes", "optimizer_passes", "forward", "backward"),
    *("call", "send", "overlap", "exposed", "tensor_overlap", "step", "causal"),
    *("pipeline_overlap", "exchange", "dispatch", "expert_overlap"),
)


def machine(system: System, efficiency: Efficiency, dtype: str, *, scores: str = "bf16") -> Machine:
    """The numbers of one rank.

    Args:
        system: The system.
        efficiency: Achieved over published performance.
        dtype: Compute dtype of matrix multiplications.
        scores: Compute dtype of attention scores and values where ``dtype`` is narrower than 16 bit.

    Raises:
        RefusalError: ``unknown-figure``: no peak rate is published for a dtype, or no memory bandwidth.
    """
    if not system.bandwidth:
        place = f"{system.chip} spec.memory.bandwidth"
        raise RefusalError("unknown-figure", f"{system.chip} has no published memory bandwidth", place=place)
    flop = 1.0 / (system.rate(dtype) * efficiency.matmul_share(dtype))
    score_dtype = scores if dtype not in _SCORE_DTYPES else dtype
    levels = {level.name: level for level in system.levels}
    figures: dict[str, float] = {}
    inverse = 1.0
    for slot, name in enumerate(SLOTS, 1):
        level = levels.get(name)
        share = getattr(efficiency, name)
        if level is not None and slot < 4:
            inverse = 1.0 / level.ranks
        if slot < 4:
            figures[f"inverse_{slot}"] = inverse
        figures[f"byte_{slot}"] = 1.0 / (level.rate * share) if level is not None and level.rate else 0.0
        hop = efficiency.hop if slot < 4 else efficiency.network_hop
        figures[f"hop_{slot}"] = (level.latency or hop) if level is not None else 0.0
        figures[f"step_{slot}"] = hop if level is not None else 0.0
        if level is not None and slot in (2, 3):
            below = levels.get("server") if slot == _ULTRASERVER else None
            figures |= _dimensions(slot, level.shape, 1.0 if below is None else below.ranks / system.ranks_per_chip)
        if slot > 1:
            figures[f"reduces_{slot}"] = 1.0 if level is not None and level.reduces else 0.0
        figures[f"unknown_{slot}"] = 0.0 if level is not None and level.rate else 1.0
    return Machine(
        ranks=system.ranks,
        flop=flop,
        head=1.0 / (system.rate(score_dtype) * efficiency.matmul_share(score_dtype)),
        score=1.0 / (system.rate(score_dtype) * efficiency.attention),
        byte=1.0 / (system.bandwidth * efficiency.memory),
        capacity=system.capacity,
        **figures,
        **{name: getattr(efficiency, name) for name in _FROM_EFFICIENCY},
    )


def _dimensions(slot: int, shape: Shape | None, inside: float) -> dict[str, float]:
    """The dimensions of a torus or mesh, innermost first, and what its links along each have of a chip's rate.

    Args:
        slot: The level.
        shape: Its fabric, which includes that of the units inside.
        inside: Chips of a unit inside; the dimensions within such a unit belong to its own level.
    """
    from trnspec.topology.shapes import GridShape

    # A fabric of more dimensions counts as one without: groups are then not slower than whole servers.
    if not isinstance(shape, GridShape) or len(shape.axes) > len(_DIMENSIONS):
        return {}
    axes = [axis for axis in reversed(shape.axes) if axis.links]
    while axes and inside > 1.0:
        inside /= axes.pop(0).size
    if inside != 1.0:
        return {}
    rates = [axis.rate or 1.0 for axis in axes]
    ends = [2.0 if axis.size > 2 else float(axis.links) for axis in axes]
    whole = sum(end * rate for end, rate in zip(ends, rates, strict=True))
    figures: dict[str, float] = {}
    for name, axis, rate, end in zip(_DIMENSIONS, axes, rates, ends, strict=False):
        figures[f"axis_{slot}{name}"] = float(axis.size)
        figures[f"line_{slot}{name}"] = (end if axis.size == 2 else 1.0) * rate / whole
        figures[f"ring_{slot}{name}"] = (end if axis.wrap or axis.size == 2 else 1.0) * rate / whole
    return figures


_DIMENSIONS = "abc"

_SCORE_DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16")
"""Dtypes in which attention scores and values are computed when matrices are; for others see ``scores``."""


R = TypeVar("R")


def recalled(machine: Machine, key: tuple[object, ...], function: Callable[[], R]) -> R:
    """A result that a machine keeps: that of a function, by the function's name and what else it depends on."""
    known = machine.known
    result: R | None = known.get(key)
    if result is None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        result = known[key] = function()
    return result


_MOST_KNOWN = 8192


def remembered(function: Callable[[Machine, Number, Number], R]) -> Callable[[Machine, Number, Number], R]:
    """A function of a machine, the ranks of a group and their stride that keeps its results for floats.

    The groups of many layouts have few sizes and strides.
    """

    @wraps(function)
    def recall(machine: Machine, n: Number, stride: Number) -> R:
        if type(n) is not float or type(stride) is not float:
            return function(machine, n, stride)
        return recalled(machine, (function, n, stride), lambda: function(machine, n, stride))

    return recall


# Single calls create many of these; frozen classes take three times as long.
@define
class Group:
    """The cost of collectives among the ranks of a group.

    Attributes:
        latency: Time of the steps of an all-gather or a reduce-scatter [s]; an all-reduce takes twice that.
        gather: Time of an all-gather or a reduce-scatter per byte of the whole buffer [s].
        reduce: Time of an all-reduce per byte [s]: twice that, or less where switches reduce.
        many: 1 where there is more than one rank, else 0.
        unknown: Above 0 where it uses a link whose rate is not published.
    """

    latency: Number
    gather: Number
    reduce: Number
    many: Number
    unknown: Number


_BOTH = 2.0


def collective_time(machine: Machine, group: Group, size: Number, passes: float) -> Number:
    """Time of a collective as training and inference count it [s].

    Args:
        machine: Compute and communication of a rank.
        group: The group.
        size: The whole buffer [B].
        passes: 2 for an all-reduce, 1 for an all-gather or a reduce-scatter; a call counts once per all-reduce.
    """
    each = group.reduce if passes == _BOTH else group.gather
    return passes * (0.5 * machine.call * group.many + group.latency) + each * size


def always_zero(number: Number) -> bool:
    """Whether a number is the float 0.0, so that what it multiplies can be omitted; arrays are never inspected."""
    return type(number) is float and number == 0.0


@remembered
def group(machine: Machine, n: Number, stride: Number) -> Group:
    """A group of ``n`` ranks with a stride, on the levels it spans, innermost first.

    ``w_i`` of its ranks are within a unit of level i; that level then carries ``1/w_(i-1) - 1/w_i`` of the buffer among
    ``m_i = w_i / w_(i-1)`` members (hierarchical collective; Thakur et al. 2005, section 4).  The buffer is cut into pieces that
    pass the levels as a pipeline, so the slowest level decides; the latencies of the levels add up.  At each level one
    message is the least, ``hop_i``; a ring has ``m_i - 2`` further steps, whose time is fitted (``step_i``).
    Where switches reduce, an all-reduce sends the part ``1/w_(i-1)`` once, and its share of the sum, instead of twice
    the share of the level.
    Where a unit does not hold an integer number of the group's ranks, the share is the mean.
    """
    inverse = 1.0 / n
    share_1 = larger(inverse, smaller(1.0, stride * machine.inverse_1))
    share_2 = larger(inverse, smaller(1.0, stride * machine.inverse_2))
    share_3 = larger(inverse, smaller(1.0, stride * machine.inverse_3))
    on_1, on_2, on_3, on_4 = 1.0 - share_1, share_1 - share_2, share_2 - share_3, share_3 - inverse
    byte_2, byte_3 = machine.byte_2, machine.byte_3
    if not always_zero(machine.line_2a):
        byte_2 = byte_2 / carried(machine, 2, n, stride)
    if not always_zero(machine.line_3a):
        byte_3 = byte_3 / carried(machine, 3, n, stride)
    gather = larger(larger(on_1 * machine.byte_1, on_2 * byte_2), larger(on_3 * byte_3, on_4 * machine.byte_4))
    reduce = 2.0 * gather
    if not (always_zero(machine.reduces_2) and always_zero(machine.reduces_3) and always_zero(machine.reduces_4)):
        # 2 on_i less what is saved: 1/w_(i-1) + 1/w_i remain.
        saved_2 = machine.reduces_2 * larger(share_1 - 3.0 * share_2, 0.0)
        saved_3 = machine.reduces_3 * larger(share_2 - 3.0 * share_3, 0.0)
        saved_4 = machine.reduces_4 * larger(share_3 - 3.0 * inverse, 0.0)
        reduce = larger(
            larger(2.0 * on_1 * machine.byte_1, (2.0 * on_2 - saved_2) * byte_2),
            larger((2.0 * on_3 - saved_3) * byte_3, (2.0 * on_4 - saved_4) * machine.byte_4),
        )
    latency = (
        _latency(1.0 / share_1 - 1.0, machine.hop_1, machine.step_1)
        + _latency(share_1 / share_2 - 1.0, machine.hop_2, machine.step_2)
        + _latency(share_2 / share_3 - 1.0, machine.hop_3, machine.step_3)
        + _latency(share_3 / inverse - 1.0, machine.hop_4, machine.step_4)
    )
    unknown = on_1 * machine.unknown_1 + on_2 * machine.unknown_2 + on_3 * machine.unknown_3 + on_4 * machine.unknown_4
    return Group(latency, gather, reduce, smaller(n - 1.0, 1.0), unknown)


def carried(machine: Machine, slot: int, n: Number, stride: Number) -> Number:
    """Share of a chip's rate in a torus or mesh that a group can use while all groups of its kind communicate.

    Chips are numbered with the innermost dimension fastest.  A group uses the links along the dimensions in which it has
    more than one chip: both directions of a ring that it closes, one link where it is a part of a ring.  Groups with a stride
    within a dimension share its links.  No cut of the fabric allows more (Dally and Towles 2004, section 3.3).

    Args:
        machine: Compute and communication of a rank.
        slot: The level: 2 within a server, 3 within an UltraServer.
        n: Ranks of the group.
        stride: Distance of neighbouring ranks.
    """
    share: Number = 0.0
    for links, _ in _along(machine, slot, n, stride):
        share = share + links
    return where(share > 0.0, share, 1.0)


def across(machine: Machine, slot: int, n: Number, stride: Number) -> Number:
    """Time of an all-to-all within a torus or mesh over that of its bytes at a chip's whole rate, all groups at work.

    Of ``m`` chips in a row, half of the bytes of one half cross the middle: about ``m/4`` of a chip's buffer over the links
    of the dimension (Dally and Towles 2004, section 3.3).  The slowest dimension decides, whose cut no schedule avoids; with
    equal shares over all shortest paths none of the links carries more.

    Args:
        machine: Compute and communication of a rank.
        slot: The level: 2 within a server, 3 within an UltraServer.
        n: Ranks of the group.
        stride: Distance of neighbouring ranks.
    """
    slowest: Number = 0.0
    for links, row in _along(machine, slot, n, stride):
        half = floor(0.5 * row)
        crossing = half * (row - half) / row
        slowest = larger(slowest, where(links > 0.0, crossing / where(links > 0.0, links, 1.0), 0.0))
    return slowest


def detour(machine: Machine, slot: int, n: Number, stride: Number) -> Number:
    """Time of an all-to-all within a torus or mesh over that of the same bytes to neighbours; at least 1.

    Arguments are those of :func:`across`.
    """
    members: Number = 1.0
    share: Number = 0.0
    for links, row in _along(machine, slot, n, stride):
        members, share = members * row, share + links
    leaving = 1.0 - 1.0 / members
    least = 1.0 / where(share > 0.0, share, 1.0)
    crossing = across(machine, slot, n, stride) / where(leaving > 0.0, leaving, 1.0)
    return larger(least, where(leaving > 0.0, crossing, 1.0))


def towards(machine: Machine, slot: int, stride: Number) -> Number:
    """Share of a chip's rate in a torus or mesh that a message to the chip at a distance can use while all chips send one.

    The links of one direction along the dimension in which the next chip is; each carries the messages of the chips that are
    between them, too.  No more links cross the cut between those chips and the next ones.

    Args:
        machine: Compute and communication of a rank.
        slot: The level: 2 within a server, 3 within an UltraServer.
        stride: Distance in ranks.
    """
    share: Number = 1.0
    first = stride * machine.inverse_1
    inside: Number = 1.0 if slot == _SERVER else machine.inverse_1 / machine.inverse_2
    for name in _DIMENSIONS:
        size, line = getattr(machine, f"axis_{slot}{name}"), getattr(machine, f"line_{slot}{name}")
        if always_zero(line):
            break
        along = both(line > 0.0, both(first >= inside, first < inside * size))
        share = where(along, line * inside / first, share)
        inside = inside * size
    return share


def _along(machine: Machine, slot: int, n: Number, stride: Number) -> Iterator[tuple[Number, Number]]:
    """For each dimension the share of a chip's rate that a group has along it, and the chips of the group in a row."""
    first = stride * machine.inverse_1
    # Chips inside a unit of this level.
    inside: Number = 1.0 if slot == _SERVER else machine.inverse_1 / machine.inverse_2
    for dimension in _FIELDS[slot]:
        size, ring, line = dimension(machine)
        if always_zero(ring):
            break
        reach = smaller(size, larger(1.0, n * first / inside))
        skip = smaller(size, larger(1.0, first / inside))
        # Where no other group fits beside it, the links of the rest of the ring close it, too.
        yield where(reach > skip, where(2.0 * reach > size, ring, line) / skip, 0.0), reach / skip
        inside = inside * size


_SERVER, _ULTRASERVER = 2, 3
_FIELDS = {
    slot: [attrgetter(f"axis_{slot}{name}", f"ring_{slot}{name}", f"line_{slot}{name}") for name in _DIMENSIONS]
    for slot in (_SERVER, _ULTRASERVER)
}
"""The fields of a machine for each dimension of a torus or mesh: chips, and shares of a ring and of a line."""


def _latency(others: Number, hop: Number, step: Number) -> Number:
    """Latency of one level with ``others`` further members: the first message, and each further step of a ring."""
    if always_zero(step):
        return 0.0 if always_zero(hop) else smaller(others, 1.0) * hop
    return smaller(others, 1.0) * hop + larger(others - 1.0, 0.0) * step
