"""Which figures determine which: a total and the parts it is the sum of.

A relation says that one figure equals another times some counts: 16 x (190 TFLOPS of a chip) = 3,040 TFLOPS of a
server.  The relations of a catalog are data; the rule that checks them, the search for the figure to blame and the
explanation of the gap all read the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.graph import Graph, at, figure_at
from trnspec.diagnostics import Location
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.fields import Peak
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.model.shape import FigureShape, dotted, leaves, shape_of
from trnspec.model.ultraserver import UltraServer
from trnspec.quantity import Interval
from trnspec.source import Path


@frozen
class Site:
    """A figure or a count of one document.

    Attributes:
        node: The document.
        path: Where in it, beginning with ``spec``.
    """

    node: Node[Any]
    path: Path

    @property
    def value(self) -> Figure | int | None:
        """What stands there."""
        found = figure_at(self.node, self.path)
        return found if isinstance(found, (Figure, int)) else None

    @property
    def interval(self) -> Interval:
        """What its digits stand for, in base units; a count is exact."""
        value = self.value
        if isinstance(value, Figure):
            return value.value.interval
        assert value is not None  # a site is only made where something stands
        return Interval.point(Fraction(value))

    @property
    def key(self) -> tuple[str, Path]:
        """Tells one site from another."""
        return (self.node.name, self.path)

    @property
    def location(self) -> Location:
        """Where it stands, with what it says."""
        return at(self.node, self.path, text=f"{self} is {self.value}")

    def __str__(self) -> str:
        return f"{dotted(self.path[1:])} of {self.node.name}"


@frozen
class Relation:
    """``total = count x ... x part``, exactly up to the rounding of what is printed.

    Attributes:
        total: The figure of the whole.
        counts: The counts that multiply the part; their product may be 1.
        part: The figure of one part.
        level: What the relation speaks of, for the reader: ``chips of a server``.
    """

    total: Site
    counts: tuple[Site, ...]
    part: Site
    level: str

    @property
    def times(self) -> int:
        """How many parts the whole has."""
        product = 1
        for count in self.counts:
            assert isinstance(count.value, int)  # only counts are put there
            product *= count.value
        return product

    @property
    def expected(self) -> Interval:
        """What the parts add up to, in base units."""
        return self.part.interval.scaled(self.times)

    @property
    def holds(self) -> bool:
        """True when rounding alone can explain the difference between total and parts."""
        return self.expected.overlaps(self.total.interval)

    @property
    def sites(self) -> tuple[Site, ...]:
        """All that the relation rests on."""
        return (self.total, *self.counts, self.part)


def relations(graph: Graph) -> list[Relation]:
    """Every relation among the adopted figures of a graph, in the order of the documents."""
    found: list[Relation] = []
    for core in graph.of(Core):
        found += _core(core)
    for chip in graph.of(Chip):
        found += _chip(chip, graph)
    for server in graph.of(Server):
        found += _server(server, graph)
    for ultraserver in graph.of(UltraServer):
        found += _ultraserver(ultraserver, graph)
    return found


def _relate(total: Site, counts: Iterable[Site], part: Site, level: str) -> Iterator[Relation]:
    """The relation, when every side of it is stated and the two measure the same."""
    sites = (total, *counts, part)
    if any(s.value is None for s in sites):
        return
    whole, one = total.value, part.value
    if isinstance(whole, Figure) != isinstance(one, Figure):
        return
    if isinstance(whole, Figure) and isinstance(one, Figure) and whole.value.dimension is not one.value.dimension:
        return
    yield Relation(total, tuple(counts), part, level)


def _site(node: Node[Any], path: str) -> Site:
    return Site(node, ("spec", *path.split(".")))


def _core(core: Node[Core]) -> Iterator[Relation]:
    for sram in ("sbuf", "psum"):
        partitions = _site(core, f"{sram}.partitions")
        yield from _relate(
            _site(core, f"{sram}.capacity"), [partitions], _site(core, f"{sram}.per_partition"), "partitions"
        )
        banks = _site(core, f"{sram}.banks")
        yield from _relate(_site(core, f"{sram}.per_partition"), [banks], _site(core, f"{sram}.per_bank"), "banks")
    engines = _site(core, "dma.engines")
    yield from _relate(_site(core, "dma.achieved"), [engines], _site(core, "dma.achieved_per_engine"), "DMA engines")


def _chip(chip: Node[Chip], graph: Graph) -> Iterator[Relation]:
    stacks = _site(chip, "memory.stacks.count")
    yield from _relate(_site(chip, "memory.capacity"), [stacks], _site(chip, "memory.stacks.capacity"), "stacks")
    core = _find(graph, chip.spec.cores.core if chip.spec.cores else None)
    if core is None:
        return
    cores = _site(chip, "cores.count")
    yield from _relate(_site(chip, "sbuf"), [cores], _site(core, "sbuf.capacity"), "cores of a chip")
    yield from _relate(_site(chip, "cc_cores.usable"), [cores], _site(core, "cc_cores"), "cores of a chip")
    engines = _site(chip, "dma.engines")
    yield from _relate(_site(chip, "dma.bandwidth"), [engines], _site(core, "dma.per_engine"), "DMA engines of a chip")
    yield from _relate(engines, [cores], _site(core, "dma.engines"), "cores of a chip")
    for rate in _rates(chip.spec.tensor_peak):
        part = Site(core, ("spec", "engines", "tensor", "peak", *rate))
        yield from _relate(Site(chip, ("spec", "tensor_peak", *rate)), [cores], part, "cores of a chip")


def _server(server: Node[Server], graph: Graph) -> Iterator[Relation]:
    link = _find(graph, server.spec.fabric.link if server.spec.fabric else None)
    if link is not None:
        links = _site(server, "fabric.links_per_chip")
        part = _site(link, "bandwidth.both")
        yield from _relate(_site(server, "fabric.bandwidth"), [links], part, "links of a chip")
    card = _find(graph, server.spec.efa.link if server.spec.efa else None)
    if card is not None:
        cards = _site(server, "efa.cards")
        yield from _relate(_site(server, "efa.bandwidth"), [cards], _site(card, "bandwidth.per_direction"), "cards")
    chip = _find(graph, server.spec.chips.chip)
    if chip is None:
        return
    yield from _totals(server, [_site(server, "chips.count")], chip, "chips of a server")


def _ultraserver(ultraserver: Node[UltraServer], graph: Graph) -> Iterator[Relation]:
    for fabric in ("fabric", "between_servers"):
        declared = getattr(ultraserver.spec, fabric)
        link = _find(graph, declared.link if declared else None)
        if link is not None:
            links = _site(ultraserver, f"{fabric}.links_per_chip")
            part = _site(link, "bandwidth.both")
            yield from _relate(_site(ultraserver, f"{fabric}.bandwidth"), [links], part, "links of a chip")
    server = _find(graph, ultraserver.spec.servers.server)
    if server is None:
        return
    servers = _site(ultraserver, "servers.count")
    level = "servers of an UltraServer"
    for name, part_path in (
        ("stated.chips", "chips.count"),
        ("stated.host.vcpus", "host.vcpus"),
        ("stated.host.memory", "host.memory"),
        ("stated.efa.bandwidth", "efa.bandwidth"),
        ("stated.cores", "stated.cores"),
        ("stated.memory.capacity", "stated.memory.capacity"),
        ("stated.memory.bandwidth", "stated.memory.bandwidth"),
    ):
        yield from _relate(_site(ultraserver, name), [servers], _site(server, part_path), level)
    for rate in _rates(ultraserver.spec.stated.peak if ultraserver.spec.stated else None):
        total = Site(ultraserver, ("spec", "stated", "peak", *rate))
        yield from _relate(total, [servers], Site(server, ("spec", "stated", "peak", *rate)), level)
    chip = _find(graph, server.spec.chips.chip)
    if chip is not None:
        counts = [servers, _site(server, "chips.count")]
        yield from _totals(ultraserver, counts, chip, "chips of an UltraServer")


def _totals(whole: Node[Any], counts: list[Site], chip: Node[Chip], level: str) -> Iterator[Relation]:
    """The stated totals that scale with the chips."""
    for figure in ("memory.capacity", "memory.bandwidth"):
        yield from _relate(_site(whole, f"stated.{figure}"), counts, _site(chip, figure), level)
    yield from _relate(_site(whole, "stated.cores"), counts, _site(chip, "cores.count"), level)
    for rate in _rates(whole.spec.stated.peak if whole.spec.stated else None):
        total = Site(whole, ("spec", "stated", "peak", *rate))
        yield from _relate(total, counts, Site(chip, ("spec", "peak", *rate)), level)


def _rates(peak: Peak | None) -> Iterator[Path]:
    """``("dense", "bf16")`` and so on, for every rate that is stated."""
    for path, shape, _ in leaves(peak, shape_of(Peak)):
        if isinstance(shape, FigureShape):
            yield path


def _find(graph: Graph, ref: Ref[Any] | None) -> Node[Any] | None:
    return None if ref is None else graph.find(ref)
