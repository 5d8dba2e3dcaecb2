"""Pipeline schedules executed event by event, in plain Python: the oracle for their closed forms.

Every stage executes its passes in the order that the authors of a schedule publish, each as soon as the stage is free and
its inputs exist.  A pass is ``(kind, microbatch, chunk, stage)``; kinds are F, B (the whole backward pass, or that of
activations only) and W (gradients of weights).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

Pass = tuple[str, int, int, int]
Times = dict[str, float]


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


def span(stages: list[list[Pass]], times: Times) -> float:
    """The longest time from the first to the last pass of a stage.

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
                needed = inputs(now, p, v)
                if not all(n in done for n in needed):
                    break
                free[r] = done[now] = max([free[r], *(done[n] for n in needed)]) + times[now[0]]
                position[r] += 1
        assert position != before, "the order of the passes is a deadlock"
    return max(free[r] - done[order[0]] + times["F"] for r, order in enumerate(stages))


def inputs(now: Pass, p: int, v: int) -> list[Pass]:
    """The passes whose results a pass needs: chunk c of stage r is the ``c p + r``-th part of the model."""
    kind, i, c, r = now
    if kind == "W":
        return [("B", i, c, r)]
    part = c * p + r
    if kind == "F":
        return [("F", i, *divmod(part - 1, p))] if part else []
    return [("F", i, c, r)] + ([("B", i, *divmod(part + 1, p))] if part + 1 < p * v else [])


def folded_span(p: int, m: int, times: Times, limit: int) -> float:
    """A greedy V-shaped schedule: backward passes first, then forward passes of the second chunk, then of the first.

    Stage r has parts r and ``2 p - 1 - r`` of the model.  Gradients of weights are computed where nothing else can be, or
    where the activations of ``limit`` chunks are stored.

    Args:
        p: Stages.
        m: Microbatches.
        times: Times of the passes of one chunk.
        limit: Chunks whose activations a stage stores at most.
    """
    parts = 2 * p
    done: dict[tuple[str, int, int], float] = {}
    next_of = {(kind, part): 0 for kind in "FB" for part in range(parts)}
    owed: list[list[int]] = [[] for _ in range(p)]
    stored, free, begun = [0] * p, [0.0] * p, [-1.0] * p
    left, events = 6 * m * p, [0.0]

    def ready(kind: str, part: int, now: float) -> bool:
        i = next_of[kind, part]
        if i == m:
            return False
        if kind == "F":
            needed = [("F", i, part - 1)] if part else []
        else:
            needed = [("F", i, part)] + ([("B", i, part + 1)] if part + 1 < parts else [])
        return all(done.get(n, now + 1.0) <= now for n in needed)

    def choose(r: int, now: float) -> tuple[str, int] | None:
        first, second = r, parts - 1 - r
        for kind, part in (("B", first), ("B", second), ("F", second), ("F", first)):
            # One chunk less for the first, so that its microbatches can always go on.
            if ready(kind, part, now) and (kind == "B" or stored[r] < limit - (part == first)):
                return kind, part
        return ("W", owed[r][0]) if owed[r] else None

    while left:
        now = heapq.heappop(events)
        for r in range(p):
            if free[r] > now or (chosen := choose(r, now)) is None:
                continue
            kind, part = chosen
            free[r] = now + times[kind]
            begun[r] = now if begun[r] < 0.0 else begun[r]
            heapq.heappush(events, free[r])
            left -= 1
            if kind == "W":
                owed[r].pop(0)
                stored[r] -= 1
                continue
            done[kind, next_of[kind, part], part] = free[r]
            next_of[kind, part] += 1
            if kind == "B":
                owed[r].append(part)
            else:
                stored[r] += 1
    return max(f - b for f, b in zip(free, begun, strict=True))
