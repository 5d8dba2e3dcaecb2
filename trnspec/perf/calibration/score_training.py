"""Measured training steps beside what is computed for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fit_training import fit
from trnspec.perf.calibration.measured_training import Case, Skipped, training_cases
from trnspec.perf.calibration.score import Scored
from trnspec.perf.lowering.calibrated import Calibrated, calibrated
from trnspec.perf.lowering.efficiency import IDEAL
from trnspec.perf.lowering.machine import machine
from trnspec.perf.training.estimator import peak
from trnspec.perf.training.step import step
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured_training import Record

_ASSUMED = "microbatch: 1"
"""What a case tells where its row leaves out what memory depends on most."""

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
    held = _unseen(graph, cases, chosen, dataset) | (_held(cases, chosen, dataset, graph) if refit else {})
    scored: list[Scored | Skipped] = [c for c in found if isinstance(c, Skipped)]
    scored += [_scored(case, known, dataset, held.get(case.id)) for case, known in zip(cases, chosen, strict=True)]
    for case in cases:
        if case.memory and _ASSUMED in case.assumptions:
            scored.append(Skipped(case.id, "its memory: the row does not state the microbatch"))
        elif case.memory:
            ideal = float(peak(case.dims, case.layout).total)
            scored.append(Scored(dataset=dataset, id=case.id, what="memory", measured=case.memory, ideal=ideal))
    return scored


def _chosen(graph: Graph, case: Case, dataset: str, wanted: str) -> Calibrated:
    chip = case.system.chip
    if wanted != "auto":
        return calibrated(graph, chip, "training", wanted)
    own = [n for n in graph.of(Calibration) if n.spec.chip.name == chip and n.spec.of == "training"]
    said = _words(case.source_text)
    for fits in (
        [n for n in own if n.spec.data == dataset],
        [n for n in own if _words(n.spec.software) in said],
    ):
        if fits:
            return calibrated(graph, chip, "training", max(fits, key=lambda n: n.spec.spread.rows).name)
    return calibrated(graph, chip, "training", "auto")


def _words(text: str) -> str:
    """A text in small letters and single spaces: ``megatron bridge`` is in a source called Megatron-Bridge."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


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
        dataset=dataset, id=case.id, what="step", measured=case.seconds, ideal=ideal, calibrated=value, held_out=held,
        low=fast * known.low, high=slow * known.high,
    )  # fmt: skip


def _unseen(graph: Graph, cases: Sequence[Case], chosen: Sequence[Calibrated], dataset: str) -> dict[str, float]:
    """For each row whose calibration was fitted on other tables alone its time: no fit has seen it."""
    return {
        case.id: _seconds(case, known)
        for case, known in zip(cases, chosen, strict=True)
        if known.name and dataset not in _data(graph, known)
    }


def _data(graph: Graph, known: Calibrated) -> list[str]:
    """The tables that a calibration was fitted on."""
    return next((n.spec.data.split(", ") for n in graph.of(Calibration) if n.name == known.name), [])


def _seconds(case: Case, known: Calibrated) -> float:
    numbers = machine(case.system, known.efficiency, case.dtype)
    return float(step(transformer(case.dims), case.layout.plan(), numbers).total)


def _held(cases: Sequence[Case], chosen: Sequence[Calibrated], dataset: str, graph: Graph) -> dict[str, float]:
    """For each row the time of a fit that had not seen its model, among the rows of the same calibration."""
    groups: dict[str, list[Case]] = {}
    for case, known in zip(cases, chosen, strict=True):
        if not known.name or dataset in _data(graph, known):
            groups.setdefault(known.name or case.system.chip, []).append(case)
    found: dict[str, float] = {}
    for some in groups.values():
        if len(some) >= LEAST:
            fitted = fit(some)
            found |= {c.id: c.seconds * (1.0 + float(e)) for c, e in zip(some, fitted.held_out, strict=True)}
    return found
