"""Cost of the collectives of a layout on the links of a machine, per call and per byte.

It depends only on the degrees of parallelism and the machine, so that a batch computes it once per combination of those,
and a sweep only along their axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from trnspec.perf.experts import Exchange, exchange
from trnspec.perf.lowering.machine import always_zero, cached, group, towards
from trnspec.perf.ops import Number, all_floats, ceil, smaller

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Group, Machine
    from trnspec.perf.work.layout import Layout


@define
class Links:
    """Times that do not depend on the model [s]: ``_byte`` per byte, ``_each`` per call.

    Attributes:
        tensor_each: All-reduce between tensor-parallel ranks.
        tensor_byte: The same, per byte of the buffer, as a reduce-scatter and an all-gather.
        tensor_saved: What switches that reduce save of it.
        ring_each: One full pass around the context-parallel ring.
        ring_byte: The same, per byte of all its ranks together.
        expert_each: All-to-all between expert-parallel ranks.
        send_each: A message to the next stage and one back.
        send_byte: The same, per byte of one message.
        data_each: All-gather or reduce-scatter between data-parallel ranks.
        data_byte: The same, per byte of the buffer.
        data_saved: What switches that reduce save of it in an all-reduce, which is two of these.
        part_byte: The same as ``data_byte`` between the ranks that hold the same experts.
        part_saved: The same as ``data_saved`` between them.
        sharded: ``1/(dp cp) - 1``: what sharding adds to a factor of 1.
        unknown: Above 0 where a link is used whose rate is not published.
        expert_unknown: The same for links that only a model with experts uses.
        exchange: The links of the all-to-all.
        split_each: All-reduce between the ranks that split an expert.
        split_byte: The same, per byte of the buffer.
    """

    tensor_each: Number
    tensor_byte: Number
    ring_each: Number
    ring_byte: Number
    expert_each: Number
    send_each: Number
    send_byte: Number
    data_each: Number
    data_byte: Number
    part_byte: Number
    sharded: Number
    unknown: Number
    expert_unknown: Number
    exchange: Exchange
    split_each: Number
    split_byte: Number
    tensor_saved: Number = 0.0
    data_saved: Number = 0.0
    part_saved: Number = 0.0


def links(layout: Layout, machine: Machine, replicas: Number | None = None) -> Links:
    """The cost of the collectives of a layout.

    Args:
        layout: The layout, of which only the degrees of parallelism are used.
        machine: Compute and communication of a rank.
        replicas: ``dp cp``, where it is known without either: arrays then have fewer axes.
    """
    ranks = layout.dp * layout.cp if replicas is None else replicas
    degrees = (layout.tp, layout.pp, layout.cp, layout.ep, layout.expert_split, ranks)
    if not all_floats(*degrees):
        return _links(layout, machine, ranks)
    # Many layouts differ only in what is not a degree of parallelism.
    return cached(machine, (_links, *degrees), lambda: _links(layout, machine, ranks))


def _links(layout: Layout, machine: Machine, ranks: Number) -> Links:
    tensor_group = group(machine, layout.tp, 1.0)
    ring_each: Number = 0.0
    ring_byte: Number = 0.0
    ring_unknown: Number = 0.0
    if not always_zero(layout.cp - 1.0):
        ring = group(machine, layout.cp, layout.tp)
        ring_each, ring_byte, ring_unknown = machine.call * ring.many + ring.latency, ring.gather, ring.unknown
    replica_group = group(machine, ranks, layout.tp)
    # Ranks are numbered by expert first: those that split one, those with different ones, those with the same.
    equal = layout.expert_split is layout.tp or always_zero(layout.expert_split - layout.tp)
    # Without expert parallelism all replicas hold the same experts.
    expert_group = (
        replica_group
        if equal and always_zero(layout.ep - 1.0)
        else group(machine, ranks * layout.tp / (layout.ep * layout.expert_split), layout.expert_split * layout.ep)
    )
    between_experts = exchange(machine, layout.ep, layout.expert_split)
    split_group = tensor_group if equal else group(machine, layout.expert_split, 1.0)
    send_each, send_byte, send_unknown = _sends(layout, machine, layout.tp * ranks)
    return Links(
        tensor_each=machine.call * tensor_group.many + 2.0 * tensor_group.latency,
        tensor_byte=2.0 * tensor_group.gather,
        ring_each=ring_each,
        ring_byte=ring_byte,
        expert_each=smaller(layout.ep - 1.0, 1.0) * (machine.call + between_experts.hop),
        send_each=send_each,
        send_byte=send_byte,
        data_each=0.5 * machine.call * replica_group.many + replica_group.latency,
        data_byte=replica_group.gather,
        part_byte=expert_group.gather,
        sharded=1.0 / ranks - 1.0,
        unknown=tensor_group.unknown + ring_unknown + send_unknown + replica_group.unknown,
        expert_unknown=between_experts.unknown + expert_group.unknown,
        exchange=between_experts,
        split_each=machine.call * split_group.many + 2.0 * split_group.latency,
        split_byte=2.0 * split_group.gather,
        **_saved(tensor_group, replica_group, expert_group),
    )


def _saved(tensor: Group, data: Group, part: Group) -> dict[str, Number]:
    """What switches that reduce save of an all-reduce; nothing of a reduce-scatter and an all-gather.

    A rank sends the part that a switch adds up and receives the sum at the same time.  One after the other, the
    reduce-scatter sends and the all-gather receives as much as without.
    """
    return {
        "tensor_saved": 2.0 * tensor.gather - tensor.reduce,
        "data_saved": data.gather - 0.5 * data.reduce,
        "part_saved": part.gather - 0.5 * part.reduce,
    }


def _sends(layout: Layout, machine: Machine, stride: Number) -> tuple[Number, Number, Number]:
    """A message between stages and one back: time per call and per byte [s], and use of unknown links.

    Args:
        layout: The layout.
        machine: Compute and communication of a rank.
        stride: Ranks of a stage.
    """
    if always_zero(layout.pp - 1.0):
        return 0.0, 0.0, 0.0
    span = stride * layout.pp
    byte, hop, unknown = 0.0, 0.0, 0.0
    reached: Number = 1.0
    for level in machine.levels:
        # 1 where the pipeline extends beyond a unit of the level.
        beyond = 0.0 if level is machine.levels[-1] else smaller(1.0, ceil(span * level.share - 1.0))
        part, reached = reached - beyond, beyond
        byte = byte + part * (level.byte / towards(machine, level, stride))
        hop = hop + part * level.hop
        unknown = unknown + part * level.unknown
    used = smaller(layout.pp - 1.0, 1.0)
    return 2.0 * used * (machine.send + hop), 2.0 * used * byte, used * unknown
