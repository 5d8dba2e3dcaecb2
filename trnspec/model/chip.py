"""The kind Chip: an accelerator, which the Neuron documentation also calls a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import field, frozen

from trnspec.model.annotations import Count, Date, Text
from trnspec.model.core import Core
from trnspec.model.document import PathText, Verdict
from trnspec.model.fields import AnyFigure, Bandwidth, Capacity, Peak, Power, Ratio
from trnspec.model.link import Link
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.short_repr import short_repr


@frozen(kw_only=True)
class Generation:
    """Which generation a chip is, in each of the lines that publishers count in; the two never share a number.

    Attributes:
        accelerator: Counted among all machine-learning accelerators of the publisher. Example: 2
        training: Counted among its training accelerators. Example: 1
    """

    __repr__ = short_repr

    accelerator: Count | None = None
    training: Count | None = None


@frozen(kw_only=True)
class CoreCount:
    """The cores of a chip.

    Attributes:
        core: Which core. Example: neuroncore-v2
        count: How many physical cores there are. Example: 2
    """

    __repr__ = short_repr

    core: Ref[Core]
    count: Count


@frozen(kw_only=True)
class Stacks:
    """The stacks that device memory is built of.

    Attributes:
        count: How many stacks. Example: 2
        capacity: The capacity of one stack. Example: 16 GiB
    """

    __repr__ = short_repr

    count: Count
    capacity: Capacity | None = None


@frozen(kw_only=True)
class Memory:
    """Device memory of a chip, all stacks together.

    Attributes:
        capacity: How much it holds. Memory is built in powers of two, so the unit is binary. Example: 32 GiB
        bandwidth: Peak rate between the chip and its memory. Example: 820 GB/s
        technology: What it is built of. Example: HBM
        stacks: The stacks it is built of.
    """

    __repr__ = short_repr

    capacity: Capacity
    bandwidth: Bandwidth | None = None
    technology: Text | None = None
    stacks: Stacks | None = None


@frozen(kw_only=True)
class Dma:
    """The DMA engines of a chip.

    Attributes:
        bandwidth: Peak rate of all engines that serve the cores. Example: 3.5 TB/s
        engines: Engines that serve the cores. Example: 128
        host_engines: Engines that serve the host alone. Example: 4
    """

    __repr__ = short_repr

    bandwidth: Bandwidth | None = None
    engines: Count | None = None
    host_engines: Count | None = None


@frozen(kw_only=True)
class CcCores:
    """Collective-communication cores: what the silicon has and what software can use are two counts.

    Attributes:
        usable: Those that software can use. Example: 16
        physical: Those on the silicon. Example: 20
    """

    __repr__ = short_repr

    usable: Count | None = None
    physical: Count | None = None


@frozen(kw_only=True)
class ChipLinks:
    """The links by which a chip reaches other chips.

    Attributes:
        link: Which link. Example: neuronlink-v2
        ports: Ports as the publisher counts them; a port may group several links. Example: 4
        bandwidth: All links of the chip, the sum of both directions. Example: 1.28 TB/s
    """

    __repr__ = short_repr

    link: Ref[Link]
    ports: Count | None = None
    bandwidth: Bandwidth | None = None


@frozen(kw_only=True)
class PrintedRatio:
    """A ratio between two generations as a page prints it: checked against the figures that it divides.

    Attributes:
        of: The path of the figure, the same in both documents. Example: spec.memory.bandwidth
        over: The chip that it is compared with. Example: trainium1
        says: The ratio as printed. Example: 3.6x
        source: Who says so. Example: neuron-trainium2-2026-08
        where: The place in the source. Example: line 110
        verdict: What was decided about it, when the figures do not give it.
        reason: Why that was decided.
    """

    __repr__ = short_repr

    of: PathText
    over: Ref[Chip]
    says: Ratio
    source: Ref[Source]
    where: Text | None = None
    verdict: Verdict | None = None
    reason: Text | None = None


@frozen(kw_only=True)
class Chip:
    """An accelerator chip.

    Attributes:
        generation: Which generation it is, in each line that is counted.
        launched: When it was first offered. Example: 2022-10
        dies: Compute dies in one package. Example: 2
        cores: Its compute cores.
        peak: Peak rates of the whole chip as its publisher prints them, all engines counted.
        tensor_peak: Peak rates of the tensor engines alone: what a matrix multiplication can reach at most.
        memory: Device memory.
        sbuf: The state buffers of all cores together. Example: 48 MiB
        dma: The DMA engines.
        cc_cores: Collective-communication cores.
        links: The links to other chips.
        memory_pool: How many chips can address each other's memory, at most. Example: 16
        ratios: How the chip is said to compare with older ones.
        power: Power that the package may draw, at most. Example: 500 W
        other: Figures that have no attribute of their own, by a name in snake case.
    """

    __repr__ = short_repr

    KIND: ClassVar[str] = "Chip"

    generation: Generation | None = None
    launched: Date | None = None
    dies: Count | None = None
    cores: CoreCount | None = None
    peak: Peak
    tensor_peak: Peak | None = None
    memory: Memory
    sbuf: Capacity | None = None
    dma: Dma | None = None
    cc_cores: CcCores | None = None
    links: ChipLinks | None = None
    memory_pool: Count | None = None
    power: Power | None = None
    ratios: tuple[PrintedRatio, ...] = ()
    other: Mapping[str, AnyFigure] = field(factory=dict)
