"""Formulas of training steps on columns of layouts: times, memory, and the codes of layouts that are invalid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.axes import collapsed
from trnspec.perf.sweep.columns import (
    COUNTS,
    FLAGS,
    LEVELS,
    RATIOS,
    REASONS,
    WORDS,
    Choices,
    as_float,
    load_of,
    optimized,
    reason_codes,
    recomputed,
    scheduled,
    sent,
    split_of,
)
from trnspec.perf.sweep.reductions import Limit
from trnspec.perf.training.communication import links
from trnspec.perf.training.costs import Costs, costs
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import UNUSED, step_from_costs
from trnspec.perf.work import legality
from trnspec.perf.work.layout import Layout, longest
from trnspec.perf.work.reach import common_heads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | LEVELS | dict.fromkeys(FLAGS, 1)
"""The highest value of columns that count from 0."""
DEFAULTS: dict[str, Any] = {
    f.name: f.default
    for f in attrs.fields(Layout)
    if f.name in {*LIMITS, *COUNTS, *RATIOS} and f.default is not attrs.NOTHING
}
"""The value of a column or an axis that is not given."""
_RANK_COUNT, _UNKNOWN, _DOES_NOT_FIT = (
    np.uint8(REASONS.index(r)) for r in ("rank-count", "unknown-figure", "does-not-fit")
)


def invalid(c: Choices, microbatches: Number, estimator: Estimator) -> Number:
    """Codes of layouts that have no time; not those that need an unknown link rate.

    Args:
        c: The layouts with their dp.
        microbatches: Microbatches per replica, not rounded.
        estimator: The model on a system.
    """
    model, machine, dims = estimator.model, estimator.machine, estimator.dims
    return reason_codes(
        legality.degrees(c, machine.ranks, common_heads(dims), larger(1.0, dims.experts))
        | legality.stages(c, model.layers, uneven=c.uneven)
        | legality.sequence(c)
        | legality.positions(c, longest(dims))
        | legality.batch(microbatches, legality.multiple(c))
    )


def coefficients(c: Choices, microbatches: Number, estimator: Estimator) -> Costs:
    """The coefficients of the times of layouts, each a number where it is the same for all."""
    machine = estimator.machine
    plan = c.plan(microbatches)
    replicas = larger(1.0, floor(machine.ranks / (c.tp * c.pp)))
    found = costs(estimator.terms, plan, links(plan, machine, replicas))
    return attrs.evolve(found, **{f.name: collapsed(getattr(found, f.name)) for f in attrs.fields(Costs)})


def replicated(choices: Choices, ranks: Number) -> Choices:
    """Layouts with the dp that follows from the ranks of the system."""
    dp = larger(1.0, floor(ranks / (choices.tp * choices.pp) / choices.cp))
    return attrs.evolve(choices, dp=dp)


def columns_as_choices(columns: dict[str, Any]) -> Choices:
    """Columns as floats, and positions of names as what formulas take."""
    names = (*COUNTS, *FLAGS, *LEVELS, "load", "dispatch")
    floats = {n: as_float(columns[n]) for n in names if n != "interleave"}
    floats["expert_split"] = split_of(floats.pop("expert_tp"), floats["tp"])
    floats["sequence"] = floats.pop("sequence_parallel")
    floats["sent"] = sent(columns["dispatch_dtype"])
    floats["recompute"] = recomputed(columns["recompute"])
    schedule, interleave = columns["schedule"], columns["interleave"]
    return Choices(**floats, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))


@frozen(eq=False)
class LayoutFormulas:
    """Times and memory of the layouts of a grid, whose dp follows from the ranks of the system and the other degrees.

    Attributes:
        estimator: The model on a system.
        memory: Whether to compute memory, and reject what does not fit.
        limit: The longest time that is needed; longer ones may be infinite. ``None`` where all are needed.
        degrees: The axes whose combinations are rows.
    """

    estimator: Estimator
    memory: bool = True
    limit: Limit | None = None
    degrees: tuple[str, ...] = field(default=("tp", "pp", "cp", "ep", "expert_tp"), init=False)

    def invalid_degrees(self, columns: Mapping[str, Number]) -> Number:
        """The code of layouts whose degrees do not make up the ranks of the system."""
        tp, pp, cp = (as_float(columns[name]) for name in ("tp", "pp", "cp"))
        dp = larger(1.0, floor(self.estimator.machine.ranks / (tp * pp) / cp))
        return (tp * pp * dp * cp != self.estimator.system.ranks) * _RANK_COUNT

    def order(self, columns: Mapping[str, Number]) -> Sequence[Number]:
        """Layouts with the same stages are together: whether stages are equal is then one number."""
        return columns["tp"], columns["pp"]

    def _layouts(self, columns: Mapping[str, Number]) -> Choices:
        load = load_of(*(as_float(columns[name]) for name in RATIOS))
        return replicated(columns_as_choices({**columns, "dp": 1, "load": load}), self.estimator.machine.ranks)

    def invalid(self, columns: Mapping[str, Number]) -> Number:
        """Codes of layouts that are invalid."""
        c = self._layouts(columns)
        return invalid(c, c.replicas(), self.estimator)

    def evaluate(
        self, columns: Mapping[str, Number], code: NDArray[np.uint8], names: Sequence[str]
    ) -> tuple[NDArray[np.uint8], dict[str, Number]]:
        """Codes, ``memory`` [B] if it is computed, and times [s]: ``total`` and parts of a step."""
        e, c = self.estimator, self._layouts(columns)
        microbatches = c.replicas()
        found = coefficients(c, microbatches, e)
        code = np.where((code == 0) & (found.unknown > UNUSED), _UNKNOWN, code)
        values: dict[str, Number] = {}
        if self.memory:
            values["memory"] = needs = c.memory(e.dims, microbatches, e.runtime)
            code = np.where((code == 0) & (needs > e.system.capacity), _DOES_NOT_FIT, code)
        valid = code == 0
        if not valid.any():
            return code, values | dict.fromkeys(names, 0.0) | values
        slowest = math.inf if self.limit is None else self.limit.limit
        step = step_from_costs(found, c.microbatch, microbatches, needed=valid, limit=slowest)
        values |= {name: getattr(step, name) for name in names if name != "memory"}
        if self.limit is not None:
            self.limit.take(np.broadcast_to(step.total, code.shape)[valid])
        return code, values
