"""Scores of serving: measured times per output token and to first token next to ideal and calibrated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.perf.calibration.chosen import Chosen, at_end
from trnspec.perf.calibration.fits.inference import LEAST, fit_inference, runs
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured.tables import Skipped
from trnspec.perf.lowering.calibrated import Calibrated, serving_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.chosen import Predicted
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record
    from trnspec.perf.calibration.scores.score import Scored


def score_inference(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> list[Scored | Skipped]:
    """Scores of every row of inference: its time per output token and its time to first token, where it has them."""
    read = list(inference_cases(graph, rows))
    scored: list[Scored | Skipped] = [c for c in read if isinstance(c, Skipped)]
    chosen = Chosen(graph, "inference", calibration)
    read_cases = [c for c in read if isinstance(c, InferenceCase)]
    tokens, encoders = ([c for c in read_cases if bool(c.encoded) == encoded] for encoded in (False, True))
    scored += (each for _, each in chosen.scores(tokens, dataset, _of_tokens))
    scored += (each for _, each in chosen.scores(encoders, dataset, _of_encoders))
    return scored


def _of_tokens(cases: Sequence[InferenceCase], applied: Calibrated) -> Predicted:
    slow, fast = ([at_end(case, end) for case in cases] for end in (0, 1))
    each = [_times(*some) for some in ((cases, Calibrated()), (cases, applied), (fast, applied), (slow, applied))]
    tpot, ttft = zip(*each, strict=True)
    return {"tpot": tpot, "ttft": ttft}


def _of_encoders(cases: Sequence[InferenceCase], applied: Calibrated) -> Predicted:
    """Times of a pass; at the slow end of the interval weights have 4 bytes."""
    slow, fast = ([at_end(case, end) for case in cases] for end in (0, 1))
    slow = [evolve(case, plan=evolve(case.plan, weight_bytes=4.0)) for case in slow]
    known = _alone(applied)
    each = [_times(*some)[1] for some in ((cases, Calibrated()), (cases, known), (fast, known), (slow, known))]
    return {"encoder": (each[0], each[1], each[2], each[3])}


def _alone(applied: Calibrated) -> Calibrated:
    """A calibration of a server for a model without one: shares of rates, and none of the fixed times."""
    fixed = dict.fromkeys(("launch", "sample", "request", "queue", "response"), 0.0)
    efficiency = evolve(applied.efficiency, call=0.0, step=0.0)
    return evolve(applied, efficiency=efficiency, serving=evolve(applied.serving, **fixed))


def _times(cases: Sequence[InferenceCase], applied: Calibrated) -> tuple[Any, Any]:
    """Computed times per output token and to first token [s], one per row."""
    data, serving = runs(cases, applied.efficiency), serving_of(applied)
    return data.token_times(serving), data.first_token_times(serving)


def refit_inference(graph: Graph, rows: list[Record], holdout: Holdout = "model") -> dict[tuple[str, Part], float]:
    """Times by fits to other models, or to other chips."""
    cases = [c for c in inference_cases(graph, rows) if isinstance(c, InferenceCase) and c.tpot]
    if len(cases) < LEAST or (holdout == "chip" and len({c.system.chip for c in cases}) == 1):
        return {}
    fitted = fit_inference(cases, holdout)
    times: dict[tuple[str, Part], float] = {
        (c.id, "tpot"): c.tpot * (1.0 + float(e)) for c, e in zip(cases, fitted.held_out, strict=True)
    }
    if fitted.ttft is not None:
        timed = [c for c in cases if c.ttft]
        for c, e in zip(timed, fitted.ttft.held_out, strict=True):
            times[c.id, "ttft"] = c.ttft * (1.0 + float(e))
    return times
