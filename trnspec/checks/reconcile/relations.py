"""The relations between figures: every total and the parts that it is the sum of, every claim and its attribute.

The relations of a catalog are data: the rules that check them, the search for the most likely wrong figure, the
explanation of a gap and the audit all use the same list.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from attrs import evolve

from trnspec.checks.reconcile.sites import CLAIM, ONE, Relation, Site, Term, is_multiple
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
from trnspec.graph.graph import cached_by_graph, figure_at
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.fields import Rates
from trnspec.model.figure import Figure
from trnspec.model.link import Link
from trnspec.model.parts import has_parts
from trnspec.model.reflection import (
    FigureShape,
    NumberShape,
    ObjectShape,
    class_paths,
    is_extensive,
    shape_at,
    spread,
)
from trnspec.model.rounded import RoundedCount
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.formula import FormulaError
from trnspec.quantities.quantity import Quantity, parse_or_none

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.model.fabric import Fabric
    from trnspec.model.ref import Ref
    from trnspec.yaml import Path

T = TypeVar("T")

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
    skeletons = itertools.chain(sums(graph, is_claimed, scope), _doubtful_claims(graph, scope))
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
    for formula in (figure.derived, figure.check) if isinstance(figure, Figure) else ():
        try:
            if formula is not None and value_of(formula, node, graph).overlaps(figure.value.interval):
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

    def of(kind: type[T]) -> Iterator[Node[T]]:
        return (n for n in graph.of(kind) if scope is None or n.name in scope)

    for core in of(Core):
        yield from _core(core)
    for link in of(Link):
        yield from _link(link)
    for chip in of(Chip):
        yield from _chip(chip, graph, wanted)
    for server in of(Server):
        yield from _server(server, graph)
    for ultraserver in of(UltraServer):
        yield from _ultraserver(ultraserver, graph)
    for cluster in of(Cluster):
        yield from _cluster(cluster, graph)
    for node in _within(graph, scope):
        yield from _stated_totals(node, graph, wanted)


def _within(graph: Graph, scope: AbstractSet[str] | None) -> Iterable[Node[Any]]:
    return graph if scope is None else (n for n in graph if n.name in scope)


@functools.lru_cache(maxsize=4096)
def claimed_paths(at: str) -> tuple[Path, ...]:
    """The paths of a claim; none if its braces do not match, which is reported elsewhere."""
    try:
        return tuple(spread(at))
    except ValueError:
        return ()


def _claims(graph: Graph, scope: AbstractSet[str] | None) -> Iterator[Relation]:
    for node in _within(graph, scope):
        for index, claim in enumerate(node.claims):
            if claim.verdict not in AGREES:
                continue
            for path in claimed_figures(type(node.spec), claim.at):
                yield from _relate(Site(node, path, index), [Term((), Site(node, path))], CLAIM)


def _doubtful_claims(graph: Graph, scope: AbstractSet[str] | None) -> Iterator[Relation]:
    """Those of :func:`_claims` that may fail: nearly all claims repeat the adopted figure."""
    for node in _within(graph, scope):
        spec: Any = type(node.spec)
        for index, claim in enumerate(node.claims):
            if claim.verdict not in AGREES:
                continue
            for path in claimed_figures(spec, claim.at):
                adopted = figure_at(node, path)
                if adopted is None:
                    continue
                said = claim.says if isinstance(claim.says, int) else parse_or_none(claim.says, node.units)
                if not _surely_agree(said, adopted.value if isinstance(adopted, Figure) else adopted):
                    yield from _relate(Site(node, path, index), [Term((), Site(node, path))], CLAIM)


def _surely_agree(said: Quantity | int | None, adopted: Any) -> bool:
    """Whether two values are equal, so that a relation between them holds; only obvious cases."""
    if said is adopted:
        return True
    if isinstance(said, Quantity) and isinstance(adopted, Quantity):
        return said.dimension is adopted.dimension and is_multiple(said, 1, adopted)
    return type(said) is int and not isinstance(adopted, (Quantity, RoundedCount)) and said == adopted


def claimed_figures(spec: Any, at: str) -> tuple[Path, ...]:
    """The paths of a claim that are figures or counts of documents of a class."""
    return _claimed_figures(spec, at)


@functools.lru_cache(maxsize=4096)
def _claimed_figures(spec: Any, at: str) -> tuple[Path, ...]:
    return tuple(p for p in claimed_paths(at) if isinstance(shape_at(spec, p[1:]), (FigureShape, NumberShape)))


@functools.lru_cache(maxsize=512)
def claims_at(node: Node[Any]) -> Mapping[Path, list[int]]:
    """The claims of a document by the paths that they concern."""
    indices: dict[Path, list[int]] = {}
    for index, claim in enumerate(node.claims):
        for path in claimed_paths(claim.at):
            indices.setdefault(path, []).append(index)
    return indices


def is_claimed(node: Node[Any], path: Path) -> bool:
    """Whether there is an adopted figure at a path, or a claim on it that is not rejected."""
    return (
        any(True for _ in _stated(Site(node, path))) if path in claims_at(node) else figure_at(node, path) is not None
    )


def _stated(site: Site) -> Iterator[Site]:
    """The adopted figure at a site or, where there is none, the claims on it that are not rejected."""
    if site.value is not None:
        yield site
        return
    for index in dict.fromkeys(claims_at(site.node).get(site.path, ())):
        if site.node.claims[index].verdict in AGREES:
            yield Site(site.node, site.path, index)


def _relate(total: Site, terms: Iterable[Term], level: str, *, across: bool = False) -> Iterator[Relation]:
    """A relation; its values are looked up later, for the catalog or for one source."""
    yield Relation(total, tuple(terms), level, across)


def site(node: Node[Any], path: str) -> Site:
    """The site of a dotted path below ``spec``."""
    return Site(node, ("spec", *path.split(".")))


def _core(core: Node[Core]) -> Iterator[Relation]:
    for sram in ("sbuf", "psum"):
        partition = site(core, f"{sram}.per_partition")
        term = Term((site(core, f"{sram}.partitions"),), partition)
        yield from _relate(site(core, f"{sram}.capacity"), [term], "partitions")
        term = Term((site(core, f"{sram}.banks"),), site(core, f"{sram}.per_bank"))
        yield from _relate(partition, [term], "banks")
    term = Term((site(core, "dma.engines"),), site(core, "dma.achieved_per_engine"))
    yield from _relate(site(core, "dma.achieved"), [term], "DMA engines")
    # Every element multiplies and adds once a cycle: two operations.
    array = (site(core, "engines.tensor.array.rows"), site(core, "engines.tensor.array.columns"))
    term = Term(array, site(core, "engines.tensor.clock"), Fraction(2))
    for dtype in ("bf16", "fp16"):
        total = site(core, f"engines.tensor.peak.dense.{dtype}")
        yield from _relate(total, [term], "processing elements", across=True)


def _link(link: Node[Link]) -> Iterator[Relation]:
    yield from _both_directions(link, "bandwidth")
    term = Term((site(link, "lanes.count"),), site(link, "lanes.rate"))
    yield from _relate(site(link, "bandwidth.per_direction"), [term], "lanes")


def _chip(chip: Node[Chip], graph: Graph, wanted: Wanted) -> Iterator[Relation]:
    stacks = Term((site(chip, "memory.stacks.count"),), site(chip, "memory.stacks.capacity"))
    yield from _relate(site(chip, "memory.capacity"), [stacks], "stacks")
    yield from _both_directions(chip, "links.bandwidth")
    yield from _ports(chip, graph)
    core = _find(graph, chip.spec.cores.core if chip.spec.cores else None)
    if core is None:
        return
    cores = site(chip, "cores.count")
    for total, part in (("sbuf", "sbuf.capacity"), ("cc_cores.usable", "cc_cores"), ("dma.engines", "dma.engines")):
        yield from _relate(site(chip, total), [Term((cores,), site(core, part))], "cores of a chip")
    engines = Term((site(chip, "dma.engines"),), site(core, "dma.per_engine"))
    yield from _relate(site(chip, "dma.bandwidth"), [engines], "DMA engines of a chip")
    for rate in EVERY_RATE:
        path = ("spec", "tensor_peak", *rate)
        if wanted(chip, path):
            rate_of_chip = Site(chip, path)
            part_site = Site(core, ("spec", "engines", "tensor", "peak", *rate))
            yield from _relate(rate_of_chip, [Term((cores,), part_site)], "cores of a chip")


def _ports(chip: Node[Chip], graph: Graph) -> Iterator[Relation]:
    """The links of a chip against its ports, where a port is one link and no further links leave the server."""
    links = chip.spec.links
    link = _find(graph, links.link if links else None)
    if link is None or not all(
        ultraserver.spec.fabric is not None
        and ultraserver.spec.between_servers is None
        and _uses_all_links(ultraserver.spec.fabric, chip)
        for ultraserver in _ultraservers(graph).get(chip.name, ())
    ):
        return
    for direction in _DIRECTIONS:
        term = Term((site(chip, "links.ports"),), *_directed(link, "bandwidth", direction))
        yield from _relate(site(chip, f"links.bandwidth.{direction}"), [term], "ports of a chip")


_DIRECTIONS = ("per_direction", "both")


def _directed(node: Node[Any], path: str, direction: str) -> tuple[Site, Fraction]:
    """Where a rate in one or in both directions is stated, and the factor to it.

    A rate that is not stated is derived from that of the other direction: both directions have the same rate.
    """
    own = site(node, f"{path}.{direction}")
    other, factor = ("per_direction", Fraction(2)) if direction == "both" else ("both", Fraction(1, 2))
    stated = site(node, f"{path}.{other}")
    return (stated, factor) if own.value is None and stated.value is not None else (own, ONE)


def _both_directions(node: Node[Any], path: str) -> Iterator[Relation]:
    term = Term((), site(node, f"{path}.per_direction"), Fraction(2))
    yield from _relate(site(node, f"{path}.both"), [term], "directions")


def _fabric(node: Node[Any], name: str, graph: Graph) -> Iterator[Relation]:
    """The rate of a fabric against the links of one chip in it, in each direction that the fabric states."""
    yield from _both_directions(node, f"{name}.bandwidth")
    fabric = getattr(node.spec, name)
    link = _find(graph, fabric.link if fabric else None)
    if link is not None:
        for direction in _DIRECTIONS:
            term = Term((site(node, f"{name}.links_per_chip"),), *_directed(link, "bandwidth", direction))
            yield from _relate(site(node, f"{name}.bandwidth.{direction}"), [term], "links of a chip")


def _rate_of_chip(node: Node[Any], name: str, direction: str, graph: Graph) -> Term:
    """The part of a fabric in the links of a chip, in one or in both directions: its rate, or else its links."""
    part, factor = _directed(node, f"{name}.bandwidth", direction)
    fabric = getattr(node.spec, name)
    link = _find(graph, fabric.link if fabric else None)
    if part.value is None and link is not None and fabric.links_per_chip is not None:
        return Term((site(node, f"{name}.links_per_chip"),), *_directed(link, "bandwidth", direction))
    return Term((), part, factor)


def _server(server: Node[Server], graph: Graph) -> Iterator[Relation]:
    yield from _fabric(server, "fabric", graph)
    nic = _find(graph, server.spec.network.link if server.spec.network else None)
    if nic is not None:
        term = Term((site(server, "network.nics"),), *_directed(nic, "bandwidth", "per_direction"))
        yield from _relate(site(server, "network.bandwidth"), [term], "NICs")
    chip = _find(graph, server.spec.chips.chip)
    if chip is None:
        return
    if (
        server.spec.fabric is not None
        and _uses_all_links(server.spec.fabric, chip)
        and not _in_ultraserver(chip, graph)
    ):
        for direction in _DIRECTIONS:
            total = site(chip, f"links.bandwidth.{direction}")
            yield from _relate(total, [_rate_of_chip(server, "fabric", direction, graph)], "links in a server")


def _uses_all_links(fabric: Fabric, chip: Node[Chip]) -> bool:
    """Whether a fabric consists of the links of a chip, and of all of them if they are counted."""
    links = chip.spec.links
    if links is None or links.link != fabric.link or fabric.links_per_chip is None:
        return False
    return links.ports is None or links.ports <= fabric.links_per_chip


def _in_ultraserver(chip: Node[Chip], graph: Graph) -> bool:
    """Whether chips of this kind may have links that leave their server."""
    return chip.name in _ultraservers(graph)


@cached_by_graph
def _ultraservers(graph: Graph) -> dict[str, list[Node[UltraServer]]]:
    """The UltraServers of each chip, by name."""
    by_chip: dict[str, list[Node[UltraServer]]] = {}
    for ultraserver in graph.of(UltraServer):
        server = _find(graph, ultraserver.spec.servers.server)
        part = None if server is None else _find(graph, server.spec.chips.chip)
        if part is not None:
            by_chip.setdefault(part.name, []).append(ultraserver)
    return by_chip


def _ultraserver(ultraserver: Node[UltraServer], graph: Graph) -> Iterator[Relation]:
    for name in ("fabric", "between_servers"):
        yield from _fabric(ultraserver, name, graph)
    server = _find(graph, ultraserver.spec.servers.server)
    if server is None:
        return
    chip = _find(graph, server.spec.chips.chip)
    if chip is None:
        return
    yield from _links_of_chip(ultraserver, server, chip, graph)


def _links_of_chip(
    ultraserver: Node[UltraServer], server: Node[Server], chip: Node[Chip], graph: Graph
) -> Iterator[Relation]:
    """The links of a chip against the fabrics that they form in an UltraServer."""
    fabric = ultraserver.spec.fabric
    for direction in _DIRECTIONS:
        total = site(chip, f"links.bandwidth.{direction}")
        inner = _rate_of_chip(ultraserver, "fabric", direction, graph)
        if ultraserver.spec.between_servers is not None:
            outer = _rate_of_chip(ultraserver, "between_servers", direction, graph)
            yield from _relate(total, [inner, outer], "links in a server and between servers")
        elif fabric is not None and _uses_all_links(fabric, chip):
            # The fabric of the UltraServer is not that of its servers.
            yield from _relate(total, [inner], "links in an UltraServer")
    for direction in _DIRECTIONS if ultraserver.spec.between_servers is not None else ():
        term = Term((), *_directed(server, "fabric.bandwidth", direction))
        whole = site(ultraserver, f"fabric.bandwidth.{direction}")
        yield from _relate(whole, [term], "links of a chip in its server")


def _cluster(cluster: Node[Cluster], graph: Graph) -> Iterator[Relation]:
    for ref in cluster.spec.servers:
        server = graph.find(ref)
        if server is not None:
            yield from _relate(site(cluster, "per_server"), [Term((), site(server, "network.bandwidth"))], "one server")


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
    terms: list[Term] = []
    for occurrence in summed:
        counts = [
            Site(holder, at) for holder, part in occurrence.steps if (at := count_path(holder, part.ref)) is not None
        ]
        if len(counts) < len(occurrence.steps):
            return  # a number of parts that is not stated
        if path is not None:
            terms.append(Term(tuple(counts), Site(occurrence.node, path)))
        elif counts:
            terms.append(Term(tuple(counts[:-1]), counts[-1]))
    if terms:
        # The number of chips of an UltraServer follows from its servers; every other total from the parts themselves.
        part = terms[0].part.node if path is not None or len(summed[0].steps) > 1 else summed[0].node
        level = f"{in_text(type(part.spec))}s of {_article(in_text(type(node.spec)))}"
        yield from _relate(total, terms, level)


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


def _find(graph: Graph, ref: Ref[Any] | None) -> Node[Any] | None:
    return None if ref is None else graph.find(ref)
