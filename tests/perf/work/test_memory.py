"""The bytes on a rank against figures in print, and against Megatron-LM's estimator."""

import math

import attrs
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine import (
    GPT_1T,
    GPT_22B,
    GPT_175B,
    GPT_530B,
    LATENT,
    LLAMA_3_8B,
    LLAMA_3_70B,
    MIXTRAL,
    bare,
    everything,
    layout,
)
from trnspec.loading.files import shipped as shipped_folder
from trnspec.model.transformers.counting import parameters
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases
from trnspec.perf.frameworks import ALLOCATED, Runtime
from trnspec.perf.work.layout import OPTIMIZERS, RECOMPUTE, SCHEDULES, Layout, stacked, stage_layers
from trnspec.perf.work.memory import (
    RankMemory,
    cache,
    device_memory,
    held_parameters,
    inference_memory,
    kv_cache,
    layer_activations,
    model_state,
    on_device,
    peak,
    peak_memory,
    sharded,
    stage_activations,
    training_memory,
    transferred,
)


def of_stage(make, d, layout, stage=0.0, runtime=ALLOCATED):
    return make(d, layout, runtime, stage, stage_layers(d, layout, stage))


def activations(*of, **more):
    return of_stage(stage_activations, *of, **more)


GIB = 2.0**30
MEGATRON = "adam-fp32-grads"
DROPOUT = Runtime(dropout=1.0)
KEPT = {
    "none": {"flash": False},
    "sp": {"flash": False, "sequence_parallel": True},
    "selective": {"flash": False, "recompute": "selective"},
    "selective+sp": {"flash": False, "recompute": "selective", "sequence_parallel": True},
    "full": {"flash": False, "recompute": "full"},
}


def state_of(d, asked):
    return model_state(asked, held_parameters(d, asked))


def layers(d, split, kept, batch):
    asked = layout(seq=2048, microbatch=batch, microbatches=64, **split, **kept)
    return activations(d, asked, runtime=DROPOUT).layers


@pytest.mark.parametrize(
    ("d", "batch", "tp", "pp", "v", "gib", "percent"),
    [
        (GPT_22B, 4, 8, 1, 1, (59.25, 39.5625, 29.25, 9.5625, 4.5), (66.77, 49.37, 16.14, 7.59)),
        (GPT_175B, 1, 8, 8, 3, (66.84375, 41.4140625, 37.78125, 12.3515625, 5.8125), (61.96, 56.52, 18.48, 8.70)),
        (GPT_1T, 1, 8, 64, 1, (131.25, 76.5625, 81.25, 26.5625, 12.5), None),
    ],
)  # fmt: skip
def test_activations_in_print(d, batch, tp, pp, v, gib, percent):
    split = {"tp": tp, "pp": pp, "interleave": v}
    found = [layers(d, split, kept, batch) / GIB for kept in KEPT.values()]
    assert all(math.isclose(e, a, rel_tol=1e-12) for e, a in zip(gib, found, strict=True)), found
    if percent:
        assert list(percent) == [round(100 * f / found[0], 2) for f in found[1:]]


def test_the_530b_of_figure_1():
    """Korthikanti et al. 2022, with the numbers that calculon keeps of it (calculon/llm/validation.py)."""
    split = {"tp": 8, "pp": 35, "interleave": 3}
    only = evolve(bare(GPT_530B), attention_small=0.0, embedding=0.0, head=0.0, outer_small=0.0)
    state = sum(state_of(only, layout(tp=8, pp=35, optimizer=MEGATRON)))
    found = (state, *(layers(GPT_530B, split, KEPT[name], 1) for name in ("none", "selective+sp")))
    assert pytest.approx((31.640625, 114.0234375, 23.076171875), rel=1e-4) == tuple(f / GIB for f in found)


ESTIMATES = [
    (bare(GPT_175B), 2048, {"tp": 8, "pp": 8}, 50_348_611_584, 9.585953),
    (bare(GPT_175B), 2048, {"tp": 8, "pp": 8, "dp": 8, "interleave": 3, "zero": 1}, 20_978_588_160, 12.381856),
    (LLAMA_3_8B, 8192, {"dp": 8, "zero": 1}, 60_226_959_360, 36.070374),
]


