"""Batches of unrelated configurations, one per row, computed in blocks that fit into a core's cache."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define

from trnspec.errors import UsageError
from trnspec.perf.sweep.columns import COUNTS, OPTIONAL, RATIOS, REASONS, WORDS, load_of
from trnspec.perf.sweep.estimator_columns import ByIdentity
from trnspec.perf.sweep.formulas import DEFAULTS, LIMITS, columns_as_choices
from trnspec.perf.sweep.grid import framework_defaults
from trnspec.perf.sweep.pages import keep_pages
from trnspec.perf.sweep.reductions import Block
from trnspec.perf.sweep.tables.lookup import Tables
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

BLOCK = 1 << 20
"""Configurations per block."""
_MEMORY_BLOCK = 1 << 17
"""Rows per block when memory is computed."""
_SAMPLE = 1 << 14
"""Rows, from all over a batch, from which values are collected first."""

DOES_NOT_FIT = REASONS.index("does-not-fit")


def compute(  # the inputs of a batch
    estimators: Sequence[Estimator],
    which: Any,
    columns: Mapping[str, Any],
    *,
    parts: Sequence[str] = (),
    memory: bool = False,
    block: int = BLOCK,
) -> Block:
    """Times, codes and memory of a batch; see :func:`trnspec.perf.sweep.batch.rows`."""
    if unknown := [name for name in parts if name not in PARTS]:
        raise UsageError(f"a step has no part {unknown[0]!r}; expected some of {', '.join(PARTS)}")
    if not estimators:
        raise UsageError("a batch needs an estimator")
    if block < 1:
        raise UsageError(f"block is {block}; expected 1 or more")
    keep_pages()
    batch = _Batch.read(estimators, which, columns, parts)
    size = batch.size
    time, code = np.zeros(size), np.empty(size, dtype=np.uint8)
    memory_bytes = np.empty(size if memory else 0)
    chosen = {name: np.zeros(size) for name in parts}
    for begin in range(0, size, block):
        at = slice(begin, min(size, begin + block))
        code[at] = batch.block(at, [column[at] for column in (time, *chosen.values())])
    # Memory is computed model by model, and many rows at once leave enough of each.
    for begin in range(0, size if memory else 0, max(block, _MEMORY_BLOCK)):
        at = slice(begin, min(size, begin + max(block, _MEMORY_BLOCK)))
        memory_bytes[at] = batch.memory(at, code[at])
    if memory:
        for column in (time, *chosen.values()):
            np.putmask(column, code == DOES_NOT_FIT, 0.0)
    return Block(0, 0, time, code, memory_bytes, chosen)


@define
class _Batch:
    """The columns of a batch, ``which`` among them, and tables of its estimators."""

    size: int
    estimators: tuple[Estimator, ...]
    columns: dict[str, Any]
    below: bool
    tables: Tables

    @classmethod
    def read(
        cls, estimators: Sequence[Estimator], which: Any, columns: Mapping[str, Any], parts: Sequence[str]
    ) -> _Batch:
        if unknown := [name for name in columns if name not in {*DEFAULTS, "seq", "global_batch"}]:
            names = ", ".join((*DEFAULTS, "seq", "global_batch"))
            raise UsageError(f"{unknown[0]!r} is not a column of a batch; expected one of {names}")
        if missing := [name for name in ("seq", "global_batch") if name not in columns]:
            raise UsageError(f"a batch needs the column {missing[0]}")
        defaults = DEFAULTS | _defaults(ByIdentity(tuple(estimators)))
        given = defaults | dict(columns)
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
        values["load"] = load_of(*(values.pop(name) for name in RATIOS))
        if not index.ndim:
            # One estimator for all rows: its numbers are numbers, not columns.
            _check("which", int(index), len(estimators) - 1)
            estimators, index = (estimators[int(index)],), 0
        values["which"] = index
        for name, limit in LIMITS.items():
            if not isinstance(values[name], np.ndarray):
                _check(name, values[name], limit)
        below = False
        for name in COUNTS:
            if not isinstance(values[name], np.ndarray) and given[name] is not None:
                below, values[name] = below or values[name] < 1, max(values[name], 1)
        sample = _rows(values, slice(0, size, -(-size // _SAMPLE))) if size else dict.fromkeys(values, 1)
        return cls(size, tuple(estimators), values, below, Tables.of(estimators, size, _positive(sample)[0], parts))

    def block(self, at: slice, times: Sequence[NDArray[np.float64]]) -> Any:
        """Write times and their parts of those of some rows that are valid; the codes of all, without memory."""
        columns, below = _rows(self.columns, at), self.below
        code = self.tables.evaluate(columns, times) if self.tables.checks else None
        if code is None:
            for name, limit in (*LIMITS.items(), ("which", len(self.estimators) - 1)):
                _check(name, columns[name], limit)
            if not self.tables.checks and np.min(columns["dp"]) > 0:
                code = self.tables.evaluate(columns, times)
        if code is None:
            columns, non_positive = _positive(columns)
            below = np.logical_or(below, non_positive)
            self.tables.grow(columns)
            code = self.tables.evaluate(columns, times)
        assert code is not None
        if below is False:
            return code
        for column in times:
            np.putmask(column, np.broadcast_to(below, column.shape), 0.0)
        return np.where(below, REASONS.index("not-positive"), code)

    def memory(self, at: slice, code: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Memory [B] of the feasible rows, model by model; sets the codes of those that do not fit."""
        memory_bytes = np.zeros(len(code))
        columns = _rows(self.columns, at)
        which = np.broadcast_to(columns["which"], len(code))
        models: dict[Any, int] = {}
        model_numbers = np.array([models.setdefault((e.dims, e.runtime), len(models)) for e in self.estimators])
        capacity = np.array([e.system.capacity for e in self.estimators])
        feasible = np.flatnonzero(code == 0)
        order = feasible[np.argsort(model_numbers[which[feasible]], kind="stable")]
        edges = np.flatnonzero(np.diff(model_numbers[which[order]])) + 1
        for positions in np.split(order, edges):
            if len(positions):
                choices = columns_as_choices(_rows(columns, positions))
                first = int(which[positions[0]])
                one = self.estimators[first]
                memory_bytes[positions] = choices.memory(one.dims, choices.replicas(), one.runtime)
        code[memory_bytes > capacity[which]] = DOES_NOT_FIT
        return memory_bytes


@lru_cache(maxsize=8)
def _defaults(key: ByIdentity) -> dict[str, Any]:
    """The values of columns that the framework of some estimators sets; many estimators take longer than their rows."""
    return framework_defaults(key.estimators)


def _rows(columns: Mapping[str, Any], at: Any) -> dict[str, Any]:
    """Some rows of those columns that are arrays."""
    return {name: column[at] if isinstance(column, np.ndarray) else column for name, column in columns.items()}


def _positive(columns: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Columns whose counts are raised to at least 1, and where they were below."""
    below: Any = False
    for name in COUNTS:
        column = columns[name]
        if isinstance(column, np.ndarray) and column.min() < 1:
            below, columns[name] = below | (column < 1), np.maximum(column, 1)
    return columns, below


def _check(name: str, column: Any, limit: int) -> None:
    """Check that the values of a column are from 0 to a limit."""
    if not isinstance(column, np.ndarray):
        within = 0 <= column <= limit
    elif column.dtype.itemsize == 8:
        # Negative numbers are large when read as unsigned.
        within = np.maximum.reduce(column.view(np.uint64)) <= limit
    else:
        within = column.min() >= 0 and column.max() <= limit
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
        return 0
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
