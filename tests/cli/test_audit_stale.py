"""``trnspec audit --stale``: the values without a recent source."""

from __future__ import annotations

import json

import pytest

from tests.support.programs import Here
from trnspec.api import graph
from trnspec.graph.currency import ages, limit


def listed(here: Here, *args: str) -> dict[str, object]:
    done = here("audit", "--stale", *args, "--format", "json")
    assert done.status == 0
    data: dict[str, object] = json.loads(done.out)
    return data


@pytest.mark.parametrize("older_than", ["12mo", "2y"])
def test_rows(here, older_than) -> None:
    """Exactly the values that are older, oldest first."""
    data = listed(here, "--older-than", older_than)
    known = list(ages(graph(), str(data["as_of"])))
    months = [row["months"] for row in data["rows"]]

    assert data["values"] == len(known)
    assert data["older_than_months"] == limit(older_than)
    assert {(row["document"], row["figure"]) for row in data["rows"]} == {
        (age.name, age.at) for age in known if age.months > limit(older_than)
    }
    assert months == sorted(months, reverse=True)


def test_names_and_paths(here) -> None:
    rows = listed(here, "neuronlink-v3", "lanes")["rows"]

    assert [(row["document"], row["figure"]) for row in rows] == [
        ("neuronlink-v3", "lanes.count"),
        ("neuronlink-v3", "lanes.rate"),
    ]
