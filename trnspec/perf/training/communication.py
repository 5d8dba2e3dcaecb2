"""What a plan's collectives cost on a machine's links, apart from what they carry.

All of it depends on the degrees of parallelism and the machine alone, so that a batch computes it once for each
combination of those that occurs, and a sweep on their axes only.
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
    """Times that do not depend on the model, in s; "byte" ones are for each byte, "each" ones whatever is carried.

    Attributes:
        tensor_each: An all-reduce between tensor-parallel ranks.
        tensor_byte: The same, for each byte of the buffer.
        ring_each: Once round the context-parallel ranks.
        ring_byte: The same, for each byte of all of them together.
        expert_each: An all-to-all between experts.
        expert_byte: The same, for each byte that a rank has.
        send_each: A message to the next stage and one back.
        send_byte: The same, for each byte of one.
        data_each: An all-gather or a reduce-scatter between replicas.
        data_byte: The same, for each byte of the buffer.
        part_byte: The same between the ranks that hold the same experts.
        sharded: One over the replicas, less one: what sharding adds to a state of 1.
        unknown: Above 0 where a link is used whose rate is not published.
        expert_unknown: The same of what only a model with experts uses.
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
    """What the collectives of a plan cost; of the plan only the degrees of parallelism are looked at.

    Args:
        plan: How the run is laid out.
        machine: What a rank communicates with.
        replicas: Ranks of dp and cp together, where they are known from less than the two: arrays have fewer axes then.
    """
    ranks = plan.dp * plan.cp if replicas is None else replicas
    tensor = group(machine, plan.tp, 1.0)
    ring_each: Number = 0.0
    ring_byte: Number = 0.0
    passing: Number = 0.0
    if not always_zero(plan.cp - 1.0):
        ring = group(machine, plan.cp, plan.tp)
        ring_each, ring_byte, passing = machine.call * ring.many + ring.latency, ring.gather, ring.unknown
    whole = group(machine, ranks, plan.tp)
    part = group(machine, ranks / plan.ep, plan.tp * plan.ep)
    expert_each, expert_byte, exchanging = _experts(plan, machine)
    send_each, send_byte, sending = _sends(plan, machine, plan.tp * ranks * plan.pp)
    return Links(
        tensor_each=machine.call * tensor.many + 2.0 * tensor.latency,
        tensor_byte=2.0 * tensor.gather,
        ring_each=ring_each,
        ring_byte=ring_byte,
        expert_each=expert_each,
        expert_byte=expert_byte,
        send_each=send_each,
        send_byte=send_byte,
        data_each=0.5 * machine.call * whole.many + whole.latency,
        data_byte=whole.gather,
        part_byte=part.gather,
        sharded=1.0 / ranks - 1.0,
        unknown=tensor.unknown + passing + sending + whole.unknown,
        expert_unknown=exchanging + part.unknown,
    )


def _experts(plan: Plan, machine: Machine) -> tuple[Number, Number, Number]:
    """An all-to-all, whatever it carries and for each byte, and the use of unknown links: what leaves each level, added up.

    Of the ``n`` ranks of a group ``w_i`` lie within a unit of level i; over it goes the share ``(w_i - w_(i-1)) / n``.
    """
    if always_zero(plan.ep - 1.0):
        return 0.0, 0.0, 0.0
    inverse = 1.0 / plan.ep
    within_1, within_2, within_3 = (
        1.0 / larger(inverse, smaller(1.0, plan.tp * i))
        for i in (machine.inverse_1, machine.inverse_2, machine.inverse_3)
    )
    on_1, on_2, on_3, on_4 = within_1 - 1.0, within_2 - within_1, within_3 - within_2, plan.ep - within_3
    each = on_1 * machine.byte_1 + on_2 * machine.byte_2 + on_3 * machine.byte_3 + on_4 * machine.byte_4
    unknown = on_1 * machine.unknown_1 + on_2 * machine.unknown_2 + on_3 * machine.unknown_3 + on_4 * machine.unknown_4
    return machine.call * smaller(plan.ep - 1.0, 1.0), each * inverse, unknown


def _sends(plan: Plan, machine: Machine, span: Number) -> tuple[Number, Number, Number]:
    """A message between stages and one back, whatever they carry and for each byte, and the use of unknown links."""
    if always_zero(plan.pp - 1.0):
        return 0.0, 0.0, 0.0
    # 1 where the pipeline reaches beyond a unit of the level.
    out_1, out_2, out_3 = (
        smaller(1.0, ceil(span * i - 1.0)) for i in (machine.inverse_1, machine.inverse_2, machine.inverse_3)
    )
    in_1, in_2, in_3 = 1.0 - out_1, out_1 - out_2, out_2 - out_3
    byte = in_1 * machine.byte_1 + in_2 * machine.byte_2 + in_3 * machine.byte_3 + out_3 * machine.byte_4
    hop = in_1 * machine.hop_1 + in_2 * machine.hop_2 + in_3 * machine.hop_3 + out_3 * machine.hop_4
    unknown = in_1 * machine.unknown_1 + in_2 * machine.unknown_2 + in_3 * machine.unknown_3 + out_3 * machine.unknown_4
    many = smaller(plan.pp - 1.0, 1.0)
    return 2.0 * many * (machine.send + hop), 2.0 * many * byte, many * unknown
