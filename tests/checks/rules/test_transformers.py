"""What follows from the dimensions of a transformer, and the rules that rest on it."""

from __future__ import annotations

import math

import attrs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from rules_world import bare, findings, found, put, shipped

from trnspec.checks.rules import transformers
from trnspec.checks.rules.transformers import MOST_PADDING, _misprints, _round_numbers
from trnspec.errors import UsageError
from trnspec.model.rounded import rounded
from trnspec.model.transformers.contradictions import contradictions
from trnspec.model.transformers.counting import (
    active_parameters,
    active_parameters_of,
    dimensions,
    parameters,
    parameters_of,
)
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.model.transformers.model import (
    Attention,
    Experts,
    FeedForward,
    Indexer,
    LatentAttention,
    LocalAttention,
    Model,
    Parameters,
    Recurrence,
)

LLAMA = shipped().named("llama-3-8b").spec
MIXTRAL = shipped().named("mixtral-8x7b").spec
DEEPSEEK = shipped().named("deepseek-v3").spec
NORMED = evolve(DEEPSEEK.attention, norm="head")
KEYED = evolve(DEEPSEEK.attention, values="keys")
GATED = evolve(MIXTRAL.experts, shared_gate="one")
SMALL = st.integers(1, 40)
FORMS = st.sampled_from(["gated", "plain"])
BIAS = st.sampled_from(["none", "all"])


@st.composite
def models(draw) -> Model:
    """Any sound model."""
    kv_heads, layers, hidden = draw(st.integers(1, 4)), draw(st.integers(2, 9)), draw(SMALL)
    at_most = st.integers(1, hidden)
    latent = None
    if draw(st.booleans()):
        rank = draw(st.none() | at_most)
        latent = LatentAttention(
            query_rank=rank, rank=draw(at_most), nope_size=draw(SMALL), rope_size=draw(SMALL), value_size=draw(SMALL)
        )
    recurrence, attended = None, layers
    if draw(st.booleans()):
        key_heads, recurrent = draw(st.integers(1, 4)), draw(st.integers(1, layers - 1))
        recurrence = Recurrence(
            form=draw(st.sampled_from(["mamba2", "gated-delta"])),
            layers=recurrent,
            heads=key_heads * draw(st.integers(1, 4)),
            key_heads=key_heads,
            key_size=draw(SMALL),
            value_size=draw(SMALL),
            kernel=draw(st.integers(1, 4)),
            bias=draw(BIAS),
        )
        attended = layers - recurrent
    windowed = draw(st.none() | st.integers(1, attended))
    indexer = None
    if windowed is None and draw(st.booleans()):
        among = st.none() | st.integers(1, attended)
        indexer = Indexer(keys=draw(SMALL), heads=draw(SMALL), size=draw(SMALL), layers=draw(among), sparse=draw(among))
    attention = Attention(
        heads=kv_heads * draw(st.integers(1, 4)),
        kv_heads=kv_heads,
        head_size=draw(SMALL),
        bias=draw(st.sampled_from(["none", "qkv", "all"])),
        value_size=None if latent else draw(st.none() | SMALL),
        norm="none" if latent else draw(st.sampled_from(["none", "head", "all"])),
        gate=draw(st.sampled_from(["none", "head", "element"])),
        sinks=draw(st.sampled_from(["none", "head"])),
        latent=latent,
        window=None if windowed is None else draw(SMALL),
        windowed=windowed,
        indexer=indexer,
    )
    experts, dense = None, layers
    if draw(st.booleans()):
        count, shared, dense = draw(SMALL), draw(st.none() | st.integers(1, 3)), draw(st.integers(0, layers - 1))
        experts = Experts(
            count=count,
            active=draw(st.integers(1, count)),
            width=draw(SMALL),
            form=draw(FORMS),
            bias=draw(BIAS),
            router_bias=draw(st.sampled_from(["none", "expert"])),
            shared=shared,
            shared_width=draw(st.none() | SMALL) if shared else None,
            shared_gate=draw(st.sampled_from(["none", "one"])) if shared else "none",
            latent=draw(st.none() | SMALL),
            dense_layers=dense or None,
        )
    encoder = draw(st.booleans())
    return Model(
        form="encoder" if encoder else "decoder",
        layers=layers,
        hidden=hidden,
        vocabulary=draw(SMALL),
        context=draw(SMALL),
        positions=draw(st.sampled_from(["learned", "rotary", "none"])),
        segments=draw(st.none() | SMALL) if encoder else None,
        embeddings=draw(st.sampled_from(["tied", "untied"])),
        norm=draw(st.sampled_from(["layer", "rms"])),
        norms=draw(st.integers(1, 4)),
        final_norm=draw(st.sampled_from(["none", "one"])),
        embedding_norm=draw(st.sampled_from(["none", "one"])),
        attention=attention,
        recurrence=recurrence,
        feed_forward=FeedForward(width=draw(SMALL), form=draw(FORMS), bias=draw(BIAS)) if dense else None,
        experts=experts,
        head="bert" if encoder and draw(st.booleans()) else "none",
    )


