"""Fits of serving with requests in flight: one partially pooled fit to all rows, for each chip, framework and kind of models."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from trnspec.errors import UsageError
from trnspec.model.calibration import SERVING_SHARES, SHARES
from trnspec.perf.calibration.fit_range import EXPONENT
from trnspec.perf.calibration.fits.inference import FittedServing
from trnspec.perf.calibration.fits.limits import limits
from trnspec.perf.calibration.fits.pooled import Pooling, fit_pooled
from trnspec.perf.calibration.fits.training import Fitted
from trnspec.perf.calibration.groups import LEAST, interval, label
from trnspec.perf.calibration.measured.serving import Runs, ServingCase
from trnspec.perf.calibration.transfer import Beyond, Elsewhere
from trnspec.perf.lowering.system import Efficiency
from trnspec.perf.serving.forward_pass import Serving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.perf.calibration.fits.pooled import Pooled

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

PRIOR, RIDGE = 0.5, 1.0
"""Residual of a mean, and of a deviation, by a factor of e; chosen by the errors of models left out."""

FIRST_WEIGHT = 0.25
"""Weight of a time to first token over that of a time per output token; the first depends on when requests arrive."""

FULL = 30
"""Rows of a cluster from which on the weight of each decreases with the root of their number."""

POOLING = Pooling(
    typical=TYPICAL,
    shares=frozenset(SHARES | SERVING_SHARES),
    deviations=DEVIATIONS,
    prior=PRIOR,
    ridge=RIDGE,
    limits=limits(),
)


@frozen
class Served:
    """The fit of one chip, framework and kind of models.

    Attributes:
        chip: The chip.
        framework: The framework.
        models: ``dense`` or ``experts``.
        cases: Its rows.
        fitted: Parameters and errors.
        beyond: How far the fit is off on other chips, for output tokens and for first tokens.
    """

    chip: str
    framework: str
    models: str
    cases: tuple[ServingCase, ...]
    fitted: FittedServing
    beyond: tuple[Beyond, Beyond]


def groups_of(case: ServingCase) -> dict[str, str]:
    """The groups of a row, by grouping."""
    models, chip, framework = _models(case), case.system.chip, case.framework
    bits = "fp4" if case.dtype.endswith("fp4") else "fp8" if case.dtype.endswith("fp8") else "bf16"
    return {
        "chip": chip, "framework": framework, "models": models, "dtype": bits, "stack": f"{framework} {models}",
        "deployment": f"{framework} {chip} {models}",
    }  # fmt: skip


def _models(case: ServingCase) -> str:
    return "experts" if case.dims.experts else "dense"


def solved(cases: Sequence[ServingCase], data: Runs, start: Pooled | None = None) -> Pooled:
    """The fit to some cases.

    Args:
        cases: The measurements.
        data: The same as arrays.
        start: Where the search begins.
    """
    tpot = np.array([c.tpot for c in cases])
    ttft = np.array([c.ttft for c in cases])
    timed = ttft > 0.0
    first = np.where(timed, ttft, 1.0)

    def log_errors(parameters: dict[str, Any]) -> Any:
        times = data.times(Serving(**parameters))
        return np.stack([np.log(times.tpot / tpot), np.where(timed, np.log(times.ttft / first), 0.0)])

    clusters = [f"{c.system.chip} {c.framework} {c.model} {c.plan.weight_bytes}" for c in cases]
    count = Counter(clusters)
    weights = np.array([np.sqrt(FULL / max(count[c], FULL)) for c in clusters])
    both = np.stack([weights, FIRST_WEIGHT * weights])
    return fit_pooled(POOLING, [groups_of(c) for c in cases], log_errors, both, start)


def held_out(cases: Sequence[ServingCase], data: Runs, groups: Sequence[str], whole: Pooled) -> tuple[Any, Any]:
    """Times per output token and to first token of each row, by fits to the rows of other groups [s]."""
    tpot, ttft = np.empty(len(cases)), np.empty(len(cases))
    for group in sorted(set(groups)):
        mask = np.array([g == group for g in groups])
        others = [c for c, m in zip(cases, mask, strict=True) if not m]
        if not others:
            raise UsageError(f"all rows are of {group}; errors of others cannot be estimated")
        fit = solved(others, data.rows(~mask), whole)
        unseen = [groups_of(c) for c, m in zip(cases, mask, strict=True) if m]
        times = data.rows(mask).times(Serving(**fit.arrays(unseen)))
        tpot[mask], ttft[mask] = times.tpot, times.ttft
    return tpot, ttft


def fit_serving(cases: Sequence[ServingCase]) -> list[Served]:
    """Fits all rows together, and for held-out errors the rows of other models and of other chips.

    Args:
        cases: The measurements.

    Raises:
        UsageError: There are none, or they are of one model or of one chip only; or scipy is not installed.
    """
    if not cases:
        raise UsageError("there are no rows to fit")
    data = Runs.of(cases)
    fit = solved(cases, data)
    groups = [groups_of(c) for c in cases]
    own = data.times(Serving(**fit.arrays(groups)))
    measured = np.array([c.tpot for c in cases]), np.array([c.ttft or np.nan for c in cases])
    errors = [t / m - 1.0 for t, m in zip((own.tpot, own.ttft), measured, strict=True)]
    by_model = [
        t / m - 1.0 for t, m in zip(held_out(cases, data, [c.model for c in cases], fit), measured, strict=True)
    ]
    by_chip = [
        t / m - 1.0 for t, m in zip(held_out(cases, data, [c.system.chip for c in cases], fit), measured, strict=True)
    ]
    clusters = np.array([label(c).cluster + str(c.requests) for c in cases])
    deployments = [g["deployment"] for g in groups]
    result = []
    for deployment in dict.fromkeys(deployments):
        mask = np.array([d == deployment for d in deployments])
        some = tuple(c for c, m in zip(cases, mask, strict=True) if m)
        case = some[0]
        values = fit.values(groups_of(case))
        by_dtype = {bits: fit.values({**groups_of(case), "dtype": bits})["matmul"] for bits in ("bf16", "fp8", "fp4")}
        efficiency = Efficiency(matmul_fp8=by_dtype["fp8"], matmul_fp4=by_dtype["fp4"])
        serving = Serving(**values | {"matmul": by_dtype["bf16"]})
        names = (*values, "matmul_fp8", "matmul_fp4")
        spreads = []
        for phase in (0, 1):
            known = mask & ~np.isnan(measured[phase])
            if not known.any():
                # Rows of prefill on other chips have no time to first token; that of the framework is used.
                known = ~np.isnan(measured[phase]) & np.array([c.framework == case.framework for c in cases])
            ends = _interval(
                errors[phase], by_model[phase], clusters, known, [c.framework == case.framework for c in cases]
            )
            spreads.append(
                PooledErrors(
                    efficiency, errors[phase][known], by_model[phase][known], names, scales=known[known], ends=ends
                )
            )
        first = spreads[1]
        result.append(
            Served(
                case.system.chip, case.framework, _models(case), some,
                PooledServing(
                    efficiency, spreads[0].errors, spreads[0].held_out, names, serving, first,
                    scales=spreads[0].scales, ends=spreads[0].ends,
                ),
                (_beyond(by_chip[0], clusters, cases), _beyond(by_chip[1], clusters, cases)),
            )
        )  # fmt: skip
    return result


class _WithEnds:
    """An interval whose ends are given."""

    ends: tuple[float, float]

    @property
    def low(self) -> float:
        """Measured over computed time at the lower end of the interval."""
        return self.ends[0]

    @property
    def high(self) -> float:
        """The same, at the upper end."""
        return self.ends[1]


@frozen
class PooledErrors(_WithEnds, Fitted):
    """Errors of a part of a pooled fit; its interval may be that of more rows."""

    ends: tuple[float, float] = (1.0, 1.0)


@frozen
class PooledServing(_WithEnds, FittedServing):
    """The same, of times per output token."""

    ends: tuple[float, float] = (1.0, 1.0)


def _interval(errors: Any, unseen: Any, clusters: Any, own: Any, framework: Sequence[bool]) -> tuple[float, float]:
    """The interval of the rows of a document, or of its framework, or of all, if they are of too few configurations.

    Questions are more often about models with rows than about others, so that the errors of the fit count twice, those of
    fits without the model once.
    """
    known = ~np.isnan(errors)
    for mask in (own, np.array(framework) & known, known):
        if len(set(clusters[mask])) >= LEAST:
            break
    both = np.concatenate([errors[mask], errors[mask], unseen[mask]])
    return interval(1.0 / (1.0 + both), np.tile(clusters[mask], 3))


def _beyond(errors: Any, clusters: Any, cases: Sequence[ServingCase]) -> Beyond:
    """The interval of all rows by fits without their chip."""
    known = ~np.isnan(errors)
    low, high = interval(1.0 / (1.0 + errors[known]), clusters[known])
    pairs = {c.system.chip for c, k in zip(cases, known, strict=True) if k}
    return Beyond(EXPONENT, Elsewhere(int(known.sum()), len(pairs), low, high))
