"""Serving, against closed forms, published figures and measurements."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

from trnspec.api import load
from trnspec.model.transformers.counting import dimensions, parameters
from trnspec.model.transformers.model import Model
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL as RATES
from trnspec.perf.serving.decode import accepted, decode, decode_time, mean_context
from trnspec.perf.serving.forward_pass import (
    IDEAL,
    MOST,
    PARTS,
    Context,
    Deployment,
    Serving,
    cache_bytes,
    cache_share,
    context_at,
    head_share,
    power,
    touched,
)
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve, transfer_time
from trnspec.perf.work.transformer import transformer

CLOSE = 1e-12
GIB = 820 * 2**30
"""Bandwidth of a chip of Trainium1 and Inferentia2 that the floors were computed with, in B/s; some pages print GiB."""


@pytest.fixture(scope="module")
def graph():
    return load().graph


@pytest.fixture(scope="module")
def models(graph):
    return {node.name: dimensions(node.spec) for node in graph.of(Model)}


@pytest.fixture(scope="module")
def trn1(graph):
    return machine(lower(graph, "trn1.32xlarge"), RATES, "bf16")


@pytest.mark.parametrize(
    ("name", "element", "expected"),
    [
        ("llama-3-70b", 2.0, 327_680.0),
        ("llama-3-70b", 1.0, 163_840.0),
        ("llama-3-8b", 2.0, 131_072.0),
        ("llama-2-7b", 2.0, 524_288.0),
        ("llama-2-13b", 2.0, 819_200.0),
        # Latent attention keeps the compressed vector and the shared positional key: 512 + 64 in 61 layers.
        ("deepseek-v3", 2.0, 61 * 576 * 2.0),
    ],
)
def test_bytes_of_the_cache_of_a_token(models, name, element, expected):
    assert expected == cache_bytes(transformer(models[name]), element)


@pytest.mark.parametrize(
    ("name", "chips", "context", "milliseconds", "measured", "use"),
    [
        ("llama-2-70b", 16, 128 + 64, 9.797, 25.18, 38.9),
        ("llama-2-13b", 16, 4096 + 2048, 2.205, 9.84, 22.4),
        ("llama-2-7b", 16, 128 + 4032, 1.111, 6.70, 16.6),
        ("llama-2-70b", 12, 128 + 64, 13.063, 32.9, 39.7),
        ("llama-2-7b", 12, 128 + 1984, 1.380, 6.47, 21.3),
    ],
)
def test_floor_of_decoding(models, name, chips, context, milliseconds, measured, use):
    d = models[name]
    weights, cache = parameters(d) * 2.0, cache_bytes(transformer(d), 2.0) * context

    found = (weights + cache) / chips / GIB

    exact = Fraction(int(parameters(d)) * 2 + int(d.layers * d.kv_elements * 2) * context, chips * GIB)
    assert float(exact) == pytest.approx(found, rel=CLOSE)
    assert milliseconds == pytest.approx(1e3 * found, abs=5.1e-4)
    assert use == pytest.approx(100 * found / (measured / 1e3), abs=0.06)


def test_an_ideal_step_reads_weights_and_cache_once(models, trn1):
    """Without links and with heads that divide it is the floor, without embedding and norms, which are not multiplied."""
    model = transformer(models["llama-2-7b"])
    free = evolve(trn1, levels=tuple(evolve(level, seconds_per_byte=0.0, hop=0.0) for level in trn1.levels))
    plan = Deployment(tp=32.0, prompt=128.0, output=8064.0)

    found = decode_time(model, plan, free, IDEAL)

    read = 2 * (32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) + 32000 * 4096) + 524_288 * (128 + 4032 + 1)
    assert pytest.approx(float(Fraction(read, 32 * 410 * 10**9)), rel=CLOSE) == found


def test_small_collectives_and_not_bandwidth_decide_on_neuron(models, trn1):
    """Measured 6.70 ms, of which the floor is a sixth: two collectives a layer of 86 us leave a tenth unexplained."""
    model = transformer(models["llama-2-7b"])
    plan = Deployment(tp=32.0, prompt=128.0, output=8064.0)

    ideal = decode_time(model, plan, trn1, IDEAL)
    found = decode_time(model, plan, trn1, Serving(call=86e-6))

    assert pytest.approx(ideal + (2 * 32 + 1) * 86e-6, rel=CLOSE) == found
    assert pytest.approx(6.70e-3, rel=0.1) == found


def test_a_prefill_is_bound_by_computing(models, trn1):
    """2 FLOP for each weight and token, and the causal half of the scores."""
    model = transformer(models["llama-2-7b"])

    found = prefill(model, Deployment(prompt=1024.0, output=1.0), trn1, IDEAL)

    rate = Fraction("91.75e12")
    assert (
        pytest.approx(float(1024 * 2 * 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008) / rate), rel=CLOSE) == found.matrices
    )
    assert pytest.approx(float(32 * 2 * 1024 * 512 * 2 * 4096 / rate), rel=CLOSE) == found.attention
    assert (found.tensor, found.expert, found.pipeline) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("kv", "ratio"), [(2.0, 1.883), (1.0, 3.4)])
def test_decoding_with_latent_attention_absorbs_the_projections(models, kv, ratio):
    """A pair and head is 2 (512 + 64) + 2 x 512 FLOP, not 2 (128 + 64) + 2 x 128: 3.4 times as many."""
    model = transformer(models["deepseek-v3"])
    numbers = machine(lower(load().graph, "trn3-gen2-ultraserver"), RATES, "bf16")
    plan = Deployment(batch=128.0, prompt=32768.0, cache_bytes=kv)

    found = decode(model, plan, numbers, IDEAL, context_at(model, 32768.0)).attention

    flop = Fraction(61 * 128 * 32768 * 2 * 128 * (576 + 512))
    assert pytest.approx(float(flop) * numbers.score, rel=CLOSE) == found
    expanded = decode(evolve(model, absorbed=model.scores), plan, numbers, IDEAL, context_at(model, 32768.0)).attention
    assert ratio == pytest.approx(found / expanded, rel=1e-3)


def test_one_prefill_at_a_time(models, trn1):
    """Eight prompts in eight passes: the requests' fixed times add up, and weights are read again."""
    model = transformer(models["llama-2-7b"])
    plan = Deployment(tp=32.0, batch=8.0, prompt=16.0, output=8.0, prompts=8.0)
    serving = Serving(request=1e-2)

    at_once = prefill(model, plan, trn1, serving)
    each = prefill(model, evolve(plan, prompts=1.0), trn1, serving)
    found = serve(model, evolve(plan, prompts=1.0, rounds=8.0), trn1, serving, schedule="static")

    assert 8 * each.total == pytest.approx(found.prefill.total, rel=CLOSE)
    assert 7 * 1e-2 < found.prefill.total - at_once.total
    assert 1 / each.total == pytest.approx(found.prefill_rate, rel=CLOSE)