def linear(inputs, outputs, biased=False):
    return [(inputs, outputs), *([(outputs,)] if biased else [])]


def network(h, width, form, biased):
    """A feed-forward network, matrix by matrix."""
    inward = [t for _ in range(2 if form == "gated" else 1) for t in linear(h, width, biased)]
    return [*inward, *linear(width, h, biased)]


def attention_tensors(spec):
    a, h, latent = spec.attention, spec.hidden, spec.attention.latent
    biased, out = a.bias != "none", a.bias == "all"
    made = [(a.heads,)] if a.sinks == "head" else []
    value = latent.value_size if latent else a.value_size or a.head_size
    made += {"none": [], "head": [(h, a.heads)], "element": [(h, a.heads * value)]}[a.gate]
    if latent is None:
        made += linear(h, a.heads * a.head_size, biased) + linear(h, a.kv_heads * a.head_size, biased)
        made += linear(h, a.kv_heads * value, biased) + linear(a.heads * value, h, out)
        made += [(a.heads * a.head_size,), (a.kv_heads * a.head_size,)] if a.norm == "all" else []
        return made + ([(a.head_size,)] * 2 if a.norm == "head" else [])
    size = latent.nope_size + latent.rope_size
    if latent.query_rank is None:
        made += linear(h, a.heads * size, biased)
    else:
        made += [*linear(h, latent.query_rank, biased), (latent.query_rank,), (latent.query_rank, a.heads * size)]
    made += [*linear(h, latent.rank + latent.rope_size, biased), (latent.rank,)]
    made += [(latent.rank, a.heads * (latent.nope_size + latent.value_size))]
    return made + linear(a.heads * latent.value_size, h, out)


def indexer_tensors(spec):
    """Queries and one key, each with a norm or the key with two vectors; a weight for each head with latent attention."""
    indexer, h, latent = spec.attention.indexer, spec.hidden, spec.attention.latent
    queries_from = (latent.query_rank or h) if latent else h
    made = [(queries_from, indexer.heads * indexer.size), (h, indexer.size), (indexer.size,), (indexer.size,)]
    return made + ([(h, indexer.heads)] if latent else [])


def recurrence_tensors(spec):
    r, h = spec.recurrence, spec.hidden
    keys, values = r.key_heads * r.key_size, r.heads * r.value_size
    biased = r.bias == "all"
    convolution = [(r.kernel, 2 * keys + values)]
    if (
        r.form == "mamba2"
    ):  # gate, values, keys, queries and steps in one matrix; step, decay, skip; a norm of all heads
        inward = linear(h, 2 * values + 2 * keys + r.heads, biased)
        return [*inward, *convolution, (2 * keys + values,), *[(r.heads,)] * 3, (values,), *linear(values, h, biased)]
    # Queries, keys, values; the gate; two scalars a head. Step and decay; a norm of one head.
    inward = linear(h, 2 * keys + values + values + 2 * r.heads, biased)
    return [*inward, *convolution, *[(r.heads,)] * 2, (r.value_size,), *linear(values, h, biased)]


