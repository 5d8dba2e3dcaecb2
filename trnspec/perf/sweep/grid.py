"""Every combination of some choices, in blocks: each quantity is computed only on the axes that it depends on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, frozen

from trnspec.errors import UsageError
from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.columns import (
    COUNTS,
    FLAGS,
    OPTIMIZER_NAMES,
    REASONS,
    RECOMPUTES,
    SCHEDULES,
    Choices,
    invalid_batch,
    invalid_degrees,
    invalid_positions,
    invalid_sequence,
    invalid_stages,
    optimized,
    recomputed,
    refused,
    scheduled,
    turns,
)
from trnspec.perf.sweep.reductions import Block, Each, Everything, Kept
from trnspec.perf.training.communication import links
from trnspec.perf.training.costs import costs
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import PARTS, Step, timed
from trnspec.perf.work.layout import Layout, longest
from trnspec.perf.work.terms import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trnspec.perf.sweep.reductions import Reduction

BLOCK = 16384
"""Configurations computed at once: their arrays stay in a core's cache."""
_INNER = 64
"""Combinations of the innermost axes that are worth an axis of their own."""

AXES = (
    *("tp", "pp", "cp", "ep", "seq", "microbatch", "schedule", "sequence_parallel", "flash", "fused_loss"),
    *("recompute", "overlap"),
    *("optimizer", "zero", "global_batch"),
)
"""The axes, in the order in which configurations are counted, the last one fastest: few quantities depend on the last."""

DOES_NOT_FIT = REASONS.index("does-not-fit")
"""The code of a layout that a rank's memory cannot hold."""


