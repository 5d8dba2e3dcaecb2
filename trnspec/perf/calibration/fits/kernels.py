"""Fits of kernels: one partially pooled fit to all rows of a kernel, for each chip, framework and precision."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import EXPONENT
from trnspec.perf.calibration.fits.pooled import Pooling, fit_pooled
from trnspec.perf.calibration.groups import GroupErrors, interval
from trnspec.perf.calibration.measured.kernels import FORMULAS, KernelCase, times
from trnspec.perf.calibration.transfer import Beyond, Elsewhere
from trnspec.perf.kernels.times import Roof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.fits.pooled import Pooled

TYPICAL: dict[str, float] = {
    "compute": 0.7, "memory": 0.75, "fixed": 4e-6, "inner": 1e-7, "token": 1e-7, "quantize": 2e-6, "waves": 0.2, "split": 0.7,
    "sharpness": 2.5,
}  # fmt: skip
"""Parameters with typical values."""

EPILOGUE: dict[str, dict[str, float]] = {"gemm": {"epilogue": 0.1}}
"""Parameters that only one kernel has."""

LIMITS: dict[str, tuple[float, float]] = {
    "compute": (0.02, 0.95), "memory": (0.02, 0.98), "fixed": (5e-7, 1e-3), "inner": (1e-10, 1e-4), "token": (1e-10, 1e-4),
    "quantize": (1e-8, 1e-4), "waves": (1e-3, 0.999), "split": (1e-3, 0.999), "sharpness": (1.0, 20.0),
    "epilogue": (1e-3, 2.0),
}  # fmt: skip
"""Physical limits: a share of the peak rates, and times between a part of a launch and a thousand of them."""

DEVIATIONS: dict[str, tuple[str, ...]] = {
    "compute": ("chip", "precision", "kernel", "local"),
    "memory": ("chip", "kernel", "local"),
    "fixed": ("chip", "local"),
    "token": ("kernel",),
    "inner": ("kernel",),
}
"""The groupings by which each deviates: a kernel is a framework and a precision, a local one that of a generation of chips, and
an architecture is a generation and a precision: libraries of all frameworks call the same instructions."""

_OF_MATRICES: dict[str, tuple[str, ...]] = {
    **DEVIATIONS,
    "compute": ("chip", "precision", "architecture", "local"),
    "memory": ("chip", "architecture", "local"),
    "fixed": ("chip", "architecture", "local"),
    "sharpness": ("architecture",),
}

OF_KERNELS: dict[str, dict[str, tuple[str, ...]]] = {
    "gemm": {**_OF_MATRICES, "epilogue": ("architecture",)},
    "moe": _OF_MATRICES,
}
"""Those of multiplications and of experts, whose rows are of several precisions."""

PRIOR = 0.3
RIDGE = {"gemm": 0.3}
"""Residual of a mean and of a deviation by a factor of e; chosen by the errors of shapes left out."""
_RIDGE = 0.7

FOLDS = 5
"""Folds of shapes: rows with the same matrix, heads or experts are held out together."""


ENOUGH = 30
"""Rows of a kernel on a chip from which on they have an interval of their own."""


def groups_of(case: KernelCase) -> dict[str, str]:
    """The groups of a row, by grouping."""
    return _groups(case.chip, case.framework, case.precision)


def _groups(chip: str, framework: str, precision: str) -> dict[str, str]:
    return {
        "chip": chip, "framework": framework, "precision": precision, "kernel": f"{framework} {precision}",
        "local": f"{_generation(chip)} {framework} {precision}", "architecture": f"{_generation(chip)} {precision}",
    }  # fmt: skip


def _generation(chip: str) -> str:
    """Chips of one generation, whose letters before the first digit are the same but for a leading g: h200, gb200."""
    return chip.removeprefix("g")[:1]


def solved(part: str, some: Sequence[KernelCase], start: Pooled | None = None) -> Pooled:
    """The fit to some rows of one kernel.

    Args:
        part: The kernel.
        some: The measurements.
        start: Where the search begins.
    """
    shape = {n: np.array([c.shape[n] for c in some]) for n in some[0].shape}
    measured = np.array([c.measured for c in some])
    pooling = Pooling(
        typical=TYPICAL | EPILOGUE.get(part, {}), shares=frozenset({"compute", "memory", "waves", "split"}),
        deviations=OF_KERNELS.get(part, DEVIATIONS), prior=PRIOR,
        ridge=RIDGE.get(part, _RIDGE), limits=LIMITS,
    )  # fmt: skip

    def log_errors(parameters: dict[str, Any]) -> Any:
        return np.log(FORMULAS[part](**shape, roof=Roof(**parameters)) / measured)[None]

    return fit_pooled(pooling, [groups_of(c) for c in some], log_errors, np.ones((1, len(some))), start)


def held_out(part: str, some: Sequence[KernelCase], groups: Sequence[str], whole: Pooled) -> Any:
    """Times of each row by fits to the rows of other groups [s]."""
    result = np.empty(len(some))
    for group in sorted(set(groups)):
        mask = np.array([g == group for g in groups])
        others, unseen = ([c for c, m in zip(some, mask, strict=True) if m == held] for held in (False, True))
        if others:
            fit = solved(part, others, whole)
            result[mask] = times(part, unseen, Roof(**fit.arrays([groups_of(c) for c in unseen])))
        else:
            result[mask] = np.nan
    return result


@frozen
class FittedKernels:
    """The fit of the kernels of one chip and framework.

    Attributes:
        chip: The chip.
        framework: The framework.
        cases: Its rows.
        roofs: Parameters by kernel and precision.
        errors: Computed over measured time minus 1, one per row.
        held_out: The same, of fits without the shapes of a row.
        ends: The interval of measured over computed time.
        beyond: How far fits are off on other chips.
        groups: Errors and intervals by kernel.
    """

    chip: str
    framework: str
    cases: tuple[KernelCase, ...]
    roofs: Mapping[tuple[str, str], Mapping[str, float]]
    errors: Any
    held_out: Any
    ends: tuple[float, float]
    beyond: Beyond
    groups: tuple[GroupErrors, ...]


def fit_kernels(cases: Sequence[KernelCase]) -> list[FittedKernels]:
    """Fits every kernel, for each chip and framework with rows.

    Args:
        cases: The measurements.

    Raises:
        UsageError: There are none, or scipy is not installed.
    """
    if not cases:
        raise UsageError("there are no rows of kernels to fit")
    fits: dict[str, Pooled] = {}
    errors: dict[str, tuple[float, float, float]] = {}
    for part in dict.fromkeys(c.part for c in cases):
        some = [c for c in cases if c.part == part]
        fits[part] = whole = solved(part, some)
        folds = [str(zlib.crc32(c.family.encode()) % FOLDS) for c in some]
        computed = (
            times(part, some, Roof(**whole.arrays([groups_of(c) for c in some]))),
            held_out(part, some, folds, whole),
            held_out(part, some, [c.chip for c in some], whole),
        )
        for i, case in enumerate(some):
            fit, shape, elsewhere = (float(each[i]) / case.measured - 1.0 for each in computed)
            errors[case.id] = fit, shape, elsewhere
    beyond = _beyond(cases, errors)
    result = []
    for chip, framework in dict.fromkeys((c.chip, c.framework) for c in cases):
        some = [c for c in cases if (c.chip, c.framework) == (chip, framework)]
        groups = []
        for part in dict.fromkeys(c.part for c in some):
            own = [c for c in some if c.part == part]
            wider = [c for c in cases if c.part == part]
            groups.append(_group(part, own, wider, errors))
        roofs: dict[tuple[str, str], Mapping[str, float]] = {
            (part, precision): fits[part].values(_groups(chip, framework, precision))
            for part, precision in dict.fromkeys((c.part, c.precision) for c in some)
        }
        seen, unseen = (np.array([errors[c.id][k] for c in some]) for k in (0, 1))
        ends = interval(1.0 / (1.0 + unseen), np.array([c.family for c in some]))
        result.append(FittedKernels(chip, framework, tuple(some), roofs, seen, unseen, ends, beyond, tuple(groups)))
    return result


def _group(
    part: str, own: Sequence[KernelCase], wider: Sequence[KernelCase], errors: Mapping[str, tuple[float, float, float]]
) -> GroupErrors:
    """The errors of a kernel; with few rows its interval is that of all chips and frameworks."""
    off = np.abs([errors[c.id][1] for c in own])
    some = own if len(own) >= ENOUGH else wider
    # Questions are about shapes with rows near them and about others.
    ratios = 1.0 / (1.0 + np.array([errors[c.id][k] for c in some for k in (0, 1)]))
    low, high = interval(ratios, np.array([c.id for c in some for _ in range(2)]))
    families = len({c.family for c in own})
    return GroupErrors(part, "", "", len(own), families, float(off.mean()), float(np.median(off)), low, high)


def _beyond(cases: Sequence[KernelCase], errors: Mapping[str, tuple[float, float, float]]) -> Beyond:
    known = [c for c in cases if not np.isnan(errors[c.id][2])]
    if not known:
        return Beyond(EXPONENT, None)
    ratios = 1.0 / (1.0 + np.array([errors[c.id][2] for c in known]))
    low, high = interval(ratios, np.array([c.id for c in known]))
    return Beyond(EXPONENT, Elsewhere(len(known), len({c.chip for c in known}), low, high))
