"""The declared topology of a server or an UltraServer as a real structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trnspec.graph.composition import chips
from trnspec.graph.graph import Graph, directed
from trnspec.model.document import Node
from trnspec.model.fabric import Fabric as Declared
from trnspec.model.fabric import Topology
from trnspec.model.figure import Figure
from trnspec.model.reflection import value_at
from trnspec.topology.fabric import TopologyError
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Shape, Torus
from trnspec.topology.switched import PeerLinks, Switched, SwitchLevel


def shape(topology: Topology, chips: int, rates: tuple[float | None, ...] = ()) -> Shape:
    """The structure that a declaration describes.

    Args:
        topology: The declaration.
        chips: How many chips there are, for shapes that do not name it.
        rates: Rate per link and direction in B/s along each dimension, as far as it is known.

    Raises:
        TopologyError: The declaration contradicts itself.
    """
    _sound(topology, chips)
    dims = topology.dimensions
    each = rates if len(rates) == len(dims) else ()
    one = each[0] if each else None
    if topology.shape == "switched":
        levels = tuple(SwitchLevel(level.chips) for level in topology.levels)
        peers = (PeerLinks(chips // 2),) if topology.direct else ()
        return Switched(chips, levels, peers)
    if topology.shape in ("torus", "mesh"):
        grid = Torus if topology.shape == "torus" else Mesh
        return grid(dims or (1,), each)
    if topology.shape == "hypercube":
        return Hypercube(len(dims) if len(dims) > 1 else (dims[0] if dims else chips.bit_length() - 1), one)
    lines: dict[str, Callable[[int, float | None], Shape]] = {
        "chain": Chain, "ring": Ring, "fully-connected": FullyConnected,
    }  # fmt: skip
    return lines[topology.shape](dims[0] if dims else chips, one)


def _sound(topology: Topology, chips: int) -> None:
    """Refuse declared properties that are not supported."""
    dims, name = topology.dimensions, topology.shape
    if name == "switched":
        if dims or not topology.levels:
            raise TopologyError(f"a switched fabric is declared by its levels, not by {len(dims)} dimensions")
        if (topology.direct or 1) != 1:
            raise TopologyError(f"{topology.direct} direct links of each chip; expected 1, to its peer, or none")
    elif topology.levels or topology.direct is not None:
        raise TopologyError(f"levels and direct links belong to a switched fabric, not to a {name}")
    elif name in ("torus", "mesh") and not dims and chips > 1:
        raise TopologyError(f"a {name} needs the chips along each of its dimensions, such as [4, 4]")
    elif name == "hypercube" and len(dims) > 1 and set(dims) != {2}:
        raise TopologyError(f"a hypercube has 2 chips along each dimension, not {list(dims)}; one number counts them")
    elif name in ("chain", "ring", "fully-connected") and len(dims) > 1:
        raise TopologyError(f"a {name} has one length, not {list(dims)}")


def fabric(graph: Graph, node: Node[Any]) -> Shape | None:
    """The fabric of a server or UltraServer with the rates of its links, or ``None`` where none is declared.

    The rate of a link is that of one direction.  A switched fabric has no rates: what a chip has to each level is not
    declared.

    Raises:
        TopologyError: The declaration contradicts itself.
    """
    declared: Declared | None = getattr(node.spec, "fabric", None)
    count = chips(graph, node)
    if declared is None or declared.topology is None or count is None:
        return None
    inner = per_direction(graph, declared)
    rates = [inner] * len(declared.topology.dimensions)
    outer: Declared | None = getattr(node.spec, "between_servers", None)
    if outer is not None and rates:
        # By convention the first dimension is the one that crosses from server to server.
        rates[0] = per_direction(graph, outer)
    return shape(declared.topology, count[0], tuple(rates))


def per_direction(graph: Graph, declared: Declared) -> float | None:
    """Rate of one link of a fabric in one direction [B/s]: printed, or half of the rate of both directions."""
    link = graph.find(declared.link)
    if link is None:
        return None
    path, factor = directed(link, ("spec", "bandwidth"))
    figure = value_at(link.spec, path[1:])
    return float(figure) * float(factor) if isinstance(figure, Figure) else None
