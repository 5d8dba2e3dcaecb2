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
ones are between the smallest and the largest.  With fewer the interval is drawn towards that of all rows."""


@frozen
class Label:
    """The group of a row.

    Attributes:
        scale: How many chips the model runs on.
        models: Whether it has experts.
        chip: The chip.
        cluster: Its configuration: model, hardware and layout.
    """

    scale: Scale
    models: Models
    chip: str
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
    return Label(scale_of(case.system, ranks), models, case.system.chip, cluster)


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
    scales, models, chips, clusters = (
        np.array([getattr(each, name) for each in labels]) for name in ("scale", "models", "chip", "cluster")
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
        ends = interval(1.0 / (1.0 + errors[mask]), clusters[mask])
        if result:
            share = min(count / ENOUGH, 1.0)
            ends = tuple(
                e**share * p ** (1.0 - share) for e, p in zip(ends, (result[0].low, result[0].high), strict=True)
            )
        off = np.abs(errors[mask])
        result.append(
            GroupErrors(phase, scale, kind, int(mask.sum()), count, float(off.mean()), float(np.median(off)), *ends)
        )
    return result


def interval(ratios: Any, clusters: Any, coverage: float = COVERAGE) -> tuple[float, float]:
    """The interval of measured over computed times that contains a share of the next cluster.

    Of n clusters, each with the same weight, the ends are those of the ranks ``floor((n + 1) a / 2)`` and
    ``ceil((n + 1) (1 - a / 2))`` for ``a = 1 - coverage``, at least the smallest and at most the largest
    (split conformal prediction; Vovk et al. 2005, Lei et al. 2018, section 2.2).

    Args:
        ratios: Measured over computed times of held-out rows.
        clusters: The cluster of each row.
        coverage: The share.
    """
    n = len(set(clusters))
    tail = (n + 1) * 0.5 * (1.0 - coverage)
    # quantile() has the cluster of rank k at the middle of its weight.
    low, high = (
        (max(math.floor(tail + _ROUNDING), 1) - 0.5) / n,
        (min(math.ceil(n + 1 - tail - _ROUNDING), n) - 0.5) / n,
    )
    return quantile(ratios, clusters, low), quantile(ratios, clusters, high)


_ROUNDING = 1e-9
