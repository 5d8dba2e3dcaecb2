"""What must hold of the training engine for any configuration."""

from __future__ import annotations

import math
import random

import attrs
import numpy as np
import pytest
from attrs import evolve
from engine_samples import ESTIMATORS, FITTED, MODELS, SYSTEMS, estimator, possible, sample
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trnspec.evaluation.result import RefusalError
from trnspec.perf.sweep.batch import REASONS
from trnspec.perf.training.step import PARTS, step
from trnspec.perf.work.flops import model_flops_per_token
from trnspec.perf.work.transformer import transformer

samples = st.integers(0, 2**48).map(lambda seed: possible(random.Random(seed)))
any_samples = st.integers(0, 2**48).map(lambda seed: sample(random.Random(seed), strange=0.5))
many = settings(max_examples=200, deadline=None)


def scaled(e, rate: float, latency: float):
    """The same estimator with all rates and all latencies multiplied; capacity stays."""
    system = evolve(
        e.system,
        rates={t: r * rate for t, r in e.system.rates.items()},
        bandwidth=e.system.bandwidth * rate,
        levels=tuple(evolve(v, rate=v.rate * rate, latency=v.latency * latency) for v in e.system.levels),
    )
    had = e.calibration.efficiency
    times = ("forward", "backward", "call", "hop", "network_hop", "send", "step")
    return estimator(e.name, system, evolve(had, **{t: getattr(had, t) * latency for t in times}), e.dtype)


@many
@given(samples)
def test_no_faster_than_the_work(s) -> None:
    """1. No step is faster than the model's FLOPs at the peak of all ranks, nor than reading the optimizer's states."""
    e = ESTIMATORS[s.which]
    # The layers' work alone: the output matrix is the last stage's, and beside the layers of the others.
    layers = evolve(e.dims, vocabulary=0.0, head=0.0, embedding=0.0, tied=0.0)
    work = model_flops_per_token(layers, float(s.layout.seq), "megatron" if e.dims.causal else "matmul-full")
    total = e.step(s.layout).total
    # A window counts in full for those that count its tokens simply.
    if not e.dims.windowed_layers:
        assert total >= work * s.layout.tokens / (e.system.ranks * max(e.system.rates.values())) * (1 - 1e-12)


@many
@given(samples)
def test_parts_sum_to_the_whole(s) -> None:
    """2. The parts sum to the total, in their order; memory's too; nothing is negative, infinite or no number."""
    e = ESTIMATORS[s.which]
    found, memory = e.step(s.layout), e.memory(s.layout)
    parts = [getattr(found, name) for name in PARTS]

    assert sum(parts) == found.total
    assert all(p >= 0.0 and math.isfinite(p) for p in parts)
    held = [float(getattr(memory, f.name)) for f in attrs.fields(type(memory))]
    assert sum(held) == pytest.approx(memory.total, rel=1e-15)
    assert all(h >= 0.0 and math.isfinite(h) for h in held)


@many
@given(any_samples)
def test_refused_for_a_named_reason(s) -> None:
    """2. What cannot be has a reason and a place, never a number."""
    e = ESTIMATORS[s.which]
    if not s.reason:
        assert e.step(s.layout).total > 0.0
        return
    with pytest.raises(RefusalError) as refused:
        e.step(s.layout)
    assert refused.value.reason == s.reason
    assert s.reason in REASONS
    assert hasattr(s.layout, refused.value.place)


@many
@given(samples)
def test_twice_as_fast_takes_half(s) -> None:
    """3. All rates doubled and all latencies halved: exactly half the time."""
    e = ESTIMATORS[s.which]
    before, after = e.step(s.layout), scaled(e, 2.0, 0.5).step(s.layout)

    assert after.total == before.total / 2.0
    assert [getattr(after, name) for name in PARTS] == [getattr(before, name) / 2.0 for name in PARTS]


@many
@given(samples, st.sampled_from(["rates", "bandwidth", "levels", "latency"]), st.floats(1.0, 8.0))
def test_better_is_never_slower(s, what, factor) -> None:
    """4. More of any rate never makes a step slower, more latency never faster."""
    e = ESTIMATORS[s.which]
    system, efficiency = e.system, e.calibration.efficiency
    if what == "rates":
        better = evolve(system, rates={t: r * factor for t, r in system.rates.items()})
    elif what == "bandwidth":
        better = evolve(system, bandwidth=system.bandwidth * factor)
    elif what == "levels":
        better = evolve(system, levels=tuple(evolve(v, rate=v.rate * factor) for v in system.levels))
    else:
        better, efficiency = system, evolve(efficiency, call=efficiency.call / factor, hop=efficiency.hop / factor)
    now = estimator(e.name, better, efficiency, e.dtype).step(s.layout)
    was = e.step(s.layout)
    # Computation that gets faster hides less: at most what it hid is exposed, and never more than was gained by it.
    assert now.total <= was.total * (1 + 1e-12)


