"""Scores: measured values next to ideal, calibrated and held-out computed ones, for serving, collectives and matmuls."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from attrs import frozen

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fit_inference import LEAST, MODELS, fit_inference
from trnspec.perf.calibration.fit_range import inputs_of
from trnspec.perf.calibration.measured_collectives import Row, collective_rows, fit_rows, matmul_rows
from trnspec.perf.calibration.measured_inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measurements import Skipped
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measurements import Record
    from trnspec.perf.lowering.system import System


@frozen(kw_only=True)
class Scored:
    """One measurement with its computed values.  Times are in s, memory in B.

    Attributes:
        dataset: Name of the table.
        id: Name of the row.
        what: What was measured: step time, memory of a rank, time per output token, time to first token, a collective, or a
            matrix multiplication.
        measured: Measured value.
        ideal: Computed from published figures only.
        calibrated: Computed with a calibration; ``None`` without one.
        held_out: Computed with a fit to other rows; ``None`` where too few remain.
        low: Lower end of the interval of the calibrated value; ``None`` without a calibration.
        high: Upper end of that interval.
    """

    dataset: str
    id: str
    what: Literal["step", "memory", "tpot", "ttft", "collective", "matmul"]
    measured: float
    ideal: float
    calibrated: float | None = None
    held_out: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def unseen(self) -> bool:
        """Whether the calibration was fitted to other rows, so that its value is a held-out one."""
        return self.held_out is not None and self.held_out == self.calibrated


def score_inference(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto", refit: bool = True
) -> list[Scored | Skipped]:
    """Scores of every row of inference: its time per output token and, where it has one, its time to first token.

    Where a software has rows of several models, a row is also computed with a fit to those of other models.  A calibration
    of other software counts as held out.

    Args:
        graph: The catalog.
        rows: The rows of the table.
        dataset: Name of the table.
        calibration: Name of a calibration for all rows, ``none``, or ``auto`` for that of each row's chip.
        refit: Fit to the other models, one model at a time; skipped without scipy.

    Raises:
        UsageError: The calibration is for training.
        UnknownNameError: No calibration of that name.
    """
    cases_and_skipped = list(inference_cases(graph, rows))
    cases = [c for c in cases_and_skipped if isinstance(c, InferenceCase)]
    held_out = _held_out(cases) if refit and find_spec("scipy") else {}
    scored: list[Scored | Skipped] = [c for c in cases_and_skipped if isinstance(c, Skipped)]
    for case in cases:
        applied = calibrated(graph, case.system.chip, "inference", calibration).at(inputs_of(case), case.dtype)
        fitted_on = _software(graph, applied) == case.software
        scored += _scored(case, applied, dataset, held_out.get(case.id), fitted_on=fitted_on)
    return scored


class _Times(NamedTuple):
    tpot: float
    ttft: float | None


def _times(case: InferenceCase, applied: Calibrated, system: System) -> _Times:
    """Computed times of a case, as the evaluator of inference computes them."""
    served = serve(
        transformer(case.dims),
        case.plan,
        machine(system, applied.efficiency, case.dtype),
        serving_of(applied),
        schedule="continuous" if case.interrupted else "static",
    )
    return _Times(float(served.time_per_token), float(served.prefill.total))


def _scored(
    case: InferenceCase, applied: Calibrated, dataset: str, held_out: _Times | None, *, fitted_on: bool
) -> list[Scored]:
    """The scores of a case: its time per output token, and its time to first token where it has one."""
    system = case.system
    ideal, value = _times(case, Calibrated(), system), _times(case, applied, system)
    slow, fast = (_times(case, applied, end) for end in (system.ends or (system, system)))
    if applied.name and not fitted_on:
        held_out = value
    spread = (applied.low, applied.high)
    scores = []
    what: Literal["tpot", "ttft"]
    for what, measured, (low, high) in (
        ("tpot", case.tpot, spread),
        ("ttft", case.ttft, applied.ttft_interval or spread),
    ):
        if measured:
            scores.append(
                Scored(
                    dataset=dataset,
                    id=case.id,
                    what=what,
                    measured=measured,
                    ideal=getattr(ideal, what),
                    calibrated=getattr(value, what) if applied.name else None,
                    held_out=None if held_out is None else getattr(held_out, what),
                    low=getattr(fast, what) * low if applied.name else None,
                    high=getattr(slow, what) * high if applied.name else None,
                )
            )
    return scores


def _software(graph: Graph, applied: Calibrated) -> str:
    return next((n.spec.software for n in graph.of(Calibration) if n.name == applied.name), "")


def _held_out(cases: Sequence[InferenceCase]) -> dict[str, _Times]:
    """For each row its times by a fit to other models, among the rows of the same software."""
    groups: dict[str, list[InferenceCase]] = {}
    for case in cases:
        groups.setdefault(case.software, []).append(case)
    times: dict[str, _Times] = {}
    for group in groups.values():
        if len(group) < LEAST or len({c.model for c in group}) < MODELS:
            continue
        fitted = fit_inference(group)
        ttft_errors = iter([] if fitted.ttft is None else fitted.ttft.held_out)
        for case, tpot_error in zip(group, fitted.held_out, strict=True):
            ttft_error = next(ttft_errors, None) if case.ttft else None
            times[case.id] = _Times(
                case.tpot * (1.0 + float(tpot_error)),
                None if ttft_error is None else case.ttft * (1.0 + float(ttft_error)),
            )
    return times


def score_collectives(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Scores of every row of a collective; calibrated times are those of a fit to the rows of its kind and system."""
    return _score_rows(list(collective_rows(graph, rows)), dataset, "collective")


def score_matmul(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Scores of every row of a matrix multiplication; calibrated times are of a fit to the rows of its chip and dtype."""
    return _score_rows(list(matmul_rows(graph, rows)), dataset, "matmul")


def _score_rows(
    rows: Sequence[Row | Skipped], dataset: str, what: Literal["collective", "matmul"]
) -> list[Scored | Skipped]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if isinstance(row, Row):
            groups.setdefault(row.group, []).append(row)
    scored: list[Scored | Skipped] = [row for row in rows if isinstance(row, Skipped)]
    for group in groups.values():
        fitted = fit_rows(group, what) if find_spec("scipy") else None
        low, high = (1.0, 1.0) if fitted is None else fitted.interval(np.array([r.measured for r in group]))
        for i, row in enumerate(group):
            value = None if fitted is None else float(fitted.calibrated[i])
            scored.append(
                Scored(
                    dataset=dataset,
                    id=row.id,
                    what=what,
                    measured=row.measured,
                    ideal=row.ideal,
                    calibrated=value,
                    held_out=None if fitted is None else float(fitted.held_out[i]),
                    low=None if value is None else value * low,
                    high=None if value is None else value * high,
                )
            )
    return scored
