"""The fastest layout of some grids: lower bounds of all times first, then the times of the few layouts that these leave."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.perf.sweep.axes import Axis, layout_axes
from trnspec.perf.sweep.columns import REASONS
from trnspec.perf.sweep.grid import Grid, over
from trnspec.perf.sweep.pages import keep_pages
from trnspec.perf.sweep.reductions import Top
from trnspec.perf.sweep.regions import DOES_NOT_FIT, Part, Rows, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.sweep.axes import Region
    from trnspec.perf.training.estimator import Estimator

_FIRST, _MORE = 256, 8192
"""Layouts of which memory is computed at once: the fastest is often one of the first."""
_FIRST_TIMES = 16
"""The first ones of which times are computed."""
_BLOCK = 1 << 16
"""Combinations of a region."""


@frozen(order=True)
class Fastest:
    """A layout of one of some grids.

    Attributes:
        time: Time of a step [s].
        which: The position of its grid.
        number: Its number there.
    """

    time: float
    which: int
    number: int


def fastest(
    estimator: Estimator, grids: Sequence[Grid], limit: float = math.inf
) -> tuple[Fastest | None, Counter[str]]:
    """The fastest layout of some grids that fits and takes no longer than a limit, of equal ones the first; and counts by reason.

    Not all that do not fit are counted, unless there is no limit and none that fits.

    Args:
        estimator: The model on a system.
        grids: The layouts.
        limit: The longest time [s].
    """
    if limit == math.inf:
        return _of_all(estimator, grids)
    keep_pages()
    counts = np.zeros(len(REASONS), dtype=np.int64)
    parts = [Part(estimator, i, layout_axes(one.axes)) for i, one in enumerate(grids)]
    some = [
        _candidates(region, limit)
        for part in parts
        for region in part.regions(counts, memory=False, block=_BLOCK, wanted=Wanted(bounds=True))
    ]
    if not some:
        return None, _rejected(counts)
    which, numbers, bounds = (np.concatenate(x) for x in zip(*some, strict=True))
    order = np.argsort(bounds, kind="stable")
    best: Fastest | None = None
    begin, size = 0, _FIRST
    while begin < len(order) and bounds[order[begin]] <= (limit if best is None else best.time):
        at = order[begin : begin + size]
        begin, size = begin + size, _MORE
        fitting = _rows(parts, which[at], numbers[at], counts)
        if fitting is None:
            continue
        rows, able = fitting
        able = able[np.argsort(rows.places[able], kind="stable")]
        for some_of in _growing(able):
            slowest = limit if best is None else best.time
            fast = some_of[bounds[at][rows.places[some_of]] <= slowest]
            if not len(fast):
                break
            of_these = rows.of_these(fast)
            time = np.broadcast_to(of_these.step((), np.ones(1, dtype=bool), slowest).total, len(fast))
            for i in np.flatnonzero(time <= slowest):
                place = at[of_these.places[i]]
                one = Fastest(float(time[i]), int(which[place]), int(numbers[place]))
                best = one if best is None else min(best, one)
    return best, _rejected(counts)


def _rejected(counts: NDArray[np.int64]) -> Counter[str]:
    """The number of layouts by reason."""
    return Counter({reason: int(n) for reason, n in zip(REASONS, counts, strict=True) if reason and n})


def _of_all(estimator: Estimator, grids: Sequence[Grid]) -> tuple[Fastest | None, Counter[str]]:
    """The fastest layout; the memory of all is computed."""
    best: Fastest | None = None
    rejected: Counter[str] = Counter()
    keep = Top(1)
    for which, one in enumerate(grids):
        result = over((estimator,), one, keep=keep, wanted=Wanted(keep))
        rejected.update(result.rejected)
        if len(result.result) and (best is None or result.result.time[0] < best.time):
            best = Fastest(float(result.result.time[0]), which, int(result.result.number[0]))
    return best, rejected


def _candidates(region: Region, limit: float) -> list[NDArray[Any]]:
    """The grid, the number and the bound of the combinations of a region whose time may be within a limit."""
    number, bound, _ = region.selected((region.code == 0) & (region.time <= limit))
    return [np.full(len(number), region.which), number, bound]


def _rows(
    parts: Sequence[Part], which: NDArray[np.int64], numbers: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[Rows, NDArray[np.intp]] | None:
    """Some layouts as rows, whose places are their positions, and those of the rows that fit; ``None`` for none.

    Args:
        parts: The grids.
        which: The grid of each layout.
        numbers: Its number there.
        counts: Number of combinations by code, to which those that do not fit are added.
    """
    estimator, every = parts[0].estimator, np.arange(len(numbers))
    of_part = [which == part.which for part in parts]
    axes, strides = [], [1] * len(parts)
    for of_parts in zip(*(reversed(part.axes) for part in parts), strict=True):
        first = of_parts[0]
        columns = {name: column[:1] for name, column in first.columns.items()}
        if any(len(axis) > 1 or axis.columns[n][0] != c[0] for axis in of_parts for n, c in columns.items()):
            columns = {name: np.zeros(len(numbers), dtype=column.dtype) for name, column in first.columns.items()}
            for i, (axis, mask) in enumerate(zip(of_parts, of_part, strict=True)):
                positions = numbers[mask] // strides[i] % len(axis)
                strides[i] *= len(axis)
                for name, column in axis.columns.items():
                    columns[name][mask] = column[positions]
        size = len(columns[next(iter(columns))])
        axes.append(Axis(first.name, columns, np.zeros(size, dtype=np.int64)))
    # Each varying axis has a value for each layout, and the first one also its position.
    varying = tuple(axis for axis in axes if len(axis) > 1)
    if varying:
        varying[0].places[:] = every
    positions = np.tile(every, (len(varying), 1))
    rows = Rows.of(Part(estimator, 0, tuple(axes), varying, ()), positions, np.zeros_like(counts), None)
    if rows is None:
        return None
    fits = np.broadcast_to(rows.needed(()) <= estimator.system.capacity, len(rows.places))
    counts[DOES_NOT_FIT] += len(fits) - np.count_nonzero(fits)
    able = np.flatnonzero(fits & np.broadcast_to(rows.code == 0, len(fits)))
    return (rows, able) if len(able) else None


def _growing(rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Some rows, more of them each time: most times of schedules that are executed need not be computed."""
    begin, size = 0, _FIRST_TIMES
    while begin < len(rows):
        yield rows[begin : begin + size]
        begin, size = begin + size, 4 * size
