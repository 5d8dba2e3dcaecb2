"""The least value of a piecewise linear convex function, of many rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Function = Callable[[Values, NDArray[np.intp]], Values]

_ROUNDS = 40
"""The most rounds; typically three are needed."""
_NEAR = 1e-4
"""Distance of the two places of a slope, relative to that of the next one."""
_ROUNDING = 1e-13
"""Relative distance from its lower bound at which a value is the least."""


def least(function: Function, most: Values, guess: Values) -> tuple[Values, Values]:
    """The place of the least value of each row, and that value; by cutting planes (Kelley 1960).

    The lines through two places on either side of the least value are below the function. Where they meet is the next place;
    where the function is not above them there, it is the least value.

    Args:
        function: The values of some rows at some places, given their numbers.
        most: The last place of each row; the first one is 0.
        guess: A place near the least value.
    """
    rows = np.arange(len(most))
    place = guess.copy()
    value = function(place, rows)
    todo = rows[most > 0.0]
    low, high = np.zeros_like(most), most.copy()
    line_low, line_high = np.full((2, 2, len(most)), np.nan)

    def keep(at: Values, values: Values, of: NDArray[np.intp]) -> None:
        better = values < value[of]
        place[of[better]], value[of[better]] = at[better], values[better]

    def cut(at: Values, values: Values, of: NDArray[np.intp]) -> None:
        """Take a place as the new end on the side on which it is."""
        # Towards the end that is farther away, so that the step is not lost in rounding.
        step = _NEAR * np.where(high[of] - at >= at - low[of], high[of] - at, low[of] - at)
        beside = function(at + step, of)
        keep(at + step, beside, of)
        # An end next to the other one, to the smallest number, has no slope.
        slope = np.divide(beside - values, step, out=np.zeros_like(step), where=step != 0.0)
        left = slope < 0.0
        for end, line, side in ((low, line_low, left), (high, line_high, ~left)):
            some = of[side]
            end[some] = at[side]
            line[0, some], line[1, some] = slope[side], values[side] - slope[side] * at[side]

    cut(place[todo], value[todo], todo)
    for ends, line in ((low, line_low), (high, line_high)):
        # The other end of each row.
        some = todo[np.isnan(line[0, todo]) & (low[todo] < high[todo])]
        if some.size:
            at = ends[some].copy()
            values = function(at, some)
            keep(at, values, some)
            cut(at, values, some)
    for _ in range(_ROUNDS):
        # Where the function falls or rises throughout, an end is the least.
        todo = todo[np.isfinite(line_low[0, todo]) & np.isfinite(line_high[0, todo])]
        if not todo.size:
            break
        (slope_low, base_low), (slope_high, base_high) = line_low[:, todo], line_high[:, todo]
        at = np.clip((base_high - base_low) / (slope_low - slope_high), low[todo], high[todo])
        bound = base_low + slope_low * at
        open_ = value[todo] > bound + _ROUNDING * np.abs(bound)
        todo, at, bound = todo[open_], at[open_], bound[open_]
        if not todo.size:
            break
        values = function(at, todo)
        keep(at, values, todo)
        open_ = (value[todo] > bound + _ROUNDING * np.abs(bound)) & (at > low[todo]) & (at < high[todo])
        todo, at, values = todo[open_], at[open_], values[open_]
        cut(at, values, todo)
    return place, value
