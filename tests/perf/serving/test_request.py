"""Serving: closed forms, published figures and measurements, and properties for any model, layout and machine."""

import attrs
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import MODELS, SYSTEMS, shipped
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.calibration.fits.search import stacked
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL as RATES
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.decode import decode, mean_context, token_load
from trnspec.perf.serving.forward_pass import IDEAL, PARTS, Context, Deployment, PassTime, Serving
from trnspec.perf.serving.prefill import prefill, prompt_load
from trnspec.perf.serving.request import Served, Speculation, serve, transfer_time
from trnspec.perf.serving.static_graphs import bucket, compiled, powers_of_two
from trnspec.perf.work.transformer import transformer

CLOSE = 1e-12


GRAPH = shipped().graph
TRN1 = machine(lower(GRAPH, "trn1.32xlarge"), RATES, "bf16")


def model_of(name):
    return transformer(dimensions(GRAPH.named(name).spec))


def test_schedules():
    model = model_of("llama-2-7b")
    plan = Deployment(tp=32.0, batch=8.0, prompt=512.0, output=101.0)

    static = serve(model, evolve(plan, prompts=8.0), TRN1, IDEAL, schedule="static")
    continuous = serve(model, plan, TRN1, IDEAL)
    alone = serve(model, plan, TRN1, IDEAL, schedule="separate")
    step = decode(model, plan, TRN1, IDEAL, mean_context(model, plan)).total

    assert (step, step, 0.0) == (static.time_per_token, alone.time_per_token, alone.prefill_interference)
    assert 8 * 101 / (static.prefill.total + 100 * step) == pytest.approx(static.throughput, rel=CLOSE)
    # Seven others are renewed while one makes its hundred tokens.
    assert 7 * continuous.prefill.total / 100 == pytest.approx(continuous.prefill_interference, rel=CLOSE)
    assert 8 * 101 / (8 * continuous.prefill.total + 100 * step) == pytest.approx(continuous.throughput, rel=CLOSE)
    assert 8 / (100 * step) == pytest.approx(alone.decode_rate, rel=CLOSE)


def test_stages_work_on_groups_of_the_batch():
    """Each of two stages reads half of the weights; a token waits for both, and two groups are under way."""
    model = model_of("llama-2-7b")
    one = Deployment(tp=16.0, batch=4.0)
    two = Deployment(tp=16.0, batch=8.0, pp=2.0)

    before, after = (serve(model, plan, TRN1, IDEAL, schedule="separate") for plan in (one, two))

    # The other stage is two rows away: messages have one of four directions, and those of two rows share its links.
    sent = 4.0 * 4096 * 2 / 16 / (96e9 / 8)
    assert before.time_per_token + sent == pytest.approx(after.time_per_token, rel=CLOSE)
    assert after.token.pipeline == pytest.approx(sent, rel=CLOSE)
    assert 2 * before.decode_rate > after.decode_rate > 1.99 * before.decode_rate
    # Without decoding each stage has a prompt of its own.
    prompts = serve(model, evolve(two, output=1.0), TRN1, IDEAL)
    assert 2.0 / prompts.prefill.total == pytest.approx(prompts.throughput, rel=CLOSE)


def test_a_rank_alone_calls_no_collective():
    model = model_of("mixtral-8x7b")
    for tp, calls in ((1.0, 0.0), (2.0, 65.0)):
        plan = Deployment(tp=tp)
        with_calls, without = (
            decode(model, plan, TRN1, evolve(IDEAL, call=call), mean_context(model, plan)) for call in (1.0, 0.0)
        )
        assert calls == pytest.approx(with_calls.total - without.total)


def test_scores_that_pass_through_device_memory():
    """Of 4 heads of a rank, 4 bytes for each key: of half of the prompt on average, of all of it where scores are materialized."""
    model = model_of("llama-2-7b")
    plan = Deployment(tp=8.0, batch=3.0, prompt=1024.0, output=128.0)
    written = Serving(score_passes=1.0)
    for materialized, keys, passes in ((0.0, 512, 4.0), (1.0, 1024, 8.0)):
        found = prompt_load(model, evolve(plan, materialized=materialized), written).spilled
        assert 1024 * 4 * keys * passes == pytest.approx(found, rel=CLOSE)
    assert 0.0 == prompt_load(model, evolve(plan, flash=1.0), written).spilled
    step = token_load(model, plan, written, mean_context(model, plan))
    assert 3 * 4 * 1088 * 4.0 == pytest.approx(step.spilled, rel=CLOSE)


@pytest.mark.parametrize("window", [100.0, 600.0, 2000.0])
def test_keys_of_a_window_averaged_over_the_output(window):
    model = evolve(model_of("llama-2-7b"), window=window, chosen=window)
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


