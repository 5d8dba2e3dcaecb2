"""A pool that computes prompts and one that decodes, against the simulation of both by events."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from trnspec.perf.serving.load import Replica
from trnspec.perf.serving.pools import Fleet, erlang_c, least
from trnspec.perf.serving.replay import poisson, replay


def fleet(prefills: int = 3, replicas: int = 2, transfer: float = 0.02) -> Fleet:
    steps = 0.01 + 0.0005 * np.arange(1.0, 65.0)
    decode = Replica(prompt=0.0, prompt_squared=0.0, first=0.0, steps=steps, output=200.0)
    prompt = 0.3
    before = Replica(prompt=prompt, prompt_squared=prompt**2, first=0.01, steps=np.ones(1), output=200.0)
    return Fleet(replica=decode, replicas=replicas, prefill=before, prefills=prefills, transfer=transfer)


@pytest.mark.parametrize("prefills", [1, 3, 8])
@pytest.mark.parametrize(("utilization", "error"), [(0.3, 0.12), (0.7, 0.17)])
def test_percentiles_are_those_of_a_simulation(prefills: int, utilization: float, error: float) -> None:
    pools = fleet(prefills)
    rate = utilization * pools.saturation
    state = pools.at(rate)
    assert state is not None
    served = replay(pools, poisson(rate, 3000, output=200.0, seed=prefills), most=pools.replicas)

    for which in (50, 95):
        assert (state.ttft(which), state.tpot(which)) == pytest.approx(served.percentiles(which), rel=error)


def test_the_probability_of_a_wait_is_that_of_erlang() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(500, 400.0) < 1e-4
    # The mean wait for one server with a constant time, by Pollaczek and Khinchine.
    state, load = fleet(prefills=1).at(0.7 / 0.3), 0.7
    assert state._prefill_waits(state.fleet.prefill).mean() == pytest.approx(0.3 * load / 2 / (1 - load), rel=0.02)


def test_no_steady_state_beyond_the_saturation_of_either_pool() -> None:
    pools = fleet()

    assert pools.saturation == pytest.approx(3 / 0.3)
    assert pools.at(1.001 * pools.saturation) is None
    assert evolve(pools, prefills=1000).at(2.001 * pools.replica.saturation) is None


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 0.85), st.floats(0.05, 0.85), st.floats(50.0, 99.0))
def test_more_requests_take_longer(first: float, second: float, which: float) -> None:
    pools = fleet()
    low, high = sorted((first, second))
    less, more = (pools.at(share * pools.saturation) for share in (low, high))
    assert less is not None
    assert more is not None

    assert less.ttft(which) <= more.ttft(which) * (1 + 1e-9)
    assert less.tpot(which) <= more.tpot(which) * (1 + 1e-9)


@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 300))
def test_the_least_number(low: int, threshold: int, most: int) -> None:
    expected = next((n for n in range(low, most + 1) if n >= threshold), None)

    assert least(lambda n: n >= threshold, low, most) == expected
