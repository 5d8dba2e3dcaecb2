"""The order in which every stage of a pipeline executes its passes, and what each pass needs.

- ``gpipe``: Huang et al. 2019, section 2.3, in the order of ``ScheduleGPipe`` of PyTorch;
- ``1f1b`` and ``interleaved``: Narayanan et al. 2021, section 2.2, in the order of Megatron-LM;
- ``zb1p`` and ``zb2p``: ZB-H1 and ZB-H2 of Qi et al. 2023 (arXiv 2401.10241), section 3;
- ``zbv``: Qi et al. 2023, section 6, in the order of ``ScheduleZBVZeroBubble`` of PyTorch;
- ``v-half`` and ``v-min``: Qi et al. 2024 (arXiv 2405.15362), sections 3 and 4: a building block for each microbatch, repeated
  every six passes; then each pass moves to the first free place after what it needs, within the memory of the repeated
  blocks, and at the end without that limit.

In V-shaped schedules stage ``k`` of ``p`` has two chunks of the model, the ``k``-th and the ``(2 p - 1 - k)``-th, and a split
backward pass. The orders do not depend on the times of passes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import accumulate

from trnspec.perf.work.layout import V_SHAPED

Slot = tuple[str, int, int]
"""A pass of a stage: ``F``, ``B`` or ``W``, the chunk of the stage, and the microbatch."""

FUSED = ("1f1b", "interleaved", "gpipe")
"""Schedules with whole backward passes."""
SPLIT = {"zb1p": 1, "zb2p": 2}
"""Schedules whose backward pass is split: how far gradients of weights fall behind, in microbatches per stage."""
ORDERED = (*FUSED, *SPLIT, *V_SHAPED)
"""Schedules whose passes have a published order."""


def order(schedule: str, stages: int, microbatches: int, chunks: int = 1) -> list[list[Slot]]:
    """The passes of every stage in the order of their execution.

    Args:
        schedule: One of :data:`ORDERED`.
        stages: Pipeline stages.
        microbatches: Microbatches; with several chunks of ``interleaved`` a multiple of the stages.
        chunks: Model chunks per stage of ``interleaved``.
    """
    if schedule == "zbv":
        return [list(_zero_bubble(stages, microbatches, stage)) for stage in range(stages)]
    if schedule in V_SHAPED:
        return _Blocks(schedule, stages, microbatches).squeezed()
    if schedule == "gpipe":
        return [[(kind, 0, i) for kind in "FB" for i in range(microbatches)]] * stages
    if schedule in SPLIT:
        return [list(_split(stages, microbatches, SPLIT[schedule], stage)) for stage in range(stages)]
    return [list(_fused(stages, microbatches, chunks, stage)) for stage in range(stages)]


def _fused(p: int, m: int, v: int, stage: int) -> Iterator[Slot]:
    """1F1B; with several chunks, ``p`` microbatches pass one chunk after the other."""
    turn = [(k % (p * v) // p, k // (p * v) * p + k % p) if v > 1 else (0, k) for k in range(m * v)]
    ahead = min(m * v, p - 1 - stage if v == 1 else 2 * (p - 1 - stage) + (v - 1) * p)
    for chunk, microbatch in turn[:ahead]:
        yield "F", chunk, microbatch
    for k, (chunk, microbatch) in enumerate(turn):
        if ahead + k < m * v:
            yield "F", *turn[ahead + k]
        yield "B", v - 1 - chunk, microbatch


def _split(p: int, m: int, behind: int, stage: int) -> Iterator[Slot]:
    """ZB-H1 and ZB-H2: gradients of weights fall behind by some microbatches, more on later stages."""
    begun = min(m, p - stage if behind == 1 else 2 * (p - stage) - 1)
    late = behind * stage
    for i in range(begun):
        yield "F", 0, i
    for i in range(m):
        yield "B", 0, i
        if i >= late:
            yield "W", 0, i - late
        if begun + i < m:
            yield "F", 0, begun + i
    for i in range(max(0, m - late), m):
        yield "W", 0, i


def part_of(stage: int, chunk: int, stages: int, *, is_v_shaped: bool) -> int:
    """The part of the model that a chunk of a stage is, from 0."""
    return (2 * stages - 1 - stage if chunk else stage) if is_v_shaped else chunk * stages + stage


def needed(slot: Slot, stage: int, stages: int, chunks: int, *, is_v_shaped: bool) -> tuple[int, Slot] | None:
    """The stage and the pass whose result a pass needs: of the part of the model before or behind, or of its own part."""
    kind, chunk, i = slot
    if kind == "W":
        return stage, ("B", chunk, i)
    part = part_of(stage, chunk, stages, is_v_shaped=is_v_shaped) + {"F": -1, "B": 1}[kind]
    if part == stages * chunks:
        return stage, ("F", chunk, i)
    if part < 0:
        return None
    chunk, other = divmod(part, stages)
    return stages - 1 - other if is_v_shaped and chunk else other, (kind, chunk, i)


def _zero_bubble(p: int, m: int, stage: int) -> Iterator[Slot]:
    """The passes of a stage of ``zbv``; with few microbatches those of ``2 p - 1`` without the ones that do not exist."""
    (f0, f1), (b0, b1), (w0, w1) = (((kind, 0), (kind, 1)) for kind in "FBW")
    total = max(2 * p - 1, m)
    # Forward passes that the warm-up leaves, of the first chunk and of the second.
    left, of_second = total - (2 * p - 1 - stage), total - p
    turns = [f0] * (2 * (p - stage) - 1) + [f1, f0] * stage + [f1, b1, w1] * (p - stage)
    turns += [f0, b0, w0, f1, b1, w1] * left + [b0, w0, f1, b1, w1] * (of_second - left)
    turns += [b0, b1] * stage + [b0, w0] * (p - stage) + [w1] * stage + [w0] * stage
    begun = dict.fromkeys(turns, 0)
    for turn in turns:
        if begun[turn] < m:
            yield *turn, begun[turn]
        begun[turn] += 1


_CHANGE = {"F": 1, "B": 0, "W": -1}
"""Chunks whose activations a pass begins or ends to store."""


class _Blocks:
    """Repeated building blocks, whose passes move to free places; every pass has one place in time.

    Attributes:
        at: By stage: the pass at each time.
        when: By stage: the time of each pass.
    """

    def __init__(self, schedule: str, p: int, m: int) -> None:
        self.p, self.m = p, m
        self.at: list[dict[int, Slot]] = [{} for _ in range(p)]
        self.when: list[dict[Slot, int]] = [{} for _ in range(p)]
        self.stored: list[list[int]] = []
        self.last: list[set[Slot]] = []
        for stage in range(p):
            for (kind, chunk), begin in self._block(schedule, stage):
                for i in range(m):
                    self._put(stage, (kind, chunk, i), begin + 6 * i)
            self._weights(stage)

    def _block(self, schedule: str, stage: int) -> Iterator[tuple[tuple[str, int], int]]:
        """The times of the passes of the first microbatch; a gap keeps those of different microbatches apart."""
        p = self.p
        down, gap = (2, 3 * (p % 2 == 0)) if schedule == "v-half" else (1, 2 * (p % 3 == 0))
        turn = (down + 1) * p
        yield ("F", 0), down * stage
        yield ("F", 1), turn - stage - down
        yield ("B", 1), turn + gap + down * stage - (down - 1)
        yield ("B", 0), 2 * turn + gap - stage - down

    def _put(self, stage: int, slot: Slot, time: int) -> None:
        self.at[stage][time] = slot
        self.when[stage][slot] = time

    def _weights(self, stage: int) -> None:
        """Gradients of weights in free places, in the order of the backward passes; what is stored; the last passes."""
        waiting: deque[Slot] = deque()
        late = False
        last: set[Slot] = set()
        places = self.at[stage]
        end = max(places) + 3
        for time in range(end):
            if time not in places and waiting:
                _, chunk, i = waiting.popleft()
                self._put(stage, ("W", chunk, i), time)
            if time in places:
                slot = places[time]
                if late:
                    last.add(slot)
                late = late or slot == ("F", 1, self.m - 1)
                if slot[0] == "B":
                    waiting.append(slot)
        self.stored.append([*accumulate(_CHANGE[places[t][0]] if t in places else 0 for t in range(end))])
        self.last.append(last)

    def squeezed(self) -> list[list[Slot]]:
        """The order of the passes once they have moved."""
        most = max(map(max, self.stored))
        end = max(map(max, self.at)) + 1
        for time in range(end):
            for stage, places in enumerate(self.at):
                if time in places:
                    self._move(stage, time, most)
        # At the end memory is free: backward passes first, gradients of weights where there is a place.
        left: list[list[Slot]] = [[] for _ in range(self.p)]
        for time in range(end):
            for stage, places in enumerate(self.at):
                slot = places.get(time)
                if slot is None or slot not in self.last[stage]:
                    continue
                if slot[0] == "W":
                    left[stage].append(places.pop(time))
                else:
                    self._move(stage, time, most)
        for stage, slots in enumerate(left):
            for slot in slots:
                time = self._earliest(stage, slot)
                while time in self.at[stage]:
                    time += 1
                self._put(stage, slot, time)
        return [[places[time] for time in sorted(places)] for places in self.at]

    def _earliest(self, stage: int, slot: Slot) -> int:
        kind, chunk, i = slot
        latest = self.when[stage][kind, chunk, i - 1] if i else -1
        if (before := needed(slot, stage, self.p, 2, is_v_shaped=True)) is not None:
            latest = max(latest, self.when[before[0]][before[1]])
        return latest + 1

    def _move(self, stage: int, time: int, most: int) -> None:
        """Move a pass to the first free place from which on no more than ``most`` chunks are stored."""
        places, stored = self.at[stage], self.stored[stage]
        slot = places[time]
        change = _CHANGE[slot[0]]
        free = (t for t in range(self._earliest(stage, slot), time) if t not in places)
        new = next((t for t in free if max(stored[t:time]) + change <= most), time)
        for t in range(new, time):
            stored[t] += change
        del places[time]
        self._put(stage, slot, new)
