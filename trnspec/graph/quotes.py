"""The prices of servers and the power of hardware: which are known, and which one a question means."""

from __future__ import annotations

import re
from typing import Any, get_args

from attrs import evolve, frozen

from trnspec.graph.composition import chips
from trnspec.graph.facts import Fact
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated, conflicting, figures
from trnspec.model.chip import Chip
from trnspec.model.document import Node  # read at run time
from trnspec.model.quotes import UNSTATED, Power, PowerType, Price, PriceType
from trnspec.model.server import Server
from trnspec.short_repr import ShortRepr

_PLACE = re.compile(r"(?P<region>[a-z]{2,4}(?:-[a-z]+)+-[0-9]+)(?P<zone>[a-z]?)")

ZONES: dict[str, str] = {
    "us-east-1": "f",
    "us-west-2": "d",
    "ap-northeast-1": "d",
    "ap-northeast-2": "d",
    "ca-central-1": "d",
}
"""The last letter of the availability zones of a region that has more than those to c."""

REGIONS = frozenset(
    f"{area}-{number}"
    for area, numbers in (
        ("us-east", 2), ("us-west", 2), ("us-gov-east", 1), ("us-gov-west", 1), ("ca-central", 1), ("ca-west", 1),
        ("mx-central", 1), ("sa-east", 1), ("sa-west", 1), ("eu-central", 2), ("eu-north", 1), ("eu-south", 2), ("eu-west", 3),
        ("eusc-de-east", 1), ("il-central", 1), ("me-central", 1), ("me-south", 1), ("af-south", 1),
        ("ap-east", 2), ("ap-south", 2), ("ap-northeast", 3), ("ap-southeast", 7), ("cn-north", 1), ("cn-northwest", 1),
    )
    for number in range(1, numbers + 1)
)  # fmt: skip
"""The regions of AWS that are open or announced. Source: Amazon EC2 User Guide, Regions and Zones."""

PRICE_TYPES: tuple[PriceType, ...] = get_args(PriceType)
"""The types of prices in the order in which they are listed."""

DEFAULT_REGION = "us-east-1"
"""The region whose price is used if none is given and there is one; most publishers list it first."""


def region_of(place: str) -> str | None:
    """The region of a region or an availability zone: ``us-east-2c`` is in ``us-east-2``; ``None`` for other texts."""
    match = _PLACE.fullmatch(place)
    return None if match is None else match["region"]


def is_known(place: str) -> bool:
    """Whether a place is one of :data:`REGIONS`, or one of their availability zones."""
    match = _PLACE.fullmatch(place)
    return match is not None and match["region"] in REGIONS and match["zone"] <= ZONES.get(match["region"], "c")


@frozen(repr=False)
class Quote(ShortRepr):
    """One price of a server.

    Attributes:
        document: The document that states it.
        place: The region or availability zone, or ``unstated``.
        figure: The price per hour, with source and date.
    """

    document: Node[Price]
    place: str
    figure: Stated

    @property
    def type(self) -> PriceType:
        """The way the server is bought."""
        return self.document.spec.type

    @property
    def region(self) -> str:
        """The region; ``unstated`` if the source names none."""
        return region_of(self.place) or self.place

    def __str__(self) -> str:
        term = f" of {self.document.spec.term}" if self.document.spec.term else ""
        place = "no region stated" if self.place == UNSTATED else self.place
        return f"{self.figure.value} {self.type}{term} ({place}, {self.figure.as_of})"


def price_documents(graph: Graph, server: Node[Server]) -> tuple[Node[Price], ...]:
    """The prices of a server, by type and name."""
    of = (n for n in graph.of(Price) if graph.find(n.spec.server) is server)
    return tuple(sorted(of, key=lambda n: (PRICE_TYPES.index(n.spec.type), n.name)))


def quotes(
    graph: Graph, server: Node[Server], type: PriceType | None = None, region: str | None = None
) -> tuple[Quote, ...]:
    """The known prices of a server, by type; within a type in the order in which :func:`chosen` prefers them."""
    known = [
        Quote(node, place, stated[f"hourly.{place}"])
        for node in price_documents(graph, server)
        if type in (None, node.spec.type)
        for stated in (figures(graph, node),)
        for place in node.spec.hourly
        if region in (None, place, region_of(place))
    ]
    return tuple(sorted(known, key=_preference))


def _preference(quote: Quote) -> tuple[object, ...]:
    """By type; then the default region, a stated region; then the newest date, the lowest price."""
    newest = tuple(-int(part) for part in (*quote.figure.as_of.split("-"), "0", "0")[:3] if part)
    place = (quote.region != DEFAULT_REGION, quote.place == UNSTATED)
    return (PRICE_TYPES.index(quote.type), *place, newest, quote.figure.value.value, quote.document.name, quote.place)


