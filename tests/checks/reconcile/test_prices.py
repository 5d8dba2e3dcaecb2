"""trnspec.checks.reconcile.quotes: what is known of each price, and the likely cause of a wrong one."""

import functools
from fractions import Fraction
from typing import Any

import attrs
import pytest

from tests.support.rules import bare, linked, put, shipped
from tests.support.tables import tables
from trnspec.checks.reconcile import quotes
from trnspec.checks.reconcile.sites import Site
from trnspec.model.quotes import Price


@functools.cache
def offers() -> tuple[quotes.KnownQuote, ...]:
    return tuple(offer for offer in quotes.market(shipped()).quotes if offer.site.claim is None)


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
    changed = quotes.market(put(bare(), "trn1.32xlarge", at, None)).quotes
    found = {offer.sizes for offer in changed if offer.subject.name == "trn1.32xlarge"}
    (known,) = {offer.sizes for offer in offers() if offer.subject.name == "trn1.32xlarge"}

    assert found == {tuple(0.0 if n and index in (None, n) else size for n, size in enumerate(known))}


def made(offer: quotes.KnownQuote, **changes: Any) -> quotes.KnownQuote:
    return attrs.evolve(offer, **changes)


def test_the_price_of_another_server_is_that_of_the_nearest() -> None:
    """Of the same type before the same place, and that before the same chip."""
    for offer in offers():
        known = [made(o, value=offer.value) for o in offers()]
        others = [o for o in known if o.subject is not offer.subject]
        for name in ("type", "place", "chip"):
            others = [o for o in others if getattr(o, name) == getattr(offer, name)] or others
        first = min(others, key=lambda o: o.subject.name).subject.name
        found = quotes.likely_cause(quotes.QuoteConflict("TRN803", offer, None, None, ""), known)
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
        (0.61234567, "the price of one chip: 16 x 0.612346 = 9.79753 USD/h"),
        (33.0, ""),
    ],
)
def test_the_cause_of_a_price_out_of_bounds(value: float, cause: str) -> None:
    one = made(next(o for o in offers() if o.subject.name == "trn1.32xlarge"), value=value)

    assert quotes.likely_cause(quotes.QuoteConflict("TRN803", one, None, (9.0, 11.0), ""), ()) == cause
    assert quotes.likely_cause(quotes.QuoteConflict("TRN808", one, None, None, ""), ()) == ""


def offer(
    server: str = "a1.large", type: str = "on-demand", place: str = "us-east-1", **more: Any
) -> quotes.KnownQuote:
    """A price of the small catalog as another one: of another type, term, place, date or value."""
    known = next(o for o in quotes.market(linked()).quotes if o.subject.name == server)
    node = known.document
    spec = attrs.evolve(node.spec, term=more.pop("term", None))
    site = Site(attrs.evolve(node, spec=spec), ("spec", "hourly", place), more.pop("claim", None))
    return made(known, site=site, type=type, place=place, **more)


@pytest.mark.parametrize(("one", "other", "code", "low", "high", "why"), tables(__file__)["bounds"])
def test_expected_price_from_another(one: Any, other: Any, code: str, low: Any, high: Any, why: str) -> None:
    """Equal prices differ by 3 % at most, as does what follows from equal ones; spot prices follow demand."""
    digits = 1 if why == "zone and date" else 1.03
    pair = offer(**one), offer(**other)

    assert quotes._code(*pair) == code
    assert quotes._bounds(*pair) == (
        pytest.approx(Fraction(low) / digits),
        pytest.approx(Fraction(high) * digits),
        why,
    )


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [("on-demand", 1.5, 30), ("spot", 0.135, 30), ("reserved", 0.375, 30), ("capacity-block", 0.375, 37.5)],
)
def test_prices_per_rate(type: str, low: float, high: float) -> None:
    """Of 2 PFLOPS; where the rate is not known, any price may be."""
    known = offer(type=type, rate=2.0)
    values = {2 * low * 0.999: True, 2 * low * 1.001: False, 2 * high * 0.999: False, 2 * high * 1.001: True}
    for value, reported in values.items():
        found = list(quotes._implausible((made(known, value=value), made(known, value=value, rate=0.0))))
        assert [c.code for c in found] == ["TRN805"] * reported
        for contradiction in found:
            assert contradiction.bounds == pytest.approx((2 * low, 2 * high))
            assert contradiction.why == "2 PFLOPS of 16-bit numbers"


def test_prices_of_the_same_server_and_type_support_each_other() -> None:
    offered = [
        ("box", "spot", 2.0),
        ("box", "spot", 2.0),
        ("tin", "spot", 2.0),
        ("box", "on-demand", 2.0),
        ("box", "spot", 3.0),
    ]
    made = tuple(
        quotes.KnownQuote(site=None, type=type_, subject=subject, chip=None, sizes=(), rate=0.0, place="", date="2026", value=value)
        for subject, type_, value in offered
    )  # fmt: skip

    assert [1, 1, 0, 0, 0] == [quotes._support(offer, made) for offer in made]
