"""Sweeps over every combination of values, in blocks; each quantity is computed only along the axes it depends on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from attrs import asdict, evolve, frozen

from trnspec.errors import UsageError
from trnspec.perf.ops import Number, larger
from trnspec.perf.sweep.columns import (
    COUNTS,
    FLAGS,
    LEVELS,
    OPTIONAL,
    RATIOS,
    REASONS,
    SCHEDULES,
    WORDS,
    Choices,
    load_of,
    reason_codes,
)
from trnspec.perf.sweep.formulas import DEFAULTS, columns_as_choices, formulas, replicated
from trnspec.perf.sweep.pages import keep_pages
from trnspec.perf.sweep.reductions import Block, Each, Everything, Kept
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import PARTS, Step, step_from_costs
from trnspec.perf.work.layout import Layout, longest
from trnspec.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd

    from trnspec.perf.sweep.reductions import Reduction

R = TypeVar("R")

BLOCK = 65536
"""Configurations per block: their arrays fit into a core's cache."""
_INNER = 64
"""Combinations of the innermost axes that justify an array axis of their own."""

AXES = (
    *(name for name in COUNTS if name not in {"dp", "interleave", "global_batch"}),
    *(*RATIOS, "schedule", *FLAGS),
    *(name for name in (*WORDS, *LEVELS) if name != "schedule"),
    "global_batch",
)
"""The axes in the order in which configurations are numbered, the last one fastest: few quantities depend on the last."""

DOES_NOT_FIT = REASONS.index("does-not-fit")
"""The code of a layout that does not fit into a rank's memory."""


