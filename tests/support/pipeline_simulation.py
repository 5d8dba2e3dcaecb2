"""Pipeline schedules executed event by event, in plain Python: the oracle for their closed forms.

Every stage executes its passes in the order that the authors of a schedule publish, each as soon as the stage is free and
its inputs exist.  A pass is ``(kind, microbatch, chunk, stage)``; kinds are F, B (the whole backward pass, or that of
activations only) and W (gradients of weights).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

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
    stages: list[list[Pass]], times: Times, *, folded: bool = False, lasting: Callable[[Pass], float] | None = None
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
                needed = folded_inputs(now, p) if folded else inputs(now, p, v)
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
