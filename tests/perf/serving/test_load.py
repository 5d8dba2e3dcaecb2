"""The queueing model of a replica against the simulation by events, which :mod:`test_replay` compares with single steps."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import replica
from trnspec.perf.serving.load import Loaded, Replica, loaded
from trnspec.perf.serving.replay import Requests, poisson, serve_all


def simulated(made: Replica, requests: Requests, which: int) -> tuple[float, float]:
    """Percentiles of TTFT and TPOT of requests that are served one by one, without the first ones."""
    return serve_all(made, requests, requests.arrivals).percentiles(which, warm=0.1)


@pytest.mark.parametrize(("utilization", "error"), [(0.3, 0.15), (0.6, 0.15), (0.8, 0.3)])
@pytest.mark.parametrize(
    "made",
    [
        replica(), replica(prompt=0.3, output=100), replica(prompt=0.01, base=0.02, each=0.0, output=300),
        replica(shared=1.0), replica(shared=4.0),
        replica(prompt=0.02, base=0.02, each=0.0001, output=300, shared=8.0),
    ],
    ids=["balanced", "long-prompts", "reading-weights", "one-chunk", "four-chunks", "eight-chunks"],
)  # fmt: skip
def test_percentiles_are_those_of_a_simulation(made: Replica, utilization: float, error: float) -> None:
    """Median and 95th percentile; near saturation the wait for a place is rare and long, so its percentile is not compared."""
    rate = utilization * made.saturation
    state = loaded(made, rate)
    assert isinstance(state, Loaded)
    requests = poisson(rate, 3000, output=made.output, seed=5)

    for which in (50, 95):
        ttft, tpot = simulated(made, requests, which)
        if which == 50 or utilization < 0.7:
            assert state.ttft(which) == pytest.approx(ttft, rel=error, abs=0.01)
        assert state.tpot(which) == pytest.approx(tpot, rel=error + 0.02 * (which == 95))


def test_the_distribution_of_outputs_matters_little() -> None:
    made = replica()
    rate = 0.6 * made.saturation
    state = loaded(made, rate)
    assert state is not None
    requests = poisson(rate, 4000, output=200.0, seed=8)
    lengths = np.ceil(2.0 + np.random.default_rng(8).exponential(198.0, 4000))

    assert state.tpot(50) == pytest.approx(simulated(made, evolve(requests, outputs=lengths), 50)[1], rel=0.15)


def test_no_steady_state_beyond_saturation() -> None:
    made = replica()

    assert loaded(made, made.saturation) is None
    assert loaded(made, 0.99 * made.saturation) is not None


@settings(max_examples=30, deadline=None)
@given(st.floats(0.02, 0.8), st.floats(0.02, 0.8), st.floats(50.0, 99.0), st.sampled_from([0.0, 1.0, 4.0]))
def test_more_requests_take_longer(first: float, second: float, which: float, shared: float) -> None:
    made = replica(shared=shared)
    low, high = sorted((first, second))
    less, more = (loaded(made, share * made.saturation) for share in (low, high))
    assert less is not None
    assert more is not None

    assert less.ttft(which) <= more.ttft(which) * (1 + 1e-9)
    assert less.tpot(which) <= more.tpot(which) * (1 + 1e-9)


@given(st.integers(1, 32), st.floats(0.0, 0.05), st.sampled_from([0.0, 1.0]))
def test_full_passes_saturate_a_replica(packed: int, fixed: float, shared: float) -> None:
    """A request takes its prompt, its share of the fixed time of a pass, and its share of decode steps."""
    made = evolve(replica(shared=shared), packed=packed, fixed=fixed)
    each = 0.08 + fixed / packed
    numbers = range(1, made.most + 1)
    best = min(max(each + 199 * made.steps[n - 1] / n, each + shared / packed * made.steps[n - 1]) for n in numbers)

    assert made.each == pytest.approx(each)
    assert made.saturation == pytest.approx(1.0 / best)


@given(st.floats(0.5, 2.0), st.floats(0.5, 2.0), st.sampled_from([0.0, 1.0]))
def test_factors_of_times(prompts: float, steps: float, shared: float) -> None:
    """TTFT without load has the factor of prompts; where prompts share steps, the server is busy by that of steps."""
    made = evolve(replica(shared=shared), first=0.5, fixed=0.01)
    slow = made.slower(prompts, steps)

    assert slow.prompt == pytest.approx(0.08 * (steps if shared else prompts))
    assert slow.prompt + slow.fixed + slow.first == pytest.approx(prompts * 0.59)
    assert slow.steps.tolist() == pytest.approx((steps * made.steps).tolist())
