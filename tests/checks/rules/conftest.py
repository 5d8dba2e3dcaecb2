"""Slips in documents of prices and of power, made one at a time: wrong factors, and the value, name or type of another."""

from collections.abc import Iterator
from decimal import Decimal

from tests.checks.conftest import Slip
from trnspec.graph.graph import Graph
from trnspec.graph.quotes import POWER_TYPES, PRICE_TYPES, quotes, region_of
from trnspec.model.document import Node
from trnspec.model.quotes import Power, Price

FACTORS = {"x10": Decimal(10), "x0.1": Decimal("0.1"), "x1000": Decimal(1000)}
PATH = ("spec", "power")


def price_changes(graph: Graph) -> Iterator[Slip]:
    """Every slip of these kinds in the prices of a catalog.

    A price is replaced by that of another server of the same type only where the two differ by more than 5 %: list
    prices of two dates or regions do.
    """
    for price in graph.of(Price):
        for place, figure in price.spec.hourly.items():
            path = ("spec", "hourly", place)
            number = Decimal(figure.value.text.split()[0].replace(",", ""))
            for kind, factor in FACTORS.items():
                yield Slip(f"price {kind}", price.name, path, figure.value.text, f"{number * factor:f} USD/h")
            for text in _others(graph, price, place):
                yield Slip("another server's price", price.name, path, figure.value.text, text)
        server = graph.node(price.spec.server)
        for other in sorted({graph.node(p.spec.server).name for p in graph.of(Price)} - {server.name}):
            yield Slip("another server", price.name, ("spec", "server"), server.name, other)
        for other in PRICE_TYPES:
            if other != price.spec.type:
                yield Slip("another type", price.name, ("spec", "type"), price.spec.type, other)


def _others(graph: Graph, price: Node[Price], place: str) -> Iterator[str]:
    """The prices of other servers of the same type in the same region, or anywhere if there are none."""
    own = float(price.spec.hourly[place].value)
    nodes = [p for p in graph.of(Price) if p.spec.type == price.spec.type and p.spec.server != price.spec.server]
    for exact in (True, False):
        texts = {
            q.figure.value.text
            for p in nodes
            for q in quotes(graph, graph.node(p.spec.server), p.spec.type)
            if not exact or q.region == (region_of(place) or place)
        }
        different = sorted(t for t in texts if not 0.95 < float(t.split()[0].replace(",", "")) / own < 1 / 0.95)
        if different:
            yield from different
            return


def power_changes(graph: Graph) -> Iterator[Slip]:
    """Every slip of these kinds in the power of a catalog.

    A power is replaced by that of another chip or system of the same type only where the two differ by more than half: chips
    of one generation draw nearly the same.
    """
    known = [node for node in graph.of(Power) if node.spec.power is not None]
    for node in known:
        text = node.spec.power.value.text
        number, unit = text.replace(",", "").split()
        for kind, factor in FACTORS.items():
            yield Slip(f"power {kind}", node.name, PATH, text, f"{Decimal(number) * factor:f} {unit}")
        if node.spec.scope == "system":
            yield Slip("power of one chip", node.name, PATH, text, f"{Decimal(number) / 8:f} {unit}")
        for other in known:
            ratio = float(other.spec.power.value) / float(node.spec.power.value)
            if other.spec.type == node.spec.type and not 2 / 3 < ratio < 1.5:
                yield Slip("another's power", node.name, PATH, text, other.spec.power.value.text)
            if other.spec.of != node.spec.of:
                yield Slip("another subject", node.name, ("spec", "of"), node.spec.of.name, other.spec.of.name)
        for type_ in POWER_TYPES:
            if type_ != node.spec.type:
                yield Slip("another type of power", node.name, ("spec", "type"), node.spec.type, type_)
