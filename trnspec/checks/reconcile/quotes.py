"""Bounds of prices and powers: what those of one chip say about each other, by type, size, place and date, and its rate."""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

from attrs import evolve, frozen

from trnspec.checks.reconcile.relations import AGREES
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.composition import chips
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.graph.provenance import claims_at, source_of
from trnspec.graph.quotes import draws, region_of
from trnspec.model.chip import Chip
from trnspec.model.document import Node  # read at run time
from trnspec.model.figure import Figure
from trnspec.model.quotes import UNSTATED, Power, PowerType, Price, PriceType
from trnspec.model.reflection import spread
from trnspec.model.server import Server
from trnspec.quantities.quantity import Quantity, significant
from trnspec.quantities.units import Dimension
from trnspec.text_table import plural

Range = tuple[float, float]

OF_ON_DEMAND: dict[PriceType, Range] = {
    "on-demand": (1.0, 1.0),
    "spot": (0.09, 1.0),
    "reserved": (0.25, 1.0),
    "capacity-block": (0.25, 1.25),
}
"""Prices by type, as a share of the on-demand price at the same place and time. AWS states discounts of up to 90 % for
spot and 72 % for reservations; the lowest spot prices known are 0.100 of the on-demand price."""

OF_MAXIMUM: dict[PowerType, Range] = {
    "maximum": (1.0, 1.0),
    "tdp": (0.5, 1.02),
    "configurable-tdp": (0.25, 1.25),
    "typical": (0.2, 1.0),
    "measured": (0.05, 1.1),
    "nameplate": (1.0, 3.0),
}
"""Powers by type, as a share of the maximum of the same chip or system. Limits can be set to a fourth; power supplies are
redundant, so their sum may be three times what is drawn."""

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

MARKETS = 1.15
"""Ratio of the price levels of two regions, by server: up to 1.05 among those that are known."""

COPIED = 3
"""Digits of a price, without zeros at its ends, that are not those of another server's price by chance."""

OF_CHIPS: dict[str, Range] = {"system": (1.25, 2.6), "rack": (1.1, 2.6)}
"""Maximum power of a system over the design power of its chips, by scope: 1.59 to 2.03 for servers and 1.41 for racks
that are known."""

OF_PACKAGE = ("package", "board")
"""The scopes of a chip; the others are those of a system."""

_BOUNDING = ("tdp", "maximum", "nameplate")
"""The types that bound the power of a chip from above."""

FACTORS = (10.0, 0.1, 1000.0, 0.001, 100.0, 0.01)
"""Wrong powers of ten, the likely ones first."""


@frozen(eq=False)
class QuoteBounds:
    """The bounds of a kind of quoted quantity.

    Attributes:
        word: Its name in messages.
        unit: Its unit in messages.
        types: The value by type, as a share of that of one type.
        digits: Ratio of two values that should be equal.
        of_rate: The least and the greatest value of a chip over its dense 16-bit rate, by type.
        rate: The unit of that rate in messages, and its size in FLOPS.
    """

    word: str
    unit: str
    types: Mapping[Any, Range]
    digits: float
    of_rate: Mapping[Any, Range]
    rate: tuple[str, float]


# On-demand price per chip in USD/h over its dense 16-bit PFLOPS: 3.4 to 13 among those that are known, 25 for V100.
# Equal prices: those of one family and list differ by less than 0.1 %.
PRICES = QuoteBounds(
    "price",
    "USD/h",
    OF_ON_DEMAND,
    1.03,
    {type_: (1.5 * less, 30.0 * more) for type_, (less, more) in OF_ON_DEMAND.items()},
    ("PFLOPS", 1e15),
)

# Dense 16-bit rate of a chip over its design power in TFLOPS/W: 0.42 for V100 to 2.27 for B300. Equal powers have two and
# more digits.
POWERS = QuoteBounds(
    "power",
    "W",
    OF_MAXIMUM,
    1.02,
    {type_: ((1.0 if type_ in _BOUNDING else less) / 4.0, 1 / 0.3) for type_, (less, _) in OF_MAXIMUM.items()},
    ("TFLOPS", 1e12),
)


