"""What must hold of the bytes of any transformer, however it is split."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from attrs import evolve
from dims_by_hand import GPT_175B, LATENT, LLAMA_3_8B, LLAMA_3_70B, MIXTRAL, experts
from hypothesis import given
from hypothesis import strategies as st

from trnspec.perf.work.memory import (
    OPTIMIZERS,
    Memory,
    Split,
    Storing,
    inference_memory,
    kv_cache,
    peak_memory,
    training_memory,
)
from trnspec.perf.work.stages import SCHEDULES

MODELS = st.sampled_from([LLAMA_3_8B, LLAMA_3_70B, GPT_175B, MIXTRAL, LATENT])
DENSE = st.sampled_from([LLAMA_3_8B, LLAMA_3_70B, GPT_175B])
ADAM = OPTIMIZERS["adam"]
NAMES = [f.name for f in attrs.fields(Memory)]


def counts(*values: float) -> st.SearchStrategy[float]:
    return st.sampled_from([float(v) for v in values])


@st.composite
def splits(draw: st.DrawFn) -> Split:
    held, folded = draw(st.sampled_from(list(SCHEDULES.values())))
    return Split(
        tp=draw(counts(1, 2, 3, 8, 64)), pp=draw(counts(1, 2, 3, 8)), dp=draw(counts(1, 2, 8, 24)),
        cp=draw(counts(1, 2, 4)), ep=draw(counts(1, 2, 8)), expert_tp=draw(st.none() | counts(1)),
        interleave=draw(counts(1, 2, 4)), held=held, folded=folded,
    )  # fmt: skip


@st.composite
def storings(draw: st.DrawFn) -> Storing:
    flag = counts(0, 1)
    return Storing(recompute=draw(counts(0, 1, 1.5, 2)), fused_loss=draw(flag), sequence_parallel=draw(flag), flash=draw(flag), dropout=draw(flag),
                   element_bytes=draw(counts(1, 2, 4)), form=draw(st.sampled_from(["counted", "published"])))  # fmt: skip


questions = st.fixed_dictionaries(
    {
        "seq": counts(1, 128, 1000, 8192),
        "microbatch": counts(1, 2, 5),
        "microbatches": counts(1, 2, 7, 64),
        "zero": counts(0, 1, 2, 3),
    }
)


def bits(memory: Memory) -> list[str]:
    return [float(getattr(memory, name)).hex() for name in NAMES]


@given(MODELS, splits(), storings(), questions, st.data())
def test_parts_sum_and_none_is_negative_or_infinite(d, split, kept, question, data):
    stage = float(data.draw(st.integers(0, int(split.pp) - 1)))
    memory = training_memory(d, split, kept, ADAM, **question, stage=stage)
    parts = [getattr(memory, name) for name in NAMES]
    assert all(math.isfinite(p) and p >= 0 for p in parts)
    assert math.isclose(math.fsum(parts), memory.total, rel_tol=1e-12)


@given(DENSE, splits(), storings(), questions)
def test_one_expert_without_router_is_a_dense_model(d, split, kept, question):
    one = experts(d, 1, 1, router=False)
    # An expert alone is split and copied as the rest.
    split = evolve(split, ep=1.0, expert_tp=None)
    dense, sparse = (training_memory(m, split, kept, ADAM, **question) for m in (d, one))
    # Experts are summed apart, so that the last bits of the state may differ.
    assert all(math.isclose(getattr(dense, n), getattr(sparse, n), rel_tol=1e-12) for n in NAMES)
    if d.layers % split.pp == 0:
        assert dense.activations == sparse.activations


@given(MODELS, splits(), storings(), questions)
def test_degrees_of_one_and_no_zero_leave_the_bits(d, split, kept, question):
    ones = Split(tp=split.tp, pp=split.pp, interleave=split.interleave, held=split.held, folded=split.folded)
    plain = {**question, "zero": 0.0}
    left_out = {name: plain[name] for name in ("seq", "microbatch", "microbatches")}
    said = evolve(ones, dp=1.0, cp=1.0, ep=1.0, expert_tp=split.tp)
    assert bits(training_memory(d, ones, kept, ADAM, **left_out)) == bits(training_memory(d, said, kept, ADAM, **plain))
    # Without ZeRO, copies change nothing.
    copied = evolve(ones, dp=split.dp)
    assert bits(training_memory(d, ones, kept, ADAM, **plain)) == bits(training_memory(d, copied, kept, ADAM, **plain))


@given(MODELS, st.lists(st.tuples(splits(), storings(), questions), min_size=1, max_size=8))
def test_one_call_and_the_element_of_a_batch_have_the_same_bits(d, rows):
    form = rows[0][1].form
    rows = [(evolve(s, expert_tp=s.expert_split), evolve(k, form=form), q) for s, k, q in rows]

    def column(values):
        return np.array(list(values))

    batch_split = Split(**{f.name: column(getattr(s, f.name) for s, _, _ in rows) for f in attrs.fields(Split)})
    batch_kept = Storing(
        form=form,
        **{f.name: column(getattr(k, f.name) for _, k, _ in rows) for f in attrs.fields(Storing) if f.name != "form"},
    )
    batch_question = {name: column(q[name] for _, _, q in rows) for name in rows[0][2]}
    batch = training_memory(d, batch_split, batch_kept, ADAM, **batch_question)
    peak = peak_memory(d, batch_split, batch_kept, ADAM, **batch_question)
    for i, (split, kept, question) in enumerate(rows):
        alone = training_memory(d, split, kept, ADAM, **question)
        assert bits(alone) == [float(np.broadcast_to(getattr(batch, name), (len(rows),))[i]).hex() for name in NAMES]
        assert peak_memory(d, split, kept, ADAM, **question).hex() == float(peak[i]).hex()


@given(MODELS, splits(), storings(), questions)
def test_more_sharing_never_needs_more_state(d, split, kept, question):
    state = [training_memory(d, split, kept, ADAM, **{**question, "zero": float(z)}) for z in range(4)]
    # Experts may have fewer copies than ranks share them; then the split itself contradicts itself.
    if split.expert_copies >= 1.0:
        totals = [m.weights + m.gradients + m.optimizer for m in state]
        assert totals == sorted(totals, reverse=True)


@given(MODELS, splits(), storings(), questions)
def test_recomputing_more_keeps_less(d, split, kept, question):
    none, selective, operators, full = (
        training_memory(d, split, evolve(kept, recompute=r), ADAM, **question).activations for r in (0.0, 1.0, 1.5, 2.0)
    )
    assert none >= selective >= full
    # The sums that tensor parallelism leaves on each rank are kept whole, where sequence parallelism splits the rest;
    # and in the form that Megatron-LM publishes, attention is as wide as the network.
    assert operators > full
    if kept.form == "counted" and not (kept.sequence_parallel and split.tp > 1):
        assert selective > operators


@given(MODELS, splits(), storings(), questions)
def test_a_loss_that_is_not_fused_keeps_more_of_the_logits_and_of_nothing_else(d, split, kept, question):
    last = {**question, "stage": 0.0 if split.folded else split.pp - 1.0}
    fused, plain = (training_memory(d, split, evolve(kept, fused_loss=f), ADAM, **last) for f in (1.0, 0.0))
    logits = question["seq"] / split.cp * question["microbatch"] * d.vocabulary / split.tp
    assert math.isclose(
        fused.embeddings_and_logits + (8.0 + kept.element_bytes) * logits, plain.embeddings_and_logits, rel_tol=1e-12
    )
    # The gradient of the output comes after these logits, and does not add to them.
    assert plain.transient + kept.element_bytes * d.embedding / split.tp == pytest.approx(fused.transient, rel=1e-12)
    same = {"embeddings_and_logits": 0.0, "transient": 0.0}
    assert bits(evolve(plain, **same)) == bits(evolve(fused, **same))


@given(MODELS, splits(), counts(0, 1, 4096), counts(1, 3, 64), counts(1, 512))
def test_inference_sums_and_its_batch_has_the_same_bits(d, split, context, batch, tokens):
    ask = {"context": context, "batch": batch, "step_tokens": tokens}
    memory = inference_memory(d, split, **ask)
    parts = [getattr(memory, name) for name in NAMES]
    assert all(math.isfinite(p) and p >= 0 for p in parts)
    assert math.isclose(math.fsum(parts), memory.total, rel_tol=1e-12)
    many = inference_memory(d, split, **{name: np.array([value, 2.0]) for name, value in ask.items()})
    assert memory.total.hex() == float(many.total[0]).hex()


@given(MODELS, counts(1, 2, 3, 8, 64), counts(0, 1, 5000), counts(1, 9))
def test_the_cache_grows_and_never_splits_further_than_its_heads(d, tp, tokens, batch):
    one, more = (kv_cache(d, n, batch, 2.0, tp) for n in (tokens, tokens + 1.0))
    assert one < more
    assert more * d.kv_heads >= kv_cache(d, tokens + 1.0, batch)
