"""Fits what is achieved to measurements of training steps, and tells how far rows it has not seen lie from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
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
"""Where a fit begins, and what it stays near where the rows do not tell: the middle of what is usual."""

SHARES = frozenset(
    {
        "matmul",
        "attention",
        "memory",
        "chip",
        "server",
        "ultraserver",
        "network",
        "overlap",
        "exposed",
        "tensor_overlap",
    }
)
"""What lies between 0 and 1; the others are above 0."""

WEIGHT = 0.1
"""How much it costs to leave the usual by a factor of e, beside errors of the logarithm of time."""

OUTLYING = 0.1
"""Errors of the logarithm beyond which a row counts less and less."""

COVERAGE = 0.8
"""Share of the measurements that the interval is to contain."""

Holdout = Literal["model", "chip"]
"""What rows are left out together with."""


@frozen
class Batch:
    """Cases as arrays.

    Attributes:
        model: The transformers, a row each.
        plan: The plans.
        systems: The different pairs of system and data type.
        which: For each row, which of them.
        seconds: The measured times, in s.
        groups: For each row, the model's name.
    """

    model: Transformer
    plan: Plan
    systems: tuple[tuple[System, str], ...]
    which: Any
    seconds: Any
    groups: tuple[str, ...] = field(repr=False)

    def times(self, efficiency: Efficiency) -> Any:
        """The computed times, in s, one a row."""
        return step(self.model, self.plan, self._machine(efficiency)).total

    def rows(self, chosen: Any) -> Batch:
        """Some of the rows, chosen by a mask."""
        return attrs.evolve(
            self,
            model=_chosen(self.model, chosen),
            plan=_chosen(self.plan, chosen),
            which=self.which[chosen],
            seconds=self.seconds[chosen],
            groups=tuple(g for g, kept in zip(self.groups, chosen, strict=True) if kept),
        )

    def _machine(self, efficiency: Efficiency) -> Machine:
        each = [machine(system, efficiency, dtype) for system, dtype in self.systems]
        if len(each) == 1:
            return each[0]
        names = [f.name for f in attrs.fields(Machine)]
        return Machine(**{n: np.array([getattr(m, n) for m in each])[self.which] for n in names})


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
    order = {key: i for i, key in enumerate(systems)}
    return Batch(
        _stacked([transformer(c.dims) for c in cases]),
        _stacked([c.layout.plan() for c in cases]),
        tuple(systems.values()),
        np.array([order[c.system.name, c.dtype] for c in cases]),
        np.array([c.seconds for c in cases]),
        tuple(c.model for c in cases),
    )


def _stacked(values: Sequence[Any]) -> Any:
    kind = type(values[0])
    return kind(**{f.name: np.array([getattr(v, f.name) for v in values], float) for f in attrs.fields(kind)})


def _chosen(value: Any, rows: Any) -> Any:
    return type(value)(**{f.name: getattr(value, f.name)[rows] for f in attrs.fields(type(value))})


@frozen
class Fitted:
    """What a fit found.

    Attributes:
        efficiency: What is achieved.
        errors: Computed over measured minus 1, one a row, with the row in the fit.
        held_out: The same with the row left out of it.
        names: What was free to move.
    """

    efficiency: Efficiency
    errors: Any
    held_out: Any
    names: tuple[str, ...]

    def with_errors(self, errors: Any) -> Self:
        """The same fit, whose spread is also taken over rows that were not fitted at all: their errors."""
        return attrs.evolve(self, held_out=np.concatenate([self.held_out, errors]))

    def summary(self, *, held_out: bool) -> tuple[float, float, float]:
        """Mean, median and worst absolute error, of the fit or of the rows left out of it."""
        off = np.abs(self.held_out if held_out else self.errors)
        return float(np.mean(off)), float(np.median(off)), float(np.max(off))

    @property
    def low(self) -> float:
        """Measured over computed at the lower end of the interval, of rows left out."""
        return float(np.quantile(1.0 / (1.0 + self.held_out), (1.0 - COVERAGE) / 2.0))

    @property
    def high(self) -> float:
        """The same at the upper end."""
        return float(np.quantile(1.0 / (1.0 + self.held_out), 1.0 - (1.0 - COVERAGE) / 2.0))


def fit(cases: Sequence[Case], apart: Holdout = "model") -> Fitted:
    """Fits to some cases; every group of them is also computed from a fit to the others.

    Whether attention writes its scores, and computes the half that causality leaves out, is tried both ways.

    Args:
        cases: The measurements.
        apart: What is left out together: see :func:`holdout_masks`.

    Raises:
        UsageError: There are too few rows, or of too few chips, or scipy is not installed.
    """
    whole = batch(cases)
    if len(cases) < 3:
        raise UsageError(f"{len(cases)} rows are too few to fit; 3 is the least")
    (written, cost), (kept, less) = (_solved(whole, flash=flash) for flash in (False, True))
    flash = less <= cost
    efficiency = kept if flash else written
    errors = whole.times(efficiency) / whole.seconds - 1.0
    held = np.array(errors)
    for out in holdout_masks(whole.groups, [c.system.chip for c in cases], apart):
        some = whole.rows(out)
        held[out] = some.times(_fitted(whole.rows(~out), flash=flash)) / some.seconds - 1.0
    return Fitted(efficiency, errors, held, _free(whole, flash=flash))


def holdout_masks(groups: Sequence[str], chips: Sequence[str], apart: Holdout) -> list[Any]:
    """Masks of the rows that are computed from a fit to the others.

    What a fit says of a chip that none of its rows is of is told by leaving out one chip at a time.

    Args:
        groups: The model of each row.
        chips: The chip of each row.
        apart: ``model``, for what :func:`folds` gives, or ``chip``.

    Raises:
        UsageError: Chips are to be left out, and the rows are of one.
    """
    if apart == "model":
        return folds(groups)
    names = sorted(set(chips))
    if len(names) < 2:
        raise UsageError(f"rows of {names[0]} alone do not tell how far a fit carries over to another chip")
    which = np.array(chips)
    return [which == name for name in names]


def folds(groups: Sequence[str]) -> list[Any]:
    """Masks of the rows to leave out: a model or several at a time, or every fifth row where there are few models."""
    names = sorted(set(groups))
    every = np.arange(len(groups))
    if len(names) < 5:
        parts = min(5, len(groups))
        return [every % parts == k for k in range(parts)]
    parts = min(8, len(names))
    place = {name: i % parts for i, name in enumerate(names)}
    which = np.array([place[g] for g in groups])
    return [which == k for k in range(parts)]


def _free(whole: Batch, *, flash: bool) -> tuple[str, ...]:
    """What the rows can tell anything about."""
    plan = whole.plan
    names = [n for n in TYPICAL if n not in ("score_passes", "tensor_overlap", "send", "overlap", "exposed", "network")]
    if not flash:
        names.append("score_passes")
    if plan.overlap.any():
        names.append("tensor_overlap")
    if (plan.pp > 1.0).any():
        names.append("send")
    if (plan.dp * plan.cp > 1.0).any():
        names += ["overlap", "exposed"]
    if any(level.name == "network" for system, _ in whole.systems for level in system.levels):
        names.append("network")
    return tuple(names)


def _fitted(whole: Batch, *, flash: bool) -> Efficiency:
    return _solved(whole, flash=flash)[0]


def _solved(whole: Batch, *, flash: bool) -> tuple[Efficiency, float]:
    """What fits best, and what it costs: errors, and leaving the usual."""
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise UsageError("fitting needs scipy; install trnspec with the extra calibrate") from error
    names = _free(whole, flash=flash)
    fixed = {"causal": 1.0 if flash else 0.0}
    begin = np.array([_moved(n, TYPICAL[n]) for n in names])

    def efficiency(at: Any) -> Efficiency:
        return Efficiency(**{n: _back(n, float(x)) for n, x in zip(names, at, strict=True)}, **fixed)

    def errors(at: Any) -> Any:
        off = np.log(whole.times(efficiency(at)) / whole.seconds)
        return np.concatenate([off, WEIGHT * (at - begin)])

    found = least_squares(errors, begin, loss="soft_l1", f_scale=OUTLYING)
    return efficiency(found.x), float(found.cost)


def _moved(name: str, value: float) -> float:
    """A number that may be anything, of one that lies between 0 and 1 or above 0."""
    return float(np.log(value / (1.0 - value))) if name in SHARES else float(np.log(value))


def _back(name: str, at: float) -> float:
    return float(1.0 / (1.0 + np.exp(-at))) if name in SHARES else float(np.exp(at))
