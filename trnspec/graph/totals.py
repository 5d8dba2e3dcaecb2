"""Totals of servers and UltraServers, computed from their parts and never copied from a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.graph.graph import Graph, figure_at
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import ObjectShape, dotted, leaves, value_at
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.quantity import Interval, choose_unit, render
from trnspec.yaml import Path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.quantities.units import Unit

_FIVE_DIGITS = 10_000


@frozen
class Total:
    """So many parts, each with a printed figure.

    Attributes:
        count: How many parts; 1 for a chip itself.
        figure: The printed figure of one part.
        part: The document that states it.
        path: Where it states it.
    """

    count: int
    figure: Figure
    part: Node[Any]
    path: Path

    @property
    def interval(self) -> Interval:
        """What the rounding of the part leaves possible, in base units."""
        return self.figure.value.interval.scaled(self.count)

    def __float__(self) -> float:
        """The total in base units."""
        return float(self.figure.value.value * self.count)

    @property
    def unit(self) -> Unit:
        """The unit to show it in: that of the part; a large decimal one moves to the next."""
        quantity = self.figure.value
        value = quantity.value * self.count
        if value >= _FIVE_DIGITS * quantity.unit.factor and "i" not in quantity.unit.symbol:
            return choose_unit(value, quantity.dimension)
        return quantity.unit

    def __str__(self) -> str:
        """The product of what is printed, with all its digits."""
        quantity = self.figure.value
        qualifier = quantity.qualifier.value
        space = " " if qualifier.isalpha() else ""
        digits = quantity.digits + len(str(self.count))
        return f"{qualifier}{space}{render(quantity.value * self.count, self.unit, digits)}"


def chips(graph: Graph, node: Node[Any]) -> tuple[int, Node[Chip]] | None:
    """How many chips a chip, server or UltraServer has, and which; ``None`` where a part is not known."""
    spec = node.spec
    if isinstance(spec, Chip):
        return 1, node
    if isinstance(spec, Server):
        chip = graph.find(spec.chips.chip)
        return None if chip is None or not isinstance(chip.spec, Chip) else (spec.chips.count, chip)
    if isinstance(spec, UltraServer):
        server = graph.find(spec.servers.server)
        # A reference may lead to another kind, this very UltraServer even; that is reported where it stands.
        inner = None if server is None or not isinstance(server.spec, Server) else chips(graph, server)
        return None if inner is None else (spec.servers.count * inner[0], inner[1])
    return None


def total(graph: Graph, node: Node[Any], path: Path) -> Total | None:
    """The total of a chip's figure over all chips of a node, or ``None`` where the chip has no such figure.

    Args:
        graph: Where the parts are.
        node: A chip, a server or an UltraServer.
        path: A path of a chip, such as ``("spec", "peak", "dense", "bf16")``.
    """
    found = chips(graph, node)
    if found is None:
        return None
    count, chip = found
    figure = figure_at(chip, path)
    return Total(count, figure, chip, path) if isinstance(figure, Figure) else None


@frozen
class Sum:
    """A total that follows from the parts of a system.

    Attributes:
        at: The path of what is added up: ``peak.dense.bf16``, or ``chips`` and ``cores`` for counts.
        value: The total.
        parts: What it is made of: ``16 x 667 TFLOPS``.
    """

    at: str
    value: Total | int
    parts: str

    @property
    def text(self) -> str:
        """The total as people write it."""
        return f"{self.value:,}" if isinstance(self.value, int) else str(self.value)


_ADDED = (
    ("peak",),
    ("tensor_peak",),
    ("memory", "capacity"),
    ("memory", "bandwidth"),
    ("sbuf",),
    ("dma", "bandwidth"),
    ("power",),
)
"""The figures of a chip that are a whole system's when they are added up; rates of links are not."""

_OF_SERVERS = (("host",), ("network", "bandwidth"), ("network", "nics"), ("local_storage",))


def sums(graph: Graph, node: Node[Any]) -> tuple[Sum, ...]:
    """The totals of a server or an UltraServer, computed from its parts; nothing for any other kind."""
    if not isinstance(node.spec, (Server, UltraServer)):
        return ()
    found = chips(graph, node)
    if found is None:
        return ()
    count, chip = found
    made = [Sum("chips", count, f"{count} x {chip.name}")]
    if chip.spec.cores is not None:
        each = chip.spec.cores.count
        made.append(Sum("cores", count * each, f"{count} x {each} {chip.spec.cores.core}"))
    for path in _starting(chip, _ADDED):
        whole = total(graph, node, ("spec", *path))
        if whole is not None:
            made.append(Sum(dotted(path), whole, f"{count} x {whole.figure}"))
    if isinstance(node.spec, UltraServer):
        made += _of_servers(node.spec.servers.count, graph.node(node.spec.servers.server))
    return tuple(made)


def _of_servers(count: int, server: Node[Any]) -> Iterator[Sum]:
    for path in _starting(server, _OF_SERVERS):
        value = value_at(server.spec, path)
        if isinstance(value, Figure):
            yield Sum(dotted(path), Total(count, value, server, ("spec", *path)), f"{count} x {value}")
        elif isinstance(value, int):
            yield Sum(dotted(path), count * value, f"{count} x {value:,}")


def _starting(node: Node[Any], heads: tuple[Path, ...]) -> Iterator[Path]:
    paths = [path for path, _, _ in leaves(node.spec, ObjectShape(type(node.spec)))]
    return (path for path in paths if any(path[: len(head)] == head for head in heads))
