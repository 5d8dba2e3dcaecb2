"""Combinations of a grid in regions: arrays with an axis for each axis of the grid on which numbers of layouts depend.

Parallel degrees, and as many other axes as make arrays long, form one array axis, the rows.  Conditions come first:
combinations without a time are left out before times are computed, as whole rows, and as values of the other axes that are
valid in none of the rows of a region.  The coefficients of times are computed once for all regions of some thousand rows.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np
from attrs import Factory, field, frozen
from numpy.typing import NDArray

from trnspec.perf.distinct import ascending
from trnspec.perf.ops import Number, floor, larger, smaller, somewhere
from trnspec.perf.sweep.axes import Axis, Region, start_of, within
from trnspec.perf.sweep.columns import RATIOS, REASONS, SCHEDULES, Choices, load_of, reason_codes
from trnspec.perf.sweep.formulas import FEATURES, causes, coefficients, columns_as_choices, replicated
from trnspec.perf.sweep.subarrays import (
    ALL,
    arrays_of,
    as_column,
    as_slice,
    at_positions,
    scatter,
    some_of,
    where_any,
    without_zeros,
)
from trnspec.perf.training.costs import Costs
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import UNUSED, Step, least_time, step_from_costs
from trnspec.perf.work.layout import DEFERRED, V_SHAPED, longest
from trnspec.perf.work.reach import common_heads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


RANK_COUNT, UNKNOWN, DOES_NOT_FIT = (REASONS.index(r) for r in ("rank-count", "unknown-figure", "does-not-fit"))

_RANKS = ("tp", "pp", "cp")
_DEGREES = ("tp", "pp", "cp", "ep", "expert_tp")
_MORE_ROWS = ("microbatch", "seq", "sequence_parallel", "recompute", "optimizer")
"""Axes that are of the rows where these would be few, the first first."""
_FEW_ROWS = 512
"""Rows up to which another axis is one of the rows."""
_PER_ROW = 2000
"""Combinations of the other axes for each row that are left at least: coefficients are computed for each row."""
_SHORTEST = 256
"""Rows of a region at most that has many values of other axes: operations of numpy on fewer elements take as long."""
_REGION_COST = 1 << 15
"""Combinations that take as long as a further region."""
_AT_ONCE = 1 << 18
"""Rows whose ranks are counted at once."""
_ROWS = 1 << 14
"""Most rows of which coefficients are computed at once."""
_CODES = 1 << 22
"""Most codes of such rows."""


class Limited(Protocol):
    """An object that knows what time is needed."""

    @property
    def limit(self) -> float:
        """Times above it are not needed [s]; it may fall as regions are evaluated."""


@frozen
class Wanted:
    """What is needed of the times of combinations.

    Attributes:
        limited: What knows the longest time that is needed; ``None`` where all are.
        bounds: Whether lower bounds on times are enough.
    """

    limited: Limited | None = None
    bounds: bool = False

    @property
    def limit(self) -> float:
        """Times above it are not needed [s]."""
        return math.inf if self.limited is None else self.limited.limit


EVERY = Wanted()
"""All times are needed."""


@frozen
class Part:
    """Some values of all axes of a grid, for one estimator.

    Attributes:
        estimator: The estimator.
        which: Its position.
        axes: The values.
        rows: The axes of which combinations are rows.
        others: The other axes that vary, in the order of the axes of arrays: of the first ones, less depends on them.
        kinds: Number of combinations of kinds of their values.
    """

    estimator: Estimator
    which: int
    axes: tuple[Axis, ...]
    rows: tuple[Axis, ...] = field(default=Factory(lambda self: _rows(self.axes), takes_self=True))
    others: tuple[Axis, ...] = field(
        default=Factory(lambda self: _others(axis for axis in self.axes if axis not in self.rows), takes_self=True)
    )
    kinds: int = field(default=Factory(lambda self: _count_kinds(self.others), takes_self=True))

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(map(len, self.axes))

    @property
    def start(self) -> int:
        """Number of the first combination."""
        return start_of(self.axes)

    def within(self, first: int, end: int, most: int) -> Iterator[Part]:
        """Parts with consecutive numbers in order, together the combinations with some numbers.

        Args:
            first: The first number.
            end: The number after the last.
            most: Combinations of a part, about.
        """
        for axes in within(self.axes, first, end, most):
            yield self if axes is self.axes else Part(self.estimator, self.which, axes)

    def regions(
        self,
        counts: NDArray[np.int64],
        *,
        memory: bool,
        block: int,
        codes: NDArray[np.uint8] | None = None,
        wanted: Wanted = EVERY,
    ) -> Iterator[Region]:
        """All combinations with a time, in regions; other combinations are in these too, or only counted.

        Args:
            counts: Number of combinations by code, to which all are added.
            memory: Whether to compute memory, and reject what does not fit.
            block: Combinations of a region, about.
            codes: An array to which codes are written that have nothing to do with memory; those of a wrong number of ranks
                are not.
            wanted: Of which combinations the time is needed.
        """
        per_row, sizes = math.prod(map(len, self.others)), [len(axis) for axis in self.rows]
        most, total = max(1, min(_ROWS, _CODES // per_row)), math.prod(sizes)
        held: list[NDArray[np.intp]] = []
        for begin in range(0, total, _AT_ONCE):
            number = np.arange(begin, min(total, begin + _AT_ONCE))
            positions = np.stack(np.unravel_index(number, sizes)) if sizes else np.zeros((0, 1), dtype=np.intp)
            right = np.broadcast_to(self._ranks(positions) == self.estimator.system.ranks, len(number))
            held.append(positions[:, right])
            counts[RANK_COUNT] += per_row * (len(number) - held[-1].shape[1])
            last = begin + len(number) == total
            while (waiting := sum(part.shape[1] for part in held)) >= most or (last and waiting):
                rows = np.concatenate(held, axis=1)
                held = [rows[:, most:]]
                found = Rows.of(self, rows[:, :most], counts, codes)
                if found is not None:
                    yield from found.regions(counts, memory=memory, block=block, wanted=wanted)

    def _ranks(self, positions: NDArray[np.intp]) -> Number:
        """The ranks of some rows, with the dp that follows from those of the system; see :meth:`choices`."""
        of_rows = {axis.name: x for axis, x in zip(self.rows, positions, strict=True)}
        columns = {axis.name: axis.columns[axis.name] for axis in self.axes if axis.name in _RANKS}
        tp, pp, cp = (columns[n][of_rows[n] if n in of_rows else slice(1)].astype(np.float64) for n in _RANKS)
        return tp * pp * larger(1.0, floor(self.estimator.machine.ranks / (tp * pp) / cp)) * cp

    def choices(self, positions: NDArray[np.intp], others: Sequence[Axis] | None = None) -> Choices:
        """Layouts of some rows.

        Args:
            positions: For each axis of the rows a position for each row.
            others: The other axes; of those that are left out the layouts have the first value.
        """
        others = self.others if others is None else others
        columns: dict[str, Any] = {n: c[0].item() for axis in self.axes for n, c in axis.columns.items()}
        for i, axis in enumerate(others):
            shape = [1] * (len(others) + 1)
            shape[i] = len(axis)
            columns |= {n: as_column(c.reshape(shape)) for n, c in axis.columns.items()}
        for axis, of_axis in zip(self.rows, positions, strict=True):
            columns |= {n: as_column(c[of_axis].reshape([1] * len(others) + [-1])) for n, c in axis.columns.items()}
        columns |= {"dp": 1, "load": load_of(*(columns[name] for name in RATIOS))}
        return columns_as_choices(columns)


def _rows(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes of which combinations are rows."""
    by_name = {axis.name: axis for axis in axes}
    size = math.prod(map(len, by_name.values()))
    chosen = [by_name[name] for name in _DEGREES if len(by_name[name]) > 1]
    rows = math.prod(map(len, chosen))
    for axis in map(by_name.__getitem__, _MORE_ROWS):
        if len(axis) > 1 and rows <= _FEW_ROWS and size >= rows * len(axis) * _PER_ROW:
            rows, chosen = rows * len(axis), [*chosen, axis]
    return tuple(chosen)


