"""Measured training steps beside what is computed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.model.calibration import Calibration
from trnspec.perf.calibrated import Calibrated, calibrated
from trnspec.perf.efficiency import IDEAL
from trnspec.perf.estimate import peak
from trnspec.perf.fit import fit
from trnspec.perf.machine import machine
from trnspec.perf.measured import Case, Skipped, training_cases
from trnspec.perf.score import Scored
from trnspec.perf.training import step
from trnspec.perf.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph import Graph
    from trnspec.perf.measured import Record

LEAST = 5
"""Rows of one calibration below which leaving some out says nothing."""


def score_training(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto", refit: bool = False
) -> list[Scored | Skipped]:
    """Every row of training as a score, or as one that is skipped.

    Args:
        graph: The catalog.
        rows: The rows of the table.
        dataset: What the table is called.
        calibration: The name of a calibration for all rows, ``none``, or ``auto``: for each row that of its chip which
            was fitted on this table, else one whose software the row names, else the one with the most rows.
        refit: Compute each row also with a fit to the others, a model at a time; takes a minute for a thousand rows.

    Raises:
        UsageError: A calibration is of something else, or ``refit`` is asked for without scipy.
    """
    found = list(training_cases(graph, rows))
    cases = [c for c in found if isinstance(c, Case)]
    chosen = [_chosen(graph, case, dataset, calibration) for case in cases]
    held = _held(cases, chosen) if refit else {}
    scored: list[Scored | Skipped] = [c for c in found if isinstance(c, Skipped)]
    scored += [_scored(case, known, dataset, held.get(case.id)) for case, known in zip(cases, chosen, strict=True)]
    scored += [
        Scored(dataset=dataset, id=c.id, what="memory", measured=c.memory, ideal=float(peak(c.dims, c.layout).total))
        for c in cases
        if c.memory
    ]
    return scored


def _chosen(graph: Graph, case: Case, dataset: str, wanted: str) -> Calibrated:
    chip = case.system.chip
    if wanted != "auto":
        return calibrated(graph, chip, "training", wanted)
    own = [n for n in graph.of(Calibration) if n.spec.chip.name == chip and n.spec.of == "training"]
    said = case.said.lower()
    for fits in (
        [n for n in own if n.spec.data == dataset],
        [n for n in own if n.spec.software.split()[0].lower() in said],
    ):
        if fits:
            return calibrated(graph, chip, "training", max(fits, key=lambda n: n.spec.spread.rows).name)
    return calibrated(graph, chip, "training", "auto")


def _scored(case: Case, known: Calibrated, dataset: str, held: float | None) -> Scored:
    model, plan = transformer(case.dims), case.layout.plan()
    ideal = float(step(model, plan, machine(case.system, IDEAL, case.dtype)).total)
    if not known.name:
        return Scored(dataset=dataset, id=case.id, what="step", measured=case.seconds, ideal=ideal)
    system, efficiency = case.system, known.efficiency
    value = float(step(model, plan, machine(system, efficiency, case.dtype)).total)
    slow, fast = (
        float(step(model, plan, machine(end, efficiency, case.dtype)).total)
        for end in (system.ends or (system, system))
    )
    return Scored(
        dataset=dataset, id=case.id, what="step", measured=case.seconds, ideal=ideal, calibrated=value, held=held,
        low=fast * known.low, high=slow * known.high,
    )  # fmt: skip


def _held(cases: Sequence[Case], chosen: Sequence[Calibrated]) -> dict[str, float]:
    """For each row the time of a fit that had not seen its model, among the rows of the same calibration."""
    groups: dict[str, list[Case]] = {}
    for case, known in zip(cases, chosen, strict=True):
        groups.setdefault(known.name or case.system.chip, []).append(case)
    found: dict[str, float] = {}
    for some in groups.values():
        if len(some) >= LEAST:
            fitted = fit(some)
            found |= {c.id: c.seconds * (1.0 + float(e)) for c, e in zip(some, fitted.held, strict=True)}
    return found
