"""Effects of software: messages of interleaved schedules, the all-to-all, the output matrix in 16 bit."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.support.engine import LLAMA_3_70B, MIXTRAL, everything
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL, Efficiency
from trnspec.perf.training.execution import half_moved
from trnspec.perf.training.step import Step, step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import transformer

SYSTEM = lower(everything(), "dgx-h100*8")
PIPELINE = Layout(pp=8, dp=8, seq=4096, global_batch=512)


def timed(d, layout: Layout, efficiency: Efficiency = IDEAL, dtype: str = "bf16") -> Step:
    return step(transformer(d), layout, machine(SYSTEM, efficiency, dtype))


def test_of_an_interleaved_schedule_one_chunk_of_the_exchange_is_exposed():
    """NeMo's guide, "Communication Overlap": one chunk, of the layers of a virtual pipeline stage."""
    shares = {}
    for chunks in (1, 2, 5):
        layout = evolve(PIPELINE, zero=1, interleave=chunks, schedule="interleaved" if chunks > 1 else "1f1b")
        whole = timed(LLAMA_3_70B, layout, evolve(IDEAL, overlap=0.0)).data
        shares[chunks] = timed(LLAMA_3_70B, layout, evolve(IDEAL, exposed=0.4)).data / whole
    assert pytest.approx({1: 0.4, 2: 0.2, 5: 0.08}) == shares
    # Exchanges of every microbatch are not of chunks.
    layout = evolve(PIPELINE, zero=2, interleave=5, schedule="interleaved")
    whole = timed(LLAMA_3_70B, layout, evolve(IDEAL, overlap=0.0)).data
    assert pytest.approx(0.4 * whole) == timed(LLAMA_3_70B, layout, evolve(IDEAL, exposed=0.4)).data


def test_movable_work_is_split_in_half_during_a_fit():
    """The time is then at least the least one, which is searched for in unequal stages."""
    layout = Layout(pp=4, dp=16, ep=8, seq=4096, global_batch=256, interleave=3, schedule="interleaved", uneven=True)
    some = evolve(IDEAL, expert_overlap=0.3, exchange=0.1)
    least = timed(MIXTRAL, layout, some)
    with half_moved():
        near = timed(MIXTRAL, layout, some)
    assert least.bubble < near.bubble < 1.2 * least.bubble
    assert least == timed(MIXTRAL, layout, some)