@pytest.mark.parametrize(("d", "seq", "split", "state", "gib"), ESTIMATES)
def test_megatrons_estimator_for_dense_models(d, seq, split, state, gib):
    kept = {"recompute": "selective", "sequence_parallel": True, "optimizer": MEGATRON}
    asked = layout(seq=seq, microbatches=64, **split, **kept)
    # It counts keys and values of all query heads, and two tensors in the network even with a gate.
    published = evolve(d, kv_elements=2 * d.hidden, kv_heads=d.heads, matrices=2.0)
    found = activations(published, asked, runtime=DROPOUT)
    assert gib == round(sum(found) / GIB, 6)
    assert found.recomputed == 0.0
    # What Megatron-LM leaves to its first stage differs by the final norm alone, which is on the last.
    assert abs(sum(state_of(d, asked)) - state) <= 18 * d.outer_small


def test_megatrons_estimator_for_the_state_of_mixtral():
    split = layout(pp=4, dp=16, ep=8, zero=1, optimizer=MEGATRON)
    found = state_of(MIXTRAL, split)
    assert 2.0 == split.expert_copies
    assert abs(sum(found) - 20_063_312_640) <= 18 * MIXTRAL.outer_small


def test_zero_in_print():
    # Rajbhandari et al. 2020, figure 1, prints 120, 31.4, 16.6 and 1.9 GB.
    found = [sum(sharded(7.5e9, layout(zero=z), 64.0)) / 1e9 for z in range(4)]
    assert found == [120, 31.40625, 16.640625, 1.875]


def test_bytes_of_a_parameter_by_optimizer():
    """With its gradient and its states; those with 16-bit weights keep a master copy, but for adam-bf16."""
    assert {name: o.weight_bytes + o.grad_bytes + o.state_bytes for name, o in OPTIMIZERS.items()} == {
        "adam": 16, "adam-fp32-grads": 18, "adam-fp32": 16, "adam-fsdp": 16, "adam-bf16": 8, "adam-8bit": 10, "sgd-momentum": 12,
    }  # fmt: skip
    assert {n for n, o in OPTIMIZERS.items() if o.master and o.weight_bytes == 2} == {*OPTIMIZERS} - {
        "adam-fp32", "adam-fsdp", "adam-bf16",
    }  # fmt: skip


def test_cache_is_split_by_heads_and_then_repeated():
    shares = [1.0, 0.5, 0.25, 0.125, 0.125, 0.125]
    whole = kv_cache(LLAMA_3_70B, 4096.0, 8.0)
    assert shares == [kv_cache(LLAMA_3_70B, 4096.0, 8.0, tp=t) / whole for t in (1.0, 2.0, 4.0, 8.0, 16.0, 64.0)]
    # Eight heads on three ranks: one of them holds three.
    assert 3 / 8 == kv_cache(LLAMA_3_70B, 4096.0, 8.0, tp=3.0) / whole
    assert kv_cache(LATENT, 4096.0, 8.0) == kv_cache(LATENT, 4096.0, 8.0, tp=16.0)


def test_cache_over_stages_sequences_and_tokens():
    whole = kv_cache(LLAMA_3_8B, 4096.0, 8.0)
    assert whole / 4 == cache(LLAMA_3_8B, layout(pp=4), 4096.0, 8.0)
    assert whole / 8 == cache(LLAMA_3_8B, layout(dp=4, cp=2), 4096.0, 8.0)
    # Nine sequences on four copies: one of them has three.
    assert whole / 8 * 3 == cache(LLAMA_3_8B, layout(dp=4), 4096.0, 9.0)


@pytest.mark.parametrize("d", [LLAMA_3_8B, GPT_175B, MIXTRAL, LATENT])
def test_stages_hold_all_parameters_once(d):
    whole = parameters(d)
    assert whole == sum(held_parameters(d, layout()))
    untied = whole + d.tied * d.head
    split = layout(pp=3)
    assert math.isclose(untied, sum(sum(held_parameters(d, split, float(k))) for k in range(3)), rel_tol=1e-12)


