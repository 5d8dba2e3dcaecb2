"""The price of a server for an evaluator, given or of the catalog; the rent of a system, and the power of its chips."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction  # read at run time
from functools import lru_cache

from attrs import field, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import QuantityError, RefusalError, UsageError
from trnspec.evaluation.amounts import SECONDS, spaced
from trnspec.evaluation.questions import Prices, system_and_count
from trnspec.evaluation.result import Assumption
from trnspec.evidence import UsedFigure
from trnspec.graph.composition import chips, servers
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import inherited
from trnspec.graph.quotes import PRICE_TYPES, Draw, Quote, chosen, price_documents, quotes, region_of, upper_power
from trnspec.model.document import Node
from trnspec.model.quotes import UNSTATED, PriceType
from trnspec.model.server import Server
from trnspec.quantities.quantity import Interval, parse
from trnspec.quantities.units import Dimension
from trnspec.short_repr import short_repr

HOUR = SECONDS["h"]
"""Seconds."""

PREFERRED: tuple[PriceType, ...] = ("on-demand", "capacity-block", "spot")
"""The type of price that is used where none is given: the first that is known."""


@frozen
class HourlyPrice:
    """The price of one server per hour.

    Attributes:
        value: In USD/h.
        interval: The values that are printed the same way.
        figures_used: The catalog figure, if it is one.
        assumption: The type, region and date of the price, or that it was given.
    """

    value: Fraction
    interval: Interval
    figures_used: tuple[UsedFigure, ...]
    assumption: Assumption

    __repr__ = short_repr


def hourly_price(graph: Graph, server: Node[Server], question: Prices) -> HourlyPrice:
    """The price of a server that a question gives, or means.

    Of several prices of a type it is that of us-east-1, else of another region; then the newest, then the lowest.

    Raises:
        UsageError: The given price is not one.
        RefusalError: ``unknown-figure``: no price of this type and region is known.
    """
    if question.price is not None:
        try:
            quantity = parse(spaced(question.price), Dimension.PRICE)
        except QuantityError as error:
            raise UsageError(f"price: {error}" + (f"; {error.hint}" if error.hint else "")) from error
        assumption = Assumption("price", f"{question.price} per server", "the caller")
        return HourlyPrice(quantity.value, quantity.interval, (), assumption)
    quote = chosen(graph, server, question.price_type, question.region)
    if quote is None:
        raise _unknown(graph, server, question)
    figure, term = quote.figure, quote.document.spec.term
    place = "no region stated" if quote.place == UNSTATED else quote.place
    why = f"{quote.type}{f', {term}' if term else ''}, {place}, {figure.as_of}"
    assumption = Assumption("price", f"{figure.value} per server", why)
    return HourlyPrice(figure.value.value, figure.interval, (figure.used,), assumption)


def _unknown(graph: Graph, server: Node[Server], question: Prices) -> RefusalError:
    """The refusal, with the source that says so where there is one, and the prices that are known."""
    type_, region = question.price_type, question.region
    message = f"the catalog has no {type_} price of {server.name}" + (f" in {region}" if region else "")
    unlisted = [n for n in price_documents(graph, server) if n.spec.type == type_ and n.spec.status == "unlisted"]
    for node in unlisted:
        source = None if node.metadata.source is None else graph.find(node.metadata.source)
        if source is not None:
            message += f"; none is listed ({source.name}, {source.spec.as_of})"
    known = quotes(graph, server)
    if known:
        # One price of each type, and all regions of the type in question.
        shown = [q for n, q in enumerate(known) if q.type == type_ or q.type not in [k.type for k in known[:n]]]
        message += f"; known: {', '.join(map(str, shown[:_SHOWN]))}"
        if len(shown) > _SHOWN:
            message += f" and {len(shown) - _SHOWN} more"
    hint = (
        'give price_type or region, or price, such as "21.50 USD/h"' if known else 'give price, such as "21.50 USD/h"'
    )
    return RefusalError("unknown-figure", message, place=f"{server.name} {type_}", hint=hint)


_SHOWN = 6
"""Known prices that a refusal lists."""


@frozen
class ChipPower:
    """The power of the chips of a system, without hosts, network and cooling.

    Attributes:
        watts: That of all chips [W].
        each: That of one, with its type and source.
    """

    watts: float
    each: Draw = field(repr=False)

    @property
    def figures_used(self) -> tuple[UsedFigure, ...]:
        """The power of one chip as a catalog figure."""
        return (self.each.figure.used,)

    def __str__(self) -> str:
        return f"chips at {self.each}, without hosts, network and cooling"


@frozen
class Rent:
    """The price of the servers of a system.

    Attributes:
        servers: Number of servers.
        price: The price of one.
    """

    servers: int
    price: HourlyPrice = field(repr=False)

    @property
    def type(self) -> str:
        """The way the servers are bought; empty if the price was given."""
        return self.price.assumption.why.partition(",")[0] if self.price.figures_used else ""

    @property
    def hourly(self) -> float:
        """Price of all servers per hour [USD]."""
        return self.servers * float(self.price.value)

    @property
    def figures_used(self) -> tuple[UsedFigure, ...]:
        """The price as a catalog figure; none if it was given."""
        return self.price.figures_used

    def __str__(self) -> str:
        return f"{self.price.assumption.value}: {self.price.assumption.why}"


def rented(catalog: Catalog, on: str) -> tuple[int, Node[Server]] | None:
    """The servers that a system consists of; ``None`` for a chip.

    Raises:
        UsageError: The text is not a name and a count.
    """
    name, count = system_and_count(on)
    found = servers(catalog.graph, catalog[name].node)
    return None if found is None else (found[0] * count, found[1])


def rent(
    catalog: Catalog, on: str, *, type: PriceType | None = None, region: str | None = None, price: str | None = None
) -> Rent | None:
    """The price of the servers of a system per hour; ``None`` if none is known.

    Args:
        catalog: The catalog.
        on: A server or an UltraServer, and how many.
        type: The type of price; the first of :data:`PREFERRED` that is known if left out.
        region: The region or availability zone.
        price: The price of one server, instead of that of the catalog.

    Raises:
        UsageError: The price is not one.
        RefusalError: ``not-offered``: the server is offered in other regions only.
    """
    found = rented(catalog, on)
    if found is not None and region is not None:
        _offered(catalog.graph, found[1], region)
    quote = None if found is None else _price(catalog.graph, found[1].name, type, region, price)
    return None if found is None or quote is None else Rent(found[0], quote)


def _offered(graph: Graph, server: Node[Server], place: str) -> None:
    """Raises if a server is offered, but not in a region or a zone."""
    known = server.spec.availability
    if known is None or place in known.regions or place in known.zones:
        return
    if not known.zones and region_of(place) in known.regions:
        return
    ref = inherited(server, ("spec", "availability", "regions"))[0]
    source = None if ref is None else graph.find(ref)
    since = "" if source is None else f" ({source.name}, {source.spec.as_of})"
    raise RefusalError(
        "not-offered",
        f"{server.name} is not offered in {place}; it is in {', '.join(known.regions)}{since}",
        place="region",
        hint="give one of these regions, or leave region out",
    )


@lru_cache(64)
def _price(
    graph: Graph, server: str, type: PriceType | None, region: str | None, price: str | None
) -> HourlyPrice | None:
    """The price of a server; the same for any number of them."""
    node: Node[Server] = graph.nodes[server]
    for kind in (type,) if type else PREFERRED:
        try:
            return hourly_price(graph, node, Prices(price=price, price_type=kind, region=region))
        except RefusalError:
            # Another type may be known.
            continue
    return None


def purchases(catalog: Catalog, on: str, region: str | None = None) -> Iterator[tuple[int, Quote]]:
    """The servers of a system and the price of one, for each type of price that is known."""
    found = rented(catalog, on)
    for type_ in PRICE_TYPES if found is not None else ():
        assert found is not None
        quote = chosen(catalog.graph, found[1], type_, region)
        if quote is not None:
            yield found[0], quote


def chip_power(catalog: Catalog, on: str) -> ChipPower | None:
    """The power of all chips of a system; ``None`` if that of the chip, or the number of chips, is not known."""
    name, count = system_and_count(on)
    counted = chips(catalog.graph, catalog[name].node)
    draw = None if counted is None else upper_power(catalog.graph, counted[1])
    if counted is None or draw is None:
        return None
    return ChipPower(counted[0] * count * float(draw.figure.value.value), draw)
