"""Scores of training: measured step times and memory next to ideal, calibrated and held-out computed ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fit_range import inputs_of
from trnspec.perf.calibration.fit_training import fit
from trnspec.perf.calibration.measured_training import Case, training_cases
from trnspec.perf.calibration.measurements import Skipped
from trnspec.perf.calibration.score import Scored
from trnspec.perf.lowering.calibrated import Calibrated, calibrated
from trnspec.perf.lowering.efficiency import IDEAL, Efficiency
from trnspec.perf.lowering.machine import machine
from trnspec.perf.training.estimator import peak
from trnspec.perf.training.step import step
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measurements import Record
    from trnspec.perf.lowering.system import System

_ASSUMED = "microbatch: 1"
"""The assumption of rows that do not state the microbatch, on which memory depends most."""

LEAST = 5
"""Least number of rows of a calibration for which held-out fits are computed."""


def score_training(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto", refit: bool = False
) -> list[Scored | Skipped]:
    """Scores of every row of training: its step time and, where it has one, its memory.

    Args:
        graph: The catalog.
        rows: The rows of the table.
        dataset: Name of the table.
        calibration: Name of a calibration for all rows, ``none``, or ``auto``: for each row that of its chip which was
            fitted on this table, else one whose software the row names, else the one with the most rows.
        refit: Also compute each row with a fit to the others, one model at a time; takes a minute per thousand rows.

    Raises:
        UsageError: A calibration is for inference, or ``refit`` is set without scipy.
    """
    cases_and_skipped = list(training_cases(graph, rows))
    cases = [c for c in cases_and_skipped if isinstance(c, Case)]
    calibrations = [_calibration(graph, case, dataset, calibration).at(inputs_of(case), case.dtype) for case in cases]
    held_out = _unseen(graph, cases, calibrations, dataset)
    if refit:
        held_out |= _refitted(graph, cases, calibrations, dataset)
    scored: list[Scored | Skipped] = [c for c in cases_and_skipped if isinstance(c, Skipped)]
    scored += [
        _scored(case, applied, dataset, held_out.get(case.id))
        for case, applied in zip(cases, calibrations, strict=True)
    ]
    for case in cases:
        if case.memory and _ASSUMED in case.assumptions:
            scored.append(Skipped(case.id, "its memory: the row does not state the microbatch"))
        elif case.memory:
            ideal = float(peak(case.dims, case.layout, case.runtime).total)
            scored.append(Scored(dataset=dataset, id=case.id, what="memory", measured=case.memory, ideal=ideal))
    return scored


def _calibration(graph: Graph, case: Case, dataset: str, name: str) -> Calibrated:
    chip = case.system.chip
    if name != "auto":
        return calibrated(graph, chip, "training", name)
    own = [n for n in graph.of(Calibration) if n.spec.chip.name == chip and n.spec.of == "training"]
    text = _normalized(case.source_text)
    for matches in (
        [n for n in own if n.spec.data == dataset],
        [n for n in own if _normalized(n.spec.software) in text],
    ):
        if matches:
            return calibrated(graph, chip, "training", max(matches, key=lambda n: n.spec.spread.rows).name)
    return calibrated(graph, chip, "training", "auto")


def _normalized(text: str) -> str:
    """A text in lower case and single spaces: ``megatron bridge`` is in a source called Megatron-Bridge."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def _step_time(case: Case, system: System, efficiency: Efficiency) -> float:
    """The computed time of a step [s]."""
    return float(step(transformer(case.dims), case.layout.plan(), machine(system, efficiency, case.dtype)).total)


def _scored(case: Case, applied: Calibrated, dataset: str, held_out: float | None) -> Scored:
    system, efficiency = case.system, applied.efficiency
    ideal = _step_time(case, system, IDEAL)
    if not applied.name:
        return Scored(dataset=dataset, id=case.id, what="step", measured=case.seconds, ideal=ideal)
    slow, fast = (_step_time(case, end, efficiency) for end in (system.ends or (system, system)))
    return Scored(
        dataset=dataset,
        id=case.id,
        what="step",
        measured=case.seconds,
        ideal=ideal,
        calibrated=_step_time(case, system, efficiency),
        held_out=held_out,
        low=fast * applied.low,
        high=slow * applied.high,
    )


def _unseen(graph: Graph, cases: Sequence[Case], calibrations: Sequence[Calibrated], dataset: str) -> dict[str, float]:
    """Step times of the rows whose calibration was fitted on other tables only."""
    return {
        case.id: _step_time(case, case.system, applied.efficiency)
        for case, applied in zip(cases, calibrations, strict=True)
        if applied.name and dataset not in _tables(graph, applied)
    }


def _tables(graph: Graph, applied: Calibrated) -> list[str]:
    """The tables that a calibration was fitted on."""
    return next((n.spec.data.split(", ") for n in graph.of(Calibration) if n.name == applied.name), [])


def _refitted(
    graph: Graph, cases: Sequence[Case], calibrations: Sequence[Calibrated], dataset: str
) -> dict[str, float]:
    """Step times by a fit to other models, among the rows of the same calibration."""
    groups: dict[str, list[Case]] = {}
    for case, applied in zip(cases, calibrations, strict=True):
        if not applied.name or dataset in _tables(graph, applied):
            groups.setdefault(applied.name or case.system.chip, []).append(case)
    times: dict[str, float] = {}
    for group in groups.values():
        if len(group) >= LEAST:
            fitted = fit(group)
            times |= {c.id: c.seconds * (1.0 + float(e)) for c, e in zip(group, fitted.held_out, strict=True)}
    return times
