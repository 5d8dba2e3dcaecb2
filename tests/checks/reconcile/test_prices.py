"""trnspec.checks.reconcile.quotes: what is known of each price, copies, and the likely cause of a wrong one."""

import functools
from typing import Any

import attrs
import pytest

from tests.support.rules import bare, linked, put, shipped
from trnspec.checks.reconcile.quotes import (
    COPIED,
    KnownQuote,
    QuoteConflict,
    _blamed,
    _bounds,
    _code,
    _copies,
    _implausible,
    _informative,
    _levels,
    _price_order,
    _support,
    likely_cause,
    market,
)
from trnspec.checks.reconcile.sites import Site
from trnspec.model.quotes import Price


@functools.cache
def offers() -> tuple[KnownQuote, ...]:
    return tuple(offer for offer in market(shipped()).quotes if offer.site.claim is None)


def test_sizes_and_rates_are_those_of_the_servers() -> None:
    """Chips, processors and host memory [B]; dense 16-bit PFLOPS of all chips."""
    for offer in offers():
        spec, chip = offer.subject.spec, offer.chip.spec
        assert offer.sizes == (spec.chips.count, spec.host.vcpus, float(spec.host.memory.value.value))
        assert offer.rate == pytest.approx(float(chip.peak.dense.bf16.value.value) * spec.chips.count / 1e15)
        assert offer.value == float(offer.document.spec.hourly[offer.place].value.value)
    assert len(offers()) > 20


@pytest.mark.parametrize(("at", "index"), [("host.vcpus", 1), ("host.memory", 2), ("host", None)])
def test_sizes_that_are_not_known(at: str, index: int | None) -> None:
    """Are 0, and are not compared."""
    changed = market(put(bare(), "trn1.32xlarge", at, None)).quotes
    found = {offer.sizes for offer in changed if offer.subject.name == "trn1.32xlarge"}
    (known,) = {offer.sizes for offer in offers() if offer.subject.name == "trn1.32xlarge"}

    assert found == {tuple(0.0 if n and index in (None, n) else size for n, size in enumerate(known))}


def made(offer: KnownQuote, **changes: Any) -> KnownQuote:
    return attrs.evolve(offer, **changes)


@pytest.mark.parametrize(
    ("changes", "digits", "copied"),
    [
        ({"chip": shipped().named("trainium3")}, COPIED, True),
        ({"chip": shipped().named("trainium3")}, COPIED - 1, False),
        ({"sizes": (3.0, 1.0, 1.0)}, COPIED, True),
        # Sizes of processors and memory do not make it another system.
        ({}, COPIED, False),
        # Of another region one digit more.
        ({"chip": shipped().named("trainium3"), "place": "eu-north-1"}, COPIED, False),
        ({"chip": shipped().named("trainium3"), "place": "eu-north-1"}, COPIED + 1, True),
    ],
)
def test_copies(changes: dict[str, Any], digits: int, *, copied: bool) -> None:
    value = float("12.3456789"[: digits + 1])
    one = made(next(o for o in offers() if o.place == "us-east-1"), value=value)
    other = made(one, **{"sizes": (one.sizes[0], 1.0, 1.0)} | changes)
    found = list(_copies((one, other)))

    assert [(c.code, c.one, c.other) for c in found] == [("TRN808", one, other)] * copied


def test_the_price_of_another_server_is_that_of_the_nearest() -> None:
    """Of the same type before the same place, and that before the same chip."""
    for offer in offers():
        known = [made(o, value=offer.value) for o in offers()]
        others = [o for o in known if o.subject is not offer.subject]
        for name in ("type", "place", "chip"):
            others = [o for o in others if getattr(o, name) == getattr(offer, name)] or others
        first = min(others, key=lambda o: o.subject.name).subject.name
        found = likely_cause(QuoteConflict("TRN803", offer, None, None, ""), known)
        assert found in {
            f"{offer.site.value} is the {o.type} price of {o.subject.name} in {o.place}" for o in others if o.subject.name == first
        }  # fmt: skip
    assert {p.spec.type for p in shipped().of(Price)} >= {"on-demand", "spot", "reserved"}


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (100.0, "a factor of 10: 10 USD/h is within the bounds"),
        (1.0, "a factor of 0.1: 10 USD/h is within the bounds"),
        (10.0 / 16, "the price of one chip: 16 x 0.625 = 10 USD/h"),
        (33.0, ""),
    ],
)
def test_the_cause_of_a_price_out_of_bounds(value: float, cause: str) -> None:
    one = made(next(o for o in offers() if o.subject.name == "trn1.32xlarge"), value=value)

    assert likely_cause(QuoteConflict("TRN803", one, None, (9.0, 11.0), ""), ()) == cause
    assert likely_cause(QuoteConflict("TRN808", one, None, None, ""), ()) == ""


