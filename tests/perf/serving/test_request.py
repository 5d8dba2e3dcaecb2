"""Serving, against closed forms, published figures and measurements."""

import numpy as np
import pytest
from attrs import evolve

from trnspec.api import load
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.model import Model
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL as RATES
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.decode import decode, mean_context, token_load
from trnspec.perf.serving.forward_pass import IDEAL, Deployment, Serving
from trnspec.perf.serving.prefill import prompt_load
from trnspec.perf.serving.request import serve, transfer_time
from trnspec.perf.serving.static_graphs import bucket, compiled, powers_of_two
from trnspec.perf.work.transformer import transformer

CLOSE = 1e-12


@pytest.fixture(scope="module")
def graph():
    return load().graph


@pytest.fixture(scope="module")
def models(graph):
    return {node.name: dimensions(node.spec) for node in graph.of(Model)}


@pytest.fixture(scope="module")
def trn1(graph):
    return machine(lower(graph, "trn1.32xlarge"), RATES, "bf16")


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
    # Without decoding each stage has a prompt of its own.
    prompts = serve(model, evolve(two, output=1.0), numbers, IDEAL)
    assert 2.0 / prompts.prefill.total == pytest.approx(prompts.throughput, rel=CLOSE)


def test_a_rank_alone_calls_no_collective(models, trn1):
    model = transformer(models["mixtral-8x7b"])
    for tp, calls in ((1.0, 0.0), (2.0, 65.0)):
        plan = Deployment(tp=tp)
        with_calls, without = (
            decode(model, plan, trn1, evolve(IDEAL, call=call), mean_context(model, plan)) for call in (1.0, 0.0)
        )
        assert calls == pytest.approx(with_calls.total - without.total)


def test_scores_that_pass_through_device_memory(models):
    """Of 4 heads of a rank, 4 bytes for each key: of half of the prompt on average, of all of it where scores are materialized."""
    model = transformer(models["llama-2-7b"])
    plan = Deployment(tp=8.0, batch=3.0, prompt=1024.0, output=128.0)
    written = Serving(score_passes=1.0)
    for materialized, keys, passes in ((0.0, 512, 4.0), (1.0, 1024, 8.0)):
        found = prompt_load(model, evolve(plan, materialized=materialized), written).spilled
        assert 1024 * 4 * keys * passes == pytest.approx(found, rel=CLOSE)
    assert 0.0 == prompt_load(model, evolve(plan, flash=1.0), written).spilled
    step = token_load(model, plan, written, mean_context(model, plan))
    assert 3 * 4 * 1088 * 4.0 == pytest.approx(step.spilled, rel=CLOSE)


@pytest.mark.parametrize("window", [100.0, 600.0, 2000.0])
def test_keys_of_a_window_averaged_over_the_output(models, window):
    model = evolve(transformer(models["llama-2-7b"]), window=window, chosen=window)
    found = mean_context(model, Deployment(prompt=512.0, output=256.0))
    mean = np.minimum(window, 512.0 + (np.arange(25600) + 0.5) / 100.0).mean()
    assert (640.0, mean, mean) == pytest.approx((found.full, found.window, found.chosen), rel=1e-6)


def test_kv_cache_transfer_over_the_network():
    assert 15e-6 + 1e9 / 50e9 == transfer_time(1e9, 100e9, 50e9, 15e-6)


@pytest.mark.parametrize(
    ("smallest", "size", "expected"),
    [
        (128, 1, (128,)),
        (128, 128, (128,)),
        (128, 129, (128, 256)),
        (1, 5, (1, 2, 4, 8)),
        (128, 1000, (128, 256, 512, 1024)),
    ],
)
def test_powers_of_two(smallest, size, expected):
    assert expected == powers_of_two(smallest, size)


def test_the_smallest_bucket_that_holds_a_size():
    buckets = (128, 640, 1024)

    assert [128.0, 128.0, 640.0, 640.0, 1024.0] == [bucket(float(n), buckets) for n in (1, 128, 129, 640, 641)]
    assert [128.0, 640.0, 1024.0] == list(bucket(np.array([5.0, 600.0, 1000.0]), buckets))


def test_a_chunk_takes_the_bucket_of_its_tokens(models):
    plan = Deployment(prompt=1000.0, cached=200.0, passes=4.0, output=24.0)
    assert 640.0 == compiled(transformer(models["llama-2-7b"]), plan, (128, 640, 1024)).compiled_tokens
