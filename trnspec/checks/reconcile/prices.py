"""Bounds of prices: what the prices of one chip by size, region, type and date say about each other."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.checks.reconcile import quoted
from trnspec.checks.reconcile.quoted import QuoteConflict, blamed, half_precision
from trnspec.checks.reconcile.relations import AGREES, claimed_paths
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.graph import cached_by_graph
from trnspec.graph.provenance import source_of
from trnspec.graph.quotes import region_of
from trnspec.model.document import Node  # read at run time
from trnspec.model.quotes import UNSTATED, Price
from trnspec.model.server import Server
from trnspec.quantities.quantity import Quantity
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trnspec.checks.reconcile.quoted import Range
    from trnspec.graph.graph import Graph
    from trnspec.model.quotes import PriceType

OF_ON_DEMAND: dict[PriceType, Range] = {
    "on-demand": (1.0, 1.0),
    "spot": (0.09, 1.0),
    "reserved": (0.25, 1.0),
    "capacity-block": (0.25, 1.25),
}
"""Prices by type, as a share of the on-demand price at the same place and time. AWS states discounts of up to 90 % for
spot and 72 % for reservations; the lowest spot prices known are 0.100 of the on-demand price."""

REGIONS = 1.75
"""Ratio of the prices of one server in two regions: up to 1.38 for chips that are known, 1.7 for other servers of AWS."""

DATES = 2.0
"""Ratio of the prices of one server at two dates: the largest change known is 98.32 to 55.04 USD/h in June 2025."""

TERMS = 1.5
"""Ratio of the prices of two capacity blocks: they follow demand."""

SPOTS = 5.0
"""Ratio of two spot prices of one server, of any zones and dates: up to 3.4 among those that are known."""

FAMILIES = 1.5
"""Ratio per chip of servers of two families with the same chip: 1.15 for trn1n and trn1."""

DIGITS = 1.03
"""Ratio of two prices that should be equal; those of one family and list differ by less than 0.1 %."""

MARKETS = 1.15
"""Ratio of the price levels of two regions, by server: up to 1.05 among those that are known."""

COPIED = 3
"""Digits of a price, without zeros at its ends, that are not those of another server's price by chance."""

PER_PFLOPS: Range = (1.5, 30.0)
"""On-demand price per chip in USD/h over its dense 16-bit PFLOPS: 3.4 to 13 among those that are known, 25 for V100."""


@frozen(eq=False)
class Offer:
    """A price in USD/h with everything that determines it.

    Attributes:
        site: The figure or claim.
        server: The server.
        chip: Its chip, by name.
        sizes: Chips, processors and host memory of the server, where they are known.
        rate: The dense 16-bit rate of all chips in PFLOPS; 0 if it is not known.
        place: The region, availability zone, or ``unstated``.
        date: The date of the source.
        value: In USD/h.
    """

    site: Site
    server: Node[Server]
    chip: str
    sizes: tuple[float, ...]
    rate: float
    place: str
    date: str
    value: float

    @property
    def document(self) -> Node[Price]:
        """The document that states it."""
        return self.site.node

    @property
    def type(self) -> PriceType:
        """The type of the price."""
        return self.document.spec.type

    @property
    def term(self) -> str | None:
        """The term of the price."""
        return self.document.spec.term

    @property
    def family(self) -> str:
        """The family of the server."""
        family = self.server.spec.family
        return self.server.name.split(".")[0] if family is None else family.name

    @property
    def region(self) -> str:
        """The region."""
        return region_of(self.place) or self.place

    def __str__(self) -> str:
        place = "no region" if self.place == UNSTATED else self.place
        return f"{self.site.value} {self.type} of {self.server.name} ({place}, {self.date})"


PriceConflict = QuoteConflict[Offer]


@frozen(eq=False)
class Market:
    """The prices of a graph.

    Attributes:
        offers: Every price that is adopted, and those of claims that were right at their date.
        conflicts: Those among them, one for each price to blame: the one that contradicts most others, then the next.
    """

    offers: tuple[Offer, ...]
    conflicts: tuple[PriceConflict, ...]


@cached_by_graph
def market(graph: Graph) -> Market:
    """The prices of a graph. Several rules use them, so they are cached for the lifetime of the graph."""
    offers = tuple(offer for node in graph.of(Price) for offer in _offers(graph, node))
    return Market(offers, tuple(_blamed([*_pairs(offers), *_copies(offers), *_implausible(offers)], offers)))


