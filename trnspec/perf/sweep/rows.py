"""A batch of configurations each of which differs from the next, in blocks that stay in a core's cache."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define

from trnspec.errors import UsageError
from trnspec.perf.sweep.columns import COUNTS, REASONS, WORDS, caused, invalid_batch, refused
from trnspec.perf.sweep.lookup import LIMITS, Tables, as_float, columns_as_choices
from trnspec.perf.sweep.reductions import Block
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import PARTS, Step, timed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

BLOCK = 16384
"""Configurations computed at once."""
_MANY = 1 << 17
"""Rows whose memory is computed at once."""
_KEPT = 1 << 24
"""Half of the bytes that the C library is to keep."""
_SEEN = 1 << 14
"""Rows, from all over a batch, that are looked at first."""

DEFAULTS: dict[str, Any] = {
    "tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "microbatch": 1, "interleave": 1, "schedule": "1f1b", "zero": 0,
    "recompute": "none", "sequence_parallel": False, "overlap": False, "flash": True, "fused_loss": True,
    "optimizer": "adam",
}  # fmt: skip
"""What a column is where it is not given, as in :class:`~trnspec.perf.work.layout.Layout`."""

DOES_NOT_FIT = REASONS.index("does-not-fit")


def compute(  # what is computed, and how
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
        raise UsageError(f"a step has no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if not estimators:
        raise UsageError("a batch needs an estimator")
    if block < 1:
        raise UsageError(f"a block has {block} configurations, and at least 1")
    _keep_pages()
    batch = _Batch.read(estimators, which, columns)
    size = batch.size
    time, code = np.empty(size), np.empty(size, dtype=np.uint8)
    needs = np.empty(size if memory else 0)
    chosen = {name: np.empty(size) for name in parts}
    for begin in range(0, size, block):
        at = slice(begin, min(size, begin + block))
        found, code[at] = batch.block(at)
        bad = code[at] != 0
        for column, values in ((time, found.total), *((chosen[name], getattr(found, name)) for name in parts)):
            column[at] = np.where(bad, 0.0, values)
    # Memory is computed model by model, and many rows at once leave enough of each.
    for begin in range(0, size if memory else 0, max(block, _MANY)):
        at = slice(begin, min(size, begin + max(block, _MANY)))
        needs[at] = batch.memory(at, code[at])
    if memory:
        for column in (time, *chosen.values()):
            np.putmask(column, code == DOES_NOT_FIT, 0.0)
    return Block(0, 0, time, code, needs, chosen)


@cache
def _keep_pages() -> None:
    """Free one large array, once.

    The GNU C library gives memory back to the system when more than twice the largest array freed so far is unused at
    the end of its heap, 256 KiB at first: a batch of some thousand rows would spend half its time getting pages again.
    """
    np.empty(_KEPT, dtype=np.uint8)


@define
class _Batch:
    """The columns of a batch, and what is known of its estimators; ``which`` is one of the columns."""

    size: int
    estimators: tuple[Estimator, ...]
    columns: dict[str, Any]
    below: bool
    tables: Tables

    @classmethod
    def read(cls, estimators: Sequence[Estimator], which: Any, columns: Mapping[str, Any]) -> _Batch:
        if others := [name for name in columns if name not in {*DEFAULTS, "seq", "global_batch"}]:
            raise UsageError(
                f"{others[0]!r} is no column of a batch; there are {', '.join((*DEFAULTS, 'seq', 'global_batch'))}"
            )
        if missing := [name for name in ("seq", "global_batch") if name not in columns]:
            raise UsageError(f"a batch needs the column {missing[0]}")
        read = {name: _read(name, value) for name, value in (DEFAULTS | dict(columns)).items()}
        index: Any = np.asarray(which)
        if index.dtype.kind not in "iu" or index.ndim > 1:
            raise UsageError("which estimator a row is about is one whole number, or a column of them")
        sizes = {len(c) for c in (*read.values(), index) if isinstance(c, np.ndarray) and c.ndim}
        if len(sizes) > 1:
            raise UsageError(f"the columns of a batch have different lengths: {', '.join(map(str, sorted(sizes)))}")
        size = sizes.pop() if sizes else 1
        if not index.ndim:
            # One estimator for all rows: its numbers are numbers, not columns.
            _check("which", int(index), len(estimators) - 1)
            estimators, index = (estimators[int(index)],), 0
        read["which"] = index
        for name, most in LIMITS.items():
            if not isinstance(read[name], np.ndarray):
                _check(name, read[name], most)
        below = False
        for name in COUNTS:
            if not isinstance(read[name], np.ndarray):
                below, read[name] = below or read[name] < 1, max(read[name], 1)
        first = _cut(read, slice(0, size, -(-size // _SEEN))) if size else dict.fromkeys(read, 1)
        return cls(size, tuple(estimators), read, below, Tables.of(estimators, size, _counted(first)[0]))

    def block(self, at: slice) -> tuple[Step, Any]:
        """The times of some rows, and the codes without memory."""
        columns, below = _cut(self.columns, at), self.below
        for name, most in (*LIMITS.items(), ("which", len(self.estimators) - 1)):
            _check(name, columns[name], most)
        looked: Any = self.tables.look(columns)
        if looked is None or any(np.min(columns[name]) < 1 for name in ("dp", "microbatch", "global_batch")):
            columns, few = _counted(columns)
            below = np.logical_or(below, few)
            self.tables.grow(columns)
            looked = self.tables.look(columns)
        microbatch, dp = as_float(columns["microbatch"]), as_float(columns["dp"])
        microbatches = as_float(columns["global_batch"]) / (microbatch * dp)
        found = timed(looked, microbatch, microbatches)
        causes = (
            looked.unfit,
            looked.undealt,
            looked.unsplit,
            looked.unlearned,
            invalid_batch(microbatches, looked.turns),
        )
        code = refused(*causes, caused(dp != looked.dp, "rank-count"))
        return found, code if below is False else np.where(below, REASONS.index("not-positive"), code)

    def memory(self, at: slice, code: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Bytes of the rows whose layouts can be, model by model; codes of those that do not fit are set."""
        needs = np.zeros(len(code))
        columns = _cut(self.columns, at)
        which = np.broadcast_to(columns["which"], len(code))
        numbers: dict[Any, int] = {}
        alike = np.array([numbers.setdefault(e.dims, len(numbers)) for e in self.estimators])
        capacity = np.array([e.system.capacity for e in self.estimators])
        possible = np.flatnonzero(code == 0)
        order = possible[np.argsort(alike[which[possible]], kind="stable")]
        edges = np.flatnonzero(np.diff(alike[which[order]])) + 1
        for places in np.split(order, edges):
            if len(places):
                c = columns_as_choices(_cut(columns, places))
                needs[places] = c.memory(self.estimators[int(which[places[0]])].dims, c.replicas())
        code[needs > capacity[which]] = DOES_NOT_FIT
        return needs


