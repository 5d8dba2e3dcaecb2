"""Fits of kernels: one partially pooled fit to all rows of a kernel, for each chip, framework and precision."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import evolve

from trnspec.errors import UsageError
from trnspec.perf.calibration.fits.fit import Errors, FitModel, Fitted, fit
from trnspec.perf.calibration.fits.search import SearchResult, Space
from trnspec.perf.calibration.fits.serving import pooled_note
from trnspec.perf.calibration.groups import enough_rows, of_rows
from trnspec.perf.calibration.measured.case import Part
from trnspec.perf.calibration.measured.kernels import KernelCase, KernelRuns
from trnspec.perf.calibration.transfer import left_out

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

    Raises:
        UsageError: There are none, or scipy is not installed.
    """
    if not cases:
        raise UsageError("there are no rows of kernels to fit")
    parts, families = (np.array([getattr(c, name) for c in cases]) for name in ("part", "family"))
    founds: dict[str, SearchResult] = {}
    # Of each row the errors of the fit, of a fit to other shapes, and of a fit to other chips.
    each = np.full((3, len(cases)), np.nan)
    for part in dict.fromkeys(c.part for c in cases):
        some = [c for c in cases if c.part == part]
        several = len({c.chip for c in some}) > 1
        whole = fit(model(part), some, ("model", "chip") if several else ("model",))["model"]
        assert whole.found is not None
        founds[part] = whole.found
        known = (whole.main.fit, whole.main.held_out, *([whole.main.elsewhere] if several else ()))
        each[: len(known), parts == part] = known
    every = Errors(cases=tuple(cases), fit=each[0], held_out=each[1], elsewhere=each[2])
    rows = np.arange(len(cases))
    beyond = left_out(each[2], rows, {c.chip for c, off in zip(cases, each[2], strict=True) if not np.isnan(off)})
    result = []
    for chip, framework in dict.fromkeys((c.chip, c.framework) for c in cases):
        mine = np.array([(c.chip, c.framework) == (chip, framework) for c in cases])
        own = every.of(mine)
        roofs = [
            {
                "kernel": part, "precision": precision, "rows": sum((c.part, c.precision) == (part, precision) for c in own.cases),
                **founds[part].values(_groups(chip, framework, precision)),
            }
            for part, precision in dict.fromkeys((c.part, c.precision) for c in own.cases)
        ]  # fmt: skip
        groups = []
        for part in dict.fromkeys(c.part for c in own.cases):
            # With few rows its interval is that of all chips and frameworks.
            of = parts == part
            ends = enough_rows(every, (mine & of, of), rows, ENOUGH, seen=1)
            groups.append(of_rows(part, every.held_out[mine & of], len(set(families[mine & of])), ends))
        result.append(
            Fitted(
                cases=own.cases, values={"causal": 1.0}, chip=chip, framework=framework, beyond=(beyond,), roofs=tuple(roofs),
                errors={"op": evolve(own, ends=enough_rows(every, (mine,), families, 0))}, groups=tuple(groups),
                note=pooled_note(own.cases, cases, "shape"),
            )
        )  # fmt: skip
    return result
