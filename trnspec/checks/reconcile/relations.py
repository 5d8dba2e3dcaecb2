"""The relations between figures: every total and the parts that it is the sum of, every claim and its attribute.

The relations of a catalog are data: the rules that check them, the search for the most likely wrong figure, the
explanation of a gap and the audit all use the same list.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Any

import attrs
from attrs import evolve, frozen

from trnspec.checks.reconcile.sites import PartsTerm, Relation, Site, claimed
from trnspec.graph.composition import (
    Occurrence,
    count_path,
    in_text,
    occurrences,
    part_kinds,
    parts,
    word,
)
from trnspec.graph.formulas import value_of
from trnspec.graph.graph import ONE, Graph, cached_by_graph, directed, figure_at
from trnspec.graph.provenance import claims_at, source_of
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.fabric import Fabric
from trnspec.model.fields import Rates
from trnspec.model.figure import Figure
from trnspec.model.link import Link
from trnspec.model.parts import has_parts
from trnspec.model.ref import Ref
from trnspec.model.reflection import (
    FigureShape,
    NumberShape,
    ObjectShape,
    class_paths,
    is_extensive,
    shape_at,
    spread,
)
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.formula import FormulaError
from trnspec.yaml import Path

AGREES = (None, "agrees")
"""The verdicts of a claim that is expected to hold."""

EVERY_RATE = tuple((kind, dtype) for kind in ("dense", "sparse") for dtype in (a.name for a in attrs.fields(Rates)))
"""All possible peak rates: ``("dense", "bf16")`` and so on."""


def relations(graph: Graph) -> Iterator[Relation]:
    """Every relation of a graph whose figures are stated. They are not kept: nearly all of a large catalog hold.

    With a focus: those of its documents, and all that share a figure with one that fails, directly or through others,
    which decide on which figure is reported.
    """
    _, scope = _failing_in_scope(graph)
    for skeleton in itertools.chain(sums(graph, is_claimed, scope), _claims(graph, scope)):
        yield from _expanded(skeleton)


def failing(graph: Graph) -> tuple[Relation, ...]:
    """The relations that do not hold, in the order of :func:`relations`, kept for the lifetime of the graph."""
    return _failing_in_scope(graph)[0]


@cached_by_graph
def _failing_in_scope(graph: Graph) -> tuple[tuple[Relation, ...], AbstractSet[str] | None]:
    """The relations that do not hold, and the documents that they were looked for in; ``None``: all."""
    scope = graph.scope
    found = _failing_of(graph, scope)
    while scope is not None:
        wider = scope | graph.using({site.node.name for relation in found for site in relation.sites})
        if wider == scope:
            break
        scope = wider
        found = _failing_of(graph, scope)
    return found, scope


def _failing_of(graph: Graph, scope: AbstractSet[str] | None) -> tuple[Relation, ...]:
    skeletons = itertools.chain(sums(graph, is_claimed, scope), _claims(graph, scope))
    return tuple(relation for s in skeletons for relation in _expanded(s) if not relation.holds)


@cached_by_graph
def is_supported(graph: Graph, name: str, path: Path) -> bool:
    """Whether another figure agrees with an adopted one: a sum or a claim that holds, or its own formula."""
    for relation in relations(graph.focused_on([name])):
        if relation.holds and any(s.key == (name, path, None) for s in relation.sites):
            return True
    return agrees_with_formula(graph.named(name), path, graph)


def agrees_with_formula(node: Node[Any], path: Path, graph: Graph) -> bool:
    """Whether a figure agrees with a formula of its own, which supports it as another source would."""
    figure = figure_at(node, path)
    for key in ("derived", "check") if isinstance(figure, Figure) else ():
        formula = getattr(figure, key)
        try:
            if formula and value_of(formula, node, graph, exact=key == "derived").overlaps(figure.value.interval):
                return True
        except FormulaError:
            continue  # reported by TRN404
    return False


def _expanded(skeleton: Relation) -> Iterator[Relation]:
    """The relations of a skeleton: one for its total or, where none is adopted, for every claim on it."""
    for whole in _stated(skeleton.total):
        relation = skeleton if whole is skeleton.total else evolve(skeleton, total=whole)
        if relation.is_stated:
            yield relation


Wanted = Callable[["Node[Any]", "Path"], bool]


def sums(
    graph: Graph, wanted: Wanted = lambda _node, _path: True, scope: AbstractSet[str] | None = None
) -> Iterator[Relation]:
    """Every relation of a sum, whether or not its figures are stated.

    Args:
        graph: The documents.
        wanted: Whether the relations of a published total, the path of a document, are needed; evaluated first, since most
            totals are not stated.
        scope: The names of documents, with all that refer to them: the relations between their figures; all if ``None``.
    """
    for kind in (Core, Link, Chip, Server, UltraServer, Cluster):
        nodes: Iterable[Node[Any]] = graph.of(kind)
        for node in nodes:
            if scope is None or node.name in scope:
                yield from _of_table(node, graph, wanted)
                yield from _of_links(node, graph)
    for node in _within(graph, scope):
        yield from _stated_totals(node, graph, wanted)


@cached_by_graph
def _sums_by_path(graph: Graph) -> Mapping[tuple[str, Path], list[Relation]]:
    found: dict[tuple[str, Path], list[Relation]] = {}
    for relation in sums(graph, scope=graph.scope):
        for name, path, _ in dict.fromkeys(s.key for s in (relation.total, *(t.part for t in relation.terms))):
            found.setdefault((name, path), []).append(relation)
    return found


def sums_of(site: Site, graph: Graph) -> list[Relation]:
    """The sums of which a figure is the total or a part, whether or not their figures are stated."""
    return _sums_by_path(graph).get((site.node.name, site.path), [])


def _within(graph: Graph, scope: AbstractSet[str] | None) -> Iterable[Node[Any]]:
    return graph if scope is None else (n for n in graph if n.name in scope)


def _claims(graph: Graph, scope: AbstractSet[str] | None) -> Iterator[Relation]:
    """The claims on adopted figures."""
    for node in _within(graph, scope):
        spec: Any = type(node.spec)
        for index, claim in enumerate(node.claims):
            for path in spread(claim.at) if claim.verdict in AGREES else ():
                if isinstance(shape_at(spec, path[1:]), (FigureShape, NumberShape)):
                    yield claimed(Site(node, path, index), Site(node, path))


def is_claimed(node: Node[Any], path: Path) -> bool:
    """Whether there is an adopted figure at a path, or a claim on it that is not rejected."""
    return any(True for _ in _stated(Site(node, path)))


def _stated(site: Site) -> Iterator[Site]:
    """The adopted figure at a site or, where there is none, the claims on it that are not rejected."""
    if site.value is not None:
        yield site
        return
    for index in claims_at(site.node).get(site.path, ()):
        if site.node.claims[index].verdict in AGREES:
            yield Site(site.node, site.path, index)


def site(node: Node[Any], path: str) -> Site:
    """The site of a dotted path below ``spec``."""
    return Site(node, ("spec", *path.split(".")))


@frozen
class _Sum:
    """A row of the table of sums: a total is a number of equal parts.

    Attributes:
        total: The path of the total below ``spec``, like the other paths.
        counts: The counts that the part is multiplied by.
        part: The figure of one part.
        level: The level of the composition.
        of: The path of the reference to the document of the part; empty for the same document. A rate in one direction of
            that document that is not stated is derived from the other direction.
        factor: An exact number that the part is also multiplied by.
        across: Whether total and part have different dimensions.
    """

    total: str
    counts: tuple[str, ...]
    part: str
    level: str
    of: str = ""
    factor: Fraction = ONE
    across: bool = False


_DIRECTIONS = ("per_direction", "both")
_CORES, _ARRAY = ("cores.count",), ("engines.tensor.array.rows", "engines.tensor.array.columns")


def _both_directions(path: str) -> _Sum:
    return _Sum(f"{path}.both", (), f"{path}.per_direction", "directions", factor=Fraction(2))


def _fabric(name: str) -> Iterator[_Sum]:
    """The rate of a fabric against the links of one chip in it, in each direction that the fabric states."""
    yield _both_directions(f"{name}.bandwidth")
    for direction in _DIRECTIONS:
        total, part = f"{name}.bandwidth.{direction}", f"bandwidth.{direction}"
        yield _Sum(total, (f"{name}.links_per_chip",), part, "links of a chip", of=f"{name}.link")


_TABLE: dict[type, tuple[_Sum, ...]] = {
    Core: (
        _Sum("sbuf.capacity", ("sbuf.partitions",), "sbuf.per_partition", "partitions"),
        _Sum("sbuf.per_partition", ("sbuf.banks",), "sbuf.per_bank", "banks"),
        _Sum("psum.capacity", ("psum.partitions",), "psum.per_partition", "partitions"),
        _Sum("psum.per_partition", ("psum.banks",), "psum.per_bank", "banks"),
        _Sum("dma.achieved", ("dma.engines",), "dma.achieved_per_engine", "DMA engines"),
        # Every element multiplies and adds once a cycle: two operations.
        *(
            _Sum(peak, _ARRAY, "engines.tensor.clock", "processing elements", factor=Fraction(2), across=True)
            for peak in ("engines.tensor.peak.dense.bf16", "engines.tensor.peak.dense.fp16")
        ),
    ),
    Link: (
        _both_directions("bandwidth"),
        _Sum("bandwidth.per_direction", ("lanes.count",), "lanes.rate", "lanes"),
    ),
    Chip: (
        _Sum("memory.capacity", ("memory.stacks.count",), "memory.stacks.capacity", "stacks"),
        _both_directions("links.bandwidth"),
        _Sum("sbuf", _CORES, "sbuf.capacity", "cores of a chip", of="cores.core"),
        _Sum("cc_cores.usable", _CORES, "cc_cores", "cores of a chip", of="cores.core"),
        _Sum("dma.engines", _CORES, "dma.engines", "cores of a chip", of="cores.core"),
        _Sum("dma.bandwidth", ("dma.engines",), "dma.per_engine", "DMA engines of a chip", of="cores.core"),
        *(
            _Sum(f"tensor_peak.{rate}", _CORES, f"engines.tensor.peak.{rate}", "cores of a chip", of="cores.core")
            for rate in map(".".join, EVERY_RATE)
        ),
    ),
    Server: (
        *_fabric("fabric"),
        _Sum("network.bandwidth", ("network.nics",), "bandwidth.per_direction", "NICs", of="network.link"),
    ),
    UltraServer: (*_fabric("fabric"), *_fabric("between_servers")),
}


def _of_table(node: Node[Any], graph: Graph, wanted: Wanted) -> Iterator[Relation]:
    for row in _TABLE.get(type(node.spec), ()):
        total = site(node, row.total)
        ref = figure_at(node, ("spec", *row.of.split("."))) if row.of else None
        holder = graph.find(ref) if row.of else node
        if holder is None or not wanted(node, total.path):
            continue
        path, _, direction = row.part.rpartition(".")
        is_directed = bool(row.of) and direction in _DIRECTIONS
        part, factor = _directed(holder, path, direction) if is_directed else (site(holder, row.part), row.factor)
        counts = tuple(site(node, count) for count in row.counts)
        yield Relation(total, (PartsTerm(counts, part, factor),), row.level, row.across)


def _directed(node: Node[Any], path: str, direction: str) -> tuple[Site, Fraction]:
    """The site of a rate in one or in both directions, and the factor to it."""
    at, factor = directed(node, ("spec", *path.split(".")), direction)
    return Site(node, at), factor


def _of_links(node: Node[Any], graph: Graph) -> Iterator[Relation]:
    """The links of a chip against its ports and the fabrics that they form; the network of the servers of a cluster."""
    if node.is_of(Chip):
        yield from _ports(node, graph)
    elif node.is_of(Server, UltraServer) and not node.document.damages(_BETWEEN):
        chip = _chip_of(node, graph)
        if chip is not None:
            yield from _fabrics_of_chip(node, chip, graph)
    elif node.is_of(Cluster):
        for ref in node.spec.servers:
            if (server := graph.find(ref)) is not None:
                term = PartsTerm((), site(server, "network.bandwidth"))
                yield Relation(site(node, "per_server"), (term,), "one server")


_BETWEEN: Path = ("spec", "between_servers")


def _ports(chip: Node[Chip], graph: Graph) -> Iterator[Relation]:
    """The links of a chip against its ports, where a port is one link and no further links leave the server.

    A chip that no UltraServer has is compared as the chips with the same link.
    """
    links = chip.spec.links
    link, systems = graph.find(links.link if links else None), _ultraservers(graph)
    if link is None or _may_leave_server(chip, graph):
        return
    if not all(
        ultraserver.spec.fabric is not None
        and ultraserver.spec.between_servers is None
        and _uses_all_links(ultraserver.spec.fabric, chip)
        for ultraserver in systems.get(chip.name, systems.get(link.name, ()))
    ):
        return
    for direction in _DIRECTIONS:
        term = PartsTerm((site(chip, "links.ports"),), *_directed(link, "bandwidth", direction))
        yield Relation(site(chip, f"links.bandwidth.{direction}"), (term,), "ports of a chip")


def _fabrics_of_chip(system: Node[Any], chip: Node[Chip], graph: Graph) -> Iterator[Relation]:
    """The links of a chip against the fabrics that they form in a server or an UltraServer."""
    fabric, outer = system.spec.fabric, getattr(system.spec, "between_servers", None)
    # Some links of a chip may leave a server for its UltraServer, whose fabric is not that of its servers.
    is_all = fabric is not None and _uses_all_links(fabric, chip)
    is_all &= system.is_of(UltraServer) or not (chip.name in _ultraservers(graph) or _may_leave_server(chip, graph))
    for direction in _DIRECTIONS if outer is not None or is_all else ():
        terms = [_rate_of_chip(system, "fabric", direction, graph)]
        level = f"links in {_article(in_text(type(system.spec)))}"
        if outer is not None:
            terms.append(_rate_of_chip(system, "between_servers", direction, graph))
            level = "links in a server and between servers"
        yield Relation(site(chip, f"links.bandwidth.{direction}"), tuple(terms), level)
    server = graph.find(system.spec.servers.server) if outer is not None else None
    if server is None:
        return
    for direction in _DIRECTIONS:
        term = PartsTerm((), *_directed(server, "fabric.bandwidth", direction))
        yield Relation(site(system, f"fabric.bandwidth.{direction}"), (term,), "links of a chip in its server")


def _rate_of_chip(node: Node[Any], name: str, direction: str, graph: Graph) -> PartsTerm:
    """The part of a fabric in the links of a chip, in one or in both directions: its rate, or else its links."""
    part, factor = _directed(node, f"{name}.bandwidth", direction)
    fabric = getattr(node.spec, name)
    link = graph.find(fabric.link if fabric else None)
    if part.value is None and link is not None and fabric.links_per_chip is not None:
        return PartsTerm((site(node, f"{name}.links_per_chip"),), *_directed(link, "bandwidth", direction))
    return PartsTerm((), part, factor)


def _chip_of(system: Node[Any], graph: Graph) -> Node[Chip] | None:
    server = system if system.is_of(Server) else graph.find(system.spec.servers.server)
    return None if server is None else graph.find(server.spec.chips.chip)


def _uses_all_links(fabric: Fabric, chip: Node[Chip]) -> bool:
    """Whether a fabric consists of the links of a chip, and of all of them if they are counted."""
    links = chip.spec.links
    if links is None or links.link != fabric.link or fabric.links_per_chip is None:
        return False
    return links.ports is None or links.ports <= fabric.links_per_chip


@cached_by_graph
def _ultraservers(graph: Graph) -> dict[str, list[Node[UltraServer]]]:
    """The UltraServers of each chip, and of each link of chips, by name: its links may leave their server."""
    by_name: dict[str, list[Node[UltraServer]]] = {}
    for ultraserver in graph.of(UltraServer):
        chip = _chip_of(ultraserver, graph)
        if chip is not None:
            by_name.setdefault(chip.name, []).append(ultraserver)
            if chip.spec.links is not None and chip.spec.links.link is not None:
                by_name.setdefault(chip.spec.links.link.name, []).append(ultraserver)
    return by_name


def _may_leave_server(chip: Node[Chip], graph: Graph) -> bool:
    """Whether an UltraServer of a chip may not be known, or not all of its links, because a document has errors."""
    systems = _ultraservers(graph).get(chip.name, ())
    if (graph.broken and not systems) or any(s.document.damages(_BETWEEN) for s in systems):
        return True
    link = chip.spec.links.link if chip.spec.links else None
    return any(
        fabric is not None and fabric.link == link
        for ultraserver in graph.of(UltraServer)
        if graph.find(ultraserver.spec.servers.server) is None
        for fabric in (ultraserver.spec.fabric, ultraserver.spec.between_servers)
    )


def _stated_totals(node: Node[Any], graph: Graph, wanted: Wanted) -> Iterator[Relation]:
    """The published totals of a document, below ``stated``, each as the sum over its parts.

    A total is compared with the extensive figure of the same path in the nearest parts, ``chips`` and ``cores`` with the
    numbers of parts, and with the published total of its direct parts if they have one.
    """
    if not has_parts(type(node.spec)):
        return
    spec: Any = type(node.spec)
    for path in _total_paths(spec):
        at = ("spec", "stated", *path)
        if not wanted(node, at):
            continue
        total = Site(node, at)
        # From the direct parts to the innermost ones: the audit compares with the last, which has the smallest rounding.
        direct = parts(graph, node) or ()
        stated = tuple(Occurrence(part.node, ((node, part),)) for part in direct)
        if all(shape_at(type(part.node.spec), ("stated", *path)) is not None for part in direct):
            yield from _sum(total, stated, at, node)
        if figures := _extensive(graph, node, path):
            yield from _sum(total, figures, ("spec", *path), node)
        elif counts := _extensive(graph, node, (*path, "count")):
            yield from _sum(total, counts, ("spec", *path, "count"), node)
        else:
            yield from _sum(total, _counted(graph, node, path), None, node)


@functools.cache
def _total_paths(spec: Any) -> tuple[Path, ...]:
    shape = shape_at(spec, ("stated",))
    return tuple(class_paths(shape.cls)) if isinstance(shape, ObjectShape) else ()


def _extensive(graph: Graph, node: Node[Any], path: Path) -> tuple[Occurrence, ...]:
    """The nearest parts that have a path that adds up."""
    return occurrences(graph, node, lambda n: is_extensive(type(n.spec), path)) or ()


def _counted(graph: Graph, node: Node[Any], path: Path) -> tuple[Occurrence, ...]:
    """The parts that a total such as ``chips`` is the number of; none for any other total."""
    kind = str(path[0]).removesuffix("s")
    if len(path) > 1 or not any(word(k) == kind for k in part_kinds(graph, type(node.spec))):
        return ()
    return occurrences(graph, node, lambda n: word(type(n.spec)) == kind) or ()


def _sum(total: Site, summed: tuple[Occurrence, ...], path: Path | None, node: Node[Any]) -> Iterator[Relation]:
    """The relation between a total and a figure of parts; with ``None`` for the path, their numbers are summed."""
    terms: list[PartsTerm] = []
    for occurrence in summed:
        counts = [
            Site(holder, at) for holder, part in occurrence.steps if (at := count_path(holder, part.ref)) is not None
        ]
        if len(counts) < len(occurrence.steps):
            return  # a number of parts that is not stated
        if path is not None:
            terms.append(PartsTerm(tuple(counts), Site(occurrence.node, path)))
        elif counts:
            terms.append(PartsTerm(tuple(counts[:-1]), counts[-1]))
    if terms:
        # The number of chips of an UltraServer follows from its servers; every other total from the parts themselves.
        level = f"{in_text(type(terms[0].part.node.spec))}s of {_article(in_text(type(node.spec)))}"
        yield Relation(total, tuple(terms), level)


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


# The sums among the figures of each source, which distinguish an outdated page from one that contradicts itself.


def sums_by_source(graph: Graph) -> Mapping[str, list[Relation]]:
    """For each source, by name, the sums among its own figures for totals and parts, with the adopted counts."""
    by_source: dict[str, list[Relation]] = {}
    for skeleton in sums(graph, _has_source, graph.scope):
        of_total = _sources(graph, skeleton.total.node, skeleton.total.path)
        if not of_total:
            continue
        where = [of_total, *(_sources(graph, t.part.node, t.part.path) for t in skeleton.terms)]
        for source in of_total:
            if all(source in sources for sources in where):
                by_source.setdefault(source, []).extend(_among(skeleton, [sources[source] for sources in where]))
    return by_source


def _among(skeleton: Relation, sides: list[list[int | None]]) -> Iterator[Relation]:
    whole = skeleton.total
    for claim, *claims in itertools.product(*sides):
        terms = tuple(
            evolve(t, part=Site(t.part.node, t.part.path, c)) for t, c in zip(skeleton.terms, claims, strict=True)
        )
        relation = evolve(skeleton, total=Site(whole.node, whole.path, claim), terms=terms)
        if relation.is_stated:
            yield relation


def _has_source(node: Node[Any], path: Path) -> bool:
    """Whether a source gives the figure at a path: whether :func:`_sources` has one."""
    return path in claims_at(node) or _own_source(node, path) is not None


def _own_source(node: Node[Any], path: Path) -> Ref[Source] | None:
    return source_of(node, path) if isinstance(figure_at(node, path), Figure) else None


def _sources(graph: Graph, node: Node[Any], path: Path) -> Mapping[str, list[int | None]]:
    """The sources of the figure at a path: ``None`` for the adopted figure, and the indices of claims."""
    sources: dict[str, list[int | None]] = {}
    own = _own_source(node, path)
    if own is not None:
        sources[graph.aliases.get(own.name, own.name)] = [None]
    for index in claims_at(node).get(path, ()):
        name = node.claims[index].source.name
        sources.setdefault(graph.aliases.get(name, name), []).append(index)
    return sources
