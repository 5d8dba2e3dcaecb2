"""Scores of training: measured step times and memory next to ideal and calibrated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.chosen import Chosen
from trnspec.perf.calibration.fits.training import batch, fit
from trnspec.perf.calibration.measured.tables import Skipped, row_hashes
from trnspec.perf.calibration.measured.training import Case, training_cases
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.lowering.system import IDEAL
from trnspec.perf.training.estimator import extremes
from trnspec.perf.work.memory import peak

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.chosen import Predicted
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record
    from trnspec.perf.lowering.calibrated import Calibrated

_ASSUMED = "microbatch: 1"
"""The assumption of rows that do not state the microbatch, on which memory depends most."""

LEAST = 5
"""Least number of rows of a fit from which rows are held out."""


def score_training(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> list[Scored | Skipped]:
    """Scores of every row of training: its step time and, where it has one, its memory."""
    read = list(training_cases(graph, rows))
    scored: list[Scored | Skipped] = [c for c in read if isinstance(c, Skipped)]
    chosen = Chosen(graph, "training", calibration)
    for case, step in chosen.scores([c for c in read if isinstance(c, Case)], dataset, _times):
        scored.append(step)
        if case.memory and _ASSUMED in case.assumptions:
            scored.append(Skipped(case.id, "its memory: the row does not state the microbatch"))
        elif case.memory:
            total = float(peak(case.dims, case.layout, case.runtime).total)
            about = chosen.about(case, dataset)
            scored.append(Scored(**about, part="memory", measured=case.memory, ideal=total))
    return scored


def _times(cases: Sequence[Case], applied: Calibrated) -> Predicted:
    ideal = batch(cases).times(IDEAL)
    return {"step": (ideal, *(_spans(cases, applied) if applied.name else (ideal,) * 3))}


def _spans(cases: Sequence[Case], applied: Calibrated) -> tuple[Any, Any, Any]:
    """Computed times of a step [s], and the least and the largest over the figures' intervals and the open settings."""
    value = batch(cases).times(applied.efficiency)
    low, high = np.array(value), np.array(value)
    # A row that leaves a setting open is computed with each of its values.
    layouts = [(i, layout) for i, case in enumerate(cases) for layout in (case.layout, *case.alternatives)]
    rows = np.array([i for i, _ in layouts])
    for end in (0, 1):
        at_end = [
            evolve(cases[i], layout=layout, system=extremes(cases[i].system, applied)[end]) for i, layout in layouts
        ]
        times = batch(at_end).times(applied.efficiency)
        np.minimum.at(low, rows, times)
        np.maximum.at(high, rows, times)
    return value, low, high


def refit_training(graph: Graph, rows: list[Record], holdout: Holdout = "model") -> dict[tuple[str, Part], float]:
    """Step times by fits to other models, or to other chips."""
    cases = [c for c in training_cases(graph, rows) if isinstance(c, Case)]
    if len(cases) < LEAST or (holdout == "chip" and len({c.system.chip for c in cases}) == 1):
        return {}
    fitted = fit(cases, holdout, _eras(graph, rows))
    return {(c.id, "step"): c.seconds * (1.0 + float(e)) for c, e in zip(cases, fitted.held_out, strict=True)}


def _eras(graph: Graph, rows: list[Record]) -> tuple[str, ...]:
    """The eras of the calibrations that were fitted to some rows, where there are several."""
    hashes = {each for row in rows for each in row_hashes(row)}
    fitted = [n.spec for n in graph.of(Calibration) if n.spec.rows and not hashes.isdisjoint(n.spec.rows.split())]
    eras = sorted({spec.era for spec in fitted if spec.era})
    return tuple(eras) if len(eras) > 1 else ()