def tensors(spec):
    """The shape of every tensor that the published code of such a model makes."""
    h, experts, ffn = spec.hidden, spec.experts, spec.feed_forward
    norm = [(h,)] * (2 if spec.norm == "layer" else 1)
    made = [(spec.vocabulary, h)] * (1 if spec.embeddings == "tied" else 2)
    made += [(spec.context, h)] if spec.positions == "learned" else []
    made += [(spec.segments, h)] if spec.segments else []
    made += norm * ((spec.embedding_norm == "one") + (spec.final_norm == "one"))
    recurrent = spec.recurrence.layers if spec.recurrence else 0
    indexer = spec.attention.indexer
    made += indexer_tensors(spec) * (indexer.layers or spec.layers - recurrent) if indexer else []
    for layer in range(spec.layers):
        made += (recurrence_tensors(spec) if layer < recurrent else attention_tensors(spec)) + norm * spec.norms
        if experts is None or layer < (experts.dense_layers or 0):
            made += network(h, ffn.width, ffn.form, ffn.bias == "all")
            continue
        made += [(h, experts.count)] + [(experts.count,)] * (experts.router_bias == "expert")
        inner = experts.latent or h
        made += [(h, inner), (inner, h)] if experts.latent else []
        made += [(h, 1)] if experts.shared_gate == "one" else []
        made += network(inner, experts.width, experts.form, experts.bias == "all") * experts.count
        made += network(h, experts.shared_width or experts.width, experts.form, experts.bias == "all") * (
            experts.shared or 0
        )
    if spec.head == "bert":  # pooler, transform with its layer norm, bias of the output, next sentence
        made += linear(h, h, True) * 2 + [(h,), (h,), (spec.vocabulary,)] + linear(h, 2, True)
    return made


@given(models())
def test_parameters_are_those_of_the_tensors(spec):
    assert list(contradictions(spec)) == []
    assert sum(map(math.prod, tensors(spec))) == parameters_of(spec)


@given(models())
def test_floats_say_the_same_as_integers(spec):
    made = dimensions(spec)
    assert {float} == {type(v) for v in attrs.asdict(made).values()}
    # Where layers differ, floats hold averages over layers, which may not be integers.
    averaged = {float(v) == int(v) for v in attrs.asdict(made).values()} != {True}
    rel = 1e-12 if averaged else 0.0
    assert math.isclose(parameters_of(spec), parameters(made), rel_tol=rel)
    assert math.isclose(active_parameters_of(spec), active_parameters(made), rel_tol=rel)


@given(models())
def test_active_parameters_are_those_with_as_many_experts(spec):
    """Visiting all experts meets every parameter; visiting some, those of a model with that number of experts.

    But the router is whole: its rows and biases are read for all experts.
    """
    if spec.experts is None:
        assert parameters_of(spec) == active_parameters_of(spec)
        return
    fewer = evolve(spec, experts=evolve(spec.experts, count=spec.experts.active))
    row = spec.hidden + (spec.experts.router_bias == "expert")
    rows = (spec.experts.count - spec.experts.active) * row
    moe = spec.layers - (spec.experts.dense_layers or 0)
    assert parameters_of(fewer) + moe * rows == active_parameters_of(spec)
    every = evolve(spec, experts=evolve(spec.experts, active=spec.experts.count))
    assert parameters_of(spec) == active_parameters_of(every)


@given(heads=SMALL, size=SMALL, hidden=SMALL, bias=st.sampled_from(["none", "qkv", "all"]))
def test_grouped_queries_with_a_group_for_each_head_are_multi_head(heads, size, hidden, bias):
    attention = Attention(heads=heads, kv_heads=heads, head_size=size, bias=bias)
    made = dimensions(evolve(LLAMA, hidden=hidden, attention=attention))
    assert (4 * hidden * heads * size, 2 * heads * size) == (made.attention_weights, made.kv_elements)
    one = dimensions(evolve(LLAMA, hidden=hidden, attention=evolve(attention, kv_heads=1)))
    assert (2 * hidden * (heads + 1) * size, 2 * size) == (one.attention_weights, one.kv_elements)