def test_a_chunk_takes_the_bucket_of_its_tokens():
    plan = Deployment(prompt=1000.0, cached=200.0, passes=4.0, output=24.0)
    assert 640.0 == compiled(model_of("llama-2-7b"), plan, (128, 640, 1024)).compiled_tokens


COUNTS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 8.0, 16.0])
POWERS = st.sampled_from([1.0, 2.0, 4.0, 8.0, 32.0])
SECONDS = st.sampled_from([0.0, 1e-6, 15e-6, 86e-6])
SHARES = st.floats(0.05, 1.0)
TRANSFORMERS = st.sampled_from([transformer(d) for d in MODELS.values() if d.causal])
DENSE = st.sampled_from([transformer(MODELS[name]) for name in ("gpt", "gpt-3", "llama-8b", "mha")])


@st.composite
def machines(draw):
    rate = draw(st.floats(1e12, 1e15))
    numbers, levels, within = machine(SYSTEMS[0], RATES, "bf16"), [], 1.0
    for level in numbers.levels:
        within *= draw(st.sampled_from([1.0, 2.0, 4.0, 16.0]))
        byte, hop = 1.0 / draw(st.floats(1e9, 1e12)), draw(SECONDS)
        levels.append(evolve(level, share=1.0 / within, seconds_per_byte=byte, hop=hop, unknown=0.0))
    return evolve(
        numbers, ranks=4096.0, seconds_per_flop=1.0 / rate, head=1.0 / rate, score=1.0 / rate,
        seconds_per_byte=1.0 / draw(st.floats(1e10, 1e13)), capacity=1e11, levels=tuple(levels),
    )  # fmt: skip


@st.composite
def software(draw, prompt, output):
    """What a framework sets; a graph has one bucket, whether or not it is a whole one for the request."""
    attention = draw(st.sampled_from(["", "flash", "materialized"]))
    longest = prompt + output + float(draw(st.integers(0, 4096)))
    graphs = draw(st.booleans())
    names = ("tokens", "prompt", "context", "keys", "window", "chosen", "first", "last")
    return {
        **({attention: 1.0} if attention else {}), **({f"compiled_{n}": longest for n in names} if graphs else {}),
        "compiled_batch": draw(st.sampled_from([0.0, 0.0, 512.0])), "all_experts_from": draw(st.sampled_from([0.0, 2.0, 16.0])),
        "narrow_whole": draw(st.sampled_from([0.0, 0.5])), "narrow_routed": draw(st.sampled_from([0.0, 4.5])),
    }  # fmt: skip


@st.composite
def plans(draw):
    prompt, output = float(draw(st.integers(1, 16384))), float(draw(st.integers(1, 4096)))
    share = draw(st.sampled_from([1.0, 2.0, 4.0]))
    return Deployment(
        tp=draw(POWERS), pp=draw(st.sampled_from([1.0, 2.0, 4.0])),
        dp=4.0 * share, ep=share, batch=float(draw(st.integers(1, 512))),
        prompt=prompt, output=output, passes=draw(st.sampled_from([1.0, 1.0, 2.0, 7.0])),
        prompts=draw(COUNTS), rounds=draw(COUNTS), cached=float(draw(st.integers(0, int(prompt) - 1))),
        **draw(software(prompt, output)), weight_bytes=draw(st.sampled_from([0.5, 1.0, 2.0])),
        cache_bytes=draw(st.sampled_from([1.0, 2.0])), activation_bytes=2.0, single_core=draw(st.sampled_from([0.0, 1.0])),
    )  # fmt: skip


@st.composite
def servings(draw):
    shares = {name: draw(SHARES) for name in ("matmul", "attention", "weights", "cache", "link", "single_core")}
    times = {name: draw(SECONDS) for name in ("call", "launch", "step", "sample", "request")}
    rest = {name: draw(st.floats(0.0, 1.0)) for name in ("additive", "padding", "causal", "score_passes")}
    return Serving(**shares, **times, **rest)


def summed(found: PassTime) -> float:
    total = found.matrices
    for name in PARTS[2:]:
        total = total + getattr(found, name)
    return total + found.attention


@given(TRANSFORMERS, plans(), machines(), servings())
def test_parts_sum_and_none_is_negative(model, plan, numbers, serving):
    met = mean_context(model, plan)
    for found in (decode(model, plan, numbers, serving, met), prefill(model, plan, numbers, serving)):
        assert summed(found) == found.total
        assert all(0.0 <= getattr(found, name) < float("inf") for name in PARTS)
        assert found.total > 0.0


@given(TRANSFORMERS, plans(), machines())
def test_with_free_computation_a_step_is_reading(model, plan, numbers):
    free = evolve(numbers, seconds_per_flop=0.0, score=0.0, head=0.0)
    found = decode(model, plan, free, IDEAL, mean_context(model, plan))

    assert found.reading == pytest.approx(found.matrices + found.attention + found.head, rel=1e-12)


