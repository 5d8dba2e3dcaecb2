"""Errors of a fit beyond its rows: on other chips and other software, and outside the range of its inputs.

See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.calibration.fit_range import EXPONENT, factor, ranges
from trnspec.perf.calibration.groups import COVERAGE, interval, quantile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from trnspec.perf.calibration.fits.fit import FitModel, Fitted
    from trnspec.perf.calibration.fits.search import SearchResult
    from trnspec.perf.calibration.measured.case import ModelCase

LEAST = 5
"""Least number of rows to fit, and of rows outside its range, for an exponent of extrapolation."""


@frozen
class Elsewhere:
    """Measured over computed times of rows on other chips or of other software.

    Attributes:
        rows: How many rows.
        groups: How many pairs of chip and software.
        low: Lower end of the interval that contains :data:`~trnspec.perf.calibration.groups.COVERAGE` of them.
        high: Its upper end.
    """

    rows: int
    groups: int
    low: float
    high: float


@frozen
class Beyond:
    """Error of a fit beyond its rows.

    Attributes:
        exponent: The power of the distance from the range of the fit by which the interval widens.
        elsewhere: The interval on other chips and of other software; ``None`` without such rows.
    """

    exponent: float
    elsewhere: Elsewhere | None


def left_out(errors: Any, clusters: Any, groups: Collection[object]) -> Beyond:
    """The interval of rows by fits that had no rows of their chip, with the usual exponent; NaN and no rows count for nothing.

    Args:
        errors: Computed over measured time minus 1 of each row.
        clusters: The cluster of each; every cluster counts the same.
        groups: What was left out in turn.
    """
    known = ~np.isnan(errors)
    if not known.any():
        return Beyond(EXPONENT, None)
    ends = interval(1.0 / (1.0 + errors[known]), np.asarray(clusters)[known])
    return Beyond(EXPONENT, Elsewhere(int(known.sum()), len(set(groups)), *ends))


def beyond(model: FitModel, fitted: Fitted, others: Mapping[str, Sequence[ModelCase]]) -> tuple[Beyond, ...]:
    """Errors of a fit beyond its rows, for each measured time.

    Args:
        model: The fit of this kind of rows.
        fitted: The fit.
        others: Rows that were not fitted, by chip and software.
    """
    assert fitted.found is not None
    measured = [computed(model, some, fitted.found, own=False) for some in others.values()]
    groups = [name for name, some in others.items() for _ in some]
    return tuple(
        Beyond(exponent, elsewhere(np.concatenate([m[i] for m in measured]) if measured else np.empty(0), groups))
        for i, exponent in enumerate(exponents(model, fitted))
    )


def computed(model: FitModel, cases: Sequence[ModelCase], found: SearchResult, *, own: bool = True) -> list[Any]:
    """Measured over computed times of each part; NaN where none was measured.

    Args:
        model: The fit of this kind of rows.
        cases: The rows.
        found: The parameters.
        own: Whether rows have the parameters of their groups, or those that all have in common.
    """
    times = model.times(cases, found, own=own)
    return [np.array([c.measured(part) or np.nan for c in cases]) / times[part] for part in model.parts]


def elsewhere(measured: Any, groups: Sequence[str]) -> Elsewhere | None:
    """The interval of measured over computed times in which every group counts the same; ``None`` without rows.

    Args:
        measured: Measured over computed times; NaN for none.
        groups: The chip and the software of each row.
    """
    known = ~np.isnan(measured)
    if not known.any():
        return None
    names = np.array(groups)[known]
    low, high = (quantile(measured[known], names, q) for q in ((1.0 - COVERAGE) / 2.0, (1.0 + COVERAGE) / 2.0))
    return Elsewhere(int(known.sum()), len(set(names)), low, high)


def exponents(model: FitModel, fitted: Fitted) -> list[float]:
    """The exponents of extrapolation of each measured time.

    For each input the rows above the middle of its range are computed by a fit to the others.  A row that is outside
    the range of that fit by a factor r and has an error e, beyond the interval of held-out rows, needs the exponent
    ``log(e) / log(r)``; the result is the quantile of those that covers as many rows as the interval is to contain.
    """
    found: list[list[float]] = [[] for _ in model.parts]
    for kept, outer in _splits(fitted.cases, model.least):
        inner = ranges([c.inputs for c in kept])
        far = np.array([max(factor(v, *inner[n]) for n, v in c.inputs.items()) for c in outer])
        ratios = computed(model, outer, model.solve(kept, fitted.prior, fitted.found))
        for part, each, of_part in zip(model.parts, found, ratios, strict=True):
            if (spread := fitted.errors.get(part)) is not None:
                off = np.maximum(np.maximum(of_part / spread.high, spread.low / of_part), 1.0)
                used = (far > 1.0) & ~np.isnan(off)
                each += list(np.log(off[used]) / np.log(far[used]))
    return [float(np.quantile(each, COVERAGE)) if len(each) >= LEAST else EXPONENT for each in found]


def _splits(cases: Sequence[ModelCase], least: int) -> Iterator[tuple[list[ModelCase], list[ModelCase]]]:
    """For each input the rows up to the middle of its range, on a logarithmic scale, and those above."""
    inputs = [c.inputs for c in cases]
    for name, (low, high) in ranges(inputs).items():
        middle = (low * high) ** 0.5
        kept = [c for c, i in zip(cases, inputs, strict=True) if i[name] <= middle]
        outer = [c for c, i in zip(cases, inputs, strict=True) if i[name] > middle]
        if len(kept) >= max(least, LEAST) and outer:
            yield kept, outer