def _offers(graph: Graph, node: Node[Price]) -> Iterator[Offer]:
    server = graph.find(node.spec.server)
    if server is None:
        return
    chip = graph.find(server.spec.chips.chip)
    if chip is None:
        return
    sites = [Site(node, ("spec", "hourly", place)) for place in node.spec.hourly]
    for index, claim in enumerate(node.claims):
        if claim.verdict in (*AGREES, "superseded"):
            sites += [Site(node, path, index) for path in claimed_paths(claim.at) if path[:2] == ("spec", "hourly")]
    for site in sites:
        value = site.value
        ref = source_of(node, site.path) if site.claim is None else node.claims[site.claim].source
        source = None if ref is None else graph.find(ref)
        if isinstance(value, Quantity) and value.dimension is Dimension.PRICE and value.value > 0:
            date = "" if source is None else source.spec.as_of
            place = str(site.path[-1])
            rate = half_precision(chip) * server.spec.chips.count / 1e15
            yield Offer(site, server, chip.name, _sizes(server.spec), rate, place, date, float(value.value))


def _sizes(server: Server) -> tuple[float, ...]:
    host = server.host
    memory = None if host is None or host.memory is None else float(host.memory.value.value)
    return (float(server.chips.count), float((host and host.vcpus) or 0), memory or 0.0)


def _pairs(offers: tuple[Offer, ...]) -> Iterator[PriceConflict]:
    by_chip: dict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        by_chip[offer.chip].append(offer)
    for same in by_chip.values():
        for one, other in combinations(same, 2):
            if one.site.path == other.site.path and one.document is other.document and _same_date(one, other):
                continue  # a claim on a figure of the same date, which TRN303 compares
            low, high, why = _bounds(one, other)
            if not low <= one.value / other.value <= high:
                yield PriceConflict(_code(one, other), one, other, (low * other.value, high * other.value), why)
    yield from _levels([o for o in offers if o.site.claim is None])


def _code(one: Offer, other: Offer) -> str:
    if one.type != other.type:
        return "TRN804"
    if one.server is not other.server:
        return "TRN802"
    is_same = one.place == other.place and one.term == other.term and one.document is not other.document
    return "TRN806" if is_same and _same_date(one, other) else "TRN803"


def _bounds(one: Offer, other: Offer) -> tuple[float, float, str]:
    """The ratio of two prices of one chip: by size, type, region and date, and the sentence that says so."""
    if one.server is other.server and one.type == other.type == "spot":
        return 1 / SPOTS, SPOTS, "zone and date"
    reasons = []
    low, high = 1 / DIGITS, DIGITS
    if one.server is not other.server:
        small, large = _size(one, other)
        low, high = low * small, high * large
        reasons.append("size")
    if one.type != other.type or one.type == "spot":
        (small, large), (less, more) = OF_ON_DEMAND[one.type], OF_ON_DEMAND[other.type]
        low, high = low * small / more, high * large / less
        reasons.append("type")
    elif one.term != other.term or one.type == "capacity-block":
        span = TERMS if one.type == "capacity-block" else 1 / OF_ON_DEMAND["reserved"][0]
        low, high = low / span, high * span
        reasons.append("term")
    if one.region != other.region:
        low, high = low / REGIONS, high * REGIONS
        reasons.append("region")
    if not _same_date(one, other):
        low, high = low / DATES, high * DATES
        reasons.append("date")
    return low, high, " and ".join(reasons) or "nothing"


def _size(one: Offer, other: Offer) -> Range:
    """The ratio of the prices of two servers with one chip: between those of chips, processors and host memory."""
    ratios = [a / b for a, b in zip(one.sizes, other.sizes, strict=True) if a and b]
    if one.family == other.family:
        return min(ratios), max(ratios)
    return ratios[0] / FAMILIES, ratios[0] * FAMILIES


def _same_date(one: Offer, other: Offer) -> bool:
    """Whether two prices are of one time: the less precise date contains the other."""
    length = min(len(one.date), len(other.date), len("2026-07"))
    return one.date[:length] == other.date[:length]


def _levels(adopted: list[Offer]) -> Iterator[PriceConflict]:
    """On-demand prices whose ratio between two regions differs from that of other servers."""
    prices: dict[str, dict[str, Offer]] = defaultdict(dict)
    for offer in adopted:
        if offer.type == "on-demand" and offer.place != UNSTATED:
            prices[offer.server.name][offer.region] = offer
    ratios: dict[tuple[str, str], dict[str, tuple[Offer, Offer]]] = defaultdict(dict)
    for server, by_region in prices.items():
        for pair in combinations(sorted(by_region), 2):
            one, other = by_region[pair[0]], by_region[pair[1]]
            if _same_date(one, other):
                ratios[pair][server] = (one, other)
    for pairs in ratios.values():
        for server, (one, other) in pairs.items():
            levels = [a.value / b.value for s, (a, b) in pairs.items() if s != server]
            if len(levels) < 2:  # one other server may be the wrong one
                continue
            low, high = min(levels) / MARKETS, max(levels) * MARKETS
            if not low <= one.value / other.value <= high:
                bounds = (low * other.value, high * other.value)
                yield PriceConflict("TRN803", one, other, bounds, f"region, as {len(levels)} other servers have it")


