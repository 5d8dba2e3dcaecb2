"""Fits of serving with requests in flight: one partially pooled fit to all rows, for each chip, framework and kind of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from trnspec.perf.calibration.fit_range import fitted_on
from trnspec.perf.calibration.fits.fit import FitModel, Fitted, fit
from trnspec.perf.calibration.fits.limits import limits
from trnspec.perf.calibration.fits.search import Space
from trnspec.perf.calibration.groups import LEAST, enough_rows
from trnspec.perf.calibration.measured.case import Case, Part
from trnspec.perf.calibration.measured.serving import ServingCase, ServingRuns
from trnspec.perf.calibration.transfer import left_out

TYPICAL: dict[str, float] = {
    "matmul": 0.65, "attention": 0.4, "weights": 0.6, "cache": 0.6, "link": 0.6, "additive": 0.2, "call": 8e-6,
    "launch": 4e-5, "step": 1e-3, "sample": 2e-5, "request": 5e-3, "matmul_passes": 1.5, "queue": 0.05, "response": 2e-2,
}  # fmt: skip
"""Parameters with typical values; ``matmul`` is the mean of the kernels that were fitted to catalog/measured/gemm_gpu.csv."""

DEVIATIONS: dict[str, tuple[str, ...]] = {
    "matmul": ("chip",),
    "weights": ("models", "stack", "chip"),
    "cache": ("framework",),
    "launch": ("stack", "chip"),
    "step": ("framework",),
    "sample": ("framework",),
    "request": ("stack",),
    "queue": ("framework", "deployment"),
    "response": ("framework", "deployment"),
}
"""The groupings by which each deviates from its mean; a stack is a framework with dense models or with experts."""

FIRST_WEIGHT = 0.25
"""Weight of a time to first token over that of a time per output token; the first depends on when requests arrive."""

FULL = 30
"""Rows of a cluster from which on the weight of each decreases with the root of their number."""

SPACE = Space(
    typical=TYPICAL, limits=limits(), deviations=DEVIATIONS, loss="rows", tolerance=1e-4, step=1e-5, most=(30, 30),
    # Chosen by the errors of models left out.
    pulls=dict.fromkeys(TYPICAL, 0.5), ridge=1.0,
)  # fmt: skip


def groups_of(case: ServingCase) -> dict[str, str]:
    """The groups of a row, by grouping."""
    return {
        "chip": case.chip, "framework": case.framework, "models": case.models,
        "stack": f"{case.framework} {case.models}", "deployment": f"{case.framework} {case.chip} {case.models}",
    }  # fmt: skip


def weights(cases: Sequence[ServingCase], part: Part) -> tuple[Any, Any]:
    """The weight of each row; those of a cluster of many count less."""
    clusters = [f"{c.chip} {c.framework} {c.model} {c.plan.weight_bytes}" for c in cases]
    count = Counter(clusters)
    each = np.array([np.sqrt(FULL / max(count[c], FULL)) for c in clusters])
    return np.ones(len(cases)), np.sqrt((FIRST_WEIGHT if part == "ttft" else 1.0) * each)


MODEL = FitModel(
    parts=("tpot", "ttft"), least=1, columns=ServingRuns.of, space=lambda _cases, _prior: SPACE, groups=groups_of, weights=weights,
    whole=True,
)  # fmt: skip


def fit_serving(cases: Sequence[ServingCase]) -> list[Fitted]:
    """The fit to all rows, for each chip, framework and kind of models, with errors of held-out models and chips.

    Raises:
        UsageError: There are none, or they are of one model or of one chip only; or scipy is not installed.
    """
    whole = fit(MODEL, cases, ("model", "chip"))["model"]
    beyond = tuple(
        left_out(each.elsewhere, [c.cluster for c in each.cases], {c.chip for c in each.cases})
        for each in whole.errors.values()
    )
    found = whole.found
    assert found is not None
    result = []
    for deployment in dict.fromkeys(groups_of(c)["deployment"] for c in cases):
        some = tuple(c for c in cases if groups_of(c)["deployment"] == deployment)
        case, own = some[0], groups_of(some[0])
        parts = {}
        for part, errors in whole.errors.items():
            mine = np.array([groups_of(c)["deployment"] == deployment for c in errors.cases])
            framework = np.array([c.framework == case.framework for c in errors.cases])
            clusters = np.array([c.cluster for c in errors.cases])
            # Rows of prefill on other chips have no time to first token; that of the framework is used.
            masks = (mine if mine.any() else framework, framework, np.ones(len(clusters), bool))
            parts[part] = evolve(errors.of(masks[0]), ends=enough_rows(errors, masks, clusters, LEAST, seen=2))
        result.append(
            Fitted(
                cases=some, values={**found.values(own), "causal": 1.0}, errors=parts, chip=case.chip,
                framework=case.framework, models=case.models, found=found, beyond=beyond, fitted_on=fitted_on(some),
                note=pooled_note(some, cases, "model"),
            )
        )  # fmt: skip
    return result


def pooled_note(some: Sequence[Case], cases: Sequence[Case], held_out: str) -> str:
    """The note of a document of a partially pooled fit.

    Args:
        some: The rows of the document.
        cases: Those of the fit.
        held_out: What the errors are held out by.
    """
    return (
        f"Partially pooled: what its {len(some)} rows leave open is that of all {len(cases)} rows of "
        f"the fit. Errors are of fits without the {held_out} of a row."
    )
