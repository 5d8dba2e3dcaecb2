"""Experts in a training step: communication over tp and ep, whole experts, load, overlap."""

from __future__ import annotations

import csv
import random
from itertools import pairwise

import numpy as np
import pytest
from attrs import evolve
from nvidia_catalog import catalog

from tests.support.engine import ESTIMATORS, FITTED, MIXTRAL, MODELS, SYSTEMS, estimator, possible, system
from tests.support.programs import ROOT
from trnspec.errors import RefusalError, UsageError
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases
from trnspec.perf.experts import LEAST_DISPATCH
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL
from trnspec.perf.sweep.batch import rows, sweep
from trnspec.perf.training.estimator import prepare
from trnspec.perf.training.step import PARTS, Step, step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import transformer

NVLINK, NETWORK = 450e9, 50e9
P5 = system((("server", 8.0, NVLINK, 0.0), ("network", float("inf"), NETWORK, 0.0)), 64)
"""Eight servers of eight GPUs."""
SPLIT = Layout(
    tp=8, dp=8, ep=8, seq=4096, global_batch=512, sequence_parallel=True, dispatch="per-copy", expert_overlap=False
)
"""Every expert on the eight GPUs of a server."""
LAYERS, TOKENS, HIDDEN, ROUNDS = 32, 4096, 4096, 64 * 32 * 2
"""Of Mixtral 8x7B; a round is the forward or the backward pass of one layer, of one of 64 microbatches."""
MESSAGE = TOKENS * HIDDEN * 2
ENDS = ROUNDS / LAYERS
"""All-reduces of embedding and output, of all microbatches."""


def all_reduce(ranks: int, size: float, rate: float = NVLINK) -> float:
    return 2 * (ranks - 1) / ranks * size / rate


def in_layers(found: Step, *, hidden: float = HIDDEN, rounds: float = ENDS) -> float:
    """Tensor-parallel collectives of the layers: without those of embedding and output over the eight GPUs of a server."""
    return found.tensor - rounds * all_reduce(8, TOKENS * hidden * 2)


def test_ranks_that_split_experts_reduce_every_copy() -> None:
    """By hand: attention reduces a token, the experts both its copies. Once it was counted as one."""
    found = estimator("mixtral", P5).step(SPLIT)

    assert in_layers(found) == pytest.approx(ROUNDS * all_reduce(8, (1 + 2) * MESSAGE), rel=1e-12)
    # Each GPU sends its eighth of the tokens, twice, to the GPUs with its place in the other servers; and back.
    assert found.expert == pytest.approx(ROUNDS * 2 * 2 * MESSAGE / 8 * 7 / 8 / NETWORK, rel=1e-12)


def test_one_copy_for_each_rank() -> None:
    """Of 8 ranks 8 (1 - (7/8)^2) = 1.875 have one of the two experts."""
    found = estimator("mixtral", P5).step(evolve(SPLIT, dispatch="per-node"))

    assert in_layers(found) == pytest.approx(ROUNDS * all_reduce(8, (1 + 1.875) * MESSAGE), rel=1e-12)
    assert found.expert == pytest.approx(ROUNDS * 2 * 1.875 * MESSAGE / 8 * 7 / 8 / NETWORK, rel=1e-12)


def test_all_experts_on_every_rank() -> None:
    """Without expert parallelism one copy is enough; the dispatcher of Megatron-LM gathers both nevertheless."""
    on, alone = estimator("mixtral", P5), evolve(SPLIT, ep=1)

    assert in_layers(on.step(alone)) == pytest.approx(ROUNDS * all_reduce(8, 3 * MESSAGE), rel=1e-12)
    assert in_layers(on.step(evolve(alone, dispatch="per-node"))) == pytest.approx(
        ROUNDS * all_reduce(8, 2 * MESSAGE), rel=1e-12
    )


def test_shared_experts_reduce_too() -> None:
    """57 of 60 layers have experts; of them each has attention, the shared expert and 8 copies."""
    d = MODELS["latent"]
    on = estimator("latent", P5)
    rounds, message = 64 * 60 * 2, TOKENS * d.hidden * 2
    results = 1 + 3 / 60 + 57 / 60 * (1 + 8)
    found = in_layers(on.step(SPLIT), hidden=d.hidden)
    assert found == pytest.approx(rounds * all_reduce(8, results * message), rel=1e-12)
    # With all experts on every rank, the sum of shared and routed ones is one.
    alone = evolve(SPLIT, ep=1, dispatch="per-node")
    found = in_layers(on.step(alone), hidden=d.hidden)
    assert found == pytest.approx(rounds * all_reduce(8, 2 * message), rel=1e-12)