@pytest.mark.parametrize(("n", "expected"), [(0.0, 1.0), (1.0, 0.75), (7.0, 0.75**7), (MOST, 0.0)])
def test_power(n, expected):
    assert expected == pytest.approx(power(0.75, n), rel=1e-14)


@pytest.mark.parametrize("tokens", [1, 2, 3, 17, 128, 1000])
def test_experts_that_are_read(models, tokens):
    """``1 - (1 - k/E)^T`` for 8 of 128."""
    model = transformer(models["qwen3-30b-a3b"])

    assert float(1 - (1 - Fraction(8, 128)) ** tokens) == pytest.approx(touched(model, float(tokens)), rel=CLOSE)


def test_a_dense_model_touches_no_expert(models):
    assert touched(transformer(models["llama-2-7b"]), 5.0) == 0.0


@pytest.mark.parametrize(
    ("name", "tp", "cache", "heads"),
    [
        ("llama-2-70b", 8.0, 1 / 8, 1 / 8),
        # 8 heads of keys and values on 32 ranks: each keeps one, so all is kept four times.
        ("llama-2-70b", 32.0, 1 / 8, 1 / 32),
        # 40 heads on 32 ranks are padded to 64.
        ("llama-2-13b", 32.0, 2 / 40, 2 / 40),
        ("deepseek-v3", 32.0, 1.0, 1 / 32),
    ],
)
def test_whole_heads_are_kept(models, name, tp, cache, heads):
    model = transformer(models[name])

    assert (cache, heads) == (cache_share(model, tp), head_share(model, tp))