@frozen
class Grid:
    """All combinations of some choices; dp is what the other degrees leave of a system's ranks.

    Attributes:
        axes: By the names of :data:`AXES`, in that order, what each takes; schedules with their chunks.
    """

    axes: dict[str, tuple[Any, ...]]

    @property
    def size(self) -> int:
        """Combinations."""
        return math.prod(len(values) for values in self.axes.values())

    def layout(self, number: int, ranks: int) -> Layout:
        """A combination by its number, on so many ranks."""
        chosen: dict[str, Any] = {}
        for name in reversed(AXES):
            number, place = divmod(number, len(self.axes[name]))
            chosen[name] = self.axes[name][place]
        schedule, interleave = chosen.pop("schedule")
        dp = max(1, ranks // (chosen["tp"] * chosen["pp"] * chosen["cp"]))
        return Layout(dp=dp, schedule=schedule, interleave=interleave, **chosen)


def grid(**axes: Any) -> Grid:
    """All combinations of some choices: each one value, or several; see :func:`sweep`.

    Raises:
        UsageError: There is no such axis, or it does not take a value.
    """
    defaults: dict[str, Any] = {
        "tp": 1, "pp": 1, "cp": 1, "ep": 1, "microbatch": 1, "schedule": "1f1b", "sequence_parallel": False,
        "flash": True, "fused_loss": True, "recompute": "none", "overlap": False, "optimizer": "adam", "zero": 0,
    }  # fmt: skip
    for name in axes:
        if name not in AXES:
            raise UsageError(f"{name!r} is no axis of a sweep; there are {', '.join(AXES)}")
    made: dict[str, tuple[Any, ...]] = {}
    for name in AXES:
        if name not in axes and name not in defaults:
            raise UsageError(f"a sweep needs {name}")
        given = axes.get(name, defaults.get(name))
        values = tuple(given) if isinstance(given, (list, range, np.ndarray, tuple)) else (given,)
        if name == "schedule" and len(values) == 2 and isinstance(values[1], int):
            values = (values,)
        if not values:
            raise UsageError(f"the axis {name} has no values")
        made[name] = tuple(_value(name, value) for value in values)
        if len(set(made[name])) < len(values):
            raise UsageError(f"the axis {name} has a value twice")
    return Grid(made)


def _value(name: str, value: Any) -> Any:
    """A value of an axis, checked."""
    if name == "schedule":
        word, chunks = value if isinstance(value, tuple) and len(value) == 2 else (value, 1)
        if word not in SCHEDULES:
            raise UsageError(f"{word!r} is no schedule; there are {', '.join(SCHEDULES)}")
        if value == "interleaved":
            raise UsageError("the schedule interleaved needs its chunks: ('interleaved', 2)")
        return word, _whole("interleave", chunks)
    words = {"recompute": RECOMPUTES, "optimizer": OPTIMIZER_NAMES}.get(name)
    if words is not None:
        if value not in words:
            raise UsageError(f"{name} is {value!r}; there are {', '.join(words)}")
        return value
    if name in FLAGS:
        if not isinstance(value, (bool, np.bool_)):
            raise UsageError(f"{name} is {value!r}, and is True or False")
        return bool(value)
    number = _whole(name, value)
    if name == "zero" and number not in {0, 1, 2, 3}:
        raise UsageError(f"ZeRO has the stages 0 to 3, not {number}")
    return number


def _whole(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise UsageError(f"{name} is {value!r}, and is a whole number")
    if name in COUNTS and value < 1:
        raise UsageError(f"{name} is {value}, and counts from 1")
    return int(value)


@frozen
class SweepResult:
    """What a sweep found.

    Attributes:
        estimators: What was swept, by the numbers that results use.
        grid: The combinations.
        result: What the reduction kept.
        tried: Combinations that were tried.
        refused: How many of them have no time, by reason.
    """

    estimators: tuple[Estimator, ...]
    grid: Grid
    result: Any
    tried: int
    refused: dict[str, int]

    def layout(self, which: int, number: int) -> Layout:
        """The layout of a configuration, by its estimator and its number."""
        return self.grid.layout(int(number), int(self.estimators[which].system.ranks))

    def layouts(self) -> list[tuple[Estimator, Layout]]:
        """What was kept, with its estimators; ``result`` must be :class:`~trnspec.perf.sweep.reductions.Kept`."""
        kept: Kept = self.result
        pairs = zip(kept.which.tolist(), kept.number.tolist(), strict=True)
        return [(self.estimators[which], self.layout(which, number)) for which, number in pairs]


def over(  # what is computed, and how
    estimators: Sequence[Estimator],
    axes: Grid,
    *,
    keep: Reduction | Callable[[Block], Any] | None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = BLOCK,
) -> SweepResult:
    """Try every combination on every estimator; see :func:`trnspec.perf.sweep.batch.sweep`."""
    if unknown := [name for name in parts if name not in PARTS]:
        raise UsageError(f"a step has no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if block < 1:
        raise UsageError(f"a block has {block} configurations, and at least 1")
    reduction: Any = Everything() if keep is None else keep if hasattr(keep, "take") else Each(keep)
    counts = np.zeros(len(REASONS), dtype=np.int64)
    for which, estimator in enumerate(estimators):
        for start, columns, shape in _blocks(axes, int(estimator.system.ranks), block):
            found = _evaluated(estimator, columns, shape, tuple(parts), memory=memory)
            counts += np.bincount(found.code, minlength=len(REASONS))
            reduction.take(evolve(found, which=which, start=start))
    told = {reason: int(n) for reason, n in zip(REASONS, counts, strict=True) if reason and n}
    return SweepResult(tuple(estimators), axes, reduction.result(), int(counts.sum()), told)


def _blocks(axes: Grid, ranks: int, block: int) -> Iterator[tuple[int, Choices, tuple[int, int]]]:
    """The blocks in order: the number of the first combination, the columns, and their shape.

    The last axes together are one axis of arrays, those before it another, and the first are numbers: numpy loops over
    few long axes, and each quantity is computed on one of the two, or on both.
    """
    sizes = [len(axes.axes[name]) for name in AXES]
    inner = len(AXES)
    while inner > 0 and math.prod(sizes[inner:]) < min(_INNER, block):
        inner -= 1
    if math.prod(sizes[inner:]) > block:
        inner += 1
    wide = math.prod(sizes[inner:])
    last = _combined(axes, AXES[inner:], 0, wide)
    rows, outer = max(1, block // wide), math.prod(sizes[:inner])
    whole = inner
    # Axes that vary within a block need arrays; those before them are numbers.
    while whole > 0 and math.prod(sizes[whole:inner]) < rows:
        whole -= 1
    period = math.prod(sizes[whole:inner])
    # Blocks of about the same size, none of them a small rest.
    rows = -(-period // -(-period // rows))
    for first in range(outer // period):
        fixed = _combined(axes, AXES[:whole], first, first + 1)
        for begin in range(0, period, rows):
            end = min(period, begin + rows)
            middle = _combined(axes, AXES[whole:inner], begin, end)
            columns = {name: float(column[0]) for name, column in fixed.items()}
            columns |= {name: _column(column[:, None]) for name, column in middle.items()}
            columns |= {name: _column(column[None, :]) for name, column in last.items()}
            yield (first * period + begin) * wide, _choices(columns, ranks), (end - begin, wide)


def _combined(axes: Grid, names: Sequence[str], begin: int, end: int) -> dict[str, Any]:
    """The columns of some axes, for a range of their combinations."""
    places = np.arange(begin, end)
    made: dict[str, Any] = {}
    for name in reversed(names):
        values = axes.axes[name]
        places, place = np.divmod(places, len(values))
        if name == "schedule":
            made["schedule"] = np.array([SCHEDULES.index(word) for word, _ in values])[place]
            made["interleave"] = np.array([chunks for _, chunks in values])[place]
        else:
            words = {"recompute": RECOMPUTES, "optimizer": OPTIMIZER_NAMES}.get(name)
            made[name] = np.array([words.index(v) if words else int(v) for v in values])[place]
    return made


def _column(column: Any) -> Any:
    """A number where all of a column is the same."""
    return column if column.size > 1 and (column != column.flat[0]).any() else float(column.flat[0])


def _choices(columns: dict[str, Any], ranks: int) -> Choices:
    names = ("schedule", "interleave", "optimizer", "recompute")
    schedule, interleave, optimizer, recompute = (columns.pop(name) for name in names)
    if isinstance(schedule, np.ndarray) or isinstance(interleave, np.ndarray):
        shape = np.broadcast_shapes(np.shape(schedule), np.shape(interleave))
        schedule = np.broadcast_to(np.asarray(schedule).astype(np.intp), shape)
        interleave = np.broadcast_to(np.asarray(interleave), shape)
    floats = {name: c.astype(np.float64) if isinstance(c, np.ndarray) else c for name, c in columns.items()}
    floats["sequence"] = floats.pop("sequence_parallel")
    floats["recompute"] = recomputed(recompute)
    dp = larger(1.0, floor(float(ranks) / (floats["tp"] * floats["pp"] * floats["cp"])))
    return Choices(dp=dp, **floats, **scheduled(schedule, interleave), **optimized(optimizer))


def _evaluated(
    estimator: Estimator, c: Choices, shape: tuple[int, int], parts: tuple[str, ...], *, memory: bool
) -> Block:
    """One block, flattened."""
    system, d, machine = estimator.system, estimator.dims, estimator.numbers
    size = math.prod(shape)
    if _never_all(c, system.ranks):
        code = np.full(size, REASONS.index("rank-count"), dtype=np.uint8)
        zeros = np.zeros(size)
        return Block(0, 0, zeros, code, zeros if memory else zeros[:0], dict.fromkeys(parts, zeros))
    microbatches = c.replicas()
    plan = c.plan(microbatches)
    found = timed(costs(terms(estimator.model, machine), plan, links(plan, machine)), c.microbatch, microbatches)
    misfit = invalid_degrees(c, system.ranks, d.heads, larger(1.0, d.experts), found.unknown)
    split = (invalid_stages(c, d.layers), invalid_sequence(c), invalid_positions(c, longest(d)))
    code = refused(misfit, *split, invalid_batch(microbatches, turns(c)))
    code = np.array(np.broadcast_to(code, shape)).reshape(size)
    needs = np.zeros(0)
    if memory:
        needs = _filled(c.memory(d, microbatches), shape)
        needs[code != 0] = 0.0
        code[needs > system.capacity] = DOES_NOT_FIT
    bad = code != 0
    return Block(0, 0, _masked(found.total, shape, bad), code, needs, _parts(found, parts, shape, bad))


def _never_all(c: Choices, ranks: float) -> bool:
    """Whether the count of ranks is wrong in a whole block, told without looking at arrays."""
    product: Number = c.tp * c.pp * c.dp * c.cp
    return type(product) is float and product != ranks


def _parts(found: Step, parts: tuple[str, ...], shape: tuple[int, int], bad: Any) -> dict[str, Any]:
    return {name: _masked(getattr(found, name), shape, bad) for name in parts}


def _filled(number: Number, shape: tuple[int, int]) -> Any:
    """An array of its own, flat."""
    return np.array(np.broadcast_to(number, shape), dtype=np.float64).reshape(-1)


def _masked(number: Number, shape: tuple[int, int], bad: Any) -> Any:
    made = _filled(number, shape)
    made[bad] = 0.0
    return made
