"""V-shaped schedules: their orders, what they store, and their bubble as arrays and as numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.perf.oracles.pipelines import span, v_shaped
from tests.support.engine import layout
from trnspec.perf.training.bubble import v_shaped_bubble
from trnspec.perf.training.pass_order import order
from trnspec.perf.work.layout import V_SHAPED
from trnspec.perf.work.stages import in_flight


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_orders(schedule):
    """Those of an implementation of its own, and no stage stores more than is computed for memory."""
    for p in range(2, 10):
        for m in (1, 2, p - 1, p, 2 * p, 3 * p + 1):
            orders = order(schedule, p, m)
            assert [[(k, c, i) for k, i, c, _ in one] for one in v_shaped(p, m, schedule)] == orders
        change = {"F": 1, "B": 0, "W": -1}
        stored = [np.cumsum([change[kind] for kind, *_ in one]).max() for one in orders]
        assert {2 * in_flight(layout(pp=p, schedule=schedule, microbatches=m))} == set(stored)


def executed(schedule: str, p: int, m: int, times: dict[str, float], output: tuple[float, float]) -> float:
    """The time of all passes, event by event, with the output in the second chunk of the first stage."""
    outputs = {"F": output[0], "B": output[1], "W": 0.0}

    def lasting(one: tuple[str, int, int, int]) -> float:
        kind, _, chunk, stage = one
        return times[kind] + outputs[kind] * (stage == 0 and chunk == 1)

    return span(v_shaped(p, m, schedule), {}, is_v_shaped=True, lasting=lasting)


def taken(schedule: str, p: int, m: int, times: dict[str, float], output: tuple[float, float]) -> float:
    """The same by the bubble."""
    bubble = v_shaped_bubble(V_SHAPED.index(schedule) + 1.0, float(p), float(m), *times.values(), 0.0, *output)
    return 2 * m * sum(times.values()) + m * sum(output) + bubble


@pytest.mark.parametrize("schedule", V_SHAPED)
def test_the_output_is_on_the_longest_path_as_often_as_that_passes_it(schedule):
    """Any output between nothing and several chunks, with a collective or without, few microbatches and many."""
    draw = np.random.default_rng(9)
    for _ in range(40):
        p = int(draw.integers(2, 7))
        m = int(draw.integers(1, 7 * p))
        f, b = 1.0 + draw.exponential(1.0, 2) * draw.integers(0, 2, 2)
        head = 10.0 ** draw.uniform(-2.0, 1.3)
        ends = head * draw.uniform() * draw.integers(0, 2)
        times, output = {"F": float(f), "B": float(b), "W": 1.0}, (head / 3 + ends / 2, head * 2 / 3 + ends / 2)
        expected = executed(schedule, p, m, times, output)
        assert taken(schedule, p, m, times, output) == pytest.approx(expected, rel=1e-12), (p, m, times, output)
        # An output that adds to everything else would be too slow.
        assert expected <= taken(schedule, p, m, times, (0.0, 0.0)) + m * sum(output) + 1e-9
