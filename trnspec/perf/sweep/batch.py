"""Entry points for many configurations: sweeps over every combination of values, and batches of unrelated rows.

Times, codes and memory are bit for bit those of a single call of :meth:`trnspec.perf.training.estimator.Estimator.step`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar, overload

import numpy as np
from attrs import asdict
from numpy.typing import NDArray

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.perf.sweep import grid
from trnspec.perf.sweep.blocks import AxisValues
from trnspec.perf.sweep.grid import SweepResult
from trnspec.perf.sweep.layouts import (
    COUNTS,
    DEFAULTS,
    OPTIMIZER_NAMES,
    OPTIONAL,
    RATIOS,
    RECOMPUTES,
    SCHEDULES,
    LayoutFormulas,
    checked,
    layout_axes,
    number_of,
)
from trnspec.perf.sweep.reductions import Best, Block, Each, Everything, Kept, Pareto, Reduction, Top, reduced
from trnspec.perf.training.estimator import Estimator, prepare
from trnspec.perf.work.layout import DISPATCHES, Layout
from trnspec.perf.work.validity import REASONS

R = TypeVar("R")

__all__ = [
    "DISPATCHES", "OPTIMIZER_NAMES", "REASONS", "RECOMPUTES", "SCHEDULES", "Best", "Block", "Each",
    "Everything", "Kept", "Pareto", "Reduction", "SweepResult", "Top", "estimators", "rows", "sweep",
]  # fmt: skip


def estimators(
    graph: Graph, models: Sequence[str], systems: Sequence[str], *, dtypes: Sequence[str] = ("bf16",), **given: Any
) -> tuple[Estimator, ...]:
    """One estimator for every model, system and dtype; dtypes vary fastest, then systems.

    Args:
        graph: The catalog.
        models: Names of models.
        systems: Systems, such as ``trn1.32xlarge*32``.
        dtypes: Compute dtypes of matrix multiplications.
        given: Further arguments of :func:`~trnspec.perf.training.estimator.prepare`: the calibration, the framework, the
            reserve and others.

    Raises:
        UsageError: A name is that of a document of another kind.
        UnknownNameError: No document of that name.
        RefusalError: A figure is not published.
    """
    return tuple(
        prepare(graph, model, system, dtype=dtype, **given)
        for model in models
        for system in systems
        for dtype in dtypes
    )


@overload
def sweep(
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[Block]: ...
@overload
def sweep(
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Reduction[R],
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[R]: ...
@overload
def sweep(
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Callable[[Block], R],
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[list[R]]: ...
def sweep(  # the inputs of a sweep
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Reduction[Any] | Callable[[Block], Any] | None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[Any]:
    """Evaluate every combination of some values; dp follows from the ranks of a system and the other degrees.

    Axes are those of :data:`trnspec.perf.sweep.grid.AXES`, each one value or a list: ``tp``, ``pp``, ``cp``, ``ep``, ``seq``,
    ``microbatch``, ``schedule`` (a name, or a name and chunks per stage: ``("interleaved", 2)``),
    ``uneven``, ``sequence_parallel``, ``flash``, ``fused_loss``, ``recompute``, ``overlap``, ``optimizer``, ``zero``,
    ``global_batch``, and of models with experts ``expert_tp`` (``None`` for tp), ``dispatch``, ``dispatch_dtype``,
    ``node_limit`` (0 without a limit), ``expert_overlap``, ``imbalance`` and ``capacity_factor`` (``None`` without a limit).

    Args:
        prepared: One estimator or several; see :func:`estimators`.
        keep: A reduction such as :class:`Top`, :class:`Best` or :class:`Pareto`, a function that is called with each
            :class:`Block`, or ``None`` to keep everything. What a reduction does not keep takes no memory.
        parts: Parts of the step that blocks contain, of :data:`trnspec.perf.training.step.PARTS`.
        memory: Whether to compute memory, and reject what does not fit.
        block: Configurations per block.
        numbers: The first and the number after the last of the combinations to evaluate; all of them by default.
        axes: The values of each axis.

    Raises:
        UsageError: Unknown axis or part, or a value that it does not accept.
    """
    all_prepared = (prepared,) if isinstance(prepared, Estimator) else tuple(prepared)
    axes_ = grid.grid(grid.framework_defaults(all_prepared), **axes)
    grid.check_parts(parts, block)
    reduction: Any = Everything() if keep is None else keep if hasattr(keep, "take") else Each(keep)
    blocks = (
        each
        for which, one in enumerate(all_prepared)
        for each in grid.layout_blocks(
            LayoutFormulas(one, memory), layout_axes(axes_.axes), which=which, parts=parts, block=block, numbers=numbers
        )
    )

    def layout(estimator: Estimator, number: int) -> Layout:
        return axes_.layout(number, int(estimator.system.ranks))

    def record(estimator: Estimator, layout: Layout, time: float, memory: float) -> dict[str, Any]:
        names = {"model": estimator.name, "system": estimator.system.name}
        return {**names, **asdict(layout), "step_time": time, "memory": memory}

    return SweepResult(all_prepared, layout, record, *reduced(blocks, reduction))


def rows(  # the inputs of a batch
    prepared: Sequence[Estimator],
    which: Any,
    *,
    parts: Sequence[str] = (),
    memory: bool = False,
    block: int = grid.BLOCK,
    **columns: Any,
) -> Block:
    """Evaluate a batch of unrelated configurations, one per row.

    A column is an array of length n, or one value for all rows: ``seq``, ``global_batch``, ``tp``, ``pp``, ``dp``, ``cp``,
    ``ep``, ``expert_tp``, ``microbatch``, ``interleave``, ``zero``, ``node_limit``; ``uneven``,
    ``sequence_parallel``, ``overlap``, ``flash``, ``fused_loss``, ``expert_overlap`` (0 or 1); ``imbalance`` and
    ``capacity_factor``, numbers of at least 1. In ``expert_tp`` and ``capacity_factor`` ``None`` may occur, as in a layout; and
    ``schedule``, ``recompute``, ``optimizer``, ``dispatch``, ``dispatch_dtype``: names, or their positions in
    :data:`SCHEDULES`, :data:`RECOMPUTES`, :data:`OPTIMIZER_NAMES`, :data:`DISPATCHES` and
    :data:`~trnspec.perf.experts.SENT`.  The defaults are those of
    :class:`~trnspec.perf.work.layout.Layout`.

    Args:
        prepared: The estimators.
        which: For each row the position of its estimator: an array of length n, or one number for all rows.
        parts: Parts of the step to return in addition to its time, of :data:`trnspec.perf.training.step.PARTS`.
        memory: Whether to compute memory, and reject what does not fit.
        block: Rows per block; affects speed only.
        columns: The columns of the layouts.

    Returns:
        Arrays of length n: times [s], codes of :data:`REASONS`, memory [B] (length 0 without ``memory``), and parts [s].

    Raises:
        UsageError: Unknown column or part, different lengths, or a value that is not an integer or out of range.
    """
    grid.check_parts(parts, block)
    if not prepared:
        raise UsageError("a batch needs an estimator")
    values, index, size = _columns(prepared, which, columns)
    below = reduce(np.logical_or, (values[name] < 1 for name in COUNTS))
    valid = ~np.broadcast_to(below, size)
    code = np.where(valid, np.uint8(0), np.uint8(REASONS.index("not-positive")))
    found = Block(0, 0, np.zeros(size), code, np.zeros(size if memory else 0), {name: np.zeros(size) for name in parts})
    every = {name: np.nan_to_num(column) for name, column in values.items()}
    same = [AxisValues(name, {name: c[None]}, np.zeros(1, np.int64)) for name, c in every.items() if not c.ndim]
    for position in np.unique(index[valid]).tolist():
        at = np.flatnonzero((index == position) & valid)
        own = AxisValues("row", {name: c[at] for name, c in every.items() if c.ndim}, np.arange(len(at)))
        formulas = LayoutFormulas(prepared[position], memory)
        for some in grid.layout_blocks(formulas, (own, *same), parts=parts, block=block):
            to = at[some.start : some.start + len(some.code)]
            found.time[to], found.code[to] = some.time, some.code
            if memory:
                found.memory[to] = some.memory
            for name in parts:
                found.parts[name][to] = some.parts[name]
    return found


def _columns(
    estimators: Sequence[Estimator], which: Any, columns: Mapping[str, Any]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64], int]:
    """Validated columns as numbers, the position of the estimator of each row, and the number of rows."""
    if unknown := [name for name in columns if name not in {*DEFAULTS, "seq", "global_batch"}]:
        names = ", ".join((*DEFAULTS, "seq", "global_batch"))
        raise UsageError(f"{unknown[0]!r} is not a column of a batch; expected one of {names}")
    if missing := [name for name in ("seq", "global_batch") if name not in columns]:
        raise UsageError(f"a batch needs the column {missing[0]}")
    given = DEFAULTS | grid.framework_defaults(estimators) | dict(columns)
    values = {name: _column(name, value) for name, value in given.items()}
    index: Any = np.asarray(which)
    if index.dtype.kind not in "iu" or index.ndim > 1:
        raise UsageError("which is the position of an estimator: an integer, or a column of integers")
    if index.size and not 0 <= np.min(index) <= np.max(index) < len(estimators):
        raise UsageError(f"which names an estimator that does not exist; there are {len(estimators)}")
    sizes = {len(c) for c in (*values.values(), index) if c.ndim}
    if len(sizes) > 1:
        raise UsageError(f"the columns of a batch have different lengths: {', '.join(map(str, sorted(sizes)))}")
    size = sizes.pop() if sizes else 1
    return values, np.broadcast_to(index, size), size


def _column(name: str, value: Any) -> NDArray[Any]:
    """A column as numbers, or one for all rows: names are their positions, and ``None`` is NaN."""
    items = np.asarray(value, dtype=object)
    if items.ndim > 1:
        raise UsageError(f"the column {name} is neither a value nor an array with one value per row")
    # Values are few, or at least their kinds are.
    numbers = {one: _number(name, one) for one in dict.fromkeys(items.reshape(-1).tolist())}
    found = [numbers[one] for one in items.reshape(-1).tolist()]
    return np.array(found, dtype=float if name in {*RATIOS, *OPTIONAL} else int).reshape(items.shape)


def _number(name: str, value: Any) -> float:
    valid = checked(name, value)
    return math.nan if valid is None else number_of(name, valid)