def offer(server: str = "a1.large", type: str = "on-demand", place: str = "us-east-1", **more: Any) -> KnownQuote:
    """A price of the small catalog as another one: of another type, term, place, date or value."""
    known = next(o for o in market(linked()).quotes if o.subject.name == server)
    node = known.document
    spec = attrs.evolve(node.spec, term=more.pop("term", None))
    site = Site(attrs.evolve(node, spec=spec), ("spec", "hourly", place), more.pop("claim", None))
    return made(known, site=site, type=type, place=place, **more)


OTHER_FAMILY = "b2.large"


@pytest.mark.parametrize(
    ("one", "other", "code", "low", "high", "why"),
    [
        ({}, {}, "TRN806", 1, 1, "nothing"),
        ({}, {"date": "2025"}, "TRN806", 1, 1, "nothing"),
        ({}, {"date": "2025-06-30"}, "TRN806", 1, 1, "nothing"),
        ({}, {"date": "2025-07"}, "TRN803", 1 / 2, 2, "date"),
        ({}, {"date": "2024"}, "TRN803", 1 / 2, 2, "date"),
        ({}, {"place": "us-east-1a"}, "TRN803", 1, 1, "nothing"),
        ({}, {"place": "eu-north-1"}, "TRN803", 1 / 1.75, 1.75, "region"),
        ({}, {"place": "eu-north-1", "date": "2024"}, "TRN803", 1 / 3.5, 3.5, "region and date"),
        ({}, {"type": "spot"}, "TRN804", 1, 1 / 0.09, "type"),
        ({"type": "reserved"}, {"type": "spot"}, "TRN804", 0.25, 1 / 0.09, "type"),
        ({"type": "capacity-block"}, {"type": "reserved"}, "TRN804", 0.25, 5, "type"),
        ({"type": "spot"}, {"type": "spot", "place": "eu-north-1"}, "TRN803", 1 / 5, 5, "zone and date"),
        ({"type": "reserved"}, {"type": "reserved"}, "TRN806", 1, 1, "nothing"),
        ({"type": "reserved"}, {"type": "reserved", "term": "3-year"}, "TRN803", 1 / 4, 4, "term"),
        ({"type": "capacity-block"}, {"type": "capacity-block"}, "TRN806", 1 / 1.5, 1.5, "term"),
        # 1 and 16 chips, 8 and 128 processors, 32 and 512 GiB.
        ({"server": "a1.small"}, {}, "TRN802", 1 / 16, 1 / 16, "size"),
        ({"server": "a1.small", "sizes": (1, 32, 0)}, {}, "TRN802", 1 / 16, 1 / 4, "size"),
        ({"server": "a1.small"}, {"type": "spot"}, "TRN804", 1 / 16, 1 / 16 / 0.09, "size and type"),
        ({"server": OTHER_FAMILY}, {}, "TRN802", 1 / 1.5, 1.5, "size"),
        ({"server": OTHER_FAMILY, "sizes": (4, 4, 4)}, {}, "TRN802", 1 / 6, 1.5 / 4, "size"),
        ({"type": "spot", "server": "a1.small"}, {"type": "spot"}, "TRN802", 0.09 / 16, 1 / 0.09 / 16, "size and type"),
    ],
)  # fmt: skip
def test_expected_price_from_another(one: Any, other: Any, code: str, low: float, high: float, why: str) -> None:
    """Equal prices differ by 3 % at most, as does what follows from equal ones; spot prices follow demand."""
    digits = 1 if why == "zone and date" else 1.03
    pair = offer(**one), offer(**other)

    assert _code(*pair) == code
    assert _bounds(*pair) == (pytest.approx(low / digits), pytest.approx(high * digits), why)


@pytest.mark.parametrize(
    ("ratio", "others", "reported"),
    [
        (1.2 / 1.15 - 0.01, (1.2, 1.3), True),
        (1.2 / 1.15 + 0.01, (1.2, 1.3), False),
        (1.3 * 1.15 - 0.01, (1.2, 1.3), False),
        (1.3 * 1.15 + 0.01, (1.2, 1.3), True),
        (9.0, (1.2,), False),
        (9.0, (1.2, 1.2, 1.3), True),
    ],
)
def test_levels_of_two_regions(ratio: float, others: tuple[float, ...], *, reported: bool) -> None:
    """With at least two other servers, and 15 % more and less than they have."""
    pairs = []
    for number, level in enumerate((ratio, *others)):
        server = offer().subject
        server = attrs.evolve(server, metadata=attrs.evolve(server.metadata, name=f"server-{number}"))
        pairs.append(
            [
                made(offer(place=p), subject=server, value=v)
                for p, v in (("eu-north-1", 10 * level), ("us-east-1", 10.0))
            ]
        )
    found = [c for c in _levels([o for pair in pairs for o in pair]) if c.one is pairs[0][0]]

    assert [(c.code, c.other, c.why) for c in found] == [
        ("TRN803", pairs[0][1], f"region, as {len(others)} other servers have it")
    ] * reported
    for contradiction in found:
        assert contradiction.bounds == pytest.approx((12 / 1.15, 13 * 1.15))


