"""The kind Chip: an accelerator, which the Neuron documentation also calls a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from attrs import field, frozen

from trnspec.model.annotations import Count, Date, Extensive, Text, Unsourced
from trnspec.model.core import Core
from trnspec.model.document import PathText, Verdict
from trnspec.model.feature import Feature
from trnspec.model.fields import AnyFigure, Bandwidth, Capacity, Peak, Power, Ratio
from trnspec.model.link import Link, LinkRate
from trnspec.model.parts import Parts  # the annotation of parts() is read at run time
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class Generation(ShortRepr):
    """The generation of a chip in each of the series that publishers count; the two numbers are independent.

    Attributes:
        accelerator: Counted among all machine-learning accelerators of the publisher. Example: 2
        training: Counted among its training accelerators. Example: 1
    """

    accelerator: Count | None = None
    training: Count | None = None


@frozen(kw_only=True, repr=False)
class CoreCount(ShortRepr):
    """The cores of a chip.

    Attributes:
        core: The core. Example: neuroncore-v2
        count: The number of physical cores. Example: 2
    """

    core: Ref[Core]
    count: Annotated[Count, Extensive()]


@frozen(kw_only=True, repr=False)
class Stacks(ShortRepr):
    """The memory stacks of a chip.

    Attributes:
        count: The number of stacks. Example: 2
        capacity: The capacity of one stack. Example: 16 GiB
    """

    count: Annotated[Count, Extensive()]
    capacity: Capacity | None = None


@frozen(kw_only=True, repr=False)
class Memory(ShortRepr):
    """Device memory of a chip, all stacks together.

    Attributes:
        capacity: Its capacity. Memory is built in powers of two, so the unit is binary. Example: 32 GiB
        bandwidth: Peak rate between the chip and its memory. Example: 820 GB/s
        technology: The memory technology. Example: HBM
        stacks: The memory stacks.
    """

    _UNLESS_ANNOUNCED: ClassVar[tuple[str, ...]] = ("capacity",)

    capacity: Annotated[Capacity, Extensive()] = field(default=None)
    """``None`` of an announced chip alone."""
    bandwidth: Annotated[Bandwidth, Extensive()] | None = None
    technology: Text | None = None
    stacks: Stacks | None = None


@frozen(kw_only=True, repr=False)
class Dma(ShortRepr):
    """The DMA engines of a chip.

    Attributes:
        bandwidth: Peak rate of all engines that serve the cores. Example: 3.5 TB/s
        engines: Engines that serve the cores. Example: 128
        host_engines: Engines that serve the host alone. Example: 4
    """

    bandwidth: Bandwidth | None = None
    engines: Count | None = None
    host_engines: Count | None = None


@frozen(kw_only=True, repr=False)
class CcCores(ShortRepr):
    """Collective-communication cores: the number on the silicon and the number that software can use differ.

    Attributes:
        usable: Those that software can use. Example: 16
        physical: Those on the silicon. Example: 20
    """

    usable: Count | None = None
    physical: Count | None = None


@frozen(kw_only=True, repr=False)
class ChipLinks(ShortRepr):
    """The links by which a chip reaches other chips.

    Attributes:
        link: The link. Example: neuronlink-v2
        ports: Ports as counted by the publisher; a port may combine several links. Example: 4
        bandwidth: The rate of all links of the chip; a bare figure is the sum of both directions.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {"bandwidth": "bandwidth.both"}

    link: Ref[Link]
    ports: Count | None = None
    bandwidth: LinkRate | None = None


@frozen(kw_only=True, repr=False)
class PrintedRatio(Unsourced):
    """A published ratio between two generations; it is checked against the two figures.

    Attributes:
        of: The path of the figure, the same in both documents. Example: spec.memory.bandwidth
        over: The chip that is compared with. Example: trainium1
        says: The ratio as printed. Example: 3.6x
        source: The source of the ratio. Example: neuron-trainium2-2026-08
        where: The place in the source. Example: line 110
        verdict: The decision about the ratio, where it differs from the figures.
        reason: The reason for the verdict.
    """

    of: PathText
    over: Ref[Chip]
    says: Ratio
    source: Ref[Source]
    where: Text | None = None
    verdict: Verdict | None = None
    reason: Text | None = None


@frozen(kw_only=True, repr=False)
class Chip(ShortRepr):
    """An accelerator chip.

    Of a chip that is announced only what is published is stated, such as ratios to an older chip.

    Attributes:
        status: What there is of the chip; nothing for a chip that is sold.
        generation: Its generation, in each series that publishers count.
        launched: The date it was first available. Example: 2022-10
        process: The process that its compute dies are made in. Example: TSMC 4N
        dies: Compute dies in one package. Example: 2
        cores: Its compute cores.
        peak: Published peak rates of the whole chip, all engines counted.
        tensor_peak: Peak rates of the tensor engines alone: the upper bound for matrix multiplication.
        memory: Device memory.
        sbuf: The state buffers of all cores together. Example: 48 MiB
        dma: The DMA engines.
        cc_cores: Collective-communication cores.
        links: The links to other chips.
        memory_pool: The maximum number of chips that can address each other's memory. Example: 16
        ratios: Published ratios to older chips.
        power: The design power of the package, where one figure is enough; powers of several types and of systems are documents
            of the kind Power. Example: 500 W
        other: Further figures by name (snake case).
        features: Capabilities that sources state in words.
    """

    # The keys that are first in a document: what most readers look for.
    FIRST: ClassVar[tuple[str, ...]] = ("status", "peak", "memory", "links")
    _UNLESS_ANNOUNCED: ClassVar[tuple[str, ...]] = ("memory",)

    status: Literal["announced"] | None = None
    generation: Generation | None = None
    launched: Date | None = None
    process: Text | None = None
    dies: Annotated[Count, Extensive()] | None = None
    cores: CoreCount | None = None
    peak: Annotated[Peak, Extensive()] = field(factory=Peak)
    tensor_peak: Annotated[Peak, Extensive()] | None = None
    memory: Memory = field(factory=Memory)
    sbuf: Annotated[Capacity, Extensive()] | None = None
    dma: Annotated[Dma, Extensive()] | None = None
    cc_cores: Annotated[CcCores, Extensive()] | None = None
    links: ChipLinks | None = None
    memory_pool: Count | None = None
    power: Annotated[Power, Extensive()] | None = None
    ratios: tuple[PrintedRatio, ...] = ()
    other: Mapping[str, AnyFigure] = field(factory=dict)
    features: tuple[Feature, ...] = ()

    def parts(self) -> Parts[Core]:
        """Its cores."""
        return () if self.cores is None else ((self.cores.count, self.cores.core),)