@given(width=SMALL, form=FORMS, bias=BIAS)
def test_one_expert_is_a_dense_network_with_a_router(width, form, bias):
    dense = evolve(LLAMA, feed_forward=FeedForward(width=width, form=form, bias=bias))
    one = evolve(LLAMA, feed_forward=None, experts=Experts(count=1, active=1, width=width, form=form, bias=bias))
    made = dimensions(one)
    assert parameters_of(dense) == parameters_of(one) - LLAMA.layers * LLAMA.hidden
    assert parameters(dimensions(dense)) == parameters(evolve(made, router_weights=0.0))


def test_counts_stay_exact_past_what_a_float_holds():
    huge = evolve(LLAMA, layers=10**15 + 1, hidden=10**9 + 7)
    h = 10**9 + 7
    assert 2 * 128256 * h + (10**15 + 1) * (h * 128 * 80 + 3 * h * 14336 + 2 * h) + h == parameters_of(huge)


def test_the_dimensions_of_latent_attention():
    made = dimensions(DEEPSEEK)
    assert (192.0, 128.0, 576.0, 1.0) == (made.qk_size, made.v_size, made.kv_elements, made.kv_heads)
    assert (58.0, 61.0, 256.0, 8.0, 2048.0) == (
        made.expert_layers,
        made.layers,
        made.experts,
        made.active,
        made.shared_width,
    )


def test_windows_and_directions():
    def seen(name):
        made = dimensions(shipped().named(name).spec)
        return made.window, made.windowed_layers, made.causal

    assert (128.0, 18.0, 1.0) == seen("gpt-oss-120b")
    assert (4096.0, 32.0, 1.0) == seen("mistral-7b")
    assert (0.0, 0.0, 1.0) == seen("llama-3-8b")
    assert (0.0, 0.0, 0.0) == seen("bert-large")


def test_nothing_is_left_out_of_the_dimensions():
    """Every field of the class is filled by some model of the catalog."""
    filled = {f for n in shipped().of(Model) for f, v in attrs.asdict(dimensions(n.spec)).items() if v}
    # No model of the catalog states modules of multi-token prediction.
    unused = {"mtp_layers", "mtp_weights", "mtp_small"}
    assert {f.name for f in attrs.fields(Dimensions)} - unused == filled


