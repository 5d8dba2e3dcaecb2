"""Errors of a fit beyond its rows: on other chips and other software, and outside the range of its inputs.

See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.calibration.fit_range import EXPONENT, FAR, factor, ranges
from trnspec.perf.calibration.fits.search import SearchResult
from trnspec.perf.calibration.groups import COVERAGE, interval, quantile
from trnspec.perf.calibration.groups import groups as of_scales
from trnspec.perf.calibration.measured.case import ModelCase, Part

if TYPE_CHECKING:  # fit imports this module
    from trnspec.perf.calibration.fits.fit import FitModel, Fitted

LEAST = 5
"""Least number of rows to fit, and of rows outside its range, for an exponent of extrapolation."""

CHIPS = 3
"""Least number of chips for an interval on other chips: the other one of two, such as A100 with 40 and 80 GB, shows little of a third."""


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
        chips: That of rows held out with their chip, of the same software; ``None`` with fewer than :data:`CHIPS`.
    """

    exponent: float
    elsewhere: Elsewhere | None
    chips: Elsewhere | None = None


def left_out(errors: Any, clusters: Any, groups: Collection[object]) -> Beyond:
    """The interval of rows by fits that had no rows of their chip, with the default exponent; NaN and no rows count for nothing.

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


def beyond(
    model: FitModel, fitted: Fitted, others: Mapping[str, Sequence[ModelCase]], masks: Iterable[tuple[Any, Any]]
) -> tuple[Beyond, ...]:
    """Errors of a fit beyond its rows, for each measured time.

    Args:
        model: The fit of this kind of rows.
        fitted: The fit.
        others: Rows that were not fitted, by chip and software.
        masks: As those of :func:`exponents`.
    """
    assert fitted.found is not None
    measured = [computed(model, some, fitted.found, own=False) for some in others.values()]
    groups = [name for name, some in others.items() for _ in some]
    chips = {}
    for part, each in fitted.errors.items():
        own = each.cases[: len(each.fit)]
        if each.elsewhere is not None and len(names := {c.chip for c in own}) >= CHIPS:
            chips[part] = left_out(each.elsewhere, [c.cluster for c in own], names).elsewhere
    return tuple(
        Beyond(
            exponent,
            elsewhere(np.concatenate([m[i] for m in measured]) if measured else np.empty(0), groups),
            chips.get(model.parts[i]),
        )
        for i, exponent in enumerate(exponents(model, fitted, masks))
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


def exponents(model: FitModel, fitted: Fitted, masks: Iterable[tuple[Any, Any]]) -> list[float]:
    """The exponents of extrapolation of each measured time.

    Rows above the middle of the range of an input are computed by a fit to the others.  A row that is outside
    the range of that fit by a factor r and has an error e, beyond the interval of its group, needs the exponent
    ``log(e) / log(r)``; the result is the quantile of those that covers as many rows as the interval is to contain,
    where rows of one model, chip and framework count once.

    Args:
        model: The fit of this kind of rows.
        fitted: The fit.
        masks: The rows that are fitted, and those above, see :func:`~trnspec.perf.calibration.fits.fit.splits`.
    """
    known = {part: of_scales(part, errors) for part, errors in fitted.errors.items()}
    found: dict[Part, dict[str, list[float]]] = {part: {} for part in model.parts}
    for mask, out in masks:
        kept, outer = ([c for c, used in zip(fitted.cases, each, strict=True) if used] for each in (mask, out))
        if len(kept) < max(model.least, LEAST):
            continue
        spans = ranges([c.inputs for c in kept])
        for part, each in zip(
            model.parts, computed(model, outer, model.solve(kept, fitted.prior, fitted.found)), strict=True
        ):
            for case, ratio in zip(outer, each, strict=True):
                far = max(factor(case.inputs[n], *span) for n, span in spans.items())
                if far > FAR and ratio > 0.0:
                    own = [g for g in known[part] if g.scale in {"", case.scale} and g.models in {"", case.models}]
                    group = max(own, key=lambda g: bool(g.scale) + bool(g.models))
                    off = max(ratio / max(group.high, 1.0), min(group.low, 1.0) / ratio, 1.0)
                    found[part].setdefault(f"{case.model} {case.chip} {case.framework}", []).append(log(off) / log(far))
    clusters = [[name for name, some in each.items() for _ in some] for each in found.values()]
    return [
        quantile(np.concatenate([*each.values()]), names, COVERAGE) if len(names) >= LEAST else EXPONENT
        for each, names in zip(found.values(), clusters, strict=True)
    ]
