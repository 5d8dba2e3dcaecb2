"""From the step of a benchmark to a long run: production steps, failures, checkpoints and restarts.

A benchmark step is tuned, and its layout is the best of many by an estimate, which favours those whose error is favourable.
Published runs take longer by a factor, the production factor, which has a log-normal spread.

A run of ``T`` seconds of work on a system with a mean time between failures ``M`` writes a checkpoint, which takes ``C``
seconds, after every ``t`` seconds of work. After a failure it restarts, which takes ``R`` seconds, and repeats the work
since the last checkpoint. Failures are independent, with a constant rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from attrs import frozen

CHIP_HOURS_PER_FAILURE = 16384 * 54 * 24 / 419
"""Chip hours between interruptions of training, where none is given.

Llama 3 405B on 16,384 H100 had 419 unexpected interruptions in 54 days (Grattafiori et al. 2024, arXiv 2407.21783, section
3.3.4), 3.8 per 1,000 days of a server of 8 chips; 13 % of them are of software, and hangs are among them. Trainium: not published.
"""
FAILURE_RATES = (2.0, 8.0)
"""Failures per 1,000 days of a server of 8 chips, the ends of an interval.

Published: 2.3 (arXiv 2602.00277), 3.0 (BLOOM), 3.8 (Llama 3), 6.5 (Kokolis et al. 2024, arXiv 2410.21680), and 14 of OPT-175B, which
is outside (Zhang et al. 2022, arXiv 2205.01068).
"""
CHIP_HOURS_PER_FAILURE_ENDS = (8 * 24_000 / FAILURE_RATES[1], 8 * 24_000 / FAILURE_RATES[0])
"""Chip hours between interruptions at the ends of this interval, the least first."""
RESTART, RESTART_ENDS = 600.0, (240.0, 2400.0)
"""Time from a failure to the first repeated work, where none is given, and the ends of its interval [s].

OLMo Hybrid: 3.7 minutes at the median, 39 on average, as hangs are found late.
"""
CHECKPOINT_STALL = 60.0
"""Time for which a checkpoint stops the work, where no rate of storage is known [s].

BLOOM 176B: 40 s; Llama 3 8B with synchronous PyTorch checkpoints: 50 s, asynchronous ones: 0.5 s.
"""
CHECKPOINT_RATE = 100e9
"""Rate at which up to 100 servers together write a checkpoint at most, where none is given [B/s].

Published: BLOOM 176B 57 GB/s on 48 servers, runs of up to 800 billion parameters 50 to 200 GB/s, Orbax 33 GB/s of Llama 3.1 405B.
"""
CHECKPOINT_RATE_PER_SERVER = 1e9
"""The same of each of more servers [B/s].

Llama 3 405B: storage that sustains 2 TB/s, for 2,048 servers (Grattafiori et al. 2024, arXiv 2407.21783); BLOOM 1.2 GB/s.
"""
MEASURED_CHIP, CHIPS_OF_RUNS = "h100", ("a100", "h100")
"""The beginnings of the names of chips that this figure and published runs are of."""


@frozen
class ProductionFactor:
    """Time of a step of a published run over that of a benchmark by estimate: log-normal.

    Where a constant MFU predicts published runs better than the estimate does, the step is the geometric mean of both.

    Source:
        Bates and Granger 1969, The Combination of Forecasts: weights by the inverse variances of both errors.

    Attributes:
        value: Its median.
        deviation: Standard deviation of its logarithm in a run of a new family, or of that of the mean; 0 of a factor that is given.
        weight: The weight of the estimate in the mean; that of the constant MFU is the rest.
        mfu: The MFU of a production step [%]; without effect if the weight is 1.
    """

    value: float
    deviation: float = 0.0
    weight: float = 1.0
    mfu: float = 100.0

    def applied(self, step: tuple[float, float, float], mfu: float = 100.0) -> tuple[float, float, float]:
        """The time of a production step, and the ends of its 80 % interval [s].

        The error of the estimate and the factor are independent, so that the squares of their half-widths on the logarithmic
        scale add up.

        Args:
            step: Time of a benchmark step, and the ends of its 80 % interval [s].
            mfu: MFU of the benchmark step [%]; without effect if the weight is 1.
        """
        value, low, high = step
        wide = NormalDist().inv_cdf(0.9) * self.deviation
        below, above = (math.exp(math.hypot(self.weight * math.log(end / value), wide)) for end in (low, high))
        time = value * self.value**self.weight * (mfu / self.mfu) ** (1.0 - self.weight)
        return time, time / below, time * above


PRODUCTION = ProductionFactor(1.46, 0.33)
"""The production factor of a layout that is chosen, fitted on published runs by ``benchmarks/training_runs.py``."""
STATED = ProductionFactor(1.22, 0.26, weight=0.26, mfu=34.4)
"""That of a layout whose tensor- or pipeline-parallel degree is given; from the same program.

