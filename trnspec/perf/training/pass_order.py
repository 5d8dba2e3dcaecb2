"""The order in which every stage of a pipeline executes its passes, and what each pass needs.

- ``gpipe``: Huang et al. 2019, section 2.3, in the order of ``ScheduleGPipe`` of PyTorch;
- ``1f1b`` and ``interleaved``: Narayanan et al. 2021, section 2.2, in the order of Megatron-LM;
- ``zb1p`` and ``zb2p``: ZB-H1 and ZB-H2 of Qi et al. 2023 (arXiv 2401.10241), section 3;
- V-shaped schedules: :mod:`trnspec.perf.training.v_shaped_order`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf.training import v_shaped_order
from trnspec.perf.work.layout import V_SHAPED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.perf.training.v_shaped_order import Slot

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
    if schedule in V_SHAPED:
        return v_shaped_order.order(schedule, stages, microbatches)
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


def needed(slot: Slot, stage: int, stages: int, chunks: int = 1, *, folded: bool = False) -> tuple[int, Slot] | None:
    """The pass whose result a pass needs from another stage, or from another chunk; ``None`` for none.

    Chunk c of stage k is the ``(c p + k)``-th part of the model, or in V-shaped schedules (``folded``) that of
    :func:`trnspec.perf.training.v_shaped_order.needed`.
    """
    kind, chunk, i = slot
    if folded:
        return next(v_shaped_order.needed(slot, stage, stages), None)
    part = chunk * stages + stage + {"F": -1, "B": 1, "W": 0}[kind]
    if kind == "W" or not 0 <= part < stages * chunks:
        return None
    chunk, stage = divmod(part, stages)
    return stage, (kind, chunk, i)
