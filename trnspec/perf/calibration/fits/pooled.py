"""Partially pooled fits: parameters with a mean over all rows, and deviations of groups of rows that are drawn to zero.

The parameter of a row is its mean plus the deviations of the groups that the row belongs to (chip, framework, dtype): a group
with few rows borrows from the others, and a group without any has the mean (Gelman and Hill 2007, chapter 12).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fits.solver import OUTLYING, bounded, unbounded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_STEP = 1e-5
"""Difference of a parameter for derivatives."""

_ROUNDS = 30
_TOLERANCE = 1e-4
"""Evaluations at most, and the relative gain below which the search ends."""


@frozen(kw_only=True)
class Pooling:
    """Which parameters a fit has, and how they are pooled.

    Attributes:
        typical: Parameters with their typical values, where the search begins.
        shares: Parameters between 0 and 1; the others are positive.
        deviations: For each parameter the groupings whose groups deviate from its mean.
        prior: Residual of a mean that is off its typical value by a factor of e.
        ridge: Residual of a deviation by a factor of e.
        limits: The least and the largest value of parameters.
    """

    typical: Mapping[str, float]
    shares: frozenset[str]
    deviations: Mapping[str, tuple[str, ...]]
    prior: float
    ridge: float
    limits: Mapping[str, tuple[float, float]]


@frozen
class Pooled:
    """The result of a fit.

    Attributes:
        pooling: Parameters and groupings.
        means: Mean of each parameter, as :func:`~trnspec.perf.calibration.fits.solver.unbounded`.
        deviations: Deviation by parameter, grouping and group, on the same scale.
    """

    pooling: Pooling
    means: Mapping[str, float]
    deviations: Mapping[tuple[str, str, str], float]

    def values(self, groups: Mapping[str, str]) -> dict[str, float]:
        """The parameters of a row that belongs to some groups, by grouping; unknown groups have no deviation."""
        return {
            name: self._value(
                name, mean + sum(self._deviation(name, by, groups) for by in self.pooling.deviations.get(name, ()))
            )
            for name, mean in self.means.items()
        }

    def _deviation(self, name: str, by: str, groups: Mapping[str, str]) -> float:
        return self.deviations.get((name, by, groups.get(by, "")), 0.0)

    def _value(self, name: str, at: float) -> float:
        value = float(bounded(at, share=name in self.pooling.shares))
        low, high = self.pooling.limits.get(name, (0.0, np.inf))
        return min(max(value, low), high)

    def arrays(self, groups: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """The parameters of several rows, each an array."""
        each = [self.values(of_row) for of_row in groups]
        return {name: np.array([values[name] for values in each]) for name in self.means}


def fit_pooled(
    pooling: Pooling,
    groups: Sequence[Mapping[str, str]],
    log_errors: Callable[[dict[str, Any]], Any],
    weights: Any,
    start: Pooled | None = None,
) -> Pooled:
    """Means and deviations that minimize weighted errors of the logarithm of time, with less weight beyond a tenth.

    Each residual may depend on the parameters of its own row only, so that one difference per parameter gives all
    derivatives.

    Args:
        pooling: Parameters and groupings.
        groups: For each row the group that it belongs to, by grouping.
        log_errors: Function from parameters, an array each over the rows, to log(computed / measured): an array whose
            last axis is the rows.
        weights: Weight of each of these errors.
        start: Where the search begins, such as the fit to more rows; at typical values when left out.

    Raises:
        UsageError: scipy is not installed.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise UsageError("fitting needs scipy; install trnspec with the extra calibrate") from error
    names = list(pooling.typical)
    columns: list[tuple[str, str, str]] = []
    members: list[Any] = []
    for name, groupings in pooling.deviations.items():
        for by in groupings:
            of_rows = np.array([row.get(by, "") for row in groups])
            for group in sorted(set(of_rows) - {""}):
                columns.append((name, by, str(group)))
                members.append((of_rows == group).astype(float))
    membership = np.array(members).reshape(len(columns), len(groups))
    owner = np.array([names.index(name) for name, _, _ in columns], dtype=int)
    ends = [pooling.limits.get(name, (0.0, np.inf)) for name in names]
    typical = np.array([unbounded(value, share=n in pooling.shares) for n, value in pooling.typical.items()])
    stiffness = np.concatenate([np.full(len(names), pooling.prior), np.full(len(columns), pooling.ridge)])
    root = np.sqrt(weights)

    def of_rows_at(at: Any) -> Any:
        rows = np.repeat(at[: len(names), None], len(groups), axis=1)
        np.add.at(rows, owner, at[len(names) :, None] * membership)
        return rows

    def errors(rows: Any) -> Any:
        values = {n: np.clip(bounded(rows[i], share=n in pooling.shares), *ends[i]) for i, n in enumerate(names)}
        return log_errors(values)

    def robust(plain: Any) -> tuple[Any, Any]:
        """The residual whose square is the soft L1 loss, and its derivative."""
        scaled = 1.0 + (plain / OUTLYING) ** 2
        size = OUTLYING * np.sqrt(2.0 * (np.sqrt(scaled) - 1.0))
        slope = np.where(size > 0.0, np.abs(plain) / np.sqrt(scaled) / np.where(size > 0.0, size, 1.0), 1.0)
        return np.sign(plain) * size, slope

    def residuals(at: Any) -> Any:
        size, _ = robust(errors(of_rows_at(at)))
        return np.concatenate([(root * size).ravel(), stiffness * (at - center)])

    def jacobian(at: Any) -> Any:
        rows = of_rows_at(at)
        plain = errors(rows)
        _, slope = robust(plain)
        blocks = []
        for i in range(len(names)):
            moved = rows.copy()
            moved[i] += _STEP
            blocks.append(root * slope * (errors(moved) - plain) / _STEP)
        means = np.stack([b.ravel() for b in blocks], axis=1)
        parts = [(blocks[o] * m).ravel() for o, m in zip(owner, membership, strict=True)]
        full = np.column_stack([means, *parts]) if parts else means
        return np.concatenate([full, np.diag(stiffness)])

    center = np.concatenate([typical, np.zeros(len(columns))])
    begin = center
    if start is not None:
        known = [start.deviations.get(column, 0.0) for column in columns]
        begin = np.array([*(start.means[name] for name in names), *known])
    at = least_squares(residuals, begin, jac=jacobian, max_nfev=_ROUNDS, ftol=_TOLERANCE).x
    return Pooled(
        pooling,
        {name: float(x) for name, x in zip(names, at, strict=False)},
        {column: float(x) for column, x in zip(columns, at[len(names) :], strict=True)},
    )