def _others(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The other axes that vary, in the order of the axes of arrays."""
    varying = [axis for axis in axes if len(axis) > 1]
    return tuple(sorted(varying, key=lambda axis: _OUTER.index(axis.name) if axis.name in _OUTER else len(_OUTER)))


_OUTER = ("overlap", "global_batch", "zero")
"""The axes on which the least depends, the first first."""


@frozen
class Rows:
    """Some rows with combinations that have a time.

    Attributes:
        part: Their part of a grid.
        choices: Their layouts.
        costs: The coefficients of times.
        microbatches: Microbatches per replica.
        code: Codes without memory.
        places: What each row adds to the number of a combination.
        keys: Equal for rows in which the same values of other axes are valid; ``None`` where all are in one region.
        varying: The coefficients that are arrays.
    """

    part: Part
    choices: Choices
    costs: Costs
    microbatches: Number
    code: NDArray[np.uint8]
    places: NDArray[np.int64]
    keys: NDArray[np.bytes_] | None
    varying: dict[str, NDArray[Any]]

    @classmethod
    def of(
        cls, part: Part, positions: NDArray[np.intp], counts: NDArray[np.int64], codes: NDArray[np.uint8] | None
    ) -> Rows | None:
        """Those of some rows with combinations that have a time, with the codes of all counted; ``None`` for none."""
        e, dims, size = part.estimator, len(part.others) + 1, positions.shape[1]
        per_row = math.prod(map(len, part.others))
        limits = {"heads": common_heads(e.dims), "experts": larger(1.0, e.dims.experts), "longest": longest(e.dims)}
        choices = replicated(part.choices(positions), e.machine.ranks)
        code = reason_codes(causes(choices, choices.replicas(), e.model, e.machine, **limits))
        code = np.broadcast_to(code, np.broadcast_shapes(np.shape(code), (1,) * (dims - 1) + (size,)))
        each = per_row * size // code.size
        counts += [np.count_nonzero(code == reason) * each for reason in range(len(counts))]
        # Rows with the same valid values of other axes come one after the other; those without any are left out.
        valid = code == 0
        able = np.flatnonzero(valid.any(axis=tuple(range(dims - 1))))
        places = np.full(size, sum(int(axis.places[0]) for axis in part.axes if len(axis) == 1))
        for axis, of_axis in zip(part.rows, positions, strict=True):
            places += axis.places[of_axis]
        others = [axis.places for axis in part.others]
        if codes is not None:
            scatter(codes, (*others, places), code)
        if not len(able):
            return None
        keys: NDArray[np.bytes_] | None = None
        if len(able) * per_row > _REGION_COST * part.kinds:
            keys = _keys(choices, valid)[able]
            able, keys = able[np.argsort(keys, kind="stable")], np.sort(keys)
        # Columns that are one stay one, by which formulas see that they are equal.
        of_rows = {name: x for name, x in arrays_of(choices).items() if x.shape[-1] > 1}
        some = {id(x): as_column(x.take(able, axis=-1)) for x in {id(x): x for x in of_rows.values()}.values()}
        choices = attrs.evolve(choices, **{name: some[id(x)] for name, x in of_rows.items()})
        microbatches = choices.replicas()
        costs = coefficients(choices, e.terms, e.machine, microbatches)
        # Executing the schedules of unequal stages takes long, and layouts that are invalid have no time.
        code, places = code.take(able, axis=-1), places[able]
        valid = code == 0
        for name, number in arrays_of(costs).items():
            setattr(costs, name, without_zeros(where_any(valid, number) if name in FEATURES["unequal"] else number))
        if somewhere(unknown := costs.unknown > UNUSED):
            code = _changed(counts, code, unknown, UNKNOWN, per_row * len(able))
            if codes is not None:
                scatter(codes, (*others, places), code)
        return cls(part, choices, costs, microbatches, code, places, keys, arrays_of(costs))

    def regions(self, counts: NDArray[np.int64], *, memory: bool, block: int, wanted: Wanted) -> Iterator[Region]:
        """The regions of these rows; see :meth:`Part.regions`."""
        per_row = math.prod(map(len, self.part.others))
        most = min(_LONGEST, max(_SHORTEST, block * self.part.kinds // per_row))
        ranges = [
            slice(first, min(end, first + most))
            for begin, end in pairwise(self._cuts())
            for first in range(begin, end, most)
        ]
        if wanted.limited is not None:
            # With the times of equal stages, which are computed at once, most schedules of others need not be executed.
            ranges.sort(key=self._unequal)
        for rows in ranges:
            yield from self._of_range(rows, counts, memory=memory, block=block, wanted=wanted)

    def _unequal(self, rows: slice) -> bool:
        """Whether some of the rows have unequal stages."""
        unequal = self.costs.unequal
        if not isinstance(unequal, np.ndarray) or unequal.shape[-1] == 1:
            return somewhere(unequal > 0.0)
        return bool(unequal[..., rows].any())

    def _cuts(self) -> list[int]:
        """Where regions begin and end: rows with other valid values are in one region where that wastes little."""
        if self.keys is None:
            return [0, len(self.places)]
        edges = [0, *(np.flatnonzero(self.keys[1:] != self.keys[:-1]) + 1).tolist(), len(self.keys)]
        # Rows with the same key have the same valid values.
        of_keys = [valid.T for valid in _valid_values(self.code[..., edges[:-1]] == 0)]
        whole = math.prod(
            len(axis) for axis, valid in zip(self.part.others, of_keys, strict=True) if valid.shape[1] == 1
        )
        cost = _REGION_COST * self.part.kinds // whole

        def area(box: Sequence[NDArray[np.bool_]]) -> int:
            return math.prod(map(np.count_nonzero, box))

        cuts, rows, box, size = [0], 0, [valid[0] for valid in of_keys], 0
        for i, (begin, end) in enumerate(pairwise(edges)):
            own = [valid[i] for valid in of_keys]
            joint = [a | b for a, b in zip(box, own, strict=True)]
            more, joint_size, own_size = end - begin, area(joint), area(own)
            if joint_size * (rows + more) > size * rows + own_size * more + cost:
                cuts.append(begin)
                rows, joint, joint_size = 0, own, own_size
            rows, box, size = rows + more, joint, joint_size
        return [*cuts, len(self.keys)]

    def _of_range(
        self, rows: slice, counts: NDArray[np.int64], *, memory: bool, block: int, wanted: Wanted
    ) -> Iterator[Region]:
        """The regions of consecutive rows."""
        others = self.part.others
        boxes = self._boxes(rows)
        if boxes is None:
            return
        of_rows, schedule = self.of_these(rows), _place(others, "schedule")
        kinds: list[Any] = [None]
        if schedule is not None:
            small = (rows.stop - rows.start) * math.prod(map(len, boxes)) < _FEW
            kinds = [boxes[schedule]] if small else _of_kinds(others[schedule], boxes[schedule])
        for kind in kinds:
            if schedule is not None:
                boxes[schedule] = kind
            at: list[Any] = [as_slice(box, len(axis)) for box, axis in zip(boxes, others, strict=True)]
            places = [*(axis.places[x] for axis, x in zip(others, at, strict=True)), of_rows.places]
            code: NDArray[np.uint8] = at_positions(of_rows.code, at)
            needs: Any = of_rows.needed(at) if memory else None
            if memory and somewhere(exceeds := needs > self.part.estimator.system.capacity):
                code = _changed(counts, code, exceeds, DOES_NOT_FIT, math.prod(map(len, places)))
            for combination in product(*_pieces(others, boxes, (rows.stop - rows.start), block)):
                some = [as_slice(box[x], len(axis)) for box, x, axis in zip(boxes, combination, others, strict=True)]
                of_region = (*(of_axis[x] for of_axis, x in zip(places, combination, strict=False)), of_rows.places)
                of_code = at_positions(code, combination)
                if wanted.bounds:
                    yield Region(
                        self.part.which,
                        of_region,
                        of_code,
                        of_rows.least(some),
                        at_positions(needs, combination),
                        _no_part,
                    )
                    continue
                step = of_rows.step(some, of_code == 0, wanted.limit)
                yield Region(
                    self.part.which,
                    of_region,
                    of_code,
                    step.total,
                    at_positions(needs, combination),
                    partial(getattr, step),
                )

    def least(self, at: Sequence[Any]) -> Number:
        """Lower bounds on times; see :meth:`step`."""
        return least_time(
            some_of(self.costs, self.varying, at),
            at_positions(self.choices.microbatch, at),
            at_positions(self.microbatches, at),
        )

    def of_these(self, rows: slice | NDArray[np.intp]) -> Rows:
        """Some of the rows."""
        if isinstance(rows, slice) and rows == slice(0, len(self.places)):
            return self

        def cut(numbers_: Any) -> Any:
            some = {n: x[..., rows] for n, x in arrays_of(numbers_).items() if x.shape[-1] > 1}
            return attrs.evolve(numbers_, **some)

        costs = cut(self.costs)
        microbatches = self.microbatches
        if isinstance(microbatches, np.ndarray) and microbatches.shape[-1] > 1:
            microbatches = microbatches[..., rows]
        return attrs.evolve(
            self, choices=cut(self.choices), costs=costs, microbatches=microbatches, code=self.code[..., rows],
            places=self.places[rows], keys=None, varying=arrays_of(costs),
        )  # fmt: skip

    def _boxes(self, rows: slice) -> list[NDArray[np.intp]] | None:
        """For each other axis the positions that are valid in some of the rows; ``None`` where nothing is valid."""
        valid = (self.code[..., rows] == 0).any(axis=-1)
        if not valid.any():
            return None
        of_axes = (tuple(j for j in range(valid.ndim) if j != i) for i in range(valid.ndim))
        return [
            np.flatnonzero(valid.any(axis=others)) if n > 1 else np.arange(len(axis))
            for axis, n, others in zip(self.part.others, valid.shape, of_axes, strict=True)
        ]

    def step(self, at: Sequence[Any], needed: NDArray[np.bool_], limit: float = math.inf) -> Step:
        """Times; coefficients of features that no layout has are numbers, so that formulas omit what they multiply.

        Args:
            at: The positions on each other axis.
            needed: Where the time is needed.
            limit: Times above it are not [s].
        """
        return step_from_costs(
            some_of(self.costs, self.varying, at, _OPTIONAL), at_positions(self.choices.microbatch, at), at_positions(self.microbatches, at),
            needed=needed, limit=limit,
        )  # fmt: skip

    def needed(self, at: Sequence[Any]) -> Number:
        """Memory [B]; see :meth:`step`."""
        choices = some_of(self.choices, arrays_of(self.choices), at)
        return choices.memory(
            self.part.estimator.dims,
            _in_flight(at_positions(self.microbatches, at), choices),
            self.part.estimator.runtime,
        )


def _no_part(name: str) -> Number:
    raise NotImplementedError(name)


def _in_flight(microbatches: Number, choices: Choices) -> Number:
    """Microbatches, of which no more count than are in flight with many; with no axis along which they are then equal."""
    most = _MOST_HELD * choices.pp + _MOST_HELD
    if not isinstance(microbatches, np.ndarray) or somewhere(choices.held > _MOST_HELD):
        return microbatches
    held = smaller(microbatches, most)
    for axis in range(held.ndim - 1):
        first = held[(ALL,) * axis + (slice(1),)]
        if held.shape[axis] > 1 and (held == first).all():
            held = first
    return held


_MOST_HELD = 2.0
"""Activations that a schedule holds, relative to 1F1B, at most; GPipe holds those of all microbatches."""


_FEW = 1 << 16
"""Combinations below which a region may have values of different kinds: a region of each kind would take as long."""
_LONGEST = 4096
"""Most rows of a region."""
_OPTIONAL = tuple(dict.fromkeys(chain.from_iterable(FEATURES.values())))
"""Coefficients that are 0 in layouts without some feature."""


def _keys(choices: Choices, valid: NDArray[np.bool_]) -> NDArray[np.bytes_]:
    """For each row its stages, and the values of each other axis that are valid in it, as bits."""
    stages = np.broadcast_to(np.reshape(choices.pp, -1), valid.shape[-1:]).astype(np.uint16)
    bits: list[Any] = [(stages >> i & 1)[None] for i in reversed(range(int(stages.max(initial=1)).bit_length()))]
    bits += _valid_values(valid)
    packed = np.packbits(np.concatenate(bits), axis=0)
    return np.ascontiguousarray(packed.T).view(f"S{len(packed)}").reshape(-1)


def _valid_values(valid: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """For each axis but that of the rows, and for each row, the values with which a layout is valid."""
    axes = range(valid.ndim - 1)
    return [np.asarray(valid.any(axis=tuple(j for j in axes if j != i))) for i in axes]


def _changed(
    counts: NDArray[np.int64], code: NDArray[np.uint8], rejected: Number, reason: int, size: int
) -> NDArray[np.uint8]:
    """Codes with a reason where layouts that had a time are rejected, and these counted anew."""
    changed = (code == 0) & rejected
    number = int(np.count_nonzero(changed)) * (size // changed.size)
    counts[0] -= number
    counts[reason] += number
    rejected_code: NDArray[np.uint8] = code + changed * np.uint8(reason)
    return rejected_code


def _kind_of_schedule(axis: Axis) -> NDArray[Any]:
    """1 for schedules that split the backward pass, more for each that is V-shaped."""
    names = [SCHEDULES[i] for i in axis.columns["schedule"]]
    return np.array([_V_SHAPED + V_SHAPED.index(name) if name in V_SHAPED else name in DEFERRED for name in names])


_V_SHAPED = 2


def _kind_of_zero(axis: Axis) -> NDArray[Any]:
    """Whether gradients are reduced for every microbatch."""
    scattered: NDArray[Any] = axis.columns["zero"] >= _SCATTERED
    return scattered


_SCATTERED = 2

_KINDS = {"schedule": _kind_of_schedule, "zero": _kind_of_zero}
"""Axes whose values have different features, and the kind of each value."""


def _of_kinds(axis: Axis, box: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Positions on an axis, by the kind of the values."""
    if axis.name not in _KINDS:
        return [box]
    kinds = _KINDS[axis.name](axis)[box]
    return [box[kinds == kind] for kind in ascending(kinds)]


def _place(axes: Sequence[Axis], name: str) -> int | None:
    """The place of an axis among others."""
    return next((i for i, axis in enumerate(axes) if axis.name == name), None)


def _pieces(axes: Sequence[Axis], boxes: Sequence[NDArray[np.intp]], rows: int, block: int) -> list[list[Any]]:
    """For each axis positions within a box, by kind; the longest axis in pieces, so that regions have about one size."""
    pieces: list[list[Any]] = [[ALL] for _ in axes]
    size = rows * math.prod(map(len, boxes))
    zero, schedule = _place(axes, "zero"), _place(axes, "schedule")
    # The bubble of V-shaped schedules takes long, and does not depend on ZeRO.
    v_shaped = schedule is not None and _kind_of_schedule(axes[schedule])[boxes[schedule][0]] >= _V_SHAPED
    if zero is not None and not v_shaped and size >= _FEW:
        pieces[zero] = [as_slice(np.searchsorted(boxes[zero], x)) for x in _of_kinds(axes[zero], boxes[zero])]
        size //= len(pieces[zero])
    if size > 2 * block and axes:
        longest_ = max(range(len(axes)), key=lambda i: len(boxes[i]) * (i != zero))
        count = min(len(boxes[longest_]), size // block)
        pieces[longest_] = [as_slice(x) for x in np.array_split(np.arange(len(boxes[longest_])), count)]
    return pieces


def _count_kinds(axes: Iterable[Axis]) -> int:
    """Number of combinations of kinds of values."""
    return math.prod(len(set(_KINDS[axis.name](axis).tolist())) for axis in axes if axis.name in _KINDS)