def test_context_of_windows(models):
    """Half of gpt-oss's layers look back 128 tokens."""
    model = transformer(models["gpt-oss-20b"])
    plan = Deployment(prompt=64.0, output=256.0)

    assert (128.0, 0.5) == (model.window, model.score_window / model.scores)
    assert (Context(100.0, 100.0, 100.0), Context(1000.0, 128.0, 1000.0)) == (
        context_at(model, 100.0),
        context_at(model, 1000.0),
    )
    # min(128, c) over c from 64 to 320: rises over 64, then stays for 192.
    met = mean_context(model, plan)
    assert 192 == met.full
    assert (96 * 64 + 128 * 192) / 256 == pytest.approx(met.window, rel=CLOSE)


@pytest.mark.parametrize(
    ("a", "k", "expected"), [(0.0, 4.0, 1.0), (1.0, 4.0, 5.0), (0.5, 2.0, 1.75), (0.8, 4.0, 3.3616)]
)
def test_tokens_of_a_draft(a, k, expected):
    assert expected == pytest.approx(accepted(a, k), rel=CLOSE)


def test_schedules(models, trn1):
    model = transformer(models["llama-2-7b"])
    plan = Deployment(tp=32.0, batch=8.0, prompt=512.0, output=101.0)

    static = serve(model, evolve(plan, prompts=8.0), trn1, IDEAL, schedule="static")
    continuous = serve(model, plan, trn1, IDEAL)
    alone = serve(model, plan, trn1, IDEAL, schedule="separate")
    step = decode(model, plan, trn1, IDEAL, mean_context(model, plan)).total

    assert (step, step, 0.0) == (static.time_per_token, alone.time_per_token, alone.prefill_interference)
    assert 8 * 101 / (static.prefill.total + 100 * step) == pytest.approx(static.throughput, rel=CLOSE)
    # Seven others are renewed while one makes its hundred tokens.
    assert 7 * continuous.prefill.total / 100 == pytest.approx(continuous.prefill_interference, rel=CLOSE)
    assert 8 * 101 / (8 * continuous.prefill.total + 100 * step) == pytest.approx(continuous.throughput, rel=CLOSE)
    assert 8 / (100 * step) == pytest.approx(alone.decode_rate, rel=CLOSE)


def test_stages_work_on_groups_of_the_batch(models, graph):
    """Each of two stages reads half of the weights; a token waits for both, and two groups are under way."""
    model = transformer(models["llama-2-7b"])
    numbers = machine(lower(graph, "trn1.32xlarge"), RATES, "bf16")
    one = Deployment(tp=16.0, batch=4.0)
    two = Deployment(tp=16.0, batch=8.0, pp=2.0)

    before, after = (serve(model, plan, numbers, IDEAL, schedule="separate") for plan in (one, two))

    # The other stage is two rows away: messages have one of four directions, and those of two rows share its links.
    sent = 4.0 * 4096 * 2 / 16 / (96e9 / 8)
    assert before.time_per_token + sent == pytest.approx(after.time_per_token, rel=CLOSE)
    assert after.token.pipeline == pytest.approx(sent, rel=CLOSE)
    assert 2 * before.decode_rate > after.decode_rate > 1.99 * before.decode_rate


def test_kv_cache_transfer_over_the_network():
    assert 15e-6 + 1e9 / 50e9 == transfer_time(1e9, 100e9, 50e9, 15e-6)


def test_arrays_broadcast(models, trn1):
    model = transformer(models["llama-2-7b"])
    batches, contexts = np.array([1.0, 8.0, 64.0]), np.array([[128.0], [4096.0]])

    found = decode(model, Deployment(tp=32.0, batch=batches), trn1, IDEAL, context_at(model, contexts))

    assert (2, 3) == found.total.shape
    assert (
        found.total[1, 2]
        == decode(model, Deployment(tp=32.0, batch=64.0), trn1, IDEAL, context_at(model, 4096.0)).total
    )
    assert (np.diff(found.total, axis=0) > 0).all()
    assert set(PARTS) < {f.name for f in type(found).__attrs_attrs__}
