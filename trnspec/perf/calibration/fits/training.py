"""Fits of efficiency to measured training steps, and their errors on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.model.calibration import SHARES
from trnspec.perf.calibration.fits.limits import KERNELS, kernel, limits
from trnspec.perf.calibration.fits.prior import TYPICAL as NO_PRIOR
from trnspec.perf.calibration.fits.prior import Learned, Posterior, Prior, posterior, scale
from trnspec.perf.calibration.fits.solver import bounded, combined, derivatives, minimize, selected, stacked, unbounded
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import Efficiency, System
from trnspec.perf.training.step import step
from trnspec.perf.training.unequal import half_moved
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.layout import stacked as stacked_layouts
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.measured.training import Case

TYPICAL: dict[str, float] = {
    "matmul": 0.72,
    "matmul_fp8": 0.62,
    "matmul_fp4": 0.48,
    "attention": 0.4,
    "matmul_passes": 1.5,
    "hidden_passes": 8.0,
    "score_passes": 4.0,
    "head_passes": 20.0,
    "optimizer_passes": 1.0,
    "forward": 2e-4,
    "backward": 2e-4,
    "server": 0.7,
    "ultraserver": 0.7,
    "network": 0.6,
    "call": 3e-5,
    "hop": 3e-6,
    "network_hop": 2e-5,
    "send": 1e-5,
    "overlap": 0.6,
    "exposed": 0.1,
    "tensor_overlap": 0.3,
    "pipeline_overlap": 0.6,
    "exchange": 0.6,
    "dispatch": 1e-4,
    "expert_overlap": 0.2,
    "step": 1e-3,
}
"""Typical values, from which a fit starts, and near which it stays where the rows do not determine a parameter."""

WEIGHT = 0.1
"""Residual of a parameter that is off its typical value by a factor of e, relative to errors of the logarithm of time."""

KERNEL_WEIGHT = 0.6
"""The same for matrix multiplications of 16 bit, where kernels were measured on all chips of the fit."""

OWN: dict[str, tuple[str, ...]] = {
    "chip": ("matmul", "matmul_fp8", "matmul_fp4", "forward", "backward"),
    "era": ("matmul", "matmul_fp8", "matmul_fp4", "matmul_passes", "hidden_passes", "dispatch"),
}
"""The parameters that chips, and eras of a release, may have of their own."""

OWN_WEIGHT = 0.3
"""Residual of a chip's or an era's own value that is off the common one by a factor of e."""

MOST_WEIGHT = 2.0
"""The largest weight of a row: with rows of many sizes of systems, those of a size with few rows count more."""

COVERAGE = 0.8
"""Share of the measurements that the interval should contain."""

Holdout = Literal["model", "chip"]
"""Groups that are held out together: all rows of a model, or of a chip."""

Label = tuple[str, str]
"""A chip and an era."""


@frozen
class Pooled:
    """Efficiencies of several chips and eras, partially pooled: those with few rows stay near what all have in common.

    Attributes:
        common: The common value of each fitted parameter: the logit of a share, the logarithm of others; columns of shape
            (points, 1) for as many sets of parameters.
        own: What is added to it, by chip or era and parameter.
        fixed: Parameters that are a property of the rows: ``causal``, and ``overlap`` where they overlap no gradients.
        posterior: Their uncertainty; ``None`` without a fit.
    """

    common: Mapping[str, Any]
    own: Mapping[tuple[str, str], float] = field(factory=dict)
    fixed: Mapping[str, float] = field(factory=dict)
    posterior: Posterior | None = field(default=None, repr=False, eq=False)

    def of(self, chip: str = "", era: str = "") -> Efficiency:
        """The efficiency of a chip and an era; without rows of them it is that which all have in common."""
        ends = limits([chip])
        values: dict[str, Any] = {}
        for name, common in self.common.items():
            at = common + kernel(chip, name) + self.own.get((chip, name), 0.0) + self.own.get((era, name), 0.0)
            value, (low, high) = bounded(at, share=name in SHARES), ends[name]
            values[name] = np.clip(value, low, high) if isinstance(value, np.ndarray) else min(max(value, low), high)
        return Efficiency(**{**values, **self.fixed})

    def learned(self, chip: str = "", era: str = "") -> tuple[Learned, ...]:
        """What the rows add to the parameters of a chip and an era."""
        if self.posterior is None:
            return ()
        efficiency = self.of(chip, era)
        return tuple(self.posterior.learned({n: getattr(efficiency, n) for n in self.common}, (chip, era)))


@frozen
class Batch:
    """Cases as arrays.

    Attributes:
        model: The transformers, one per row.
        plan: The layouts, one per row.
        systems: The distinct combinations of system, compute dtype and era.
        which: For each row the position of its combination.
        seconds: Measured times [s].
        groups: Name of the model of each row.
        overlapping: 1 where gradients may overlap with computation, 0 where they are exchanged after it.
    """

    model: Transformer
    plan: Layout
    systems: tuple[tuple[System, str, str], ...]
    which: Any
    seconds: Any
    groups: tuple[str, ...] = field(repr=False)
    overlapping: Any = field(repr=False)

    def times(self, efficiency: Efficiency | Pooled) -> Any:
        """The computed times [s]: the last axis is the rows, before it are sets of parameters where there are several."""
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
            overlapping=self.overlapping[mask],
        )

    @property
    def weights(self) -> Any:
        """The weight of each row in a fit: the root of how many more rows the most frequent size has, at most 2.

        Sizes are systems connected without the network, and larger ones.
        """
        near = np.array([
            max((level.ranks for level in system.levels if level.name != "network"), default=1.0)
            for system, _, _ in self.systems
        ])  # fmt: skip
        large = (self.plan.tp * self.plan.pp * self.plan.dp * self.plan.cp > near[self.which]).astype(int)
        count = np.bincount(large, minlength=2)
        return np.minimum(np.sqrt(count.max() / count[large]), MOST_WEIGHT)

    def labels(self, kind: str) -> tuple[str, ...]:
        """The chips, or the eras, of its rows."""
        used = [self.systems[i] for i in np.unique(self.which)]
        return tuple(sorted({system.chip if kind == "chip" else era for system, _, era in used}))

    def _machine(self, efficiency: Efficiency | Pooled) -> Machine:
        machines = [
            machine(system, efficiency.of(system.chip, era) if isinstance(efficiency, Pooled) else efficiency, dtype)
            for system, dtype, era in self.systems
        ]
        found = machines[0]
        if len(machines) > 1:
            found = combined(machines, self._of_rows)
        return found if self.overlapping.all() else attrs.evolve(found, overlap=self.overlapping * found.overlap)

    def _of_rows(self, each: Sequence[Any]) -> Any:
        """A number of each system as one of each row: a float where all are equal, so that formulas skip what is absent."""
        if any(isinstance(value, np.ndarray) for value in each):
            return np.concatenate(np.broadcast_arrays(*each), axis=-1)[..., self.which]
        return each[0] if len(set(each)) == 1 else np.array(each)[self.which]


def batch(cases: Sequence[Case], eras: Sequence[str] = ()) -> Batch:
    """Cases as arrays.

    Args:
        cases: The cases.
        eras: The eras that are distinguished, see :func:`era_of`.

    Raises:
        UsageError: There are none.
    """
    if not cases:
        raise UsageError("there are no rows to fit or to score")
    systems: dict[tuple[str, str, str], tuple[System, str, str]] = {}
    keys = [(case.system.name, case.dtype, era_of(case.era, eras)) for case in cases]
    for case, key in zip(cases, keys, strict=True):
        systems.setdefault(key, (case.system, *key[1:]))
    position = {key: i for i, key in enumerate(systems)}
    return Batch(
        stacked([transformer(c.dims) for c in cases]),
        stacked_layouts([c.layout for c in cases]),
        tuple(systems.values()),
        np.array([position[key] for key in keys]),
        np.array([c.seconds for c in cases]),
        tuple(c.model for c in cases),
        np.array([0.0 if c.blocking else 1.0 for c in cases]),
    )


def era_of(release: str, eras: Sequence[str]) -> str:
    """The era of a release: the newest that does not begin later, else the oldest; empty where there are none."""
    begun = [era for era in eras if release and era <= release]
    return max(begun, default=min(eras, default=""))


@frozen
class Fitted:
    """The result of a fit.

    Attributes:
        efficiency: The fitted efficiency, without what a chip or an era has of its own.
        errors: Computed over measured time minus 1, one per row, of the fit to all rows.
        held_out: The same, of a fit to the rows outside the row's group.
        names: The fitted parameters.
        pooled: What chips and eras have in common and of their own.
        scales: Ranks of each row of ``held_out``.  In the interval every number of ranks has the same weight, so that
            many rows of one server do not set the width for large systems.
        prior: What was known before the rows.
        learned: What the rows add to it, by parameter.
    """

    efficiency: Efficiency
    errors: Any
    held_out: Any
    names: tuple[str, ...]
    scales: Any = field(kw_only=True)
    pooled: Pooled = field(default=Pooled({}), kw_only=True, repr=False)
    prior: Prior = field(default=NO_PRIOR, kw_only=True, repr=False)
    learned: tuple[Learned, ...] = field(default=(), kw_only=True, repr=False)

    def of(self, chip: str, era: str = "", mask: Any = ...) -> Self:
        """The same fit, with the efficiency of a chip and an era, and some of the held-out rows."""
        return attrs.evolve(
            self,
            efficiency=self.pooled.of(chip, era),
            held_out=self.held_out[mask],
            scales=self.scales[mask],
            learned=self.pooled.learned(chip, era),
        )

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


def fit(cases: Sequence[Case], holdout: Holdout = "model", eras: Sequence[str] = (), prior: Prior = NO_PRIOR) -> Fitted:
    """Fits efficiency to cases, and for held-out errors to the cases outside each group.

    Passes over attention scores are fitted to the rows without flash attention, which compute all scores.

    Args:
        cases: The measurements.
        holdout: What is held out together, see :func:`holdout_masks`.
        eras: The eras that are distinguished, see :func:`era_of`.
        prior: What is known before the rows.

    Raises:
        UsageError: Too few rows, rows of too few chips, or scipy is not installed.
    """
    data = batch(cases, eras)
    least = 1 if prior.name else LEAST
    if len(cases) < least:
        raise UsageError(f"{len(cases)} rows are too few to fit; expected at least {least}")
    pooled = solved(data, prior=prior)
    errors = data.times(pooled) / data.seconds - 1.0
    held_out = np.array(errors)
    for mask in holdout_masks(data.groups, [c.system.chip for c in cases], holdout):
        unseen = data.rows(mask)
        held_out[mask] = unseen.times(solved(data.rows(~mask), pooled, prior)) / unseen.seconds - 1.0
    return Fitted(
        pooled.of(), errors, held_out, tuple(pooled.common), pooled=pooled, prior=prior, learned=pooled.learned(),
        scales=data.plan.tp * data.plan.pp * data.plan.dp * data.plan.cp,
    )  # fmt: skip


LEAST = 3
"""Least number of rows of a fit without a calibration as its prior."""


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
    """The parameters of a fit.

    Those of matrix multiplications in 16 bit and of experts stay near their typical values where no row depends on them, and
    others are left out.
    """
    plan = data.plan
    used = [data.systems[i] for i in np.unique(data.which)]
    levels = {level.name for system, _, _ in used for level in system.levels}
    shares = {_share_of(dtype) for _, dtype, _ in used}
    replicated = ((plan.dp * plan.cp > 1.0) & (data.overlapping > 0.0)).any()
    needs = {
        "matmul_fp8": "matmul_fp8" in shares,
        "matmul_fp4": "matmul_fp4" in shares,
        "score_passes": (plan.flash == 0.0).any(),
        "tensor_overlap": plan.overlap.any(),
        "send": (plan.pp > 1.0).any(),
        "pipeline_overlap": (plan.interleave > 1.0).any(),
        "overlap": replicated,
        "exposed": replicated,
        "ultraserver": "ultraserver" in levels,
        "network": "network" in levels,
    }
    return tuple(name for name in TYPICAL if needs.get(name, True))


def _share_of(dtype: str) -> str:
    """The parameter that is the share of matrix multiplications in a compute dtype."""
    return "matmul_fp4" if dtype.endswith("fp4") else "matmul_fp8" if dtype.endswith(("fp8", "int8")) else "matmul"


def solved(data: Batch, begin: Pooled | None = None, prior: Prior = NO_PRIOR) -> Pooled:
    """The best efficiency of each chip and era.

    Args:
        data: The rows; without any the result is the prior.
        begin: Where the search begins: the result of a fit to more rows.
        prior: What is known before the rows.
    """
    fixed = {"causal": 0.0 if (data.plan.flash == 0.0).any() else 1.0}
    if (data.overlapping == 0.0).all() and len(data.seconds):
        fixed["overlap"] = 0.0
    names = prior.named(_free(data), TYPICAL)
    own = [
        (label, name)
        for kind, parameters in OWN.items()
        if len(labels := data.labels(kind)) > 1
        for label in labels
        for name in parameters
        if name in names
    ]
    members = {
        label: np.isin(
            data.which, [i for i, (system, _, era) in enumerate(data.systems) if label in {system.chip, era}]
        )
        for label, _ in own
    }
    # The chips of a fit may have different best kernels: the limit of each applies to its own value.
    ends, weights = limits(), data.weights
    values = prior.centers(names, TYPICAL)
    typical = np.array([scale(name, value) - kernel(prior.chip, name) for name, value in values.items()])
    low, high = (np.array([unbounded(ends[n][end], share=n in SHARES) for n in names]) for end in (0, 1))
    center = np.concatenate([typical, np.zeros(len(own))])
    measured = set(data.labels("chip")) <= set(KERNELS)
    pulls = prior.residuals(names, {"matmul": KERNEL_WEIGHT} if measured else {}, WEIGHT)
    pull = np.array([*(pulls[name] for name in names), *[OWN_WEIGHT] * len(own)])
    bounds = np.concatenate([low, np.full(len(own), -_FARTHEST)]), np.concatenate([high, np.full(len(own), _FARTHEST)])

    def pooled(at: Any) -> Pooled:
        return Pooled(dict(zip(names, at, strict=False)), dict(zip(own, at[len(names) :], strict=True)), fixed)

    if not len(data.seconds):
        return pooled(center)

    def errors(at: Any) -> Any:
        return weights * np.log(data.times(pooled(at)) / data.seconds)

    def residuals(at: Any) -> Any:
        return np.concatenate([errors(at), pull * (at - center)])

    def jacobian(at: Any) -> Any:
        known = at[len(names) :]
        common = derivatives(lambda points: errors([*points, *known]), at[: len(names)])
        # What a chip or an era adds to a parameter changes its rows as the common value does.
        parts = [members[label] * common[:, names.index(name)] for label, name in own]
        return np.concatenate([np.column_stack([common, *parts]), np.diag(pull)])

    if begin is not None:
        known = [begin.common.get(n, t) for n, t in zip(names, typical, strict=True)]
        starts = [np.array([*known, *(begin.own.get(key, 0.0) for key in own)])]
    else:
        # Where launches are shorter than computation, a fit does not depend on them: it also begins with long ones.
        slow = [np.log(_LAUNCHES) if n in ("forward", "backward") else t for n, t in zip(names, typical, strict=True)]
        starts = [center] if prior.name else [center, np.concatenate([slow, np.zeros(len(own))])]
    most = None if begin is None else _STEPS
    with half_moved():
        results = [minimize(residuals, start, bounds, _TOLERANCE, most, jacobian) for start in starts]
    best = min(results, key=lambda r: float(r.cost))
    return attrs.evolve(pooled(list(map(float, best.x))), posterior=posterior((*names, *own), best.jac, values, pull))


_STEPS = 6
"""Steps of a search that begins with a fit to more rows: held-out errors are then within 2 % of those of the whole search."""

_LAUNCHES = 1e-3
"""Launch of a layer's kernels without CUDA graphs, where a second search begins [s]."""


_FARTHEST = 3.0
"""Distance of a chip's own value from the common one: a factor of 20."""

_TOLERANCE = 1e-5
"""Relative change of the cost, and of parameters, with which a search ends."""
