"""trnspec.catalog.versions.changes: documents with other values."""

from __future__ import annotations

import pytest

from tests.catalog.part_and_whole import CHIP, PAGE, SERVER
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


def test_an_assumed_figure_has_no_source(catalog) -> None:
    figure = catalog.replace("part", {"memory.capacity": "~64 GiB"})["part"].figure("memory.capacity")

    assert ("", "64 GiB", "assumed, instead of 32 GiB") == (figure.source_name, figure.derived, figure.note)
    assert "derived" in str(figure)


def test_unchanged_figure_keeps_source(catalog) -> None:
    other = catalog.replace("part", {"memory.capacity": "64 GiB"})["part"]

    assert "page" == other.figure("memory.bandwidth").source_name


def test_a_figure_may_come_with_its_source(catalog) -> None:
    change = {"memory.capacity": {"value": "64 GiB", "source": "page", "where": "line 2"}}
    figure = catalog.replace("part", change)["part"].figure("memory.capacity")

    assert ("page", "line 2", None) == (figure.source_name, figure.where, figure.derived)


def test_a_whole_part_may_be_given(catalog) -> None:
    other = catalog.replace("part", {"memory": {"capacity": "64 GiB"}})["part"]

    assert None is other.memory.bandwidth
    assert "64 GiB" == other.figure("memory.capacity").derived


def test_the_given_changes_stay_as_they_are(catalog) -> None:
    """Applied twice, they give the same."""
    changes = {"memory": {"capacity": "64 GiB"}, "launched": "2022-10"}
    first, second = (catalog.replace("part", changes)["part"] for _ in range(2))

    assert {"memory": {"capacity": "64 GiB"}, "launched": "2022-10"} == changes
    assert first.memory == second.memory


def test_none_removes_figure(catalog) -> None:
    assert None is catalog.replace("part", {"memory.bandwidth": None})["part"].memory.bandwidth


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory.capcity": "64 GiB"}, "did you mean 'capacity'"),
        ({"memory.capacity": "64 GiB/s"}, "measures bandwidth"),
        ({"memory.capacity": None}, "capacity is missing"),
        ({"sbuf": None}, "sbuf has no value to remove"),
        ({"memory.capacity.value.more": "1 GiB"}, "has no memory.capacity.value.more"),
        ({"ratios.0.says": "3x"}, "ratios is not a mapping"),
        ({"launched": 3}, "not a text"),
    ],
)
def test_mistakes(catalog, changes, said) -> None:
    if "ratios.0.says" in changes:
        catalog = catalog.replace("part", {"ratios": [_RATIO]})
    with pytest.raises(UsageError, match=said):
        catalog.replace("part", changes)


_RATIO = {"of": "spec.memory.capacity", "over": "part", "says": "1x", "source": "page"}
