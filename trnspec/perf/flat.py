"""A batch of configurations each of which differs from the next, in blocks that stay in a core's cache."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trnspec.errors import UsageError
from trnspec.perf.choices import COUNTS, FLAGS, REASONS, WORDS, Choices, misfits, optimized, refused, scheduled
from trnspec.perf.estimate import Estimator
from trnspec.perf.keep import Block
from trnspec.perf.links import Links, links
from trnspec.perf.machine import Machine
from trnspec.perf.plan import Plan
from trnspec.perf.terms import Terms, terms
from trnspec.perf.training import PARTS, Step, timed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.perf.ops import Number
    from trnspec.perf.transformer import Transformer

BLOCK = 16384
"""Configurations computed at once."""
_MANY = 1 << 17
"""Rows whose memory is computed at once."""
_MOST = 1 << 18
"""Combinations of degrees of parallelism that what links cost is remembered for."""

DEFAULTS: dict[str, Any] = {
    "tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "microbatch": 1, "interleave": 1, "schedule": "1f1b", "zero": 0,
    "recompute": "none", "sequence_parallel": False, "overlap": False, "flash": True, "optimizer": "adam",
}  # fmt: skip
"""What a column is where it is not given, as in :class:`~trnspec.perf.layout.Layout`."""

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
    """Times, codes and memory of a batch; see :func:`trnspec.perf.batch.rows`."""
    if unknown := [name for name in parts if name not in PARTS]:
        raise UsageError(f"a step has no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    if not estimators:
        raise UsageError("a batch needs an estimator")
    if block < 1:
        raise UsageError(f"a block has {block} configurations, and at least 1")
    batch = _Batch.read(estimators, which, columns)
    size = batch.size
    time, code = np.empty(size), np.empty(size, dtype=np.uint8)
    needs = np.empty(size if memory else 0)
    chosen = {name: np.empty(size) for name in parts}
    for begin in range(0, size, block):
        at = slice(begin, min(size, begin + block))
        found, code[at] = batch.block(at)
        time[at] = found.total
        for name in parts:
            chosen[name][at] = getattr(found, name)
    # Memory is computed model by model, and many rows at once leave enough of each.
    for begin in range(0, size if memory else 0, max(block, _MANY)):
        at = slice(begin, min(size, begin + max(block, _MANY)))
        needs[at] = batch.memory(at, code[at])
    for column in (time, *chosen.values()):
        np.putmask(column, code != 0, 0.0)
    return Block(0, 0, time, code, needs, chosen)


@define
class _Batch:
    """The columns of a batch, checked, and what is known of its estimators."""

    size: int
    estimators: tuple[Estimator, ...]
    which: Any
    columns: dict[str, Any]
    below: Any
    gathered: _Gathered
    remembered: _Remembered = field(init=False)

    @classmethod
    def read(cls, estimators: Sequence[Estimator], which: Any, columns: Mapping[str, Any]) -> _Batch:
        if others := [name for name in columns if name not in {*DEFAULTS, "seq", "global_batch"}]:
            raise UsageError(
                f"{others[0]!r} is no column of a batch; there are {', '.join((*DEFAULTS, 'seq', 'global_batch'))}"
            )
        if missing := [name for name in ("seq", "global_batch") if name not in columns]:
            raise UsageError(f"a batch needs the column {missing[0]}")
        read = {name: _read(name, value) for name, value in (DEFAULTS | dict(columns)).items()}
        index = np.asarray(which)
        if index.dtype.kind not in "iu" or index.ndim > 1:
            raise UsageError("which estimator a row is about is one whole number, or a column of them")
        sizes = {len(c) for c in (*read.values(), index) if isinstance(c, np.ndarray) and c.ndim}
        if len(sizes) > 1:
            raise UsageError(f"the columns of a batch have different lengths: {', '.join(map(str, sorted(sizes)))}")
        size = sizes.pop() if sizes else 1
        if size and (index.min() < 0 or index.max() >= len(estimators)):
            raise UsageError(f"a row names an estimator that is not there; there are {len(estimators)}")
        if index.ndim == 0 or len(estimators) == 1:
            # One estimator for all rows: its numbers are numbers, not columns.
            estimators, index = (estimators[int(index.flat[0]) if index.size else 0],), np.zeros((), dtype=np.intp)
        below: Any = False
        for name in COUNTS:
            column = read[name]
            if isinstance(column, np.ndarray) and size and column.min() < 1:
                below = np.logical_or(below, column < 1)
                read[name] = np.maximum(column, 1)
            elif not isinstance(column, np.ndarray) and column < 1:
                below, read[name] = np.ones(size, dtype=np.bool_), 1.0
        made = cls(size, tuple(estimators), index, read, below, _Gathered.of(estimators))
        made.remembered = _Remembered.make(made)
        return made

    def block(self, at: slice) -> tuple[Step, Any]:
        """The times of some rows, and the codes without memory."""
        which = self.which[at] if self.which.ndim else None
        columns = {n: c[at] if isinstance(c, np.ndarray) else c for n, c in self.columns.items()}
        c = _choices(columns)
        each, heads, experts = self.gathered.rows(which)
        microbatches = c.replicas()
        plan = c.plan(microbatches)
        use, misfit = self.remembered.find(which, columns, c)
        found = timed(each, plan, use)
        below = self.below[at] if isinstance(self.below, np.ndarray) else False
        return found, refused(c, microbatches, heads, each.layers, experts, found.unknown, misfit, below)

    def memory(self, at: slice, code: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Bytes of the rows whose layouts can be, model by model; codes of those that do not fit are set."""
        c = _choices({n: c[at] if isinstance(c, np.ndarray) else c for n, c in self.columns.items()})
        microbatches = c.replicas()
        needs = np.zeros(len(code))
        which = np.broadcast_to(self.which[at] if self.which.ndim else self.which, len(code))
        possible = np.flatnonzero(code == 0)
        order = possible[np.argsort(self.gathered.alike[which[possible]], kind="stable")]
        owners = which[order]
        edges = np.flatnonzero(np.diff(self.gathered.alike[owners])) + 1
        for places in np.split(order, edges):
            if not len(places):
                continue
            taken = attrs.evolve(
                c, **{n: v[places] for n, v in _fields(c).items() if isinstance(v, np.ndarray) and v.ndim}
            )
            each = microbatches[places] if isinstance(microbatches, np.ndarray) else microbatches
            needs[places] = taken.memory(self.estimators[int(which[places[0]])].dims, each)
        code[needs > self.gathered.capacity[which]] = DOES_NOT_FIT
        return needs


