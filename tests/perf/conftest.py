"""The catalog with those of the living plugins."""

import pytest

from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return Catalog(everything())
