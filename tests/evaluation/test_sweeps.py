"""Sweeps from Python: ranges, figures as axes, and the tables that libraries read."""

from __future__ import annotations

import sys

import pytest

import trnspec
from trnspec.errors import UsageError
from trnspec.evaluation.sweeps import Sweep

CAT = trnspec.load()
NETWORK = "trn2.48xlarge.network.bandwidth"
INPUTS = {
    "model": "llama-3.1-8b",
    "on": "trn2.48xlarge*2",
    "seq": 4096,
    "global_batch": 64,
    "pp": 2,
    "calibration": "none",
}
SWEEP = trnspec.sweep("training", CAT, **INPUTS, tp="8..24:+8", vary={NETWORK: "1.6..3.2Tbps:x2"})


def test_every_row_is_the_single_call() -> None:
    """Bit for bit; 24 ranks divide no server, which is a refusal in both."""
    expected = []
    for tp in (8, 16, 24):
        for text in ("1.6 Tbps", "3.2 Tbps"):
            try:
                found = trnspec.evaluate("training", CAT, **INPUTS, tp=tp, assume={NETWORK: text})
                expected.append(({"tp": tp, NETWORK: text}, found["step_time"]))
            except trnspec.RefusalError as refusal:
                expected.append(({"tp": tp, NETWORK: text}, refusal.reason))

    assert expected == [(c, r.reason if isinstance(r, trnspec.RefusalError) else r["step_time"]) for c, r in SWEEP]
    assert "rank-count" in {answer for _, answer in expected}
    assert expected[0][1] > expected[1][1]


def test_records_are_in_base_units() -> None:
    records = SWEEP.records()

    assert [2e11, 4e11] * 3 == [record[NETWORK] for record in records]
    assert {"B/s", "s"} == {SWEEP.units[NETWORK], SWEEP.units["step_time"]}
    assert 1 == len({tuple(record) for record in records})


def test_frames(tmp_path) -> None:
    """pandas, polars and Parquet have the records, and the units where the format has a place for them."""
    parquet = pytest.importorskip("pyarrow.parquet")
    SWEEP.to_parquet(tmp_path / "sweep.parquet")
    table = parquet.read_table(tmp_path / "sweep.parquet")
    pandas = SWEEP.to_pandas()

    assert SWEEP.records() == SWEEP.to_polars().to_dicts() == table.to_pylist()
    assert [record["tp"] for record in SWEEP.records()] == list(pandas["tp"])
    assert ("training", INPUTS, SWEEP.units) == tuple(pandas.attrs[k] for k in ("evaluator", "inputs", "units"))
    assert b"s" == table.schema.field("step_time").metadata[b"unit"]
    assert b"training" == table.schema.metadata[b"evaluator"]


def test_grid() -> None:
    pytest.importorskip("xarray")
    grid = SWEEP.to_xarray()
    records = SWEEP.records()

    assert {"tp": 3, NETWORK: 2} == dict(grid.sizes)
    assert ("s", "B/s") == (grid["step_time"].attrs["units"], grid[NETWORK].attrs["units"])
    assert [r["step_time"] or "" for r in records][:4] == [float(x) for x in grid["step_time"].values.ravel()][:4]
    assert [[False] * 2, [False] * 2, [True] * 2] == grid["step_time"].isnull().values.tolist()
    assert [r["refusal"] or "" for r in records] == grid["refusal"].values.ravel().tolist()
    assert "llama-3.1-8b" == grid.attrs["model"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"tp": "8..4"}, "tp: the range '8..4' ends below"),
        ({"tp": "1..x"}, "tp: '1..x' is not a range"),
        ({"tp": []}, "tp has no values to sweep"),
        ({"tp": 8, "vary": {NETWORK: []}}, "has no values to sweep"),
        ({"tp": 8, "vary": {NETWORK: ["3.2 TB"]}}, "measures information"),
        ({"tp": 8, "vary": {NETWORK: "1..2:x2"}}, "has no unit"),
        ({"tp": 8, "vary": {"trn2.48xlarge.network.bandwith": ["1 TB/s"]}}, "network.bandwidth"),
        ({"tp": 8, "vary": {NETWORK: ["1 TB/s"]}, "assume": {NETWORK: "2 TB/s"}}, f"{NETWORK} is given twice"),
        ({"tp": 8, "vary": [NETWORK]}, "vary: a mapping is expected"),
    ],
)
def test_errors(inputs, message: str) -> None:
    with pytest.raises(trnspec.TrnspecError) as caught:
        trnspec.sweep("training", CAT, **INPUTS, **inputs)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("to_pandas", "pandas", "tables"), ("to_polars", "polars", "tables"), ("to_xarray", "xarray", "arrays")],
)
def test_missing_libraries(method: str, module: str, extra: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError) as caught:
        getattr(SWEEP, method)()

    assert f"{module} is not installed" in str(caught.value)
    assert f"trnspec[{extra}]" in str(caught.value)


def test_a_grid_has_different_values() -> None:
    pytest.importorskip("xarray")
    with pytest.raises(UsageError, match="tp has a value twice"):
        Sweep("x", {"tp": (1, 1)}, ()).to_xarray()
