"""The kind Core: a NeuronCore, its engines and its on-chip memories."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from trnspec.model.annotations import Count, Text
from trnspec.model.feature import Feature
from trnspec.model.fields import AnyFigure, Bandwidth, Capacity, FlopPerCycle, Frequency, Peak
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class ProcessingArray(ShortRepr):
    """The processing elements of a tensor engine.

    Attributes:
        rows: Rows of physical processing elements. Example: 128
        columns: Columns of physical processing elements. Example: 128
    """

    rows: Count
    columns: Count


@frozen(kw_only=True, repr=False)
class Engine(ShortRepr):
    """One engine of a core.

    Attributes:
        peak: Printed rates of this engine alone.
        array: The processing elements, for a tensor engine.
        clock: Clock rate. Example: 2.8 GHz
        throughput: Operations in one cycle, where a page counts so. Example: 512 FLOP/cycle
        processors: Programmable processors, for a general-purpose SIMD engine. Example: 8
        vector_width: Width of one vector of a processor. Example: 512 bit
        note: How the figures are counted.
    """

    peak: Peak | None = None
    array: ProcessingArray | None = None
    clock: Frequency | None = None
    throughput: FlopPerCycle | None = None
    processors: Count | None = None
    vector_width: Capacity | None = None
    note: Text | None = None


@frozen(kw_only=True, repr=False)
class Engines(ShortRepr):
    """The engines of a core by their role.

    Attributes:
        tensor: Matrix multiplication.
        vector: Operations on vectors, reductions among them.
        scalar: Operations element by element.
        gpsimd: General-purpose processors.
    """

    tensor: Engine | None = None
    vector: Engine | None = None
    scalar: Engine | None = None
    gpsimd: Engine | None = None


@frozen(kw_only=True, repr=False)
class Sram(ShortRepr):
    """An on-chip memory that is divided into partitions.

    Attributes:
        capacity: All of it, in one core. Example: 24 MiB
        partitions: How many partitions it has. Example: 128
        per_partition: The capacity of one partition. Example: 192 KiB
        banks: Banks in one partition. Example: 8
        per_bank: The capacity of one bank of one partition. Example: 2 KiB
    """

    capacity: Capacity
    partitions: Count | None = None
    per_partition: Capacity | None = None
    banks: Count | None = None
    per_bank: Capacity | None = None


@frozen(kw_only=True, repr=False)
class CoreDma(ShortRepr):
    """The DMA engines that serve one core.

    Attributes:
        engines: How many there are. Example: 16
        queues: Queues of one engine. Example: 16
        per_engine: Peak rate of one engine. Example: 27.2 GB/s
        achieved_per_engine: Rate that one engine is measured to reach, which is another quantity than its peak.
        achieved: Rate that all of them together are measured to reach. Example: 272 GB/s
    """

    engines: Count | None = None
    queues: Count | None = None
    per_engine: Bandwidth | None = None
    achieved_per_engine: Bandwidth | None = None
    achieved: Bandwidth | None = None


@frozen(kw_only=True, repr=False)
class Core(ShortRepr):
    """A compute core of a chip, such as a NeuronCore.

    Attributes:
        version: The version as its publisher writes it. Example: v2
        isa: The generation of the instruction set that kernels are compiled for. Example: gen3
        engines: The engines by their role.
        sbuf: The state buffer.
        psum: The partial-sum buffer.
        dma: The DMA engines that serve one core.
        cc_cores: Collective-communication cores that one physical core can use. Example: 2
        other: Figures that have no attribute of their own, by a name in snake case.
        features: Capabilities that sources state in words.
    """

    version: Text | None = None
    isa: Text | None = None
    engines: Engines
    sbuf: Sram | None = None
    psum: Sram | None = None
    dma: CoreDma | None = None
    cc_cores: Count | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)
    features: tuple[Feature, ...] = ()
