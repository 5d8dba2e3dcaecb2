"""The rows of ``rows.yaml`` with changed cells, read as cases."""

from functools import partial
from pathlib import Path
from typing import Any

from tests.support.engine import everything
from trnspec.perf.calibration.measured.collectives import collective_cases
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.kernels import kernel_cases
from trnspec.perf.calibration.measured.neuron_kernels import op_cases, profile_cases
from trnspec.perf.calibration.measured.serving import serving_cases
from trnspec.perf.calibration.measured.training import training_cases
from trnspec.yaml import read_file

ROWS: dict[str, Any] = read_file(Path(__file__).with_name("rows.yaml")).data or {}
READERS: dict[str, Any] = {
    "training": training_cases, "recipe": training_cases, "inference": inference_cases, "graphs": inference_cases,
    "serving": serving_cases, "matmul": partial(kernel_cases, kind="matmul"), "collective": collective_cases,
    "op": op_cases, "profile": profile_cases,
}  # fmt: skip


def changed(name: str, edit: dict[str, Any]) -> dict[str, str]:
    return {column: str(cell) for column, cell in (ROWS[name]["row"] | edit).items()}


def one(name: str, **edit: Any) -> Any:
    (found,) = READERS[name](everything(), [changed(name, edit)])
    return found
