"""trnspec.checks.reconcile.prices: what is known of each price, copies, and the likely cause of a wrong one."""

from __future__ import annotations

import functools
from typing import Any

import attrs
import pytest
from rules_world import bare, put, shipped

from trnspec.checks.reconcile.prices import COPIED, Contradiction, Offer, _copies, likely_cause, market
from trnspec.model.price import Price


@functools.cache
def offers() -> tuple[Offer, ...]:
    return tuple(offer for offer in market(shipped()).offers if offer.site.claim is None)


def test_sizes_and_rates_are_those_of_the_servers() -> None:
    """Chips, processors and host memory [B]; dense 16-bit PFLOPS of all chips."""
    for offer in offers():
        spec, chip = offer.server.spec, shipped().named(offer.chip).spec
        assert offer.sizes == (spec.chips.count, spec.host.vcpus, float(spec.host.memory.value.value))
        assert offer.rate == pytest.approx(float(chip.peak.dense.bf16.value.value) * spec.chips.count / 1e15)
        assert offer.value == float(offer.document.spec.hourly[offer.place].value.value)
    assert len(offers()) > 20


@pytest.mark.parametrize(("at", "index"), [("host.vcpus", 1), ("host.memory", 2), ("host", None)])
def test_sizes_that_are_not_known(at: str, index: int | None) -> None:
    """Are 0, and are not compared."""
    changed = market(put(bare(), "trn1.32xlarge", at, None)).offers
    found = {offer.sizes for offer in changed if offer.server.name == "trn1.32xlarge"}
    (known,) = {offer.sizes for offer in offers() if offer.server.name == "trn1.32xlarge"}

    assert found == {tuple(0.0 if n and index in (None, n) else size for n, size in enumerate(known))}


def made(offer: Offer, **changes: Any) -> Offer:
    return attrs.evolve(offer, **changes)


@pytest.mark.parametrize(
    ("changes", "digits", "copied"),
    [
        ({"chip": "other"}, COPIED, True),
        ({"chip": "other"}, COPIED - 1, False),
        ({"sizes": (3.0, 1.0, 1.0)}, COPIED, True),
        # Sizes of processors and memory do not make it another system.
        ({}, COPIED, False),
        # Of another region one digit more.
        ({"chip": "other", "place": "eu-north-1"}, COPIED, False),
        ({"chip": "other", "place": "eu-north-1"}, COPIED + 1, True),
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
        others = [o for o in known if o.server is not offer.server]
        for name in ("type", "place", "chip"):
            others = [o for o in others if getattr(o, name) == getattr(offer, name)] or others
        first = min(others, key=lambda o: o.server.name).server.name
        found = likely_cause(Contradiction("TRN803", offer, None, None, ""), known)
        assert found in {
            f"{offer.site.value} is the {o.type} price of {o.server.name} in {o.place}" for o in others if o.server.name == first
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
    one = made(next(o for o in offers() if o.server.name == "trn1.32xlarge"), value=value)

    assert likely_cause(Contradiction("TRN803", one, None, (9.0, 11.0), ""), ()) == cause
    assert likely_cause(Contradiction("TRN808", one, None, None, ""), ()) == ""