@frozen(eq=False)
class KnownQuote:
    """A price or a power with everything that determines it.

    Attributes:
        site: The figure or claim.
        type: The type of the price or the power.
        subject: The server; of a power a chip or a system.
        chip: Its chip.
        sizes: Its chips; of a server also its processors and host memory, where they are known.
        rate: The dense 16-bit rate that the value is compared with, in the unit of its kind; 0 if it is not known.
        place: The region, availability zone, or ``unstated``; of a power its scope.
        date: The date of the source.
        value: In USD/h or W.
    """

    site: Site
    type: PriceType | PowerType
    subject: Node[Any]
    chip: Node[Chip]
    sizes: tuple[float, ...]
    rate: float
    place: str
    date: str
    value: float

    @property
    def document(self) -> Node[Any]:
        """The document that states it."""
        return self.site.node

    @property
    def bounds(self) -> QuoteBounds:
        """The bounds of its kind."""
        return PRICES if self.document.is_of(Price) else POWERS

    @property
    def term(self) -> str | None:
        """The term of a price."""
        term: str | None = self.document.spec.term
        return term

    @property
    def family(self) -> str:
        """The family of the server."""
        family = self.subject.spec.family
        return self.subject.name.split(".")[0] if family is None else str(family.name)

    @property
    def region(self) -> str:
        """The region of a price."""
        return region_of(self.place) or self.place

    def __str__(self) -> str:
        text = f"{self.site.value} {self.type} of {self.subject.name}"
        place = "no region" if self.place == UNSTATED else self.place
        return f"{text} ({place}, {self.date})" if self.bounds is PRICES else text


@frozen(eq=False)
class QuoteConflict:
    """A value that is outside the bounds that another one, or the rate of its chips, sets.

    Attributes:
        code: The rule that it violates.
        one: The value that is blamed.
        other: The other; ``None`` where the rate sets the bounds.
        bounds: The least and the greatest plausible value; ``None`` for a copied one.
        why: What the bounds allow for.
    """

    code: str
    one: KnownQuote
    other: KnownQuote | None
    bounds: Range | None
    why: str

    @property
    def parties(self) -> tuple[KnownQuote, ...]:
        """The values that may be wrong: those of documents to check, or all if none is to be checked."""
        both = (self.one,) if self.other is None else (self.one, self.other)
        return tuple(q for q in both if q.document.target) or both

    def about(self, quoted: KnownQuote) -> QuoteConflict:
        """The same with one of the two values first."""
        if self.other is None or quoted is self.one:
            return self
        bounds = self.bounds
        if bounds is not None:
            product = self.one.value * self.other.value
            bounds = product / bounds[1], product / bounds[0]
        return evolve(self, one=self.other, other=self.one, bounds=bounds)

    def text(self) -> str:
        """The message of a finding about the value that is blamed."""
        if self.bounds is None:
            return f"{self.one} is to the last digit the price of another server: {self.other}"
        unit = self.one.bounds.unit
        low, high = (significant(bound, 4) for bound in self.bounds)
        bounds = f"expected {low} to {high} {unit}"
        if self.other is None:
            return f"{self.one} is implausible for {self.why}: {bounds}"
        return f"{self.one} does not agree with {self.other}: {bounds}, by {self.why}"


@frozen(eq=False)
class Market:
    """The prices or the powers of a graph.

    Attributes:
        quotes: Every one that is adopted, and the prices of claims that were right at their date.
        conflicts: Those among them, one for each to blame: the one that contradicts most others, then the next.
    """

    quotes: tuple[KnownQuote, ...]
    conflicts: tuple[QuoteConflict, ...]


