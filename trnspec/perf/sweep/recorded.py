"""Grids of recorded formulas, in regions: arrays with an axis for each axis of the grid on which results depend.

Combinations of parallel degrees are the rows of a region, one of the axes of arrays.  Combinations that are invalid are counted
and left out before anything else is computed; values of the other axes with which nothing in a region is valid are left out as
well.  See :mod:`trnspec.perf.sweep.region_plan` for how operations are evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from trnspec.perf.ops import Number
from trnspec.perf.sweep.axes import Axis, Region, from_zero, start_of, sums, within
from trnspec.perf.sweep.expressions import Expression
from trnspec.perf.sweep.pages import keep_pages
from trnspec.perf.sweep.region_plan import ROWS, Evaluation, Plan, Range, Shape
from trnspec.perf.sweep.subarrays import scatter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.perf.sweep.reductions import Reduction

_REGION = 1 << 18
"""Combinations of a region, about: of fewer, calls of numpy take a larger part of the time; of more, arrays leave the cache."""
_AT_ONCE = 1 << 18
"""Rows whose degrees are checked at once."""
_ROWS = 1 << 12
"""Most rows of a region."""
_DENSE = 0.8
"""The share of a region that is valid, from which on it is evaluated whole."""
_CONSECUTIVE = 1 << 20
"""Consecutive combinations that are evaluated together where results are wanted in order."""


@frozen(eq=False)
class Formulas:
    """What is computed of each combination of a grid: expressions, or numbers that are the same for all.

    Attributes:
        rows: The axes of parallel degrees.
        invalid: Codes of reasons with conditions; the code of a combination is that of the first that holds.
        measures: What is computed, by name.
    """

    rows: tuple[str, ...]
    invalid: tuple[tuple[int, Number], ...]
    measures: Mapping[str, Number]
    _plans: dict[Any, Plan] = field(factory=dict, init=False, repr=False)

    def plan(self, shape: Shape, conditions: slice, checked: tuple[str, ...], measures: tuple[str, ...]) -> Plan:
        """The operations of some conditions, and of measures in all regions and in those where something is valid."""
        key = shape.names, shape.place, shape.changing, conditions.start, checked, measures
        if key not in self._plans:
            first = [*(c for _, c in self.invalid[conditions]), *(self.measures[name] for name in checked)]
            self._plans[key] = Plan(shape, first, [self.measures[name] for name in measures])
        return self._plans[key]

    @property
    def of_rows(self) -> int:
        """How many of the conditions, the first ones, depend on nothing but degrees."""
        rows = set(self.rows)
        return next(
            (i for i, (_, c) in enumerate(self.invalid) if isinstance(c, Expression) and not c.axes <= rows),
            len(self.invalid),
        )


_CODES = 64
"""More than there are codes."""


def taken(values: Sequence[Any], positions: NDArray[np.intp]) -> NDArray[Any]:
    """The values at some positions."""
    return np.array(values)[positions]


@frozen
class Task:
    """What is wanted of the combinations of a grid.

    Attributes:
        formulas: What is computed.
        wanted: Names of the measures of regions, of which the first is the time of a region.
        counts: Number of combinations by code, to which all are added.
        which: Position of the model on a system.
        memory: The measure that is the memory of a region; empty for none.
        codes: An array to which codes are written.
        columns: Measures that are written to arrays for all combinations with valid degrees, whatever else is.
    """

    formulas: Formulas
    wanted: Sequence[str]
    counts: NDArray[np.int64]
    which: int = 0
    memory: str = ""
    codes: NDArray[np.uint8] | None = None
    columns: Mapping[str, NDArray[np.float64]] = field(factory=dict)

    def regions(self, axes: Sequence[Axis]) -> Iterator[Region]:
        """The valid combinations, in regions; other combinations are in these too, or only counted.

        Args:
            axes: The axes of the grid.
        """
        keep_pages()
        rows = [axis for axis in axes if axis.name in self.formulas.rows]
        others = [axis for axis in axes if axis.name not in self.formulas.rows]
        most = max(1, min(_ROWS, _REGION // math.prod(map(len, others))))
        for some in self._valid(rows, others):
            for begin in range(0, len(some), most):
                # The longest axis last, along which operations are fast.
                of_arrays = sorted([*others, some.some(slice(begin, begin + most))], key=len)
                yield from self._of_rows(of_arrays)

    def _valid(self, rows: Sequence[Axis], others: Sequence[Axis]) -> Iterator[Axis]:
        """The combinations of degrees that are valid as an axis, in pieces; the others are counted."""
        sizes, per_row = [len(axis) for axis in rows], math.prod(map(len, others))
        total = math.prod(sizes)
        of_rows = slice(0, self.formulas.of_rows)
        plan = self.formulas.plan(Shape((ROWS,), 0, frozenset(self.formulas.rows)), of_rows, (), ())
        for begin in range(0, total, _AT_ONCE):
            positions = np.unravel_index(np.arange(begin, min(total, begin + _AT_ONCE)), sizes)
            columns: dict[str, NDArray[Any]] = {}
            places = np.zeros(min(total, begin + _AT_ONCE) - begin, dtype=np.int64)
            for axis, at in zip(rows, positions, strict=True):
                columns |= {name: column[at] for name, column in axis.columns.items()}
                places += axis.places[at]
            found = Evaluation(plan, [Axis(ROWS, columns, places)]).checked(((0, len(places)),))
            code = self._code(self.formulas.invalid[of_rows], found, places.shape, per_row)
            code = np.broadcast_to(code, places.shape)
            valid = code == 0
            self.counts[0] -= per_row * np.count_nonzero(valid)
            if self.codes is not None and not valid.all():
                shaped = code[~valid].reshape([-1] + [1] * len(others))
                scatter(self.codes, (places[~valid], *(axis.places for axis in others)), shaped)
            if valid.any():
                yield Axis(ROWS, {name: column[valid] for name, column in columns.items()}, places[valid])

    def _code(
        self, conditions: Sequence[tuple[int, Any]], found: Sequence[Any], shape: tuple[int, ...], each: int = 1
    ) -> NDArray[np.uint8]:
        """Codes of the first condition that holds; combinations are counted by code.

        Args:
            conditions: The conditions.
            found: Where they hold.
            shape: To what these broadcast.
            each: How often an element counts.
        """
        code: NDArray[np.uint8] = np.zeros((1,) * len(shape), dtype=np.uint8)
        size = each * math.prod(shape)
        self.counts[0] += size
        for (reason, _), invalid in zip(conditions, found, strict=False):
            if not np.count_nonzero(invalid):
                continue
            first = (code == 0) & invalid
            number = int(np.count_nonzero(first)) * (size // first.size)
            self.counts[0] -= number
            self.counts[reason] += number
            code = np.where(first, np.uint8(reason), code)
        return code

    def _of_rows(self, axes: Sequence[Axis]) -> Iterator[Region]:
        """The regions of some valid rows."""
        names = tuple(axis.name for axis in axes)
        place = names.index(ROWS)
        ranges, changing = _ranges(axes, place)
        of_others = slice(self.formulas.of_rows, None)
        conditions = self.formulas.invalid[of_others]
        wanted = tuple(dict.fromkeys(filter(None, (*self.wanted, self.memory))))
        shape = Shape(names, place, frozenset(self.formulas.rows), changing)
        evaluation = Evaluation(self.formulas.plan(shape, of_others, tuple(self.columns), wanted), axes)
        for base in product(*ranges):
            found = evaluation.checked(base)
            places = _some(axes, base)
            code = self._code(conditions, found, tuple(map(len, places)))
            if self.codes is not None:
                scatter(self.codes, places, code)
            for column, values in zip(self.columns.values(), found[len(conditions) :], strict=True):
                scatter(column, places, values)
            at = _box(code == 0, base, place)
            if at is None:
                continue
            measures = dict(zip(wanted, evaluation.measured(base, at), strict=True))
            index = tuple(
                slice(begin - first, end - first) if size > 1 else slice(None)
                for (begin, end), (first, _), size in zip(at, base, code.shape, strict=True)
            )
            time = measures[wanted[0]] if wanted else np.zeros(())
            memory = measures.get(self.memory)
            yield Region(self.which, _some(axes, at), code[index], time, memory, measures.__getitem__)


def _some(axes: Sequence[Axis], at: tuple[Range, ...]) -> tuple[NDArray[np.int64], ...]:
    """What the positions of a part of each axis add to the number of a combination."""
    return tuple(axis.places[begin:end] for axis, (begin, end) in zip(axes, at, strict=True))


def _ranges(axes: Sequence[Axis], place: int) -> tuple[list[list[Range]], int]:
    """Where regions begin and end on each axis, so that they have about one size, and the axis on which they follow each other."""
    ranges = [[(0, len(axis))] for axis in axes]
    size, changing = math.prod(map(len, axes)), -1
    for i in sorted(range(len(axes)), key=lambda i: -len(axes[i])):
        if i == place or size <= _REGION:
            continue
        count = min(len(axes[i]), -(-size // _REGION))
        cuts = [len(axes[i]) * n // count for n in range(count + 1)]
        ranges[i] = [(cuts[n], cuts[n + 1]) for n in range(count)]
        size, changing = -(-size // count), max(changing, i)
    return ranges, changing


def _box(valid: NDArray[np.bool_], base: tuple[Range, ...], place: int) -> tuple[Range, ...] | None:
    """The part of a region with all that is valid, with all rows; ``None`` where nothing is."""
    number = np.count_nonzero(valid)
    if not number:
        return None
    found = list(base)
    if number > _DENSE * valid.size:
        return base
    for i, (first, _) in enumerate(base):
        if i != place and valid.shape[i] > 1:
            some = np.flatnonzero(valid.any(axis=tuple(j for j in range(valid.ndim) if j != i)))
            found[i] = (first + int(some[0]), first + int(some[-1]) + 1)
    return tuple(found)


def blocks(
    formulas: Formulas, axes: Sequence[Axis], first: int, end: int, measures: Sequence[str], checked: Sequence[str] = ()
) -> Iterator[tuple[int, NDArray[np.uint8], dict[str, NDArray[np.float64]]]]:
    """Consecutive combinations with some numbers: the first number, codes, and measures where the code is 0.

    Args:
        formulas: What is computed.
        axes: The axes of the grid, in the order in which combinations are numbered.
        first: The first number.
        end: The number after the last.
        measures: Names of measures.
        checked: Measures that are wanted of all combinations with valid degrees.
    """
    for some in within(tuple(axes), first, end, _CONSECUTIVE):
        start, size = start_of(some), math.prod(map(len, some))
        codes, counts = np.zeros(size, dtype=np.uint8), np.zeros(_CODES, dtype=np.int64)
        of_all = {name: np.zeros(size) for name in checked}
        columns = {name: np.zeros(size) for name in measures}
        task = Task(formulas, tuple(measures), counts, codes=codes, columns=of_all)
        for region in task.regions(from_zero(some)):
            at = sums(region.places)
            for name, column in columns.items():
                column[at] = np.broadcast_to(region.part(name), region.shape).reshape(-1)
        yield start, codes, columns | of_all


def reduce(
    formulas: Formulas,
    axes: Sequence[Axis],
    reduction: Reduction[Any],
    time: str,
    *,
    sign: float,
    memory: str,
    which: int,
    ends: tuple[int, int],
) -> dict[int, int]:
    """Give the valid combinations of a grid to a reduction of regions; the number of combinations by code.

    Args:
        formulas: What is computed.
        axes: The axes of the grid, in the order in which combinations are numbered.
        reduction: The reduction.
        time: The measure that is the time.
        sign: -1.0 where it is to be large, so that its negative is the time.
        memory: The measure that is the memory; empty for none.
        which: Position of the model on a system.
        ends: The first number, and that after the last.
    """
    counts = np.zeros(_CODES, dtype=np.int64)
    task = Task(formulas, (time,) if formulas.measures else (), counts, which, memory if formulas.measures else "")
    take: Any = reduction
    for some in within(tuple(axes), *ends, math.prod(map(len, axes))):
        for region in task.regions(some):
            take.take_region(region if sign > 0.0 else evolve(region, time=-region.time))
    return {code: int(number) for code, number in enumerate(counts) if number}
