"""The kind UltraServer: several servers whose chips form one scale-up domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import field, frozen

from trnspec.model.annotations import Count
from trnspec.model.fabric import Fabric
from trnspec.model.feature import Feature
from trnspec.model.fields import AnyFigure, Bandwidth, Peak
from trnspec.model.parts import Parts  # the annotation of parts() is read at run time
from trnspec.model.ref import Ref
from trnspec.model.server import Host, MemoryTotal, Server
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class ServerCount(ShortRepr):
    """The servers of an UltraServer.

    Attributes:
        server: The server. Example: trn2u.48xlarge
        count: The number of servers. Example: 4
    """

    server: Ref[Server]
    count: Count


@frozen(kw_only=True, repr=False)
class NetworkTotal(ShortRepr):
    """The network of all servers together, which is not the figure of one server.

    Attributes:
        bandwidth: All NICs of all servers, in one direction. Example: 12,800 Gbps
    """

    bandwidth: Bandwidth | None = None


@frozen(kw_only=True, repr=False)
class UltraServerTotals(ShortRepr):
    """Totals of an UltraServer as a page prints them: optional, and checked against the parts.

    Attributes:
        chips: Chips of all servers. Example: 64
        cores: Physical cores of all chips. Example: 512
        peak: Peak rates of all chips together.
        memory: Device memory of all chips together.
        host: Processors and memory of all hosts together.
        network: NICs of all servers together.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {"efa": "network", "efa.bandwidth": "network.bandwidth"}

    chips: Count | None = None
    cores: Count | None = None
    peak: Peak | None = None
    memory: MemoryTotal | None = None
    host: Host | None = None
    network: NetworkTotal | None = None


@frozen(kw_only=True, repr=False)
class UltraServer(ShortRepr):
    """Several servers whose chips are linked directly.

    Attributes:
        servers: The servers in it.
        fabric: The network among all its chips.
        between_servers: The part of that network that crosses from server to server.
        stated: Totals as printed.
        other: Figures that have no attribute of their own, by a name in snake case.
        features: Capabilities that sources state in words.
    """

    servers: ServerCount
    fabric: Fabric | None = None
    between_servers: Fabric | None = None
    stated: UltraServerTotals | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)
    features: tuple[Feature, ...] = ()

    def parts(self) -> Parts[Server]:
        """Its servers."""
        return ((self.servers.count, self.servers.server),)
