"""trnspec.catalog.versions.changes: documents with other values."""

import pytest

from tests.catalog.versions.conftest import CHIP, PAGE, SERVER
from tests.support.rules import graph
from trnspec.catalog.catalog import Catalog
from trnspec.errors import UsageError


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(graph(PAGE, CHIP, SERVER))


def test_totals_follow(catalog) -> None:
    other = catalog.replace("part", {"memory.capacity": "64 GiB"})

    assert (128, 256) == (
        catalog["whole"].total("memory.capacity").to("GiB"),
        other["whole"].total("memory.capacity").to("GiB"),
    )


def test_a_figure_may_come_with_its_source(catalog) -> None:
    change = {"memory.capacity": {"value": "64 GiB", "source": "page", "where": "line 2"}}
    figure = catalog.replace("part", change)["part"].figure("memory.capacity")

    assert ("page", "line 2", None) == (figure.source_name, figure.where, figure.derived)


def test_the_given_changes_stay_as_they_are(catalog) -> None:
    """Applied twice, they give the same."""
    changes = {"memory": {"capacity": "64 GiB"}, "launched": "2022-10"}
    first, second = (catalog.replace("part", changes)["part"] for _ in range(2))

    assert {"memory": {"capacity": "64 GiB"}, "launched": "2022-10"} == changes
    assert first.memory == second.memory


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory.capacity.value.more": "1 GiB"}, "has no memory.capacity.value.more"),
        ({"ratios.0.says": "3x"}, "ratios is not a mapping"),
        ({"launched": 3}, "not a text"),
    ],
)
def test_mistakes(catalog, changes, said) -> None:
    if "ratios.0.says" in changes:
        ratio = {"of": "spec.memory.capacity", "over": "part", "says": "1x", "source": "page"}
        catalog = catalog.replace("part", {"ratios": [ratio]})
    with pytest.raises(UsageError, match=said):
        catalog.replace("part", changes)
