"""Fits of efficiency to measured training steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fits.fit import FitModel
from trnspec.perf.calibration.fits.limits import KERNELS, limits
from trnspec.perf.calibration.fits.prior import FitPrior
from trnspec.perf.calibration.fits.search import Space, combined, stacked
from trnspec.perf.calibration.measured.case import Part
from trnspec.perf.calibration.measured.training import TrainingCase
from trnspec.perf.lowering.machine import Efficiency, LoweredSystem, machine
from trnspec.perf.training.execution import half_moved
from trnspec.perf.training.step import step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.layout import stacked as stacked_layouts
from trnspec.perf.work.transformer import Transformer, transformer

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

DEVIATIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("matmul", "matmul_fp8", "matmul_fp4"), ("chip", "era")),
    **dict.fromkeys(("forward", "backward"), ("chip",)),
    **dict.fromkeys(("matmul_passes", "hidden_passes", "dispatch"), ("era",)),
}
"""The parameters that chips, and eras of a release, may have of their own."""

OWN_WEIGHT = 0.3
"""Residual of a chip's or an era's own value that is off the common one by a factor of e."""

MOST_WEIGHT = 2.0
"""The largest weight of a row: with rows of many sizes of systems, those of a size with few rows count more."""

LEAST = 3
"""Least number of rows of a fit without a calibration as its prior."""

LAUNCHES = dict.fromkeys(("forward", "backward"), 1e-3)
"""Launch of a layer's kernels without CUDA graphs [s], where a second search begins: where launches are shorter than computation,
a fit does not depend on them."""

STEPS = 6
"""Steps of a search that begins with a fit to more rows: held-out errors are then within 2 % of those of the whole search."""


@frozen
class Batch:
    """Cases as arrays.

    Attributes:
        model: The transformers, one per row.
        plan: The layouts, one per row.
        systems: The distinct combinations of system, compute dtype and era, each with one of its rows.
        which: For each row the position of its combination.
        overlapping: 1 where gradients may overlap with computation, 0 where they are exchanged after it.
    """

    model: Transformer
    plan: Layout
    systems: tuple[tuple[LoweredSystem, str, int], ...]
    which: Any
    overlapping: Any = field(repr=False)

    def times(self, values: Mapping[str, Any]) -> dict[Part, Any]:
        """The computed times of steps [s]; parameters of a row are those of its chip and era."""
        machines = [machine(system, _of_row(values, row), dtype) for system, dtype, row in self.systems]
        found = combined(machines, self._of_rows) if len(machines) > 1 else machines[0]
        if not self.overlapping.all():
            achieved = attrs.evolve(found.achieved, overlap=self.overlapping * found.achieved.overlap)
            found = attrs.evolve(found, achieved=achieved)
        return {"step": step(self.model, self.plan, found).total}

    def _of_rows(self, each: Sequence[Any]) -> Any:
        """A number of each system as one of each row: a float where all are equal, so that formulas skip what is absent."""
        if any(isinstance(value, np.ndarray) for value in each):
            return np.concatenate(np.broadcast_arrays(*each), axis=-1)[..., self.which]
        return each[0] if len(set(each)) == 1 else np.array(each)[self.which]


def _of_row(values: Mapping[str, Any], row: int) -> Efficiency:
    """The efficiency of a row: floats, or columns of several sets of them."""
    return Efficiency(**{
        name: float(value) if np.ndim(value) == 0 else float(value[row]) if value.ndim == 1 else value[:, min(row, value.shape[1] - 1)][:, None]
        for name, value in values.items() if value is not None
    })  # fmt: skip


def batch(cases: Sequence[TrainingCase], eras: Sequence[str] = ()) -> Batch:
    """Cases as arrays.

    Args:
        cases: The cases.
        eras: The eras that are distinguished, see :func:`era_of`.

    Raises:
        UsageError: There are none.
    """
    if not cases:
        raise UsageError("there are no rows to fit or to score")
    keys = [(case.system.name, case.dtype, era_of(case.era, eras)) for case in cases]
    first = {key: keys.index(key) for key in dict.fromkeys(keys)}
    position = {key: i for i, key in enumerate(first)}
    return Batch(
        stacked([transformer(c.dims) for c in cases]),
        stacked_layouts([c.layout for c in cases]),
        tuple((cases[row].system, key[1], row) for key, row in first.items()),
        np.array([position[key] for key in keys]),
        np.array([0.0 if c.blocking else 1.0 for c in cases]),
    )


def era_of(release: str, eras: Sequence[str]) -> str:
    """The era of a release: the newest that does not begin later, else the oldest; empty where there are none."""
    begun = [era for era in eras if release and era <= release]
    return max(begun, default=min(eras, default=""))


def training(eras: Sequence[str] = ()) -> FitModel:
    """The fit of training steps.

    Args:
        eras: The eras that are distinguished, see :func:`era_of`.
    """
    groups = partial(_groups, eras=eras)
    return FitModel(
        parts=("step",), least=LEAST, columns=partial(batch, eras=eras), space=partial(_space, groups=groups), groups=groups,
        weights=lambda cases, _: (weights(cases), np.ones(len(cases))),
    )  # fmt: skip


def _groups(case: TrainingCase, eras: Sequence[str]) -> dict[str, str]:
    return {"chip": case.chip, "era": era_of(case.era, eras)}


def weights(cases: Sequence[TrainingCase]) -> Any:
    """The weight of each row: the root of how many more rows the most frequent size has, at most :data:`MOST_WEIGHT`.

    Sizes are systems connected without the network, and larger ones.
    """
    near = [max((level.ranks for level in c.system.levels if level.name != "network"), default=1.0) for c in cases]
    large = np.array([int(c.ranks > ranks) for c, ranks in zip(cases, near, strict=True)])
    count = np.bincount(large, minlength=2)
    return np.minimum(np.sqrt(count.max() / count[large]), MOST_WEIGHT)


def free(cases: Sequence[TrainingCase]) -> tuple[str, ...]:
    """The parameters of a fit.

    Those of matrix multiplications in 16 bit and of experts stay near their typical values where no row depends on them, and
    others are left out.
    """
    levels = {level.name for c in cases for level in c.system.levels}
    shares = {_share_of(c.dtype) for c in cases}
    replicated = any(c.layout.dp * c.layout.cp > 1 and not c.blocking for c in cases)
    needs = {
        "matmul_fp8": "matmul_fp8" in shares,
        "matmul_fp4": "matmul_fp4" in shares,
        "score_passes": any(not c.layout.flash for c in cases),
        "tensor_overlap": any(c.layout.overlap for c in cases),
        "send": any(c.layout.pp > 1 for c in cases),
        "pipeline_overlap": any(c.layout.interleave > 1 for c in cases),
        "overlap": replicated,
        "exposed": replicated,
        "ultraserver": "ultraserver" in levels,
        "network": "network" in levels,
    }
    return tuple(name for name in TYPICAL if needs.get(name, True))


def _share_of(dtype: str) -> str:
    """The parameter that is the share of matrix multiplications in a compute dtype."""
    return "matmul_fp4" if dtype.endswith("fp4") else "matmul_fp8" if dtype.endswith(("fp8", "int8")) else "matmul"


def _space(cases: Sequence[TrainingCase], prior: FitPrior, groups: Any) -> Space:
    """The parameters; passes over attention scores are fitted to rows without flash attention, which compute all scores."""
    names = prior.named(free(cases), TYPICAL)
    several = {by for by in ("chip", "era") if len({groups(c)[by] for c in cases}) > 1}
    fixed = {"causal": 0.0 if any(not c.layout.flash for c in cases) else 1.0}
    if cases and all(c.blocking for c in cases):
        fixed["overlap"] = 0.0
    measured = {c.chip for c in cases} <= set(KERNELS)
    return Space(
        typical=prior.centers(names, TYPICAL),
        pulls=prior.residuals(names, {"matmul": KERNEL_WEIGHT} if measured else {}, WEIGHT),
        limits=limits(),
        deviations={n: own for n in names if (own := tuple(by for by in DEVIATIONS.get(n, ()) if by in several))},
        ridge=OWN_WEIGHT, by_chip=True, origin=prior.chip, fixed=fixed, slow={} if prior.name else LAUNCHES, most=(None, STEPS),
        context=half_moved,
    )  # fmt: skip