def _cut(columns: Mapping[str, Any], at: Any) -> dict[str, Any]:
    """Some rows of the columns that are arrays."""
    return {name: column[at] if isinstance(column, np.ndarray) else column for name, column in columns.items()}


def _counted(columns: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Columns whose counts are at least 1, and where they were not."""
    below: Any = False
    for name in COUNTS:
        column = columns[name]
        if isinstance(column, np.ndarray) and column.min() < 1:
            below, columns[name] = below | (column < 1), np.maximum(column, 1)
    return columns, below


def _check(name: str, column: Any, most: int) -> None:
    """Whether places are some that there are."""
    if not isinstance(column, np.ndarray):
        within = 0 <= column <= most
    elif column.dtype.itemsize == 8:
        # As numbers without a sign those below 0 are large.
        within = np.maximum.reduce(column.view(np.uint64)) <= most
    else:
        within = column.min() >= 0 and column.max() <= most
    if within:
        return
    if name == "which":
        raise UsageError(f"a row names an estimator that is not there; there are {most + 1}")
    raise UsageError(f"the column {name} has a number that is not one of 0 to {most}")


def _read(name: str, value: Any) -> Any:
    """A column as whole numbers, or one number for all rows; words become their numbers."""
    if name in WORDS:
        words = WORDS[name]
        numbers = {word: i for i, word in enumerate(words)}
        column = np.asarray(value)
        if column.dtype.kind in "UO" and column.ndim <= 1:
            if strange := [word for word in dict.fromkeys(column.reshape(-1).tolist()) if word not in numbers]:
                raise UsageError(f"{name} is {strange[0]!r}; there are {', '.join(words)}")
            return numbers[str(value)] if not column.ndim else np.array([numbers[w] for w in column], dtype=np.uint8)
    column = np.asarray(value)
    if column.ndim > 1 or column.dtype.kind not in "iubf":
        raise UsageError(f"the column {name} is one number, or one a row")
    real = column.dtype.kind == "f"
    if real and not (np.isfinite(column).all() and (column == np.floor(column)).all()):
        raise UsageError(f"the column {name} has a number that is not whole")
    if real or column.dtype.kind == "b" or column.dtype == np.uint64:
        column = column.astype(np.int64)
    return int(column) if column.ndim == 0 else column
