"""Batches of unrelated configurations, one per row."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from trnspec.errors import UsageError
from trnspec.perf.sweep.blocks import collapsed
from trnspec.perf.sweep.grid import check_parts, framework_defaults
from trnspec.perf.sweep.layouts import (
    COUNTS,
    DEFAULTS,
    DOES_NOT_FIT,
    LIMITS,
    OPTIONAL,
    RATIOS,
    WORDS,
    LayoutFormulas,
    invalid,
    layouts,
)
from trnspec.perf.sweep.reductions import Block
from trnspec.perf.work.validity import REASONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.training.estimator import Estimator

BLOCK = 1 << 16
"""Rows that are evaluated at once."""


def rows(  # the inputs of a batch
    prepared: Sequence[Estimator],
    which: Any,
    *,
    parts: Sequence[str] = (),
    memory: bool = False,
    block: int = BLOCK,
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
    check_parts(parts, block)
    if not prepared:
        raise UsageError("a batch needs an estimator")
    values, index, size = _columns(prepared, which, columns)
    time, code = np.zeros(size), np.empty(size, dtype=np.uint8)
    needs = np.zeros(size if memory else 0)
    times = {"total": time} | {name: np.zeros(size) for name in parts}
    order = np.argsort(index, kind="stable")
    edges = np.flatnonzero(np.diff(index[order], prepend=-1, append=-1))
    for begin, end in itertools.pairwise(edges):
        for low in range(begin, end, block):
            at = order[low : min(end, low + block)]
            one = prepared[index[at[0]]]
            code[at] = _evaluate(one, values, at, times, needs if memory else None)
    return Block(0, 0, time, code, needs, {name: times[name] for name in parts})


def _columns(
    estimators: Sequence[Estimator], which: Any, columns: Mapping[str, Any]
) -> tuple[dict[str, Any], NDArray[np.int64], int]:
    """Validated columns as numbers, the position of the estimator of each row, and the number of rows."""
    if unknown := [name for name in columns if name not in {*DEFAULTS, "seq", "global_batch"}]:
        names = ", ".join((*DEFAULTS, "seq", "global_batch"))
        raise UsageError(f"{unknown[0]!r} is not a column of a batch; expected one of {names}")
    if missing := [name for name in ("seq", "global_batch") if name not in columns]:
        raise UsageError(f"a batch needs the column {missing[0]}")
    given = DEFAULTS | framework_defaults(estimators) | dict(columns)
    # Experts are split over all tensor-parallel ranks where there is no degree.
    given["expert_tp"] = _without_none(given["expert_tp"], given["tp"])
    values = {name: _read(name, value) for name, value in given.items()}
    index: Any = np.asarray(which)
    if index.dtype.kind not in "iu" or index.ndim > 1:
        raise UsageError("which is the position of an estimator: an integer, or a column of integers")
    sizes = {len(c) for c in (*values.values(), index) if isinstance(c, np.ndarray) and c.ndim}
    if len(sizes) > 1:
        raise UsageError(f"the columns of a batch have different lengths: {', '.join(map(str, sorted(sizes)))}")
    size = sizes.pop() if sizes else 1
    for name, highest in LIMITS.items():
        _check(name, values[name], highest)
    _check("which", index, len(estimators) - 1)
    return values, np.broadcast_to(index, size), size


def _evaluate(
    estimator: Estimator,
    values: Mapping[str, Any],
    at: NDArray[np.intp],
    times: Mapping[str, NDArray[np.float64]],
    needs: NDArray[np.float64] | None,
) -> NDArray[np.uint8]:
    """Write the times [s] and memory [B] of the valid ones of some rows of one estimator; the codes of all."""
    columns = _rows(values, at)
    below: Any = False
    for name in COUNTS:
        # Without a degree, experts are split over all tensor-parallel ranks, which is 0 as a number.
        if values[name] is not None:
            below, columns[name] = below | (columns[name] < 1), np.maximum(columns[name], 1)
    columns["expert_tp"] = 0 if columns["expert_tp"] is None else columns["expert_tp"]
    code = np.where(below, np.uint8(REASONS.index("not-positive")), invalid(layouts(columns), estimator))
    code = np.array(np.broadcast_to(code, len(at)))
    valid = np.flatnonzero(code == 0)
    if len(valid):
        formulas = LayoutFormulas(estimator, needs is not None)
        none = np.zeros(len(valid), dtype=np.uint8)
        code[valid], measures = formulas.of_layouts(layouts(_rows(columns, valid)), none, tuple(times))
        for name, column in times.items():
            column[at[valid]] = np.where(code[valid] == 0, measures[name], 0.0)
        if needs is not None:
            known = (code[valid] == 0) | (code[valid] == DOES_NOT_FIT)
            needs[at[valid]] = np.where(known, measures["memory"], 0.0)
    return code


def _rows(columns: Mapping[str, Any], at: Any) -> dict[str, Any]:
    """Some rows of those columns that are arrays; a number where all are equal."""
    return {name: collapsed(c[at]) if isinstance(c, np.ndarray) else c for name, c in columns.items()}


def _check(name: str, column: Any, limit: int) -> None:
    """Check that the values of a column are from 0 to a limit."""
    within = not np.size(column) or (np.min(column) >= 0 and np.max(column) <= limit)
    if within:
        return
    if name == "which":
        raise UsageError(f"which names an estimator that does not exist; there are {limit + 1}")
    raise UsageError(f"the column {name} has a value outside 0 to {limit}")


def _without_none(column: Any, other: Any) -> Any:
    """A column in which another one has the place of ``None``; ``None`` alone is left as it is."""
    objects = np.asarray(column)
    if objects.dtype.kind != "O" or objects.ndim != 1:
        return column
    return np.array(np.where([one is None for one in objects], other, objects).tolist())


def _ratios(name: str, value: Any) -> Any:
    """A column of numbers of at least 1, or one for all rows; ``None`` becomes 0."""
    try:
        # None is NaN.
        column = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        column = np.empty((0, 0))
    if column.ndim > 1:
        raise UsageError(f"the column {name} is neither a number nor an array with one number per row")
    left_out = np.isnan(column) & (name in OPTIONAL)
    if not ((column >= 1.0) & (column < np.inf) | left_out).all():
        raise UsageError(f"the column {name} has a value that is not a number of at least 1")
    column = np.where(left_out, 0.0, column)
    return column if column.ndim else float(column)


def _read(name: str, value: Any) -> Any:
    """A column as integers or ratios, or one of them for all rows; names become their positions, and ``None`` 0."""
    if name in RATIOS:
        return _ratios(name, value)
    if value is None and name in OPTIONAL:
        return None
    if name in WORDS:
        names = WORDS[name]
        numbers = {item: i for i, item in enumerate(names)}
        column = np.asarray(value)
        if column.dtype.kind in "UO" and column.ndim <= 1:
            if unknown := [item for item in dict.fromkeys(column.reshape(-1).tolist()) if item not in numbers]:
                raise UsageError(f"{name} is {unknown[0]!r}; expected one of {', '.join(names)}")
            return (
                numbers[str(value)] if not column.ndim else np.array([numbers[item] for item in column], dtype=np.uint8)
            )
    column = np.asarray(value)
    if column.ndim > 1 or column.dtype.kind not in "iubf":
        raise UsageError(f"the column {name} is neither a number nor an array with one number per row")
    is_float = column.dtype.kind == "f"
    if is_float and not (np.isfinite(column).all() and (column == np.floor(column)).all()):
        raise UsageError(f"the column {name} has a value that is not an integer")
    if is_float or column.dtype.kind == "b" or column.dtype == np.uint64:
        column = column.astype(np.int64)
    return int(column) if column.ndim == 0 else column
