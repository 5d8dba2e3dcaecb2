"""``trnspec calibrate --format json``: the fit, what the rows add to the prior, and the rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trnspec.perf.calibration.document import printed_values
from trnspec.perf.calibration.fit_inference import FittedServing
from trnspec.perf.calibration.measured_inference import InferenceCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.perf.calibration.fit_training import Fitted, Holdout
    from trnspec.perf.calibration.measured_inference import InferenceCase as Served
    from trnspec.perf.calibration.measured_training import Case
    from trnspec.perf.calibration.measurements import Skipped


def report(
    fits: Mapping[Holdout, Fitted],
    cases: Sequence[Case | Served],
    skipped: Sequence[Skipped],
    wrote: Sequence[str],
    *,
    every: bool,
) -> str:
    """The JSON text of a fit.

    Args:
        fits: The fit by what was held out; their parameters are the same.
        cases: The fitted rows.
        skipped: The rows that cannot be evaluated.
        wrote: The files written.
        every: Whether to list the fitted rows.
    """
    first = next(iter(fits.values()))
    texts = printed_values(first)
    document: dict[str, Any] = {
        "rows": len(cases),
        "skipped": [{"id": row.id, "reason": row.reason} for row in skipped],
        "prior": {"calibration": first.prior.name or None, "differences": first.prior.relation},
        "parameters": [
            {
                "name": each.name, "value": each.value, "text": texts.get(each.name), "prior": each.prior,
                "prior_width": each.prior_width, "width": each.width, "learned": each.share, "origin": each.origin,
            }
            for each in first.learned
        ],
        "errors": [*_errors(fits, "step" if not isinstance(first, FittedServing) else "tpot")],
        "wrote": list(wrote),
    }  # fmt: skip
    served = {holdout: f.ttft for holdout, f in fits.items() if isinstance(f, FittedServing) and f.ttft is not None}
    document["errors"] += _errors(served, "ttft")
    if every:
        document["fitted"] = [
            {
                "id": case.id, "measured": case.tpot if isinstance(case, InferenceCase) else case.seconds,
                "error": float(error), "held_out": float(held_out),
            }
            for case, error, held_out in zip(cases, first.errors, first.held_out, strict=False)
        ]  # fmt: skip
    return json.dumps(document, indent=2)


def _errors(fits: Mapping[Holdout, Fitted], phase: str) -> list[dict[str, Any]]:
    each = [("", fitted, False) for fitted in [*fits.values()][:1]]
    each += [(holdout, fitted, True) for holdout, fitted in fits.items()]
    return [
        {"phase": phase, "held_out": holdout or None}
        | dict(zip(("mean", "median", "worst"), fitted.summary(held_out=held_out), strict=True))
        for holdout, fitted, held_out in each
    ]
