"""Measurement sets from rows that were measured elsewhere: tables, documents and the comparison; without PyTorch."""

import sys

import attrs
import pytest

from tests.support.engine import everything
from trnspec.api import validate
from trnspec.atomic_write import write
from trnspec.errors import UsageError
from trnspec.measure.comparison import compare
from trnspec.measure.device import Device, chip_of, device_of
from trnspec.measure.tables import TableOrigin, completed, files

GPU = Device(kind="cuda", name="NVIDIA H200", count=8, facts={"PyTorch": "2.8.0", "driver_version": "570.1: x"})
ORIGIN = TableOrigin(
    name="lab", date="2026-11-22", device=GPU, hardware="h200", server="dgx-h200", chip="h200", version="0.1.0"
)
ROWS = {
    "matmul": [
        {"id": "a", "precision": "bf16", "m": "4096", "n": "4096", "k": "4096", "time_us": "200", "tflops_per_chip": "687.195"}
    ],
    "op": [
        {"id": "c", "op": "device2device", "precision": "uint8", "shape": "1", "achieved": "3840", "unit": "GB/s", "time_us": "1"},
        {"id": "l", "op": "layer_forward", "precision": "bf16", "shape": "x", "time_us": "9", "tflops_per_chip": "494.75"},
    ],
    "collective": [
        {"id": i, "ranks": "8", "collective": "all_reduce", "size_bytes": "268435456", "dtype": "fp32", "time_us": time}
        for i, time in (("r", "1100"), ("slow", "5500"))
    ],
}  # fmt: skip


def tables(origin: TableOrigin = ORIGIN) -> dict[str, list[dict[str, str]]]:
    return {kind: completed(kind, rows, origin) for kind, rows in ROWS.items()}


def test_the_set_is_valid(tmp_path):
    write(files(tmp_path, tables(), ORIGIN))
    plugin = "plugins/trnspec-nvidia/src/trnspec_nvidia/catalog"
    assert [] == list(validate([plugin, str(tmp_path)]).report.diagnostics)
    assert {"lab-matmul.csv", "lab-op.csv", "lab-collective.csv"} == {f.name for f in tmp_path.rglob("*.csv")}
    assert "m,n,k,time_us" in (tmp_path / "measured" / "lab-matmul.csv").read_text().splitlines()[0]


def test_shares_of_the_published_figures():
    compared, skipped = compare(everything(), tables())
    assert [] == skipped
    found = {each.what: each for each in compared}
    # 2 x 4096^3 FLOP in 200 us of 989.5 TFLOPS; 3,840 of 4,800 GB/s; half of the peak rate.
    assert 2.0 * 4096**3 / 200e-6 / 989.5e12 == pytest.approx(found["gemm"].best, rel=1e-6)
    assert (0.8, 0.5) == (pytest.approx(found["device2device"].best), pytest.approx(found["layer_forward"].best))
    reduced = found["all_reduce"]
    assert ("h200-nccl-2026-collectives", 2, 0.5) == (reduced.calibration, reduced.rows, reduced.inside)
    ideal, _ = compare(everything(), tables(), "none")
    assert {""} == {each.calibration for each in ideal}


def test_the_framework_and_the_launch_of_a_table():
    kinds, origins = (
        ("collective", "op", "attention"),
        (ORIGIN, attrs.evolve(ORIGIN, device=attrs.evolve(GPU, kind="cpu"))),
    )
    found = [
        (each["framework"], each["launch"][:5], each["hardware"])
        for each in (completed(kind, [{"id": "x", "ranks": "8"}], o)[0] for o in origins for kind in kinds)
    ]
    kernels = [("torch", "eager", "h200")] * 2

    assert found == [("nccl", "queue", "dgx-h200"), *kernels, ("gloo", "queue", "dgx-h200"), *kernels]


def test_hardware_is_any_document_of_the_catalog():
    rows = completed("op", ROWS["op"], attrs.evolve(ORIGIN, hardware="trainium1"))
    compared, skipped = compare(everything(), {"op": rows}, "none")
    # A rank is one of two cores: half of the bandwidth; a layer is compared with the peak rate of both, 2 x 91.75 TFLOPS.
    expected = {"device2device": 3840 / 410, "layer_forward": 494.75 / 183.5}
    assert ([], pytest.approx(expected)) == (skipped, {each.what: each.best for each in compared})
    unknown = [{**row, "hardware": "none"} for row in rows]
    assert {"unknown hardware 'none'"} == {each.reason for each in compare(everything(), {"op": unknown}, "none")[1]}


def test_the_chip_of_a_device():
    graph = everything()
    names = ("NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 PCIe", "Radeon")
    chips = [chip_of(graph, Device(kind="cuda", name=name, count=1)) for name in names]
    assert ["h200", "h100-sxm", "a100-40gb", "", ""] == chips
    assert "trainium2" == chip_of(graph, GPU, "trainium2")
    with pytest.raises(UsageError, match="the catalog has no chip named 'h900'"):
        chip_of(graph, GPU, "h900")


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"torch is not installed; pip install 'trnspec\[measure\]'"):
        device_of("cpu")