@many
@given(samples)
def test_one_rank_alone_sends_nothing(s) -> None:
    """5. On one rank there is no communication and no bubble."""
    e = ESTIMATORS[s.which]
    one = evolve(e, system=evolve(e.system, ranks=1.0))
    layout = evolve(s.layout, tp=1, pp=1, dp=1, cp=1, ep=1, expert_tp=None, schedule="1f1b", interleave=1)
    assume(layout.global_batch % layout.microbatch == 0)
    found = one.step(layout)

    assert [found.tensor, found.context, found.expert, found.pipeline, found.bubble] == [0.0] * 5
    assert found.data == 0.0


@many
@given(samples)
def test_one_expert_is_a_dense_network(s) -> None:
    """6. One expert that every token goes to, without a router, is the dense network: every figure the same."""
    e = ESTIMATORS[s.which]
    assume(not e.dims.expert_layers)
    d = e.dims
    single = evolve(
        d, expert_layers=d.layers, experts=1.0, active=1.0, expert_width=d.width, expert_weights=d.mlp_weights,
        expert_small=d.mlp_small, mlp_weights=0.0, mlp_small=0.0, width=0.0,
    )  # fmt: skip
    other = evolve(e, dims=single, model=transformer(single))
    # Split as a dense network is, with the load of one.
    s = evolve(s, layout=evolve(s.layout, expert_tp=None, imbalance=1.0, capacity_factor=None))
    found, expected = other.step(s.layout), e.step(s.layout)

    for name in (*PARTS, "total"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-13, abs=1e-13 * expected.total)
    assert other.memory(s.layout).total == pytest.approx(e.memory(s.layout).total, rel=1e-13)


@many
@given(samples, st.sampled_from(["mha", "gpt"]))
def test_one_head_of_keys_for_each_query_is_no_grouping(s, name) -> None:
    """6. Grouped queries with as many heads of keys as of queries are plain attention: the model says it either way."""
    d = MODELS[name]
    size = d.qk_size
    grouped = evolve(
        d, kv_heads=d.heads, kv_elements=2.0 * d.heads * size,
        attention_weights=2.0 * d.hidden * d.heads * size + d.hidden * 2.0 * d.heads * size,
    )  # fmt: skip
    assert grouped == d
    on = estimator(name, SYSTEMS[1])
    layout = evolve(
        s.layout, tp=4, pp=1, dp=8, cp=2, ep=1, expert_tp=None, schedule="1f1b", interleave=1, global_batch=512
    )
    # Fewer heads of keys never take more time, or more memory.
    fewer = evolve(d, kv_heads=8.0, kv_elements=16.0 * size, attention_weights=d.attention_weights - 2.0 * d.hidden
                   * (d.heads - 8.0) * size)  # fmt: skip
    less = evolve(on, dims=fewer, model=transformer(fewer))
    assert less.step(layout).total <= on.step(layout).total
    assert less.memory(layout).total < on.memory(layout).total


@many
@given(samples)
def test_degrees_of_one_leave_bits_alone(s) -> None:
    """6. cp 1, ep 1 and ZeRO 0 in an array give the bits of the formula that knows them to be 1 and leaves parts out."""
    e = ESTIMATORS[s.which]
    plan = evolve(s.layout, cp=1, ep=1, zero=0).plan()
    arrays = attrs.evolve(plan, **{f.name: np.array([getattr(plan, f.name)]) for f in attrs.fields(type(plan))})
    alone, batch = step(e.model, plan, e.machine), step(e.model, arrays, e.machine)

    for name in (*PARTS, "total"):
        assert float(np.ravel(getattr(batch, name))[0]) == getattr(alone, name), name


@many
@given(any_samples)
def test_degrees_multiply_to_the_ranks(s) -> None:
    """8. What has a time uses all ranks, and experts are split among the replicas."""
    e, x = ESTIMATORS[s.which], s.layout
    if not s.reason:
        assert x.tp * x.pp * x.dp * x.cp == e.system.ranks
        assert x.tp % x.expert_split == 0
        assert x.dp * x.cp * x.tp // x.expert_split % x.ep == 0
        with pytest.raises(RefusalError):
            e.step(evolve(x, dp=x.dp + 1))


def test_levels_are_used_inside_out() -> None:
    """A group that fits into a unit does not notice what lies outside it."""
    near = estimator("llama-8b", SYSTEMS[0], FITTED)
    slow = tuple(evolve(v, rate=1.0) if v.name == "network" else v for v in SYSTEMS[0].levels)
    far = estimator("llama-8b", evolve(SYSTEMS[0], levels=slow), FITTED)
    draw = random.Random(3)
    layouts = [possible(draw).layout for _ in range(300)]
    checked = 0
    for x in layouts:
        if x.ranks != 256 or x.ep > 1:
            continue
        checked += 1
        try:
            a, b = near.step(x), far.step(x)
        except RefusalError:
            continue
        assert a.tensor == b.tensor
        assert (a.context == b.context) == (x.cp == 1 or x.tp * x.cp <= 32)
    assert checked > 20
