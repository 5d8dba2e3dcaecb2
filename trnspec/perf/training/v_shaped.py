"""The pipeline bubble of V-shaped schedules: the longest paths through the passes in their order, with the output."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from trnspec.perf.ops import all_floats
from trnspec.perf.training.forms import SIZE, Forms
from trnspec.perf.training.v_shaped_paths import paths, steady
from trnspec.perf.work.layout import V_SHAPED
from trnspec.perf.work.legality import MOST_V_STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def v_shaped_bubble(  # noqa: PLR0913, PLR0917  # columns of a batch
    v_shape: Any,
    stages: Any,
    microbatches: Any,
    forward: Any,
    inputs: Any,
    weights: Any,
    either: Any = 0.0,
    output: Any = 0.0,
    output_inputs: Any = 0.0,
) -> Any:
    """The pipeline bubble of V-shaped schedules [s]: the longest of some paths, beyond what the first stage computes.

    Floats or arrays that broadcast; the same bits for all.  It is exact where forward and inputs take at
    least as long as weights, and else a lower bound.

    Args:
        v_shape: Number of the schedule in :data:`~trnspec.perf.work.layout.V_SHAPED`, from 1; 0 for none.
        stages: Pipeline stages; 0 s beyond those that are computed.
        microbatches: Microbatches; the whole ones count.
        forward: Time of a forward pass of a chunk [s].
        inputs: Time of the gradients of the inputs of a chunk [s].
        weights: Time of the gradients of the weights of a chunk [s].
        either: The part of ``forward`` that may be in ``inputs`` instead, where the bubble is shorter [s].
        output: Time of the output forward [s], which the first stage has after its second chunk.
        output_inputs: The same backward [s]: from once to twice as long.
    """
    numbers = v_shape, stages, microbatches, forward, inputs, weights, either, output, output_inputs
    if all_floats(*numbers):
        if either:
            return _moved_bubble(*numbers)
        return _bubble(v_shape, stages, microbatches, forward, inputs, weights, output, output_inputs)
    return _bubbles(*numbers)


@lru_cache(maxsize=4096)
def _moved_bubble(*numbers: float) -> float:
    """The bubble of floats where something may be in either pass."""
    return float(_bubbles(*numbers))


def _bubble(v_shape: float, stages: float, microbatches: float, *times: float) -> float:
    if not v_shape or not 1.0 < stages <= MOST_V_STAGES:
        return 0.0
    forward, inputs, weights, output, output_inputs = times
    longest = 0.0
    for f, b, w, o, g in _counted(v_shape, stages, microbatches, usual=inputs >= forward >= weights):
        time = f * forward + b * inputs + w * weights + o * output + g * output_inputs
        if time > longest:  # noqa: PLR1730  # a call of max takes three times as long
            longest = time
    return longest


@lru_cache(maxsize=4096)
def _counted(v_shape: float, stages: float, microbatches: float, *, usual: bool) -> tuple[tuple[float, ...], ...]:
    """The counts of the paths of a pipeline."""
    schedule = V_SHAPED[int(v_shape) - 1]
    most = steady(schedule, int(stages))
    found = paths(schedule, int(stages), max(1, int(min(microbatches, most))), usual=usual)
    more = max(0.0, float(int(microbatches)) - most)
    return tuple(tuple(n + more * m for n, m in zip(path[:SIZE], path[SIZE:], strict=True)) for path in found)


def _bubbles(*operands: Any) -> Any:
    """:func:`v_shaped_bubble` of arrays that broadcast."""
    columns = [np.asarray(x, dtype=np.float64) for x in operands]
    shape = np.broadcast_shapes(*(x.shape for x in columns))
    rows = np.flatnonzero(np.broadcast_to(_computed(*columns[:2]), shape))
    columns = [_flat(x, shape) for x in columns]
    found = np.zeros(math.prod(shape))
    every = rows.size == found.size
    for begin in range(0, rows.size, _AT_ONCE):
        some = slice(begin, begin + _AT_ONCE)
        at = some if every else rows[some]
        size = rows[some].size
        found[at] = _TABLE.bubbles(*(x[at] if x.size > 1 else np.repeat(x, size) for x in columns))
    whole: Any = found.reshape(shape)
    return whole if shape else float(whole)


_AT_ONCE = 1 << 16
"""Rows that are computed at once, which bounds the memory."""


def _computed(v_shape: Any, stages: Any) -> Any:
    return (v_shape > 0.0) & (stages > 1.0) & (stages <= MOST_V_STAGES)


def _flat(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The elements of an array that broadcasts to a shape, in their order there; a single one alone."""
    return x.reshape(-1) if x.shape == shape or x.size == 1 else np.broadcast_to(x, shape).reshape(-1)


