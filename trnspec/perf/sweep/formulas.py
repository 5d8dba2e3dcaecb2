"""Formulas of training steps on columns of layouts: times, memory, and the codes of layouts that are invalid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import numpy as np
from attrs import evolve, field, frozen

from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.axes import collapsed
from trnspec.perf.sweep.columns import REASONS, as_float, layouts
from trnspec.perf.sweep.reductions import Limit
from trnspec.perf.training.costs import Costs, PerToken, costs
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.training.step import UNUSED, step_from_costs
from trnspec.perf.work.memory import peak_memory
from trnspec.perf.work.validity import conditions, reason_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from trnspec.perf.work.layout import Layout


_RANK_COUNT, _UNKNOWN, _DOES_NOT_FIT = (
    np.uint8(REASONS.index(r)) for r in ("rank-count", "unknown-figure", "does-not-fit")
)


def invalid(layout: Layout, estimator: Estimator) -> Number:
    """Codes of layouts that have no time; not those that need an unknown link rate.

    Args:
        layout: The layouts with their dp.
        estimator: The model on a system.
    """
    return reason_codes(conditions(layout, estimator.dims, estimator.machine.ranks))


def coefficients(layout: Layout, estimator: Estimator) -> Costs:
    """The coefficients of the times of layouts, each a number where it is the same for all."""
    machine = estimator.machine
    replicas = larger(1.0, floor(machine.ranks / (layout.tp * layout.pp)))
    found = costs(estimator.model, layout, machine, replicas)
    for name in (f.name for f in attrs.fields(Costs)):
        value = getattr(found, name)
        setattr(found, name, PerToken(*map(collapsed, value)) if isinstance(value, PerToken) else collapsed(value))
    return found


def replicated(columns: Mapping[str, Number], ranks: Number) -> Layout:
    """Layouts with the dp that follows from the ranks of the system."""
    layout = layouts({**columns, "dp": 1})
    return evolve(layout, dp=larger(1.0, floor(ranks / (layout.tp * layout.pp) / layout.cp)))


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

    def invalid(self, columns: Mapping[str, Number]) -> Number:
        """Codes of layouts that are invalid."""
        return invalid(replicated(columns, self.estimator.machine.ranks), self.estimator)

    def evaluate(
        self, columns: Mapping[str, Number], code: NDArray[np.uint8], names: Sequence[str]
    ) -> tuple[NDArray[np.uint8], dict[str, Number]]:
        """Codes, ``memory`` [B] if it is computed, and times [s]: ``total`` and parts of a step."""
        e = self.estimator
        layout = replicated(columns, e.machine.ranks)
        found = coefficients(layout, e)
        code = np.where((code == 0) & (found.unknown > UNUSED), _UNKNOWN, code)
        values: dict[str, Number] = {}
        if self.memory:
            values["memory"] = needs = peak_memory(e.dims, layout, e.runtime)
            code = np.where((code == 0) & (needs > e.system.capacity), _DOES_NOT_FIT, code)
        valid = code == 0
        if not valid.any():
            return code, values | dict.fromkeys(names, 0.0) | values
        slowest = math.inf if self.limit is None else self.limit.limit
        step = step_from_costs(found, layout.microbatch, layout.microbatches, needed=valid, limit=slowest)
        values |= {name: getattr(step, name) for name in names if name != "memory"}
        if self.limit is not None:
            self.limit.take(np.broadcast_to(step.total, code.shape)[valid])
        return code, values
