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
from trnspec.perf.calibration.fit_inference import FittedServing
from trnspec.perf.calibration.fit_range import scale_of
from trnspec.perf.calibration.fit_training import COVERAGE, quantile
from trnspec.perf.calibration.measured_training import Case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.fit_training import Fitted
    from trnspec.perf.calibration.measured_inference import InferenceCase

LEAST = 4
"""Least number of clusters of a group with an interval of its own."""

ENOUGH = 9
"""Clusters from which on the quantiles of a group alone contain their share: with n of them ``(n - 1) / (n + 1)`` of the next
ones are between the smallest and the largest."""

FEW = 3.0
"""A group of as many models counts half, and the interval of all rows half.  Rows of one model are off in the same way, so
that a group of few models shows little of how far another one is off.  Of the values 1 to 5 it is the one by which left-out
models of serving were covered best."""

WIDEST = 1.3
"""The largest factor by which the interval of few models is wider, on a logarithmic scale.  By Student's distribution two
models would need 2.5, and rows of the models that were measured would then all be inside."""


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


def groups_of(fitted: Fitted, cases: Sequence[Case | InferenceCase], chip: str = "") -> list[GroupErrors]:
    """The groups of the held-out rows of a fit, and the group of all rows, which has neither scale nor models.

    Args:
        fitted: The fit.
        cases: The rows of its ``held_out``, in that order.
        chip: The chip whose rows are a group where there are enough of them; those of all chips otherwise.
    """
    labels = [label(c) for c in cases]
    result = groups("tpot" if isinstance(fitted, FittedServing) else "step", labels, fitted.held_out, chip)
    if isinstance(fitted, FittedServing) and fitted.ttft is not None:
        timed = [each for each, case in zip(labels, cases, strict=True) if not isinstance(case, Case) and case.ttft]
        # Rows that only widen the interval of output tokens come last.
        result += groups("ttft", timed[: len(fitted.ttft.held_out)], fitted.ttft.held_out, chip)
    return result


def groups(phase: str, labels: Sequence[Label], errors: Any, chip: str = "") -> list[GroupErrors]:
    """The groups of some held-out rows that have an interval of their own, and before them that of all rows.

    Those of a scale and dense models or models with experts come first, then those of a scale, then of models.  A group that
    has the rows of another is left out.

    Args:
        phase: What was computed.
        labels: The group of each row.
        errors: Computed over measured time minus 1 of each row.
        chip: See :func:`groups_of`.
    """
    result: list[GroupErrors] = []
    known: list[Any] = []
    errors = np.asarray(errors)
    scales, models, chips, clusters, names = (
        np.array([getattr(each, name) for each in labels]) for name in ("scale", "models", "chip", "cluster", "model")
    )
    ratios = 1.0 / (1.0 + errors)
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
        ends = drawn(ratios, clusters, names, mask, known[0])
        off = np.abs(errors[mask])
        result.append(
            GroupErrors(phase, scale, kind, int(mask.sum()), count, float(off.mean()), float(np.median(off)), *ends)
        )
    return result


def drawn(ratios: Any, clusters: Any, models: Any, own: Any, pool: Any) -> tuple[float, float]:
    """The interval of a group, drawn towards that of more rows if it has few clusters or models.

    With ``n`` clusters and ``m`` models the logarithms of its ends count ``min(n / ENOUGH, 1) m / (m + FEW)``, those of the
    pool the rest.

    Args:
        ratios: Measured over computed times of held-out rows.
        clusters: The cluster of each row.
        models: The model of each row.
        own: Mask of the rows of the group.
        pool: Mask of the rows that it is drawn towards.
    """
    ends = interval(ratios[own], clusters[own], models[own])
    if (own == pool).all():
        return ends
    count = len(set(models[own]))
    share = min(len(set(clusters[own])) / ENOUGH, 1.0) * count / (count + FEW)
    low, high = (
        e**share * p ** (1.0 - share)
        for e, p in zip(ends, interval(ratios[pool], clusters[pool], models[pool]), strict=True)
    )
    return low, high


def interval(ratios: Any, clusters: Any, models: Any = None) -> tuple[float, float]:
    """The interval of measured over computed times that contains :data:`COVERAGE` of the next clusters.

    Of n clusters, each with the same weight, the ends are those of the ranks ``floor((n + 1) a / 2)`` and
    ``ceil((n + 1) (1 - a / 2))`` for ``a = 1 - coverage``, at least the smallest and at most the largest
    (split conformal prediction; Vovk et al. 2005, Lei et al. 2018, section 2.2).

    Args:
        ratios: Measured over computed times of held-out rows.
        clusters: The cluster of each row.
        models: The model of each row, to widen the interval where they are few, see :func:`widening`.
    """
    n = len(set(clusters))
    tail = (n + 1) * 0.5 * (1.0 - COVERAGE)
    # quantile() has the cluster of rank k at the middle of its weight.
    levels = (
        (max(math.floor(tail + _ROUNDING), 1) - 0.5) / n,
        (min(math.ceil(n + 1 - tail - _ROUNDING), n) - 0.5) / n,
    )
    low, high = (quantile(ratios, clusters, level) for level in levels)
    if models is None:
        return low, high
    middle = quantile(ratios, clusters, 0.5)
    power = widening(ratios, clusters, models)
    return middle * (low / middle) ** power, middle * (high / middle) ** power


def widening(ratios: Any, clusters: Any, models: Any) -> float:
    """The factor of the width of an interval for another model, on a logarithmic scale, at most :data:`WIDEST`.

    The variance of ``m`` models is known with ``m - 1`` degrees of freedom, and their mean with a variance of ``1 / m``:
    ``sqrt(1 - f + f (t / z)^2 (1 + 1 / m))`` with the share ``f`` of the variance that is between models.
    """
    names, of = np.unique(models, return_inverse=True)
    count = len(names)
    if count == 1:
        return WIDEST
    logs, weights = np.log(ratios), _weights(clusters)
    total = np.bincount(of, weights)
    means = np.bincount(of, weights * logs) / total
    mean = float(np.average(logs, weights=weights))
    variance = float(np.average((logs - mean) ** 2, weights=weights))
    share = 0.0 if variance == 0.0 else min(float(np.average((means - mean) ** 2, weights=total)) / variance, 1.0)
    # Student's quantile over the normal one for 80 %, by its expansion (Abramowitz and Stegun 26.7.5).
    student = 1.0 + 0.66 / (count - 1) + 0.74 / (count - 1) ** 2
    return min(math.sqrt(1.0 - share + share * student**2 * (1.0 + 1.0 / count)), WIDEST)


def _weights(clusters: Any) -> Any:
    _, which = np.unique(clusters, return_inverse=True)
    return 1.0 / np.bincount(which)[which]


_ROUNDING = 1e-9
