"""Layers of different reach: by hand for MiMo-V2-Flash, Gemma 4 and DeepSeek-V4-Flash."""

import pytest
from attrs import evolve

from tests.support.engine import layout
from tests.support.rules import shipped
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.serving.decode import mean_context, token_load
from trnspec.perf.serving.forward_pass import IDEAL, Deployment, cache_bytes, kept_bytes
from trnspec.perf.work.memory import inference_memory, kv_cache
from trnspec.perf.work.transformer import common_heads, reaches, transformer

CLOSE = 1e-12
MIMO = dimensions(shipped().named("mimo-v2-flash").spec)
"""9 layers with 4 KV heads and 39 with a window of 128 tokens and 8; keys of 192 and values of 128 elements."""
GEMMA = dimensions(shipped().named("gemma-4-31b").spec)
"""10 layers with 4 KV heads of 512, whose values are keys, and 50 with a window of 1,024 tokens and 16 of 256."""
V4 = dimensions(shipped().named("deepseek-v4-flash").spec)
"""2 layers with a window of 128 tokens, 21 with 512 chosen keys of 4 tokens, 20 with all keys of 128 tokens, both with it."""


def test_layers_of_each_reach():
    assert {"full": 9.0, "windowed": 39.0, "sparse": 0.0, "pooled": 0.0} == {r.name: r.layers for r in reaches(MIMO)}
    assert {"full": 0.0, "windowed": 43.0, "sparse": 21.0, "pooled": 20.0} == {r.name: r.layers for r in reaches(V4)}
    assert [0.0, 128.0, 2048.0, 0.0] == [r.limit for r in reaches(V4)]


@pytest.mark.parametrize(
    ("d", "tokens", "elements"),
    [
        (MIMO, 1000.0, 9 * 1000 * 4 * 320 + 39 * 128 * 8 * 320),
        (MIMO, 100.0, 9 * 100 * 4 * 320 + 39 * 100 * 8 * 320),
        (GEMMA, 4096.0, 10 * 4096 * 4 * 1024 + 50 * 1024 * 16 * 512),
        (V4, 8192.0, 43 * 128 * 512 + 21 * 2048 * (512 + 128) + 20 * 64 * 512),
    ],
)
def test_kv_cache_bytes_of_a_sequence(d, tokens, elements):
    assert elements * 2 == pytest.approx(kv_cache(d, tokens, 1.0), rel=CLOSE)


def test_ranks_hold_whole_heads_of_each_kind_of_layer():
    """With 8 ranks the 8 heads of windowed layers are split, and the 4 of the others are held twice."""
    model = transformer(MIMO)
    expected = (9 * 1000 * 1 + 39 * 128 * 1) * 320 * 2
    assert expected == pytest.approx(kv_cache(MIMO, 1000.0, 1.0, tp=8.0), rel=CLOSE)
    assert expected == pytest.approx(kept_bytes(model, 1000.0, 2.0, 8.0), rel=CLOSE)
    assert (9 * 4 + 39 * 8) * 320 * 2 == pytest.approx(cache_bytes(model, 2.0), rel=CLOSE)
    split, whole = (
        inference_memory(MIMO, layout(tp=t), context=0.0, batch=0.0, step_tokens=0.0).weights for t in (8.0, 1.0)
    )
    small = MIMO.attention_small * 48 + MIMO.outer_small + 47 * (MIMO.router_weights + MIMO.router_small)
    twice = 9 * 4096 * 4 * 320 / 8
    assert split == pytest.approx((whole - 2 * small) / 8 + 2 * small + 2 * twice, rel=1e-9)


def test_bytes_and_flops_of_a_token():
    model, plan = transformer(MIMO), Deployment(tp=8.0, prompt=1000.0, output=2.0, batch=1.0)
    load = token_load(model, plan, IDEAL, mean_context(model, plan))
    # Of a rank: 8 of 64 query heads, one KV head of either kind; the token itself is written.
    assert (9 * (1001 + 1) + 39 * (128 + 1)) * 320 == pytest.approx(48 * load.cached, rel=CLOSE)
    assert (9 * 1001 + 39 * 128) * 8 * 320 == pytest.approx(48 * load.scores, rel=CLOSE)


def test_pooled_keys():
    model, plan = transformer(V4), Deployment(prompt=8191.0, output=2.0, batch=1.0)
    load = token_load(model, plan, IDEAL, mean_context(model, plan))
    keys = 43 * 128 + 21 * 512 + 20 * 8192 / 128
    index = 21 * 8192 / 4
    assert keys * 64 * 1024 + index * 64 * 128 == pytest.approx(43 * load.scores, rel=CLOSE)
    new = 43 + 21 / 4 + 20 / 128
    assert (keys + new) * 512 + index * 128 == pytest.approx(43 * load.cached, rel=CLOSE)


def test_tensor_parallelism_divides_the_heads_of_all_layers():
    assert (64.0, 32.0) == (common_heads(MIMO), common_heads(evolve(MIMO, local_heads=96.0)))
