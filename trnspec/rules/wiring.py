"""Declared topologies: do they have as many chips and links as the system has, and do two descriptions agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trnspec.fabrics import shape
from trnspec.graph import Graph, at
from trnspec.model.document import Node
from trnspec.model.fabric import Fabric
from trnspec.model.server import Server
from trnspec.model.shape import dotted
from trnspec.model.ultraserver import UltraServer
from trnspec.plugin import Finding, rule
from trnspec.rules.relations import AGREES, claimed_paths
from trnspec.source import Path
from trnspec.topology.fabric import TopologyError
from trnspec.topology.parse import parse
from trnspec.totals import chips

_PATH: Path = ("spec", "fabric", "topology")


def _declared(node: Node[Any], graph: Graph) -> tuple[Fabric, int] | None:
    declared: Fabric | None = getattr(node.spec, "fabric", None)
    found = chips(graph, node)
    if declared is None or declared.topology is None or found is None:
        return None
    return declared, found[0]


@rule("TRN501", "topology-size-mismatch", over=object)
def topology_size_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A topology that has another number of chips than the system, or that cannot be built.

    Why:
        Every evaluator counts hops and cuts on the declared topology.  A dropped dimension gives a fabric that is smaller,
        closer and faster than the real one.

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
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric:
            link: neuronlink-v3
            topology: {shape: torus, dimensions: [4, 4]}
        ```

    Source:
        Dally, Towles: Principles and Practices of Interconnection Networks (2004), chapter 5, for torus and mesh.
    """
    declared = _declared(node, graph)
    if declared is None:
        return
    topology = declared[0].topology
    assert topology is not None  # _declared has looked
    try:
        built = shape(topology, declared[1])
    except TopologyError as error:
        yield Finding(_PATH, f"the topology of {node.name} cannot be built: {error}", "see spec.fabric.topology")
        return
    if built.nodes != declared[1]:
        hint = "a dimension is missing or wrong" if topology.dimensions else "the levels do not cover the chips"
        message = f"a {built} has {built.nodes} chips, {node.name} has {declared[1]}"
        yield Finding(_PATH, message, hint, (_count_place(node),))
    for index, level in enumerate(topology.levels):
        if level.count * level.chips != declared[1]:
            message = f"{level.count} {level.name} of {level.chips} chips connect {level.count * level.chips} chips"
            where = (*_PATH, "levels", index)
            yield Finding(where, f"{message}, {node.name} has {declared[1]}", "every chip is on every level")


def _count_place(node: Node[Any]) -> Any:
    path: Path = ("spec", "servers", "count") if isinstance(node.spec, UltraServer) else ("spec", "chips", "count")
    return at(node, path, text=dotted(path[1:]))


@rule("TRN502", "degree-mismatch", over=object)
def degree_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Another number of links at a chip than the topology gives it.

    Why:
        The links of a chip times the rate of one is what a chip has; the degree of the topology is how many of them
        there are.  When the two differ, one figure counts ports or both directions.

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
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric:
            link: neuronlink-v3
            topology: {shape: torus, dimensions: [4, 4]}
            links_per_chip: 4
        ```

    Source:
        Dally, Towles: Principles and Practices of Interconnection Networks (2004), 5.1: a k-ary n-cube has 2n channels.
    """
    declared = _declared(node, graph)
    if declared is None or declared[0].links_per_chip is None or declared[0].topology is None:
        return
    topology = declared[0].topology
    if topology.shape == "switched":
        return
    try:
        built = shape(topology, declared[1]).build()
    except TopologyError:
        return  # told by TRN501
    from trnspec.topology.measures import degrees

    links = declared[0].links_per_chip
    outer = node.spec.between_servers if isinstance(node.spec, UltraServer) else None
    more = outer.links_per_chip if outer is not None and outer.links_per_chip else 0
    most = max(degrees(built))
    if links + more != most:
        told = f"{links} + {more} links" if more else f"{links} links"
        message = f"a chip of {node.name} is said to have {told}, the topology gives it {most}"
        yield Finding(("spec", "fabric", "links_per_chip"), message, "", (at(node, _PATH, text=str(topology.shape)),))


@rule("TRN503", "topologies-differ", over=object)
def topologies_differ(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A topology in words that is not the declared one.

    Why:
        One page calls a fabric a 4D hypercube and the next a 2D torus.  Four by four they are the same graph; two by eight
        they are not.  The words are built and compared as graphs, so only a real difference is reported.

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
            source: neuron-trn1-2023-02
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn2-2026-08}
        spec:
          chips: {chip: trainium2, count: 16}
          fabric:
            link: neuronlink-v3
            topology: {shape: torus, dimensions: [4, 4]}
        claims:
          - at: spec.fabric.topology
            says: 4D hypercube
            source: neuron-trn1-2023-02
        ```

    Source:
        Harary: Graph Theory (1969), chapter 2: the cycle of four is the square of the single edge.
    """
    if not isinstance(node.spec, (Server, UltraServer)):
        return
    declared = _declared(node, graph)
    if declared is None or declared[0].topology is None:
        return
    from trnspec.topology.compare import difference

    try:
        built = shape(declared[0].topology, declared[1])
    except TopologyError:
        return  # told by TRN501
    for index, claim in enumerate(node.claims):
        if _PATH not in claimed_paths(claim.at) or claim.verdict not in AGREES or not isinstance(claim.says, str):
            continue
        try:
            said = parse(claim.says, declared[1])
        except TopologyError:
            continue  # words that name no shape, a list of neighbours for instance
        reason = difference(built.build(), said.build())
        if reason:
            path = (*node.claim_path(index), "says")
            message = f"{claim.source} says {claim.says}, declared is a {built}: {reason}"
            yield Finding(path, message, "add a verdict and a reason", (at(node, _PATH, text=str(built)),))