@pytest.mark.parametrize(
    ("base", "at", "value", "path", "words"),
    [
        ("llama-3-8b", "attention.kv_heads", 5, "spec.attention.kv_heads", "32 heads are not a multiple of 5 kv_heads"),
        ("llama-3-8b", "feed_forward", None, "spec", "no layer has experts, but there is no feed_forward"),
        ("llama-3-8b", "attention.windowed", 3, "spec.attention.windowed", "layers are windowed, but there is no"),
        ("gpt-oss-120b", "attention.windowed", 37, "spec.attention.windowed", "37 layers are windowed, but there are"),
        ("mimo-v2-flash", "attention.local.heads", 65, "spec.attention.local.kv_heads", "65 heads of windowed layers"),
        ("mimo-v2-flash", "attention.windowed", None, "spec.attention.local", "every layer is windowed, so none has"),
        (
            "llama-3-8b",
            "attention.local",
            LocalAttention(heads=8),
            "spec.attention.local",
            "windowed layers have heads of",
        ),
        (
            "deepseek-v3",
            "attention",
            KEYED,
            "spec.attention.values",
            "latent attention has no matrix of values",
        ),
        ("deepseek-v4-flash", "attention.indexer", None, "spec.attention.pooling", "keys are pooled, but there is no"),
        (
            "deepseek-v4-flash",
            "attention.windowed",
            3,
            "spec.attention.pooling.layers",
            "44 layers have a window alone",
        ),
        ("deepseek-v4-flash", "experts.hashed", 44, "spec.experts.hashed", "44 layers select experts by a table"),
        (
            "kimi-k3",
            "experts.latent",
            None,
            "spec.experts.latent_norm",
            "a projection is normalised, but there is none",
        ),
        ("mixtral-8x7b", "experts.active", 9, "spec.experts.active", "a token visits 9 experts, but there are 8"),
        ("mixtral-8x7b", "experts.shared_width", 9, "spec.experts.shared_width", "a shared expert has a width"),
        ("mixtral-8x7b", "experts.dense_layers", 2, "spec", "2 of the layers are dense, but there is no feed_forward"),
        ("mixtral-8x7b", "feed_forward", FeedForward(width=8, form="gated"), "spec.feed_forward", "every layer has"),
        ("deepseek-v3", "experts.dense_layers", 61, "spec.experts.dense_layers", "61 of the 61 layers are dense"),
        ("deepseek-v3", "attention", NORMED, "spec.attention.norm", "latent attention has no norm of its heads"),
        ("deepseek-v3", "attention.latent.rank", 8000, "spec.attention.latent.rank", "a compressed vector of 8000 is"),
        ("gpt2", "segments", 2, "spec.segments", "a decoder has no segments"),
        ("qwen3.5-27b", "recurrence.layers", 64, "spec.recurrence.layers", "all 64 layers have a recurrence"),
        ("qwen3.5-27b", "attention.layers", 20, "spec.recurrence.layers", "20 layers have attention and 48 a"),
        ("qwen3.5-27b", "recurrence.key_heads", 7, "spec.recurrence.key_heads", "48 heads are not a multiple of 7"),
        ("qwen3.5-27b", "mtp", 1, "spec.mtp", "multi-token prediction in a model with layers without attention"),
        ("nemotron-3-nano", "experts.layers", 20, "spec.layers", "52 layers, but only 49 operations"),
        ("nemotron-3-nano", "experts.layers", 53, "spec.experts.layers", "0 layers have a feed_forward and 53 experts"),
        ("nemotron-3-nano", "attention.layers", 40, "spec.recurrence.layers", "40 layers have attention and 23 a"),
        ("nemotron-h-56b", "feed_forward.layers", 119, "spec.feed_forward.layers", "119 layers have a feed_forward"),
        ("glm-5.2", "attention.window", 8, "spec.attention.window", "attention has a window and an indexer"),
        ("glm-5.2", "attention.indexer.layers", 79, "spec.attention.indexer.layers", "79 layers have an indexer"),
        ("mixtral-8x7b", "experts", GATED, "spec.experts.shared_gate", "a shared expert has a gate"),
    ],
)
def test_what_cannot_be_is_reported_and_not_counted(base, at, value, path, words):
    graph = put(bare(), base, at, value)
    assert {(base, path)} == found("TRN406", graph)
    with pytest.raises(UsageError, match=words):
        parameters_of(graph.named(base).spec)
    with pytest.raises(UsageError, match=words):
        dimensions(graph.named(base).spec)
    assert set() == found("TRN405", graph)


def test_the_shipped_models_are_sound():
    assert [] == findings("TRN405", shipped()) + findings("TRN406", shipped())


@pytest.mark.parametrize(
    ("base", "stated", "cause"),
    [
        ("gpt2", 124_439_808 + 50_257 * 768, "the output matrix is counted although it is tied to the embedding"),
        ("gpt2", 124_439_808 - 1_024 * 768, "the positions are left out"),
        ("gpt2", 124_439_808 - 12 * 4 * 768, "the biases of attention are left out"),
        ("gpt2", 124_439_808 - 12 * 9 * 768, "every bias is left out"),
        ("gpt2", 124_439_808 - 2 * 768, "the final norm is left out"),
        ("gpt2", 124_439_808 + 47 * 768, "padding is counted; a vocabulary of 50,304 rows gives this number"),
        ("llama-2-7b", 6_738_417_664, "the rotary frequencies stored with each layer are counted"),
        ("llama-3-8b", 8_030_261_248 - 256 * 2 * 4096, "padding is left out; a vocabulary of 128,000 rows"),
        ("llama-3-8b", 8_030_261_248 - 128_256 * 4096, "the output matrix is left out or the embedding is left out"),
        ("llama-3-8b", 8_030_261_248 - 2 * 128_256 * 4096, "the embedding and the output matrix are left out"),
        ("llama-3-8b", 8_030_261_248 + 32 * 2 * 24 * 128 * 4096, "keys and values are counted for every query head"),
        ("llama-3-8b", 8_030_261_248 + 32 * (4096 + 2 * 1024), "biases of queries, keys and values are counted"),
        ("qwen3-8b", 8_190_735_360 - 36 * 2 * 128, "the norms of queries and keys are left out"),
        ("bert-large", 335_141_888, "the heads of pretraining are left out"),
        ("bert-large", 335_141_888 - 1_024 * 1_025, "the layers after the last transformer layer are left out"),
        ("llama-3-8b", 8_030_261_247, None),
        ("llama-3-8b", 8_000_000_001, None),
    ],
)
def test_a_count_that_differs_is_explained(base, stated, cause):
    (finding,) = findings("TRN405", put(bare(), base, "parameters", Parameters(total=stated)))
    counted = parameters_of(shipped().named(base).spec)
    assert f"total is {stated:,}, but the dimensions give {counted:,}, {stated - counted:+,}" == finding.message
    assert (cause or "") in finding.hint
    assert bool(cause) == bool(finding.hint)


