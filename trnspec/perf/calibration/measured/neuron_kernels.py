"""Published measurements of kernels on Neuron: passes of a profiled rank, and kernels whose achieved rate was measured.

Their work is counted and not computed from a model: FLOP and bytes of a profile, a shape, or the rate itself.  They take
the longer of compute and memory time at the shares of a calibration of serving.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.perf.calibration.measured.case import Case, Part, Skipped, cases
from trnspec.perf.calibration.measured.cells import Record, RowCells, dtype_of
from trnspec.perf.lowering.machine import LoweredSystem

FRAMEWORK = "nxd-inference"
"""The framework whose calibration is used, where the chip has one of it."""


@frozen(kw_only=True)
class OpCase(Case):
    """The work of one call on one rank.

    Attributes:
        chip: The chip.
        seconds: Measured time [s]; of a row that states a rate alone, that of 1 TFLOP or 1 GB.
        compute: Time of its FLOP at the peak rate [s].
        memory: Time of its bytes at the peak rate of device memory [s].
        first: Whether it is a pass over a prompt.
        whole: Whether it is a pass through all layers.
        alone: Whether it is one matrix multiplication.
    """

    PARTS: ClassVar[Mapping[Part, str]] = {"op": "seconds"}

    chip: str
    seconds: float
    compute: float
    memory: float
    first: bool = False
    whole: bool = False
    alone: bool = False

    @property
    def chosen_by(self) -> tuple[str, str, str, bool | None]:
        """The calibration of serving of dense models."""
        return self.chip, FRAMEWORK, "", False

    def time(self, matmul: float = 1.0, memory: float = 1.0) -> float:
        """The longer of compute and memory time at some shares of the peak rates [s]."""
        return max(self.compute / matmul, self.memory / memory)

    def achieved(self, matmul: float, memory: float, step: float) -> float:
        """The time at some shares of the peak rates [s]; a prompt's tensors between matrices do not overlap with these.

        Args:
            matmul: Share of the peak rate.
            memory: Share of the memory bandwidth.
            step: Fixed time of a pass [s].
        """
        streamed = self.compute / matmul + self.memory / memory
        return (streamed if self.first else self.time(matmul, memory)) + (step if self.whole else 0.0)


def profile_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[OpCase | Skipped]:
    """Every pass of one rank, whose FLOP and bytes are those that the profiler counted."""
    return cases(graph, rows, "device_profile", _profile)


def op_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[OpCase | Skipped]:
    """Every matrix multiplication, and every kernel that streams device memory."""
    return cases(graph, rows, "op", _op)


def _system(row: RowCells) -> LoweredSystem:
    return row.hardware(row.integer("n_chips") or 1, lnc=row.integer("lnc") or None)


def _profile(row: RowCells) -> OpCase:
    """FLOP are MFU times time times peak rate; the time is that which MBU and the bytes give."""
    system, seconds = _system(row), row.number("device_ms_derived") * 1e-3
    if not seconds:
        raise UsageError("the row states no time on the device")
    moved = (row.number("hbm_read_GB") + row.number("hbm_write_GB")) * 1e9
    return OpCase(
        chip=system.chip, seconds=seconds, compute=row.number("mfu") * seconds, memory=moved / system.bandwidth,
        first=row.cell("phase").startswith("context"), whole=True,
    )  # fmt: skip


_STREAMING = ("device2device", "reduce_sum", "embedding", "softmax", "silu", "rms_norm")
"""Kernels whose time is that of device memory."""


def _op(row: RowCells) -> OpCase:
    """A row that states its rate alone counts as the time of 1 TFLOP or 1 GB."""
    system, op, achieved, cores = _system(row), row.cell("op"), row.number("achieved"), row.integer("cores")
    if op not in ("gemm", *_STREAMING) or cores > 1:
        raise UsageError(f"{op} is not a matrix multiplication or a kernel that streams device memory, on one rank")
    if not achieved:
        raise UsageError("the row states no achieved rate")
    if op != "gemm":
        return OpCase(chip=system.chip, seconds=1.0 / (achieved * 1e9), compute=0.0, memory=1.0 / system.bandwidth)
    rate = system.rate(dtype_of(row.cell("precision"), system))
    shape = re.fullmatch(r"(\d+)x(\d+)x(\d+)", row.get("shape"))
    if shape is None:
        return OpCase(chip=system.chip, seconds=1.0 / achieved, compute=1e12 / rate, memory=0.0, alone=True)
    m, k, n = map(float, shape.groups())
    flop, moved = 2.0 * m * k * n, 2.0 * (m * k + k * n + m * n)
    seconds = row.number("time_us") * 1e-6 or flop / (achieved * 1e12)
    return OpCase(chip=system.chip, seconds=seconds, compute=flop / rate, memory=moved / system.bandwidth, alone=True)
