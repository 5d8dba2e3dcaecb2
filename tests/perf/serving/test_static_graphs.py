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
from trnspec.perf.serving.decode import decode_time, mean_context
from trnspec.perf.serving.forward_pass import IDEAL, Context, Deployment
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