@cached_by_graph
def market(graph: Graph) -> Market:
    """The prices of a graph. Several rules use them, so they are cached for the lifetime of the graph."""
    known = tuple(offer for node in graph.of(Price) for offer in _offers(graph, node))
    conflicts = [*_pairs(known), *_levels(known), *_copies(known), *_implausible(known)]
    return Market(known, tuple(_blamed(conflicts, _price_order(known), _informative)))


@cached_by_graph
def powers(graph: Graph) -> Market:
    """The powers of a graph, as its prices."""
    known = tuple(_draws(graph))
    return Market(
        known, tuple(_blamed([*_types(known), *_systems(known), *_implausible(known)], _power_order, _narrow))
    )


def half_precision(chip: Node[Chip]) -> float:
    """The dense rate of a chip in 16-bit numbers, in FLOPS; 0 if it is not known."""
    dense = None if chip.spec.peak is None else chip.spec.peak.dense
    rates = [] if dense is None else [r for r in (dense.bf16, dense.fp16) if isinstance(r, Figure)]
    return max((float(r.value.value) for r in rates), default=0.0)


def _offers(graph: Graph, node: Node[Price]) -> Iterator[KnownQuote]:
    server = graph.find(node.spec.server)
    chip = None if server is None else graph.find(server.spec.chips.chip)
    if server is None or chip is None:
        return
    sites = [Site(node, ("spec", "hourly", place)) for place in node.spec.hourly]
    for index, claim in enumerate(node.claims):
        if claim.verdict in (*AGREES, "superseded"):
            sites += [Site(node, path, index) for path in spread(claim.at) if path[:2] == ("spec", "hourly")]
    rate = half_precision(chip) * server.spec.chips.count / PRICES.rate[1]
    for site in sites:
        value, place = site.value, str(site.path[-1])
        ref = source_of(node, site.path) if site.claim is None else node.claims[site.claim].source
        source = graph.find(ref)
        if isinstance(value, Quantity) and value.dimension is Dimension.PRICE and value.value > 0:
            date = "" if source is None else source.spec.as_of
            sizes = _sizes(server.spec)
            yield KnownQuote(site, node.spec.type, server, chip, sizes, rate, place, date, float(value.value))


def _sizes(server: Server) -> tuple[float, ...]:
    host = server.host
    memory = None if host is None or host.memory is None else float(host.memory.value.value)
    return (float(server.chips.count), float((host and host.vcpus) or 0), memory or 0.0)


def _draws(graph: Graph) -> Iterator[KnownQuote]:
    subjects: dict[str, Node[Any]] = {n.name: n for n in graph.of(Chip) if n.spec.power is not None}
    for document in graph.of(Power):
        subject = graph.find(document.spec.of)
        if subject is not None:
            subjects[subject.name] = subject
    # TRN801 reports a subject without chips.
    for subject, counted in [(s, c) for s in subjects.values() if (c := chips(graph, s)) is not None]:
        is_chip = isinstance(subject.spec, Chip)
        rate = half_precision(counted[1]) / POWERS.rate[1] if is_chip else 0.0
        for draw in draws(graph, subject):
            value = float(draw.figure.value.value)
            scope = getattr(draw.document.spec, "scope", None)
            if scope is None or (scope in OF_PACKAGE) is not is_chip:  # TRN801 reports a scope that does not fit
                scope = "package" if is_chip else "system"
            if value > 0:
                site, sizes = Site(draw.document, ("spec", "power")), (float(counted[0]),)
                yield KnownQuote(site, draw.type, subject, counted[1], sizes, rate, scope, draw.figure.as_of, value)


def _outside(code: str, one: KnownQuote, other: KnownQuote, ratio: Range, why: str) -> Iterator[QuoteConflict]:
    """The conflict of two values whose ratio is out of bounds."""
    bounds = ratio[0] * other.value, ratio[1] * other.value
    if not bounds[0] <= one.value <= bounds[1]:
        yield QuoteConflict(code, one, other, bounds, why)


