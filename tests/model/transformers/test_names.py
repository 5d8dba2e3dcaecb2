"""Names of models as tables and model hubs write them."""

import pytest

from tests.support.tables import tables
from trnspec.model.transformers.names import name_key

TABLES = tables(__file__)


@pytest.mark.parametrize(("written", "name"), TABLES["the_same_model"])
def test_the_same_model(written, name):
    assert name_key(name) == name_key(written)


@pytest.mark.parametrize(("one", "other"), TABLES["other_models"])
def test_other_models(one, other):
    assert name_key(one) != name_key(other)