TITAN = {
    "titan-8b-8-bf16 eager": 82.4, "titan-8b-8-float8 compile": 76.8, "titan-8b-128-bf16 eager": 67.0,
    "titan-8b-128-bf16 compile": 62.0, "titan-8b-128-float8 compile": 61.8, "titan-8b-cp1": 83.9, "titan-8b-cp2": 84.2,
    "titan-8b-cp8": 84.5,
}  # fmt: skip
"""GiB of the rows of pytorch/torchtitan that say what their memory depends on."""


def test_measured_memory_of_torchtitan():
    # Of the others one does not state its microbatch, one not its batch.
    found = {
        c.id: c
        for c in training_cases(everything(), records(shipped_folder() / "measured" / "training_torchtitan.csv"))
        if isinstance(c, TrainingCase) and c.memory and c.microbatch_stated
    }
    assert TITAN == {name: c.memory / GIB for name, c in found.items()}
    needs = {name: peak(c.dims, c.layout).total for name, c in found.items()}
    # By hand for 128 ranks: 16 B of a 128th of the parameters; 32 layers; logits, and what goes into norm and output; a
    # layer computed again; the weights of two; the gradients of gate and up.
    tokens, each = 2 * 8192, 2 * (4096 + 1024) * 4096 + 3 * 4096 * 14336
    hand = 8_030_261_248 / 8, 32 * 2 * tokens * 31744, 14 * tokens * 128256 + tokens * 4 * 4096 + 8 * tokens
    hand = (*hand, 2 * tokens * (6.5 * 4096 + 3 * 14336), 2 * 2 * each, 2 * 2 * 4096 * 14336)
    assert math.isclose(sum(hand), needs["titan-8b-128-bf16 eager"], rel_tol=1e-12)
    errors = {name: needs[name] / c.memory - 1.0 for name, c in found.items()}
    assert all(abs(e) < 0.1 for e in errors.values()), errors
    assert 2.3 == round(100 * sum(map(abs, errors.values())) / len(errors), 1)


def test_weights_gathered_of_two_layers_with_experts():
    """ZeRO 3, in 16 bit: attention and the experts of a rank are split over two, the router is whole."""
    found = training_memory(MIXTRAL, layout(tp=2, dp=8, ep=2, zero=3))
    layer = (MIXTRAL.attention_weights + MIXTRAL.experts / 2 * MIXTRAL.expert_weights) / 2 + MIXTRAL.router_weights
    assert math.isclose(2 * 2 * layer, found.buffers, rel_tol=1e-12)


TRANSFORMERS = st.sampled_from([LLAMA_3_8B, LLAMA_3_70B, GPT_175B, MIXTRAL, LATENT])
NAMES = [f.name for f in attrs.fields(RankMemory)]


def counts(*values: float) -> st.SearchStrategy[float]:
    return st.sampled_from([float(v) for v in values])


@st.composite
def any_layouts(draw: st.DrawFn) -> Layout:
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


def bits(memory: RankMemory) -> list[str]:
    return [float(getattr(memory, name)).hex() for name in NAMES]


@pytest.mark.parametrize("tp", [1, 4])
def test_a_shared_expert_keeps_its_tensors_of_every_token(tp):
    """Gate, up and their product, in 16 bit, of the columns that a rank has."""
    own, shared = (
        layer_activations(evolve(MIXTRAL, shared_width=width), layout(tp=tp, seq=2048, microbatch=2), 1.0).stored
        for width in (0.0, 1000.0)
    )
    assert math.isclose(shared - own, 2 * 3 * 1000 * 2 * 2048 / tp, rel_tol=1e-9)


@given(TRANSFORMERS, any_layouts(), RUNTIMES, st.data())
def test_parts_sum_and_none_is_negative_or_infinite(d, layout, runtime, data):
    stage = float(data.draw(st.integers(0, layout.pp - 1)))
    memory = training_memory(d, layout, stage=stage, runtime=runtime)
    parts = [getattr(memory, name) for name in NAMES]
    assert all(math.isfinite(p) and p >= 0 for p in parts)
    assert math.isclose(math.fsum(parts), memory.total, rel_tol=1e-12)


