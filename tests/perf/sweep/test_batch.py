"""A batch and a sweep give the same bits as single calls, whatever their order and blocks."""

import itertools
import random
import re

import numpy as np
import pytest
from attrs import asdict, evolve

from tests.support.engine import ESTIMATORS, FITTED, SYSTEMS, estimator, gpt, possible, sample, system
from tests.support.tables import tables
from trnspec.errors import RefusalError, UsageError
from trnspec.perf.sweep.batch import REASONS, Best, Pareto, Top, rows, sweep
from trnspec.perf.sweep.grid import AXES, grid
from trnspec.perf.training.step import PARTS
from trnspec.perf.work.layout import OPTIMIZERS, Layout
from trnspec.perf.work.transformer import transformer

COLUMNS = (
    *("tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "schedule", "interleave", "zero"),
    *("recompute", "sequence_parallel", "overlap", "flash", "fused_loss", "optimizer"),
    *("uneven", "dispatch_dtype", "node_limit"),
    *("expert_tp", "dispatch", "expert_overlap", "imbalance", "capacity_factor"),
)


def columns(samples) -> dict:
    return {name: np.array([getattr(s.layout, name) for s in samples]) for name in COLUMNS}


def single(e, layout, *, memory: bool = True) -> tuple[str, float, float]:
    """The reason, the time and the bytes that the single call gives."""
    try:
        found = e.step(layout)
    except RefusalError as refused:
        return refused.reason, 0.0, 0.0
    needs = e.memory(layout).total if memory else 0.0
    if needs > e.system.capacity:
        return "does-not-fit", 0.0, needs
    return "", found.total, needs


@pytest.fixture(scope="module")
def samples():
    draw = random.Random(7)
    return [possible(draw) if i % 2 else sample(draw, strange=0.5) for i in range(1000)]


@pytest.fixture(scope="module")
def singles(samples):
    return [single(ESTIMATORS[s.which], s.layout) for s in samples]


def test_rows_are_single_calls(samples, singles) -> None:
    which = np.array([s.which for s in samples])
    found = rows(ESTIMATORS, which, memory=True, parts=PARTS, **columns(samples))

    expected = [
        (REASONS[code], t, m) for code, t, m in zip(found.code, found.time.tolist(), found.memory.tolist(), strict=True)
    ]
    assert expected == singles
    reasons = {reason for reason, _, _ in expected}
    assert reasons == set(REASONS) - {"unknown-figure", "slower"}
    for i in np.flatnonzero(found.code == 0)[:200]:
        step = ESTIMATORS[samples[i].which].step(samples[i].layout)
        assert [found.parts[name][i] for name in PARTS] == [getattr(step, name) for name in PARTS]


def test_order_and_blocks_do_not_change_results(samples) -> None:
    some = samples[:300]
    which, given_ = np.array([s.which for s in some]), columns(some)
    whole = rows(ESTIMATORS, which, **given_)
    for block in (90, 100_000):
        order = np.random.default_rng(block).permutation(len(some))
        mixed = rows(ESTIMATORS, which[order], block=block, **{n: c[order] for n, c in given_.items()})

        assert (mixed.time == whole.time[order]).all(), block
        assert (mixed.code == whole.code[order]).all(), block


def test_one_value_for_all_rows(samples) -> None:
    first = next(s for s in samples if not s.reason)
    plain = {name: getattr(first.layout, name) for name in COLUMNS}
    expected = single(ESTIMATORS[first.which], first.layout)
    one = rows([ESTIMATORS[first.which]], 0, memory=True, **plain)
    assert (REASONS[one.code[0]], one.time[0], one.memory[0]) == expected

    zeros = rows(ESTIMATORS, first.which, memory=True, **plain | {"zero": np.array([0, first.layout.zero, 3])})
    for i, zero in enumerate((0, first.layout.zero, 3)):
        reported = single(ESTIMATORS[first.which], evolve(first.layout, zero=zero))
        assert (REASONS[zeros.code[i]], zeros.time[i], zeros.memory[i]) == reported


def test_no_rows() -> None:
    none = np.array([], dtype=np.int64)
    found = rows(ESTIMATORS, none, seq=none, global_batch=8)

    assert (len(found.time), len(found.code)) == (0, 0)


SMALL = {
    "tp": [1, 4, 3], "pp": [1, 4], "cp": [1, 2], "ep": [1, 4], "seq": [2048, 4096], "microbatch": [1, 2],
    "schedule": ["1f1b", ("interleaved", 2), "zbv", ("zb1p", 2)], "sequence_parallel": [False, True],
    "recompute": ["none", "selective", "operators", "full"], "zero": [0, 1, 3], "global_batch": [64, 96, 512],
    "overlap": [False, True], "optimizer": ["adam", "adam-bf16"],
    "fused_loss": [False, True],
}  # fmt: skip
SWEPT = tuple(
    estimator(name, on, efficiency)
    for name, on, efficiency in (
        ("llama-8b", SYSTEMS[0], FITTED), ("latent", SYSTEMS[2], FITTED), ("every-second", SYSTEMS[1], FITTED),
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def whole():
    return sweep(SWEPT, parts=("bubble", "data"), **SMALL)


def test_sweep_is_single_calls(whole) -> None:
    size, found = whole.evaluated // len(whole.sources), whole.result
    assert whole.evaluated == len(found.time) == size * len(SWEPT) == 3 * 221_184
    for i in random.Random(1).sample(range(whole.evaluated), 3000):
        which, number = divmod(i, size)
        layout = whole.layout(whole.sources[which], number)
        expected = single(SWEPT[which], layout)
        assert (REASONS[found.code[i]], found.time[i], found.memory[i]) == expected, layout
        if not expected[0]:
            step = SWEPT[which].step(layout)
            assert (found.parts["bubble"][i], found.parts["data"][i]) == (step.bubble, step.data)
    counted = {r: int((found.code == c).sum()) for c, r in enumerate(REASONS) if c}
    assert whole.rejected == {r: n for r, n in counted.items() if n}


def test_numbers_of_a_sweep() -> None:
    """A configuration's number counts the axes in their order, the last one fastest."""
    made = grid(**SMALL)
    every = itertools.product(*(made.axes[name] for name in AXES))
    for number, values in zip(range(3000), every, strict=False):
        chosen = dict(zip(AXES, values, strict=True))
        layout = made.layout(number, 256)
        schedule = chosen.pop("schedule")
        assert (layout.schedule, layout.interleave) == schedule
        assert {name: getattr(layout, name) for name in chosen} == chosen


def test_top_best_pareto(whole) -> None:
    found, size = whole.result, whole.evaluated // len(whole.sources)
    possible_ = np.flatnonzero(found.code == 0)
    fastest = possible_[np.argsort(found.time[possible_], kind="stable")]
    for count in (1, 500):
        top = sweep(SWEPT, keep=Top(count), block=2000, **SMALL).result
        assert (top.which * size + top.number).tolist() == fastest[:count].tolist()
        assert (top.time == found.time[fastest[:count]]).all()
        assert (top.memory == found.memory[fastest[:count]]).all()
        best = sweep(SWEPT, keep=Best(count), **SMALL).result
        expected = [i for w in range(3) for i in fastest[fastest // size == w][:count]]
        assert (best.which * size + best.number).tolist() == expected

    front = sweep(SWEPT, keep=Pareto(), block=3000, **SMALL).result
    kept = set((front.which * size + front.number).tolist())
    assert len(kept) == len(front) > 3
    assert (np.diff(front.time) > 0).all()
    assert (np.diff(front.memory) < 0).all()
    for i in possible_:
        # Each is beaten or equalled by one of the front.
        assert ((front.time <= found.time[i]) & (front.memory <= found.memory[i])).any()


def test_pareto_of_other_costs() -> None:
    axes = SMALL | {"zero": [0, 1]}
    found = sweep(SWEPT[0], keep=Pareto(lambda b: (b.time, b.parts["data"])), parts=("data",), **axes)
    every = sweep(SWEPT[0], parts=("data",), **axes).result

    for i in found.result.number:
        beaten = (every.code == 0) & (every.time <= every.time[i]) & (every.parts["data"] < every.parts["data"][i])
        assert not beaten.any()
    assert len(found.result)


def test_without_memory() -> None:
    found = sweep(SWEPT[0], memory=False, tp=[1, 8], seq=2048, global_batch=256)

    assert [REASONS[c] for c in found.result.code] == ["", ""]
    assert len(found.result.memory) == 0
    assert sweep(SWEPT[0], tp=[1, 8], seq=2048, global_batch=256).rejected == {"does-not-fit": 2}


def test_batch_without_fitting_layouts() -> None:
    for keep in (Top(3), Best(), Pareto()):
        found = sweep(SWEPT[0], keep=keep, tp=3, seq=2048, global_batch=256)
        assert len(found.result) == 0
        assert found.layouts() == []
        assert found.rejected == {"rank-count": 1}


def test_records_of_kept_rows() -> None:
    found = sweep(SWEPT[0], keep=Top(3), tp=[4, 8], pp=4, zero=1, seq=2048, global_batch=256)
    records, layouts = found.records(), found.layouts()

    assert len(records) == 2
    for record, (e, layout) in zip(records, layouts, strict=True):
        step, needs = e.step(layout).total, e.memory(layout).total
        assert record == {
            "model": e.name,
            "system": e.system.name,
            **asdict(layout),
            "step_time": step,
            "memory": needs,
        }


def test_a_context_is_reported_before_a_figure_that_is_missing() -> None:
    on = system((("chip", 2.0, 2e11, 0.0), ("server", 32.0, 0.0, 0.0)), 32)
    e, layout = estimator("encoder", on), Layout(dp=32, seq=8192, global_batch=32)
    assert ("context", 0.0, 0.0) == single(e, layout)
    assert ["context"] == [REASONS[c] for c in rows([e], 0, dp=32, seq=8192, global_batch=32).code]


def test_unknown_figure() -> None:
    on = system((("chip", 2.0, 2e11, 0.0), ("server", 32.0, 0.0, 0.0)), 32)
    e = estimator("llama-8b", on)
    expected = sweep(e, memory=False, tp=[1, 2], pp=[1, 2], cp=[1, 2], seq=2048, global_batch=32)
    assert expected.rejected == {"unknown-figure": 8}

    alone = estimator("llama-8b", system((("chip", 2.0, 2e11, 0.0),), 2))
    assert sweep(alone, memory=False, tp=[1, 2], seq=2048, global_batch=32).rejected == {}
    assert rows([e], 0, tp=2, dp=16, seq=2048, global_batch=32).code.tolist() == [REASONS.index("unknown-figure")]


@pytest.mark.parametrize(("tp", "dp"), [(30, 3), (15, 3), (11, 3), (30, 1), (1, 48)])
def test_equal_shares_use_no_further_link(tp, dp) -> None:
    """30 times 1/90 is above 1/3 by its last bit, and yet three groups of 30 ranks fill a server of 90."""
    on = system((("server", float(tp * dp), 1e11, 0.0), ("ultraserver", 2.0 * tp * dp, 0.0, 0.0)), tp * dp)
    d = gpt(24, 330 * 8, 330)
    e = evolve(estimator("gpt", on), dims=d, model=transformer(d))
    layout = Layout(tp=tp, dp=dp, seq=2048, global_batch=dp)

    found = rows([e], 0, tp=tp, dp=dp, seq=2048, global_batch=dp)
    assert REASONS[found.code[0]] == ""
    assert e.step(layout).total == found.time[0] > 0.0


# Misuse.

ON_ONE = tuple(estimator(name, SYSTEMS[0]) for name in ("llama-8b", "latent", "gpt"))


@pytest.mark.parametrize(("given_", "message"), tables(__file__)["misuse of a sweep"])
def test_misuse_of_a_sweep(given_, message) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        sweep(ON_ONE[0], **{"seq": 2048, "global_batch": 8} | given_)


def test_a_sweep_needs_seq() -> None:
    with pytest.raises(UsageError, match="a sweep needs the axis seq"):
        sweep(ON_ONE[0], global_batch=8)


@pytest.mark.parametrize(
    ("which", "given_", "message"),
    [
        *tables(__file__)["misuse of a batch"],
        (0, {"tp": np.array([1, 2]), "pp": np.array([1, 2, 3])}, "different lengths: 2, 3"),
        (0, {"tp": float("nan")}, "tp is nan; expected an integer"),
    ],
)
def test_misuse_of_a_batch(which, given_, message) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        rows(ON_ONE, which, **{"seq": 2048, "global_batch": 8} | given_)


@pytest.mark.parametrize(
    ("name", "highest"),
    [
        *(("zero", 3), ("node_limit", 63), ("schedule", 7), ("recompute", 3), ("optimizer", len(OPTIMIZERS) - 1)),
        *((name, 1) for name in ("dispatch", "dispatch_dtype", "uneven", "overlap", "flash", "expert_overlap")),
    ],
)
def test_the_highest_value_of_a_column(name, highest) -> None:
    for value in (highest, [0, highest]):
        assert len(rows(ON_ONE, 0, seq=2048, global_batch=8, **{name: value}).code) in (1, 2)
    for value in (highest + 1, -1, [0, highest + 1], [-1, 0]):
        with pytest.raises(UsageError, match=f"^{name} is -?\\d+; expected"):
            rows(ON_ONE, 0, seq=2048, global_batch=8, **{name: value})


def test_a_batch_needs() -> None:
    with pytest.raises(UsageError, match="a batch needs the column seq"):
        rows(ON_ONE, 0, global_batch=8)
    with pytest.raises(UsageError, match="a batch needs an estimator"):
        rows((), 0, seq=8, global_batch=8)
