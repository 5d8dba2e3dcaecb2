"""Layouts as columns of numbers, and the formulas of training steps on them: times, memory, and codes of invalid layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from trnspec.errors import UsageError
from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.blocks import AxisValues, axes_of
from trnspec.perf.sweep.reductions import UNFIT, TimeLimit
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import UNUSED, least_time, step
from trnspec.perf.work.layout import OPTIMIZERS, RECOMPUTE, TABLES, Layout
from trnspec.perf.work.layout import SCHEDULES as _SCHEDULES
from trnspec.perf.work.memory import device_memory, peak, peak_memory
from trnspec.perf.work.validity import REASONS, conditions, reason_codes

SCHEDULES = tuple(_SCHEDULES)
"""The pipeline schedules, by their number in a column."""
RECOMPUTES = tuple(RECOMPUTE)
"""The kinds of recompute, by their number in a column."""
OPTIMIZER_NAMES = tuple(OPTIMIZERS)
"""The optimizers, by their number in a column."""

WORDS = TABLES
"""The columns of names, with the names."""
COUNTS = ("tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "interleave", "expert_tp")
"""The columns of positive numbers."""
FLAGS = ("uneven", "sequence_parallel", "overlap", "flash", "fused_loss", "expert_overlap")
"""The columns of flags."""
LEVELS = {"zero": 3, "node_limit": 63}
"""The other columns that count from 0, with their highest value."""
RATIOS = ("imbalance", "capacity_factor")
"""The columns of numbers from 1 on that need not be whole."""
OPTIONAL = ("expert_tp", "capacity_factor")
"""The columns that may be ``None``, which is 0 as a number."""

DEFAULTS: dict[str, Any] = {
    f.name: f.default
    for f in attrs.fields(Layout)
    if f.name in {*WORDS, *COUNTS, *FLAGS, *LEVELS, *RATIOS} and f.default is not attrs.NOTHING
}
"""The value of a column or an axis that is not given."""


def layouts(columns: Mapping[str, Any]) -> Layout:
    """Columns of numbers as layouts: positions of names stay integers, in which tables are looked up."""
    return Layout(**{name: column if name in WORDS else as_float(column) for name, column in columns.items()})


def as_float(column: Any) -> Number:
    """Integers as floats."""
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)


def layout_axes(values: Mapping[str, Sequence[Any]]) -> tuple[AxisValues, ...]:
    """The axes of a grid of layouts, by their names, the last one fastest."""
    return axes_of({name: _columns(name, of_axis) for name, of_axis in values.items()})


def _columns(name: str, values: Sequence[Any]) -> dict[str, list[float]]:
    """The values of an axis as numbers."""
    if name != "schedule":
        return {name: [number_of(name, value) for value in values]}
    return {
        "schedule": [SCHEDULES.index(schedule) for schedule, _ in values],
        "interleave": [chunks for _, chunks in values],
    }


def number_of(name: str, value: Any) -> float:
    """A value of an axis as a number: the position of a word, and 0 for ``None``."""
    if name in WORDS:
        return WORDS[name].index(value)
    return 0 if value is None else value + 0


def checked(name: str, value: Any) -> Any:
    """A value of an axis or a column, as a layout has it; names may be given by their positions, flags as 0 and 1.

    Raises:
        UsageError: It is not a value of the field.  Whether counts are positive is not checked.
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    is_whole = is_number and float(value).is_integer()
    if name in WORDS:
        names = WORDS[name]
        if is_whole and 0 <= value < len(names):
            return names[int(value)]
        if value in names:
            return value
        raise UsageError(f"{name} is {value!r}; expected one of {', '.join(names)}")
    if name in OPTIONAL and (value is None or value != value):  # noqa: PLR0124  # NaN
        return None
    if name in FLAGS:
        valid, expected = isinstance(value, (bool, np.bool_)) or (is_number and value in {0, 1}), "True or False"
    elif name in RATIOS:
        valid, expected = is_number and 1.0 <= value < math.inf, "a number of at least 1"
    elif name in LEVELS:
        valid, expected = is_whole and 0 <= value <= LEVELS[name], f"an integer from 0 to {LEVELS[name]}"
    else:
        valid, expected = is_whole, "an integer"
    if not valid:
        raise UsageError(f"{name} is {value!r}; expected {expected}")
    return bool(value) if name in FLAGS else float(value) if name in RATIOS else int(value)


_RANK_COUNT, _UNKNOWN, _SLOWER = (np.uint8(REASONS.index(r)) for r in ("rank-count", "unknown-figure", "slower"))
DOES_NOT_FIT = REASONS.index(UNFIT)