def chosen(graph: Graph, server: Node[Server], type: PriceType, region: str | None = None) -> Quote | None:
    """The price of a server to compute with; ``None`` if none is known.

    Of several it is that of us-east-1, else of another stated region; then the newest, then the lowest.
    """
    return next(iter(quotes(graph, server, type, region)), None)


POWER_TYPES: tuple[PowerType, ...] = get_args(PowerType)
"""The types of power in the order in which they are listed."""

UPPER: tuple[PowerType, ...] = ("tdp", "maximum", "configurable-tdp")
"""The types that bound the power of a chip from above, the preferred one first."""


@frozen(repr=False)
class Draw(ShortRepr):
    """One power of a chip or a system.

    Attributes:
        document: The document that states it: of the kind Power, or the chip.
        type: What it is a statement of.
        figure: The power, with source and date.
    """

    document: Node[Any]
    type: PowerType
    figure: Stated

    def __str__(self) -> str:
        load = getattr(self.document.spec, "load", None)
        return f"{self.figure.value} {self.type}{f' at {load}' if load else ''} ({self.figure.as_of})"


def power_documents(graph: Graph, node: Node[Any]) -> tuple[Node[Power], ...]:
    """The documents on the power of a chip or a system, by type and name."""
    of = (n for n in graph.of(Power) if graph.find(n.spec.of) is node)
    return tuple(sorted(of, key=lambda n: (POWER_TYPES.index(n.spec.type), n.name)))


def draws(graph: Graph, node: Node[Any], type: PowerType | None = None) -> tuple[Draw, ...]:
    """The known powers of a chip or a system, by type; the figure ``power`` of a chip is a design power."""
    known = [
        Draw(document, document.spec.type, figures(graph, document)["power"])
        for document in power_documents(graph, node)
        if document.spec.power is not None
    ]
    if isinstance(node.spec, Chip) and node.spec.power is not None:
        known.insert(0, Draw(node, "tdp", figures(graph, node)["power"]))
    order = sorted(known, key=lambda d: POWER_TYPES.index(d.type))
    return tuple(d for d in order if type in (None, d.type))


def upper_power(graph: Graph, chip: Node[Any]) -> Draw | None:
    """The power of a chip that an upper bound on energy uses: the first of :data:`UPPER`; ``None`` if none is known."""
    known = [d for d in draws(graph, chip) if d.type in UPPER]
    return min(known, key=lambda d: UPPER.index(d.type), default=None)


def quoted_facts(graph: Graph, node: Node[Any]) -> tuple[Fact, ...]:
    """The prices and the power of a document as facts; of each type first what evaluators use.

    Their paths are ``prices.spot.us-east-2c`` and ``power.tdp``, their reasons the term of a price or the load of a power.
    Without a value are types of prices that are not sold, with the verdict ``unlisted``, and a power without source.
    """
    found: list[Fact] = []
    for price in price_documents(graph, node) if node.kind == "Server" else ():
        if price.spec.status == "unlisted":
            source = graph.find(price.metadata.source)
            fact = Fact(
                of=price.name, at=f"prices.{price.spec.type}", label=price.spec.type, value=None, verdict="unlisted"
            )
            found.append(
                fact if source is None else evolve(fact, source=source.name, cited=source.name, as_of=source.spec.as_of)
            )
    known = quotes(graph, node) if node.kind == "Server" else ()
    found += [_fact(q.document, f"prices.{q.type}.{q.place}", q.figure, q.document.spec.term) for q in known]
    for power in power_documents(graph, node) if chips(graph, node) is not None else ():
        fact = _fact(power, f"power.{power.spec.type}", figures(graph, power).get("power"), power.spec.load)
        claims = conflicting(graph, power).get(("spec", "power"), ())
        found.append(evolve(fact, conflicting=tuple(c for c in claims if c.verdict != "agrees")))
    return tuple(found)


def _fact(document: Node[Any], at: str, figure: Stated | None, condition: str | None) -> Fact:
    """A quoted quantity as a fact; its label is the type with the condition under which it holds."""
    label = ", ".join(filter(None, (document.spec.type, condition)))
    fact = Fact(of=document.name, at=at, label=label, value=figure, reason=condition or "")
    if figure is None:
        return evolve(fact, verdict="-")
    fact = evolve(fact, source=figure.source_name, cited=figure.cited, as_of=figure.as_of)
    return evolve(fact, where=figure.where or "", note=figure.note or "")
