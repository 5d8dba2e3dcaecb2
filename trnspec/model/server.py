"""The kind Server: a host with its chips, which EC2 calls an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from attrs import field, frozen

from trnspec.model.annotations import Count, Extensive, Least, Text
from trnspec.model.chip import Chip
from trnspec.model.fabric import Fabric
from trnspec.model.feature import Feature
from trnspec.model.fields import AnyFigure, Bandwidth, Capacity, DiskCapacity, IoRate, Peak
from trnspec.model.link import Link
from trnspec.model.parts import Parts  # the annotation of parts() is read at run time
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class ChipCount(ShortRepr):
    """The chips of a server.

    Attributes:
        chip: The chip. Example: trainium1
        count: The number of chips. Example: 16
    """

    chip: Ref[Chip]
    count: Count


@frozen(kw_only=True, repr=False)
class Host(ShortRepr):
    """The host that the chips are attached to; its resources need not scale with the chips.

    Attributes:
        vcpus: Virtual processors. Example: 128
        memory: Host memory. Example: 512 GiB
        cpu: Maker and model of the processors, as far as sources name them. Example: Intel Xeon Platinum 8480C
    """

    vcpus: Annotated[Count, Extensive()] | None = None
    memory: Annotated[Capacity, Extensive()] | None = None
    cpu: Text | None = None


@frozen(kw_only=True, repr=False)
class Network(ShortRepr):
    """The network of a server: the NICs by which it reaches other servers, and what is advertised of it.

    Attributes:
        technology: The technology of the network between servers.
        link: The link of one NIC. Example: efa
        nics: The number of NICs. Example: 8
        bandwidth: All NICs together, in one direction. Example: 800 Gbps
        peak: The advertised network bandwidth at best. Example: up to 12.5 Gbps
        baseline: The advertised network bandwidth that is sustained. Example: 3.125 Gbps
        storage: Bandwidth to block storage at best. Example: 80 Gbps
        storage_baseline: Bandwidth to block storage that is sustained. Example: 5 Gbps
        storage_iops: Operations on block storage per second at best. Example: 65,000 IOPS
        storage_iops_baseline: Operations on block storage per second that are sustained. Example: 16,250 IOPS
    """

    technology: Literal["EFA", "InfiniBand", "Ethernet"] | None = None
    link: Ref[Link] | None = None
    nics: Annotated[Count, Extensive()] | None = None
    bandwidth: Annotated[Bandwidth, Extensive()] | None = None
    peak: Bandwidth | None = None
    baseline: Bandwidth | None = None
    storage: Bandwidth | None = None
    storage_baseline: Bandwidth | None = None
    storage_iops: IoRate | None = None
    storage_iops_baseline: IoRate | None = None


@frozen(kw_only=True, repr=False)
class MemoryTotal(ShortRepr):
    """The device memory of all chips together.

    Attributes:
        capacity: Capacity of all chips together. Example: 512 GiB
        bandwidth: The peak rates of all chips added. Example: 13.12 TB/s
    """

    capacity: Capacity | None = None
    bandwidth: Bandwidth | None = None


@frozen(kw_only=True, repr=False)
class Family(ShortRepr):
    """The family of instance sizes that a server belongs to.

    Attributes:
        name: The name of the family. Example: trn1
        sizes: The number of sizes its publisher lists. Example: 2
    """

    name: Text
    sizes: Count | None = None


@frozen(kw_only=True, repr=False)
class ServerTotals(ShortRepr):
    """Totals of a server as a page prints them: optional, and checked against the parts.

    Attributes:
        cores: Physical cores of all chips. Example: 32
        peak: Peak rates of all chips together.
        memory: Device memory of all chips together.
    """

    cores: Count | None = None
    peak: Peak | None = None
    memory: MemoryTotal | None = None


@frozen(kw_only=True, repr=False)
class BlockOffers(ShortRepr):
    """Where capacity blocks of a server were offered at the date of the source; their limits are a document of the kind Quota.

    Attributes:
        places: The regions or availability zones. Example: ap-south-2b
        source: Its source, if it is not that of the availability.
        where: The place in it. Example: section 1.4
    """

    places: tuple[Text, ...]
    source: Ref[Source] | None = None
    where: Text | None = None


@frozen(kw_only=True, repr=False)
class Availability(ShortRepr):
    """Regions, zones and offers of a server at the date of the source; capacity may be short all the same.

    Attributes:
        regions: The regions that offer it. Example: us-east-2
        zones: The availability zones that offer it. Example: us-east-2c
        purchase: The ways to buy it there.
        blocks: The places with offers of capacity blocks.
        source: Its source, if it is not the source of the document.
        where: The place in it. Example: section 1.1
    """

    regions: tuple[Text, ...]
    zones: Annotated[tuple[Text, ...], Least(1)] = ()
    purchase: Annotated[tuple[Literal["on-demand", "spot", "capacity-block"], ...], Least(1)] = ()
    blocks: BlockOffers | None = None
    source: Ref[Source] | None = None
    where: Text | None = None


@frozen(kw_only=True, repr=False)
class Server(ShortRepr):
    """A host with its chips.

    Attributes:
        family: The family of instance sizes.
        chips: The chips in it.
        host: Processors and memory of the host.
        fabric: The network among its chips.
        network: The network to other servers and to storage.
        availability: Where it is offered.
        local_storage: Local disks, all together. Disks are sold in decimal units. Example: 7,600 GB
        stated: Totals as printed.
        other: Figures that have no attribute of their own, by a name in snake case.
        features: Capabilities that sources state in words.
    """

    SHORT: ClassVar[Mapping[str, str]] = {"region": "availability.regions", "zone": "availability.zones"}
    RENAMED: ClassVar[Mapping[str, str]] = {
        "efa": "network",
        "efa.link": "network.link",
        "efa.cards": "network.nics",
        "efa.bandwidth": "network.bandwidth",
    }

    family: Family | None = None
    chips: ChipCount
    host: Host | None = None
    fabric: Fabric | None = None
    network: Network | None = None
    availability: Availability | None = None
    local_storage: Annotated[DiskCapacity, Extensive()] | None = None
    stated: ServerTotals | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)
    features: tuple[Feature, ...] = ()

    def parts(self) -> Parts[Chip]:
        """Its chips."""
        return ((self.chips.count, self.chips.chip),)