def test_whole_experts() -> None:
    """With expert_tp 1 the GPUs of a server hold different experts: no copies are reduced, and none leaves the server."""
    on = estimator("mixtral", P5)
    found = on.step(evolve(SPLIT, expert_tp=1))

    assert in_layers(found) == pytest.approx(ROUNDS * all_reduce(8, MESSAGE), rel=1e-12)
    assert found.expert == pytest.approx(ROUNDS * 2 * 2 * MESSAGE / 8 * 7 / 8 / NVLINK, rel=1e-12)
    # The same work on every rank, with one whole expert in place of an eighth of one.
    assert found.compute == on.step(SPLIT).compute
    more = on.memory(evolve(SPLIT, expert_tp=1)).weights - on.memory(SPLIT).weights
    assert more == pytest.approx(2 * 32 * MIXTRAL.expert_weights * 7 / 8, rel=1e-12)


def test_experts_over_all_ranks() -> None:
    """64 experts over tp x dp: legal with whole ones alone, an eighth of the weights, no gradients to exchange."""
    d = evolve(MIXTRAL, experts=64.0, router_weights=64.0 * 4096)
    on = evolve(estimator("mixtral", P5), dims=d)
    split, whole = evolve(SPLIT, ep=8), evolve(SPLIT, ep=64, expert_tp=1)
    with pytest.raises(RefusalError) as refused:
        on.step(evolve(SPLIT, ep=64))
    assert (refused.value.reason, refused.value.place, refused.value.hint) == (
        "experts-not-divisible",
        "ep",
        "expert_tp 1",
    )
    experts = 32 * 64 * d.expert_weights
    rest = on.memory(whole).weights - 2 * experts / 64
    assert on.memory(split).weights - 2 * experts / (8 * 8) == pytest.approx(rest, rel=1e-12)
    assert on.step(whole).total > 0.0


@pytest.mark.parametrize(("expert_tp", "sharers"), [(8, 8), (2, 32), (1, 64)])
def test_ranks_with_the_same_experts(expert_tp, sharers) -> None:
    """ZeRO shards the states of experts over dp cp tp / (ep expert_tp) ranks."""
    on = estimator("mixtral", P5)
    layout = evolve(SPLIT, ep=1, expert_tp=expert_tp)
    experts = 32 * 8 * MIXTRAL.expert_weights / expert_tp
    saved = on.memory(layout).optimizer - on.memory(evolve(layout, zero=1)).optimizer
    dense = saved - 12 * experts * (1 - 1 / sharers)
    without = on.memory(layout).optimizer - 12 * experts

    assert dense == pytest.approx(without * (1 - 1 / 8), rel=1e-9)


def test_expert_parallelism_over_part_of_tp() -> None:
    """expert_tp 2 of tp 8: pairs split an expert, so that ep may be 4 times dp."""
    on = estimator("mixtral", evolve(P5, ranks=16.0))
    layout = evolve(SPLIT, dp=2, ep=8, expert_tp=2)
    found = on.step(layout)

    # Ranks of a group are pairs: four in a server. A quarter of the copies stays in the server.
    sent = 2 * MESSAGE / 8 * max(3 / 8 / NVLINK, 4 / 8 / NETWORK)
    assert found.expert == pytest.approx(4 * ROUNDS * 2 * sent, rel=1e-12)
    # A pair gathers what both of it received.
    assert in_layers(found, rounds=4 * ENDS) == pytest.approx(
        4 * ROUNDS * (all_reduce(8, MESSAGE) + all_reduce(2, 2 * MESSAGE / 4)), rel=1e-12
    )


@pytest.mark.parametrize(
    ("changes", "reason", "place"),
    [
        ({"expert_tp": 3}, "experts-not-divisible", "expert_tp"),
        ({"expert_tp": 16}, "experts-not-divisible", "expert_tp"),
        ({"expert_tp": 0}, "not-positive", "expert_tp"),
        ({"expert_tp": -1}, "not-positive", "expert_tp"),
        ({"imbalance": 0.99}, "not-positive", "imbalance"),
        ({"capacity_factor": 0.5}, "not-positive", "capacity_factor"),
        ({"ep": 3}, "experts-not-divisible", "ep"),
    ],
)
def test_invalid_expert_layouts(changes, reason, place) -> None:
    with pytest.raises(RefusalError) as refused:
        estimator("mixtral", P5).step(evolve(SPLIT, **changes))
    assert (refused.value.reason, refused.value.place) == (reason, place)


