"""Compiled static graphs: buckets of batch and context, all experts, and shards narrower than a tile."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve

from tests.support.engine import shipped
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL as RATES
from trnspec.perf.serving.decode import decode, decode_time, mean_context
from trnspec.perf.serving.forward_pass import IDEAL, Context, Deployment, Serving, context_at
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.serving.static_graphs import bucket, compiled, mean_read, narrow_shards, powers_of_two
from trnspec.perf.work.transformer import transformer

CLOSE = 1e-12


def dims(name):
    return dimensions(model_named(shipped().graph, name).spec)


@pytest.fixture(scope="module")
def llama():
    return transformer(dims("llama-3.1-8b"))


@pytest.fixture(scope="module")
def trn2():
    return machine(lower(shipped().graph, "trn2.48xlarge"), RATES, "bf16")


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


def test_decoding_reads_whole_buckets(llama):
    """From 500 to 700 tokens of context: 12 tokens in the bucket of 512, 188 in that of 1,024."""
    plan = Deployment(prompt=500.0, output=200.0)

    assert (12 * 512 + 188 * 1024) / 200 == mean_read(0.0, plan, (128, 256, 512, 1024))
    assert 4396.0 == mean_read(0.0, plan, (4396,))


def test_windowed_layers_read_no_more_than_their_window():
    """Half of the layers of gpt-oss look back 128 tokens."""
    model = transformer(dims("gpt-oss-20b"))
    plan = compiled(model, Deployment(prompt=600.0, output=200.0), (1024,))

    assert Context(1024.0, 128.0, 1024.0) == mean_context(model, plan)


def test_a_batch_of_five_costs_that_of_eight(llama, trn2):
    plan = Deployment(tp=8.0, prompt=1024.0, output=64.0, batch=5.0)
    padded = compiled(llama, plan, (), (1, 2, 4, 8))

    whole = decode_time(llama, evolve(plan, batch=8.0), trn2, IDEAL)

    assert whole == decode_time(llama, padded, trn2, IDEAL) > decode_time(llama, plan, trn2, IDEAL)
    # Only the five in flight are served.
    assert 5 * 64 == pytest.approx(
        serve(llama, padded, trn2, IDEAL).throughput * serve(llama, padded, trn2, IDEAL).latency, rel=CLOSE
    )


def test_a_prompt_costs_its_bucket(llama, trn2):
    plan = Deployment(tp=8.0, prompt=1100.0, output=64.0)

    found = prefill(llama, compiled(llama, plan, (128, 2048)), trn2, IDEAL)

    assert prefill(llama, evolve(plan, prompt=2048.0), trn2, IDEAL) == found


def test_a_chunk_attends_to_the_bucket_of_the_prompt(llama, trn2):
    """Its place in the prompt is not known when it is compiled: no half of the scores is saved."""
    plan = Deployment(tp=8.0, prompt=2000.0, output=64.0, passes=4.0)

    found = prefill(llama, compiled(llama, plan, (512, 2048, 4096)), trn2, IDEAL)

    # Each of four passes: 512 tokens, 2,048 keys, 32 heads of 128 for queries and as many for values, on 8 ranks.
    scores = 4 * 32 * 2 * 512 * 2048 * 2 * 32 * 128
    assert scores / 8 * trn2.score == pytest.approx(found.attention, rel=CLOSE)


def test_a_compiled_graph_reads_its_bucket_and_not_the_allocation(llama, trn2):
    """``padding`` is the share of the allocation that is read besides; a bucket says it exactly."""
    plan, all_read = Deployment(tp=8.0, prompt=1000.0, output=24.0), Serving(padding=1.0)
    graph = compiled(llama, plan, (2048,))

    assert 2048.0 == mean_context(llama, graph).full
    assert decode_time(llama, graph, trn2, IDEAL) == decode_time(llama, graph, trn2, all_read)
    assert decode_time(llama, compiled(llama, plan, (1024,)), trn2, IDEAL) == decode_time(llama, plan, trn2, all_read)


@pytest.mark.parametrize(
    ("start", "batch", "share"),
    [
        *((2.0, 1.0, Fraction(8, 128)), (2.0, 2.0, 1), (2.0, 16.0, 1)),
        *(
            (16.0, 1.0, Fraction(8, 128)),
            (16.0, 2.0, Fraction(16, 128)),
            (16.0, 15.0, Fraction(120, 128)),
            (16.0, 16.0, 1),
        ),
    ],
)
def test_experts_that_are_read(trn2, start, batch, share):
    """Qwen3-30B-A3B: 48 layers of 128 experts of three matrices of 2,048 x 768, of which a token selects 8."""
    model = transformer(dims("qwen3-30b-a3b"))
    plan = Deployment(tp=4.0, batch=batch, all_experts_from=start)

    found = decode(model, plan, evolve(trn2, seconds_per_flop=0.0), IDEAL, context_at(model, 100.0)).matrices

    whole = 2048 * 128 * (32 + 4) * 2 + 2048 * 128
    read = 48 * (whole + share * 128 * 3 * 2048 * 768) * 2 / 4
    assert float(read) * trn2.seconds_per_byte == pytest.approx(found, rel=CLOSE)


def test_all_experts_are_computed_in_prefill(trn2):
    model = transformer(dims("qwen3-30b-a3b"))
    plan = Deployment(tp=4.0, prompt=4096.0, output=1.0)

    some, every = (
        prefill(model, evolve(plan, all_experts_from=a), evolve(trn2, seconds_per_byte=0.0), IDEAL).matrices
        for a in (0.0, 2.0)
    )

    more = 48 * (128 - 8) * 3 * 2048 * 768
    assert 2 * 4096 * more / 4 * trn2.seconds_per_flop == pytest.approx(every - some, rel=1e-11)


def test_a_dense_model_has_no_experts_to_compute(llama, trn2):
    plan = Deployment(tp=8.0, batch=4.0)

    assert serve(llama, plan, trn2, IDEAL) == serve(llama, evolve(plan, all_experts_from=2.0), trn2, IDEAL)


@pytest.mark.parametrize(
    ("name", "tp", "whole", "routed"),
    [
        # 14,336 / 8 columns, and four heads of 128: whole tiles.
        ("llama-3.1-8b", 8.0, 0, 0),
        # 768 / 32 = 24 columns of an expert take the time of 128; one head of 128.
        ("qwen3-30b-a3b", 32.0, 0, Fraction(128, 24) - 1),
        # One head of 64 takes 128 columns for queries, and for values; 2,880 / 64 = 45 take 128.
        (
            "gpt-oss-120b",
            64.0,
            Fraction(2 * 64 * 64 * 2880, 2 * 2880 * 64 * 64 + 2 * 2880 * 8 * 64 + 2880 * 128),
            Fraction(128, 45) - 1,
        ),
    ],
)
def test_narrow_shards_take_whole_tiles(name, tp, whole, routed):
    d = dims(name)

    found = narrow_shards(d, transformer(d), Deployment(tp=tp), 128.0)

    assert float(whole) == pytest.approx(found.narrow_whole, rel=1e-9, abs=1e-15)
    assert float(routed) == pytest.approx(found.narrow_routed, rel=CLOSE, abs=1e-15)


def test_narrow_shards_compute_longer_and_read_no_more(trn2):
    d = dims("qwen3-30b-a3b")
    model = transformer(d)
    plan = Deployment(tp=32.0, prompt=4096.0, output=1.0)
    narrow = narrow_shards(d, model, plan, 128.0)

    full, short = (prefill(model, p, trn2, IDEAL) for p in (plan, narrow))

    assert short.matrices > 2 * full.matrices
    assert short.reading == full.reading
    slow = evolve(trn2, seconds_per_flop=0.0)
    assert prefill(model, plan, slow, IDEAL) == prefill(model, narrow, slow, IDEAL)
