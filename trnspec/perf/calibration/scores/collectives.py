"""Scores of measured collectives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import collective_inputs
from trnspec.perf.calibration.fits.collectives import BASE, fit_collectives
from trnspec.perf.calibration.measured.collectives import CollectiveCase, collective_cases
from trnspec.perf.calibration.measured.tables import Skipped
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.collectives.library import launched, timed
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, nearest

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record


def score_collectives(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> list[Scored | Skipped]:
    """Scores of every row of a collective, each with the calibration of its chip and library."""
    known: dict[tuple[str, str], Calibrated] = {}
    scored: list[Scored | Skipped] = []
    for case in collective_cases(graph, rows):
        if isinstance(case, Skipped):
            scored.append(case)
            continue
        key = case.system.chip, case.framework
        if key not in known:
            known[key] = calibrated(graph, case.system.chip, "collectives", calibration, case.framework)
        scored.append(_scored(case, known[key], dataset))
    return scored


def _scored(case: CollectiveCase, known: Calibrated, dataset: str) -> Scored:
    score = Scored(
        dataset=dataset, id=case.id, part="collective", measured=case.seconds, ideal=case.ideal, chip=case.system.chip,
        framework=case.framework,
    )  # fmt: skip
    time = computed(case, known)
    if time is None:
        return score
    at = known.of_collective(case.kind, collective_inputs(case.system, case.size, case.ranks))
    low, high = time * at.low, time * at.high
    return evolve(score, calibrated=time, low=low, high=high, kind=at.evidence.kind, calibration=known.name)


def computed(case: CollectiveCase, known: Calibrated) -> float | None:
    """The time of a row by a calibration [s]; ``None`` where that has no protocol for it."""
    library = known.library
    if library is None:
        return None
    every = timed(library, case.machine, case.kind, case.ranks, 1.0, case.size)
    usable = [t for t in every if case.can_use(t.protocol)]
    if not usable:
        return None
    return float(launched(library, case.launch, usable[0].time, case.size, case.machine.seconds_per_byte))


def refit_collectives(graph: Graph, rows: list[Record], holdout: Holdout = "model") -> dict[tuple[str, Part], float]:
    """The value of each row by a fit without the rows of its size, or by that of the nearest other chip, without its own."""
    cases = [c for c in collective_cases(graph, rows) if isinstance(c, CollectiveCase)]
    values: dict[tuple[str, Part], float] = {}
    for framework in sorted({c.framework for c in cases}):
        used = [c for c in cases if c.framework in {framework, BASE.get(framework)}]
        try:
            fits = fit_collectives(used, framework, partial(nearest, graph))
        except UsageError:
            continue
        for fitted in fits.values():
            errors = fitted.elsewhere_errors if holdout == "chip" else fitted.held_out
            for case, error in zip(fitted.cases, errors, strict=len(errors) > 0):
                values[case.id, "collective"] = case.seconds * (1.0 + float(error))
    return values
