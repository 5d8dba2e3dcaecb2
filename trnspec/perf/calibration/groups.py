"""Errors and intervals of groups of rows, from clusters of configurations instead of rows.

Rows of one configuration in several releases, or with several numbers of requests, are not independent: a cluster of them
counts once.  See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.model.calibration import Models, Scale
from trnspec.perf.calibration.fit_range import scale_of
from trnspec.perf.calibration.fits.inference import FittedServing
from trnspec.perf.calibration.fits.training import COVERAGE, quantile
from trnspec.perf.calibration.measured.training import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.fits.training import Fitted
    from trnspec.perf.calibration.measured.inference import InferenceCase

LEAST = 4
"""Least number of clusters of a group with an interval of its own."""

ENOUGH = 20
"""Clusters from which on a group is not drawn towards all rows: of 20, the second and the 19th are the ends of its interval."""

FEW = 3.0
"""A group of as many models counts half, and the interval of all rows half.  Rows of one model are off in the same way, so
that a group of few models shows little of how far another one is off.  Of the values 1 to 5 it is the one by which left-out
models of serving were covered best."""


@frozen
class Label:
    """The group of a row.

    Attributes:
        scale: How many chips the model runs on.
        models: Whether it has experts.
        chip: The chip.
        model: The model.
        cluster: Its configuration: model, hardware and layout.
    """

    scale: Scale
    models: Models
    chip: str
    model: str
    cluster: str


@frozen
class GroupErrors:
    """The held-out errors of a group; see :class:`trnspec.model.calibration.Group`."""

    phase: str
    scale: str
    models: str
    rows: int
    clusters: int
    mean: float
    median: float
    low: float
    high: float
    size: tuple[float, float] | None = None


def label(case: Case | InferenceCase) -> Label:
    """The group of a row of training or of serving."""
    models: Models = "experts" if case.dims.experts else "dense"
    if isinstance(case, Case):
        layout = case.layout
        ranks = float(layout.ranks)
        parts = [layout.tp, layout.pp, layout.cp, layout.ep, layout.dp, layout.seq, layout.recompute]
    else:
        plan = case.plan
        ranks = float(plan.tp * plan.pp)
        parts = [plan.tp, plan.pp, plan.ep, plan.dp, plan.prompt, plan.output, plan.weight_bytes]
    cluster = " ".join(map(str, (case.model, case.system.name, *parts)))
    return Label(scale_of(case.system, ranks), models, case.system.chip, case.model, cluster)


def groups_of(
    fitted: Fitted, cases: Sequence[Case | InferenceCase], chip: str = "", errors: Any = None
) -> list[GroupErrors]:
    """The groups of the held-out rows of a fit, and the group of all rows, which has neither scale nor models.

    Args:
        fitted: The fit.
        cases: The rows of its ``held_out``, in that order.
        chip: The chip whose rows are a group where there are enough of them; those of all chips otherwise.
        errors: The errors of the fit of the first of these rows; by default those that ``fitted`` has.
    """
    labels = [label(c) for c in cases]
    errors = fitted.errors if errors is None else errors
    result = groups("tpot" if isinstance(fitted, FittedServing) else "step", labels, fitted.held_out, errors, chip)
    if isinstance(fitted, FittedServing) and fitted.ttft is not None:
        first = fitted.ttft
        timed = [each for each, case in zip(labels, cases, strict=True) if not isinstance(case, Case) and case.ttft]
        # Rows that only widen the interval of output tokens come last.
        result += groups("ttft", timed[: len(first.held_out)], first.held_out, first.errors, chip)
    return result


def groups(phase: str, labels: Sequence[Label], held_out: Any, errors: Any, chip: str = "") -> list[GroupErrors]:
    """The groups of some held-out rows that have an interval of their own, and before them that of all rows.

    Those of a scale and dense models or models with experts come first, then those of a scale, then of models.  A group that
    has the rows of another is left out.  Questions are about models with rows and about others, so that the errors of the
    fit count for the intervals as much as those of fits without the model.

    Args:
        phase: What was computed.
        labels: The group of each row.
        held_out: Computed over measured time minus 1 of each row, by a fit without its model.
        errors: The same by the fit to all rows, for the first of the rows; the others were not fitted.
        chip: See :func:`groups_of`.
    """
    result: list[GroupErrors] = []
    known: list[Any] = []
    held_out = np.asarray(held_out)
    both = np.concatenate([held_out, errors, held_out[len(errors) :]])
    scales, models, chips, clusters, names = (
        np.array([getattr(each, name) for each in labels]) for name in ("scale", "models", "chip", "cluster", "model")
    )
    each_scale, each_kind = sorted(set(scales)), sorted(set(models))
    pairs = [("", ""), *((s, m) for s in each_scale for m in each_kind)]
    for scale, kind in (*pairs, *((s, "") for s in each_scale), *(("", m) for m in each_kind)):
        mask = np.isin(scales, [scale] if scale else scales) & np.isin(models, [kind] if kind else models)
        own = mask & (chips == chip)
        mask = own if len(set(clusters[own])) >= ENOUGH else mask
        count = len(set(clusters[mask]))
        if result and (count < LEAST or any((mask == other).all() for other in known)):
            continue
        known.append(mask)
        of_both = [np.tile(each, 2) for each in (clusters, names, mask, known[0])]
        ends = drawn(1.0 / (1.0 + both), *of_both)
        off = np.abs(held_out[mask])
        result.append(
            GroupErrors(phase, scale, kind, int(mask.sum()), count, float(off.mean()), float(np.median(off)), *ends)
        )
    return result


def drawn(ratios: Any, clusters: Any, models: Any, own: Any, pool: Any) -> tuple[float, float]:
    """The interval of a group, drawn towards that of more rows if it has few clusters or models.

    With ``n`` clusters and ``m`` models the logarithms of its ends count ``min(n / ENOUGH, 1) m / (m + FEW)``, those of the
    pool the rest.

    Args:
        ratios: Measured over computed times.
        clusters: The cluster of each row.
        models: The model of each row.
        own: Mask of the rows of the group.
        pool: Mask of the rows that it is drawn towards.
    """
    ends = interval(ratios[own], clusters[own])
    if (own == pool).all():
        return ends
    count = len(set(models[own]))
    share = min(len(set(clusters[own])) / ENOUGH, 1.0) * count / (count + FEW)
    low, high = (
        e**share * p ** (1.0 - share) for e, p in zip(ends, interval(ratios[pool], clusters[pool]), strict=True)
    )
    return low, high


def interval(ratios: Any, clusters: Any) -> tuple[float, float]:
    """The interval of measured over computed times that contains :data:`COVERAGE` of the next clusters.

    Of n clusters, each with the same weight, the ends are those of the ranks ``floor((n + 1) a / 2)`` and
    ``ceil((n + 1) (1 - a / 2))`` for ``a = 1 - coverage``, at least the smallest and at most the largest
    (split conformal prediction; Vovk et al. 2005, Lei et al. 2018, section 2.2).

    Args:
        ratios: Measured over computed times.
        clusters: The cluster of each row.
    """
    n = len(set(clusters))
    tail = (n + 1) * 0.5 * (1.0 - COVERAGE)
    # quantile() has the cluster of rank k at the middle of its weight.
    levels = (
        (max(math.floor(tail + _ROUNDING), 1) - 0.5) / n,
        (min(math.ceil(n + 1 - tail - _ROUNDING), n) - 0.5) / n,
    )
    low, high = (quantile(ratios, clusters, level) for level in levels)
    return low, high


_ROUNDING = 1e-9