@given(TRANSFORMERS, st.lists(any_layouts(), min_size=1, max_size=8), RUNTIMES)
def test_one_call_and_the_element_of_a_batch_have_the_same_bits(d, rows, runtime):
    batch = training_memory(d, stacked(rows), runtime=runtime)
    largest = peak_memory(d, stacked(rows), runtime)
    for i, row in enumerate(rows):
        alone = training_memory(d, row, runtime=runtime)
        assert bits(alone) == [float(np.broadcast_to(getattr(batch, name), (len(rows),))[i]).hex() for name in NAMES]
        assert float(peak_memory(d, row, runtime)).hex() == float(largest[i]).hex()


@given(TRANSFORMERS, any_layouts(), RUNTIMES)
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


@given(TRANSFORMERS, any_layouts(), counts(0, 1, 4096), counts(1, 3, 64), counts(1, 512))
def test_inference_sums_and_its_batch_has_the_same_bits(d, layout, context, batch, tokens):
    ask = {"context": context, "batch": batch, "step_tokens": tokens}
    memory = inference_memory(d, layout, **ask)
    parts = [getattr(memory, name) for name in NAMES]
    assert all(math.isfinite(p) and p >= 0 for p in parts)
    assert math.isclose(math.fsum(parts), memory.total, rel_tol=1e-12)
    many = inference_memory(d, layout, **{name: np.array([value, 2.0]) for name, value in ask.items()})
    assert memory.total.hex() == float(many.total[0]).hex()


@given(TRANSFORMERS, counts(1, 2, 3, 8, 64), counts(0, 1, 5000), counts(1, 9))
def test_the_cache_grows_and_never_splits_further_than_its_heads(d, tp, tokens, batch):
    one, more = (kv_cache(d, n, batch, 2.0, tp) for n in (tokens, tokens + 1.0))
    assert one < more
    assert more * d.kv_heads >= kv_cache(d, tokens + 1.0, batch)


@given(TRANSFORMERS, any_layouts())
def test_bytes_between_rank_and_host(d, layout):
    """Optimizer: gradients out and weights in, once. Activations out and in, weights in twice and gradients out, each time."""
    held, n = training_memory(d, evolve(layout, zero=0)), layout.microbatches
    moved = {what: transferred(evolve(layout, offload=what), held) for what in ("optimizer", "activations", "weights")}
    one_microbatch = training_memory(d, evolve(layout, global_batch=layout.dp * layout.microbatch))
    assert {
        "optimizer": held.gradients + held.weights,
        "activations": 2.0 * one_microbatch.activations * n,
        "weights": n * (2.0 * held.weights + held.gradients),
    } == pytest.approx(moved, rel=1e-12)


@given(TRANSFORMERS, any_layouts(), st.sampled_from(["none", "optimizer", "activations", "weights"]))
def test_what_is_offloaded_is_on_the_host_but_for_two_layers(d, layout, what):
    asked = evolve(layout, offload=what)
    held = training_memory(d, asked)
    here, there = on_device(d, asked, held)
    stays = {"weights": min(1.0, 2.0 * layout.pp / d.layers) * held.weights}.get(what, 0.0)
    if what == "activations":
        kinds = [k for k, n in ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers)) if n]
        stays = min(held.activations, 2.0 * max(layer_activations(d, asked, k).stored for k in kinds))
    expected = held if what == "none" else evolve(held, **{what: stays})
    assert attrs.astuple(expected) == pytest.approx(attrs.astuple(here), rel=1e-12)
    assert math.isclose(held.total, here.total + there, rel_tol=1e-12)
    stages = [on_device(d, asked, training_memory(d, asked, stage=float(k)))[0].total for k in range(layout.pp)]
    assert math.isclose(max(stages), device_memory(d, asked).total, rel_tol=1e-12)
