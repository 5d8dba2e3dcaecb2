"""Fits of kernels: one partially pooled fit to all rows of a kernel, for each chip, framework and precision."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import EXPONENT
from trnspec.perf.calibration.fits.fit import Errors, FitModel, Fitted, fit
from trnspec.perf.calibration.fits.search import SearchResult, Space
from trnspec.perf.calibration.fits.serving import pooled_note
from trnspec.perf.calibration.groups import GroupErrors, interval, of_rows
from trnspec.perf.calibration.measured.kernels import KernelCase, KernelRuns
from trnspec.perf.calibration.transfer import Beyond, Elsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.perf.calibration.measured.case import Part

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

FOLDS = 5
"""Folds of shapes: rows with the same matrix, heads or experts are held out together."""

ENOUGH = 30
"""Rows of a kernel on a chip from which on they have an interval of their own."""


def groups_of(case: KernelCase) -> dict[str, str]:
    """The groups of a row, by grouping."""
    return _groups(case.chip, case.framework, case.precision)


def _groups(chip: str, framework: str, precision: str) -> dict[str, str]:
    # Chips of one generation, whose letters before the first digit are the same but for a leading g: h200, gb200.
    generation = chip.removeprefix("g")[:1]
    return {
        "chip": chip, "framework": framework, "precision": precision, "kernel": f"{framework} {precision}",
        "local": f"{generation} {framework} {precision}", "architecture": f"{generation} {precision}",
    }  # fmt: skip


def model(part: Part) -> FitModel:
    """The fit of one kernel."""
    typical = TYPICAL | EPILOGUE.get(part, {})
    # Residuals of means and of deviations were chosen by the errors of shapes left out.
    space = Space(
        typical=typical, pulls=dict.fromkeys(typical, 0.3), limits=LIMITS, deviations=OF_KERNELS.get(part, DEVIATIONS),
        ridge=0.3 if part == "gemm" else 0.7, loss="rows", tolerance=1e-4, step=1e-5, most=(30, 30),
    )  # fmt: skip
    return FitModel(
        parts=(part,), least=1, columns=partial(KernelRuns.of, part), space=lambda _cases, _prior: space, groups=groups_of,
        folds=lambda cases: [str(zlib.crc32(c.family.encode()) % FOLDS) for c in cases], whole=True,
    )  # fmt: skip


def fit_kernels(cases: Sequence[KernelCase]) -> list[Fitted]:
    """The fit of every kernel, for each chip and framework with rows.

    Args:
        cases: The measurements.

    Raises:
        UsageError: There are none, or scipy is not installed.
    """
    if not cases:
        raise UsageError("there are no rows of kernels to fit")
    founds: dict[str, SearchResult] = {}
    # Of each row the errors of the fit, of a fit to other shapes, and of a fit to other chips.
    errors: dict[str, tuple[float, float, float]] = {}
    for part in dict.fromkeys(c.part for c in cases):
        some = [c for c in cases if c.part == part]
        several = len({c.chip for c in some}) > 1
        fits = fit(model(part), some, ("model", "chip") if several else ("model",))
        whole = fits["model"]
        assert whole.found is not None
        founds[part] = whole.found
        elsewhere = fits["chip"].main.held_out if several else np.full(len(some), np.nan)
        each = zip(whole.main.fit, whole.main.held_out, elsewhere, strict=True)
        errors |= {c.id: (float(a), float(b), float(e)) for c, (a, b, e) in zip(some, each, strict=True)}
    beyond = _beyond(cases, errors)
    result = []
    for chip, framework in dict.fromkeys((c.chip, c.framework) for c in cases):
        own = tuple(c for c in cases if (c.chip, c.framework) == (chip, framework))
        roofs = [
            {
                "kernel": part, "precision": precision, "rows": sum((c.part, c.precision) == (part, precision) for c in own),
                **founds[part].values(_groups(chip, framework, precision)),
            }
            for part, precision in dict.fromkeys((c.part, c.precision) for c in own)
        ]  # fmt: skip
        seen, unseen = (np.array([errors[c.id][k] for c in own]) for k in (0, 1))
        ends = interval(1.0 / (1.0 + unseen), np.array([c.family for c in own]))
        result.append(
            Fitted(
                cases=own, values={"causal": 1.0}, errors={"op": Errors(cases=own, fit=seen, held_out=unseen, ends=ends)},
                chip=chip, framework=framework, beyond=(beyond,), roofs=tuple(roofs),
                groups=tuple(_group(part, own, cases, errors) for part in dict.fromkeys(c.part for c in own)),
                note=pooled_note(own, cases, "shape"),
            )
        )  # fmt: skip
    return result


def _group(
    part: Part,
    of_chip: Sequence[KernelCase],
    cases: Sequence[KernelCase],
    errors: Mapping[str, tuple[float, float, float]],
) -> GroupErrors:
    """The errors of a kernel; with few rows its interval is that of all chips and frameworks."""
    own, wider = ([c for c in some if c.part == part] for some in (of_chip, cases))
    some = own if len(own) >= ENOUGH else wider
    # Questions are about shapes with rows near them and about others.
    ratios = 1.0 / (1.0 + np.array([errors[c.id][k] for c in some for k in (0, 1)]))
    ends = interval(ratios, np.array([c.id for c in some for _ in range(2)]))
    return of_rows(part, [errors[c.id][1] for c in own], len({c.family for c in own}), ends)


def _beyond(cases: Sequence[KernelCase], errors: Mapping[str, tuple[float, float, float]]) -> Beyond:
    known = [c for c in cases if not np.isnan(errors[c.id][2])]
    if not known:
        return Beyond(EXPONENT, None)
    ratios = 1.0 / (1.0 + np.array([errors[c.id][2] for c in known]))
    ends = interval(ratios, np.array([c.id for c in known]))
    return Beyond(EXPONENT, Elsewhere(len(known), len({c.chip for c in known}), *ends))
