"""Fits of serving with requests in flight: one partially pooled fit to all rows, for each chip, framework and kind of models."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import EXPONENT, fitted_on
from trnspec.perf.calibration.fits.fit import Errors, Fitted, Model, held_out, of_groups
from trnspec.perf.calibration.fits.limits import limits
from trnspec.perf.calibration.fits.search import Space
from trnspec.perf.calibration.groups import LEAST, interval
from trnspec.perf.calibration.measured.serving import Runs, ServingCase
from trnspec.perf.calibration.transfer import Beyond, Elsewhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.measured.case import Part

TYPICAL: dict[str, float] = {
    "matmul": 0.55, "attention": 0.4, "weights": 0.6, "cache": 0.6, "link": 0.6, "additive": 0.2, "call": 8e-6,
    "launch": 4e-5, "step": 1e-3, "sample": 2e-5, "request": 5e-3, "matmul_passes": 1.5, "queue": 0.05, "response": 2e-2,
}  # fmt: skip
"""Parameters with typical values."""

DEVIATIONS: dict[str, tuple[str, ...]] = {
    "matmul": ("dtype", "stack", "chip"),
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
    bits = "fp4" if case.dtype.endswith("fp4") else "fp8" if case.dtype.endswith("fp8") else "bf16"
    return {
        "chip": case.chip, "framework": case.framework, "models": case.models, "dtype": bits,
        "stack": f"{case.framework} {case.models}", "deployment": f"{case.framework} {case.chip} {case.models}",
    }  # fmt: skip


def weights(cases: Sequence[ServingCase], part: Part) -> tuple[Any, Any]:
    """The weight of each row; those of a cluster of many count less."""
    clusters = [f"{c.chip} {c.framework} {c.model} {c.plan.weight_bytes}" for c in cases]
    count = Counter(clusters)
    each = np.array([np.sqrt(FULL / max(count[c], FULL)) for c in clusters])
    return np.ones(len(cases)), np.sqrt((FIRST_WEIGHT if part == "ttft" else 1.0) * each)


MODEL = Model(
    parts=("tpot", "ttft"), least=1, columns=Runs.of, space=lambda _cases, _prior: SPACE, groups=groups_of, weights=weights,
)  # fmt: skip


def fit_serving(cases: Sequence[ServingCase]) -> list[Fitted]:
    """The fit to all rows, for each chip, framework and kind of models, with errors of held-out models and chips.

    Args:
        cases: The measurements.

    Raises:
        UsageError: There are none, or they are of one model or of one chip only; or scipy is not installed.
    """
    if not cases:
        raise UsageError("there are no rows to fit")
    found = MODEL.solve(cases)
    computed = [MODEL.times(cases, found)]
    for labels in ([c.model for c in cases], [c.chip for c in cases]):
        masks = of_groups(labels)
        if not masks:
            raise UsageError(f"all rows are of {labels[0]}; errors of others cannot be estimated")
        computed.append(held_out(cases, masks, lambda some: MODEL.solve(some, start=found), MODEL.times))
    measured = {part: np.array([c.measured(part) or np.nan for c in cases]) for part in MODEL.parts}
    # Of each part the errors of the fit, of fits without the model, and of those without the chip.
    errors = {part: [times[part] / of_part - 1.0 for times in computed] for part, of_part in measured.items()}
    clusters = np.array([c.cluster for c in cases])
    beyond = tuple(_beyond(errors[part][2], clusters, cases) for part in MODEL.parts)
    result = []
    deployments = np.array([groups_of(c)["deployment"] for c in cases])
    for deployment in dict.fromkeys(deployments):
        mask = deployments == deployment
        some = tuple(c for c, m in zip(cases, mask, strict=True) if m)
        case = some[0]
        framework = np.array([c.framework == case.framework for c in cases])
        by_dtype = {bits: found.values({**groups_of(case), "dtype": bits})["matmul"] for bits in ("bf16", "fp8", "fp4")}
        shares = {
            "matmul": by_dtype["bf16"],
            "matmul_fp8": by_dtype["fp8"],
            "matmul_fp4": by_dtype["fp4"],
            "causal": 1.0,
        }
        parts = {}
        for part, (seen, unseen, _) in errors.items():
            known = mask & ~np.isnan(seen)
            if not known.any():
                # Rows of prefill on other chips have no time to first token; that of the framework is used.
                known = ~np.isnan(seen) & framework
            parts[part] = Errors(
                cases=tuple(c for c, k in zip(cases, known, strict=True) if k), fit=seen[known], held_out=unseen[known],
                ends=_interval(seen, unseen, clusters, known, framework),
            )  # fmt: skip
        result.append(
            Fitted(
                cases=some, values=found.values(groups_of(case)) | shares, errors=parts, chip=case.chip,
                framework=case.framework, models=case.models, found=found, beyond=beyond, fitted_on=fitted_on(some),
                note=f"Partially pooled: what its {len(some)} rows leave open is that of all {len(cases)} rows of "
                "the fit. Errors are of fits without the model of a row.",
            )
        )  # fmt: skip
    return result


def _interval(errors: Any, unseen: Any, clusters: Any, own: Any, framework: Any) -> tuple[float, float]:
    """The interval of the rows of a document, or of its framework, or of all, if they are of too few configurations.

    Questions are more often about models with rows than about others, so that the errors of the fit count twice, those of
    fits without the model once.
    """
    known = ~np.isnan(errors)
    for mask in (own, framework & known, known):
        if len(set(clusters[mask])) >= LEAST:
            break
    both = np.concatenate([errors[mask], errors[mask], unseen[mask]])
    return interval(1.0 / (1.0 + both), np.tile(clusters[mask], 3))


def _beyond(errors: Any, clusters: Any, cases: Sequence[ServingCase]) -> Beyond:
    """The interval of all rows by fits without their chip."""
    known = ~np.isnan(errors)
    low, high = interval(1.0 / (1.0 + errors[known]), clusters[known])
    chips = {c.chip for c, k in zip(cases, known, strict=True) if k}
    return Beyond(EXPONENT, Elsewhere(int(known.sum()), len(chips), low, high))
