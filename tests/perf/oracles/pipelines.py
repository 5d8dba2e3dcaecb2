"""Pipelines by other means than the package's: executed pass by pass, and by longest paths."""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

# The pipeline of a training step once more, in plain Python: the layers of each stage, and the schedules as they are executed.

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
    p, is_v_shaped = x.pp, x.schedule in FOLDED
    parts = [list(map(len, chunks(x, stage, layers, mtp))) for stage in range(p)]
    sizes = {(stage, i): n for stage, own in enumerate(parts) for i, n in enumerate(own)}
    last = (0, 1) if is_v_shaped else (p - 1, x.interleave - 1)
    split = is_v_shaped or x.schedule in ZERO_BUBBLE
    forward, inputs, weights = layer
    by_kind = {"F": forward, "B": inputs if split else inputs + weights, "W": weights}
    outputs = {"F": output[0], "B": output[1], "W": 0.0}

    def lasting(one: Any) -> float:
        kind, _, chunk, stage = one
        end = (stage, chunk) == last
        message = 0.0 if kind == "W" else sent / 2 / len(parts[stage])
        return (sizes[stage, chunk] + mtp * end) * by_kind[kind] + outputs[kind] * end + message

    def taking(count: int) -> float:
        if is_v_shaped:
            orders = v_shaped(p, count, x.schedule)
        elif split:
            orders = zero_bubble(p, count, ZERO_BUBBLE[x.schedule])
        elif x.schedule == "gpipe":
            orders = gpipe(p, count)
        else:
            orders = one_forward_one_backward(p, count, x.interleave)
        return span(orders, {}, is_v_shaped=is_v_shaped, lasting=lasting)

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


# Pipeline schedules executed event by event, in plain Python: the oracle for their closed forms.
#
# Every stage executes its passes in the order that the authors of a schedule publish, each as soon as the stage is free and
# its inputs exist.  A pass is ``(kind, microbatch, chunk, stage)``; kinds are F, B (the whole backward pass, or that of
# activations only) and W (gradients of weights).

Pass = tuple[str, int, int, int]
Times = dict[str, float]
CHANGE = {"F": 1, "B": 0, "W": -1}
"""Chunks whose activations a pass begins or ends to store."""


def one_forward_one_backward(p: int, m: int, v: int = 1) -> list[list[Pass]]:
    """Narayanan et al. 2021, section 2.2: 1F1B, and interleaved with ``v`` chunks for a multiple of ``p`` microbatches."""
    stages = []
    for r in range(p):
        forward = [(i, chunk) for i, chunk in rounds(p, m, v)]
        backward = [(i, v - 1 - chunk) for i, chunk in rounds(p, m, v)]
        ahead = min(m * v, p - r - 1 if v == 1 else 2 * (p - r - 1) + (v - 1) * p)
        order: list[Pass] = [("F", i, c, r) for i, c in forward[:ahead]]
        for k, (i, c) in enumerate(backward):
            order += [("F", *forward[ahead + k], r)] if ahead + k < m * v else []
            order.append(("B", i, c, r))
        stages.append(order)
    return stages


def gpipe(p: int, m: int) -> list[list[Pass]]:
    """Huang et al. 2019, section 2.3: all forward passes, then all backward passes."""
    return [[(kind, i, 0, r) for kind in "FB" for i in range(m)] for r in range(p)]


def rounds(p: int, m: int, v: int) -> Iterator[tuple[int, int]]:
    """Microbatches and chunks in the order of their forward passes: ``p`` microbatches through each chunk in turn."""
    if v == 1:
        yield from ((i, 0) for i in range(m))
        return
    for first in range(0, m, p):
        for chunk in range(v):
            yield from ((first + i, chunk) for i in range(p))