@pytest.mark.parametrize(
    ("base", "at", "wrong", "right"),
    [
        ("gpt2", "layers", 13, 12),
        ("gpt2", "context", 2048, 1024),
        ("gpt2", "feed_forward.width", 4096, 3072),
        ("llama-3-8b", "feed_forward.width", 14_000, 14_336),
        ("llama-3-8b", "attention.kv_heads", 4, 8),
        ("mixtral-8x7b", "experts.count", 16, 8),
        ("gpt-oss-20b", "hidden", 2048, 2880),
    ],
)
def test_the_dimension_at_fault_is_named(base, at, wrong, right):
    (finding,) = findings("TRN405", put(bare(), base, at, wrong))
    assert f"a wrong dimension: {right:,} for {at} gives this number" in finding.hint
    assert {(base, f"spec.{at}")} == found("TRN405", put(bare(), base, at, wrong))
    assert {("spec", "parameters", "total")} <= {s.path for s in finding.see}


def test_two_dimensions_that_are_swapped_are_named():
    wrong = put(put(bare(), "gpt2-medium", "layers", 1024), "gpt2-medium", "context", 24)
    (finding,) = findings("TRN405", wrong)
    assert "layers and context are swapped" in finding.hint
    assert {finding.where.path, *(s.path for s in finding.see)} >= {("spec", "layers"), ("spec", "context")}


def test_active_parameters_are_checked_too():
    right = put(bare(), "mixtral-8x7b", "parameters", Parameters(active=12_879_925_248))
    wrong = put(bare(), "mixtral-8x7b", "parameters", Parameters(active=12_879_925_248 - 32_000 * 4_096))
    assert [] == findings("TRN405", right)
    assert {("mixtral-8x7b", "spec.parameters.active")} == found("TRN405", wrong)
    assert "the embedding is left out" in findings("TRN405", wrong)[0].hint


@pytest.mark.parametrize(
    ("base", "at", "value", "words"),
    [
        ("llama-3.1-70b", "layers", 160, "2 times the 70b in the name"),
        ("llama-3.1-70b", "feed_forward.width", 2867, "0.28 times the 70b"),
        ("qwen3-235b-a22b", "experts.active", 16, "active parameters, 1.7 times the a22b"),
        ("qwen3-0.6b", "vocabulary", 1519360, "3.3 times the 0.6b"),
        ("mpt-125m", "layers", 48, "3 times the 125m"),
        (
            "llama-4-scout",
            "experts.active",
            4,
            "active parameters, 2.1 times the 17b-16e in the name llama-4-scout-17b-16e",
        ),
    ],
)
def test_the_size_in_a_name_is_checked(base, at, value, words):
    """Of a model without stated counts; with them, TRN405 names the wrong dimension."""
    (finding,) = findings("TRN407", put(put(bare(), base, "parameters", None), base, at, value))
    assert words in finding.message
    assert [] == findings("TRN407", put(put(bare(), base, "parameters", Parameters(total=1)), base, at, value))


