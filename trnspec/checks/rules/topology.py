"""Declared topologies: their number of chips and links, and whether two descriptions agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from trnspec.checks.reconcile.relations import AGREES
from trnspec.diagnostics import Location
from trnspec.graph.composition import chips, count_path, parts, servers
from trnspec.graph.fabrics import shape
from trnspec.graph.graph import Graph, at
from trnspec.graph.products import chips_of
from trnspec.graph.provenance import claims_at
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.document import Node
from trnspec.model.fabric import Fabric, Topology
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Finding, rule
from trnspec.topology.compare import difference
from trnspec.topology.fabric import TopologyError
from trnspec.topology.measures import degrees
from trnspec.topology.parse import parse
from trnspec.topology.shapes import Shape
from trnspec.yaml import Path

_PATH: Path = ("spec", "fabric", "topology")


_BETWEEN: Path = ("spec", "between_servers", "topology")

MOST_CHIPS = 1_024
"""Larger fabrics are compared by their number of chips only, so that a few wrong zeros do not fill the memory."""


def _topologies(node: Node[Any], graph: Graph) -> Iterator[tuple[Path, Topology, int]]:
    """Every declared topology with its path and the number of its members: chips, or servers for ``between_servers``."""
    for path, counted in ((_PATH, chips), (_BETWEEN, servers)):
        fabric: Fabric | None = getattr(node.spec, str(path[1]), None)
        members = counted(graph, node)
        if fabric is not None and fabric.topology is not None and members is not None:
            yield path, fabric.topology, members[0]


@rule("TRN501", "topology-size-mismatch", over=object, local=True)
def topology_size_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A topology that has a different number of chips than the system, or is invalid.

    Why:
        Every evaluator counts hops and cuts on the declared topology. Without a dimension the fabric is smaller and faster
        than the real one.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric:
            link: neuronlink-v3
            topology: {shape: torus, dimensions: [4, 8]}  #! TRN501
        ```

    Instead:
        ```diff
        -    topology: {shape: torus, dimensions: [4, 8]}
        +    topology: {shape: torus, dimensions: [4, 4]}
        ```

    Source:
        Dally, Towles: Principles and Practices of Interconnection Networks (2004), chapter 5, for torus and mesh.
    """
    for path, topology, members in _topologies(node, graph):
        what = "servers" if path == _BETWEEN else "chips"
        built = _built(topology, members)
        if any(lost[: len(path)] == path for lost in node.document.rejected):
            continue
        if isinstance(built, str):
            message, hint = f"the topology of {node.name} cannot be built: {built}", f"see {dotted(path)}"
            yield Finding(path, message, hint, tuple(_count_places(node, graph)))
            continue
        if built.nodes != members:
            hint = "a dimension is missing or wrong" if topology.dimensions else "the levels do not cover the chips"
            message = f"a {built} has {built.nodes} {what}, {node.name} has {members}"
            yield Finding(path, message, hint, tuple(_count_places(node, graph)))
        for index, level in enumerate(topology.levels):
            connected = level.count * level.chips
            if connected != members:
                message = f"{level.count} {level.name} of {level.chips} {what} connect {connected} {what}"
                where = (*path, "levels", index)
                yield Finding(where, f"{message}, {node.name} has {members}", f"all {what} are on every level")


def _count_places(node: Node[Any], graph: Graph) -> Iterator[Location]:
    for part in parts(graph, node) or ():
        path = count_path(node, part.ref)
        if path is not None:
            yield at(node, path, text=dotted(path[1:]))


