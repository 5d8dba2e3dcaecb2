"""Robust least squares for calibrations: parameters that are shares or positive, kept near typical values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

OUTLYING = 0.1
"""Errors of the logarithm of a time beyond which a row has less and less weight."""


_MARGIN = 1e-3
"""Distance from the limits at which the search begins, where a typical value is outside."""


def minimize(
    residuals: Callable[[Any], Any],
    begin: Any,
    bounds: Any = (-np.inf, np.inf),
    tolerance: float = 1e-8,
    most: int | None = None,
    jacobian: Callable[[Any], Any] | None = None,
) -> Any:
    """The result of scipy's ``least_squares`` with the soft L1 loss.

    Args:
        residuals: Function from parameters to residuals, both arrays.
        begin: Initial parameters; moved inside the bounds.
        bounds: The least and the largest parameters.
        tolerance: Relative change of the cost, and of parameters, with which the search ends.
        most: The largest number of steps.
        jacobian: Function from parameters to derivatives of residuals; without it they take a call for each parameter.

    Raises:
        UsageError: scipy is not installed.
    """
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise UsageError("fitting needs scipy; install trnspec with the extra calibrate") from error
    low, high = bounds
    if np.all(np.isfinite(low)) and np.all(np.isfinite(high)):
        begin = np.clip(begin, low + _MARGIN * (high - low), high - _MARGIN * (high - low))
    return least_squares(
        residuals, begin, jac=jacobian or "2-point", bounds=bounds, loss="soft_l1", f_scale=OUTLYING, ftol=tolerance,
        xtol=tolerance, max_nfev=most,
    )  # fmt: skip


STEP = 1e-6
"""Difference of a logarithm or a logit for derivatives."""


def derivatives(errors: Callable[[Any], Any], at: Any) -> Any:
    """Derivatives of errors, a column for each parameter, from one call with all differences.

    Formulas take arrays that broadcast, so that one call with many sets of parameters takes little more time than with one.

    Args:
        errors: Function from parameters, an array of shape (parameters, points, 1), to errors of shape (points, rows).
        at: The parameters.
    """
    points = np.repeat(np.asarray(at)[:, None, None], len(at) + 1, axis=1)
    points[np.arange(len(at)), np.arange(1, len(at) + 1)] += STEP
    values = errors(points)
    return (values[1:] - values[0]).T / STEP


def fit_parameters(
    typical: Mapping[str, float],
    shares: frozenset[str],
    log_errors: Callable[[dict[str, Any]], Any],
    weights: Mapping[str, float],
    limits: Mapping[str, tuple[float, float]],
    *,
    tolerance: float = 1e-8,
) -> tuple[dict[str, float], Any]:
    """Parameters that minimize errors of the logarithm of time and the distance from typical values.

    Args:
        typical: Parameters with their typical values, where the search begins.
        shares: Parameters between 0 and 1; the others are positive.
        log_errors: Function from parameters to log(computed / measured), an array whose last axis is the rows. Parameters are
            floats, or columns of shape (points, 1) for as many sets of them.
        weights: Residual of each parameter that is off its typical value by a factor of e.
        limits: The least and the largest value of each parameter; see :mod:`trnspec.perf.calibration.fits.limits`.
        tolerance: Relative change of the cost at which the search ends.

    Returns:
        The parameters, and the derivatives of all residuals by their logarithms or logits.

    Raises:
        UsageError: scipy is not installed.
    """
    begin = np.array([unbounded(value, share=name in shares) for name, value in typical.items()])
    bounds = [[_end(limits[name][end], share=name in shares) for name in typical] for end in (0, 1)]

    def parameters(at: Any) -> dict[str, Any]:
        return {name: bounded(x, share=name in shares) for name, x in zip(typical, at, strict=True)}

    def residuals(at: Any) -> Any:
        return np.concatenate([log_errors(parameters(at)), each * (at - begin)])

    def jacobian(at: Any) -> Any:
        return np.concatenate([derivatives(lambda points: log_errors(parameters(points)), at), np.diag(each)])

    each = np.array([weights[name] for name in typical])
    low, high = np.array(bounds)
    result = minimize(residuals, begin, (low, high), tolerance, jacobian=jacobian)
    return {name: float(value) for name, value in parameters(result.x).items()}, result.jac


def _end(limit: float, *, share: bool) -> Any:
    """A limit as :func:`unbounded`; a share of 0 or 1 limits nothing."""
    return np.copysign(np.inf, limit - 0.5) if share and limit in (0.0, 1.0) else unbounded(limit, share=share)


def unbounded(value: Any, *, share: bool) -> Any:
    """Logit of a share, logarithm of a positive number."""
    return np.log(value / (1.0 - value)) if share else np.log(value)


def bounded(x: Any, *, share: bool) -> Any:
    """Inverse of :func:`unbounded`."""
    return 1.0 / (1.0 + np.exp(-x)) if share else np.exp(x)


def stacked(values: Sequence[Any]) -> Any:
    """One attrs object whose numbers are arrays over those of several."""
    return combined(values, lambda numbers: np.array(numbers, float))


def selected(value: Any, mask: Any) -> Any:
    """Some rows of an attrs object whose numbers are arrays."""
    return combined([value], lambda numbers: numbers[0][mask] if isinstance(numbers[0], np.ndarray) else numbers[0])


def combined(values: Sequence[Any], of: Callable[[Sequence[Any]], Any]) -> Any:
    """One attrs object whose numbers are made from those of several, also where these are in tuples of further objects."""
    kind = type(values[0])
    if isinstance(values[0], tuple):
        return tuple(combined(each, of) for each in zip(*values, strict=True))
    if attrs.has(kind):
        return kind(**{f.name: combined([getattr(v, f.name) for v in values], of) for f in attrs.fields(kind)})
    return of(values)
