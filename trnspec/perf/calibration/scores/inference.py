"""Scores of serving: measured times per output token and to first token next to ideal and calibrated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.perf.calibration.chosen import Chosen
from trnspec.perf.calibration.fits.inference import LEAST, fit_inference, runs
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured.tables import Skipped
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.lowering.calibrated import Calibrated, serving_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record


def score_inference(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> list[Scored | Skipped]:
    """Scores of every row of inference: its time per output token and its time to first token, where it has them."""
    read = list(inference_cases(graph, rows))
    scored: list[Scored | Skipped] = [c for c in read if isinstance(c, Skipped)]
    chosen = Chosen(graph, "inference", calibration)
    read_cases = [c for c in read if isinstance(c, InferenceCase)]
    groups = [
        *chosen.groups([c for c in read_cases if not c.encoded]),
        *((_alone(applied), some) for applied, some in chosen.groups([c for c in read_cases if c.encoded])),
    ]
    for applied, some in groups:
        cases = [case for case, _ in some]
        ideal, value = _times(cases, Calibrated()), _times(cases, applied)
        slow, fast = (_times([_at_end(case, end) for case in cases], applied) for end in (0, 1))
        for i, (case, known) in enumerate(some):
            spread = (known.low, known.high)
            part: Part
            for part, measured, (low, high) in (
                ("tpot", case.tpot, spread),
                ("ttft", case.ttft, known.ttft_interval or spread),
                ("encoder", case.encoded, known.ttft_interval or spread),
            ):
                if not measured:
                    continue
                each = Scored(
                    **chosen.about(case, dataset), part=part, measured=measured, ideal=float(ideal.of(part)[i])
                )
                if known.name:
                    each = evolve(
                        each, calibrated=float(value.of(part)[i]), low=float(fast.of(part)[i]) * low,
                        high=float(slow.of(part)[i]) * high, kind="transferred" if case.encoded else known.evidence.kind,
                        calibration=known.name,
                    )  # fmt: skip
                scored.append(each)
    return scored


def _alone(applied: Calibrated) -> Calibrated:
    """A calibration of a server for a model without one: shares of rates, and none of the fixed times."""
    fixed = dict.fromkeys(("launch", "sample", "request", "queue", "response"), 0.0)
    efficiency = evolve(applied.efficiency, call=0.0, step=0.0)
    return evolve(applied, efficiency=efficiency, serving=evolve(applied.serving, **fixed))


@frozen
class _Times:
    """Computed times [s], one per row."""

    tpot: Any
    ttft: Any

    def of(self, part: Part) -> Any:
        return self.tpot if part == "tpot" else self.ttft


def _times(cases: Sequence[InferenceCase], applied: Calibrated) -> _Times:
    data, serving = runs(cases, applied.efficiency), serving_of(applied)
    return _Times(data.token_times(serving), data.first_token_times(serving))


def _at_end(case: InferenceCase, end: int) -> InferenceCase:
    plan = evolve(case.plan, weight_bytes=4.0) if case.encoded and end == 0 else case.plan
    return evolve(case, plan=plan, system=(case.system.ends or (case.system,) * 2)[end])


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
