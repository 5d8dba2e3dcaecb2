"""The fields of a layout as columns of numbers: which values each takes, and many layouts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from trnspec.perf.work import validity
from trnspec.perf.work.layout import OPTIMIZERS, RECOMPUTE, TABLES, Layout
from trnspec.perf.work.layout import SCHEDULES as _SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.perf.ops import Number

REASONS = validity.REASONS
"""By code: why a configuration has no time; 0 if it has one. If there are several reasons, it is the first."""

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

LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | LEVELS | dict.fromkeys(FLAGS, 1)
"""The highest value of columns that count from 0."""
DEFAULTS: dict[str, Any] = {
    f.name: f.default
    for f in attrs.fields(Layout)
    if f.name in {*LIMITS, *COUNTS, *RATIOS} and f.default is not attrs.NOTHING
}
"""The value of a column or an axis that is not given."""


def layouts(columns: Mapping[str, Any]) -> Layout:
    """Columns of numbers as layouts: positions of names stay integers, in which tables are looked up."""
    return Layout(**{name: column if name in WORDS else as_float(column) for name, column in columns.items()})


def as_float(column: Any) -> Number:
    """Integers as floats."""
    return column.astype(np.float64) if isinstance(column, np.ndarray) else float(column)
