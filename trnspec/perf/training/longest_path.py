"""The longest paths through the passes of a pipeline: of few rows one by one, of many level by level."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW = 8
"""Rows up to which each is computed by itself: a pass takes 0.1 us, a level of passes of any number of rows 5 us."""
_ELEMENTS = 1 << 20
"""Passes times rows that are computed at once with numpy."""

Level = tuple[slice, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
"""Passes of different stages that need none of each other: their numbers, those of the passes that they follow on their stage
and on others, and the positions of their durations."""


@frozen(eq=False)
class Paths:
    """The paths through some passes, which have numbers; those after the last are of none, and of what comes before a stage.

    Attributes:
        size: The number of passes.
        levels: The passes in order.
    """

    size: int
    levels: tuple[Level, ...]

    @cached_property
    def _lists(self) -> list[tuple[int, ...]]:
        """The passes one by one: number, number of either pass before, and position of the duration."""
        numbers = np.arange(self.size)
        columns = zip(*((numbers[here], own, other, part) for here, own, other, part in self.levels), strict=True)
        return list(zip(*(np.concatenate(column).tolist() for column in columns), strict=True))

    def longest(
        self, durations: NDArray[np.float64], ends: NDArray[np.float64], wanted: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """The longest path to and including some passes; shape (wanted, rows).

        Args:
            durations: The durations; shape (positions, rows).
            ends: What comes before the first passes of each stage; shape (stages, rows).
            wanted: The passes.
        """
        rows = durations.shape[1]
        if rows <= _FEW:
            each = [self._of_row(durations[:, i].tolist(), ends[:, i].tolist()) for i in range(rows)]
            return np.array([[of_row[i] for of_row in each] for i in wanted.tolist()]).reshape(len(wanted), rows)
        most = max(1, _ELEMENTS // self.size)
        parts = [slice(begin, begin + most) for begin in range(0, rows, most)]
        return np.concatenate([self._by_levels(durations[:, at], ends[:, at])[wanted] for at in parts], axis=1)

    def _of_row(self, durations: Sequence[float], ends: Sequence[float]) -> list[float]:
        found = [0.0] * self.size + [-np.inf, *ends]
        for here, own, other, part in self._lists:
            one, two = found[own], found[other]
            found[here] = (two if two > one else one) + durations[part]  # noqa: FURB136  # max takes three times as long
        return found

    def _by_levels(self, durations: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
        stages, rows = ends.shape
        durations = np.ascontiguousarray(durations)
        found, buffers = np.empty((self.size + 1 + stages, rows)), np.empty((2, stages, rows))
        found[self.size], found[self.size + 1 :] = -np.inf, ends
        for here, own, other, part in self.levels:
            one, two = (buffer[: len(own)] for buffer in buffers)
            # Positions are never outside; numpy would buffer the output if it had to check that.
            found.take(own, axis=0, out=one, mode="clip")
            found.take(other, axis=0, out=two, mode="clip")
            np.maximum(one, two, out=one)
            durations.take(part, axis=0, out=two, mode="clip")
            np.add(one, two, out=found[here])
        return found