def zero_bubble(p: int, m: int, ahead: int) -> list[list[Pass]]:
    """Qi et al. 2023, section 3: ZB-H1 (``ahead`` 1) and ZB-H2 (2).

    Stage r starts ``p - r`` or ``2 (p - r) - 1`` microbatches before the first backward pass, and computes gradients of
    weights ``ahead r`` microbatches later than those of activations.
    """
    stages = []
    for r in range(p):
        begun = min(m, p - r if ahead == 1 else 2 * (p - r) - 1)
        order: list[Pass] = [("F", i, 0, r) for i in range(begun)]
        for i in range(m):
            order.append(("B", i, 0, r))
            order += [("W", i - ahead * r, 0, r)] if i >= ahead * r else []
            order += [("F", begun + i, 0, r)] if begun + i < m else []
        order += [("W", i, 0, r) for i in range(max(0, m - ahead * r), m)]
        stages.append(order)
    return stages


def span(
    stages: list[list[Pass]], times: Times, *, is_v_shaped: bool = False, lasting: Callable[[Pass], float] | None = None
) -> float:
    """The longest time from the first to the last pass of a stage, each of which lasts the same or ``lasting``.

    With zero-bubble schedules, stages begin a step one after the other, as they ended the step before (Qi et al. 2023,
    section 4: the optimizer does not synchronize them); for the others the first stage begins first and ends last.
    """
    p, v = len(stages), 1 + max(c for order in stages for _, _, c, _ in order)
    done: dict[Pass, float] = {}
    position, free = [0] * p, [0.0] * p
    while any(position[r] < len(order) for r, order in enumerate(stages)):
        before = list(position)
        for r, order in enumerate(stages):
            while position[r] < len(order):
                now = order[position[r]]
                needed = folded_inputs(now, p) if is_v_shaped else inputs(now, p, v)
                if not all(n in done for n in needed):
                    break
                free[r] = done[now] = max([free[r], *(done[n] for n in needed)]) + (
                    times[now[0]] if lasting is None else lasting(now)
                )
                position[r] += 1
        assert position != before, "the order of the passes is a deadlock"
    return max(
        free[r] - done[order[0]] + (times["F"] if lasting is None else lasting(order[0]))
        for r, order in enumerate(stages)
    )


def inputs(now: Pass, p: int, v: int) -> list[Pass]:
    """The passes whose results a pass needs: chunk c of stage r is the ``c p + r``-th part of the model."""
    kind, i, c, r = now
    if kind == "W":
        return [("B", i, c, r)]
    part = c * p + r
    if kind == "F":
        return [("F", i, *divmod(part - 1, p))] if part else []
    return [("F", i, c, r)] + ([("B", i, *divmod(part + 1, p))] if part + 1 < p * v else [])


def zbv(p: int, m: int) -> list[list[Pass]]:
    """Qi et al. 2023, section 6, in the order of ScheduleZBVZeroBubble of PyTorch: that of ``2 p - 1`` microbatches or more."""
    full, stages = max(m, 2 * p - 1), []
    for r in range(p):
        # What a stage does in turn, each the next of its kind: f and b in the first chunk, F and B in the second.
        turns = "f" * (2 * (p - r) - 1) + "Ff" * r + "FBV" * (p - r)
        forward, second = turns.count("f"), turns.count("F")
        turns += "fbwFBV" * (full - forward) + "bwFBV" * (full - second - (full - forward))
        turns += "bB" * r + "bw" * (p - r)
        turns += "V" * (full - turns.count("V")) + "w" * (full - turns.count("w"))
        order: list[Pass] = []
        begun = dict.fromkeys(turns, 0)
        for turn in turns:
            if begun[turn] < m:
                order.append(("W" if turn in "wV" else turn.upper(), begun[turn], int(turn in "FBV"), r))
            begun[turn] += 1
        stages.append(order)
    return stages


