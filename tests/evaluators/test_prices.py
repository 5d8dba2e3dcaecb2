"""The price that an evaluator computes with."""

import pytest

import trnspec
from tests.support.tables import tables
from trnspec.evaluation.questions import Prices
from trnspec.evaluators.prices import hourly_price

CATALOG = trnspec.load()


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


@pytest.mark.parametrize(("server", "given", "known"), tables(__file__)["unknown price"])
def test_unknown_price(server, given, known) -> None:
    with pytest.raises(trnspec.RefusalError) as caught:
        price(server, **given)

    assert "unknown-figure" == caught.value.reason
    assert known in str(caught.value)