def _by_type(one: KnownQuote, other: KnownQuote) -> Range:
    """The ratio of two values by their types alone."""
    (small, large), (less, more) = (each.bounds.types[each.type] for each in (one, other))
    return small / more, large / less


def _pairs(offers: tuple[KnownQuote, ...]) -> Iterator[QuoteConflict]:
    """Two prices of servers with one chip."""
    by_chip: dict[str, list[KnownQuote]] = defaultdict(list)
    for offer in offers:
        by_chip[offer.chip.name].append(offer)
    for same in by_chip.values():
        for one, other in combinations(same, 2):
            if one.site.path == other.site.path and one.document is other.document and _same_date(one, other):
                continue  # a claim on a figure of the same date, which TRN303 compares
            low, high, why = _bounds(one, other)
            yield from _outside(_code(one, other), one, other, (low, high), why)


def _code(one: KnownQuote, other: KnownQuote) -> str:
    if one.type != other.type:
        return "TRN804"
    if one.subject is not other.subject:
        return "TRN802"
    is_same = one.place == other.place and one.term == other.term and one.document is not other.document
    return "TRN806" if is_same and _same_date(one, other) else "TRN803"


def _bounds(one: KnownQuote, other: KnownQuote) -> tuple[float, float, str]:
    """The ratio of two prices of one chip: by size, type, region and date, and the sentence that says so."""
    if one.subject is other.subject and one.type == other.type == "spot":
        return 1 / SPOTS, SPOTS, "zone and date"
    ranges = {}
    if one.subject is not other.subject:
        ranges["size"] = _size(one, other)
    if one.type != other.type or one.type == "spot":
        ranges["type"] = _by_type(one, other)
    elif one.term != other.term or one.type == "capacity-block":
        span = TERMS if one.type == "capacity-block" else 1 / OF_ON_DEMAND["reserved"][0]
        ranges["term"] = 1 / span, span
    if one.region != other.region:
        ranges["region"] = 1 / REGIONS, REGIONS
    if not _same_date(one, other):
        ranges["date"] = 1 / DATES, DATES
    low, high = (math.prod(ends) for ends in zip((1 / PRICES.digits, PRICES.digits), *ranges.values(), strict=True))
    return low, high, " and ".join(ranges) or "nothing"


def _size(one: KnownQuote, other: KnownQuote) -> Range:
    """The ratio of the prices of two servers with one chip: between those of chips, processors and host memory."""
    ratios = [a / b for a, b in zip(one.sizes, other.sizes, strict=True) if a and b]
    if one.family == other.family:
        return min(ratios), max(ratios)
    return ratios[0] / FAMILIES, ratios[0] * FAMILIES


def _same_date(one: KnownQuote, other: KnownQuote) -> bool:
    """Whether two prices are of one time: the less precise date contains the other."""
    length = min(len(one.date), len(other.date), len("2026-07"))
    return one.date[:length] == other.date[:length]


def _levels(offers: Iterable[KnownQuote]) -> Iterator[QuoteConflict]:
    """Adopted on-demand prices whose ratio between two regions differs from that of other servers."""
    prices: dict[str, dict[str, KnownQuote]] = defaultdict(dict)
    for offer in offers:
        if offer.site.claim is None and offer.type == "on-demand" and offer.place != UNSTATED:
            prices[offer.subject.name][offer.region] = offer
    ratios: dict[tuple[str, str], dict[str, tuple[KnownQuote, KnownQuote]]] = defaultdict(dict)
    for server, by_region in prices.items():
        for pair in combinations(sorted(by_region), 2):
            one, other = by_region[pair[0]], by_region[pair[1]]
            if _same_date(one, other):
                ratios[pair][server] = (one, other)
    for pairs in ratios.values():
        for server, (one, other) in pairs.items():
            levels = [a.value / b.value for s, (a, b) in pairs.items() if s != server]
            if len(levels) > 1:  # one other server may be the wrong one
                bounds = min(levels) / MARKETS, max(levels) * MARKETS
                why = f"region, as {len(levels)} other servers have it"
                yield from _outside("TRN803", one, other, bounds, why)


