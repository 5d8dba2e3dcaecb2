"""No published measurement is faster than its ideal time: every table of the catalog, row by row."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from engine_catalogs import everything

from trnspec.loading.files import shipped
from trnspec.perf.calibration.measurements import records
from trnspec.perf.calibration.score import Scored, score_collectives, score_inference, score_matmul
from trnspec.perf.calibration.score_training import score_training

SCORES = {
    "train": lambda graph, rows, name: score_training(graph, rows, name, calibration="none"),
    "infer": lambda graph, rows, name: score_inference(graph, rows, name, calibration="none", refit=False),
    "collective": score_collectives,
    "matmul": score_matmul,
}
TABLES = sorted((shipped() / "measured").glob("*.csv"))


@functools.cache
def scored(table: Path) -> list[Scored]:
    """The rows of a table that can be computed, with their ideal times."""
    rows = records(table)
    scores = (
        s for kind in {row["kind"] for row in rows} & {*SCORES} for s in SCORES[kind](everything(), rows, table.name)
    )
    return [s for s in scores if isinstance(s, Scored) and s.what != "memory"]


@pytest.mark.parametrize("table", TABLES, ids=[t.stem for t in TABLES])
def test_no_measured_row_is_faster_than_its_bound(table: Path) -> None:
    assert [] == [(s.id, s.what, s.measured, s.ideal) for s in scored(table) if s.measured < s.ideal]


def test_the_tables_have_rows() -> None:
    """Most tables can be computed; a reader that skips all rows would make the test above empty."""
    assert {t.stem for t in TABLES if len(scored(t)) > 10} >= {
        *("collectives_gpu", "collectives_nccl", "collectives_neuron", "gemm_gpu", "inference_neuron"),
        *(
            "inference_neuron_2026",
            "training_a100_vtrain",
            "training_megatron_bridge",
            "training_mlperf",
            "training_mpt",
        ),
    }
