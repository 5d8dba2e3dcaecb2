"""Errors and intervals of groups of rows, from clusters of configurations instead of rows.

Rows of one configuration in several releases, or with several numbers of requests, are not independent: a cluster of them
counts once.  See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.calibration.measured.case import ModelCase

if TYPE_CHECKING:  # fit imports this module
    from trnspec.perf.calibration.fits.fit import Errors

COVERAGE = 0.8
"""Share of the measurements that the interval should contain."""

LEAST = 4
"""Least number of clusters of a group with an interval of its own."""

ENOUGH = 20
"""Clusters from which on a group is not drawn towards all rows: of 20, the second and the 19th are the ends of its interval."""

FEW = 3.0
"""A group of as many models counts half, and the interval of all rows half.  Rows of one model are off in the same way, so
that a group of few models shows little of how far another one is off.  Of the values 1 to 5 it is the one by which left-out
models of serving were covered best."""


@frozen
class GroupErrors:
    """The held-out errors of a group; see :class:`trnspec.model.calibration.ErrorGroup`."""

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


def groups(phase: str, errors: Errors, chip: str = "") -> list[GroupErrors]:
    """The groups of some held-out rows that have an interval of their own, and before them that of all rows.

    Those of a scale and dense models or models with experts come first, then those of a scale, then of models.  A group that
    has the rows of another is left out.  Questions are about models with rows and about others, so that the errors of the
    fit count for the intervals as much as those of fits without the model.

    Args:
        phase: What was computed.
        errors: The errors of the rows.
        chip: The chip whose rows are a group where there are enough of them; those of all chips otherwise.
    """
    result: list[GroupErrors] = []
    known: list[Any] = []
    cases: Sequence[ModelCase] = errors.cases
    held_out = np.asarray(errors.held_out)
    both = np.concatenate([held_out, errors.fit, held_out[len(errors.fit) :]])
    scales, models, chips, clusters, names = (
        np.array([getattr(each, name) for each in cases]) for name in ("scale", "models", "chip", "cluster", "model")
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
        result.append(of_rows(phase, held_out[mask], count, ends, scale=scale, models=kind))
    return result


def of_rows(
    phase: str, errors: Any, clusters: int, ends: tuple[float, float], *, scale: str = "", models: str = "",
    size: tuple[float, float] | None = None,
) -> GroupErrors:  # fmt: skip
    """A group of rows with these errors and this interval."""
    off = np.abs(errors)
    return GroupErrors(phase, scale, models, len(off), clusters, float(off.mean()), float(np.median(off)), *ends, size)


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


def enough_rows(
    errors: Errors, masks: Sequence[Any], clusters: Any, least: int, *, seen: int = 0
) -> tuple[float, float]:
    """The interval of the first of some groups of rows that has enough clusters, else of the last.

    Args:
        errors: The errors of all rows.
        masks: The rows of each group.
        clusters: The cluster of each row.
        least: Least number of clusters.
        seen: Weight of the errors of the fit over those of held-out rows: questions are about models with rows and about others.
    """
    mask = next((each for each in masks if len(set(clusters[each])) >= least), masks[-1])
    both = np.concatenate([*[errors.fit[mask]] * seen, errors.held_out[mask]])
    return interval(1.0 / (1.0 + both), np.tile(clusters[mask], seen + 1))


_ROUNDING = 1e-9


def quantile(values: Any, groups: Any, share: float) -> float:
    """The quantile of some values in which every group has the same weight, interpolated between the middles of weights.

    Args:
        values: The values.
        groups: The group of each value.
        share: Share of the weight below the quantile.
    """
    _, which = np.unique(groups, return_inverse=True)
    weights = 1.0 / np.bincount(which)[which]
    order = np.argsort(values)
    middles = np.cumsum(weights[order]) - 0.5 * weights[order]
    return float(np.interp(share * weights.sum(), middles, values[order]))