def _fields(c: Choices) -> dict[str, Any]:
    return {f.name: getattr(c, f.name) for f in attrs.fields(Choices)}


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
        most: int | None = len(words) - 1
    else:
        most = 3 if name == "zero" else 1 if name in FLAGS else None
    column = np.asarray(value)
    if column.ndim > 1 or column.dtype.kind not in "iubf":
        raise UsageError(f"the column {name} is one number, or one a row")
    real = column.dtype.kind == "f"
    if real and not (np.isfinite(column).all() and (column == np.floor(column)).all()):
        raise UsageError(f"the column {name} has a number that is not whole")
    if real or column.dtype.kind == "b" or column.dtype == np.uint64:
        column = column.astype(np.int64)
    if column.size and most is not None and (column.min() < 0 or column.max() > most):
        raise UsageError(f"the column {name} has a number that is not one of 0 to {most}")
    return int(column) if column.ndim == 0 else column


def _choices(columns: dict[str, Any]) -> Choices:
    """The columns of a block as floats; the many that count are changed to float64 here, where they are in cache."""
    plain = {n: _float(columns[n]) for n in (*COUNTS, *FLAGS, "zero", "recompute") if n != "interleave"}
    plain["sequence"] = plain.pop("sequence_parallel")
    schedule, interleave = columns["schedule"], columns["interleave"]
    if isinstance(schedule, np.ndarray) != isinstance(interleave, np.ndarray):
        schedule, interleave = np.broadcast_arrays(schedule, interleave)
    return Choices(**plain, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))


def _float(column: Any) -> Any:
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)


class _Late:
    """Figures of rows, gathered whenever one is asked for and not kept: the memory that they take stays in cache."""

    def __init__(self, same: dict[str, float], table: dict[str, NDArray[np.float64]], places: Any) -> None:
        self.__dict__.update(same)
        self._table = table
        self._places = places

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        """Gather a figure."""
        try:
            found: NDArray[np.float64] = self._table[name].take(self._places)
        except KeyError:
            raise AttributeError(name) from None
        return found


@define
class _Gathered:
    """The numbers of some estimators in one table; what is the same for all of them stays one number."""

    same: dict[str, float]
    rows_of: dict[str, NDArray[np.float64]]
    capacity: NDArray[np.float64]
    alike: NDArray[np.int64]

    @classmethod
    def of(cls, estimators: Sequence[Estimator]) -> _Gathered:
        lists: dict[str, list[float]] = {}
        for e in estimators:
            for name, number in zip(_TERMS, _numbers(e.model, e.numbers), strict=True):
                lists.setdefault(name, []).append(number)
            lists.setdefault("heads", []).append(e.dims.heads)
            lists.setdefault("experts", []).append(max(1.0, e.dims.experts))
        same = {name: values[0] for name, values in lists.items() if len(set(values)) == 1}
        alike: dict[Any, int] = {}
        return cls(
            same,
            {name: np.array(values) for name, values in lists.items() if name not in same},
            np.array([e.system.capacity for e in estimators]),
            np.array([alike.setdefault(e.dims, len(alike)) for e in estimators]),
        )

    def rows(self, which: Any) -> tuple[Terms, Number, Number]:
        """The numbers of the estimators that some rows are about: terms; heads and experts."""
        found: Any = _Late(self.same, self.rows_of, which)
        return found, found.heads, found.experts


