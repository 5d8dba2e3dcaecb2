"""A network of astra-sim (https://github.com/astra-sim/astra-sim), for its analytical backends: a YAML file.

The first dimension of the file is the innermost one, in which neighbours have consecutive numbers; in trnspec it is the
last.
Rates are per link and direction, in GiB/s: a GB of the parser is 2 ** 30 bytes (``bw_GBps_to_Bpns`` multiplies by
``1 << 30``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.output.exporters.export_log import ExportLog, in_unit
from trnspec.output.exporters.exported import Export
from trnspec.output.exporters.link_table import BETWEEN, LinkTable, either, fabrics, latency, link_table, out_of_part
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Ring, Torus
from trnspec.topology.switched import Switched

_HEAD = "Analytical network of astra-sim, written by trnspec from checked figures."


@frozen
class _Dimension:
    block: str
    size: int
    rate: Fraction | None
    link: str


def export(node: Node[Any], graph: Graph) -> Export:
    """Export the fabric of a server or an UltraServer.

    Raises:
        ExportError: astra-sim cannot express the fabric, or the rate of its links is not known.
    """
    log = ExportLog(graph, node, "astra-sim")
    log.chip()
    declared, _ = fabrics(log)
    # With switches, the rate is a figure of the chip and not of the link.
    network = link_table(log, rated=declared.topology is None or declared.topology.shape != "switched")
    dimensions = _dimensions(log, network)
    if not dimensions:
        raise log.refused("no-fabric", "it has a single chip")
    rates = [in_unit(_known(log, i, d), "GiB/s") for i, d in enumerate(dimensions)]
    delays = [in_unit(latency(log, f"latency[{i}]", d.link), "ns") for i, d in enumerate(dimensions)]
    log.assume("bandwidth", "per link and direction, in GiB/s: a GB of astra-sim is 2 ** 30 bytes")
    lines = [
        *log.comments(_HEAD),
        f"topology: [{', '.join(d.block for d in dimensions)}]",
        f"npus_count: [{', '.join(str(d.size) for d in dimensions)}]",
        f"bandwidth: [{', '.join(map(str, rates))}]  # per link and direction, in GiB/s",
        f"latency: [{', '.join(map(str, delays))}]  # per link, in ns",
    ]
    return log.export("\n".join(line.rstrip() for line in lines) + "\n")


def _known(log: ExportLog, index: int, dimension: _Dimension) -> Fraction:
    if dimension.rate is None:
        link = log.graph.lookup(dimension.link, Link)
        if link is None:
            raise log.refused(
                "unknown-figure", f"bandwidth[{index}] needs the link {dimension.link}, which is not known"
            )
        raise log.unknown(f"bandwidth[{index}]", link, *either("bandwidth"))
    return dimension.rate


def _dimensions(log: ExportLog, network: LinkTable) -> list[_Dimension]:
    shape = network.shape
    inner, outer = fabrics(log)
    rates = {c.kind: c.rate for c in network.classes}
    names = dict.fromkeys(rates, inner.link.name)
    if outer is not None:
        names[BETWEEN] = outer.link.name
    if isinstance(shape, Switched):
        return _switched(log, shape)
    if isinstance(shape, (Torus, Ring, Hypercube)):
        axes = [a for a in reversed(shape.axes) if a.size > 1]
        # A ring of two is a pair with one link, not two.
        return [
            _Dimension("Ring" if a.size > 2 else "FullyConnected", a.size, rates[a.kind], names[a.kind]) for a in axes
        ]
    if isinstance(shape, FullyConnected) and shape.n > 1:
        return [_Dimension("FullyConnected", shape.n, rates[shape.kind], names[shape.kind])]
    if isinstance(shape, Chain) and shape.n <= 2:
        return [_Dimension("FullyConnected", shape.n, rates[shape.kind], names[shape.kind])] if shape.n > 1 else []
    message = f"its analytical networks are rings, switches, full connections and products of these, not a {shape}"
    raise log.refused("not-expressible", message)


def _switched(log: ExportLog, shape: Switched) -> list[_Dimension]:
    inner, outer = fabrics(log)
    if len(shape.levels) > 1:
        message = (
            f"a chip has links to {len(shape.levels)} levels of switches, and the rate to each is not declared; "
            "astra-sim could not distinguish parallel levels either"
        )
        raise log.refused("not-expressible", message)
    level = shape.levels[0]
    rate = out_of_part(log, "bandwidth[0]", "fabric", inner)
    if rate is None:
        raise log.unknown("bandwidth[0]", log.node, *either("fabric.bandwidth"))
    dimensions = [_Dimension("Switch", level.size, rate, inner.link.name)]
    if shape.peers:
        if (shape.chips // level.size, shape.peers[0].stride) != (2, level.size):
            raise log.refused("not-expressible", "its direct links do not join one switch with one other")
        direct = None if outer is None else out_of_part(log, "bandwidth[1]", "between_servers", outer)
        if outer is None or direct is None:
            raise log.unknown("bandwidth[1]", log.node, *either("between_servers.bandwidth"))
        dimensions.append(_Dimension("FullyConnected", 2, direct, outer.link.name))
    elif shape.chips != level.size:
        raise log.refused("not-expressible", "its switches are not linked with each other")
    return dimensions
