"""The price that an evaluator computes with; rent and power of any number of servers, given or of the catalog."""

import re

import pytest

import trnspec
from tests.support.engine import everything
from tests.support.tables import tables
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.questions import Prices
from trnspec.evaluators.prices import chip_power, hourly_price, purchases, rent, rented
from trnspec.graph.quotes import chosen, quotes

CATALOG = trnspec.load()
TABLES = tables(__file__)


def price(server: str, **given):
    return hourly_price(CATALOG.graph, CATALOG.graph.named(server), Prices(**given))


def test_price_of_the_catalog_has_type_region_date_and_source() -> None:
    found = price("trn2.48xlarge", price_type="spot", region="us-east-2")
    (figure,) = found.figures_used

    assert ("14.5593 USD/h per server", "spot, us-east-2c, 2026-10-03") == (
        found.assumption.value,
        found.assumption.why,
    )
    assert ("trn2.48xlarge-spot", "hourly.us-east-2c", "2026-10-03") == (figure.of, figure.at, figure.as_of)
    assert 14.5593 == float(found.value)


@pytest.mark.parametrize(("server", "given", "known"), TABLES["unknown price"])
def test_unknown_price(server, given, known) -> None:
    with pytest.raises(trnspec.RefusalError) as caught:
        price(server, **given)

    assert "unknown-figure" == caught.value.reason
    assert known in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind", "number"), [("trn1.32xlarge", "spot", 6), ("p5en.48xlarge", "on-demand", None)]
)
def test_six_known_prices_are_listed(name, kind, number) -> None:
    """All of the type, and one of each other type."""
    server = everything().named(name)
    known = [quote.type for quote in quotes(everything(), server)]
    number = number or known.count(kind) + len({*known} - {kind})
    with pytest.raises(RefusalError) as caught:
        hourly_price(everything(), server, Prices(price_type=kind, region="moon-1"))
    listed = str(caught.value).partition("; known: ")[2]

    assert (6, [str(number - 6)] if number > 6 else []) == (
        listed.count("USD/h"),
        re.findall(r" and (\d+) more$", listed),
    )


def test_a_chip_is_not_rented() -> None:
    assert (rented(CATALOG, "trainium2"), rent(CATALOG, "trainium2"), list(purchases(CATALOG, "trainium2"))) == (
        None,
        None,
        [],
    )


@pytest.mark.parametrize("on", ["trn1.32xlarge*0", "trn1.32xlarge*x", "trn1.32xlarge*", "trn1.32xlarge*2*2", "", "a b"])
def test_a_system_that_is_not_one(on: str) -> None:
    with pytest.raises(UsageError, match="on: a system and a count are expected"):
        rented(CATALOG, on)


def test_the_price_of_all_servers() -> None:
    """That of the catalog by default, on demand first, or the given one, which needs no type."""
    server = CATALOG["trn1.32xlarge"].node
    quote, spot = (chosen(CATALOG.graph, server, kind, None) for kind in ("on-demand", "spot"))
    found, cheap, given = (
        rent(CATALOG, "trn1.32xlarge*7"), rent(CATALOG, "trn1.32xlarge*7", type="spot"),
        rent(CATALOG, "trn1.32xlarge*7", price="10 USD/h"),
    )  # fmt: skip

    assert None not in {quote, spot, found, cheap, given}
    assert (found.type, found.hourly) == ("on-demand", pytest.approx(7 * float(quote.figure.value.value)))
    assert (cheap.type, cheap.hourly) == ("spot", pytest.approx(7 * float(spot.figure.value.value)))
    assert [f.of for f in found.figures_used] == ["trn1.32xlarge-on-demand"]
    assert (given.type, given.hourly, given.figures_used) == ("", 70.0, ())
    assert str(given) == "10 USD/h per server: the caller"
    assert str(found).startswith(f"{quote.figure.value} per server: on-demand, ")
    # No price on demand is known: the next type.
    blocks = rent(CATALOG, "trn2.48xlarge")
    assert blocks is not None
    assert (blocks.servers, blocks.type) == (1, "capacity-block")


@pytest.mark.parametrize(
    ("on", "chips"), [("trainium2", 1), ("trn2.48xlarge", 16), ("trn2-ultraserver", 64), ("trn2-ultraserver*5", 320)]
)
def test_power_of_all_chips(powered: Catalog, on: str, chips: int) -> None:
    power = chip_power(powered, on)

    assert power is not None
    assert power.watts == 450.0 * chips
    assert [(f.of, f.source) for f in power.figures_used] == [("trainium2-tdp", "sheet")]
    assert str(power) == "chips at 450 W tdp (2026-01), without hosts, network and cooling"


def test_power_that_is_not_published(powered: Catalog) -> None:
    assert chip_power(powered, "trn1.32xlarge*2") is None
    with pytest.raises(UsageError, match="on: a system and a count are expected"):
        chip_power(powered, "trn2.48xlarge*x")


@pytest.mark.parametrize(("on", "place", "offered"), TABLES["regions"])
def test_regions(on, place, offered) -> None:
    if offered:
        assert rent(CATALOG, on, region=place, price="10 USD/h") is not None
    else:
        with pytest.raises(
            RefusalError, match=rf"is not offered in {place}; it is in .* \([\w.-]+, 20[\d-]+\)\n"
        ) as found:
            rent(CATALOG, on, region=place, price="10 USD/h")
        assert found.value.reason == "not-offered"
