"""A log-normal distribution in two pieces: its interval, its median, and its mean against a sum over quantiles."""

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.evaluators.planning.distribution import Distribution

ENDS = st.tuples(st.floats(0.1, 10.0), st.floats(1.01, 8.0), st.floats(1.01, 8.0))


@given(ENDS, st.floats(0.01, 0.99))
def test_the_interval_has_80_percent_and_the_median_half(ends: tuple[float, float, float], share: float) -> None:
    median, slower, faster = ends
    one = Distribution.of(median / faster, median, median * slower)
    values = (median / faster, median, median * slower)

    assert [one.quantile(p) for p in (0.1, 0.5, 0.9)] == pytest.approx(values)
    assert [one.probability(value) for value in values] == pytest.approx([0.1, 0.5, 0.9])
    assert one.probability(one.quantile(share)) == pytest.approx(share)
    assert one.at(NormalDist().inv_cdf(share)) == pytest.approx(one.quantile(share))


@given(ENDS)
def test_the_mean_is_the_sum_over_quantiles(ends: tuple[float, float, float]) -> None:
    median, slower, faster = ends
    one = Distribution.of(median / faster, median, median * slower)
    step = 0.01
    points = [-9.0 + (n + 0.5) * step for n in range(1800)]
    mean = sum(one.at(z) * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) * step for z in points)

    assert one.mean == pytest.approx(mean, rel=1e-4)


@pytest.mark.parametrize(("median", "nearest"), [(0.5, 1.0), (1.5, 1.5), (3.0, 2.0)])
def test_a_median_outside_is_the_nearest_end(median: float, nearest: float) -> None:
    assert Distribution.of(1.0, median, 2.0).median == nearest
