"""The pipeline bubble of V-shaped schedules: the longest paths through the passes in their order.

Executed in an order, the passes take as long as the longest path through them.  The time of a path is ``a F + b B + c W``
with whole numbers, so a step is the maximum of a few such forms: exact, and monotone in each of the three times.  From some
number of microbatches on, each further one adds the same to each form.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from trnspec.perf.ops import Corrected, all_floats, elementwise, larger
from trnspec.perf.training.v_shaped_order import Slot, needed, order
from trnspec.perf.work.layout import V_SHAPED
from trnspec.perf.work.legality import MOST_V_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_CONE = np.array([(1, 0, -1), (0, 1, -1), (0, 0, 1)])
"""The times of F, B and W for which all longest paths are found: F and B at least a quarter of W; all products positive."""

_SOME = np.array([(i, j, 15 - i - j) for i in range(16) for j in range(16 - i)])
"""Weights of the edges of the cone, for directions within it to begin with."""

_TIE = 1e-9
"""Lengths of paths that differ by less, relative to a pass, are equal."""

_DIGITS = 21
"""Binary digits of each of the three counts of a path."""


def steady(schedule: str, stages: int) -> int:
    """The microbatches from which on each further one adds the same to each path; found by execution, see the tests."""
    return {"zbv": 2 * stages - 1, "v-half": 2 * stages, "v-min": stages + 4}[schedule]


Path = tuple[float, ...]
"""Passes beyond those of a stage: counts of F, B and W of a chunk, and what each further microbatch adds to them."""


@cache
def paths(schedule: str, stages: int, microbatches: int) -> tuple[Path, ...]:
    """The paths that are the longest for some times of F, B and W.

    The three numbers that a further microbatch adds are 0 below that number.

    Args:
        schedule: One of :data:`~trnspec.perf.work.layout.V_SHAPED`.
        stages: Pipeline stages.
        microbatches: Microbatches, at most :func:`steady`.
    """
    pipeline = _Pipeline(schedule, stages, microbatches)
    found: NDArray[np.int64] = np.zeros((0, 3), dtype=np.int64)
    corners = _SOME @ [np.cross(_CONE[i - 2], _CONE[i - 1]) for i in range(3)]
    # The longest path is a convex function of the times: linear between the corners of its pieces, if exact there.
    while True:
        known = np.unique(np.concatenate([found, pipeline.longest(corners)]), axis=0)
        if len(known) == len(found):
            break
        found = known
        corners = _corners(found)
    # The middle of each piece.  Paths that are the longest in a corner only, together with others, are not needed.
    lengths = corners @ found.T
    longest = (lengths == lengths.max(axis=1, keepdims=True)) / corners.sum(axis=1, keepdims=True)
    middle = longest.T @ corners
    lengths = middle @ found.T
    alone = (lengths.max(axis=1, keepdims=True) - lengths < _TIE * middle.sum(axis=1)[:, None]).sum(axis=1) == 1
    found, middle = found[alone], middle[alone]
    if microbatches < steady(schedule, stages):
        return tuple((*map(float, row), 0.0, 0.0, 0.0) for row in found.tolist())
    later = [_Pipeline(schedule, stages, microbatches + n).longest(middle) for n in (1, 2)]
    growth = later[0] - found
    # Elsewhere another path has become the longest, which is found where it is the longest now.
    same = (later[1] - later[0] == growth).all(axis=1)
    return tuple(tuple(map(float, row)) for row in np.concatenate([found, growth], axis=1)[same].tolist())


def _corners(found: NDArray[np.int64]) -> NDArray[np.int64]:
    """The times for which three paths are the longest, or two on the surface of the cone."""
    first, second = np.triu_indices(len(found), 1)
    edges = found[first] - found[second]
    candidates = [np.cross(edges[:, None], _CONE[None]).reshape(-1, 3), np.cross(_CONE, np.roll(_CONE, 1, axis=0))]
    candidates += [np.cross(edges, found[first] - path) for path in found]
    times = np.concatenate(candidates)
    times = np.concatenate([times, -times])
    surface = times @ _CONE.T
    within = (surface >= 0).all(axis=1) & times.any(axis=1)
    times, surface = times[within], surface[within]
    lengths = times @ found.T
    at_top = lengths == lengths.max(axis=1, keepdims=True)
    # As many conditions as fix a direction.
    times = times[at_top.sum(axis=1) + (surface == 0).sum(axis=1) >= len(_CONE)]
    return np.unique(times // np.gcd.reduce(times, axis=1, keepdims=True), axis=0)


class _Pipeline:
    """The passes of a pipeline for :meth:`longest`, in levels: those of a level are of different stages.

    Attributes:
        levels: For each level the stages, the kinds of their passes, and the number of the pass of another stage that each
            needs; a number beyond those of all passes for none.
        first: The number of the first pass of each stage.
    """

    def __init__(self, schedule: str, p: int, m: int) -> None:
        self.p, self.m = p, m
        level_of: dict[tuple[int, Slot], int] = {}
        reached = [0] * p
        levels: list[list[tuple[int, Slot]]] = []
        for stage, slot in _topological(order(schedule, p, m), p):
            place = max([reached[stage], *(1 + level_of[other] for other in needed(slot, stage, p))])
            level_of[stage, slot] = place
            reached[stage] = place + 1
            levels += [[] for _ in range(place + 1 - len(levels))]
            levels[place].append((stage, slot))
        number = {one: i for i, one in enumerate(one for level in levels for one in level)}
        self.size = len(number)
        self.first: list[int] = [-1] * p
        self.levels = []
        for level in levels:
            others = []
            for stage, slot in level:
                if self.first[stage] < 0:
                    self.first[stage] = number[stage, slot]
                others.append(next((number[o] for o in needed(slot, stage, p) if o[0] != stage), self.size))
            kinds = ["FBW".index(slot[0]) for _, slot in level]
            self.levels.append((np.array([stage for stage, _ in level]), np.array(kinds), np.array(others)))

    def longest(self, directions: NDArray[Any]) -> NDArray[np.int64]:
        """For each direction, times of F, B and W, the counts of passes on the longest path, less those of a stage."""
        times = directions.T.astype(np.float64)
        ones = np.array([[1 << _DIGITS * n] for n in range(3)])
        end = np.zeros((self.size + 1, len(directions)))
        count = np.zeros(end.shape, dtype=np.int64)
        last = np.full(self.p, self.size)
        begin = 0
        for stages, kinds, others in self.levels:
            own = last[stages]
            later = end[others] > end[own]
            last[stages] = here = np.arange(begin, begin := begin + len(stages))
            end[here] = np.where(later, end[others], end[own]) + times[kinds]
            count[here] = np.where(later, count[others], count[own]) + ones[kinds]
        # A stage begins with a forward pass.
        slowest = (end[last] - end[self.first] + times[0]).argmax(axis=0)[None]
        counts = np.take_along_axis(count[last] - count[self.first] + ones[0], slowest, axis=0)[0]
        mask = (1 << _DIGITS) - 1
        return np.stack([(counts >> _DIGITS * n & mask) - 2 * self.m for n in range(3)], axis=1)


def _topological(orders: Sequence[Sequence[Slot]], p: int) -> Iterator[tuple[int, Slot]]:
    """The passes of all stages, each after those that it needs."""
    position = [0] * p
    done: set[tuple[int, Slot]] = set()
    ready = deque(range(p))
    left = sum(map(len, orders))
    while left:
        stage = ready.popleft()
        own = orders[stage]
        while position[stage] < len(own):
            slot = own[position[stage]]
            if not all(other in done for other in needed(slot, stage, p)):
                break
            done.add((stage, slot))
            yield stage, slot
            position[stage] += 1
            left -= 1
        ready.append(stage)


# The bubble.


def v_shaped_bubble(  # noqa: PLR0917  # columns of a batch
    v_shape: Any,
    stages: Any,
    microbatches: Any,
    forward: Any,
    inputs: Any,
    weights: Any,
    either: Any = 0.0,
    *,
    out: Any = None,
) -> Any:
    """The pipeline bubble of V-shaped schedules [s]: the longest of some paths, beyond what a stage computes.

    Floats or arrays that broadcast; the same bits for both.  It is exact where forward and inputs take at least as long as
    weights, and else a lower bound.

    Args:
        v_shape: Number of the schedule in :data:`~trnspec.perf.work.layout.V_SHAPED`, from 1; 0 for none.
        stages: Pipeline stages; 0 s beyond those that are computed.
        microbatches: Microbatches; the whole ones count.
        forward: Time of a forward pass of a chunk [s].
        inputs: Time of the gradients of the inputs of a chunk [s].
        weights: Time of the gradients of the weights of a chunk [s].
        either: The part of ``forward`` that may be in ``inputs`` instead, where the bubble is shorter [s].
        out: Where to write the result, which may be an operand.
    """
    numbers = v_shape, stages, microbatches, forward, inputs, weights, either
    single = all_floats(*numbers)
    if single:
        if either:
            return _moved_bubble(*numbers)
        return _bubble(v_shape, stages, microbatches, forward, inputs, weights)
    operands = [np.asarray(x) for x in numbers]
    shape = np.broadcast(*operands).shape
    found = _replaced(np.zeros(shape), _computed(*operands[:2]), operands)
    if out is None:
        return found
    np.copyto(out, found)
    return out


@lru_cache(maxsize=4096)
def _moved_bubble(*numbers: float) -> float:
    """The bubble of floats where something may be in either pass."""
    operands = [np.asarray(x) for x in numbers]
    return float(_replaced(np.zeros(()), np.asarray(_computed(*operands[:2])), operands))


def recorded_bubble(v_shape: Any, stages: Any, microbatches: Any, *times: Any) -> Any:
    """:func:`v_shaped_bubble` on operands that may be recorded: what depends on no time is one operation, for tables.

    Args:
        v_shape: As there, like the others.
        stages: Stages.
        microbatches: Microbatches.
        times: Four times.
    """
    layout = v_shape, stages, microbatches
    if all_floats(*layout, *times):
        return v_shaped_bubble(*layout, *times)
    kinds = {*map(type, layout), *map(type, times)}
    if not any(issubclass(kind, NDArrayOperatorsMixin) for kind in kinds):
        return _bubbles(*layout, *times) if np.ndarray in kinds else v_shaped_bubble(*layout, *times)
    forward, inputs, weights, _ = times
    *counts, several = (elementwise(part, *layout) for part in _USUAL_PARTS)
    usually: Any = 0.0
    for path in range(_AT_ONCE):
        f, b, w = counts[3 * path : 3 * path + 3]
        usually = larger(usually, f * forward + b * inputs + w * weights)
    return elementwise(_CORRECTED, usually, _compared(several != 0.0, *layout, *times), *layout, *times)


def _bubbles(v_shape: Any, stages: Any, microbatches: Any, *times: Any) -> NDArray[np.float64]:
    """The bubble of arrays that broadcast: counts of passes have the axes on which they depend."""
    layout = [np.asarray(x) for x in np.broadcast_arrays(v_shape, stages, microbatches)]
    at = np.flatnonzero(_computed(*layout[:2]))
    counts, known = _TABLE.usual_paths(*(x.take(at) for x in layout))
    shape = np.broadcast_shapes(layout[0].shape, *map(np.shape, times))
    longest, time, part = np.zeros(shape), np.empty(shape), np.empty(shape)
    for path in counts:
        column = np.zeros(layout[0].shape)
        for number, (count, of_pass) in enumerate(zip(path, times, strict=False)):
            column.put(at, count)
            np.multiply(column, of_pass, out=part if number else time)
            if number:
                np.add(time, part, out=time)
        np.maximum(longest, time, out=longest)
    several = np.zeros(layout[0].shape, dtype=np.bool_)
    several.put(at, ~known)
    operands = [np.asarray(x) for x in (*layout, *times)]
    found: NDArray[np.float64] = _unusual(longest, _compared(several, *operands), *operands)
    return found


def _compared(several: Any, v_shape: Any, stages: Any, _: Any, *times: Any) -> Any:
    """Where all paths must be compared, not only those that are usually the longest."""
    forward, inputs, weights, either = times
    others = [several, inputs < forward, forward < weights, either != 0.0]
    return np.logical_and(_computed(v_shape, stages), reduce(np.logical_or, others))


def _unusual(usually: Any, compared: Any, *operands: Any, out: Any = None) -> Any:
    """The bubble, with the longest of all paths where they must be compared."""
    # The result may be in the place of an operand.
    found = _replaced(np.array(usually), compared, [np.asarray(x) for x in operands])
    if out is None:
        return found
    np.copyto(out, found)
    return out


_CORRECTED = Corrected(_unusual)


def _replaced(result: NDArray[np.float64], rows: Any, operands: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """A result with the bubble of some rows by all of their paths."""
    shape = result.shape
    at = np.flatnonzero(rows if rows.shape == shape else np.broadcast_to(rows, shape))
    if at.size:
        places = np.unravel_index(at, shape) if shape else ()
        columns = (x.take(at) if x.shape == shape else _broadcast_at(x, shape, places) for x in operands)
        result.put(at, _TABLE.bubbles(*columns))
    return result


def _broadcast_at(x: NDArray[Any], shape: tuple[int, ...], places: Sequence[NDArray[np.intp]]) -> NDArray[Any]:
    """The elements of an array, which broadcasts to a shape, at some places of it."""
    own = x.reshape((1,) * (len(shape) - x.ndim) + x.shape)
    at: Any = tuple(of_axis if n > 1 else 0 for n, of_axis in zip(own.shape, places, strict=True))
    return np.asarray(np.broadcast_to(own[at], len(places[0]) if places else 1))


def _computed(v_shape: Any, stages: Any) -> Any:
    return (v_shape > 0.0) & (stages > 1.0) & (stages <= MOST_V_STAGES)


_AT_ONCE = 4
"""Paths of a row that are compared at once; more are rarely among those that are usually the longest."""


def _usual_part(n: int, v_shape: Any, stages: Any, microbatches: Any, *, out: Any = None) -> Any:
    """Counts of F, B and W of the paths that are usually the longest; last whether others must be compared with them."""
    columns = np.broadcast_arrays(v_shape, stages, microbatches)
    found = np.zeros(columns[0].shape)
    at = np.flatnonzero(_computed(*columns[:2]))
    if at.size:
        found.put(at, _TABLE.usual(*(x.take(at) for x in columns))[n])
    if n == 3 * _AT_ONCE:
        _TABLE.last = None
    if out is None:
        return found if found.ndim else float(found)
    np.copyto(out, found)
    return out


_USUAL_PARTS = tuple(partial(_usual_part, n) for n in range(3 * _AT_ONCE + 1))
_QUICK = 8
"""Stages up to which paths are found for layouts that may not occur."""


def _bubble(v_shape: float, stages: float, microbatches: float, forward: float, inputs: float, weights: float) -> float:
    if not v_shape or not 1.0 < stages <= MOST_V_STAGES:
        return 0.0
    usual, every = _counted(v_shape, stages, microbatches)
    longest = 0.0
    for f, b, w in usual if inputs >= forward >= weights else every:
        time = f * forward + b * inputs + w * weights
        if time > longest:  # noqa: PLR1730  # a call of max takes three times as long
            longest = time
    return longest


_USUAL = np.array([(1.0, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0)])
"""Times of F, B and W whose sums with positive weights are all those with B >= F >= W."""

Counts = tuple[tuple[float, float, float], ...]
"""Counts of F, B and W of some paths."""


def usual(every: Sequence[Path]) -> tuple[Path, ...]:
    """The paths of which one is the longest wherever B >= F >= W: no other one is as long in all of these cases."""
    counts = np.array(every).reshape(-1, 2, 3) @ _USUAL.T
    longer = (counts[:, None] >= counts[None]).all(axis=(2, 3))
    np.fill_diagonal(longer, val=False)
    return tuple(path for path, any_longer in zip(every, longer.any(axis=0), strict=True) if not any_longer)


@lru_cache(maxsize=4096)
def _counted(v_shape: float, stages: float, microbatches: float) -> tuple[Counts, Counts]:
    """The paths of a pipeline: those that are usually the longest, and all."""
    schedule = V_SHAPED[int(v_shape) - 1]
    most = steady(schedule, int(stages))
    every = paths(schedule, int(stages), max(1, int(min(microbatches, most))))
    more = max(0.0, float(int(microbatches)) - most)
    return tuple(
        tuple((f + more * f_more, b + more * b_more, w + more * w_more) for f, b, w, f_more, b_more, w_more in some)
        for some in (usual(every), every)
    )  # type: ignore[return-value]  # two of them


class _Table:
    """The paths of those schedules, stages and microbatches that have occurred, for many rows at once.

    Attributes:
        index: The position of each, by schedule, stages and microbatches; -1 where it has not occurred.
        microbatches: The microbatches at each position.
        first: The first path at each position: of those that are usually the longest, and of all.
        number: The number of paths at each position, of these and of all.
        counts: Counts of all paths, and what each further microbatch adds: six numbers, by path.
        last: The columns of the last call of :meth:`usual`, and its result, of which each call takes one number.
    """

    def __init__(self) -> None:
        most = np.array([[0, 0, *(steady(name, p) for p in range(2, MOST_V_STAGES + 1))] for name in V_SHAPED])
        self.steady = most
        self.index = np.full((*most.shape, 1 + most.max()), -1, dtype=np.intp)
        # A pipeline without paths, so that there is a first position.
        self.microbatches = np.zeros(1)
        self.first = self.number = np.zeros((2, 1), dtype=np.intp)
        self.counts = np.zeros((6, 1))
        self.last: tuple[Sequence[Any], NDArray[np.float64]] | None = None

    def bubbles(self, v_shape: Any, stages: Any, microbatches: Any, *times: Any) -> NDArray[np.float64]:
        """The bubble of each row; see :func:`v_shaped_bubble`."""
        key, whole = self._keys(v_shape, stages, microbatches)
        position = self.index.take(key)
        if position.min() < 0:
            self._add(np.unique(key[position < 0]))
            position = self.index.take(key)
        more = whole - self.microbatches.take(position)
        forward, inputs, weights, either = times
        if either.any():
            moved = np.flatnonzero(either)
            forward, inputs = forward.copy(), inputs.copy()
            some = [x[moved] for x in (forward, inputs, weights)]
            moving = self._moved(position[moved], more[moved], some, either[moved])
            forward[moved] -= moving
            inputs[moved] += moving
        kind = ((inputs < forward) | (forward < weights)).astype(np.intp)
        kind *= self.number.shape[1]
        kind += position
        path, last = self.first.take(kind), self.number.take(kind) - 1
        last += path
        # Some paths of all rows, then the others of the few rows that have more; the last one again where there are fewer.
        longest = self._longest(path, last, _AT_ONCE, more, forward, inputs, weights)
        path += _AT_ONCE
        left = np.flatnonzero(path <= last)
        if left.size:
            columns = [x.take(left) for x in (path, last, more, forward, inputs, weights)]
            path, last = columns[:2]
            others = self._longest(path, last, int((last - path).max()) + 1, *columns[2:])
            longest[left] = np.maximum(longest.take(left), others)
        return longest

    def _longest(self, path: Any, last: Any, count: int, *columns: Any) -> NDArray[np.float64]:
        """The longest time of some paths of each row, at least 0."""
        numbers = np.minimum(path + np.arange(count)[:, None], last)
        longest: NDArray[np.float64] = self._time(numbers, *columns).max(axis=0, initial=0.0)
        return longest

    def usual(self, v_shape: Any, stages: Any, microbatches: Any) -> NDArray[np.float64]:
        """For each row the counts of some paths that are usually the longest, and 1 where they are not all."""
        columns = v_shape, stages, microbatches
        if self.last is None or not all(map(np.array_equal, self.last[0], columns)):
            counts, known = self.usual_paths(*columns)
            some = counts[np.minimum(np.arange(_AT_ONCE), len(counts) - 1)].reshape(3 * _AT_ONCE, -1)
            others = (counts[_AT_ONCE:] != counts[_AT_ONCE - 1 : _AT_ONCE]).any((0, 1))
            self.last = columns, np.concatenate([some, [others | ~known]])
        return self.last[1]

    def usual_paths(
        self, v_shape: Any, stages: Any, microbatches: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The counts of those paths that are usually the longest, by path, pass and row; and whether a row's are known.

        Rows that have fewer have the last one several times.
        """
        key, whole = self._keys(v_shape, stages, microbatches)
        position = self.index.take(key)
        self._add(np.unique(key[(position < 0) & (stages <= _QUICK) & (microbatches == whole)]))
        position = self.index.take(key)
        known = position >= 0
        position = position * known
        first, number = self.first[0].take(position), self.number[0].take(position)
        path = first + np.minimum(np.arange(number.max(initial=1))[:, None], number - 1)
        more = whole - self.microbatches.take(position)
        counts = (self.counts.take(path, axis=1)[:3] + more * self.counts.take(path, axis=1)[3:]) * known
        return counts.swapaxes(0, 1), known

    def _keys(self, v_shape: Any, stages: Any, microbatches: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Places in the index, and the whole microbatches."""
        whole = np.maximum(np.floor(microbatches), 1.0)
        _, rows, width = self.index.shape
        key = ((v_shape - 1.0) * rows + stages) * width + np.minimum(whole, width - 1.0)
        return key.astype(np.intp), whole

    def _time(self, path: Any, more: Any, *times: Any) -> NDArray[np.float64]:
        """The time of a path for each row."""
        total: Any = None
        for count, added, time in zip(self.counts[:3], self.counts[3:], times, strict=True):
            part = added.take(path)
            part *= more
            part += count.take(path)
            part *= time
            if total is None:
                total = part
            else:
                total += part
        return np.asarray(total)

    def _moved(self, position: Any, more: Any, times: Sequence[Any], either: Any) -> NDArray[np.float64]:
        """The time to move; see :func:`_least`."""
        number = self.number[1].take(position)
        # The last path again where there are fewer.
        path = self.first[1].take(position) + np.minimum(np.arange(number.max())[:, None], number - 1)
        counts = [
            count.take(path) + more * added.take(path)
            for count, added in zip(self.counts[:3], self.counts[3:], strict=True)
        ]
        return _least(counts, times, either)

    def _add(self, keys: NDArray[np.intp]) -> None:
        """Find the paths of further schedules, stages and microbatches."""
        for shape, p, m in zip(*(x.tolist() for x in np.unravel_index(keys, self.index.shape)), strict=True):
            most = min(m, int(self.steady[shape, p]))
            if self.index[shape, p, most] < 0:
                every = paths(V_SHAPED[shape], p, most)
                some = usual(every)
                first = self.counts.shape[1]
                self.index[shape, p, most] = len(self.microbatches)
                self.counts = np.concatenate([self.counts, np.array(some + every).T], axis=1)
                self.first = np.concatenate([self.first, [[first], [first + len(some)]]], axis=1)
                self.number = np.concatenate([self.number, [[len(some)], [len(every)]]], axis=1)
                self.microbatches = np.append(self.microbatches, float(most))
            if most == self.steady[shape, p]:
                self.index[shape, p, most:] = self.index[shape, p, most]


_STEPS = 10
"""More steps than it takes to find the lowest point of these paths."""


def _least(counts: Sequence[Any], times: Sequence[Any], either: Any) -> NDArray[np.float64]:
    """The time to move from the forward pass to the gradients of the inputs for the least maximum of the paths.

    On either side of the lowest point one path is the longest; where these two cross is the next point, until there is no
    longer path there (Kelley's method).

    Args:
        counts: Passes by path and row: forward, for gradients of the inputs, of the weights.
        times: Time of each of these passes, by row.
        either: What may be moved, at most.
    """
    (f, b, w), (forward, inputs, weights) = counts, times
    # The time is linear in what is moved.
    start, slope = f * forward + b * inputs + w * weights, b - f
    rows: Any = np.arange(len(forward))
    low, high = np.zeros_like(either), either

    def longest(moved: Any) -> tuple[Any, Any]:
        time = slope * moved
        time += start
        at = time.argmax(axis=0), np.arange(len(moved))
        return time[at], slope[at]

    (at_low, down), (at_high, up) = longest(low), longest(high)
    least: NDArray[np.float64] = np.where(at_high < at_low, high, low)
    value = np.minimum(at_low, at_high)
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