def test_levels_of_other_prices_are_not_compared() -> None:
    """Only on-demand prices of two regions at one date."""
    for changes in ({"type": "spot"}, {"place": "unstated"}, {"date": "2020"}):
        pairs = [(offer(**{"place": "eu-north-1"} | changes), offer()) for _ in range(3)]
        changed = [made(one, value=100.0 + 900 * n) for n, pair in enumerate(pairs) for one in pair[:1]]
        assert [] == list(_levels([*changed, *(other for _, other in pairs)]))


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [("on-demand", 1.5, 30), ("spot", 0.135, 30), ("reserved", 0.375, 30), ("capacity-block", 0.375, 37.5)],
)
def test_prices_per_rate(type: str, low: float, high: float) -> None:
    """Of 2 PFLOPS; where the rate is not known, any price may be."""
    known = offer(type=type, rate=2.0)
    values = {2 * low * 0.999: True, 2 * low * 1.001: False, 2 * high * 0.999: False, 2 * high * 1.001: True}
    for value, reported in values.items():
        found = list(_implausible((made(known, value=value), made(known, value=value, rate=0.0))))
        assert [c.code for c in found] == ["TRN805"] * reported
        for contradiction in found:
            assert contradiction.bounds == pytest.approx((2 * low, 2 * high))
            assert contradiction.why == "2 PFLOPS of 16-bit numbers"


def _blame(conflicts: list[QuoteConflict], offers: tuple[KnownQuote, ...]) -> list[QuoteConflict]:
    return list(_blamed(conflicts, _price_order(offers), _informative))


def contradicting(
    one: KnownQuote, other: KnownQuote | None, bounds: tuple[float, float] | None, code: str
) -> QuoteConflict:
    return QuoteConflict(code, one, other, bounds, "")


def test_the_price_that_most_others_contradict_is_blamed() -> None:
    """Then the one with less support, then the less usual one; its narrowest bounds are reported, turned towards it."""
    right, also, wrong = (
        offer(place=p, value=v) for p, v in (("us-east-1", 20.0), ("us-west-2", 20.0), ("eu-north-1", 80.0))
    )
    pairs = [
        contradicting(right, wrong, (40.0, 160.0), "TRN803"),
        contradicting(also, wrong, (70.0, 100.0), "TRN802"),
        contradicting(wrong, None, (1.0, 60.0), "TRN805"),
    ]
    (blamed,) = _blame(pairs, (right, also, wrong))
    assert (blamed.code, blamed.one, blamed.other) == ("TRN802", wrong, also)
    assert blamed.bounds == pytest.approx((16.0, 1600 / 70))
    # One vote each: support comes before the usual price per rate, and that before names and places.
    for per_chip, supporting, expected in ((5.0, (also,), wrong), (5.0, (), right), (1.25, (), wrong)):
        usual = [offer(server="a1.small", value=per_chip)] * 3
        (blamed,) = _blame(pairs[:1], (right, wrong, *supporting, *usual))
        assert blamed.one is expected
    # Without a rate nothing is known to be unusual.
    unrated, unusual = made(right, rate=0.0), made(wrong, value=30.0)
    (blamed,) = _blame(
        [contradicting(unrated, unusual, (40.0, 160.0), "TRN803")],
        (unrated, unusual, *[offer(server="a1.small", value=1.25)] * 3),
    )
    assert blamed.one is unusual
    same = made(wrong, value=20.0)
    (blamed,) = _blame([contradicting(right, same, (40.0, 160.0), "TRN803")], (right, same))
    assert blamed.one is same


def test_support_of_a_price() -> None:
    """Prices of the same server and type within 3 %, claims among them."""
    one = offer(value=20.0)
    alike = [offer(place="us-west-2", value=v) for v in (20.59, 19.43)] + [offer(claim=0, value=20.0)]
    others = [offer(value=v) for v in (20.61, 19.41)] + [
        offer(value=20.0, **other) for other in ({"server": "a1.small"}, {"type": "spot"})
    ]

    assert _support(one, (one, *alike, *others)) == 3


def test_the_closest_comparison_is_reported() -> None:
    """Bounds of a comparison come before those of a rate and copies; of equal ones that of the same server, by its code."""
    one, other, small = offer(), offer(place="us-west-2"), offer(server="a1.small")
    ordered = [
        contradicting(one, other, (10.0, 12.0), "TRN804"),
        contradicting(one, other, (10.0, 13.0), "TRN806"),
        contradicting(one, other, (10.0, 13.0), "TRN803"),
        contradicting(one, small, (10.0, 13.0), "TRN803"),
        contradicting(one, small, (10.0, 13.0), "TRN802"),
        contradicting(one, other, (10.0, 13.0), "TRN804"),
        contradicting(one, None, None, "TRN808"),
        contradicting(one, None, (1.0, 2.0), "TRN805"),
    ]
    for number in range(len(ordered)):
        found = list(_blame(ordered[number:][::-1], (one, other, small)))
        assert found[0].code == ordered[number].code
        assert found[0].other is ordered[number].other
