"""``trnspec calibrate --pool``: documents of kernels by chip and framework."""

import csv
from pathlib import Path

import pytest

from tests.support.engine import FOLDERS
from tests.support.programs import Here
from trnspec.loading.files import shipped

OPTIONS = [arg for folder in FOLDERS for arg in ("--catalog", folder)]


def table(folder: Path, *, more: str = "") -> Path:
    """Rows of two chips and a software."""
    with (shipped() / "measured" / "gemm_gpu.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["framework"] == "vllm" and row["precision"] == "bf16"]
    kept = [row for row in rows if row["hardware"] in ("H100 SXM", "B200")]
    place = folder / "gemm.csv"
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, kept[0].keys())
        writer.writeheader()
        writer.writerows(kept)
        if more:
            writer.writerow({**kept[0], "id": "more", "kind": more})
    return place


def test_a_document_for_each_chip_and_framework(here: Here) -> None:
    data = table(here.folder)
    options = ["--pool", "--era", "2026", "--source", "aiconfigurator-095f58a", "--out", "mine", *OPTIONS]
    done = here("calibrate", data, *options)
    assert (0, "") == (done.status, done.err)
    names = {"b200-vllm-calibrations", "h100-sxm-vllm-calibrations"}
    assert names == {path.stem for path in (here.folder / "mine" / "calibrations").iterdir()}
    text = (here.folder / "mine" / "calibrations" / "h100-sxm-vllm-calibrations.yaml").read_text(encoding="utf-8")
    assert "- {kernel: gemm, precision: bf16, rows: 19, " in text
    again = here("calibrate", data, *options)
    assert (True, True) == (again.status > 0, "has a fit b200-vllm-2026-kernels; --force replaces it" in again.err)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pool"], "the rows are of serving and of kernels; fit them one after the other"),
        ([], "missing option --software"),
    ],
)
def test_refuses_unfit_rows(here: Here, options: list[str], message: str) -> None:
    done = here("calibrate", table(here.folder, more="infer"), *options, *OPTIONS)
    assert (True, True) == (done.status > 0, message in done.err)