@frozen(eq=False)
class LayoutFormulas:
    """Times and memory of the layouts of a grid, or of unrelated ones; without a column dp, it follows from the other degrees.

    Attributes:
        estimator: The model on a system.
        memory: Whether to compute memory, and reject what does not fit.
        limit: The longest time that is needed; longer ones may be infinite. ``None`` where all are needed.
        closed: Whether only times with a closed form are needed, and those of schedules that are executed may be infinite.
        only_best: Whether layouts are rejected as ``slower``, before their memory is computed, by a lower bound of their time.
        offload: What is kept in host memory.
        rate: Rate of a rank's link to the host, per direction [B/s].
        degrees: The axes whose combinations are rows; ``row`` is that of unrelated layouts.
    """

    estimator: Estimator
    memory: bool = True
    limit: TimeLimit | None = None
    closed: bool = False
    only_best: bool = False
    offload: str = "none"
    rate: float = 0.0
    degrees: tuple[str, ...] = field(default=("row", "tp", "pp", "cp", "ep", "expert_tp"), init=False)

    def layout(self, columns: Mapping[str, Number]) -> Layout:
        """Layouts with their dp."""
        return evolve(layouts({**columns, "dp": 1}), dp=self._degrees(columns)[-1], offload=self.offload)

    def _degrees(self, columns: Mapping[str, Number]) -> tuple[Number, ...]:
        """tp, pp, cp, and dp: as given, or that which follows from the ranks of the system."""
        tp, pp, cp = (as_float(columns[name]) for name in ("tp", "pp", "cp"))
        if "dp" in columns:
            return tp, pp, cp, as_float(columns["dp"])
        return tp, pp, cp, larger(1.0, floor(self.estimator.machine.ranks / (tp * pp) / cp))

    def invalid_degrees(self, columns: Mapping[str, Number]) -> Number:
        """The code of layouts whose degrees do not make up the ranks of the system."""
        tp, pp, cp, dp = self._degrees(columns)
        return (tp * pp * dp * cp != self.estimator.system.ranks) * _RANK_COUNT

    @property
    def conditions(self) -> Sequence[Callable[[Mapping[str, Number]], Number]]:
        """Codes of layouts that have no time, not those that need an unknown link rate; and of those that are slower."""
        is_limited = self.only_best and self.limit is not None and self.limit.limit < math.inf
        return (self._invalid, self._slower) if is_limited else (self._invalid,)

    def _invalid(self, columns: Mapping[str, Number]) -> Number:
        e = self.estimator
        return reason_codes(conditions(self.layout(columns), e.dims, e.machine.ranks))

    def _slower(self, columns: Mapping[str, Number]) -> Number:
        assert self.limit is not None
        e = self.estimator
        return (least_time(e.model, self.layout(columns), e.machine) > self.limit.limit) * _SLOWER

    def evaluate(
        self, columns: Mapping[str, Number], code: NDArray[np.uint8], names: Sequence[str]
    ) -> tuple[NDArray[np.uint8], dict[str, Number]]:
        """Codes, ``memory`` [B] if it is computed, and times [s]: ``total`` and parts of a step."""
        layout, e = self.layout(columns), self.estimator
        values: dict[str, Number] = dict.fromkeys(names, 0.0)
        possible = valid = code == 0
        if self.memory:
            offloaded = self.offload != "none"
            needs = (
                device_memory(e.dims, layout, e.runtime).total if offloaded else peak_memory(e.dims, layout, e.runtime)
            )
            values["memory"] = needs
            valid = possible & (needs <= e.system.capacity)
            code = np.where(possible & ~valid, np.uint8(DOES_NOT_FIT), code)
            if not valid.any() and all(level.rate for level in e.system.levels):
                return code, values
        slowest = 0.0 if self.closed else math.inf if self.limit is None else self.limit.limit
        found = step(e.model, layout, e.machine, needed=valid, limit=slowest)
        unknown = possible & (found.unknown > UNUSED)
        code, valid = np.where(unknown, _UNKNOWN, code), valid & ~unknown
        if self.offload != "none":
            whole = peak(e.dims, layout, e.runtime)
            found.total = found.total + e.offload_time(layout, whole, found.compute + found.recompute, self.rate)
        values |= {name: getattr(found, name) for name in names if name != "memory"}
        if self.limit is not None:
            self.limit.take(np.broadcast_to(found.total, code.shape)[np.broadcast_to(valid, code.shape)])
        return code, values
