"""Errors and intervals of groups of rows, from clusters of configurations instead of rows.

Rows of one configuration in several releases, or with several numbers of requests, are not independent: a cluster of them
counts once.  See docs/explanation/performance/calibration.md for the formulas.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

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

LEAST = 8
"""Least number of clusters of a group with an interval of its own: with fewer no quantile of conformal size exists."""


@frozen
class Label:
    """The group of a row.

    Attributes:
        scale: How many chips the model runs on.
        models: Whether it has experts.
        cluster: Its configuration: model, hardware and layout.
    """

    scale: Scale
    models: Models
    cluster: str


@frozen
class GroupErrors:
    """The held-out errors of a group; see :class:`trnspec.model.calibration.Group`."""

    phase: str
    scale: Scale | Literal[""]
    models: Models | Literal[""]
    rows: int
    clusters: int
    mean: float
    median: float
    low: float
    high: float


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
    return Label(scale_of(case.system, ranks), models, " ".join(map(str, (case.model, case.system.name, *parts))))


def groups_of(fitted: Fitted, cases: Sequence[Case | InferenceCase]) -> list[GroupErrors]:
    """The groups of the held-out rows of a fit.

    Args:
        fitted: The fit.
        cases: The rows of its ``held_out``, in that order.
    """
    labels = [label(c) for c in cases]
    result = groups("tpot" if isinstance(fitted, FittedServing) else "step", labels, fitted.held_out)
    if isinstance(fitted, FittedServing) and fitted.ttft is not None:
        timed = [each for each, case in zip(labels, cases, strict=True) if not isinstance(case, Case) and case.ttft]
        result += groups("ttft", timed[: len(fitted.ttft.held_out)], fitted.ttft.held_out)
    return result


def groups(phase: str, labels: Sequence[Label], errors: Any) -> list[GroupErrors]:
    """The groups of some held-out rows that have an interval of their own.

    Those of a scale and dense models or models with experts come first, then those of a scale, then of models.  A group that
    has the rows of another is left out.

    Args:
        phase: What was computed.
        labels: The group of each row.
        errors: Computed over measured time minus 1 of each row.
    """
    result: list[GroupErrors] = []
    known: list[Any] = [np.ones(len(labels), bool)]
    errors = np.asarray(errors)
    scales = np.array([each.scale for each in labels])
    models = np.array([each.models for each in labels])
    clusters = np.array([each.cluster for each in labels])
    pairs = [(s, m) for s in sorted(set(scales)) for m in sorted(set(models))]
    for scale, kind in (*pairs, *((s, "") for s in sorted(set(scales))), *(("", m) for m in sorted(set(models)))):
        mask = np.isin(scales, [scale] if scale else scales) & np.isin(models, [kind] if kind else models)
        if len(set(clusters[mask])) < LEAST or any((mask == other).all() for other in known):
            continue
        known.append(mask)
        low, high = interval(1.0 / (1.0 + errors[mask]), clusters[mask])
        off = np.abs(errors[mask])
        result.append(
            GroupErrors(
                phase, scale, kind, int(mask.sum()), len(set(clusters[mask])),
                float(off.mean()), float(np.median(off)), low, high,
            )
        )  # fmt: skip
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