def _implausible(offers: tuple[Offer, ...]) -> Iterator[PriceConflict]:
    """Prices per rate that no known chip has."""
    for offer in offers:
        less, more = OF_ON_DEMAND[offer.type]
        bounds = (PER_PFLOPS[0] * less * offer.rate, PER_PFLOPS[1] * more * offer.rate)
        if offer.rate and not bounds[0] <= offer.value <= bounds[1]:
            yield PriceConflict("TRN805", offer, None, bounds, f"{offer.rate:,.4g} PFLOPS of 16-bit numbers")


def _copies(offers: tuple[Offer, ...]) -> Iterator[PriceConflict]:
    """Prices that are to the last digit those of a server with other chips."""
    by_value: dict[tuple[PriceType, float], list[Offer]] = defaultdict(list)
    for offer in offers:
        if offer.site.claim is None:
            by_value[offer.type, offer.value].append(offer)
    for (_, value), same in by_value.items():
        digits = len(f"{value:.12g}".replace(".", "").strip("0"))
        for one, other in combinations(same, 2):
            is_near = one.region == other.region
            is_other = one.chip != other.chip or one.sizes[0] != other.sizes[0]
            if is_other and digits >= (COPIED if is_near else COPIED + 1):
                yield PriceConflict("TRN808", one, other, None, "chance")


_RANK = {"TRN806": 0, "TRN803": 1, "TRN802": 2, "TRN804": 3, "TRN805": 4, "TRN808": 5}
"""Which rule is reported of a price that violates several with equal bounds."""


def _blamed(conflicts: list[PriceConflict], offers: tuple[Offer, ...]) -> Iterator[PriceConflict]:
    """One conflict for each price to blame, with the narrowest bounds; of two that with less support, then that far from the median."""
    support: dict[Offer, int] = {}
    medians = _medians(offers)

    def wrong(most: list[Offer]) -> Offer:
        support.update({o: _support(o, offers) for o in most if o not in support})
        return min(most, key=lambda o: (support[o], -_distance(o, medians), o.document.name, o.place))

    yield from blamed(conflicts, wrong, _informative)


def _informative(pair: PriceConflict) -> tuple[object, ...]:
    """First the closest comparison: with the narrowest bounds, of the same server."""
    width = 0.0 if pair.bounds is None else pair.bounds[1] / pair.bounds[0]
    is_other = pair.other is not None and pair.other.server is not pair.one.server
    return (pair.code in _LATE, round(width, 1), _RANK[pair.code], is_other)


_LATE = ("TRN805", "TRN808")
"""Rules that are reported where no comparison with a price of the same chip is violated."""


def _medians(offers: tuple[Offer, ...]) -> dict[PriceType, float]:
    """The median price per rate by type."""
    from statistics import median

    prices: dict[PriceType, list[float]] = defaultdict(list)
    for offer in offers:
        if offer.rate:
            prices[offer.type].append(offer.value / offer.rate)
    return {type_: median(values) for type_, values in prices.items()}


def _distance(offer: Offer, medians: Mapping[PriceType, float]) -> float:
    """Distance of a price per rate from the median of its type, as a logarithm."""
    return abs(math.log(offer.value / offer.rate / medians[offer.type])) if offer.rate else 0.0


def _support(offer: Offer, offers: tuple[Offer, ...]) -> int:
    """Number of prices of the same server and type that a price agrees with to its digits, claims among them."""
    alike = (o for o in offers if o is not offer and o.server is offer.server and o.type == offer.type)
    return sum(1 / DIGITS <= offer.value / o.value <= DIGITS for o in alike)


def likely_cause(conflict: PriceConflict, known: Iterable[Offer]) -> str:
    """The likely cause of a wrong price: that of another server, a power of ten, or of one chip; empty if none fits."""
    from statistics import median

    offer, known = conflict.one, tuple(known)
    same = [o for o in known if o.server is not offer.server and o.value == offer.value and o.site.claim is None]
    if same:
        best = min(
            same, key=lambda o: (o.type != offer.type, o.place != offer.place, o.chip != offer.chip, o.server.name)
        )
        return f"{offer.site.value} is the {best.type} price of {best.server.name} in {best.place}"
    alike = [o.value for o in known if o.server is offer.server and o.type == offer.type and o is not offer]
    return quoted.likely_cause(conflict, offer.sizes[0], "USD/h", "price", median(alike) if alike else None)
