"""Serving agrees with a second implementation that shares none of its formulas."""

import random
from collections import Counter

import pytest
from attrs import evolve

import tests.perf.oracles.serving as reference
from tests.support.engine import MODELS, SYSTEMS
from trnspec.perf.experts import SENT
from trnspec.perf.lowering.machine import IDEAL as RATES
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.decode import decode, mean_context
from trnspec.perf.serving.forward_pass import IDEAL, PARTS, Deployment, Serving
from trnspec.perf.serving.prefill import prefill
from trnspec.perf.serving.request import serve
from trnspec.perf.serving.static_graphs import compiled, narrow_shards, powers_of_two
from trnspec.perf.work.transformer import transformer

COUNT = 320
FITTED = Serving(
    matmul=0.7, attention=0.4, weights=0.6, cache=0.5, score_passes=0.3, link=0.8, additive=0.2, call=3e-5, launch=1e-6,
    step=2e-3, sample=1e-4, request=1e-2, padding=0.4, causal=0.5, single_core=0.6,
    matmul_passes=1.7,
)  # fmt: skip
DIMS = {name: d for name, d in MODELS.items() if d.causal} | {
    # Latent attention whose rank is known: DeepSeek-V3.
    "absorbed": evolve(MODELS["latent"], rank=512.0, qk_size=192.0, v_size=128.0)
}


def request(draw: random.Random, ranks: int) -> reference.Request:
    """A deployment at random, most of it as a framework of static graphs or of GPUs would have it."""
    prompt, output = draw.choice([100, 777, 1024, 3000]), draw.choice([1, 2, 64, 300])
    chunks = draw.choice([1, 1, 1, 2, 5])
    batch = draw.choice([1, 2, 3, 8, 33])
    static = draw.random() < 0.5
    contexts = draw.choice([(), powers_of_two(128, prompt + output), (640, prompt + output), (4096,)])
    tp, pp = draw.choice([(tp, pp) for tp in (1, 2, 4, 8, 32) for pp in (1, 1, 2, 4) if tp * pp <= ranks])
    dp = ranks // (tp * pp)
    return reference.Request(
        tp=tp, pp=pp, dp=dp, ep=draw.choice([ep for ep in (1, 1, 2, 4) if dp % ep == 0]), batch=batch,
        prompt=prompt, output=output, chunks=chunks, prompts=draw.choice([1, 1, 4]), rounds=draw.choice([1, 1, 3]),
        cached=draw.choice([0, 0, prompt // 2, prompt - chunks]),
        attention=draw.choice(["calibration", "flash", "materialized"]), all_experts_from=draw.choice([0, 0, 2, 32]),
        contexts=tuple(sorted(contexts)) if static else (), batches=draw.choice([(), (1, 2, 4, 64), (40,)]),
        tile=draw.choice([0, 0, 128]), weight_bytes=draw.choice([0.5, 1.0, 2.0]), cache_bytes=draw.choice([1.0, 2.0]),
        drafted=draw.choice([0, 0, 3]), single_core=draw.choice([False, False, True]),
        dispatch=draw.choice(["per-node", "per-node", "per-copy"]), dispatch_dtype=draw.choice(["bf16", "fp8"]),
        node_limit=draw.choice([0, 0, 1, 2]), expert_overlap=draw.choice([False, True]),
    )  # fmt: skip


def plan_of(x: reference.Request, d, model) -> Deployment:
    plan = Deployment(
        **{n: float(getattr(x, n)) for n in ("tp", "pp", "dp", "ep", "batch", "prompt", "output", "prompts", "rounds", "cached", "single_core")},
        passes=float(x.chunks), all_experts_from=float(x.all_experts_from), flash=float(x.attention == "flash"),
        materialized=float(x.attention == "materialized"), per_node=float(x.dispatch == "per-node"),
        sent=SENT[x.dispatch_dtype], node_limit=float(x.node_limit), weight_bytes=x.weight_bytes, cache_bytes=x.cache_bytes,
        expert_overlap=float(x.expert_overlap),
    )  # fmt: skip
    plan = compiled(model, plan, x.contexts, x.batches)
    return narrow_shards(d, model, plan, float(x.tile)) if x.tile else plan


@pytest.fixture(scope="module")
def samples():
    draw = random.Random(20261122)
    systems = [draw.choice(SYSTEMS) for _ in range(COUNT)]
    return [(draw.choice(list(DIMS)), on, draw.choice([IDEAL, FITTED]), request(draw, int(on.ranks))) for on in systems]


def test_samples_cover_everything(samples) -> None:
    seen = Counter(
        name
        for model, _, _, x in samples
        for name in (
            model, x.attention, f"all experts {x.all_experts_from > 0}", f"graphs {bool(x.contexts)}", f"batches {bool(x.batches)}",
            f"tile {x.tile}", f"prefix {x.cached > 0}", f"chunks {x.chunks > 1}", f"draft {x.drafted}", f"ep {x.ep > 1}",
            *((x.dispatch, x.dispatch_dtype, f"limit {x.node_limit > 0}", f"overlap {x.expert_overlap}") if x.ep > 1 and DIMS[model].experts else ()),
        )
    )  # fmt: skip
    assert min(seen.values()) >= 10
    assert len(seen) == len(DIMS) + 3 + 12 * 2


def test_prefill_and_decoding_agree(samples) -> None:
    for name, system, serving, x in samples:
        d = DIMS[name]
        model = transformer(d)
        numbers, plan = machine(system, RATES, "bf16"), plan_of(x, d, model)
        for found, expected in (
            (prefill(model, plan, numbers, serving), reference.prefill(d, system, serving, x)),
            (
                decode(model, plan, numbers, serving, mean_context(model, plan), 1.0 + x.drafted),
                reference.decode(d, system, serving, x),
            ),
        ):
            parts = {part: getattr(found, part) for part in (*PARTS, "total")}
            assert parts == pytest.approx(expected, rel=1e-11, abs=1e-18), (name, x)


def test_interference_agrees(samples) -> None:
    for name, system, serving, x in samples:
        if x.drafted or x.rounds > 1:
            continue
        d = DIMS[name]
        model = transformer(d)
        found = serve(model, plan_of(x, d, model), machine(system, RATES, "bf16"), serving)
        expected = reference.interference(d, system, serving, x)
        # A difference of two times that are nearly equal.
        assert expected == pytest.approx(found.prefill_interference, rel=1e-7, abs=1e-12), (name, x)