@pytest.mark.parametrize(
    ("base", "at", "value", "right"),
    [
        ("deepseek-v3", "experts.count", 160, 256),
        ("deepseek-v3", "experts.active", 6, 8),
        ("qwen3-235b-a22b", "experts.active", 4, 8),
        ("qwen3-235b-a22b", "experts.active", 32, 8),
    ],
)
def test_a_dimension_behind_a_rounded_count(base, at, value, right):
    """Round numbers are tried for each dimension; what contradicts an exact count is not offered."""
    (finding,) = findings("TRN405", put(bare(), base, at, value))

    assert finding.hint == f"likely cause: a wrong dimension: {right} for {at}"
    assert finding.where.path == ("spec", *at.split("."))


@pytest.mark.parametrize(
    ("base", "total", "times", "fitting", "places"),
    [
        ("llama-3-8b", "16B", "0.502", "8,192 for hidden", ["hidden", "parameters.total"]),
        ("mixtral-8x7b", "11B", "4.25", "8 for layers or 1,024 for hidden", ["parameters.total", "layers", "hidden"]),
        ("gpt2", "150M", "0.83", "16 for layers or 81,920 for vocabulary or 128 for attention.head_size",
         ["parameters.total", "layers", "vocabulary", "attention.head_size"]),
        # Of many values three are in the hint; every dimension is named once.
        ("llama-3-8b", "7B", "1.15", "28 for layers or 3,584 for hidden or 114,688 for vocabulary",
         ["parameters.total", "layers", "hidden", "vocabulary", "attention.heads", "attention.kv_heads", "attention.head_size",
          "feed_forward.width"]),
        # No round number fits: those of most influence.
        ("llama-3-8b", "1T", "0.00803", "", ["parameters.total", "hidden", "layers", "feed_forward.width"]),
        ("mixtral-8x7b", "16B", "2.92", "", ["parameters.total", "hidden", "layers", "experts.count"]),
    ],
)  # fmt: skip
def test_dimensions_behind_a_rounded_total(base, total, times, fitting, places):
    """The dimension is reported if only one fits, else the count."""
    (finding,) = findings("TRN405", put(bare(), base, "parameters", Parameters(total=rounded(total))))
    counted = parameters_of(shipped().named(base).spec)

    assert finding.message == f"total is {total}, but the dimensions give {counted:,}, {times} times as many"
    assert finding.hint.removeprefix("likely cause: a wrong dimension: ") == fitting or not fitting
    assert [finding.where.path, *(s.path for s in finding.see)] == [("spec", *p.split(".")) for p in places]


@pytest.mark.parametrize(("base", "at", "value"), [("mixtral-8x7b", "layers", 64), ("gpt2", "layers", 120)])
def test_a_name_without_a_size_is_not_checked(base, at, value):
    assert [] == findings("TRN407", put(bare(), base, at, value))


def test_sizes_in_names_of_shipped_models():
    assert [] == findings("TRN407", shipped())


def test_a_difference_that_is_not_listed():
    """Each value is shown as it is: a number, a word, or that there is none."""
    base, text = "llama-3-8b", "{}, but {} in llama-3-8b, which has the same dimensions"
    derived = next(n.name for n in bare().of(Model) if n.spec.base is not None and n.spec.base.model.name == base)
    plain = put(bare(), derived, "base.differs", ())
    shown = {
        at: findings("TRN408", put(plain, derived, at, value))
        for at, value in (("layers", 1234), ("attention.kv_heads", None))
    }
    messages = {at: [d.message for d in some if d.message.startswith(at)] for at, some in shown.items()}

    assert messages["layers"] == ["layers is " + text.format("1,234", "32")]
    assert messages["attention.kv_heads"] == ["attention.kv_heads is " + text.format("absent", "8")]


GPT2 = shipped().named("gpt2").spec