def controllable(p: int, m: int, name: str) -> list[list[Pass]]:  # noqa: C901  # all steps of the construction
    """Qi et al. 2024, sections 3 and 4: ``v-half`` and ``v-min``.

    All passes take a unit of time.  Every microbatch repeats the block of the one before, six units later; gradients of
    weights fill the units that are left in turn.  Then each pass, in the order of time, moves to the first unit in which it
    is possible with no more chunks stored than the blocks store.  At last the passes after the last forward pass of a stage
    move without that limit, gradients of weights after the others.
    """
    half = name == "v-half"
    odd = (3 if p % 2 == 0 else 0) if half else (2 if p % 3 == 0 else 0)
    times: list[dict[Pass, int]] = [{} for _ in range(p)]
    for r in range(p):
        block = (2 * r, 3 * p - r - 2, 3 * p + odd + 2 * r - 1, 6 * p + odd - r - 2)
        if not half:
            block = (r, 2 * p - r - 1, 2 * p + odd + r, 4 * p + odd - r - 1)
        for (kind, c), t in zip((("F", 0), ("F", 1), ("B", 1), ("B", 0)), block, strict=True):
            times[r] |= {(kind, i, c, r): t + 6 * i for i in range(m)}
        taken = set(times[r].values())
        for t, (_, i, c, _) in sorted((t, n) for n, t in times[r].items() if n[0] == "B"):
            unit = next(u for u in range(t + 1, t + 6 * m + 9) if u not in taken)
            times[r]["W", i, c, r] = unit
            taken.add(unit)
    last = [{n for n, t in one.items() if t > one["F", m - 1, 1, r]} for r, one in enumerate(times)]
    taken = [set(one.values()) for one in times]
    stored = [[0] * (1 + max(max(units) for units in taken)) for _ in times]

    def place(now: Pass, unit: int) -> None:
        r, old = now[3], times[now[3]][now]
        taken[r].remove(old)
        taken[r].add(unit)
        times[r][now] = unit
        for u in range(unit, old):
            stored[r][u] += CHANGE[now[0]]

    for r, one in enumerate(times):
        for now, t in one.items():
            for u in range(t, len(stored[r])):
                stored[r][u] += CHANGE[now[0]]
    most = max(map(max, stored))

    def earliest(now: Pass) -> int:
        kind, i, c, r = now
        before = [times[n[3]][n] for n in folded_inputs(now, p)] + ([times[r][kind, i - 1, c, r]] if i else [])
        return 1 + max(before, default=-1)

    def first(now: Pass, begin: int, end: int) -> int:
        return next((u for u in range(begin, end) if u not in taken[now[3]]), end)

    def in_time() -> list[tuple[int, int, Pass]]:
        return sorted((t, r, n) for r, one in enumerate(times) for n, t in one.items())

    for t, r, now in in_time():
        begin = earliest(now)
        full = [u for u in range(begin, t) if now[0] == "F" and stored[r][u] >= most]
        place(now, first(now, full[-1] + 1 if full else begin, t))
    ending = [(t, r, now) for t, r, now in in_time() if now in last[r]]
    for t, r, now in ending:
        if now[0] == "W":
            taken[r].remove(times[r].pop(now))
        else:
            place(now, first(now, earliest(now), t))
    for _, r, now in ending:
        if now[0] == "W":
            times[r][now] = first(now, earliest(now), 100 * (p + m))
            taken[r].add(times[r][now])
    return [[n for _, n in sorted((t, n) for n, t in one.items())] for one in times]


@functools.cache
def v_shaped(p: int, m: int, name: str) -> list[list[Pass]]:
    """The order of the passes of every stage; stage r has parts r and ``2 p - 1 - r`` of the model."""
    return zbv(p, m) if name == "zbv" else controllable(p, m, name)


def folded_inputs(now: Pass, p: int) -> list[Pass]:
    """The passes whose results a pass needs in a V-shaped schedule."""
    kind, i, c, r = now
    if kind == "W":
        return [("B", i, c, r)]
    # Down the stages in the first chunk and up in the second; backward passes the other way.
    down = (c == 0) == (kind == "F")
    if (before := r - 1 if down else r + 1) in range(p):
        return [(kind, i, c, before)]
    if kind == "F":
        return [("F", i, 0, r)] if c else []
    return [("F", i, 1, r)] if c else [("B", i, 1, r)]
