"""The estimator: one model on one system, prepared once and evaluated for many layouts."""

from __future__ import annotations

from attrs import evolve, field, frozen

from trnspec.graph.graph import Graph
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.frameworks import Runtime, runtime
from trnspec.perf.lowering.calibrated import Calibrated, calibrated
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.lowering.machine import LoweredSystem, Machine, machine
from trnspec.perf.ops import Number, larger
from trnspec.perf.training.bubble import approximation
from trnspec.perf.training.step import UNUSED, Step, step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.memory import RankMemory, peak, transferred
from trnspec.perf.work.transformer import Transformer, transformer
from trnspec.perf.work.validity import check


@frozen
class Estimator:
    """Inputs that do not depend on the layout.

    Attributes:
        name: Name of the model.
        dims: Dimensions of the model.
        model: Averages over its layers.
        system: The system.
        calibration: Achieved efficiency on it.
        dtype: Compute dtype of matrix multiplications.
        machine: The numbers of one rank.
        ends: The same at the slow and at the fast end of the published figures; see :func:`extremes`.
        runtime: What software needs of memory besides the layout, the reserve included.
    """

    name: str
    dims: Dimensions = field(repr=False)
    model: Transformer = field(repr=False)
    system: LoweredSystem = field(repr=False)
    calibration: Calibrated
    dtype: str
    machine: Machine = field(repr=False)
    ends: tuple[Machine, Machine] = field(repr=False)
    runtime: Runtime

    def step(self, layout: Layout) -> Step:
        """The time of one training step.

        Raises:
            RefusalError: The layout is invalid, or needs a link whose rate is not published.
        """
        check(layout, self.dims, int(self.system.ranks))
        result = step(self.model, layout, self.machine)
        if result.unknown > UNUSED:
            raise self.system.unknown_link()
        return result

    def interval(self, layout: Layout) -> tuple[float, float]:
        """The shortest and the longest step time [s], by the digits of the figures and the spread of the calibration.

        Where unequal stages are not executed as they are, their error is included.  The computed time is always within, also where a calibration is biased.
        """
        calibration = self.calibration
        slow, fast = (step(self.model, layout, extreme).total for extreme in self.ends)
        low, high = min(calibration.low, 1.0), max(calibration.high, 1.0)
        if (stages := approximation(layout, self.dims.layers, self.dims.mtp_layers)) is not None:
            low, high = low * stages.low, high * stages.high
        return fast * low, slow * high

    def memory(self, layout: Layout) -> RankMemory:
        """Memory of the rank that needs the most, the reserve included."""
        return peak(self.dims, layout, self.runtime)

    def offload_time(self, layout: Layout, memory: RankMemory, computation: Number, rate: float) -> Number:
        """The exposed time of transfers to and from the host in a step [s].

        The bandwidth of host memory is not in the catalog; the update on the host is assumed to be as fast as on the device,
        where it is a part of the step.

        Args:
            layout: The layout, with what is offloaded.
            memory: Memory of the rank that needs the most, without offloading.
            computation: Computation of the step, recompute included [s].
            rate: Rate of a rank's link to the host, per direction [B/s].
        """
        return larger(0.0, transferred(layout, memory) / rate - self.machine.achieved.overlap * computation)


def extremes(system: LoweredSystem, calibration: Calibrated) -> tuple[LoweredSystem, LoweredSystem]:
    """A system at the slow and at the fast end of its published figures, as far as a computed time depends on them.

    Achieved shares of a calibration on the same chip are relative to the figures as they are published, so that their
    digits cancel; those of another chip, and ideal times, depend on them.
    """
    if calibration.evidence.kind in {"estimate", "extrapolated"}:
        return system, system
    return system.ends or (system, system)


def prepare(  # noqa: PLR0913  # the inputs of an estimator
    graph: Graph,
    model: str,
    on: str,
    *,
    dtype: str = "bf16",
    calibration: str = "auto",
    lnc: int | None = None,
    chips: int | None = None,
    framework: str | None = None,
    era: str | None = None,
    reserve: str | None = None,
    gathered_inputs: bool | None = None,
    bucket: str | None = None,
) -> Estimator:
    """The estimator of a model on a system.

    Args:
        graph: The catalog.
        model: Name of a model.
        on: A system, such as ``trn1.32xlarge*32``.
        dtype: Compute dtype of matrix multiplications.
        calibration: Name of a calibration; ``auto`` for that of chip and framework, ``none`` for ideal times.
        lnc: Physical cores per logical core.
        chips: Use only this many chips; all by default.
        framework: Training framework, of :data:`trnspec.perf.frameworks.FRAMEWORKS`; sets the others and the
            defaults of :func:`trnspec.perf.sweep.batch.sweep` and :func:`~trnspec.perf.sweep.batch.rows`.
        era: Era of the software's release, such as ``2026``, of which calibrations are preferred; the newest by default.
        reserve: Memory of a rank that the model cannot use: a size or a share, such as ``4 GiB`` or ``5%``.
        gathered_inputs: Whether inputs gathered over tensor-parallel ranks are stored.
        bucket: Buffers of gradients that are being reduced, such as ``1 GB``.

    Raises:
        UsageError: A name is that of a document of another kind, or a size is not one.
        UnknownNameError: No document of that name.
        RefusalError: A figure is not published.
    """
    node = model_named(graph, model)
    dims = dimensions(node.spec)
    system = lower(graph, on, lnc=lnc, chips=chips)
    calibrated_efficiency = calibrated(
        graph, system.chip, "training", calibration, framework or "", era or "", experts=dims.experts > 0
    )
    slow, fast = (
        machine(end, calibrated_efficiency.efficiency, dtype) for end in extremes(system, calibrated_efficiency)
    )
    return Estimator(
        node.name,
        dims,
        transformer(dims),
        evolve(system, ends=None),
        calibrated_efficiency,
        dtype,
        machine(system, calibrated_efficiency.efficiency, dtype),
        (slow, fast),
        runtime(system.capacity, framework=framework, reserve=reserve, gathered_inputs=gathered_inputs, bucket=bucket),
    )
