"""Properties of the bytes of any transformer under any split."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine import GPT_175B, LATENT, LLAMA_3_8B, LLAMA_3_70B, MIXTRAL
from trnspec.perf.frameworks import Runtime
from trnspec.perf.work.layout import OPTIMIZERS, RECOMPUTE, SCHEDULES, Layout
from trnspec.perf.work.memory import Memory, inference_memory, kv_cache, training_memory

MODELS = st.sampled_from([LLAMA_3_8B, LLAMA_3_70B, GPT_175B, MIXTRAL, LATENT])
NAMES = [f.name for f in attrs.fields(Memory)]


def counts(*values: float) -> st.SearchStrategy[float]:
    return st.sampled_from([float(v) for v in values])


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    def one(*values):
        return draw(st.sampled_from(values))

    dp, microbatch = one(1, 2, 8, 24), one(1, 2, 5)
    return Layout(
        tp=one(1, 2, 3, 8, 64), pp=one(1, 2, 3, 8), dp=dp, cp=one(1, 2, 4), ep=one(1, 2, 8), expert_tp=one(None, 1),
        interleave=one(1, 2, 4), schedule=one(*SCHEDULES), recompute=one(*RECOMPUTE), fused_loss=one(False, True),
        sequence_parallel=one(False, True), flash=one(False, True), seq=one(1, 128, 1000, 8192), microbatch=microbatch,
        global_batch=dp * microbatch * one(1, 2, 7, 64), zero=one(0, 1, 2, 3), optimizer=one(*OPTIMIZERS),
    )  # fmt: skip


RUNTIMES = st.builds(Runtime, dropout=counts(0, 1), activation_bytes=counts(1, 2, 4))


def bits(memory: Memory) -> list[str]:
    return [float(getattr(memory, name)).hex() for name in NAMES]


@given(MODELS, layouts(), RUNTIMES, st.data())
def test_parts_sum_and_none_is_negative_or_infinite(d, layout, runtime, data):
    stage = float(data.draw(st.integers(0, layout.pp - 1)))
    memory = training_memory(d, layout, stage=stage, runtime=runtime)
    parts = [getattr(memory, name) for name in NAMES]
    assert all(math.isfinite(p) and p >= 0 for p in parts)
    assert math.isclose(math.fsum(parts), memory.total, rel_tol=1e-12)


@given(MODELS, layouts(), RUNTIMES)
def test_a_loss_that_is_not_fused_keeps_more_of_the_logits_and_of_nothing_else(d, layout, runtime):
    last, size = 0.0 if layout.pipeline.v_shape else layout.pp - 1.0, runtime.activation_bytes
    fused, plain = (
        training_memory(d, evolve(layout, fused_loss=f), stage=last, runtime=runtime) for f in (True, False)
    )
    logits = layout.seq / layout.cp * layout.microbatch * d.vocabulary / layout.tp
    more = fused.embeddings_and_logits + (8.0 + size) * logits
    assert math.isclose(more, plain.embeddings_and_logits, rel_tol=1e-12)
    # The gradient of the output comes after these logits, and does not add to them.
    assert plain.transient + size * d.embedding / layout.tp == pytest.approx(fused.transient, rel=1e-12)
    same = {"embeddings_and_logits": 0.0, "transient": 0.0}
    assert bits(evolve(plain, **same)) == bits(evolve(fused, **same))


@given(MODELS, layouts(), counts(0, 1, 4096), counts(1, 3, 64), counts(1, 512))
def test_inference_sums_and_its_batch_has_the_same_bits(d, layout, context, batch, tokens):
    ask = {"context": context, "batch": batch, "step_tokens": tokens}
    memory = inference_memory(d, layout, **ask)
    parts = [getattr(memory, name) for name in NAMES]
    assert all(math.isfinite(p) and p >= 0 for p in parts)
    assert math.isclose(math.fsum(parts), memory.total, rel_tol=1e-12)
    many = inference_memory(d, layout, **{name: np.array([value, 2.0]) for name, value in ask.items()})
    assert memory.total.hex() == float(many.total[0]).hex()


@given(MODELS, counts(1, 2, 3, 8, 64), counts(0, 1, 5000), counts(1, 9))
def test_the_cache_grows_and_never_splits_further_than_its_heads(d, tp, tokens, batch):
    one, more = (kv_cache(d, n, batch, 2.0, tp) for n in (tokens, tokens + 1.0))
    assert one < more
    assert more * d.kv_heads >= kv_cache(d, tokens + 1.0, batch)
