"""trnspec.checks.reconcile.quotes: the bounds that one power sets for another, which one is blamed, and the likely cause."""

import functools
from typing import Any

import attrs
import pytest

from tests.support.rules import linked
from tests.support.tables import tables
from trnspec.checks.reconcile import quotes


@functools.cache
def stated() -> dict[str, quotes.KnownQuote]:
    """The powers of the small catalog by the document that states them."""
    return {known.document.name: known for known in quotes._draws(linked())}


def power(document: str = "beta2-tdp", **changes: Any) -> quotes.KnownQuote:
    """A power as another one: of another type, place or value."""
    return attrs.evolve(stated()[document], **changes)


@pytest.mark.parametrize(
    ("one", "other", "code", "low", "high"),
    [
        ("tdp", "tdp", "TRN806", 1, 1),
        ("maximum", "maximum", "TRN806", 1, 1),
        ("tdp", "maximum", "TRN804", 0.5, 1.02),
        ("configurable-tdp", "maximum", "TRN804", 0.25, 1.25),
        ("nameplate", "maximum", "TRN804", 1, 3),
        ("typical", "maximum", "TRN804", 0.2, 1),
        ("measured", "maximum", "TRN804", 0.05, 1.1),
        ("maximum", "nameplate", "TRN804", 1 / 3, 1),
        ("typical", "tdp", "TRN804", 0.2 / 1.02, 2),
    ],
)
def test_two_powers_of_one_subject(one: Any, other: Any, code: str, low: float, high: float) -> None:
    """By their types; 2 % more and less are rounding."""
    second = power(type=other)
    bounds = 500 * low / 1.02, 500 * high * 1.02
    for value, outside in (
        (bounds[0] * 0.999, 1),
        (bounds[0] * 1.001, 0),
        (bounds[1] * 0.999, 0),
        (bounds[1] * 1.001, 1),
    ):
        first = power(type=one, value=value)
        found = list(quotes._types((first, second)))
        assert [(c.code, c.one, c.other) for c in found] == [(code, first, second)] * outside
        for conflict in found:
            assert conflict.bounds == pytest.approx(bounds)
            assert conflict.why == ("digits" if code == "TRN806" else "type")


@pytest.mark.parametrize(("type", "scope", "low", "high"), tables(__file__)["a_system_and_its_chips"])
def test_a_system_and_its_chips(type: Any, scope: str, low: float, high: float) -> None:
    """16 chips of 500 W."""
    chip = power()
    bounds = 8_000 * low / 1.02, 8_000 * high * 1.02
    for value, outside in (
        (bounds[0] * 0.999, 1),
        (bounds[0] * 1.001, 0),
        (bounds[1] * 0.999, 0),
        (bounds[1] * 1.001, 1),
    ):
        one = power("b2.large-maximum", type=type, place=scope, value=value)
        found = list(quotes._systems((one, chip)))
        assert [(c.code, c.one, c.other, c.why) for c in found] == [
            ("TRN813", one, chip, "16 chips and the rest")
        ] * outside
        assert [c.bounds for c in found] == [pytest.approx(bounds)] * outside


@pytest.mark.parametrize(
    ("type", "low", "high"),
    [
        ("tdp", 667 / 4, 667 / 0.3),
        ("maximum", 667 / 4, 667 / 0.3),
        ("typical", 667 / 20, 667 / 0.3),
        ("measured", 667 / 80, 667 / 0.3),
    ],
)
def test_the_power_of_a_rate(type: Any, low: float, high: float) -> None:
    """667 TFLOPS at 0.3 to 4 TFLOPS/W; in use a chip may draw less. A system is compared with its chips."""
    for value, outside in ((low * 0.999, 1), (low * 1.001, 0), (high * 0.999, 0), (high * 1.001, 1)):
        one = power(type=type, value=value)
        found = list(quotes._implausible((one, power("b2.large-maximum", value=1.0))))
        assert [(c.code, c.one, c.other, c.why) for c in found] == [
            ("TRN805", one, None, "667 TFLOPS of 16-bit numbers")
        ] * outside
        assert [c.bounds for c in found] == [pytest.approx((low, high))] * outside


def test_the_power_of_most_conflicts_is_blamed() -> None:
    """Of two with as many the one that fewer claims agree with, then that of a system; with its narrowest bounds."""
    chip, maximum, typical = power(), power("b2.large-maximum"), power("b2.large-typical")
    pairs = [
        quotes.QuoteConflict("TRN813", maximum, chip, (4_000.0, 8_000.0), ""),
        quotes.QuoteConflict("TRN813", typical, chip, (6_000.0, 8_000.0), ""),
    ]
    (blamed,) = quotes._blamed(pairs, quotes._power_order, quotes._narrow)
    assert (blamed.one, blamed.other) == (chip, typical)
    assert blamed.bounds == pytest.approx((500 * 9_000 / 8_000, 500 * 9_000 / 6_000))
    # A claim agrees with the maximum power of the server.
    assert [c.one for c in quotes._blamed(pairs[:1], quotes._power_order, quotes._narrow)] == [chip]
    assert [c.one for c in quotes._blamed(pairs[1:], quotes._power_order, quotes._narrow)] == [typical]
    equal = [
        quotes.QuoteConflict("TRN805", chip, None, (1.0, 2.0), ""),
        quotes.QuoteConflict("TRN806", chip, maximum, (1.0, 2.0), ""),
    ]
    assert [c.code for c in quotes._blamed(equal, quotes._power_order, quotes._narrow)] == ["TRN806"]


@pytest.mark.parametrize(("value", "count", "cause"), tables(__file__)["the_cause_of_a_power_out_of_bounds"])
def test_the_cause_of_a_power_out_of_bounds(value: float, count: int, cause: str) -> None:
    one = power("b2.large-maximum", value=value, sizes=(float(count),))

    assert quotes.likely_cause(quotes.QuoteConflict("TRN813", one, None, (900.0, 1_100.0), "")) == cause