class _Table:
    """The paths of those schedules, stages and microbatches that have occurred, for many rows at once.

    Attributes:
        forms: The paths.
        index: The set of each: of the usual ones and of all, by schedule, stages and microbatches; -1 where it has not occurred.
        steady: By schedule and stages the most microbatches that differ.
    """

    def __init__(self) -> None:
        self.steady = np.array([[0, 0, *(steady(name, p) for p in range(2, MOST_V_STAGES + 1))] for name in V_SHAPED])
        self.index = np.full((2, *self.steady.shape, 1 + self.steady.max()), -1, dtype=np.int64)
        self.forms = Forms()

    def bubbles(self, v_shape: Any, stages: Any, microbatches: Any, *times: Any) -> NDArray[np.float64]:
        """The bubble of each row; see :func:`v_shaped_bubble`."""
        forward, inputs, weights, either, *outputs = times
        whole = np.maximum(np.floor(microbatches), 1.0)
        _, shapes, rows, width = self.index.shape
        key = ((v_shape - 1.0) * rows + stages).astype(np.int64)
        few = np.minimum(whole, self.steady.take(key))
        more = whole - few
        key *= width
        key += few.astype(np.int64)
        if (moved := np.flatnonzero(either)).size:
            forward, inputs = forward.copy(), inputs.copy()
            every = self._sets(key[moved] + shapes * rows * width)
            of_paths = [x[moved] for x in (forward, inputs, weights, *outputs)]
            moving = self._moved(every, more[moved], of_paths, either[moved])
            forward[moved] -= moving
            inputs[moved] += moving
        key += ((inputs < forward) | (forward < weights)) * (shapes * rows * width)
        return self.forms.largest(self._sets(key), more, [forward, inputs, weights, *outputs])

    def _sets(self, key: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sets of paths at some places of the index."""
        found = self.index.take(key)
        if found.min() < 0:
            self._add(np.unique(key[found < 0]))
            found = self.index.take(key)
        return found

    def _add(self, keys: NDArray[np.int64]) -> None:
        """Find the paths of further schedules, stages and microbatches, no more than the most that differ."""
        for place, every, shape, p, m in zip(keys.tolist(), *np.unravel_index(keys, self.index.shape), strict=True):
            found = paths(V_SHAPED[shape], int(p), int(m), usual=not every)
            self.index.flat[place] = self.forms.add(found)

    def _moved(self, sets: NDArray[np.int64], more: Any, times: Sequence[Any], either: Any) -> NDArray[np.float64]:
        """The time to move; see :func:`_least`."""
        number = self.forms.count.take(sets)
        found = np.empty(len(number))
        # Rows with about equally many paths at once: the last path again where there are fewer.
        group = np.frexp(number)[1]
        for some in (np.flatnonzero(group == one) for one in np.unique(group).tolist()):
            several = number[some]
            path = self.forms.first.take(sets[some]) + np.minimum(np.arange(several.max())[:, None], several - 1)
            found[some] = _least(self.forms.counts(path, more[some]), [x[some] for x in times], either[some])
        return found


_STEPS = 10
"""More steps than it takes to find the lowest point of these paths."""


def _least(counts: Sequence[Any], times: Sequence[Any], either: Any) -> NDArray[np.float64]:
    """The time to move from the forward pass to the gradients of the inputs for the least maximum of the paths.

    On either side of the lowest point one path is the longest; where these two cross is the next point, until there is no
    longer path there (Kelley's method).

    Args:
        counts: By path and row: forward passes, those for gradients of the inputs and of the weights, outputs either way.
        times: Time of each of these, by row.
        either: What may be moved, at most.
    """
    # The time is linear in what is moved.
    start: Any = sum((n * time for n, time in zip(counts, times, strict=True)), 0.0)
    slope = counts[1] - counts[0]
    first = start.argmax(axis=0), np.arange(len(either))
    at_low, down = start[first], slope[first]
    least: NDArray[np.float64] = np.zeros_like(either)
    value = at_low.copy()
    # Of most rows the longest path is no shorter where something is moved.
    rows = np.flatnonzero(down < 0.0)
    start, slope = start.take(rows, axis=1), slope.take(rows, axis=1)
    at_low, down, high = (x.take(rows) for x in (at_low, down, either))
    low = np.zeros_like(high)

    def longest(moved: Any) -> tuple[Any, Any]:
        time = slope * moved
        time += start
        at = time.argmax(axis=0), np.arange(len(moved))
        return time[at], slope[at]

    at_high, up = longest(high)
    least[rows], value[rows] = np.where(at_high < at_low, high, low), np.minimum(at_low, at_high)
    for _ in range(_STEPS):
        left = np.flatnonzero((down < 0.0) & (up > 0.0) & (low < high))
        if not left.size:
            break
        start, slope = start.take(left, axis=1), slope.take(left, axis=1)
        rows, low, high, at_low, at_high, down, up = (
            x.take(left) for x in (rows, low, high, at_low, at_high, down, up)
        )
        point = np.minimum(np.maximum(low + (at_low - at_high + up * (high - low)) / (up - down), low), high)
        time, tilt = longest(point)
        shorter = time < value[rows]
        least[rows], value[rows] = np.where(shorter, point, least[rows]), np.where(shorter, time, value[rows])
        # At the lowest point nothing is longer than the two paths that cross there.
        falls, lowest = tilt < 0.0, time <= (at_low + down * (point - low)) * (1.0 + _ROUNDING)
        low, at_low, down = np.where(falls, point, low), np.where(falls, time, at_low), np.where(falls, tilt, down)
        high, at_high, up = np.where(falls, high, point), np.where(falls, at_high, time), np.where(falls, up, tilt)
        down = np.where(lowest, 0.0, down)
    return least


_ROUNDING = 1e-14
"""How far the time of a path may be from that of another one, relative to it, and count as equal."""

_TABLE = _Table()
