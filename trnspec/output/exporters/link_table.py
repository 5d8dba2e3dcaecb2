"""The fabric of a system with the classes of its links, for pictures and network models."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attrs import evolve, frozen

from trnspec.graph import composition
from trnspec.graph.fabrics import shape as shape_of
from trnspec.graph.graph import directed
from trnspec.model.document import Node
from trnspec.model.fabric import Fabric as Declared
from trnspec.model.fabric import Topology
from trnspec.model.link import Link
from trnspec.model.reflection import dotted
from trnspec.model.server import Network
from trnspec.output.exporters.export_log import HALF, ExportLog
from trnspec.quantities.quantity import choose_unit, render
from trnspec.quantities.units import Dimension
from trnspec.topology.fabric import TopologyError
from trnspec.topology.shapes import Mesh, Shape, Torus
from trnspec.topology.switched import Switched

WITHIN, BETWEEN, DIRECT = "within", "between", "direct"
"""The classes of links: within a server, between servers, and direct links that bypass the switches."""

MOST_LINKS = 2**18
"""The most links of a fabric that is exported."""


@frozen
class LinkClass:
    """Links of one class.

    Attributes:
        kind: The key of the class; the ``kind`` of the edges of the shape.
        title: The name of the link, with the parts that it connects.
        count: Number of links.
        rate: The rate of one link in one direction, in B/s; ``None`` where it is not known.
        per_chip: The number of links of one chip to its switch, in a fabric of one level of switches; ``None`` where it
            is not known.
    """

    kind: str
    title: str
    count: int
    rate: Fraction | None
    per_chip: int | None

    @property
    def label(self) -> str:
        """The rate as text: ``128 GB/s``, of all links of a chip to its switch if they are counted.

        Empty if it is not known.
        """
        if self.rate is None:
            return ""
        rate = self.rate * (self.per_chip or 1)
        return render(rate, choose_unit(rate, Dimension.BANDWIDTH), 4)


@frozen
class LinkTable:
    """The fabric of a system.

    Attributes:
        shape: Its structure; every edge of it has the kind of a class.
        classes: The classes of its links, in order of their kinds in the structure.
        chip: The name of the chip.
        per_server: Number of chips of a server; they are numbered server by server.
        servers: Number of servers.
        server: The name of the server.
        switches: The name of the switches of each level, the smallest level first.
    """

    shape: Shape
    classes: tuple[LinkClass, ...]
    chip: str
    per_server: int
    servers: int
    server: str
    switches: tuple[str, ...]

    @property
    def chips(self) -> int:
        """The number of chips."""
        return self.per_server * self.servers


def link_table(log: ExportLog, *, rated: bool = True) -> LinkTable:
    """The fabric of the document that is exported.

    Raises:
        ExportError: It has no chips, declares no fabric, or has more than :data:`MOST_LINKS` links.
        TopologyError: The declaration contradicts itself.
    """
    count, chip = log.chip()
    inner, outer = fabrics(log)
    topology = inner.topology
    if topology is None:
        raise log.refused("no-fabric", "its fabric has no declared topology")
    servers, server = systems(log)
    shape = shape_of(topology, count)
    if shape.nodes != count:
        message = f"the declared {topology.shape} has {shape.nodes} chips, and {log.node.name} has {count}"
        raise TopologyError(message)
    links = _links(shape)
    if links > MOST_LINKS:
        message = f"an export lists every link, at most {MOST_LINKS:,}; it has {links:,}"
        raise log.refused("not-expressible", message)
    if servers > 1:
        log.assume("", "chips are numbered server by server, and in a grid row by row, the last dimension fastest")
    kinds = {WITHIN: inner}
    if isinstance(shape, (Torus, Mesh)) and outer is not None:
        log.assume("", "the first dimension of the grid is the one that crosses from server to server")
        shape = evolve(shape, kinds=(BETWEEN, *([WITHIN] * (len(shape.dims) - 1))))
        kinds[BETWEEN] = outer
    elif isinstance(shape, (Torus, Mesh)):
        shape = evolve(shape, kinds=(WITHIN,))
    elif isinstance(shape, Switched):
        shape, kinds = _switched(shape, inner, outer)
    else:
        shape = evolve(shape, kind=WITHIN)  # type: ignore[call-arg]  # chain, ring, hypercube and the like all have it
    counts: dict[str, int] = {}
    for edge in shape.build().edges:
        counts[edge.kind] = counts.get(edge.kind, 0) + 1
    # Links within a server come first, however the dimensions are numbered.
    classes = tuple(
        LinkClass(
            k,
            _title(log, k, kinds[k], topology),
            counts[k],
            _rate(log, k, kinds[k]) if rated else None,
            inner.links_per_chip if k == WITHIN and _one_switch_level(shape, outer) else None,
        )
        for k in kinds
        if k in counts
    )
    names = tuple(level.name for level in topology.levels)
    return LinkTable(shape, classes, chip.name, count // servers, servers, server.name, names)


def _links(shape: Shape) -> int:
    """The number of links, without building them; of a switched fabric, those of one link per chip and switch."""
    if isinstance(shape, Switched):
        return shape.chips * len(shape.levels) + shape.chips // 2 * len(shape.peers)
    return shape.links


def systems(log: ExportLog) -> tuple[int, Node[Any]]:
    """The number of servers of the exported document, and the server; 1 and itself if it is a server.

    Raises:
        ExportError: It is built of several kinds of servers, or of none.
    """
    counted = composition.servers(log.graph, log.node)
    if counted is None:
        raise log.refused("not-expressible", "it is not built of one kind of server")
    return counted


def _one_switch_level(shape: Shape, outer: Declared | None) -> bool:
    """Whether all links of a chip that the fabric counts lead to one switch."""
    return isinstance(shape, Switched) and len(shape.levels) == 1 and (not shape.peers or outer is not None)


def fabrics(log: ExportLog) -> tuple[Declared, Declared | None]:
    """The declared network among all chips, and the part of it that crosses from server to server.

    Raises:
        ExportError: No network is declared.
    """
    spec = log.node.spec
    if not hasattr(spec, "fabric"):
        raise log.refused("no-fabric", f"a {log.node.kind} has no fabric; name a server or an UltraServer")
    if spec.fabric is None:
        raise log.refused("no-fabric", "it declares no network among its chips")
    return spec.fabric, getattr(spec, "between_servers", None)


def _switched(shape: Switched, inner: Declared, outer: Declared | None) -> tuple[Switched, dict[str, Declared]]:
    many = len(shape.levels) > 1
    names = [f"{WITHIN} {i}" if many else WITHIN for i in range(1, len(shape.levels) + 1)]
    levels = tuple(evolve(level, kind=name) for level, name in zip(shape.levels, names, strict=True))
    peers = tuple(evolve(peer, kind=DIRECT) for peer in shape.peers)
    return evolve(shape, levels=levels, peers=peers), {**dict.fromkeys(names, inner), DIRECT: outer or inner}


def _title(log: ExportLog, kind: str, declared: Declared, topology: Topology) -> str:
    link = log.graph.find(declared.link)
    title = declared.link.name if link is None else link.metadata.title
    if kind == DIRECT:
        return f"{title} direct to the same place of the other half"
    if topology.levels:
        level = topology.levels[int(kind.removeprefix(WITHIN) or 1) - 1]
        return f"{title} to the {level.name} of {level.chips} chips"
    return title


def _rate(log: ExportLog, kind: str, declared: Declared) -> Fraction | None:
    link = log.graph.find(declared.link)
    return None if link is None else per_direction(log, f"{kind} links", link)


def either(at: str) -> tuple[str, str]:
    """The paths of the two figures that can state a bandwidth: in one direction, or the sum of both directions."""
    return f"{at}.per_direction", f"{at}.both"


def per_direction(log: ExportLog, field: str, node: Node[Any], at: str = "bandwidth") -> Fraction | None:
    """A rate in one direction, in B/s: as stated, or half of the rate of both directions."""
    path, factor = directed(node, ("spec", *at.split(".")))
    figure = log.find(node, dotted(path[1:]))
    if figure is None:
        return None
    if factor != 1:
        log.assume(field, HALF)
    return log.use(field, figure) * factor


def out_of_a_chip(log: ExportLog, field: str) -> Fraction:
    """The rate of a chip over all its links of the fabric in one direction, in B/s.

    The number of links times the rate of one or, if the links are not counted, the rate that the fabric states.

    Raises:
        ExportError: No fabric is declared, or its bandwidth is not known.
    """
    inner, outer = fabrics(log)
    rate = out_of_part(log, field, "fabric", inner)
    if rate is None:
        return log.replace(field, log.node, either("fabric.bandwidth"))
    if outer is None:
        return rate
    more = out_of_part(log, field, "between_servers", outer)
    if more is None:
        log.assume(field, "what crosses from server to server is not counted: its bandwidth is not known")
        return rate
    return rate + more


def out_of_part(log: ExportLog, field: str, at: str, declared: Declared) -> Fraction | None:
    """The rate of a chip over one part of the fabric, ``fabric`` or ``between_servers``; ``None`` if not known."""
    link = log.graph.find(declared.link)
    if link is not None and declared.links_per_chip is not None:
        rate = per_direction(log, field, link)
        if rate is not None:
            return rate * declared.links_per_chip
    return per_direction(log, field, log.node, f"{at}.bandwidth")


def latency(log: ExportLog, field: str, link_name: str | None) -> Fraction:
    """The latency of a link in seconds; 0 if none is published, so that times are lower bounds."""
    link = None if link_name is None else log.graph.lookup(link_name, Link)
    figure = None if link is None else log.find(link, "latency")
    if figure is None:
        log.assume(field, f"no latency of {link_name or 'the link'} is known; with 0, times are lower bounds")
        return Fraction(0)
    return log.use(field, figure)


def adapters(log: ExportLog, field: str) -> Fraction:
    """All NICs of all servers, in B/s.

    Raises:
        ExportError: The network bandwidth of a server is not known.
    """
    count, one = systems(log)
    each = log.need(field, one, "network.bandwidth", ["network.baseline", "network.peak"])
    log.assume(field, "the rate of the adapters is taken to be that of one direction, as network cards state it")
    return count * each


def adapter_link(log: ExportLog) -> str | None:
    """The name of the link of a server's NICs, if it is known."""
    network = systems(log)[1].spec.network
    return network.link.name if isinstance(network, Network) and network.link is not None else None
