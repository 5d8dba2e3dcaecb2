"""Goodput: the optimum interval is one, and the expected time is that of a simulated run."""

import csv
import math
import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import DATA
from trnspec.perf import goodput as goodputs

HOUR = 3600.0


def expected_time(work: float, interval: float, checkpoint: float, restart: float, mtbf: float) -> float:
    """Daly 2006, equation 20."""
    return mtbf * math.exp(restart / mtbf) * math.expm1((interval + checkpoint) / mtbf) * work / interval


@given(st.floats(1.0, 600.0), st.floats(1.0, 1000.0), st.floats(0.0, 1800.0))
def test_no_other_interval_is_shorter(checkpoint: float, hours: float, restart: float) -> None:
    """Within 0.1 %, where checkpoints are short beside the time between failures."""
    mtbf, work = hours * HOUR, 1e8
    best = goodputs.goodput(work, mtbf=mtbf, checkpoint=checkpoint, restart=restart)

    for factor in (0.5, 0.8, 1.25, 2.0):
        other = expected_time(work, best.interval * factor, checkpoint, restart, mtbf)
        assert best.total <= other * 1.001


def test_the_expected_time_is_that_of_a_simulated_run() -> None:
    random.seed(11)
    mtbf, checkpoint, restart, parts = 8000.0, 60.0, 300.0, 5000
    interval = goodputs.optimal_interval(checkpoint, mtbf)
    elapsed, failure = 0.0, random.expovariate(1.0 / mtbf)
    for _ in range(parts):
        while elapsed + interval + checkpoint > failure:
            # A failure during a restart begins another one.
            elapsed = failure
            failure = elapsed + random.expovariate(1.0 / mtbf)
            while elapsed + restart > failure:
                elapsed = failure
                failure = elapsed + random.expovariate(1.0 / mtbf)
            elapsed += restart
        elapsed += interval + checkpoint
    expected = goodputs.goodput(parts * interval, mtbf=mtbf, checkpoint=checkpoint, restart=restart)

    assert elapsed == pytest.approx(expected.total, rel=0.03)
    assert elapsed / mtbf == pytest.approx(expected.failures, rel=0.03)


def test_spare_servers_are_a_quantile() -> None:
    """Values of tables of the Poisson distribution, and its normal limit."""
    assert [goodputs.spare_servers(mean) for mean in (0.0, 0.05, 1.0, 5.0, 10.0)] == [0, 0, 3, 9, 15]
    assert goodputs.spare_servers(499.0) == pytest.approx(goodputs.spare_servers(501.0), abs=4)


def test_production_factor() -> None:
    """Independent log-normal errors: the variances of the logarithms add up."""
    estimate, factor = NormalDist(0.0, 0.3), goodputs.ProductionFactor(1.5, 0.4)
    z = NormalDist().inv_cdf(0.9)
    step = (10.0, 10.0 * math.exp(-z * estimate.stdev), 10.0 * math.exp(z * estimate.stdev))
    value, low, high = factor.applied(step)

    assert value == 15.0
    assert math.log(high / value) == pytest.approx(z * 0.5)
    assert math.log(value / low) == pytest.approx(z * 0.5)
    assert goodputs.ProductionFactor(1.0).applied(step) == pytest.approx(step)


def test_mean_of_a_production_factor_and_an_mfu() -> None:
    """Of equal weights: the geometric mean of twice the step, and of the step that has the MFU; half of the error of the step."""
    half, step = goodputs.ProductionFactor(2.0, weight=0.5, mfu=30.0), (10.0, 10.0 / 4.0, 10.0 * 9.0)

    assert half.applied(step, mfu=60.0) == pytest.approx((20.0, 20.0 / 2.0, 20.0 * 3.0))
    assert half.applied(step, mfu=15.0)[0] == pytest.approx(10.0)


def test_published_failure_rates() -> None:
    """Of servers of eight GPUs by run: 80 % are in the interval, which has the rate that is taken where none is given."""
    rates: dict[str, float] = {}
    with (DATA / "runs_reliability.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["id"] in {"llama3-405b-unexpected", "opt175b-hardware", "bloom-gpu", "meta-rsc1", "ft-hsdp"}:
                rates[row["id"]] = float(row["rate_per_1000_node_days"])
    low, high = goodputs.FAILURE_RATES

    assert len(rates) == 5
    assert [name for name, rate in rates.items() if not low <= rate <= high] == ["opt175b-hardware"]
    assert 8 * 24_000 / goodputs.CHIP_HOURS_PER_FAILURE == pytest.approx(rates["llama3-405b-unexpected"], rel=0.01)


def test_goodput_of_llama_3_405b() -> None:
    """More than 90 % (Grattafiori et al. 2024, section 3.3.4); the worst rate with the slowest restarts would be 61 %."""
    chips, checkpoint = 16_384, 405e9 * 14 / (2_048 * goodputs.CHECKPOINT_RATE_PER_SERVER)

    def run(hours: float, restart: float) -> goodputs.Goodput:
        return goodputs.goodput(54 * 86_400.0, mtbf=hours * HOUR / chips, checkpoint=checkpoint, restart=restart)

    usual = run(goodputs.CHIP_HOURS_PER_FAILURE, goodputs.RESTART)
    often, seldom = goodputs.CHIP_HOURS_PER_FAILURE_ENDS
    failures = run(seldom, goodputs.RESTART), run(often, goodputs.RESTART)
    restarts = tuple(run(goodputs.CHIP_HOURS_PER_FAILURE, restart) for restart in goodputs.RESTART_ENDS)
    low, high = goodputs.total_interval(usual, (failures, restarts))

    assert usual.share == pytest.approx(0.92, abs=0.01)
    assert usual.work / low == pytest.approx(0.96, abs=0.01)
    assert usual.work / high == pytest.approx(0.78, abs=0.01)
    assert run(often, goodputs.RESTART_ENDS[1]).share == pytest.approx(0.61, abs=0.01)
    assert goodputs.total_interval(usual, [(usual, usual)]) == (usual.total, usual.total)
