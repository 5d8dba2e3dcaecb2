"""Measurements beside what is computed for them: what accuracy is told from."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from attrs import frozen

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fit_inference import LEAST, MODELS, fit_inference
from trnspec.perf.calibration.measured_collectives import Row, collective_rows, fit_rows, matmul_rows
from trnspec.perf.calibration.measured_inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured_training import Skipped
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of
from trnspec.perf.lowering.machine import machine
from trnspec.perf.serving.request import serve
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured_training import Record
    from trnspec.perf.lowering.system import System


@frozen(kw_only=True)
class Scored:
    """One measurement, and what is computed for it.  Times are in s.

    Attributes:
        dataset: The table it is from.
        id: What its row is called.
        what: What was measured: a training step, the memory of a rank in B, the time per output token, the time to
            first token, a collective, or a matrix multiplication.
        measured: What was measured.
        ideal: The same computed from published figures alone.
        calibrated: The same computed with a calibration; none where there is none.
        held_out: The same computed with a fit that had not seen the row; none where too few others are left.
        low: The lower end of the interval of the calibrated answer; none without one.
        high: Its upper end.
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
        """True where the calibration was fitted to other rows, so that its own answer is one to a row left out."""
        return self.held_out is not None and self.held_out == self.calibrated


def score_inference(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto", refit: bool = True
) -> list[Scored | Skipped]:
    """Every row of inference: its time per output token and, where it has one, its time to first token.

    Where a software has rows of several models, a row is computed also with a fit to those of other models. A
    calibration of other software has not seen the row either.

    Args:
        graph: The catalog.
        rows: The rows of the table.
        dataset: What the table is called.
        calibration: The name of a calibration for all rows, ``none``, or ``auto`` for that of each row's chip.
        refit: Fit to the other models, a model at a time; needs scipy, without which it is left out.

    Raises:
        UsageError: The calibration is of something else.
        UnknownNameError: There is none of that name.
    """
    found = list(inference_cases(graph, rows))
    cases = [c for c in found if isinstance(c, InferenceCase)]
    held = _held(cases) if refit and find_spec("scipy") else {}
    scored: list[Scored | Skipped] = [c for c in found if isinstance(c, Skipped)]
    for case in cases:
        known = calibrated(graph, case.system.chip, "inference", calibration)
        seen = _software(graph, known) == case.software
        scored += _scored(case, known, dataset, held.get(case.id), seen=seen)
    return scored


class _Times(NamedTuple):
    token: float
    first: float


def _times(case: InferenceCase, known: Calibrated, system: System) -> _Times:
    """What is computed for a case, as the evaluator of inference does."""
    served = serve(
        transformer(case.dims), case.plan, machine(system, known.efficiency, case.dtype), serving_of(known),
        schedule="continuous" if case.interrupted else "static",
    )  # fmt: skip
    return _Times(float(served.time_per_token), float(served.prefill.total))


def _scored(
    case: InferenceCase, known: Calibrated, dataset: str, held: tuple[float, float | None] | None, *, seen: bool
) -> list[Scored]:
    system = case.system
    ideal, value = _times(case, Calibrated(), system), _times(case, known, system)
    slow, fast = (_times(case, known, end) for end in (system.ends or (system, system)))
    first = known.ttft_interval or (known.low, known.high)
    told = held or (None, None)
    if known.name and not seen:
        told = (value.token, value.first)
    token = Scored(
        dataset=dataset, id=case.id, what="tpot", measured=case.token, ideal=ideal.token,
        calibrated=value.token if known.name else None, held_out=told[0],
        low=fast.token * known.low if known.name else None, high=slow.token * known.high if known.name else None,
    )  # fmt: skip
    if not case.first:
        return [token]
    return [
        token,
        Scored(
            dataset=dataset, id=case.id, what="ttft", measured=case.first, ideal=ideal.first,
            calibrated=value.first if known.name else None, held_out=told[1],
            low=fast.first * first[0] if known.name else None, high=slow.first * first[1] if known.name else None,
        ),
    ]  # fmt: skip


def _software(graph: Graph, known: Calibrated) -> str:
    return next((n.spec.software for n in graph.of(Calibration) if n.name == known.name), "")


def _held(cases: Sequence[InferenceCase]) -> dict[str, tuple[float, float | None]]:
    """For each row the times of a fit that had not seen its model, among the rows of the same software."""
    groups: dict[str, list[InferenceCase]] = {}
    for case in cases:
        groups.setdefault(case.software, []).append(case)
    found: dict[str, tuple[float, float | None]] = {}
    for some in groups.values():
        if len(some) < LEAST or len({c.model for c in some}) < MODELS:
            continue
        fitted = fit_inference(some)
        firsts = iter([] if fitted.first is None else fitted.first.held_out)
        for case, error in zip(some, fitted.held_out, strict=True):
            off = next(firsts, None) if case.first else None
            found[case.id] = (
                case.token * (1.0 + float(error)),
                None if off is None else case.first * (1.0 + float(off)),
            )
    return found


def score_collectives(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Every row of a collective; the calibrated time is that of a fit to the rows of its kind and system."""
    return _few(list(collective_rows(graph, rows)), dataset, "collective")


def score_matmul(graph: Graph, rows: list[Record], dataset: str) -> list[Scored | Skipped]:
    """Every row of a matrix multiplication; the calibrated time is that of a fit to the rows of its chip and type."""
    return _few(list(matmul_rows(graph, rows)), dataset, "matmul")


def _few(found: Sequence[Row | Skipped], dataset: str, what: Literal["collective", "matmul"]) -> list[Scored | Skipped]:
    groups: dict[str, list[Row]] = {}
    for row in found:
        if isinstance(row, Row):
            groups.setdefault(row.group, []).append(row)
    scored: list[Scored | Skipped] = [row for row in found if isinstance(row, Skipped)]
    for some in groups.values():
        fitted = fit_rows(some, what) if find_spec("scipy") else None
        low, high = (1.0, 1.0) if fitted is None else fitted.interval(np.array([r.measured for r in some]))
        for i, row in enumerate(some):
            value = None if fitted is None else float(fitted.calibrated[i])
            scored.append(
                Scored(
                    dataset=dataset, id=row.id, what=what, measured=row.measured, ideal=row.ideal, calibrated=value,
                    held_out=None if fitted is None else float(fitted.held_out[i]),
                    low=None if value is None else value * low, high=None if value is None else value * high,
                )
            )  # fmt: skip
    return scored
