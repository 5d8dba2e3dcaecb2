"""The pipeline of a training step once more, in plain Python: the layers of each stage, and the schedules as they are executed."""

from __future__ import annotations

import math
from typing import Any

from pipeline_simulation import gpipe, one_forward_one_backward, span, v_shaped, zero_bubble

ZERO_BUBBLE = {"zb1p": 1, "zb2p": 2}
HELD = {"1f1b": 1, "interleaved": 1, "gpipe": math.inf, "zb1p": 1, "zb2p": 2}
FOLDED = {"zbv", "v-half", "v-min"}


def uneven(x: Any, layers: int, mtp: float) -> bool:
    """Whether the chunks of the pipeline differ in more than the output."""
    return mtp > 0 or len({len(part) for stage in range(x.pp) for part in chunks(x, stage, layers, mtp)}) > 1


def executed(  # the passes of a pipeline
    x: Any, m: int, layers: int, mtp: float, layer: tuple[float, ...], sent: float, output: tuple[float, float]
) -> float:
    """The time of all passes, executed with the layers of each chunk and with the output in the last one."""
    p, folded = x.pp, x.schedule in FOLDED
    parts = [list(map(len, chunks(x, stage, layers, mtp))) for stage in range(p)]
    sizes = {(stage, i): n for stage, own in enumerate(parts) for i, n in enumerate(own)}
    last = (0, 1) if folded else (p - 1, x.interleave - 1)
    split = folded or x.schedule in ZERO_BUBBLE
    forward, inputs, weights = layer
    by_kind = {"F": forward, "B": inputs if split else inputs + weights, "W": weights}
    outputs = {"F": output[0], "B": output[1], "W": 0.0}

    def lasting(one: Any) -> float:
        kind, _, chunk, stage = one
        end = (stage, chunk) == last
        message = 0.0 if kind == "W" else sent / 2 / len(parts[stage])
        return (sizes[stage, chunk] + mtp * end) * by_kind[kind] + outputs[kind] * end + message

    def taking(count: int) -> float:
        if folded:
            orders = v_shaped(p, count, x.schedule)
        elif split:
            orders = zero_bubble(p, count, ZERO_BUBBLE[x.schedule])
        elif x.schedule == "gpipe":
            orders = gpipe(p, count)
        else:
            orders = one_forward_one_backward(p, count, x.interleave)
        return span(orders, {}, folded=folded, lasting=lasting)

    if p == 1:
        return m * taking(1)
    # With equal chunks and many microbatches each further one takes as long as the one before.
    few = m if uneven(x, layers, mtp) else min(m, 10 * p if p > 2 else 64)
    taken = taking(few)
    return taken + ((m - few) * (taken - taking(few - 1)) if m > few else 0.0)


def idle(x: Any, m: int, forward: float, inputs: float, weights: float) -> float:
    """The pipeline bubble: the schedule as it is executed."""
    p, stage = x.pp, forward + inputs + weights
    if p == 1:
        return 0.0
    # The bubble does not grow with more microbatches than that.
    few = min(m, 3 * p)
    if x.schedule in ZERO_BUBBLE:
        times = {"F": forward, "B": inputs, "W": weights}
        return span(zero_bubble(p, few, ZERO_BUBBLE[x.schedule]), times) - few * stage
    times = {"F": forward / x.interleave, "B": (inputs + weights) / x.interleave}
    order = gpipe(p, few) if x.schedule == "gpipe" else one_forward_one_backward(p, few, x.interleave)
    return span(order, times) - few * stage


def windows(x: Any, m: int) -> tuple[float, float]:
    """Backward passes after the first final gradients, and forward passes before the last weights, of the first stage."""
    if x.interleave == 1:
        return 1.0, 1.0
    few = min(m, 2 * x.pp)
    order = one_forward_one_backward(x.pp, few, x.interleave)[0]
    backward = [(i, c) for kind, i, c, _ in order if kind == "B"]
    forward = [(i, c) for kind, i, c, _ in order if kind == "F"]
    last = x.interleave - 1
    late, early = len(backward) - backward.index((few - 1, last)), 1 + forward.index((0, last))
    return late / x.interleave, early / x.interleave


def chunks(x: Any, stage: int, layers: int, mtp: float = 0) -> list[range]:
    """The layers of the chunks of a stage."""
    count = x.pp * (2 if x.schedule in FOLDED else x.interleave)
    # A module of multi-token prediction and its output, and the output of the model, take the place of layers of the last chunk.
    taken = min(2 * int(mtp) + 1, layers // count) if mtp and x.schedule not in FOLDED else 0
    layers += taken
    sizes = [layers // count] * count
    left = layers - sum(sizes)
    # The rest is handed out one by one, and not to the ends as long as others are short.
    for chunk in (*range(1, count - 1), 0):
        if left:
            sizes[chunk], left = sizes[chunk] + 1, left - 1
    sizes[-1] -= taken
    mine = (stage, count - 1 - stage) if x.schedule in FOLDED else range(stage, count, x.pp)
    return [range(sum(sizes[:i]), sum(sizes[: i + 1])) for i in mine]


def stages(x: Any, layers: int, mtp: float = 0) -> list[int]:
    """How many layers each stage has."""
    return [sum(map(len, chunks(x, stage, layers, mtp))) for stage in range(x.pp)]


def in_flight(x: Any, stage: int) -> float:
    """Microbatches that a stage holds at the peak, in units of all its layers."""
    m = x.global_batch // (x.microbatch * x.dp)
    if x.interleave > 1:
        return min(m, ((x.interleave - 1) * x.pp + 2 * (x.pp - stage) - 1) / x.interleave)
    if x.schedule in FOLDED:
        return min(m, {"zbv": x.pp, "v-half": x.pp // 2 + 1, "v-min": (x.pp + 4) // 3}[x.schedule])
    return min(m, max(1, HELD[x.schedule] * (x.pp - stage)))
