"""Scores of serving with requests in flight: measured times next to ideal and calibrated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

from trnspec.perf.calibration.chosen import Chosen, at_end
from trnspec.perf.calibration.fits.serving import held_out, solved
from trnspec.perf.calibration.measured.serving import Runs, ServingCase, on_gpu, serving_cases
from trnspec.perf.calibration.measured.tables import Skipped
from trnspec.perf.calibration.scores.inference import refit_inference, score_inference
from trnspec.perf.lowering.calibrated import serving_of
from trnspec.perf.serving.forward_pass import IDEAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.chosen import Predicted
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record
    from trnspec.perf.calibration.scores.score import Scored
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
    known = [c for c in read if isinstance(c, ServingCase)]
    return scored + [each for _, each in chosen.scores(known, dataset, _predicted)]


def _predicted(cases: Sequence[ServingCase], applied: Calibrated) -> Predicted:
    value = _times(Runs.of(cases, applied.efficiency), applied)
    ends = [_times(Runs.of([at_end(case, end) for case in cases], applied.efficiency), applied) for end in (0, 1)]
    unstated = np.array([not case.cache_known for case in cases])
    other = _times(Runs.of(cases, applied.efficiency).with_other_cache(unstated), applied)
    spans = {part: np.array([each[part] for each in (*ends, value, other)]) for part in _PHASES}
    return {
        part: (ideal, value[part], spans[part].min(axis=0), spans[part].max(axis=0))
        for part, ideal in _bounds(cases).items()
    }


def _times(data: Runs, applied: Calibrated) -> dict[Part, Any]:
    times = data.times(serving_of(applied))
    return {"tpot": times.tpot, "ttft": times.ttft}


def _bounds(cases: Sequence[ServingCase]) -> dict[Part, Any]:
    """Lower bounds: a decoding step with as many requests as fit, without prompts; and a prompt that is served alone."""
    data = Runs.of(cases)
    alone = evolve(data, requests=np.ones(len(cases)))
    return {"tpot": data.times(IDEAL).step, "ttft": alone.times(IDEAL).ttft}


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