def _copies(offers: Iterable[KnownQuote]) -> Iterator[QuoteConflict]:
    """Prices that are to the last digit those of a server with other chips."""
    by_value: dict[tuple[str, float], list[KnownQuote]] = defaultdict(list)
    for offer in offers:
        if offer.site.claim is None:
            by_value[offer.type, offer.value].append(offer)
    for (_, value), same in by_value.items():
        digits = len(f"{value:.12g}".replace(".", "").strip("0"))
        for one, other in combinations(same, 2):
            is_near = one.region == other.region
            is_other = one.chip.name != other.chip.name or one.sizes[0] != other.sizes[0]
            if is_other and digits >= (COPIED if is_near else COPIED + 1):
                yield QuoteConflict("TRN808", one, other, None, "chance")


def _types(known: tuple[KnownQuote, ...]) -> Iterator[QuoteConflict]:
    """Two powers of one chip or system, of one scope."""
    for one, other in combinations(known, 2):
        if one.subject is not other.subject or one.place != other.place:
            continue
        is_same = one.type == other.type
        if is_same and (_conditions(one) != _conditions(other) or one.type in ("typical", "measured")):
            continue  # of two loads, limits or regions
        low, high = (1.0, 1.0) if is_same else _by_type(one, other)
        code, why = ("TRN806", "digits") if is_same else ("TRN804", "type")
        yield from _outside(code, one, other, (low / POWERS.digits, high * POWERS.digits), why)


def _conditions(known: KnownQuote) -> tuple[str | None, str | None]:
    spec = known.document.spec
    return getattr(spec, "region", None), getattr(spec, "load", None)


def _systems(known: Iterable[KnownQuote]) -> Iterator[QuoteConflict]:
    """The power of a system against that of its chips: it must exceed their sum."""
    of_chips = {k.subject.name: k for k in known if k.subject.is_of(Chip) and k.type in _BOUNDING[:2]}
    for one in known:
        chip = of_chips.get(one.chip.name)
        if chip is None or one.subject.is_of(Chip):
            continue
        low, high = OF_CHIPS[one.place]
        if one.type not in _BOUNDING:
            low = 0.1
        elif one.type == "nameplate":
            high *= OF_MAXIMUM["nameplate"][1]
        count = one.sizes[0]
        ratio = low * count / POWERS.digits, high * count * POWERS.digits
        yield from _outside("TRN813", one, chip, ratio, f"{plural(round(count), 'chip')} and the rest")


def _implausible(known: Iterable[KnownQuote]) -> Iterator[QuoteConflict]:
    """Prices, and powers of chips, per rate that no known chip has."""
    for one in known:
        bounds = one.bounds
        low, high = (end * one.rate for end in bounds.of_rate[one.type])
        if one.rate and not low <= one.value <= high:
            why = f"{significant(one.rate, 4)} {bounds.rate[0]} of 16-bit numbers"
            yield QuoteConflict("TRN805", one, None, (low, high), why)


def _blamed(
    conflicts: Sequence[QuoteConflict], doubt: Callable[[KnownQuote], Any], order: Callable[[QuoteConflict], Any]
) -> Iterator[QuoteConflict]:
    """One conflict for each value to blame, the value of most conflicts first.

    Of values with equally many it is the least by ``doubt``; of a value the conflict is reported that is the least by
    ``order``.
    """
    while conflicts:
        votes = Counter(quoted for one in conflicts for quoted in one.parties)
        most = max(votes.values())
        worst = min((quoted for quoted, count in votes.items() if count == most), key=doubt)
        yield min((one.about(worst) for one in conflicts if worst in one.parties), key=order)
        conflicts = [one for one in conflicts if worst not in one.parties]


_RANK = {"TRN806": 0, "TRN803": 1, "TRN802": 2, "TRN804": 3, "TRN805": 4, "TRN808": 5}
"""Order of the rules: of those with equal bounds that a price violates, the first is reported."""


