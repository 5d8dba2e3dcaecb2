"""The uncertainty of fitted parameters, and what the rows of a fit add to what was known before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

OUTLYING = 0.1
"""Errors of the logarithm of a time beyond which a row has less and less weight."""

Key = str | tuple[str, str, str]
"""A mean by its name, or a deviation by name, grouping and group."""

Groups = Mapping[str, str]
"""The group of a row by grouping."""

NONE: Groups = {}
"""No group."""

DETERMINED, OPEN = 0.5, 0.8
"""Width after the rows over the width before, up to which rows determine a parameter, and from which on they say little."""

Origin = Literal["rows", "both", "prior"]


@frozen(kw_only=True)
class Information:
    """Information that rows add to a parameter.

    Attributes:
        name: The parameter.
        value: Its value with the rows.
        prior: Its value before them.
        prior_width: Standard deviation before them, of the logarithm or the logit.
        width: The same with the rows.
    """

    name: str
    value: float
    prior: float
    prior_width: float
    width: float

    @property
    def share(self) -> float:
        """Share of the prior's variance that the rows remove: 0 for nothing learned, 1 for a completely determined parameter."""
        return max(0.0, 1.0 - self.width / self.prior_width)

    @property
    def origin(self) -> Origin:
        """Whether the value is that of the rows, of the prior, or of both."""
        ratio = self.width / self.prior_width
        return "rows" if ratio <= DETERMINED else "prior" if ratio >= OPEN else "both"


@frozen
class Posterior:
    """The parameters of a fit with their uncertainty.

    Attributes:
        keys: The parameters of the search: means and deviations.
        covariance: Of them, as logarithms and logits.
        prior: The values before the rows, by name.
        residuals: The residual of each key that is off by a factor of e.
    """

    keys: tuple[Key, ...]
    covariance: Any = field(repr=False, eq=False)
    prior: Mapping[str, float]
    residuals: Any = field(repr=False, eq=False)

    def learned(self, values: Mapping[str, float], groups: Groups = NONE) -> list[Information]:
        """Information that the rows add to each parameter."""
        result = []
        for name, prior in self.prior.items():
            own = [
                i for i, key in enumerate(self.keys)
                if key == name or (not isinstance(key, str) and key[0] == name and groups.get(key[1]) == key[2])
            ]  # fmt: skip
            before = float(np.sqrt(np.sum((OUTLYING / self.residuals[own]) ** 2)))
            after = float(np.sqrt(self.covariance[np.ix_(own, own)].sum()))
            result.append(Information(name=name, value=values[name], prior=prior, prior_width=before, width=after))
        return result


def posterior(keys: Sequence[Key], jacobian: Any, prior: Mapping[str, float], residuals: Any) -> Posterior:
    """The uncertainty of a fit: the inverse of the curvature of its cost (Laplace's approximation).

    Args:
        keys: The parameters of the search.
        jacobian: Derivatives of all residuals at its end, those of the prior included.
        prior: The values before the rows, by name.
        residuals: The residual of each key that is off by a factor of e.
    """
    # Rows that the fit misses count less, as they do in the search; the prior counts in full.
    rows = jacobian[: -len(keys)]
    covariance = OUTLYING**2 * np.linalg.inv(rows.T @ rows + np.diag(np.square(residuals)))
    return Posterior(tuple(keys), covariance, dict(prior), np.asarray(residuals))
