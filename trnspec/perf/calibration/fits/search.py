"""Searches for the parameters of a fit: robust least squares, parameters near typical values, partially pooled.

The parameter of a row is its mean plus the deviations of the groups that the row belongs to (chip, era, framework): a group with
few rows borrows from the others, and a group without any has the mean (Gelman and Hill 2007, chapter 12).  Parameters are
searched as logarithms, shares as logits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import library
from trnspec.model.calibration import SERVING_SHARES, SHARES
from trnspec.perf.calibration.fits.limits import kernel, limits
from trnspec.perf.calibration.fits.uncertainty import NONE, OUTLYING, Groups, Posterior, posterior

_SHARES = SHARES | SERVING_SHARES | {"compute", "waves", "split"}
"""Parameters between 0 and 1; the others are positive."""

_INSIDE = 1e-6
"""Least distance of a share from 0 and 1."""

_MARGIN = 1e-3
"""Distance from the limits at which the search begins, where a typical value is outside."""


def unbounded(name: str, value: Any) -> Any:
    """Logit of a share, logarithm of a positive number."""
    return np.log(value / (1.0 - value)) if name in _SHARES else np.log(value)


def bounded(name: str, x: Any) -> Any:
    """Inverse of :func:`unbounded`."""
    return 1.0 / (1.0 + np.exp(-x)) if name in _SHARES else np.exp(x)


def scale(name: str, value: float) -> float:
    """A parameter as a logarithm or a logit; shares of 0 and 1 are moved inside."""
    inside = min(max(value, _INSIDE), 1.0 - _INSIDE) if name in _SHARES else max(value, 1e-12)
    return float(unbounded(name, inside))


@frozen(kw_only=True)
class Space:
    """The parameters of a fit, and how they are searched.

    Attributes:
        typical: The value of each parameter before the rows.
        pulls: Residual of each that is off by a factor of e.
        limits: The least and the largest value of each.
        deviations: The groupings by which parameters deviate from their mean.
        ridge: Residual of a deviation by a factor of e.
        farthest: The largest deviation.
        by_chip: Whether limits and typical values are those of the best and of the large kernels of a chip.
        origin: With ``by_chip`` the chip of ``typical``; empty for none.
        fixed: Parameters that are a property of the rows.
        loss: ``all`` for the soft L1 loss of all residuals, with the limits as bounds of the search; ``rows`` for that of rows
            alone, with a quadratic penalty on the distance from typical values, and values that are moved to the limits.
        tolerance: Relative change of the cost at which the search ends.
        step: Difference of a parameter for derivatives; 0 to leave them to scipy, which calls once for each parameter.
        most: Evaluations at most, of a search from typical values, and of one from another result.
        slow: Values of some parameters where a second search begins.
        context: Context manager of the search.
    """

    typical: Mapping[str, float]
    pulls: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]
    deviations: Mapping[str, tuple[str, ...]] = field(factory=dict)
    ridge: float = 1.0
    farthest: float = 3.0
    by_chip: bool = False
    origin: str = ""
    fixed: Mapping[str, float] = field(factory=dict)
    loss: Literal["all", "rows"] = "all"
    tolerance: float = 1e-5
    step: float = 1e-6
    most: tuple[int | None, int | None] = (None, None)
    slow: Mapping[str, float] = field(factory=dict)
    context: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def centers(self) -> dict[str, float]:
        """The means before the rows."""
        return {n: scale(n, v) - self.place(n, self.origin)[2] for n, v in self.typical.items()}

    def place(self, name: str, chip: str) -> tuple[float, float, float]:
        """The least and the largest value of a parameter on a chip, and what the chip adds to its mean."""
        if self.by_chip:
            return *limits([chip])[name], kernel(chip, name)
        # Bounds of the search keep values inside, also differences beyond them for derivatives.
        return *(self.limits[name] if self.loss == "rows" else (-np.inf, np.inf)), 0.0

    def bounds(self, name: str) -> tuple[float, float]:
        """The limits as :func:`unbounded`; a share of 0 or 1 limits nothing."""
        low, high = (
            float(np.copysign(np.inf, end - 0.5) if name in _SHARES and end in (0.0, 1.0) else unbounded(name, end))
            for end in self.limits[name]
        )
        return low, high


@frozen
class SearchResult:
    """The result of a search.

    Attributes:
        space: The parameters.
        means: Mean of each, as :func:`unbounded`.
        deviations: Deviations on the same scale.
        posterior: The uncertainty; ``None`` without rows, or with the loss of ``rows``.
    """

    space: Space = field(repr=False)
    means: Mapping[str, Any]
    deviations: Mapping[tuple[str, str, str], Any] = field(factory=dict)
    posterior: Posterior | None = field(default=None, repr=False, eq=False)

    def values(self, groups: Groups = NONE) -> dict[str, float]:
        """The parameters of a row that belongs to some groups; unknown groups have no deviation."""
        found = {}
        for name, mean in self.means.items():
            low, high, offset = self.space.place(name, groups.get("chip", ""))
            own = (
                self.deviations.get((name, by, groups.get(by, "")), 0.0) for by in self.space.deviations.get(name, ())
            )
            found[name] = float(np.clip(bounded(name, mean + offset + sum(own)), low, high))
        return found | dict(self.space.fixed)

    def arrays(self, groups: Sequence[Groups]) -> dict[str, Any]:
        """The parameters of several rows, each an array."""
        known: dict[tuple[str, ...], dict[str, float]] = {}
        keys = [tuple(g.values()) for g in groups]
        for key, of_row in zip(keys, groups, strict=True):
            if key not in known:
                known[key] = self.values(of_row)
        return {name: np.array([known[key][name] for key in keys]) for name in {**self.means, **self.space.fixed}}


def search(
    space: Space,
    groups: Sequence[Groups],
    log_errors: Callable[[dict[str, Any]], Any],
    *,
    rows: Any = ...,
    inner: Any = 1.0,
    outer: Any = 1.0,
    start: SearchResult | None = None,
) -> SearchResult:
    """The means and deviations that minimize errors of the logarithm of time, and the distance from typical values.

    Args:
        space: The parameters.
        groups: The groups of each row; without rows the result are the typical values.
        log_errors: Function from parameters to log(computed / measured), an array whose last axis are the measured times.
            Parameters are floats, or arrays over the rows where they deviate; before that axis are points, as many sets.
        rows: The row of each measured time; all rows in order when left out.
        inner: Weight of each error before the loss.
        outer: Weight of each after it, with the loss of ``rows``.
        start: Where the search begins, such as the fit to more rows; at typical values when left out.

    Raises:
        UsageError: scipy is not installed.
    """
    least_squares = library("scipy.optimize", "calibrate").least_squares
    if not groups:
        return SearchResult(space, space.centers)
    names = list(space.typical)
    own = [
        (name, by, group)
        for name, groupings in space.deviations.items()
        for by in groupings
        for group in sorted({g.get(by, "") for g in groups} - {""})
    ]
    members = {key: np.array([g.get(key[1], "") == key[2] for g in groups], float) for key in own}
    places = [_places(space, name, [g.get("chip", "") for g in groups]) for name in names]
    owner = [names.index(name) for name, _, _ in own]
    center = np.array([*space.centers.values(), *[0.0] * len(own)])
    pull = np.array([*(space.pulls[name] for name in names), *[space.ridge] * len(own)])
    robust = space.loss == "rows"

    def values(at: Any) -> dict[str, Any]:
        found: dict[str, Any] = dict(space.fixed)
        for i, name in enumerate(names):
            low, high, offset = places[i]
            x = at[i] + offset
            for j in (j for j, of in enumerate(owner) if of == i):
                x = x + at[len(names) + j] * members[own[j]]
            found[name] = np.clip(bounded(name, x), low, high)
        return found

    def errors(at: Any) -> Any:
        return inner * log_errors(values(at))

    def residuals(at: Any) -> Any:
        plain = errors(at)
        return np.concatenate([outer * _soft(plain)[0] if robust else plain, pull * (at - center)])

    def jacobian(at: Any) -> Any:
        points = np.repeat(np.asarray(at)[:, None, None], len(names) + 1, axis=1)
        points[np.arange(len(names)), np.arange(1, len(names) + 1)] += space.step
        some = errors(points)
        means = (some[1:] - some[0]).T / space.step
        if robust:
            means = np.broadcast_to(outer * _soft(some[0])[1], some[0].shape)[:, None] * means
        # What a group adds to a parameter changes its rows as the mean does.
        parts = [members[key][rows] * means[:, i] for key, i in zip(own, owner, strict=True)]
        return np.concatenate([np.column_stack([means, *parts]), np.diag(pull)])

    begins = _begins(space, own, start)
    options: dict[str, Any] = {"ftol": space.tolerance, "max_nfev": space.most[start is not None]}
    if not robust:
        ends = np.array([*map(space.bounds, names), *[(-space.farthest, space.farthest)] * len(own)]).T
        low, high = ends
        if np.all(np.isfinite(ends)):
            begins = [np.clip(b, low + _MARGIN * (high - low), high - _MARGIN * (high - low)) for b in begins]
        options |= {"bounds": (low, high), "loss": "soft_l1", "f_scale": OUTLYING, "xtol": space.tolerance}
    with space.context():
        results = [least_squares(residuals, b, jac=jacobian if space.step else "2-point", **options) for b in begins]
    best = min(results, key=lambda result: float(result.cost))
    at = list(map(float, best.x))
    found = SearchResult(space, dict(zip(names, at, strict=False)), dict(zip(own, at[len(names) :], strict=True)))
    return found if robust else attrs.evolve(found, posterior=posterior((*names, *own), best.jac, space.typical, pull))


def _begins(space: Space, own: Sequence[tuple[str, str, str]], start: SearchResult | None) -> list[Any]:
    """Starting points of searches: another result; or typical values, and further values of some parameters."""
    centers = space.centers
    if start is not None:
        means = [start.means.get(name, center) for name, center in centers.items()]
        return [np.array([*means, *(start.deviations.get(key, 0.0) for key in own)])]
    slow = {name: scale(name, value) for name, value in space.slow.items()}
    each = [centers] if not slow else [centers, {name: slow.get(name, center) for name, center in centers.items()}]
    return [np.array([*means.values(), *[0.0] * len(own)]) for means in each]


def _places(space: Space, name: str, chips: Sequence[str]) -> tuple[Any, ...]:
    """Results of :meth:`Space.place` for each row; one number where all are equal."""
    each = {chip: space.place(name, chip) for chip in {*chips}}
    return tuple(
        column[0] if len({*column}) == 1 else np.array(column) for column in zip(*(each[c] for c in chips), strict=True)
    )


def _soft(plain: Any) -> tuple[Any, Any]:
    """The residual whose square is the soft L1 loss, and its derivative."""
    scaled = 1.0 + (plain / OUTLYING) ** 2
    size = OUTLYING * np.sqrt(2.0 * (np.sqrt(scaled) - 1.0))
    slope = np.where(size > 0.0, np.abs(plain) / np.sqrt(scaled) / np.where(size > 0.0, size, 1.0), 1.0)
    return np.sign(plain) * size, slope


def stacked(values: Sequence[Any]) -> Any:
    """One attrs object whose numbers are arrays over those of several."""
    return combined(values, lambda numbers: np.array(numbers, float))


def combined(values: Sequence[Any], of: Callable[[Sequence[Any]], Any]) -> Any:
    """One attrs object whose numbers are made from those of several, also where these are in tuples of further objects."""
    kind = type(values[0])
    if isinstance(values[0], tuple):
        return tuple(combined(each, of) for each in zip(*values, strict=True))
    if attrs.has(kind):
        return kind(**{f.name: combined([getattr(v, f.name) for v in values], of) for f in attrs.fields(kind)})
    return of(values)
