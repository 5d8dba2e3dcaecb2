"""Values derived from the dimensions of a transformer, and the rules on them."""

import math

import attrs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.checks.rules.test_edits import edits, made
from tests.support.rules import bare, findings, found, put, shipped
from tests.support.tables import tables
from trnspec.checks.rules import transformers
from trnspec.checks.rules.transformers import MOST_PADDING, _misprints, _round_numbers
from trnspec.errors import UsageError
from trnspec.model.transformers import model
from trnspec.model.transformers.contradictions import contradictions
from trnspec.model.transformers.counting import (
    active_parameters,
    active_parameters_of,
    dimensions,
    parameters,
    parameters_of,
)
from trnspec.model.transformers.dimensions import Dimensions

LLAMA = shipped().named("llama-3-8b").spec
SMALL = st.integers(1, 40)
FORMS = st.sampled_from(["gated", "plain"])
BIAS = st.sampled_from(["none", "all"])


@st.composite
def models(draw) -> model.Model:
    """Any sound model."""
    kv_heads, layers, hidden = draw(st.integers(1, 4)), draw(st.integers(2, 9)), draw(SMALL)
    at_most = st.integers(1, hidden)
    latent = None
    if draw(st.booleans()):
        rank = draw(st.none() | at_most)
        latent = model.LatentAttention(
            query_rank=rank, rank=draw(at_most), nope_size=draw(SMALL), rope_size=draw(SMALL), value_size=draw(SMALL)
        )
    recurrence, attended = None, layers
    if draw(st.booleans()):
        key_heads, recurrent = draw(st.integers(1, 4)), draw(st.integers(1, layers - 1))
        recurrence = model.Recurrence(
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
        indexer = model.Indexer(
            keys=draw(SMALL), heads=draw(SMALL), size=draw(SMALL), layers=draw(among), sparse=draw(among)
        )
    attention = model.Attention(
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
        experts = model.Experts(
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
    return model.Model(
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
        feed_forward=model.FeedForward(width=draw(SMALL), form=draw(FORMS), bias=draw(BIAS)) if dense else None,
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


def test_counts_beyond_2_to_53_are_exact():
    huge = evolve(LLAMA, layers=10**15 + 1, hidden=10**9 + 7)
    h = 10**9 + 7
    assert 2 * 128256 * h + (10**15 + 1) * (h * 128 * 80 + 3 * h * 14336 + 2 * h) + h == parameters_of(huge)


def test_nothing_is_left_out_of_the_dimensions():
    """Every field of the class is filled by some model of the catalog."""
    filled = {f for n in shipped().of(model.Model) for f, v in attrs.asdict(dimensions(n.spec)).items() if v}
    # No model of the catalog states modules of multi-token prediction.
    unused = {"mtp_layers", "mtp_weights", "mtp_small"}
    assert {f.name for f in attrs.fields(Dimensions)} - unused == filled


@pytest.mark.parametrize(("code", "table", "name", "edit"), [e for e in edits() if e.values[0] == "TRN406"])
def test_contradictory_dimensions_are_not_counted(code, table, name, edit):
    """What TRN406 reports has no number of parameters that TRN405 could compare."""
    graph = made(table, name, edit)

    for count in (parameters_of, dimensions):
        with pytest.raises(UsageError, match=edit["message"]):
            count(graph.named(name).spec)
    assert set() == found("TRN405", graph)


@pytest.mark.parametrize(("text", "misprints"), tables(__file__)["misprints_of_a_rounded_count"])
def test_misprints_of_a_rounded_count(text, misprints):
    assert misprints == list(_misprints(text))


@pytest.mark.parametrize("present", [1, 8, 61, 96])
def test_round_numbers_near_a_dimension(present):
    """Small multiples of powers of two, up to a factor of 4, the nearest first."""
    near = {n for n in range(1, 5 * present) if n // (n & -n) <= 7 and present <= 4 * n <= 16 * present}
    near |= {2 * present} | ({present // 2} - {present / 2 - 0.5})
    numbers = _round_numbers(present)

    assert near - {present} == set(numbers)
    assert numbers == sorted(numbers, key=lambda n: abs(math.log(n / present)))


@pytest.mark.parametrize("off", [1, MOST_PADDING, MOST_PADDING + 1, -1, -MOST_PADDING, -MOST_PADDING - 1])
def test_rows_of_padding(off):
    rows = LLAMA.vocabulary + off
    total = parameters_of(evolve(LLAMA, vocabulary=rows))
    (finding,) = findings("TRN405", put(bare(), "llama-3-8b", "parameters", model.Parameters(total=total)))
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
        return [*transformers.name_size_mismatch.check(other, bare())] != []

    assert [reported(n) for n in (least - 1, least, most, most + 1)] == [True, False, False, True]


@pytest.mark.parametrize(("name", "is_reported"), [("llama-3.1-8b-1m", False), ("llama-3.1-8m", True)])
def test_context_length_in_a_name_is_no_size(name, is_reported):
    node = bare().named("llama-3-8b")
    other = evolve(node, spec=evolve(node.spec, parameters=None), metadata=evolve(node.metadata, name=name, aliases=()))

    assert is_reported == ([*transformers.name_size_mismatch.check(other, bare())] != [])