@given(TRANSFORMERS, plans(), machines(), servings(), st.sampled_from([1.5, 2.0, 10.0]))
def test_more_of_anything_is_never_slower(model, plan, numbers, serving, factor):
    numbers_slower = [
        evolve(numbers, **{name: getattr(numbers, name) * factor})
        for name in ("seconds_per_flop", "score", "seconds_per_byte")
    ]
    for i, level in enumerate(numbers.levels):
        for name in ("seconds_per_byte", "hop"):
            slow = evolve(level, **{name: getattr(level, name) * factor})
            numbers_slower.append(evolve(numbers, levels=(*numbers.levels[:i], slow, *numbers.levels[i + 1 :])))
    for schedule in ("static", "separate"):
        before = serve(model, plan, numbers, serving, schedule=schedule)
        for other in numbers_slower:
            slower = serve(model, plan, other, serving, schedule=schedule)
            assert slower.latency >= before.latency
            assert slower.throughput <= before.throughput
        for name in ("call", "launch", "step", "sample", "request"):
            slower = serve(
                model, plan, numbers, evolve(serving, **{name: getattr(serving, name) + 1e-5}), schedule=schedule
            )
            assert slower.latency >= before.latency


@given(TRANSFORMERS, plans(), machines(), servings(), st.integers(1, 64))
def test_a_larger_batch_or_context_takes_no_less(model, plan, numbers, serving, more):
    met = mean_context(model, plan)
    before = decode(model, plan, numbers, serving, met)

    assert decode(model, evolve(plan, batch=plan.batch + more), numbers, serving, met).total >= before.total
    assert decode(model, plan, numbers, serving, Context(*(n + more for n in attrs.astuple(met)))).total >= before.total
    assert decode(model, plan, numbers, serving, met, 1.0 + more).total >= before.total


@given(TRANSFORMERS, plans(), machines(), servings(), st.sampled_from(["static", "continuous", "separate"]))
def test_twice_the_rates_and_half_the_latencies_take_half(model, plan, numbers, serving, schedule):
    def halved(of, *names):
        return evolve(of, **{name: getattr(of, name) / 2 for name in names})

    levels = tuple(halved(level, "seconds_per_byte", "hop") for level in numbers.levels)
    fast = evolve(halved(numbers, "seconds_per_flop", "score", "seconds_per_byte"), levels=levels)
    quick = halved(serving, "call", "launch", "step", "sample", "request")

    slow = serve(model, plan, numbers, serving, schedule=schedule)
    found = serve(model, plan, fast, quick, schedule=schedule)

    assert slow.prefill.total == 2 * found.prefill.total
    assert slow.time_per_token == 2 * found.time_per_token
    assert slow.latency == 2 * found.latency
    assert 2 * slow.throughput == found.throughput


def flat(found: Served):
    for field in attrs.fields(Served):
        value = getattr(found, field.name)
        if isinstance(value, PassTime):
            yield from ((f"{field.name}.{f.name}", getattr(value, f.name)) for f in attrs.fields(PassTime))
        else:
            yield field.name, value


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(TRANSFORMERS, plans(), machines(), servings(), TRANSFORMERS), min_size=1, max_size=5),
    st.sampled_from(["static", "continuous", "separate"]),
    st.booleans(),
)
def test_one_call_is_the_element_of_a_batch_bit_for_bit(cases, schedule, drafting):
    def drafted(small):
        return Speculation(model=small, drafted=4.0, acceptance=0.7) if drafting else None

    columns = list(zip(*cases, strict=True))
    model, plan, numbers, serving = map(stacked, columns[:4])
    many = dict(flat(serve(model, plan, numbers, serving, schedule=schedule, speculation=drafted(stacked(columns[4])))))
    for i, (one, laid, chip, achieved, small) in enumerate(cases):
        alone = dict(flat(serve(one, laid, chip, achieved, schedule=schedule, speculation=drafted(small))))
        assert alone == {name: np.broadcast_to(value, len(cases))[i] for name, value in many.items()}
        assert {float} == {type(v) for v in alone.values()}


@given(DENSE, plans(), machines(), servings())
def test_one_expert_is_a_dense_network(model, plan, numbers, serving):
    """Bit for bit, since tp is a power of two, so that nothing is rounded."""
    network = 1024.0 * model.hidden
    dense = evolve(model, whole=model.whole + network, weights=model.weights + network)
    expert = evolve(model, routed=network, weights=model.weights + network, dispatched=1.0)
    one = evolve(plan, ep=1.0, narrow_whole=0.0, narrow_routed=0.0)

    assert serve(dense, one, numbers, serving) == serve(expert, one, numbers, serving)
