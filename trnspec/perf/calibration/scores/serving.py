"""Scores of serving with requests in flight: measured times next to ideal and calibrated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from trnspec.perf.calibration.chosen import Chosen
from trnspec.perf.calibration.fits.serving import held_out, solved
from trnspec.perf.calibration.measured.serving import Runs, ServingCase, on_gpu, serving_cases
from trnspec.perf.calibration.measured.tables import Skipped
from trnspec.perf.calibration.scores.inference import refit_inference, score_inference
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.lowering.calibrated import serving_of
from trnspec.perf.serving.forward_pass import IDEAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record
    from trnspec.perf.lowering.calibrated import Calibrated

_PHASES: tuple[Part, Part] = ("tpot", "ttft")


def score_serving(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> list[Scored | Skipped]:
    """Scores of every row of serving: of GPUs with requests in flight, of others as :func:`score_inference` has them.

    The interval includes both widths of the KV cache where a row does not state its dtype.
    """
    others = [{**row, "kind": ""} if on_gpu(row) else row for row in rows]
    scored = list(score_inference(graph, others, dataset, calibration=calibration))
    read = serving_cases(graph, rows)
    scored += [c for c in read if isinstance(c, Skipped)]
    chosen = Chosen(graph, "inference", calibration)
    for applied, some in chosen.groups([c for c in read if isinstance(c, ServingCase)]):
        cases = [case for case, _ in some]
        ideal, value = _bounds(cases), _times(cases, applied)
        ends = [_times([_at_end(case, end) for case in cases], applied) for end in (0, 1)]
        unstated = np.array([not case.cache_known for case in cases])
        serving = serving_of(applied)
        other = Runs.of(cases, applied.efficiency).with_other_cache(unstated).times(serving)
        possible = [*ends, value, {"tpot": other.tpot, "ttft": other.ttft}]
        for i, (case, known) in enumerate(some):
            spread = (known.low, known.high)
            for part, measured, (low, high) in (
                (_PHASES[0], case.tpot, spread),
                (_PHASES[1], case.ttft, known.ttft_interval or spread),
            ):
                if not measured:
                    continue
                each = Scored(**chosen.about(case, dataset), part=part, measured=measured, ideal=float(ideal[part][i]))
                if known.name:
                    values = [float(p[part][i]) for p in possible]
                    each = evolve(
                        each, calibrated=float(value[part][i]), low=min(values) * low, high=max(values) * high,
                        kind=known.evidence.kind, calibration=known.name,
                    )  # fmt: skip
                scored.append(each)
    return scored


def _times(cases: Sequence[ServingCase], applied: Calibrated) -> dict[str, Any]:
    times = Runs.of(cases, applied.efficiency).times(serving_of(applied))
    return {"tpot": times.tpot, "ttft": times.ttft}


def _bounds(cases: Sequence[ServingCase]) -> dict[str, Any]:
    """Lower bounds: a decoding step with as many requests as fit, without prompts; and a prompt that is served alone."""
    data = Runs.of(cases)
    alone = evolve(data, requests=np.ones(len(cases)))
    return {"tpot": data.times(IDEAL).step, "ttft": alone.times(IDEAL).ttft}


def _at_end(case: ServingCase, end: int) -> ServingCase:
    return evolve(case, system=(case.system.ends or (case.system,) * 2)[end])


def refit_serving(graph: Graph, rows: list[Record], holdout: Holdout = "model") -> dict[tuple[str, Part], float]:
    """Times by fits to other models, or to other chips."""
    times = refit_inference(graph, [row for row in rows if not on_gpu(row)], holdout)
    cases = [c for c in serving_cases(graph, rows) if isinstance(c, ServingCase)]
    groups = [c.system.chip if holdout == "chip" else c.model for c in cases]
    if len(set(groups)) > 1:
        data = Runs.of(cases)
        both = held_out(cases, data, groups, solved(cases, data))
        for part, values in zip(_PHASES, both, strict=True):
            times |= {(c.id, part): float(v) for c, v in zip(cases, values, strict=True)}
    return times
