"""Scores of kernels on Neuron: passes of a profiled rank, and kernels whose achieved rate was measured.

Their work is counted and not computed from a model: FLOP and bytes of a profile, a shape, or the rate itself.  They take
the longer of compute and memory time at the shares of a calibration of serving.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.measured.tables import Skipped, cases, cell, dtype_of, hardware, integer, number
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.lowering.calibrated import calibrated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured.tables import Record
    from trnspec.perf.lowering.system import System

FRAMEWORK = "nxd-inference"
"""The framework whose calibration is used, where the chip has one of it."""


@frozen
class Kernel:
    """The work of one call on one rank.

    Attributes:
        id: Name of the row.
        chip: The chip.
        measured: Time [s]; of a row that states a rate alone, that of 1 TFLOP or 1 GB.
        compute: Time of its FLOP at the peak rate [s].
        memory: Time of its bytes at the peak rate of device memory [s].
        first: Whether it is a pass over a prompt.
        whole: Whether it is a pass through all layers.
        alone: Whether it is one matrix multiplication.
    """

    id: str
    chip: str
    measured: float
    compute: float
    memory: float
    first: bool = False
    whole: bool = False
    alone: bool = False

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


def score_profiles(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> Iterable[Scored | Skipped]:
    """Scores of passes of one rank, whose FLOP and bytes are those that the profiler counted."""
    return _scores(graph, rows, dataset, calibration, "device_profile", _profile)


def score_ops(
    graph: Graph, rows: list[Record], dataset: str, *, calibration: str = "auto"
) -> Iterable[Scored | Skipped]:
    """Scores of matrix multiplications and of kernels that stream device memory."""
    return _scores(graph, rows, dataset, calibration, "op", _op)


def _scores(
    graph: Graph,
    rows: list[Record],
    dataset: str,
    name: str,
    kind: str,
    read: Callable[[System, Record, str], Kernel],
) -> Iterable[Scored | Skipped]:
    for kernel in cases(rows, kind, lambda row, label: read(_system(graph, row), row, label)):
        if isinstance(kernel, Skipped):
            yield kernel
            continue
        score = Scored(
            dataset=dataset, id=kernel.id, part="op", measured=kernel.measured, ideal=kernel.time(), chip=kernel.chip
        )
        known = calibrated(graph, kernel.chip, "inference", name, FRAMEWORK, experts=False)
        # The share of a calibration is that of whole layers, not of a multiplication alone.
        if known.name and not kernel.alone:
            value = kernel.achieved(known.efficiency.matmul, float(known.serving.weights), known.efficiency.step)
            low, high = (known.ttft_interval if kernel.first else None) or (known.low, known.high)
            score = evolve(
                score, calibrated=value, low=value * low, high=value * high, kind="transferred", calibration=known.name
            )
        yield score


def _system(graph: Graph, row: Record) -> System:
    return hardware(graph, cell(row, "hardware"), integer(row, "n_chips") or 1, [], lnc=integer(row, "lnc") or None)


def _profile(system: System, row: Record, name: str) -> Kernel:
    """FLOP are MFU times time times peak rate; the time is that which MBU and the bytes give."""
    seconds = number(row, "device_ms_derived") * 1e-3
    if not seconds:
        raise UsageError("the row states no time on the device")
    moved = (number(row, "hbm_read_GB") + number(row, "hbm_write_GB")) * 1e9
    compute = number(row, "mfu") * seconds
    first = cell(row, "phase").startswith("context")
    return Kernel(name, system.chip, seconds, compute, moved / system.bandwidth, first=first, whole=True)


_STREAMING = ("device2device", "reduce_sum", "embedding", "softmax", "silu", "rms_norm")
"""Kernels whose time is that of device memory."""


def _op(system: System, row: Record, name: str) -> Kernel:
    """A row that states its rate alone counts as the time of 1 TFLOP or 1 GB."""
    op, achieved, cores = cell(row, "op"), number(row, "achieved"), integer(row, "cores")
    if op not in ("gemm", *_STREAMING) or cores > 1:
        raise UsageError(f"{op} is not a matrix multiplication or a kernel that streams device memory, on one rank")
    if not achieved:
        raise UsageError("the row states no achieved rate")
    if op != "gemm":
        return Kernel(name, system.chip, 1.0 / (achieved * 1e9), 0.0, 1.0 / system.bandwidth)
    rate = system.rate(dtype_of(cell(row, "precision"), system))
    shape = re.fullmatch(r"(\d+)x(\d+)x(\d+)", row.get("shape") or "")
    if shape is None:
        return Kernel(name, system.chip, 1.0 / achieved, 1e12 / rate, 0.0, alone=True)
    m, k, n = map(float, shape.groups())
    flop = 2.0 * m * k * n
    seconds = number(row, "time_us") * 1e-6 or flop / (achieved * 1e12)
    return Kernel(name, system.chip, seconds, flop / rate, 2.0 * (m * k + k * n + m * n) / system.bandwidth, alone=True)
