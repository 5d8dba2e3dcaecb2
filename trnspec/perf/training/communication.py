"""Cost of the collectives of a layout on the links of a machine, per call and per byte.

It depends only on the degrees of parallelism and the machine, so that a batch computes it once per combination of those,
and a sweep only along their axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.perf.lowering.machine import always_zero, group
from trnspec.perf.ops import Number, ceil, larger, smaller

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.work.plan import Plan


@frozen
class Links:
    """Times that do not depend on the model [s]: ``_byte`` per byte, ``_each`` per call.

    Attributes:
        tensor_each: All-reduce between tensor-parallel ranks.
        tensor_byte: The same, per byte of the buffer.
        ring_each: One full pass around the context-parallel ring.
        ring_byte: The same, per byte of all its ranks together.
        expert_each: All-to-all between expert-parallel ranks.
        expert_byte: The same, per byte of a rank's buffer.
        send_each: A message to the next stage and one back.
        send_byte: The same, per byte of one message.
        data_each: All-gather or reduce-scatter between data-parallel ranks.
        data_byte: The same, per byte of the buffer.
        part_byte: The same between the ranks that hold the same experts.
        sharded: ``1/(dp cp) - 1``: what sharding adds to a factor of 1.
        unknown: Above 0 where a link is used whose rate is not published.
        expert_unknown: The same for links that only a model with experts uses.
    """

    tensor_each: Number
    tensor_byte: Number
    ring_each: Number
    ring_byte: Number
    expert_each: Number
    expert_byte: Number
    send_each: Number
    send_byte: Number
    data_each: Number
    data_byte: Number
    part_byte: Number
    sharded: Number
    unknown: Number
    expert_unknown: Number


def links(plan: Plan, machine: Machine, replicas: Number | None = None) -> Links:
    """The cost of the collectives of a layout.

    Args:
        plan: The layout, of which only the degrees of parallelism are used.
        machine: Compute and communication of a rank.
        replicas: ``dp cp``, where it is known without either: arrays then have fewer axes.
    """
    ranks = plan.dp * plan.cp if replicas is None else replicas
    tensor_group = group(machine, plan.tp, 1.0)
    ring_each: Number = 0.0
    ring_byte: Number = 0.0
    ring_unknown: Number = 0.0
    if not always_zero(plan.cp - 1.0):
        ring = group(machine, plan.cp, plan.tp)
        ring_each, ring_byte, ring_unknown = machine.call * ring.many + ring.latency, ring.gather, ring.unknown
    replica_group = group(machine, ranks, plan.tp)
    expert_group = group(machine, ranks / plan.ep, plan.tp * plan.ep)
    expert_each, expert_byte, all_to_all_unknown = _experts(plan, machine)
    send_each, send_byte, send_unknown = _sends(plan, machine, plan.tp * ranks * plan.pp)
    return Links(
        tensor_each=machine.call * tensor_group.many + 2.0 * tensor_group.latency,
        tensor_byte=2.0 * tensor_group.gather,
        ring_each=ring_each,
        ring_byte=ring_byte,
        expert_each=expert_each,
        expert_byte=expert_byte,
        send_each=send_each,
        send_byte=send_byte,
        data_each=0.5 * machine.call * replica_group.many + replica_group.latency,
        data_byte=replica_group.gather,
        part_byte=expert_group.gather,
        sharded=1.0 / ranks - 1.0,
        unknown=tensor_group.unknown + ring_unknown + send_unknown + replica_group.unknown,
        expert_unknown=all_to_all_unknown + expert_group.unknown,
    )


def _experts(plan: Plan, machine: Machine) -> tuple[Number, Number, Number]:
    """All-to-all among experts: time per call and per byte of a rank [s], and use of unknown links, summed over levels.

    Of the ``n`` ranks of a group ``w_i`` are within a unit of level i, so the share ``(w_i - w_(i-1)) / n`` goes over it.
    """
    if always_zero(plan.ep - 1.0):
        return 0.0, 0.0, 0.0
    inverse = 1.0 / plan.ep
    within_1, within_2, within_3 = (
        1.0 / larger(inverse, smaller(1.0, plan.tp * inverse_ranks))
        for inverse_ranks in (machine.inverse_1, machine.inverse_2, machine.inverse_3)
    )
    on_1, on_2, on_3, on_4 = within_1 - 1.0, within_2 - within_1, within_3 - within_2, plan.ep - within_3
    byte_time = on_1 * machine.byte_1 + on_2 * machine.byte_2 + on_3 * machine.byte_3 + on_4 * machine.byte_4
    unknown = on_1 * machine.unknown_1 + on_2 * machine.unknown_2 + on_3 * machine.unknown_3 + on_4 * machine.unknown_4
    return machine.call * smaller(plan.ep - 1.0, 1.0), byte_time * inverse, unknown


def _sends(plan: Plan, machine: Machine, span: Number) -> tuple[Number, Number, Number]:
    """A message between stages and one back: time per call and per byte [s], and use of unknown links."""
    if always_zero(plan.pp - 1.0):
        return 0.0, 0.0, 0.0
    # 1 where the pipeline extends beyond a unit of the level.
    beyond_1, beyond_2, beyond_3 = (
        smaller(1.0, ceil(span * inverse_ranks - 1.0))
        for inverse_ranks in (machine.inverse_1, machine.inverse_2, machine.inverse_3)
    )
    in_1, in_2, in_3 = 1.0 - beyond_1, beyond_1 - beyond_2, beyond_2 - beyond_3
    byte = in_1 * machine.byte_1 + in_2 * machine.byte_2 + in_3 * machine.byte_3 + beyond_3 * machine.byte_4
    hop = in_1 * machine.hop_1 + in_2 * machine.hop_2 + in_3 * machine.hop_3 + beyond_3 * machine.hop_4
    unknown = (
        in_1 * machine.unknown_1 + in_2 * machine.unknown_2 + in_3 * machine.unknown_3 + beyond_3 * machine.unknown_4
    )
    used = smaller(plan.pp - 1.0, 1.0)
    return 2.0 * used * (machine.send + hop), 2.0 * used * byte, used * unknown
