"""Fits of efficiency to measured training steps, and their errors on held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.model.calibration import SHARES
from trnspec.perf.calibration.limits import limits
from trnspec.perf.calibration.solver import fit_parameters, selected, stacked
from trnspec.perf.lowering.efficiency import Efficiency
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import System
from trnspec.perf.training.step import step
from trnspec.perf.work.plan import Plan
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.measured_training import Case

TYPICAL: dict[str, float] = {
    "matmul": 0.8,
    "attention": 0.4,
    "matmul_passes": 1.5,
    "hidden_passes": 8.0,
    "score_passes": 4.0,
    "head_passes": 20.0,
    "optimizer_passes": 1.0,
    "forward": 2e-4,
    "backward": 2e-4,
    "server": 0.7,
    "network": 0.6,
    "call": 3e-5,
    "hop": 3e-6,
    "network_hop": 2e-5,
    "send": 1e-5,
    "overlap": 0.6,
    "exposed": 0.1,
    "tensor_overlap": 0.3,
    "step": 1e-3,
}
"""Typical values, from which a fit starts, and near which it stays where the rows do not determine a parameter."""

WEIGHT = 0.1
"""Residual of a parameter that is off its typical value by a factor of e, relative to errors of the logarithm of time."""

COVERAGE = 0.8
"""Share of the measurements that the interval should contain."""

Holdout = Literal["model", "chip"]
"""What is held out together: all rows of a model, or of a chip."""


@frozen
class Batch:
    """Cases as arrays.

    Attributes:
        model: The transformers, one per row.
        plan: The layouts, one per row.
        systems: The distinct pairs of system and compute dtype.
        which: For each row the position of its pair.
        seconds: Measured times [s].
        groups: Name of the model of each row.
    """

    model: Transformer
    plan: Plan
    systems: tuple[tuple[System, str], ...]
    which: Any
    seconds: Any
    groups: tuple[str, ...] = field(repr=False)

    def times(self, efficiency: Efficiency) -> Any:
        """The computed times [s], one per row."""
        return step(self.model, self.plan, self._machine(efficiency)).total

    def rows(self, mask: Any) -> Batch:
        """Some of the rows."""
        return attrs.evolve(
            self,
            model=selected(self.model, mask),
            plan=selected(self.plan, mask),
            which=self.which[mask],
            seconds=self.seconds[mask],
            groups=tuple(g for g, kept in zip(self.groups, mask, strict=True) if kept),
        )

    def _machine(self, efficiency: Efficiency) -> Machine:
        machines = [machine(system, efficiency, dtype) for system, dtype in self.systems]
        if len(machines) == 1:
            return machines[0]
        names = [f.name for f in attrs.fields(Machine)]
        return Machine(**{n: np.array([getattr(m, n) for m in machines])[self.which] for n in names})


def batch(cases: Sequence[Case]) -> Batch:
    """Cases as arrays.

    Raises:
        UsageError: There are none.
    """
    if not cases:
        raise UsageError("there are no rows to fit or to score")
    systems: dict[tuple[str, str], tuple[System, str]] = {}
    for case in cases:
        systems.setdefault((case.system.name, case.dtype), (case.system, case.dtype))
    position = {key: i for i, key in enumerate(systems)}
    return Batch(
        stacked([transformer(c.dims) for c in cases]),
        stacked([c.layout.plan() for c in cases]),
        tuple(systems.values()),
        np.array([position[c.system.name, c.dtype] for c in cases]),
        np.array([c.seconds for c in cases]),
        tuple(c.model for c in cases),
    )


@frozen
class Fitted:
    """The result of a fit.

    Attributes:
        efficiency: The fitted efficiency.
        errors: Computed over measured time minus 1, one per row, of the fit to all rows.
        held_out: The same, of a fit to the rows outside the row's group.
        names: The fitted parameters.
        scales: Ranks of each row of ``held_out``.  In the interval every number of ranks has the same weight, so that
            many rows of one server do not set the width for large systems.
    """

    efficiency: Efficiency
    errors: Any
    held_out: Any
    names: tuple[str, ...]
    scales: Any = field(kw_only=True)

    def with_errors(self, errors: Any, scales: Any) -> Self:
        """The same fit, with errors of rows that were not part of it, and their ranks, added to ``held_out``."""
        return attrs.evolve(
            self,
            held_out=np.concatenate([self.held_out, errors]),
            scales=np.concatenate([self.scales, scales]),
        )

    def summary(self, *, held_out: bool) -> tuple[float, float, float]:
        """Mean, median and worst absolute error, of the fit to all rows or of held-out rows."""
        absolute = np.abs(self.held_out if held_out else self.errors)
        return float(np.mean(absolute)), float(np.median(absolute)), float(np.max(absolute))

    @property
    def low(self) -> float:
        """Measured over computed time of held-out rows, at the lower end of the interval."""
        return quantile(1.0 / (1.0 + self.held_out), self.scales, (1.0 - COVERAGE) / 2.0)

    @property
    def high(self) -> float:
        """The same, at the upper end."""
        return quantile(1.0 / (1.0 + self.held_out), self.scales, (1.0 + COVERAGE) / 2.0)


def quantile(values: Any, groups: Any, share: float) -> float:
    """The quantile of some values in which every group has the same weight, interpolated between the middles of weights.

    Args:
        values: The values.
        groups: The group of each value.
        share: Share of the weight below the quantile.
    """
    _, which = np.unique(groups, return_inverse=True)
    weights = 1.0 / np.bincount(which)[which]
    order = np.argsort(values)
    middles = np.cumsum(weights[order]) - 0.5 * weights[order]
    return float(np.interp(share * weights.sum(), middles, values[order]))


def fit(cases: Sequence[Case], holdout: Holdout = "model") -> Fitted:
    """Fits efficiency to cases, and for held-out errors to the cases outside each group.

    Passes over attention scores are fitted to the rows without flash attention, which compute all scores.

    Args:
        cases: The measurements.
        holdout: What is held out together, see :func:`holdout_masks`.

    Raises:
        UsageError: Too few rows, rows of too few chips, or scipy is not installed.
    """
    data = batch(cases)
    if len(cases) < 3:
        raise UsageError(f"{len(cases)} rows are too few to fit; expected at least 3")
    efficiency = solved(data)
    errors = data.times(efficiency) / data.seconds - 1.0
    held_out = np.array(errors)
    for mask in holdout_masks(data.groups, [c.system.chip for c in cases], holdout):
        unseen = data.rows(mask)
        held_out[mask] = unseen.times(solved(data.rows(~mask))) / unseen.seconds - 1.0
    return Fitted(
        efficiency, errors, held_out, _free(data), scales=data.plan.tp * data.plan.pp * data.plan.dp * data.plan.cp
    )


def holdout_masks(groups: Sequence[str], chips: Sequence[str], holdout: Holdout) -> list[Any]:
    """Masks of the rows that are computed from a fit to the others.

    Holding out one chip at a time shows the errors on a chip without rows in the fit.

    Args:
        groups: The model of each row.
        chips: The chip of each row.
        holdout: ``model``, for :func:`folds`, or ``chip``.

    Raises:
        UsageError: Chips are to be held out, and all rows are of one chip.
    """
    if holdout == "model":
        return folds(groups)
    names = sorted(set(chips))
    if len(names) < 2:
        raise UsageError(f"with rows of {names[0]} only, errors on another chip cannot be estimated")
    by_row = np.array(chips)
    return [by_row == name for name in names]


def folds(groups: Sequence[str]) -> list[Any]:
    """Masks of at most eight folds of whole models; with fewer than five models, of every fifth row."""
    names = sorted(set(groups))
    rows = np.arange(len(groups))
    if len(names) < 5:
        count = min(5, len(groups))
        return [rows % count == k for k in range(count)]
    count = min(8, len(names))
    fold = {name: i % count for i, name in enumerate(names)}
    by_row = np.array([fold[g] for g in groups])
    return [by_row == k for k in range(count)]


def _free(data: Batch) -> tuple[str, ...]:
    """The parameters that the rows depend on."""
    plan = data.plan
    names = [n for n in TYPICAL if n not in ("score_passes", "tensor_overlap", "send", "overlap", "exposed", "network")]
    if (plan.flash == 0.0).any():
        names.append("score_passes")
    if plan.overlap.any():
        names.append("tensor_overlap")
    if (plan.pp > 1.0).any():
        names.append("send")
    if (plan.dp * plan.cp > 1.0).any():
        names += ["overlap", "exposed"]
    if any(level.name == "network" for system, _ in data.systems for level in system.levels):
        names.append("network")
    return tuple(names)


def solved(data: Batch) -> Efficiency:
    """The best efficiency."""
    causal = 0.0 if (data.plan.flash == 0.0).any() else 1.0

    def log_errors(parameters: dict[str, float]) -> Any:
        return np.log(data.times(Efficiency(**parameters, causal=causal)) / data.seconds)

    typical = {name: TYPICAL[name] for name in _free(data)}
    parameters, _ = fit_parameters(typical, SHARES, log_errors, WEIGHT, limits(s.chip for s, _ in data.systems))
    return Efficiency(**parameters, causal=causal)