def _informative(pair: QuoteConflict) -> tuple[object, ...]:
    """First the closest comparison of prices: with the narrowest bounds, of the same server."""
    width = 0.0 if pair.bounds is None else pair.bounds[1] / pair.bounds[0]
    is_other = pair.other is not None and pair.other.subject is not pair.one.subject
    return (pair.code in _LATE, round(width, 1), _RANK[pair.code], is_other)


_LATE = ("TRN805", "TRN808")
"""Rules that are reported where no comparison with a price of the same chip is violated."""


def _price_order(offers: tuple[KnownQuote, ...]) -> Callable[[KnownQuote], Any]:
    """The key of prices: first the one with the least support, then the one that is far from the median of its type."""
    prices: dict[str, list[float]] = defaultdict(list)
    for offer in offers:
        if offer.rate:
            prices[offer.type].append(offer.value / offer.rate)
    medians = {type_: median(values) for type_, values in prices.items()}
    support: dict[KnownQuote, int] = {}

    def doubt(offer: KnownQuote) -> tuple[int, float, str, str]:
        if offer not in support:
            support[offer] = _support(offer, offers)
        distance = abs(math.log(offer.value / offer.rate / medians[offer.type])) if offer.rate else 0.0
        return support[offer], -distance, offer.document.name, offer.place

    return doubt


def _support(offer: KnownQuote, offers: tuple[KnownQuote, ...]) -> int:
    """Number of prices of the same server and type that a price agrees with to its digits, claims among them."""
    alike = (o for o in offers if o is not offer and o.subject is offer.subject and o.type == offer.type)
    return sum(1 / PRICES.digits <= offer.value / o.value <= PRICES.digits for o in alike)


def _power_order(known: KnownQuote) -> tuple[int, bool, str]:
    """The key of powers: first the one that the fewest claims agree with, then that of a system."""
    claims = [known.document.claims[index] for index in claims_at(known.document).get(known.site.path, ())]
    supported = sum(claim.verdict in (*AGREES, "rounded") for claim in claims)
    return supported, known.subject.is_of(Chip), known.document.name


def _narrow(one: QuoteConflict) -> tuple[float, bool, str]:
    low, high = one.bounds or (1.0, 1.0)
    return high / low, one.other is None, one.code


def likely_cause(conflict: QuoteConflict, known: Iterable[KnownQuote] = ()) -> str:
    """The likely cause of a wrong value: that of another server, a power of ten, or of one chip; empty if none fits.

    Of several it is the one nearest to the median of the other values of the type, or to the middle of the bounds.
    """
    quote, known = conflict.one, tuple(known)
    same = [o for o in known if o.subject is not quote.subject and o.value == quote.value and o.site.claim is None]
    if same:
        own = (quote.type, quote.place, quote.chip)
        best = min(same, key=lambda o: (*map(operator.ne, (o.type, o.place, o.chip), own), o.subject.name))
        return f"{quote.site.value} is the {best.type} price of {best.subject.name} in {best.place}"
    if conflict.bounds is None:
        return ""
    (low, high), value, count, kind = conflict.bounds, quote.value, quote.sizes[0], quote.bounds
    scaled = [(value / f, f"a factor of {f:,g}: {significant(value / f, 6)} {kind.unit}") for f in FACTORS]
    causes = [(other, f"{text} is within the bounds") for other, text in scaled]
    if count > 1:
        whole = value * count
        product = f"{count:,.0f} x {significant(value, 6)} = {significant(whole, 6)} {kind.unit}"
        causes.append((whole, f"the {kind.word} of one chip: {product}"))
    alike = [o.value for o in known if o.subject is quote.subject and o.type == quote.type and o is not quote]
    center = median(alike) if alike else math.sqrt(low * high)
    fits = [(abs(math.log(other / center)), text) for other, text in causes if low <= other <= high]
    return min(fits)[1] if fits else ""