@rule("TRN502", "degree-mismatch", over=object, local=True)
def degree_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A number of links per chip that differs from the degree of the topology.

    Why:
        The bandwidth of a chip is its number of links times the rate of one link, and the number of links is the degree of
        the topology. If the two differ, one of them counts ports or both directions.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric:
            link: neuronlink-v3
            topology: {shape: torus, dimensions: [4, 4]}
            links_per_chip: 6  #! TRN502
        ```

    Instead:
        ```diff
        -    links_per_chip: 6
        +    links_per_chip: 4
        ```

    Source:
        Dally, Towles: Principles and Practices of Interconnection Networks (2004), 5.1: a k-ary n-cube has 2n channels.
    """
    fabric: Fabric | None = getattr(node.spec, "fabric", None)
    outer: Fabric | None = getattr(node.spec, "between_servers", None)
    if fabric is None or fabric.links_per_chip is None or node.document.damages(_BETWEEN[:2]):
        return
    if outer is not None and outer.links_per_chip is None:
        return
    links, more = fabric.links_per_chip, (None if outer is None else outer.links_per_chip) or 0
    for path, topology, members in _topologies(node, graph):
        if path != _PATH or topology.shape == "switched":
            continue
        built = _built(topology, members)
        if isinstance(built, str) or built.nodes > MOST_CHIPS:
            continue  # TRN501 reports a topology that cannot be built
        most = max(degrees(built.build()))
        if links + more != most:
            declared_links = f"{links} + {more} links" if more else f"{links} links"
            message = f"a chip of {node.name} has {declared_links}, but {most} in the topology"
            hint = (
                f"write {most}, or correct the topology" if not more else "correct one of the counts, or the topology"
            )
            see: tuple[Location, ...] = (at(node, _PATH, text=str(topology.shape)),)
            see += (at(node, (*_BETWEEN[:2], "links_per_chip")),) if more else ()
            yield Finding(("spec", "fabric", "links_per_chip"), message, hint, see)


@rule("TRN503", "topologies-differ", over=object, local=True)
def topologies_differ(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A topology in words that differs from the declared one.

    Why:
        One page calls a fabric a 4D hypercube and another a 2D torus. With 4 x 4 chips they are the same graph; with 2 x 8
        they are not. Both are built and compared as graphs, so only a real difference is reported.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric:
            link: neuronlink-v3
            topology: {shape: torus, dimensions: [2, 8]}
        claims:
          - at: spec.fabric.topology
            says: 4D hypercube  #! TRN503
            source: neuron-trn2-2024-12
        ```

    Instead:
        ```diff
        -    topology: {shape: torus, dimensions: [2, 8]}
        +    topology: {shape: torus, dimensions: [4, 4]}
        ```

    Source:
        Harary: Graph Theory (1969), chapter 2: the cycle of four is the square of the single edge.
    """
    for path, topology, members in _topologies(node, graph):
        built = _built(topology, members)
        if isinstance(built, str):
            continue  # reported by TRN501
        if built.nodes != members or built.nodes > MOST_CHIPS:
            continue
        differing, agreeing = {}, 0
        for index in claims_at(node).get(path, ()):
            claim = node.claims[index]
            said = claim.says if claim.verdict in AGREES and isinstance(claim.says, str) else ""
            if said and (claimed := _parsed(said, members)) is not None:
                reason = _difference(built, claimed)
                agreeing += not reason
                if reason:
                    differing[(*node.claim_path(index), "says")] = (f"{claim.source} has {said}", reason)
        if len(differing) > 1 and not agreeing:
            message = f"the topology is a {built}, but {'; '.join(text for text, _ in differing.values())}"
            yield Finding(path, message, "correct the topology", tuple(at(node, each) for each in differing))
            continue
        for where, (text, reason) in differing.items():
            message = f"{text}, but the declared topology is a {built}: {reason}"
            yield Finding(where, message, "add a verdict and a reason", (at(node, path, text=str(built)),))


def _built(topology: Topology, members: int) -> Shape | str:
    """The structure of a declaration, or why it cannot be built; imported here, as most documents declare none."""
    try:
        return shape(topology, members)
    except TopologyError as error:
        return str(error)


@lru_cache(maxsize=1024)
def _parsed(text: str, members: int) -> Shape | None:
    """The shape that the words describe; ``None`` for other words, for instance a list of neighbours."""
    for nodes in (members, None):
        try:
            return parse(text, nodes)
        except TopologyError:
            continue  # it may name a shape of another size
    return None


@lru_cache(maxsize=1024)  # many servers have the same topology, and the same words for it
def _difference(built: Shape, claimed: Shape) -> str:
    if built.nodes != claimed.nodes:
        return f"{built.nodes:,} chips against {claimed.nodes:,}"
    return difference(built.build(), claimed.build())


@rule("TRN504", "link-chip-mismatch", local=True)
def link_chip_mismatch(graph: Graph) -> Iterator[Finding]:
    """A chip and the fabric of a server that name different links.

    Why:
        The fabric of a server consists of the links of its chips. Where the two documents name different links, one of them
        names that of another generation, and the rate of a chip is computed from the wrong one.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric: {link: neuronlink-v4}  #! TRN504
        ```

    Instead:
        ```diff
        -  fabric: {link: neuronlink-v4}
        +  fabric: {link: neuronlink-v3}
        ```

    Source:
        AWS Neuron documentation, the architecture pages of Trainium1 to 3, which name the link once for chip and server.
    """
    systems: dict[str, list[Node[Any]]] = {}
    concerned = frozenset[str]().union(*(chips_of(graph, n) for n in graph.focused(Chip, Server, UltraServer)))
    nodes: list[Node[Any]] = [*graph.of(Server), *graph.of(UltraServer)]
    users = graph.using(concerned)
    for node in (n for n in nodes if n.name in users):
        counted = chips(graph, node)
        if counted is not None and node.spec.fabric is not None:
            systems.setdefault(counted[1].name, []).append(node)
    for chip in (c for c in graph.of(Chip) if c.name in concerned):
        links = chip.spec.links
        if links is None:
            continue
        differing = [
            n for n in systems.get(chip.name, ()) if graph.find(n.spec.fabric.link) is not graph.find(links.link)
        ]
        others = {n.spec.fabric.link.name for n in differing}
        if len(differing) > 1 and len(others) == 1 and len(differing) == len(systems[chip.name]):
            message = (
                f"the links of {chip.name} are {links.link}, but {', '.join(others)} in {len(differing)} systems of it"
            )
            see = tuple(at(n, ("spec", "fabric", "link")) for n in differing)
            yield Finding(("spec", "links", "link"), message, f"{', '.join(others)}?", see[:3], chip)
            continue
        for node in differing:
            message = f"the fabric of {node.name} consists of {node.spec.fabric.link}, but {chip.name} has {links.link}"
            of: Path = ("spec", "chips", "chip") if node.is_of(Server) else ("spec", "servers", "server")
            see = (at(chip, ("spec", "links", "link")), at(node, of))
            yield Finding(("spec", "fabric", "link"), message, f"{links.link}?", see, node)


_CONNECTS: tuple[tuple[type[Any], tuple[str, str], str], ...] = (
    (Chip, ("links", "link"), "chips"),
    (Server, ("fabric", "link"), "chips"),
    (Server, ("network", "link"), "servers"),
    (UltraServer, ("fabric", "link"), "chips"),
)
"""Ends of a link, by where it is used. Between the servers of an UltraServer are links of either use."""


@rule("TRN505", "link-use-mismatch", over=object, local=True)
def link_use_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A network that consists of links between chips, or a fabric of chips that consists of links between servers.

    Why:
        NICs connect servers, the fabric connects chips. A link of the other use is a row of another table: its rate is
        several times lower or higher, and every collective is computed with it.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 1}
          network: {technology: EFA, link: neuronlink-v3}  #! TRN505
        ```

    Instead:
        ```diff
        -  network: {technology: EFA, link: neuronlink-v3}
        +  network: {technology: EFA, link: efa-v3}
        ```

    Source:
        AWS Neuron documentation, the architecture pages of Trn1 to Trn3, with a table each for NeuronLink and EFA.
    """
    for kind, (part, name), expected in _CONNECTS:
        holder = getattr(node.spec, part) if isinstance(node.spec, kind) else None
        link = None if holder is None else graph.find(holder.link)
        if link is not None and link.spec.connects != expected:
            message = f"{link.name} connects {link.spec.connects}, but links between {expected} are expected here"
            see = (at(link, ("spec", "connects")),)
            yield Finding(("spec", part, name), message, f"name a link that connects {expected}", see)


@rule("TRN506", "server-chip-mismatch", over=Cluster, local=True)
def server_chip_mismatch(cluster: Node[Cluster], graph: Graph) -> Iterator[Finding]:
    """A cluster with another chip than its servers.

    Why:
        The chips of a cluster are those of its servers. Where the two differ, one was left over from a copied document.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Cluster
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chip: trainium2  #! TRN506
          servers: [trn1.32xlarge]
        ```

    Instead:
        ```diff
        -  chip: trainium2
        +  chip: trainium1
        ```

    Source:
        AWS Neuron documentation, the pages of Trn1 and Trn1n, each with the UltraCluster of its servers.
    """
    chip = cluster.spec.chip and graph.find(cluster.spec.chip)
    for index, reference in enumerate(cluster.spec.servers if chip else ()):
        server = graph.find(reference)
        counted = server and chips(graph, server)
        if server and counted and counted[1] is not chip:
            message = f"the chip is {cluster.spec.chip}, but {server.name} has {counted[1].name}"
            see = (at(cluster, ("spec", "servers", index)), at(server, ("spec", "chips", "chip")))
            yield Finding(("spec", "chip"), message, f"{counted[1].name}, or another server?", see)
            break
