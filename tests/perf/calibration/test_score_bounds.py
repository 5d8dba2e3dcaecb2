"""No published measurement is faster than its ideal time: every table of the catalog, row by row."""

import functools
from pathlib import Path

import pytest

from tests.support.engine import everything
from trnspec.loading.files import shipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.score import AccuracyRow, score

TABLES = sorted((shipped() / "measured").glob("*.csv"))


@functools.cache
def scored(table: Path) -> list[AccuracyRow]:
    """The rows of a table that can be computed, with their ideal times."""
    scores = score(everything(), {table.name: records(table, everything())}, calibration="none")
    return [s for s in scores if not s.skipped and s.part != "memory"]


@pytest.mark.parametrize("table", TABLES, ids=[t.stem for t in TABLES])
def test_no_measured_row_is_faster_than_its_bound(table: Path) -> None:
    assert [] == [(s.id, s.part, s.measured, s.ideal) for s in scored(table) if s.error(s.ideal) > 0.0]


def test_the_tables_have_rows() -> None:
    """Most tables can be computed; a reader that skips all rows would make the test above empty."""
    assert {t.stem for t in TABLES if len(scored(t)) > 10} >= {
        *("collectives_gpu", "collectives_nccl", "collectives_neuron", "gemm_gpu", "inference_neuron"),
        *("attention_prefill_gpu", "attention_decode_gpu", "moe_gpu", "serving_gpu", "inference_h100_reference"),
        *(
            "inference_neuron_2026",
            "training_a100_vtrain",
            "training_megatron_bridge",
            "training_mlperf",
            "training_mpt",
        ),
    }
