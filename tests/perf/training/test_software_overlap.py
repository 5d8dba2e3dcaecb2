"""Effects of software: messages of interleaved schedules, the all-to-all, the output matrix in 16 bit."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.support.engine import LLAMA_2_7B, LLAMA_3_70B, MIXTRAL, everything, experts
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL, Efficiency
from trnspec.perf.training.execution import half_moved
from trnspec.perf.training.parts import microbatch
from trnspec.perf.training.step import Step, step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import transformer

SYSTEM = lower(everything(), "dgx-h100*8")
PIPELINE = Layout(pp=8, dp=8, seq=4096, global_batch=512)
EXPERTS = Layout(ep=8, dp=64, seq=4096, global_batch=512)


def timed(d, layout: Layout, efficiency: Efficiency = IDEAL, dtype: str = "bf16") -> Step:
    return step(transformer(d), layout, machine(SYSTEM, efficiency, dtype))


def test_messages_of_interleaved_schedules_are_hidden_in_part():
    interleaved = evolve(PIPELINE, schedule="interleaved", interleave=5)
    some = evolve(IDEAL, pipeline_overlap=0.75)
    full, part = timed(LLAMA_3_70B, interleaved), timed(LLAMA_3_70B, interleaved, some)
    assert 0.25 * full.pipeline == pytest.approx(part.pipeline)
    assert full.compute == part.compute
    assert part.bubble < full.bubble
    # Without interleaving a stage waits for each message.
    assert timed(LLAMA_3_70B, PIPELINE) == timed(LLAMA_3_70B, PIPELINE, some)


def test_all_to_all_time_of_experts():
    exposed = evolve(EXPERTS, expert_overlap=False)
    one = timed(MIXTRAL, exposed).expert
    assert one > 0.0
    half = timed(MIXTRAL, exposed, evolve(IDEAL, exchange=0.5)).expert
    assert 2.0 * one == pytest.approx(half, rel=1e-3)
    fixed = timed(MIXTRAL, exposed, evolve(IDEAL, dispatch=1e-4)).expert
    # Two forward and two backward, in each of 32 layers, for each of 8 microbatches.
    assert one + 4 * 32 * 8 * 1e-4 == pytest.approx(fixed)
    # Where the software exposes it, the share that could be hidden does not matter.
    assert one == timed(MIXTRAL, exposed, evolve(IDEAL, expert_overlap=0.5)).expert


def test_an_all_to_all_hides_behind_a_share_of_the_rest():
    slow = evolve(IDEAL, exchange=0.02)
    exposed = timed(MIXTRAL, evolve(EXPERTS, expert_overlap=False), slow)
    rest = exposed.compute
    for share in (0.25, 1.0):
        part = timed(MIXTRAL, EXPERTS, evolve(slow, expert_overlap=share))
        assert max(exposed.expert - share * rest, 0.0) == pytest.approx(part.expert)


@pytest.mark.parametrize(("ep", "stride"), [(2, 4), (16, 4), (8, 1)])
def test_bytes_of_tensor_parallelism_on_the_same_links_add_up(ep, stride):
    """An all-to-all within a server takes turns with all-reduces of its ranks; one over the network does not."""
    layout = Layout(tp=4, ep=ep, dp=16, seq=4096, global_batch=64, expert_tp=None if stride == 4 else 1)
    on, model = machine(SYSTEM, evolve(IDEAL, exchange=0.02), "bf16"), transformer(experts(LLAMA_2_7B, 16, 2))
    apart, together = (microbatch(model, evolve(layout, expert_overlap=overlap), on) for overlap in (False, True))
    rest = apart.forward + apart.backward + (0.0 if ep * stride <= 8 else apart.tensor)

    assert together.expert == pytest.approx(apart.expert - rest, rel=1e-4)
    assert apart.tensor > 1e-2 * apart.expert


def test_the_output_matrix_is_in_16_bit():
    wide, narrow = (timed(LLAMA_3_70B, evolve(PIPELINE, pp=1, dp=64), dtype=dtype) for dtype in ("bf16", "fp8"))
    assert wide.head == narrow.head > 0.0
    assert narrow.compute < wide.compute
    share = evolve(IDEAL, matmul=0.5, matmul_fp8=0.9)
    assert 2.0 * wide.head == pytest.approx(timed(LLAMA_3_70B, evolve(PIPELINE, pp=1, dp=64), share, "fp8").head)


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
