"""The catalog with those of the living plugins, and the rates that answers are computed with by hand."""

import pytest

from tests.support.engine import Rates, everything, rates_of
from trnspec.catalog.catalog import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return Catalog(everything())


@pytest.fixture(scope="session")
def rates(catalog: Catalog) -> Rates:
    return rates_of(catalog)