@pytest.mark.parametrize(
    ("spec", "path", "word"),
    [
        (evolve(GPT2, positions="rotary"), "positions", "learned"),
        (evolve(GPT2, norm="rms"), "norm", "layer"),
        (evolve(GPT2, feed_forward=evolve(GPT2.feed_forward, form="gated")), "feed_forward.form", "plain"),
        (evolve(LLAMA, embeddings="tied"), "embeddings", "untied"),
    ],
)
def test_a_wrong_word_is_named(spec, path, word):
    name = "gpt2" if spec.layers == GPT2.layers else "llama-3-8b"
    hints = [f.hint for f in findings("TRN405", bare().replace(name, spec))]

    assert len(hints) == 1
    assert f"'{word}' for {path} gives this number" in hints[0]


@pytest.mark.parametrize("active", ["73B", "370B", "3.7B"])
def test_a_misprinted_count_is_named(active):
    spec = evolve(DEEPSEEK, parameters=evolve(DEEPSEEK.parameters, active=rounded(active)))
    hints = [f.hint for f in findings("TRN405", bare().replace("deepseek-v3", spec))]

    assert ["likely cause: a wrong digit or decimal point: 37B was meant"] == hints


@pytest.mark.parametrize(
    ("text", "misprints"),
    [
        ("37B", ["73B", "3.7B", "370B"]),
        ("6.71 B", ["7.61 B", "6.17 B", "0.671 B", "67.1 B"]),
        ("~1,335M", ["~3135M", "~1353M", "~133.5M", "~13350M"]),
        ("7B", ["0.7B", "70B"]),
        ("a lot", []),
    ],
)
def test_misprints_of_a_rounded_count(text, misprints):
    assert misprints == list(_misprints(text))


@pytest.mark.parametrize("present", [1, 8, 61, 96])
def test_round_numbers_near_a_dimension(present):
    """Small multiples of powers of two, up to a factor of 4, the nearest first."""
    near = {n for n in range(1, 5 * present) if n // (n & -n) <= 7 and present <= 4 * n <= 16 * present}
    numbers = _round_numbers(present)

    assert near - {present} == set(numbers)
    assert numbers == sorted(numbers, key=lambda n: abs(math.log(n / present)))


def test_round_numbers_near_a_large_dimension():
    assert {1 << 38, 7 << 38, 1 << 42} < set(_round_numbers(1 << 40))


@pytest.mark.parametrize("off", [1, MOST_PADDING, MOST_PADDING + 1, -1, -MOST_PADDING, -MOST_PADDING - 1])
def test_rows_of_padding(off):
    rows = LLAMA.vocabulary + off
    total = parameters_of(evolve(LLAMA, vocabulary=rows))
    (finding,) = findings("TRN405", put(bare(), "llama-3-8b", "parameters", Parameters(total=total)))
    padding = f"padding is {'counted' if off > 0 else 'left out'}; a vocabulary of {rows:,} rows gives this number"
    wrong = f"a wrong dimension: {rows:,} for vocabulary gives this number"

    assert (padding in finding.hint, wrong in finding.hint) == (abs(off) <= 1024, abs(off) > 1024)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        # One digit, two, three; active parameters, whose embedding may be left out.
        ("small-3b", 2_500_000_000, 4_050_000_000),
        ("small-30b", 27_777_777_778, 32_400_000_000),
        ("small-350m", 339_805_826, 360_500_000),
        ("small-1.5t", 1_388_888_888_889, 1_620_000_000_000),
        ("small-8b-a3b", 2_500_000_000, 4_050_000_000 + 128_256 * 4096),
    ],
)
def test_how_far_a_count_may_be_from_the_size_in_a_name(monkeypatch, name, least, most):
    def reported(count):
        monkeypatch.setattr(transformers, "parameters", lambda _: 8e9 if "8b-" in name else count)
        monkeypatch.setattr(transformers, "active_parameters", lambda _: count)
        node = bare().named("llama-3-8b")
        spec = evolve(node.spec, parameters=None)
        other = evolve(node, spec=spec, metadata=evolve(node.metadata, name=name, aliases=()))
        return [*transformers.size_in_name.check(other, bare())] != []

    assert [reported(n) for n in (least - 1, least, most, most + 1)] == [True, False, False, True]