def test_the_busiest_rank() -> None:
    """It computes and exchanges the mean times the imbalance; attention does not."""
    on = estimator("mixtral", P5)
    even, uneven = on.step(SPLIT), on.step(evolve(SPLIT, imbalance=1.2))
    flops = 2 * 2 * MIXTRAL.expert_weights * 512 * TOKENS * LAYERS * 3

    assert uneven.compute - even.compute == pytest.approx(0.2 * flops / 64 / 91.75e12, rel=1e-9)
    assert uneven.expert == pytest.approx(1.2 * even.expert, rel=1e-12)
    assert in_layers(uneven) == pytest.approx(ROUNDS * all_reduce(8, (1 + 1.2 * 2) * MESSAGE), rel=1e-12)
    assert uneven.data == even.data
    # A capacity limits the load, and is filled up to it.
    for imbalance in (1.0, 1.2, 3.0):
        padded = evolve(SPLIT, imbalance=imbalance, capacity_factor=1.25)
        assert on.step(padded) == on.step(evolve(SPLIT, imbalance=1.25))
        assert on.memory(padded) == on.memory(evolve(SPLIT, imbalance=1.25))


def test_activations_of_the_busiest_rank() -> None:
    """Inner tensors and exchanged copies; attention and the router have none of it."""
    on = estimator("mixtral", P5)
    more = on.memory(evolve(SPLIT, imbalance=1.5)).activations - on.memory(SPLIT).activations
    inner, copies = 3 * 14336 / 8, 2 * HIDDEN

    assert more == pytest.approx(32 * 0.5 * 2 * TOKENS * 2 * (inner + copies), rel=1e-9)


@pytest.mark.parametrize("efficiency", [None, FITTED])
def test_the_all_to_all_runs_beside_the_rest(efficiency) -> None:
    """A layer takes as long as the longer of both."""
    on = estimator("mixtral", P5) if efficiency is None else estimator("mixtral", P5, efficiency)
    for microbatch in (1, 2, 8):
        exposed = on.step(evolve(SPLIT, microbatch=microbatch))
        overlapped = on.step(evolve(SPLIT, microbatch=microbatch, expert_overlap=True))
        rest = exposed.compute + exposed.recompute + exposed.tensor + exposed.context
        assert overlapped.expert == pytest.approx(max(0.0, exposed.expert - rest), abs=1e-12 * exposed.total)
        assert overlapped.tensor == exposed.tensor


def test_an_ideal_step_has_the_least_traffic() -> None:
    """What is not given is as fast as software can be: no other dispatch is faster."""
    draw = random.Random(5)
    seen = 0
    while seen < 300:
        s = possible(draw)
        e, x = ESTIMATORS[s.which], s.layout
        if x.ep == 1:
            continue
        seen += 1
        least = Layout(**{n: getattr(x, n) for n in ("tp", "pp", "dp", "cp", "ep", "expert_tp", "seq", "global_batch")},
                       microbatch=x.microbatch, schedule=x.schedule, interleave=x.interleave, uneven=x.uneven)  # fmt: skip
        total = e.step(least).total
        for changes in (
            {"dispatch": "per-copy"}, {"expert_overlap": False}, {"imbalance": 1.1}, {"capacity_factor": 1.1},
        ):  # fmt: skip
            assert e.step(evolve(least, **changes)).total >= total * (1 - 1e-12), (changes, x)


def test_dense_models_have_none_of_it() -> None:
    plain = Layout(tp=8, dp=8, seq=4096, global_batch=512)
    on = estimator("llama-8b", P5)
    for changes in ({"dispatch": "per-copy"}, {"expert_overlap": False}, {"imbalance": 2.0}, {"expert_tp": 1}):
        assert on.step(evolve(plain, **changes)) == on.step(plain)
        assert on.memory(evolve(plain, **changes)) == on.memory(plain)


AXES = {
    "expert_tp": [None, 1, 2], "dispatch": ["per-node", "per-copy"], "expert_overlap": [True, False],
    "imbalance": [1.0, 1.2], "capacity_factor": [None, 1.5],
}  # fmt: skip


def test_axes_of_a_sweep() -> None:
    """Every combination is the single call, by a sweep and by rows."""
    on = estimator("mixtral", SYSTEMS[0], FITTED)
    found = sweep(on, parts=PARTS, memory=False, tp=[2, 8], ep=[1, 8], seq=2048, global_batch=256, **AXES)
    layouts = [found.layout(found.sources[0], i) for i in range(found.evaluated)]
    columns = {
        n: [getattr(x, n) for x in layouts] for n in ("tp", "dp", "ep", "dispatch", "expert_overlap", "imbalance")
    }
    columns["expert_tp"] = [x.expert_split for x in layouts]
    columns["capacity_factor"] = [float("nan") if x.capacity_factor is None else x.capacity_factor for x in layouts]
    batch = rows([on], 0, parts=PARTS, seq=2048, global_batch=256, **columns)

    assert found.evaluated == len({*layouts}) == 192
    assert (batch.code == found.result.code).all()
    for i, layout in enumerate(layouts):
        step = on.step(layout)
        assert found.result.time[i] == batch.time[i] == step.total
        for name in PARTS:
            assert found.result.parts[name][i] == batch.parts[name][i] == getattr(step, name)


