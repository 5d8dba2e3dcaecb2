"""The largest of several linear forms of each row.

Row i has the forms of one of many sets, whose coefficients are linear in a number of the row: ``(c + n d) . x``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

SIZE = 5
"""Coefficients of a form."""


@define
class Forms:
    """Sets of forms.

    Attributes:
        first: The first form of each set.
        count: The number of forms of each set.
        coefficients: For each form its coefficients, and what each unit of the number adds to them; shape (10, forms).
    """

    first: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    count: NDArray[np.int64] = field(factory=lambda: np.zeros(0, dtype=np.int64))
    coefficients: NDArray[np.float64] = field(factory=lambda: np.zeros((2 * SIZE, 0)))

    def add(self, forms: Any) -> int:
        """Add a set.

        Args:
            forms: Ten numbers for each form; at least one form.

        Returns:
            The number of the set.
        """
        rows = np.array(forms)
        self.first = np.append(self.first, self.coefficients.shape[1])
        self.count = np.append(self.count, len(forms))
        self.coefficients = np.concatenate([self.coefficients, rows.T], axis=1)
        return len(self.first) - 1

    def largest(
        self, of_row: NDArray[np.int64], more: NDArray[np.float64], points: list[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """The value of the largest form of each row, at least 0.

        Args:
            of_row: The set of each row.
            more: The number of each row.
            points: Where forms are evaluated, coordinate by coordinate.
        """
        count = self.count.take(of_row)
        # Rows with the most forms first, so that those that have one more are a slice.
        order = np.argsort(-count, kind="stable")
        first, more, points = self.first.take(of_row[order]), more[order], [x[order] for x in points]
        left = np.searchsorted(-count[order], -np.arange(count.max(initial=0)), side="left")
        sorted_ = np.zeros(len(order))
        for number, rows in enumerate(left.tolist()):
            total = self.value(first[:rows] + number, more[:rows], [x[:rows] for x in points])
            np.maximum(sorted_[:rows], total, out=sorted_[:rows])
        found = np.empty(len(order))
        # The larger of 0 and -0 may be either.
        found[order] = sorted_ + 0.0
        return found

    def counts(self, form: Any, more: Any) -> list[Any]:
        """The coefficients of some forms."""
        each = zip(self.coefficients[:SIZE], self.coefficients[SIZE:], strict=True)
        return [count.take(form) + more * added.take(form) for count, added in each]

    def value(self, form: Any, more: Any, points: list[Any]) -> Any:
        """The values of some forms."""
        total: Any = None
        for count, x in zip(self.counts(form, more), points, strict=True):
            part = np.multiply(count, x, out=count)
            total = part if total is None else np.add(total, part, out=total)
        return total
