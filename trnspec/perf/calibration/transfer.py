"""Errors of a fit beyond its rows: on other chips and other software, and outside the range of its inputs.

See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.calibration.fit_range import EXPONENT, factor, inputs_of, ranges
from trnspec.perf.calibration.fits.inference import LEAST as LEAST_SERVING
from trnspec.perf.calibration.fits.inference import FittedServing, Solved, runs
from trnspec.perf.calibration.fits.inference import fitted as solved_serving
from trnspec.perf.calibration.fits.training import COVERAGE, Fitted, Pooled, batch, quantile, solved
from trnspec.perf.calibration.measured.inference import InferenceCase
from trnspec.perf.calibration.measured.training import Case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.perf.lowering.system import Efficiency

AnyCase = Case | InferenceCase

LEAST = 5
"""Least number of rows to fit, and of rows outside its range, for an exponent of extrapolation."""


@frozen
class Elsewhere:
    """Measured over computed times of rows on other chips or of other software.

    Attributes:
        rows: How many rows.
        groups: How many pairs of chip and table.
        low: Lower end of the interval that contains :data:`~trnspec.perf.calibration.fits.training.COVERAGE` of them.
        high: Its upper end.
    """

    rows: int
    groups: int
    low: float
    high: float


@frozen
class Beyond:
    """How far a fit is off beyond its rows.

    Attributes:
        exponent: The power of the distance from the range of the fit by which the interval widens.
        elsewhere: The interval on other chips and of other software; ``None`` without such rows.
    """

    exponent: float
    elsewhere: Elsewhere | None


def beyond(fitted: Fitted, cases: Sequence[AnyCase], others: Mapping[str, Sequence[AnyCase]]) -> tuple[Beyond, Beyond]:
    """How far a fit is off beyond its rows, for steps or output tokens, and for first tokens.

    Args:
        fitted: The fit.
        cases: Its rows.
        others: Rows that were not fitted, by chip and table.
    """
    efficiency = fitted.solved if isinstance(fitted, FittedServing) else fitted.efficiency
    measured = [computed(some, efficiency) for some in others.values()]
    groups = [name for name, some in others.items() for _ in some]
    both = [np.concatenate([m[i] for m in measured]) if measured else np.empty(0) for i in (0, 1)]
    first, second = (Beyond(k, elsewhere(m, groups)) for k, m in zip(exponents(fitted, cases), both, strict=True))
    return first, second


def computed(cases: Sequence[AnyCase], efficiency: Efficiency | Pooled | Solved) -> tuple[Any, Any]:
    """Measured over computed times, of steps or of output tokens, and of first tokens (NaN where none was measured)."""
    steps = [c for c in cases if isinstance(c, Case)]
    if steps:
        data = batch(steps)
        return data.seconds / data.times(efficiency), np.full(len(steps), np.nan)  # type: ignore[arg-type]  # of training
    served = runs([c for c in cases if isinstance(c, InferenceCase)])
    tokens, firsts = efficiency.times(served)  # type: ignore[union-attr]  # of serving
    return served.tpot / tokens, np.where(served.ttft > 0.0, served.ttft / firsts, np.nan)


def elsewhere(measured: Any, groups: Sequence[str]) -> Elsewhere | None:
    """The interval of measured over computed times in which every group counts the same; ``None`` without rows.

    Args:
        measured: Measured over computed times; NaN for none.
        groups: The chip and the table of each row.
    """
    known = ~np.isnan(measured)
    if not known.any():
        return None
    names = np.array(groups)[known]
    low, high = (quantile(measured[known], names, q) for q in ((1.0 - COVERAGE) / 2.0, (1.0 + COVERAGE) / 2.0))
    return Elsewhere(int(known.sum()), len(set(names)), low, high)


def exponents(fitted: Fitted, cases: Sequence[AnyCase]) -> tuple[float, float]:
    """The exponents of extrapolation: of step or output token, and of first token.

    For each input the rows above the middle of its range are computed by a fit to the others.  A row that is outside
    the range of that fit by a factor r and has an error e, beyond the interval of held-out rows, needs the exponent
    ``log(e) / log(r)``; the result is the quantile of those that covers as many rows as the interval is to contain.
    """
    found: tuple[list[Any], list[Any]] = ([], [])
    first = fitted.ttft if isinstance(fitted, FittedServing) else None
    for kept, outer in _splits(cases):
        inner = ranges([inputs_of(c) for c in kept])
        far = np.array([max(factor(v, *inner[n]) for n, v in inputs_of(c).items()) for c in outer])
        for each, ratios, spread in zip(found, computed(outer, _refitted(kept, fitted)), (fitted, first), strict=True):
            if spread is not None:
                beyond = np.maximum(np.maximum(ratios / spread.high, spread.low / ratios), 1.0)
                used = (far > 1.0) & ~np.isnan(beyond)
                each += list(np.log(beyond[used]) / np.log(far[used]))
    token, of_first = (float(np.quantile(e, COVERAGE)) if len(e) >= LEAST else EXPONENT for e in found)
    return token, of_first


def _splits(cases: Sequence[AnyCase]) -> Iterator[tuple[list[AnyCase], list[AnyCase]]]:
    """For each input the rows up to the middle of its range, on a logarithmic scale, and those above."""
    inputs = [inputs_of(c) for c in cases]
    least = LEAST if isinstance(cases[0], Case) else LEAST_SERVING
    for name, (low, high) in ranges(inputs).items():
        middle = (low * high) ** 0.5
        kept = [c for c, i in zip(cases, inputs, strict=True) if i[name] <= middle]
        outer = [c for c, i in zip(cases, inputs, strict=True) if i[name] > middle]
        if len(kept) >= least and outer:
            yield kept, outer


def _refitted(cases: Sequence[AnyCase], fitted: Fitted) -> Efficiency | Pooled | Solved:
    steps = [c for c in cases if isinstance(c, Case)]
    return (
        solved(batch(steps), fitted.pooled, fitted.prior)
        if steps
        else solved_serving(runs([c for c in cases if isinstance(c, InferenceCase)]), fitted.prior)
    )