The runs are of dense models on A100 and H100. Of others, without a published MFU, only the factor is used.
"""
PUBLISHED_MFU = (23.0, 48.0)
"""MFU of published runs of dense models from 1 billion parameters by 6ND, quantiles of 10 and 90 % [%]; from the same program."""


@frozen(kw_only=True)
class Goodput:
    """The time of a run with its interruptions.

    Attributes:
        work: Time of the work alone [s].
        total: Expected time of the run [s].
        interval: Work between two checkpoints [s].
        checkpoint: Time to write a checkpoint [s].
        restart: Time from a failure to the first repeated work [s].
        mtbf: Mean time between failures of the system [s].
        failures: Expected number of failures.
    """

    work: float
    total: float
    interval: float
    checkpoint: float
    restart: float
    mtbf: float
    failures: float

    @property
    def share(self) -> float:
        """Work over the time of the run."""
        return self.work / self.total


def goodput(work: float, *, mtbf: float, checkpoint: float, restart: float) -> Goodput:
    """The expected time of a run that writes checkpoints at the optimal interval.

    Source:
        Daly 2006, A higher order estimate of the optimum checkpoint interval for restart dumps, equations 20 (time of the
        run) and 37 (interval).

    Args:
        work: Time of the work alone [s].
        mtbf: Mean time between failures of the system [s].
        checkpoint: Time to write a checkpoint, during which no work is done [s].
        restart: Time from a failure to the first repeated work [s].
    """
    # The last checkpoint is the result; as if each part of the work had one.
    interval = min(optimal_interval(checkpoint, mtbf), work)
    per_work = math.expm1((interval + checkpoint) / mtbf) * mtbf / interval if interval else 1.0
    # Rounding may make it shorter than the work.
    total = max(work, math.exp(restart / mtbf) * per_work * work)
    return Goodput(
        work=work,
        total=total,
        interval=interval,
        checkpoint=checkpoint,
        restart=restart,
        mtbf=mtbf,
        failures=total / mtbf,
    )


def total_interval(expected: Goodput, changed: Iterable[tuple[Goodput, Goodput]]) -> tuple[float, float]:
    """The ends of the interval of the time of a run: the squares of the half-widths on the logarithmic scale add up [s].

    Args:
        expected: The run.
        changed: The run with each of several independent quantities at its favourable and its unfavourable end.
    """
    few, many = (
        math.hypot(*(math.log(run.total / expected.total) for run in runs)) for runs in zip(*changed, strict=True)
    )
    return max(expected.work, expected.total * math.exp(-few)), expected.total * math.exp(many)


def optimal_interval(checkpoint: float, mtbf: float) -> float:
    """The work between two checkpoints that makes the run shortest [s]; Daly 2006, equation 37.

    Young's first-order interval is ``sqrt(2 C M)``.

    Args:
        checkpoint: Time to write a checkpoint [s].
        mtbf: Mean time between failures of the system [s].
    """
    if checkpoint >= 2.0 * mtbf:
        return mtbf
    ratio = checkpoint / (2.0 * mtbf)
    return math.sqrt(2.0 * checkpoint * mtbf) * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - checkpoint


def spare_servers(away: float) -> int:
    """Servers that are away at the same time at most, with a probability of 95 %: a quantile of a Poisson distribution.

    Args:
        away: Their mean number: rate of failures times the time for which each is away.
    """
    if away > _MANY:
        # As a normal distribution; the sum below would underflow.
        return math.ceil(away + NormalDist().inv_cdf(_PROBABLE) * math.sqrt(away))
    number, term = 0, math.exp(-away)
    total = term
    while total < _PROBABLE:
        number += 1
        term *= away / number
        total += term
    return number


_MANY = 500.0
_PROBABLE = 0.95
