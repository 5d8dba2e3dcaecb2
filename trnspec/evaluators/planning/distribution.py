"""The distribution of a time whose 80 % interval and median are known."""

from __future__ import annotations

import math
from statistics import NormalDist

from attrs import frozen

_NORMAL = NormalDist()
NORMAL_90 = _NORMAL.inv_cdf(0.9)
"""Standard deviations above the median of the 90 % quantile: the ends of an 80 % interval."""


@frozen
class Distribution:
    """A log-normal distribution in two pieces, below and above its median.

    Computed times are near the median of measured ones, while long errors are more frequent than short ones, so that the
    median is not the middle of the interval.

    Attributes:
        median: The median.
        below: Standard deviation of the logarithm below it.
        above: The same above it.
    """

    median: float
    below: float
    above: float

    @classmethod
    def of(cls, low: float, median: float, high: float) -> Distribution:
        """That with an 80 % interval; a median outside is its nearest end."""
        median = min(max(median, low), high)
        below, above = (max(math.log(ratio), _LEAST) / NORMAL_90 for ratio in (median / low, high / median))
        return cls(median, below, above)

    def at(self, z: float) -> float:
        """The value at a number of standard deviations above the median."""
        return self.median * math.exp(z * (self.above if z > 0.0 else self.below))

    def quantile(self, probability: float) -> float:
        """The value that is not exceeded with some probability."""
        return self.at(_NORMAL.inv_cdf(probability))

    def probability(self, value: float) -> float:
        """The probability of values up to ``value``."""
        far = math.log(value / self.median)
        return _NORMAL.cdf(far / (self.above if far > 0.0 else self.below))

    @property
    def mean(self) -> float:
        """The expected value."""
        halves = ((self.below, -self.below), (self.above, self.above))
        return self.median * sum(math.exp(0.5 * s * s) * _NORMAL.cdf(z) for s, z in halves)


_LEAST = 1e-9
"""The least logarithm of an end over the median."""
