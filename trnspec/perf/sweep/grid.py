"""Sweeps over every combination of values; each quantity is computed only along the axes it depends on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError, library
from trnspec.perf.sweep.blocks import AxisValues, blocks, combination, size_of
from trnspec.perf.sweep.layouts import (
    COUNTS,
    DEFAULTS,
    DOES_NOT_FIT,
    FLAGS,
    LEVELS,
    RATIOS,
    SCHEDULES,
    WORDS,
    LayoutFormulas,
    checked,
)
from trnspec.perf.sweep.reductions import Block, Kept
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import PARTS
from trnspec.perf.work.layout import Layout
from trnspec.short_repr import short_repr

if TYPE_CHECKING:  # an extra
    import pandas as pd

R = TypeVar("R")

BLOCK = 65536
"""Configurations of a block that a reduction takes."""

AXES = (
    *(name for name in COUNTS if name not in {"dp", "interleave", "global_batch"}),
    *(*RATIOS, "schedule", *FLAGS),
    *(name for name in (*WORDS, *LEVELS) if name != "schedule"),
    "global_batch",
)
"""The axes in the order in which configurations are numbered, the last one fastest: few quantities depend on the last."""


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
        fields = combination(self.axes, number)
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
        return schedule, _positive("interleave", checked("interleave", chunks))
    return _positive(name, checked(name, value))


def _positive(name: str, value: Any) -> Any:
    if name in COUNTS and value is not None and value < 1:
        raise UsageError(f"{name} is {value}; expected 1 or more")
    return value


@frozen
class SweepResult(Generic[R]):
    """The result of a sweep over layouts of training, or over deployments for serving.

    Attributes:
        sources: Estimators, or grids of deployments; results refer to them by position.
        layout: The layout, or the inputs of a deployment, by its source and its number.
        record: A mapping for a source, a layout, its time and its memory.
        result: The result of the reduction.
        evaluated: Number of configurations evaluated.
        rejected: Number of configurations without a time, by reason.
    """

    sources: tuple[Any, ...]
    layout: Callable[[Any, int], Any] = field(repr=False)
    record: Callable[[Any, Any, float, float], dict[str, Any]] = field(repr=False)
    result: R
    evaluated: int
    rejected: dict[str, int]

    __repr__ = short_repr

    def layouts(self: SweepResult[Kept]) -> list[tuple[Any, Any]]:
        """The kept layouts with their sources; ``result`` must be :class:`~trnspec.perf.sweep.reductions.Kept`."""
        pairs = zip(self.result.which.tolist(), self.result.number.tolist(), strict=True)
        return [(source, self.layout(source, number)) for source, number in ((self.sources[w], n) for w, n in pairs)]

    def records(self: SweepResult[Kept]) -> list[dict[str, Any]]:
        """A mapping for each kept configuration: model, system, layout, time (s) or another goal, and ``memory`` (B)."""
        kept = zip(self.layouts(), self.result.time.tolist(), self.result.memory.tolist(), strict=True)
        return [self.record(*pair, time, memory) for pair, time, memory in kept]

    def to_pandas(self: SweepResult[Kept]) -> pd.DataFrame:
        """The records as a data frame of pandas.

        Raises:
            UsageError: pandas is not installed.
        """
        frame: pd.DataFrame = library("pandas").DataFrame(self.records())
        return frame


def layout_blocks(
    formulas: LayoutFormulas,
    axes: tuple[AxisValues, ...],
    *,
    which: int = 0,
    parts: Sequence[str] = (),
    block: int = BLOCK,
    numbers: tuple[int, int] | None = None,
) -> Iterator[Block]:
    """Combinations of layouts, evaluated; see :func:`trnspec.perf.sweep.batch.sweep`.

    Args:
        formulas: The formulas on an estimator.
        axes: The axes of the combinations.
        which: The position of the estimator.
        parts: Parts of the step.
        block: Configurations of a block.
        numbers: The first and the number after the last of the combinations; all by default.
    """
    names = ("total", *parts, *(("memory",) if formulas.memory else ()))
    for start, code, columns in blocks(formulas, axes, *(numbers or (0, size_of(axes))), names):
        needs = columns.pop("memory", np.zeros(0))
        np.copyto(needs, 0.0, where=(code != 0) & (code != DOES_NOT_FIT) if formulas.memory else False)
        for column in columns.values():
            np.copyto(column, 0.0, where=code != 0)
        for begin in range(0, len(code), block):
            at = slice(begin, begin + block)
            of_parts = {name: columns[name][at] for name in parts}
            yield Block(which, start + begin, columns["total"][at], code[at], needs[at], of_parts)


def check_parts(parts: Sequence[str], block: int) -> None:
    """Check the arguments that sweeps and batches share.

    Raises:
        UsageError: There is no such part of a step, or a block would have no configurations.
    """
    if unknown := [name for name in parts if name not in PARTS]:
        raise UsageError(f"a step has no part {unknown[0]!r}; expected some of {', '.join(PARTS)}")
    if block < 1:
        raise UsageError(f"block is {block}; expected 1 or more")
