"""One model on one system, prepared once and asked often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from trnspec.evaluation.result import RefusalError
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.calibrated import Calibrated, calibrated
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import System
from trnspec.perf.training.step import UNUSED, Step, step
from trnspec.perf.work.layout import Layout, check
from trnspec.perf.work.memory import Memory, training_memory
from trnspec.perf.work.stages import peak_stages
from trnspec.perf.work.transformer import Transformer, transformer

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph


@frozen
class Estimator:
    """What does not change from one layout to the next.

    Attributes:
        name: The name of the model.
        dims: The model's dimensions.
        model: The averages over its layers.
        system: The system.
        calibration: What is achieved on it.
        dtype: What matrices are multiplied in.
        machine: The numbers of one rank.
        ends: The same at the slow, and at the fast end of the published figures.
    """

    name: str
    dims: Dimensions = field(repr=False)
    model: Transformer = field(repr=False)
    system: System = field(repr=False)
    calibration: Calibrated
    dtype: str
    machine: Machine = field(repr=False)
    ends: tuple[Machine, Machine] = field(repr=False)

    def step(self, layout: Layout) -> Step:
        """The time of one training step.

        Raises:
            RefusalError: The layout cannot be, or needs a link whose rate is not published.
        """
        check(layout, self.dims, int(self.system.ranks))
        found = step(self.model, layout.plan(), self.machine)
        if found.unknown > UNUSED:
            raise self._unknown()
        return found

    def interval(self, layout: Layout) -> tuple[float, float]:
        """The shortest and the longest step that the digits of the figures and the calibration's spread leave open.

        The computed time lies within, also where a calibration is off to one side.
        """
        plan, known = layout.plan(), self.calibration
        slow, fast = (step(self.model, plan, numbers).total for numbers in self.ends)
        return fast * min(known.low, 1.0), slow * max(known.high, 1.0)

    def memory(self, layout: Layout) -> Memory:
        """The bytes on the rank that needs the most."""
        return peak(self.dims, layout)

    def _unknown(self) -> RefusalError:
        missing = next((level for level in self.system.levels if not level.rate), None)
        place = "" if missing is None else missing.place
        link = "a link between servers" if missing is None else f"the links of the level {missing.name}"
        return RefusalError(
            "unknown-figure", f"the layout needs {link} of {self.system.name}, whose rate is not published", place=place
        )


def peak(d: Dimensions, layout: Layout) -> Memory:
    """The bytes on the rank that needs the most, at the peak of a training step."""
    split = layout.split()
    found = [
        training_memory(
            d,
            split,
            layout.storing(),
            layout.bytes,
            seq=float(layout.seq),
            microbatch=float(layout.microbatch),
            microbatches=float(layout.microbatches),
            zero=float(layout.zero),
            stage=stage,
        )
        for stage in dict.fromkeys(peak_stages(d, split))
    ]
    return max(found, key=lambda m: float(m.total))


def prepare(
    graph: Graph,
    model: str,
    on: str,
    *,
    dtype: str = "bf16",
    calibration: str = "auto",
    lnc: int | None = None,
    chips: int | None = None,
) -> Estimator:
    """What training of a model on a system is estimated with.

    Args:
        graph: The catalog.
        model: The name of a model.
        on: A system, such as ``trn1.32xlarge*32``.
        dtype: What matrices are multiplied in.
        calibration: The name of a calibration; ``auto`` for the chip's with the most rows, ``none`` for a bound.
        lnc: Physical cores of a logical core.
        chips: Use only so many chips; all when left out.

    Raises:
        UsageError: A name is of the wrong kind.
        UnknownNameError: There is no document of a name.
        RefusalError: A figure is not published.
    """
    from trnspec.perf.lowering.lookup import model_named

    node = model_named(graph, model)
    dims = dimensions(node.spec)
    system = lower(graph, on, lnc=lnc, chips=chips)
    known = calibrated(graph, system.chip, "training", calibration)
    assert system.ends is not None
    slow, fast = (machine(end, known.efficiency, dtype) for end in system.ends)
    return Estimator(
        node.name,
        dims,
        transformer(dims),
        evolve(system, ends=None),
        known,
        dtype,
        machine(system, known.efficiency, dtype),
        (slow, fast),
    )