@frozen
class Grid:
    """All combinations of some values; dp follows from the ranks of a system and the other degrees.

    Attributes:
        axes: The values of each axis of :data:`AXES`, in that order; a schedule is a pair of its name and its chunks.
    """

    axes: dict[str, tuple[Any, ...]]

    __repr__ = short_repr

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(len(values) for values in self.axes.values())

    def layout(self, number: int, ranks: int) -> Layout:
        """The layout of combination ``number`` on a system of ``ranks`` ranks."""
        fields: dict[str, Any] = {}
        for name in reversed(AXES):
            number, position = divmod(number, len(self.axes[name]))
            fields[name] = self.axes[name][position]
        schedule, interleave = fields.pop("schedule")
        dp = max(1, ranks // (fields["tp"] * fields["pp"] * fields["cp"]))
        return Layout(dp=dp, schedule=schedule, interleave=interleave, **fields)


def framework_defaults(estimators: Sequence[Estimator]) -> dict[str, Any]:
    """The values of axes and columns that the framework of some estimators sets.

    Raises:
        UsageError: They have different frameworks.
    """
    frameworks = {estimator.runtime.framework: estimator.runtime for estimator in estimators}
    if len(frameworks) > 1:
        raise UsageError(f"estimators of different frameworks: {', '.join(n or 'none' for n in frameworks)}")
    return {name: value for runtime in frameworks.values() for name, value in runtime.defaults.items()}


def grid(default: Mapping[str, Any] | None = None, /, **axes: Any) -> Grid:
    """All combinations of some values: one value per axis, or several; see :func:`trnspec.perf.sweep.batch.sweep`.

    Args:
        default: Values of axes that are not given, in place of those of a layout; see :func:`framework_defaults`.
        axes: The values.

    Raises:
        UsageError: Unknown axis, or a value that it does not accept.
    """
    defaults = DEFAULTS | dict(default or {})
    for name in axes:
        if name not in AXES:
            raise UsageError(f"{name!r} is not an axis of a sweep; expected one of {', '.join(AXES)}")
    checked: dict[str, tuple[Any, ...]] = {}
    for name in AXES:
        if name not in axes and name not in defaults:
            raise UsageError(f"a sweep needs the axis {name}")
        requested = axes.get(name, defaults.get(name))
        values = tuple(requested) if isinstance(requested, (list, range, np.ndarray, tuple)) else (requested,)
        if name == "schedule" and len(values) == 2 and isinstance(values[1], int):
            values = (values,)
        if not values:
            raise UsageError(f"the axis {name} has no values")
        checked[name] = tuple(_value(name, value) for value in values)
        if len(set(checked[name])) < len(values):
            raise UsageError(f"the axis {name} has duplicate values")
    return Grid(checked)


def _value(name: str, value: Any) -> Any:
    """A validated value of an axis."""
    if name == "schedule":
        schedule, chunks = value if isinstance(value, tuple) and len(value) == 2 else (value, 1)
        if schedule not in SCHEDULES:
            raise UsageError(f"{schedule!r} is not a schedule; expected one of {', '.join(SCHEDULES)}")
        if value == "interleaved":
            raise UsageError("the schedule interleaved needs the number of chunks: ('interleaved', 2)")
        return schedule, _integer("interleave", chunks)
    if name in WORDS:
        if value not in WORDS[name]:
            raise UsageError(f"{name} is {value!r}; expected one of {', '.join(WORDS[name])}")
        return value
    if name in FLAGS:
        if not isinstance(value, (bool, np.bool_)):
            raise UsageError(f"{name} is {value!r}; expected True or False")
        return bool(value)
    if value is None and name in OPTIONAL:
        return None
    if name in RATIOS:
        is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not is_number or not 1.0 <= value < math.inf:
            raise UsageError(f"{name} is {value!r}; expected a number of at least 1")
        return float(value)
    number = _integer(name, value)
    if name in LEVELS and not 0 <= number <= LEVELS[name]:
        raise UsageError(f"{name} is {number}; expected an integer from 0 to {LEVELS[name]}")
    return number


def _integer(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise UsageError(f"{name} is {value!r}; expected an integer")
    if name in COUNTS and value < 1:
        raise UsageError(f"{name} is {value}; expected 1 or more")
    return int(value)


@frozen
class SweepResult(Generic[R]):
    """The result of a sweep.

    Attributes:
        estimators: The estimators; results refer to them by position.
        grid: The combinations.
        result: The result of the reduction.
        evaluated: Number of configurations evaluated.
        rejected: Number of configurations without a time, by reason.
    """

    estimators: tuple[Estimator, ...]
    grid: Grid
    result: R
    evaluated: int
    rejected: dict[str, int]

    __repr__ = short_repr

    def layout(self, which: int, number: int) -> Layout:
        """The layout of a configuration, by its estimator and its number."""
        return self.grid.layout(int(number), int(self.estimators[which].system.ranks))

    def layouts(self: SweepResult[Kept]) -> list[tuple[Estimator, Layout]]:
        """The kept layouts with their estimators; ``result`` must be :class:`~trnspec.perf.sweep.reductions.Kept`."""
        kept = self.result
        pairs = zip(kept.which.tolist(), kept.number.tolist(), strict=True)
        return [(self.estimators[which], self.layout(which, number)) for which, number in pairs]

    def records(self: SweepResult[Kept]) -> list[dict[str, Any]]:
        """For each kept configuration a mapping with ``model``, ``system``, the layout, ``step_time`` (s) and ``memory`` (B)."""
        costs = zip(self.result.time.tolist(), self.result.memory.tolist(), strict=True)
        return [
            {
                "model": estimator.name,
                "system": estimator.system.name,
                **asdict(layout),
                "step_time": step_time,
                "memory": memory,
            }
            for (estimator, layout), (step_time, memory) in zip(self.layouts(), costs, strict=True)
        ]

    def to_pandas(self: SweepResult[Kept]) -> pd.DataFrame:
        """The records as a data frame of pandas.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(f"pandas is not installed ({error}); pip install 'trnspec[tables]'") from error
        return pd.DataFrame(self.records())


def over(  # the inputs of a sweep
    estimators: Sequence[Estimator],
    axes: Grid,
    *,
    keep: Reduction[Any] | Callable[[Block], Any] | None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = BLOCK,
    numbers: tuple[int, int] | None = None,
) -> SweepResult[Any]:
    """Evaluate every combination on every estimator; see :func:`trnspec.perf.sweep.batch.sweep`."""
    if unknown := [name for name in parts if name not in PARTS]:
        raise UsageError(f"a step has no part {unknown[0]!r}; expected some of {', '.join(PARTS)}")
    if block < 1:
        raise UsageError(f"block is {block}; expected 1 or more")
    keep_pages()
    reduction: Any = Everything() if keep is None else keep if hasattr(keep, "take") else Each(keep)
    counts = np.zeros(len(REASONS), dtype=np.int64)
    for which, estimator in enumerate(estimators):
        for start, choices, shape in _blocks(axes, block, numbers):
            evaluated_block = _evaluated(estimator, choices, shape, tuple(parts), memory=memory)
            one = evolve(evaluated_block, which=which, start=start).within(numbers)
            counts += np.bincount(one.code, minlength=len(REASONS))
            reduction.take(one)
    rejected = {reason: int(number) for reason, number in zip(REASONS, counts, strict=True) if reason and number}
    return SweepResult(tuple(estimators), axes, reduction.result(), int(counts.sum()), rejected)


def _blocks(
    axes: Grid, block: int, numbers: tuple[int, int] | None = None
) -> Iterator[tuple[int, Choices, tuple[int, int]]]:
    """The blocks in order, those with some of the numbers: number of the first combination, columns, and their shape.

    The last axes together form one array axis, those before them another, and the first are single numbers: numpy is
    fastest with few long axes, and each quantity is computed along one of the two, or both.
    """
    sizes = [len(axes.axes[name]) for name in AXES]
    inner = len(AXES)
    while inner > 0 and math.prod(sizes[inner:]) < min(_INNER, block):
        inner -= 1
    if math.prod(sizes[inner:]) > block:
        inner += 1
    row_size = math.prod(sizes[inner:])
    last = _combined(axes, AXES[inner:], 0, row_size)
    rows, outer = max(1, block // row_size), math.prod(sizes[:inner])
    fixed_axes = inner
    # Axes that vary within a block need arrays; those before them are single numbers.
    while fixed_axes > 0 and math.prod(sizes[fixed_axes:inner]) < rows:
        fixed_axes -= 1
    period = math.prod(sizes[fixed_axes:inner])
    # Blocks of about equal size, without a small remainder.
    rows = -(-period // -(-period // rows))
    lowest, end_of_all = numbers or (0, outer * row_size)
    for first in range(outer // period):
        if (first + 1) * period * row_size <= lowest or first * period * row_size >= end_of_all:
            continue
        fixed = _combined(axes, AXES[:fixed_axes], first, first + 1)
        for begin in range(0, period, rows):
            end = min(period, begin + rows)
            if (first * period + end) * row_size <= lowest or (first * period + begin) * row_size >= end_of_all:
                continue
            varying = _combined(axes, AXES[fixed_axes:inner], begin, end)
            columns: dict[str, Any] = {name: column[0].item() for name, column in fixed.items()}
            columns |= {name: _column(column[:, None]) for name, column in varying.items()}
            columns |= {name: _column(column[None, :]) for name, column in last.items()}
            columns |= {"dp": 1, "load": load_of(*(columns[name] for name in RATIOS))}
            yield (first * period + begin) * row_size, columns_as_choices(columns), (end - begin, row_size)


def _combined(axes: Grid, names: Sequence[str], begin: int, end: int) -> dict[str, Any]:
    """The columns of some axes for a range of their combinations."""
    positions = np.arange(begin, end)
    columns: dict[str, Any] = {}
    for name in reversed(names):
        values = axes.axes[name]
        positions, position = np.divmod(positions, len(values))
        if name == "schedule":
            columns["schedule"] = np.array([SCHEDULES.index(schedule) for schedule, _ in values])[position]
            columns["interleave"] = np.array([chunks for _, chunks in values])[position]
        else:
            columns[name] = np.array([_number(name, value) for value in values])[position]
    return columns


def _number(name: str, value: Any) -> float:
    """A value of an axis as a number: the position of a word, and 0 for ``None``."""
    if name in WORDS:
        return WORDS[name].index(value)
    return 0 if value is None else value + 0


def _column(column: Any) -> Any:
    """A column, or a single number where all its elements are equal."""
    return column if column.size > 1 and (column != column.flat[0]).any() else column.flat[0].item()


def _evaluated(
    estimator: Estimator, c: Choices, shape: tuple[int, int], parts: tuple[str, ...], *, memory: bool
) -> Block:
    """One evaluated block, flattened."""
    system, d, machine = estimator.system, estimator.dims, estimator.machine
    size = math.prod(shape)
    if _wrong_rank_count(replicated(c, machine.ranks), system.ranks):
        code = np.full(size, REASONS.index("rank-count"), dtype=np.uint8)
        zeros = np.zeros(size)
        return Block(0, 0, zeros, code, zeros if memory else zeros[:0], dict.fromkeys(parts, zeros))
    c, coefficients, microbatches, causes = formulas(
        c, estimator.model, machine, heads=d.heads, experts=larger(1.0, d.experts), longest=longest(d)
    )
    times = step_from_costs(coefficients, c.microbatch, microbatches)
    code = reason_codes(causes)
    code = np.array(np.broadcast_to(code, shape)).reshape(size)
    memory_bytes = np.zeros(0)
    if memory:
        memory_bytes = _flat(c.memory(d, c.replicas(), estimator.runtime), shape)
        memory_bytes[code != 0] = 0.0
        code[memory_bytes > system.capacity] = DOES_NOT_FIT
    rejected = code != 0
    return Block(0, 0, _masked(times.total, shape, rejected), code, memory_bytes, _parts(times, parts, shape, rejected))


def _wrong_rank_count(c: Choices, ranks: float) -> bool:
    """Whether all of a block has the wrong number of ranks; only decided where no array is involved."""
    product: Number = c.tp * c.pp * c.dp * c.cp
    return type(product) is float and product != ranks


def _parts(times: Step, parts: tuple[str, ...], shape: tuple[int, int], rejected: Any) -> dict[str, Any]:
    return {name: _masked(getattr(times, name), shape, rejected) for name in parts}


def _flat(number: Number, shape: tuple[int, int]) -> Any:
    """A flat copy with the shape of the block."""
    return np.array(np.broadcast_to(number, shape), dtype=np.float64).reshape(-1)


def _masked(number: Number, shape: tuple[int, int], rejected: Any) -> Any:
    values = _flat(number, shape)
    values[rejected] = 0.0
    return values