def test_no_measured_step_is_faster_than_its_bound() -> None:
    """Megatron Bridge on H100 to GB300: whatever its software avoided, the ideal step is faster still."""
    table = ROOT / "catalog" / "measured" / "training_megatron_bridge.csv"
    with table.open(encoding="utf-8", newline="") as lines:
        cases = [
            c
            for c in training_cases(catalog(), list(csv.DictReader(lines)))
            if isinstance(c, TrainingCase) and c.dims.experts
        ]
    for case in cases:
        layout = evolve(case.layout, **LEAST_DISPATCH)
        ideal = step(transformer(case.dims), layout, machine(case.system, IDEAL, case.dtype)).total
        assert ideal < case.seconds, case.id
    assert len(cases) > 40


def test_deepseek_on_256_b200() -> None:
    """Measured were 19.7 s (issue 11); one exposed copy per expert would take 32.5 s, which was printed as a bound."""
    on = prepare(catalog(), "deepseek-v3", "p6-b200.48xlarge*32", dtype="fp8", calibration="none")
    layout = Layout(pp=4, dp=64, ep=32, seq=4096, global_batch=4096, zero=1, uneven=True)

    assert on.step(evolve(layout, dispatch="per-copy", expert_overlap=False)).total > 30.0
    assert on.step(layout).total < 19.7


@pytest.mark.parametrize("loads", [[1.0, 1.1, 1.5], [1.0 + i / 977 for i in range(977)]], ids=len)
def test_columns_of_few_and_of_many_loads(loads) -> None:
    on, size = estimator("mixtral", SYSTEMS[0], FITTED), 3000
    column = np.random.default_rng(2).choice(loads, size)
    # Some occur late.
    column[:1000] = 1.0
    found = rows(
        [on], 0, tp=8, dp=32, ep=8, zero=1, seq=2048, global_batch=256, imbalance=column, memory=True, block=256
    )
    for i in range(0, size, 50):
        layout = Layout(tp=8, dp=32, ep=8, zero=1, seq=2048, global_batch=256, imbalance=float(column[i]))
        assert found.memory[i] == on.memory(layout).total
        assert found.time[i] == (on.step(layout).total if found.code[i] == 0 else 0.0)
    assert (found.code == 0).any()


@pytest.mark.parametrize(
    "given", [{"imbalance": 0.5}, {"imbalance": [1.0, np.nan]}, {"capacity_factor": [1.0, np.inf]}]
)
def test_loads_that_are_none(given) -> None:
    with pytest.raises(UsageError, match="not a number of at least 1"):
        rows([estimator("mixtral", SYSTEMS[0])], 0, seq=2048, global_batch=256, **given)
    (name, values), *_ = given.items()
    with pytest.raises(UsageError, match=name):
        sweep(estimator("mixtral", SYSTEMS[0]), seq=2048, global_batch=256, **{name: values})


@pytest.mark.parametrize("schedule", ["1f1b", "zb1p", "zb2p", "zbv"])
def test_a_faster_rank_is_not_slower_where_the_all_to_all_is_exposed(schedule) -> None:
    """The passes get shorter, and the exposed part of the all-to-all longer: in neither pass alone."""
    on = estimator("mixtral", evolve(P5, levels=tuple(evolve(x, rate=x.rate / 256) for x in P5.levels)))
    layout = Layout(tp=2, pp=4, dp=8, ep=8, seq=4096, global_batch=64, schedule=schedule, recompute="full")
    exposed, total = [], []
    for faster in (1.0, 2.0, 4.0, 8.0):
        found = step(on.model, layout, evolve(on.machine, seconds_per_flop=on.machine.seconds_per_flop / faster))
        exposed.append(found.expert)
        total.append(found.total)

    assert 0.0 < exposed[0]
    assert exposed == sorted(exposed)
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(total))


def test_tokens_in_8_bit() -> None:
    """On their way to experts, with a scale of 4 bytes for 128 elements; results in 16 bit."""
    on = estimator("mixtral", evolve(P5, levels=tuple(evolve(x, latency=0.0) for x in P5.levels)))
    layout = evolve(SPLIT, dispatch="per-node", expert_overlap=False)
    wide, narrow = (on.step(evolve(layout, dispatch_dtype=dtype)) for dtype in ("bf16", "fp8"))

    assert narrow.expert / wide.expert == pytest.approx((1 + 1 / 32 + 2) / 4, rel=1e-12)
    assert narrow.tensor == wide.tensor


def test_routing_to_some_nodes_is_never_slower() -> None:
    on = estimator("latent", P5)
    layout = Layout(tp=1, dp=64, ep=64, seq=4096, global_batch=512, dispatch="per-node", expert_overlap=False)
    times = [on.step(evolve(layout, node_limit=n)).expert for n in (1, 2, 4, 8, 0)]

    assert times == sorted(times)
    assert times[2] < times[3] == times[4]
