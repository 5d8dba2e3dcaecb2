"""Counts of a system that a plan considers, and the fewest that meet a goal."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ALL_UP_TO = 16
"""All counts up to this are considered."""
_GUESSES = 4
"""Counts guessed from the last one; then the remaining interval is halved."""
_PER_OCTAVE = 8
"""Counts considered between a larger power of two and the next: their degrees have small factors."""


def considered(at_least: float) -> int:
    """The smallest count to consider that is not below a number: 1 to 16, then 18, 20, ... 32, 36, ... 64, 72, ..."""
    count = max(1, math.ceil(at_least))
    step = max(1, (1 << ((count - 1).bit_length() - 1)) // _PER_OCTAVE) if count > ALL_UP_TO else 1
    return -(-count // step) * step


def before(count: int) -> int:
    """The largest count to consider below another one to consider; 0 below 1."""
    step = max(1, (1 << ((count - 1).bit_length() - 1)) // _PER_OCTAVE) if count > ALL_UP_TO else 1
    return count - step


def fewest(needs: Callable[[int], float | None], first: int, most: int, within: float = 1.0) -> int | None:
    """The fewest systems that meet a goal, of the counts that are considered; ``None`` if not even ``most`` do.

    What more systems need is taken to be no more. Each evaluation gives the next count, so that there are few of them.

    Args:
        needs: How many systems would meet the goal, as far as can be judged from that many: up to as many if they meet it;
            ``None`` where it cannot be judged, infinity where more are of no use.
        first: The count to begin with.
        most: The largest count.
        within: How many times as many as the fewest may be found.
    """
    low, high, count = 0, 0, min(considered(first), most)
    for tried in itertools.count(1):
        needed = needs(count)
        if needed is not None and needed <= count:
            high = count
        elif count >= most or needed == math.inf:
            break
        else:
            low = count
        if high and (before(high) <= low or high <= within * low):
            break
        guess = 2.0 * count if needed is None else needed
        if high and tried > _GUESSES:
            guess = 0.5 * (low + high)
        count = min(max(considered(guess), considered(low + 1)), before(high) if high else most)
    return high or None
