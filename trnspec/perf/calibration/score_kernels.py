"""Scores of matrix multiplications."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve

from trnspec.perf.calibration.measured_collectives import Row, fit_rows, matmul_rows
from trnspec.perf.calibration.measurements import Skipped
from trnspec.perf.calibration.score import Scored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measurements import Record


def score_matmul(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> list[Scored | Skipped]:
    """Scores of every row of a matrix multiplication; calibrated times are of a fit to the rows of its chip and dtype."""
    return _score_rows(list(matmul_rows(graph, rows)), dataset, calibration)


def _score_rows(rows: Sequence[Row | Skipped], dataset: str, calibration: str) -> list[Scored | Skipped]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if isinstance(row, Row):
            groups.setdefault(row.group, []).append(row)
    scored: list[Scored | Skipped] = [row for row in rows if isinstance(row, Skipped)]
    fits = find_spec("scipy") and calibration != "none"
    for group in groups.values():
        fitted = fit_rows(group) if fits else None
        low, high = (1.0, 1.0) if fitted is None else fitted.interval(np.array([r.measured for r in group]))
        for i, row in enumerate(group):
            each = Scored(dataset=dataset, id=row.id, part="gemm", measured=row.measured, ideal=row.ideal)
            if fitted is not None:
                value = float(fitted.calibrated[i])
                each = evolve(
                    each, calibrated=value, held_out=float(fitted.held_out[i]), low=value * low, high=value * high,
                    kind="estimate", calibration="its table", seen=True,
                )  # fmt: skip
            scored.append(each)
    return scored
