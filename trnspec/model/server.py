"""The kind Server: a host with its chips, which EC2 calls an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import field, frozen

from trnspec.model.annotations import Count, Text
from trnspec.model.chip import Chip
from trnspec.model.fabric import Fabric
from trnspec.model.fields import AnyFigure, Bandwidth, Capacity, DiskCapacity, Peak
from trnspec.model.link import Link
from trnspec.model.ref import Ref


@frozen(kw_only=True)
class ChipCount:
    """The chips of a server.

    Attributes:
        chip: Which chip. Example: trainium1
        count: How many. Example: 16
    """

    chip: Ref[Chip]
    count: Count


@frozen(kw_only=True)
class Host:
    """The host that the chips are attached to; host resources need not scale with the chips.

    Attributes:
        vcpus: Virtual processors. Example: 128
        memory: Host memory. Example: 512 GiB
    """

    vcpus: Count | None = None
    memory: Capacity | None = None


@frozen(kw_only=True)
class Efa:
    """Elastic Fabric Adapters, by which servers reach each other.

    Attributes:
        link: The link of one card. Example: efa
        cards: Network cards. Example: 8
        bandwidth: All cards together. Example: 800 Gbps
    """

    link: Ref[Link] | None = None
    cards: Count | None = None
    bandwidth: Bandwidth | None = None


@frozen(kw_only=True)
class Network:
    """The network of a server to the outside, as advertised.

    Attributes:
        peak: What it reaches, at best. Example: up to 12.5 Gbps
        baseline: What it holds. Example: 3.125 Gbps
        storage: Bandwidth to block storage. Example: 80 Gbps
    """

    peak: Bandwidth | None = None
    baseline: Bandwidth | None = None
    storage: Bandwidth | None = None


@frozen(kw_only=True)
class MemoryTotal:
    """The device memory of all chips together.

    Attributes:
        capacity: How much it holds. Example: 512 GiB
        bandwidth: The peak rates of all chips added. Example: 13.12 TB/s
    """

    capacity: Capacity | None = None
    bandwidth: Bandwidth | None = None


@frozen(kw_only=True)
class Family:
    """The family of sizes that a server is one of.

    Attributes:
        name: What the family is called. Example: trn1
        sizes: How many sizes its publisher lists. Example: 2
    """

    name: Text
    sizes: Count | None = None


@frozen(kw_only=True)
class ServerTotals:
    """What a page prints of a whole server: stated, never needed, and checked against the parts.

    Attributes:
        cores: Physical cores of all chips. Example: 32
        peak: Peak rates of all chips together.
        memory: Device memory of all chips together.
    """

    cores: Count | None = None
    peak: Peak | None = None
    memory: MemoryTotal | None = None


@frozen(kw_only=True)
class Server:
    """A host with its chips.

    Attributes:
        family: The family of sizes that it is one of.
        chips: The chips in it.
        host: Processors and memory of the host.
        fabric: The network among its chips.
        efa: The adapters to other servers.
        network: The advertised network.
        local_storage: Local disks, all together. Disks are sold in decimal units. Example: 7,600 GB
        stated: Totals as printed.
        other: Figures that have no attribute of their own, by a name in snake case.
    """

    KIND: ClassVar[str] = "Server"

    family: Family | None = None
    chips: ChipCount
    host: Host | None = None
    fabric: Fabric | None = None
    efa: Efa | None = None
    network: Network | None = None
    local_storage: DiskCapacity | None = None
    stated: ServerTotals | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)
