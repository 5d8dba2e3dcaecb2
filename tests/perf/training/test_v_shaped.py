"""V-shaped schedules: their orders, what they store, and the longest paths as arrays and as numbers."""

from __future__ import annotations

import numpy as np
import pytest
from pipeline_simulation import span, v_shaped

from trnspec.perf.sweep.expressions import Recording
from trnspec.perf.sweep.tables.program import Buffers, Program
from trnspec.perf.training.v_shaped import paths, recorded_bubble, steady, usual, v_shaped_bubble
from trnspec.perf.training.v_shaped_order import order
from trnspec.perf.work.layout import V_SHAPED
from trnspec.perf.work.stages import SCHEDULES, Split, in_flight


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_orders(schedule):
    """Those of an implementation of its own, and no stage stores more than is computed for memory."""
    for p in range(2, 10):
        for m in (1, 2, p - 1, p, 2 * p, 3 * p + 1):
            orders = order(schedule, p, m)
            assert [[(k, c, i) for k, i, c, _ in one] for one in v_shaped(p, m, schedule)] == orders
        change = {"F": 1, "B": 0, "W": -1}
        stored = [np.cumsum([change[kind] for kind, *_ in one]).max() for one in orders]
        held, folded = SCHEDULES[schedule]
        assert {2 * in_flight(Split(pp=float(p), held=held, folded=folded), float(m))} == set(stored)


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_any_times(schedule):
    """Exact, and a lower bound where gradients of weights take longer than other passes."""
    draw = np.random.default_rng(3)
    for p in (3, 5, 6):
        for m in (p - 1, p + 1, steady(schedule, p), 5 * p):
            for exact in (True, False):
                f, b = (1.0 + draw.exponential(1.0, 2)) if exact else draw.uniform(0.1, 1.0, 2)
                times = {"F": float(f), "B": float(b), "W": 1.0}
                taken = 2 * m * sum(times.values())
                taken += v_shaped_bubble(V_SHAPED.index(schedule) + 1.0, float(p), float(m), *times.values())
                executed = span(v_shaped(p, m, schedule), times, folded=True)
                assert taken == pytest.approx(executed, rel=1e-12) if exact else taken <= executed * (1 + 1e-12)


def batch(rows: int) -> list[np.ndarray]:
    """Schedules, among them none, stages, among them too many, microbatches, and times."""
    draw = np.random.default_rng(4)
    whole = (draw.integers(0, 4, rows), draw.choice([1, 2, 4, 5, 99], rows), draw.integers(1, 40, rows))
    return [*(column.astype(float) for column in whole), *(draw.uniform(0.5, 3.0, rows) for _ in range(3))]


def test_arrays_are_the_single_numbers():
    columns = batch(500)
    single = [v_shaped_bubble(*map(float, row)) for row in zip(*columns, strict=True)]
    assert single == v_shaped_bubble(*columns).tolist()
    out = np.full(500, 7.0)
    assert out is v_shaped_bubble(*columns, out=out)
    assert single == out.tolist()
    tall, wide = columns[2][:10, None], [column[:7] for column in columns[3:]]
    rows = v_shaped_bubble(2.0, 4.0, tall, *wide)
    assert rows.tolist() == [[v_shaped_bubble(2.0, 4.0, m, *x) for x in zip(*wide, strict=True)] for m in tall[:, 0]]


def test_what_may_be_in_either_pass_is_where_the_bubble_is_shortest():
    draw = np.random.default_rng(6)
    columns = [*batch(60), draw.uniform(0.0, 1.0, 60) * draw.integers(0, 2, 60)]
    columns[3] += columns[6]
    found = v_shaped_bubble(*columns)
    assert [v_shaped_bubble(*map(float, row)) for row in zip(*columns, strict=True)] == found.tolist()
    for row, bubble in zip(zip(*columns, strict=True), found, strict=True):
        *schedule, f, b, w, either = map(float, row)
        moved = np.linspace(0.0, either, 200)
        others = v_shaped_bubble(*schedule, f - moved, b + moved, w)
        assert bubble <= others.min() * (1 + 1e-12)
        assert bubble >= others.min() - 0.02 * schedule[1] * (f + b)


def test_it_is_recorded():
    draw = np.random.default_rng(7)
    columns = [*batch(500), draw.uniform(0.0, 0.5, 500) * draw.integers(0, 2, 500)]
    # One that has not occurred before, and whose paths are not found ahead.
    columns[1][:3], columns[2][:3] = 9.0, 13.0
    recording = Recording()
    program = Program.of([recorded_bubble(*(recording.column(f"c{i}") for i in range(7)))])
    bound = program.bound(500, Buffers())
    for i, column in enumerate(columns):
        bound.columns[f"c{i}"][:] = column
    assert v_shaped_bubble(*columns).tolist() == bound.run()[0].tolist()


@pytest.mark.parametrize("schedule", V_SHAPED)
@pytest.mark.parametrize("stages", [2, 4, 5, 8])
def test_usual_paths(schedule, stages):
    """Where B >= F >= W they are as long as the longest of all, however many microbatches follow; they are few."""
    every = paths(schedule, stages, steady(schedule, stages))
    some = usual(every)
    assert set(some) <= set(every)
    assert len(some) < len(every)
    times = np.cumsum(np.random.default_rng(8).exponential(1.0, (1000, 3)), axis=1)[:, [1, 2, 0]]
    for more in (0.0, 1.0, 1000.0):
        longest, found = (
            ((np.array(x)[:, :3] + more * np.array(x)[:, 3:]) @ times.T).max(axis=0) for x in (every, some)
        )
        assert found == pytest.approx(longest, rel=1e-12)


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_no_pass_that_takes_less_makes_a_step_longer(schedule):
    draw = np.random.default_rng(5)
    shape = V_SHAPED.index(schedule) + 1.0
    for _ in range(200):
        times = (1.0 + draw.exponential(1.0, 3)).tolist()
        p, m = float(draw.integers(2, 9)), float(draw.integers(1, 30))
        taken = 2 * m * sum(times) + v_shaped_bubble(shape, p, m, *times)
        for i in range(3):
            less = [t * (0.9 if i == j else 1.0) for j, t in enumerate(times)]
            assert 2 * m * sum(less) + v_shaped_bubble(shape, p, m, *less) <= taken * (1 + 1e-12)