_TERMS = tuple(f.name for f in attrs.fields(Terms))


@lru_cache(maxsize=4096)
def _numbers(model: Transformer, machine: Machine) -> tuple[float, ...]:
    """The terms of a model on a machine; small batches would spend most of their time on them."""
    made = terms(model, machine)
    return tuple(float(getattr(made, name)) for name in _TERMS)


@define
class _Remembered:
    """What links cost by machine and degrees of parallelism: computed for each combination when it first occurs.

    Where there are more combinations than are worth it, ``places`` is ``None``, and every row is computed.
    """

    machines: tuple[Machine, ...]
    of: Any
    places: dict[str, Any] | None
    table: Any
    misfits: Any
    known: Any
    rows_of: dict[str, Any] = field(init=False)
    same: dict[str, float] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        """Each figure's row by its name."""
        self.rows_of = dict(zip(_LINKS, self.table, strict=True))

    @classmethod
    def make(cls, batch: _Batch) -> _Remembered:
        """Ready for the degrees that occur in a batch."""
        numbers: dict[Machine, int] = {}
        of = np.array([numbers.setdefault(e.numbers, len(numbers)) for e in batch.estimators])
        machines = tuple(numbers)
        places: dict[str, Any] | None = {}
        total = len(machines)
        for name in _DEGREES:
            column = batch.columns[name]
            if not isinstance(column, np.ndarray) or places is None:
                continue
            most = int(column.max()) if batch.size else 0
            seen = np.zeros(min(most, _MOST) + 1, dtype=np.bool_)
            if most < _MOST:
                seen[column] = True
            places[name] = (np.cumsum(seen) - 1) * total
            total *= int(seen.sum())
            if most >= _MOST or total > _MOST:
                places, total = None, 0
        return cls(
            machines,
            of,
            places,
            np.empty((len(_LINKS), total)),
            np.zeros(total, dtype=np.uint8),
            np.zeros(total, dtype=np.bool_),
        )

    def find(self, which: Any, columns: dict[str, Any], c: Choices) -> tuple[Links, Any]:
        """What links cost for some rows, and what :func:`~trnspec.perf.choices.misfits` says of them."""
        key: Any = 0 if which is None else self.of.take(which)
        if self.places is None:
            degrees = {name: getattr(c, name) for name in _DEGREES}
            shape = np.broadcast_shapes(np.shape(key), *map(np.shape, degrees.values()))
            table, misfit = self._computed(np.broadcast_to(key, shape), degrees, c)
            return Links(*table), misfit
        for name, places in self.places.items():
            key = key + places.take(columns[name])
        if not isinstance(key, np.ndarray):
            return links(c.plan(1.0), self.machines[0]), misfits(c, self.machines[0].ranks)
        known = self.known.take(key)
        if not known.all():
            keys, first = np.unique(key[~known], return_index=True)
            rows = np.flatnonzero(~known)[first]
            degrees = {n: v[rows] if isinstance(v := getattr(c, n), np.ndarray) else v for n in _DEGREES}
            self.table[:, keys], self.misfits[keys] = self._computed(keys % len(self.machines), degrees, c)
            self.known[keys] = True
            self._settle()
        late: Any = _Late(self.same, self.rows_of, key)
        return late, self.misfits.take(key)

    def _settle(self) -> None:
        """What is the same in all that is known stays one number, such as times of hops that take none."""
        known = self.table[:, self.known]
        low, high = known.min(axis=1), known.max(axis=1)
        self.same = {name: float(a) for name, a, b in zip(_LINKS, low, high, strict=True) if a == b}

    def _computed(self, owners: Any, degrees: dict[str, Any], c: Choices) -> tuple[Any, Any]:
        """What links cost, one row a figure, and misfits, for rows on machines of their own."""
        made, misfit = np.empty((len(_LINKS), len(owners))), np.empty(len(owners), dtype=np.uint8)
        for number in np.unique(owners):
            mine = np.flatnonzero(owners == number)
            own = {n: v[mine] if isinstance(v, np.ndarray) else v for n, v in degrees.items()}
            found = links(Plan(**own), self.machines[int(number)])
            misfit[mine] = misfits(attrs.evolve(c, **own), self.machines[int(number)].ranks)
            for row, name in zip(made, _LINKS, strict=True):
                row[mine] = getattr(found, name)
        return made, misfit


_DEGREES = ("tp", "pp", "dp", "cp", "ep")
_LINKS = tuple(f.name for f in attrs.fields(Links))
